// Generated CPU kernels against the evaluator: equal to the bit, for every SOAC, space and size.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "codegen/cpu/cpu_module.h"
#include "runtime/cpu_target.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

using runtime::CpuOptions;
using runtime::CpuTarget;
using runtime::Executor;
using runtime::InterpTarget;
using runtime::Jit;

CpuOptions compiled(int threads = 2) {
  CpuOptions options;
  options.jit = Jit::Always;
  options.threads = threads;
  options.cache.directory = (std::filesystem::temp_directory_path() / "kelpie-cpu-test").string();
  return options;
}

void expectSame(const Columns& a, const Columns& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k] == b[k]) continue;
    std::string where;
    if (a[k].type.isSequence()) {
      const Column &x = a[k].elements[0], &y = b[k].elements[0];
      where = " of " + std::to_string(x.length()) + " and " + std::to_string(y.length());
      for (int64_t e = 0; e < std::min(x.length(), y.length()); ++e) {
        if (x.at(e) == y.at(e)) continue;
        where += " at " + std::to_string(e) + ": " +
                 (isFloat(x.at(e).type) ? std::to_string(x.at(e).f) + " " + std::to_string(y.at(e).f)
                                        : std::to_string(x.at(e).i) + " " + std::to_string(y.at(e).i));
        break;
      }
    }
    ADD_FAILURE() << what << ": result " << k << " differs" << where;
  }
}

/// Runs on interp and cpu; results must be the same bits, and errors the same.
void compare(Builder& b, const std::string& what) {
  ASSERT_EQ(lcu::verify(b.program, true), std::vector<std::string>()) << what;
  Executor interp(std::make_unique<InterpTarget>());
  Executor cpu(std::make_unique<CpuTarget>(compiled()));
  auto expected = b.run(interp), actual = b.run(cpu);
  if (std::holds_alternative<RuntimeError>(expected)) {
    EXPECT_EQ(messageOf(expected), messageOf(actual)) << what;
    return;
  }
  expectSame(succeed(expected), succeed(actual), what);
}

struct Data {
  std::vector<int64_t> offsets;
  std::vector<double> reals;
  std::vector<int64_t> ints;
  int64_t n() const { return static_cast<int64_t>(reals.size()); }
};

Data randomData(std::vector<int64_t> lengths, std::mt19937_64& random) {
  Data d;
  d.offsets = {0};
  for (int64_t l : lengths) d.offsets.push_back(d.offsets.back() + l);
  for (int64_t k = 0; k < d.offsets.back(); ++k) {
    d.reals.push_back(static_cast<double>(static_cast<int64_t>(random() % 2000001) - 1000000) / 7.0);
    d.ints.push_back(static_cast<int64_t>(random() % 1000) - 300);
  }
  return d;
}

/// A fresh variable x with x[i] and friends over one set of globals.
struct Bench {
  Builder b;
  VarId offsets, xs, offsetsOfInts, ks;
  explicit Bench(const Data& d) {
    std::tie(offsets, xs) = b.globalNested("xs", d.offsets, floats(d.reals));
    std::tie(offsetsOfInts, ks) = b.globalNested("ks", d.offsets, ints(d.ints));
  }
  Space flat() { return b.flat(xs); }
  Space seg() { return b.segmented(offsets, xs); }
  void results(const std::vector<VarId>& vars) {
    for (VarId v : vars) b.result(v);
  }
  /// (x, k) -> sums of both and a last-nonzero operator that is not commutative, together.
  Operator mixed() {
    ExprArena& a = b.arena();
    ExprRef right = a.param(5, kI64);
    return {{Scalar::ofFloat(kF64, 0), Scalar::ofInt(kI64, INT64_MIN), Scalar::ofInt(kI64, 0)},
            {b.op(ScalarOp::Add, a.param(0, kF64), a.param(3, kF64)),
             b.op(ScalarOp::Max, a.param(1, kI64), a.param(4, kI64)),
             a.select(b.op(ScalarOp::Equal, right, b.num(0)), a.param(2, kI64), right)}};
  }
  std::vector<ExprRef> mixedPull() {
    return {b.op(ScalarOp::Mul, b.at(xs), b.real(0.5)), b.at(ks),
            b.arena().select(b.op(ScalarOp::Less, b.at(ks), b.num(500)), b.num(0), b.at(ks))};
  }
};

