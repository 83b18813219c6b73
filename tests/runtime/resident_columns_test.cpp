// Results stay in the memory of their target until somebody looks at them.
#include <numeric>

#include "runtime/executor.h"
#include "tests/flatten/counting_target.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

struct Traffic {
  size_t uploaded = 0, downloaded = 0;
  bool answers = true;
};

/// A target whose memory the host cannot address.
class FarTarget final : public CountingTarget {
 public:
  explicit FarTarget(Traffic& traffic, size_t memoryLimit = 0) : traffic_(traffic), limit_(memoryLimit) {}
  size_t memoryLimit() const override { return limit_ != 0 ? limit_ : CountingTarget::memoryLimit(); }
  runtime::Failure upload(runtime::DevicePointer to, const void* from, size_t bytes) override {
    traffic_.uploaded += bytes;
    return CountingTarget::upload(to, from, bytes);
  }
  runtime::Failure download(void* to, runtime::DevicePointer from, size_t bytes) override {
    if (!traffic_.answers) return "the device is gone";
    traffic_.downloaded += bytes;
    return CountingTarget::download(to, from, bytes);
  }

 private:
  Traffic& traffic_;
  size_t limit_;
};

constexpr int64_t kCount = 1 << 20;

/// The first numbers, k of them.
Columns numbers(runtime::Executor& executor, int64_t k) {
  Builder b;
  b.result(b.launch(b.map(b.flat(b.num(k)), {b.i()}), "numbers")[0]);
  return succeed(b.run(executor));
}

/// The sum of a sequence that a run before has made.
int64_t sumOf(runtime::Executor& executor, const Column& sequence) {
  Builder b;
  const VarId xs = b.globalArray("xs", ints({}));
  b.globalColumns[0] = sequence;
  b.result(b.launch(b.reduce(b.flat(xs), {b.at(xs)}, b.sum(kI64)), "total")[0]);
  return succeed(b.run(executor))[0].at(0).i;
}

