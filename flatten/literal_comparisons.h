// Comparisons with short literals inside of apply-to-eaches become scalar expressions. Core -> Core.
//
//   In:  a verified program.
//   Out: an equivalent program, in which `eql(word, "let")` is, where it is evaluated for several instances,
//
//   let n = #word; c = n == 3
//   in if c then (let d = word[0] == `l in if d then word[1] == `e and word[2] == `t else F) else F
//
// The library's comparison is an apply-to-each over both sequences: for several instances a space of
// elements, and their offsets, for each comparison. A chain of conditionals that looks up one of fifty words
// then filters the instances that go on, and their text, fifty times. As a scalar expression the chain is one
// map. (The first element has a test of its own, as it tells most others apart.) On the host, where elements
// would have to be fetched one after the other, the comparison stays a kernel.
#pragma once

#include "ir/core.h"

namespace kelpie::flatten {

/// Literals of that many scalars, at most.
constexpr int64_t kLongestComparedLiteral = 16;

core::Program compareWithLiterals(core::Program program);

}  // namespace kelpie::flatten
