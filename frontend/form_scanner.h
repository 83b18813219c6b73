// Tokens to top-level forms: where each form begins and ends.
//
// In:   the tokens of one file.
// Out:  the ranges of its forms. Those whose brackets, `let`s, signs or terminator are wrong have a mistake,
//       and the scan goes on at the next form, so that every form can have its own error.
// Then: in every other form brackets match, and each `let` that an `in` can belong to has one. In all forms
// the
//       nesting is at most kMaximalDepth, by a count that no parse can exceed.
//
// `;` both ends a form and separates the bindings of `let`, {...} and contexts. It separates when the
// innermost thing open is one of these. `$` always ends, and so do `function` and `datatype`, which begin
// forms and occur nowhere else. Where a form ends with a `let` or `{` open, its mistake is at the first word
// behind a `;` that is no binding, and the next form is looked for from there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/lexer.h"
#include "ir/diagnostic.h"

namespace kelpie {

struct ScannedForm {
  uint32_t begin = 0;  ///< index of its first token
  uint32_t end = 0;    ///< of the terminator, or of the token at which the mistake shows
  uint32_t next = 0;   ///< where the scan went on
  std::optional<Diagnostic> mistake;
  /// Set for commands other than `load`: taken as words up to the terminator (language.md 5.7).
  std::string command;
  /// Listed sequences of at least kLongSequence elements, separated at the commas of their own level; each as
  /// the indices of its brackets, inner before outer.
  struct LongSequence {
    uint32_t open, close;
  };
  std::vector<LongSequence> longSequences;
};

constexpr uint32_t kLongSequence = 64;

/// Stops early when there are kMaximalDiagnostics. `text` is the text of file number `file`. The token `load`
/// at the beginning of a form becomes LOAD. `unfinished`, if given, becomes whether the text ends inside a
/// form, string or comment that more text could end.
std::vector<ScannedForm> scanForms(std::vector<Token>& tokens, std::string_view text, uint32_t file,
                                   bool* unfinished = nullptr);

}  // namespace kelpie
