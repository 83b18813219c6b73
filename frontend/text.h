// Small operations on text. NESL names are ASCII; locale plays no part.
#pragma once

#include <string>
#include <string_view>

namespace kelpie {

inline std::string lowerCase(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

/// Number of edits (insertion, removal, replacement, exchange of neighbours) between two words, up to
/// `limit`; more than that is `limit` + 1. Takes time for the letters of one word.
size_t editDistance(std::string_view a, std::string_view b, size_t limit);

}  // namespace kelpie
