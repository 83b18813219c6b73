// The time that fusion predicts for a kernel over segments or rows, one constant of the target at a time.
#include <cmath>

#include "tests/fusion/predicted.h"

namespace kelpie::fusion {
namespace {

/// Sums of segments of one length.
std::string sumsOfRegular(int length, const std::string& thunk) {
  return "kernel k { let r: [int64; m] = REDUCE regular(m, " + std::to_string(length) + ", n) { i, s, p => " +
         thunk + " } (0) { x, y => x + y } return r }\n  let first: int64 = r[0]\n  return first";
}

TEST(Prediction, ReductionsOfSegmentsThatNeedTheirNumber) {
  const auto sums = [](const std::string& thunk) { return sumsOfRegular(10, thunk); };
  TargetCosts costs = free();
  costs.foldedElement = 1;
  costs.segmentedElement = 10;
  costs.numberedElement = 100;
  costs.segment = 1000;
  EXPECT_DOUBLE_EQ(predicted(costs, sums("xs[i]"), 500, 50), 500);
  EXPECT_NEAR(predicted(costs, sums("xs[i] + s"), 500, 50), 500 * 100 + 50 * 1000, 100);
}

/// Few elements of a tile are near another segment where segments are long.
TEST(Prediction, LongSegmentsNeedTheirNumberSeldom) {
  TargetCosts costs = free();
  costs.segmentedElement = 1;
  const auto time = [&](int64_t n) {
    return predicted(costs, R"(
  kernel k { let r: [int64; n] = MAP regular(m, 1, n) { i, s, p => xs[i] + s } return r }
  let first: int64 = r[0]
  return first)",
                     n, 10);
  };
  EXPECT_NEAR(time(100), 100, 1);
  EXPECT_LT(time(10'000'000), 100'000);
}

/// Rows are taken eight at a time, the last ones four, two or one: three take as long as four.
TEST(Prediction, FewRowsAtOnce) {
  TargetCosts costs = free();
  costs.integerOperation = 1;
  const char* const kernel = R"(
  kernel k { let r: [int64; m] = REDUCE regular(m, 10, n) { i, s, p => ys[p] - s } (0) { x, y => max(x, y) } return r }
  let first: int64 = r[0]
  return first)";
  EXPECT_DOUBLE_EQ(predicted(costs, kernel, 3000, 3), 3000 + 4000);
  EXPECT_DOUBLE_EQ(predicted(costs, kernel, 11000, 11), 11000 + 12000);
}

/// Rows compare an element once to know whether it is the least, and where that is.
TEST(Prediction, RowsThatFindWhereTheLeastIs) {
  const char* const kernel = R"(
  kernel k { let r: [float64; m], q: [int64; m] = REDUCE regular(m, 10, n) { i, s, p => float64(ys[p] - s), p } (inf, 9223372036854775807)
    { x1, x2, y1, y2 => let t1 = min(x1, y1) in t1, min(if x1 == t1 then x2 else 9223372036854775807, if y1 == t1 then y2 else 9223372036854775807) }
    return r, q }
  let first: int64 = q[0]
  return first)";
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.operation = 1;
  EXPECT_DOUBLE_EQ(predicted(costs, kernel, 1000, 100), 1000);
}

/// Where segments of one length begin is computed beside what maps load and store.
TEST(Prediction, MapsThatComputeTheirSegment) {
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.byte = 1;
  costs.segmentedElement = 3;
  costs.overlap = 1;
  const auto time = [&](const std::string& space) {
    const std::string kernel =
        "kernel k { let r: [int64; n] = MAP " + space + " { i, s, p => xs[i] + ys[s] } return r }";
    return predicted(costs, (kernel + "\n  let first: int64 = r[0]\n  return first").c_str(), 1000, 10);
  };
  EXPECT_DOUBLE_EQ(time("regular(m, 100, n)"), 16 * 1000 + 8 * 10);
}

