// A kernel launched on a target with data from the host, and what comes of it compared.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/target.h"
#include "tests/codegen/random_kernel.h"

namespace kelpie::tests {

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
/// On targets that store arrays short those of the kernel's entry are (KernelEntry::shortArrays).
/// `spare`: the host knows only that there are no more than so many elements beside those (for kernels that
/// are KernelInfo::counted, on targets that can count).
LaunchResult runKernel(runtime::Target& target, const runtime::ProgramKernels& kernels, size_t kernel,
                       const KernelData& data, int64_t spare = 0);
/// Some of the arrays that may be stored short, whatever data a random kernel gets.
std::vector<lcu::VarId> randomShortArrays(Random& random, const lcu::Kernel& kernel,
                                          const codegen::KernelInfo& info);
/// Empty when equal; else what differs, in words.
std::string difference(const LaunchResult& expected, const LaunchResult& got,
                       const codegen::KernelInfo& info);

}  // namespace kelpie::tests
