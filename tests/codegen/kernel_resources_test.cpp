// What compiled kernels take, and what they get when that is too much. No GPU is needed.
#include "runtime/cuda/kernel_resources.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/cuda/nvrtc_compiler.h"

namespace kelpie::runtime::cuda {
namespace {

/// Needs so many numbers at once, and has blocks of 256 threads.
std::string kernelOf(int numbers, const std::string& blocks) {
  std::string text = fmt::format(
      "#include \"kelpie.cuh\"\n"
      "extern \"C\" __global__ void __launch_bounds__(256, {}) kernel(const float* from, float* to) {{\n",
      blocks);
  for (int k = 0; k < numbers; ++k) text += fmt::format("  float x{0} = from[threadIdx.x + {0} * 256];\n", k);
  text += "  for (int round = 0; round < 100; ++round) {\n";
  for (int k = 0; k < numbers; ++k)
    text += fmt::format("    x{} = x{} * x{} + 1;\n", k, (k + 7) % numbers, k);
  text += "    __syncthreads();\n  }\n";
  for (int k = 0; k < numbers; ++k) text += fmt::format("  to[threadIdx.x + {0} * 256] = x{0};\n", k);
  return text + "}\n";
}

class CompiledKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!compiler_.available()) GTEST_SKIP() << "NVRTC is not installed";
  }
  std::optional<KernelResources> resources(const std::string& source) {
    std::vector<char> code;
    const Failure failure = compiler_.compile(source, 90, code);
    EXPECT_EQ(failure, std::nullopt) << *failure;
    return resourcesOf(code);
  }
  NvrtcCompiler compiler_;
};

TEST_F(CompiledKernels, TellTheirRegisters) {
  const auto few = resources(kernelOf(4, "1")), many = resources(kernelOf(100, "1"));
  ASSERT_TRUE(few && many);
  EXPECT_GT(few->registers, 4);
  EXPECT_LT(few->registers, 40);
  EXPECT_GT(many->registers, 100);
  EXPECT_EQ(few->frameBytes, 0);
  EXPECT_EQ(many->frameBytes, 0);
}

TEST_F(CompiledKernels, TellWhatIsInMemoryOfTheirOwn) {
  const auto found = resources(
      "extern \"C\" __global__ void kernel(const int* from, int* to) {\n"
      "  int numbers[40];\n"
      "  for (int k = 0; k < 40; ++k) numbers[from[k] & 31] = from[k + 40];\n"
      "  for (int k = 0; k < 40; ++k) to[k] = numbers[from[k + 80] & 31];\n"
      "}\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->frameBytes, 160);
}

// 8 blocks of 256 threads have 32 registers for each thread.
TEST_F(CompiledKernels, HaveFewerBlocksIfRegistersDoNotSuffice) {
  const auto fixed = resources(kernelOf(80, "8"));
  const auto free = resources(kernelOf(80, "8 - KELPIE_BLOCKS_LESS"));
  ASSERT_TRUE(fixed && free);
  EXPECT_LE(fixed->registers, 32);
  EXPECT_GT(fixed->frameBytes, 100);
  EXPECT_GT(free->registers, fixed->registers);
  EXPECT_LT(free->frameBytes, fixed->frameBytes);
  const auto enough = resources(kernelOf(8, "8 - KELPIE_BLOCKS_LESS"));
  ASSERT_TRUE(enough);
  EXPECT_LE(enough->registers, 32);
}

// Of 256 threads with 92 registers each a multiprocessor has room for 2 blocks, of those with 80 for 3.
TEST_F(CompiledKernels, HaveMoreBlocksIfFramesStaySmall) {
  const auto text = [](int numbers, const char* bounds) {
    std::string source = kernelOf(numbers, "BOUNDS");
    return source.replace(source.find(", BOUNDS"), 8, bounds);
  };
  const auto liked = resources(text(76, "")), more = resources(text(76, " KELPIE_MIN_BLOCKS"));
  ASSERT_TRUE(liked && more);
  EXPECT_GT(liked->registers, 80);
  EXPECT_LE(more->registers, 80);
  EXPECT_LE(more->frameBytes, 16);
  const auto most = resources(text(110, "")), same = resources(text(110, " KELPIE_MIN_BLOCKS"));
  ASSERT_TRUE(most && same);
  EXPECT_GT(most->registers, 100);
  EXPECT_EQ(same->registers, most->registers);  // 80 would not do
}

TEST(KernelResources, OtherFilesTellNothing) {
  EXPECT_FALSE(resourcesOf({}));
  EXPECT_FALSE(resourcesOf({'\x7f', 'E', 'L', 'F'}));
  EXPECT_FALSE(resourcesOf(std::vector<char>(1000, 'x')));
  std::vector<char> broken(4096, '\xff');
  std::copy_n(
      "\x7f"
      "ELF",
      4, broken.begin());
  EXPECT_FALSE(resourcesOf(broken));
}

TEST(KernelResources, BlocksAreGivenUpForLargeFramesOnly) {
  const std::string open = "__launch_bounds__(256, 6 - KELPIE_BLOCKS_LESS) f(",
                    flat = "__launch_bounds__(256, 6 - KELPIE_FLAT_BLOCKS_LESS) f(",
                    fixed = "__launch_bounds__(256, 6) f(";
  const auto less = [](const std::string& source, int registers, int frameBytes) {
    KernelResources resources;
    resources.registers = registers;
    resources.frameBytes = frameBytes;
    return blocksToGiveUp(source, resources);
  };
  EXPECT_EQ(less(open, 40, 0), 0);
  EXPECT_EQ(less(open, 40, 32), 0);
  EXPECT_EQ(less(open, 40, 64), 0);
  EXPECT_EQ(less(open, 40, 80), 2);    // 60 registers: 4 blocks
  EXPECT_EQ(less(open, 40, 2000), 3);  // half of them stay
  EXPECT_EQ(less(flat, 40, 144), 0);
  EXPECT_EQ(less(flat, 40, 224), 3);  // 96 registers: 2 blocks, but half of them stay
  EXPECT_EQ(less(fixed, 40, 80), 0);
  EXPECT_EQ(less("f(", 40, 80), 0);
}

TEST(KernelResources, BlocksAreAddedToFew) {
  const auto more = [](const std::string& source, int registers) {
    KernelResources resources;
    resources.registers = registers;
    return blocksToTry(source, resources);
  };
  const std::string open = "__launch_bounds__(256 KELPIE_MIN_BLOCKS) f(";
  EXPECT_EQ(more(open, 64), 0);
  EXPECT_EQ(more(open, 65), 4);
  EXPECT_EQ(more(open, 80), 4);
  EXPECT_EQ(more(open, 81), 3);
  EXPECT_EQ(more(open, 255), 2);
  EXPECT_EQ(more("__launch_bounds__(256) f(", 81), 0);
  EXPECT_EQ(more("__launch_bounds__(256, 6 - KELPIE_BLOCKS_LESS) f(", 81), 0);
  EXPECT_EQ(more("f(", 81), 0);
}

}  // namespace
}  // namespace kelpie::runtime::cuda
