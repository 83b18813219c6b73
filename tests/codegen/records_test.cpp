// Columns that loops load at one position, put side by side (codegen/cuda/records.cuh), over an emulated
// device.
#include <gmock/gmock.h>

#include <algorithm>

#include "emulated_device.h"
#include "runtime/cuda/cuda_target.h"
#include "tests/flatten/program_runner.h"

namespace kelpie::testing {
namespace {

using ::testing::HasSubstr, ::testing::Not;

struct Seen {
  std::string sources;                 ///< all that were compiled
  int putTogether = 0, leftAlone = 0;  ///< times that gathered columns were put side by side, or not
};

class SeeingDevice final : public tests::EmulatedDevice {
 public:
  explicit SeeingDevice(Seen& seen) : EmulatedDevice(4), seen_(seen) {}
  runtime::Failure compile(const std::string& source, const std::vector<std::string>& entries,
                           std::unique_ptr<runtime::cuda::Module>& module) override {
    seen_.sources += source;
    const runtime::Failure failure = EmulatedDevice::compile(source, entries, module);
    if (!failure && std::find(entries.begin(), entries.end(), "kelpie_interleave_scattered") != entries.end())
      interleave_ = module->function("kelpie_interleave_scattered");
    return failure;
  }
  runtime::Failure launch(runtime::cuda::Function function, int64_t blocks, int threads,
                          void** arguments) override {
    const runtime::Failure failure = EmulatedDevice::launch(function, blocks, threads, arguments);
    constexpr size_t kHeader = 5;
    if (!failure && function == interleave_)
      ++(**static_cast<const uint64_t* const*>(arguments[kHeader]) != 0 ? seen_.putTogether
                                                                        : seen_.leftAlone);
    return failure;
  }

