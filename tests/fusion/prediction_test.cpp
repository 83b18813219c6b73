// The time that fusion predicts for a kernel, one constant of the target at a time.
#include <cmath>

#include "fusion/kernel_time.h"
#include "tests/fusion/predicted.h"
#include "tests/fusion/random_program.h"

namespace kelpie::fusion {
namespace {

using kelpie::testing::RandomProgram;

const char* const kSum = R"(
  kernel k { let s: &int64 = REDUCE flat n { i => xs[i] / (xs[i] + m) } (0) { x, y => x + y } return s }
  return s)";
const char* const kFilteredSum = R"(
  kernel f { let c: &int64, kept: [int64; c] = FILTER flat n { i => xs[i] } where { i => xs[i] > 3 } return c, kept }
  kernel k { let s: &int64 = REDUCE flat c { i => kept[i] } (0) { x, y => x + y } return s }
  return s)";

TEST(Prediction, SizesOfGlobalsCount) {
  TargetCosts costs = free();
  costs.byte = 1;
  EXPECT_DOUBLE_EQ(predicted(costs, kSum, 1000, 7), 8 * 1000 + 8);
}

TEST(Prediction, ArithmeticHidesAsFarAsItOverlaps) {
  TargetCosts costs = free();
  costs.byte = 1;
  costs.integerDivision = 2;
  EXPECT_DOUBLE_EQ(predicted(costs, kSum, 1000, 7), 8 * 1000 + 8 + 2 * 1000);
  costs.overlap = 0.5;
  EXPECT_DOUBLE_EQ(predicted(costs, kSum, 1000, 7), 8 * 1000 + 8 + 0.5 * 2 * 1000);
}

TEST(Prediction, GathersCostWhatTheCachesDoNotHold) {
  TargetCosts costs = free();
  costs.cachedLoad = 1;
  costs.sharedLoad = 10;
  costs.randomLoad = 100;
  costs.ownBytes = 80;
  costs.cacheBytes = 800;
  EXPECT_DOUBLE_EQ(predicted(costs, kGather, 1000, 10), 1000);
  EXPECT_DOUBLE_EQ(predicted(costs, kGather, 1000, 100), 1000 * (0.1 * 1 + 0.9 * 10));
  EXPECT_DOUBLE_EQ(predicted(costs, kGather, 1000, 1000), 1000 * (0.01 * 1 + 0.09 * 10 + 0.9 * 100));
}

TEST(Prediction, AFilterThatIsACondition) {
  TargetCosts costs = free();
  costs.filterElement = 3;
  EXPECT_DOUBLE_EQ(predicted(costs, kFilteredSum, 1000, 1), 0);
}

TEST(Prediction, KernelsWithScansPassTwice) {
  const char* const scan = R"(
  kernel k { let r: [int64; n] = SCAN flat n { i => xs[i] } (0) { x, y => x + y } return r }
  let last: int64 = r[0]
  return last)";
  TargetCosts costs = free();
  costs.byte = 1;
  costs.scanElement = 1;
  costs.passes = 2;
  EXPECT_DOUBLE_EQ(predicted(costs, scan, 1000, 1), 2 * 8000 + 8000 + 1000);
}

/// What two filters load for those that they keep comes once.
TEST(Prediction, FiltersThatShareWhatTheyLoad) {
  TargetCosts costs = free();
  costs.guardedLoad = 1;
  const auto time = [&](const std::string& second) {
    const std::string kernel = R"(
  kernel k {
    let a: &int64, kept: [int64; a] = FILTER flat n { i => xs[i] } where { i => i > 10 }
    let b: &int64, others: [int64; b] = FILTER flat n { i => )" +
                               second + R"( } where { i => i < 5 }
    return a, kept, b, others }
  let first: int64 = kept[0]
  let second: int64 = others[0]
  let both: int64 = first + second
  return both)";
    return predicted(costs, kernel.c_str(), 1000, 1000);
  };
  EXPECT_DOUBLE_EQ(time("xs[i]"), 1000);
  EXPECT_DOUBLE_EQ(time("ys[i]"), 2000);
}

