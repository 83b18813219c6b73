#include "fusion/lcu_expr_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/literal.h"

namespace kelpie::lcu {
namespace {

std::optional<ScalarOp> infixOp(const std::string& text) {
  static const std::unordered_map<std::string, ScalarOp> kOps = {
      {"+", ScalarOp::Add},          {"-", ScalarOp::Sub},        {"*", ScalarOp::Mul},
      {"/", ScalarOp::Div},          {"%", ScalarOp::Rem},        {"and", ScalarOp::And},
      {"or", ScalarOp::Or},          {"==", ScalarOp::Equal},     {"!=", ScalarOp::NotEqual},
      {"<", ScalarOp::Less},         {"<=", ScalarOp::LessEqual}, {">", ScalarOp::Greater},
      {">=", ScalarOp::GreaterEqual}};
  const auto at = kOps.find(text);
  return at == kOps.end() ? std::nullopt : std::optional(at->second);
}

void requireSameTypes(const antlr4::ParserRuleContext* at, const std::vector<ExprRef>& a,
                      const std::vector<ExprRef>& b, const char* what) {
  if (a.size() != b.size()) fail(at, fmt::format("{}: {} and {} values", what, a.size(), b.size()));
  for (size_t k = 0; k < a.size(); ++k)
    if (a[k]->type != b[k]->type)
      fail(at, fmt::format("{}: {} and {}", what, toString(a[k]->type), toString(b[k]->type)));
}

}  // namespace

void fail(const antlr4::ParserRuleContext* at, const std::string& message) {
  auto* context = const_cast<antlr4::ParserRuleContext*>(at);  // the runtime's getters are not const
  const auto* start = context->getStart();
  const auto* stop = context->getStop();
  Diagnostic diagnostic{.id = "K0902", .span = {}, .message = message, .hint = "", .notes = {}};
  diagnostic.span.begin = static_cast<uint32_t>(start->getStartIndex());
  diagnostic.span.end = static_cast<uint32_t>((stop ? stop : start)->getStopIndex() + 1);
  throw ReadFailure{std::move(diagnostic)};
}

ScalarType scalarType(LcuParser::NameContext* name) {
  const auto type = scalarTypeFromString(name->getText());
  if (!type) fail(name, fmt::format("`{}` is not a scalar type", name->getText()));
  return *type;
}

std::string stringText(antlr4::tree::TerminalNode* token, const antlr4::ParserRuleContext* at) {
  auto bytes = unquotedText(token->getText());
  if (!bytes) fail(at, "bad escape in a string");
  return std::move(*bytes);
}

std::string wordText(LcuParser::WordContext* word) {
  return word->STRING() ? stringText(word->STRING(), word) : word->getText();
}

int64_t integer(antlr4::tree::TerminalNode* token, const antlr4::ParserRuleContext* at) {
  const auto value = literalFromText(token->getText());
  if (!value || value->type != ScalarType::Int64)
    fail(at, fmt::format("`{}` is out of range", token->getText()));
  return value->i;
}

Scalar literal(LcuParser::LiteralContext* literal) {
  const auto value = literalFromText(literal->getText());
  if (!value) fail(literal, fmt::format("`{}` is out of range", literal->getText()));
  return *value;
}

std::vector<Scalar> literals(LcuParser::LiteralsContext* literals) {
  std::vector<Scalar> values;
  for (auto* element : literals->literal()) values.push_back(literal(element));
  return values;
}

/// While it lives, names may be bound; afterwards they mean again what they meant.
class ExprReader::Frame {
 public:
  explicit Frame(ExprReader& reader) : reader_(reader), mark_(reader.hidden_.size()) {}
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() {
    auto& hidden = reader_.hidden_;
    for (; hidden.size() > mark_; hidden.pop_back()) {
      if (hidden.back().second)
        reader_.names_[hidden.back().first] = hidden.back().second;
      else
        reader_.names_.erase(hidden.back().first);
    }
  }

