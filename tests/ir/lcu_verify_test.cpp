#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ir/norm2.h"

namespace kelpie::lcu {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

struct Verify : testing::Test, Norm2 {
  std::deque<Stmt>& stmts() { return program.functions[0].body.stmts; }
  Kernel& kernel(size_t k) { return std::get<Launch>(stmts()[k].node).kernel; }
  Soac& soacAt(size_t k) { return kernel(k).bindings[0]; }
  std::vector<std::string> before() { return verify(program, false); }
  std::vector<std::string> after() { return verify(program, true); }
};

TEST_F(Verify, Norm2IsWellFormed) {
  EXPECT_THAT(before(), ElementsAre());
  EXPECT_THAT(after(), ElementsAre());
}

TEST_F(Verify, ScopesAndSingleBinding) {
  std::swap(stmts()[0], stmts()[3]);
  EXPECT_THAT(before(), Contains(HasSubstr("uses sum1 outside its scope")));
  std::swap(stmts()[0], stmts()[3]);
  stmts().push_back(stmts()[0]);
  EXPECT_THAT(before(), Contains(HasSubstr("sum1 is bound twice")));
}

TEST_F(Verify, UnstoredArraysHaveNoUsersOutside) {
  kernel(1).returns = stmts()[1].results = {count};
  EXPECT_THAT(before(), Contains(HasSubstr("uses gts outside its scope")));
}

TEST_F(Verify, ThunksAreTyped) {
  soacAt(3).pull = {arena().load(xs, ScalarType::Int64, i())};
  EXPECT_THAT(before(), Contains(HasSubstr("an array of float64 where an array of int64")));
  soacAt(3).pull = {arena().load(xs, kFloat, arena().param(1))};
  EXPECT_THAT(before(), Contains(HasSubstr("uses parameter 1 of 1")));
  soacAt(3).pull = {arena().check(arena().op(ScalarOp::Less, i(), arena().size(xs)), element(xs),
                                  Scalar::zero(kFloat), 5, i(), i())};
  EXPECT_THAT(before(), Contains(HasSubstr("error site 5 does not exist")));
  soacAt(3).pull = {};
  EXPECT_THAT(before(), Contains(HasSubstr("1 variables where the types need 0")));
}

TEST_F(Verify, LoopVariablesStayInside) {
  const uint32_t loop = arena().newLoop();
  soacAt(3).pull = {arena().loopVar(loop, 0, kFloat)};
  EXPECT_THAT(before(), Contains(HasSubstr("has no such loop")));
  ExprRef variable = arena().loopVar(loop, 0, kFloat);
  ExprRef one = arena().constant(Scalar::ofFloat(kFloat, 1));
  ExprRef end = arena().loop(loop, {one}, arena().op(ScalarOp::Less, variable, element(xs)),
                             {arena().add(variable, one)})[0];
  soacAt(3).pull = {end};
  EXPECT_THAT(before(), ElementsAre());
  soacAt(3).pull = {arena().add(end, variable)};
  EXPECT_THAT(before(), Contains(HasSubstr("outside the loop")));
}

TEST_F(Verify, SoacRules) {
  soacAt(0).combine.identity = {};
  EXPECT_THAT(before(), Contains(HasSubstr("operator of another width")));
  soacAt(0).combine = sum();
  soacAt(0).space = {SpaceKind::Regular, arena().size(xs), arena().size(xs), 0, arena().index(1)};
  EXPECT_THAT(before(), Contains(HasSubstr("sum1 is a cell of float64 where an array of float64 is due")));
  soacAt(0).space = over(xs);
  soacAt(1).where = element(xs);
  EXPECT_THAT(before(), Contains(HasSubstr("where is not a bool")));
  soacAt(1).kind = SoacKind::Permute;
  EXPECT_THAT(before(), Contains(HasSubstr("destination is missing")));
}

TEST_F(Verify, OnlyUniqueDestinationsMoveValues) {
  Soac& permute = soacAt(3);
  permute.kind = SoacKind::Permute;
  permute.destination = i();
  permute.target = arena().size(xs);
  permute.fill = {Scalar::zero(kFloat)};
  EXPECT_THAT(before(), ElementsAre(HasSubstr("destinations may collide")));
  permute.unique = true;
  EXPECT_THAT(before(), ElementsAre());
}

TEST_F(Verify, PermutesStartFromAFillOrAnArrayOrAnything) {
  Soac& permute = soacAt(3);
  permute.kind = SoacKind::Permute;
  permute.destination = i();
  permute.target = arena().size(xs);
  permute.agreeing = true;
  permute.onto = {xs};
  EXPECT_THAT(before(), ElementsAre());
  permute.where = element(xs);
  EXPECT_THAT(before(), Contains(HasSubstr("where is not a bool")));
  permute.where = arena().op(ScalarOp::Less, i(), arena().index(3));
  permute.fill = {Scalar::zero(kFloat)};
  EXPECT_THAT(before(), ElementsAre(HasSubstr("both a fill and arrays")));
  permute.onto = {};
  EXPECT_THAT(before(), ElementsAre());
  permute.fill = {};
  EXPECT_THAT(before(), ElementsAre());
  permute.onto = {xs, xs};
  EXPECT_THAT(before(), ElementsAre(HasSubstr("another number of arrays")));
}

TEST_F(Verify, CallsBranchesAndLoopsAgreeInType) {
  const VarId n = program.newVar({"n", VarKind::Host, kIndex}),
              m = program.newVar({"m", VarKind::Host, kIndex});
  auto& body = program.entry.body;
  body.stmts.push_back({{n}, HostLet{{arena().index(3)}}, {}});
  EXPECT_THAT(before(), ElementsAre());
  body.stmts.push_back({{}, CallFunction{0, {n}}, {}});
  EXPECT_THAT(before(), ElementsAre(HasSubstr("argument of norm2"), HasSubstr("2 values for 0 variables")));
  body.stmts.pop_back();
  auto yieldsN = std::make_shared<Block>(), yieldsNothing = std::make_shared<Block>();
  yieldsN->results = {n};
  body.stmts.push_back({{m}, HostIf{arena().boolean(true), yieldsN, yieldsNothing}, {}});
  EXPECT_THAT(before(), ElementsAre(HasSubstr("branch: 0 values for 1 variables")));
  body.stmts.pop_back();
  const VarId k = program.newVar({"k", VarKind::Host, kIndex});
  body.stmts.push_back({{m}, HostLoop{{k}, {n}, yieldsN, yieldsN}, {}});
  EXPECT_THAT(before(),
              ElementsAre(HasSubstr("n_8 is a host scalar of int64 where a host scalar of bool is due")));
}

TEST_F(Verify, ColumnsFollowTheLayout) {
  program.resultTypes = {CoreType::sequence({CoreType::sequence({kFloat})})};
  EXPECT_THAT(before(), ElementsAre(HasSubstr("0 variables where the types need 3")));
  program.resultTypes = {};
  const VarId n = program.newVar({"n", VarKind::Host, kIndex});
  program.globals.push_back({4, {CoreType(kFloat)}, {n}});
  EXPECT_THAT(before(), ElementsAre(HasSubstr("a host scalar of float64 is due")));
}

// ---- kernels after fusion ---------------------------------------------------------------------------------

/// Moves the SOAC of statement `from` into the kernel of statement `into`, after what is there.
struct Fused : Verify {
  void fuse(size_t into, size_t from) {
    Soac soac = soacAt(from);
    kernel(into).bindings.push_back(soac);
    for (VarId var : soac.results) kernel(into).returns.push_back(var);
    stmts()[into].results = kernel(into).returns;
    stmts().erase(stmts().begin() + static_cast<ptrdiff_t>(from));
  }
};

TEST_F(Fused, HorizontalFusionOfEqualSpaces) {
  fuse(3, 4);
  EXPECT_THAT(after(), ElementsAre());
  EXPECT_THAT(before(), ElementsAre(HasSubstr("several bindings before fusion")));
}

TEST_F(Fused, ReductionResultsAreNotReadByTheSameKernel) {
  fuse(0, 3);
  EXPECT_THAT(after(), ElementsAre(HasSubstr("may not read sum1")));
}

TEST_F(Fused, OnceMayFinishReductions) {
  const VarId half = cell("half", kFloat);
  ExprRef two = arena().constant(Scalar::ofFloat(kFloat, 2));
  kernel(0).bindings.push_back(
      soac(SoacKind::Once, {}, {arena().op(ScalarOp::Div, arena().host(sum1, kFloat), two)}, {half}));
  kernel(0).returns.push_back(half);
  stmts()[0].results = kernel(0).returns;
  EXPECT_THAT(after(), ElementsAre());
}

TEST_F(Fused, SurvivorsHaveOtherElements) {
  fuse(1, 2);
  EXPECT_THAT(after(), Contains(HasSubstr("takes its size from a result of the same kernel")));
}

TEST_F(Fused, MapsAreReadPointwise) {
  const VarId shifted = array("shifted", arena().size(xs));
  const auto reading = [&](ExprRef position) {
    return soac(SoacKind::Map, over(xs), {arena().load(res1, kFloat, position)}, {shifted});
  };
  kernel(3).bindings.push_back(reading(i()));
  EXPECT_THAT(after(), ElementsAre());
  kernel(3).bindings.back() = reading(arena().sub(arena().sub(arena().size(xs), arena().index(1)), i()));
  EXPECT_THAT(after(), ElementsAre(HasSubstr("may not read res_6")));
}

TEST_F(Fused, EpiloguesReadSegmentedReductionsPerSegment) {
  const VarId offsets = program.newVar({"offsets", VarKind::Array, kIndex});
  program.functions[0].params.push_back(offsets);
  ExprRef segments = arena().sub(arena().size(offsets), arena().index(1));
  const VarId sums = array("sums", segments), roots = array("roots", segments);
  Soac reduce = soac(SoacKind::Reduce, {SpaceKind::Offsets, arena().size(xs), segments, offsets, nullptr},
                     {element(xs)}, {sums});
  reduce.combine = sum();
  stmts().push_back(launch("rows", reduce));
  Kernel& rows = std::get<Launch>(stmts().back().node).kernel;
  rows.bindings.push_back(
      soac(SoacKind::Map, {.extent = segments}, {arena().op(ScalarOp::Sqrt, element(sums))}, {roots}));
  EXPECT_THAT(after(), ElementsAre());
  const Soac epilogue = rows.bindings.back();
  rows.bindings.back().pull = {arena().convert(arena().load(offsets, kIndex, i()), ScalarType::Float64)};
  EXPECT_THAT(after(), ElementsAre());
  const Soac first = rows.bindings.front();
  rows.bindings.front().kind = SoacKind::Scan;
  EXPECT_THAT(after(), Contains(HasSubstr("a map over segments of which the kernel reduces none")));
  rows.bindings.front() = first;
  rows.bindings.back() = epilogue;
  rows.bindings.back().space = {.extent = arena().index(7)};
  EXPECT_THAT(after(), Contains(HasSubstr("bindings over different elements")));
}

}  // namespace
}  // namespace kelpie::lcu
