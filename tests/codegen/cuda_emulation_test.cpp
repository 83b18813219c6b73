// Generated CUDA, executed on the host under emulation, agrees with the evaluator of λcu.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "runtime/cuda/cuda_target.h"
#include "runtime/host_target.h"
#include "tests/codegen/division_cases.h"
#include "tests/codegen/emulated_device.h"
#include "tests/codegen/kernel_runs.h"
#include "tests/codegen/known_kernels.h"
#include "tests/codegen/random_kernel.h"

namespace kelpie::tests {
namespace {

using lcu::SpaceKind;

/// Small blocks, so that a few thousand elements are many tiles.
codegen::cuda::CudaOptions smallBlocks() {
  codegen::cuda::CudaOptions options;
  options.threads = 64;
  options.maxItems = 8;
  options.leastOfLongTiles = 1000;
  return options;
}

/// KELPIE_SOAK=N multiplies the number of random kernels, KELPIE_SEED starts from another seed.
int64_t environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

/// Blocks so small that thousands of elements are hundreds of tiles: several groups of the look-back.
codegen::cuda::CudaOptions tinyBlocks() {
  codegen::cuda::CudaOptions options;
  options.threads = 32;
  options.maxItems = 2;
  options.fewTiles = 8;
  options.mostOfGroups = 0;
  return options;
}

/// Segments that suit it are folded by groups of the threads of blocks of two warps.
codegen::cuda::CudaOptions smallGroups() {
  codegen::cuda::CudaOptions options = smallBlocks();
  options.threads = 64;
  options.maxItems = 2;
  return options;
}

/// What random kernels became.
struct Seen {
  int rows = 0, columns = 0, transposed = 0, keys = 0, severalPasses = 0, records = 0, counted = 0,
      shortArrays = 0, longTiles = 0, queues = 0, queuesOfTiles = 0, rangeScans = 0;
  void add(const codegen::cuda::CudaKernel& kernel) {
    severalPasses += kernel.passes.size() > 1;
    for (const codegen::cuda::CudaPass& pass : kernel.passes) {
      rows += pass.grid == codegen::cuda::Grid::Rows;
      columns += pass.grid == codegen::cuda::Grid::Columns;
      transposed += pass.grid == codegen::cuda::Grid::Transposed;
      keys += pass.grid == codegen::cuda::Grid::Keys;
      records += !pass.records.empty();
      counted += pass.info.counted;
      queues += pass.refills;
      queuesOfTiles += pass.text.find("TileQueue<") != std::string::npos;
      rangeScans += pass.text.find("RangeScan<") != std::string::npos;
      for (const auto& alternative : pass.alternatives) longTiles += alternative->leastOfLongTiles > 0;
    }
  }
};

void compare(uint64_t seed, const RandomKernelOptions& kind, int kernels, const std::vector<int64_t>& sizes,
             const std::vector<Lengths>& lengths, const codegen::cuda::CudaOptions& cudaOptions, Seen& seen,
             bool queuesOnly = false) {
  seed += static_cast<uint64_t>(environment("KELPIE_SEED", 0));
  kernels *= static_cast<int>(environment("KELPIE_SOAK", 1));
  Random random(seed);
  runtime::InterpTarget interp;
  runtime::cuda::CudaTarget cuda(std::make_unique<EmulatedDevice>(seed), cudaOptions);
  for (int k = 0; k < kernels; ++k) {
    RandomKernelOptions options = kind;
    options.bindings = 1 + static_cast<int>(random() % 5);
    KernelCase testCase = randomKernel(random, options);
    if (queuesOnly) {
      Seen own;
      own.add(codegen::cuda::generateKernel(testCase.kernel, *testCase.program, "k", cudaOptions));
      if (own.queues + own.queuesOfTiles == 0) continue;
    }
    runtime::ProgramKernels program{
        testCase.program.get(),
        {{&testCase.kernel, codegen::analyseKernel(testCase.kernel, *testCase.program)}}};
    runtime::KernelEntry& entry = program.kernels[0];
    entry.shortArrays = randomShortArrays(random, testCase.kernel, entry.info);
    ASSERT_EQ(interp.prepare(program), std::nullopt);
    auto failure = cuda.prepare(program);
    ASSERT_EQ(failure, std::nullopt) << *failure;
    codegen::cuda::CudaOptions textOptions = cudaOptions;
    textOptions.shortArrays = entry.shortArrays;
    seen.add(codegen::cuda::generateKernel(testCase.kernel, *testCase.program, "k", textOptions));
    seen.shortArrays += !entry.shortArrays.empty();
    for (int64_t size : sizes) {
      for (Lengths shape : lengths) {
        KernelData data = randomData(random, testCase, size, shape);
        auto expected = runKernel(interp, program, 0, data);
        auto got = runKernel(cuda, program, 0, data);
        std::string different = difference(expected, got, program.kernels[0].info);
        if (different.empty() && program.kernels[0].info.counted) {
          const auto spare = static_cast<int64_t>(random() % 3000);
          different = difference(expected, runKernel(cuda, program, 0, data, spare), program.kernels[0].info);
          if (!different.empty()) different += ", where there may be " + std::to_string(spare) + " more";
        }
        ASSERT_EQ(different, "")
            << "seed " << seed << ", kernel " << k << ", " << data.extents.elements << " elements, "
            << data.extents.segments << " segments of " << toString(shape) << " length\n"
            << lcu::toString(testCase.kernel, *testCase.program) << "\n"
            << codegen::cuda::generateModule({&testCase.kernel}, *testCase.program, textOptions).source;
      }
    }
    cuda.release(program);
    interp.release(program);
  }
}

void compare(uint64_t seed, SpaceKind space, int kernels, bool canFail, const std::vector<int64_t>& sizes,
             const std::vector<Lengths>& lengths,
             const codegen::cuda::CudaOptions& cudaOptions = smallBlocks(), bool narrow = false) {
  RandomKernelOptions kind;
  kind.space = space;
  kind.canFail = canFail;
  kind.narrow = narrow;
  Seen seen;
  compare(seed, kind, kernels, sizes, lengths, cudaOptions, seen);
  EXPECT_TRUE(seen.counted > 0 || space != SpaceKind::Flat || narrow);
}

const std::vector<int64_t> kSizes = {0, 1, 31, 700, 5000};
const std::vector<Lengths> kLengths = {Lengths::Mixed, Lengths::Zero, Lengths::One,
                                       Lengths::Eight, Lengths::Long, Lengths::Giant};

TEST(CudaEmulation, FlatKernels) { compare(1, SpaceKind::Flat, 12, false, kSizes, {Lengths::Mixed}); }
/// Threads that hold as many bytes as they do on a device.
codegen::cuda::CudaOptions longRows() {
  codegen::cuda::CudaOptions options;
  options.threads = 64;
  return options;
}
TEST(CudaEmulation, FlatKernelsOfBytes) {
  compare(11, SpaceKind::Flat, 16, false, {0, 1, 15, 31, 700, 2048, 5003}, {Lengths::Mixed}, longRows(),
          true);
}
TEST(CudaEmulation, FlatKernelsOfBytesThatFail) {
  compare(12, SpaceKind::Flat, 4, true, {31, 5003}, {Lengths::Mixed}, longRows(), true);
}
TEST(CudaEmulation, RegularKernelsOfBytes) {
  compare(13, SpaceKind::Regular, 8, false, {0, 1, 40, 3000}, {Lengths::Mixed}, longRows(), true);
}
TEST(CudaEmulation, OffsetKernels) { compare(2, SpaceKind::Offsets, 12, false, {0, 40, 3000}, kLengths); }
TEST(CudaEmulation, RegularKernels) {
  compare(3, SpaceKind::Regular, 8, false, {0, 1, 40, 3000}, {Lengths::Mixed, Lengths::Mixed});
}
/// Rows at once, of segments of their own and shared ones.
TEST(CudaEmulation, RowsOfRegularSpaces) {
  Seen seen;
  for (const bool canFail : {false, true}) {
    RandomKernelOptions kind;
    kind.shape = Shape::Rows;
    kind.space = SpaceKind::Regular;
    kind.canFail = canFail;
    compare(14, kind, 4, {0, 1, 40, 3000}, {Lengths::Mixed, Lengths::Mixed}, smallBlocks(), seen);
    compare(15, kind, 3, {9000}, {Lengths::Mixed, Lengths::Mixed}, tinyBlocks(), seen);
  }
  EXPECT_GE(seen.rows, 14);
}
/// Neighbouring segments read side by side: folded by warps of their own and by shared ones, and mapped.
TEST(CudaEmulation, ColumnsOfRegularSpaces) {
  Seen seen;
  for (const bool canFail : {false, true}) {
    RandomKernelOptions kind;
    kind.shape = Shape::Columns;
    kind.space = SpaceKind::Regular;
    kind.canFail = canFail;
    compare(21, kind, 6, {0, 1, 40, 3000}, {Lengths::Mixed, Lengths::Mixed}, smallBlocks(), seen);
    compare(22, kind, 3, {9000}, {Lengths::Mixed, Lengths::Mixed}, tinyBlocks(), seen);
  }
  EXPECT_GE(seen.columns, 10);
}
TEST(CudaEmulation, TransposedMaps) {
  Seen seen;
  for (const bool canFail : {false, true}) {
    RandomKernelOptions kind;
    kind.shape = Shape::Transposed;
    kind.space = SpaceKind::Regular;
    kind.canFail = canFail;
    compare(23, kind, 6, {0, 1, 40, 3000}, {Lengths::Mixed, Lengths::Mixed}, smallBlocks(), seen);
    compare(24, kind, 3, {9000}, {Lengths::Mixed, Lengths::Mixed}, tinyBlocks(), seen);
  }
  EXPECT_GE(seen.transposed, 12);
  EXPECT_GT(seen.severalPasses, 0);
}
/// Segments to which elements belong by keys.
TEST(CudaEmulation, SegmentsOfKeys) {
  Seen seen;
  for (const bool canFail : {false, true}) {
    RandomKernelOptions kind;
    kind.shape = Shape::Keys;
    kind.space = SpaceKind::Regular;
    kind.canFail = canFail;
    compare(19, kind, 4, {0, 1, 40, 3000}, {Lengths::Mixed, Lengths::Mixed}, smallBlocks(), seen);
    compare(20, kind, 2, {9000}, {Lengths::Mixed, Lengths::Mixed}, tinyBlocks(), seen);
  }
  EXPECT_GE(seen.keys, 8);
}
/// Segments fold what scans of the same kernel make: ranges scan it, or a pass of its own does.
TEST(CudaEmulation, FoldsOfScans) {
  Seen seen;
  for (const bool canFail : {false, true}) {
    RandomKernelOptions kind;
    kind.shape = Shape::FoldsOfScans;
    kind.canFail = canFail;
    for (const SpaceKind space : {SpaceKind::Offsets, SpaceKind::Regular}) {
      kind.space = space;
      compare(16, kind, 4, {0, 40, 3000}, kLengths, smallBlocks(), seen);
    }
    compare(17, kind, 4, {5000}, kLengths, tinyBlocks(), seen);
  }
  EXPECT_GT(seen.severalPasses, 0);
  EXPECT_GT(seen.rangeScans, 2);
  EXPECT_GT(seen.shortArrays, 0);
}
/// Thunks with loops, of which some walk through columns that are put side by side.
TEST(CudaEmulation, Loops) {
  Seen seen;
  codegen::cuda::CudaOptions options = smallBlocks();
  for (const bool canFail : {false, true}) {
    RandomKernelOptions kind;
    kind.loops = true;
    kind.canFail = canFail;
    options.recordBytes = canFail ? int64_t{1} << 40 : 0;
    for (const SpaceKind space : {SpaceKind::Flat, SpaceKind::Offsets, SpaceKind::Regular}) {
      kind.space = space;
      compare(18, kind, 3, {0, 31, 3000}, {Lengths::Mixed, Lengths::Giant}, options, seen);
    }
  }
  EXPECT_GT(seen.records, 0);
  EXPECT_GT(seen.longTiles, 0);
  EXPECT_GT(seen.severalPasses, 0);
}
/// Elements with a loop each, which lanes take from queues.
TEST(CudaEmulation, LoopsOfQueues) {
  Seen seen;
  codegen::cuda::CudaOptions options;
  options.threads = 64;
  options.maxChunks = 1;
  options.queuesPay = true;
  for (const bool canFail : {false, true}) {
    RandomKernelOptions kind;
    kind.loops = true;
    kind.canFail = canFail;
    for (const SpaceKind space : {SpaceKind::Flat, SpaceKind::Offsets, SpaceKind::Regular}) {
      kind.space = space;
      compare(24, kind, 45, {31, 1000, 3001}, {Lengths::Mixed}, options, seen, true);
    }
  }
  EXPECT_GT(seen.queues, 5);
  EXPECT_GT(seen.queuesOfTiles, 10);
}
TEST(CudaEmulation, FirstErrorIsReported) {
  compare(4, SpaceKind::Offsets, 6, true, {40, 3000}, {Lengths::Mixed, Lengths::One});
}
/// Kernels over xs, offsets and weights (a float for each segment).
const std::vector<const char*> kSegmentedKernels = {"segmented_sum",
                                                    "segmented_scan",
                                                    "segmented_weighted_sum",
                                                    "segmented_weighted_scan",
                                                    "segmented_sum_and_scan",
                                                    "segmented_filter",
                                                    "segmented_sum_and_filter",
                                                    "segmented_sums_of_scan",
                                                    "segmented_sum_of_scan",
                                                    "segmented_scan_and_its_greatest",
                                                    "segmented_first_greatest",
                                                    "segmented_first_greatest_sum",
                                                    "segmented_first_greatest_wide"};

/// Weights that keep sums exact. Those that are negative make negative zeros, whose sum is zero.
std::vector<float> someWeights(int64_t segments) {
  std::vector<float> weights;
  for (int64_t s = 0; s < segments; ++s) weights.push_back(static_cast<float>(s % 5) - 2);
  return weights;
}

/// Numbers that neighbours in a list of small ones differ by: what lies side by side adds up to 99 at most,
/// so that sums of running sums of 100,000 are exact, too.
std::vector<float> someNumbers(int64_t count, Random& random) {
  std::vector<float> numbers;
  int before = 0;
  for (int64_t k = 0; k < count; ++k) {
    const int next = static_cast<int>(random() % 100);
    numbers.push_back(static_cast<float>(next - before));
    before = next;
  }
  return numbers;
}

/// Kernels over segments that begin at each of some offsets.
void compareSegmentedKernels(const codegen::cuda::CudaOptions& options, Random& random,
                             const std::vector<std::vector<int64_t>>& offsetsOfSpaces,
                             const std::vector<const char*>& kernels = kSegmentedKernels) {
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  runtime::InterpTarget interp;
  runtime::cuda::CudaTarget cuda(std::make_unique<EmulatedDevice>(8), options);
  ASSERT_EQ(interp.prepare(program), std::nullopt);
  auto failure = cuda.prepare(program);
  ASSERT_EQ(failure, std::nullopt) << *failure;
  for (const std::vector<int64_t>& offsets : offsetsOfSpaces) {
    KernelData data;
    const int64_t n = offsets.back();
    data.extents.elements = n;
    const std::vector<float> xs = someNumbers(n, random);
    data.extents.segments = static_cast<int64_t>(offsets.size()) - 1;
    auto set = [&](const char* name, const void* values, size_t bytes) {
      const auto* first = static_cast<const std::byte*>(values);
      data.arrays[known.vars.at(name)].assign(first, first + bytes);
    };
    set("xs", xs.data(), xs.size() * sizeof(float));
    set("offsets", offsets.data(), offsets.size() * sizeof(int64_t));
    const std::vector<float> weights = someWeights(data.extents.segments);
    set("weights", weights.data(), weights.size() * sizeof(float));
    for (const char* name : kernels) {
      size_t number = known.number(name);
      EXPECT_EQ(difference(runKernel(interp, program, number, data), runKernel(cuda, program, number, data),
                           program.kernels[number].info),
                "")
          << name << ", " << data.extents.segments << " segments of " << n << " elements";
    }
  }
}

/// Segments of many lengths, some empty, of at least so many elements in all.
void compareSegmentedKernels(const codegen::cuda::CudaOptions& options, int64_t elements = 9000,
                             const std::vector<uint64_t>& lengths = {1, 3, 20, 300, 5000, 20'000},
                             const std::vector<const char*>& kernels = kSegmentedKernels) {
  Random random(static_cast<uint64_t>(environment("KELPIE_SEED", 9)));
  std::vector<std::vector<int64_t>> all;
  for (uint64_t longest : lengths) {
    const int64_t n = elements + static_cast<int64_t>(random() % 1000);
    std::vector<int64_t>& offsets = all.emplace_back(1, 0);
    while (offsets.back() < n) {
      int64_t length = random() % 8 == 0 ? 0 : 1 + static_cast<int64_t>(random() % longest);
      offsets.push_back(std::min(n, offsets.back() + length));
    }
    offsets.insert(offsets.end(), random() % 700, n);
  }
  compareSegmentedKernels(options, random, all, kernels);
}

/// What scans make of segments is folded by the ranges that scan them; long segments go through many of
/// these.
TEST(CudaEmulation, RangesFoldWhatTheyScan) {
  KnownKernels known;
  const std::vector<const char*> names = {"segmented_sums_of_scan", "segmented_sum_of_scan",
                                          "segmented_scan_and_its_greatest", "segmented_first_greatest_sum",
                                          "segmented_wide_greatest_and_scan"};
  for (const char* name : names) {
    const auto passes = codegen::cuda::generateKernel(known.kernels.at(name), known.program, "k").passes;
    ASSERT_EQ(passes.size(), 1u) << name;
    EXPECT_EQ(passes[0].grid, codegen::cuda::Grid::Ranges) << name;
  }
  for (const codegen::cuda::CudaOptions& options : {tinyBlocks(), smallBlocks()}) {
    compareSegmentedKernels(options, 9000, {1, 2, 20, 300, 5000, 20'000}, names);
    Random random(7);
    std::vector<std::vector<int64_t>> lists = {{0, 9000}, {0, 0, 1, 4096, 4096, 8192, 8200}, {0, 0, 0}};
    lists.emplace_back(3000, 0);
    lists.back().insert(lists.back().end(), 3000, 5000);
    compareSegmentedKernels(options, random, lists, names);
  }
}
/// Segments are folded by a scan of the same elements, but not beside filters. Empty ones may crowd a tile,
/// or be all there is.
TEST(CudaEmulation, FoldsBesideScansAreOnePass) {
  KnownKernels known;
  const auto passes = [&](const char* name) {
    return codegen::cuda::generateKernel(known.kernels.at(name), known.program, "k").passes;
  };
  EXPECT_EQ(passes("segmented_sum_and_filter").size(), 2u);
  const std::vector<const char*> folded = {"segmented_sum_and_scan", "segmented_weighted_sum_and_scan",
                                           "segmented_wide_sum_and_scan", "segmented_sum_and_squares"};
  for (const char* name : folded) {
    ASSERT_EQ(passes(name).size(), 1u) << name;
    EXPECT_TRUE(passes(name)[0].endsSegments) << name;
  }
  std::vector<std::vector<int64_t>> lists = {std::vector<int64_t>(30'000, 0)};
  lists.push_back({0, 2});
  lists.back().insert(lists.back().end(), 40'000, 5);
  lists.push_back({0});
  for (int64_t k = 0; k < 3000; k += 500)
    lists.back().insert(lists.back().end(), k % 1000 == 0 ? 25'000 : 3, k + 1);
  Random random(23);
  compareSegmentedKernels(tinyBlocks(), random, lists, folded);
  compareSegmentedKernels(smallBlocks(), 9000, {1, 2, 20, 5000}, folded);
}
/// All kinds of kernels and lengths: there is so little shared memory that it is short of
/// everywhere.
TEST(CudaEmulation, LittleSharedMemory) {
  codegen::cuda::CudaOptions options = smallBlocks();
  options.sharedBytes = 2500;
  compare(7, SpaceKind::Offsets, 4, false, {3000}, kLengths, options);
  compare(8, SpaceKind::Regular, 4, false, {3000}, {Lengths::Mixed, Lengths::Mixed}, options);
  compareSegmentedKernels(options);
}
/// The scanner has many groups of tiles, more than are in flight.
TEST(CudaEmulation, ManyGroupsOfTiles) {
  codegen::cuda::CudaOptions options;
  options.threads = 128;
  options.maxItems = 1;
  compareSegmentedKernels(options, 25'000, {30, 3000, 200'000},
                          {"segmented_sum_and_scan", "segmented_filter", "segmented_sums_of_scan"});
}

/// Ranges of many tiles each, with and without segment ends in them.
TEST(CudaEmulation, LongRanges) {
  codegen::cuda::CudaOptions options = smallBlocks();
  options.maxChunks = 3;
  options.mostOfGroups = 0;
  compareSegmentedKernels(options);
}
/// Several groups of ranges (look_back.cuh), within which many or no segments end.
TEST(CudaEmulation, ManyRanges) { compareSegmentedKernels(tinyBlocks()); }
/// More groups than are read at once.
TEST(CudaEmulation, ManyGroupsOfRanges) {
  compareSegmentedKernels(tinyBlocks(), 100'000, {30, 3000, 200'000}, {"segmented_sum"});
}

/// Where large arrays are gathered from, ranges are shorter, and more than run at once.
TEST(CudaEmulation, RangesThatGatherNearEachOther) {
  codegen::cuda::CudaOptions options = tinyBlocks();
  options.maxChunks = 3;
  options.mostOfGroups = 0;
  options.nearBytes = 1024;
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  runtime::InterpTarget interp;
  runtime::cuda::CudaTarget cuda(std::make_unique<EmulatedDevice>(12), options);
  ASSERT_EQ(interp.prepare(program), std::nullopt);
  auto failure = cuda.prepare(program);
  ASSERT_EQ(failure, std::nullopt) << *failure;
  const size_t number = known.number("spmv32");
  const auto& info = program.kernels[number].info;
  Random random(static_cast<uint64_t>(environment("KELPIE_SEED", 23)));
  const int64_t n = 40'000;
  for (const int64_t columns : {int64_t{100}, int64_t{5000}}) {
    KernelData data;
    data.extents.elements = n;
    std::vector<float> xs(static_cast<size_t>(n)), v(static_cast<size_t>(columns));
    for (float& x : xs) x = static_cast<float>(static_cast<int>(random() % 100) - 50);
    for (float& x : v) x = static_cast<float>(random() % 100);
    std::vector<int32_t> places(static_cast<size_t>(n));
    for (int32_t& place : places) place = static_cast<int32_t>(random() % static_cast<uint64_t>(columns));
    std::vector<int64_t> offsets = {0};
    while (offsets.back() < n)
      offsets.push_back(std::min(n, offsets.back() + static_cast<int64_t>(random() % 90)));
    data.extents.segments = static_cast<int64_t>(offsets.size()) - 1;
    auto set = [&](const char* name, const auto& values) {
      const auto* first = reinterpret_cast<const std::byte*>(values.data());
      data.arrays[known.vars.at(name)].assign(first, first + values.size() * sizeof values[0]);
    };
    set("xs", xs);
    set("v", v);
    set("col32", places);
    set("offsets", offsets);
    for (const auto& p : info.parameters) {
      const std::string& name = known.program.vars[p.var].name;
      EXPECT_EQ(p.gathered, p.kind == codegen::ParameterKind::Array && name == "v") << name;
      if (p.gathered) data.extents.gatheredBytes += columns * sizeOf(p.type);
    }
    const auto pass =
        codegen::cuda::generateKernel(known.kernels.at("spmv32"), known.program, "k", options).passes.at(0);
    EXPECT_EQ(pass.tiles(data.extents), columns == 100 ? 3 : 3 * ((4 * columns + 1023) / 1024));
    EXPECT_EQ(
        difference(runKernel(interp, program, number, data), runKernel(cuda, program, number, data), info),
        "");
  }
}

/// Segments that suit groups of threads of all sizes; some of which are too long for theirs, so that they
/// wait for others; and so long ones that blocks take pieces of the list of elements and segment ends.
TEST(CudaEmulation, Groups) {
  Random random(static_cast<uint64_t>(environment("KELPIE_SEED", 21)));
  std::vector<std::vector<int64_t>> all;
  for (const int64_t mean : {1, 2, 7, 40, 150, 400}) {
    for (const int64_t longest : {int64_t{0}, 40 * mean, int64_t{8000}}) {
      std::vector<int64_t>& offsets = all.emplace_back(1, 0);
      for (int64_t k = 0; k * mean < 6000; ++k) {
        const bool isLongest = longest > 0 && k * mean >= 3000 && (k - 1) * mean < 3000;
        const auto length = static_cast<int64_t>(random() % static_cast<uint64_t>(2 * mean + 1));
        offsets.push_back(offsets.back() + (isLongest ? longest : length));
        if (mean == 7) offsets.push_back(offsets.back());
      }
    }
  }
  compareSegmentedKernels(smallGroups(), random, all, {"segmented_sum", "segmented_weighted_sum"});
}

/// Blocks have more segments than threads: none is long, some are, all in a row are, or one is as long as all
/// others. And blocks whose long segments wait several times.
TEST(CudaEmulation, GroupsOfManySegments) {
  Random random(static_cast<uint64_t>(environment("KELPIE_SEED", 22)));
  std::vector<std::vector<int64_t>> all;
  const auto add = [&](int64_t segments, const auto& lengthOf) {
    std::vector<int64_t>& offsets = all.emplace_back(1, 0);
    for (int64_t k = 0; k < segments; ++k) offsets.push_back(offsets.back() + lengthOf(k));
  };
  const auto upTo = [&](uint64_t most) { return static_cast<int64_t>(random() % (most + 1)); };
  const int64_t many = 30'000;
  add(many, [&](int64_t) { return upTo(2); });
  add(many, [&](int64_t k) { return k % 1000 == 7 ? 100 + upTo(100) : upTo(2); });
  add(many, [&](int64_t k) { return k == 0 || k == many - 1 ? 6000 : upTo(1); });
  add(many, [&](int64_t k) { return k % 3000 < 200 ? 20 : 0; });
  add(many + 300, [&](int64_t k) { return k < many ? 0 : upTo(60); });
  add(2000, [&](int64_t k) { return k % 40 < 1 + k % 5 ? int64_t{20} << k % 5 : 1 + upTo(2); });
  // Short ones, of which a thread works on several rounds side by side, some at the end fewer.
  add(2 * many, [&](int64_t k) { return k % 1000 == 7 ? 30 + upTo(60) : upTo(2); });
  add(11 * many, [&](int64_t) { return upTo(1); });
  for (const int items : {2, 16}) {
    codegen::cuda::CudaOptions options = smallGroups();
    options.maxItems = items;
    compareSegmentedKernels(options, random, all, {"segmented_sum", "segmented_weighted_sum"});
  }
}

/// Blocks have few, long segments, each for some warps (segment_warps.cuh); some are empty, or all but one of
/// a block, or too long for their warps, or for their block.
TEST(CudaEmulation, GroupsOfFewLongSegments) {
  Random random(static_cast<uint64_t>(environment("KELPIE_SEED", 23)));
  std::vector<std::vector<int64_t>> all;
  const auto add = [&](int64_t segments, const auto& lengthOf) {
    std::vector<int64_t>& offsets = all.emplace_back(1, 0);
    for (int64_t k = 0; k < segments; ++k) offsets.push_back(offsets.back() + lengthOf(k));
  };
  const auto upTo = [&](uint64_t most) { return static_cast<int64_t>(random() % (most + 1)); };
  add(60, [&](int64_t) { return upTo(1500); });
  add(700, [&](int64_t) { return upTo(600); });
  add(800, [&](int64_t) { return random() % 3 == 0 ? 0 : upTo(500); });
  add(800, [&](int64_t k) { return k % 4 == 2 ? 1024 : 0; });
  add(1600, [&](int64_t k) { return k % 8 == 7 ? 3 : 64; });
  add(1601, [&](int64_t) { return upTo(200); });
  for (const int64_t longest : {3000, 20'000})
    add(400, [&](int64_t k) { return k % 170 == 77 ? longest : upTo(600); });
  codegen::cuda::CudaOptions options = smallBlocks();
  options.threads = 256;
  options.maxItems = 1;
  compareSegmentedKernels(options, random, all, {"segmented_sum", "segmented_weighted_sum"});
}

/// Segments that begin in a tile are searched for around where they would be if all were equally long, and
/// their begins are loaded several at once, from a multiple of that on; the last ones one by one. Where more
/// empty ones begin than are read, heads are searched for.
TEST(CudaEmulation, ManyEmptySegments) {
  Random random(13);
  std::vector<std::vector<int64_t>> lists;
  lists.push_back({0, 3, 300});
  lists.back().insert(lists.back().end(), 20'000, 301);
  for (int64_t k = 302; k <= 1000; k += 7) lists.back().push_back(k);
  lists.back().insert(lists.back().end(), 9000, 1000);
  for (int64_t empty : {0, 1, 2, 3}) {  // behind each segment of one element
    lists.push_back({0});
    for (int64_t k = 1; k <= 1500 - empty; ++k)
      lists.back().insert(lists.back().end(), static_cast<size_t>(empty) + 1, k);
  }
  lists.push_back({0, 1200});  // all others lie far from their mean
  for (int64_t k = 1200; k <= 2100; ++k) lists.back().push_back(k);
  lists.push_back({0});
  while (lists.back().back() < 4000) lists.back().push_back(lists.back().back() + random() % 4);

  for (int64_t fewTiles :
       {int64_t{0}, int64_t{1024}}) {  // where tiles begin is found before, or by themselves
    codegen::cuda::CudaOptions options = tinyBlocks();
    options.fewTiles = fewTiles;
    compareSegmentedKernels(options, random, lists);
  }
}

/// Errors are looked for after the work, in a loop of its own: the first one is found wherever it is, and
/// there is none where every check holds.
void findErrorsOfGathers(const codegen::cuda::CudaOptions& options) {
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  runtime::InterpTarget interp;
  runtime::cuda::CudaTarget cuda(std::make_unique<EmulatedDevice>(11), options);
  ASSERT_EQ(interp.prepare(program), std::nullopt);
  auto failure = cuda.prepare(program);
  ASSERT_EQ(failure, std::nullopt) << *failure;
  Random random(static_cast<uint64_t>(environment("KELPIE_SEED", 12)));
  const int64_t n = 1500;
  KernelData data;
  data.extents.elements = n;
  data.extents.targets = {n};
  std::vector<float> xs(static_cast<size_t>(n)), v(64);
  for (float& x : xs) x = static_cast<float>(static_cast<int>(random() % 100) - 50);
  for (float& x : v) x = static_cast<float>(random() % 100);
  std::vector<int64_t> places(static_cast<size_t>(n)), integers(static_cast<size_t>(n)), offsets = {0};
  std::vector<int32_t> columns(static_cast<size_t>(n));
  for (size_t k = 0; k < places.size(); ++k) {
    places[k] = static_cast<int64_t>((k * 7) % places.size());
    integers[k] = static_cast<int64_t>(random());
    columns[k] = 1 + static_cast<int32_t>(random() % 63);
  }
  while (offsets.back() < n)
    offsets.push_back(std::min(n, offsets.back() + static_cast<int64_t>(random() % 90)));
  data.extents.segments = static_cast<int64_t>(offsets.size()) - 1;
  const std::vector<float> weights = someWeights(data.extents.segments);
  auto set = [&](const char* name, const auto& values) {
    const auto* first = reinterpret_cast<const std::byte*>(values.data());
    data.arrays[known.vars.at(name)].assign(first, first + values.size() * sizeof values[0]);
  };
  set("xs", xs);
  set("v", v);
  set("xs_i64", integers);
  set("offsets", offsets);
  set("weights", weights);
  for (const int errors : {0, 1, 5, 1000}) {
    std::vector<int64_t> badPlaces = places;
    std::vector<int32_t> badColumns = columns;
    for (int k = 0; k < errors; ++k) {
      badPlaces[random() % badPlaces.size()] = random() % 2 == 0 ? n : -1;
      badColumns[random() % badColumns.size()] = 0;
      badColumns[random() % badColumns.size()] = 64;
    }
    set("places", badPlaces);
    set("col32", badColumns);
    for (const auto& [name, kernel] : known.kernels) {
      if (!name.starts_with("checked_") && !(errors == 0 && name.starts_with("unchecked_"))) continue;
      const size_t number = known.number(name);
      EXPECT_EQ(difference(runKernel(interp, program, number, data), runKernel(cuda, program, number, data),
                           program.kernels[number].info),
                "")
          << name << ", " << errors << " errors";
    }
  }
}
/// Reciprocals that are not plain are taken again, wherever they are in a tile.
TEST(CudaEmulation, Reciprocals) {
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  runtime::cuda::CudaTarget cuda(std::make_unique<EmulatedDevice>(13), smallBlocks());
  auto failure = cuda.prepare(program);
  ASSERT_EQ(failure, std::nullopt) << *failure;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float odd : {0.0f, -0.0f, 1e-40f, -3e-38f, 3e38f, kInfinity, -kInfinity, 5.0f}) {
    std::vector<float> xs(1000, 3.0f);
    for (const size_t k : {0, 1, 77, 511, 998, 999}) xs[k] = odd;
    KernelData data;
    data.extents.elements = static_cast<int64_t>(xs.size());
    const auto* first = reinterpret_cast<const std::byte*>(xs.data());
    data.arrays[known.vars.at("xs")].assign(first, first + sizeof(float) * xs.size());
    const auto result = runKernel(cuda, program, known.number("reciprocals"), data);
    ASSERT_EQ(result.failure, std::nullopt) << *result.failure;
    for (size_t k = 0; k < xs.size(); ++k) {
      const float expected = 1.0f / xs[k];
      EXPECT_EQ(std::memcmp(result.outputs[0].data() + 4 * k, &expected, 4), 0) << k << ", of " << odd;
    }
  }
}
TEST(CudaEmulation, Divisions) {
  KnownKernels known;
  runtime::ProgramKernels program = known.programKernels();
  runtime::cuda::CudaTarget cuda(std::make_unique<EmulatedDevice>(13), smallBlocks());
  auto failure = cuda.prepare(program);
  ASSERT_EQ(failure, std::nullopt) << *failure;
  std::mt19937_64 random(static_cast<uint64_t>(environment("KELPIE_SEED", 31)));
  compareDivisions(cuda, known, program, 20000, random);
  compareFloatDivisions(cuda, known, program, 20000, random);
}
/// Where that pays, the checks of a thread come before all of its loads.
TEST(CudaEmulation, GathersFollowAllChecksOfAThread) {
  KnownKernels known;
  const auto text = [&](const char* name) {
    return codegen::cuda::generateKernel(known.kernels.at(name), known.program, "k").passes.at(0).text;
  };
  for (const char* name : {"checked_sum_of_gathered", "checked_gather_near"})
    EXPECT_NE(text(name).find("if (good) {"), std::string::npos) << name;
  EXPECT_NE(text("checked_segmented_sum_of_gathered").find("if (fine) {"), std::string::npos);
  EXPECT_EQ(text("checked_gather_random").find("if (good) {"), std::string::npos);
}
TEST(CudaEmulation, ErrorsOfGathersAreFound) { findErrorsOfGathers(tinyBlocks()); }
TEST(CudaEmulation, ErrorsOfGathersAreFoundByGroups) { findErrorsOfGathers(smallGroups()); }
TEST(CudaEmulation, ManyTiles) {
  compare(5, SpaceKind::Flat, 3, false, {9000}, {Lengths::Mixed}, tinyBlocks());
  compare(6, SpaceKind::Offsets, 4, false, {5000}, {Lengths::Mixed, Lengths::Long, Lengths::Giant},
          tinyBlocks());
}

}  // namespace
}  // namespace kelpie::tests