TEST(Prediction, CallsOfRecursions) {
  TargetCosts costs = free();
  costs.call = 5;
  const char* const kernel = R"(
  kernel k { let r: [int64; n] = MAP flat n { i =>
    let t = recursion r1 (k1 = xs[i]) : int64 @0 { if k1 < 2 then k1 else let a = call r1(k1 - 1); b = call r1(k1 - 2) in a + b }
    in t } return r }
  let first: int64 = r[0]
  return first)";
  EXPECT_GE(predicted(costs, kernel, 100, 10), 500);
}

/// What follows `and` is looked at half of the time.
TEST(Prediction, LoadsThatAreNotNeeded) {
  TargetCosts costs = free();
  costs.randomLoad = costs.sharedLoad = costs.cachedLoad = 1;
  const char* const text = R"(
  kernel p { let bs: [bool; m] = PERMUTE flat n { i => xs[i] > 3 } to { i => xs[i] } target m fill (false) return bs }
  kernel k { let s: &int64 = REDUCE flat n { i => if bs[xs[i]] OP bs[xs[i] * 3] then 1 else 0 } (0) { x, y => x + y } return s }
  return s)";
  const auto with = [&](const std::string& op) {
    std::string kernel = text;
    kernel.replace(kernel.find("OP"), 2, op);
    return predictedOf(costs, kernel, 100, 10, 2);
  };
  EXPECT_LT(with("and"), with("=="));
  EXPECT_EQ(with("and"), with("or"));
}

const char* const kTwoFilters = R"(
  kernel f { let c: &int64, kept: [int64; c] = FILTER flat n { i => xs[i] } where { i => xs[i] > 3 } return c, kept }
  kernel g { let d: &int64, rest: [int64; d] = FILTER flat n { i => xs[i] } where { i => xs[i] < 2 } return d, rest }
  let sum: int64 = kept[0] + rest[0]
  return sum)";
// What a permute of n elements to m places has filled takes an element of xs.
const char* const kTakeFilled = R"(
  kernel p { let w: [int64; m] = PERMUTE flat n { i => i } to { i => xs[i] } target m fill (-1) return w }
  kernel k { let s: &int64 = REDUCE flat m { i => if w[i] >= 0 then xs[w[i] + 0] else 0 } (0) { x, y => x + y } return s }
  return s)";

TEST(Prediction, FiltersAfterTheFirstOfAKernel) {
  TargetCosts costs = free();
  costs.filterElement = 1e-9;
  costs.furtherFilter = 3;
  EXPECT_NEAR(predicted(costs, kTwoFilters, 100, 10), 300, 1e-3);
}

TEST(Prediction, GathersOfWhatAPermuteHasFilled) {
  TargetCosts costs = free();
  costs.randomLoad = costs.sharedLoad = costs.cachedLoad = 1;
  // As many elements as places: between 63 % and all of them are filled.
  EXPECT_NEAR(predictedOf(costs, kTakeFilled, 1000, 1000, 2), 1000 * (1 + (1 - std::exp(-1))) / 2, 1e-6);
  // Twice as many places: at most a half.
  EXPECT_NEAR(predictedOf(costs, kTakeFilled, 1000, 2000, 2), 2000 * (0.5 + (1 - std::exp(-0.5))) / 2, 1e-6);
}