/// What neighbouring segments read side by side comes from memory once; what a position tells, once for many.
/// Folds that read an array more often have it from a cache.
TEST(Prediction, TransposedReads) {
  TargetCosts costs = free();
  costs.byte = 1;
  costs.lockStep = true;
  const auto time = [&](const std::string& kernel) {
    return predicted(
        costs,
        ("kernel k { let r: " + kernel + " return r }\n  let first: int64 = r[0]\n  return first").c_str(),
        4000, 40);
  };
  const double loaded = 8 * 4000, stored = 8 * 4000, folded = 8 * 40;
  const std::string map = "[int64; n] = MAP regular(m, 100, n) { i, s, p => xs[ys[p] + s] + s }";
  EXPECT_DOUBLE_EQ(time(map), loaded + stored);
  EXPECT_DOUBLE_EQ(
      time("[int64; m] = REDUCE regular(m, 100, n) { i, s, p => xs[p * m + s] } (0) { x, y => x + y }"),
      loaded + folded);
  costs.columnElement = 2;
  EXPECT_NEAR(time(map), loaded + stored + 0.47 * 2 * 4000, 1);
  costs.columnElement = 0;
  costs.sharedLoad = 320;
  const std::string twice = "xs[p * m + s] + xs[p * m + s + 1]";
  EXPECT_DOUBLE_EQ(
      time("[int64; m] = REDUCE regular(m, 100, n) { i, s, p => " + twice + " } (0) { x, y => x + y }"),
      loaded + folded + 4000 * 8 / 32 * 320);
}

/// Of a fold of two indices, what one of them and the position tell serves a tile; of few, nothing does.
/// Short segments go several to a thread.
TEST(Prediction, Products) {
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.productElement = 2;
  const auto time = [&](const std::string& segments, const std::string& places, double m, int length = 40) {
    const std::string at = " * " + std::to_string(length) + " + p]";
    const std::string kernel = "kernel k { let r: [int64; m] = REDUCE regular(" + segments + ", " +
                               std::to_string(length) + ", n) { i, s, p => xs[s / " + places + at +
                               " * ys[s % " + places + at + " } (0) { x, y => x + y } return r }";
    return predicted(costs, (kernel + "\n  let first: int64 = r[0]\n  return first").c_str(), length * m, m);
  };
  // Tiles have 64 of either index; where half of one suffices, it takes 0.7 of the time.
  EXPECT_DOUBLE_EQ(time("4096", "64", 4096), 2 * 40 * 64 * 64);
  EXPECT_DOUBLE_EQ(time("1600", "40", 1600), 2 * 40 * 64 * 64);
  EXPECT_NEAR(time("576", "24", 576), 2 * 40 * 44.8 * 44.8, 1);
  EXPECT_NEAR(time("6400", "80", 6400), 2 * 40 * 108.8 * 108.8, 1);
  EXPECT_DOUBLE_EQ(time("100", "10", 100), 0);
  EXPECT_DOUBLE_EQ(time("1601", "40", 1601), 0);
  EXPECT_DOUBLE_EQ(time("1200", "12", 1200, 3), 0);
  costs.productElement = 0;
  costs.shortSegment = 5;
  costs.shortElement = 2;
  EXPECT_DOUBLE_EQ(time("4096", "64", 4096), 0);
  // 16 lanes for 12 places, and seven times 16 outer indices for 100.
  EXPECT_NEAR(time("1200", "12", 1200, 3), 7 * 16 * 16 * (5 + 3 * 2), 1e-6);
  costs.shortSegment = costs.shortElement = 0;
  costs.integerProduct = 64;  // of the product once for each element, of the places in memory once for a tile
  EXPECT_NEAR(time("1600", "40", 1600), 40 * (64 * 64 * 64 + 2 * 1600), 40 * 1600);
}

TEST(Prediction, SegmentsThatGoThroughThePositionsTogether) {
  const char* const body = R"(
  kernel k { let r: [int64; m] = REDUCE regular(m, n, n * m) { i, s, p => xs[p] } (0) { x, y => x + y } return r }
  let first: int64 = r[0]
  return first)";
  TargetCosts costs = free();
  costs.rowElement = 1;
  costs.segmentedElement = costs.numberedElement = costs.segment = 1000;
  EXPECT_DOUBLE_EQ(predicted(costs, body, 100, 16), 1600);
}

