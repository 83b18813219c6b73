// Lanes that take other elements when their loops have ended (codegen/refilled_loop.h, cuda/lane_queue.cuh).
#include "codegen/refilled_loop.h"

#include <gtest/gtest.h>

#include "codegen/cuda/cuda_module.h"
#include "emulated_device.h"
#include "runtime/cuda/cuda_target.h"
#include "tests/flatten/program_runner.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

/// Few blocks, which have many tiles each.
codegen::cuda::CudaOptions fewBlocks() {
  codegen::cuda::CudaOptions options;
  options.threads = 64;
  options.maxChunks = 1;
  return options;
}

/// The results of a program are those of the reference, whether warps find out that queues pay or use them in
/// any case.
void expectSame(const std::string& nesl) {
  for (const bool queuesPay : {false, true}) {
    RunnerOptions options;
    options.target = [=] {
      codegen::cuda::CudaOptions cuda = fewBlocks();
      cuda.queuesPay = queuesPay;
      return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<tests::EmulatedDevice>(7), cuda);
    };
    const std::vector<FormOutcome> outcomes = runProgram(nesl, options);
    EXPECT_FALSE(outcomes.empty());
    for (const FormOutcome& outcome : outcomes)
      EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
  }
}

/// Numbers of 0 to 999, most of them small, so that loops differ.
const std::string kNumbers = R"(
n = 4003;
xs = {let x = rem(i * i * 7919 + i * 31, 1000) in if x > 900 then x else rem(x, 9) : i in [0:n]};
function next(x) = if rem(x, 2) == 0 then x / 2 else 3 * x + 1;
function halves(x, k) = if x <= 1 then k else halves(next(x), k + 1);
function root(x, r, k) =
  if k == 0 or abs(r * r - x) < 0.000001 then r else root(x, (r + x / r) / 2.0, k - 1);
)";

TEST(RefilledLoops, FoldAndStore) {
  expectSame(kNumbers + R"(
sum({halves(x, 0) : x in xs});
let s = {halves(x, 0) : x in xs} in (s, max_val(s), count({k > 9 : k in s}));
sum({root(float(x), 1.0, 40) : x in xs});
{root(float(x), 1.0, x) : x in xs};
)");
}

TEST(RefilledLoops, StandInBranches) {
  expectSame(kNumbers + R"(
sum({if x < 5 then x else halves(x, 0) : x in xs});
let s = {if x > 3 then (if x < 950 then -1 else halves(x + i, 0)) else i : x in xs; i in [0:n]}
in (sum(s), min_val(s), {k in take(s, 3000) | k > 100});
)");
}

/// What turns need and do not change, also where it is loaded or checked.
TEST(RefilledLoops, NeedWhatDoesNotChange) {
  expectSame(kNumbers + R"(
function walk(v, p, k, d) = if k <= 0 then p else walk(v, rem(p * p + v[d] + 10 / d, 997), k - d, d);
sum({walk(xs, i, x, rem(i, 3) + 1) : x in xs; i in [0:n]});
function steps(x, d, k) = if x <= 0 then k else steps(x - 100 / d, d, k + 1);
sum({steps(x, (if x > 0 then rem(x, 7) + 1 else 0), 0) : x in xs});
)");
}

/// Errors are those of the first element that has one; what other elements have does not count.
TEST(RefilledLoops, TellErrors) {
  expectSame(kNumbers + R"(
function fails(x, k) = if x <= 0 then 10 / (k - 3) else fails(x - 300, k + 1);
sum({fails(x, 0) : x in xs});
{fails(x, 0) : x in drop(xs, 1000)};
function reads(v, p, k) = if k <= 0 then p else reads(v, v[p] * 5, k - 1);
sum({reads(xs, i, x) : x in xs; i in [0:n]});
)");
}

/// What a failing check lets through keeps the loop from ending.
TEST(RefilledLoops, EndWhereChecksBeforeThemFail) {
  expectSame(kNumbers + R"(
vs = [0, 1, 2];
function steps(x, v, j, k) = if x <= 0 then k else steps(x - v[j], v, j, k + 1);
sum({steps(x, vs, i, 0) : x in xs; i in [0:n]});
sum({if x > 3 then steps(x, vs, i, 0) else 0 : x in xs; i in [0:n]});
)");
}

/// A check of a loop that an element does not enter is not due.
TEST(RefilledLoops, AreNotEnteredInVain) {
  expectSame(kNumbers + R"(
ds = {if x > 3 then x else 0 : x in xs};
function down(x, d, k) = if x <= 0 then k else down(x - 1 - 100 / d, d, k + 1);
sum({down(d, d, 0) : d in ds});
)");
}

TEST(RefilledLoops, StandBehindConditionsOnWhatTheKernelMakes) {
  expectSame(kNumbers + R"(
ys = {float(rem(i * i * 719, 1000)) : i in [0:n]};
let a = {sqrt(y) + sin(y) : y in ys} in (a, {if b > 3.0 then halves(x, 0) else 0 : b in a; x in xs});
)");
}

