// NESL programs end to end on the CUDA target, over an emulated device: what unit tests of kernels leave out
// is how kernels of one program hand their results on.
#include <gtest/gtest.h>

#include "emulated_device.h"
#include "runtime/cuda/cuda_target.h"
#include "tests/flatten/program_runner.h"

namespace kelpie::testing {
namespace {

void expectAgreement(const std::string& nesl, bool int32 = false) {
  RunnerOptions options;
  options.int32 = int32;
  options.target = [] {
    return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<tests::EmulatedDevice>(7));
  };
  std::vector<FormOutcome> outcomes = runProgram(nesl, options);
  EXPECT_FALSE(outcomes.empty());
  for (const FormOutcome& outcome : outcomes)
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
}

TEST(CudaPrograms, WritesToNestedSequences) {
  expectAgreement("{d <- [(0,x)] : d in [[[1],[2]],[[3]]]; x in [[5,6],[] int]};", true);
}

TEST(CudaPrograms, SparseMatrixVector) {
  expectAgreement(
      "function smvm(m, v) = {sum({x * v[i] : (i,x) in row}) : row in m};"
      "smvm([[(0,2.0),(2,1.0)],[(1,3.0)],[(0,1.0),(1,1.0),(2,1.0)]], [1.0,10.0,100.0]);");
}

TEST(CudaPrograms, Quicksort) {
  expectAgreement(
      "function qs(a) = if #a < 2 then a else let p = a[#a/2]; l = {e in a | e < p}; q = {e in a | e == p};"
      "  g = {e in a | e > p}; r = {qs(v) : v in [l, g]} in r[0] ++ q ++ r[1];"
      "qs([3,1,4,1,5,9,2,6,5,3,5]);");
}

// One kernel with two filters, of which one needs the scan beside the other: survivors of both are collected in
// the same shared memory.
TEST(CudaPrograms, FiltersBesideAndBehindAScan) {
  expectAgreement(
      "let xs = {rem(i * 7919, 1009) : i in [0:5000]}; sums = plus_scan(xs)"
      "  in ({x > 500 : x in xs | rem(x, 3) == 1}, {s : s in sums | rem(s, 7) < 3});");
}

TEST(CudaPrograms, LaunchesAreTimed) {
  RunnerOptions options;
  options.target = [] {
    return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<tests::EmulatedDevice>(7));
  };
  const std::vector<FormOutcome> outcomes = runProgram(
      "xs = {float(i) : i in [0:3000]}; let ys = {x in xs | x > 99.5} in (plus_scan(ys), sum(xs));", options);
  ASSERT_EQ(outcomes.size(), 2u);
  for (const FormOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.difference, "");
    ASSERT_FALSE(outcome.targetStatistics.kernels.empty());
    for (const runtime::KernelStatistics& kernel : outcome.targetStatistics.kernels) {
      EXPECT_EQ(kernel.evaluated, 0u);
      EXPECT_GT(kernel.seconds, 0) << kernel.name;
    }
  }
  EXPECT_EQ(outcomes[0].targetStatistics.kernels[0].work.bytesWritten, 3000u * 8);
}

TEST(CudaPrograms, IndexOutOfRange) { expectAgreement("{let v = [1,2,3] in v[i] : i in [0,1,3]};"); }

}  // namespace
}  // namespace kelpie::testing
