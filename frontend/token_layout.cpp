#include "frontend/token_layout.h"

namespace kelpie {

bool beginsLine(const std::vector<Token>& tokens, std::string_view text, uint32_t i) {
  if (i == 0) return true;
  const uint32_t end = tokens[i - 1].end;
  return text.substr(end, tokens[i].begin - end).find('\n') != std::string_view::npos;
}

size_t columnOf(const std::vector<Token>& tokens, std::string_view text, uint32_t i) {
  const size_t line = text.substr(0, tokens[i].begin).rfind('\n');
  return line == std::string_view::npos ? tokens[i].begin : tokens[i].begin - line - 1;
}

bool continuesForm(const std::vector<Token>& tokens, std::string_view text, uint32_t form, uint32_t i) {
  return tokens[i].type != kEndOfFile && i > 0 && beginsLine(tokens, text, i) &&
         columnOf(tokens, text, i) > columnOf(tokens, text, form);
}

}  // namespace kelpie