/// Every SOAC over the flat and the segmented space of the data, each in a kernel of its own.
void everySoac(const Data& d, const std::string& what) {
  Bench t(d);
  Builder& b = t.b;
  ExprArena& a = b.arena();
  ExprRef x = b.at(t.xs), k = b.at(t.ks);
  ExprRef positive = b.op(ScalarOp::Greater, k, b.num(0));
  for (bool segmented : {false, true}) {
    Space space = segmented ? t.seg() : t.flat();
    std::string suffix = segmented ? "_seg" : "_flat";
    ExprRef place = segmented ? a.add(b.p(), a.mul(b.s(), b.num(3))) : b.i();
    t.results(b.launch(b.map(space, {b.op(ScalarOp::Add, x, a.convert(place, kF64)), x}), "map" + suffix));
    t.results(b.launch(b.reduce(space, {x}, b.sum(kF64)), "sum" + suffix));
    t.results(b.launch(b.reduce(space, {b.op(ScalarOp::Mul, x, x)},
                                b.operation(ScalarOp::Max, identity(ReduceOp::Max, kF64))),
                       "max" + suffix));
    t.results(b.launch(b.reduce(space, t.mixedPull(), t.mixed()), "mixed" + suffix));
    for (int variant = 0; variant < 4; ++variant) {
      Soac s = b.scan(space, {b.op(ScalarOp::Mul, x, b.real(1.25))}, b.sum(kF64));
      s.inclusive = (variant & 1) != 0;
      s.backward = (variant & 2) != 0;
      t.results(b.launch(s, "scan" + suffix));
      Soac m = b.scan(space, t.mixedPull(), t.mixed());
      m.inclusive = s.inclusive;
      m.backward = s.backward;
      t.results(b.launch(m, "scan_mixed" + suffix));
    }
    t.results(b.launch(b.filter(space, {x, place}, positive), "filter" + suffix));
    // Keeps what is the same for all, by a condition that is the same for a segment.
    ExprRef same = a.sub(a.size(t.xs), b.num(7));
    t.results(b.launch(b.filter(space, {same, x}, b.op(ScalarOp::Greater, same, segmented ? b.s() : b.i())),
                       "filter_same" + suffix));
    t.results(b.launch(b.permute(space, {x}, a.sub(a.sub(a.size(t.xs), b.num(1)), b.i()),
                                 a.add(a.size(t.xs), b.num(5)), {Scalar::ofFloat(kF64, -7)}),
                       "permute" + suffix));
    Soac writer = b.permute(space, {b.i()}, b.op(ScalarOp::Rem, a.add(k, b.num(1000)), b.num(97)), b.num(97),
                            {Scalar::ofInt(kI64, -1)}, false);
    t.results(b.launch(writer, "writer" + suffix));
  }
  Soac total = b.scan(t.flat(), {k}, b.sum(kI64));
  total.withTotal = true;
  t.results(b.launch(total, "scan_total"));
  t.results(b.launch(b.partition(t.flat(), {x, b.i()}, positive), "partition"));
  t.results(b.launch(b.once({a.add(a.size(t.xs), b.num(1)), b.real(2.5)}), "once"));
  compare(b, what);
}

/// How long a loop in a thunk takes is not known: it is run once for each element, although filters and scans
/// take two passes, and in chunks that do not depend on the blocks of reductions.
TEST(CpuKernels, ThunksWithLoopsAreEvaluatedOnce) {
  std::mt19937_64 random(5);
  Bench t(randomData({30000}, random));
  Builder& b = t.b;
  ExprArena& a = b.arena();
  const uint32_t loop = a.newLoop();
  ExprRef k = b.at(t.ks), rest = a.loopVar(loop, 0, kI64);
  ExprRef steps = a.loop(loop, {k}, b.op(ScalarOp::Greater, rest, b.num(17)), {a.sub(rest, b.num(17))})[0];
  Soac filter = b.filter(t.flat(), {steps}, b.op(ScalarOp::Greater, steps, b.num(5)));
  Soac scan = b.scan(t.flat(), {steps}, b.sum(kI64));
  b.named(filter, "few");
  b.named(scan, "sums");
  std::vector<VarId> results = filter.results;
  results.insert(results.end(), scan.results.begin(), scan.results.end());
  const lcu::Kernel kernel{"steps", {filter, scan}, results};
  const std::string text = codegen::cpu::generateKernel(kernel, b.program, "k");
  size_t seventeens = 0;
  for (size_t at = text.find("17"); at != std::string::npos; at = text.find("17", at + 1)) ++seventeens;
  EXPECT_EQ(seventeens, 2u) << text;  // in the condition and in the step of one loop
  b.kernel({filter, scan}, results);
  t.results(results);
  compare(b, "loops");
}