TEST(ResidentColumns, ResultsStayUntilTheyAreLookedAt) {
  Traffic traffic;
  runtime::Executor executor(std::make_unique<FarTarget>(traffic));
  const Columns made = numbers(executor, kCount);
  EXPECT_EQ(made[0].elements[0].length(), kCount);
  EXPECT_LT(traffic.downloaded, 100u);
  EXPECT_EQ(sumOf(executor, made[0]), kCount * (kCount - 1) / 2);
  EXPECT_LT(traffic.uploaded, 100u);
  EXPECT_LT(traffic.downloaded, 100u);
  EXPECT_EQ(made[0].elements[0].at(100).i, 100);
  EXPECT_LT(traffic.downloaded, 100'000u);
  EXPECT_EQ(made[0].elements[0].at(kCount - 1).i, kCount - 1);
  EXPECT_LT(traffic.downloaded, kCount * 8 + 100u);
}

TEST(ResidentColumns, NestedResultsStayToo) {
  Traffic traffic;
  runtime::Executor executor(std::make_unique<FarTarget>(traffic));
  Builder b;
  std::vector<int64_t> offsets(kCount / 8 + 1), elements(static_cast<size_t>(kCount));
  for (size_t k = 0; k < offsets.size(); ++k) offsets[k] = static_cast<int64_t>(k) * 8;
  std::iota(elements.begin(), elements.end(), 0);
  const auto [off, xs] = b.globalNested("xs", offsets, ints(elements));
  const Space space = b.segmented(off, xs);
  auto kept =
      b.launch(b.filter(space, {b.at(xs)}, b.op(ScalarOp::Less, b.num(kCount / 2), b.at(xs))), "kept");
  b.resultNested(kept[0], kept[1]);
  const Columns made = succeed(b.run(executor));
  EXPECT_LT(traffic.downloaded, 100u);
  const Column& inner = made[0].elements[0];
  EXPECT_EQ(inner.length(), kCount / 8);
  EXPECT_EQ(inner.elements[0].length(), kCount / 2 - 1);
  EXPECT_EQ(inner.offsets[0], 0);
  EXPECT_EQ(inner.offsets.back(), kCount / 2 - 1);
  EXPECT_EQ(inner.elements[0].at(0).i, kCount / 2 + 1);
}

TEST(ResidentColumns, ResultsOutliveTheirTarget) {
  Traffic traffic;
  std::vector<Column> made;
  {
    runtime::Executor far(std::make_unique<FarTarget>(traffic));
    runtime::Executor near(std::make_unique<runtime::InterpTarget>(0));
    for (runtime::Executor* executor : {&far, &near}) {
      made.push_back(numbers(*executor, kCount)[0]);
      made.push_back(numbers(*executor, 0)[0]);
    }
    EXPECT_EQ(made[0].elements[0].at(3).i, 3);
    EXPECT_EQ(sumOf(far, made[2]),
              kCount * (kCount - 1) / 2);  // one target's results in the other's programs
    EXPECT_EQ(sumOf(near, made[0]), kCount * (kCount - 1) / 2);
    numbers(far, kCount);  // these nobody wants any more
    traffic.downloaded = 0;
  }
  EXPECT_EQ(traffic.downloaded, 0u);  // made[0] had been brought for `near`
  runtime::Executor another(std::make_unique<runtime::InterpTarget>(0));
  for (size_t k = 0; k < made.size(); ++k)
    EXPECT_EQ(sumOf(another, made[k]), k % 2 == 0 ? kCount * (kCount - 1) / 2 : 0);
}

TEST(ResidentColumns, ResultsGiveWayWhereMemoryIsShort) {
  Traffic traffic;
  runtime::Executor executor(std::make_unique<FarTarget>(traffic, size_t{5} * 8 * kCount / 2));
  std::vector<Column> made;
  for (int64_t k = 0; k < 5; ++k) made.push_back(numbers(executor, kCount - k)[0]);  // two fit
  EXPECT_GT(traffic.downloaded, 8u * kCount);
  for (int64_t k = 0; k < 5; ++k) {
    const int64_t count = kCount - k;
    EXPECT_EQ(sumOf(executor, made[static_cast<size_t>(k)]), count * (count - 1) / 2);
  }
}

/// Nor has the host room for them: they stay, and there is no memory.
TEST(ResidentColumns, ResultsStayWhereTheHostHasNoMemoryEither) {
  Traffic traffic;
  runtime::Executor executor(std::make_unique<FarTarget>(traffic, size_t{5} * 8 * kCount / 2));
  runtime::RunOptions options;
  options.hostMemory = 8 * kCount;
  const auto make = [&] {
    Builder b;
    b.result(b.launch(b.map(b.flat(b.num(kCount)), {b.i()}), "numbers")[0]);
    return b.run(executor, options);
  };
  const Columns first = succeed(make()), second = succeed(make());
  const runtime::RunResult third = make();
  ASSERT_TRUE(std::holds_alternative<RuntimeError>(third));
  EXPECT_THAT(std::get<RuntimeError>(third).message, ::testing::HasSubstr("out of memory"));
  EXPECT_LT(traffic.downloaded, 100u);
  EXPECT_EQ(sumOf(executor, first[0]), kCount * (kCount - 1) / 2);
  EXPECT_EQ(sumOf(executor, second[0]), kCount * (kCount - 1) / 2);
}

/// One array of the device is two results, and a result of a later run that hands it on.
TEST(ResidentColumns, ResultsThatShareMemoryGiveWayTogether) {
  Traffic traffic;
  runtime::Executor executor(std::make_unique<FarTarget>(traffic, size_t{5} * 8 * kCount / 2));
  std::vector<Column> made;
  for (int64_t k = 0; k < 4; ++k) {  // two fit
    Builder b;
    const VarId twice = b.launch(b.map(b.flat(b.num(kCount - k)), {b.i()}), "numbers")[0];
    b.result(twice);
    b.result(twice);
    const Columns pair = succeed(b.run(executor));
    Builder next;
    const VarId same = next.globalArray("same", ints({}));
    next.globalColumns[0] = pair[0];
    next.result(same);
    made.insert(made.end(), {pair[0], pair[1], succeed(next.run(executor))[0]});
  }
  for (size_t k = 0; k < made.size(); ++k) {
    const int64_t count = kCount - static_cast<int64_t>(k) / 3;
    EXPECT_EQ(sumOf(executor, made[k]), count * (count - 1) / 2);
  }
}

TEST(ResidentColumns, WhatIsLostWithTheDeviceIsAnError) {
  Traffic traffic;
  std::optional<runtime::Executor> executor(std::in_place, std::make_unique<FarTarget>(traffic));
  const Columns made = numbers(*executor, kCount);
  traffic.answers = false;
  EXPECT_THROW((void)made[0].elements[0].at(0), ElementsLost);
  executor.reset();
  runtime::Executor another(std::make_unique<runtime::InterpTarget>(0));
  Builder b;
  const VarId xs = b.globalArray("xs", ints({}));
  b.globalColumns = made;
  b.result(b.launch(b.reduce(b.flat(xs), {b.at(xs)}, b.sum(kI64)), "total")[0]);
  const runtime::RunResult result = b.run(another);
  const auto* error = std::get_if<RuntimeError>(&result);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "a value was lost with its device");
}

}  // namespace
}  // namespace kelpie::testing
