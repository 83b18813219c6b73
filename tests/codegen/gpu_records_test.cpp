// Columns that are gathered together, put side by side on a real GPU or not (codegen/gathered_columns.h).
// Skips itself where there is no GPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>

#include "runtime/cuda/cuda_target.h"
#include "runtime/cuda/driver_device.h"
#include "runtime/executor.h"
#include "runtime/host_target.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

using Random = std::mt19937_64;

uint64_t environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// So many columns, floats and integers in turn, of `rows` elements each, gathered at places: what a map and
/// a fold make of them.
Columns gathered(runtime::Executor& executor, int columns, int64_t rows, const std::vector<int64_t>& places) {
  Builder b;
  const VarId at = b.globalArray("places", ints(places));
  std::vector<VarId> made;
  for (int k = 0; k < columns; ++k) {
    const ExprRef value = b.op(ScalarOp::Add, b.arena().mul(b.i(), b.num(3 + k)), b.num(k));
    made.push_back(b.launch(b.map(b.flat(b.num(rows)), {k % 2 == 0 ? b.arena().convert(value, kF64) : value}),
                            "column")[0]);
    b.program.vars[made.back()].extent = b.num(rows);
  }
  const ExprRef place = b.at(at);
  const ExprRef good = b.op(ScalarOp::And, b.op(ScalarOp::GreaterEqual, place, b.num(0)),
                            b.op(ScalarOp::Less, place, b.num(rows)));
  const ExprRef checked = b.arena().check(good, place, Scalar::zero(kI64), 0, place, b.num(rows));
  ExprRef total = b.num(0);
  std::vector<ExprRef> values;
  for (const VarId column : made) {
    values.push_back(b.at(column, checked));
    total = b.op(ScalarOp::Add, total, b.arena().convert(values.back(), kI64));
  }
  for (const VarId v : b.launch(b.map(b.flat(at), values), "map")) b.result(v);
  b.result(b.launch(b.reduce(b.flat(at), {total}, b.sum(kI64)), "fold")[0]);
  return succeed(b.run(executor));
}

TEST(GpuRecords, AreWhatTheirColumnsAre) {
  std::string why;
  auto device = runtime::cuda::openDriverDevice(0, "", "", false, why);
  if (!device) GTEST_SKIP() << why;
  codegen::cuda::CudaOptions options;
  options.gatheredBytes = 0;
  options.gatherWindow = 1 << 12;
  runtime::Executor gpu(std::make_unique<runtime::cuda::CudaTarget>(std::move(device), options));
  runtime::Executor interp(std::make_unique<runtime::InterpTarget>(0));
  const uint64_t seed = environment("KELPIE_SEED", std::random_device{}());
  std::cout << "KELPIE_SEED=" << seed << std::endl;
  Random random(seed);
  const auto largest = static_cast<int64_t>(std::min<uint64_t>(environment("KELPIE_SIZE", 1 << 18), 1 << 18));
  const std::vector<std::function<int64_t(int64_t, int64_t)>> distributions = {
      [&](int64_t, int64_t rows) { return static_cast<int64_t>(random() % static_cast<uint64_t>(rows)); },
      [](int64_t i, int64_t rows) { return i % rows; },
      [&](int64_t i, int64_t rows) { return (i + static_cast<int64_t>(random() % 64)) % rows; }};
  for (const int columns : {2, 5}) {
    for (const int64_t elements : {int64_t{1}, largest}) {
      for (const auto& place : distributions) {
        const int64_t rows = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(2 * elements));
        std::vector<int64_t> places(static_cast<size_t>(elements));
        for (int64_t i = 0; i < elements; ++i) places[static_cast<size_t>(i)] = place(i, rows);
        const Columns expected = gathered(interp, columns, rows, places),
                      got = gathered(gpu, columns, rows, places);
        ASSERT_EQ(expected.size(), got.size());
        for (size_t k = 0; k < got.size(); ++k)
          ASSERT_TRUE(expected[k] == got[k])
              << columns << " columns, " << rows << " rows, " << elements << " elements";
      }
    }
  }
}

}  // namespace
}  // namespace kelpie::testing
