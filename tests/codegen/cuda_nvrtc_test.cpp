// Every kind of generated kernel compiles with NVRTC, where it is installed. No GPU is needed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "codegen/cuda/cuda_module.h"
#include "runtime/cuda/compiler_process.h"
#include "runtime/cuda/kernel_compiler.h"
#include "runtime/cuda/kernel_resources.h"
#include "runtime/cuda/nvrtc_compiler.h"
#include "tests/codegen/known_kernels.h"
#include "tests/codegen/random_kernel.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::tests {
namespace {

namespace fs = std::filesystem;

/// Predicates that the instructions of compiled code pack into a register (P2R) together, the most at once.
/// Architectures from 70 to 90 have 16 bytes an instruction: the code in the lowest 12 bits of its first
/// word, the mask in the upper half of that.
int mostPredicatesPacked(const std::vector<char>& code) {
  int most = 0;
  for (size_t at = 0; at + 16 <= code.size(); at += 16) {
    uint64_t word = 0;
    std::memcpy(&word, &code[at], sizeof word);
    constexpr uint64_t kPack = 0x803, kCode = 0xfff;
    if ((word & kCode) == kPack) most = std::max(most, std::popcount(word >> 32 & 0x7f));
  }
  return most;
}

/// The k-th of a row of kernels, each with a seed of its own.
void compile(lcu::SpaceKind space, int architecture, uint64_t k) {
  const runtime::cuda::NvrtcCompiler compiler;
  if (!compiler.available()) GTEST_SKIP() << "NVRTC is not installed";
  Random random(7 + static_cast<uint64_t>(space) + 1000 * k);
  RandomKernelOptions options;
  options.space = space;
  options.bindings = 1 + static_cast<int>(k % 6);
  options.canFail = k % 2 == 0;
  KernelCase testCase = randomKernel(random, options);
  auto module = codegen::cuda::generateModule({&testCase.kernel}, *testCase.program);
  std::vector<char> code;
  auto failure = compiler.compile(module.source, architecture, code);
  ASSERT_EQ(failure, std::nullopt) << "kernel " << k << ": " << *failure << module.source;
  EXPECT_GT(code.size(), 1000u);
  EXPECT_LE(mostPredicatesPacked(code), 1) << "kernel " << k << ": " << module.source;
}

/// KELPIE_SEED is the number of the first kernel, KELPIE_SOAK how many times as many as usual there are.
void compileAll(lcu::SpaceKind space, int architecture) {
  const auto environment = [](const char* name, uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
  };
  const uint64_t first = environment("KELPIE_SEED", 0), number = 6 * environment("KELPIE_SOAK", 1);
  for (uint64_t k = first; k < first + number; ++k) compile(space, architecture, k);
}

TEST(CudaNvrtc, FlatKernelsCompile) { compileAll(lcu::SpaceKind::Flat, 80); }
TEST(CudaNvrtc, OffsetKernelsCompile) { compileAll(lcu::SpaceKind::Offsets, 90); }
TEST(CudaNvrtc, RegularKernelsCompile) { compileAll(lcu::SpaceKind::Regular, 90); }
/// Emulation has all of C++'s headers; NVRTC has none.
TEST(CudaNvrtc, SupportKernelsCompile) {
  const runtime::cuda::NvrtcCompiler compiler;
  if (!compiler.available()) GTEST_SKIP() << "NVRTC is not installed";
  std::vector<char> code;
  EXPECT_EQ(compiler.compile(codegen::cuda::supportSource(), 90, code), std::nullopt);
  EXPECT_GT(code.size(), 1000u);
}
/// ptxas gave up on kernels that had truth values for where their segments begin (regular_numbers.cuh).
TEST(CudaNvrtc, BeginsOfEqualSegmentsFitRegisters) { compile(lcu::SpaceKind::Regular, 90, 51); }

/// Bytes that threads of a kernel keep in memory, as registers do not suffice.
int64_t spilledBytes(testing::Builder& b, lcu::Soac soac) {
  b.named(soac, "result");
  const lcu::Kernel kernel{"kernel", {soac}, soac.results};
  const auto module = codegen::cuda::generateModule({&kernel}, b.program);
  std::vector<char> code;
  const auto failure = runtime::cuda::NvrtcCompiler().compile(module.source, 90, code);
  EXPECT_EQ(failure, std::nullopt) << *failure;
  const auto resources = runtime::cuda::resourcesOf(code);
  EXPECT_TRUE(resources);
  return resources ? resources->frameBytes : -1;
}

TEST(CudaNvrtc, FiltersKeepWhatTheyLoadInRegisters) {
  if (!runtime::cuda::NvrtcCompiler().available()) GTEST_SKIP() << "NVRTC is not installed";
  testing::Builder b;
  const lcu::VarId keys = b.globalArray("keys", testing::ints({1, 2, 3})),
                   others = b.globalArray("others", testing::ints({1, 2, 3}));
  // Positions; pairs of which one half decides.
  const lcu::Space space = b.flat(keys);
  EXPECT_EQ(spilledBytes(b, b.filter(space, {b.i()}, b.op(ScalarOp::Less, b.at(keys), b.num(1000)))), 0);
  const lcu::ExprRef even = b.op(ScalarOp::Equal, b.op(ScalarOp::And, b.at(keys), b.num(1)), b.num(0));
  EXPECT_EQ(spilledBytes(b, b.filter(space, {b.at(keys), b.at(others)}, even)), 0);
}

/// Sums of exp(x - c) of rows whose elements are made on the way.
TEST(CudaNvrtc, RowsHaveRegistersForFunctions) {
  if (!runtime::cuda::NvrtcCompiler().available()) GTEST_SKIP() << "NVRTC is not installed";
  testing::Builder b;
  lcu::ExprArena& a = b.arena();
  const lcu::VarId greatest = b.globalArray("greatest", testing::ints({1, 2, 3}));
  const auto mixed = [&](lcu::ExprRef x) {
    return b.op(ScalarOp::Xor, x, b.op(ScalarOp::ShiftRight, x, b.num(29)));
  };
  const lcu::ExprRef seed = a.mul(a.add(a.mul(b.s(), b.num(32)), b.p()), b.num(2654435761)),
                     hash = b.op(ScalarOp::And, mixed(a.add(a.mul(mixed(seed), b.num(40503)), b.num(12345))),
                                 b.num(1048575)),
                     x = b.op(ScalarOp::Div, a.convert(hash, ScalarType::Float64), b.real(1048576)),
                     less = a.convert(b.at(greatest, b.s()), ScalarType::Float64);
  const lcu::Soac sums =
      b.reduce(b.regular(b.num(1000), b.num(32000)), {b.op(ScalarOp::Exp, b.op(ScalarOp::Sub, x, less))},
               b.operation(ScalarOp::Add, Scalar::ofFloat(ScalarType::Float64, 0)));
  EXPECT_EQ(spilledBytes(b, sums), 0);
}

/// Of two masks ptxas packed the predicates of one into both (markIf in base.cuh).
TEST(CudaNvrtc, MasksAreNotPackedFromPredicates) {
  const runtime::cuda::NvrtcCompiler compiler;
  if (!compiler.available()) GTEST_SKIP() << "NVRTC is not installed";
  const KnownKernels known;
  const auto module = codegen::cuda::generateModule({&known.kernels.at("segmented_filters")}, known.program);
  std::vector<char> code;
  const auto failure = compiler.compile(module.source, 90, code);
  ASSERT_EQ(failure, std::nullopt) << *failure;
  EXPECT_LE(mostPredicatesPacked(code), 1) << module.source;
}

TEST(CudaNvrtc, ErrorsNameTheLine) {
  runtime::cuda::NvrtcCompiler compiler;
  if (!compiler.available()) GTEST_SKIP() << "NVRTC is not installed";
  std::vector<char> code;
  auto failure = compiler.compile("#include \"kelpie.cuh\"\nint broken = ;\n", 90, code);
  ASSERT_TRUE(failure.has_value());
  EXPECT_NE(failure->find("kelpie.cu(2)"), std::string::npos) << *failure;
}

/// Sources for a compiler, of which one is wrong; others for another `number`, so that no cache knows them.
std::vector<std::string> someSources(int number) {
  std::vector<std::string> sources;
  for (int k = 0; k < 12; ++k)
    sources.push_back(fmt::format("__global__ void f(int* p) {{ *p = {} + {}; }}\n", number, k));
  sources.push_back("#include \"kelpie.cuh\"\nint broken = ;\n");
  return sources;
}

constexpr const char* kServer = KELPIE_COMMAND " compile-for-parent";

/// What a process compiles is what this one compiles.
TEST(CudaNvrtc, ProcessesCompileTheSame) {
  runtime::cuda::NvrtcCompiler compiler;
  if (!compiler.available()) GTEST_SKIP() << "NVRTC is not installed";
  runtime::cuda::CompilerServer server(kServer);
  runtime::cuda::CompilerProcess process(server.fork());
  for (const std::string& source : someSources(0)) {
    std::vector<char> expected, got;
    const runtime::Failure failure = compiler.compile(source, 90, expected);
    const std::optional<runtime::Failure> answer = process.compile(source, 90, got);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(*answer, failure);
    EXPECT_EQ(got, expected);
    server.stop();  // its processes go on
  }
}

/// Without a process that answers, a kernel compiler does all by itself.
TEST(CudaNvrtc, ProcessesThatEndAreDoneWithout) {
  for (const char* command : {"false", "/does/not/exist", "echo"}) {
    runtime::cuda::CompilerServer server(command);
    runtime::cuda::CompilerProcess process(server.fork());
    std::vector<char> code;
    EXPECT_EQ(process.compile("", 90, code), std::nullopt) << command;
  }
  runtime::cuda::NvrtcCompiler compiler;
  if (!compiler.available()) GTEST_SKIP() << "NVRTC is not installed";
  const fs::path folder = fs::temp_directory_path() / fmt::format("kelpie-processes-{}", getpid());
  ::setenv("KELPIE_CACHE", folder.c_str(), 1);
  int number = 0;
  for (const char* command : {"", "false", kServer}) {
    std::shared_ptr<runtime::cuda::CompilerServer> server;
    if (*command) server = std::make_shared<runtime::cuda::CompilerServer>(command);
    runtime::cuda::KernelCompiler kernels(90, "", server, number == 2, 8);
    const std::vector<std::string> sources = someSources(++number);
    kernels.start(sources, false);
    for (const std::string& source : sources) {
      std::vector<char> code;
      EXPECT_EQ(kernels.take(source, code).has_value(), &source == &sources.back()) << command;
    }
    EXPECT_EQ(kernels.statistics().compiled, sources.size());
  }
  ::unsetenv("KELPIE_CACHE");
  fs::remove_all(folder);
}

/// What is on disk is ready, and waits for no thread that compiles something else.
TEST(CudaNvrtc, CodeOnDiskIsReady) {
  if (!runtime::cuda::NvrtcCompiler().available()) GTEST_SKIP() << "NVRTC is not installed";
  const fs::path folder = fs::temp_directory_path() / fmt::format("kelpie-ready-{}", getpid());
  ::setenv("KELPIE_CACHE", folder.c_str(), 1);
  const std::string known = someSources(100).front(), wrong = someSources(100).back();
  std::vector<char> code;
  {
    runtime::cuda::KernelCompiler kernels(90, "", nullptr, false, 1);
    EXPECT_FALSE(kernels.isReady(known));
    EXPECT_EQ(kernels.take(known, code), std::nullopt);
    EXPECT_TRUE(kernels.isReady(known));
    EXPECT_FALSE(kernels.isReady(wrong));
    EXPECT_NE(kernels.take(wrong, code), std::nullopt);
  }
  const KnownKernels all;
  std::string other;  // which takes longest
  for (const auto& [name, kernel] : all.kernels) {
    const std::string source = codegen::cuda::generateModule({&kernel}, all.program).source;
    if (source.size() > other.size()) other = source;
  }
  {
    runtime::cuda::KernelCompiler kernels(90, "", nullptr, false, 1);
    kernels.start({other}, true);
    while (!kernels.busy()) std::this_thread::yield();
    EXPECT_TRUE(kernels.isReady(known));
    EXPECT_EQ(kernels.take(known, code), std::nullopt);
    EXPECT_TRUE(kernels.busy());
    EXPECT_EQ(kernels.statistics().cached, 1u);
    kernels.start(someSources(101), true);
    kernels.giveUp();
    EXPECT_TRUE(kernels.busy());
  }
  std::vector<std::string> kept;
  for (const auto& file : fs::recursive_directory_iterator(folder))
    if (file.is_regular_file()) kept.push_back(file.path());
  EXPECT_EQ(kept.size(), 2u);  // what was still queued is forgotten
  ::unsetenv("KELPIE_CACHE");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace kelpie::tests
