#include "frontend/surroundings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "frontend/foreign_words.h"
#include "frontend/text.h"
#include "frontend/token_layout.h"

namespace kelpie {

using nesl_grammar::NeslParser;

uint32_t Surroundings::type(uint32_t i) const {
  return i >= formBegin && i < tokens.size() ? tokens[i].type : kEndOfFile;
}

bool Surroundings::has(uint32_t wanted) const {
  for (uint32_t i = formBegin; i < found; ++i)
    if (tokens[i].type == wanted) return true;
  return false;
}

bool Surroundings::hasBehindOpen(uint32_t wanted) const {
  for (uint32_t i = open.empty() ? found : open.back(); i < found; ++i)
    if (tokens[i].type == wanted) return true;
  return false;
}

bool Surroundings::inBindingsOfLet() const {
  int closed = 0;  // brackets, seen from their ends
  for (uint32_t i = found; i-- > formBegin;) {
    if (isClosing(tokens[i].type)) ++closed;
    if (isOpening(tokens[i].type) && closed-- == 0) return false;
    if (closed == 0 && tokens[i].type == NeslParser::IN) return false;
    if (closed == 0 && tokens[i].type == NeslParser::LET) return true;
  }
  return false;
}

bool Surroundings::hasSignature() const {
  int depth = 0;
  for (uint32_t i = formBegin; i < found; ++i) {
    depth += isOpening(tokens[i].type) ? 1 : isClosing(tokens[i].type) ? -1 : 0;
    if (depth == 0 && (tokens[i].type == NeslParser::COLON || tokens[i].type == NeslParser::ARROW))
      return true;
  }
  return false;
}

bool Surroundings::isHeadOfFunction() const {
  return type(formBegin) == NeslParser::FUNCTION && !has(NeslParser::EQUAL) && open.empty();
}

bool Surroundings::bindingsHaveComma() const {
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

uint32_t Surroundings::beginOfPattern(uint32_t end) const {
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

bool Surroundings::bindsElementBefore() const {
  uint32_t begin = beginOfPattern(found);
  if (begin == found) return false;
  while (type(begin - 1) == NeslParser::COMMA && beginOfPattern(begin - 1) != begin - 1)
    begin = beginOfPattern(begin - 1);
  return type(begin - 1) == NeslParser::COLON ||
         (type(begin - 1) == NeslParser::SEMICOLON && hasBehindOpen(NeslParser::IN));
}

std::string Surroundings::headWithoutParentheses() const {
  if (type(formBegin) != NeslParser::FUNCTION || found != formBegin + 3) return "";
  std::vector<std::string_view> names;
  for (uint32_t i = formBegin + 1; type(i) == NeslParser::NAME; ++i)
    names.push_back(text.substr(tokens[i].begin, tokens[i].end - tokens[i].begin));
  if (names.size() < 3) return "";
  return fmt::format("{}({})", names[0], fmt::join(names.begin() + 1, names.end(), ", "));
}

bool Surroundings::isWord(uint32_t i, std::string_view word) const {
  return type(i) == NeslParser::NAME && text.substr(tokens[i].begin, tokens[i].end - tokens[i].begin) == word;
}

bool Surroundings::isOperatorAlone(uint32_t i) const {
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

bool Surroundings::hasWord(std::string_view word) const {
  for (uint32_t i = formBegin; i < found; ++i)
    if (isWord(i, word)) return true;
  return false;
}

bool Surroundings::changesName() const {
  const uint32_t before = type(found - 1);
  return (before == NeslParser::PLUS || before == NeslParser::MINUS || before == NeslParser::STAR ||
          before == NeslParser::SLASH) &&
         type(found - 2) == NeslParser::NAME;
}

bool Surroundings::followsNameOnNewLine() const {
  return found > formBegin && type(found - 1) == NeslParser::NAME && beginsLine(found - 1);
}

bool Surroundings::followsNameBehindValue() const {
  if (found < formBegin + 2 || type(found - 1) != NeslParser::NAME) return false;
  const uint32_t before = type(found - 2);
  return isClosing(before) || before == NeslParser::NAME || before == NeslParser::INT ||
         before == NeslParser::FLOAT || before == NeslParser::STRING || before == NeslParser::CHAR;
}

bool Surroundings::beginsLine(uint32_t i) const {
  if (i == formBegin) return false;
  const uint32_t end = tokens[i - 1].end;
  return text.substr(end, tokens[i].begin - end).find('\n') != std::string_view::npos;
}

std::string Surroundings::word(uint32_t i) const {
  return type(i) == NeslParser::NAME ? lowerCase(source(i, i)) : "";
}

std::string_view Surroundings::source(uint32_t first, uint32_t last) const {
  return text.substr(tokens[first].begin, tokens[last].end - tokens[first].begin);
}

bool Surroundings::beginsForeignDefinition() const {
  return type(formBegin + 1) == NeslParser::NAME && definesFunctions(word(formBegin));
}

bool Surroundings::inBracesOfIf() const {
  if (open.empty() || type(open.back()) != NeslParser::LBRACE) return false;
  int closed = 0;
  for (uint32_t i = open.back(); i-- > formBegin;) {
    const uint32_t token = tokens[i].type;
    if (isClosing(token)) ++closed;
    if (isOpening(token) && closed-- == 0) return false;
    if (closed > 0) continue;
    // Behind `then` and `else` an apply-to-each may stand.
    if (token == NeslParser::THEN || token == NeslParser::ELSE)
      return i + 1 == open.back() && !hasBehindOpen(NeslParser::IN) && !hasBehindOpen(NeslParser::COLON);
    if (token == NeslParser::IF) return true;
    if (token == NeslParser::SEMICOLON || token == NeslParser::EQUAL || token == NeslParser::LET)
      return false;
  }
  return false;
}

std::string Surroundings::bindingInBody() const {
  if (type(found) != NeslParser::EQUAL) return "";
  uint32_t begin = beginOfPattern(found);
  while (begin != found && type(begin - 1) == NeslParser::COMMA && beginOfPattern(begin - 1) != begin - 1)
    begin = beginOfPattern(begin - 1);
  if (begin == found || begin <= formBegin) return "";
  const uint32_t before = type(begin - 1);
  const bool ofBody = before == NeslParser::EQUAL && open.empty() && type(formBegin) == NeslParser::FUNCTION;
  const bool ofBrackets = before == NeslParser::LPAREN || before == NeslParser::LBRACE;
  if (!ofBody && !ofBrackets && before != NeslParser::THEN && before != NeslParser::ELSE) return "";
  // The value as it is written, if it is short.
  constexpr size_t kShort = 30;
  uint32_t last = found;
  for (int depth = 0; last + 1 < tokens.size(); ++last) {
    const uint32_t next = type(last + 1);
    if (isOpening(next)) ++depth;
    if (isClosing(next) && depth-- == 0) break;
    if (next == NeslParser::SEMICOLON || next == NeslParser::DOLLAR || next == NeslParser::ELSE ||
        next == kEndOfFile)
      break;
  }
  const std::string_view value = last > found ? source(found + 1, last) : "";
  const bool shown =
      !value.empty() && value.size() <= kShort && value.find_first_of("\n%=:|") == std::string_view::npos;
  return fmt::format("let {} = {}", source(begin, found - 1), shown ? value : "VALUE");
}

std::string Surroundings::functionInLet() const {
  if (!inBindingsOfLet() || type(found) != NeslParser::NAME) return "";
  uint32_t first = found;
  while (type(first - 1) == NeslParser::NAME) --first;
  const bool isRec = word(first) == "rec";
  if (isRec) ++first;
  if (found < first + (isRec ? 1 : 2)) return "";
  std::string parameters;
  for (uint32_t i = first + 1; type(i) == NeslParser::NAME; ++i)
    parameters += (parameters.empty() ? "" : ", ") + word(i);
  return fmt::format("{}({})", word(first), parameters);
}

}  // namespace kelpie
