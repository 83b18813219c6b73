// NESL text to syntax trees.
//
// In:   one file of the SourceManager: any bytes.
// Out:  its top-level forms in order, without those that have a mistake, and a diagnostic for each of these.
// Then: names are in lower case, `t` and `f` are constants and bound nowhere, time(e) is ast::Time, a named
//       argument stands only in the argument list of a call, and no tree is deeper than kMaximalDepth.
//
// Parsing goes in steps: bytes to tokens (lexer.h), tokens to forms (form_scanner.h), forms to trees
// (form_parser.h with ast_builder.h). Text after the command `exit` is not looked at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/ast.h"
#include "frontend/source_manager.h"
#include "ir/diagnostic.h"

namespace kelpie {

/// A name that a form with a mistake was to define, as far as its beginning tells.
struct LostDefinition {
  std::string name;
  Span span;
  bool told = false;    ///< the mistake tells enough: uses of the name have none of their own
  bool record = false;  ///< if it is no record type, which is taken apart
};

struct ParseResult {
  std::vector<ast::Form> forms;
  std::vector<Diagnostic> diagnostics;
  std::vector<LostDefinition> lost;  ///< in the order of the text
  bool ok() const { return diagnostics.empty(); }
};

/// Expressions, patterns and types that nest deeper are refused, so that later passes may recurse.
constexpr uint32_t kMaximalDepth = 10'000;

/// Parsing stops after so many diagnostics, saying so: a file that is no NESL at all should not flood the
/// reader.
constexpr size_t kMaximalDiagnostics = 100;

ParseResult parse(const SourceManager& sources, uint32_t file);

}  // namespace kelpie
