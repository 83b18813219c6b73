// How elements of regular spaces read arrays, and what CUDA kernels become of those that read across.
#include "codegen/regular_reads.h"

#include <gtest/gtest.h>

#include "codegen/cuda/cuda_module.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

using codegen::Step;
using codegen::cuda::Grid;

class Regular : public ::testing::Test {
 protected:
  Builder b;
  ExprArena& a = b.arena();
  const VarId offsets = b.globalArray("offsets", ints({0})), xs = b.globalArray("xs", ints({0}));
  const ExprRef s = b.s(), p = b.p(), i = b.i(), width = b.num(11);
  const ExprRef row = b.at(offsets, p);
  const ExprRef across = b.at(xs, a.add(row, s)), along = b.at(xs, a.add(b.at(offsets, s), p)),
                sliding = b.at(xs, a.add(s, p)), bySegment = b.at(xs, s), byPosition = b.at(xs, p),
                random = b.at(xs, b.at(xs, a.add(s, p)));
  const Space space = b.regular(b.num(7), a.size(xs));

  Soac map(ExprRef pull) {
    Soac soac = b.map(space, {pull});
    b.named(soac, "mapped");
    return soac;
  }
  Soac sum(ExprRef pull) {
    Soac soac = b.reduce(space, {pull}, b.operation(ScalarOp::Add, Scalar::ofInt(kI64, 0)));
    b.named(soac, "summed");
    return soac;
  }
  std::vector<Grid> grids(const std::vector<Soac>& bindings) {
    Kernel kernel{"k", bindings, {}};
    for (const Soac& soac : bindings)
      kernel.returns.insert(kernel.returns.end(), soac.results.begin(), soac.results.end());
    std::vector<Grid> grids;
    for (const auto& pass : codegen::cuda::generateKernel(kernel, b.program, "k").passes)
      grids.push_back(pass.grid);
    return grids;
  }
};

TEST_F(Regular, StepsBetweenNeighbours) {
  EXPECT_EQ(codegen::stepOf(s, 1), Step::One);
  EXPECT_EQ(codegen::stepOf(s, 2), Step::None);
  EXPECT_EQ(codegen::stepOf(i, 1), Step::Many);
  EXPECT_EQ(codegen::stepOf(i, 2), Step::One);
  EXPECT_EQ(codegen::stepOf(row, 1), Step::None);
  EXPECT_EQ(codegen::stepOf(row, 2), Step::Many);
  EXPECT_EQ(codegen::stepOf(a.add(row, s), 1), Step::One);
  EXPECT_EQ(codegen::stepOf(a.sub(s, row), 1), Step::One);
  EXPECT_EQ(codegen::stepOf(a.sub(row, s), 1), Step::Many);
  EXPECT_EQ(codegen::stepOf(a.mul(s, b.num(2)), 1), Step::Many);
}

/// Quotients are the same for most neighbours, remainders one more; checks hold; of choices the worse counts.
TEST_F(Regular, StepsOfMostNeighbours) {
  EXPECT_EQ(codegen::stepOf(b.op(ScalarOp::Div, s, width), 1), Step::None);
  EXPECT_EQ(codegen::stepOf(b.op(ScalarOp::Rem, s, width), 1), Step::One);
  EXPECT_EQ(codegen::stepOf(b.op(ScalarOp::Rem, a.mul(s, s), width), 1), Step::Many);
  EXPECT_EQ(codegen::stepOf(b.op(ScalarOp::Min, a.add(s, b.num(1)), width), 1), Step::One);
  const ExprRef test = b.op(ScalarOp::Less, s, width);
  EXPECT_EQ(codegen::stepOf(a.select(test, row, b.num(0)), 1), Step::None);
  EXPECT_EQ(codegen::stepOf(a.select(test, s, row), 1), Step::One);
  EXPECT_EQ(codegen::stepOf(
                a.check(test, s, Scalar::ofInt(kI64, 0), b.program.newSite({{}, "index {0}"}), s, p), 1),
            Step::One);
}

TEST_F(Regular, KindsOfReads) {
  EXPECT_TRUE(codegen::regularReads({bySegment, byPosition}).apart());
  EXPECT_TRUE(codegen::regularReads({across, byPosition}).bySegments());
  EXPECT_FALSE(codegen::regularReads({across, along}).bySegments());
  EXPECT_TRUE(codegen::regularReads({sliding}).bySegments());
  EXPECT_FALSE(codegen::regularReads({sliding, random}).bySegments());
  EXPECT_TRUE(codegen::regularReads({across, random}).bySegments());
  const ExprRef shared = b.at(xs, a.add(b.at(offsets, b.op(ScalarOp::Div, s, width)), p));
  EXPECT_FALSE(codegen::regularReads({shared}).apart());
  EXPECT_TRUE(codegen::regularReads({across, shared}).bySegments());
}

