// Comparisons with short literals inside of apply-to-eaches become scalar expressions. Core -> Core.
//
//   In:  a verified program.
//   Out: an equivalent program, in which `eql(v, [1, 2, 3])` and `eql(word, "let")` are, where they are
//        evaluated for several instances,
//
//   let n = #v; c = n == 3
//   in if c then (let d = v[0] == 1 in if d then v[1] == 2 and v[2] == 3 else F) else F
//
//   let n = #word; c = n == 3;
//       key = if c then (code(word[0]) * 256 + code(word[1])) * 256 + code(word[2]) else -1
//   in key == 7103860
//
// (of longer text several keys, of seven characters each; where few literals have that length, the second one
// is put together only if the first one fits). The key is the same for all literals of one length, so what
// looks up one of fifty words loads what is looked up once and compares numbers. With a conditional for each
// character, ten words of 16 characters took NVRTC 6 s, twenty 29: as every comparison loads the characters
// in a branch of its own, and the compiler looks for what these loads have in common.
//
// The library's comparison is an apply-to-each over both sequences: for several instances a space of
// elements, and their offsets, for each comparison. A chain of conditionals that looks up one of fifty words
// then filters the instances that go on, and their text, fifty times. As a scalar expression the chain is one
// map. (The first element has a test of its own, as it tells most others apart.) On the host, where elements
// would have to be fetched one after the other, the comparison stays a kernel.
#pragma once

#include "ir/core.h"

namespace kelpie::flatten {

/// Literals of that many scalars, at most; of characters more.
constexpr int64_t kLongestComparedLiteral = 16, kLongestComparedText = 64;

core::Program compareWithLiterals(core::Program program);

}  // namespace kelpie::flatten
