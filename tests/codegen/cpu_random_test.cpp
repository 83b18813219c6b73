// Random fused kernels: generated C++ agrees with the evaluator of λcu, on any number of threads.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "codegen/cpu/cpu_module.h"
#include "runtime/cpu_target.h"
#include "tests/codegen/kernel_runs.h"
#include "tests/codegen/random_kernel.h"

namespace kelpie::tests {
namespace {

using lcu::SpaceKind;

runtime::CpuOptions compiled(int threads) {
  runtime::CpuOptions options;
  options.jit = runtime::Jit::Always;
  options.threads = threads;
  options.cache.directory = (std::filesystem::temp_directory_path() / "kelpie-cpu-test").string();
  return options;
}

/// KELPIE_SOAK=N multiplies the number of random kernels, KELPIE_SEED starts from another seed.
int64_t environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

void compare(uint64_t seed, SpaceKind space, int kernels, bool canFail, const std::vector<int64_t>& sizes,
             const std::vector<Lengths>& lengths, bool loops = false, Shape kernelsOf = Shape::Mixed) {
  seed += static_cast<uint64_t>(environment("KELPIE_SEED", 0));
  kernels *= static_cast<int>(environment("KELPIE_SOAK", 1));
  Random random(seed);
  runtime::InterpTarget interp;
  runtime::CpuTarget two(compiled(2)), one(compiled(1));
  for (int k = 0; k < kernels; ++k) {
    RandomKernelOptions options;
    options.space = space;
    options.bindings = 1 + static_cast<int>(random() % 6);
    options.canFail = canFail;
    options.loops = loops;
    options.shape = kernelsOf;
    KernelCase testCase = randomKernel(random, options);
    runtime::ProgramKernels program{
        testCase.program.get(),
        {{&testCase.kernel, codegen::analyseKernel(testCase.kernel, *testCase.program)}}};
    for (runtime::Target* target : std::initializer_list<runtime::Target*>{&interp, &two, &one}) {
      auto failure = target->prepare(program);
      ASSERT_EQ(failure, std::nullopt)
          << *failure << codegen::cpu::generateKernel(testCase.kernel, *testCase.program, "k");
    }
    for (int64_t size : sizes) {
      for (Lengths shape : lengths) {
        KernelData data = randomData(random, testCase, size, shape);
        auto expected = runKernel(interp, program, 0, data);
        for (runtime::Target* target : std::initializer_list<runtime::Target*>{&two, &one}) {
          auto got = runKernel(*target, program, 0, data);
          std::string different = difference(expected, got, program.kernels[0].info);
          ASSERT_EQ(different, "") << "seed " << seed << ", kernel " << k << ", " << data.extents.elements
                                   << " elements, " << data.extents.segments << " segments of "
                                   << toString(shape) << " length\n"
                                   << lcu::toString(testCase.kernel, *testCase.program) << "\n"
                                   << codegen::cpu::generateKernel(testCase.kernel, *testCase.program, "k");
        }
      }
    }
  }
}

TEST(CpuRandomKernels, Flat) {
  compare(11, SpaceKind::Flat, 12, false, {0, 1, 63, 2048, 2049, 150000}, {Lengths::Mixed});
}
TEST(CpuRandomKernels, Offsets) {
  compare(12, SpaceKind::Offsets, 12, false, {0, 5, 1500, 120000},
          {Lengths::Mixed, Lengths::Zero, Lengths::Eight, Lengths::Long, Lengths::Giant});
}
TEST(CpuRandomKernels, Regular) {
  compare(13, SpaceKind::Regular, 8, false, {0, 5, 3000, 150000}, {Lengths::Mixed});
}
/// Neighbouring segments read side by side.
TEST(CpuRandomKernels, BySegments) {
  for (const bool canFail : {false, true}) {
    for (const Shape shape : {Shape::Columns, Shape::Transposed})
      compare(15, SpaceKind::Regular, 6, canFail, {0, 1, 63, 3000, 150000}, {Lengths::Mixed, Lengths::Mixed},
              false, shape);
  }
}
TEST(CpuRandomKernels, LoopsOverFlatSpaces) {
  compare(21, SpaceKind::Flat, 10, false, {0, 1, 63, 511, 2049, 150000}, {Lengths::Mixed}, true);
}
TEST(CpuRandomKernels, LoopsOverSegments) {
  compare(22, SpaceKind::Offsets, 12, true, {0, 5, 1500, 120000},
          {Lengths::Mixed, Lengths::Zero, Lengths::Eight, Lengths::Giant}, true);
  compare(23, SpaceKind::Regular, 6, false, {0, 5, 3000, 150000}, {Lengths::Mixed}, true);
}
TEST(CpuRandomKernels, FirstErrorIsTheSame) {
  compare(14, SpaceKind::Offsets, 8, true, {5, 3000, 100000}, {Lengths::Mixed, Lengths::Eight});
}

}  // namespace
}  // namespace kelpie::tests