TEST_F(Regular, GridsOfKernels) {
  EXPECT_EQ(grids({map(across)}), std::vector{Grid::Transposed});
  EXPECT_EQ(grids({map(along)}), std::vector{Grid::Heads});
  EXPECT_EQ(grids({map(across), map(along)}), std::vector{Grid::Transposed});
  EXPECT_EQ(grids({sum(across)}), std::vector{Grid::Columns});
  EXPECT_EQ(grids({sum(sliding)}), std::vector{Grid::Columns});
  EXPECT_EQ(grids({sum(along)}), std::vector{Grid::Ranges});
  EXPECT_EQ(grids({sum(a.add(bySegment, byPosition))}), std::vector{Grid::Rows});
}

/// Segments of two indices, if their number is a product, and nothing looks at them in another way.
TEST_F(Regular, SegmentsOfTwoIndices) {
  const VarId n = b.global("n", ints({3}));
  const ExprRef inner = a.host(n, kI64), outer = b.op(ScalarOp::Div, s, inner),
                place = b.op(ScalarOp::Rem, s, inner);
  const ExprRef left = b.at(xs, a.add(b.at(offsets, outer), p)), right = b.at(xs, a.add(row, place));
  const auto found = [&](ExprRef pull, ExprRef segments) {
    Soac soac =
        b.reduce(b.regular(segments, b.num(9)), {pull}, b.operation(ScalarOp::Add, Scalar::ofInt(kI64, 0)));
    b.named(soac, "product");
    const Kernel kernel{"k", {soac}, soac.results};
    const auto indices = codegen::twoIndices(kernel, codegen::analyseKernel(kernel, b.program));
    EXPECT_EQ(codegen::cuda::generateKernel(kernel, b.program, "k").passes[0].innerParameter.has_value(),
              indices.has_value());
    return indices;
  };
  const ExprRef product = a.mul(left, right);
  const auto indices = found(product, a.mul(b.num(5), inner));
  ASSERT_TRUE(indices.has_value());
  EXPECT_EQ(indices->inner, inner);
  EXPECT_EQ(indices->outer, outer);
  EXPECT_EQ(indices->place, place);
  EXPECT_FALSE(found(product, b.num(35)));
  EXPECT_FALSE(found(a.add(product, s), a.mul(b.num(5), inner)));
  EXPECT_FALSE(found(a.add(product, b.op(ScalarOp::Rem, s, width)), a.mul(b.num(5), inner)));
}

/// What products load: by which index, and what lies side by side. All of it, and with nothing that can fail.
TEST_F(Regular, Products) {
  const VarId n = b.global("n", ints({3}));
  const ExprRef inner = a.host(n, kI64), outer = b.op(ScalarOp::Div, s, inner),
                place = b.op(ScalarOp::Rem, s, inner);
  const ExprRef byRow = b.at(xs, a.add(a.mul(outer, width), p)),
                byColumn = b.at(xs, a.add(a.mul(p, inner), place)),
                byPlaceRow = b.at(xs, a.add(a.mul(place, width), p));
  const auto found = [&](ExprRef pull) {
    Soac soac = b.reduce(b.regular(a.mul(b.num(5), inner), b.num(9)), {pull},
                         b.operation(ScalarOp::Add, Scalar::ofInt(kI64, 0)));
    b.named(soac, "product");
    const Kernel kernel{"k", {soac}, soac.results};
    const auto product = codegen::productOf(kernel, codegen::analyseKernel(kernel, b.program), b.program);
    const auto passes = codegen::cuda::generateKernel(kernel, b.program, "k").passes;
    const auto& alternatives = passes[0].alternatives;
    EXPECT_EQ(!alternatives.empty() && alternatives[0]->grid == Grid::Products, product.has_value());
    return product;
  };
  const auto columns = found(a.mul(byRow, byColumn));
  ASSERT_TRUE(columns.has_value());
  ASSERT_EQ(columns->values.size(), 2u);
  for (const codegen::ProductValue& v : columns->values) {
    EXPECT_EQ(v.value, v.ofOuter ? byRow : byColumn);
    EXPECT_EQ(v.byPosition, v.ofOuter);
  }
  const auto rows = found(a.mul(a.add(byRow, b.num(1)), a.sub(byPlaceRow, p)));
  ASSERT_TRUE(rows.has_value());  // what is computed of a load alone is computed once, too
  for (const codegen::ProductValue& v : rows->values) {
    EXPECT_EQ(v.value->kind, lcu::ExprKind::Op);
    EXPECT_TRUE(v.byPosition);
  }
  EXPECT_TRUE(found(a.select(b.op(ScalarOp::Less, byRow, byColumn), p, outer)));
  EXPECT_FALSE(found(a.mul(byRow, outer)));  // nothing by place
  EXPECT_FALSE(found(a.mul(a.mul(byRow, byColumn), b.at(xs, a.add(outer, place)))));
  EXPECT_FALSE(found(a.mul(byRow, a.select(b.op(ScalarOp::Less, outer, place), byColumn, b.num(0)))));
  const lcu::SiteId site = b.program.newSite({{}, "index {0}"});
  const ExprRef test = b.op(ScalarOp::Less, outer, place);
  EXPECT_FALSE(
      found(a.mul(byRow, a.check(test, byColumn, Scalar::ofInt(kI64, 0), site, b.num(0), b.num(0)))));
}