/// Programs may call their values like variables of the generated code.
TEST(RefilledLoops, LeaveNamesToPrograms) {
  expectSame(kNumbers + R"(
turn = 3;
held = 2;
takes = 5;
queue = xs;
busy = reverse(xs);
function down(x, k) = if x <= turn then k else down(x / held, k + 1);
sum({down(x, 0) * takes + b : x in queue; b in busy});
)");
}

TEST(RefilledLoops, Throw) {
  expectSame(kNumbers + "dist(0, n) <- {(rem(i * 17, n), halves(x, 0)) : x in xs; i in [0:n]};");
}

// ---- in tiles that are scanned, filtered or folded by segments

TEST(LoopsOfTiles, DecideWhatFiltersKeep) {
  expectSame(kNumbers + R"(
r = {x in xs | halves(x, 0) > 3};
#r; sum(r); r;
{(x, i) : x in xs; i in [0:n] | halves(x, 0) > 3 or i < 5};
{halves(x + 1, 0) : x in xs; i in [0:n] | halves(x, 0) > 3 and rem(i, 3) == 0};
{root(float(x), 1.0, x) : x in xs | x > 2};
{i in [0:n]; x in xs | if x < 6 then rem(x, 2) == 0 else halves(x, i) > i + 7};
)");
}

/// What a filter keeps is made for others than those that have the loop in front of it.
TEST(LoopsOfTiles, MayStandElsewhereForSurvivors) {
  expectSame(kNumbers + R"(
{halves(x, 0) : x in xs | if x > 500 then halves(x, 0) > 10 else x > 1};
let a = {x in xs | if x > 5 then halves(x, 0) > 9 else f}; b = {halves(x, 0) : x in xs | x < 300} in (a, b);
let a = {halves(x, 0) : x in xs | x > 1}; b = plus_scan({if x > 5 then halves(x, 0) else 0 : x in xs}) in (a, b);
vs = [0, 1, 2];
function reads(x, v) = if x <= 2 then x else reads(x / 2 + v[rem(x, 2)], v);
{100 / (1 + reads(x, vs)) : x in xs | if x > 5 then reads(x, vs) > 3 else rem(x, 2) == 0};
)");
}

/// Tiles of so many wanted bytes are short.
TEST(LoopsOfTiles, GiveSeveralValuesOfCharacters) {
  expectSame(kNumbers + R"(
cs = {code_char(rem(x, 100)) : x in xs};
function fib(c, a, b) = if c <= 1 then (a, b) else fib(c - 1 - rem(a, 3), b, a + c);
{c in cs | let (a, b) = fib(char_code(c), 0, 1) in a > b};
function three(c, a, b, d) = if c <= 1 then (a, b, d) else three(c - 1, b, d, a + 1);
{c in cs | let (a, b, d) = three(char_code(c), 0, 1, 2) in a + b > d};
)");
}

TEST(LoopsOfTiles, AreScanned) {
  expectSame(kNumbers + R"(
plus_scan({halves(x, 0) : x in xs});
let s = plus_scan({halves(x, 0) : x in xs}); m = max_scan({halves(x + 1, 0) : x in xs})
in (s, m, {a + b : a in s; b in m});
let k = {if x > 2 then halves(x, 0) else -1 : x in xs} in (k, plus_scan(k), max_scan(reverse(k)));
plus_scan({root(float(x), 1.0, 40) : x in xs});
)");
}

