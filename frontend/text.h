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

}  // namespace kelpie
