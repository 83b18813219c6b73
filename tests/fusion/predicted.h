// What a kernel's predicted time is made of: asked of fusion, for λcu text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fusion/fuse.h"
#include "tests/fusion/read_program.h"

namespace kelpie::fusion {

/// Of the kernels that are left, of which there should be `left`, beside their launches, with n = `n` and m =
/// `m`.
inline double predictedOf(const TargetCosts& costs, std::string_view body, double n, double m, int left,
                          const KnownSizes& known = {}) {
  const std::string text = R"(
global 1: ([int64]) = n: int64, xs: [int64; n]
global 2: ([int64]) = m: int64, ys: [int64; m]
entry main: (int64) {
)" + std::string(body) + "\n}";
  lcu::Program program = read(text);
  FusionOptions options;
  options.costs = costs;
  options.known = known;
  for (const lcu::GlobalInput& global : program.globals)
    for (lcu::VarId var : global.vars) options.globals[var] = global.cell == 1 ? n : m;
  const FusionReport report = fuse(program, options);
  double time = 0;
  int kernels = 0;
  for (const RegionReport& region : report.regions) {
    for (const ClusterReport& cluster : region.clusters) {
      time += cluster.microseconds;
      kernels += !cluster.kernel.empty();
    }
  }
  EXPECT_EQ(kernels, left);
  return time - left * costs.launch;
}

inline double predicted(const TargetCosts& costs, std::string_view body, double n, double m) {
  return predictedOf(costs, body, n, m, 1);
}

/// Where all but launches is free.
inline TargetCosts free() {
  TargetCosts costs{};
  costs.name = "test";
  costs.launch = 5;
  costs.ownBytes = costs.cacheBytes = costs.passes = costs.segmentedWork = 1;
  costs.collectiveBudget = 100;
  return costs;
}

inline constexpr const char* kGather = R"(
  kernel k { let s: &int64 = REDUCE flat n { i => ys[xs[i]] } (0) { x, y => x + y } return s }
  return s)";

inline constexpr const char* kScatter = R"(
  kernel p { let w: [int64; m] = PERMUTE flat n { i => i } to { i => xs[i] } target m fill (-1) return w }
  let first: int64 = w[0]
  return first)";

}  // namespace kelpie::fusion