TEST(Prediction, IntegersByTheInstructionsOfAGpu) {
  const auto of = [](const std::string& value, bool gpu) {
    TargetCosts costs = free();
    costs.lockStep = gpu;
    costs.integerOperation = 1;
    costs.integerProduct = 1;
    costs.constantDivision = 10;
    costs.narrow = 0.5;
    return predicted(costs,
                     R"(
  kernel k { let r: [int64; n] = MAP flat n { i => )" +
                         value + R"( } return r }
  let first: int64 = r[0]
  return first)",
                     1000, 1) /
           1000;
  };
  EXPECT_DOUBLE_EQ(of("xs[i] + 77", true), 1);
  EXPECT_DOUBLE_EQ(of("xs[i] + 77", false), 1);
  EXPECT_DOUBLE_EQ(of("min(xs[i], i)", true), 2.7);  // a comparison, and a choice of both words
  EXPECT_DOUBLE_EQ(of("min(xs[i], i)", false), 1);
  // Of what is cut down to a word, no more than one is computed.
  EXPECT_DOUBLE_EQ(of("(xs[i] + 77) and 4294967295", true), 0.5 + 1.1 * 0.5);
  EXPECT_DOUBLE_EQ(of("(xs[i] + 77) and 1099511627775", true), 1 + 1.1);  // two words
  // Compilers drop what bits tell.
  const auto ofByte = [&](const std::string& test) {
    return of("let v = xs[i] and 255 in int64(" + test + ")", true);
  };
  EXPECT_DOUBLE_EQ(ofByte("v < 255") - ofByte("v < 256"), 1.3 * 0.5);
  EXPECT_DOUBLE_EQ(ofByte("v >= 0 and v < 256"), ofByte("v < 256"));
  EXPECT_DOUBLE_EQ(ofByte("v > 254") - ofByte("v > 255"), 1.3 * 0.5);
  EXPECT_DOUBLE_EQ(ofByte("v == 0") - ofByte("v == 256"), 1.3 * 0.5);
  // What may be a word is looked at, products are hardly ever one, and what is known to be one is divided
  // quickly.
  EXPECT_DOUBLE_EQ(of("xs[i] / 10", true), 3.5);
  EXPECT_DOUBLE_EQ(of("xs[i] / 10", false), 10);
  EXPECT_DOUBLE_EQ(of("xs[i] / 10000000000", true), 6);
  EXPECT_DOUBLE_EQ(of("(xs[i] * i) / 10", true), 1 + 6);
  EXPECT_DOUBLE_EQ(of("(xs[i] and 1023) / 10", true), 0.5 * 1.1 + 2.5);
}

TEST(Prediction, WritersThatLookWhoHasBeenThere) {
  const auto perElement = [](const std::string& attribute, double n, double m, double crowded) {
    TargetCosts costs = free();
    costs.lockStep = true;
    costs.cacheBytes = 1e9;
    costs.sharedLoad = 10;
    costs.sharedStore = 100;
    costs.crowdedBytes = crowded;
    return predicted(costs,
                     R"(
  kernel p { let w: [int64; m] = PERMUTE flat n { i => i } to { i => xs[i] } target m fill (-1))" +
                         attribute +
                         R"( return w }
  let first: int64 = w[0]
  return first)",
                     n, m) /
           n;
  };
  const double writers = (1 - std::exp(-4.0) + 1) / 2 / 4;  // of four to a place
  EXPECT_NEAR(perElement("", 4e6, 1e6, 0), 10 + writers * 100, 1e-5);
  EXPECT_DOUBLE_EQ(perElement(" agreeing", 4e6, 1e6, 0), 100);
  EXPECT_DOUBLE_EQ(perElement(" agreeing", 4e6, 1e6, 8e6), 200);  // those to one piece take turns
}

TEST(Prediction, KernelsThatOnlyStore) {
  const char* const fill = R"(
  kernel k { let r: [int64; n] = MAP flat n { i => i } return r }
  let last: int64 = r[0]
  return last)";
  const char* const copy = R"(
  kernel k { let r: [int64; n] = MAP flat n { i => xs[i] } return r }
  let last: int64 = r[0]
  return last)";
  TargetCosts costs = free();
  costs.byte = 1;
  costs.storedByte = 1.5;
  EXPECT_DOUBLE_EQ(predicted(costs, fill, 1000, 1), 1.5 * 8000);
  EXPECT_DOUBLE_EQ(predicted(costs, copy, 1000, 1), 2 * 8000);
}

TEST(Prediction, DivisionsByConstants) {
  const auto body = [](const std::string& divisor) {
    return R"(
  kernel k { let s: &int64 = REDUCE flat n { i => xs[i] / )" +
           divisor + R"( } (0) { x, y => x + y } return s }
  return s)";
  };
  TargetCosts costs = free();
  costs.constantDivision = 2;
  costs.integerDivision = 7;
  EXPECT_DOUBLE_EQ(predicted(costs, body("10"), 1000, 1), 2000);
  EXPECT_DOUBLE_EQ(predicted(costs, body("m"), 1000, 1), 7000);
}

