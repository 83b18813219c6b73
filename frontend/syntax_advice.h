// What was probably meant where a token does not fit.
#pragma once

#include <string>

#include "frontend/surroundings.h"
#include "frontend/syntax_mistake.h"

namespace kelpie {

/// Advice for the slips that explain most mistakes; empty where none does.
std::string advice(const SyntaxMistake& mistake, const Surroundings& around);

}  // namespace kelpie
