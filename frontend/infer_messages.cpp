// What inference says about mistakes: both types, where each came from, and names that may have been meant.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "frontend/foreign_words.h"
#include "frontend/infer.h"

namespace kelpie {

std::string Inference::show(const Type* type) const {
  constexpr size_t kLongest = 300;
  std::string text = printType(type, types_.widths());
  if (text.size() > kLongest) text.replace(kLongest, std::string::npos, "...");
  return "`" + text + "`";
}

void Inference::nameTogether(std::string& message, const Type* left, const Type* right) const {
  TypePrinter printer(types_.widths());
  for (const Type* type : {left, right}) {
    const std::string apart = show(type);
    const size_t place = message.find(apart);
    if (place == std::string::npos) continue;
    message.replace(place, apart.size(), "`" + printer.text(type) + "`");
  }
}

void Inference::report(std::string id, Span span, std::string message, std::string hint,
                       std::vector<Diagnostic::Note> notes) {
  if (hint.empty() && callOverLineEnd_)
    hint = "what follows a value is its argument, also on the next line: behind a form goes a `;`";
  diagnostics_.push_back({.id = std::move(id),
                          .span = span,
                          .message = std::move(message),
                          .hint = std::move(hint),
                          .notes = std::move(notes)});
}

namespace {

bool hasLambda(const Type* type) {
  type = resolve(type);
  return type->kind == TypeKind::Lambda ||
         std::any_of(type->arguments.begin(), type->arguments.end(), hasLambda);
}

/// A function that is called with functions of two arguments, as `x mod 2` makes one of x.
bool takesFunction(const Type* type) {
  if (type->kind != TypeKind::Function) return false;
  const Type* argument = resolve(type->arguments[0]);
  return argument->kind == TypeKind::Function && resolve(argument->arguments[0])->kind == TypeKind::Pair;
}

}  // namespace

void Inference::reportConflict(std::string id, Span span, std::string message, const Conflict& conflict,
                               std::vector<Diagnostic::Note> notes, std::string hint) {
  const Type* left = resolve(conflict.left);
  const Type* right = resolve(conflict.right);
  const bool called = conflict.kind == Conflict::Shape && takesFunction(left) != takesFunction(right);
  if (hint.empty() && (called || (conflict.kind == Conflict::Class && takesFunction(right))))
    hint = "a name behind another one is its argument: `x mod y` calls x, the remainder is mod(x, y)";
  switch (conflict.kind) {
    case Conflict::Shape: {
      bool intFloat = left->kind == TypeKind::Scalar && right->kind == TypeKind::Scalar &&
                      ((isInt(left->scalar) && isFloat(right->scalar)) ||
                       (isFloat(left->scalar) && isInt(right->scalar)));
      bool said =
          message.find(show(left)) != std::string::npos && message.find(show(right)) != std::string::npos;
      if (!said) message += ": " + show(left) + " is not " + show(right);
      const auto is = [&](const Type* type, const char* name) {
        return printType(type, types_.widths()) == name;
      };
      if ((is(left, "char") && is(right, "[char]")) || (is(left, "[char]") && is(right, "char")))
        hint = "a character is written `a, a string of one character \"a\"";
      if (left->kind == TypeKind::Record && right->kind == TypeKind::Record && show(left) == show(right) &&
          hint.empty())
        hint = show(left) + " has been defined again, and what was defined before means the earlier one";
      if (intFloat && hint.empty())
        hint = "NESL never converts numbers by itself: float(i), round(x), trunc(x) do";
      break;
    }
    case Conflict::Class: {
      TypeClass needed = conflict.demands[0].typeClass;
      if (conflict.demands.size() > 1) {
        message += ": no type is both in class " + std::string(className(needed)) + " and in class " +
                   std::string(className(conflict.demands[1].typeClass));
      } else {
        message += ": " + show(right) + " is not in class " + std::string(className(needed));
        bool isBool = right->kind == TypeKind::Scalar && right->scalar == ScalarType::Bool;
        if (needed == kOrdinal) {
          const bool compares = message.starts_with("`==`") || message.starts_with("`/=`");
          const bool isString =
              right->kind == TypeKind::Sequence && printType(right, types_.widths()) == "[char]";
          if (hint.empty())
            hint = isBool     ? "bool has no order: use eql(a,b) or xor to compare"
                   : isString ? "eql(a,b) compares strings; a character, which has an order, is written `a"
                   : compares ? "eql(a,b) compares any two values of one type"
                              : "numbers and characters have an order";
        }
        if (needed == kNumber && isBool && hint.empty()) hint = "btoi(b) makes 1 or 0 of a bool b";
      }
      for (const Demand& demand : conflict.demands) {
        if (demand.reason.empty() || !demand.span.known()) continue;
        bool said = message.starts_with(demand.reason) && demand.span.file == span.file &&
                    demand.span.begin >= span.begin && demand.span.end <= span.end;
        const std::string needed = "class " + std::string(className(demand.typeClass)) + " is needed by ";
        if (!said) notes.push_back({demand.span, needed + demand.reason});
        // and in the body of that function by another one
        constexpr int kFurtherNotes = 3;
        const Type* origin = demand.origin;
        for (int i = 0; i < kFurtherNotes && origin && origin->reasonSpan.known(); ++i) {
          notes.push_back({origin->reasonSpan, needed + origin->reason});
          origin = origin->origin;
        }
      }
      break;
    }
    case Conflict::Infinite:
      nameTogether(message, left, right);
      message += ": the type would have to contain itself";
      // Types are shown without what their functions are.
      if (hint.empty() && hasLambda(right))
        hint =
            "the type of a function value says which function it is, so a recursive call passes on the one "
            "it "
            "got, and none that is made of it";
      break;
    case Conflict::TooLarge:
      id = "K0314";
      message = "this has a type of more than " + std::to_string(kMaximalTypeSize) + " parts";
      hint = "tuples of tuples double with every level";
      notes.clear();
      break;
    case Conflict::Identity: {
      auto name = [](const Type* type) {
        return type->kind == TypeKind::Definition ? "`" + type->cell->name + "`" : std::string("a lambda");
      };
      message += ": these are different functions, " + name(left) + " and " + name(right);
      hint = "the function behind a value must be known at compile time";
      break;
    }
  }
  report(std::move(id), span, std::move(message), std::move(hint), std::move(notes));
}

bool Inference::noteBinding(const typed::Exp& exp, std::vector<Diagnostic::Note>& notes) const {
  const auto* local = std::get_if<typed::Local>(&exp.node);
  if (!local || !local->variable->span.known()) return false;
  const std::string& name = local->variable->name;
  const Cell* hidden = environment_.lookup(name, fromLibrary_);
  const bool hides = hidden && resolve(hidden->scheme.type)->kind == TypeKind::Function;
  notes.push_back(
      {local->variable->span, hides ? "`" + name + "` is bound here, and hides the function of this name"
                                    : "`" + name + "` is bound here"});
  return hides;
}

void Inference::reportNoFunction(const typed::Exp& function, std::string message, std::string hint) {
  std::vector<Diagnostic::Note> notes;
  if (noteBinding(function, notes)) hint = "the function can be called where the variable has another name";
  if (const auto* global = std::get_if<typed::Global>(&function.node); global && global->cell->span.known())
    notes.push_back({global->cell->span, "`" + global->cell->name + "` is bound here"});
  report("K0305", function.span, std::move(message), std::move(hint), std::move(notes));
}

namespace {

/// Whether a value of one type can never be given where the other is expected.
bool neverFits(const Type* given, const Type* expected) {
  given = resolve(given);
  expected = resolve(expected);
  if (given->kind == TypeKind::Variable || expected->kind == TypeKind::Variable) return false;
  if (given->kind != expected->kind) return true;
  switch (given->kind) {
    case TypeKind::Scalar:
      return given->scalar != expected->scalar;
    case TypeKind::Sequence:
      return neverFits(given->arguments[0], expected->arguments[0]);
    case TypeKind::Pair:
      return neverFits(given->arguments[0], expected->arguments[0]) ||
             neverFits(given->arguments[1], expected->arguments[1]);
    case TypeKind::Record:
      return given->datatype != expected->datatype;
    default:
      return false;
  }
}

}  // namespace

void Inference::explainOperands(const typed::Exp& argument, const Type& expected,
                                std::vector<Diagnostic::Note>& notes) const {
  const typed::Exp* rest = &argument;
  auto explain = [&](const typed::Exp& exp) {
    // The stride of a range that has none is a literal that begins where the range does.
    const auto* all = std::get_if<typed::Pair>(&argument.node);
    if (all && std::holds_alternative<typed::Literal>(exp.node) && exp.span.begin < all->first->span.begin)
      return;
    notes.push_back({exp.span, "this has type " + show(exp.type)});
    noteBinding(exp, notes);
  };
  // Of many, those that cannot be what is expected; none where their number is another.
  constexpr size_t kFew = 3;
  std::vector<const typed::Exp*> unfit;
  size_t number = 1;
  for (const Type* parameter = resolve(&expected);; ++number) {
    const auto* pair = std::get_if<typed::Pair>(&rest->node);
    const bool both = pair && parameter->kind == TypeKind::Pair;
    const typed::Exp& part = both ? *pair->first : *rest;
    if (neverFits(part.type, both ? parameter->arguments[0] : parameter)) unfit.push_back(&part);
    if (!both) {
      if ((pair != nullptr) != (parameter->kind == TypeKind::Pair)) unfit.clear();
      break;
    }
    parameter = resolve(parameter->arguments[1]);
    rest = pair->second.get();
  }
  if (number > kFew) {
    for (const typed::Exp* part : unfit) explain(*part);
    return;
  }
  rest = &argument;
  while (auto* pair = std::get_if<typed::Pair>(&rest->node)) {
    explain(*pair->first);
    rest = pair->second.get();
  }
  if (rest != &argument || std::holds_alternative<typed::Local>(rest->node)) explain(*rest);
}

namespace {

/// The number of components of a right-nested tuple, and whether its last one may be a tuple itself.
std::pair<size_t, bool> tupleSize(const Type* type) {
  size_t size = 1;
  for (type = resolve(type); type->kind == TypeKind::Pair; type = resolve(type->arguments[1])) ++size;
  return {size, type->kind == TypeKind::Variable && (type->typeClass & kStructured) != 0};
}

bool isBool(const Type* type) {
  type = resolve(type);
  return type->kind == TypeKind::Scalar && type->scalar == ScalarType::Bool;
}

/// Whether the operands are the result of a comparison and another value: `1 < 2 < 3`.
bool comparesComparison(const std::string& what, const Type* operands) {
  operands = resolve(operands);
  return (what == "`<`" || what == "`>`" || what == "`<=`" || what == "`>=`") &&
         operands->kind == TypeKind::Pair && isBool(operands->arguments[0]) &&
         !isBool(operands->arguments[1]);
}

/// Whether two sequences are given where one of pairs is expected.
bool givesSequencesForPairs(const Type* expected, const Type* given) {
  expected = resolve(expected);
  given = resolve(given);
  const auto isSequence = [](const Type* type) { return resolve(type)->kind == TypeKind::Sequence; };
  return isSequence(expected) && resolve(expected->arguments[0])->kind == TypeKind::Pair &&
         given->kind == TypeKind::Pair && isSequence(given->arguments[0]) && isSequence(given->arguments[1]);
}

/// Whether a value of one type could be given where the other is expected, as far as their outermost parts
/// tell.
bool looksLike(const Type* given, const Type* expected) {
  given = resolve(given);
  expected = resolve(expected);
  if (expected->kind == TypeKind::Variable)
    return given->kind == TypeKind::Scalar || expected->typeClass == kAny;
  return given->kind == expected->kind &&
         (given->kind != TypeKind::Scalar || given->scalar == expected->scalar);
}

/// Whether two arguments would do in the other order.
bool areSwapped(const Type* expected, const Type* given) {
  expected = resolve(expected);
  given = resolve(given);
  if (expected->kind != TypeKind::Pair || given->kind != TypeKind::Pair) return false;
  const auto part = [](const Type* pair, size_t k) { return resolve(pair->arguments[k]); };
  return looksLike(part(given, 1), part(expected, 0)) && looksLike(part(given, 0), part(expected, 1)) &&
         !looksLike(part(given, 0), part(expected, 0));
}

bool isOfNoNumbers(const Type* type) {
  return type->kind == TypeKind::Scalar &&
         (type->scalar == ScalarType::Char || type->scalar == ScalarType::Bool);
}

/// What the user of an operator may have meant; empty where that is not known.
std::string operatorAdvice(const std::string& what, const Conflict& conflict, bool unary) {
  if (what == "`<-`")
    return conflict.kind == Conflict::Shape ? "it is SEQUENCE <- [(INDEX, VALUE), ...]" : "";
  constexpr std::string_view kArithmetic = "+-*/^";
  const Type* operand = resolve(conflict.right);
  const auto isFunction = [](const Type* type) { return resolve(type)->kind == TypeKind::Function; };
  if (what == "`-`" && (isFunction(conflict.left) || isFunction(conflict.right)))
    return "a negative number is an argument in parentheses: g(-x)";
  if (conflict.kind == Conflict::Shape) {
    const Type* given = resolve(conflict.left);
    if (what == "`->`" && given->kind == TypeKind::Scalar)
      return "v[i] is one element, v -> [i, j] are several";
    if (what == "the subscript" && given->kind == TypeKind::Pair)
      return "the parts of a pair have names in a pattern: (a, b) = PAIR";
    if (given->kind != TypeKind::Scalar) return "";
    if (what == "the range" && isFloat(given->scalar))
      return "a range is of integers; fseq(start, stride, end) makes floats";
    if (what == "`^`" && isFloat(given->scalar)) return "expt(x, y) is a power with any exponent";
    if (what != "`++`" || operand->kind != TypeKind::Sequence) return "";
    return given->scalar == ScalarType::Char ? "[c] is the sequence of one character c"
                                             : "@x is the text of a value x, [x] a sequence of one element";
  }
  if (operand->kind == TypeKind::Pair && conflict.kind == Conflict::Class && what.size() == 3 &&
      kArithmetic.find(what[1]) != std::string_view::npos)
    return "the parts of pairs are computed one by one: ((a, b), (c, d)) => (a + c, b + d)";
  if (conflict.kind == Conflict::Class && operand->kind == TypeKind::Sequence) {
    if (what == "`++`") return "[x] is a sequence of one element";
    if (what == "the subscript" && conflict.demands[0].typeClass == kLogical)
      return "`not v[i]` is (not v)[i]; an element is negated by not(v[i])";
  }
  const Type* element = operand->kind == TypeKind::Sequence ? resolve(operand->arguments[0]) : nullptr;
  if (what == "`+`" && element && conflict.kind == Conflict::Class && isOfNoNumbers(element))
    return "v ++ w joins two sequences";
  const bool ofNumbers = element && conflict.kind == Conflict::Class && !isOfNoNumbers(element);
  if (!ofNumbers || what.size() != 3 || kArithmetic.find(what[1]) == std::string_view::npos) return "";
  const char op = what[1];
  if (unary) return std::string("{") + op + "a : a in v} does this to the elements of a sequence v";
  return std::string("{a ") + op + " b : a in v; b in w} does this to the elements of sequences v and w" +
         (op == '+' ? "; v ++ w joins them" : "");
}

/// The first argument where a pair meets a record, or something else that is none; empty where there is none.
/// Numbers of arguments say nothing then: the parts of a last pair count as arguments.
std::string partAdvice(const std::string& what, const Type* expected, const Type* given) {
  const auto isOther = [](const Type* type) {
    return type->kind != TypeKind::Pair && type->kind != TypeKind::Variable;
  };
  for (int number = 1;; ++number) {
    expected = resolve(expected);
    given = resolve(given);
    const bool last = expected->kind != TypeKind::Pair || given->kind != TypeKind::Pair;
    const Type* wanted = last ? expected : resolve(expected->arguments[0]);
    const Type* part = last ? given : resolve(given->arguments[0]);
    const std::string argument = "argument " + std::to_string(number) + " of " + what;
    if (wanted->kind == TypeKind::Record && part->kind == TypeKind::Pair)
      return fmt::format("a `{0}` is made by {0}(...)", wanted->datatype->name);
    if (wanted->kind == TypeKind::Pair && part->kind == TypeKind::Record)
      return fmt::format("the parts of a `{0}` have names in a pattern {0}(...)", part->datatype->name);
    if (last) return "";
    if (wanted->kind == TypeKind::Pair && isOther(part)) return argument + " is a pair: ((A, B), ...)";
    if (part->kind == TypeKind::Pair && isOther(wanted)) return argument + " is no pair";
    expected = expected->arguments[1];
    given = given->arguments[1];
  }
}

/// Whether an argument that is not the last one is a tuple.
bool hasPairBeforeLast(const typed::Exp& argument) {
  const typed::Exp* rest = &argument;
  for (; auto* pair = std::get_if<typed::Pair>(&rest->node); rest = pair->second.get())
    if (resolve(pair->first->type)->kind == TypeKind::Pair) return true;
  return false;
}

/// Whether a function that converts numbers is called with what it gives.
bool convertsWhatIsThere(const std::string& what, const Type* argument) {
  const Type* given = resolve(argument);
  if (given->kind != TypeKind::Scalar) return false;
  if (what == "`float`") return isFloat(given->scalar);
  constexpr std::array kToInt = {"`round`", "`trunc`", "`ceil`", "`floor`"};
  return isInt(given->scalar) && std::find(kToInt.begin(), kToInt.end(), what) != kToInt.end();
}

}  // namespace

void Inference::reportArgument(const typed::Exp& function, const typed::Exp& argument, Span span,
                               std::string what, const Conflict& conflict) {
  // What is wrong inside of the argument has been told, and its type may come from that.
  const auto isInside = [&](const Diagnostic& d) {
    return d.severity == Severity::Error && d.span.file == argument.span.file &&
           d.span.begin >= argument.span.begin && d.span.end <= argument.span.end;
  };
  if (std::any_of(diagnostics_.begin(), diagnostics_.end(), isInside)) return;
  const bool isOperator = !what.empty();
  const Type* parameter = resolve(function.type)->arguments[0];
  bool fromLibrary = false;
  if (auto* global = std::get_if<typed::Global>(&function.node)) {
    fromLibrary = global->cell->fromLibrary;
    if (what.empty()) what = "`" + global->cell->name + "`";
    const Type* general = resolve(global->cell->scheme.type);
    if (general->kind == TypeKind::Function) parameter = general->arguments[0];
  }
  if (what.empty()) what = "this function";
  auto [expected, open] = tupleSize(parameter);
  size_t given = tupleSize(argument.type).first;
  std::string hint;
  if (comparesComparison(what, argument.type)) {
    hint = "comparisons are joined by `and`: a < b and b < c";
  } else if (isOperator) {
    hint = operatorAdvice(what, conflict, given == 1);
  } else if (conflict.kind == Conflict::Shape && resolve(conflict.left)->kind == TypeKind::Function &&
             resolve(argument.type)->kind == TypeKind::Function) {
    const Type* result = resolve(resolve(argument.type)->arguments[1]);
    hint = expected > 1 && result->kind == TypeKind::Pair
               ? "the body of a `let` reaches over commas: in a list of arguments it needs parentheses"
               : "g h x calls g with h: what calls h first is g(h(x))";
  } else if (conflict.kind == Conflict::Shape && given == expected && areSwapped(parameter, argument.type)) {
    hint = what + " takes these arguments in the other order";
  } else if (fromLibrary && convertsWhatIsThere(what, argument.type)) {
    hint = "this is of type " + show(argument.type) + " already, which is what " + what + " would make it";
  } else if (what == "`sort`" && conflict.kind == Conflict::Class) {
    hint = "`sort` sorts numbers; what has numbers for keys is sorted by permute(v, rank(KEYS))";
  } else if ((what == "`first`" || what == "`rest`") && resolve(argument.type)->kind == TypeKind::Sequence) {
    hint = "the first element of a sequence v is v[0], the others are drop(v, 1)";
  } else if ((what == "`max`" || what == "`min`") && given < expected &&
             resolve(argument.type)->kind == TypeKind::Sequence) {
    hint = what == "`max`" ? "the greatest element of a sequence v is max_val(v), its place max_index(v)"
                           : "the least element of a sequence v is min_val(v), its place min_index(v)";
  } else if (std::string advice = partAdvice(what, parameter, argument.type);
             !advice.empty() && !(given < expected && hasPairBeforeLast(argument))) {
    hint = std::move(advice);
  } else if (given < expected || (given > expected && !open)) {
    const bool isTuple = given > expected && !std::holds_alternative<typed::Pair>(argument.node);
    hint = what + " takes " + std::to_string(expected) + (expected == 1 ? " argument, " : " arguments, ") +
           (isTuple ? "a tuple of " : "") + std::to_string(given) +
           (given == 1 || isTuple ? " is given" : " are given");
    if (isTuple && resolve(parameter)->kind == TypeKind::Sequence)
      hint += "; a sequence is written [a, b, c]";
    // A pair among them is one of them, unless it is the last.
    if (given < expected && hasPairBeforeLast(argument))
      hint += ", of which a pair is one: a pattern for it stands in parentheses, ((A, B), C)";
    if (givesSequencesForPairs(parameter, argument.type)) hint += "; zip(v, w) makes one of two sequences";
  }
  const Type* first = resolve(argument.type);
  if (first->kind == TypeKind::Pair) first = resolve(first->arguments[0]);
  if (what == "`||`" && first->kind == TypeKind::Scalar)
    hint = "`||` pads a string; the logical operators are `and` and `or`";
  std::vector<Diagnostic::Note> notes;
  // Of an operator whose right operand is a tuple, both operands: one type of both would not show where it
  // ends.
  const auto* operands = isOperator ? std::get_if<typed::Pair>(&argument.node) : nullptr;
  const bool apart = operands && what[0] == '`' && resolve(parameter)->kind == TypeKind::Pair &&
                     resolve(operands->second->type)->kind == TypeKind::Pair;
  std::string givenTypes = "the argument has type " + show(argument.type);
  if (apart) {
    givenTypes =
        "its operands have types " + show(operands->first->type) + " and " + show(operands->second->type);
    for (const typed::Exp* operand : {operands->first.get(), operands->second.get()})
      notes.push_back({operand->span, "this has type " + show(operand->type)});
  } else {
    explainOperands(argument, *parameter, notes);
  }
  if (auto* local = std::get_if<typed::Local>(&function.node);
      local && local->variable->span.known() && conflict.kind == Conflict::Shape)
    notes.push_back({local->variable->span, "`" + local->variable->name +
                                                "` is bound here, to functions of one type; those of the top "
                                                "level may be called with several"});
  if (auto* global = std::get_if<typed::Global>(&function.node);
      global && !global->cell->fromLibrary && global->cell->span.known() && conflict.kind != Conflict::Class)
    notes.push_back(
        {global->cell->span, what + " is defined here, of type " + show(global->cell->scheme.type)});
  reportConflict("K0301", span, what + " expects " + show(parameter) + ", but " + givenTypes, conflict,
                 std::move(notes), std::move(hint));
}

/// `(a, b => a + b)` is a pair of `a` and a function.
typed::ExpPtr Inference::inferBeside(const ast::Exp& exp, const ast::Exp& rest) {
  const ast::Exp* last = &rest;
  while (const auto* pair = std::get_if<ast::Pair>(&last->node)) last = pair->second.get();
  const size_t before = diagnostics_.size();
  typed::ExpPtr result = infer(exp);
  if (std::holds_alternative<ast::Name>(exp.node) && std::holds_alternative<ast::Lambda>(last->node) &&
      diagnostics_.size() == before + 1 && diagnostics_.back().id == "K0201" &&
      !diagnostics_.back().followsAnother)
    diagnostics_.back().hint =
        "the parameters of a function without a name stand in parentheses: ((x, y) => x + y)";
  return result;
}

void Inference::reportUnknown(const std::string& name, Span span) {
  if (!unknown_.insert(name).second) return;
  if (const std::optional<Span> definition = environment_.failedDefinition(name)) {
    report("K0201", span, "`" + name + "` is not defined, because its definition has a mistake", "",
           {{*definition, "this is the definition"}});
    diagnostics_.back().followsAnother = true;
    diagnostics_.back().shown = environment_.tellFailed(name);
    return;
  }
  if (name == "true" || name == "false")
    return report("K0201", span, "`" + name + "` is not defined",
                  name == "true" ? "`t` is the constant true" : "`f` is the constant false");
  if (const auto later = environment_.announcedDefinition(name); later && later->span.begin > span.begin)
    return report("K0201", span, "`" + name + "` is not defined yet",
                  later->isFunction ? "what is called before its definition is declared first: function " +
                                          name + "(PARAMETERS) : ARGUMENT -> RESULT;"
                                    : "forms are read in their order: a value is bound before it is used",
                  {{later->span, "it is defined here, further down"}});
  std::vector<std::string> local;
  for (auto& [known, entries] : scope_)
    if (!entries.empty()) local.push_back(known);
  if (self_) local.push_back(self_->name);
  const std::vector<std::string> similar = environment_.similarNames(name, fromLibrary_, local);
  const bool meansLocal = std::any_of(similar.begin(), similar.end(), [&](const std::string& known) {
    return std::find(local.begin(), local.end(), known) != local.end();
  });
  if (std::string other = foreignNameAdvice(name); !other.empty() && !meansLocal)
    return report("K0201", span, "`" + name + "` is not defined", std::move(other));
  report("K0201", span, "`" + name + "` is not defined",
         similar.empty() ? "" : "did you mean " + oneOf(similar) + "?");
}

}  // namespace kelpie
