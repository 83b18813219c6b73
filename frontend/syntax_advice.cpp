#include "frontend/syntax_advice.h"

#include <fmt/format.h>

#include "frontend/foreign_words.h"
#include "frontend/text.h"

namespace kelpie {

using nesl_grammar::NeslParser;

namespace {

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

/// One letter is missing, too many or another one, or two have changed places.
bool isSlipOfLet(const std::string& word) {
  return word.size() > 1 && (editDistance(word, "let", 1) <= 1 || word == "lte" || word == "elt");
}

}  // namespace

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
  if (around.inBracesOfIf() && around.type(around.found) != NeslParser::EQUAL)
    return "the branches of an `if` are expressions, in no braces: if CONDITION then A else B";
  if (inBraces && around.word(around.open.back() + 1) == "return") return foreignNameAdvice("return");
  switch (around.type(around.found)) {
    case NeslParser::SLASH:
      if (operandMissing && (around.type(around.found + 1) == NeslParser::SLASH ||
                             around.type(around.found + 1) == NeslParser::STAR))
        return kComment;
      break;
    case NeslParser::LESS:
      if (around.type(around.found - 1) == NeslParser::EQUAL && around.touchesNext(around.found - 1))
        return "less or equal is written <=";
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
      if (around.type(around.found - 1) == NeslParser::EQUAL_EQUAL && around.touchesNext(around.found - 1))
        return "equality is written ==";
      if (around.type(around.found + 1) == NeslParser::LESS && around.touchesNext(around.found))
        return "less or equal is written <=";
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
      if (around.type(around.found - 1) == NeslParser::NAME &&
          around.type(around.found - 2) == NeslParser::NAME && around.found >= around.formBegin + 2 &&
          isSlipOfLet(around.word(around.found - 2)))
        return "did you mean `let`?";
      if (around.type(around.found - 2) == NeslParser::THEN ||
          around.type(around.found - 2) == NeslParser::ELSE)
        return fmt::format(
            "nothing is assigned in the branches of an `if`: NAME = if CONDITION then A else B; within a "
            "branch it is {} "
            "in RESULT",
            around.bindingInBody());
      if (around.type(around.found - 2) == NeslParser::AND && around.inBindingsOfLet())
        return "the bindings of a `let` are separated by `;`";
      if (inBraces && around.bindsElementBefore())
        return "what a name of an apply-to-each is bound to comes behind `in`: {BODY : X in SEQUENCE}";
      if ((around.followsCommaAndPattern() || around.followsNameOnNewLine() ||
           around.followsNameBehindValue()) &&
          around.inBindingsOfLet())
        return "the bindings of a `let` are separated by `;`";
      if (around.word(around.formBegin) == "for" || around.word(around.formBegin) == "while")
        return foreignNameAdvice(around.word(around.formBegin));
      if (const std::string binding = around.bindingInBody(); !binding.empty())
        return fmt::format("within an expression a name is bound by {} in RESULT; equality is written ==",
                           binding);
      if (!around.open.empty() && around.followsNameOnNewLine() && !inBraces)
        return "if something new begins in this line, a bracket before it is not closed; equality is written "
               "==";
      if (!around.open.empty() ||
          ((around.has(NeslParser::IF) || around.has(NeslParser::LET)) && !around.followsNameOnNewLine()))
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
      if (const std::string head = around.functionInLet(); !head.empty())
        return fmt::format("a function is defined at top level, by: function {} = ...", head);
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
      if (mistake.fits(NeslParser::ELSE) && !operandMissing &&
          around.type(around.found + 1) == NeslParser::ELSE)
        return "no `;` stands before `else`: if CONDITION then A else B";
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
      if (around.isHeadOfFunction() && around.found == around.formBegin + 2)
        return fmt::format("the parameters of a function stand in parentheses: function {}(X, Y)",
                           around.word(around.found - 1));
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
    return around.found == around.formBegin + 1
               ? "the name of the record type comes first: datatype NAME(TYPE, ...)"
               : "the parameters of a type are not listed, they are the names in it: datatype couple(a, b) "
                 ":: (a in "
                 "any; b in any)";
  const uint32_t found = around.type(around.found);
  const bool bodyIsNext = around.hasSignature() || found == NeslParser::LET || found == NeslParser::IF;
  if (around.isHeadOfFunction() && bodyIsNext && beginsExpression(found)) return kBody;
  if (around.beginsForeignDefinition()) return "a function is defined by function NAME(X) = BODY";
  if (around.onNewLine() && around.open.empty() && !operandMissing) return "every form ends with `;` or `$`";
  return "";
}

}  // namespace kelpie
