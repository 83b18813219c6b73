// Names and constants of the scalar types in C, and lines of C, for the code generators.
#pragma once

#include <string>
#include <string_view>

#include "ir/scalar.h"

namespace kelpie::codegen {

std::string_view cTypeName(ScalarType t);
/// A constant as C text; not necessarily atomic (negative numbers).
std::string literalText(const Scalar& value);
/// The operator of C between two operands; empty: there is none.
std::string_view infix(ScalarOp op, bool isFloatType);
/// The function that an operation without an operator calls (expression_emitter.h lists them).
std::string_view functionName(ScalarOp op);
/// Lines, each with its end, `columns` further to the right.
std::string indented(const std::string& lines, int columns);

}  // namespace kelpie::codegen
