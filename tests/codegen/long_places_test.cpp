// Launches of more elements or segments than 32 bits number (codegen/cuda/cuda_module.h: Places), over an
// emulated device: the limit is a parameter, as no test has 2^32 elements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/cuda/cuda_module.h"
#include "emulated_device.h"
#include "fusion/lcu_reader.h"
#include "runtime/cuda/cuda_target.h"
#include "runtime/runtime.h"
#include "tests/flatten/program_runner.h"

namespace kelpie::testing {
namespace {

std::vector<FormOutcome> run(const std::string& nesl, int64_t mostShort) {
  RunnerOptions options;
  options.target = [=] {
    codegen::cuda::CudaOptions cuda;
    cuda.mostShortPlaces = mostShort;
    return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<tests::EmulatedDevice>(7), cuda);
  };
  return runProgram(nesl, options);
}

/// Of so many forms, the kernels made anew.
uint64_t madeAnew(const std::string& nesl, int64_t mostShort) {
  uint64_t number = 0;
  for (const FormOutcome& outcome : run(nesl, mostShort)) {
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
    number += outcome.targetStatistics.unexpected;
  }
  return number;
}

TEST(LongPlaces, OfElements) {
  const std::string nesl = "{(rem(i, 7), i / 3) : i in [0:500]};";
  EXPECT_EQ(madeAnew(nesl, 500), 0u);
  EXPECT_EQ(madeAnew(nesl, 499), 1u);
}

TEST(LongPlaces, OfSegments) {
  const std::string nesl = "ns = {rem(i, 2) : i in [0:300]}; {sum({i + n : i in [0:n]}) : n in ns};";
  EXPECT_EQ(madeAnew(nesl, 300), 0u);
  EXPECT_GT(madeAnew(nesl, 299), 0u);
}

/// One kernel is launched with both.
TEST(LongPlaces, OnceAndThenNot) {
  const std::string nesl =
      "function halved(xs) = if #xs < 10 then xs else halved({x + i / 3 : x in xs; i in [0:#xs] | rem(i, 2) "
      "== 0});"
      "halved([0:1000]);";
  EXPECT_EQ(madeAnew(nesl, 1000), 0u);
  EXPECT_GT(madeAnew(nesl, 100), 0u);
}

std::string sourceOf(const std::string& text) {
  const lcu::ReadResult read = lcu::readProgram(text);
  const auto& program = std::get<lcu::Program>(read);
  return codegen::cuda::generateModule(runtime::kernelsOf(program), program).source;
}

/// To be told of a number that is only stored, added to, or where something is loaded makes code longer.
TEST(LongPlaces, OnlyWhatComputesWithThemIsTold) {
  using ::testing::HasSubstr, ::testing::Not;
  const auto map = [](const std::string& thunk) {
    return sourceOf("function f(xs: [int64]) { kernel k { let r: [int64; #xs] = MAP flat #xs { i => " +
                    thunk + " } return r } return r }");
  };
  EXPECT_THAT(map("i % 7"), HasSubstr("k_place<Place>"));
  EXPECT_THAT(map("if i < 100 then xs[i] else 0"), HasSubstr("k_place<Place>"));
  EXPECT_THAT(map("xs[i] * 3 + i"), Not(HasSubstr("k_place<Place>")));
  EXPECT_THAT(map("xs[i] % 7"), Not(HasSubstr("k_place<Place>")));
}

TEST(LongPlaces, SourcesSayWhich) {
  codegen::cuda::CudaPass pass;
  EXPECT_NE(sourceOf(pass).find("using Place = uint32_t;"), std::string::npos);
  EXPECT_NE(sourceOf(pass, codegen::cuda::Places::Long).find("using Place = uint64_t;"), std::string::npos);
}

}  // namespace
}  // namespace kelpie::testing
