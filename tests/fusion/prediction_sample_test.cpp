// The time that fusion predicts for a kernel of whose thunks a sample tells.
#include <cmath>

#include "tests/fusion/predicted.h"

namespace kelpie::fusion {
namespace {

TEST(Prediction, PositionsOfASample) {
  TargetCosts costs = free();
  costs.byte = 1;
  costs.besideLoad = 1;
  costs.cachedLoad = 10;
  costs.sharedLoad = 100;
  costs.randomLoad = 1000;
  costs.ownBytes = costs.cacheBytes = 0;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["k"];
  sample.entered = sample.inStep = {100, 0};
  const double inOrder = 8 * 1000 + 8;
  const double bytes = 8e6, all = 100 * bytes;
  const auto perLoad = [&](codegen::ThunkSample::Positions positions) {
    sample.positions = {positions};
    return (predictedOf(costs, kGather, 1000, 1e6, 1, known) - inOrder) / 1000;
  };
  EXPECT_DOUBLE_EQ(perLoad({100, 100, 100, 100, 100, all}), 1000);                        // each elsewhere
  EXPECT_DOUBLE_EQ(perLoad({100, 25, 12.5, 12.5 / 16, 25, all}), 0.125 * 64 + 0.75 * 1);  // side by side
  EXPECT_DOUBLE_EQ(perLoad({100, 100, 100, 25, 100, all}), 64 + 0.5 * (1000 - 64));       // four to a block
  EXPECT_DOUBLE_EQ(perLoad({100, 100, 100, 100, 25, all}), 0.25 * 1000 + 0.75 * 100);  // some shortly before
  EXPECT_DOUBLE_EQ(perLoad({100, 0, 0, 0, 0, all}), 1);  // where another load of the group was
  costs.cacheBytes = bytes / 2;
  EXPECT_DOUBLE_EQ(perLoad({100, 100, 100, 100, 100, all}), 0.5 * 1000 + 0.5 * 100);
  costs.ownBytes = 32;
  EXPECT_DOUBLE_EQ(perLoad({100, 100, 100, 100, 100, 100 * 32}), 10);  // all in one place
}

/// A warp looks at its cache once for all threads that load the same.
TEST(Prediction, SampledPositionsThatAreTheSame) {
  TargetCosts costs = free();
  costs.besideLoad = 10;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["k"];
  sample.entered = sample.inStep = {100, 0};
  const auto perLoad = [&](double sectors) {
    sample.positions = {{100, sectors, sectors, sectors, sectors, 100}};
    return predictedOf(costs, kGather, 1000, 1e6, 1, known) / 1000;
  };
  EXPECT_DOUBLE_EQ(perLoad(0), 10);
  costs.lockStep = true;
  EXPECT_DOUBLE_EQ(perLoad(0), 4);
  EXPECT_DOUBLE_EQ(perLoad(25), 0.75 * 10);
  EXPECT_DOUBLE_EQ(perLoad(100), 0);
}

/// On a GPU, of what a multiprocessor's cache does not hold as it was simulated.
TEST(Prediction, PiecesThatACoreMisses) {
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.cachedLoad = 10;
  costs.sharedLoad = 100;
  costs.cacheBytes = 1e12;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["k"];
  sample.entered = sample.inStep = {100, 0};
  const auto perLoad = [&](double sectors, double blocks, double missed) {
    sample.positions = {{100, sectors, sectors, blocks, sectors, 100 * 8e6, missed, 100}};
    return predictedOf(costs, kGather, 1000, 1e6, 1, known) / 1000;
  };
  EXPECT_NEAR(perLoad(100, 100, 100), 100, 0.1);       // each on its own
  EXPECT_NEAR(perLoad(100, 100, 25), 0.25 * 100, 10);  // the others are in the cache, which goes beside that
  EXPECT_NEAR(perLoad(100, 100, 300), 3 * 100, 0.1);   // they are asked for again and again
  EXPECT_NEAR(perLoad(25, 25. / 16, 25), 0.25 * 65, 1);  // warps load what lies side by side
}

/// The cache of all cores forgets what has not been visited for as many bytes as it holds, of all that
/// passes.
TEST(Prediction, PiecesBetweenWhichAMuchPasses) {
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.randomLoad = 1000;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["k"];
  constexpr double kTable = 32 * 1000,
                   kLoads = 4000;  // each piece is visited four times; 8 bytes pass for each
  sample.entered = sample.inStep = {kLoads, 0};
  sample.positions = {{kLoads, kLoads, kLoads, kLoads, kLoads, kLoads * kTable}};
  const auto missing = [&](double cache) {
    costs.cacheBytes = cache;
    return predictedOf(costs, kGather, kLoads, 1000, 1, known) / kLoads / 1000;
  };
  EXPECT_NEAR(missing(1), 1, 0.01);
  // After 1000 loads, 8 kB have passed, and 32 kB (1 - 1/e) of the table.
  EXPECT_NEAR(missing(8000 + kTable * (1 - std::exp(-1))), std::exp(-1), 0.01);
  EXPECT_NEAR(missing(1e9), 0, 0.01);
}

/// What the next elements load in order, too, comes from memory once, however little of the launch a sample
/// saw.
TEST(Prediction, StencilsOfWhichASampleSawLittle) {
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.randomLoad = 1000;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["k"];
  sample.entered = sample.inStep = {100};
  sample.positions = {{100, 100, 100, 100, 100, 100 * 8e6}};
  const auto of = [&](const std::string& position) {
    return predictedOf(costs,
                       "kernel k { let s: &int64 = REDUCE flat n { i => xs[i] + xs[" + position +
                           "] } (0) { x, y => x + y } return s }\n  return s",
                       1000, 1, 1, known);
  };
  EXPECT_NEAR(of("i + 100"), 0, 1e-6);
  EXPECT_NEAR(of("i * i"), 1000 * 1000, 1e4);
}

/// Of a permute of which the last of several writers stays, as a sample tells whether they meet.
TEST(Prediction, WritersThatMeet) {
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.randomStore = 1000;
  costs.cacheBytes = 0;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["p"];
  sample.entered = sample.inStep = {100};
  constexpr double kPlaces = 1000;  // as many as elements
  const auto writers = [&](double seen, double pairs, double met) {
    sample.positions = {{100, 100, 100, 100, 100, 100 * 8e6, 0, 0, seen, pairs, met}};
    return predictedOf(costs, kScatter, kPlaces, kPlaces, 1, known) / kPlaces / 1000 / 0.85;
  };
  EXPECT_NEAR(writers(0, 0, 0), (1 - std::exp(-1) + 1) / 2, 0.01);     // nobody has looked
  EXPECT_NEAR(writers(100, 4950, 0), 1, 0.01);                         // no two
  EXPECT_NEAR(writers(100, 4950, 4.95), 1 - std::exp(-1), 0.01);       // as many as anywhere
  EXPECT_NEAR(writers(100, 4950, 9.9), (1 - std::exp(-2)) / 2, 0.01);  // at half of the places
  EXPECT_NEAR(writers(100, 4950, 75), 0.25, 0.01);                     // neighbours
  EXPECT_NEAR(writers(10, 45, 0), (1 - std::exp(-1) + 1) / 2, 0.01);   // too few to tell
}

/// Many are brought together, which takes longer where neighbours write far from each other; but not where
/// there are many more places.
TEST(Prediction, ManyWriters) {
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.randomStore = 1000;
  costs.cacheBytes = 0;
  costs.collectedWriter = 1;
  constexpr double kMany = 1 << 22;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["p"];
  sample.entered = sample.inStep = {100};
  const auto perWriter = [&](double sectors, double places) {
    sample.positions = {{100, sectors, sectors, sectors, 100, 100 * 8e6}};
    return predictedOf(costs, kScatter, kMany, places, 1, known) / kMany;
  };
  EXPECT_NEAR(perWriter(100, kMany), 1.4, 0.01);
  EXPECT_NEAR(perWriter(25, kMany), 1, 0.01);
  EXPECT_NEAR(perWriter(62.5, kMany), 1.2, 0.01);
  EXPECT_NEAR(perWriter(100, 15 * kMany), 1.4, 0.01);
  EXPECT_GT(perWriter(100, 17 * kMany), 100);
}

TEST(Prediction, PositionsOfAPermute) {
  TargetCosts costs = free();
  costs.byte = 1;
  costs.permuteElement = 50;
  costs.sharedStore = 90;
  costs.randomStore = 1000;
  costs.cacheBytes = 0;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["p"];
  sample.entered = sample.inStep = {100};
  const double all = 100 * 8e6;
  const auto perElement = [&](codegen::ThunkSample::Positions positions) {
    sample.positions = {positions};
    return (predictedOf(costs, kScatter, 1000, 1e6, 1, known) - 8 * 1000 - 8e6) / 1000;
  };
  EXPECT_DOUBLE_EQ(perElement({100, 100, 100, 100, 100, all}), 1000);     // each elsewhere
  EXPECT_DOUBLE_EQ(perElement({100, 25, 12.5, 12.5 / 16, 25, all}), 50);  // side by side
  EXPECT_DOUBLE_EQ(perElement({100, 100, 50, 5, 100, all}), 90);          // whole granules: 2 * 64 / 2
  EXPECT_DOUBLE_EQ(perElement({100, 100, 100, 100, 0, all}), 90);         // what was visited before
  EXPECT_DOUBLE_EQ(perElement({100, 62.5, 62.5, 62.5, 0, all}), (50 + 90) / 2.);  // half of it scattered
}

/// A warp does both ways of a division if its threads need both.
TEST(Prediction, DivisionsBySampledSizes) {
  const char* const body = R"(
  kernel k { let s: &int64 = REDUCE flat n { i => xs[i] / m } (0) { x, y => x + y } return s }
  return s)";
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.integerDivision = 2;
  costs.longDivision = 7;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["k"];
  sample.entered = sample.inStep = {1000};
  sample.divisions = {{1000, 100, 950}};
  EXPECT_DOUBLE_EQ(predictedOf(costs, body, 1000, 1, 1, known), 700 + 1900);
  sample.divisions = {{1000, 1000, 0}};
  EXPECT_DOUBLE_EQ(predictedOf(costs, body, 1000, 1, 1, known), 7000);
}

/// A value of a frame takes as often as there are depths of stacks in a warp.
TEST(Prediction, FramesAtOtherDepths) {
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.call = 5;
  costs.frameValue = 1;
  const char* const body = R"(
  kernel k { let r: [int64; n] = MAP flat n { i =>
    let t = recursion r1 (k1 = xs[i]) : int64 @0 { if k1 < 2 then k1 else let a = call r1(k1 - 1); b = call r1(k1 - 2) in a - b }
    in t } return r }
  let first: int64 = r[0]
  return first)";
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["k"];
  sample.entered = sample.inStep = {100, 300, 200, 100};
  sample.calls = {{100, 100}, {100, 100}};
  const double alike = predictedOf(costs, body, 100, 1, 1, known);
  sample.calls = {{100, 400}, {100, 100}};
  // Behind the first call n - 2 is needed: the frame has n, and where to go on.
  EXPECT_DOUBLE_EQ(predictedOf(costs, body, 100, 1, 1, known) - alike, 3 * 100 * 1);
  EXPECT_GE(alike, 2 * 100 * 5);
}

