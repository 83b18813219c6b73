// What was probably meant by something that stands where a pattern should.
#pragma once

#include <string>
#include <string_view>

#include "frontend/ast.h"

namespace kelpie {

/// `text` is that of the expression, `before` the character in front of it. `isLambda`: it is in front of a
/// `=>`.
std::string adviceOnPattern(const ast::Exp& exp, std::string_view text, char before, bool isLambda);

}  // namespace kelpie
