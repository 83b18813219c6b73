// The CUDA target on a real GPU agrees with the evaluator of λcu. Skips itself where there is no GPU.
//
// KELPIE_SEED=N repeats a run (a fresh seed otherwise), KELPIE_KERNELS=N random kernels of each kind,
// KELPIE_SIZE=N elements at most, KELPIE_REPEAT=N launches of each kernel on the same data.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

#include "codegen/cuda/cuda_module.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_target.h"
#include "runtime/cuda/driver_device.h"
#include "runtime/host_target.h"
#include "tests/codegen/division_cases.h"
#include "tests/codegen/kernel_runs.h"
#include "tests/codegen/known_kernels.h"
#include "tests/codegen/random_kernel.h"

namespace kelpie::tests {
namespace {

using lcu::SpaceKind;

int64_t environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    cuda_ = runtime::makeCudaTarget(why);
    if (!cuda_) GTEST_SKIP() << why;
    seed_ = static_cast<uint64_t>(environment("KELPIE_SEED", static_cast<int64_t>(std::random_device{}())));
    random_.seed(seed_);
    std::cout << "KELPIE_SEED=" << seed_ << std::endl;  // what compute-sanitizer finds can be repeated
  }

  /// Keys around 0, some of them alike; floats have all that is special among them.
  std::vector<Scalar> sortingKeys(ScalarType type, int64_t n, int64_t range) {
    std::vector<Scalar> values;
    for (int64_t k = 0; k < n; ++k) {
      if (isFloat(type) && random_() % 50 == 0) {
        static const double kSpecial[] = {NAN, -NAN, 0.0, -0.0, INFINITY, -INFINITY};
        values.push_back(Scalar::ofFloat(type, kSpecial[random_() % 6]));
        continue;
      }
      const auto below = static_cast<int64_t>(random_() % static_cast<uint64_t>(range)) - range / 2;
      values.push_back(convert(Scalar::ofInt(ScalarType::Int64, below), type));
    }
    return values;
  }

  /// Grades on the GPU and on the host. Bits of `wanted`: the order, the ranks, the sorted keys.
  void expectSameGrade(runtime::GradeRequest request, const Column& keys, const std::vector<int64_t>& offsets,
                       unsigned wanted, const std::string& what) {
    runtime::InterpTarget interp;
    const size_t wide = static_cast<size_t>(request.extents.elements) * 8;
    const size_t bytes[] = {(wanted & 1) != 0 ? wide : 0, (wanted & 2) != 0 ? wide : 0,
                            (wanted & 4) != 0 ? keys.bytes.size() : 0};
    runtime::DevicePointer* results[] = {&request.order, &request.ranks, &request.sorted};
    std::vector<std::byte> seen[2][3];
    for (const bool onGpu : {false, true}) {
      runtime::Target& target = onGpu ? *cuda_ : interp;
      HeldScratch memory(target);
      request.keys = memory.take(keys.bytes.size());
      target.upload(request.keys, keys.bytes.data(), keys.bytes.size());
      request.offsets = nullptr;
      if (request.space == SpaceKind::Offsets) {
        request.offsets = memory.take(offsets.size() * 8);
        target.upload(request.offsets, offsets.data(), offsets.size() * 8);
      }
      for (int k = 0; k < 3; ++k) *results[k] = bytes[k] > 0 ? memory.take(bytes[k]) : nullptr;
      request.scratch = &memory;
      const auto failure = target.grade(request);
      ASSERT_EQ(failure, std::nullopt) << *failure;
      for (int k = 0; k < 3; ++k) {
        seen[onGpu][k].resize(bytes[k]);
        if (bytes[k] > 0) target.download(seen[onGpu][k].data(), *results[k], bytes[k]);
      }
    }
    for (int k = 0; k < 3; ++k)
      EXPECT_TRUE(seen[0][k] == seen[1][k])
          << what << ", result " << k << ", wanted " << wanted << ", KELPIE_SEED=" << seed_;
  }

  void compare(SpaceKind space, bool canFail, const std::vector<Lengths>& lengths, bool narrow = false) {
    RandomKernelOptions options;
    options.space = space;
    options.canFail = canFail;
    options.narrow = narrow;
    compare(options, lengths, environment("KELPIE_KERNELS", 12));
  }
  /// Kernels of which every third may fail.
  void compare(Shape shape, SpaceKind space, const std::vector<Lengths>& lengths, bool loops = false) {
    RandomKernelOptions options;
    options.shape = shape;
    options.space = space;
    options.loops = loops;
    const int64_t kernels = environment("KELPIE_KERNELS", 12);
    compare(options, lengths, (kernels + 2) / 3);
    options.canFail = true;
    compare(options, lengths, (kernels + 5) / 6);
  }

