// Source positions, carried by every IR down to the kernel so that a run-time error names a line of NESL.
#pragma once

#include <cstdint>

namespace kelpie {

/// A range of bytes of one file known to the SourceManager (frontend/source_manager.h).
/// `file` 0 means "nowhere" (code made by the compiler).
struct Span {
  uint32_t file = 0;
  uint32_t begin = 0;  ///< byte offset of the first byte
  uint32_t end = 0;    ///< byte offset one past the last byte
  bool known() const { return file != 0; }
  friend bool operator==(const Span&, const Span&) = default;
};

}  // namespace kelpie