TEST(Prediction, BranchesCountAsOftenAsTheyAreEntered) {
  const char* const body = R"(
  kernel k { let s: &int64 = REDUCE flat n { i => if xs[i] > 3 then xs[i] / (xs[i] + m) else 7 } (0) { x, y => x + y } return s }
  return s)";
  TargetCosts costs = free();
  costs.integerDivision = 2;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["k"];
  sample.entered = {100, 25, 0, 0};
  sample.inStep = {100, 50, 0, 0};
  EXPECT_DOUBLE_EQ(predictedOf(costs, body, 1000, 7, 1, known), 2 * 250);
  costs.lockStep = true;
  EXPECT_DOUBLE_EQ(predictedOf(costs, body, 1000, 7, 1, known), 2 * 500);
  EXPECT_DOUBLE_EQ(predictedOf(costs, body, 1000, 7, 1), 2 * 1000);
}

/// piece.
TEST(Prediction, BranchesLoadOfTheSegmentsThatTakeThem) {
  const char* const body = R"(
  kernel k { let s: [int64; m] = REDUCE regular(m, 4, n) { i, s, p => if xs[i] > 3 then ys[s] else 7 } (0) { x, y => x + y } return s }
  let first: int64 = s[0]
  return first)";
  TargetCosts costs = free();
  costs.byte = 1;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["k"];
  const auto taken = [&](double share) {
    sample.entered = {100, 100 * share, 100 - 100 * share, 0};
    sample.inStep = sample.entered;
    return predictedOf(costs, body, 1000, 250, 1, known);
  };
  const double all = 8 * 250, share = 1 - std::pow(0.95, 4);
  EXPECT_DOUBLE_EQ(taken(1) - taken(0), all);
  EXPECT_DOUBLE_EQ(taken(1) - taken(0.05), all * std::pow(1 - share, 4));
}

