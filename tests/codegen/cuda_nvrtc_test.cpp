// Every kind of generated kernel compiles with NVRTC, where it is installed. No GPU is needed.
#include <gtest/gtest.h>

#include "codegen/cuda/cuda_module.h"
#include "runtime/cuda/nvrtc_compiler.h"
#include "tests/codegen/random_kernel.h"

namespace kelpie::tests {
namespace {

void compileAll(lcu::SpaceKind space, int architecture) {
  runtime::cuda::NvrtcCompiler compiler;
  if (!compiler.available()) GTEST_SKIP() << "NVRTC is not installed";
  Random random(7 + static_cast<uint64_t>(space));
  for (int k = 0; k < 6; ++k) {
    RandomKernelOptions options;
    options.space = space;
    options.bindings = 1 + k;
    options.canFail = k % 2 == 0;
    KernelCase testCase = randomKernel(random, options);
    auto module = codegen::cuda::generateModule({&testCase.kernel}, *testCase.program);
    std::vector<char> code;
    auto failure = compiler.compile(module.source, architecture, code);
    ASSERT_EQ(failure, std::nullopt) << *failure << module.source;
    EXPECT_GT(code.size(), 1000u);
  }
}

TEST(CudaNvrtc, FlatKernelsCompile) { compileAll(lcu::SpaceKind::Flat, 90); }
TEST(CudaNvrtc, OffsetKernelsCompile) { compileAll(lcu::SpaceKind::Offsets, 90); }
TEST(CudaNvrtc, RegularKernelsCompile) { compileAll(lcu::SpaceKind::Regular, 80); }

TEST(CudaNvrtc, ErrorsNameTheLine) {
  runtime::cuda::NvrtcCompiler compiler;
  if (!compiler.available()) GTEST_SKIP() << "NVRTC is not installed";
  std::vector<char> code;
  auto failure = compiler.compile("#include \"kelpie.cuh\"\nint broken = ;\n", 90, code);
  ASSERT_TRUE(failure.has_value());
  EXPECT_NE(failure->find("kelpie.cu(2)"), std::string::npos) << *failure;
}

}  // namespace
}  // namespace kelpie::tests
