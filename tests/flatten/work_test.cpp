// What flattened programs cost, counted by the λcu evaluator after fusion by ilp: how many elements kernels
// run over, bytes, kernels and peak memory stay within what the NESL program's own work and data say.
#include <gtest/gtest.h>

#include <cmath>

#include "program_runner.h"
#include "runtime/host_target.h"

namespace kelpie::testing {
namespace {

struct Cost {
  FormOutcome outcome;
  double elements = 0;  ///< of the spaces of all launches: one pass over n elements counts n
  double read = 0, written = 0;
  double peak = 0;  ///< memory beside the values of forms before
  uint64_t launches = 0;
};

/// Of the last form of a program. `reference`: results are also compared with the reference interpreter's.
Cost costOf(const std::string& nesl, bool reference = true) {
  RunnerOptions options;
  options.fused = true;
  options.reference = reference;
  std::vector<FormOutcome> outcomes = runProgram(nesl, options);
  for (const FormOutcome& outcome : outcomes)
    EXPECT_EQ(outcome.difference + outcome.error, "") << outcome.text;
  Cost cost;
  if (outcomes.empty()) return cost;
  cost.outcome = outcomes.back();
  for (const runtime::KernelStatistics& kernel : cost.outcome.statistics.kernels)
    cost.elements += static_cast<double>(kernel.elements);
  cost.read = static_cast<double>(cost.outcome.bytesRead());
  cost.written = static_cast<double>(cost.outcome.bytesWritten());
  const runtime::RunStatistics& statistics = cost.outcome.statistics;
  cost.peak = static_cast<double>(statistics.peakBytes - statistics.heldBytes);
  cost.launches = cost.outcome.statistics.launches;
  return cost;
}

/// The buffers of cells and tiny arrays, which the pool rounds up.
constexpr double kSmallChange = 4096;

TEST(Work, SparseMatrixVectorProductIsOnePassOverTheEntries) {
  Cost cost = costOf(
      "m = {{(rem(i * 7 + j, 500), float(j)) : j in [0:rem(i, 20)]} : i in [0:500]}; v = {float(i) : i in "
      "[0:500]};"
      "{sum({x * v[i] : (i, x) in row}) : row in m};");
  EXPECT_EQ(cost.launches, 1u) << cost.outcome.lcu;
  EXPECT_EQ(cost.elements, 25 * 190);
  EXPECT_EQ(cost.written, 500 * 8);
  EXPECT_LE(cost.peak, 500 * 8 + kSmallChange);
}

/// Sorts give ranks, and who writes where ranks say comes in the order of the sort: neither looks for
/// writers.
TEST(Work, RanksAreThoseOfTheSort) {
  const std::string data = "m = {{rem(i * 7 + j * 5, 13) : j in [0:rem(i, 20)]} : i in [0:100]};";
  for (const char* form : {"{rank(row) : row in m};", "{permute(row, rank({x * 3 : x in row})) : row in m};",
                           "{permute(permute(row, rank(row)), rank(row)) : row in m};", "rank(flatten(m));",
                           "{sort(row) : row in m};", "{rank({float(x) : x in row}) : row in m};"}) {
    const Cost cost = costOf(data + form);
    EXPECT_EQ(cost.outcome.lcu.find("PERMUTE"), std::string::npos) << form << cost.outcome.lcu;
  }
  // As numbers of other segments, or of other lengths, they are looked for.
  for (const char* form :
       {"permute([0:#flatten(m)], flatten({rank(row) : row in m}));",
        "dist(7, 30) <- {(r, x) : r in rank(m[19]); x in m[19]};",
        "{dist(7, 30) <- {(r, x) : r in rank(row); x in row} : row in m};",
        "{let r = flatten({rank(row) : row in g}) in permute([0:#r], r) : g in group_by(m, 7)};"})
    EXPECT_NE(costOf(data + form).outcome.lcu.find("PERMUTE"), std::string::npos) << form;
}

/// Where lengths were compared, whatever comes with one of the sequences has the segments of the others.
TEST(Work, SequencesOfOneLengthShareTheirSegments) {
  const std::string data =
      "m = {{float(i + j) : j in [0:rem(i, 20)]} : i in [0:500]}; k = {{i - j : j in [0:rem(i, 7)]} : i in "
      "[0:500]}; w = {float(i) : i in [0:500]}; v = {float(i * i) : i in [0:500]};";
  for (const char* form :
       {"{sum({x * y : x in row}) : y in w; row in m};", "{sum({x * y : x in row}) : row in m; y in w};",
        "{sum({x * y + z : x in row}) : y in w; row in m; z in v};"}) {
    Cost cost = costOf(data + form);
    EXPECT_EQ(cost.launches, 1u) << form << cost.outcome.lcu;
    EXPECT_EQ(cost.elements, 25 * 190) << form;
  }
  EXPECT_EQ(costOf(data + "{(sum(row), sum(column)) : row in m; column in k};").launches, 2u);
  EXPECT_EQ(costOf(data + "{(x, y) : x in w; y in v};").launches, 0u);
  EXPECT_EQ(costOf(data + "{(x, row) : x in w; row in m};").launches, 0u);
}

/// ... but only behind the comparison, and where lengths were compared.
TEST(Work, SequencesOfOtherLengthsHaveTheirOwnSegments) {
  const std::string data =
      "m = {{float(i + j) : j in [0:rem(i, 20)]} : i in [0:50]}; w = {float(i) : i in [0:30]};"
      "u = {float(i) : i in [0:50]}; function some(n) = n > 0; yes = some(1); no = some(0);";
  for (const char* form : {"{sum({x * y : x in m[i]}) : y in w; i in [0:30]};",
                           "if no then {sum({x * y : x in row}) : y in w; row in m}"
                           " else {sum({x * y : x in m[i]}) : y in w; i in index(#w)};",
                           "let a = if yes then {sum({x * y : x in row}) : y in u; row in m} else [0.0];"
                           "    b = {sum({x * y : x in row}) : y in w; row in take(m, 30)};"
                           "    c = {sum({x * y : x in row}) : y in w; row in drop(m, 20)} in (a, b, c);"})
    costOf(data + form);
}

TEST(Work, NearestNeighboursKeepNoDistances) {
  Cost cost = costOf(
      "function distance((x, y), (u, v)) = (x - u) * (x - u) + (y - v) * (y - v);"
      "ps = {(float(rem(i * 79, 100)), float(rem(i * 47, 100))) : i in [0:300]};"
      "qs = {(float(rem(i * 31, 100)), float(rem(i * 77, 100))) : i in [0:100]};"
      "{min_index({distance(p, q) : q in ps}) : p in qs};");
  EXPECT_LE(cost.elements, 2 * 100 * 300 + 500) << cost.outcome.lcu;
  EXPECT_LE(cost.peak, 3 * 100 * 8 + kSmallChange);
}

TEST(Work, AllPairsForcesAreSummedWhereTheyArise) {
  Cost cost = costOf(
      "function force((x, y, m), (u, v, n)) = let dx = u - x; dy = v - y; d = dx * dx + dy * dy + 0.01;"
      "  w = m * n / (d * sqrt(d)) in (w * dx, w * dy);"
      "function total(p, ps) = let fs = {force(p, q) : q in ps} in (sum({x : (x, y) in fs}), sum({y : (x, y) "
      "in fs}));"
      "ps = {(float(rem(i * 79, 100)), float(rem(i * 47, 100)), 1.0) : i in [0:200]};"
      "{total(p, ps) : p in ps};");
  EXPECT_EQ(cost.launches, 1u) << cost.outcome.lcu;
  EXPECT_EQ(cost.elements, 200 * 200);
  EXPECT_LE(cost.peak, 2 * 200 * 8 + kSmallChange);
}

// The elements of those that are not empty lie side by side: nobody asks where each one begins.
TEST(Work, BranchesOfTheEmptyLeaveElementsInPlace) {
  const double n = 100 * 40 * (1 + 2 + 3 + 4);
  for (const char* condition : {"#v == 0", "0 == #v", "not(#v > 0)", "#v <= 0"}) {
    Cost cost = costOf(
        "vs = {{float(i + j) : j in [0:rem(i, 5) * 40]} : i in [0:500]};"
        "{if " +
        std::string(condition) + " then 0.0 else sum({x * x : x in v}) : v in vs};");
    EXPECT_LE(cost.read, 8 * n + 12 * 500 * 8) << condition << cost.outcome.lcu;
  }
}

TEST(Work, FiltersOfTheEmptyLeaveElementsInPlace) {
  for (const char* condition : {"#v > 0", "0 /= #v", "not(#v == 0)", "1 <= #v"}) {
    Cost cost = costOf(
        "vs = {{float(i + j) : j in [0:rem(i, 5) * 40]} : i in [0:500]};"
        "{sum({x * x : x in v}) / float(#v) : v in vs | " +
        std::string(condition) + "};");
    EXPECT_NE(cost.outcome.lcu.find("let t1 = vs[i] in t1 * t1"), std::string::npos)
        << condition << cost.outcome.lcu;
  }
}

TEST(Work, SumsOfPrefixesReadThePrefixes) {
  const double work = 300 / 100 * 4950;  // the sum of all k
  Cost cost = costOf("a = [0:20000]; ks = {rem(i * 37, 100) : i in [0:300]}; {sum(take(a, k)) : k in ks};");
  EXPECT_EQ(cost.elements, work + 300) << cost.outcome.lcu;  // and one pass over ks, for the offsets
  EXPECT_LE(cost.written, 2 * 300 * 8 + 8);
  EXPECT_LE(cost.peak, 3 * 300 * 8 + kSmallChange);
}

/// What a function computes from arguments that are the same for all elements it computes once, however deep
/// the function and the apply-to-each are in others.
TEST(Work, FixedArgumentsAreWorkedOnOnce) {
  const std::string data =
      "v = {rem(i * 7, 100) : i in [0:1000]};"
      "function share(x, w) = let squares = {y * y : y in w} in x + sum(squares);"
      "function twice(x, w) = share(x, w) + share(x + 1, w);"
      "function all(u, w) = {twice(x, w) : x in u};";
  for (const char* form : {"{share(x, v) : x in v};", "{twice(x, v) : x in v};", "all(v, v);",
                           "{share(x, w) : x in v; w in dist(v, #v)};"}) {
    const bool varies = std::string(form).find("dist") != std::string::npos;
    const Cost cost = costOf(data + form);
    if (varies)
      EXPECT_GE(cost.elements, 1e6) << form;
    else
      EXPECT_LE(cost.elements, 3e3) << form << cost.outcome.lcu;
  }
  EXPECT_LE(costOf(data + "{all(u, v) : u in [v, v, v]};").elements, 8e3);
  // ... also where the rest has effects.
  const std::string draws =
      "function drawn(x, w) = let s = sum({y * y : y in w}); r = rand(x + 1) in s + r;"
      "function doubled(x, w) = let r = drawn(x, w) in r * 2;";
  EXPECT_LE(costOf(data + draws + "{doubled(x, v) : x in v};").elements, 8e3);
  const std::string words = "lines = {dist(`a, 3) ++ \", \" ++ dist(`b, rem(i, 5)) : i in [0:1000]};";
  const Cost cost = costOf(words + "{group_by_space(l, \", \") : l in lines};");
  EXPECT_LE(cost.elements, 40e3) << cost.outcome.lcu;
}

TEST(Work, MatrixProductIsOneRegularKernel) {
  const double n = 40;
  for (const std::string where : {
           "a = matrix(40); b = matrix(40); product(a, b);",        // known when the form is compiled
           "let a = matrix(40); b = matrix(40) in product(a, b);",  // inferred
       }) {
    Cost cost = costOf(
        "function matrix(n) = {{float(rem(i * j + i + j, 17)) : j in [0:n]} : i in [0:n]};"
        "function product(rows, columns) = {{sum({x * y : x in r; y in c}) : c in columns} : r in rows};" +
        where);
    const std::string& lcu = cost.outcome.lcu;
    EXPECT_EQ(lcu.find("REDUCE seg("), std::string::npos) << lcu;
    EXPECT_NE(lcu.find("REDUCE regular("), std::string::npos) << lcu;
    EXPECT_LE(cost.launches, 3u) << lcu;  // the product, the matrices, the offsets of the printed result
    EXPECT_LE(cost.elements, n * n * n + 2 * n * n);
    EXPECT_LE(cost.peak, 3 * n * n * 8 + kSmallChange);
  }
}

/// Of the candidates only the survivors of each step are stored, not the range that they come from.
TEST(Work, ALoopOverARangeDoesNotStoreTheRange) {
  Cost cost = costOf(
      "function places(a, word, text, k) ="
      "  if k == #word then a else places({c in a | text[c + k] == word[k]}, word, text, k + 1);"
      "text = {code_char(97 + rem(i, 10)) : i in [0:50000]};"
      "#places([0:#text - 3], \"abc\", text, 0);");
  EXPECT_LE(cost.elements, 50000 + 2 * 5000 + 10) << cost.outcome.lcu;
  EXPECT_LE(cost.written, 3 * 5000 * 8 + 100);
  EXPECT_LE(cost.read, 50000 * 2 + 2 * 5000 * (8 + 2) + 200);  // a letter of the word, too, for each
}

TEST(Work, QuicksortTakesTwoPassesALevel) {
  const double n = 500'000;
  Cost cost = costOf(
      "function quicksort(a) = if #a < 2 then a else let p = a[#a / 2]; lesser = {e in a | e < p};"
      "  equal = {e in a | e == p}; greater = {e in a | e > p}; r = {quicksort(v) : v in [lesser, greater]}"
      "  in r[0] ++ equal ++ r[1];"
      "keys = {rand(i) : i in dist(1000000000, 500000)}; quicksort(keys);",
      false);
  EXPECT_LE(cost.elements, 3 * n * std::log2(n)) << cost.outcome.lcu;
  EXPECT_LE(cost.peak, 8 * n * 8);  // no level's sequences stay while the next ones are sorted
}

/// Memory that the host does not see, as that of a GPU: each look at it is a wait.
class DistantTarget final : public runtime::HostTarget {
 public:
  DistantTarget() : HostTarget(0) {}
  std::string name() const override { return "distant"; }
  const runtime::LaunchWork* lastWork() const override { return nullptr; }
  bool hostAddressable() const override { return false; }

