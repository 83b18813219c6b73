// Launches whose number of elements the host does not know yet, and kernels that start before the condition
// that asks whether there are any.
#include <gtest/gtest.h>

#include <cstdlib>

#include "counting_target.h"
#include "program_runner.h"
#include "random_nesl.h"

namespace kelpie::testing {
namespace {

/// Compares with the reference; gives the statistics of the last form.
runtime::RunStatistics agree(const std::string& nesl) {
  RunnerOptions options;
  options.timed = false;
  options.target = [] { return std::make_unique<CountingTarget>(); };
  const std::vector<FormOutcome> outcomes = runProgram(nesl, options);
  EXPECT_FALSE(outcomes.empty());
  for (const FormOutcome& outcome : outcomes)
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
  return outcomes.back().targetStatistics;
}

/// A path of `n` vertices with shortcuts: as many levels as the number tells, one wait for each, and those
/// for the result.
TEST(Counting, ALevelOfASearchWaitsOnce) {
  const std::string search =
      "function search(graph, frontier, distance, depth) = if #frontier == 0 then distance else"
      "  let reached = flatten({graph[v] : v in frontier}); new = {w in reached | distance[w] < 0};"
      "      distance = distance <- {(w, depth) : w in new};"
      "      owner = dist(-1, #graph) <- {(w, i) : w in new; i in [0:#new]};"
      "      next = {w : w in new; i in [0:#new] | owner[w] == i}"
      "  in search(graph, next, distance, depth + 1);"
      "function path(n) = {[max(0, v - 1), min(n - 1, v + 1), v] : v in [0:n]};"
      "graph = path(40);"
      "search(graph, [0], dist(-1, #graph) <- [(0, 0)], 1);";
  const runtime::RunStatistics statistics = agree(search);
  EXPECT_GE(statistics.launches, 4u * 40);
  EXPECT_LE(statistics.synchronisations, 40u + 4);
}

TEST(Counting, SurvivorsOfSurvivorsAreNotWaitedFor) {
  const runtime::RunStatistics statistics = agree(
      "xs = {rem(i * 7919, 1009) : i in [0:3000]};"
      "let a = {x in xs | rem(x, 2) == 1}; b = {x + s : x in a; s in plus_scan(a)};"
      "    c = {y in b | rem(y, 3) > 0}; d = {(z, k) : z in c; k in reverse([0:#c]) | z > k}"
      "  in (sum({z : (z, k) in d}), max_val({z - k : (z, k) in d}));");
  EXPECT_LE(statistics.synchronisations, 4u);
}

/// Recursions that go on in both branches of a conditional take as many steps as the deepest of them, however
/// the instances part.
TEST(Counting, BranchesThatRecurseStayTogether) {
  const std::string kth =
      "function kth(v, k) = let p = v[#v / 2]; less = {x in v | x < p} in if k < #less then kth(less, k) else"
      "  let more = {x in v | x > p} in if k >= #v - #more then kth(more, k - (#v - #more)) else p;"
      "{kth({rem((i * 97 + j) * 7919, 1009) : j in [0:40 + rem(i, 9)]}, rem(i, 40)) : i in [0:";
  const uint64_t few = agree(kth + "20]};").launches, many = agree(kth + "2000]};").launches;
  EXPECT_LE(many, 2 * few);
  const std::string search =
      "function search(v, x) = if #v == 1 then v[0] else let m = #v / 2 in if x < v[m] then search(take(v, "
      "m), x)"
      "  else search(drop(v, m), x); let s = {3 * i : i in [0:512]} in {search(s, rem(i * 37, 1536)) : i in "
      "[0:";
  EXPECT_LE(agree(search + "1000]};").launches, 100u);
  const std::string align =
      "function go(row, k, best) = if k == 0 then best, row else let row = max_scan({x + rem(x * k, 5) : x "
      "in row});"
      "  top = sum(row) in if rem(top, 3) > 0 then go(row, k - 1, top) else go(reverse(row), k - 1, best);"
      "{go({i * j : j in [0:3 + rem(i, 4)]}, 9, i) : i in [0:300]};";
  EXPECT_LE(agree(align).launches, 200u);
}

/// The same where branches go on after their calls, call several times, or for each element of a sequence.
TEST(Counting, BranchesThatGoOnAfterTheirCallsStayTogether) {
  const std::string grow =
      "function grow(v, k) = if k == 0 then v else if evenp(k) then {x + 1 : x in grow(v, k / 2)} else"
      "  {x * 3 : x in grow(v, k - 1)}; {sum(grow([1, i], i * 37)) : i in [0:";
  EXPECT_LE(agree(grow + "1000]};").launches, 700u);
  const std::string merge =
      "function place(v, x, low, high) = if low == high then low else let m = (low + high) / 2 in"
      "  if v[m] < x then place(v, x, m + 1, high) else place(v, x, low, m);"
      "function merge(a, b) = if #b == 0 then a else if #a < #b then merge(b, a) else if #a == 1 then"
      "  (if a[0] <= b[0] then [a[0], b[0]] else [b[0], a[0]])"
      "  else let m = #a / 2; c = place(b, a[m], 0, #b);"
      "  parts = {merge(x, y) : x in [take(a, m), drop(a, m)]; y in [take(b, c), drop(b, c)]}"
      "  in parts[0] ++ parts[1];"
      "{merge({rem(i, 7) + 2 * k : k in [0:rem(i * 5, 31)]}, {3 * k : k in [0:rem(i * 11, 29)]}) : i in [0:";
  EXPECT_LE(agree(merge + "1000]};").launches, 300u);
  const std::string tree =
      "function tree(v, d) = if #v <= 1 then sum(v) else let m = #v / 2 in if d == 0 then"
      "  let a = tree(take(v, m), 1); b = tree(drop(v, m), 1) in max(a, b) + sum(v)"
      "  else let a = tree({x * 3 : x in drop(v, m)}, 0); b = tree({x + 1 : x in take(v, m)}, 0) in rem(a, "
      "100) + b;"
      "{tree({rem(i * k, 17) : k in [0:rem(i, 40)]}, rem(i, 2)) : i in [0:";
  EXPECT_LE(agree(tree + "1000]};").launches, 200u);
}

/// The same where they go on inside of an apply-to-each. (The launches of this doubled at every level.)
TEST(Counting, AppliesThatGoOnAfterTheirCallsStayTogether) {
  const std::string tree =
      "function tree(x, d) = if d == 0 then [x]"
      "  else if rem(x, 3) == 0 then flatten({let r = tree(c, d - 1) in [c] ++ r : c in [x / 2, x + 1]})"
      "  else if rem(x, 3) == 1 then flatten({tree(c, d - 1) ++ [x] : c in [x / 3]})"
      "  else flatten({let y = x + c; r = tree(y, d - 1) in {v + c : v in r} : c in [3, 5]});"
      "{sum(tree(i, rem(i, 9))) : i in [0:";
  EXPECT_LE(agree(tree + "100]};").launches, 400u);
}

/// An error in front of a call ends the recursion, though nothing needs its value before the call.
TEST(Counting, BranchesFailBeforeTheirCalls) {
  const std::vector<FormOutcome> outcomes = runProgram(
      "function go(v, n) = if rem(n, 2) == 0 then let d = 10 / n; r = go(v ++ [n], n - 2) in {x + d : x in r}"
      "  else let r = go({x + 1 : x in v}, n - 1) in r ++ [n];"
      "{go([i], 6 + i) : i in [0:3]};");
  EXPECT_EQ(outcomes.back().difference, "");
  EXPECT_NE(outcomes.back().error.find("division by zero"), std::string::npos) << outcomes.back().error;
}

/// Loops and recursions that only an error ends, whose value nobody needs.
TEST(Counting, ErrorsEndWhatNothingElseEnds) {
  for (const std::string program :
       {"function k(n) = if n < 0 then 0 else let u = {1 / (x - n) : x in [3, 2]} in k(n + 1); k(0);",
        "function k(n) = if n < 0 then 0 else let u = {1 / (x - n) : x in [3, 2]} in k(n + 1) + 1; k(0);",
        "function k(n, u) = if n < 0 then 0 else k(n + 1, {1 / (x - n) : x in [3, 2]}); k(0, [1]);",
        "function k(n) = if n > 1000 then 1 else let e = (if n == 98765 then error(\"e\") else t);"
        "  z = 1 / (n + 1) in if n == 1 then k(n - 2) else k(n - 1);"
        "{k(x) : x in [2]};",
        "function k(v, d) = if #v == 1 then 0 else let u = 1 / (2 - d) in k(reverse(v), d + 1);"
        "{k([x, 2], 0) : x in [3]};"}) {
    RunnerOptions options;
    options.strategies = true;
    const std::vector<FormOutcome> outcomes = runProgram(program, options);
    EXPECT_EQ(outcomes.back().difference, "") << program;
    EXPECT_NE(outcomes.back().error.find("division by zero"), std::string::npos) << outcomes.back().error;
  }
}

TEST(Counting, NothingSurvives) {
  agree(
      "xs = {i : i in [0:100]};"
      "let a = {x in xs | x < 0} in (plus_scan(a), sum(a), max_scan(a), {x * 2 : x in a | x > 3});");
}

/// What comes first fails, whatever the host knows by then.
TEST(Counting, ErrorsComeInOrder) {
  agree(
      "xs = {i : i in [0:100]};"
      "let a = {x in xs | x > 90}; b = {100 / (x - 95) : x in a}; c = {y in b | y > 3} in (b, xs[#c + "
      "200]);");
  agree(
      "function down(a, n) = if #a == 0 then n else down({x - 1 + 100 / (x - 7) / 101 : x in a | x > 2}, n + "
      "1);"
      "down([1, 5, 2, 6], 0); down([5, 9], 0); down([2, 1], 0); down([7, 3], 0);");
}

/// Views of survivors, sorted and joined ones need their number.
TEST(Counting, NumbersAreThereWhereTheyAreNeeded) {
  agree(
      "xs = {rem(i * 31, 57) : i in [0:200]};"
      "let a = {x in xs | x > 20}; b = take(a, #a / 2); c = {x in a | rem(x, 2) == 1} ++ b; d = rank(c)"
      "  in (b, c, d, a[#a - 1], reverse(c), {sum({x * y : x in b}) : y in take(a, 3)}, partition(a, [#a]));"
      "function g(v, k) = if #v == 0 then [k] else"
      "  let l = {x in v | x < v[0]}; r = {x in v | x > v[0]} in flatten({g(u, k + 1) : u in [l, r]});"
      "g(xs, 0);");
}

TEST(Counting, ConditionsOnOtherNumbersStay) {
  agree(
      "function above(a, n) = if n == 0 then #a else above({10 / x : x in a | x > n}, n - 1);"
      "above([1, 2, 3, 10], 3); above([0, 2, 3, 10], 1);"
      "function h(a) = if not(#a == 0) then sum({10 / x : x in a}) else 0;"
      "h({x in [1, 2, 3] | x > 5}) + h({x in [1, 2, 3] | x > 2});");
}

/// KELPIE_RANDOM_PROGRAMS=N for more than a few, KELPIE_RANDOM_SEED for others.
TEST(Counting, RandomPrograms) {
  const char* const soak = std::getenv("KELPIE_RANDOM_PROGRAMS");
  const char* const from = std::getenv("KELPIE_RANDOM_SEED");
  const uint32_t first = from ? static_cast<uint32_t>(std::atoi(from)) : 500;
  RunnerOptions options;
  options.timed = false;
  options.positions = false;
  options.target = [] { return std::make_unique<CountingTarget>(); };
  for (uint32_t seed = first; seed < first + (soak ? static_cast<uint32_t>(std::atoi(soak)) : 15); ++seed)
    for (const FormOutcome& outcome : runProgram(randomNesl(seed, 4), options))
      EXPECT_EQ(outcome.difference, "") << "seed " << seed << "\n" << outcome.text << "\n" << outcome.lcu;
}

}  // namespace
}  // namespace kelpie::testing
