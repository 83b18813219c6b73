// Generated CUDA, executed on the host under emulation, agrees with the evaluator of λcu.
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/cuda/cuda_target.h"
#include "runtime/host_target.h"
#include "tests/codegen/emulated_device.h"
#include "tests/codegen/random_kernel.h"

namespace kelpie::tests {
namespace {

using lcu::SpaceKind;

/// Small blocks, so that a few thousand elements are many tiles.
codegen::cuda::CudaOptions smallBlocks() {
  codegen::cuda::CudaOptions options;
  options.threads = 64;
  options.maxItems = 8;
  return options;
}

/// KELPIE_SOAK=N multiplies the number of random kernels, KELPIE_SEED starts from another seed.
int64_t environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

/// Blocks so small that thousands of elements are hundreds of tiles: several groups of the look-back.
codegen::cuda::CudaOptions tinyBlocks() {
  codegen::cuda::CudaOptions options;
  options.threads = 32;
  options.maxItems = 2;
  return options;
}

void compare(uint64_t seed, SpaceKind space, int kernels, bool canFail, const std::vector<int64_t>& sizes,
             const std::vector<Lengths>& lengths,
             const codegen::cuda::CudaOptions& cudaOptions = smallBlocks()) {
  seed += static_cast<uint64_t>(environment("KELPIE_SEED", 0));
  kernels *= static_cast<int>(environment("KELPIE_SOAK", 1));
  Random random(seed);
  runtime::InterpTarget interp;
  runtime::cuda::CudaTarget cuda(std::make_unique<EmulatedDevice>(seed), cudaOptions);
  for (int k = 0; k < kernels; ++k) {
    RandomKernelOptions options;
    options.space = space;
    options.bindings = 1 + static_cast<int>(random() % 5);
    options.canFail = canFail;
    KernelCase testCase = randomKernel(random, options);
    runtime::ProgramKernels program{
        testCase.program.get(),
        {{&testCase.kernel, codegen::analyseKernel(testCase.kernel, *testCase.program)}}};
    ASSERT_EQ(interp.prepare(program), std::nullopt);
    auto failure = cuda.prepare(program);
    ASSERT_EQ(failure, std::nullopt) << *failure;
    for (int64_t size : sizes) {
      for (Lengths shape : lengths) {
        KernelData data = randomData(random, testCase, size, shape);
        auto expected = runKernel(interp, program, 0, data);
        auto got = runKernel(cuda, program, 0, data);
        std::string different = difference(expected, got, program.kernels[0].info);
        ASSERT_EQ(different, "")
            << "seed " << seed << ", kernel " << k << ", " << data.extents.elements << " elements, "
            << data.extents.segments << " segments of " << toString(shape) << " length\n"
            << lcu::toString(testCase.kernel, *testCase.program) << "\n"
            << codegen::cuda::generateModule({&testCase.kernel}, *testCase.program, cudaOptions).source;
      }
    }
    cuda.release(program);
    interp.release(program);
  }
}

const std::vector<int64_t> kSizes = {0, 1, 31, 700, 5000};
const std::vector<Lengths> kLengths = {Lengths::Mixed, Lengths::Zero, Lengths::One,
                                       Lengths::Eight, Lengths::Long, Lengths::Giant};

TEST(CudaEmulation, FlatKernels) { compare(1, SpaceKind::Flat, 12, false, kSizes, {Lengths::Mixed}); }
TEST(CudaEmulation, OffsetKernels) { compare(2, SpaceKind::Offsets, 12, false, {0, 40, 3000}, kLengths); }
TEST(CudaEmulation, RegularKernels) {
  compare(3, SpaceKind::Regular, 8, false, {0, 1, 40, 3000}, {Lengths::Mixed, Lengths::Mixed});
}
TEST(CudaEmulation, FirstErrorIsReported) {
  compare(4, SpaceKind::Offsets, 6, true, {40, 3000}, {Lengths::Mixed, Lengths::One});
}
TEST(CudaEmulation, ManyTiles) {
  compare(5, SpaceKind::Flat, 3, false, {9000}, {Lengths::Mixed}, tinyBlocks());
  compare(6, SpaceKind::Offsets, 4, false, {5000}, {Lengths::Mixed, Lengths::Long, Lengths::Giant},
          tinyBlocks());
}

}  // namespace
}  // namespace kelpie::tests
