// Recursion that becomes loops (flatten/linear_recursion.h): the same results as the reference interpreter's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/flatten/program_runner.h"

namespace kelpie::testing {
namespace {

/// A function and a form that applies it to many instances at once.
struct Case {
  std::string function, form;
};

const Case kAccumulated[] = {
    {"function ones(x) = if x == 0 then 0 else 1 + ones(x and (x - 1));",
     "{ones(k) : k in [0, 7, 255, 1023, -1]};"},
    {"function digits(m) = if m < 10 then m else rem(m, 10) + digits(m / 10);",
     "{digits(k) : k in [0, 7, 987654321]};"},
    {"function signs(n) = if n == 0 then 7 else if oddp(n) then -signs(n / 2) else 3 - 2 * signs(n / 3);",
     "{signs(n) : n in [0:40]};"},
    {"function hash(n) = if n == 0 then 1 else (hash(n / 7) * (n + 3) + n) * 31 - n;",
     "{hash(n) : n in [0:99]};"},
    {"function largest(n) = if n == 0 then 0 else max(rem(n, 10), largest(n / 10));",
     "{largest(k) : k in [0, 1023, 98]};"},
    {"function least(n) = if n < 10 then n else min(least(n / 10), rem(n, 10));",
     "{least(k) : k in [9, 1023, 98, 555]};"},
    {"function alike(n) = if n < 10 then t else (rem(n, 10) == rem(n / 10, 10)) and alike(n / 10);",
     "{alike(k) : k in [9, 11, 777, 776, 677]};"},
    {"function parity(n) = if n == 0 then f else if oddp(n) then not(parity(n / 2)) else parity(n / 2) xor "
     "f;",
     "{parity(k) : k in [0:20]};"},
    {"function steps(n) = if n == 1 then 0 else 1 + steps(if evenp(n) then n / 2 else 3 * n + 1);",
     "{steps(k) : k in [1, 7, 27, 97]};"},
    {"function two(n) = if n < 2 then (n, t) else let (a, b) = two(n / 3) in (a + n, b and oddp(n));",
     "{two(n) : n in [0, 1, 5, 100, 81]};"},
};
const Case kUndone[] = {
    {"function power(x, n) = if n == 0 then 1.0 else x * power(x, n - 1);",
     "{power(x, n) : x in [1.1, 2.5, -3.0]; n in [0, 5, 17]};"},
    {"function total(v, i) = if i == #v then 0.0 else v[i] + total(v, i + 1);",
     "{total([0.1, 0.7, 1.0e20, 0.3, -1.0e20], i) : i in [0, 2, 4, 5]};"},
    {"function horner(x, n) = if n == 0 then 0.5 else if oddp(n) then float(n) + x * horner(x, n - 1) else "
     "horner(x, n - 1) / 3.0;",
     "{horner(x, 9) : x in [0.1, 2.5]};"},
    {"function both(k, n, s) = if n > k then (s, 0.0) else let (a, b) = both(k, n + s, s) in (a * n + a * a, "
     "b + 1.0 / "
     "float(n));",
     "{both(k, 1, s) : k in [0, 5, 20]; s in [1, 2, 3]};"},
    {"function found(v, x, i) = if i < 0 then -1 else let later = found(v, x, i - 1) in if later >= 0 then "
     "later else "
     "if v[i] == x then i else -1;",
     "{found([3, 1, 4, 1, 5], x, 4) : x in [1, 5, 9, 3]};"},
};
const Case kStacked[] = {
    {"function fib(n) = if n < 2 then n else fib(n - 1) + fib(n - 2);", "{fib(n) : n in [0:12]};"},
    {"function pow(x, n) = if n == 0 then 1 else if evenp(n) then (let h = pow(x, n / 2) in h * h) else x * "
     "pow(x, n - 1);",
     "{pow(3, n) : n in [0:12]};"},
    {"function halves(n) = if n < 2 then 1.0 else 0.1 + halves(n / 2) * float(n);",
     "{halves(n) : n in [0, 9, 77]};"},
    {"function nested(n) = if n > 100 then n - 10 else nested(nested(n + 11));",
     "{nested(n) : n in [99, 87, 120]};"},
    {"function asks(n) = if n == 0 then 0 else if asks(n / 2) > 1 then 1 else n;", "{asks(n) : n in [0:9]};"},
};

/// What one branch of a later conditional needs, or two of two: called once all the same. Calls that each
/// place made again would be 2^60.
const Case kCalledOnce[] = {
    {"function first(v, n) = if n < 2 then 1.0 else let later = first(v, n - 1 - rem(n, 2)) in if v[n] >= 0 "
     "then later * 0.5 else float(n);",
     "let v = [0:121] in {first(v, n) : n in [0, 5, 120]};"},
    {"function both(n, q) = if n < 1 then q else 0.5 * (if q > 9.0 then 0.25 else let r = both(n - 1, q * "
     "0.5) "
     "in (if q > -1.0 then r else 0.0) + (if n > 0 then r else 1.0));",
     "{both(n, 3.0) : n in [0, 5, 60]};"},
    {"function chars(n, c) = if n < 1 then c else if c == `z then `y else let r = chars(n - 1, code_char(97 "
     "+ "
     "rem(n, 20))) in if n > 0 then r else `n;",
     "{chars(n, `a) : n in [0, 5, 60]};"},
};

void compare(const Case& c, bool recursion) {
  for (const bool int32 : {false, true}) {
    RunnerOptions options;
    options.strategies = true;
    options.int32 = int32;
    const auto outcomes = runProgram(c.function + c.form, options);
    for (const FormOutcome& outcome : outcomes)
      EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
    EXPECT_EQ(outcomes.back().lcu.find("= recursion ") != std::string::npos, recursion)
        << outcomes.back().lcu;
    EXPECT_EQ(outcomes.back().error, "");
  }
}

TEST(LinearRecursion, PendingOperationsAreAccumulated) {
  for (const Case& c : kAccumulated) compare(c, false);
}
TEST(LinearRecursion, StepsAreUndone) {
  for (const Case& c : kUndone) compare(c, false);
}
TEST(LinearRecursion, OthersKeepTheirStack) {
  for (const Case& c : kStacked) compare(c, true);
}

TEST(LinearRecursion, CallsAreMadeOnceWhereSeveralPlacesLookAtThem) {
  for (const Case& c : kCalledOnce) compare(c, true);
}

/// A function for each state, each of which all others may follow; calls are what `call` makes of them.
std::string automaton(int states, const std::string& call) {
  std::string text;
  for (int s = 0; s < states; ++s) text += fmt::format("function s{}(v, i) : ([int], int) -> int;\n", s);
  for (int s = 0; s < states; ++s) {
    std::string next = fmt::format("-{}", s);
    for (int k = 0; k < states; ++k)
      next = fmt::format("if v[i] == {} then {} else {}", k, fmt::format(fmt::runtime(call), k), next);
    text +=
        fmt::format("function s{0}(v, i) : ([int], int) -> int = if i == #v then {0} else {1};\n", s, next);
  }
  return text;
}

/// Functions in a cycle are one loop, or one recursion, however many they are.
TEST(LinearRecursion, CyclesAreOneFunction) {
  RunnerOptions options;
  options.strategies = true;
  const auto run = [&](const std::string& program, const char* has) {
    const FormOutcome outcome = runProgram(program, options).back();
    EXPECT_EQ(outcome.difference, "") << program << "\n" << outcome.lcu;
    EXPECT_NE(outcome.lcu.find(has), std::string::npos) << outcome.lcu;
    EXPECT_LT(outcome.lcu.size(), 60'000u);
    return outcome;
  };
  const std::string words = "{s0(v, 0) : v in [[0, 1, 2, 3, 1, 0, 2], [] int, [1], [2, 9, 1], [11, 3, 3]]};";
  for (const int states : {2, 4, 12}) {
    EXPECT_EQ(run(automaton(states, "s{}(v, i + 1)") + words, "= loop (").error, "");
    EXPECT_EQ(run(automaton(states, "1 + s{}(v, i + 1)") + words, "= loop (").error, "");
    EXPECT_EQ(run(automaton(states, "(let r = s{}(v, i + 1) in r * r - v[i])") + words, "= recursion ").error,
              "");
  }
  EXPECT_NE(run(automaton(5, "s{}(v, i + 1 + v[i])") + words, "= loop (").error, "");

  // Parameters of different types and in another order, of which some never change, and no others.
  const std::string mixed =
      "function a(n, x, v, d) : (int, float, [int], char) -> (int, float);"
      "function b(v, y, n) : ([int], float, int) -> (int, float);"
      "function c(n, m, v) : (int, int, [int]) -> (int, float) = if n < m then (v[0], float(m)) else"
      "  b(v, float(n) / 2.0, n - m);"
      "function b(v, y, n) : ([int], float, int) -> (int, float) = if y > 9.0 then a(n - 2, y - 1.0, v, `b)"
      "  else let (i, z) = a(n - 1, y * 0.5, v, `c) in (i + v[rem(abs(n), #v)], z + y);"
      "function a(n, x, v, d) : (int, float, [int], char) -> (int, float) = if n < 1 then (char_code(d), x)"
      "  else if d == `a then c(n - 1, 3, v) else let (i, z) = b(v, x + 1.0, n - 1) in (i * 3, z * x);";
  EXPECT_EQ(
      run(mixed + "{a(n, x, v, `a) : n in [0, 5, 12, 2]; x in [1.0, 2.5, -3.0, 40.0]; v in [[1], [2, 3],"
                  " [4, 5, 6], [7]]};",
          "= recursion ")
          .error,
      "");
  EXPECT_EQ(run(mixed + "{(a(n, 2.0, [1, 2], `b), b([3], 20.0, n), c(n, 2, [5])) : n in [0, 5, 12]};",
                "= recursion ")
                .error,
            "");
  EXPECT_NE(run(mixed + "{a(n, 1.0, v, `a) : n in [5, 12]; v in [[1], [] int]};", "= recursion ").error, "");

  // Results of different types: functions inside each other.
  run("function positive(n) : int -> bool; function size(n) : int -> int = if n < 1 then 0 else"
      "  if positive(n - 1) then 1 + size(n / 2) else size(n - 1) * 2;"
      "function positive(n) : int -> bool = if n < 1 then f else rem(size(n - 2), 3) > 0;"
      "{size(n) : n in [0, 3, 9, 14]};",
      "= recursion ");
}

/// Each of the elements that nobody looks at may fail, and is evaluated before the result.
TEST(LinearRecursion, ManyChecksTakeNoTimeToCompile) {
  std::string body = "n - walk(v, n / 2)";
  for (int k = 0; k < 40; ++k) body = fmt::format("let x{0} = v[rem(n * {0}, 3)] in {1}", k, body);
  const std::string program =
      "function walk(v, n) = if n < 1 then 0 else " + body + ";" + "{walk([3, 1, 4], n) : n in [0:9]};";
  for (const FormOutcome& outcome : runProgram(program, {}))
    EXPECT_EQ(outcome.difference, "") << outcome.text;
}

/// Tells by which of several checks an instance fails, and that recursion without an end fails.
TEST(LinearRecursion, ErrorsAreThoseOfTheRecursion) {
  RunnerOptions options;
  options.strategies = true;
  const auto fails = [&](const std::string& program) {
    bool failed = false;
    for (const FormOutcome& outcome : runProgram(program, options)) {
      EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
      failed |= !outcome.error.empty();
    }
    return failed;
  };
  const std::string below = "function below(v, n) = if n < 0 then 0 else v[n] + below(v, n - 1);";
  EXPECT_FALSE(fails(below + "{below([1, 2], n) : n in [1, 0]};"));
  EXPECT_TRUE(fails(below + "{below([1, 2], n) : n in [1, 2]};"));
  const std::string rests = "function rests(n) = if n == 1 then 0 else 10 / n + rests(n / 2);";
  EXPECT_FALSE(fails(rests + "{rests(n) : n in [1, 9]};"));
  EXPECT_TRUE(fails(rests + "{rests(n) : n in [9, 0]};"));

  // Also where the result is known without the calls.
  const std::string two = "function two(n) = if code_char(n) == `a then 2 else let r = two(n / 2) in 1 * r;";
  EXPECT_FALSE(fails(two + "{two(n) : n in [97, 194]};"));
  EXPECT_TRUE(fails(two + "{two(n) : n in [97, -3]};"));

  // Of several calls that fail, the first: the outermost where it checks before it calls.
  const auto error = [&](const std::string& function, const std::string& form) {
    return runProgram("function sum_of(a, i) = " + function + ";" + form, options).back().error;
  };
  for (const char* zero : {"0", "0.0"}) {
    const std::string ends = fmt::format("if i < 0 then {} else ", zero);
    const std::string elements = zero == std::string("0.0") ? "{sum_of([1.0, 2.0], i) : i in [1, 5]};"
                                                            : "{sum_of([1, 2], i) : i in [1, 5]};";
    EXPECT_NE(error(ends + "a[i] + sum_of(a, i - 1)", elements).find("index 5 "), std::string::npos);
    EXPECT_NE(error(ends + "sum_of(a, i - 1) + a[i]", elements).find("index 2 "), std::string::npos);
    EXPECT_NE(error(ends + "if oddp(i) then a[i] * sum_of(a, i - 1) else sum_of(a, i - 1) - a[i]", elements)
                  .find("index 5 "),
              std::string::npos);
  }

  options.reference = false;
  for (const char* endless :
       {"function on(n) = if n == -1 then 0 else 1 + on(n + 1); {on(n) : n in [0, 3]};",
        "function on(n) = if n == -1 then 0.0 else 1.0 + on(n + 1); {on(n) : n in [0, 3]};"}) {
    const FormOutcome outcome = runProgram(endless, options).back();
    EXPECT_NE(outcome.error.find("too deep"), std::string::npos) << outcome.error << outcome.difference;
  }
}

/// A function of n and m that goes on with less than n.
class RandomFunction {
 public:
  explicit RandomFunction(uint32_t seed) : random_(seed) {}

  std::string text() {
    kind_ = pick(3);
    if (pick(4) > 0) return function("g", "g");
    // Two that call each other.
    std::string text = fmt::format("function h(n, m) : {};", type());
    text += function("g", "h");
    return text + function("h", "g");
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }

  std::string condition() {
    const char* const conditions[] = {"oddp(n)", "rem(n + m, 3) == 0", "m > n", "rem(n, 5) < 2"};
    return conditions[pick(4)];
  }
  std::string type() const {
    const char* const results[] = {"int", "float", "bool"};
    return fmt::format("(int, int) -> {}", results[kind_]);
  }
  std::string function(const char* name, const char* callee) {
    callee_ = callee;
    alike_.clear();
    const int least = 1 + pick(3);
    const std::string base = value(2);
    return fmt::format("function {}(n, m) : {} = if n < {} then {} else {};", name, type(), least, base,
                       choice(2));
  }
  /// An expression without a call, of the type of the result.
  std::string value(int depth) {
    const char* const ints[] = {"n", "m", "3", "(n - m)", "rem(n, 7)"};
    const char* const floats[] = {"float(n)", "0.7", "float(m)", "(1.0 / float(n + 1))"};
    const char* const bools[] = {"oddp(n)", "t", "(m > 3)", "f"};
    if (depth > 0 && pick(4) == 0)
      return fmt::format("(if {} then {} else {})", condition(), value(depth - 1), value(depth - 1));
    return kind_ == 0 ? ints[pick(5)] : kind_ == 1 ? floats[pick(4)] : bools[pick(4)];
  }
  std::string call() {
    const char* const next[] = {"n - 1, m", "n / 2, m + n", "n - 1, m + 2", "n - 2, rem(m * 3 + n, 11)",
                                "n - 1, 5 - m"};
    if (!alike_.empty() && pick(3) > 0) return fmt::format("{}({})", callee_, alike_);
    alike_ = next[pick(5)];
    return fmt::format("{}({})", callee_, alike_);
  }
  std::string pending(int depth) {
    if (depth == 0) return call();
    const std::string inside = pending(depth - 1), other = value(1);
    const bool left = pick(2) == 0;
    const auto infix = [&](const char* op) {
      return left ? fmt::format("({} {} {})", inside, op, other)
                  : fmt::format("({} {} {})", other, op, inside);
    };
    const auto prefix = [&](const char* op) {
      return left ? fmt::format("{}({}, {})", op, inside, other)
                  : fmt::format("{}({}, {})", op, other, inside);
    };
    if (kind_ == 2) {
      const int way = pick(5);
      return way == 0 ? fmt::format("not({})", inside)
                      : infix(way == 1   ? "and"
                              : way == 2 ? "or"
                              : way == 3 ? "xor"
                                         : "nor");
    }
    switch (pick(8)) {
      case 0:
        return prefix("max");
      case 1:
        return prefix("min");
      case 2:
        return fmt::format("(-{})", inside);
      case 3:
      case 4:
        return infix("*");
      case 5:
        return infix("-");
      default:
        return infix("+");
    }
  }
  std::string choice(int depth) {
    if (depth > 0 && pick(3) == 0)
      return fmt::format("(if {} then {} else {})", condition(), choice(depth - 1), choice(depth - 1));
    return pick(6) == 0 ? value(1) : pending(pick(3));
  }

  std::mt19937 random_;
  int kind_ = 0;
  std::string callee_, alike_;
};

TEST(LinearRecursion, RandomFunctions) {
  const char* const soak = std::getenv("KELPIE_RANDOM_PROGRAMS");
  const int programs = soak ? std::atoi(soak) : 60;
  const char* const from = std::getenv("KELPIE_RANDOM_SEED");
  const uint32_t first = from ? static_cast<uint32_t>(std::atoi(from)) : 0;
  int loops = 0;
  for (int k = 0; k < programs; ++k) {
    const std::string program = RandomFunction(first + static_cast<uint32_t>(k)).text() +
                                " {g(n, m) : n in [0:9]; m in [3,0,2,1,9,4,7,5,6]};";
    RunnerOptions options;
    options.fused = true;
    options.positions = false;  // of several instances that fail, another one may be reported
    for (const FormOutcome& outcome : runProgram(program, options)) {
      EXPECT_EQ(outcome.difference, "") << "seed " << first + static_cast<uint32_t>(k) << "\n"
                                        << program << "\n"
                                        << outcome.lcu;
      loops += outcome.lcu.find("loop (") != std::string::npos;
    }
  }
  EXPECT_GT(loops, programs / 4);
}

}  // namespace
}  // namespace kelpie::testing
