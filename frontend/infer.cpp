#include "frontend/infer.h"

#include <fmt/format.h>

#include <utility>

#include "frontend/ast_names.h"
#include "frontend/overloaded.h"
#include "frontend/type_expression.h"
#include "ir/literal.h"

namespace kelpie {

namespace {

using typed::ExpPtr;

/// The components of a right-nested pair.
std::vector<const ast::Exp*> spine(const ast::Exp& argument) {
  std::vector<const ast::Exp*> components;
  const ast::Exp* rest = &argument;
  while (auto* pair = std::get_if<ast::Pair>(&rest->node)) {
    components.push_back(pair->first.get());
    rest = pair->second.get();
  }
  components.push_back(rest);
  return components;
}

/// The function that an operator calls (the table is in builtins.def).
std::string operatorFunction(const std::string& op, bool unary) {
  if (unary) return op == "#" ? "length" : op == "@" ? "string" : "negate";
  if (op == "->") return "read";
  if (op == "<-") return "write";
  if (op == "++") return "append";
  if (op == "||") return "prim_pad";
  return op;
}

/// Of a value that a pattern does not match.
const char* adviceOnValue(const Type* type) {
  return resolve(type)->kind == TypeKind::Sequence
             ? "a sequence is not taken apart by a pattern: its elements are v[0], v[1], ..."
             : "";
}

/// Of elements of different types: of a text and a number.
const char* adviceOnElements(const Type* first, const Type* other) {
  const auto isText = [](const Type* type) {
    return type->kind == TypeKind::Sequence && resolve(type->arguments[0])->kind == TypeKind::Scalar &&
           resolve(type->arguments[0])->scalar == ScalarType::Char;
  };
  const auto isNumber = [](const Type* type) {
    return type->kind == TypeKind::Scalar && type->scalar != ScalarType::Char;
  };
  first = resolve(first);
  other = resolve(other);
  return (isText(first) && isNumber(other)) || (isNumber(first) && isText(other))
             ? "@x is the text of a value x"
             : "";
}

/// Whether this is a pair of a sequence and a condition: what `x in v, x > 1` binds x to.
bool endsWithCondition(const typed::Exp& source) {
  const Type* type = resolve(source.type);
  if (type->kind != TypeKind::Pair || resolve(type->arguments[0])->kind != TypeKind::Sequence) return false;
  const Type* condition = resolve(type->arguments[1]);
  return condition->kind == TypeKind::Scalar && condition->scalar == ScalarType::Bool;
}

}  // namespace

Inference::Scope::~Scope() {
  while (inference_.bound_.size() > size_) {
    inference_.scope_[inference_.bound_.back()].pop_back();
    inference_.bound_.pop_back();
  }
}

// ---- patterns ---------------------------------------------------------------------------------------------

typed::PatternPtr Inference::pattern(const ast::Pattern& pattern,
                                     std::vector<typed::VariablePtr>& variables) {
  return std::visit(
      Overloaded{
          [&](const ast::NamePattern& name) -> typed::PatternPtr {
            for (const typed::VariablePtr& other : variables) {
              if (other->name != name.name) continue;
              report("K0202", pattern.span, "`" + name.name + "` occurs twice in one pattern",
                     name.name == "_"
                         ? "`_` is a name like others; one for all that is left is enough: (a, _)"
                         : "",
                     {{other->span, "it is bound here already"}});
              break;
            }
            Type* type = types_.variable();
            auto variable = std::make_shared<typed::Variable>(typed::Variable{name.name, type, pattern.span});
            variables.push_back(variable);
            return std::make_unique<typed::Pattern>(typed::Pattern{std::move(variable), {}, type});
          },
          [&](const ast::PairPattern& pair) -> typed::PatternPtr {
            typed::Pattern result{nullptr, {}, nullptr};
            result.parts.push_back(this->pattern(*pair.first, variables));
            result.parts.push_back(this->pattern(*pair.second, variables));
            result.type = types_.pair(result.parts[0]->type, result.parts[1]->type);
            return std::make_unique<typed::Pattern>(std::move(result));
          },
          [&](const ast::RecordPattern& record) -> typed::PatternPtr {
            typed::Pattern result{nullptr, {}, nullptr};
            result.parts.push_back(this->pattern(*record.field, variables));
            const Datatype* datatype = environment_.lookupDatatype(record.name, fromLibrary_);
            if (const auto failed = environment_.failedDefinition(record.name); !datatype && failed) {
              reportUnknown(record.name, pattern.span);
              result.type = types_.variable();
              return std::make_unique<typed::Pattern>(std::move(result));
            }
            if (!datatype) {
              reportNoRecord(record, pattern.span);
              result.type = types_.variable();
              return std::make_unique<typed::Pattern>(std::move(result));
            }
            std::unordered_map<const Type*, Type*> replacement;
            std::vector<Type*> arguments;
            for (Type* parameter : datatype->parameters) {
              arguments.push_back(types_.variable(resolve(parameter)->typeClass,
                                                  "the record type `" + record.name + "`", pattern.span));
              replacement[resolve(parameter)] = arguments.back();
            }
            Type* field = types_.replace(datatype->field, replacement);
            result.type = types_.record(datatype, std::move(arguments));
            if (auto conflict = types_.unify(result.parts[0]->type, field)) {
              reportConflict(
                  "K0307", pattern.span,
                  "the pattern does not match the field of `" + record.name + "`, which is " + show(field),
                  *conflict, {{datatype->span, "`" + record.name + "` is defined here"}});
            }
            return std::make_unique<typed::Pattern>(std::move(result));
          },
      },
      pattern.node);
}

void Inference::bind(const std::vector<typed::VariablePtr>& variables) {
  for (const typed::VariablePtr& variable : variables) {
    scope_[variable->name].push_back({variable, lambdas_.size()});
    bound_.push_back(variable->name);
  }
}

// ---- expressions ------------------------------------------------------------------------------------------

ExpPtr Inference::make(decltype(typed::Exp::node) node, Type* type, Span span, bool closed) {
  return std::make_unique<typed::Exp>(typed::Exp{std::move(node), type, span, closed});
}

ExpPtr Inference::infer(const ast::Exp& expression) {
  Span span = expression.span;
  return std::visit(
      Overloaded{
          [&](const ast::IntLiteral& literal) { return inferInt(literal, span); },
          [&](const ast::FloatLiteral& literal) {
            return make(typed::Literal{readFloat(types_.widths().floatType, literal.text.c_str())},
                        types_.floatType(), span, true);
          },
          [&](const ast::BoolLiteral& literal) {
            const std::string name = literal.value ? "t" : "f";
            // Somebody tried to bind it.
            if (!fromLibrary_ && environment_.failedHere(name)) return inferName({name}, span);
            return make(typed::Literal{Scalar::ofBool(literal.value)}, types_.boolType(), span, true);
          },
          [&](const ast::CharLiteral& literal) {
            return make(typed::Literal{Scalar::ofChar(literal.value)}, types_.charType(), span, true);
          },
          [&](const ast::StringLiteral& literal) {
            return make(typed::String{literal.bytes}, types_.stringType(), span, true);
          },
          [&](const ast::Name& name) { return inferName(name, span); },
          [&](const ast::Pair& pair) {
            ExpPtr first = inferBeside(*pair.first, *pair.second);
            return this->pair(std::move(first), infer(*pair.second), span);
          },
          [&](const ast::Unary& unary) { return inferUnary(unary, span); },
          [&](const ast::Binary& binary) { return inferBinary(binary, span); },
          [&](const ast::Apply& apply) { return inferApply(apply, span); },
          [&](const ast::Subscript& subscript) {
            std::vector<ExpPtr> arguments;
            arguments.push_back(infer(*subscript.sequence));
            arguments.push_back(infer(*subscript.index));
            return callNamed("elt", std::move(arguments), span, span, "the subscript");
          },
          [&](const ast::SequenceLiteral& sequence) { return inferSequence(sequence, span); },
          [&](const ast::EmptySequence& empty) {
            TypeReader reader(environment_, fromLibrary_, diagnostics_);
            reader.inExpression();
            Type* element = reader.read(*empty.element);
            return element ? make(typed::Sequence{}, types_.sequence(element), span, true) : failed(span);
          },
          [&](const ast::Range& range) {
            std::vector<ExpPtr> arguments;
            arguments.push_back(infer(*range.start));
            arguments.push_back(infer(*range.end));
            arguments.push_back(range.stride ? infer(*range.stride)
                                             : make(typed::Literal{Scalar::ofInt(types_.widths().intType, 1)},
                                                    types_.intType(), span, true));
            return callNamed("prim_range", std::move(arguments), span, span, "the range");
          },
          [&](const ast::ApplyToEach& each) { return inferEach(each, span); },
          [&](const ast::If& branch) { return inferIf(branch, span); },
          [&](const ast::Let& let) { return inferLet(let, span); },
          [&](const ast::Lambda& lambda) { return inferLambda(lambda, span); },
          [&](const ast::NamedArgument& argument) {
            report("K0208", span,
                   "the named argument `" + argument.name + "` stands in no call of a named function");
            return failed(span);
          },
          [&](const ast::Time& time) {
            if (timed_) {
              report("K0407", span, "`time` stands inside of `time`",
                     "measure one at a time, or take the outer one away");
            }
            const bool around = std::exchange(timed_, true);
            ExpPtr body = infer(*time.body);
            timed_ = around;
            Type* type = types_.pair(body->type, types_.floatType());
            bool closed = body->closed;
            return make(typed::Time{std::move(body)}, type, span, closed);
          },
      },
      expression.node);
}

ExpPtr Inference::inferInt(const ast::IntLiteral& literal, Span span) {
  ScalarType intType = types_.widths().intType;
  uint64_t limit = intType == ScalarType::Int32 ? INT32_MAX : INT64_MAX;
  uint64_t value = 0;
  for (char digit : literal.digits) {
    uint64_t next = static_cast<uint64_t>(digit - '0');
    if (value > (limit - next) / 10) {
      report("K0311", span, "the number does not fit int, whose largest value is " + std::to_string(limit));
      return failed(span);
    }
    value = value * 10 + next;
  }
  return make(typed::Literal{Scalar::ofInt(intType, static_cast<int64_t>(value))}, types_.intType(), span,
              true);
}

ExpPtr Inference::inferName(const ast::Name& name, Span span) {
  if (auto found = scope_.find(name.name); found != scope_.end() && !found->second.empty()) {
    const Entry& entry = found->second.back();
    for (size_t i = entry.lambdas; i < lambdas_.size(); ++i) {
      if (lambdas_[i].captured.insert(entry.variable.get()).second) {
        lambdas_[i].lambda->captures.push_back(entry.variable);
      }
    }
    return make(typed::Local{entry.variable}, entry.variable->type, span, false);
  }
  if (self_ && self_->name == name.name) return make(typed::Global{self_}, self_->scheme.type, span, true);
  Cell* cell = environment_.lookup(name.name, fromLibrary_);
  if (!cell) {
    reportUnknown(name.name, span);
    return failed(span);
  }
  return global(*cell, span, "`" + name.name + "`");
}

ExpPtr Inference::global(const Cell& cell, Span span, const std::string& reason) {
  return make(typed::Global{&cell}, types_.instantiate(cell.scheme, reason, span, !cell.fromLibrary), span,
              true);
}

ExpPtr Inference::pair(ExpPtr first, ExpPtr second, Span span) {
  Type* type = types_.pair(first->type, second->type);
  bool closed = first->closed && second->closed;
  return make(typed::Pair{std::move(first), std::move(second)}, type, span, closed);
}

ExpPtr Inference::inferUnary(const ast::Unary& unary, Span span) {
  if (toldComment(unary, span)) return failed(span);
  // A negative literal is a literal: the least int has no positive counterpart.
  if (unary.op == "-") {
    if (auto* literal = std::get_if<ast::IntLiteral>(&unary.operand->node)) {
      bool least = types_.widths().intType == ScalarType::Int32 ? literal->digits == "2147483648"
                                                                : literal->digits == "9223372036854775808";
      if (least) {
        int64_t value = types_.widths().intType == ScalarType::Int32 ? INT32_MIN : INT64_MIN;
        return make(typed::Literal{Scalar::ofInt(types_.widths().intType, value)}, types_.intType(), span,
                    true);
      }
    }
  }
  std::vector<ExpPtr> arguments;
  arguments.push_back(infer(*unary.operand));
  if (unary.op == "-") {
    if (auto* literal = std::get_if<typed::Literal>(&arguments[0]->node);
        literal && accepts(ScalarOp::Negate, literal->value.type)) {
      return make(typed::Literal{evaluate(ScalarOp::Negate, literal->value)}, arguments[0]->type, span, true);
    }
  }
  return callNamed(operatorFunction(unary.op, true), std::move(arguments), span, unary.opSpan,
                   "`" + unary.op + "`");
}

ExpPtr Inference::inferBinary(const ast::Binary& binary, Span span) {
  if (toldArrow(binary)) return failed(span);
  std::vector<ExpPtr> arguments;
  arguments.push_back(infer(*binary.left));
  arguments.push_back(infer(*binary.right));
  return callNamed(operatorFunction(binary.op, false), std::move(arguments), span, binary.opSpan,
                   "`" + binary.op + "`");
}

ExpPtr Inference::callNamed(const std::string& function, std::vector<ExpPtr> arguments, Span span,
                            Span nameSpan, const std::string& reason) {
  ExpPtr argument = std::move(arguments.back());
  for (size_t i = arguments.size() - 1; i-- > 0;) {
    Span both = arguments[i]->span;
    if (both.file == argument->span.file) both.end = std::max(both.end, argument->span.end);
    argument = pair(std::move(arguments[i]), std::move(argument), both);
  }
  return call(global(environment_.libraryFunction(function), nameSpan, reason), std::move(argument), span,
              reason);
}

namespace {

/// What to write for a word between two numbers, which looks like a call; empty: there is none.
std::string operatorNamed(const ast::Exp& argument) {
  const auto* call = std::get_if<ast::Apply>(&argument.node);
  const auto* name = std::get_if<ast::Name>(call ? &call->function->node : &argument.node);
  if (!name) return "";
  if (name->name == "div") return "the quotient of integers is a / b";
  for (const char* function : {"mod", "rem", "max", "min"})
    if (name->name == function) return fmt::format("`{0}` is a function: {0}(a, b)", function);
  return "";
}

}  // namespace

ExpPtr Inference::inferApply(const ast::Apply& apply, Span span) {
  callOverLineEnd_ |= apply.overLineEnd;
  ExpPtr function = infer(*apply.function);
  const TypeKind kind = resolve(function->type)->kind;
  if (kind != TypeKind::Function && kind != TypeKind::Variable) {
    if (apply.overLineEnd) {  // what is on the next line belongs to another form
      reportNoFunction(
          *function, "this is not a function: it has type " + show(function->type),
          "what follows a value is its argument, also on the next line: behind a form goes a `;`");
      return failed(span);
    }
    if (std::string hint = operatorNamed(*apply.argument); !hint.empty()) {
      reportNoFunction(*function, "this is not a function: it has type " + show(function->type),
                       std::move(hint));
      return failed(span);
    }
  }
  if (auto* global = std::get_if<typed::Global>(&function->node)) {
    const Cell& cell = *global->cell;
    checkEffects(cell, span);
    if (!cell.defaults.empty()) {
      ExpPtr argument = argumentWithDefaults(cell, *apply.argument, span);
      return argument ? call(std::move(function), std::move(argument), span) : failed(span);
    }
  }
  for (const ast::Exp* component : spine(*apply.argument)) {
    if (auto* named = std::get_if<ast::NamedArgument>(&component->node)) {
      if (hasFailed(*function)) return failed(span);
      report("K0208", component->span,
             "the called function has no parameter `" + named->name + "` with a default value");
      return failed(span);
    }
  }
  return call(std::move(function), infer(*apply.argument), span);
}

ExpPtr Inference::call(ExpPtr function, ExpPtr argument, Span span, const std::string& what) {
  Type* type = resolve(function->type);
  if (type->kind == TypeKind::Variable) {
    Type* made = types_.function(argument->type, types_.variable(), types_.variable());
    if (types_.unify(type, made)) {
      reportNoFunction(*function, "this is called like a function, but its type is " + show(type));
      return failed(span);
    }
    type = made;
  }
  if (type->kind != TypeKind::Function) {
    reportNoFunction(*function, "this is not a function: it has type " + show(type),
                     adviceOnCalled(*function, *argument, span));
    return failed(span);
  }
  if (auto conflict = types_.unify(argument->type, type->arguments[0])) {
    reportArgument(*function, *argument, span, what, *conflict);
    return failed(span);
  }
  bool closed = function->closed && argument->closed;
  return make(typed::Call{std::move(function), std::move(argument)}, type->arguments[1], span, closed);
}

// Arguments by position fill the components in order; named ones go to their places; the rest takes its
// defaults.
ExpPtr Inference::argumentWithDefaults(const Cell& cell, const ast::Exp& argument, Span span) {
  std::vector<ExpPtr> components(cell.components);
  size_t next = 0;
  bool good = true;
  std::vector<const ast::Exp*> given = spine(argument);
  const bool named = std::any_of(given.begin(), given.end(), [](const ast::Exp* component) {
    return std::holds_alternative<ast::NamedArgument>(component->node);
  });
  if (!named && given.size() >= cell.components) return infer(argument);
  for (const ast::Exp* component : given) {
    size_t position = next;
    const ast::Exp* value = component;
    if (auto* argument = std::get_if<ast::NamedArgument>(&component->node)) {
      value = argument->value.get();
      position = cell.components;
      for (const DefaultValue& candidate : cell.defaults) {
        if (candidate.name == argument->name) position = candidate.position;
      }
      if (position == cell.components) {
        report("K0208", component->span,
               "`" + cell.name + "` has no parameter `" + argument->name + "` with a default value", {},
               {{cell.span, "`" + cell.name + "` is defined here"}});
        good = false;
        continue;
      }
    } else {
      ++next;
    }
    if (position >= components.size() || components[position]) {
      report("K0209", component->span, "this argument is given twice or is one too many");
      good = false;
      continue;
    }
    components[position] = infer(*value);
  }
  for (const DefaultValue& value : cell.defaults) {
    if (components[value.position]) continue;
    ExpPtr zero =
        make(typed::Literal{Scalar::ofInt(types_.widths().intType, 0)}, types_.intType(), span, true);
    components[value.position] = call(global(*value.function, span, {}), std::move(zero), span);
  }
  for (size_t i = 0; i < components.size() && good; ++i) {
    if (components[i]) continue;
    report("K0210", span, "argument " + std::to_string(i + 1) + " of `" + cell.name + "` is missing", {},
           {{cell.span, "`" + cell.name + "` is defined here"}});
    good = false;
  }
  if (!good) return nullptr;
  ExpPtr result = std::move(components.back());
  for (size_t i = components.size() - 1; i-- > 0;)
    result = pair(std::move(components[i]), std::move(result), argument.span);
  return result;
}

void Inference::checkEffects(const Cell& cell, Span span) {
  if (!cell.serial) return;
  serial_ = true;
  if (parallelDepth_ == 0) return;
  std::vector<Diagnostic::Note> notes;
  if (!cell.fromLibrary && cell.span.known())
    notes.push_back({cell.span, "`" + cell.name + "` calls a function with an effect"});
  report("K0401", span, "`" + cell.name + "` cannot be called inside an apply-to-each",
         "its effect needs one caller at a time; {* ... } evaluates its body for one element after another",
         std::move(notes));
}

ExpPtr Inference::inferSequence(const ast::SequenceLiteral& sequence, Span span) {
  typed::Sequence result;
  result.elements.reserve(sequence.elements.size());
  bool closed = true, good = true;
  Type* element = nullptr;
  for (const ast::ExpPtr& part : sequence.elements) {
    result.elements.push_back(infer(*part));
    typed::Exp& added = *result.elements.back();
    closed &= added.closed;
    if (!element) {
      element = added.type;
    } else if (auto conflict = good ? types_.unify(added.type, element) : std::nullopt) {
      good = false;
      const typed::Exp& first = *result.elements.front();
      reportConflict("K0308", added.span,
                     "the elements of a sequence have one type: this has type " + show(added.type) +
                         ", the first " + show(element),
                     *conflict, {{first.span, "this is the first element"}},
                     adviceOnElements(element, added.type));
    }
  }
  return make(std::move(result), types_.sequence(good ? element : types_.variable()), span, closed);
}

ExpPtr Inference::inferEach(const ast::ApplyToEach& each, Span span) {
  typed::ApplyToEach result{nullptr, {}, nullptr, each.serial};
  std::vector<ExpPtr> sources;
  std::vector<BoundName> names;
  for (const ast::EachBinding& binding : each.bindings)
    for (BoundName& name : boundNames(*binding.pattern)) names.push_back(std::move(name));
  for (const ast::EachBinding& binding : each.bindings)
    sources.push_back(inferSource(*binding.source, names));

  Scope scope(*this);
  std::vector<typed::VariablePtr> variables;
  for (size_t i = 0; i < each.bindings.size(); ++i) {
    typed::PatternPtr made = pattern(*each.bindings[i].pattern, variables);
    typed::Exp& source = *sources[i];
    if (auto conflict = types_.unify(source.type, types_.sequence(made->type))) {
      if (resolve(source.type)->kind != TypeKind::Sequence) {
        report("K0306", source.span,
               "an apply-to-each runs over a sequence, but this has type " + show(source.type),
               endsWithCondition(source)
                   ? "a filter stands behind a bar: {ELEMENT : X in SEQUENCE | CONDITION}"
               : resolve(source.type)->kind == TypeKind::Scalar ? "[0:n] are the integers from 0 up to n - 1"
                                                                : "");
      } else {
        reportConflict("K0307", each.bindings[i].pattern->span,
                       "the pattern does not match the elements, which have type " +
                           show(resolve(source.type)->arguments[0]),
                       *conflict, {{source.span, "the elements come from here"}});
      }
    }
    result.bindings.push_back({std::move(made), std::move(sources[i])});
  }
  bind(variables);
  if (!each.serial) ++parallelDepth_;
  Type* element = result.bindings.front().pattern->type;
  if (each.body) {
    result.body = infer(*each.body);
    element = result.body->type;
  }
  if (each.filter) {
    result.filter = infer(*each.filter);
    if (auto conflict = types_.unify(result.filter->type, types_.boolType())) {
      reportConflict(
          "K0313", result.filter->span,
          "the filter of an apply-to-each is a bool, but this has type " + show(result.filter->type),
          *conflict, {}, adviceOnCondition(*each.filter));
    }
  }
  if (!each.serial) --parallelDepth_;
  return make(std::move(result), types_.sequence(element), span, false);
}

ExpPtr Inference::inferIf(const ast::If& branch, Span span) {
  ExpPtr condition = infer(*branch.condition);
  if (auto conflict = types_.unify(condition->type, types_.boolType())) {
    reportConflict("K0304", condition->span,
                   "a condition is a bool, but this has type " + show(condition->type), *conflict, {},
                   adviceOnCondition(*branch.condition));
  }
  ExpPtr thenBranch = infer(*branch.thenBranch);
  ExpPtr elseBranch = infer(*branch.elseBranch);
  if (auto conflict = types_.unify(elseBranch->type, thenBranch->type)) {
    bool tuple = std::holds_alternative<ast::Pair>(branch.elseBranch->node);
    if (conflict->kind == Conflict::Identity)
      std::swap(conflict->left, conflict->right);  // as they are written
    reportConflict("K0303", span,
                   "the branches of an `if` have one type: the first has type " + show(thenBranch->type) +
                       ", the second " + show(elseBranch->type),
                   *conflict,
                   {{thenBranch->span, "this has type " + show(thenBranch->type)},
                    {elseBranch->span, "this has type " + show(elseBranch->type)}},
                   tuple ? "`else` reaches over commas: an `if` in a list needs parentheses" : "");
    return failed(span);
  }
  Type* type = thenBranch->type;
  bool closed = condition->closed && thenBranch->closed && elseBranch->closed;
  return make(typed::If{std::move(condition), std::move(thenBranch), std::move(elseBranch)}, type, span,
              closed);
}

ExpPtr Inference::inferLet(const ast::Let& let, Span span) {
  Scope scope(*this);
  typed::Let result;
  result.bindings.reserve(let.bindings.size());
  for (const ast::LetBinding& binding : let.bindings) {
    const bool told = toldForgottenFunction(*binding.pattern, *binding.value, true);
    ExpPtr value = told ? failed(binding.value->span) : infer(*binding.value);
    std::vector<typed::VariablePtr> variables;
    typed::PatternPtr made = pattern(*binding.pattern, variables);
    if (auto conflict = types_.unify(value->type, made->type)) {
      reportConflict("K0307", binding.pattern->span,
                     "the pattern does not match the value, which has type " + show(value->type), *conflict,
                     {{value->span, "this has type " + show(value->type)}}, adviceOnValue(value->type));
    }
    bind(variables);
    result.bindings.push_back({std::move(made), std::move(value)});
  }
  result.body = infer(*let.body);
  Type* type = result.body->type;
  return make(std::move(result), type, span, false);
}

ExpPtr Inference::inferLambda(const ast::Lambda& lambda, Span span) {
  ExpPtr result = make(typed::Lambda{}, nullptr, span, false);
  auto& made = std::get<typed::Lambda>(result->node);
  made.fromLibrary = fromLibrary_;
  lambdas_.push_back({&made, {}});
  Type* resultType;
  {
    Scope scope(*this);
    std::vector<typed::VariablePtr> variables;
    made.parameter = pattern(*lambda.parameter, variables);
    bind(variables);
    made.body = infer(*lambda.body);
    resultType = made.body->type;
  }
  lambdas_.pop_back();
  std::vector<Type*> captures;
  for (const typed::VariablePtr& variable : made.captures) captures.push_back(variable->type);
  result->type = types_.function(made.parameter->type, resultType, types_.lambda(&made, std::move(captures)));
  return result;
}

}  // namespace kelpie
