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
  EXPECT_EQ(many->frameAccesses, 0);
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
  EXPECT_GE(found->frameAccesses, 2);
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

// Blocks of 256 threads: 8 have 32 registers for each thread, 6 have 40.
TEST_F(CompiledKernels, HaveMoreBlocksIfMapsWait) {
  const std::string bounds = "4 - KELPIE_BLOCKS_LESS";
  const auto few = resources(kernelOf(26, bounds)),
             more = resources(kernelOf(26, bounds + " + KELPIE_BLOCKS_MORE"));
  ASSERT_TRUE(few && more);
  EXPECT_GT(few->registers, 32);
  EXPECT_LT(more->registers, few->registers);
  EXPECT_LE(more->registers, 40);
  EXPECT_LE(more->frameBytes, 16);
  const auto large = resources(kernelOf(60, bounds)),
             same = resources(kernelOf(60, bounds + " + KELPIE_BLOCKS_MORE"));
  ASSERT_TRUE(large && same);
  EXPECT_GT(large->registers, 48);
  EXPECT_EQ(same->registers, large->registers);  // frames would be too large
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

std::vector<OtherBlocks> tried(const std::string& source, int registers, int frameBytes,
                               int frameAccesses = 0) {
  KernelResources resources;
  resources.registers = registers;
  resources.frameBytes = frameBytes;
  resources.frameAccesses = frameAccesses;
  return blocksToTry(source, resources);
}
/// The macro of the only attempt; empty: there is none.
std::string only(const std::vector<OtherBlocks>& others) {
  EXPECT_LE(others.size(), 1u);
  return others.empty() ? "" : others[0].macro;
}

TEST(KernelResources, BlocksAreGivenUpForLargeFramesOnly) {
  const std::string open = "__launch_bounds__(256, 6 - KELPIE_BLOCKS_LESS) f(",
                    flat = "__launch_bounds__(256, 6 - KELPIE_FLAT_BLOCKS_LESS) f(",
                    maps = "__launch_bounds__(256, 6 - KELPIE_BLOCKS_LESS + KELPIE_BLOCKS_MORE) f(",
                    fixed = "__launch_bounds__(256, 6) f(";
  EXPECT_EQ(only(tried(open, 40, 0)), "");
  EXPECT_EQ(only(tried(open, 40, 32)), "");
  EXPECT_EQ(only(tried(open, 40, 64)), "");
  EXPECT_EQ(only(tried(open, 40, 80)), "KELPIE_BLOCKS_LESS=2");    // 60 registers: 4 blocks
  EXPECT_EQ(only(tried(open, 40, 2000)), "KELPIE_BLOCKS_LESS=3");  // half of them stay
  EXPECT_EQ(only(tried(maps, 40, 80)), "KELPIE_BLOCKS_LESS=2");
  EXPECT_EQ(tried(open, 40, 80).at(0).mostFrameBytes, 79);
  EXPECT_EQ(only(tried(flat, 40, 144)), "");
  EXPECT_EQ(only(tried(flat, 40, 224)), "KELPIE_BLOCKS_LESS=3");  // 96 registers: 2 blocks, but half stay
  EXPECT_EQ(only(tried(fixed, 40, 80)), "");
  EXPECT_EQ(only(tried("f(", 40, 80)), "");
}

TEST(KernelResources, BlocksAreGivenUpForFramesThatAreUsedMuch) {
  const std::string open = "__launch_bounds__(64, 12 - KELPIE_BLOCKS_LESS) f(k_exp(x))",
                    loads = "__launch_bounds__(64, 12 - KELPIE_BLOCKS_LESS) f(x)",
                    flat = "__launch_bounds__(256, 6 - KELPIE_FLAT_BLOCKS_LESS) f(k_exp(x))",
                    maps = "__launch_bounds__(256, 6 - KELPIE_BLOCKS_LESS + KELPIE_BLOCKS_MORE) f(k_exp(x))";
  EXPECT_EQ(only(tried(open, 80, 32, 4)), "");
  EXPECT_EQ(only(tried(open, 80, 32, 40)), "KELPIE_BLOCKS_LESS=4");
  EXPECT_EQ(only(tried(loads, 80, 32, 40)), "");
  EXPECT_EQ(tried(open, 80, 32, 40).at(0).mostFrameBytes, 8);
  EXPECT_EQ(only(tried("__launch_bounds__(512, 2 - KELPIE_BLOCKS_LESS) f(k_exp(x))", 64, 32, 40)), "");
  EXPECT_EQ(only(tried(flat, 40, 32, 40)), "");
  EXPECT_EQ(only(tried(maps, 40, 32, 40)), "KELPIE_BLOCKS_MORE=2");  // these wait
}

TEST(KernelResources, BlocksAreAddedToFew) {
  const std::string open = "__launch_bounds__(256 KELPIE_MIN_BLOCKS) f(";
  EXPECT_EQ(only(tried(open, 64, 0)), "");
  EXPECT_EQ(only(tried(open, 65, 0)), "KELPIE_MIN_BLOCKS=, 4");
  EXPECT_EQ(only(tried(open, 80, 0)), "KELPIE_MIN_BLOCKS=, 4");
  EXPECT_EQ(only(tried(open, 81, 0)), "KELPIE_MIN_BLOCKS=, 3");
  EXPECT_EQ(only(tried(open, 255, 0)), "KELPIE_MIN_BLOCKS=, 2");
  EXPECT_EQ(tried(open, 65, 8).at(0).mostFrameBytes, 24);
  EXPECT_EQ(only(tried(open + "LaneQueue<S, 8, 32> queue(n);", 64, 0)), "KELPIE_MIN_BLOCKS=, 5");
  EXPECT_EQ(only(tried(open + "LaneQueue<S, 8, 32> queue(n);", 48, 0)), "");
  EXPECT_EQ(only(tried("__launch_bounds__(256) f(", 81, 0)), "");
  EXPECT_EQ(only(tried("__launch_bounds__(256, 6 - KELPIE_BLOCKS_LESS) f(", 81, 0)), "");
  EXPECT_EQ(only(tried("f(", 81, 0)), "");
}

/// First as many as a multiprocessor has threads for, then three quarters of that.
TEST(KernelResources, BlocksAreAddedToMapsThatWait) {
  const std::string open = "__launch_bounds__(128, 8 - KELPIE_BLOCKS_LESS + KELPIE_BLOCKS_MORE) f(";
  EXPECT_TRUE(tried(open, 32, 0).empty());  // 16 blocks fit
  EXPECT_EQ(only(tried(open, 40, 0)), "KELPIE_BLOCKS_MORE=8");
  const auto both = tried(open, 48, 0);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].macro, "KELPIE_BLOCKS_MORE=8");
  EXPECT_EQ(both[0].mostFrameBytes, 8);
  EXPECT_EQ(both[1].macro, "KELPIE_BLOCKS_MORE=4");
  EXPECT_EQ(both[1].mostFrameBytes, 16);
}

/// What would be tried anyway, of those only that hardly ever go without.
TEST(KernelResources, MoreBlocksAreTriedFirst) {
  const auto hoped = blocksHopedFor("__launch_bounds__(128, 8 - KELPIE_BLOCKS_LESS + KELPIE_BLOCKS_MORE) f(");
  ASSERT_EQ(hoped.size(), 2u);
  EXPECT_EQ(hoped[0].macro, "KELPIE_BLOCKS_MORE=8");
  EXPECT_EQ(hoped[0].mostFrameBytes, 8);
  EXPECT_EQ(hoped[1].macro, "KELPIE_BLOCKS_MORE=4");
  EXPECT_EQ(hoped[1].mostFrameBytes, 16);
  EXPECT_TRUE(blocksHopedFor("__launch_bounds__(256 KELPIE_MIN_BLOCKS) f(").empty());
  EXPECT_TRUE(blocksHopedFor("__launch_bounds__(256, 6 - KELPIE_BLOCKS_LESS) f(").empty());
}

}  // namespace
}  // namespace kelpie::runtime::cuda
