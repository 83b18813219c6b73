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

/// A map that loops, and what folds, scans or filters its results.
class LoopsTest : public ::testing::Test {
 protected:
  LoopsTest() {
    map_ = known_.kernels.at("segmented_map").bindings.at(0);
    map_.pull = {turns(known_.program.arena->param(0))};
    map_.results = {newArray()};
    fold_ = known_.kernels.at("segmented_sum").bindings.at(0);
  }
  /// How often it takes two away from a number until nothing is left, or another number.
  lcu::ExprRef turns(lcu::ExprRef number, int64_t step = 2) {
    auto& a = *known_.program.arena;
    const uint32_t id = a.newLoop();
    const lcu::ExprRef rest = a.loopVar(id, 0, lcu::kIndex), turn = a.loopVar(id, 1, lcu::kIndex);
    return a.loop(id, {number, a.index(0)}, a.op(ScalarOp::Greater, rest, a.index(0)),
                  {a.op(ScalarOp::Sub, rest, a.index(step)), a.add(turn, a.index(1))})[1];
  }
  lcu::VarId newArray() {
    return known_.program.newVar({"turns", lcu::VarKind::Array, lcu::kIndex, map_.space.extent});
  }
  lcu::ExprRef element(lcu::VarId array) {
    auto& a = *known_.program.arena;
    return a.load(array, lcu::kIndex, a.param(0));
  }
  /// Folds integers.
  void fold(lcu::ExprRef e) {
    auto& a = *known_.program.arena;
    fold_.pull = {e};
    fold_.combine = {{Scalar::ofInt(lcu::kIndex, 0)}, {a.add(a.param(0), a.param(1))}};
    fold_.results = {known_.program.newVar({"sums", lcu::VarKind::Array, lcu::kIndex, fold_.space.segments})};
  }
  size_t passes(std::vector<lcu::VarId> stored) {
    lcu::Kernel kernel{"loops", {map_, fold_}, std::move(stored)};
    kernel.returns.push_back(fold_.results[0]);
    return codegen::cuda::splitIntoPasses(kernel, known_.program).size();
  }

  KnownKernels known_;
  lcu::Soac map_, fold_;
};

/// They have a pass of their own where their results are stored in any case.
TEST_F(LoopsTest, StoredLoopsAreApart) {
  fold(element(map_.results[0]));
  EXPECT_EQ(passes({map_.results[0]}), 2u);
  EXPECT_EQ(passes({}), 1u);
}

/// As much as is stored in any case may be stored beside it.
TEST_F(LoopsTest, LoopsThatStoreLittleMoreAreApart) {
  map_.pull.push_back(turns(map_.pull[0], 3));
  map_.results.push_back(newArray());
  fold(element(map_.results[0]));
  EXPECT_EQ(passes({map_.results[1]}), 2u);
  map_.pull.push_back(turns(map_.pull[0], 5));
  map_.results.push_back(newArray());
  EXPECT_EQ(passes({map_.results[1]}), 1u);
}

/// What is in front of a fold and in a map is computed once.
TEST_F(LoopsTest, SharedLoopsStayTogether) {
  auto& a = *known_.program.arena;
  fold(map_.pull[0]);
  EXPECT_EQ(passes({map_.results[0]}), 1u);
  fold(a.add(element(map_.results[0]), turns(a.param(0), 7)));
  EXPECT_EQ(passes({map_.results[0]}), 2u);
}

/// A loop for each segment is behind the fold of its elements.
TEST_F(LoopsTest, LoopsOfSegmentsStayWithTheirFolds) {
  auto& a = *known_.program.arena;
  fold(a.param(0));
  lcu::Soac epilogue = map_;
  epilogue.space = {lcu::SpaceKind::Flat, fold_.space.segments, nullptr, 0, nullptr};
  epilogue.pull = {turns(a.load(fold_.results[0], lcu::kIndex, a.param(0)))};
  epilogue.results = {
      known_.program.newVar({"turns", lcu::VarKind::Array, lcu::kIndex, fold_.space.segments})};
  const lcu::Kernel kernel{"loops", {fold_, epilogue}, {fold_.results[0], epilogue.results[0]}};
  EXPECT_EQ(codegen::cuda::splitIntoPasses(kernel, known_.program).size(), 1u);
}

/// Where thunks that loop know their segments, and elements are many, tiles have more than one item a thread.
TEST_F(LoopsTest, ManyLoopsHaveLongTiles) {
  map_.pull = {turns(known_.program.arena->param(1))};
  const lcu::Kernel kernel{"loops", {map_}, map_.results};
  const auto passes = codegen::cuda::generateKernel(kernel, known_.program, "k").passes;
  ASSERT_EQ(passes.size(), 1u);
  ASSERT_EQ(passes[0].alternatives.size(), 1u);
  const codegen::cuda::CudaPass& longer = *passes[0].alternatives[0];
  EXPECT_EQ(longer.grid, codegen::cuda::Grid::Heads);
  EXPECT_EQ(passes[0].shape.items(), passes[0].shape.threads);
  EXPECT_EQ(longer.shape.items(), 4 * longer.shape.threads);
  codegen::LaunchExtents extents;
  extents.segments = 1000;
  extents.elements = 1 << 23;
  EXPECT_TRUE(longer.suits(extents));
  extents.elements -= 1;
  EXPECT_FALSE(longer.suits(extents));
}

