#include "frontend/ast_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontend/pattern_advice.h"
#include "frontend/text.h"

namespace kelpie {

using namespace ast;  // NOLINT(google-build-using-namespace): this file is about nothing else
using Parser = nesl_grammar::NeslParser;

namespace {

template <typename Node>
ExpPtr make(Node node, Span span) {
  return std::make_shared<const Exp>(Exp{std::move(node), span});
}
template <typename Node>
PatternPtr makePattern(Node node, Span span) {
  return std::make_shared<const Pattern>(Pattern{std::move(node), span});
}
template <typename Node>
TypeExpPtr makeType(Node node, Span span) {
  return std::make_shared<const TypeExp>(TypeExp{std::move(node), span});
}

Span join(Span a, Span b) { return {a.file, a.begin, b.end}; }

template <typename T>
std::shared_ptr<const T> foldPairs(const std::vector<std::shared_ptr<const T>>& parts, auto makePair) {
  std::shared_ptr<const T> result = parts.back();
  for (size_t i = parts.size() - 1; i-- > 0;) result = makePair(parts[i], result);
  return result;
}

}  // namespace

// ---- helpers --------------------------------------------------------------------------------------------

Span AstBuilder::span(antlr4::Token* token) const {
  return {file_, static_cast<uint32_t>(token->getStartIndex()),
          static_cast<uint32_t>(token->getStopIndex() + 1)};
}

Span AstBuilder::span(antlr4::ParserRuleContext* tree) const {
  return join(span(tree->start), span(tree->stop));
}

std::string AstBuilder::name(antlr4::Token* token) const {
  const Span where = span(token);
  return lowerCase(text_.substr(where.begin, where.end - where.begin));
}

std::string AstBuilder::stringValue(Span where) const {
  std::string bytes;
  bytes.reserve(where.end - where.begin);
  for (uint32_t i = where.begin + 1; i + 1 < where.end; ++i) {
    if (text_[i] == '\\') ++i;  // the next byte, whatever it is
    bytes += text_[i];
  }
  return bytes;
}

void AstBuilder::fail(const char* id, Span where, std::string message, std::string hint) {
  diagnostics_.push_back({Severity::Error, id, where, std::move(message), std::move(hint), {}});
}

void AstBuilder::failReserved(const std::string& name, bool bound, Span where, std::string message,
                              std::string hint) {
  fail("K0114", where, std::move(message), std::move(hint));
  reserved_.push_back({name, bound, where});
}

/// `formBegin`: how many diagnostics there were before this form.
void AstBuilder::tellReservedOnce(size_t formBegin) {
  std::stable_sort(reserved_.begin(), reserved_.end(),
                   [](const ReservedName& a, const ReservedName& b) { return a.bound > b.bound; });
  std::set<std::string> told;
  std::set<uint32_t> places;
  for (const ReservedName& reserved : reserved_)
    if (told.insert(reserved.name).second) places.insert(reserved.span.begin);
  reserved_.clear();
  // A pattern may have been read as an expression first: of one place the last message counts.
  for (size_t k = diagnostics_.size(); k-- > formBegin;)
    if (diagnostics_[k].id == "K0114" && places.erase(diagnostics_[k].span.begin) == 0)
      diagnostics_.erase(diagnostics_.begin() + static_cast<ptrdiff_t>(k));
}

// ---- forms ----------------------------------------------------------------------------------------------

Form AstBuilder::form(Parser::FormContext* tree) {
  const size_t before = diagnostics_.size();
  Form result = formOf(tree);
  tellReservedOnce(before);
  return result;
}

Form AstBuilder::formOf(Parser::FormContext* tree) {
  const Span where = span(&dynamic_cast<antlr4::ParserRuleContext&>(*tree->children[0]));  // without EOF
  if (auto* definition = tree->functionDefinition()) return {function(definition), where};
  if (auto* definition = tree->datatypeDefinition()) {
    DatatypeDefinition datatype;
    datatype.name = name(definition->NAME()->getSymbol());
    datatype.nameSpan = span(definition->NAME()->getSymbol());
    checkBindable(datatype.name, datatype.nameSpan);
    datatype.field = type(definition->type());
    if (definition->classContext()) datatype.context = context(definition->classContext());
    return {std::move(datatype), where};
  }
  if (auto* load = tree->loadCommand()) {
    // load(e, print := t): the parentheses are an argument list, as after a function.
    auto* words = load->expr();
    if (words->e().size() == 1)
      if (auto* operand = dynamic_cast<Parser::OperandContext*>(words->e(0)))
        if (operand->primary()->bracketed())
          if (auto* list = dynamic_cast<Parser::ParenthesesContext*>(operand->primary()->bracketed()))
            if (list->expr())
              return {Command{"load", {}, expression(list->expr(), Place::ArgumentList)}, where};
    return {Command{"load", {}, expression(words)}, where};
  }
  Form result = bindingOrExpression(tree->bindingOrExpression());
  result.span = where;
  return result;
}

Form AstBuilder::bindingOrExpression(Parser::BindingOrExpressionContext* tree) {
  const ExpPtr left = expression(tree->expr(0));
  if (!tree->op) return {left, {}};
  Binding binding;
  binding.pattern = patternOf(left);
  binding.value = expression(tree->expr(1));
  binding.toFile = tree->op->getType() == Parser::BAR_EQUAL;
  return {std::move(binding), {}};
}

FunctionDefinition AstBuilder::function(Parser::FunctionDefinitionContext* tree) {
  FunctionDefinition function;
  function.name = name(tree->NAME()->getSymbol());
  function.nameSpan = span(tree->NAME()->getSymbol());
  checkBindable(function.name, function.nameSpan);

  std::vector<TypeExpPtr> types;  // of the parameters, in Kelpie's style of signature
  parameters(tree->parameters(), function, types);
  if (tree->signature()) {
    const TypeExpPtr whole = type(tree->signature()->funType());
    Signature signature{whole, {}};
    if (tree->signature()->classContext()) signature.context = context(tree->signature()->classContext());
    if (!std::holds_alternative<FunctionType>(whole->node))
      fail("K0115", whole->span, "the signature of a function needs an outermost `->`",
           types.empty() ? "the signature is ARGUMENT -> RESULT, with (A, B) for several arguments"
                         : "behind parameters with types stands the result's: write g(x : A) -> B");
    else if (!types.empty())
      fail("K0118", whole->span, "the types of the parameters are given twice",
           "write g(x : A) -> B or g(x) : A -> B");
    function.signature = std::move(signature);
  } else if (!types.empty() || tree->funType()) {
    const size_t count = tree->parameters()->parameter().size();
    if (types.size() != count || types.empty())
      fail("K0118", span(tree->parameters()),
           types.empty() ? "a result type needs the types of the parameters"
                         : "either all parameters have a type or none has",
           "write g(x : A, y : B) -> C or g(x, y) : (A, B) -> C");
    else if (!tree->funType())
      fail("K0118", span(tree->parameters()), "parameters with types need a result type",
           "write g(x : A, y : B) -> C");
    else {
      const TypeExpPtr argument = foldPairs<TypeExp>(types, [](const auto& a, const auto& b) {
        return makeType(PairType{a, b}, join(a->span, b->span));
      });
      const TypeExpPtr result = type(tree->funType());
      Signature signature{makeType(FunctionType{argument, result}, join(argument->span, result->span)), {}};
      if (tree->classContext()) signature.context = context(tree->classContext());
      function.signature = std::move(signature);
    }
  }
  if (tree->STRING()) function.documentation = stringValue(span(tree->STRING()->getSymbol()));
  if (tree->expr())
    function.body = expression(tree->expr());
  else if (!function.signature)
    fail("K0101", {file_, span(tree).end, span(tree).end}, "expected `=` and the body of the function",
         "only a declaration with a signature goes without a body: function f(x) : A -> B");
  return function;
}

void AstBuilder::parameters(Parser::ParametersContext* tree, FunctionDefinition& function,
                            std::vector<TypeExpPtr>& types) {
  if (tree->NAME()) {
    function.parameter = namePattern(name(tree->NAME()->getSymbol()), span(tree->NAME()->getSymbol()));
    return;
  }
  std::vector<PatternPtr> patterns;
  for (auto* parameter : tree->parameter()) {
    patterns.push_back(pattern(parameter->primaryPattern()));
    if (parameter->funType()) types.push_back(type(parameter->funType()));
    if (!parameter->e()) continue;
    const auto* named = std::get_if<NamePattern>(&patterns.back()->node);
    if (!named)
      fail("K0113", patterns.back()->span, "only a single name can have a default value");
    else
      function.defaults.push_back({named->name, expression(parameter->e())});
  }
  function.parameter = foldPairs<Pattern>(patterns, [](const auto& a, const auto& b) {
    return makePattern(PairPattern{a, b}, join(a->span, b->span));
  });
}

// ---- patterns -------------------------------------------------------------------------------------------

void AstBuilder::checkBindable(const std::string& name, Span where) {
  const char* is = name == "t" || name == "f"         ? "a boolean constant"
                   : name == "time" || name == "pair" ? "reserved"
                                                      : nullptr;
  if (is)
    failReserved(name, true, where, fmt::format("`{}` is {} and cannot be bound", name, is),
                 "choose another name");
}

PatternPtr AstBuilder::namePattern(const std::string& name, Span where) {
  checkBindable(name, where);
  return makePattern(NamePattern{name}, where);
}

PatternPtr AstBuilder::pattern(Parser::PatternContext* tree) {
  std::vector<PatternPtr> parts;
  for (auto* part : tree->primaryPattern()) parts.push_back(pattern(part));
  return foldPairs<Pattern>(parts, [](const auto& a, const auto& b) {
    return makePattern(PairPattern{a, b}, join(a->span, b->span));
  });
}

PatternPtr AstBuilder::pattern(Parser::PrimaryPatternContext* tree) {
  const auto names = tree->NAME();
  if (names.empty()) return pattern(tree->pattern());
  antlr4::Token* head = names[0]->getSymbol();
  if (tree->pattern()) return makePattern(RecordPattern{name(head), pattern(tree->pattern())}, span(tree));
  if (names.size() == 1) return namePattern(name(head), span(tree));
  antlr4::Token* field = names[1]->getSymbol();
  return makePattern(RecordPattern{name(head), namePattern(name(field), span(field))}, span(tree));
}

PatternPtr AstBuilder::patternOf(const ExpPtr& exp) {
  if (const auto* name = std::get_if<Name>(&exp->node)) return namePattern(name->name, exp->span);
  if (const auto* constant = std::get_if<BoolLiteral>(&exp->node))
    return namePattern(constant->value ? "t" : "f", exp->span);
  if (const auto* pair = std::get_if<ast::Pair>(&exp->node))
    return makePattern(PairPattern{patternOf(pair->first), patternOf(pair->second)}, exp->span);
  if (const auto* apply = std::get_if<Apply>(&exp->node))
    if (const auto* record = std::get_if<Name>(&apply->function->node))
      return makePattern(RecordPattern{record->name, patternOf(apply->argument)}, exp->span);
  if (std::holds_alternative<Time>(exp->node)) {
    checkBindable("time", exp->span);
  } else {
    const Span place = exp->span;
    const size_t behind = text_.find_first_not_of(" \t\r\n", place.end);
    const bool isLambda = behind != std::string_view::npos && text_.substr(behind, 2) == "=>";
    fail("K0113", place, "this is not a pattern",
         adviceOnPattern(*exp, text_.substr(place.begin, place.end - place.begin),
                         place.begin > 0 ? text_[place.begin - 1] : ' ', isLambda));
  }
  return makePattern(NamePattern{"_"}, exp->span);
}

// ---- types ----------------------------------------------------------------------------------------------

TypeExpPtr AstBuilder::type(Parser::TypeContext* tree) {
  std::vector<TypeExpPtr> parts;
  for (auto* part : tree->funType()) parts.push_back(type(part));
  return foldPairs<TypeExp>(parts, [](const auto& a, const auto& b) {
    return makeType(PairType{a, b}, join(a->span, b->span));
  });
}

TypeExpPtr AstBuilder::type(Parser::FunTypeContext* tree) {
  TypeExpPtr left = type(tree->primaryType());
  if (!tree->funType()) return left;
  return makeType(FunctionType{left, type(tree->funType())}, span(tree));
}

TypeExpPtr AstBuilder::type(Parser::PrimaryTypeContext* tree) {
  if (auto* named = dynamic_cast<Parser::NamedTypeContext*>(tree)) {
    NameType result{name(named->NAME()->getSymbol()), {}};
    if (named->type())
      for (auto* argument : named->type()->funType()) result.arguments.push_back(type(argument));
    return makeType(std::move(result), span(tree));
  }
  if (auto* sequence = dynamic_cast<Parser::SequenceTypeContext*>(tree))
    return makeType(SequenceType{type(sequence->primaryType())}, span(tree));
  return type(dynamic_cast<Parser::BracketedTypeContext&>(*tree).type());
}

std::vector<ClassBinding> AstBuilder::context(Parser::ClassContextContext* tree) {
  std::vector<ClassBinding> bindings;
  for (auto* binding : tree->classBinding())
    bindings.push_back(
        {name(binding->NAME(0)->getSymbol()), name(binding->NAME(1)->getSymbol()), span(binding)});
  return bindings;
}

// ---- expressions ----------------------------------------------------------------------------------------

std::vector<ExpPtr> AstBuilder::elements(Parser::ElementsContext* tree) {
  std::vector<ExpPtr> result;
  for (auto* element : tree->e()) result.push_back(expression(element));
  return result;
}

ExpPtr AstBuilder::pairs(const std::vector<ExpPtr>& parts) {
  return foldPairs<Exp>(parts, [](const auto& a, const auto& b) {
    return make(ast::Pair{a, b}, join(a->span, b->span));
  });
}

ExpPtr AstBuilder::expression(Parser::ExprContext* tree, Place place) {
  std::vector<ExpPtr> parts;
  for (auto* part : tree->e()) parts.push_back(expression(part, place));
  return pairs(parts);
}

ExpPtr AstBuilder::expression(Parser::EContext* tree, Place place) {
  if (auto* operand = dynamic_cast<Parser::OperandContext*>(tree)) return primary(operand->primary());
  if (auto* application = dynamic_cast<Parser::CallContext*>(tree)) return call(application);
  if (auto* binary = dynamic_cast<Parser::BinaryContext*>(tree)) {
    const Span opSpan = span(binary->op);
    ExpPtr left = expression(binary->e(0));
    ExpPtr right = expression(binary->e(1));
    return make(Binary{name(binary->op), std::move(left), std::move(right), opSpan}, span(tree));
  }
  if (auto* prefix = dynamic_cast<Parser::PrefixContext*>(tree))
    return make(Unary{name(prefix->op), expression(prefix->e()), span(prefix->op)}, span(tree));
  if (auto* access = dynamic_cast<Parser::SubscriptContext*>(tree)) return subscript(access);
  if (auto* application = dynamic_cast<Parser::JuxtapositionContext*>(tree))
    return juxtaposition(application);
  if (auto* function = dynamic_cast<Parser::LambdaContext*>(tree)) return lambda(function);
  return namedArgument(&dynamic_cast<Parser::NamedArgumentContext&>(*tree), place);
}

ExpPtr AstBuilder::apply(ExpPtr function, ExpPtr argument, Span where) {
  const uint32_t end = function->span.end, begin = std::max(end, argument->span.begin);
  const bool overLineEnd = text_.substr(end, begin - end).find('\n') != std::string_view::npos;
  return make(Apply{std::move(function), std::move(argument), overLineEnd}, where);
}

namespace {

/// The NAME token when the tree is nothing else, for the special form `time`.
antlr4::Token* singleName(Parser::EContext* tree) {
  auto* operand = dynamic_cast<Parser::OperandContext*>(tree);
  if (!operand || !operand->primary()->atom() || !operand->primary()->atom()->NAME()) return nullptr;
  return operand->primary()->atom()->NAME()->getSymbol();
}

}  // namespace

ExpPtr AstBuilder::call(Parser::CallContext* tree) {
  antlr4::Token* function = singleName(tree->e());
  const bool isTime = function && name(function) == "time";
  ExpPtr callee = isTime ? nullptr : expression(tree->e());
  if (!tree->expr()) {
    fail("K0111", span(tree), "a function has at least one argument",
         fmt::format("a function is called with an argument: {}(X); what depends on nothing is a value, "
                     "bound by NAME = "
                     "VALUE",
                     function ? name(function) : "g"));
    return callee ? callee : make(BoolLiteral{false}, span(tree));
  }
  if (isTime) return make(Time{expression(tree->expr())}, span(tree));
  return apply(std::move(callee), expression(tree->expr(), Place::ArgumentList), span(tree));
}

ExpPtr AstBuilder::juxtaposition(Parser::JuxtapositionContext* tree) {
  antlr4::Token* function = singleName(tree->e());
  if (function && name(function) == "time") return make(Time{juxtaposed(tree->juxtaposed())}, span(tree));
  ExpPtr callee = expression(tree->e());
  ExpPtr argument = juxtaposed(tree->juxtaposed());
  // `sum [1, 2, ...]` with so many elements that the brackets became one token
  if (auto* atom = tree->juxtaposed()->atom())
    if (atom->LONG_SEQUENCE())
      fail("K0112", span(atom), "a subscript takes one index",
           fmt::format("to apply a function to a sequence put parentheses around it: {}([...])",
                       function ? name(function) : "f"));
  return apply(std::move(callee), std::move(argument), span(tree));
}

ExpPtr AstBuilder::juxtaposed(Parser::JuxtaposedContext* tree) {
  if (tree->op) {
    ExpPtr operand = tree->bracketed() ? bracketed(tree->bracketed()) : juxtaposed(tree->juxtaposed());
    return make(Unary{name(tree->op), std::move(operand), span(tree->op)}, span(tree));
  }
  if (tree->atom()) return atom(tree->atom());
  if (tree->applyToEach()) return applyToEach(tree->applyToEach());
  if (tree->conditional()) return conditional(tree->conditional());
  return localBindings(tree->localBindings());
}

ExpPtr AstBuilder::subscript(Parser::SubscriptContext* tree) {
  ExpPtr sequence = expression(tree->e());
  const auto indices = tree->expr();
  ExpPtr index = expression(indices[0]);
  if (indices.size() > 1) {
    fail("K0112", join(span(indices.front()), span(indices.back())),
         "a subscript takes one index, not a range",
         "a part of a sequence is subseq(a, start, end), or a -> [start:end]");
  } else if (indices[0]->e().size() > 1) {
    antlr4::Token* function = singleName(tree->e());
    fail("K0112", span(indices[0]), "a subscript takes one index",
         fmt::format(
             "to apply a function to a sequence put parentheses around it: {}([...]); for nested sequences "
             "write a[i][j]",
             function ? name(function) : "f"));
  }
  return make(Subscript{std::move(sequence), std::move(index)}, span(tree));
}

ExpPtr AstBuilder::lambda(Parser::LambdaContext* tree) {
  PatternPtr parameter = patternOf(expression(tree->e(0)));
  return make(Lambda{std::move(parameter), expression(tree->e(1))}, span(tree));
}

ExpPtr AstBuilder::namedArgument(Parser::NamedArgumentContext* tree, Place place) {
  ExpPtr value = expression(tree->e(1));
  antlr4::Token* left = singleName(tree->e(0));
  if (!left || place != Place::ArgumentList) {
    fail("K0117", span(tree),
         left ? "`:=` names an argument, in the argument list of a call only"
              : "an argument is named by a single name",
         left ? "a value is bound by NAME = VALUE, within an expression by let NAME = VALUE in ..." : "");
    return value;
  }
  checkBindable(name(left), span(left));
  return make(NamedArgument{name(left), std::move(value)}, span(tree));
}

ExpPtr AstBuilder::primary(Parser::PrimaryContext* tree) {
  if (tree->atom()) return atom(tree->atom());
  if (tree->bracketed()) return bracketed(tree->bracketed());
  if (tree->applyToEach()) return applyToEach(tree->applyToEach());
  if (tree->conditional()) return conditional(tree->conditional());
  return localBindings(tree->localBindings());
}

ExpPtr AstBuilder::leaf(uint32_t type, Span where) {
  const std::string_view spelling = text_.substr(where.begin, where.end - where.begin);
  switch (type) {
    case Parser::INT:
      return make(IntLiteral{std::string(spelling)}, where);
    case Parser::FLOAT:
      return make(FloatLiteral{std::string(spelling)}, where);
    case Parser::CHAR:
      return make(CharLiteral{static_cast<unsigned char>(spelling[1])}, where);
    case Parser::STRING:
      return make(StringLiteral{stringValue(where)}, where);
    default:
      break;
  }
  std::string name = lowerCase(spelling);
  if (name == "t" || name == "f") return make(BoolLiteral{name == "t"}, where);
  if (name == "time")
    failReserved(name, false, where, "`time` is not a value",
                 "time(e) evaluates e and tells how long it took");
  if (name == "pair") failReserved(name, false, where, "`pair` is reserved", "a pair is written (a, b)");
  return make(Name{std::move(name)}, where);
}

ExpPtr AstBuilder::atom(Parser::AtomContext* tree) {
  antlr4::Token* token = tree->start;
  if (token->getType() == Parser::LONG_SEQUENCE) return static_cast<ParserToken*>(token)->sequence;
  return leaf(static_cast<uint32_t>(token->getType()), span(token));
}

ExpPtr AstBuilder::bracketed(Parser::BracketedContext* tree) {
  if (auto* list = dynamic_cast<Parser::SequenceContext*>(tree)) return sequence(list);
  auto& parentheses = dynamic_cast<Parser::ParenthesesContext&>(*tree);
  if (parentheses.expr()) return expression(parentheses.expr());
  fail("K0111", span(tree), "an expression is missing in these parentheses",
       "NESL has no empty tuple; a function that needs no argument is given any value, such as 0");
  return make(BoolLiteral{false}, span(tree));
}

ExpPtr AstBuilder::sequence(Parser::SequenceContext* tree) {
  if (tree->primaryType()) return make(EmptySequence{type(tree->primaryType())}, span(tree));
  const auto first = tree->e();
  const auto bounds = tree->expr();
  if (!bounds.empty()) {
    ExpPtr start = expression(first[0]);
    ExpPtr end = expression(bounds[0]);
    ExpPtr stride = bounds.size() > 1 ? expression(bounds[1]) : nullptr;
    return make(Range{std::move(start), std::move(end), std::move(stride)}, span(tree));
  }
  SequenceLiteral literal;
  for (auto* element : first) literal.elements.push_back(expression(element));
  return make(std::move(literal), span(tree));
}

ExpPtr AstBuilder::applyToEach(Parser::ApplyToEachContext* tree) {
  // The first expression is the body if `:` follows it, else the pattern of the first binding.
  ApplyToEach result;
  result.serial = tree->STAR() != nullptr;
  const auto expressions = tree->expr();
  size_t next = 0;
  const ExpPtr first = expression(expressions[next++]);
  const auto noSource = [this](Span where) {
    fail("K0119", where, "a binding needs a sequence: PATTERN in SEQUENCE",
         "{BODY : x in xs}; a single name without `in` goes through the sequence of that name");
  };
  if (tree->COLON()) {
    result.body = first;
  } else {
    ExpPtr source = tree->IN() ? expression(expressions[next++]) : first;
    const bool bound = tree->IN() || std::holds_alternative<Name>(first->node);
    if (!bound) noSource(first->span);
    PatternPtr pattern = bound ? patternOf(first) : makePattern(NamePattern{"_"}, first->span);
    result.bindings.push_back({std::move(pattern), std::move(source)});
  }
  for (auto* binding : tree->eachBinding()) {
    PatternPtr variables = pattern(binding->pattern());
    ExpPtr source;
    if (binding->expr()) {
      source = expression(binding->expr());
    } else if (const auto* name = std::get_if<NamePattern>(&variables->node)) {
      source = make(Name{name->name}, variables->span);
    } else {
      noSource(variables->span);
      continue;
    }
    result.bindings.push_back({std::move(variables), std::move(source)});
  }
  if (tree->BAR()) result.filter = expression(expressions[next]);
  return make(std::move(result), span(tree));
}

ExpPtr AstBuilder::conditional(Parser::ConditionalContext* tree) {
  ExpPtr condition = expression(tree->expr(0));
  ExpPtr thenBranch = expression(tree->expr(1));
  return make(If{std::move(condition), std::move(thenBranch), expression(tree->expr(2))}, span(tree));
}

ExpPtr AstBuilder::localBindings(Parser::LocalBindingsContext* tree) {
  Let let;
  for (auto* binding : tree->letBinding()) {
    PatternPtr variables = pattern(binding->pattern());
    let.bindings.push_back({std::move(variables), expression(binding->expr())});
  }
  let.body = expression(tree->expr());
  return make(std::move(let), span(tree));
}

}  // namespace kelpie