  /// A random kernel and what it is prepared as.
  struct Prepared {
    KernelCase testCase;
    runtime::ProgramKernels program;
    bool single = false;  ///< it folds float32
  };
  std::unique_ptr<Prepared> prepared(const RandomKernelOptions& options) {
    auto made = std::make_unique<Prepared>();
    made->testCase = randomKernel(random_, options);
    const lcu::Kernel& kernel = made->testCase.kernel;
    for (const lcu::Soac& soac : kernel.bindings)
      for (lcu::ExprRef e : soac.combine.result)
        made->single = made->single || e->type == ScalarType::Float32;
    const lcu::Program& whole = *made->testCase.program;
    made->program = {&whole, {{&kernel, codegen::analyseKernel(kernel, whole)}}};
    runtime::KernelEntry& entry = made->program.kernels[0];
    entry.shortArrays = randomShortArrays(random_, kernel, entry.info);
    return made;
  }

  void compare(RandomKernelOptions options, const std::vector<Lengths>& lengths, int64_t kernels) {
    runtime::InterpTarget interp;
    // All are compiled while the first ones run.
    std::vector<std::unique_ptr<Prepared>> all;
    for (int64_t k = 0; k < kernels; ++k) {
      options.bindings = 1 + static_cast<int>(random_() % 5);
      all.push_back(prepared(options));
      ASSERT_EQ(interp.prepare(all.back()->program), std::nullopt);
      auto failure = cuda_->prepareForLater(all.back()->program);
      ASSERT_EQ(failure, std::nullopt) << *failure;
    }
    for (int64_t k = 0; k < kernels; ++k) {
      ASSERT_NO_FATAL_FAILURE(compare(interp, *all[static_cast<size_t>(k)], lengths, k));
      cuda_->release(all[static_cast<size_t>(k)]->program);
      interp.release(all[static_cast<size_t>(k)]->program);
    }
  }

