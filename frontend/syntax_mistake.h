// What to say about a token that does not fit.
#pragma once

#include <misc/IntervalSet.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "frontend/lexer.h"
#include "ir/diagnostic.h"

namespace kelpie {

/// The first mistake that the generated parser met in a form.
struct SyntaxMistake {
  size_t position;                     ///< first byte of the token that does not fit
  antlr4::misc::IntervalSet expected;  ///< types of the tokens that would have
  size_t rule;                         ///< the grammar rule it happened in
  bool fits(size_t type) const { return expected.contains(type); }
};

/// The message, with what was expected, the bracket it is about and advice where a common slip explains it.
/// The form begins at token `formBegin`.
Diagnostic explain(const SyntaxMistake& mistake, const std::vector<Token>& tokens, uint32_t formBegin,
                   std::string_view text, uint32_t file);

}  // namespace kelpie
