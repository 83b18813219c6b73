#include "runtime/executor.h"

#include <numeric>

#include "runtime/host_target.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

runtime::Executor interp(size_t memoryLimit = 0) {
  return runtime::Executor(std::make_unique<runtime::InterpTarget>(memoryLimit));
}

TEST(Executor, SumsAndScales) {
  Builder b;
  VarId xs = b.globalArray("xs", floats({1, 2, 3, 4}));
  VarId total = b.launch(b.reduce(b.flat(xs), {b.at(xs)}, b.sum(kF64)), "total")[0];
  VarId scaled = b.launch(b.map(b.flat(xs), {b.op(ScalarOp::Div, b.at(xs), b.host(total))}), "scaled")[0];
  b.result(total);
  b.result(scaled);
  auto executor = interp();
  Columns r = succeed(b.run(executor));
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[0].at(0).f, 10);
  EXPECT_EQ(floatsOf(r[1].elements[0]), (std::vector<double>{0.1, 0.2, 0.3, 0.4}));
}

TEST(Executor, FilterCountsAreFetchedOnce) {
  Builder b;
  VarId xs = b.globalArray("xs", ints({5, -1, 7, -2, 9}));
  auto f =
      b.launch(b.filter(b.flat(xs), {b.at(xs)}, b.op(ScalarOp::Greater, b.at(xs), b.num(0))), "positive");
  VarId doubled = b.launch(b.map(b.flat(f[1]), {b.op(ScalarOp::Add, b.at(f[1]), b.at(f[1]))}), "doubled")[0];
  VarId again = b.launch(b.map(b.flat(f[1]), {b.op(ScalarOp::Add, b.at(f[1]), b.num(1))}), "again")[0];
  b.result(doubled);
  b.result(again);
  b.result(f[0]);
  auto executor = interp();
  runtime::RunStatistics statistics;
  Columns r = succeed(b.run(executor, {}, &statistics));
  EXPECT_EQ(intsOf(r[0].elements[0]), (std::vector<int64_t>{10, 14, 18}));
  EXPECT_EQ(intsOf(r[1].elements[0]), (std::vector<int64_t>{6, 8, 10}));
  EXPECT_EQ(r[2].at(0).i, 3);
  EXPECT_EQ(statistics.fetches, 1u);
  EXPECT_EQ(statistics.launches, 3u);
}

/// f(n) = if n == 0 then 0 else 1 + f(n - 1), in host scalars; not a tail call.
Builder countdown(int64_t n, bool tail) {
  Builder b;
  HostFunction f{"f", {}, {}};
  VarId k = b.var("k", VarKind::Host, kI64), sum = b.var("sum", VarKind::Host, kI64);
  f.params = {k, sum};
  VarId result = b.var("result", VarKind::Host, kI64);
  auto thenBlock = std::make_shared<Block>(), elseBlock = std::make_shared<Block>();
  thenBlock->results = {sum};
  b.enter(*elseBlock);
  VarId less = b.let("less", b.arena().sub(b.host(k), b.num(1)));
  VarId more = b.let("more", b.arena().add(b.host(sum), b.host(k)));
  VarId inner = b.var("inner", VarKind::Host, kI64);
  b.add({inner}, CallFunction{0, {less, more}});
  if (tail) {
    elseBlock->results = {inner};
  } else {
    elseBlock->results = {b.let("outer", b.arena().add(b.host(inner), b.num(1)))};
  }
  b.leave();
  b.enter(f.body);
  b.add({result}, HostIf{b.op(ScalarOp::Equal, b.host(k), b.num(0)), thenBlock, elseBlock});
  b.leave();
  f.body.results = {result};
  b.program.functions.push_back(std::move(f));
  VarId start = b.let("start", b.num(n)), zero = b.let("zero", b.num(0));
  VarId answer = b.var("answer", VarKind::Host, kI64);
  b.add({answer}, CallFunction{0, {start, zero}});
  b.result(answer);
  return b;
}

TEST(Executor, DeepRecursionLivesOnTheHeap) {
  Builder b = countdown(200000, false);
  auto executor = interp();
  runtime::RunStatistics statistics;
  Columns r = succeed(b.run(executor, {}, &statistics));
  EXPECT_EQ(r.at(0).at(0).i, 200000LL * 200001 / 2 + 200000);
  EXPECT_EQ(statistics.deepestCall, 200001u);
}

TEST(Executor, RecursionWithoutEndIsAnError) {
  Builder b = countdown(-1, false);
  auto executor = interp();
  runtime::RunOptions options;
  options.frameMemory = 1 << 20;
  EXPECT_THAT(messageOf(b.run(executor, options)), ::testing::StartsWith("recursion too deep"));
}

