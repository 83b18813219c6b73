// Making a failing NESL program small, so that it can be read and kept as a test.
#pragma once

#include <functional>
#include <string>

namespace kelpie::testing {

/// A program for which `fails` still holds and from which no bracketed group can be taken away or be replaced
/// by one of its parts, or a small constant, so that it would. Needs no grammar: what does not compile does
/// not fail.
std::string shrink(std::string program, const std::function<bool(const std::string&)>& fails);

}  // namespace kelpie::testing
