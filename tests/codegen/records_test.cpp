// Columns that loops load at one position, put side by side (codegen/cuda/records.cuh), over an emulated
// device.
#include <gmock/gmock.h>

#include "emulated_device.h"
#include "runtime/cuda/cuda_target.h"
#include "tests/flatten/program_runner.h"

namespace kelpie::testing {
namespace {

using ::testing::HasSubstr, ::testing::Not;

/// Keeps the sources that it compiles.
class RecordingDevice final : public tests::EmulatedDevice {
 public:
  explicit RecordingDevice(std::string& sources) : EmulatedDevice(4), sources_(sources) {}
  runtime::Failure compile(const std::string& source, const std::vector<std::string>& entries,
                           std::unique_ptr<runtime::cuda::Module>& module) override {
    sources_ += source;
    return EmulatedDevice::compile(source, entries, module);
  }

 private:
  std::string& sources_;
};

/// The sources of a program, whose results are those of the reference.
std::string sourcesOf(const std::string& nesl, int64_t recordBytes) {
  std::string sources;
  RunnerOptions options;
  options.target = [&] {
    codegen::cuda::CudaOptions cuda;
    cuda.recordBytes = recordBytes;
    return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<RecordingDevice>(sources), cuda);
  };
  for (const FormOutcome& outcome : runProgram(nesl, options))
    EXPECT_EQ(outcome.difference, "") << outcome.text;
  return sources;
}

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

}  // namespace
}  // namespace kelpie::testing
