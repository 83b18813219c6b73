#include "frontend/syntax_mistake.h"

#include <NeslParser.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "frontend/surroundings.h"
#include "frontend/syntax_advice.h"
#include "frontend/text.h"

namespace kelpie {

using nesl_grammar::NeslParser;

namespace {

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