TEST(LoopsOfTiles, AreFoldedBySegments) {
  expectSame(kNumbers + R"(
rows = partition(xs, {rem(i * 37, 13) : i in [0:667]} ++ [4003 - sum({rem(i * 37, 13) : i in [0:667]})]);
{sum({halves(x, 0) : x in row}) : row in rows};
{(max_val({halves(x, 0) : x in row} ++ [0]), #row) : row in rows};
{{x in row | halves(x, 0) > 3} : row in rows};
{plus_scan({halves(x, 0) : x in row}) : row in rows};
{sum({root(float(x), 1.0, x) : x in row}) : row in rows};
{sum({if x > d then halves(x, 0) else d : x in row}) : row in rows; d in [0:#rows]};
)");
}

/// Each loop has two values that are wanted, of which one may be smaller.
TEST(LoopsOfTiles, GiveSeveralValues) {
  expectSame(kNumbers + R"(
function both(x, k, odd) = if x <= 1 then (k, odd) else both(next(x), k + 1, odd or rem(x, 7) == 3);
{(x, k) : (x, (k, odd)) in {(x, both(x, 0, f)) : x in xs} | odd};
let (ks, odds) = unzip({both(x, 0, f) : x in xs}) in (plus_scan(ks), count(odds), {k in ks; o in odds | o});
)");
}

TEST(LoopsOfTiles, TellErrors) {
  expectSame(kNumbers + R"(
function fails(x, k) = if x <= 0 then 10 / (k - 3) else fails(x - 300, k + 1);
plus_scan({fails(x, 0) : x in xs});
{x in drop(xs, 1000) | fails(x, 0) > 2};
{sum({fails(x, 0) : x in row}) : row in partition(xs, dist(1, n))};
function reads(v, p, k) = if k <= 0 then p else reads(v, v[p] * 5, k - 1);
{i in [0:n]; x in xs | reads(xs, i, x) > 3};
vs = [0, 1, 2];
function steps(x, v, j, k) = if x <= 0 then k else steps(x - v[j], v, j, k + 1);
{i in [0:n]; x in xs | steps(x, vs, i, 0) > 3};
)");
}

class Refilled : public ::testing::Test {
 protected:
  Builder b;
  ExprArena& a = b.arena();
  const VarId xs = b.globalArray("xs", ints({3, 1, 2}));
  const ExprRef x = b.at(xs);

  /// Halves `from` until it is 1; how often.
  ExprRef halved(ExprRef from, ExprRef least) {
    const uint32_t loop = a.newLoop();
    const ExprRef k = a.loopVar(loop, 0, kI64), n = a.loopVar(loop, 1, kI64);
    return a.loop(loop, {from, b.num(0)}, b.op(ScalarOp::Greater, k, least),
                  {b.op(ScalarOp::ShiftRight, k, b.num(1)), a.add(n, b.num(1))})[1];
  }
  /// Whether the kernel is one pass that has a queue of this kind.
  bool queues(std::vector<Soac> bindings, const char* kind = "LaneQueue<") {
    Kernel kernel{"k", {}, {}};
    for (Soac& soac : bindings) {
      b.named(soac, "result");
      kernel.returns.insert(kernel.returns.end(), soac.results.begin(), soac.results.end());
      kernel.bindings.push_back(std::move(soac));
    }
    const auto passes = codegen::cuda::generateKernel(kernel, b.program, "k").passes;
    return passes.size() == 1 && passes[0].text.find(kind) != std::string::npos;
  }
};

TEST_F(Refilled, AreLoopsWhoseTurnsDependOnTheElement) {
  const ExprRef ofElement = halved(x, b.num(1));
  EXPECT_TRUE(queues({b.map(b.flat(xs), {ofElement})}));
  EXPECT_TRUE(
      queues({b.reduce(b.flat(xs), {ofElement}, b.sum(kI64)), b.map(b.flat(xs), {a.add(ofElement, x)})}));
  EXPECT_TRUE(queues({b.map(b.flat(xs), {a.select(b.op(ScalarOp::Less, x, b.num(9)), x, ofElement)})}));
  EXPECT_TRUE(queues({b.map(b.flat(xs), {halved(b.num(1000), x)})}));
}

TEST_F(Refilled, AreNoLoopsWhoseTurnsAreTheSameForAll) {
  const ExprRef ofAll = halved(b.num(1000), b.num(1));
  EXPECT_FALSE(queues({b.map(b.flat(xs), {a.add(ofAll, x)})}));
  const uint32_t loop = a.newLoop();
  const ExprRef k = a.loopVar(loop, 0, kI64), y = a.loopVar(loop, 1, kI64);
  const ExprRef powers =
      a.loop(loop, {b.num(9), x}, b.op(ScalarOp::Greater, k, b.num(0)), {a.sub(k, b.num(1)), a.mul(y, y)})[1];
  EXPECT_FALSE(queues({b.map(b.flat(xs), {powers})}));
}

TEST_F(Refilled, AreNoLoopsThatLoadWhereTheyHaveCome) {
  const uint32_t loop = a.newLoop();
  const ExprRef k = a.loopVar(loop, 0, kI64);
  EXPECT_FALSE(queues({b.map(
      b.flat(xs), {a.loop(loop, {x}, b.op(ScalarOp::Greater, k, b.num(0)), {a.sub(k, b.at(xs, k))})[0]})}));
}

TEST_F(Refilled, AreNoSecondLoops) {
  const ExprRef one = halved(x, b.num(1)), other = halved(a.mul(x, x), b.num(2));
  EXPECT_FALSE(queues({b.map(b.flat(xs), {one, other})}));
  EXPECT_FALSE(queues({b.scan(b.flat(xs), {one, other}, b.sum(kI64))}, "TileQueue<"));
}

TEST_F(Refilled, AreInTilesWhereTheseAreScanned) {
  const ExprRef one = halved(x, b.num(1));
  EXPECT_FALSE(queues({b.scan(b.flat(xs), {one}, b.sum(kI64))}));
  EXPECT_TRUE(queues({b.scan(b.flat(xs), {one}, b.sum(kI64))}, "TileQueue<"));
  EXPECT_FALSE(queues({b.map(b.flat(xs), {one})}, "TileQueue<"));
}

/// One that is around another is refilled.
TEST_F(Refilled, AreOutermostLoops) {
  const uint32_t loop = a.newLoop();
  const ExprRef k = a.loopVar(loop, 0, kI64), n = a.loopVar(loop, 1, kI64);
  const ExprRef sum = a.loop(loop, {x, b.num(0)}, b.op(ScalarOp::Greater, k, b.num(0)),
                             {a.sub(k, b.num(1)), a.add(n, halved(k, b.num(1)))})[1];
  EXPECT_TRUE(queues({b.map(b.flat(xs), {sum})}));
}

}  // namespace
}  // namespace kelpie::testing
