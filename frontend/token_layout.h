// Where tokens stand in their lines: how a program is laid out tells what belongs together where its signs do
// not.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "frontend/lexer.h"

namespace kelpie {

/// Whether a line end stands between token i and the one before it.
bool beginsLine(const std::vector<Token>& tokens, std::string_view text, uint32_t i);

/// Number of bytes before token i in its line.
size_t columnOf(const std::vector<Token>& tokens, std::string_view text, uint32_t i);

/// Whether token i begins a line, further to the right than token `form` stands, which begins a form.
bool continuesForm(const std::vector<Token>& tokens, std::string_view text, uint32_t form, uint32_t i);

}  // namespace kelpie
