// Every fusion rule on λcu text: the kernels before, the kernel after, and the rules that made it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fusion/fuse.h"
#include "fusion/lcu_reader.h"

namespace kelpie::fusion {
namespace {

struct Golden {
  const char* name;
  const char* before;
  const char* after;
  const char* rules;  ///< by kernel, separated by |
};
void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

lcu::Program read(std::string_view text) {
  lcu::ReadResult result = lcu::readProgram(text);
  if (const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result)) {
    for (const Diagnostic& d : *diagnostics) ADD_FAILURE() << lcu::describe(d, text);
    return {};
  }
  return std::move(std::get<lcu::Program>(result));
}

std::string functionsOf(const lcu::Program& program) {
  const std::string text = lcu::toString(program);
  return text.substr(0, text.find("entry "));
}

class Rules : public ::testing::TestWithParam<Golden> {};

TEST_P(Rules, RewriteAsExpected) {
  const Golden& golden = GetParam();
  lcu::Program program = read(golden.before);
  ASSERT_THAT(lcu::verify(program, false), ::testing::ElementsAre());
  const FusionReport report = fuse(program);
  EXPECT_THAT(lcu::verify(program, true), ::testing::ElementsAre());
  EXPECT_EQ(functionsOf(program), golden.after);
  std::vector<std::string> rules;
  for (const RegionReport& region : report.regions) {
    for (const ClusterReport& cluster : region.clusters) {
      rules.push_back(fmt::format("{}", fmt::join(cluster.rules, " ")));
    }
  }
  EXPECT_EQ(fmt::format("{}", fmt::join(rules, " | ")), golden.rules);
}

// The texts are the point.
// clang-format off
INSTANTIATE_TEST_SUITE_P(
    All, Rules,
    ::testing::Values(Golden{"MapMap",
                             R"(function map_map(xs: [int64]) {
  kernel a {
    let a: [int64; #xs] = MAP flat #xs { i => xs[i] + 1 }
    return a
  }
  kernel b {
    let b: [int64; #xs] = MAP flat #xs { i => a[i] * 2 }
    return b
  }
  return b
}
)",
                             R"(function map_map(xs: [int64]) {
  kernel a_b {
    let b: [int64; #xs] = MAP flat #xs { i => (xs[i] + 1) * 2 }
    return b
  }
  return b
}
)",
                             "MAP-MAP"},
                      Golden{"MapReduce",
                             R"(function map_reduce(xs: [int64]) {
  kernel a {
    let a: [int64; #xs] = MAP flat #xs { i => xs[i] * xs[i] }
    return a
  }
  kernel b {
    let b: &int64 = REDUCE flat #xs { i => a[i] } (0) { x, y => x + y }
    return b
  }
  return b
}
)",
                             R"(function map_reduce(xs: [int64]) {
  kernel a_b {
    let b: &int64 = REDUCE flat #xs { i => let t1 = xs[i] in t1 * t1 } (0) { x, y => x + y }
    return b
  }
  return b
}
)",
                             "MAP-REDUCE"},
                      Golden{"MapReduceShared",
                             R"(function map_reduce_shared(xs: [float64]) {
  kernel a {
    let a: [float64; #xs] = MAP flat #xs { i => exp(xs[i]) }
    return a
  }
  kernel b {
    let b: &float64 = REDUCE flat #xs { i => a[i] } (0.0) { x, y => x + y }
    return b
  }
  return a, b
}
)",
                             R"(function map_reduce_shared(xs: [float64]) {
  kernel a_b {
    let a: [float64; #xs] = MAP flat #xs { i => exp(xs[i]) }
    let b: &float64 = REDUCE flat #xs { i => a[i] } (0.0) { x, y => x + y }
    return a, b
  }
  return a, b
}
)",
                             "MAP-REDUCE"},
                      Golden{"MapScan",
                             R"(function map_scan(xs: [int64]) {
  kernel a {
    let a: [int64; #xs] = MAP flat #xs { i => xs[i] + 1 }
    return a
  }
  kernel b {
    let b: [int64; #xs] = SCAN flat #xs { i => a[i] } (0) { x, y => x + y }
    return b
  }
  return b
}
)",
                             R"(function map_scan(xs: [int64]) {
  kernel a_b {
    let b: [int64; #xs] = SCAN flat #xs { i => xs[i] + 1 } (0) { x, y => x + y }
    return b
  }
  return b
}
)",
                             "MAP-SCAN"},
                      Golden{"MapFilter",
                             R"(function map_filter(xs: [int64]) {
  kernel a {
    let a: [int64; #xs] = MAP flat #xs { i => xs[i] + 1 }
    return a
  }
  kernel b {
    let n: &int64, b: [int64; n] = FILTER flat #xs { i => xs[i] } where { i => a[i] > 0 }
    return n, b
  }
  return b
}
)",
                             R"(function map_filter(xs: [int64]) {
  kernel a_b {
    let n: &int64, b: [int64; n] = FILTER flat #xs { i => xs[i] } where { i => xs[i] + 1 > 0 }
    return n, b
  }
  return b
}
)",
                             "MAP-FILTER"},
                      Golden{"MapPermute",
                             R"(function map_permute(xs: [int64]) {
  kernel a {
    let a: [int64; #xs] = MAP flat #xs { i => xs[i] + 1 }
    return a
  }
  kernel b {
    let b: [int64; #xs] = PERMUTE flat #xs { i => a[i] } to { i => #xs - 1 - i } target #xs fill (0) unique
    return b
  }
  return b
}
)",
                             R"(function map_permute(xs: [int64]) {
  kernel a_b {
    let b: [int64; #xs] = PERMUTE flat #xs { i => xs[i] + 1 } to { i => #xs - 1 - i } target #xs fill (0) unique
    return b
  }
  return b
}
)",
                             "MAP-PERMUTE"},
                      Golden{"FilterMap",
                             R"(function filter_map(xs: [int64]) {
  kernel a {
    let n: &int64, a: [int64; n] = FILTER flat #xs { i => xs[i] } where { i => xs[i] > 0 }
    return n, a
  }
  kernel b {
    let b: [int64; n] = MAP flat n { i => a[i] + 1 }
    return b
  }
  return b
}
)",
                             R"(function filter_map(xs: [int64]) {
  kernel a_b {
    let n: &int64, b: [int64; n] = FILTER flat #xs { i => xs[i] + 1 } where { i => xs[i] > 0 }
    return n, b
  }
  return b
}
)",
                             "FILTER-MAP"},
                      Golden{"FilterReduceChecked",
                             R"(function filter_reduce_checked(xs: [int64]) {
  kernel a {
    let n: &int64, a: [int64; n] = FILTER flat #xs { i => xs[i] } where { i => xs[i] > 0 }
    return n, a
  }
  kernel b {
    let b: &int64 = REDUCE flat n { i => 100 / check(a[i] != 0, a[i], 1, @0, 0, 0) } (0) { x, y => x + y }
    return b
  }
  return b
}
)",
                             R"(function filter_reduce_checked(xs: [int64]) {
  kernel a_b {
    let b: &int64 = REDUCE flat #xs { i => let t1 = xs[i] in if t1 > 0 then 100 / check(t1 != 0, t1, 1, @0, 0, 0) else 0 } (0) { x, y => x + y }
    return b
  }
  return b
}
)",
                             "FILTER-REDUCE"},
                      Golden{"FilterFilter",
                             R"(function filter_filter(xs: [int64], ys: [int64]) {
  kernel a {
    let n: &int64, a: [int64; n] = FILTER flat #xs { i => xs[i] } where { i => xs[i] > 0 }
    return n, a
  }
  kernel b {
    let m: &int64, b: [int64; m] = FILTER flat n { i => a[i] } where { i => a[i] < 10 }
    return m, b
  }
  kernel c {
    let k: &int64, c: [int64; k] = FILTER flat m { i => b[i] } where { i => ys[b[i]] != 3 }
    return k, c
  }
  return c
}
)",
                             R"(function filter_filter(xs: [int64], ys: [int64]) {
  kernel a_b_c {
    let k: &int64, c: [int64; k] = FILTER flat #xs { i => xs[i] } where { i => let t1 = xs[i] in if t1 > 0 and t1 < 10 then ys[t1] != 3 else false }
    return k, c
  }
  return c
}
)",
                             "FILTER-FILTER FILTER-FILTER"},
                      Golden{"FilterScan",
                             R"(function filter_scan(xs: [int64]) {
  kernel a {
    let n: &int64, a: [int64; n] = FILTER flat #xs { i => xs[i] } where { i => xs[i] > 0 }
    return n, a
  }
  kernel b {
    let b: [int64; n] = SCAN flat n { i => a[i] } (0) { x, y => x + y }
    return b
  }
  kernel c {
    let c: [int64; n] = MAP flat n { i => a[i] + b[i] }
    return c
  }
  return c
}
)",
                             R"(function filter_scan(xs: [int64]) {
  kernel a_b_c {
    let b_6: [int64; #xs] = SCAN flat #xs { i => let t1 = xs[i] in if t1 > 0 then t1 else 0 } (0) { x, y => x + y }
    let n: &int64, c: [int64; n] = FILTER flat #xs { i => xs[i] + b_6[i] } where { i => xs[i] > 0 }
    return n, c
  }
  return c
}
)",
                             "FILTER-SCAN FILTER-MAP SCAN-FILTER"},
                      Golden{"FilterCount",
                             R"(function filter_count(xs: [int64]) {
  kernel a {
    let n: &int64, a: [int64; n] = FILTER flat #xs { i => xs[i] } where { i => xs[i] > 0 }
    return n, a
  }
  kernel b {
    let m: [int64; #xs] = MAP flat #xs { i => xs[i] * n }
    return m
  }
  return m
}
)",
                             R"(function filter_count(xs: [int64]) {
  kernel a {
    let n: &int64 = REDUCE flat #xs { i => if xs[i] > 0 then 1 else 0 } (0) { x, y => x + y }
    return n
  }
  kernel b {
    let m: [int64; #xs] = MAP flat #xs { i => xs[i] * n }
    return m
  }
  return m
}
)",
                             "FILTER-COUNT | "},
                      Golden{"ReduceOnce",
                             R"(function reduce_once(xs: [float64]) {
  kernel a {
    let a: &float64 = REDUCE flat #xs { i => xs[i] * xs[i] } (0.0) { x, y => x + y }
    return a
  }
  kernel b {
    let b: &float64 = ONCE { sqrt(a) }
    return b
  }
  kernel c {
    let c: &float64 = ONCE { b + 1.0 }
    return c
  }
  kernel d {
    let d: [float64; #xs] = MAP flat #xs { i => xs[i] / c }
    return d
  }
  return d
}
)",
                             R"(function reduce_once(xs: [float64]) {
  kernel a_b_c {
    let a: &float64 = REDUCE flat #xs { i => let t1 = xs[i] in t1 * t1 } (0.0) { x, y => x + y }
    let c: &float64 = ONCE { sqrt(a) + 1.0 }
    return c
  }
  kernel d {
    let d: [float64; #xs] = MAP flat #xs { i => xs[i] / c }
    return d
  }
  return d
}
)",
                             "ONCE-ONCE REDUCE-ONCE | "},
                      Golden{
                          "Rows",
                          R"(function rows(off: [int64], col: [int64; #val], val: [float64], v: [float64]) {
  kernel p {
    let p: [float64; #val] = MAP seg(off, #off - 1, #val) { i, s, p => val[i] * v[col[i]] }
    return p
  }
  kernel r {
    let r: [float64; #off - 1] = REDUCE seg(off, #off - 1, #val) { i, s, p => p[i] } (0.0) { x, y => x + y }
    return r
  }
  kernel e {
    let e: [float64; #off - 1] = MAP flat #off - 1 { i => sqrt(r[i]) }
    return e
  }
  return e
}
)",
                          R"(function rows(off: [int64], col: [int64; #val], val: [float64], v: [float64]) {
  kernel p_r_e {
    let r: [float64; #off - 1] = REDUCE seg(off, #off - 1, #val) { i, s, p => val[i] * v[col[i]] } (0.0) { x, y => x + y }
    let e: [float64; #off - 1] = MAP flat #off - 1 { i => sqrt(r[i]) }
    return e
  }
  return e
}
)",
                          "SEG-MAP-REDUCE SEG-REDUCE-MAP"},
                      Golden{"SegmentedFilter",
                             R"(function segmented_filter(off: [int64], val: [int64]) {
  kernel f {
    let o: [int64; #off], a: [int64; o[#off - 1]] = FILTER seg(off, #off - 1, #val) { i, s, p => val[i] } where { i, s, p => val[i] > s }
    return o, a
  }
  kernel m {
    let m: [int64; o[#off - 1]] = MAP flat o[#off - 1] { i => a[i] * a[i] }
    return m
  }
  kernel r {
    let r: [int64; #off - 1] = REDUCE seg(o, #off - 1, o[#off - 1]) { i, s, p => m[i] } (0) { x, y => x + y }
    return r
  }
  return r
}
)",
                             R"(function segmented_filter(off: [int64], val: [int64]) {
  kernel f_m_r {
    let r: [int64; #off - 1] = REDUCE seg(off, #off - 1, #val) { i, s, p => let t1 = val[i] in if t1 > s then t1 * t1 else 0 } (0) { x, y => x + y }
    return r
  }
  return r
}
)",
                             "SEG-FILTER-MAP SEG-FILTER-REDUCE"},
                      Golden{"Sideways",
                             R"(function sideways(xs: [int64], ys: [int64; #xs]) {
  kernel a {
    let a: &int64 = REDUCE flat #xs { i => xs[i] } (0) { x, y => x + y }
    return a
  }
  kernel b {
    let b: &int64 = REDUCE flat #xs { i => ys[i] } (-9223372036854775808) { x, y => max(x, y) }
    return b
  }
  kernel c {
    let c: [int64; #xs] = SCAN flat #xs { i => xs[i] } (0) { x, y => x + y }
    return c
  }
  kernel d {
    let d: [int64; #xs] = SCAN flat #xs { i => ys[i] } (0) { x, y => x + y }
    return d
  }
  return a, b, c, d
}
)",
                             R"(function sideways(xs: [int64], ys: [int64; #xs]) {
  kernel a_b_c_d {
    let a: &int64, b: &int64 = REDUCE flat #xs { i => xs[i], ys[i] } (0, -9223372036854775808) { x1, x2, y1, y2 => x1 + y1, max(x2, y2) }
    let c: [int64; #xs], d: [int64; #xs] = SCAN flat #xs { i => xs[i], ys[i] } (0, 0) { x1, x2, y1, y2 => x1 + y1, x2 + y2 }
    return a, b, c, d
  }
  return a, b, c, d
}
)",
                             "REDUCE+REDUCE SCAN+SCAN"},
                      Golden{"Broadcast",
                             R"(function broadcast(off: [int64], val: [int64], w: [int64; #off - 1]) {
  kernel a {
    let a: [int64; #off - 1] = MAP flat #off - 1 { i => w[i] * 2 }
    return a
  }
  kernel b {
    let b: [int64; #off - 1] = REDUCE seg(off, #off - 1, #val) { i, s, p => val[i] * a[s] } (0) { x, y => x + y }
    return b
  }
  return b
}
)",
                             R"(function broadcast(off: [int64], val: [int64], w: [int64; #off - 1]) {
  kernel b {
    let b: [int64; #off - 1] = REDUCE seg(off, #off - 1, #val) { i, s, p => val[i] * (w[s] * 2) } (0) { x, y => x + y }
    return b
  }
  return b
}
)",
                             ""},
                      Golden{"MapGather",
           R"(function map_gather(xs: [int64], ys: [int64], n: int64) {
  kernel a {
    let a: [int64; #xs] = MAP flat #xs { i => xs[i] + 1 }
    return a
  }
  kernel b {
    let b: [int64; n] = MAP flat n { i => if i < #xs then a[i] else ys[i - #xs] }
    return b
  }
  return b
}
)",
           R"(function map_gather(xs: [int64], ys: [int64], n: int64) {
  kernel b {
    let b: [int64; n] = MAP flat n { i => if i < #xs then xs[i] + 1 else ys[i - #xs] }
    return b
  }
  return b
}
)",
           ""},
    Golden{"CheckedPositionOfConstantMap",
           R"(function checked_position(xs: [int64]) {
  kernel a {
    let a: [int64; #xs] = MAP flat #xs { i => 7 }
    return a
  }
  kernel b {
    let b: &int64 = ONCE { a[check(#xs > 2, 2, 0, @0, 2, #xs)] }
    return b
  }
  return b
}
)",
           R"(function checked_position(xs: [int64]) {
  kernel b {
    let b: &int64 = ONCE { check(#xs > 2, 7, 0, @0, 2, #xs) }
    return b
  }
  return b
}
)",
           ""},
    Golden{"ReadAfterItsCheck",
           R"(function read_after_its_check(n: int64, v: [int64], xs: [int64]) {
  kernel a {
    let a: &int64 = REDUCE flat #xs { i => xs[i] } (0) { x, y => x + y }
    return a
  }
  let c: int64 = check(a < n, a, 0, @0, a, n)
  kernel b {
    let b: &int64 = ONCE { v[0] }
    return b
  }
  return b
}
)",
           R"(function read_after_its_check(n: int64, v: [int64], xs: [int64]) {
  kernel a {
    let a: &int64 = REDUCE flat #xs { i => xs[i] } (0) { x, y => x + y }
    return a
  }
  let c: int64 = check(a < n, a, 0, @0, a, n)
  kernel b {
    let b: &int64 = ONCE { v[0] }
    return b
  }
  return b
}
)",
           " |  | "},
    Golden{"OnceInReaders",
           R"(function once_in_readers(xs: [int64]) {
  kernel a {
    let a: &int64 = ONCE { xs[#xs / 2] }
    return a
  }
  kernel b {
    let b: [bool; #xs] = MAP flat #xs { i => xs[i] < a }
    return b
  }
  return b
}
)",
           R"(function once_in_readers(xs: [int64]) {
  kernel b {
    let b: [bool; #xs] = MAP flat #xs { i => xs[i] < xs[#xs / 2] }
    return b
  }
  return b
}
)",
           ""},
    Golden{"ScannedLengths",
           R"(function scanned_lengths(lens: [int64]) {
  kernel a {
    let o: [int64; #lens + 1] = SCAN total flat #lens { i => max(lens[i], 0) } (0) { x, y => x + y }
    return o
  }
  kernel b {
    let l: [int64; #lens], s: [int64; #lens] = MAP flat #lens { i => o[i + 1] - o[i], o[i] }
    return l, s
  }
  return o, l, s
}
)",
           R"(function scanned_lengths(lens: [int64]) {
  kernel a_b {
    let o: [int64; #lens + 1] = SCAN total flat #lens { i => max(lens[i], 0) } (0) { x, y => x + y }
    let l: [int64; #lens], s_4: [int64; #lens] = MAP flat #lens { i => max(lens[i], 0), o[i] }
    return o, l, s_4
  }
  return o, l, s_4
}
)",
           "SCAN-MAP"},
    Golden{"Normalise",
                             R"(function normalise(xs: [int64]) {
  kernel a {
    let a: &int64 = REDUCE flat #xs { i => xs[i] } (0) { x, y => x + y }
    return a
  }
  kernel b {
    let b: [int64; #xs] = MAP flat #xs { i => xs[i] / a }
    return b
  }
  return b
}
)",
                             R"(function normalise(xs: [int64]) {
  kernel a {
    let a: &int64 = REDUCE flat #xs { i => xs[i] } (0) { x, y => x + y }
    return a
  }
  kernel b {
    let b: [int64; #xs] = MAP flat #xs { i => xs[i] / a }
    return b
  }
  return b
}
)",
                             " | "},
                      Golden{"Twice",
                             R"(function twice(xs: [int64]) {
  kernel a {
    let n: &int64, a: [int64; n] = FILTER flat #xs { i => xs[i] } where { i => xs[i] > 0 }
    return n, a
  }
  kernel b {
    let m: &int64, b: [int64; m] = FILTER flat #xs { i => xs[i] + 1 } where { i => xs[i] > 0 }
    return m, b
  }
  kernel c {
    let c: [int64; n] = MAP flat n { i => a[i] + b[i] }
    return c
  }
  return c
}
)",
                             R"(function twice(xs: [int64]) {
  kernel a_c {
    let n: &int64, c: [int64; n] = FILTER flat #xs { i => let t1 = xs[i] in t1 + (t1 + 1) } where { i => xs[i] > 0 }
    return n, c
  }
  return c
}
)",
                             "FILTER-MAP"}),
    [](const auto& info) { return std::string(info.param.name); });
