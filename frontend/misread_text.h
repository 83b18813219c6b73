// Signs that are read otherwise than they were meant, and so the text behind them: a comment that goes on to
// the `%` of the next line, a character where a string was meant.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "frontend/lexer.h"
#include "ir/diagnostic.h"

namespace kelpie {

/// A comment that begins behind a form, or where another one ended, and ends in front of text in a later
/// line.
struct MisreadComment {
  Span place;               ///< its `%`
  uint32_t begin, end;      ///< its bytes
  uint32_t mistakesBefore;  ///< a mistake from `end` up to here may come from it
};

/// The first such comment that one of the mistakes may come from, which are places in this text.
std::optional<MisreadComment> misreadComment(const std::vector<Token>& tokens, std::string_view text,
                                             uint32_t file, const std::vector<Span>& mistakes);

void explain(const MisreadComment& comment, Diagnostic& diagnostic);

/// In `a`, the second quote makes a character of the comma, and in `abc` as well. The first mistake behind
/// one such says so.
void explainClosingQuotes(const std::vector<Token>& tokens, std::string_view text,
                          std::vector<Diagnostic>& diagnostics);

}  // namespace kelpie
