// Random well-typed NESL programs: nested apply-to-each, conditionals, filters, recursion, every kind of
// sequence function, on ints, floats, bools, chars, pairs and sequences of any nesting. The same seed gives
// the same program.
#pragma once

#include <cstdint>
#include <string>

namespace kelpie::testing {

/// `size` bounds the depth of expressions (4 is a screenful).
std::string randomNesl(uint32_t seed, int size);

}  // namespace kelpie::testing