/// What only a branch reads of segments is loaded for those of which an element takes the branch, piece by
/// What every element computes, a branch of another member need not.
TEST(Prediction, BranchesShareWhatAllElementsCompute) {
  const char* const body = R"(
  kernel k { let s: &int64 = REDUCE flat n { i => xs[i] / (xs[i] + m) } (0) { x, y => x + y }
    let r: [int64; n] = MAP flat n { i => if xs[i] > 3 then xs[i] / (xs[i] + m) else 7 } return s, r }
  let first: int64 = r[0]
  return first)";
  TargetCosts costs = free();
  costs.integerDivision = 2;
  EXPECT_DOUBLE_EQ(predicted(costs, body, 1000, 7), 2 * 1000);
}

/// Places that a scan of the kernel tells lie side by side.
TEST(Prediction, GathersAtPlacesOfAScan) {
  const auto kernel = [](const std::string& place) {
    return R"(
  kernel k { let r: [int64; n] = SCAN flat n { i => if xs[i] > 3 then 1 else 0 } (0) { x, y => x + y }
    let s: &int64 = REDUCE flat n { i => ys[)" +
           place + R"(] } (0) { x, y => x + y } return s }
  return s)";
  };
  TargetCosts costs = free();
  costs.randomLoad = costs.sharedLoad = costs.cachedLoad = 1;
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("i - r[i]"), 1000, 1000), 0);
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("max(r[i], if xs[i] > 3 then i else 0)"), 1000, 1000), 0);
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("if xs[i] > 3 then r[i] else i"), 1000, 1000), 0);
  EXPECT_NEAR(predicted(costs, kernel("i * r[i]"), 1000, 1000), 1000, 1);
  EXPECT_NEAR(predicted(costs, kernel("max(r[i], xs[i])"), 1000, 1000), 1000, 1);
}

/// Places that count from the end lie side by side, too.
TEST(Prediction, LoadsFromTheEnd) {
  const auto kernel = [](const std::string& place) {
    return "kernel k { let s: &int64 = REDUCE flat n { i => ys[" + place +
           "] } (0) { x, y => x + y } return s }\n  return s";
  };
  TargetCosts costs = free();
  costs.byte = 1;
  costs.randomLoad = costs.sharedLoad = costs.cachedLoad = 100;
  EXPECT_DOUBLE_EQ(predicted(costs, kernel("m + i * -1"), 1000, 1000), 8 * 1000 + 8);
  EXPECT_GT(predicted(costs, kernel("m + i * -2"), 1000, 1000), 50 * 1000);
}

/// On a GPU a filter hides more of what it computes if it loads in order than if it waits for gathers.
TEST(Prediction, FiltersThatLoadInOrderHideMore) {
  TargetCosts costs = free();
  costs.byte = costs.integerOperation = 1;
  costs.lockStep = true;
  costs.filterElement = 1e-9;
  const std::string inOrder =
      "kernel k { let c: &int64, kept: [int64; c] = FILTER flat n { i => i } where { i => xs[i] + 1 > 3 } "
      "return c, kept }\n  let first: int64 = kept[0]\n  return first";
  const double hidden = predicted(costs, inOrder, 1000, 1000);
  costs.filterOverlap = 0.5;  // of those that wait
  EXPECT_DOUBLE_EQ(predicted(costs, inOrder, 1000, 1000), hidden);
  std::string gathers = inOrder;
  gathers.replace(gathers.find("xs[i]"), 5, "ys[xs[i]]");
  costs.sharedLoad = 1;
  costs.cacheBytes = 1e9;
  const double half = predicted(costs, gathers, 1000, 1000);
  costs.filterOverlap = 0;
  EXPECT_GT(predicted(costs, gathers, 1000, 1000), half);
}