  void compare(runtime::InterpTarget& interp, const Prepared& prepared, const std::vector<Lengths>& lengths,
               int64_t number) {
    const auto& [testCase, program, single] = prepared;
    // Results must be equal to the bit, so sums must be exact: elements are below 64, a float32 counts to
    // 2^24.
    const int64_t asked = environment("KELPIE_SIZE", int64_t{1} << 20);
    const int64_t largest = single ? std::min(asked, int64_t{1} << 18) : asked;
    codegen::cuda::CudaOptions textOptions;
    textOptions.shortArrays = program.kernels[0].shortArrays;
    for (int64_t size : {int64_t{0}, int64_t{1}, int64_t{4096}, int64_t{100'003}, largest}) {
      if (size > largest) continue;
      for (Lengths shape : lengths) {
        // The evaluator is slow: of the largest size only one shape.
        if (size == largest && shape != lengths[static_cast<size_t>(number) % lengths.size()]) continue;
        KernelData data = randomData(random_, testCase, size, shape);
        const std::string different = differences(runKernel(interp, program, 0, data), program, data);
        ASSERT_EQ(different, "")
            << "KELPIE_SEED=" << seed_ << ", kernel " << number << ", " << data.extents.elements
            << " elements, " << data.extents.segments << " segments of " << toString(shape) << " length\n"
            << lcu::toString(testCase.kernel, *testCase.program) << "\n"
            << codegen::cuda::generateModule({&testCase.kernel}, *testCase.program, textOptions).source;
      }
    }
  }

  /// What launches on the same data give instead of `expected`, with the numbers of these launches: a kernel
  /// that is wrong each time is another mistake than one that is wrong now and then. After the first such
  /// launch there are a few more.
  std::string differences(const LaunchResult& expected, const runtime::ProgramKernels& program,
                          const KernelData& data) {
    int64_t launches = environment("KELPIE_REPEAT", 1);
    std::string all;
    for (int64_t launch = 0; launch < launches; ++launch) {
      const LaunchResult got = runKernel(*cuda_, program, 0, data);
      const std::string different = difference(expected, got, program.kernels[0].info);
      if (different.empty()) continue;
      if (all.empty()) launches = launch + 8;
      all += "launch " + std::to_string(launch) + ": " + different + "\n";
    }
    return all;
  }

  std::unique_ptr<runtime::Target> cuda_;
  uint64_t seed_ = 0;
  Random random_;
};

const std::vector<Lengths> kLengths = {Lengths::Mixed, Lengths::Zero, Lengths::One,
                                       Lengths::Eight, Lengths::Long, Lengths::Giant};

TEST_F(Gpu, FlatKernels) { compare(SpaceKind::Flat, false, {Lengths::Mixed}); }
TEST_F(Gpu, FlatKernelsOfBytes) { compare(SpaceKind::Flat, false, {Lengths::Mixed}, true); }
TEST_F(Gpu, OffsetKernels) { compare(SpaceKind::Offsets, false, kLengths); }
TEST_F(Gpu, RegularKernels) {
  compare(SpaceKind::Regular, false, {Lengths::Mixed, Lengths::Mixed, Lengths::Mixed});
}
TEST_F(Gpu, FirstErrorIsReported) { compare(SpaceKind::Offsets, true, {Lengths::Mixed, Lengths::Eight}); }

TEST_F(Gpu, RowsOfRegularSpaces) { compare(Shape::Rows, SpaceKind::Regular, {Lengths::Mixed}); }
TEST_F(Gpu, ColumnsOfRegularSpaces) {
  compare(Shape::Columns, SpaceKind::Regular, {Lengths::Mixed, Lengths::Mixed});
}
TEST_F(Gpu, TransposedMaps) {
  compare(Shape::Transposed, SpaceKind::Regular, {Lengths::Mixed, Lengths::Mixed});
}
TEST_F(Gpu, SegmentsOfKeys) { compare(Shape::Keys, SpaceKind::Regular, {Lengths::Mixed, Lengths::Mixed}); }
TEST_F(Gpu, FoldsOfScans) { compare(Shape::FoldsOfScans, SpaceKind::Offsets, kLengths); }
TEST_F(Gpu, Loops) { compare(Shape::Mixed, SpaceKind::Offsets, {Lengths::Mixed, Lengths::Giant}, true); }
/// ... of which lanes take other elements, though they would not wait long.
TEST_F(Gpu, LoopsOfQueues) {
  std::string why;
  codegen::cuda::CudaOptions options;
  options.queuesPay = true;
  cuda_ = std::make_unique<runtime::cuda::CudaTarget>(runtime::cuda::openDriverDevice(0, "", "", false, why),
                                                      options);
  compare(Shape::Mixed, SpaceKind::Offsets, {Lengths::Mixed}, true);
  compare(Shape::Mixed, SpaceKind::Flat, {Lengths::Mixed}, true);
}

/// Evaluated on the host until their code is there, then launched.
TEST_F(Gpu, LaunchesMeanwhile) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("kelpie-meanwhile-" + std::to_string(getpid()));
  ::setenv("KELPIE_CACHE", folder.c_str(), 1);
  runtime::CudaTargetOptions options;
  options.evaluateMeanwhile = true;
  std::string why;
  cuda_ = runtime::makeCudaTarget(why, options);
  ASSERT_TRUE(cuda_) << why;
  runtime::InterpTarget interp;
  const int64_t kernels = environment("KELPIE_KERNELS", 12);
  for (int64_t k = 0; k < kernels; ++k) {
    RandomKernelOptions kind;
    kind.space = static_cast<SpaceKind>(k % 3);
    kind.canFail = k % 2 == 0;
    const std::unique_ptr<Prepared> made = prepared(kind);
    const runtime::ProgramKernels& program = made->program;
    ASSERT_EQ(interp.prepare(program), std::nullopt);
    ASSERT_EQ(cuda_->prepare(program), std::nullopt);
    const KernelData data = randomData(random_, made->testCase, 40, Lengths::Mixed);
    const LaunchResult expected = runKernel(interp, program, 0, data);
    // Without elements there may be nothing to launch.
    const uint64_t before = cuda_->statistics().launches;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (cuda_->statistics().launches == before && std::chrono::steady_clock::now() < end)
      ASSERT_EQ(difference(expected, runKernel(*cuda_, program, 0, data), program.kernels[0].info), "")
          << "KELPIE_SEED=" << seed_ << ", kernel " << k;
    cuda_->release(program);
    interp.release(program);
  }
  // Kernels that fold floats wait for their code: of two, as under compute-sanitizer, both may.
  if (kernels >= 12) {
    EXPECT_GT(cuda_->statistics().evaluated, 0u);
  }
  cuda_.reset();
  ::unsetenv("KELPIE_CACHE");
  fs::remove_all(folder);
}

/// Where every element fails, nobody waits for all others: 2^24 errors one after the other took half a
/// minute.
TEST_F(Gpu, AMultitudeOfErrors) {
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  auto failure = cuda_->prepare(program);
  ASSERT_EQ(failure, std::nullopt) << *failure;
  KernelData data;
  const int64_t n = std::min<int64_t>(environment("KELPIE_SIZE", int64_t{1} << 22) * 4, int64_t{1} << 24);
  data.extents.elements = n;
  std::vector<int64_t> numbers(static_cast<size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 7);
  const auto* bytes = reinterpret_cast<const std::byte*>(numbers.data());
  data.arrays[known.vars.at("xs_i64")].assign(bytes, bytes + numbers.size() * sizeof(int64_t));
  data.arrays[known.vars.at("col32")].assign(static_cast<size_t>(n) * sizeof(int32_t), std::byte{0});
  const auto begin = std::chrono::steady_clock::now();
  const LaunchResult result = runKernel(*cuda_, program, known.number("checked_division"), data);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(result.error.has_value());
  EXPECT_EQ(result.error->payload0, 7) << "the number that the first element divides";
  EXPECT_LT(seconds.count(), 30) << "where each takes the lock, it is minutes";
  cuda_->release(program);
}

/// Sums of floats that round give the same bits in every run, and are near the exact sum.
TEST_F(Gpu, FloatResultsAreReproducible) {
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  auto failure = cuda_->prepare(program);
  ASSERT_EQ(failure, std::nullopt) << *failure;
  KernelData data;
  const int64_t n = std::min<int64_t>(environment("KELPIE_SIZE", int64_t{1} << 22) * 4, int64_t{1} << 24);
  data.extents.elements = n;
  std::vector<float> xs(static_cast<size_t>(n));
  std::normal_distribution<float> normal;
  double exact = 0;
  for (float& x : xs) exact += x = normal(random_);
  std::vector<int64_t> offsets = {0};
  while (offsets.back() < n) {
    offsets.push_back(std::min<int64_t>(n, offsets.back() + static_cast<int64_t>(random_() % 100'000)));
  }
  data.extents.segments = static_cast<int64_t>(offsets.size()) - 1;
  auto set = [&](const char* name, const void* values, size_t bytes) {
    const auto* first = static_cast<const std::byte*>(values);
    data.arrays[known.vars.at(name)].assign(first, first + bytes);
  };
  set("xs", xs.data(), xs.size() * sizeof(float));
  set("offsets", offsets.data(), offsets.size() * sizeof(int64_t));
  for (const char* name : {"sum", "scan", "segmented_sum", "segmented_scan"}) {
    auto first = runKernel(*cuda_, program, known.number(name), data);
    ASSERT_EQ(first.failure, std::nullopt) << *first.failure;
    for (int again = 0; again < 5; ++again) {
      auto second = runKernel(*cuda_, program, known.number(name), data);
      ASSERT_EQ(first.outputs, second.outputs) << name << ", KELPIE_SEED=" << seed_;
    }
    if (std::string(name) == "sum") {
      float sum = 0;
      std::memcpy(&sum, first.outputs[0].data(), sizeof sum);
      EXPECT_NEAR(sum, exact, 1e-4 * std::sqrt(static_cast<double>(n)) + 1e-3);
    }
  }
  cuda_->release(program);
}

/// Of every significand, with any exponent and sign: the reciprocal is rounded as IEEE 754 says.
TEST_F(Gpu, ReciprocalsAreRoundedCorrectly) {
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  auto failure = cuda_->prepare(program);
  ASSERT_EQ(failure, std::nullopt) << *failure;
  const auto n = static_cast<uint32_t>(environment("KELPIE_SIZE", int64_t{1} << 23) & 0x1ffffff);
  KernelData data;
  data.extents.elements = n;
  std::vector<uint32_t> xs(n);
  for (uint32_t k = 0; k < n; ++k) {
    // Extreme exponents in some places alone: elsewhere neighbours have none.
    const auto random = static_cast<uint32_t>(random_());
    const uint32_t exponent = k / 4096 % 8 == 0 ? random >> 8 & 255 : 1 + (random >> 8) % 252;
    xs[k] = (random & 0x80000000) | exponent << 23 | (k & 0x7fffff);
  }
  const auto* first = reinterpret_cast<const std::byte*>(xs.data());
  data.arrays[known.vars.at("xs")].assign(first, first + 4 * xs.size());
  const auto result = runKernel(*cuda_, program, known.number("reciprocals"), data);
  ASSERT_EQ(result.failure, std::nullopt) << *result.failure;
  for (uint32_t k = 0; k < n; ++k) {
    float x = 0, got = 0;
    std::memcpy(&x, &xs[k], 4);
    std::memcpy(&got, result.outputs[0].data() + 4 * size_t{k}, 4);
    const float expected = 1.0f / x;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << x;
    } else {
      ASSERT_EQ(std::memcmp(&got, &expected, 4), 0) << x << ": " << got << ", KELPIE_SEED=" << seed_;
    }
  }
  cuda_->release(program);
}

TEST_F(Gpu, Divisions) {
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  auto failure = cuda_->prepare(program);
  ASSERT_EQ(failure, std::nullopt) << *failure;
  const int64_t n = std::min(environment("KELPIE_SIZE", int64_t{1} << 20), int64_t{1} << 20);
  compareDivisions(*cuda_, known, program, static_cast<size_t>(n), random_);
  compareFloatDivisions(*cuda_, known, program, static_cast<size_t>(n), random_);
  cuda_->release(program);
}

/// ptxas gave both masks what one of them had (markIf in base.cuh), in tiles in which no segment begins.
TEST_F(Gpu, FiltersBesideEachOther) {
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  runtime::InterpTarget interp;
  ASSERT_EQ(interp.prepare(program), std::nullopt);
  auto failure = cuda_->prepare(program);
  ASSERT_EQ(failure, std::nullopt) << *failure;
  KernelData data;
  const int64_t n = std::min<int64_t>(environment("KELPIE_SIZE", 100'000), 100'000);
  data.extents.elements = n;
  data.extents.segments = 2;
  const auto set = [&](const char* name, auto values) {
    const auto* first = reinterpret_cast<const std::byte*>(values.data());
    data.arrays[known.vars.at(name)].assign(first, first + values.size() * sizeof values[0]);
  };
  const auto numbersOf = [&](auto zero) {
    std::vector<decltype(zero)> numbers(static_cast<size_t>(n));
    for (auto& x : numbers) x = static_cast<decltype(zero)>(random_() % 64);
    return numbers;
  };
  set("xs_i64", numbersOf(int64_t{}));
  set("col32", numbersOf(int32_t{}));
  set("xs_f64", numbersOf(double{}));
  set("xs", numbersOf(float{}));
  set("offsets", std::vector<int64_t>{0, n / 2, n});
  const size_t number = known.number("segmented_filters");
  EXPECT_EQ(difference(runKernel(interp, program, number, data), runKernel(*cuda_, program, number, data),
                       program.kernels[number].info),
            "")
      << "KELPIE_SEED=" << seed_;
  cuda_->release(program);
}

/// Memory of a target in one piece, so that nobody asks the device for memory between launches.
class Arena final : public runtime::Scratch {
 public:
  Arena(runtime::Target& target, size_t bytes) : memory_(target), next_(memory_.take(bytes)), left_(bytes) {}
  runtime::DevicePointer take(size_t bytes) override {
    const size_t size = (bytes + 255) / 256 * 256;
    if (size > left_) return nullptr;
    left_ -= size;
    return std::exchange(next_, static_cast<std::byte*>(next_) + size);
  }

 private:
  HeldScratch memory_;
  runtime::DevicePointer next_;
  size_t left_;
};

/// Launches without a wait between them, which go to the device in graphs (runtime/cuda/launch_queue.h):
/// other kernels and arguments in the same places from round to round.
TEST_F(Gpu, LongRowsOfLaunches) {
  constexpr int kLaunches = 100;
  constexpr int64_t n = 1000;
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  auto failure = cuda_->prepare(program);
  ASSERT_EQ(failure, std::nullopt) << *failure;
  Arena memory(*cuda_, size_t{1} << 26);
  std::vector<runtime::KernelArgument> inputs(kLaunches);
  std::vector<runtime::DevicePointer> outputs(kLaunches);
  for (int k = 0; k < kLaunches; ++k) {
    const std::vector<float> values(n, static_cast<float>(k + 1));
    inputs[k].pointer = memory.take(n * sizeof(float));
    outputs[k] = memory.take(n * sizeof(float));
    ASSERT_EQ(cuda_->upload(inputs[k].pointer, values.data(), n * sizeof(float)), std::nullopt);
  }
  std::optional<runtime::DeviceError> error;
  for (int round = 0; round < 4; ++round) {
    ASSERT_EQ(cuda_->synchronise(error), std::nullopt);
    const auto isSum = [round](int k) { return (k + round) % 3 == 0; };
    for (int k = 0; k < kLaunches; ++k) {
      const size_t kernel = known.number(isSum(k) ? "sum" : "scan");
      ASSERT_EQ(program.kernels[kernel].info.parameters.size(), 1u);
      codegen::LaunchExtents extents;
      extents.elements = n;
      failure = cuda_->launch({&program, kernel, extents, {&inputs[k], 1}, {&outputs[k], 1}, &memory});
      ASSERT_EQ(failure, std::nullopt) << *failure;
    }
    ASSERT_EQ(cuda_->synchronise(error), std::nullopt);
    ASSERT_FALSE(error);
    for (int k = 0; k < kLaunches; ++k) {
      const size_t written = isSum(k) ? 1 : n;
      std::vector<float> values(written);
      ASSERT_EQ(cuda_->download(values.data(), outputs[k], written * sizeof(float)), std::nullopt);
      for (size_t i = 0; i < written; ++i)
        ASSERT_EQ(values[i], static_cast<float>((isSum(k) ? n : static_cast<int64_t>(i)) * (k + 1)))
            << "round " << round << ", launch " << k;
    }
  }
  cuda_->release(program);
}

/// Kernels begin before all that the one before wrote has arrived (LaunchQueue), and wait for it: each
/// gathers what the one before has put where the one before that had read.
TEST_F(Gpu, LaunchesSeeWhatTheOneBeforeWrote) {
  constexpr int kLaunches = 301;
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  ASSERT_EQ(cuda_->prepare(program), std::nullopt);
  const size_t kernel = known.number("checked_gather_near");
  const int64_t largest = environment("KELPIE_SIZE", int64_t{1} << 20);
  for (const int64_t n : {int64_t{33}, int64_t{1000}, int64_t{40'000}, largest}) {
    Arena memory(*cuda_, size_t{1} << 26);
    std::vector<float> values(static_cast<size_t>(n)), next(values.size());
    std::iota(values.begin(), values.end(), 0.0f);
    std::vector<int64_t> places(values.size());
    std::iota(places.begin(), places.end(), 0);
    std::shuffle(places.begin(), places.end(), random_);
    const size_t bytes = values.size() * sizeof(float);
    runtime::DevicePointer buffers[] = {memory.take(bytes), memory.take(bytes)};
    const runtime::DevicePointer from = memory.take(places.size() * sizeof(int64_t));
    ASSERT_EQ(cuda_->upload(buffers[0], values.data(), bytes), std::nullopt);
    ASSERT_EQ(cuda_->upload(from, places.data(), places.size() * sizeof(int64_t)), std::nullopt);
    codegen::LaunchExtents extents;
    extents.elements = n;
    for (int k = 0; k < kLaunches; ++k) {
      std::vector<runtime::KernelArgument> arguments;
      for (const codegen::KernelParameter& p : program.kernels[kernel].info.parameters) {
        runtime::KernelArgument& argument = arguments.emplace_back();
        if (p.kind == codegen::ParameterKind::Array) {
          argument.pointer = p.var == known.vars.at("xs") ? buffers[k % 2] : from;
        } else {
          argument.integer = n;
        }
      }
      ASSERT_EQ(cuda_->launch({&program, kernel, extents, arguments, {&buffers[(k + 1) % 2], 1}, &memory}),
                std::nullopt);
      for (size_t i = 0; i < values.size(); ++i) next[i] = values[static_cast<size_t>(places[i])];
      values.swap(next);
    }
    std::optional<runtime::DeviceError> error;
    ASSERT_EQ(cuda_->synchronise(error), std::nullopt);
    ASSERT_FALSE(error);
    ASSERT_EQ(cuda_->download(next.data(), buffers[kLaunches % 2], bytes), std::nullopt);
    EXPECT_EQ(next, values) << n << " elements";
  }
  cuda_->release(program);
}

/// Segments of all classes of lengths (runtime/cuda/grade_segments.cuh), and longer ones; few elements and
/// many; keys that differ in few bits and in many, so that places are beside them.
TEST_F(Gpu, SortsStablyBySegment) {
  struct Shape {
    const char* name;
    int64_t elements, most, length;  ///< most: of a segment; length: of all of them, or 0
  };
  std::vector<Shape> shapes = {{"few", 900, 60, 0},
                               {"few", 4096, 4096, 0},
                               {"short", 100'000, 12, 0},
                               {"classes", 19'000, 4096, 0},
                               {"classes", 150'000, 4096, 0},
                               {"beyond", 19'000, 9'000, 0},
                               {"short, many", (1 << 22) + 5'000, 60, 0},
                               {"beyond, many", (1 << 22) + 77'777, 60'000, 0},
                               {"regular", 210'000, 0, 70'000}};
  for (const int64_t length : {1, 3, 7, 20, 33, 100, 129, 400, 1000, 1500, 4000, 5000})
    shapes.push_back({"regular", length * (2 + 5000 / length), 0, length});
  for (const Shape& shape : shapes) {
    if (shape.elements > environment("KELPIE_SIZE", shape.elements)) continue;
    std::vector<int64_t> offsets = {0, 0};
    while (shape.length == 0 && offsets.back() < shape.elements) {
      // Lengths of all orders of magnitude are alike often.
      int64_t length = static_cast<int64_t>(random_() % static_cast<uint64_t>(shape.most + 1));
      length >>= random_() % 14;
      offsets.push_back(std::min(shape.elements, offsets.back() + length));
    }
    const int64_t n = shape.elements;
    for (ScalarType type : {ScalarType::Bool, ScalarType::Char, ScalarType::Int32, ScalarType::Int64,
                            ScalarType::Float32, ScalarType::Float64}) {
      for (const int64_t range : {int64_t{300}, int64_t{1} << 52}) {
        if (range > 300 && sizeOf(type) < 8) continue;
        if (n > 1'000'000 && type != ScalarType::Float64 && (type != ScalarType::Int64 || range > 300))
          continue;
        Column keys = scalarColumn(type, sortingKeys(type, n, range));
        runtime::GradeRequest request{};
        request.type = type;
        request.space = shape.length == 0 ? SpaceKind::Offsets : SpaceKind::Regular;
        request.extents.elements = n;
        request.extents.length = shape.length;
        request.extents.segments =
            shape.length == 0 ? static_cast<int64_t>(offsets.size()) - 1 : n / shape.length;
        const unsigned wanted = 1 + random_() % (isFloat(type) ? 3 : 7);
        expectSameGrade(request, keys, offsets, wanted,
                        fmt::format("{} below {}, {} {}", toString(type), range, shape.name, shape.length));
      }
    }
  }
}

/// Where the launch that makes offsets has failed, memory holds anything: nothing is sorted, and nothing
/// outside of the arrays is touched.
TEST_F(Gpu, SortsNoSegmentsAfterAnError) {
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  ASSERT_EQ(cuda_->prepare(program), std::nullopt);  // from when on there is a word of errors
  for (int tenths = 0; !cuda_->canForetell() && tenths < 300; ++tenths)  // its code is being compiled
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (const int64_t n : {int64_t{900}, int64_t{19'000}, int64_t{200'000}}) {
    if (n > environment("KELPIE_SIZE", n)) continue;
    HeldScratch memory(*cuda_);
    constexpr int64_t kSegments = 60;
    const std::vector<int64_t> keys(static_cast<size_t>(n), 3);
    std::vector<int64_t> offsets, marks(keys.size(), -7);
    for (int64_t s = 0; s <= kSegments; ++s) offsets.push_back(static_cast<int64_t>(random_() >> 24) - n * s);
    runtime::GradeRequest request{};
    request.type = ScalarType::Int64;
    request.space = SpaceKind::Offsets;
    request.extents.elements = n;
    request.extents.segments = kSegments;
    request.scratch = &memory;
    request.keys = memory.take(keys.size() * 8);
    request.order = memory.take(keys.size() * 8);
    request.offsets = memory.take(offsets.size() * 8);
    const runtime::DevicePointer condition = memory.take(1);
    const char no = 0;
    ASSERT_EQ(cuda_->upload(request.keys, keys.data(), keys.size() * 8), std::nullopt);
    ASSERT_EQ(cuda_->upload(request.order, marks.data(), marks.size() * 8), std::nullopt);
    ASSERT_EQ(cuda_->upload(request.offsets, offsets.data(), offsets.size() * 8), std::nullopt);
    ASSERT_EQ(cuda_->upload(condition, &no, 1), std::nullopt);
    uint64_t number = 0;
    ASSERT_EQ(cuda_->foretell(condition, true, number), std::nullopt);  // which sets the word of errors
    auto failure = cuda_->grade(request);
    EXPECT_EQ(failure, std::nullopt) << *failure;
    runtime::Outcome outcome{};
    ASSERT_EQ(cuda_->outcomeOf(number, true, outcome), std::nullopt);
    cuda_->takeBack(number);
    std::vector<int64_t> order(keys.size());
    ASSERT_EQ(cuda_->download(order.data(), request.order, order.size() * 8), std::nullopt);
    EXPECT_TRUE(order == marks) << n << " elements, KELPIE_SEED=" << seed_;
    for (int64_t s = 0; s <= kSegments; ++s) offsets[static_cast<size_t>(s)] = n * s / kSegments;
    ASSERT_EQ(cuda_->upload(request.offsets, offsets.data(), offsets.size() * 8), std::nullopt);
    failure = cuda_->grade(request);
    ASSERT_EQ(failure, std::nullopt) << *failure;
    ASSERT_EQ(cuda_->download(order.data(), request.order, order.size() * 8), std::nullopt);
    EXPECT_EQ(order.back(), n - 1 - offsets[kSegments - 1]) << n << " elements";
  }
  cuda_->release(program);
}

TEST_F(Gpu, RandomNumbersAreThoseOfTheHost) {
  for (const RandomGenerator generator : {RandomGenerator::Additive, RandomGenerator::Philox}) {
    RandomStream stream(generator);
    stream.seed(static_cast<int64_t>(random_()));
    for (const size_t most : {40, 5'000, 300'000, 12'000'000}) {
      std::vector<int64_t> expected(1 + random_() % most);
      const auto count = static_cast<int64_t>(expected.size());
      std::vector<int64_t> wide(expected.size());
      std::vector<int32_t> narrow(expected.size());
      HeldScratch memory(*cuda_);
      const runtime::DevicePointer words[] = {memory.take(expected.size() * 8),
                                              memory.take(expected.size() * 4)};
      for (const auto& [type, draws] :
           {std::pair(ScalarType::Int64, words[0]), {ScalarType::Int32, words[1]}}) {
        const auto failure = cuda_->draw(stream, type, draws, count);
        ASSERT_EQ(failure, std::nullopt) << *failure;
      }
      ASSERT_EQ(cuda_->download(wide.data(), words[0], expected.size() * 8), std::nullopt);
      ASSERT_EQ(cuda_->download(narrow.data(), words[1], expected.size() * 4), std::nullopt);
      stream.draw(expected);
      EXPECT_TRUE(wide == expected) << count << " draws, KELPIE_SEED=" << seed_;
      EXPECT_TRUE(std::ranges::equal(narrow, expected)) << count << " draws, KELPIE_SEED=" << seed_;
      stream.skip(random_() % 1'000'000);
    }
  }
}

/// Long arrays, of 65,536 and more, are sorted by the bits in which keys differ; ranks of more than 2^23 are
/// written by way of a sort of their places.
TEST_F(Gpu, SortsByTheBitsThatDiffer) {
  struct Keys {
    ScalarType type;
    int64_t least, range, step;
  };
  for (const Keys& k :
       {Keys{ScalarType::Int64, 0, 1024, 1}, Keys{ScalarType::Int64, -7, 15, 1},
        Keys{ScalarType::Int64, int64_t{5} << 40, 300, 1 << 20},
        Keys{ScalarType::Int64, INT64_MIN / 2, INT64_MAX, 1}, Keys{ScalarType::Int64, 42, 1, 1},
        Keys{ScalarType::Int32, -100, 70000, 1}, Keys{ScalarType::Int32, 1 << 20, 9, 1 << 16},
        Keys{ScalarType::Char, 97, 4, 1}, Keys{ScalarType::Bool, 0, 2, 1},
        Keys{ScalarType::Float32, -3, 7, 1}, Keys{ScalarType::Float64, 1000, 900, 1}}) {
    for (const int64_t n : {int64_t{1}, int64_t{1000}, int64_t{65'535}, int64_t{65'536}, int64_t{300'001},
                            int64_t{1 << 23} + 12'345}) {
      if (n > environment("KELPIE_SIZE", n)) continue;
      const bool large = n > 1'000'000;
      if (large && (k.type != ScalarType::Int64 || (k.range != 1024 && k.range != INT64_MAX))) continue;
      std::vector<Scalar> values;
      for (int64_t e = 0; e < n; ++e) {
        const auto below = static_cast<int64_t>(random_() % static_cast<uint64_t>(k.range));
        values.push_back(convert(Scalar::ofInt(ScalarType::Int64, k.least + below * k.step), k.type));
      }
      const Column keys = scalarColumn(k.type, values);
      runtime::GradeRequest request{};
      request.type = k.type;
      request.space = SpaceKind::Flat;
      request.extents.elements = n;
      for (unsigned wanted = 1; wanted < 8; ++wanted) {
        if ((isFloat(k.type) && wanted >= 4) || (large && (wanted & 2) == 0)) continue;
        expectSameGrade(request, keys, {}, wanted,
                        fmt::format("{} from {}, {} keys", toString(k.type), k.least, n));
      }
    }
  }
}

}  // namespace
}  // namespace kelpie::tests
