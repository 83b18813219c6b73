// Which bindings of a kernel make a pass, and in which direction passes go (codegen/cuda/pass_split.h).
#include "codegen/cuda/pass_split.h"

#include <gtest/gtest.h>

#include <vector>

#include "codegen/cuda/cuda_module.h"
#include "tests/codegen/known_kernels.h"

namespace kelpie::tests {
namespace {

/// Short maps are computed again by the pass that reads them, and by no other, unless they are stored anyway.
TEST(PassSplit, ShortMapsAreRepeated) {
  KnownKernels known;
  const lcu::Soac map = known.kernels.at("segmented_map").bindings.at(0),
                  scan = known.kernels.at("segmented_scan").bindings.at(0);
  lcu::Soac fold = known.kernels.at("segmented_sum").bindings.at(0);
  auto& arena = *known.program.arena;
  fold.pull = {arena.load(map.results[0], fold.pull[0]->type, arena.param(0))};
  lcu::Kernel kernel;
  kernel.bindings = {map, scan, fold};
  kernel.bindings[1].backward = true;
  kernel.returns = {scan.results[0], fold.results[0]};
  using Numbers = std::vector<uint32_t>;
  auto parts = codegen::cuda::splitIntoPasses(kernel, known.program);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].bindings, Numbers({1}));
  EXPECT_EQ(parts[1].bindings, Numbers({0, 2}));
  EXPECT_EQ(parts[0].kernel.returns, std::vector<lcu::VarId>({scan.results[0]}));
  kernel.returns.push_back(map.results[0]);
  parts = codegen::cuda::splitIntoPasses(kernel, known.program);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].bindings, Numbers({0, 1}));
  EXPECT_EQ(parts[1].bindings, Numbers({2}));
}

/// Where the last of several writers to a place stays, the last ones come first, so that those behind them
/// need not write; not where a scan has to go forward.
TEST(PassSplit, LastWritersComeFirst) {
  KnownKernels known;
  const lcu::Soac map = known.kernels.at("segmented_map").bindings.at(0),
                  scan = known.kernels.at("segmented_scan").bindings.at(0);
  auto& arena = *known.program.arena;
  lcu::Soac permute = map;  // numbers its segments
  permute.kind = lcu::SoacKind::Permute;
  permute.pull = {arena.param(0)};
  permute.destination = arena.param(1);
  permute.target = map.space.segments;
  permute.fill = {Scalar::ofInt(ScalarType::Int64, -1)};
  permute.results = {known.program.newVar({"last", lcu::VarKind::Array, ScalarType::Int64, permute.target})};
  lcu::Kernel kernel;
  kernel.bindings = {permute};
  kernel.returns = permute.results;
  auto passes = codegen::cuda::generateKernel(kernel, known.program, "k").passes;
  ASSERT_EQ(passes.size(), 1u);
  EXPECT_EQ(passes[0].grid, codegen::cuda::Grid::Heads);
  EXPECT_TRUE(passes[0].shape.backward);
  kernel.bindings.push_back(scan);
  kernel.returns.push_back(scan.results[0]);
  passes = codegen::cuda::generateKernel(kernel, known.program, "k").passes;
  EXPECT_FALSE(passes[0].shape.backward);
}

/// Of what goes forward only scans of segments fold these, too.
TEST(PassSplit, OtherScansDoNotFoldSegments) {
  KnownKernels known;
  lcu::Kernel kernel = known.kernels.at("segmented_sum_and_squares");
  EXPECT_EQ(codegen::cuda::splitIntoPasses(kernel, known.program).size(), 1u);
  lcu::Soac& scan = kernel.bindings.at(1);
  scan.space = {lcu::SpaceKind::Flat, scan.space.extent, nullptr, 0, nullptr};
  EXPECT_EQ(codegen::cuda::splitIntoPasses(kernel, known.program).size(), 2u);
}

}  // namespace
}  // namespace kelpie::tests