 private:
  Seen& seen_;
  runtime::cuda::Function interleave_ = nullptr;
};

/// Runs a program, whose results are those of the reference. `recordBytes`: from which on columns are put
/// side by side, in loops and elsewhere.
Seen run(const std::string& nesl, int64_t recordBytes) {
  Seen seen;
  RunnerOptions options;
  options.target = [&] {
    codegen::cuda::CudaOptions cuda;
    cuda.recordBytes = cuda.gatheredBytes = recordBytes;
    cuda.gatherWindow = 128;
    return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<SeeingDevice>(seen), cuda);
  };
  for (const FormOutcome& outcome : runProgram(nesl, options))
    EXPECT_EQ(outcome.difference, "") << outcome.text;
  return seen;
}
std::string sourcesOf(const std::string& nesl, int64_t recordBytes) { return run(nesl, recordBytes).sources; }

/// What a branch alone needs comes with what lies at the same place, from one record; with and without any.
TEST(Records, OfColumnsThatABranchNeeds) {
  const std::string nesl =
      "function walk(at, x, cubes, total) = if at == #cubes then total else"
      "  let (c, near, m, behind) = cubes[at] in"
      "  if abs(c - x) < near then walk(at + 1, x, cubes, total)"
      "  else walk(behind, x, cubes, total + m * (c - x));"
      "cubes = {(float(rem(i * 37, 101)), float(rem(i, 20)), float(i) + 1.0, min(i + 1 + rem(i, 3), 100)) : "
      "i in [0:100]};"
      "{walk(0, x, cubes, 0.0) : x in {float(i) : i in [0:70]}};";
  for (const int64_t bytes : {0, 1 << 20}) {
    const std::string sources = sourcesOf(nesl, bytes);
    EXPECT_THAT(sources, HasSubstr("record_1.column[3]"));
    EXPECT_THAT(sources, Not(HasSubstr("launch.records[1]")));
  }
}

/// Two branches that need a column each, none of them inside of the other.
TEST(Records, OfColumnsOfEveryBranch) {
  sourcesOf(
      "function hop(at, k, nodes, total) = if k == 0 then total else"
      "  let (a, b, c, d) = nodes[at] in"
      "  if rem(a + k, 3) == 0 then hop(b, k - 1, nodes, total + c)"
      "  else if rem(a, 2) == 0 then hop(rem(b + 1, 60), k - 1, nodes, total - d)"
      "  else let (p, q, u, v) = nodes[b] in hop(q, k - 1, nodes, total + u + v);"
      "nodes = {(i * 5, rem(i * 17 + 3, 60), i + 1, i * i) : i in [0:60]};"
      "{hop(i, rem(i * 7, 40), nodes, 0) : i in [0:60]};",
      0);
}

/// There is a record for each place that all columns have. A branch may need what lies at a place that
/// another column has no more, as a condition tells, without a check: it is loaded there. So is what stands
/// behind an `and`.
TEST(Records, OfColumnsOfOneLength) {
  const std::string walk =
      "function walk(a, c, b, k, s, q) = if q == 0 or k < 0 or k >= #a or k >= #c then s"
      "  else walk(a, c, b, a[k], s + c[k] + (if s > 5 and k < #b then b[k] else 0), q - 1);"
      "a = {rem(i * 37, 100) : i in [0:100]}; c = {i * 3 : i in [0:100]}; b = {i * 5 : i in [0:50]};"
      "{walk(a, c, b, x, 0, 8) : x in a};";
  EXPECT_THAT(sourcesOf(walk, 0), HasSubstr("recordAt(launch.records[0], state_3, a, c)"));
}

/// Outside of loops: where the places that an array tells lie far apart, and where they do not; with
/// positions that fail, and those that are known not to.
TEST(Records, OfColumnsThatAreGathered) {
  const auto nesl = [](const char* places) {
    return std::string(
               "rows = {(float(rem(i * 37, 101)), float(i) + 1.0, i * 3) : i in [0:5000]};"
               "places = {") +
           places +
           " : i in [0:6000]};"
           "{let (a, b, c) = rows[i] in a * b + float(c) : i in places};"
           "sum({let (a, b, c) = rows[i] in a * b + float(c) : i in places});"
           "{rows[i] : i in places};"
           "{let (a, b, c) = rows[i] in if a > 50.0 then b else float(c) : i in places};"
           "last = sum({let (a, b, c) = rows[i] in a + b + float(c) : i in places});";
  };
  const auto failing = [&](const char* form) {
    run(nesl("rem(i * 7919, 5000)") + "more = {if k == 40 then 5000 else i : i in places; k in [0:6000]};" +
            form,
        0);
  };
  failing("{let (a, b, c) = rows[i] in a + b + float(c) : i in more};");
  failing("sum({let (a, b, c) = rows[i] in a * b : i in more});");
  failing("{let (a, b, c) = rows[i + 5000] in a + b + float(c) : i in places};");
  const Seen apart = run(nesl("rem(i * 7919, 5000)"), 0), near = run(nesl("min(i, 4999)"), 0),
             none = run(nesl("rem(i * 7919, 5000)"), int64_t{1} << 40);
  EXPECT_EQ(apart.putTogether, 4);
  EXPECT_EQ(apart.leftAlone, 0);
  EXPECT_EQ(near.leftAlone, 4);
  EXPECT_EQ(near.putTogether, 0);
  EXPECT_EQ(none.putTogether + none.leftAlone, 0);
  for (const Seen& seen : {apart, near, none}) EXPECT_THAT(seen.sources, HasSubstr("recordIn<3>(records, "));
}

/// Where a piece of memory is used up before it leaves a cache it is not worth it: a few places visited again
/// and again, and neighbours that load neighbours, in however many pieces.
TEST(Records, OfColumnsThatAreGatheredNearby) {
  for (const char* places : {"rem(i * 7919, 100)", "rem(i, 8) + rem(i / 8 * 7919, 624) * 8"}) {
    const Seen seen = run(std::string("rows = {(i, i * 3) : i in [0:5000]};"
                                      "places = {") +
                              places + " : i in [0:6000]}; {rows[i] : i in places};",
                          0);
    EXPECT_EQ(seen.putTogether, 0) << places;
    EXPECT_GE(seen.leftAlone, 1) << places;
  }
}

/// Within segments, and by the order of a sort, whose positions need no checks.
TEST(Records, OfColumnsThatAreGatheredByOrder) {
  const std::string nesl =
      "rows = {(rem(i * 7919, 5003), float(i), i * 3) : i in [0:3000]};"
      "keys = {rem(i * 7919, 5003) : i in [0:3000]};"
      "pieces = {{rem(i * j * 7919, 3000) : j in [0:rem(i, 90)]} : i in [0:100]};"
      "{(x, y) : (k, x, y) in permute(rows, rank(keys))};"
      "{sum({let (k, x, y) = rows[i] in x * float(y) : i in piece}) : piece in pieces};"
      "{{let (k, x, y) = rows[i] in x * float(y) : i in piece} : piece in pieces};";
  const Seen seen = run(nesl, 0);
  EXPECT_THAT(seen.sources, HasSubstr("recordIn<2>(records, "));
  EXPECT_GE(seen.putTogether, 1);
  run(nesl, int64_t{1} << 40);
}

}  // namespace
}  // namespace kelpie::testing