/// Of an array that only a branch loads, no more pieces are loaded than neighbours in step take the branch.
TEST(Prediction, NeighboursThatTakeABranchTogether) {
  const char* const body = R"(
  kernel k { let s: &int64 = REDUCE flat n { i => if i < m then xs[i] else 7 } (0) { x, y => x + y } return s }
  return s)";
  TargetCosts costs = free();
  costs.byte = 1;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["k"];
  sample.entered = {100, 50, 0, 0};
  sample.inStep = {100, 50, 0, 0};
  EXPECT_DOUBLE_EQ(predictedOf(costs, body, 1000, 500, 1, known), 8 * 500 + 8);
  sample.inStep = {100, 100, 0, 0};
  EXPECT_DOUBLE_EQ(predictedOf(costs, body, 1000, 500, 1, known), 8 * 1000 * (1 - std::pow(0.5, 4)) + 8);
}

/// Work and waits for loads behind branches: who waits does not work, but others may.
TEST(Prediction, WaitsForLoadsInBranches) {
  const char* const body = R"(
  kernel k { let s: &int64 = REDUCE flat n { i => if xs[i] > 3 then ys[xs[i]] else 0 } (0) { x, y => x + y } return s }
  return s)";
  TargetCosts costs = free();
  costs.ownWait = 1;
  costs.sharedWait = 2;
  costs.memoryWait = 4;
  costs.lockStep = true;
  KnownSizes known;
  codegen::ThunkSample& sample = known.samples["k"];
  sample.entered = sample.inStep = {1000, 500, 500};
  const auto perElement = [&](const codegen::ThunkSample::Positions& positions) {
    sample.positions = {positions};
    return predictedOf(costs, body, 1000, 1e6, 1, known) / 1000;
  };
  constexpr double kInOrder = 7 / 8.0;  // for the condition, which eight elements load at a time
  const auto some = [](double lanes) { return lanes / (0.5 + lanes); };
  EXPECT_NEAR(perElement({500, 0, 0, 0, 0, 8e6}), kInOrder + 0.5 * 1, 1e-6);  // where a neighbour was
  EXPECT_NEAR(perElement({500, 500, 500, 500, 500, 500 * 8e6}),
              kInOrder + 0.5 * (1 + some(32) * 2 + some(32) * 4), 1e-6);
  EXPECT_NEAR(perElement({500, 500 / 64.0, 0, 0, 0, 500 * 8e6}), kInOrder + 0.5 * (1 + some(0.5) * 2), 1e-6);
  known.threads["k"] = {kUsualThreads / 2};  // half as many elements at a time
  EXPECT_NEAR(perElement({500, 0, 0, 0, 0, 8e6}), 2 * (kInOrder + 0.5 * 1), 1e-6);
}

}  // namespace
}  // namespace kelpie::fusion
