// Permutes in which the last of several writers stays, where kernels only note who writes where and the host
// finds out who that is (runtime/cuda/last_writers.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "codegen/kernel_analysis.h"
#include "codegen/many_writers.h"
#include "runtime/cuda/cuda_target.h"
#include "runtime/host_target.h"
#include "tests/codegen/emulated_device.h"
#include "tests/codegen/kernel_runs.h"
#include "tests/codegen/random_kernel.h"

namespace kelpie::tests {
namespace {

class CountingDevice final : public EmulatedDevice {
 public:
  CountingDevice(uint64_t seed, int& found) : EmulatedDevice(seed), found_(found) {}
  runtime::Failure findLastWriters(const runtime::cuda::LastWriters& request,
                                   runtime::DevicePointer scratch) override {
    ++found_;
    return EmulatedDevice::findLastWriters(request, scratch);
  }

 private:
  int& found_;
};

/// Random kernels with such permutes, alone and among others, with conditions, fills and arrays to write
/// onto; launches of which the host knows the number of elements and others.
TEST(LastWriters, AreFoundByTheHost) {
  constexpr int kKernels = 8;
  Random random(31);
  codegen::cuda::CudaOptions options;
  options.threads = 64;
  options.maxChunks = 2;
  options.manyWriters = 30;
  int found = 0;
  runtime::InterpTarget interp;
  runtime::cuda::CudaTarget cuda(std::make_unique<CountingDevice>(31, found), options);
  for (int kernels = 0; kernels < kKernels;) {
    RandomKernelOptions kind;
    kind.bindings = 1 + static_cast<int>(random() % 4);
    kind.loops = random() % 4 == 0;
    kind.canFail = random() % 4 == 0;
    const KernelCase testCase = randomKernel(random, kind);
    if (std::none_of(testCase.kernel.bindings.begin(), testCase.kernel.bindings.end(),
                     codegen::keepsLastWriter))
      continue;
    ++kernels;
    const runtime::ProgramKernels program{
        testCase.program.get(),
        {{&testCase.kernel, codegen::analyseKernel(testCase.kernel, *testCase.program)}}};
    const codegen::KernelInfo& info = program.kernels[0].info;
    ASSERT_EQ(interp.prepare(program), std::nullopt);
    auto failure = cuda.prepare(program);
    ASSERT_EQ(failure, std::nullopt) << *failure;
    for (const int64_t size : {0, 29, 30, 3001}) {
      const KernelData data = randomData(random, testCase, size, Lengths::Mixed);
      const LaunchResult expected = runKernel(interp, program, 0, data);
      const int before = found;
      ASSERT_EQ(difference(expected, runKernel(cuda, program, 0, data), info), "")
          << size << " elements\n"
          << lcu::toString(testCase.kernel, *testCase.program);
      const bool finds = size >= options.manyWriters;
      EXPECT_EQ(found > before, finds) << size << " elements";
      if (!info.counted) continue;
      ASSERT_EQ(difference(expected, runKernel(cuda, program, 0, data, 500), info), "")
          << size << " elements, of which there may be 500 more\n"
          << lcu::toString(testCase.kernel, *testCase.program);
    }
    cuda.release(program);
    interp.release(program);
  }
}

}  // namespace
}  // namespace kelpie::tests
