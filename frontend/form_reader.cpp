#include "frontend/form_reader.h"

#include <NeslParser.h>

#include <algorithm>
#include <utility>

#include "frontend/form_scanner.h"

namespace kelpie {

using nesl_grammar::NeslParser;

bool FormReader::add(std::string_view line) {
  text_ += line;
  // Only strings and comments go on in the next line: what stands before is not lexed again.
  size_t begin = text_.size() - line.size();
  if (!tokens_.empty()) {
    const Token& last = tokens_.back();
    const bool string = last.type == NeslParser::OPEN_STRING;
    if (string || last.type == NeslParser::OPEN_COMMENT) {
      if (line.find(string ? '"' : '%') == std::string_view::npos) return false;
      begin = last.begin;
      tokens_.pop_back();
    }
  }
  for (Token token : lex(std::string_view(text_).substr(begin))) {
    token.begin += static_cast<uint32_t>(begin);
    token.end += static_cast<uint32_t>(begin);
    tokens_.push_back(token);
  }
  bool unfinished = false;
  const std::vector<ScannedForm> forms = scanForms(tokens_, text_, 0, &unfinished);
  tokens_.pop_back();  // the end of file
  const auto mistakes = std::count_if(forms.begin(), forms.end(),
                                      [](const ScannedForm& form) { return form.mistake.has_value(); });
  return !unfinished || mistakes > 1;  // that the end is missing is a mistake, too
}

std::string FormReader::take() {
  tokens_.clear();
  return std::exchange(text_, "");
}

}  // namespace kelpie
