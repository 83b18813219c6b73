// Part of a line of source text that fits into some columns of a terminal.
//
// In: the line, in UTF-8, and the byte of it that matters. Out: text of at most `columns` columns, which has
// that byte, with "..." for what is left out in front or behind. A tab is a blank, blanks around are left
// out; no character is cut, those of East Asian scripts take two columns.
#pragma once

#include <string>
#include <string_view>

namespace kelpie::fusion {

std::string excerpt(std::string_view line, size_t at, size_t columns);

}  // namespace kelpie::fusion
