// Bytes to tokens. In: one file. Out: its tokens, the last one TokenType EOF (kEndOfFile) at the end of the
// text.
//
// Lexing never fails: what is no token of NESL arrives as one of the grammar's error tokens (ILLEGAL,
// OPEN_STRING, ...) and is reported by the form scanner when it gets there.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace kelpie {

constexpr uint32_t kEndOfFile = UINT32_MAX;

struct Token {
  uint32_t type;        ///< a token type of the generated NeslParser, or kEndOfFile
  uint32_t begin, end;  ///< bytes
};

std::vector<Token> lex(std::string_view text);

/// The token type as a message names it: "`then`", "a number", "a name".
std::string_view describeTokenType(uint32_t type);

}  // namespace kelpie
