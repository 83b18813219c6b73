// What is known of nested sequences beyond conditionals and loops of the host (flatten/shape.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "program_runner.h"

namespace kelpie::testing {
namespace {

void expectAgreement(const std::string& nesl) {
  RunnerOptions options;
  options.fused = true;
  for (const FormOutcome& outcome : runProgram(nesl, options))
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
}

/// Of the last form.
std::string flat(const std::string& nesl) { return runProgram(nesl).back().lcu; }

/// Nested sequences of one type: of rows of one length or not, in order or not, and of none.
struct Family {
  std::vector<std::string> values;  ///< over n
  std::vector<std::string> steps;   ///< over m and k
  std::string seen;                 ///< of m
};

Family matrices() {
  return {{"[] [int]", "{{i * j : j in [0:n]} : i in [0:n + 1]}", "[[1, 2], [3], [] int]",
           "drop({{i - j : j in [0:n]} : i in [0:n + 2]}, 1)", "partition([0:3 * n], [n, n, n])",
           "[[5, 6], [7, 8]]", "reverse({{i + j : j in [0:3]} : i in [0:n]})", "{[0:i] : i in [0:n]}"},
          {"{{x + k : x in row} : row in m}", "{{x in row | x > k} : row in m}", "take(m, #m / 2)",
           "m ++ [[k, k + 1]]", "{row in m | #row > k}", "{{i + j : j in [0:k]} : i in [0:3]}",
           "if k > 1 then m else [] [int]", "{take(row, min(2, #row)) : row in m}", "reverse(m)",
           "if k == 2 then {{i : j in [0:3]} : i in [0:2]} else m"},
          "(m, {sum(row) : row in m}, #flatten(m), {#row : row in m})"};
}

Family cubes() {
  return {
      {"[] [[int]]", "{{{i + j + l : l in [0:2]} : j in [0:n]} : i in [0:3]}",
       "{{[0:j] : j in [0:n]} : i in [0:2]}", "{{{i : l in [0:4]} : j in [0:i]} : i in [0:n]}",
       "[[[1, 2], [3]], [] [int], [[4]]]", "drop({{{i + j + l : l in [0:2]} : j in [0:n]} : i in [0:3]}, 1)"},
      {"{{{x * k : x in row} : row in p} : p in m}", "{{row in p | #row > k} : p in m}", "m ++ m",
       "{p ++ [[k]] : p in m}", "{take(p, #p / 2) : p in m}"},
      "(m, {{sum(row) : row in p} : p in m}, {#p : p in m})"};
}

/// Pairs, of which one is nested and the other not.
Family pairs() {
  return {{"[] ([int], bool)", "{({i + j : j in [0:n]}, rem(i, 2) == 0) : i in [0:n]}",
           "[([1], t), ([2, 3], f)]"},
          {"{(row, not(b)) : (row, b) in m}", "{(row ++ row, b) : (row, b) in m | b or (k > 1)}",
           "{([0:k], b) : (row, b) in m}"},
          "{(sum(row), b) : (row, b) in m}"};
}

std::vector<Family> families() { return {matrices(), cubes(), pairs()}; }

TEST(Shapes, Conditionals) {
  for (const Family& family : families()) {
    std::string program = "n = 3;";
    for (const std::string& a : family.values)
      for (const std::string& b : family.values)
        program += fmt::format("let m = (if #{{sum([0:x]) : x in [0:n]}} > 2 then {} else {}) in {};", a, b,
                               family.seen);
    expectAgreement(program);
  }
}

TEST(Shapes, Loops) {
  for (const Family& family : families()) {
    std::string program = "n = 3;";
    size_t number = 0;
    for (const std::string& step : family.steps) {
      program += fmt::format(
          "function g{0}(m, k) = if k == 0 then m else g{0}(({1}), k - 1);"
          "function h{0}(m, k) = if k == 0 then (m, k) else if k == 5 then h{0}(m, 1) else h{0}(({1}), k - "
          "1);",
          number, step);
      for (const std::string& value : family.values)
        program += fmt::format(
            "let m = g{0}({1}, 3) in {2}; let (m, k) = h{0}({1}, 2) in {2}; let (m, k) = h{0}({1}, 5) in "
            "{2};",
            number, value, family.seen);
      ++number;
    }
    expectAgreement(program);
  }
}

/// Less is known of the arguments of the second step, or the third.
TEST(Shapes, LoopsThatKnowLessAsTheyGoOn) {
  expectAgreement(
      "function g(a, b, c, k) = if k == 0 then (a, b, c) else g(b, c, {[0:i] : i in [0:k]}, k - 1);"
      "g({{i : j in [0:2]} : i in [0:3]}, {{i : j in [0:2]} : i in [0:3]}, {{i : j in [0:2]} : i in [0:3]}, "
      "1);"
      "g({{i : j in [0:2]} : i in [0:3]}, {{i : j in [0:2]} : i in [0:3]}, {{i : j in [0:2]} : i in [0:3]}, "
      "4);"
      "function h(a, b, k) = if k == 0 then a else h(b, {row in a | #row > k}, k - 1);"
      "h([[1, 2], [3, 4]], [] [int], 2); h([[1, 2], [3, 4]], [] [int], 3);"
      "function outer(m, k) = if k == 0 then m else outer(h(m, reverse(m), 2), k - 1);"
      "outer([[1, 2], [3, 4], [5, 6]], 3); outer([[1, 2], [3], [5, 6, 7]], 3);"
      "function found(xs, m) = if #xs < 3 then m else found({x / 3 : x in xs | rem(x, 3) == 0}, {[x] : x in "
      "xs});"
      "found([0:9000], [] [int]); found([0:9000], [[1], [2]]); found([0:2], [[1], [2]]);");
}

/// Errors in a loop are those of the program.
TEST(Shapes, ErrorsInLoops) {
  expectAgreement(
      "function g(m, k) = if k == 0 then m else g({{x / (k - 1) : x in row} : row in m}, k - 1);"
      "g([[1, 2], [3, 4]], 2); g([[1, 2], [3]], 2); g([] [int], 2);"
      "function h(m, k) = if k == 0 then m[5] else h(transpose(m), k - 1);"
      "h({{i : j in [0:2]} : i in [0:3]}, 2); h({{i : j in [0:6]} : i in [0:6]}, 3); h([[1], [2, 3]], 1);"
      "partition([1, 2, 3, 4], dist(4611686018427387905, 4)); partition([1, 2, 3, 4], dist(6, 3));"
      // Of no rows the first has no length.
      "v = [1, 2, 3]; let m = {drop(v, rem(x * 7, 2)) : x in v | x > 5} in sum({m[i][i] : i in [0:20]});"
      "let m = partition(drop([1], 1), {0 : i in [0:1] | i > 0}) in sum({m[i][0] : i in [0:1]});"
      "let m = {[0:x] : x in v | x > 5} in sum({m[i][i] : i in [0:20]});"
      "let m = {[0:x] : x in v | x > 5} in {{x + i : x in m[i]} : i in [0:20]};"
      // The host looks at a descriptor that a failed check has left too short.
      "function halves(a, m, k) = if k <= 0 then #a else halves(m, (let z = drop(partition(flatten(a), "
      "dist(2,"
      " #flatten(a) / 2)), 1) in if #flatten(z) > 60 then take(z, 1) else z), k - 1);"
      "halves([[5]], [[1]], 2); halves([[5, 6]], [[1, 2]], 2); halves([[5, 6, 7, 8]], [[1, 2]], 2);");
}

/// A loop over a matrix has neither offsets nor sums of lengths.
TEST(Shapes, MatricesStayMatrices) {
  const std::string loop = flat(
      "function smooth(m, k) = if k == 0 then m else smooth({{(x + m[i][0]) / 2 : x in row} : row in m;"
      " i in index(#m)}, k - 1);"
      "n = 5; let m = {{i * j : j in [0:n]} : i in [0:n]}; r = smooth(m, 4) in sum({sum(row) : row in r});");
  EXPECT_EQ(loop.find("offsets"), std::string::npos) << loop;
  EXPECT_EQ(loop.find("SCAN"), std::string::npos) << loop;
  EXPECT_NE(loop.find("while"), std::string::npos) << loop;
  const std::string product = flat(
      "function product(a, b) = {{sum({x * y : x in row; y in column}) : column in transpose(b)} : row in a};"
      "n = 5; let m = {{i * j : j in [0:n]} : i in [0:n]} in sum({sum(row) : row in product(m, m)});");
  EXPECT_EQ(product.find("offsets"), std::string::npos) << product;
}

/// What is indexed where it has an element is not checked; all else is.
TEST(Places, IndicesThatAreInRangeAreNotChecked) {
  const std::string matrix = "function m(n) = {{i * 10 + j : j in [0:n]} : i in [0:n]}; n = 5;";
  for (const char* good :
       {"let v = m(n) in {{v[i][j] + v[j][i] : j in [0:n]} : i in [0:n]}",
        "let v = m(n) in {{sum({v[i][k] * v[k][j] : k in [0:n]}) : j in [0:#v]} : i in [0:#v]}",
        "let v = m(n) in {{v[i - 1][j] + v[i + 1][j] + v[i][j - 1] + v[i][j + 1] : j in [1:n - 1]} : i in "
        "[1:n - 1]}",
        "let v = m(n); w = {x : x in [0:n]} in {w[i] + x : x in w; i in [0:n]}",
        "let v = m(n) in {{x + v[j][i] : x in row; j in index(#row)} : row in v; i in index(#v)}"}) {
    const std::string lcu = flat(matrix + good + ";");
    std::istringstream lines(lcu.substr(lcu.find("kernel")));
    for (std::string line; std::getline(lines, line);) {
      if (line.find("let checked") != std::string::npos) continue;  // by the host, once
      EXPECT_EQ(line.find("check("), std::string::npos) << lcu;
    }
    expectAgreement(matrix + good + ";");
  }
  std::string bad = matrix + "q = 3;";
  for (const char* what :
       {"let v = m(n) in {{v[i][j + 1] : j in [0:n]} : i in [0:n]}",
        "let v = m(n) in {{v[i - 1][j] : j in [0:n]} : i in [0:n]}",
        "let v = m(n) in {{v[i][j] : j in [0:n + 1]} : i in [0:n]}",
        "let v = m(n) in {{v[i - 2][j] : j in [1:n - 1]} : i in [1:n - 1]}",
        "let v = m(n) in {{v[i][j + 2] : j in [1:n - 1]} : i in [1:n - 1]}",
        "let v = m(n) in {{v[i][j] : j in [0:q]} : i in [0:q + 3]}",
        "let v = m(n) in {{v[j][i] : j in [0:q]} : i in [0:q + 3]}",
        "let v = m(n) in {{v[i][j] : j in [0:n]; k in [0:n + 1]} : i in [0:n]}",
        "let v = m(n) in {if rem(i, 2) == 0 then sum({v[i][j + i] : j in [0:n]}) else 0 : i in [0:n]}",
        "{1 ^ (i + 9223372036854775807) : i in [0:3]}", "{[1, 2][i + 9223372036854775807] : i in [0:3]}",
        "{[1, 2][i - 9223372036854775807] : i in [0:3]}",
        "let v = m(n) in {v[#w][0] : w in {[0:i] : i in [0:n + 1]}}", "{[1, 2, 3][i] : i in [0:4]}"}) {
    bad += std::string(what) + ";";
  }
  expectAgreement(bad);
}

/// Nor does a loop over rows of different lengths add these up: they are where they are.
TEST(Shapes, OffsetsGoAround) {
  const std::string loop = flat(
      "function counted(m, k) = if k == 0 then m else counted({{x + k : x in row} : row in m}, k - 1);"
      "n = 5; let m = {[0:i] : i in [0:n]}; r = counted(m, 4) in {sum(row) : row in r};");
  EXPECT_EQ(loop.find("lengths"), std::string::npos) << loop;
}

}  // namespace
/// Sums of places and of what the host knows are in range if the first and the last are: the host looks, and
/// tells the first that is not, unless there are none.
TEST(Places, TheHostChecksSumsOfPlaces) {
  const std::string functions =
      "function m(h, w) = {{i * 10 + j : j in [0:w]} : i in [0:h]};"
      "function product(a, b) = {{sum({a[i][k] * b[k][j] : k in [0:#b]}) : j in [0:#b]} : i in [0:#a]};"
      "function windows(xs, w, n) = {sum({xs[i + j] : j in [0:w]}) : i in [0:n]};"
      "function moved(xs, low, high, by) = {xs[i + by] : i in [low:high]};"
      "function stencil(a, h, w) = {{sum({sum({a[i + x][j + y] : y in [0:3]}) : x in [0:3]}) : j in [0:w]}"
      " : i in [0:h]};"
      "function cube(xs, a, b, c) = {{{xs[i + j + k + 1] : k in [0:c]} : j in [0:b]} : i in [0:a]};"
      "n = 5; q = 3; far = 9223372036854775807; xs = [1, 2, 3, 4, 5, 6];";
  for (const char* good : {"product(m(n, q), m(q, n))", "windows(xs, q, n - 1)", "moved(xs, q, n, 0 - q)",
                           "let a = m(n, n + 1) in stencil(a, q, q + 1)", "cube(xs, q, 1, q)"}) {
    const std::string lcu = flat(functions + good + ";");
    std::istringstream lines(lcu.substr(lcu.find("kernel")));
    for (std::string line; std::getline(lines, line);) {
      if (line.find("let checked") != std::string::npos) continue;
      EXPECT_EQ(line.find("check("), std::string::npos) << lcu;
    }
    expectAgreement(functions + good + ";");
  }
  std::string others = functions;
  for (const char* what : {"product(m(n, n - 1), m(n, n + 2))",
                           "product(m(n, n), m(n, n - 1))",
                           "product(m(0, n), m(n, n - 1))",
                           "windows(xs, q, n)",
                           "windows(xs, n + q, n)",
                           "windows(xs, n + q, 0)",
                           "windows(xs, 0, n + n)",
                           "windows(xs, 1, n + 2)",
                           "moved(xs, 1, 4, 0 - 2)",
                           "moved(xs, 1, 4, far)",
                           "moved(xs, 1, 4, far - 1)",
                           "moved(xs, 1, 4, 0 - far)",
                           "moved(xs, far - 7, far - 1, 9)",
                           "moved(xs, far - 7, far - 1, 7 - far)",
                           "moved(xs, far - 7, far - 1, 8 - far)",
                           "moved(xs, 2, 4, q)",
                           "moved(xs, 2, 4, 9)",
                           "moved(xs, 0 - 4, 2, 4)",
                           "moved(xs, 0 - 4, 2, q)",
                           "stencil(m(n, n + 1), q + 1, n)",
                           "stencil(m(n, n + 1), q, n)",
                           "stencil(m(n, n + 1), 0, n)",
                           "stencil(m(n, n + 1), q, 0)",
                           "cube(xs, q, q, q)",
                           "cube(xs, n, 1, 1)",
                           "cube(xs, n + 1, 1, 1)",
                           "cube(xs, 1, n + 1, 1)",
                           "{{[1, 2, 3, 4][j + k] : k in [0:q]} : j in [0:n] | j < 2}",
                           "{{if j < 2 then [1, 2, 3, 4][j + k] else 0 : k in [0:q]} : j in [0:n]}",
                           "{if j < 2 then {[1, 2, 3, 4][j + k] : k in [0:q]} else {} : j in [0:n]}",
                           "{xs[j - 1] : j in [0:q] | j > 0}",
                           "{xs[q - j] : j in [0:q + 1]}",
                           "{xs[j + j] : j in [0:q]}",
                           "{xs[j + j] : j in [0:q + 1]}",
                           "{{w[j] : j in [0:q]} : w in [[1, 2, 3], [1, 2], [1, 2, 3, 4]]}",
                           "{{xs[j + 4] : j in [0:w]} : w in [1, 2, 4]}"})
    others += std::string(what) + ";";
  expectAgreement(others);
}

/// Where the rows of a part begin is not looked up for rows of the other part: its array has no such place,
/// and what is found there may lead further away.
TEST(Appended, StartsOfEitherPartAreGuarded) {
  const std::string nesl =
      "function appended(order, n) = let q = permute([[1.5], [1.0]], order) ++ {[float(i), 2.0] : i in [0:n]}"
      "  in {eql([[0.5, 2.0], [1.0]], [x, x]) : x in q}; appended([1, 0], 40);";
  expectAgreement(nesl);
  EXPECT_TRUE(std::regex_search(flat(nesl), std::regex("if i < 2 then r_[0-9]+\\[i\\] else 0")))
      << flat(nesl);
}

}  // namespace kelpie::testing