/// Code of many functions would outgrow the cache of instructions: fewer items, and no copy of it for tiles
/// in one segment.
class FunctionsTest : public LoopsTest {
 protected:
  /// A map of so many sines and quotients of one number.
  codegen::cuda::CudaKernel mapOf(int sines, int quotients, lcu::ExprRef number) {
    auto& a = *known_.program.arena;
    lcu::ExprRef e = a.convert(number, ScalarType::Float64);
    for (int k = 0; k < sines; ++k) e = a.op(ScalarOp::Sin, e);
    for (int k = 0; k < quotients; ++k)
      e = a.op(ScalarOp::Div, e, a.constant(Scalar::ofFloat(ScalarType::Float64, 3)));
    map_.pull = {e};
    map_.results = {
        known_.program.newVar({"results", lcu::VarKind::Array, ScalarType::Float64, map_.space.extent})};
    return codegen::cuda::generateKernel({"functions", {map_}, map_.results}, known_.program, "k");
  }
  static int itemsOf(const codegen::cuda::CudaKernel& kernel) {
    return kernel.passes.at(0).shape.items() / kernel.passes[0].shape.threads;
  }
  static bool copies(const codegen::cuda::CudaKernel& kernel) {
    return codegen::cuda::sourceOf(kernel.passes.at(0)).find("numbers.alone") != std::string::npos;
  }
};

TEST_F(FunctionsTest, MapsOfSegments) {
  const lcu::ExprRef segment = known_.program.arena->param(1);
  const auto two = mapOf(2, 0, segment), three = mapOf(3, 0, segment), quotients = mapOf(2, 1, segment);
  EXPECT_TRUE(copies(two));
  EXPECT_EQ(itemsOf(two), 8);
  EXPECT_FALSE(copies(three));
  EXPECT_EQ(itemsOf(three), 4);
  EXPECT_TRUE(copies(quotients));
  EXPECT_EQ(itemsOf(quotients), 4);
}

TEST_F(FunctionsTest, FlatMaps) {
  map_.space = {lcu::SpaceKind::Flat, map_.space.extent, nullptr, 0, nullptr};
  const lcu::ExprRef element = known_.program.arena->param(0);
  const int usual = itemsOf(mapOf(1, 0, element));
  EXPECT_EQ(itemsOf(mapOf(24 / usual, 0, element)), usual);
  EXPECT_EQ(itemsOf(mapOf(24 / usual, 2, element)), usual / 2);
  EXPECT_EQ(itemsOf(mapOf(48 / usual + 1, 0, element)), usual / 4);
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

/// Ranges scan what they fold, unless that would take long to do again, or something else goes forward.
TEST(PassSplit, RangesScanWhatTheyFold) {
  KnownKernels known;
  auto& arena = *known.program.arena;
  const auto passes = [&](const lcu::Kernel& kernel) {
    return codegen::cuda::splitIntoPasses(kernel, known.program).size();
  };
  lcu::Kernel kernel = known.kernels.at("segmented_sum_of_scan");
  EXPECT_EQ(passes(kernel), 1u);
  lcu::Kernel filtered = kernel;
  filtered.bindings.push_back(known.kernels.at("segmented_filter").bindings.at(0));
  EXPECT_GT(passes(filtered), 1u);
  lcu::Kernel backward = kernel;
  backward.bindings[0].backward = true;
  EXPECT_EQ(passes(backward), 2u);
  lcu::ExprRef& pull = kernel.bindings[0].pull[0];
  for (int turn = 0; turn < 50; ++turn)
    pull = arena.op(ScalarOp::Max, arena.mul(pull, pull), arena.constant(Scalar::ofFloat(pull->type, turn)));
  EXPECT_EQ(passes(kernel), 2u);
}

/// Tiles carry little beside scans; ranges fold what is more.
TEST(PassSplit, RangesFoldMuchBesideScans) {
  KnownKernels known;
  const auto grid = [&](const char* name) {
    const auto passes = codegen::cuda::generateKernel(known.kernels.at(name), known.program, "k").passes;
    return passes.size() == 1 ? passes[0].grid : codegen::cuda::Grid::Single;
  };
  EXPECT_EQ(grid("segmented_sum_and_squares"), codegen::cuda::Grid::Heads);
  EXPECT_EQ(grid("segmented_wide_sum_and_scan"), codegen::cuda::Grid::Heads);
  EXPECT_EQ(grid("segmented_wide_greatest_and_scan"), codegen::cuda::Grid::Ranges);
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
