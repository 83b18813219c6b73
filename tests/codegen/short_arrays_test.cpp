// Arrays of Int64 that are stored in 32 bits (codegen/short_arrays.h), over an emulated device.
#include <gtest/gtest.h>

#include "emulated_device.h"
#include "runtime/cuda/cuda_target.h"
#include "tests/flatten/program_runner.h"

namespace kelpie::testing {
namespace {

std::vector<FormOutcome> run(const std::string& nesl, int64_t longest = codegen::kLongestShort,
                             bool timed = false, bool storesShort = true) {
  RunnerOptions options;
  options.timed = timed;
  options.target = [=] {
    codegen::cuda::CudaOptions cuda;
    cuda.longestShort = longest;
    cuda.storesShort = storesShort;
    return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<tests::EmulatedDevice>(7), cuda);
  };
  return runProgram(nesl, options);
}

/// Runs a program; every kernel is the one that was expected when the program was prepared.
void expectExpected(const std::string& nesl) {
  const std::vector<FormOutcome> outcomes = run(nesl);
  EXPECT_FALSE(outcomes.empty());
  for (const FormOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
    EXPECT_EQ(outcome.targetStatistics.unexpected, 0u) << outcome.text << "\n" << outcome.lcu;
  }
}

const std::string kRows = "rows = {{float(i * j) : j in [0:rem(i, 9)]} : i in [0:200]};";

TEST(ShortArrays, OffsetsFromOutsideFiltersAndScans) {
  expectExpected(kRows +
                 "{sum(row) : row in rows}; kept = {{x in row | x > 40.0} : row in rows};"
                 "{sum(row) : row in kept}; {plus_scan(row) : row in kept};"
                 "{{sum([0:n]) : n in [0:#row]} : row in take(rows, 40)};");
}

/// Offsets that a map makes are not short, but those of a result become so.
TEST(ShortArrays, OffsetsOfResults) {
  expectExpected(
      kRows +
      "twice = rows ++ rows; {sum(row) : row in twice};"
      "nested = {take(rows, n) ++ drop(rows, n) : n in [3, 150]}; {{sum(r) : r in n} : n in nested};");
}

TEST(ShortArrays, ThroughCallsConditionsAndLoops) {
  expectExpected(
      "function halves(rows, steps) = if steps == 0 then rows"
      "  else halves({{x in row | rem(x, 2 ^ steps) > 0} : row in rows}, steps - 1);"
      "rows = {[0:rem(i * 7, 30)] : i in [0:60]}; halves(rows, 3);"
      "let some = if #rows > 10 then rows else [[1], [] int] in {sum(row) : row in some};");
}

TEST(ShortArrays, OfTextsThatAreCompared) {
  expectExpected(
      "words = wordify(\"a bb ccc dddd e ff\"); table = create_table({(w, #w) : w in words});"
      "search_table(words ++ [\"xyz\"], table); {eql(a, b) : a in words; b in reverse(words)};");
}

/// At the end of a recursion offsets are constants.
TEST(ShortArrays, OfRecursions) {
  expectExpected(
      "function sorted(a) = if #a < 2 then a else let p = a[#a / 2];"
      "  r = {sorted(v) : v in [{e in a | e < p}, {e in a | e > p}]} in r[0] ++ {e in a | e == p} ++ r[1];"
      "sorted({rem(i * 7919, 101) : i in [0:60]});");
}

/// What is expected to be wide and what is short meet: a kernel is made for what there is.
TEST(ShortArrays, WhereTheyAreNotExpected) {
  const std::vector<FormOutcome> outcomes = run(
      "rows = {[0:rem(i, 5)] : i in [0:40]}; begins = plus_scan({#row : row in rows});"
      "{begins[i] + #rows[i] : i in [0:40]}; {sum({b + x : x in row}) : b in begins; row in rows};"
      "drop(plus_scan({#row : row in rows}), 3) ++ begins; begins <- {(i, #row) : row in rows; i in [0:9]};");
  for (const FormOutcome& outcome : outcomes)
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
}

TEST(ShortArrays, ScansThatDoNotFitRunAgain) {
  const std::string lengths = "ns = {rem(i * 7, 11) : i in [0:50]};";
  for (const FormOutcome& outcome :
       run(lengths + "{sum({i * n : i in [0:n]}) : n in ns}; rows = {[0:n] : n in ns}; {sum(r) : r in rows};"
                     "{{x in r | x > 3} : r in rows};",
           100))
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
  // What was printed is not printed again.
  const std::string printing =
      lengths + "let ignored = print_string(\"once\") in {sum({i * n : i in [0:n]}) : n in ns};";
  const auto outcomes = run(printing, 100);
  ASSERT_FALSE(outcomes.empty());
  EXPECT_NE(outcomes.back().difference.find("--long-offsets"), std::string::npos)
      << outcomes.back().difference;
  for (const FormOutcome& outcome : run(printing, 100, false, false)) {
    EXPECT_EQ(outcome.difference, "") << outcome.text;
    EXPECT_EQ(outcome.targetStatistics.unexpected, 0u);
  }
}

/// The account of a launch knows how they are stored.
TEST(ShortArrays, BytesOfALaunch) {
  const auto outcomes = run(kRows + "{sum(row) : row in rows};", codegen::kLongestShort, true);
  const auto& sums = outcomes.back().targetStatistics.kernels;
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].work.bytesRead, 4 * 201 + 8 * sums[0].work.elements);
}

}  // namespace
}  // namespace kelpie::testing