TEST(Executor, TailCallsTakeNoFrames) {
  Builder b = countdown(100000, true);
  auto executor = interp();
  runtime::RunStatistics statistics;
  Columns r = succeed(b.run(executor, {}, &statistics));
  EXPECT_EQ(r.at(0).at(0).i, 100000LL * 100001 / 2);
  EXPECT_EQ(statistics.deepestCall, 1u);
}

TEST(Executor, LoopsReuseBuffers) {
  Builder b;
  std::vector<double> data(100000, 1.0);
  VarId xs = b.globalArray("xs", floats(data));
  HostLoop loop;
  VarId zero = b.let("zero", b.num(0));
  VarId k = b.var("k", VarKind::Host, kI64), ys = b.var("ys", VarKind::Array, kF64);
  loop.params = {k, ys};
  loop.initial = {zero, xs};
  loop.condition = std::make_shared<Block>();
  loop.body = std::make_shared<Block>();
  b.enter(*loop.condition);
  loop.condition->results = {b.let("more", b.op(ScalarOp::Less, b.host(k), b.num(50)))};
  b.leave();
  b.enter(*loop.body);
  VarId next = b.let("next", b.arena().add(b.host(k), b.num(1)));
  VarId zs = b.launch(b.map(b.flat(ys), {b.op(ScalarOp::Add, b.at(ys), b.real(1))}), "step")[0];
  loop.body->results = {next, zs};
  b.leave();
  VarId last = b.var("last", VarKind::Host, kI64), out = b.var("out", VarKind::Array, kF64);
  b.add({last, out}, loop);
  b.result(last);
  b.result(out);
  auto executor = interp();
  runtime::RunStatistics statistics;
  Columns r = succeed(b.run(executor, {}, &statistics));
  EXPECT_EQ(r[0].at(0).i, 50);
  EXPECT_EQ(r[1].elements[0].at(99999).f, 51);
  EXPECT_LT(statistics.peakBytes, 3u * 1000000);  // two arrays of 800 kB, whatever the number of steps
}

/// xs[k] := k for k = 0..9, one in each step of a loop; what `inStep` adds to a step comes after the write.
runtime::RunStatistics writeInLoop(const std::vector<double>& data,
                                   const std::function<void(Builder&, VarId)>& inStep, Columns& results) {
  Builder b;
  VarId xs = b.globalArray("xs", floats(data));
  ExprRef n = b.arena().size(xs);
  HostLoop loop;
  VarId zero = b.let("zero", b.num(0));
  VarId k = b.var("k", VarKind::Host, kI64), ys = b.var("ys", VarKind::Array, kF64);
  loop.params = {k, ys};
  loop.initial = {zero, xs};
  loop.condition = std::make_shared<Block>();
  loop.body = std::make_shared<Block>();
  b.enter(*loop.condition);
  loop.condition->results = {b.let("more", b.op(ScalarOp::Less, b.host(k), b.num(10)))};
  b.leave();
  b.enter(*loop.body);
  VarId next = b.let("next", b.arena().add(b.host(k), b.num(1)));
  Space one{.kind = SpaceKind::Flat, .extent = b.num(1)};
  VarId zs = b.launch(b.writeOnto(one, b.arena().convert(b.host(k), kF64), b.host(k), n, ys), "write")[0];
  inStep(b, ys);
  loop.body->results = {next, zs};
  b.leave();
  VarId last = b.var("last", VarKind::Host, kI64), out = b.var("out", VarKind::Array, kF64);
  b.add({last, out}, loop);
  b.result(out);
  b.result(xs);
  auto executor = interp();
  runtime::RunStatistics statistics;
  results = succeed(b.run(executor, {}, &statistics));
  return statistics;
}

TEST(Executor, WritesOntoADyingArrayMoveNothingElse) {
  const std::vector<double> data(100000, 1.0);
  Columns r;
  const auto statistics = writeInLoop(
      data, [](Builder&, VarId) {}, r);
  EXPECT_EQ(floatsOf(r[0].elements[0])[9], 9);
  EXPECT_EQ(floatsOf(r[0].elements[0])[10], 1);
  EXPECT_EQ(floatsOf(r[1].elements[0]), data);  // a global stays what it was
  EXPECT_EQ(statistics.copiedBytes, 800000u);   // of the global, by the first step
}

TEST(Executor, WritesOntoAnArrayThatIsReadLaterLeaveIt) {
  const std::vector<double> data(1000, 1.0);
  Columns r;
  const auto readLater = [](Builder& b, VarId ys) {
    b.let("old", b.arena().load(ys, kF64, b.num(9)));
    ExprRef last = b.arena().load(ys, kF64, b.num(9));
    b.let("checked", b.arena().check(b.op(ScalarOp::Equal, last, b.real(1)), last, Scalar::zero(kF64), 1,
                                     b.num(9), b.num(9)));
  };
  const auto statistics = writeInLoop(data, readLater, r);
  EXPECT_EQ(floatsOf(r[0].elements[0])[9], 9);
  EXPECT_EQ(statistics.copiedBytes, 10 * 8000u);
}