/// On a GPU; elsewhere all segments go through all positions.
TEST(Prediction, PositionsWhoseKeysTellTheSegment) {
  const char* const body = R"(
  kernel k { let r: [int64; m] = REDUCE regular(m, n, n * m) { i, s, p => if xs[p] == s then ys[p] else 0 } (0) { x, y => x + y } return r }
  let first: int64 = r[0]
  return first)";
  TargetCosts costs = free();
  costs.keyedElement = 1;
  costs.rowElement = 3;
  EXPECT_DOUBLE_EQ(predicted(costs, body, 100, 16), 4800);
  costs.lockStep = true;
  EXPECT_DOUBLE_EQ(predicted(costs, body, 100, 16), 16);
  EXPECT_DOUBLE_EQ(predicted(costs, body, 100, 200), 100);
}

/// On a GPU borders of segments take the longer the more columns are reduced; where segments of one length
/// begin is computed; rows that are taken together go through the positions together.
TEST(Prediction, BordersOfSegmentsOnAGpu) {
  const auto sums = [](const std::string& thunk) { return sumsOfRegular(64, thunk); };
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.numberedElement = 1;
  // Half a column for the ends and one for the sum, eight elements a thread; four in five tiles have an end.
  EXPECT_DOUBLE_EQ(predicted(costs, sums("xs[i] + s"), 6400, 100), 0.8 * 6400 * 1.5 / 8);
  EXPECT_LT(predicted(costs, sums("xs[i] + s"), 640000, 100), 640000 / 100);
  const char* const columns = R"(
  kernel k { let r: [int64; m], t: [int64; m], u: [int64; m] = REDUCE regular(m, 64, n) { i, s, p => xs[i] + s, xs[i] - s, s } (0, 0, 0) { x1, x2, x3, y1, y2, y3 => x1 + y1, x2 + y2, x3 + y3 } return r, t, u }
  let first: int64 = r[0] + t[0] + u[0]
  return first)";
  EXPECT_DOUBLE_EQ(predicted(costs, columns, 6400, 100), 6400 * 3.5 / 8 / 1.25);
  costs = free();
  costs.segment = 1;
  const char* const map = R"(
  kernel k { let r: [int64; n] = MAP regular(m, 10, n) { i, s, p => xs[i] + s } return r }
  let first: int64 = r[0]
  return first)";
  EXPECT_DOUBLE_EQ(predicted(costs, map, 100, 10), 10);
  costs.lockStep = true;
  EXPECT_DOUBLE_EQ(predicted(costs, map, 100, 10), 0);
  costs = free();
  costs.rowElement = 1;
  costs.lockStep = true;
  EXPECT_DOUBLE_EQ(predicted(costs, sums("ys[p]"), 64 * 16, 16), 2 * 64);
  EXPECT_DOUBLE_EQ(predicted(costs, sums("ys[p]"), 64 * 3, 3), 64);
}

/// Elements that know their segment load what belongs to it, and wait for what a branch loads.
TEST(Prediction, LookUpsOfSegmentsOnAGpu) {
  const auto kernel = [](const std::string& thunk) { return sumsOfRegular(64, thunk); };
  TargetCosts costs = free();
  costs.besideLoad = 1;
  costs.guardedLoad = 10;
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("xs[i] + s"), 6400, 100), 0);
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("xs[i] + ys[s]"), 6400, 100), 0);
  costs.lockStep = true;
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("xs[i] + s"), 6400, 100), 0);
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("xs[i] + ys[s]"), 6400, 100), 6400);
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("if s > 3 then xs[i] % 9 else p"), 6400, 100), 6400 * 10);
  // Short branches are none; what a segment has is loaded in front of all.
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("if s > 3 then xs[i] else p"), 6400, 100), 0);
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("xs[i] + (if s > 3 then ys[s] * p % 9 else p)"), 6400, 100), 6400);
  // What the next one has is loaded like it, and is next to it in memory.
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("xs[i] + ys[s + 1] - ys[s]"), 6400, 100), 2 * 6400);
  // The next turn of a loop waits in any case.
  costs.besideLoad = 0;
  const char* const loop =
      "let j = loop (k = s) { while k < p next if k > 3 then k + xs[i - k] else k + 1 } in j";
  EXPECT_DOUBLE_EQ(predicted(costs, kernel(loop), 6400, 100), 0);
}

