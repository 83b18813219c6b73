#include "fusion/source_excerpt.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace kelpie::fusion {
namespace {

struct Character {
  size_t begin, bytes, columns;
};

size_t columnsOf(uint32_t code) {
  struct Range {
    uint32_t first, last;
  };
  constexpr std::array kNone{Range{0x300, 0x36f}, Range{0x200b, 0x200f}, Range{0xfe00, 0xfe0f}};
  constexpr std::array kTwo{Range{0x1100, 0x115f}, Range{0x2e80, 0xa4cf},   Range{0xac00, 0xd7a3},
                            Range{0xf900, 0xfaff}, Range{0xfe30, 0xfe6f},   Range{0xff00, 0xff60},
                            Range{0xffe0, 0xffe6}, Range{0x1f300, 0x1faff}, Range{0x20000, 0x3fffd}};
  const auto has = [code](const Range& r) { return code >= r.first && code <= r.last; };
  if (std::any_of(kNone.begin(), kNone.end(), has)) return 0;
  return std::any_of(kTwo.begin(), kTwo.end(), has) ? 2 : 1;
}

/// The character that begins there; a byte that begins none is one of its own.
Character characterAt(std::string_view text, size_t begin) {
  const auto first = static_cast<uint8_t>(text[begin]);
  const size_t bytes = std::max(1, std::countl_one(first));
  if (bytes == 1 || bytes > 4 || begin + bytes > text.size()) return {begin, 1, 1};
  uint32_t code = first & (0x7f >> bytes);
  for (size_t k = 1; k < bytes; ++k) {
    const auto next = static_cast<uint8_t>(text[begin + k]);
    if ((next & 0xc0) != 0x80) return {begin, 1, 1};
    code = (code << 6) | (next & 0x3f);
  }
  return {begin, bytes, columnsOf(code)};
}

}  // namespace

std::string excerpt(std::string_view line, size_t at, size_t columns) {
  constexpr std::string_view kDots = "...", kBlanks = " \t\r\n";
  const size_t begin = line.find_first_not_of(kBlanks);
  if (begin == line.npos) return "";
  at = at > begin ? at - begin : 0;
  line = line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
  std::vector<Character> characters;
  size_t all = 0, before = 0;  // columns
  for (size_t k = 0; k < line.size(); k += characters.back().bytes) {
    characters.push_back(characterAt(line, k));
    if (k < at) before += characters.back().columns;
    all += characters.back().columns;
  }
  // The place is in the first half, or what is left fits.
  size_t skipped = 0, next = 0;
  const bool front = all > columns && before > columns / 2;
  const size_t room = columns - (front ? kDots.size() : 0);
  for (; front && before > skipped + room / 4 && all - skipped > room; ++next)
    skipped += characters[next].columns;
  const bool back = all - skipped > room;
  size_t left = room - (back ? kDots.size() : 0);
  std::string result(front ? kDots : "");
  for (; next < characters.size() && characters[next].columns <= left; ++next) {
    const Character& c = characters[next];
    result += line[c.begin] == '\t' ? " " : line.substr(c.begin, c.bytes);
    left -= c.columns;
  }
  if (back) result += kDots;
  return result;
}

}  // namespace kelpie::fusion
