// What to say about tokens that are none of NESL's.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "frontend/lexer.h"
#include "ir/diagnostic.h"

namespace kelpie {

/// The message about token i, or nothing where it is one of NESL's. `file` is the number of the file.
std::optional<Diagnostic> lexicalMistake(const std::vector<Token>& tokens, uint32_t i, std::string_view text,
                                         uint32_t file);

/// Whether the token is a string or comment that the text ends in.
bool endsInside(uint32_t tokenType);

}  // namespace kelpie
