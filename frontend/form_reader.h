// Lines, as they are typed, until they hold whole forms.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/lexer.h"

namespace kelpie {

class FormReader {
 public:
  /// Adds a line, with its line end. Whether the text so far is complete: it does not end inside a form,
  /// string or comment, or has a mistake of structure that no further line can mend.
  bool add(std::string_view line);
  bool empty() const { return text_.empty(); }
  /// The text, which is given away: the next line begins a new one.
  std::string take();

 private:
  std::string text_;
  std::vector<Token> tokens_;  ///< of the text, without the end of file
};

}  // namespace kelpie