/// A value that is chosen has the bits of the choices, and is read as far as the choice is.
TEST(Prediction, BitsOfChoices) {
  const auto body = [](const std::string& value) {
    return R"(
  kernel k { let s: &int64 = REDUCE flat n { i => )" +
           value + R"( } (0) { x, y => x + y } return s }
  return s)";
  };
  TargetCosts costs = free();
  costs.lockStep = true;
  costs.constantDivision = 8;
  costs.integerDivision = 10;
  EXPECT_DOUBLE_EQ(predicted(costs, body("(if xs[i] > 3 then xs[i] and 255 else 7) / 10"), 100, 1), 100 * 2);
  EXPECT_DOUBLE_EQ(predicted(costs, body("(if xs[i] > 3 then xs[i] else 7) / 10000000000"), 100, 1),
                   100 * 4.8);
  costs.constantDivision = 0;
  costs.integerProduct = 1;
  costs.narrow = 0.5;
  EXPECT_DOUBLE_EQ(predicted(costs, body("(if xs[i] > 3 then xs[i] * xs[i] else 7) and 255"), 100, 1), 50);
}

TEST(Prediction, DivisionsByPowersOfTwo) {
  const auto body = [](const std::string& divisor) {
    return R"(
  kernel k { let s: &float64 = REDUCE flat n { i => float64(xs[i]) / )" +
           divisor + R"( } (0.0) { x, y => x + y } return s }
  return s)";
  };
  TargetCosts costs = free();
  costs.division = 7;
  EXPECT_DOUBLE_EQ(predicted(costs, body("10.0"), 100, 1), 700);
  EXPECT_DOUBLE_EQ(predicted(costs, body("0.25"), 100, 1), 0);
  EXPECT_DOUBLE_EQ(predicted(costs, body("16777216.0"), 100, 1), 0);
}

/// A GPU stores offsets in 32 bits.
TEST(Prediction, ShortOffsets) {
  const char* const body = R"(
  kernel o { let offsets: [int64; m + 1] = SCAN total flat m { i => ys[i] } (0) { x, y => x + y } return offsets }
  kernel k { let r: [int64; m] = REDUCE seg(offsets, m, n) { i, s, p => xs[i] } (0) { x, y => x + y } return r }
  let first: int64 = r[0]
  return first)";
  TargetCosts costs = free();
  costs.byte = 1;
  const double others = 8 * 100 + 8 * 1000 + 8 * 100;  // lengths, elements, sums
  EXPECT_DOUBLE_EQ(predictedOf(costs, body, 1000, 100, 2), others + 2 * 8 * 101);
  costs.shortOffsets = true;
  EXPECT_DOUBLE_EQ(predictedOf(costs, body, 1000, 100, 2), others + 2 * 4 * 101);
}

/// Sorted keys have the bits of the keys.
TEST(Prediction, DivisionsOfSortedKeys) {
  const auto body = [](const std::string& key) {
    return R"(
  kernel k { let keys: [int64; n] = MAP flat n { i => )" +
           key + R"( } return keys }
  let order: [int64; n], sorted: [int64; n] = grade sort keys over flat n
  kernel d { let s: &int64 = REDUCE flat n { i => sorted[i] / m } (0) { x, y => x + y } return s }
  let first: int64 = s + order[0]
  return first)";
  };
  TargetCosts costs = free();
  costs.integerDivision = 3;
  costs.longDivision = 11;
  EXPECT_DOUBLE_EQ(predictedOf(costs, body("xs[i] + 7"), 100, 5, 2), 300);
  EXPECT_DOUBLE_EQ(predictedOf(costs, body("xs[i] * 7000000007"), 100, 5, 2), 1100);
}

TEST(Prediction, ArithmeticOfIntegersHidesBehindThatOfFloats) {
  const char* const body = R"(
  kernel k { let s: &float64 = REDUCE flat n { i => float64(xs[i] / (xs[i] + m)) / (float64(xs[i]) + 0.5) } (0.0) { x, y => x + y } return s }
  return s)";
  TargetCosts costs = free();
  costs.integerDivision = 2;
  costs.division = 5;
  EXPECT_DOUBLE_EQ(predictedOf(costs, body, 1000, 7, 1), 7 * 1000);
  costs.pipesOverlap = 1;
  EXPECT_DOUBLE_EQ(predictedOf(costs, body, 1000, 7, 1), 5 * 1000);
}