 protected:
  runtime::Failure execute(const runtime::LaunchRequest& request,
                           std::optional<runtime::DeviceError>& error) override {
    interpret(request, error);
    return std::nullopt;
  }
};

TEST(Work, ALevelOfQuicksortWaitsTwice) {
  RunnerOptions options;
  options.reference = false;
  options.timed = false;
  options.target = [] { return std::make_unique<DistantTarget>(); };
  const FormOutcome outcome =
      runProgram(
          "function qs(a) = if #a < 2 then a else let p = a[#a/2];"
          "  r = {qs(v) : v in [{e in a | e < p}, {e in a | e > p}]} in r[0] ++ {e in a | e == p} ++ r[1];"
          "qs({rem(i * 7919, 4099) : i in [0:4096]});",
          options)
          .back();
  EXPECT_EQ(outcome.difference + outcome.error, "");
  // For how many instances go on or end, with how many elements; for how long all results are.
  const auto levels = static_cast<uint64_t>(outcome.targetStatistics.deepestCall);
  EXPECT_LE(outcome.targetStatistics.synchronisations, 2 * levels + 5) << outcome.lcu;
}

TEST(Work, SurvivorsOfSeveralSequencesAreStoredOnce) {
  Cost cost = costOf(
      "vs = {{rem(i * 7 + j, 50) : j in [0:rem(i, 20)]} : i in [0:500]};"
      "{{(x, y) : x in v; y in {w * w : w in v} | y > 100} : v in vs};");
  EXPECT_EQ(cost.launches, 1u) << cost.outcome.lcu;
}

TEST(Work, BalancedRecursionIsOnePassALevelBothWays) {
  // On every level all instances go on, or all end: nothing is merged, results pass through, and the two
  // halves are computed where the level's sequence is put together.
  const double n = 1 << 14, levels = 14;
  Cost cost = costOf(
      "function merged(a) = if #a == 1 then a else let half = #a / 2; low = take(a, half); high = drop(a, "
      "half)"
      "  in flatten({merged(v) : v in [{min(x, y) : x in low; y in high}, {max(x, y) : x in low; y in "
      "high}]});"
      "a = [0:8192] ++ reverse([8192:16384]); merged(a);");
  EXPECT_EQ(cost.outcome.error, "");
  // The host knows the length of all sequences of a level: a pass over its elements, and no wait.
  EXPECT_LE(cost.elements, n * levels + n) << cost.outcome.lcu;
  EXPECT_LE(cost.written, 8 * (n * levels + n));
  EXPECT_LE(cost.launches, levels + 3);
  EXPECT_LE(cost.outcome.statistics.synchronisations, 2u);
}

/// Lengths that only the device knows are looked at once.
TEST(Work, RecursionLooksOnceWhetherLengthsAreTheSame) {
  const auto costs = [](const char* rows) {
    return costOf(std::string("function summed(v) = if #v < 2 then v else let h = #v / 2"
                              "  in flatten({summed(w) : w in [{a + b : a in take(v, h); b in drop(v, h)},"
                              "                                {a - b : a in take(v, h); b in drop(v, h)}]});"
                              "rows = ") +
                  rows + "; {summed({x in row | x >= 0}) : row in rows};");
  };
  const Cost even = costs("{{i * j : j in [0:1024]} : i in [0:8]}");
  EXPECT_LE(even.launches, 10u + 8u) << even.outcome.lcu;
  EXPECT_LE(even.outcome.statistics.synchronisations, 5u);
  const Cost uneven = costs("{{i * j : j in [0:if i > 3 then 1024 else 512]} : i in [0:8]}");
  EXPECT_GT(uneven.outcome.statistics.synchronisations, 20u);
}

TEST(Work, HalvesThatAreAppendedAreComputedInPlace) {
  const double n = 1 << 14, levels = 14;
  Cost cost = costOf(
      "function walsh(a) = if #a == 1 then a else let r = {walsh(b) : b in bottop(a)}"
      "  in {x + y : x in r[0]; y in r[1]} ++ {x - y : x in r[0]; y in r[1]};"
      "a = {rem(i * 37, 11) : i in [0:16384]}; walsh(a);");
  EXPECT_LE(cost.elements, n * levels + 6 * 2 * n) << cost.outcome.lcu;
  EXPECT_LE(cost.written, 8 * (n * levels + 8 * 2 * n));
  // Both halves of all sequences lie where they are: a kernel a level, on the way back.
  EXPECT_LE(cost.launches, levels + 4);
  EXPECT_LE(cost.outcome.statistics.synchronisations, 4u);
}

TEST(Work, ResultsAppendedInOrderAreNotCopied) {
  // Results of a level lie side by side: only the ends of the recursion write elements.
  const double n = 1 << 14;
  Cost cost = costOf(
      "function doubled(v) = if #v == 1 then {x * 2 : x in v}"
      "  else let r = {doubled(w) : w in bottop(v)} in r[0] ++ r[1];"
      "doubled([0:16384]);");
  EXPECT_LE(cost.elements, 2 * n + 5 * 2 * n) << cost.outcome.lcu;
}

TEST(Work, UnbalancedRecursionCostsItsWork) {
  // 999 instances end at once, one goes on for 1,000 levels with a sequence that shrinks by one.
  Cost cost = costOf(
      "function total(v) = if #v == 0 then 0 else v[0] + total(drop(v, 1));"
      "vs = {[0:if i == 500 then 1000 else 1] : i in [0:1000]}; {total(v) : v in vs};",
      false);
  EXPECT_LE(cost.elements, 60'000) << cost.outcome.lcu;  // not levels * instances, nor levels * length
}

// Writes of a loop into one sequence cost what they write, and the sequence once: it is written in its own
// memory.
TEST(Work, WritesInALoopMoveNoOthers) {
  const double n = 50000, steps = 300, each = 7;
  struct Case {
    const char *write, *what;
  };
  const Case cases[] = {
      {"d <- [(rem(i * 37, #d), i * i)]", "one place"},
      {"d <- {(rem(i * j, #d), i) : j in js}", "equal values, places that may meet"},
      {"d <- {(rem(i * j, #d), 3 * rem(i * j, #d)) : j in js}", "values that follow the place"},
      {"let e = d <- {(rem(i * j, #d), i) : j in js} in e <- [(i, i + 1)]", "two writes a step"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Cost cost =
        costOf("js = [1:8]; function marked(d, i) = if i == 300 then d else let e = " + std::string(c.write) +
               " in marked(e, i + 1); sum(marked({rem(k, 9) : k in [0:50000]}, 0));");
    EXPECT_LE(cost.written, 8 * (n + 4 * steps * each)) << cost.outcome.lcu;
    EXPECT_LE(cost.elements, 2 * n + 5 * steps * each) << cost.outcome.lcu;
    EXPECT_LE(cost.outcome.statistics.copiedBytes, 8u * 50000);
    EXPECT_LE(cost.peak, 8 * 2 * n + kSmallChange);
  }
}

// Nor do writes of what was read from the same array: it is read before.
TEST(Work, WritesOfWhatWasThereMoveNoOthers) {
  const double n = 50000;
  const char* const writes[] = {
      "rep(d, d[rem(i * 37, #d)] + 1, rem(i * 101, #d))",
      "let a = rem(i * 37, #d); b = rem(i * 101, #d) in d <- [(a, d[b]), (b, d[a])]",
      "d <- [(rem(i * 37, #d), d[rem(i * 37, #d)] + d[i])]",
      "let x = d[i] in let e = rep(d, x + d[i + 1], rem(i * 37, #d)) in rep(e, e[i + 2] - x, i)",
  };
  for (const std::string write : writes) {
    SCOPED_TRACE(write);
    const Cost cost = costOf("function step(d, i) = if i == 300 then d else let e = " + write +
                             " in step(e, i + 1); sum(step({rem(k, 9) : k in [0:50000]}, 0));");
    EXPECT_LE(cost.written, 8 * (n + 300 * 8)) << cost.outcome.lcu;
    EXPECT_LE(cost.outcome.statistics.copiedBytes, 8u * 50000) << cost.outcome.lcu;
  }
  // Of several arrays, each by what another one held.
  const Cost pairs = costOf(
      "function step(v, w, i) = if i == 300 then sum(v) + sum(w) else let k = rem(i * 37, #v)"
      "  in step(rep(v, w[k], k), rep(w, v[k] + 1, k), i + 1); step([0:50000], [0:50000], 0);");
  EXPECT_LE(pairs.outcome.statistics.copiedBytes, 2 * 8u * 50000) << pairs.outcome.lcu;
}

// Nor do writes beside single values of what was there, which the loop carries on.
TEST(Work, WritesBesideValuesReadMoveNoOthers) {
  const double n = 20000;
  const char* const steps[] = {
      "step(rep(d, i, 0), i + 1, acc + d[0])",
      "step(rep(d, -1, i), i + 1, d[i] xor acc)",
      "let q = d[rem(acc, #d)] in step(rep(d, acc, i), i + 1, q)",
      "step(d <- [(i, acc)], i + 1, acc + d[i + 1])",
      "let x = d[i] * 2; y = d[i + 1] + x; e = rep(d, y, i + 1) in step(e, i + 1, acc + e[i] + d[i])",
  };
  for (const std::string next : steps) {
    SCOPED_TRACE(next);
    const Cost cost = costOf("function step(d, i, acc) = if i == 300 then acc else " + next +
                             "; step({rem(k, 9) : k in [0:20000]}, 0, 1);");
    EXPECT_LE(cost.written, 8 * (n + 300 * 8)) << cost.outcome.lcu;
    EXPECT_LE(cost.elements, 2 * n + 300 * 8) << cost.outcome.lcu;
    EXPECT_LE(cost.outcome.statistics.copiedBytes, 8 * 20000u) << cost.outcome.lcu;
  }
}

// A place that several writers want is searched for among all places, once a step.
/// One element that is replaced, however a program says so, and a few that a list spells.
TEST(Work, ReplacedElementsInALoopMoveNoOthers) {
  const std::string loop = "function lp(d, i) = if i == #d then d else let j = rem(i * i + 3, #d) in lp(";
  const std::string end = ", i + 1); sum({x * i : x in lp([0:1000], 0); i in [0:1000]});";
  for (const char* write : {"rep(d, d[j] + 1, i)", "{if k == i then i * 2 else x : x in d; k in [0:#d]}",
                            "d <- [(i, d[j]), (j, d[i])]", "d <- [(j, 1), (j, 2), (i, d[j])]",
                            "d <- zip([i / 2:i / 2 + 3], [d[i], 2, 3])",
                            "d <- {(i / 2 + k, u + d[i]) : u in [1, 2, 3]; k in [0:3]}"}) {
    const Cost cost = costOf(loop + write + end);
    EXPECT_LE(cost.elements, 8e3) << write << cost.outcome.lcu;
    EXPECT_LE(cost.written, 64e3) << write;
  }
  // The old one is needed.
  const Cost both = costOf(
      "function lp(d, i, s) = if i == #d then s else let e = rep(d, i, 5) in"
      " lp(e, i + 1, s + sum({x * y : x in d; y in e})); lp([0:50], 0, 0);");
  EXPECT_EQ(both.outcome.error, "");
  // Which of several errors, and what is out of range.
  for (const char* wrong :
       {"let d = [1, 2, 3] in d <- [(0, 1), (3, 2)];", "rep([1, 2], 5, 2);",
        "function g(d, i) = if i == 4 then d else g(rep(d, 7, i), i + 1); g([1, 2, 3], 0);",
        "function g(d, i) = if i == 9 then d else g({if k == i then 0 else x : x in d; k in"
        " [0:#d]}, i + 1); g([1, 2, 3], 0);",
        "function g(d, i, s) = if i == 9 then s else let e = rep(d, 7, i); u = print_string(@i) in"
        " g(e, i + 1, s + d[i + 3]); g([0:6], 0, 0);",
        "function g(d, i, s) = if i == 9 then s else let e = rep(d, 7, i); y = 10 / (3 - i) in"
        " g(e, i + 1, s + d[i + 1] + y); g([0:6], 0, 0);",
        "function g(d, i, s) = if i == 9 then s else let e = d <- [(i, s)] in"
        " g(e, i + 1, s + (if i > 2 then d[i + 1] else d[0])); g([0:6], 0, 0);",
        "function g(d, i, s) = if i == 5 then s else let e = d <- [(i, s), (0, i)]; h = e <- [(1, d[0])]"
        " in g(h, i + 1, s + (if i > 2 then d[i] else d[0]) + e[0]); g([0:6], 0, 0);",
        "function g(d, i, s) = if i == 5 then s else let e = rep(d, s, i); x = if s > 3 then d[i] else"
        " d[5 - i] in g(e, i + 1, s + x); g([0:6], 0, 0);"}) {
    RunnerOptions options;
    options.fused = options.reference = true;
    for (const FormOutcome& outcome : runProgram(wrong, options)) EXPECT_EQ(outcome.difference, "") << wrong;
  }
}

TEST(Work, WritesThatMayDisagreeKeepTheLast) {
  Cost cost = costOf(
      "function marked(d, i) = if i == 9 then d else"
      "  marked(d <- {(rem(i * j, #d), j) : j in [0:30]}, i + 1); marked({rem(k, 9) : k in [0:20]}, 0);");
  EXPECT_LE(cost.elements, 9 * (2 * 30 + 20) + 3 * 20) << cost.outcome.lcu;
}

TEST(Work, CallsSideBySideTakeTheStepsOfOne) {
  const std::string merge =
      "function merge(a, b) = let ra = {sum({btoi(y < x) : y in b}) : x in a};"
      "  rb = {sum({btoi(y <= x) : y in a}) : x in b}"
      "  in permute(a ++ b, {i + r : i in [0:#a]; r in ra} ++ {i + r : i in [0:#b]; r in rb});";
  const auto launches = [&](int n) {
    return costOf(merge +
                  "function sorted(a) = if #a < 2 then a else let low = sorted(take(a, #a / 2));"
                  "  high = sorted(drop(a, #a / 2)) in merge(low, high);"
                  "sorted({rem(i * 79, 101) : i in [0:" +
                  std::to_string(n) + "]});")
        .launches;
  };
  const uint64_t few = launches(64), many = launches(512);
  EXPECT_LE(many, 2 * few);  // levels: 9 beside 6; calls: 511 beside 63
}

TEST(Work, BranchOfOneInAMillionCostsOne) {
  Cost cost = costOf(
      "function expensive(x) = sum({rem(i + x, 7) : i in [0:1000]}); xs = [0:1000000];"
      "sum({if x == 777777 then expensive(x) else 0 : x in xs});",
      false);
  EXPECT_LE(cost.elements, 2 * 1'000'000 + 1000 + 10) << cost.outcome.lcu;
  EXPECT_LE(cost.written, 1000);
}

// Each reads no more elements than the result depends on, plus a pass over the outer sequence for its
// offsets, and writes no elements at all: nothing is copied to be viewed differently.
TEST(Work, ViewsMoveNothing) {
  struct Case {
    const char* expression;
    double elements, written;
  };
  const double n = 2000, rows = 200, each = 30, all = rows * each;
  const Case cases[] = {
      {"sum(take(a, 100))", 100, 8},
      {"sum(drop(a, 1900))", 100, 8},
      {"sum(rotate(a, 17))", n, 8},
      {"sum(subseq(a, 10, 20))", 10, 8},
      {"sum(odd_elts(a))", n / 2, 8},
      {"sum(reverse(a))", n, 8},
      {"sum(flatten(m))", all, 8},
      {"sum({#v : v in m})", rows, 8},
      {"{sum(reverse(v)) : v in m}", all, rows * 8},
      {"{sum(take(v, 10)) : v in m}", rows * 10, rows * 8},
      {"{sum(even_elts(v)) : v in m}", all / 2, rows * 8},
      {"{max_val(v) : v in transpose(m)}", all, each * 8},
      {"{let (h, r) = head_rest(v) in h + sum(r) : v in m}", all, rows * 8},
      {"{v[0] + v[#v - 1] : v in m}", rows, rows * 8},
      {"{sum(rotate(v, k)) : v in m; k in ks}", all + rows, 4 * rows * 8},
      {"{sum(take(v, k)) : v in m; k in ks}", all + rows, 3 * rows * 8},
      {"{sum(v ++ v) : v in m}", 2 * all + rows, 3 * rows * 8},
      {"{sum(if k > 4 then v else take(v, 1)) : v in m; k in ks}", all + rows, 4 * rows * 8},
      {"{sum(w) : w in partition(a, dist(10, 200))}", n + 3 * rows, 4 * rows * 8},
  };
  for (const Case& c : cases) {
    Cost cost =
        costOf("a = [0:2000]; m = {{i + j : j in [0:30]} : i in [0:200]}; ks = {rem(i, 10) : i in [0:200]};" +
               std::string(c.expression) + ";");
    EXPECT_LE(cost.elements, c.elements) << c.expression << "\n" << cost.outcome.lcu;
    EXPECT_LE(cost.written, c.written + 24) << c.expression << "\n" << cost.outcome.lcu;
  }
}

TEST(Work, AppendingInABranchOfARecursionCopiesOnce) {
  // Doubles a sequence k times: each level writes its result once, so 2 * 2^k elements in all and not k *
  // 2^k.
  Cost cost = costOf(
      "function grow(v, k) = if k == 0 then v else let w = grow(v, k - 1) in w ++ w; {grow([i], 8) : i in "
      "[0:4]};");
  EXPECT_LE(cost.elements, 3 * 2 * 4 * 256 + 400) << cost.outcome.lcu;
}

/// A sequence that all calls hand on is not copied for each of their instances, whether they have as long
/// ones or not.
TEST(Work, RecursionsHandSequencesOnWithoutCopies) {
  for (const char* program : {
           "function nodes(v, i) = if 2 * i + 2 >= #v then v[i] else"
           "  v[i] + sum({nodes(v, c) : c in [2 * i + 1, 2 * i + 2]}); nodes([0:2000], 0);",
           "function tree(kids, p) = if #kids[p] == 0 then 1 else 1 + sum({tree(kids, c) : c in kids[p]});"
           "let kids = {if p < 1500 then [p + 500] else [] int : p in [0:2000]} in"
           "  sum({tree(kids, p) : p in [0:500]});",
           "function tree(v, w, p) = if p >= #w then sum(take(v, 2)) else sum({tree(v, w, c) : c in [2 * p + "
           "1,"
           " 2 * p + 2]}) + w[p]; {tree([i:i + 4], [0:i * 3], rem(i, 2)) : i in [0:20]};",
       }) {
    const Cost cost = costOf(program);
    EXPECT_LE(cost.peak, 30 * 2000 * 8) << cost.outcome.lcu;
  }
}

/// What a level of a recursion gives is read while its sequences are there, not when the levels below it end.
TEST(Work, NoLevelKeepsItsSequencesForOneElement) {
  for (const char* program : {
           "function step(v, k) = if k == 0 then v[0] else step({x + 1 : x in v}, k - 1);"
           "sum({step([i:i + 100], 200) : i in [0:100]});",
           "function grow(v, k) = if k == 0 then v[#v - 1] + v[0] else grow(v ++ [k], k - 1);"
           "sum({grow([i], 200 + i) : i in [0:50]});",
       }) {
    const Cost cost = costOf(program);
    EXPECT_LE(cost.peak, 100 * 100 * 8 * 20) << cost.outcome.lcu;
  }
}

// Recursion is bounded by the heap, not by a stack: on every way of running.
TEST(Work, DeepRecursionInsideApplyToEach) {
  RunnerOptions options;
  options.fused = true;
  for (const char* program : {
           "function ack(m, n) = if m == 0 then n + 1 else if n == 0 then ack(m - 1, 1) else ack(m - 1, "
           "ack(m, n - 1));"
           "{ack(2, i) : i in [0:30]};",
           "function hopper(n) : int -> bool; function stepper(n) = if n == 0 then t else hopper(n - 1);"
           "function hopper(n) = if n == 0 then f else stepper(n - 1); {stepper(i) : i in [0, 5, 1000, 77]};",
           "function size(children, v) = 1 + sum({size(children, c) : c in children[v]}); n = 1200;"
           "children = {if i < 1000 then [i + 1, 1000 + rem(i, 200)] else [] int : i in [0:1001]} ++"
           "  {[] int : i in [1001:1200]}; {size(children, v) : v in [0, 990, 5]};",
           "function depth(children, v) = if #children[v] == 0 then 1 else"
           "  1 + max_val({depth(children, c) : c in children[v]});"
           "children = {if i < 1000 then [i + 1] else [] int : i in [0:1001]}; depth(children, 0);",
       }) {
    for (const FormOutcome& outcome : runProgram(program, options))
      EXPECT_EQ(outcome.difference + outcome.error, "") << outcome.text;
  }
}

}  // namespace
}  // namespace kelpie::testing
