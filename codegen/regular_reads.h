// Which way the elements of a regular space lie beside each other in the arrays that they read.
//
// Element (s, p), position p of segment s, that reads m[row(p) + s] finds what (s, p + 1) reads far away and
// what (s + 1, p) reads beside its own: a transposition, or a column of a matrix. Threads that are neighbours
// by segments, or a few of them for each segment, load such arrays side by side.
//
//     {{m[i][j] : i in [0:n]} : j in [0:n]}   MAP regular(n, n, n * n) { i, s, p => m[m_offsets[p] + s] }
//     step of m_offsets[p] + s: by segment One, by position Many
#pragma once

#include <optional>

#include "codegen/kernel_analysis.h"

namespace kelpie::codegen {

/// By how much an integer differs between neighbours, of most of which: quotients are the same, remainders
/// one more, conditions of checks true.
enum class Step : uint8_t { None, One, Many };
/// `e` is part of a thunk of a segmented space. `param`: neighbours by segments (1), or by positions (2).
Step stepOf(lcu::ExprRef e, uint32_t param);

/// How thunks over a regular space read arrays: whether there are loads of each kind.
struct RegularReads {
  bool across = false;   ///< side by side by neighbouring segments, far apart by neighbouring positions
  bool along = false;    ///< the other way round
  bool sliding = false;  ///< side by side by either
  bool shared = false;   ///< by both, but most neighbours of a kind read the same
  bool other = false;    ///< in no order

  /// Nothing but by segment alone, or by position alone.
  bool apart() const { return !across && !along && !sliding && !shared && !other; }
  /// Better read by neighbouring segments.
  bool bySegments() const { return !along && (across || (sliding && !other)); }
};
RegularReads regularReads(const std::vector<lcu::ExprRef>& thunks);
bool readsAcross(lcu::ExprRef load);
/// Whether a map goes by segments, if nothing but maps is beside it.
bool readsTransposed(const lcu::Soac& map);

/// Whether a kernel does nothing but fold the segments of a regular space, in any order and without
/// recursion, or map their elements, without loops.
bool foldsRegular(const lcu::Kernel& kernel, const KernelInfo& info);
bool mapsRegular(const lcu::Kernel& kernel, const KernelInfo& info);
/// How its elements read.
RegularReads regularReads(const lcu::Kernel& kernel, const KernelInfo& info);

/// Of folds that go by segments, if these are numbered by two indices: s = outer * n + place, and thunks look
/// at s / n and s % n alone, as in a product of matrices. What is read by place and position serves segments
/// of several outer indices.
struct TwoIndices {
  lcu::ExprRef inner;         ///< n: a Constant, or the value or size that a parameter tells
  lcu::ExprRef outer, place;  ///< s / n and s % n
};
std::optional<TwoIndices> twoIndices(const lcu::Kernel& kernel, const KernelInfo& info);

/// What a fold of two indices computes from loads, of one of the indices, or none, and of the position: a row
/// of a matrix at the position, or a column. A tile of segments needs it once for each outer index and
/// position, or for each place and position.
struct ProductValue {
  lcu::ExprRef value;
  bool ofOuter;     ///< else of the place
  bool byPosition;  ///< what neighbouring positions load lies side by side, rather than neighbouring indices
};

/// A fold of two indices that loads by the outer one and by the place, but by both only together with what is
/// in registers: products of matrices, in whichever order these lie in memory, distances of all pairs.
struct Product {
  TwoIndices indices;
  std::vector<ProductValue> values;  ///< all that is loaded
};
std::optional<Product> productOf(const lcu::Kernel& kernel, const KernelInfo& info,
                                 const lcu::Program& program);

}  // namespace kelpie::codegen