/// Tiles take longer if they carry three words, and still longer if more. (How many elements a tile has is no
/// concern here but that it is a power of two.)
TEST(Prediction, TilesThatCarryManyWords) {
  const auto itemsPer = [](const std::string& space, const std::string& indices, double time) {
    const std::string body = R"(
  kernel k { let a: [int64; n], b: [int64; n], c: [int64; n] = SCAN )" +
                             space + " { " + indices + R"( => xs[i], xs[i] + 1, xs[i] + 2 }
    (0, 0, 0) { x1, x2, x3, y1, y2, y3 => x1 + y1, x2 + y2, x3 + y3 } return a, b, c }
  let first: int64 = a[0]
  return first)";
    TargetCosts costs = free();
    costs.scannedTile = 1;
    costs.lockStep = true;
    constexpr double kElements = 1 << 24;
    return kElements * time / predicted(costs, body, kElements, 4096);
  };
  const auto isPowerOfTwo = [](double x) { return std::abs(std::log2(x) - std::round(std::log2(x))) < 1e-6; };
  EXPECT_TRUE(isPowerOfTwo(itemsPer("flat n", "i", 1.35)));
  EXPECT_TRUE(isPowerOfTwo(itemsPer("seg(ys, m - 1, n)", "i, s, p", 1.8)));
}

/// Schedules do not depend on them, so only who asks gets them.
TEST(Prediction, IsLeftOutWhereNobodyAsks) {
  FusionOptions silent;
  silent.predict = false;
  int kernels = 0;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    RandomProgram one(seed, 12, false), other(seed, 12, false);
    const FusionReport without = fuse(one.b.program, silent), with = fuse(other.b.program, {});
    EXPECT_EQ(lcu::toString(one.b.program), lcu::toString(other.b.program));
    ASSERT_EQ(with.regions.size(), without.regions.size());
    for (size_t r = 0; r < with.regions.size(); ++r) {
      EXPECT_EQ(with.regions[r].strategies.at(0).objective, without.regions[r].strategies.at(0).objective);
      ASSERT_EQ(with.regions[r].clusters.size(), without.regions[r].clusters.size());
      for (size_t c = 0; c < with.regions[r].clusters.size(); ++c) {
        const ClusterReport &a = with.regions[r].clusters[c], &b = without.regions[r].clusters[c];
        EXPECT_EQ(a.microseconds > 0, !a.kernel.empty());
        EXPECT_EQ(b.microseconds, 0);
        EXPECT_EQ(a.filters, b.filters);
        EXPECT_EQ(a.permutes, b.permutes);
        ++kernels;
      }
    }
  }
  EXPECT_GT(kernels, 30);
}

/// What a kernel takes with other costs is the same whether its structure was found for those or before.
TEST(Prediction, WithOtherCostsKeepsTheStructure) {
  int kernels = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    RandomProgram random(seed, 12, false);
    lcu::Program& program = random.b.program;
    FusionOptions options;
    fuse(program, options);
    for (const TargetCosts& costs : {cudaCosts(), cpuCosts()}) {
      const CostModel model(program, costs);
      lcu::forEachBlock(program, [&](const lcu::Block& block) {
        for (const lcu::Stmt& stmt : block.stmts) {
          const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
          if (!launch) continue;
          const LaunchSizes sizes;
          const codegen::ThunkSample sample;
          const KernelTimer timer(launch->kernel, program, model, sizes, sample);
          for (const NamedCost& cost : namedCosts()) {
            TargetCosts other = costs;
            other.*cost.value *= 3;
            EXPECT_EQ(timer.time(model.with(other)),
                      kernelTime(launch->kernel, program, CostModel(program, other)))
                << cost.name;
          }
          ++kernels;
        }
      });
    }
  }
  EXPECT_GT(kernels, 50);
}

}  // namespace
}  // namespace kelpie::fusion