 private:
  ExprReader& reader_;
  size_t mark_;
};

// ---- variables
// ----------------------------------------------------------------------------------------------

void ExprReader::declare(LcuParser::BinderContext* binder, bool global) {
  VarInfo info;
  info.name = binder->name()->getText();
  if (globals_.contains(info.name) || locals_.contains(info.name))
    fail(binder, fmt::format("`{}` is bound twice", info.name));
  if (auto* array = dynamic_cast<LcuParser::ArrayTypeContext*>(binder->type())) {
    info.kind = VarKind::Array;
    info.type = scalarType(array->name());
  } else if (auto* cell = dynamic_cast<LcuParser::CellTypeContext*>(binder->type())) {
    info.kind = VarKind::Cell;
    info.type = scalarType(cell->name());
  } else {
    info.type = scalarType(dynamic_cast<LcuParser::HostTypeContext&>(*binder->type()).name());
  }
  const std::string name = info.name;
  const VarId id = program_.newVar(std::move(info));
  (global ? globals_ : locals_).emplace(name, id);
  binders_.emplace(binder, id);
}

void ExprReader::readExtent(LcuParser::BinderContext* binder) {
  auto* array = dynamic_cast<LcuParser::ArrayTypeContext*>(binder->type());
  if (array && array->value()) program_.vars[declared(binder)].extent = index(array->value());
}

VarId ExprReader::variable(LcuParser::NameContext* name) const {
  for (const auto* table : {&locals_, &globals_})
    if (const auto at = table->find(name->getText()); at != table->end()) return at->second;
  fail(name, fmt::format("unknown variable `{}`", name->getText()));
}

VarId ExprReader::array(LcuParser::NameContext* name) const {
  const VarId id = variable(name);
  if (program_.vars[id].kind != VarKind::Array)
    fail(name, fmt::format("`{}` is not an array", name->getText()));
  return id;
}

SiteId ExprReader::site(antlr4::tree::TerminalNode* token, const antlr4::ParserRuleContext* at) const {
  const auto number = literalFromText(token->getText().substr(1));
  if (!number || number->i >= static_cast<int64_t>(std::max<size_t>(program_.sites.size(), 1)))
    fail(at, fmt::format("unknown error site {}", token->getText()));
  return static_cast<SiteId>(number->i);
}

// ---- expressions
// --------------------------------------------------------------------------------------------

void ExprReader::bindName(LcuParser::NameContext* name, ExprRef value) {
  ExprRef& slot = names_[name->getText()];
  hidden_.emplace_back(name->getText(), slot);
  slot = value;
}

ExprRef ExprReader::value(LcuParser::ValueContext* value) {
  const Frame frame(*this);
  if (value->lets()) lets(value->lets());
  return expression(value->expression());
}

std::vector<ExprRef> ExprReader::values(LcuParser::ValuesContext* values) {
  const Frame frame(*this);
  if (values->lets()) lets(values->lets());
  return expressions(values->expression());
}

std::vector<ExprRef> ExprReader::thunk(LcuParser::ThunkContext* thunk,
                                       const std::vector<ScalarType>& params) {
  const Frame frame(*this);
  if (thunk->names()) {
    const auto names = thunk->names()->name();
    if (names.size() != params.size())
      fail(thunk, fmt::format("the thunk names {} parameters of {}", names.size(), params.size()));
    for (uint32_t k = 0; k < names.size(); ++k) bindName(names[k], arena_.param(k, params[k]));
  }
  return thunk->values() ? values(thunk->values()) : std::vector<ExprRef>();
}

void ExprReader::lets(LcuParser::LetsContext* lets) {
  for (auto* let : lets->let()) {
    std::vector<LcuParser::NameContext*> names;
    std::vector<ExprRef> bound;
    if (auto* single = dynamic_cast<LcuParser::LetValueContext*>(let)) {
      names = {single->name()};
      bound = {value(single->value())};
    } else if (auto* conditional = dynamic_cast<LcuParser::LetIfContext*>(let)) {
      names = conditional->name();
      ExprRef holds = condition(conditional->expression());
      auto thenValues = values(conditional->tuple(0)->values()),
           elseValues = values(conditional->tuple(1)->values());
      requireSameTypes(conditional, thenValues, elseValues, "branches of a conditional");
      bound = arena_.select(holds, std::move(thenValues), std::move(elseValues));
    } else if (auto* repeated = dynamic_cast<LcuParser::LetLoopContext*>(let)) {
      names = repeated->bound()->name();
      bound = loop(repeated->loop());
    } else if (auto* recursive = dynamic_cast<LcuParser::LetRecursionContext*>(let)) {
      names = recursive->bound()->name();
      bound = recursion(recursive->recursion());
    } else {
      auto& again = dynamic_cast<LcuParser::LetCallContext&>(*let);
      names = again.bound()->name();
      bound = call(&again);
    }
    if (names.size() != bound.size())
      fail(let, fmt::format("{} names for {} values", names.size(), bound.size()));
    for (size_t k = 0; k < names.size(); ++k) bindName(names[k], bound[k]);
  }
}

std::vector<ExprRef> ExprReader::loop(LcuParser::LoopContext* loop) {
  const Frame frame(*this);
  const uint32_t id = arena_.newLoop();
  std::vector<ExprRef> initial;
  const auto starts = loop->loopStart();
  for (auto* start : starts) initial.push_back(value(start->value()));
  for (uint32_t k = 0; k < starts.size(); ++k)
    bindName(starts[k]->name(), arena_.loopVar(id, k, initial[k]->type));
  if (loop->lets()) lets(loop->lets());
  auto steps = loop->expression();
  ExprRef holds = condition(steps[0]);
  steps.erase(steps.begin());
  const auto next = expressions(steps);
  requireSameTypes(loop, initial, next, "start and step of a loop");
  return arena_.loop(id, initial, holds, next);
}

std::vector<ExprRef> ExprReader::recursion(LcuParser::RecursionContext* recursion) {
  const Frame frame(*this);
  Recursion& known = recursions_[recursion->name()->getText()];
  known = {arena_.newLoop(), {}, {}};
  const uint32_t id = known.id;
  std::vector<ExprRef> arguments;
  const auto starts = recursion->loopStart();
  for (auto* start : starts) {
    arguments.push_back(value(start->value()));
    known.arguments.push_back(arguments.back()->type);
  }
  for (uint32_t k = 0; k < starts.size(); ++k)
    bindName(starts[k]->name(), arena_.loopVar(id, k, arguments[k]->type));
  for (auto* type : recursion->names()->name()) known.results.push_back(scalarType(type));
  const std::vector<ScalarType> types = known.results;
  const auto results = values(recursion->values());
  bool fits = results.size() == types.size();
  for (size_t k = 0; k < results.size() && fits; ++k) fits = results[k]->type == types[k];
  if (!fits) fail(recursion, "the results of a recursion are not of its types");
  return arena_.recursion(id, site(recursion->SITE(), recursion), std::move(arguments), results);
}

std::vector<ExprRef> ExprReader::call(LcuParser::LetCallContext* call) {
  const auto known = recursions_.find(call->name()->getText());
  if (known == recursions_.end()) fail(call, fmt::format("unknown recursion `{}`", call->name()->getText()));
  const Recursion recursion = known->second;
  std::vector<ExprRef> arguments;
  for (auto* argument : call->value()) arguments.push_back(value(argument));
  bool fits = arguments.size() == recursion.arguments.size();
  for (size_t k = 0; k < arguments.size() && fits; ++k) fits = arguments[k]->type == recursion.arguments[k];
  if (!fits) fail(call, "a call with arguments of other types than the recursion has");
  return arena_.call(recursion.id, std::move(arguments), recursion.results);
}

std::vector<ExprRef> ExprReader::expressions(const std::vector<LcuParser::ExpressionContext*>& es) {
  std::vector<ExprRef> result;
  result.reserve(es.size());
  for (auto* e : es) result.push_back(expression(e));
  return result;
}

ExprRef ExprReader::condition(LcuParser::ExpressionContext* e) {
  ExprRef holds = expression(e);
  if (holds->type != ScalarType::Bool) fail(e, fmt::format("a condition of type {}", toString(holds->type)));
  return holds;
}

ExprRef ExprReader::index(LcuParser::ValueContext* v) {
  ExprRef e = value(v);
  if (e->type != kIndex) fail(v, fmt::format("{} where int64 is due", toString(e->type)));
  return e;
}

ExprRef ExprReader::expression(LcuParser::ExpressionContext* e) {
  if (auto* constant = dynamic_cast<LcuParser::ConstantExpressionContext*>(e))
    return arena_.constant(literal(constant->literal()));
  if (auto* inner = dynamic_cast<LcuParser::ParenthesesContext*>(e)) return value(inner->value());
  if (auto* variable = dynamic_cast<LcuParser::VariableContext*>(e)) return variableValue(variable);
  if (auto* load = dynamic_cast<LcuParser::LoadContext*>(e)) {
    const VarId from = array(load->name());
    return arena_.load(from, program_.vars[from].type, index(load->value()));
  }
  if (auto* size = dynamic_cast<LcuParser::SizeContext*>(e)) return arena_.size(array(size->name()));
  if (auto* apply = dynamic_cast<LcuParser::ApplicationContext*>(e)) return application(apply);
  if (auto* checked = dynamic_cast<LcuParser::CheckContext*>(e)) return check(checked);
  if (auto* infix = dynamic_cast<LcuParser::InfixContext*>(e))
    return operation(infix, *infixOp(infix->op->getText()), expressions(infix->expression()));
  auto& conditional = dynamic_cast<LcuParser::ConditionalContext&>(*e);
  ExprRef holds = condition(conditional.expression());
  ExprRef thenValue = value(conditional.value(0)), elseValue = value(conditional.value(1));
  requireSameTypes(e, {thenValue}, {elseValue}, "branches of a conditional");
  return arena_.select(holds, thenValue, elseValue);
}

ExprRef ExprReader::variableValue(LcuParser::VariableContext* v) {
  if (const auto bound = names_.find(v->getText()); bound != names_.end()) return bound->second;
  const VarId id = variable(v->name());
  if (program_.vars[id].kind == VarKind::Array)
    fail(v, fmt::format("`{0}` is an array: use an element {0}[...] or its size #{0}", v->getText()));
  return arena_.host(id, program_.vars[id].type);
}

ExprRef ExprReader::operation(const antlr4::ParserRuleContext* at, ScalarOp op,
                              const std::vector<ExprRef>& operands) {
  if (operands.size() != static_cast<size_t>(arity(op)))
    fail(at, fmt::format("`{}` takes {} operands", toString(op), arity(op)));
  for (ExprRef operand : operands) {
    if (!accepts(op, operand->type))
      fail(at, fmt::format("`{}` on {}", toString(op), toString(operand->type)));
    if (operand->type != operands[0]->type)
      fail(at, fmt::format("`{}` on {} and {}", toString(op), toString(operands[0]->type),
                           toString(operand->type)));
  }
  return arena_.op(op, operands[0], operands.size() == 2 ? operands[1] : nullptr);
}

ExprRef ExprReader::application(LcuParser::ApplicationContext* apply) {
  const std::string name = apply->name()->getText();
  const auto arguments = apply->value();
  std::vector<ExprRef> operands;
  operands.reserve(arguments.size());
  for (auto* operand : arguments) operands.push_back(value(operand));
  if (const auto op = scalarOpFromString(name)) return operation(apply, *op, operands);
  const auto type = scalarTypeFromString(name);
  if (!type) fail(apply->name(), fmt::format("unknown operation `{}`", name));
  if (operands.size() != 1) fail(apply, "a conversion takes one operand");
  return arena_.convert(operands[0], *type);
}

ExprRef ExprReader::check(LcuParser::CheckContext* c) {
  ExprRef holds = value(c->value(0));
  if (holds->type != ScalarType::Bool)
    fail(c->value(0), fmt::format("a condition of type {}", toString(holds->type)));
  ExprRef checked = value(c->value(1));
  const Scalar fallback = literal(c->literal());
  if (fallback.type != checked->type) fail(c->literal(), "the fallback differs in type from the value");
  const SiteId errorSite = site(c->SITE(), c);
  ExprRef first = index(c->value(2));
  return arena_.check(holds, checked, fallback, errorSite, first, index(c->value(3)));
}

}  // namespace kelpie::lcu
