// λcu text (ir/lcu_print.cpp, grammar/Lcu.g4) to a λcu program: the inverse of lcu::toString.
//
// In: text. Out: the program, or what is wrong with the text and where. Names must be declared in the
// function that uses them (or be globals) and expressions must be typed; everything else is the verifier's
// (lcu::verify). Printing a program that was read gives the text that printing gave before.
//
// Limit: expressions and blocks nest as deep as the C++ stack allows, some thousand levels. (The printer
// nests an expression a few levels only; blocks nest as deep as the program does.)
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/diagnostic.h"
#include "ir/lcu.h"

namespace kelpie::lcu {

using ReadResult = std::variant<Program, std::vector<Diagnostic>>;

/// `file` is the number that the spans of diagnostics carry. All syntax errors are found, and the first other
/// one.
ReadResult readProgram(std::string_view text, uint32_t file = 1);

/// "3:14: message", for callers without a SourceManager.
std::string describe(const Diagnostic& diagnostic, std::string_view text);

}  // namespace kelpie::lcu
