// Random fused kernels and random data for them, to compare targets with each other.
//
// Values are small integers, also as floats, so that sums are exact and results agree to the bit however a
// target associates them.
#pragma once

#include <map>
#include <random>

#include "codegen/kernel_analysis.h"
#include "ir/lcu.h"

namespace kelpie::tests {

using Random = std::mt19937_64;

struct KernelCase {
  std::shared_ptr<lcu::Program> program = std::make_shared<lcu::Program>();
  lcu::Kernel kernel;
};

struct KernelData {
  codegen::LaunchExtents extents;
  std::map<lcu::VarId, std::vector<std::byte>> arrays;  ///< arrays and cells that exist before the launch
  std::map<lcu::VarId, Scalar> scalars;                 ///< host scalars
};

enum class Lengths : uint8_t { Mixed, Zero, One, Eight, Long, Giant };
std::string toString(Lengths lengths);

/// What kernels are made of.
enum class Shape : uint8_t {
  Mixed,         ///< everything
  Rows,          ///< reductions of segments that read arrays by segment or by position alone (regular spaces)
  Columns,       ///< the same, and arrays that neighbouring segments read side by side
  Transposed,    ///< maps, scans and folds of which some read so (regular spaces)
  Keys,          ///< reductions of segments to which elements belong by keys (regular spaces)
  FoldsOfScans,  ///< maps, scans and reductions of segments, which read each other's results
};

struct RandomKernelOptions {
  Shape shape = Shape::Mixed;
  lcu::SpaceKind space = lcu::SpaceKind::Flat;
  int bindings = 3;
  bool canFail = false;  ///< some thunks contain checks that rarely fail
  bool loops = false;    ///< some thunks contain loops, of which some load many columns at one place
  bool narrow = false;   ///< inputs and most results are of one byte
};
KernelCase randomKernel(Random& random, const RandomKernelOptions& options);
/// About `size` elements. Segment lengths as asked for (offset spaces).
KernelData randomData(Random& random, const KernelCase& testCase, int64_t size, Lengths lengths);

}  // namespace kelpie::tests