/// Tiles are for launches that fill enough of them: ranges take their time for elements, tiles for positions.
/// Threads that have several segments are for short ones.
TEST_F(Regular, ProductsSuitWhatFillsTiles) {
  codegen::cuda::CudaPass pass, shorts;
  pass.grid = Grid::Products;
  shorts.grid = Grid::Shorts;
  codegen::LaunchExtents extents;
  extents.length = 64;
  const auto suits = [&](const codegen::cuda::CudaPass& way, int64_t outers, int64_t places) {
    extents.inner = places;
    extents.segments = outers * places;
    extents.elements = extents.segments * extents.length;
    return way.suits(extents);
  };
  EXPECT_TRUE(suits(pass, 32, 16));
  EXPECT_TRUE(suits(pass, 100000, 5));
  EXPECT_TRUE(suits(pass, 5, 100000));
  EXPECT_FALSE(suits(pass, 100000, 2));
  EXPECT_FALSE(suits(pass, 16, 4));
  EXPECT_FALSE(suits(pass, 1000, 0));
  EXPECT_FALSE(suits(shorts, 100000, 2));
  extents.length = 3;
  EXPECT_TRUE(suits(shorts, 100, 9));
  EXPECT_TRUE(suits(shorts, 100000, 2));
  EXPECT_FALSE(suits(shorts, 1, 100000));  // a thread has eight outer indices
  EXPECT_FALSE(suits(shorts, 100000, 0));
  EXPECT_FALSE(suits(pass, 100, 9));
  pass.insteadOfColumns = true;  // which take less time
  EXPECT_FALSE(suits(pass, 100, 32));
  extents.length = 64;
  EXPECT_TRUE(suits(pass, 100, 64));
  EXPECT_FALSE(suits(pass, 100, 5));
}

/// Of columns that a warp has lanes for, threads have one each.
TEST_F(Regular, FewColumns) {
  const Soac soac = sum(across);
  const auto passes = codegen::cuda::generateKernel({"k", {soac}, soac.results}, b.program, "k").passes;
  EXPECT_GT(passes[0].shape.rows, 1);
  ASSERT_EQ(passes[0].alternatives.size(), 1u);
  const codegen::cuda::CudaPass& few = *passes[0].alternatives[0];
  EXPECT_EQ(few.grid, Grid::Columns);
  EXPECT_EQ(few.shape.rows, 1);
  EXPECT_GT(few.blocksAtOnce, passes[0].blocksAtOnce);
  codegen::LaunchExtents extents;
  extents.segments = 32;
  EXPECT_TRUE(few.suits(extents));
  extents.segments = 33;
  EXPECT_FALSE(few.suits(extents));
}

/// Each warp that runs at a time is in a range of its own, and goes from there to others.
TEST_F(Regular, StreamsOfRanges) {
  codegen::cuda::CudaPass pass;
  pass.grid = Grid::Ranges;
  pass.shape.threads = 64;
  pass.nearBytes = 1;
  codegen::LaunchExtents extents;
  extents.elements = int64_t{1} << 30;
  extents.segments = 1 << 20;
  extents.gatheredBytes = 4;
  extents.blocksAtOnce = 6;
  EXPECT_EQ(pass.streams(extents).number, 2 * 132 * 6);
  EXPECT_EQ(pass.streams(extents).rounds, 4);
  EXPECT_EQ(pass.streams(extents).tile, 32 * pass.shape.rows * pass.shape.width);
  EXPECT_EQ(pass.streams(extents).together, 2 * 6);  // warps of a multiprocessor
  extents.blocksAtOnce = 0;                          // unknown: as many as there may be
  EXPECT_EQ(pass.streams(extents).number, 2 * pass.maxChunks);
  pass.grid = Grid::Tiles;
  EXPECT_EQ(pass.streams(extents).number, 1);
  extents.blocksAtOnce = 6;
  EXPECT_EQ(pass.streams(extents).tile, pass.shape.items());
  EXPECT_EQ(pass.streams(extents).together, 6);
}

/// Maps that read across leave their results to the folds that read them.
TEST_F(Regular, TransposedMapsAreAPassOfTheirOwn) {
  const Soac made = map(across), others = map(along);
  const Soac folded = sum(b.at(made.results[0], i));
  EXPECT_EQ(grids({made, folded}), (std::vector{Grid::Transposed, Grid::Ranges}));
  EXPECT_EQ(grids({others, sum(b.at(others.results[0], i))}), std::vector{Grid::Ranges});
  EXPECT_EQ(grids({made, others, folded}), (std::vector{Grid::Transposed, Grid::Ranges}));
}

}  // namespace
}  // namespace kelpie::testing