TEST(Executor, WritesOntoAnArrayThatTheirKernelReadsLeaveIt) {
  Builder b;
  const int64_t n = 5000;
  Space space{.kind = SpaceKind::Flat, .extent = b.num(n)};
  VarId base = b.launch(b.map(space, {b.i()}), "base")[0];
  // Reversed, while another binding reads it in order.
  Soac write = b.writeOnto(space, b.num(-1), b.arena().sub(b.num(n - 1), b.i()), b.num(n), base);
  Soac read = b.map(space, {b.at(base)});
  b.named(write, "written");
  b.named(read, "read");
  const VarId written = write.results[0], copy = read.results[0];
  b.kernel({write, read}, {written, copy});
  b.result(written);
  b.result(copy);
  auto executor = interp();
  Columns r = succeed(b.run(executor));
  EXPECT_EQ(intsOf(r[0].elements[0]), std::vector<int64_t>(n, -1));
  std::vector<int64_t> counted(n);
  std::iota(counted.begin(), counted.end(), 0);
  EXPECT_EQ(intsOf(r[1].elements[0]), counted);
}

TEST(Executor, ErrorsNameSiteAndPayloads) {
  Builder b;
  VarId xs = b.globalArray("xs", ints({1, 2, 30, 4, 50}));
  SiteId site = b.program.newSite({{3, 10, 20}, "index {0} outside 0..{1}"});
  ExprRef x = b.at(xs);
  ExprRef checked =
      b.arena().check(b.op(ScalarOp::Less, x, b.num(5)), x, Scalar::ofInt(kI64, 0), site, x, b.num(4));
  VarId ys = b.launch(b.map(b.flat(xs), {b.at(xs, checked)}), "ys")[0];
  VarId zs = b.launch(b.map(b.flat(xs), {b.at(ys)}), "zs")[0];
  b.result(zs);
  auto executor = interp();
  NoServices services;
  auto r = b.run(executor, {}, nullptr, &services);
  EXPECT_EQ(messageOf(r), "index 30 outside 0..4");
  EXPECT_EQ(std::get<RuntimeError>(r).span, (Span{3, 10, 20}));
  EXPECT_FALSE(services.succeeded);
  // The executor is as good as new afterwards.
  Builder fine;
  fine.result(fine.let("seven", fine.num(7)));
  EXPECT_EQ(succeed(fine.run(executor)).at(0).at(0).i, 7);
}

TEST(Executor, OutOfMemoryTellsSizes) {
  // What nothing in a program names is called "r".
  for (const auto& [name, told] : {std::pair("big", "big"), std::pair("r", "the result")}) {
    Builder b;
    VarId n = b.global("n", ints({50000000}));
    b.result(b.launch(b.map(b.flat(b.host(n)), {b.i()}), name)[0]);
    auto executor = interp(10000000);
    EXPECT_EQ(messageOf(b.run(executor)),
              std::string("out of memory: ") + told +
                  " needs 50000000 elements of 8 bytes; 0 bytes of 10.0 MB are in use");
  }
}

TEST(Executor, InterruptStops) {
  Builder b = countdown(-1, true);
  auto executor = interp();
  std::atomic<bool> interrupt = true;
  runtime::RunOptions options;
  options.interrupt = &interrupt;
  EXPECT_EQ(messageOf(b.run(executor, options)), "interrupted");
}

TEST(Executor, ServicesSeeDenseColumns) {
  Builder b;
  VarId text =
      b.globalArray("text", scalarColumn(ScalarType::Char, {Scalar::ofChar('h'), Scalar::ofChar('i')}));
  const lcu::GlobalInput& global = b.program.globals[0];
  VarId ok = b.var("ok", VarKind::Host, ScalarType::Bool);
  b.add({ok}, Service{"print", {global.types[0]}, {global.vars[0], text}, {CoreType(ScalarType::Bool)}, 0});
  b.result(ok);
  auto executor = interp();
  NoServices services;
  EXPECT_TRUE(succeed(b.run(executor, {}, nullptr, &services)).at(0).at(0).isTrue());
  EXPECT_EQ(services.printed, "hi");
}

TEST(Executor, GradeIsStableAndPutsNaNLast) {
  Builder b;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  VarId xs = b.globalArray("xs", floats({3, nan, -0.0, 0.0, -5, 3}));
  VarId order = b.var("order", VarKind::Array, kI64);
  b.add({order}, Grade{xs, b.flat(xs)});
  b.result(order);
  auto executor = interp();
  EXPECT_EQ(intsOf(succeed(b.run(executor)).at(0).elements[0]), (std::vector<int64_t>{4, 2, 3, 0, 5, 1}));
}

}  // namespace
}  // namespace kelpie::testing
