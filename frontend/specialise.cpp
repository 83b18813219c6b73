#include "frontend/specialise.h"

#include <algorithm>
#include <tuple>

#include "frontend/overloaded.h"
#include "frontend/serial_check.h"
#include "frontend/specialiser.h"

namespace kelpie {

/// Instances of one definition in one program; only a recursion that makes a new type at every step needs
/// more.
constexpr int kInstanceLimit = 1000;

Specialised specialise(const typed::Exp& expression, Environment& environment, GroundTypes& grounds) {
  return Specialiser(environment, grounds).run(expression);
}

Specialised Specialiser::run(const typed::Exp& expression) {
  program_.intType = widths_.intType;
  program_.floatType = widths_.floatType;
  Block block;
  Atoms result = eval(expression, block);
  Type* type = ground(expression.type);
  program_.entry = finish(std::move(block), std::move(result), expression.span);
  while (!pending_.empty()) {
    Instance next = pending_.front();
    pending_.pop_front();
    buildInstance(next.type, next.id);
  }
  Specialised specialised;
  specialised.diagnostics = checkSerial(program_);
  for (Diagnostic& diagnostic : diagnostics_) specialised.diagnostics.push_back(std::move(diagnostic));
  specialised.type = grounds_.valueType(type);
  specialised.program = std::move(program_);
  return specialised;
}

// ---- instances --------------------------------------------------------------------------------------------

core::FunctionId Specialiser::instance(Type* functionType) {
  auto [entry, isNew] =
      instances_.emplace(functionType, static_cast<core::FunctionId>(program_.functions.size()));
  if (!isNew) return entry->second;
  const Type* identity = functionType->arguments[2];
  core::Function& made = program_.functions.emplace_back();
  const std::string name = identity->cell ? identity->cell->name : "lambda";
  int number = ++names_[name];
  made.name = number == 1 ? name : name + "_" + std::to_string(number);
  made.result = grounds_.row(functionType->arguments[1]);
  const void* code = identity->cell ? static_cast<const void*>(identity->cell) : identity->lambda;
  int instances = ++instancesOf_[code];
  if (instances <= kInstanceLimit) {
    pending_.push_back({functionType, entry->second});
  } else if (instances == kInstanceLimit + 1) {
    diagnostics_.push_back(
        {.id = "K0405",
         .span = identity->cell ? identity->cell->span : identity->lambda->body->span,
         .message = "`" + name + "` is needed for ever more types",
         .hint =
             "a recursion through a declared function passes on an argument of another type at every step: "
             "one sequence or tuple more, or another function value",
         .notes = {}});
  }
  return entry->second;
}

void Specialiser::buildInstance(Type* functionType, core::FunctionId id) {
  const Type* identity = functionType->arguments[2];
  substitution_.clear();
  variables_.clear();
  invariants_ = true;
  std::vector<core::Var> parameters;
  auto parameter = [&](const typed::Pattern& pattern) {
    std::vector<core::Var> vars = newVars(grounds_.row(ground(pattern.type)), "");
    size_t next = 0;
    nameVars(pattern, vars, next);
    Atoms atoms;
    for (const core::Var& var : vars) atoms.push_back(use(var));
    bind(pattern, atoms);
    parameters.insert(parameters.end(), vars.begin(), vars.end());
  };
  const typed::Exp* body = nullptr;
  Span span;
  bool fromLibrary = false;
  if (const typed::Lambda* lambda = identity->lambda) {
    grounds_.match(lambda->parameter->type, functionType->arguments[0], substitution_);
    grounds_.match(lambda->body->type, functionType->arguments[1], substitution_);
    for (size_t i = 0; i < lambda->captures.size(); ++i) {
      grounds_.match(lambda->captures[i]->type, identity->arguments[i], substitution_);
    }
    for (size_t i = 0; i < lambda->captures.size(); ++i) {
      std::vector<core::Var> vars = newVars(grounds_.row(identity->arguments[i]), lambda->captures[i]->name);
      Atoms& atoms = variables_[lambda->captures[i].get()];
      for (const core::Var& var : vars) atoms.push_back(use(var));
      parameters.insert(parameters.end(), vars.begin(), vars.end());
    }
    parameter(*lambda->parameter);
    body = lambda->body.get();
    span = lambda->body->span;
    fromLibrary = lambda->fromLibrary;
  } else {
    const Cell& cell = *identity->cell;
    span = cell.span;
    fromLibrary = cell.fromLibrary;
    if (cell.function) {
      grounds_.match(cell.function->scheme.type, functionType, substitution_);
      parameter(*cell.function->parameter);
      body = cell.function->body.get();
    } else {
      parameters = newVars(grounds_.row(functionType->arguments[0]), "argument");
    }
  }
  core::ExpPtr made;
  if (body) {
    Block block;
    Atoms result = eval(*body, block);
    made = finish(std::move(block), std::move(result), body->span);
  }
  core::Function& function = program_.functions[id];
  function.parameters = std::move(parameters);
  function.body = std::move(made);
  function.span = span;
  function.fromLibrary = fromLibrary;
}

std::vector<core::Var> Specialiser::newVars(const Row& row, const std::string& name) {
  std::vector<core::Var> vars;
  vars.reserve(row.size());
  for (const CoreType& type : row) {
    std::string full = name.empty() || row.size() == 1 ? name : name + "_" + std::to_string(vars.size() + 1);
    vars.push_back({program_.nextVar++, std::move(full), type});
  }
  return vars;
}

// ---- patterns ---------------------------------------------------------------------------------------------

void Specialiser::bind(const typed::Pattern& pattern, const Atoms& atoms) {
  const core::Atom* next = atoms.data();
  bind(pattern, next);
}

void Specialiser::bind(const typed::Pattern& pattern, const core::Atom*& next) {
  if (pattern.variable) {
    size_t size = grounds_.row(ground(pattern.type)).size();
    variables_[pattern.variable.get()] = Atoms(next, next + size);
    next += size;
  }
  for (const typed::PatternPtr& part : pattern.parts) bind(*part, next);
}

void Specialiser::nameVars(const typed::Pattern& pattern, std::vector<core::Var>& vars, size_t& next) {
  if (pattern.variable) {
    size_t size = grounds_.row(ground(pattern.type)).size();
    for (size_t i = 0; i < size; ++i, ++next) {
      if (!vars[next].name.empty()) continue;
      vars[next].name = pattern.variable->name;
      if (size > 1) vars[next].name += "_" + std::to_string(i + 1);
    }
  }
  for (const typed::PatternPtr& part : pattern.parts) nameVars(*part, vars, next);
}

// The value of a let was the last thing computed: its variables take the names of the pattern.
void Specialiser::nameLast(Block& block, size_t first, const typed::Pattern& pattern) {
  if (block.lets.size() <= first) return;
  std::vector<core::Var>& vars = block.lets.back().first;
  if (vars.size() != grounds_.row(ground(pattern.type)).size()) return;
  size_t next = 0;
  nameVars(pattern, vars, next);
}

// ---- building Core ----------------------------------------------------------------------------------------

Atoms Specialiser::emit(decltype(core::Exp::node) node, Row type, Block& block, Span span) {
  std::vector<core::Var> vars = newVars(type, "");
  Atoms atoms;
  atoms.reserve(vars.size());
  for (const core::Var& var : vars) atoms.push_back(use(var));
  auto exp = std::make_shared<core::Exp>(core::Exp{std::move(node), std::move(type), span});
  block.lets.emplace_back(std::move(vars), std::move(exp));
  return atoms;
}

core::Atom Specialiser::emitOne(decltype(core::Exp::node) node, CoreType type, Block& block, Span span) {
  return emit(std::move(node), {std::move(type)}, block, span)[0];
}

core::ExpPtr Specialiser::finish(Block block, Atoms result, Span span) {
  Row type;
  for (const core::Atom& atom : result) type.push_back(atom.type);
  // A let whose variables are exactly the result is the result: calls in tail position stay there.
  core::ExpPtr exp;
  if (!block.lets.empty()) {
    auto& [vars, rhs] = block.lets.back();
    bool same = vars.size() == result.size();
    for (size_t i = 0; i < result.size() && same; ++i)
      same = !result[i].isConstant() && result[i].var() == vars[i].id;
    if (same && !vars.empty()) {
      exp = rhs;
      block.lets.pop_back();
    }
  }
  if (!exp) exp = std::make_shared<core::Exp>(core::Exp{core::Values{std::move(result)}, type, span});
  for (auto let = block.lets.rbegin(); let != block.lets.rend(); ++let) {
    Span letSpan = let->second->span;
    exp = std::make_shared<core::Exp>(
        core::Exp{core::Let{std::move(let->first), std::move(let->second), std::move(exp)}, type, letSpan});
  }
  return exp;
}

// ---- expressions ------------------------------------------------------------------------------------------

// Constants, names, and pairs and sequences of constants cost nothing to evaluate again.
bool Specialiser::isTrivial(const typed::Exp& exp) const {
  if (isConstantExpression(exp)) return true;
  if (auto* pair = std::get_if<typed::Pair>(&exp.node))
    return isTrivial(*pair->first) && isTrivial(*pair->second);
  if (auto* global = std::get_if<typed::Global>(&exp.node)) {
    return global->cell->kind != CellKind::Constant || isTrivial(*global->cell->value);
  }
  return false;
}

Atoms Specialiser::eval(const typed::Exp& exp, Block& block) {
  if (!invariants_ || !exp.closed || isTrivial(exp)) return evalNode(exp, block);
  Block inner;
  invariants_ = false;
  Atoms atoms = evalNode(exp, inner);
  invariants_ = true;
  if (inner.lets.empty()) return atoms;
  core::ExpPtr body = finish(std::move(inner), std::move(atoms), exp.span);
  Row type = body->type;
  return emit(core::Invariant{std::move(body)}, std::move(type), block, exp.span);
}

Atoms Specialiser::evalNode(const typed::Exp& exp, Block& block) {
  return std::visit(
      Overloaded{
          [&](const typed::Literal& literal) { return Atoms{constant(literal.value)}; },
          [&](const typed::String& string) { return Atoms{constantString(string.bytes, block, exp.span)}; },
          [&](const typed::Local& local) { return variables_.at(local.variable.get()); },
          [&](const typed::Global& global) { return evalGlobal(exp, *global.cell, block); },
          [&](const typed::Pair& pair) {
            Atoms atoms = eval(*pair.first, block);
            Atoms second = eval(*pair.second, block);
            atoms.insert(atoms.end(), second.begin(), second.end());
            return atoms;
          },
          [&](const typed::Call& call) { return evalCall(exp, call, block); },
          [&](const typed::Sequence& sequence) { return evalSequence(exp, sequence, block); },
          [&](const typed::ApplyToEach& each) { return evalEach(exp, each, block); },
          [&](const typed::If& branch) { return evalIf(exp, branch, block); },
          [&](const typed::Let& let) { return evalLet(let, block); },
          [&](const typed::Lambda& lambda) {
            Atoms atoms;
            for (const typed::VariablePtr& capture : lambda.captures) {
              const Atoms& value = variables_.at(capture.get());
              atoms.insert(atoms.end(), value.begin(), value.end());
            }
            return atoms;
          },
          [&](const typed::Time& time) { return evalTime(exp, time, block); },
      },
      exp.node);
}

Atoms Specialiser::evalGlobal(const typed::Exp& exp, const Cell& named, Block& block) {
  const Cell& cell = named.canonical();
  switch (cell.kind) {
    case CellKind::Builtin:
      if (resolve(cell.scheme.type)->kind == TypeKind::Function) return {};
      return {constantOf(cell.builtin->expansion)};
    case CellKind::Function:
    case CellKind::Constructor:
      return {};
    case CellKind::Constant:
      return eval(*cell.value, block);
    case CellKind::Variable: {
      auto [entry, isNew] = globals_.emplace(cell.id, program_.globals.size());
      if (isNew) program_.globals.push_back({cell.id, newVars(grounds_.row(ground(exp.type)), cell.name)});
      Atoms atoms;
      for (const core::Var& var : program_.globals[entry->second].vars) atoms.push_back(use(var));
      return atoms;
    }
  }
  return {};
}

Atoms Specialiser::evalCall(const typed::Exp& exp, const typed::Call& call, Block& block) {
  Atoms captures = eval(*call.function, block);
  Atoms arguments;
  // The text of a check is part of the operation, not an operand.
  const auto* global = std::get_if<typed::Global>(&call.function->node);
  const Builtin* builtin = global ? global->cell->builtin : nullptr;
  bool literalText =
      builtin && (builtin->expansion == Expansion::Check || builtin->expansion == Expansion::CheckedInt);
  if (!literalText) arguments = eval(*call.argument, block);
  return callValue(ground(call.function->type), std::move(captures), std::move(arguments),
                   call.argument.get(), block, exp.span);
}

Atoms Specialiser::evalSequence(const typed::Exp& exp, const typed::Sequence& sequence, Block& block) {
  Type* type = ground(exp.type);
  if (isConstantExpression(exp)) {
    return emit(core::Constant{constantColumns(exp, type, grounds_)}, grounds_.row(type), block, exp.span);
  }
  core::Prim literal{core::PrimOp::Literal, {}};
  literal.count = static_cast<uint32_t>(sequence.elements.size());
  for (const typed::ExpPtr& element : sequence.elements) {
    Atoms atoms = eval(*element, block);
    literal.arguments.insert(literal.arguments.end(), atoms.begin(), atoms.end());
  }
  return emit(std::move(literal), grounds_.row(type), block, exp.span);
}

Atoms Specialiser::evalIf(const typed::Exp& exp, const typed::If& branch, Block& block) {
  core::Atom condition = eval(*branch.condition, block)[0];
  Block thenBlock, elseBlock;
  Atoms thenAtoms = eval(*branch.thenBranch, thenBlock);
  Atoms elseAtoms = eval(*branch.elseBranch, elseBlock);
  core::ExpPtr thenExp = finish(std::move(thenBlock), std::move(thenAtoms), branch.thenBranch->span);
  core::ExpPtr elseExp = finish(std::move(elseBlock), std::move(elseAtoms), branch.elseBranch->span);
  return emit(core::If{condition, std::move(thenExp), std::move(elseExp)}, grounds_.row(ground(exp.type)),
              block, exp.span);
}

Atoms Specialiser::evalLet(const typed::Let& let, Block& block) {
  for (const typed::Binding& binding : let.bindings) {
    size_t first = block.lets.size();
    Atoms value = eval(*binding.source, block);
    nameLast(block, first, *binding.pattern);
    bind(*binding.pattern, value);
  }
  return eval(*let.body, block);
}

Atoms Specialiser::evalTime(const typed::Exp& exp, const typed::Time& time, Block& block) {
  core::Prim start{core::PrimOp::StartTimer, {constant(Scalar::ofInt(widths_.intType, 0))}};
  core::Atom timer = emitOne(std::move(start), widths_.intType, block, exp.span);
  Atoms atoms = eval(*time.body, block);
  atoms.push_back(emitOne(core::Prim{core::PrimOp::StopTimer, {timer}}, widths_.floatType, block, exp.span));
  return atoms;
}

// A filter becomes a pack in front of the body (language.md 4.6.2): flags for all elements first, then only
// the components of the sources that the body needs are packed, then the body runs over the survivors.
Atoms Specialiser::evalEach(const typed::Exp& exp, const typed::ApplyToEach& each, Block& block) {
  bool outerInvariants = invariants_;
  std::vector<core::Atom> sources;
  for (const typed::Binding& binding : each.bindings) sources.push_back(eval(*binding.source, block)[0]);
  invariants_ = true;

  // Binds the patterns to new variables for the elements; components outside [first, first+count) stay
  // unbound.
  auto bindElements = [&](size_t i, size_t first, size_t count, core::Atom sequence) {
    const typed::Pattern& pattern = *each.bindings[i].pattern;
    const Row& row = grounds_.row(ground(pattern.type));
    std::vector<core::Var> vars = newVars(row, "");
    size_t next = 0;
    nameVars(pattern, vars, next);
    Atoms atoms;
    for (const core::Var& var : vars) atoms.push_back(use(var));
    bind(pattern, atoms);
    vars.erase(vars.begin() + static_cast<std::ptrdiff_t>(first + count), vars.end());
    vars.erase(vars.begin(), vars.begin() + static_cast<std::ptrdiff_t>(first));
    return core::Each::Binding{std::move(vars), std::move(sequence)};
  };
  auto width = [&](size_t i) { return grounds_.row(ground(each.bindings[i].pattern->type)).size(); };

  core::Each made{{}, nullptr, each.serial};
  bool lengthsChecked = each.bindings.size() == 1;
  if (each.filter) {
    core::Each test{{}, nullptr, each.serial};
    for (size_t i = 0; i < sources.size(); ++i)
      test.bindings.push_back(bindElements(i, 0, width(i), sources[i]));
    Block inner;
    Atoms flag = eval(*each.filter, inner);
    test.body = finish(std::move(inner), std::move(flag), each.filter->span);
    CoreType flagsType = CoreType::sequence({ScalarType::Bool});
    core::Atom flags =
        emitOne(std::move(test), flagsType, block, lengthsChecked ? each.filter->span : exp.span);
    lengthsChecked = true;

    std::vector<core::Var> vars;
    std::vector<core::Atom> needed;
    std::unordered_set<const typed::Variable*> uses;
    if (each.body) collectUses(*each.body, uses);
    for (size_t i = 0; i < sources.size(); ++i) {
      const typed::Pattern& pattern = *each.bindings[i].pattern;
      size_t first = 0, end = width(i);
      if (each.body || i > 0) std::tie(first, end) = usedComponents(pattern, uses);
      if (first == end && !(i == 0 && !each.body)) continue;
      core::Atom part = project(sources[i], first, end - first, block, each.bindings[i].source->span);
      core::Each::Binding elements = bindElements(i, first, end - first, part);
      vars.insert(vars.end(), elements.vars.begin(), elements.vars.end());
      needed.push_back(part);
    }
    if (needed.empty()) {  // only the number of survivors matters
      vars = newVars({ScalarType::Bool}, "");
      needed.push_back(flags);
    }
    core::Atom all = needed.front();
    if (needed.size() > 1) {  // one pack, so that the survivors of all sources have one length
      Row row;
      for (const core::Var& var : vars) row.push_back(var.type);
      all = emitOne(core::Prim{core::PrimOp::Zip, needed}, CoreType::sequence(row), block, each.filter->span);
    }
    core::Atom packed = emitOne(core::Prim{core::PrimOp::Pack, {flags, all}}, all.type, block, exp.span);
    made.bindings.push_back({std::move(vars), packed});
  } else {
    for (size_t i = 0; i < sources.size(); ++i)
      made.bindings.push_back(bindElements(i, 0, width(i), sources[i]));
  }

  Block inner;
  Atoms result;
  if (each.body) {
    result = eval(*each.body, inner);
  } else {
    for (const core::Var& var : made.bindings.front().vars) result.push_back(use(var));
  }
  invariants_ = outerInvariants;
  if (lengthsChecked && inner.lets.empty()) {
    if (auto view = asView(made, result, block, exp.span)) return {*view};
  }
  made.body = finish(std::move(inner), std::move(result), each.body ? each.body->span : exp.span);
  return emit(std::move(made), grounds_.row(ground(exp.type)), block, exp.span);
}

// The range of components of a pattern's value from the first used one to the last; empty when none is used.
std::pair<size_t, size_t> Specialiser::usedComponents(
    const typed::Pattern& pattern, const std::unordered_set<const typed::Variable*>& uses) {
  size_t first = SIZE_MAX, end = 0, position = 0;
  auto visit = [&](auto& self, const typed::Pattern& part) -> void {
    if (part.variable) {
      size_t size = grounds_.row(ground(part.type)).size();
      if (size > 0 && uses.contains(part.variable.get())) {
        first = std::min(first, position);
        end = position + size;
      }
      position += size;
    }
    for (const typed::PatternPtr& inner : part.parts) self(self, *inner);
  };
  visit(visit, pattern);
  return end == 0 ? std::pair<size_t, size_t>{0, 0} : std::pair<size_t, size_t>{first, end};
}

core::Atom Specialiser::project(const core::Atom& sequence, size_t first, size_t count, Block& block,
                                Span span) {
  const Row& row = sequence.type.elements();
  if (count == row.size()) return sequence;
  auto begin = row.begin() + static_cast<std::ptrdiff_t>(first);
  core::Prim projection{core::PrimOp::Project, {sequence}};
  projection.first = static_cast<uint32_t>(first);
  projection.count = static_cast<uint32_t>(count);
  CoreType type = CoreType::sequence(Row(begin, begin + static_cast<std::ptrdiff_t>(count)));
  return emitOne(std::move(projection), type, block, span);
}

// A body that only names neighbouring components of one binding computes nothing: the result is the sequence.
std::optional<core::Atom> Specialiser::asView(const core::Each& each, const Atoms& result, Block& block,
                                              Span span) {
  if (result.empty()) return std::nullopt;
  for (const core::Each::Binding& binding : each.bindings) {
    for (size_t first = 0; first + result.size() <= binding.vars.size(); ++first) {
      bool same = true;
      for (size_t i = 0; i < result.size() && same; ++i) {
        same = !result[i].isConstant() && result[i].var() == binding.vars[first + i].id;
      }
      if (same) return project(binding.sequence, first, result.size(), block, span);
    }
  }
  return std::nullopt;
}

}  // namespace kelpie
