#include "frontend/syntax_mistake.h"

#include <NeslParser.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "frontend/text.h"

namespace kelpie {

using nesl_grammar::NeslParser;

namespace {

bool isOpening(uint32_t type) {
  return type == NeslParser::LPAREN || type == NeslParser::LBRACKET || type == NeslParser::LBRACE;
}
bool isClosing(uint32_t type) {
  return type == NeslParser::RPAREN || type == NeslParser::RBRACKET || type == NeslParser::RBRACE;
}

bool beginsExpression(uint32_t type) {
  switch (type) {
    case NeslParser::INT:
    case NeslParser::FLOAT:
    case NeslParser::CHAR:
    case NeslParser::STRING:
    case NeslParser::NAME:
    case NeslParser::LPAREN:
    case NeslParser::LBRACKET:
    case NeslParser::LBRACE:
    case NeslParser::IF:
    case NeslParser::LET:
    case NeslParser::HASH:
    case NeslParser::AT:
    case NeslParser::MINUS:
      return true;
    default:
      return false;
  }
}

/// "`)`", "`,` or `]`", "an expression", ... from the tokens that would fit.
std::string describeExpected(const SyntaxMistake& mistake) {
  const auto fits = [&](size_t type) { return mistake.fits(type); };
  std::vector<std::string> words;
  const auto add = [&](std::string_view word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) words.emplace_back(word);
  };
  const bool type = mistake.rule == NeslParser::RulePrimaryType || mistake.rule == NeslParser::RuleType ||
                    mistake.rule == NeslParser::RuleFunType;
  const bool pattern = mistake.rule == NeslParser::RulePrimaryPattern ||
                       mistake.rule == NeslParser::RulePattern || mistake.rule == NeslParser::RuleParameter;
  const bool afterOperand = fits(NeslParser::EQUAL_EQUAL);  // an operator would go on, as nearly anywhere
  if (afterOperand) {
    // what else could go on says nothing
  } else if (fits(NeslParser::INT)) {
    add("an expression");
  } else if (fits(NeslParser::NAME) && fits(NeslParser::LPAREN)) {
    add(type ? "a type" : pattern ? "a name or a pattern" : "a name or `(`");
  } else if (fits(NeslParser::NAME)) {
    add("a name");
  }
  const bool operands = afterOperand || fits(NeslParser::INT);
  for (const ssize_t type : mistake.expected.toList()) {
    switch (type) {
      case NeslParser::NAME:
        continue;  // named above
      case NeslParser::LPAREN:
      case NeslParser::LBRACKET:
        if (operands || fits(NeslParser::NAME)) continue;
        break;
      case NeslParser::STRING:
      case NeslParser::LBRACE:
      case NeslParser::IF:
      case NeslParser::LET:
      case NeslParser::ARROW:
        if (operands) continue;
        break;
      case NeslParser::THEN:
      case NeslParser::ELSE:
      case NeslParser::IN:
      case NeslParser::RPAREN:
      case NeslParser::RBRACKET:
      case NeslParser::RBRACE:
      case NeslParser::COMMA:
      case NeslParser::SEMICOLON:
      case NeslParser::COLON:
      case NeslParser::COLON_COLON:
      case NeslParser::EQUAL:
      case NeslParser::BAR:
        break;
      default:
        continue;  // an operator, or the end
    }
    add(describeTokenType(static_cast<uint32_t>(type)));
  }
  if (fits(antlr4::Token::EOF) && words.empty()) add("`;`");
  if (words.empty()) add("an operator");
  std::string text = words[0];
  for (size_t i = 1; i < words.size(); ++i) text += (i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

/// The tokens of the form up to the mistake, and what follows.
struct Surroundings {
  const std::vector<Token>& tokens;
  uint32_t formBegin, found;
  std::string_view text;
  std::vector<uint32_t> open;  ///< brackets open at `found`, the innermost last

  uint32_t type(uint32_t i) const {
    return i >= formBegin && i < tokens.size() ? tokens[i].type : kEndOfFile;
  }
  bool has(uint32_t wanted) const {
    for (uint32_t i = formBegin; i < found; ++i)
      if (tokens[i].type == wanted) return true;
    return false;
  }
  bool hasBehindOpen(uint32_t wanted) const {
    for (uint32_t i = open.empty() ? found : open.back(); i < found; ++i)
      if (tokens[i].type == wanted) return true;
    return false;
  }
  /// Whether `found` comes after the first binding of a `let` whose `in` is still to come.
  bool inBindingsOfLet() const {
    int closed = 0;  // brackets, seen from their ends
    for (uint32_t i = found; i-- > formBegin;) {
      if (isClosing(tokens[i].type)) ++closed;
      if (isOpening(tokens[i].type) && closed-- == 0) return false;
      if (closed == 0 && tokens[i].type == NeslParser::IN) return false;
      if (closed == 0 && tokens[i].type == NeslParser::LET) return true;
    }
    return false;
  }
  /// Whether the definition of a function has its signature already: a `:` or `->` outside of brackets.
  bool hasSignature() const {
    int depth = 0;
    for (uint32_t i = formBegin; i < found; ++i) {
      depth += isOpening(tokens[i].type) ? 1 : isClosing(tokens[i].type) ? -1 : 0;
      if (depth == 0 && (tokens[i].type == NeslParser::COLON || tokens[i].type == NeslParser::ARROW))
        return true;
    }
    return false;
  }
  /// Whether what is found stands behind the name of a function that is defined, in no brackets, with no `=`
  /// before.
  bool isHeadOfFunction() const {
    return type(formBegin) == NeslParser::FUNCTION && !has(NeslParser::EQUAL) && open.empty();
  }
  /// Whether a binding of the innermost braces and a comma stand before what is found.
  bool bindingsHaveComma() const {
    int closed = 0;
    bool comma = false;
    for (uint32_t i = found; i-- > formBegin;) {
      if (isClosing(tokens[i].type)) ++closed;
      if (isOpening(tokens[i].type) && closed-- == 0) return false;
      if (closed == 0 && tokens[i].type == NeslParser::SEMICOLON) return false;
      if (closed == 0 && tokens[i].type == NeslParser::COMMA) comma = true;
      if (closed == 0 && tokens[i].type == NeslParser::IN) return comma;
    }
    return false;
  }
  /// Where a pattern begins that ends in front of token `end`: a name, a pair in parentheses or a record's
  /// pattern; `end` if there is none.
  uint32_t beginOfPattern(uint32_t end) const {
    if (type(end - 1) == NeslParser::NAME) return end - 1;
    if (type(end - 1) != NeslParser::RPAREN) return end;
    int closed = 0;
    for (uint32_t i = end; i-- > formBegin;) {
      if (isClosing(tokens[i].type)) ++closed;
      if (isOpening(tokens[i].type) && --closed == 0)
        return i > formBegin && type(i - 1) == NeslParser::NAME ? i - 1 : i;
    }
    return end;
  }
  /// Whether what is found comes right after a pattern that is to be bound in an apply-to-each: `{x : x`,
  /// `{x : x, y` or `{x + y : x in v; y`.
  bool bindsElementBefore() const {
    uint32_t begin = beginOfPattern(found);
    if (begin == found) return false;
    while (type(begin - 1) == NeslParser::COMMA && beginOfPattern(begin - 1) != begin - 1)
      begin = beginOfPattern(begin - 1);
    return type(begin - 1) == NeslParser::COLON ||
           (type(begin - 1) == NeslParser::SEMICOLON && hasBehindOpen(NeslParser::IN));
  }
  /// Whether what is found comes right after a comma and a pattern.
  bool followsCommaAndPattern() const { return type(beginOfPattern(found) - 1) == NeslParser::COMMA; }
  /// For `function g x y`, found at the y: "g(x, y)"; otherwise empty.
  std::string headWithoutParentheses() const {
    if (type(formBegin) != NeslParser::FUNCTION || found != formBegin + 3) return "";
    std::vector<std::string_view> names;
    for (uint32_t i = formBegin + 1; type(i) == NeslParser::NAME; ++i)
      names.push_back(text.substr(tokens[i].begin, tokens[i].end - tokens[i].begin));
    if (names.size() < 3) return "";
    return fmt::format("{}({})", names[0], fmt::join(names.begin() + 1, names.end(), ", "));
  }
  bool isWord(uint32_t i, std::string_view word) const {
    return type(i) == NeslParser::NAME &&
           text.substr(tokens[i].begin, tokens[i].end - tokens[i].begin) == word;
  }
  /// Whether an operator stands where an argument should: in f(+, x).
  bool isOperatorAlone(uint32_t i) const {
    const auto operation = [&] {
      switch (type(i)) {
        case NeslParser::PLUS:
        case NeslParser::MINUS:
        case NeslParser::STAR:
        case NeslParser::SLASH:
        case NeslParser::HASH:
        case NeslParser::PLUS_PLUS:
        case NeslParser::LESS:
        case NeslParser::GREATER:
        case NeslParser::EQUAL_EQUAL:
        case NeslParser::AND:
        case NeslParser::OR:
        case NeslParser::XOR:
        case NeslParser::NAND:
        case NeslParser::NOR:
          return true;
        default:
          return false;
      }
    };
    const uint32_t before = type(i - 1), after = type(i + 1);
    return operation() && (before == NeslParser::LPAREN || before == NeslParser::COMMA) &&
           (after == NeslParser::RPAREN || after == NeslParser::COMMA);
  }
  bool hasWord(std::string_view word) const {
    for (uint32_t i = formBegin; i < found; ++i)
      if (isWord(i, word)) return true;
    return false;
  }
  /// Whether what is found is the `=` of `x +=`.
  bool changesName() const {
    const uint32_t before = type(found - 1);
    return (before == NeslParser::PLUS || before == NeslParser::MINUS || before == NeslParser::STAR ||
            before == NeslParser::SLASH) &&
           type(found - 2) == NeslParser::NAME;
  }
  /// Whether what is found comes right after a `load` that begins the form.
  bool isFirstBehindLoad() const { return type(formBegin) == NeslParser::LOAD && found == formBegin + 1; }
  bool onNewLine() const { return beginsLine(found); }
  /// Whether what is found comes right after the first name of a line.
  bool followsNameOnNewLine() const {
    return found > formBegin && type(found - 1) == NeslParser::NAME && beginsLine(found - 1);
  }
  /// Whether what is found comes right after a name in front of which a value ends, as in `1 b =`.
  bool followsNameBehindValue() const {
    if (found < formBegin + 2 || type(found - 1) != NeslParser::NAME) return false;
    const uint32_t before = type(found - 2);
    return isClosing(before) || before == NeslParser::NAME || before == NeslParser::INT ||
           before == NeslParser::FLOAT || before == NeslParser::STRING || before == NeslParser::CHAR;
  }
  bool beginsLine(uint32_t i) const {
    if (i == formBegin) return false;
    const uint32_t end = tokens[i - 1].end;
    return text.substr(end, tokens[i].begin - end).find('\n') != std::string_view::npos;
  }
};

/// Advice for the slips that explain most mistakes; empty where none does.
std::string advice(const SyntaxMistake& mistake, const Surroundings& around) {
  constexpr const char* kComment = "a comment stands between two %";
  constexpr const char* kLoad =
      "as the first word of a form `load` is a command; a variable or a function of this name is written in "
      "parentheses there: (load)";
  constexpr const char* kLogical = "the logical operators are `and` and `or`";
  constexpr const char* kBody = "the body of a function comes behind a `=`: function NAME(X, Y) = BODY";
  constexpr const char* kEmptySequence = "an empty sequence names the type of its elements: [] int";
  constexpr const char* kNoFunction =
      "a function has at least one argument; a value that depends on nothing is bound by NAME = VALUE";
  const bool operandMissing = mistake.fits(NeslParser::INT) || mistake.fits(NeslParser::NAME);
  const bool emptySequence = around.type(around.found - 1) == NeslParser::RBRACKET &&
                             around.type(around.found - 2) == NeslParser::LBRACKET;
  const bool inBraces = !around.open.empty() && around.type(around.open.back()) == NeslParser::LBRACE;
  const bool parameter = mistake.rule == NeslParser::RuleParameter ||
                         mistake.rule == NeslParser::RuleParameters ||
                         mistake.rule == NeslParser::RulePrimaryPattern;
  const bool pattern = parameter || mistake.rule == NeslParser::RulePattern ||
                       mistake.rule == NeslParser::RuleLetBinding ||
                       mistake.rule == NeslParser::RuleLocalBindings;
  for (const uint32_t place : {around.found, around.found - 1})
    if (place > around.formBegin && around.isOperatorAlone(place))
      return "an operator is no value; a function that does the same is, as (a, b) => a + b";
  switch (around.type(around.found)) {
    case NeslParser::SLASH:
      if (operandMissing && (around.type(around.found + 1) == NeslParser::SLASH ||
                             around.type(around.found + 1) == NeslParser::STAR))
        return kComment;
      break;
    case NeslParser::GREATER:
      if (around.type(around.found - 1) == NeslParser::LESS) return "inequality is written /=";
      break;
    case NeslParser::THEN:
      for (const char* word : {"elseif", "elsif", "elif"})
        if (around.hasWord(word)) return "these are two words: else if CONDITION then A else B";
      break;
    case NeslParser::BAR_EQUAL:
      if (around.isFirstBehindLoad()) return kLoad;
      break;
    case NeslParser::EQUAL:
      if (around.isFirstBehindLoad()) return kLoad;
      if (around.type(around.formBegin) == NeslParser::DATATYPE)
        return "the types of a record's parts follow its name: datatype NAME(TYPE, ...)";
      if (around.type(around.found - 2) == NeslParser::FUNCTION) return kNoFunction;
      if (parameter && around.type(around.formBegin) == NeslParser::FUNCTION && !around.hasSignature())
        return "the default of a parameter stands behind `:=`: NAME : TYPE := VALUE";
      if (operandMissing)
        return around.changesName()
                   ? "a name is bound again by NAME = VALUE; what changes from turn to turn is "
                     "an argument of a function that calls itself"
                   : "";
      if (around.type(around.found - 2) == NeslParser::THEN ||
          around.type(around.found - 2) == NeslParser::ELSE)
        return "nothing is assigned in the branches of an `if`: NAME = if CONDITION then A else B";
      if (around.type(around.found - 2) == NeslParser::AND && around.inBindingsOfLet())
        return "the bindings of a `let` are separated by `;`";
      if (inBraces && around.bindsElementBefore())
        return "what a name of an apply-to-each is bound to comes behind `in`: {BODY : X in SEQUENCE}";
      if ((around.followsCommaAndPattern() || around.followsNameOnNewLine() ||
           around.followsNameBehindValue()) &&
          around.inBindingsOfLet())
        return "the bindings of a `let` are separated by `;`";
      if (!around.open.empty() || around.has(NeslParser::IF) || around.has(NeslParser::LET))
        return "equality is written ==";
      return "if a new form begins here, the one before it lacks its `;`; equality is written ==";
    case NeslParser::COMMA:
      if (around.isFirstBehindLoad()) return kLoad;
      if (around.type(around.found - 1) == NeslParser::COMMA)
        return "an element is missing between the commas";
      if (emptySequence) return kEmptySequence;
      if (around.type(around.formBegin) == NeslParser::FUNCTION && around.hasSignature() &&
          !around.has(NeslParser::EQUAL) && around.open.empty())
        return "the types of several parameters stand in parentheses: (A, B) -> C";
      if (mistake.rule == NeslParser::RulePrimaryType && !around.open.empty() &&
          around.type(around.open.back()) == NeslParser::LBRACKET)
        return "[A] is a sequence of any number of elements; a pair is (A, B)";
      return "";
    case NeslParser::EQUAL_EQUAL:
    case NeslParser::COLON_EQUAL:
      if (mistake.rule == NeslParser::RuleLetBinding) return "a binding of a `let` is NAME = VALUE";
      break;
    case NeslParser::AND:
    case NeslParser::OR:
    case NeslParser::XOR:
    case NeslParser::NAND:
    case NeslParser::NOR:
      if (operandMissing && around.type(around.found + 1) == NeslParser::LPAREN)
        return "a logical operator stands between its operands: a and b";
      break;
    case NeslParser::FAT_ARROW:
      if (around.isHeadOfFunction()) return kBody;
      break;
    case NeslParser::LPAREN:
      if (around.isHeadOfFunction() && around.type(around.found - 1) == NeslParser::RPAREN)
        return "the parameters of a function stand in one pair of parentheses: NAME(X, Y)";
      break;
    case NeslParser::STAR:
      if (around.type(around.found - 1) == NeslParser::STAR) return "a power of an integer is x ^ n";
      break;
    case NeslParser::LBRACE:
      if (around.isHeadOfFunction()) return kBody;
      break;
    case NeslParser::IN:
      if (around.isWord(around.formBegin, "for") && around.found == around.formBegin + 2)
        return "what is done for each element of a sequence stands in braces: {BODY : X in SEQUENCE}";
      if (inBraces && around.has(NeslParser::BAR))
        return "{ELEMENT : NAME in SEQUENCE | CONDITION}: a colon stands before the bindings, the bar before "
               "the filter";
      if (around.isWord(around.found - 2, "for"))
        return "an apply-to-each stands in braces: {ELEMENT : NAME in SEQUENCE | CONDITION}";
      if (inBraces && around.bindingsHaveComma())
        return "the bindings of an apply-to-each are separated by `;`";
      if (!around.open.empty() && around.type(around.open.back()) == NeslParser::LBRACKET &&
          !around.inBindingsOfLet())
        return "an apply-to-each stands in braces: {ELEMENT : NAME in SEQUENCE | CONDITION}";
      break;
    case NeslParser::NAME:
      if (const std::string call = around.headWithoutParentheses(); !call.empty())
        return fmt::format("the parameters of a function stand in parentheses: {}", call);
      break;
    case NeslParser::COLON:
      if (around.hasWord("lambda")) return "a function without a name is (X, Y) => BODY";
      if (!around.open.empty() && around.type(around.open.back()) == NeslParser::LBRACKET)
        return "a range is [start:end] or [start:end:stride]";
      if (inBraces && mistake.fits(NeslParser::IN) && around.inBindingsOfLet())
        return "a `let` in an apply-to-each ends with `in`, too: {let NAME = VALUE in ELEMENT : X in "
               "SEQUENCE}";
      if (inBraces && around.type(around.found - 2) == NeslParser::IN &&
          (around.type(around.found - 1) == NeslParser::INT || around.hasBehindOpen(NeslParser::COLON)))
        return "a range is [start:end] or [start:end:stride]";
      if (inBraces && around.hasBehindOpen(NeslParser::IN))
        return "the filter of an apply-to-each stands behind a bar: {NAME in SEQUENCE | CONDITION}";
      break;
    case NeslParser::SEMICOLON:
      if (inBraces && around.has(NeslParser::BAR))
        return "the filter comes last: {a : a in x; b in y | CONDITION}";
      if (emptySequence) return kEmptySequence;
      break;
    case NeslParser::RPAREN:
      if (parameter && around.type(around.found - 1) == NeslParser::LPAREN) return kNoFunction;
      if (emptySequence) return kEmptySequence;
      break;
    case NeslParser::RBRACKET:
      if (emptySequence) return kEmptySequence;
      if (around.type(around.found - 1) == NeslParser::COMMA)
        return "no comma stands behind the last element";
      break;
    case NeslParser::LBRACKET:
      if (pattern) return "patterns are names, pairs and records: a sequence is not taken apart by a pattern";
      break;
    case NeslParser::BAR:
      if (around.type(around.formBegin) == NeslParser::DATATYPE)
        return "a datatype is one record, with no alternatives: datatype NAME(TYPE, ...)";
      if (inBraces && around.type(around.found - 1) == NeslParser::SEMICOLON)
        return "no `;` stands before the filter: {a : a in x; b in y | CONDITION}";
      if (!around.open.empty() && around.type(around.open.back()) == NeslParser::LBRACKET)
        return "an apply-to-each stands in braces: {ELEMENT : NAME in SEQUENCE | CONDITION}";
      return kLogical;
    case NeslParser::AMPERSAND:
      return kLogical;
    case NeslParser::QUESTION:
      return "if CONDITION then A else B";
    case NeslParser::LEFT_ARROW:
      if (inBraces && around.bindsElementBefore())
        return "what a name of an apply-to-each is bound to comes behind `in`: {BODY : X in SEQUENCE}";
      break;
    default:
      break;
  }
  if (emptySequence) return kEmptySequence;
  if (mistake.fits(NeslParser::ELSE) && !operandMissing)
    return "every `if` has an `else`: if CONDITION then A else B";
  if (mistake.fits(NeslParser::THEN) && !operandMissing)
    return inBraces && around.type(around.found) == NeslParser::RBRACE && around.has(NeslParser::IN)
               ? "the filter of an apply-to-each stands behind a bar: {ELEMENT : NAME in SEQUENCE | "
                 "CONDITION}"
               : "if CONDITION then A else B";
  if (around.type(around.formBegin) == NeslParser::DATATYPE &&
      around.type(around.found) == NeslParser::LPAREN)
    return "the parameters of a type are not listed, they are the names in it: datatype pair (a, b) :: (a in "
           "any; b in any)";
  const uint32_t found = around.type(around.found);
  const bool bodyIsNext = around.hasSignature() || found == NeslParser::LET || found == NeslParser::IF;
  if (around.isHeadOfFunction() && bodyIsNext && beginsExpression(found)) return kBody;
  if (around.onNewLine() && around.open.empty() && !operandMissing) return "every form ends with `;` or `$`";
  return "";
}

}  // namespace

Diagnostic explain(const SyntaxMistake& mistake, const std::vector<Token>& tokens, uint32_t formBegin,
                   std::string_view text, uint32_t file) {
  Surroundings around{tokens, formBegin, formBegin, text, {}};
  while (tokens[around.found].begin < mistake.position && tokens[around.found].type != kEndOfFile) {
    const uint32_t type = tokens[around.found].type;
    if (isOpening(type)) around.open.push_back(around.found);
    if (isClosing(type) && !around.open.empty()) around.open.pop_back();
    ++around.found;
  }

  std::string expected = describeExpected(mistake);
  if (around.type(around.found) == NeslParser::COMMA && around.type(around.found - 1) == NeslParser::LPAREN) {
    expected = "an expression";
  } else if (around.type(formBegin) == NeslParser::FUNCTION && mistake.rule == NeslParser::RuleForm &&
             !around.has(NeslParser::EQUAL)) {
    expected = around.hasSignature() ? "`=`" : "`:` or `=`";
  }

  const auto span = [&](uint32_t i) { return Span{file, tokens[i].begin, tokens[i].end}; };
  const auto spelling = [&](uint32_t i) {
    if (tokens[i].type == kEndOfFile) return std::string(describeTokenType(kEndOfFile));
    return fmt::format("`{}`", lowerCase(text.substr(tokens[i].begin, tokens[i].end - tokens[i].begin)));
  };
  Diagnostic diagnostic;
  diagnostic.id = "K0101";
  diagnostic.span = span(around.found);
  diagnostic.message = fmt::format("expected {} but found {}", expected, spelling(around.found));
  diagnostic.hint = advice(mistake, around);
  if (!around.open.empty() && (mistake.fits(NeslParser::RPAREN) || mistake.fits(NeslParser::RBRACKET) ||
                               mistake.fits(NeslParser::RBRACE)))
    diagnostic.notes.push_back({span(around.open.back()), "inside this " + spelling(around.open.back())});
  return diagnostic;
}

}  // namespace kelpie
