// Which of several errors inside of a kernel is told: the one that the program comes to first, also where
// checks and choices that are known to hold have gone (fusion/implied_checks.h).
#include <gtest/gtest.h>

#include "program_runner.h"

namespace kelpie::testing {
namespace {

/// The error of the last form, which is the reference's, place and all, with every strategy.
std::string errorOf(const std::string& nesl) {
  RunnerOptions options;
  options.strategies = true;
  std::string error;
  for (const FormOutcome& outcome : runProgram(nesl, options)) {
    EXPECT_EQ(outcome.difference, "") << outcome.text;
    error = outcome.error;
  }
  return error;
}

/// What an analysis has made of a load, without its check, is made before the loop around it is.
TEST(EvaluationOrder, OfWhatAnalysesHaveMade) {
  EXPECT_NE(
      errorOf("function at(v, y) = v[y];"
              "function walk(v, x, k) = if k == 0 then 0 else"
              "  walk(v, at(v, (if x > 0 and x < #v then v[x] else x) + (if k == 1 then 50 else 0)), k - 1);"
              "function both(v, x) = let a = walk(v, x, 3); b = v[x + 100] in a * 3 + b;"
              "{both([1, 2, 3, 1, 0, 5], x) : x in [2]};")
          .find("index 51"),
      std::string::npos);
}

/// Two loops that differ by the place of a check become one, which comes where the first of them is.
TEST(EvaluationOrder, OfLoopsThatBecomeOne) {
  for (const char* result : {"c * 3 + a * 5 + b", "a * 5 + c * 3 + b"}) {
    const std::string error = errorOf(
        "function at(v, y) = v[y];"
        "function one(v, x, k) = if k == 0 then at(v, x + 49) else"
        "  one(v, (if x > 0 and x < #v then v[x] else x), k - 1);"
        "function other(v, x, k) = if k == 0 then at(v, x + 49) else"
        "  other(v, (if x > 0 and x < #v then v[x] else x), k - 1);"
        "function all(v, x) = let a = one(v, x, 3); b = v[x + 100]; c = other(v, x, 3) in " +
        std::string(result) + ";{all([1, 2, 3, 1, 0, 5], x) : x in [2]};");
    EXPECT_NE(error.find("index 51"), std::string::npos) << error;
  }
}

/// A choice around a loop that would fail stays, though it is known how it is made: another choice has the
/// loop, too, in front of what fails first, and does not come to it.
TEST(EvaluationOrder, OfLoopsUnderConditions) {
  EXPECT_NE(errorOf("function up(v, x) = if x == 0 then 0 else if x > 1000 then v[x] else up(v, x * 3);"
                    "function all(v, x) = let a = if v[0] == 7 then up(v, x) else 0;"
                    "  b = v[x + 100]; c = if x > 0 then up(v, x) else 0 in a + b + c;"
                    "{if x > 1 then all([1, 2, 3, 1, 0, 5], x) else 0 : x in [2]};")
                .find("index 102"),
            std::string::npos);
}

}  // namespace
}  // namespace kelpie::testing
