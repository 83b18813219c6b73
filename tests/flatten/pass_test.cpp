// Golden texts of the small passes around flattening: hoisting on Core, rematerialisation and joins on λcu.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>

#include "flatten/analysis.h"
#include "flatten/branch_calls.h"
#include "flatten/flatten.h"
#include "flatten/hoist.h"
#include "flatten/sibling_calls.h"
#include "flatten/split_functions.h"
#include "ir/core_print.h"
#include "ir/core_verify.h"
#include "last_program.h"

namespace kelpie::testing {
namespace {

std::string hoisted(const std::string& nesl) {
  const core::Program program = compiled(nesl);
  const core::Program result = flatten::hoist(program, flatten::Analysis(program));
  EXPECT_EQ(core::verify(result), std::vector<std::string>{});
  return core::toString(result.entry, result);
}

TEST(Hoist, SumsLeaveTheLoopTheyDoNotDependOn) {
  EXPECT_EQ(hoisted("let r = [1, 2, 3] in {sum(r) * x : x in r};"),
            "let r.1: [int64] = constant [1, 2, 3]\n"
            "let .3: int64 = reduce add r.1\n"
            "each (x.2: int64) in r.1\n"
            "  mul .3 x.2\n");
}

TEST(Hoist, WhatCanFailIsGuarded) {
  EXPECT_EQ(hoisted("let r = [1, 2, 3]; n = 4 in {sum({10 / y : y in r}) * x : x in r};"),
            "let r.1: [int64] = constant [1, 2, 3]\n"
            "let .9: int64 = length r.1\n"
            "let .10: bool = gt .9 0\n"
            "let .6: int64 =\n"
            "  if .10\n"
            "    let .11: [int64] =\n"
            "      each (y.3: int64) in r.1\n"
            "        checked div 10 y.3\n"
            "    let .12: int64 = reduce add .11\n"
            "    (.12)\n"
            "  else\n"
            "    (0)\n"
            "each (x.2: int64) in r.1\n"
            "  mul .6 x.2\n");
}

/// Sequences of different lengths are an error, which comes first.
TEST(Hoist, WhatCanFailIsNotReachedWhereLengthsDiffer) {
  EXPECT_EQ(hoisted("let r = [1, 2, 3] in {sum({10 / z : z in r}) * x * y : x in r; y in r};"),
            "let r.1: [int64] = constant [1, 2, 3]\n"
            "let .11: int64 = length r.1\n"
            "let .12: bool = gt .11 0\n"
            "let .13: int64 = length r.1\n"
            "let .14: bool = eq .11 .13\n"
            "let .15: bool = and .12 .14\n"
            "let .7: int64 =\n"
            "  if .15\n"
            "    let .16: [int64] =\n"
            "      each (z.4: int64) in r.1\n"
            "        checked div 10 z.4\n"
            "    let .17: int64 = reduce add .16\n"
            "    (.17)\n"
            "  else\n"
            "    (0)\n"
            "each (x.2: int64) in r.1; (y.3: int64) in r.1\n"
            "  let .8: int64 = mul .7 x.2\n"
            "  mul .8 y.3\n");
}

TEST(Hoist, EffectsAndElementsStay) {
  const std::string nesl = "let r = [1, 2, 3] in {sum({x * y : y in r}) + sum({rand(y) : y in r}) : x in r};";
  const core::Program program = compiled(nesl);
  EXPECT_EQ(hoisted(nesl), core::toString(program.entry, program));
}

std::string split(const std::string& nesl) {
  const core::Program program = compiled(nesl);
  const auto result = flatten::splitFunctions(program, flatten::Analysis(program));
  if (!result) return "";
  EXPECT_EQ(core::verify(*result), std::vector<std::string>{});
  std::string text = core::toString(result->entry, *result);
  for (size_t f = program.functions.size(); f < result->functions.size(); ++f)
    text += core::toString(result->functions[f], *result);
  return text;
}

TEST(Split, WhatFixedArgumentsDetermineIsACallOfItsOwn) {
  EXPECT_EQ(split("function near(p, v) = let n = #v; s = sum(v) in p * s + n;"
                  "let r = [1, 2, 3] in {near(p, r) : p in r};"),
            "let r.1: [int64] = constant [1, 2, 3]\n"
            "each (p.2: int64) in r.1\n"
            "  let .18: int64 = call near(r.1)\n"
            "  call near(p.2, r.1, .18)\n"
            "function near(v.11: [int64]) -> int64\n"
            "  let s.12: int64 = reduce add v.11\n"
            "  (s.12)\n"
            "function near(p.13: int64, v.14: [int64], s.15: int64) -> int64\n"
            "  let n.16: int64 = length v.14\n"
            "  let .17: int64 = mul p.13 s.15\n"
            "  add .17 n.16\n");
}

TEST(Split, WhatVariesRecursesOrNeedsNoKernelStays) {
  for (const char* nesl :
       {// nothing is left for elements
        "function near(p, v) = let s = sum({x * p : x in v}) in s; let r = [1, 2] in {near(p, r) : p in r};",
        // there is nothing to compute
        "function near(p, v) = let n = #v in p + n; let r = [1, 2] in {near(p, r) : p in r};",
        // it is not inside of an apply-to-each
        "function near(p, v) = let s = sum(v) in p + s; let r = [1, 2] in near(3, r);",
        // one of its lets, but only where there is more of it
        "function near(p, v) = if p == 0 then 0 else let s = sum(v) in s + near(p - 1, v);"
        "let r = [1, 2] in {near(p, r) : p in r};",
        // what fails first would fail second
        "function near(p, v) = let q = 1 / p; s = sum({10 / y : y in v}) in q + s; let r = [1, 2] in "
        "{near(p, r) : p in "
        "r};"})
    EXPECT_EQ(split(nesl), "") << nesl;
}

std::string joined(const std::string& nesl) {
  const core::Program program = compiled(nesl);
  const core::Program result = flatten::joinSiblingCalls(program, flatten::Analysis(program));
  EXPECT_EQ(core::verify(result), std::vector<std::string>{});
  return core::toString(result.entry, result);
}

const std::string kHalves =
    "function halves(a, k) = if #a < k then a else halves(take(a, #a / 2), k) ++ halves(drop(a, #a / 2), k);";

TEST(SiblingCalls, AreOneUnlessOneNeedsAnother) {
  EXPECT_EQ(joined(kHalves +
                   "let a = [1, 2, 3]; b = halves(a, 2); n = #b; c = halves(b, 2); d = halves([4, 5], 2) in"
                   " (n, c, d);"),
            "let a.1: [int64] = constant [1, 2, 3]\n"
            "let .5: [int64] = constant [4, 5]\n"
            "let .58: [[int64]] = literal 2 a.1 .5\n"
            "let .60: [[int64]] =\n"
            "  each (.59: [int64]) in .58\n"
            "    call halves(.59, 2)\n"
            "let b.2: [int64] = index .60 0\n"
            "let d.6: [int64] = index .60 1\n"
            "let n.3: int64 = length b.2\n"
            "let c.4: [int64] = call halves(b.2, 2)\n"
            "(n.3, c.4, d.6)\n");
}

TEST(SiblingCalls, WithEffectsOrInLoopsStay) {
  const std::string noisy =
      "function noisy(a) = if #a < 2 then print_string(\"end\") else let l = noisy(take(a, 1));"
      "  r = noisy(drop(a, 1)) in l and r; let l = noisy([1, 2]); r = noisy([3]) in (l, r);";
  const std::string loops =
      "function last(a, i) = if i == 0 then a else last({x + i : x in a}, i - 1);"
      "let l = last([1, 2], 3); r = last([3], 4) in (l, r);";
  const std::string scalars =
      "function ways(n) = if n < 2 then 1 else ways(n - 1) + ways(n - 2); let l = ways(3); r = ways(4) in "
      "(l, r);";
  for (const std::string& nesl : {noisy, loops, scalars}) {
    const core::Program program = compiled(nesl);
    EXPECT_EQ(joined(nesl), core::toString(program.entry, program));
  }
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// The function's body after calls of branches are joined.
std::string oneCall(const std::string& nesl, const std::string& function) {
  const core::Program program = compiled(nesl);
  const core::Program result = flatten::joinBranchCalls(program, flatten::Analysis(program));
  EXPECT_EQ(core::verify(result), std::vector<std::string>{});
  const std::string text = core::toString(result);
  const size_t begin = text.find("function " + function + "(");
  EXPECT_NE(begin, std::string::npos) << text;
  return text.substr(begin, std::min(text.find("\nfunction", begin), text.find("\nentry", begin)) - begin);
}

TEST(BranchCalls, AreOneCallOfWhatTheBranchesGive) {
  const std::string text = oneCall(
      "function down(v, w, k) = if k > 2 then down({x + k : x in v}, w, k - 1) else down(w, v, k + #v);"
      "{down(v, v, 3) : v in [[1, 2], [3]]};",
      "down");
  EXPECT_EQ(occurrences(text, "call down("), 1u) << text;
  EXPECT_EQ(occurrences(text, "if "), 1u) << text;
}

TEST(BranchCalls, EndsWithoutACallHandResultsOn) {
  const std::string text = oneCall(
      "function kth(v, k) = let p = v[#v / 2]; less = {x in v | x < p} in if k < #less then kth(less, k) else"
      "  let more = {x in v | x > p} in if k >= #v - #more then kth(more, k - (#v - #more)) else p;"
      "{kth(v, 1) : v in [[1, 2], [3, 1, 2]]};",
      "kth");
  EXPECT_EQ(occurrences(text, "call kth("), 1u) << text;
  EXPECT_EQ(occurrences(text, "if "), 3u) << text;
}

TEST(BranchCalls, OfManyBranchesAreOne) {
  std::string body = "v";
  for (int k = 0; k < 60; ++k)
    body = fmt::format("if k == {0} then many({{x + {0} : x in v}}, k + 1) else {1}", k, body);
  const std::string text =
      oneCall("function many(v, k) = " + body + "; {many([0:i], i) : i in [0:5]};", "many");
  EXPECT_EQ(occurrences(text, "call many("), 1u);
  EXPECT_EQ(occurrences(text, "if "), 61u);
  EXPECT_LT(text.size(), 60u * 800);
}

TEST(BranchCalls, InTheMiddleOfBranchesAreOne) {
  const std::string text = oneCall(
      "function power(v, k) = if k == 0 then [1] else if evenp(k) then reverse(power(v, k / 2))"
      "  else let m = k - 1; r = power(v, m) in {x * m : x in r} ++ v;"
      "{power(v, 9) : v in [[1, 2], [3]]};",
      "power");
  EXPECT_EQ(occurrences(text, "call power("), 1u) << text;
  EXPECT_EQ(occurrences(text, "if "), 3u) << text;
}

TEST(BranchCalls, OfSeveralOrOfSequencesAreOneForEach) {
  const std::string text = oneCall(
      "function g(v, k) = if #v < 2 then v else if k > 3 then g(take(v, 1), k) ++ g(drop(v, 1), 1) else"
      "  if k > 1 then flatten({g({y + 1 : y in w}, k - 1) : w in [take(v, 1), v]}) else g(drop(v, 1), 9);"
      "{g(v, 5) : v in [[1, 2], [3]]};",
      "g");
  EXPECT_EQ(occurrences(text, "call g("), 1u) << text;
}

/// An apply-to-each that goes on after its call is split there.
TEST(BranchCalls, InAppliesThatGoOnAreOneForEach) {
  const std::string text = oneCall(
      "function g(v, k) = if k == 0 then v else if #v > 2 then flatten({g(w, k - 1) ++ [1] : w in [v, v]}) "
      "else"
      "  if #v == 1 then {let m = x + k; r = g([m, x], k - 1) in sum(r) + m : x in v; y in v}"
      "  else g(v ++ [k], k - 1) ++ [2];"
      "{g(v, 2) : v in [[1, 2], [3]]};",
      "g");
  EXPECT_EQ(occurrences(text, "call g("), 1u) << text;
}

/// A second call that needs the first one's result comes after it; one in a conditional of an apply-to-each
/// stays.
TEST(BranchCalls, OneAfterTheOther) {
  const std::string text = oneCall(
      "function g(v, k) = if k == 0 then v else if #v > 2 then g(g(take(v, 2), k - 1), k - 1) else"
      "  let w = g(v ++ [k], k - 1) in g({x + 1 : x in w}, k - 2) ++ w;"
      "{g(v, 2) : v in [[1, 2], [3]]};",
      "g");
  EXPECT_EQ(occurrences(text, "call g("), 2u) << text;
  EXPECT_EQ(occurrences(oneCall("function g(v, k) = if k == 0 then v else if #v > 2 then"
                                "  flatten({if k > 1 then g(w, k - 1) ++ [1] else w : w in [v, v]})"
                                "  else g(v ++ [k], k - 1) ++ [2];"
                                "{g(v, 2) : v in [[1, 2], [3]]};",
                                "g"),
                        "call g("),
            2u);
}

/// Of much code; each level has the one below in both branches.
TEST(BranchCalls, OfLongFunctionsAreOne) {
  for (const char* const ends :
       {"d{1}(v) else d{1}({{x + 1 : x in v}})",
        "reverse(d{1}(v)) else if #v == 7 then d{1}(v ++ v) else d{1}(take(v, 1)) ++ v"}) {
    for (const char* const use : {"{{d16(v) : v in [[1, 2], [3]]}};", "d16([1, 2]);"}) {
      std::string nesl = "function d0(v) = {rem(x * 3 + 1, 17) : x in v};";
      for (int k = 1; k <= 16; ++k)
        nesl += fmt::format(
            fmt::runtime(std::string("function d{0}(v) = if sum(v) > {0} then ") + ends + ";"), k, k - 1);
      nesl += fmt::format(fmt::runtime(use));
      EXPECT_EQ(occurrences(oneCall(nesl, "d16"), "call d15("), 1u) << use;
    }
  }
  // Little code stays: a branch may be a view.
  EXPECT_EQ(occurrences(
                oneCall("function e0(v) = sum(v); function e1(v) = if #v > 2 then e0(take(v, 2)) else e0(v);"
                        "{e1(v) : v in [[1, 2], [3]]};",
                        "e1"),
                "call e0("),
            2u);
}

TEST(BranchCalls, WithEffectsOrOutsideOfAppliesOrOfScalarsStay) {
  const std::string body =
      "if #v > 2 then down(take(v, 2), k + 1) else if #v == 0 then k else down(drop(v, 1), k)";
  EXPECT_EQ(
      occurrences(oneCall("function down(v, k) = " + body + "; {down(v, 0) : v in [[1, 2, 3]]};", "down"),
                  "call down("),
      1u);
  EXPECT_EQ(
      occurrences(oneCall("function down(v, k) = " + body + "; down([1, 2, 3], 0);", "down"), "call down("),
      2u);
  EXPECT_EQ(occurrences(oneCall("function down(v, k) = let a = print_string(\"x\") in " + body +
                                    "; {down(v, 0) : v in [[1, 2, 3]]};",
                                "down"),
                        "call down("),
            2u);
  EXPECT_EQ(occurrences(
                oneCall("function down(n) = if n > 9 then down(n / 2) else if n < 0 then down(n + 1) else n;"
                        "{down(n) : n in [1, 20]};",
                        "down"),
                "call down("),
            2u);
}

/// A literal of more numbers than are unrolled.
std::string twenty(const std::string& suffix) {
  std::string text = "[0" + suffix;
  for (int k = 1; k < 20; ++k) text += fmt::format(", {}{}", k, suffix);
  return text + "]";
}

TEST(Rematerialise, ElementsNeededAgainLaterAreComputedAgain) {
  const std::string lcu =
      lcu::toString(flatten::flatten(compiled("let v = " + twenty(".0") +
                                              " in {let d = {(x - y) * (x - y) : y in v}; m = min_val(d) in"
                                              " sum({x - m : x in d}) : x in v};")));
  // The squares are part of the minimum and of the differences, and never an array.
  EXPECT_EQ(occurrences(lcu, "let t1 = literal[s] - literal[p] in t1 * t1 }"), 1u) << lcu;
  EXPECT_EQ(occurrences(lcu, "let t1 = literal[s] - literal[p] in t1 * t1 - min[s] }"), 1u) << lcu;
  EXPECT_EQ(occurrences(lcu, "MAP regular(20, 20, 400)"), 1u) << lcu;
}

// Functions that take many operations, and elements whose computation can fail, are computed once.
TEST(Rematerialise, DearElementsAreKept) {
  for (const char* element : {"exp(x - y)", "float(p[y] + x)"}) {
    const std::string lcu = lcu::toString(flatten::flatten(
        compiled("p = [1, 0]; let v = " + twenty(element[0] == 'e' ? ".0" : "") + " in {let d = {" + element +
                 " : y in v}; m = min_val(d) in sum({z - m : z in d}) : x in v};")));
    EXPECT_EQ(occurrences(lcu, "MAP regular(20, 20, 400)"), 2u) << lcu;
  }
}

std::string flat(const std::string& nesl) { return lcu::toString(flatten::flatten(compiled(nesl))); }

/// What follows a line, without how it comes about.
std::string mapsOf(const std::string& lcu) {
  std::string maps;
  std::istringstream lines(lcu);
  for (std::string line; std::getline(lines, line);)
    if (line.find(" = MAP ") != std::string::npos || line.find(" = REDUCE ") != std::string::npos)
      maps += line.substr(4, line.rfind(" @line") - 4) + "\n";
  return maps;
}

const std::string kXs = "function go(xs) = ";
const std::string kTen = " go({float(i) : i in [0:10]});";

TEST(ShortSegments, AReductionIsAMap) {
  EXPECT_EQ(
      mapsOf(flat(
          "let ws = [0.25, 0.5, 2.0] in {sum({w * float(i * k) : w in ws; k in [4:7]}) : i in [0:10]};")),
      "let r_0: [float64; 10], r_1: [float64; 10], r_2: [float64; 10] = MAP flat 10 { i => 0.25 * float64(i "
      "* 4), "
      "0.5 * float64(i * 5), 2.0 * float64(i * 6) }\n"
      "let add: [float64; 10] = MAP flat 10 { i => 0.0 + r_0[i] + r_1[i] + r_2[i] }\n");
}

/// Tables looked up in tables, as often as would take forever if each level doubled the work.
TEST(ShortSegments, ConstantsAreFoundByConstants) {
  std::string element = "k", unknown = "i + k";
  for (int level = 0; level < 40; ++level) {
    element = "c[" + element + "]";
    unknown = "c[(" + unknown + ") and 3]";
  }
  const std::string table = "let c = [1, 3, 0, 2] in {sum({";
  EXPECT_EQ(mapsOf(flat(table + element + " * i : k in [0:2]}) : i in [0:9]};")).find("literal"),
            std::string::npos);
  EXPECT_EQ(mapsOf(flat(table + unknown + " : k in [0:2]}) : i in [0:9]};")).find("regular"),
            std::string::npos);
}

TEST(ShortSegments, SegmentsOfSegmentsToo) {
  const std::string maps =
      mapsOf(flat("{sum({max_val({i * j + k : k in [0:2]}) : j in [0:2]}) : i in [0:9]};"));
  EXPECT_EQ(maps.find("regular"), std::string::npos) << maps;
  EXPECT_NE(maps.find("MAP flat 9 { i => 0, 1, i, i + 1 }"), std::string::npos) << maps;
}

/// What all elements around a point have in common is computed from the number of the point, not stored for
/// each of them.
TEST(ShortSegments, StencilsStoreNothing) {
  const std::string maps = mapsOf(flat(
      "function around(m, h, w) = {{sum({sum({m[i + a][j + b] : b in [0:3]}) : a in [0:3]}) : j in [0:w]}"
      " : i in [0:h]}; h = 5; w = 7; let m = {{i * j : j in [0:w]} : i in [0:h]} in around(m, h - 2, w - "
      "2);"));
  EXPECT_EQ(occurrences(maps, "% 3"), 0u) << maps;
  EXPECT_EQ(occurrences(maps, "check("), 0u) << maps;
  EXPECT_EQ(occurrences(maps, " = MAP flat"), 4u) << maps;  // loads, sums, their sums, offsets
}

TEST(ShortSegments, ElementsAreFoundByTheirPositions) {
  const std::string maps =
      mapsOf(flat("{let q = {i * k : k in [2:4]} in {q[1] * x + q[0] : x in [0:i]} : i in [0:9]};"));
  EXPECT_EQ(occurrences(maps, "regular"), 0u) << maps;
  EXPECT_EQ(occurrences(maps, "r_1[s] * p + r_0[s]"), 1u) << maps;
}

TEST(ShortSegments, ScansAreMaps) {
  EXPECT_EQ(
      mapsOf(flat("{sum({a * a : a in plus_scan({i + k : k in [0:3]})}) : i in [0:9]};")).find("regular"),
      std::string::npos);
}

TEST(ShortSegments, WhatLeavesOrLoopsOrIsLongStays) {
  for (const char* nesl :
       {"{let v = {i * k : k in [0:3]} in (sum(v), v) : i in [0:9]};",            // leaves
        "{let v = {i * k : k in [0:3]} in v[rem(i, 3)] + sum(v) : i in [0:9]};",  // found
        "{sum({x * x : x in {i * k : k in [0:3]} | x > 4}) : i in [0:9]};",       // filtered
        "{sum({i * k : k in [0:17]}) : i in [0:9]};",                             // long
        "function go(n) = if n < 2 then n else go(n / 2) + 1; {sum({go(i * k) : k in [0:3]}) : i in [0:9]};"})
    EXPECT_NE(mapsOf(flat(nesl)).find("regular"), std::string::npos) << nesl;
}

TEST(ShortSegments, RowsInMemoryStay) {
  const std::string windows = kXs + "{sum({xs[i + k] : k in [0:3]}) : i in [0:#xs - 2]};" + kTen;
  const std::string columns =
      kXs + "let n = #xs / 3 in {sum({xs[k * n + i] : k in [0:3]}) : i in [0:n]};" + kTen;
  const std::string same = kXs + "{sum({xs[i / 3 + k] : k in [0:3]}) : i in [0:#xs - 2]};" + kTen;
  for (const std::string& nesl : {windows, columns, same})
    EXPECT_EQ(mapsOf(flat(nesl)).find("regular"), std::string::npos) << flat(nesl);
  const std::string rows = kXs + "{sum({xs[i * 3 + k] : k in [0:3]}) : i in [0:#xs / 3]};" + kTen;
  const std::string apart =
      kXs + "let n = #xs / 3 in {sum({xs[i * n + k] : k in [0:3]}) : i in [0:3]};" + kTen;
  for (const std::string& nesl : {rows, apart})
    EXPECT_NE(mapsOf(flat(nesl)).find("regular"), std::string::npos) << flat(nesl);
}

TEST(Join, SurvivorsOfTwoFiltersBecomeOneArray) {
  const std::string lcu = lcu::toString(flatten::flatten(
      compiled("function halves(v, k) = if k == 0 then v else let r = {halves(w, k - 1) : w in"
               " [{x in v | x > 1}, {x in v | x < 1}]} in r[0]; halves([1, 2, 0], 2);")));
  EXPECT_EQ(occurrences(lcu, " = join x_"), 2u) << lcu;  // in the function and in its lifted form
  EXPECT_EQ(occurrences(lcu, ", joined_"), 2u) << lcu;
}

/// So that forms that read a result can be compiled before there is one.
TEST(Regularity, OfResultsIsForeseen) {
  const auto foreseen = [](const std::string& nesl) {
    return flatten::flatten(compiled(nesl)).regularResults;
  };
  EXPECT_EQ(foreseen("3;"), (Regularity{false}));
  EXPECT_EQ(foreseen("{{i * j : j in [0:5]} : i in [0:4]};"), (Regularity{false, true, false}));
  EXPECT_EQ(foreseen("{{i * j : j in [0:i]} : i in [0:4]};"), (Regularity{false, false, false}));
  EXPECT_EQ(foreseen("[[1, 2], [3, 4]];"), (Regularity{false, true, false}));
  EXPECT_EQ(foreseen("[[1, 2], [3]];"), (Regularity{false, false, false}));
  EXPECT_EQ(foreseen("(1, {(i, {{i : k in [0:i]} : j in [0:2]}) : i in [0:4]});"),
            (Regularity{false, false, false, true, false, false}));
}

/// A cell's descriptor becomes the length that all its segments have.
TEST(Regularity, OfCellsIsUsed) {
  const core::Program program = compiled("m = [[1, 2], [3, 4]]; {sum(r) : r in m};");
  ASSERT_EQ(program.globals.size(), 1u);
  const uint32_t cell = program.globals[0].cell;
  const auto kinds = [&](const RegularCells& cells) {
    const lcu::Program flat = flatten::flatten(program, cells);
    return flat.vars[flat.globals.at(0).vars.at(1)].kind;
  };
  EXPECT_EQ(kinds({}), lcu::VarKind::Array);
  EXPECT_EQ(kinds({{cell, {false, false, false}}}), lcu::VarKind::Array);
  EXPECT_EQ(kinds({{cell, {false, true, false}}}), lcu::VarKind::Host);
}

TEST(LoopInvariants, LengthsAndStartsThatStayAreNoParameters) {
  const std::string lcu = flat(
      "function halved(a, n) = if n == 0 then a else halved({x / 2.0 : x in a}, n - 1);"
      "let a = {float(i) : i in [0:#\"four\"]} in halved(a, 3);");
  const std::string parameters =
      lcu.substr(lcu.find(" = loop ("), lcu.find(") while") - lcu.find(" = loop ("));
  EXPECT_EQ(occurrences(parameters, "a_length"), 0u) << lcu;
  EXPECT_EQ(occurrences(parameters, "a_start"), 0u) << lcu;
  EXPECT_EQ(occurrences(lcu, "MAP flat 4 { i => a_"), 1u) << lcu;  // at i, not at start + i
}

TEST(LoopInvariants, LengthsThatChangeAreParameters) {
  const std::string lcu =
      flat("function grown(a, n) = if n == 0 then a else grown(a ++ a, n - 1); grown([1, 2], 3);");
  EXPECT_GT(occurrences(lcu.substr(0, lcu.find(") while")), "a_length"), 1u) << lcu;
}

/// The first step of a loop that begins with a range is outside of it. What both branches of that step say is
/// the same for the loop.
TEST(LoopInvariants, StartsThatAreAlikeInTheStepBeforeAreNoParameters) {
  const std::string lcu = flat(
      "function places(a, word, text, k) ="
      "  if k == #word then a else places({c in a | text[c + k] == word[k]}, word, text, k + 1);"
      "let text = \"abcab\" in places([0:#text * 1000], \"ab\", text ++ text, 0);");
  const std::string parameters =
      lcu.substr(lcu.find(" = loop ("), lcu.find(") while") - lcu.find(" = loop ("));
  EXPECT_EQ(occurrences(parameters, "a_length") - occurrences(parameters, "; a_length"), 1u) << lcu;
  EXPECT_EQ(occurrences(parameters, "a_start"), 0u) << lcu;
}

constexpr const char* kConverging =
    "function halved(a) = let b = {x / 2.0 : x in a} in if max_val(b) < 0.1 then b else halved(b);"
    "halved([8.0, 3.0]);";

TEST(DeviceConditions, AConditionThatReadsTheDeviceIsACell) {
  const std::string lcu = flat(kConverging);
  EXPECT_EQ(occurrences(lcu, ": &bool = ONCE { max"), 1u) << lcu;
  EXPECT_EQ(occurrences(lcu, "= if decided"), 1u) << lcu;
}

/// Gives the body of the first loop.
std::string loopOf(const std::string& lcu) {
  const size_t begin = lcu.find(" = loop (");
  return begin == std::string::npos ? "" : lcu.substr(begin);
}

/// The step needs the former sum, and hands it from kernel to kernel.
TEST(DeviceScalars, ASumForTheNextStepIsACell) {
  const std::string lcu =
      loopOf(flat("function scaled(a, total, n) = if n == 0 then a else"
                  "  let b = {x / total : x in a} in scaled(b, sum(b), n - 1);"
                  "let a = {float(i) : i in [1:9]} in scaled(a, 2.0, 5);"));
  EXPECT_EQ(occurrences(lcu.substr(0, lcu.find(") while")), ": &float64 = start"), 1u) << lcu;
  EXPECT_EQ(occurrences(lcu, ": float64 = add"), 0u) << lcu;
}
/// A condition may read it as well.
TEST(DeviceScalars, ConditionsReadThem) {
  const std::string lcu =
      loopOf(flat("function scaled(a, total) = if total < 1.0 then a else"
                  "  let b = {x / total : x in a} in scaled(b, sum(b) * 0.5);"
                  "let a = {float(i) : i in [1:9]} in scaled(a, sum(a));"));
  EXPECT_EQ(occurrences(lcu, ": &bool = ONCE"), 1u) << lcu;
}
/// The host counts with it: there is a wait anyway.
TEST(DeviceScalars, WhatTheHostComputesWithStays) {
  for (const char* nesl :
       {"function grown(a, n) = if n > 50 then a else let b = {x + 1 : x in a} in grown(b, sum(b) + n);"
        "grown([1, 2], 3);",
        "function cut(a, n) = if #a == 0 then n else"
        "  let b = {x + 1 : x in a} in cut(take(b, min(#b, n) - 1), sum(b));"
        "cut([1, 2], 3);"}) {
    const std::string lcu = loopOf(flat(nesl));
    EXPECT_EQ(occurrences(lcu.substr(0, lcu.find(") while")), "&int"), 0u) << lcu;
  }
}

/// It knows a counter anyway: a kernel for each step would only cost a launch.
TEST(DeviceScalars, WhatTheHostKnowsStays) {
  const std::string lcu =
      loopOf(flat("function marked(a, depth) = if #a == 0 then depth else"
                  "  marked({x - depth : x in a | x > depth}, depth + 1);"
                  "marked([3, 1, 7], 1);"));
  EXPECT_EQ(occurrences(lcu, "ONCE"), 0u) << lcu;
}

/// The host needs the number of survivors in every step, so it waits anyway.
TEST(DeviceConditions, LoopsThatWaitForSizesStay) {
  const std::string lcu = flat(
      "function sieve(a) = let b = {x - 1 : x in a | x > 1} in if max_val(b) < 2 then b else sieve(b);"
      "sieve([2, 9, 4]);");
  EXPECT_EQ(occurrences(lcu, "ONCE"), 0u) << lcu;
}

TEST(DeviceConditions, ConditionsOutsideOfLoopsStay) {
  EXPECT_EQ(
      occurrences(flat("let a = {float(i) : i in [0:9]} in if max_val(a) > 3.0 then a else [1.0];"), "ONCE"),
      0u);
}

}  // namespace
}  // namespace kelpie::testing
