#include "frontend/parser.h"

#include <NeslParser.h>

#include <algorithm>

#include "frontend/form_parser.h"
#include "frontend/form_scanner.h"
#include "frontend/lexer.h"
#include "frontend/text.h"
#include "ir/deep_stack.h"

namespace kelpie {

using nesl_grammar::NeslParser;

namespace {

/// The names after `function` or `datatype`, or in the pattern before `=`.
void addLostDefinitions(const std::vector<Token>& tokens, uint32_t begin, std::string_view text,
                        uint32_t file, std::vector<LostDefinition>& lost) {
  auto definition = [&](const Token& token) {
    return LostDefinition{lowerCase(std::string(text.substr(token.begin, token.end - token.begin))),
                          {file, token.begin, token.end}};
  };
  const Token* token = &tokens[begin];
  if (token->type == NeslParser::FUNCTION || token->type == NeslParser::DATATYPE) {
    if (token[1].type == NeslParser::NAME) lost.push_back(definition(token[1]));
    return;
  }
  std::vector<LostDefinition> names;
  for (;; ++token) {
    switch (token->type) {
      case NeslParser::NAME:
        if (token[1].type != NeslParser::LPAREN) names.push_back(definition(*token));  // else a record
        break;
      case NeslParser::LPAREN:
      case NeslParser::RPAREN:
      case NeslParser::COMMA:
        break;
      case NeslParser::EQUAL:
      case NeslParser::BAR_EQUAL:
        lost.insert(lost.end(), names.begin(), names.end());
        return;
      default:
        return;
    }
  }
}

/// In `a`, the second quote makes a character of the comma. The first mistake behind one such says so.
void explainClosingQuotes(const std::vector<Token>& tokens, std::string_view text,
                          std::vector<Diagnostic>& diagnostics) {
  constexpr std::string_view kAfterValues = ",;)]} ";
  for (size_t k = 0; k + 1 < tokens.size(); ++k) {
    const Token &first = tokens[k], &second = tokens[k + 1];
    if (first.type != NeslParser::CHAR || second.type != NeslParser::CHAR || first.end != second.begin ||
        kAfterValues.find(text[second.begin + 1]) == std::string_view::npos)
      continue;
    const auto mistake = std::find_if(diagnostics.begin(), diagnostics.end(),
                                      [&](const Diagnostic& d) { return d.span.begin >= second.begin; });
    if (mistake != diagnostics.end()) mistake->hint = "a character has one quote, in front of it: `a";
    return;
  }
}

}  // namespace

ParseResult parse(const SourceManager& sources, uint32_t file) {
  ParseResult result;
  const std::string_view text = sources.text(file);
  std::vector<Token> tokens;
  runOnDeepStack([&] {
    tokens = lex(text);
    const std::vector<ScannedForm> forms = scanForms(tokens, text, file, result.diagnostics);
    FormParser parser(tokens, text, file, result.diagnostics);
    for (const ScannedForm& scanned : forms) {
      if (result.diagnostics.size() >= kMaximalDiagnostics) break;
      std::optional<ast::Form> form;
      if (!scanned.wrong) form = parser.parse(scanned);
      if (form) {
        result.forms.push_back(std::move(*form));
      } else {
        addLostDefinitions(tokens, scanned.begin, text, file, result.lost);
      }
    }
  });
  std::stable_sort(result.diagnostics.begin(), result.diagnostics.end(),
                   [](const Diagnostic& a, const Diagnostic& b) { return a.span.begin < b.span.begin; });
  explainClosingQuotes(tokens, text, result.diagnostics);
  if (result.diagnostics.size() >= kMaximalDiagnostics) {
    result.diagnostics.resize(kMaximalDiagnostics);
    result.diagnostics.back().notes.push_back(
        {{}, "too many errors: the rest of the file was not looked at"});
  }
  return result;
}

}  // namespace kelpie
