// The work that the evaluator counts: the exact figures that fusion's cost model promises.
#include "runtime/host_target.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

runtime::LaunchWork workOf(Builder& b) {
  runtime::Executor interp(std::make_unique<runtime::InterpTarget>());
  runtime::RunStatistics statistics;
  succeed(b.run(interp, {}, &statistics));
  return statistics.kernels.at(0).work;
}

TEST(Work, PointwiseReadsCountOnceInFull) {
  Builder b;
  VarId xs = b.globalArray("xs", floats(std::vector<double>(1000, 2.0)));
  ExprRef x = b.at(xs);
  b.result(
      b.launch(b.map(b.flat(xs), {b.op(ScalarOp::Mul, x, x), b.op(ScalarOp::Add, x, b.real(1))}), "two")[0]);
  auto work = workOf(b);
  EXPECT_EQ(work.elements, 1000u);
  EXPECT_EQ(work.bytesRead, 8000u);
  EXPECT_EQ(work.bytesWritten, 16000u);
}

TEST(Work, GathersCountEachElementThatIsLoaded) {
  Builder b;
  VarId ks = b.globalArray("ks", ints({0, 0, 5, 2}));
  VarId xs = b.globalArray("xs", floats(std::vector<double>(100, 2.0)));
  ExprRef gathered =
      b.arena().select(b.op(ScalarOp::Equal, b.at(ks), b.num(0)), b.real(0), b.at(xs, b.at(ks)));
  b.result(b.launch(b.map(b.flat(ks), {gathered}), "picked")[0]);
  EXPECT_EQ(workOf(b).bytesRead, 4u * 8 + 2u * 8);  // two branches load
}

TEST(Work, SurvivorsAreWritten) {
  Builder b;
  VarId ks = b.globalArray("ks", ints({1, -1, 2, -2, 3}));
  b.result(
      b.launch(b.filter(b.flat(ks), {b.at(ks)}, b.op(ScalarOp::Greater, b.at(ks), b.num(0))), "kept")[1]);
  EXPECT_EQ(workOf(b).bytesWritten, 3u * 8 + 8u);  // and their number
}

TEST(Work, SegmentsCostTheirOffsetsAndOneResult) {
  Builder b;
  auto [offsets, xs] = b.globalNested("xs", {0, 3, 3, 10}, floats(std::vector<double>(10, 1.0)));
  VarId ws = b.globalArray("ws", floats({1, 2, 3}));
  ExprRef weighted = b.op(ScalarOp::Mul, b.at(xs), b.at(ws, b.s()));
  VarId sums = b.launch(b.reduce(b.segmented(offsets, xs), {weighted}, b.sum(kF64)), "sums")[0];
  b.result(sums);
  auto work = workOf(b);
  EXPECT_EQ(work.bytesRead, 10u * 8 + 3u * 8 + 4u * 8);
  EXPECT_EQ(work.bytesWritten, 3u * 8);
}

TEST(Work, FusedResultsThatStayCostNothing) {
  Builder b;
  VarId xs = b.globalArray("xs", floats(std::vector<double>(500, 3.0)));
  Soac square = b.map(b.flat(xs), {b.op(ScalarOp::Mul, b.at(xs), b.at(xs))});
  b.named(square, "square");
  Soac total = b.reduce(b.flat(xs), {b.at(square.results[0])}, b.sum(kF64));
  b.named(total, "total");
  Soac root = b.once({b.op(ScalarOp::Sqrt, b.host(total.results[0]))});
  b.named(root, "root");
  VarId result = root.results[0];
  b.kernel({square, total, root}, {result});
  b.result(result);
  auto work = workOf(b);
  EXPECT_EQ(work.elements, 500u + 500u + 1u);
  EXPECT_EQ(work.bytesRead, 500u * 8);
  EXPECT_EQ(work.bytesWritten, 8u);
}

}  // namespace
}  // namespace kelpie::testing