/// Maps load the values of a segment, and where it begins, once for all that needs them.
TEST(Prediction, LookUpsOfMapsOnAGpu) {
  const auto time = [](const std::string& thunk, const std::string& space = "seg(ys, m - 1, n)") {
    TargetCosts costs = free();
    costs.lockStep = true;
    costs.besideLoad = 1;
    costs.guardedLoad = 10;
    const std::string kernel =
        "kernel k { let r: [int64; n] = MAP " + space + " { i, s, p => " + thunk + " } return r }";
    return predicted(costs, kernel + "\n  let first: int64 = r[0]\n  return first", 6400, 101);
  };
  EXPECT_NEAR(time("xs[i] + s"), 0, 1e-6);
  EXPECT_NEAR(time("xs[i] + ys[s]"), 1.4 * 6400, 1e-6);
  EXPECT_NEAR(time("xs[i] + p"), 1.4 * 6400, 1e-6);
  EXPECT_NEAR(time("xs[i] + p", "regular(m - 1, 64, n)"), 0, 1e-6) << "computed";
  EXPECT_NEAR(time("if p > 3 then ys[s] * p % 9 else if p > 1 then ys[s] * p % 7 else xs[i] % 11"),
              2 * 1.4 * 6400, 1e-6);
}

/// What a GPU's warps fold hides behind the tiles that they load ahead.
TEST(Prediction, FoldsOfSegmentsHideOnAGpu) {
  const char* const sums = R"(
  kernel k { let r: [int64; m] = REDUCE regular(m, 64, n) { i, s, p => xs[i] } (0) { x, y => x + y } return r }
  let first: int64 = r[0]
  return first)";
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.byte = 1;
  costs.overlap = 1;
  costs.foldedElement = 1;
  const double bytes = 8 * 6400 + 8 * 100;
  EXPECT_DOUBLE_EQ(predicted(costs, sums, 6400, 100), bytes);
  costs.lockStep = false;
  EXPECT_DOUBLE_EQ(predicted(costs, sums, 6400, 100), bytes + 6400);
}

/// Where segments are long, work hides behind loads as if nobody had to know their number.
TEST(Prediction, LongSegmentsHideWork) {
  const char* const sums = R"(
  kernel k { let r: [int64; m] = REDUCE regular(m, 64, n) { i, s, p => xs[i] + s } (0) { x, y => x + y } return r }
  let first: int64 = r[0]
  return first)";
  TargetCosts costs = free();
  costs.byte = costs.integerOperation = costs.narrow = 1;
  costs.overlap = 1;
  const double bytes = 8 * 102400 + 8 * 100;
  EXPECT_DOUBLE_EQ(predicted(costs, sums, 102400, 100), bytes + 0.5 * 2 * 102400);
}

/// A GPU marks where segments begin: a filter that need not know its elements' segment takes that only.
TEST(Prediction, FiltersThatNeedNotKnowTheSegment) {
  const auto filter = [](const std::string& limit) {
    return R"(
  kernel k { let o: [int64; m + 1], kept: [int64; o[m]] = FILTER regular(m, 10, n) { i, s, p => xs[i] } where { i, s, p => xs[i] > )" +
           limit + R"( } return o, kept }
  let first: int64 = o[0] + kept[0]
  return first)";
  };
  TargetCosts costs = free();
  costs.filterElement = costs.headedElement = 1;
  costs.keptElement = 10;
  EXPECT_NEAR(predicted(costs, filter("3"), 1000, 100), 1000 + 10000, 20);
  costs.lockStep = true;
  EXPECT_DOUBLE_EQ(predicted(costs, filter("3"), 1000, 100), 1000 + 1000);
  EXPECT_NEAR(predicted(costs, filter("s"), 1000, 100), 1000 + 10000, 20);
}

/// An element of a tile that lies in one segment need not look for it.
TEST(Prediction, NumberedReductionsOfFewSegments) {
  const char* const body = R"(
  kernel k { let r: [int64; m - 1] = REDUCE seg(ys, m - 1, n) { i, s, p => xs[i] - s } (0) { x, y => x + y } return r }
  let first: int64 = r[0]
  return first)";
  TargetCosts costs = free();
  costs.segmentedElement = 1;
  costs.lockStep = true;
  EXPECT_NEAR(predicted(costs, body, 1 << 24, 4), 0.3 * (1 << 24), 0.01 * (1 << 24));
  EXPECT_NEAR(predicted(costs, body, 1 << 24, 1 << 22), 1 << 24, 0.01 * (1 << 24));
}

}  // namespace
}  // namespace kelpie::fusion
