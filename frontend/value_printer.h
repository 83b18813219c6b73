// Values as results of top-level forms show them (language.md 7.1).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ir/data.h"
#include "ir/value_type.h"

namespace kelpie {

/// Writes the value in `row` (columns of length 1) to `sink`, in pieces. At most `printLength` elements of
/// every sequence are shown and looked at; strings are never cut.
void printValue(const ValueType& type, const Columns& row, int64_t printLength,
                const std::function<void(std::string_view)>& sink);
std::string printValue(const ValueType& type, const Columns& row, int64_t printLength = 100);

/// A float with at most 15 significant digits; a 32-bit one with as many as tell it from its neighbours.
std::string printFloat(const Scalar& value);

}  // namespace kelpie
