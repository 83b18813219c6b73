// Random numbers made on the device, over an emulated one.
#include "runtime/cuda/device_draws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "emulated_device.h"
#include "runtime/cuda/cuda_target.h"
#include "tests/flatten/program_runner.h"

namespace kelpie::testing {
namespace {

class DeviceDraws : public ::testing::TestWithParam<RandomGenerator> {
 protected:
  /// The draws of `stream` that come after `skipped` others.
  void expectDraws(RandomStream stream, uint64_t skipped, int64_t count) {
    stream.skip(skipped);
    expectDraws<int64_t>(stream, ScalarType::Int64, count);
    expectDraws<int32_t>(stream, ScalarType::Int32, count);
  }
  template <typename Draw>
  void expectDraws(RandomStream stream, ScalarType type, int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(Draw);
    runtime::DevicePointer memory = device_.allocate(bytes);
    runtime::Failure failure = draws_.load(stream.generator());
    if (!failure) failure = draws_.draw(stream, type, memory, count);
    ASSERT_EQ(failure, std::nullopt) << *failure;
    std::vector<Draw> drawn(static_cast<size_t>(count));
    std::vector<int64_t> expected(drawn.size());
    ASSERT_EQ(device_.download(drawn.data(), memory, bytes), std::nullopt);
    device_.deallocate(memory);
    stream.draw(expected);
    EXPECT_TRUE(std::ranges::equal(drawn, expected)) << toString(type) << ' ' << count;
  }
  void TearDown() override { draws_.unload(); }

  tests::EmulatedDevice device_{3};
  runtime::cuda::DeviceDraws draws_{device_};
};

TEST_P(DeviceDraws, AreThoseOfTheHost) {
  RandomStream stream(GetParam());
  for (const int64_t count : {1, 2, 30, 31, 32, 500, 63'488, 63'489, 300'000}) expectDraws(stream, 0, count);
}

TEST_P(DeviceDraws, ContinueAnywhere) {
  RandomStream stream(GetParam());
  stream.seed(-77);
  for (const uint64_t skipped : {1, 2, 3, 5, 100'000})
    expectDraws(stream, skipped, 6'000 + int64_t(skipped % 4));
}

INSTANTIATE_TEST_SUITE_P(Generators, DeviceDraws,
                         ::testing::Values(RandomGenerator::Additive, RandomGenerator::Philox));

/// Few are made on the host, many on the device; each goes on where the one before ended.
TEST(DeviceDrawsOfPrograms, ContinueEachOther) {
  for (const bool timed : {false, true}) {
    RunnerOptions options;
    options.timed = timed;
    options.target = [] {
      return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<tests::EmulatedDevice>(7));
    };
    const std::vector<FormOutcome> outcomes = runProgram(
        "{rand(j) : j in dist(100, 6)} ++ {rand(j) : j in dist(1000, 5000)} ++ [rand(77)] ++"
        "  {rand(j) : j in [1:6001]} ++ {rand(5000000000 + j) : j in [0:3000]};"
        "let ignored = rand_seed(5) in sum({rand(x) : x in dist(1.0, 5000)});",
        options);
    ASSERT_EQ(outcomes.size(), 2u);
    for (const FormOutcome& outcome : outcomes) EXPECT_EQ(outcome.difference, "") << outcome.text;
  }
}

}  // namespace
}  // namespace kelpie::testing
