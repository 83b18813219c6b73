// Fusion keeps what a program means: random programs, every strategy, evaluated on the interp target.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/fuse.h"
#include "fusion/lcu_reader.h"
#include "runtime/host_target.h"
#include "tests/fusion/random_program.h"

namespace kelpie::fusion {
namespace {

using kelpie::testing::RandomProgram;

runtime::RunResult run(RandomProgram& program) {
  runtime::Executor executor(std::make_unique<runtime::InterpTarget>(0));
  return program.b.run(executor);
}

struct Sample {
  const char* name;
  int statements, programs;
  bool failing;
};

class RandomPrograms : public ::testing::TestWithParam<Sample> {};

TEST_P(RandomPrograms, MeanTheSameAfterFusion) {
  const Sample& sample = GetParam();
  int fused = 0, failed = 0;
  for (int seed = 0; seed < sample.programs; ++seed) {
    RandomProgram original(static_cast<uint32_t>(seed), sample.statements, sample.failing);
    ASSERT_THAT(lcu::verify(original.b.program, false), ::testing::ElementsAre())
        << lcu::toString(original.b.program);
    const runtime::RunResult expected = run(original);
    failed += std::holds_alternative<RuntimeError>(expected);
    for (Strategy strategy : {Strategy::None, Strategy::Delayed, Strategy::Greedy, Strategy::Ilp}) {
      RandomProgram copy(static_cast<uint32_t>(seed), sample.statements, sample.failing);
      FusionOptions options;
      options.strategy = strategy;
      options.explain = strategy == Strategy::Ilp;
      const FusionReport report = fuse(copy.b.program, options);
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << toString(strategy) << "\nbefore:\n"
                                        << lcu::toString(original.b.program) << "\nafter:\n"
                                        << lcu::toString(copy.b.program));
      ASSERT_THAT(lcu::verify(copy.b.program, true), ::testing::ElementsAre());
      const runtime::RunResult actual = run(copy);
      ASSERT_EQ(std::holds_alternative<RuntimeError>(actual), std::holds_alternative<RuntimeError>(expected));
      if (const auto* columns = std::get_if<Columns>(&expected)) {
        ASSERT_TRUE(std::get<Columns>(actual) == *columns);
      }
      for (const RegionReport& region : report.regions) {
        for (const ClusterReport& cluster : region.clusters) fused += cluster.nodes.size() > 1;
        for (const PairReport& pair : region.pairs) EXPECT_FALSE(pair.reason.empty());
      }
    }
  }
  EXPECT_GT(fused, sample.programs);
  EXPECT_EQ(failed > 0, sample.failing);
}

INSTANTIATE_TEST_SUITE_P(All, RandomPrograms,
                         ::testing::Values(Sample{"Small", 5, 400, false}, Sample{"Medium", 12, 150, false},
                                           Sample{"Large", 25, 30, false}, Sample{"Failing", 8, 200, true}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Scale, AboutAHundredNodesAreProvenOptimal) {
  int better = 0;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    RandomProgram program(seed, 100, false);
    FusionOptions options;
    options.seconds = options.totalSeconds = 60;  // a busy machine is no failure; 0.5 s are usual
    options.compare = true;
    const FusionReport report = fuse(program.b.program, options);
    ASSERT_EQ(report.regions.size(), 1u);
    std::map<Strategy, const StrategyReport*> by;
    for (const StrategyReport& s : report.regions[0].strategies) by[s.strategy] = &s;
    EXPECT_GT(report.regions[0].nodes.size(), 80u);
    EXPECT_EQ(by[Strategy::Ilp]->gap, 0);
    EXPECT_LE(by[Strategy::Ilp]->objective, by[Strategy::Greedy]->objective);
    EXPECT_LE(by[Strategy::Greedy]->objective, by[Strategy::None]->objective);
    EXPECT_LE(by[Strategy::Ilp]->objective, by[Strategy::Delayed]->objective);
    better += by[Strategy::Ilp]->objective < by[Strategy::Greedy]->objective - 1e-6;
  }
  EXPECT_GT(better, 2);
}

/// Each needs the one before to be with whatever else is: rules that are no more than the pairs.
TEST(Scale, AHundredFiltersOfEachOther) {
  constexpr int kFilters = 100;
  std::string text = "function f(xs: [int64]) {\n";
  std::string array = "xs", length = "#xs";
  for (int k = 0; k < kFilters; ++k) {
    text += fmt::format(
        "kernel k{0} {{ let n{0}: &int64, a{0}: [int64; n{0}] = FILTER flat {1} {{ i => {2}[i] * 7 }}"
        " where {{ i => {2}[i] > {0} }} return n{0}, a{0} }}\n",
        k, length, array);
    array = fmt::format("a{}", k);
    length = fmt::format("n{}", k);
  }
  lcu::ReadResult program = lcu::readProgram(text + "return " + length + "}");
  ASSERT_TRUE(std::holds_alternative<lcu::Program>(program));
  FusionOptions options;
  options.seconds = options.totalSeconds = 60;  // 0.5 s are usual
  size_t requirements = 0;
  options.observe = [&](const RegionReport&, const PartitionProblem& problem, const PairTable&) {
    requirements = std::max(requirements, problem.requirements.size());
  };
  const FusionReport report = fuse(std::get<lcu::Program>(program), options);
  ASSERT_EQ(report.regions.size(), 1u);
  EXPECT_EQ(report.regions[0].strategies[0].gap, 0);
  EXPECT_GT(requirements, size_t{kFilters});
  EXPECT_LE(requirements, size_t{kFilters} * kFilters);
}

}  // namespace
}  // namespace kelpie::fusion
