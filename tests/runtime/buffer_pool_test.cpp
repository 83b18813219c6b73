// What arrays without elements read as, whatever their memory was used for before.
#include "runtime/buffer_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "runtime/host_target.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

using namespace runtime;

TEST(BufferPool, EmptyArraysAreZeros) {
  InterpTarget target(0);
  const auto pool = std::make_shared<BufferPool>(target);
  {
    const std::array<int64_t, 2> garbage{900000000000000, -1};
    std::vector<BufferRef> used;
    for (int k = 0; k < 8; ++k) {
      used.push_back(pool->allocate(sizeof garbage));
      ASSERT_FALSE(target.upload(used.back()->pointer(), garbage.data(), sizeof garbage));
    }
  }
  for (int k = 0; k < 3; ++k) {
    std::array<int64_t, 2> found{1, 1};
    ASSERT_FALSE(target.download(found.data(), pool->empty()->pointer(), sizeof found));
    EXPECT_EQ(found, (std::array<int64_t, 2>{0, 0}));
  }
  EXPECT_EQ(pool->bytesInUse(), 0u);
}

// A failing check leaves position 0 of an array without elements, whose element is a position in another: it
// must not lead out of that one.
TEST(BufferPool, FailingPositionsInEmptyArraysStayInside) {
  Executor executor(std::make_unique<InterpTarget>(0));
  {
    Builder b;  // leaves large numbers in memory that is used again
    for (int k = 0; k < 8; ++k)
      b.result(b.launch(b.map(b.flat(b.num(2)), {b.num(900000000000000)}), "large")[0]);
    ASSERT_TRUE(std::holds_alternative<Columns>(b.run(executor)));
  }
  Builder b;
  const VarId table = b.globalArray("table", ints({1, 2, 3})), none = b.globalArray("none", ints({}));
  const VarId order = b.launch(b.map(b.flat(none), {b.i()}), "order")[0];
  const SiteId site = b.program.newSite({{}, "out of range"});
  const ExprRef at = b.arena().check(b.op(ScalarOp::Less, b.i(), b.arena().size(none)), b.i(),
                                     Scalar::ofInt(kI64, 0), site, b.i(), b.arena().size(none));
  b.result(b.launch(b.map(b.flat(b.num(1)), {b.at(table, b.at(order, at))}), "read")[0]);
  const RunResult result = b.run(executor);
  ASSERT_TRUE(std::holds_alternative<RuntimeError>(result));
  EXPECT_EQ(std::get<RuntimeError>(result).message, "out of range");
}

}  // namespace
}  // namespace kelpie::testing
