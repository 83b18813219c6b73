#include "frontend/environment.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "frontend/text.h"
#include "frontend/type_expression.h"

namespace kelpie {

namespace {

/// Whether a program can write the name: some functions of the library are the meaning of operators, or
/// internal.
bool isUserName(std::string_view name) {
  static constexpr std::string_view kOperatorWords[] = {"and", "or", "xor", "nand", "nor"};
  const bool isOperator =
      std::find(std::begin(kOperatorWords), std::end(kOperatorWords), name) != std::end(kOperatorWords);
  return (name[0] == '_' || (name[0] >= 'a' && name[0] <= 'z')) && !isOperator && !isInternalName(name);
}

}  // namespace

Environment::Environment(TypeStore& types, Library& library,
                         std::function<void(const ast::Form&)> defineLibrary)
    : types_(types), library_(library), defineLibrary_(std::move(defineLibrary)) {
  for (const Builtin& builtin : builtins()) builtins_.emplace(builtin.name, &builtin);
}

Cell* Environment::lookup(const std::string& name, bool fromLibrary) {
  if (!fromLibrary) {
    if (hidden_.contains(name)) return nullptr;
    if (auto found = userCells_.find(name); found != userCells_.end()) return found->second;
    if (isInternalName(name)) return nullptr;
  }
  return libraryCell(name);
}

const Cell& Environment::libraryFunction(const std::string& name) {
  Cell* cell = libraryCell(name);
  if (!cell) throw InternalError("the library does not define " + name);
  return *cell;
}

Cell* Environment::libraryCell(const std::string& name) {
  if (auto found = libraryCells_.find(name); found != libraryCells_.end()) return found->second;
  if (auto found = builtins_.find(name); found != builtins_.end()) {
    const Builtin& builtin = *found->second;
    Cell& cell = makeCell(CellKind::Builtin, name);
    cell.builtin = &builtin;
    cell.serial = builtin.serial;
    ast::Signature signature = parseSignature(builtin.type);
    std::vector<Diagnostic> diagnostics;
    TypeReader reader(*this, true, diagnostics);
    reader.declare(signature.context);
    Type* type = reader.read(*signature.type);
    if (!type) throw InternalError("primitive " + name + ": " + diagnostics.front().message);
    if (type->kind == TypeKind::Function) type->arguments[2] = types_.definition(&cell);
    cell.scheme = types_.generalise(type);
    addLibrary(cell);
    return &cell;
  }
  if (!library_.defines(name)) return nullptr;
  defineLibrary_(library_.form(name));
  return libraryCells_.at(name);
}

const Datatype* Environment::lookupDatatype(const std::string& name, bool fromLibrary) {
  if (!fromLibrary) {
    if (auto found = userDatatypes_.find(name); found != userDatatypes_.end()) return found->second;
  }
  if (auto found = libraryDatatypes_.find(name); found != libraryDatatypes_.end()) return found->second;
  // A library datatype is defined with its constructor, unless a primitive has the name.
  if (!library_.defines(name) || builtins_.contains(name) || libraryCells_.contains(name)) return nullptr;
  Cell* cell = libraryCell(name);
  return cell->kind == CellKind::Constructor ? cell->datatype : nullptr;
}

std::vector<std::string> Environment::similarNames(const std::string& name, bool fromLibrary,
                                                   const std::vector<std::string>& local) const {
  // A third of the letters at most; of a name of one or two letters, each of the library's would be as near.
  const size_t limit = name.size() < 6 ? 1 : 2;
  const bool tooShort = name.size() < 3;
  enum Whose : uint8_t { Local, Users, Librarys };
  std::vector<std::tuple<size_t, Whose, std::string>> near;
  const auto consider = [&](const std::string& candidate, Whose whose) {
    if (!isUserName(candidate) && !(fromLibrary && isInternalName(candidate))) return;
    const size_t distance = editDistance(name, candidate, limit);
    const bool sharesLetters = distance < std::max(name.size(), candidate.size());
    if (distance <= limit && sharesLetters && candidate != name)
      near.emplace_back(distance, whose, candidate);
  };
  for (const std::string& candidate : local) consider(candidate, Local);
  if (!fromLibrary)
    for (auto& [candidate, cell] : userCells_) consider(candidate, Users);
  if (!tooShort) {
    for (auto& [candidate, builtin] : builtins_) consider(std::string(candidate), Librarys);
    for (const std::string& candidate : library_.names()) consider(candidate, Librarys);
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> result;
  for (const auto& [distance, whose, candidate] : near) {
    const auto& [nearest, first, best] = near.front();
    if (result.size() == 3 || (first != Librarys && whose == Librarys && distance > nearest)) break;
    if (std::find(result.begin(), result.end(), candidate) == result.end()) result.push_back(candidate);
  }
  return result;
}

std::vector<std::string> Environment::similarTypes(const std::string& name) const {
  const size_t limit = name.size() < 4 ? 1 : 2;
  std::vector<std::pair<size_t, std::string>> near;
  const auto consider = [&](const std::string& candidate) {
    const size_t distance = editDistance(name, candidate, limit);
    if (distance <= limit && distance + 1 < candidate.size()) near.emplace_back(distance, candidate);
  };
  for (const char* scalar : {"int", "float", "bool", "char"}) consider(scalar);
  for (auto& [candidate, datatype] : userDatatypes_) consider(candidate);
  std::sort(near.begin(), near.end());
  std::vector<std::string> result;
  for (const auto& [distance, candidate] : near)
    if (distance == near.front().first && result.size() < 3) result.push_back(candidate);
  return result;
}

std::string oneOf(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i)
    list += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + ("`" + names[i] + "`");
  return list;
}

std::vector<std::string> Environment::namesWithPrefix(std::string_view prefix) const {
  std::vector<std::string> names;
  auto consider = [&](std::string_view name) {
    if (name.starts_with(prefix) && isUserName(name)) names.emplace_back(name);
  };
  for (auto& [name, cell] : userCells_) consider(name);
  for (auto& [name, builtin] : builtins_) consider(name);
  for (const std::string& name : library_.names()) consider(name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Cell& Environment::makeCell(CellKind kind, std::string name) {
  Cell& cell = cells_.emplace_back();
  cell.kind = kind;
  cell.name = std::move(name);
  return cell;
}

Datatype& Environment::makeDatatype(std::string name) {
  Datatype& datatype = datatypes_.emplace_back();
  datatype.name = std::move(name);
  return datatype;
}

Environment::Definition Environment::define(Cell& cell) {
  hidden_.erase(cell.name);
  auto [entry, isNew] = userCells_.emplace(cell.name, &cell);
  if (isNew) return {&cell, false};
  Cell& old = *entry->second;
  // The identity of a function is its cell: compare the types as if both were the old one.
  Scheme scheme = cell.scheme;
  Type* type = resolve(scheme.type);
  if (type->kind == TypeKind::Function && resolve(type->arguments[2])->cell == &cell) {
    scheme.type = types_.function(type->arguments[0], type->arguments[1], types_.definition(&old));
  }
  if (old.kind != cell.kind || old.datatype != cell.datatype || !sameScheme(old.scheme, scheme)) {
    entry->second = &cell;
    return {&cell, true};
  }
  old.span = cell.span;
  if (old.kind == CellKind::Function) {
    if (old.function) replaced_.push_back(old.function);
    old.function = cell.function;
    old.serial = cell.serial;
    old.components = cell.components;
    old.defaults = std::move(cell.defaults);
    cell.replaces = &old;
  }
  return {&old, false};
}

void Environment::addLibrary(Cell& cell) {
  cell.fromLibrary = true;
  libraryCells_[cell.name] = &cell;
}

void Environment::addDatatype(const Datatype& datatype, bool fromLibrary) {
  (fromLibrary ? libraryDatatypes_ : userDatatypes_)[datatype.name] = &datatype;
}

std::optional<Span> Environment::failedDefinition(const std::string& name) const {
  const auto found = failed_.find(name);
  return found == failed_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Environment::Announcement> Environment::announcedDefinition(const std::string& name) const {
  const auto found = announced_.find(name);
  return found == announced_.end() ? std::nullopt : std::optional(found->second);
}

Cell* Environment::existing(const std::string& name) {
  auto found = userCells_.find(name);
  return found == userCells_.end() ? nullptr : found->second;
}

}  // namespace kelpie
