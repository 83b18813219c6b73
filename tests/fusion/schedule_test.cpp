// Order and safety of schedules: what fusion must not move, and what it may.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/fuse.h"
#include "tests/fusion/read_program.h"

namespace kelpie::fusion {
namespace {

using ::testing::ElementsAre;

/// What the statements of the first function are, in order: kernel names, "let", "service", ...
std::vector<std::string> scheduleOf(std::string_view text) {
  lcu::Program program = read(text);
  EXPECT_THAT(lcu::verify(program, false), ElementsAre());
  fuse(program);
  EXPECT_THAT(lcu::verify(program, true), ElementsAre());
  std::vector<std::string> names;
  for (const lcu::Stmt& stmt : program.functions.at(0).body.stmts) {
    if (const auto* launch = std::get_if<lcu::Launch>(&stmt.node)) {
      names.push_back(launch->kernel.name);
    } else {
      names.push_back(std::holds_alternative<lcu::HostLet>(stmt.node) ? "let" : "service");
    }
  }
  return names;
}

TEST(Schedule, KernelsStayBehindTheHostCheckOfWhatTheyUse) {
  EXPECT_THAT(scheduleOf(R"(
function f(xs: [int64], ys: [int64], zs: [int64]) {
  kernel a { let a: &int64 = REDUCE flat #zs { i => zs[i] } (0) { x, y => x + y } return a }
  let good: bool = check(#xs == #ys, true, false, @0, #xs, #ys)
  kernel b { let b: [int64; #xs] = MAP flat #xs { i => xs[i] + ys[i] } return b }
  kernel c { let c: &int64 = REDUCE flat #zs { i => zs[i] } (-1) { x, y => max(x, y) } return c }
  return a, b, c
})"),
              ElementsAre("a_c", "let", "b"));
}

TEST(Schedule, KernelsAreLaunchedBeforeTheHostWaits) {
  EXPECT_THAT(scheduleOf(R"(
function f(xs: [int64], ys: [int64]) {
  kernel a { let a: &int64 = REDUCE flat #xs { i => xs[i] } (0) { x, y => x + y } return a }
  let h: int64 = a + 1
  kernel b { let b: [int64; #ys] = MAP flat #ys { i => ys[i] + 1 } return b }
  return h, b
})"),
              ElementsAre("a", "b", "let"));
}

TEST(Schedule, WhatMayFailKeepsItsPlaceAmongServices) {
  EXPECT_THAT(scheduleOf(R"(
function f(xs: [int64], text: [char]) {
  let n: int64 = #text
  kernel a { let a: [int64; #xs] = MAP flat #xs { i => check(xs[i] != 0, xs[i], 1, @0, i, 0) } return a }
  let done: bool = service print(n, text): ([char]) -> (bool) @0
  kernel b { let b: [int64; #xs] = MAP flat #xs { i => check(xs[i] != 1, xs[i], 1, @0, i, 0) } return b }
  kernel c { let c: [int64; #xs] = MAP flat #xs { i => xs[i] + 1 } return c }
  return a, b, c
})"),
              ElementsAre("let", "a_c", "service", "b"));
}

TEST(Schedule, AnUnusedMapWithoutChecksGoesAndOneWithChecksStays) {
  EXPECT_THAT(scheduleOf(R"(
function f(xs: [int64]) {
  kernel a { let a: [int64; #xs] = MAP flat #xs { i => xs[i] + 1 } return a }
  kernel b { let b: [int64; #xs] = MAP flat #xs { i => check(xs[i] != 1, xs[i], 1, @0, i, 0) } return b }
  return xs
})"),
              ElementsAre("b"));
}

// The constraint that the textbook formulation once missed: `as` and `cs` can never be together, since `cs`
// needs `b`, so their reductions, of different sizes, cannot be either.
TEST(Schedule, ReductionsOfFiltersThatNeedEachOtherStayApart) {
  EXPECT_THAT(scheduleOf(R"(
function f(xs: [int64]) {
  kernel as { let n: &int64, as: [int64; n] = FILTER flat #xs { i => xs[i] } where { i => xs[i] > 0 } return n, as }
  kernel b { let b: &int64 = REDUCE flat n { i => as[i] } (0) { x, y => x + y } return b }
  kernel cs { let m: &int64, cs: [int64; m] = FILTER flat #xs { i => xs[i] } where { i => xs[i] > b } return m, cs }
  kernel ds { let d: &int64 = REDUCE flat n { i => as[i] } (0) { x, y => max(x, y) } return d }
  kernel es { let e: &int64 = REDUCE flat m { i => cs[i] } (0) { x, y => x + y } return e }
  return d, e
})"),
              ElementsAre("as_b_ds", "cs_es"));
}

// What is computed of survivors by their segments goes into the filter; a fold of all survivors has no
// segments to compute it with.
TEST(Schedule, FoldsOfAllSurvivorsDoNotReadWhatNeedsTheirSegments) {
  EXPECT_THAT(scheduleOf(R"(
function f(xs: [int64], os: [int64], n: int64, ks: [int64]) {
  kernel kept { let ends: [int64; n + 1], as: [int64; ends[n]] = FILTER seg(os, n, #xs) { i, s, p => xs[i] } where { i, s, p => xs[i] > 2 } return ends, as }
  kernel of { let b: [int64; ends[n]] = MAP seg(ends, n, ends[n]) { i, s, p => ks[s] } return b }
  kernel more { let c: [int64; ends[n]] = MAP seg(ends, n, ends[n]) { i, s, p => b[i] + 1 } return c }
  kernel fold { let d: &int64 = REDUCE flat ends[n] { i => c[i] } (0) { x, y => x + y } return d }
  kernel plain { let e: &int64 = REDUCE flat ends[n] { i => as[i] } (0) { x, y => x + y } return e }
  return d, e
})"),
              ElementsAre("kept_of_more_plain", "fold"));
}

// The same where a filter of survivors, which has no segments to look at itself, takes over what the one
// before it decides by segment.
TEST(Schedule, FoldsOfAllSurvivorsOfSurvivorsDoNotReadWhatNeedsTheirSegments) {
  EXPECT_THAT(scheduleOf(R"(
function f(xs: [int64], os: [int64], n: int64, ks: [int64]) {
  kernel kept { let ends: [int64; n + 1], as: [int64; ends[n]] = FILTER seg(os, n, #xs) { i, s, p => xs[i] } where { i, s, p => ks[s] > 2 } return ends, as }
  kernel again { let last: [int64; n + 1], bs: [int64; last[n]] = FILTER seg(ends, n, ends[n]) { i, s, p => as[i] } where { i, s, p => as[i] > 0 } return last, bs }
  kernel fold { let d: &int64 = REDUCE flat last[n] { i => bs[i] } (0) { x, y => x + y } return d }
  return d, bs
})"),
              ElementsAre("kept_again", "fold"));
}

TEST(Schedule, ASizeIsNoReasonToKeepAnArray) {
  lcu::Program program = read(R"(
function f(xs: [int64]) {
  kernel a { let a: [int64; #xs] = MAP flat #xs { i => xs[i] * xs[i] } return a }
  kernel b { let b: [int64; #xs] = MAP flat #a { i => xs[i] + #a } return b }
  return b
})");
  fuse(program);
  ASSERT_EQ(program.functions[0].body.stmts.size(), 1u);
}

}  // namespace
}  // namespace kelpie::fusion
