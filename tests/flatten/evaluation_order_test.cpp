// Which of several errors inside of a kernel is told: the one that the program comes to first, also where
// checks and choices that are known to hold have gone (fusion/implied_checks.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "program_runner.h"

namespace kelpie::testing {
namespace {

/// The error of the last form, which is the reference's, place and all, with every strategy, or with ilp
/// alone.
std::string errorOf(const std::string& nesl, bool strategies = true) {
  RunnerOptions options;
  options.strategies = strategies;
  options.fused = !strategies;
  std::string error;
  for (const FormOutcome& outcome : runProgram(nesl, options)) {
    EXPECT_EQ(outcome.difference, "") << outcome.text;
    error = outcome.error;
  }
  return error;
}

/// A check in a loop that another one in front of it has decided goes; the loop stays where it is.
TEST(EvaluationOrder, OfLoopsWithMergedChecks) {
  EXPECT_NE(errorOf("function walk(v, x, k) = if k == 0 then v[k - 7] else walk(v, x, k - 1 + v[x] / 100);"
                    "function both(v, x) = let c = v[x]; a = walk(v, x, 3); b = v[x + 100] in a + b + c;"
                    "{both([1, 2, 3, 1, 0, 5], x) : x in [2]};")
                .find("index -7"),
            std::string::npos);
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

/// What does not end, and is not come to: `spin` of anything but 5.
const std::string kSpin = "function spin(w) = if w == 5 then w else spin(w + 0 * w);";

/// The last of two writers stays; what the other one would write is not computed (fusion/scattered_writes.h).
TEST(EvaluationOrder, OfWritersThatLose) {
  EXPECT_EQ(
      errorOf(kSpin + "function value(w) = if w == 0 then spin(w) else w * 10;"
                      "function written(n) = let w = dist(-1, n) <- {(k, i) : k in [1, 1]; i in index(2)}"
                      "  in {if x >= 0 then value(x) else 7 : x in w};"
                      "written(4);"),
      "");
}

/// Nor is what would replace an element that is not there.
TEST(EvaluationOrder, OfReplacementsOutside) {
  EXPECT_EQ(
      errorOf(kSpin + "function value(p) = if p < 0 then spin(p) else p * 10;"
                      "function turns(k, p, d) = if k == 0 then d else"
                      "  turns(k - 1, p + 1, {if i == p then value(p) else x : x in d; i in index(#d)});"
                      "turns(4, 0 - 2, [1, 2, 3]);"),
      "");
}

/// A loop, or a recursion, that has a loop in it which does not change, behind a check that fails.
TEST(EvaluationOrder, OfLoopsThatDoNotChange) {
  const std::string inner =
      "function inner(x, y, z) = if x == y then z else inner(x, y + (if y < x then 1 else 0), z + y);";
  EXPECT_NE(errorOf(inner + "function outer(k, n, acc, v, p, q) = if k >= n then acc else"
                            "  outer(k + 1, n, acc + v[k + p] * inner(p, q, 0), v, p, q);"
                            "{outer(0, 3, 0, [1, 2, 3, 4, 5], p, 0) : p in [0, 0 - 3]};")
                .find("index -3"),
            std::string::npos);
  EXPECT_NE(errorOf("g = 0 - 3;" + inner +
                    "function calls(k, v) : (int, [int]) -> int = let a = v[k]; b = inner(g, 0, 0) in"
                    "  if k <= 0 then a + b else a + calls(k - 1, v) * (b + calls(k - 2, v));"
                    "{calls(k, [1, 2, 3]) : k in [7, 8]};")
                .find("index 7"),
            std::string::npos);
}

/// An error of a kernel comes before a loop of the host that does not end, and before a size that nobody can
/// count.
TEST(EvaluationOrder, OfKernelsAndTheHost) {
  EXPECT_NE(
      errorOf(
          "function spin(k, c) = if c < 0 then c else spin(k, if c > 10 then 0 else c + k);"
          "function all(a, k) = let y = {10 / x : x in a}; s = sum(y); u = {v - s : v in y}; c = spin(k, 0)"
          "  in (y, u, c);"
          "all([0, 1, 2], 1);")
          .find("division by zero"),
      std::string::npos);
  EXPECT_NE(errorOf("function up(n, a) = if n == 0 then"
                    "  let y = {10 / x : x in a}; s = sum(y); u = {v - s : v in y};"
                    "      w = sum({rem(i, 5) : i in index(4611686018427387904 + n)}) in (y, u, w)"
                    "  else let p, q, r = up(n - 1, a) in (p, q, r + n);"
                    "up(3, [0:10]);")
                .find("division by zero"),
            std::string::npos);
}

/// Two filters by the same condition become one (fusion/common_launches.h), but not in front of the check
/// that the second one's sequence has an element for each: it would read far behind its end.
TEST(EvaluationOrder, OfFiltersOfOtherLengths) {
  EXPECT_NE(
      errorOf(
          "function both(s, u, w) = let a = {y : x in s; y in u | x > 0}; b = {y : x in s; y in w | x > 0}"
          "  in (a, b);"
          "let n = 4000000; (a, b) = both(index(n), index(n), [1]) in a[3] + b[1];")
          .find("4000000 and 1"),
      std::string::npos);
}

/// Functions of one element whose parts may fail, one after the other: loads, quotients, choices and loops of
/// the kinds that kLoops has. Numbers come again, so that what one part checks another one checks, too.
class RandomParts {
 public:
  explicit RandomParts(uint32_t seed) : random_(seed) {}

  std::string program() {
    std::string text = std::string(kLoops) + "data = {rem(i * 7, 20) : i in [0:20]};";
    for (const char* name : {"g", "h", "u", "w"}) {
      std::vector<std::string> names = {"x"};
      numbers_.clear();
      std::string parts;
      const size_t number = 2 + pick(4);
      for (size_t k = 0; k < number; ++k) {
        const std::string bound = "b" + std::to_string(k);
        parts += (k > 0 ? "; " : "") + bound + " = " + part(names);
        names.push_back(bound);
      }
      std::shuffle(names.begin(), names.end(), random_);
      std::string sum;
      for (const std::string& n : names)
        sum += (sum.empty() ? "" : " + ") + std::to_string(1 + pick(5)) + " * " + n;
      text += std::string("function ") + name + "(v, x) = let " + parts + " in " + sum + ";";
      text += std::string("{") + name + "(data, x) : x in [" + std::to_string(pick(9)) + "]};";
    }
    return text;
  }

 private:
  static constexpr const char* kLoops =
      "function walk(v, i, j, s, k) = if k > 20 then s else if i >= #v then j else walk(v, i + 1, j, s + "
      "v[i], k + 1);"
      "function hop(v, i, j, s, k) = if k > 9 then s else if i == j then v[i] else hop(v, v[i], j, s + 1, k "
      "+ 1);"
      "function halve(v, i, j, s, k) = if j - i <= 1 or k > 40 then i else let m = (i + j) / 2 in"
      "  if v[m] < s then halve(v, m, j, s, k + 1) else halve(v, i, m, s, k + 1);"
      "function divide(v, i, j, s, k) = if k > 4 then s + v[j] else divide(v, i - 1, j, s + 100 / i, k + 1);"
      "function still(v, i, j, s, k) = if k > 3 then v[j + 100] else still(v, i, j, s + v[i] / 100, k + 1);";

  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  std::string number(const std::vector<std::string>& names) {
    if (!numbers_.empty() && pick(2)) return numbers_[pick(static_cast<uint32_t>(numbers_.size()))];
    numbers_.push_back(freshNumber(names));
    return numbers_.back();
  }
  std::string freshNumber(const std::vector<std::string>& names) {
    const std::string& name = names[pick(static_cast<uint32_t>(names.size()))];
    const char* const constants[] = {"1", "2", "3", "100", "x"};
    switch (pick(3)) {
      case 0:
        return name;
      case 1:
        return "(x + " + std::to_string(pick(9)) + ")";
      default:
        return "(" + name + (pick(2) ? " - " : " * ") + constants[pick(5)] + ")";
    }
  }
  std::string loop(const std::vector<std::string>& names) {
    const char* const loops[] = {"walk", "hop", "halve", "divide", "still"};
    const std::string i = number(names), j = number(names);
    return std::string(loops[pick(5)]) + "(v, " + i + ", " + j + ", " + number(names) + ", 0)";
  }
  std::string part(const std::vector<std::string>& names) {
    switch (pick(6)) {
      case 0:
      case 1:
        return loop(names);
      case 2:
      case 3:
        return "v[" + number(names) + "]";
      case 4: {
        const std::string condition = number(names) + (pick(2) ? " < #v" : " > 0"), then = number(names);
        return "(if " + condition + " then v[" + then + "] else " + loop(names) + ")";
      }
      default:
        return "100 / (" + number(names) + " + x)";
    }
  }

  std::mt19937 random_;
  std::vector<std::string> numbers_;  ///< of the function at hand
};

/// Data are a form of their own: where a map is computed again in place of a load, loops come behind checks
/// (docs/limits.md).
TEST(EvaluationOrder, OfRandomParts) {
  constexpr uint32_t kPrograms = 150;
  for (uint32_t seed = 1; seed <= kPrograms; ++seed) {
    const std::string program = RandomParts(seed).program();
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + program);
    errorOf(program, false);  // other strategies make kernels of parts, which have no order
  }
}

/// A call that does not end once a check in front of it has failed: the check must not share a kernel with
/// what comes behind the call. (On the target cpu it went on to "recursion too deep", half a minute later.)
TEST(EvaluationOrder, OfChecksInFrontOfCallsWithoutEnd) {
  EXPECT_NE(errorOf("function halves(v) : [int] -> int = if #v == 1 then 5 else"
                    "  let zeros = {k in v | k == 0}; m = if #zeros == 0 then -1 else 1"
                    "  in if m < 0 then halves(drop(v, 1))"
                    "     else let r = {halves(p) : p in [take(v, m), drop(v, m + 1)]} in r[0] + v[m];"
                    "halves([0, 0]);")
                .find("drop of 1 from a sequence of length 0"),
            std::string::npos);
}

/// Functions of the library that look at several things tell of the same one wherever kernels end.
TEST(EvaluationOrder, OfTheHeadOfAnEmptySequence) {
  for (const char* form : {"{let (h, r) = head_rest(v) in sum(r) : v in [[1], [] int]};",
                           "{plus_scan(rest(head_rest(v))) : v in [[1], [] int]};",
                           "{let (r, h) = rest_tail(v) in sum(r) : v in [[1], [] int]};"})
    EXPECT_NE(errorOf(form).find("is out of range for a sequence of length 0"), std::string::npos) << form;
}

}  // namespace
}  // namespace kelpie::testing
