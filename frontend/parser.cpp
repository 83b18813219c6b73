#include "frontend/parser.h"

#include <algorithm>

#include "frontend/form_parser.h"
#include "frontend/form_scanner.h"
#include "frontend/lexer.h"
#include "ir/deep_stack.h"

namespace kelpie {

ParseResult parse(const SourceManager& sources, uint32_t file) {
  ParseResult result;
  runOnDeepStack([&] {
    const std::string_view text = sources.text(file);
    std::vector<Token> tokens = lex(text);
    const std::vector<ScannedForm> forms = scanForms(tokens, text, file, result.diagnostics);
    FormParser parser(tokens, text, file, result.diagnostics);
    for (const ScannedForm& scanned : forms) {
      if (result.diagnostics.size() >= kMaximalDiagnostics) break;
      if (std::optional<ast::Form> form = parser.parse(scanned)) result.forms.push_back(std::move(*form));
    }
  });
  std::stable_sort(result.diagnostics.begin(), result.diagnostics.end(),
                   [](const Diagnostic& a, const Diagnostic& b) { return a.span.begin < b.span.begin; });
  if (result.diagnostics.size() >= kMaximalDiagnostics) {
    result.diagnostics.resize(kMaximalDiagnostics);
    result.diagnostics.back().notes.push_back(
        {{}, "too many errors: the rest of the file was not looked at"});
  }
  return result;
}

}  // namespace kelpie