// clang-format on

// Each map reads the one before at three positions: inlined without limit, the last would load 3^k elements.
TEST(RulesInlineMaps, ChainOfGathersGrowsLinearly) {
  const auto nodesOfChain = [](int maps) {
    std::string text = "function chain(a0: [int64]) {\n";
    for (int k = 1; k <= maps; ++k) {
      text += fmt::format(
          "  kernel k{0} {{\n    let a{0}: [int64; #a0] = MAP flat #a0 {{ i =>"
          " a{1}[i / 2] + a{1}[(i + 5) / 2] + a{1}[i * 3 / 4] }}\n    return a{0}\n  }}\n",
          k, k - 1);
    }
    lcu::Program program = read(text + fmt::format("  return a{}\n}}\n", maps));
    fuse(program);
    EXPECT_THAT(lcu::verify(program, true), ::testing::ElementsAre());
    size_t nodes = 0;
    lcu::forEachBlock(program, [&](const lcu::Block& block) {
      for (const lcu::Stmt& stmt : block.stmts) {
        const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
        if (!launch) continue;
        for (const lcu::Soac& soac : launch->kernel.bindings) {
          lcu::forEachNode(soac.pull, [&](lcu::ExprRef) { ++nodes; });
        }
      }
    });
    return nodes;
  };
  const size_t six = nodesOfChain(6);
  EXPECT_GT(six, 6u);
  EXPECT_LE(nodesOfChain(12), 3 * six);
}

}  // namespace
}  // namespace kelpie::fusion
