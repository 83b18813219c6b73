// Diagnostics as values. Rendering with source lines and carets is the SourceManager's (frontend/).
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "ir/source.h"

namespace kelpie {

enum class Severity : uint8_t { Error, Warning, Note };

/// One message about the program. `id` is listed in docs/errors.md ("K0101") and explained there.
struct Diagnostic {
  Severity severity = Severity::Error;
  std::string id;
  Span span;
  std::string message;
  std::string hint;  ///< what to do about it; may be empty
  struct Note {
    Span span;
    std::string message;
  };
  std::vector<Note> notes;
  bool followsAnother = false;  ///< it is about the use of a definition that had a mistake
  bool shown = true;            ///< not where all it says has been told before; it counts in any case
};

/// A compiler bug: broken invariants only, never a user's mistake. The driver prints it as such.
struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

/// A run-time error of the NESL program (language.md 8.2).
struct RuntimeError {
  Span span;
  std::string message;
};

}  // namespace kelpie
