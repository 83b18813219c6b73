// The order in which the `cpu` and `interp` targets combine values: one definition, included by the evaluator
// and embedded in generated code, so that both give the same bits for floats on any number of threads.
//
// Blocks. The elements of a kernel's anchor space are cut into blocks that are processed one by one:
//   flat space       block b holds elements b*kBlock .. (b+1)*kBlock - 1
//   segmented space  cuts follow the merge path over elements and segment ends: block b starts where b*kBlock
//                    elements and ends have been passed, moved back to the start of the piece it falls into;
//                    so one giant segment and ten million empty ones are both cut evenly.
// Pieces. A segment is cut into pieces of kPiece elements counted from its own start (the last may be
// shorter);
//   equal segments give equal sums wherever they are. For flat reductions and scans the pieces are the
//   blocks.
// Folds, by component of the operator:
//   a piece             of fewer than kSerial elements, or under an operator that has to be applied to all
//                       components at once: from left to right, starting with the identity. Otherwise kLanes
//                       lanes: lane l folds elements l, l + kLanes, ... from the identity, then the lanes are
//                       folded in order, from the identity. (Components are folded in lanes if they are
//                       combined by one commutative scalar operation, over all elements or over those that
//                       equal the fold of another component: codegen/kernel_analysis.h, laneFolds.)
//   a segment or array  its pieces in order, starting with the identity.
//   scans               an element's value starts from the fold of the pieces before its own, then goes
//                       element by element. Backward scans take the same pieces from the last to the first;
//                       in a piece that is not folded in lanes elements are folded from the last to the
//                       first.
#pragma once

#include <stdint.h>

namespace kelpie_order {

constexpr int64_t kBlock = 2048;
constexpr int64_t kPiece = 1024;
constexpr int64_t kLanes = 16;
constexpr int64_t kSerial = 64;
/// No block has more elements than this.
constexpr int64_t kMaxBlock = kBlock + kPiece;

/// Start of a block of a segmented space: element `element`, in segment `segment`.
struct Cut {
  int64_t segment, element;
};

inline int64_t flatBlocks(int64_t n) { return (n + kBlock - 1) / kBlock; }
inline int64_t segmentedBlocks(int64_t n, int64_t m) { return (n + m + kBlock - 1) / kBlock; }

/// `start(s)` is the first element of segment s, for s in 0..m.
template <typename Start>
inline Cut cutBlock(int64_t block, int64_t n, int64_t m, const Start& start) {
  const int64_t passed = block * kBlock;
  if (passed >= n + m) return {m, n};
  // The number of segment ends among the first `passed` places of the path: the end of segment s has
  // start(s + 1) + s places before it.
  int64_t low = 0, high = m;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (start(middle + 1) + middle < passed) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == m) return {m, n};
  const int64_t first = start(low);
  const int64_t element = passed - low;
  return {low, first + (element - first) / kPiece * kPiece};
}

/// Where the total of the piece that starts at element `element` is kept, for segments of several pieces. Two
/// such pieces that start within kPiece elements are the last of one segment and the first of another.
inline int64_t pieceSlot(int64_t element, bool firstOfSegment) {
  return element / kPiece * 2 + (firstOfSegment ? 1 : 0);
}
inline int64_t pieceSlots(int64_t n) { return n / kPiece * 2 + 2; }

}  // namespace kelpie_order
