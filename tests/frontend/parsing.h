// Shared by the tests of the parser: text in, text of the trees and diagnostics out.
#pragma once

#include <string>

#include "frontend/ast_print.h"
#include "frontend/parser.h"

namespace kelpie {

struct Parsed {
  std::string forms;   ///< each on a line
  std::string errors;  ///< "line:column: message [id]", each on a line
  std::string hints;
};

inline Parsed parseText(const std::string& text) {
  SourceManager sources;
  const uint32_t file = sources.add("test.nesl", text);
  const ParseResult result = parse(sources, file);
  Parsed parsed;
  for (const ast::Form& form : result.forms) parsed.forms += toString(form) + "\n";
  for (const Diagnostic& diagnostic : result.diagnostics) {
    const Location location = sources.locate(file, diagnostic.span.begin);
    parsed.errors += std::to_string(location.line) + ":" + std::to_string(location.column) + ": " +
                     diagnostic.message + " [" + diagnostic.id + "]\n";
    parsed.hints += diagnostic.hint;
  }
  return parsed;
}

/// The one form of a correct text, printed with all its parentheses.
inline std::string reading(const std::string& text) {
  const Parsed parsed = parseText(text + ";");
  return parsed.errors.empty() ? parsed.forms.substr(0, parsed.forms.size() - 2) : parsed.errors;
}

}  // namespace kelpie
