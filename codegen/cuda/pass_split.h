// A kernel -> kernels that each run over their tiles in one way.
//
// Scans go from the first tile to the last, or from the last to the first: a forward and a backward scan
// cannot share a pass. Filters, partitions, epilogues and ordered reductions go forward; maps, permutes and
// commutative reductions go with either. Reductions of segments have a pass of their own (segment_ranges.cuh)
// beside scans and filters, which reads elements again but is several times as fast as one that does both;
// unless they fold what these make.
//
// In:  a well-formed kernel. Out: kernels to run one after the other; what a later one reads is returned by
// the earlier one. Invariant: each has one direction (`runsBackward`), and together they return what the
// kernel does.
#pragma once

#include <vector>

#include "ir/lcu.h"

namespace kelpie::codegen::cuda {

struct KernelPart {
  lcu::Kernel kernel;
  std::vector<uint32_t> bindings;  ///< their numbers in the whole kernel
};
std::vector<KernelPart> splitIntoPasses(const lcu::Kernel& kernel);
/// Whether a kernel with one direction goes backward.
bool runsBackward(const lcu::Kernel& kernel);

}  // namespace kelpie::codegen::cuda