TEST(CpuKernels, EverySoacOnSmallSizes) {
  std::mt19937_64 random(1);
  for (int64_t n : {0, 1, 7, 8, 9, 63, 64, 65})
    everySoac(randomData({n}, random), "n = " + std::to_string(n));
}

TEST(CpuKernels, EverySoacAroundBlocks) {
  std::mt19937_64 random(2);
  for (int64_t n : {1023, 1024, 1025, 2047, 2048, 2049, 4096, 5121, 30000}) {
    everySoac(randomData({n}, random), "n = " + std::to_string(n));
  }
}

TEST(CpuKernels, EverySoacOnManySegments) {
  std::mt19937_64 random(3);
  everySoac(randomData(std::vector<int64_t>(5000, 0), random), "only empty segments");
  everySoac(randomData(std::vector<int64_t>(3000, 8), random), "segments of 8");
  everySoac(randomData(std::vector<int64_t>(20, 1024), random), "segments of 1024");
  everySoac(randomData({}, random), "no segments");
  std::vector<int64_t> giant(7000, 0);
  giant[3500] = 20000;
  everySoac(randomData(giant, random), "one giant among empty ones");
}

/// Columns of a matrix: folded in the evaluator's order, though neighbours go side by side; products of rows
/// and columns, whose quotients are computed once for each; and transposed.
TEST(CpuKernels, ColumnsOfMatrices) {
  std::mt19937_64 random(6);
  for (const auto& [columns, rows] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {3, 63}, {64, 64}, {65, 65}, {300, 100}, {2, 5000}, {130, 1024}, {70, 1025}, {40, 0}}) {
    Bench t(randomData({columns * rows + columns}, random));
    Builder& b = t.b;
    ExprArena& a = b.arena();
    const Space space = b.regular(b.num(columns), b.num(rows));
    const ExprRef at = a.add(a.mul(b.p(), b.num(columns)), b.s()), x = b.at(t.xs, at),
                  row = b.op(ScalarOp::Div, b.s(), b.num(7)), shared = b.at(t.xs, a.add(row, b.p()));
    t.results(b.launch(b.reduce(space, {x}, b.sum(kF64)), "sum"));
    t.results(b.launch(b.reduce(space, {b.op(ScalarOp::Mul, x, shared)}, b.sum(kF64)), "product"));
    t.results(b.launch(b.reduce(space, {x}, b.operation(ScalarOp::Max, identity(ReduceOp::Max, kF64))),
                       "greatest"));
    t.results(b.launch(b.map(space, {x, b.op(ScalarOp::Add, x, shared)}), "transposed"));
    compare(b, std::to_string(columns) + " columns of " + std::to_string(rows));
  }
}

TEST(CpuKernels, EverySoacOnRandomSegments) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 12; ++round) {
    std::vector<int64_t> lengths;
    const int count = static_cast<int>(random() % 200);
    for (int s = 0; s < count; ++s) {
      switch (random() % 6) {
        case 0:
          lengths.push_back(0);
          break;
        case 1:
          lengths.push_back(static_cast<int64_t>(random() % 9));
          break;
        case 2:
          lengths.push_back(static_cast<int64_t>(random() % 100));
          break;
        case 3:
          lengths.push_back(1024 * static_cast<int64_t>(random() % 4));
          break;
        case 4:
          lengths.push_back(static_cast<int64_t>(random() % 5000));
          break;
        default:
          lengths.insert(lengths.end(), random() % 3000, 0);
      }
    }
    everySoac(randomData(lengths, random), "round " + std::to_string(round));
  }
}

}  // namespace
}  // namespace kelpie::testing
