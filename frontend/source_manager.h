// The source files of one compilation, and how diagnostics about them are shown.
//
// A file is its name and its bytes; spans (ir/source.h) refer to it by a number from 1. Lines end at line
// feeds. Columns count characters from 1: a UTF-8 sequence is one character, any other byte too.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/source.h"

namespace kelpie {

/// Length of the character that begins at text[at]: a well-formed UTF-8 sequence, or one byte.
size_t characterLength(std::string_view text, size_t at);

struct Location {
  uint32_t line = 0, column = 0;  ///< from 1
};

class SourceManager {
 public:
  /// Registers a text under a name; returns its number. At most 4 GiB - 1 bytes. A part of a longer text says
  /// which line of that it begins with.
  uint32_t add(std::string name, std::string text, uint32_t firstLine = 1);
  /// Reads a file ("-": standard input, named <stdin>). On failure returns nothing and says why in `problem`.
  std::optional<uint32_t> load(const std::string& path, std::string& problem);

  const std::string& name(uint32_t file) const { return get(file).name; }
  std::string_view text(uint32_t file) const { return get(file).text; }
  std::string_view text(Span span) const;

  Location locate(uint32_t file, uint32_t offset) const;
  /// "file:line:column", or "" for an unknown span.
  std::string describe(Span span) const;

  /// The whole message, each line ended:
  ///   file:line:column: error: message [K0101]
  ///     12 | source line
  ///        |    ^~~~~
  /// then the notes likewise and the hint.
  std::string render(const Diagnostic& diagnostic, bool colour = false) const;

 private:
  struct File {
    std::string name, text;
    uint32_t firstLine = 1;
    std::vector<uint32_t> lines;  ///< offset of the first byte of each line
  };
  const File& get(uint32_t file) const;
  void renderExcerpt(std::string& out, Span span, const char* colour) const;

  std::deque<File> files_;  ///< a deque: texts stay where they are
};

}  // namespace kelpie
