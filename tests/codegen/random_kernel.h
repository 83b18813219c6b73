// Random fused kernels and random data for them, to compare targets with each other.
//
// Values are small integers, also as floats, so that sums are exact and results agree to the bit however a
// target associates them.
#pragma once

#include <map>
#include <random>

#include "ir/lcu.h"
#include "runtime/target.h"

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

/// Memory of a target, given back at the end.
class HeldScratch final : public runtime::Scratch {
 public:
  explicit HeldScratch(runtime::Target& target) : target_(target) {}
  ~HeldScratch() override {
    for (auto p : held_) target_.deallocate(p);
  }
  runtime::DevicePointer take(size_t bytes) override {
    held_.push_back(target_.allocate(bytes));
    return held_.back();
  }

 private:
  runtime::Target& target_;
  std::vector<runtime::DevicePointer> held_;
};

/// What a launch left behind: one entry for each output, cut to the elements that count. Or an error.
struct LaunchResult {
  std::optional<std::string> failure;
  std::optional<runtime::DeviceError> error;
  std::vector<std::vector<std::byte>> outputs;
};
/// `spare`: the host knows only that there are no more than so many elements beside those (for kernels that
/// are KernelInfo::counted, on targets that can count).
LaunchResult runKernel(runtime::Target& target, const runtime::ProgramKernels& kernels, size_t kernel,
                       const KernelData& data, int64_t spare = 0);
/// Empty when equal; else what differs, in words.
std::string difference(const LaunchResult& expected, const LaunchResult& got,
                       const codegen::KernelInfo& info);

}  // namespace kelpie::tests
