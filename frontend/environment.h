// The top-level environment: cells of global names, datatypes, and the library behind them (language.md 5.3).
//
// Every global name owns a cell; code refers to cells, not to their contents. A definition with the same type
// replaces the content of the cell, one with another type makes a new cell. User names hide library names,
// for user code only: the library has its own name space and never sees user definitions.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/builtins.h"
#include "frontend/library.h"
#include "frontend/nesl_type.h"
#include "frontend/typed.h"

namespace kelpie {

/// A component of a function's parameter that may be left out in a call (language.md 5.4).
struct DefaultValue {
  size_t position;  ///< in the list of components
  std::string name;
  const Cell* function;  ///< a function of an ignored int that yields the value
};

enum class CellKind : uint8_t {
  Builtin,      // `builtin`
  Function,     // `function`; null when it is only declared
  Constructor,  // of `datatype`
  Variable,     // contents are in the session, under `id`
  Constant,     // library variable: `value` stands for it
};

struct Cell {
  CellKind kind = CellKind::Function;
  std::string name;
  Scheme scheme;
  bool fromLibrary = false;
  bool serial = false;  ///< must not be called inside an apply-to-each
  Span span;
  uint32_t id = 0;  ///< Variable: number of the session cell
  const Builtin* builtin = nullptr;
  const Datatype* datatype = nullptr;
  std::shared_ptr<const typed::Function> function;
  typed::ExpPtr value;
  size_t components = 0;  ///< of the parameter, where there are defaults
  std::vector<DefaultValue> defaults;
  /// A definition whose content went into an existing cell of the same type: that cell.
  const Cell* replaces = nullptr;

  /// The cell whose content counts.
  const Cell& canonical() const { return replaces ? replaces->canonical() : *this; }
};

/// "`a`, `b` or `c`".
std::string oneOf(const std::vector<std::string>& names);

class Environment {
 public:
  /// `defineLibrary` checks a library form and adds its names with addLibrary (and addDatatype).
  Environment(TypeStore& types, Library& library, std::function<void(const ast::Form&)> defineLibrary);

  TypeStore& types() { return types_; }

  /// The cell a name means, or null. Library code sees the library only; user code sees its own names first
  /// and no internal ones.
  Cell* lookup(const std::string& name, bool fromLibrary);
  /// The library's function for an operator or an expansion; it exists.
  const Cell& libraryFunction(const std::string& name);
  const Datatype* lookupDatatype(const std::string& name, bool fromLibrary);
  /// Names that are spelled like the unknown one, best first, at most three: `local` ones before those of the
  /// program, these before the library's, which are left out where one of the others is nearer.
  std::vector<std::string> similarNames(const std::string& name, bool fromLibrary,
                                        const std::vector<std::string>& local = {}) const;

  /// The same of types, without the local ones.
  std::vector<std::string> similarTypes(const std::string& name) const;

  /// The names that user code can use and that begin with `prefix`, sorted.
  std::vector<std::string> namesWithPrefix(std::string_view prefix) const;

  /// A new cell that no name refers to yet.
  Cell& makeCell(CellKind kind, std::string name);
  uint32_t newVariableId() { return ++lastVariable_; }
  Datatype& makeDatatype(std::string name);

  struct Definition {
    Cell* cell;    ///< what the name means now
    bool newType;  ///< an earlier user definition of another type is hidden
  };
  /// Gives the user name to the cell, or its content to the existing cell of that name and the same type.
  Definition define(Cell& cell);
  void addLibrary(Cell& cell);
  void addDatatype(const Datatype& datatype, bool fromLibrary);
  /// Names whose definition had a mistake, for messages about their uses: where it stands, or nothing. Until
  /// forgetHidden, uses do not find what the name meant before either, say a function of the library. `told`:
  /// uses need not be told, since the mistake was to use another such name.
  void markFailed(const std::string& name, Span span, bool told = false) {
    failed_[name] = span;
    hidden_.insert(name);
    if (told) told_.insert(name);
  }
  /// At the end of a text: at a prompt, mistakes leave everything as it was.
  void forgetHidden() {
    hidden_.clear();
    told_.clear();
    announced_.clear();
    announcedTypes_.clear();
  }
  std::optional<Span> failedDefinition(const std::string& name) const;
  /// Whether that was in this text.
  bool failedHere(const std::string& name) const { return hidden_.contains(name); }
  /// What the text defines, perhaps further down.
  struct Announcement {
    Span span;
    bool isFunction;
  };
  void announceType(const std::string& name, Span definition) {
    announcedTypes_.try_emplace(name, definition);
  }
  std::optional<Span> announcedType(const std::string& name) const {
    const auto found = announcedTypes_.find(name);
    return found == announcedTypes_.end() ? std::nullopt : std::optional(found->second);
  }
  void announce(const std::string& name, Announcement definition) {
    announced_.try_emplace(name, definition);
  }
  std::optional<Announcement> announcedDefinition(const std::string& name) const;
  /// Whether a use of a name whose definition had a mistake is to be told: once in the text of both.
  bool tellFailed(const std::string& name) { return !hidden_.contains(name) || told_.insert(name).second; }
  /// The variable `it`: same rules, without the message.
  Cell* existing(const std::string& name);

 private:
  Cell* libraryCell(const std::string& name);

  TypeStore& types_;
  Library& library_;
  std::function<void(const ast::Form&)> defineLibrary_;
  std::deque<Cell> cells_;
  std::deque<Datatype> datatypes_;
  std::unordered_map<std::string, Cell*> userCells_, libraryCells_;
  std::unordered_map<std::string, Span> failed_;
  std::unordered_map<std::string, Announcement> announced_;
  std::unordered_map<std::string, Span> announcedTypes_;
  std::unordered_set<std::string> hidden_, told_;
  std::unordered_map<std::string, const Datatype*> userDatatypes_, libraryDatatypes_;
  std::unordered_map<std::string_view, const Builtin*> builtins_;
  std::vector<std::shared_ptr<const typed::Function>> replaced_;  ///< types refer to their lambdas
  uint32_t lastVariable_ = 0;
};

}  // namespace kelpie
