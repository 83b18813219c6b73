// Lines from a terminal, with editing, history and completion (libedit), or from any other standard input.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kelpie::driver {

class LineEditor {
 public:
  virtual ~LineEditor() = default;

  enum class Status { Line, End, Interrupted, Unreadable };
  /// The next line, with its line end if it has one. `Interrupted`: Ctrl-C, what was typed is gone.
  /// `Unreadable`: `errno` says why.
  virtual Status read(const std::string& prompt, std::string& line) = 0;
  virtual bool interactive() const = 0;
};

/// What may stand instead of the last word of the text before the cursor: the word's beginning and the whole
/// words.
struct Completions {
  size_t wordBegin = 0;
  std::vector<std::string> words;
};
using Completer = std::function<Completions(std::string_view textBeforeCursor)>;

/// For a terminal the history is kept in `historyFile` (empty: not kept). Ctrl-C is seen while a line is read
/// if driver/interrupt.h has been told to catch it.
std::unique_ptr<LineEditor> makeLineEditor(std::string historyFile, Completer completer);

}  // namespace kelpie::driver
