// A kernel -> kernels that each run over their tiles in one way.
//
// Scans go from the first tile to the last, or from the last to the first: a forward and a backward scan
// cannot share a pass. Filters, partitions, epilogues and ordered reductions go forward; maps, permutes and
// commutative reductions go with either. Reductions of segments beside scans of the same elements are folded
// by these (segment_ends.cuh): sums and scans of 2^27 float32 took 0.69 ms in two passes for segments of 8 on
// an H100 and take 0.57 in one, for 1024 0.60 and 0.43, for 2^20 0.58 and 0.44. Beside filters they have a
// pass of their own (segment_ranges.cuh), which reads elements again: 0.62 ms for segments of 8, 0.69 in one
// pass, for 1024 0.49 and 0.50. Those that fold what scans make, or carry more than tiles had better, share
// one pass by ranges with these (range_scans.h). Where ranges do not suit, what scans make is stored in
// between: tiles would wait for lower ones twice. On an H200, sums of 2^27 running sums of float32 took 0.73
// ms as such tiles for segments of 8 and 0.53 in two passes, for 1024 0.61 and 0.44. By ranges the greatest
// of 10^8 running sums takes 0.28 ms for segments of 8, where two passes took 0.40, for 1000 0.17 and 0.34,
// for 10^6 0.22 and 0.32; of float64 for 100 0.52 and 0.64, for 1000 0.32 and 0.61.
// Maps that loop have a pass of their own, where most of what they make is stored anyway: it has room for
// more threads, which need not wait for each other, and the pass that reads it has longer tiles. On an H200
// tones of blocks of samples took 1.74 ms in one pass and take 0.50 in two, numbers of digits and their
// offsets 0.78 and 0.52, numbers reversed and added 19.2 and 15.3, Collatz sequences 14.3 and 12.3, searches
// of intervals 4.0 and 3.7; 500,000 words, whose loops are short, 22 and 35 us. Maps whose neighbouring
// segments read side by side have a pass of their own, too (transposed_tile.cuh): beside folds or scans each
// of their loads would fetch a piece of memory for itself. Short maps that do not leave the kernel are
// computed again in each pass that reads them.
//
// In:  a well-formed kernel. Out: kernels to run one after the other; what a later one reads is returned by
// the earlier one. Invariant: each has one direction (`runsBackward`), no pass folds what it scans, and
// together they return what the kernel does.
#pragma once

#include <unordered_set>
#include <vector>

#include "ir/lcu.h"

namespace kelpie::codegen::cuda {

struct KernelPart {
  lcu::Kernel kernel;
  std::vector<uint32_t> bindings;  ///< their numbers in the whole kernel; short maps may be in several parts
  std::unordered_set<lcu::VarId> placesOfSpace = {};  ///< as in CudaPass
};
std::vector<KernelPart> splitIntoPasses(const lcu::Kernel& kernel, const lcu::Program& program);
/// Whether a kernel with one direction goes backward.
bool runsBackward(const lcu::Kernel& kernel);

}  // namespace kelpie::codegen::cuda
