#include "codegen/cuda/pass_shape.h"

#include <algorithm>
#include <set>

#include "codegen/cuda/pass_split.h"
#include "codegen/cuda/segment_values.h"
#include "codegen/float_division.h"
#include "codegen/integer_division.h"
#include "codegen/regular_reads.h"
#include "codegen/values_of_segments.h"

namespace kelpie::codegen::cuda {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

/// 4-byte registers that the items of a thread may fill, counted generously: packs and what is made of them.
constexpr int kItemWords = 72;
/// The same where tiles wait for what lies below: longer tiles wait less often. On an H200 a scan of 2^27
/// float32 reached 83 % of copy bandwidth with tiles of 4096 items, 91 % with 8192, 88 % with 16384
/// (bench/results).
constexpr int kWaitingItemWords = 96;
/// The same where a number of the segment is found for each item on the way.
constexpr int kNumberedItemWords = 128;
/// Shared memory of a multiprocessor, and what a block takes of it beside its tile.
constexpr int kMultiprocessorSharedBytes = 227 * 1024, kBlockSharedBytes = 1024;
/// Nodes of thunk code from which on a map is bound by arithmetic.
constexpr size_t kManyNodes = 40;
/// Nodes of thunk code that a pass may unroll to; longer code costs compile time and gains nothing.
constexpr int kUnrolledNodes = 3000;
/// ... where no row of items leaves anything behind in registers, so that rows can follow each other in a
/// loop. With twice as many, kernels take a sixth longer to compile, batcher sort of 2^20 numbers 16.3 ms
/// instead of 14.6, quickhull 1.99 instead of 1.91, and quicksort and breadth-first search the same.
constexpr size_t kLoopNodes = 160;
/// Long divisions that have code of their own each; of more, all call the same.
constexpr int kDivisionsInPlace = 16;
/// Nodes of epilogues of segments up to which a copy for each of several ends compiles fast enough.
constexpr size_t kShortEpilogue = 8;
/// Nodes that finding the number of an item's segment counts for.
constexpr size_t kNumberNodes = 12;

class ShapeChooser {
 public:
  ShapeChooser(PassPlan& plan, const lcu::Kernel& kernel, const KernelInfo& info, const lcu::Program& program,
               const CudaOptions& options)
      : plan_(plan), kernel_(kernel), info_(info), program_(program), options_(options) {}

  void run() {
    TileShape& shape = plan_.shape;
    const Weight weight = weigh();
    const bool flat = plan_.grid == Grid::Tiles || plan_.grid == Grid::Chunks;
    plan_.narrow = flat && !info_.space.segmented() && weight.smallest == 1;
    plan_.streams = !weight.loops && !weight.gathers && weight.nodes <= kManyNodes;
    if (plan_.rows()) return chooseRowShape(weight);
    if (plan_.products()) return chooseProductShape();
    if (plan_.keys()) return chooseKeyShape(weight);
    if (plan_.transposed()) return chooseTransposedShape();
    plan_.canGroup = canGroup(weight.nodes, weight.loops);
    plan_.lengthens = plan_.numbered() && weight.loops && !plan_.scanned();
    constexpr int kMostBytesOfLoops = 16;  // of more, tiles would be short
    if (bytesOfLoops() > kMostBytesOfLoops) plan_.refilledInTiles.reset();
    Budget allowed = budget(weight);
    if (plan_.whole()) allowed.threads = options_.threads;
    // What ranges keep is spilled then; sums of 2^22 float32 in segments of 1024 and 4096 took 5.03 and 4.80
    // us with registers for 768 threads, 4.70 and 4.73 for 1024.
    if (plan_.warps && plan_.levels[0].usualBytes() <= 8) allowed.resident = 1024;
    if (plan_.ranges()) weighRanges(weight);
    plan_.compact = plan_.whole() || epilogueNodes() > kShortEpilogue;
    shape.threads = std::max(32, allowed.threads);
    const bool anyOrder = (plan_.grid == Grid::Tiles || plan_.heads()) && !plan_.scanned();
    shape.backward = runsBackward(kernel_) || (anyOrder && writesLast());
    shape.width = widthOf(weight);
    // A warp of the scanner, or several, for each level.
    while (plan_.scanned() && shape.threads < 32 * static_cast<int>(plan_.levels.size())) shape.threads *= 2;
    int items = std::max(1, allowed.items);
    items = std::min<int>(
        items, static_cast<int>(std::max<size_t>(1, kUnrolledNodes / std::max<size_t>(1, weight.nodes))));
    int bytes = 0;
    if (plan_.heads() && !plan_.reckons()) bytes = plan_.numbersInThunks ? 2 : 1;
    // Items of ranges count twice: so there are registers for fewer blocks than would fit, as measured.
    if (plan_.ranges())
      bytes = 1 + 2 * static_cast<int>(plan_.levels[plan_.foldLevel].usualBytes()) +
              (plan_.numbersInThunks ? 4 : 0);
    if (keepsSegmentValues(weight)) plan_.segmentValues = sharedSegmentValues(kernel_, info_, program_);
    for (VarId v : plan_.segmentValues)
      bytes += std::max(1, sizeOf(program_.vars.at(v).type) / itemsOfSegment(plan_.ends));
    if (plan_.ends)
      for (const SegmentFold& fold : plan_.segmentFolds) bytes += sizeOf(fold.field.type);
    bytes += bytesOfLoops();
    if (bytes > 0) items = std::min(items, options_.sharedBytes / (bytes * shape.threads));
    while (bytes * shape.threads > options_.sharedBytes && shape.threads > 32) shape.threads /= 2;
    if (weight.loops && onlyMarks()) shape.width = 1;
    shape.width = std::min(shape.width, std::max(1, items));
    while (shape.width & (shape.width - 1)) shape.width &= shape.width - 1;
    shape.rows = std::clamp(items / shape.width, 1, options_.maxRows);
    while (shape.rows & (shape.rows - 1)) shape.rows &= shape.rows - 1;
    // Maps of segments that gather wait for loads behind loads, row after row; of shorter tiles more blocks
    // wait beside each other. Quicksort of 10^7 int64 took 13.9 ms with 16 rows, 12.4 with 4, 12.0 with 2;
    // 2^27 float32 gathered near each other 0.299 with 8, 0.276 with 4, 0.295 with 2; 8.8*10^7 int64 of
    // segments of 11 that are put together in branches 0.51, 0.52 and 0.56.
    constexpr int kGatheringRows = 4;
    if (plan_.numbered() && !plan_.scanned() && weight.gathers && !weight.loops)
      shape.rows = std::min(shape.rows, kGatheringRows);
    constexpr int kFewItems = 4;  // for lanes to take from each other
    if (shape.rows * shape.width < kFewItems) plan_.refilledInTiles.reset();
    // Code of more functions than these, in fourths of one of float64 for all items, outgrows the cache of
    // instructions. Haversine distances, 17 functions of float64 for each of 2^26 elements: 3.8 ms with four
    // items a thread on an H200, 2.5 with two; a mixture of Gaussians and the quality of power 0.87 and 0.89
    // of the time of twice as many. Where items find their segments by themselves (10^8 elements): three
    // sines of quotients and a hash 1.86 ms with eight, 1.44 with four, 1.40 with two, but pairs of functions
    // up to 1.1 times as long with four (bench/results/h200-2026-11-29-functions.txt).
    const bool ofSegments = plan_.numbered() && !plan_.scanned();
    const int unrolledFunctions = ofSegments ? 64 : 96;
    while ((flatOnce() || ofSegments) && shape.rows > 1 &&
           shape.rows * shape.width * (weight.functions + 2 * weight.quotients) > unrolledFunctions)
      shape.rows /= 2;
    plan_.rowsAtOnce = rowsAtOnce(weight);
    const int unrolled = (plan_.rowsAtOnce > 0 ? plan_.rowsAtOnce : shape.rows) * shape.width;
    plan_.dividesInPlace = flat && unrolled * weight.divisions <= kDivisionsInPlace;
    if (allowed.resident == 0 && (plan_.scanned() || plan_.segmented())) {
      const int rows = plan_.rowsAtOnce > 0 ? plan_.rowsAtOnce : shape.rows;
      const int filled = rows * shape.width * weight.words;
      if (plan_.scanned()) {
        allowed.resident = filled <= 128 ? 1024 : 512;
        // Pairs of which one half decides and the other is loaded for survivors: 1.39 ms on an H100 with
        // registers for 1024 threads, which spilled, 1.07 for 768.
        constexpr int kFilteredWords = 80;
        if (weight.countsOnly && filled > kFilteredWords) allowed.resident = std::min(allowed.resident, 768);
        // Levels of quickhull, whose filters have numbers of segments and keep three columns: 0.63 ms with
        // registers for 1024 threads, which spilled, 0.39 for 512, 0.53 with half the items.
        constexpr int kKeptWords = 48;
        if (plan_.numbered() && shape.rows * shape.width * weight.kept > kKeptWords) allowed.resident = 512;
        // Scans of 2^26 numbers times one of their segment: 0.220 ms for 1024 threads, which spilled, 0.200
        // for 768 and 0.217 for 640 with 1024 of each segment; 0.210, 0.191 and 0.197 with 2^20; 0.299, 0.299
        // and 0.322 with 8; 0.293, 0.300 and 0.319 with Zipf lengths.
        constexpr int kScannedWords = 96;
        const bool folds = std::any_of(plan_.levels.begin(), plan_.levels.end(), [](const LevelPlan& level) {
          return !level.fields.empty() && !level.countsOnly;
        });
        if (plan_.numbered() && folds && filled > kScannedWords)
          allowed.resident = std::min(allowed.resident, 768);
      } else {
        // Rows leave what they compute in memory, one after the other, so what is loaded ahead counts. Maps
        // that gather: 0.324 ms with registers for 256 threads, 0.361 with their checks, which the compiler
        // then all held back until the end; 0.298 and 0.303 for 640. Maps of 2^26 numbers: 0.215 ms for 640,
        // 0.204 for 1024 with segments of 8, 0.165 and 0.158 with 1024, 0.183 and 0.177 with Zipf lengths.
        const int loaded = shape.rows * shape.width * weight.packed;
        const bool small = loaded <= 32 && weight.nodes <= kManyNodes;
        allowed.resident = filled <= 64 || small ? 1024 : filled <= 80 ? 768 : loaded <= 64 ? 640 : 256;
      }
    }
    const int used = dealSharedMemory(bytes);
    // Registers need not suffice for more blocks than shared memory does.
    const int atOnce = kMultiprocessorSharedBytes / (used + kBlockSharedBytes);
    plan_.blocksAtOnce = std::max(1, std::min(allowed.resident / shape.threads, atOnce));
  }

 private:
  /// What loops of tiles leave of an item in shared memory.
  int bytesOfLoops() const {
    int bytes = 0;
    if (plan_.refilledInTiles)
      for (ExprRef value : plan_.refilledInTiles->values) bytes += sizeOf(value->type);
    return bytes;
  }

  /// What an item costs.
  struct Weight {
    int smallest = 8;        ///< bytes of the smallest array element
    int widest = 1;          ///< ... and of the widest, or of what is scanned or folded
    int stored = 1;          ///< ... and of the widest that is stored side by side
    int words = 0;           ///< 4-byte registers
    int packed = 0;          ///< ... of elements that are loaded for all items before the first is computed
    int kept = 0;            ///< ... of what was computed for survivors, until they have their places
    size_t nodes = 0;        ///< of thunk code
    int divisions = 0;       ///< ... that are long divisions
    int functions = 0;       ///< ... that are long code: those of float64 count as four of float32
    int quotients = 0;       ///< ... of float64, which are half as long
    bool gathers = false;    ///< elements are loaded at computed places
    int gathered = 0;        ///< ... so many for each
    bool loops = false;      ///< how long thunks take depends on data
    int64_t carried = 0;     ///< bytes of the largest level
    bool countsOnly = true;  ///< all levels have one count, and nothing else
    bool filters = false;    ///< one has several, and nothing else
  };
  Weight weigh() const {
    Weight weight;
    auto stored = [&](ScalarType t) {
      weight.smallest = std::min(weight.smallest, sizeOf(t));
      weight.widest = std::max(weight.widest, sizeOf(t));
      weight.words += sizeOf(t) == 8 ? 2 : 1;
    };
    for (const StagePlan& stage : plan_.stages) {
      std::vector<ExprRef> thunks;
      std::set<ExprRef> kept;
      for (VarId v : stage.packs) {
        stored(program_.vars.at(v).type);
        weight.packed += sizeOf(program_.vars.at(v).type) == 8 ? 2 : 1;
      }
      for (uint32_t b : stage.bindings) {
        const Soac& soac = kernel_.bindings[b];
        auto own = thunksOf(soac);
        thunks.insert(thunks.end(), own.begin(), own.end());
        if (soac.kind == SoacKind::Map || soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition)
          for (size_t j = 0; j < soac.pull.size(); ++j) {
            const ExprRef e = soac.pull[j];
            if (soac.kind != SoacKind::Map &&
                (plan_.recomputed.contains(soac.results[j + 1]) || !info_.output(soac.results[j + 1])))
              continue;
            if (soac.kind == SoacKind::Map) weight.stored = std::max(weight.stored, sizeOf(e->type));
            stored(e->type);
            const bool element = e->kind == ExprKind::Load && isElement(e->operands[0]);
            if (soac.kind == SoacKind::Filter && !element && kept.insert(e).second)
              weight.kept += sizeOf(e->type) == 8 ? 2 : 1;
          }
      }
      lcu::forEachNode(thunks, [&](ExprRef e) {
        weight.nodes += lcu::isUnbounded(e) ? 8 : 1;
        weight.loops |= lcu::isUnbounded(e);
        weight.divisions += dividesLongIntegers(e) && !dividesByWords(e);
        if (isLongFunction(e) || (e->kind == ExprKind::Op && e->op == ScalarOp::Sqrt))
          weight.functions += e->type == ScalarType::Float64 ? 4 : 1;
        weight.quotients += e->kind == ExprKind::Op && e->op == ScalarOp::Div &&
                            e->type == ScalarType::Float64 && !isPowerOfTwo(e->operands[1]);
        if (e->kind != ExprKind::Load) return;
        const ExprRef at = e->operands[0];
        weight.gathered += at->usesParam && at->kind != ExprKind::Param;
        weight.gathers = weight.gathered > 0;
      });
    }
    for (const LevelPlan& level : plan_.levels) {
      weight.carried = std::max(weight.carried, level.fields.empty() ? 0 : level.bytes());
      weight.countsOnly &= level.fields.empty() || (level.countsOnly && level.fields.size() == 1);
      weight.filters |= level.countsOnly && level.fields.size() > 1;
      for (const Field& f : level.fields) {
        if (f.count) continue;
        weight.widest = std::max(weight.widest, sizeOf(f.type));
        if (kernel_.bindings[f.binding].kind == SoacKind::Scan)
          weight.stored = std::max(weight.stored, sizeOf(f.type));
      }
      for (const Field& f : level.fields)
        weight.words += f.count ? (level.fields.size() == 1 ? 0 : 2) : sizeOf(f.type) / 2;
    }
    for (const Field& f : plan_.reductions) weight.widest = std::max(weight.widest, sizeOf(f.type));
    if (plan_.numbersInThunks) ++weight.words;
    return weight;
  }

  /// Whether nothing but segments is folded, in any order, by short thunks that take equally long.
  bool canGroup(size_t nodes, bool loops) const {
    if (!plan_.ranges() || plan_.scansRanges() || !plan_.levels[0].commutes || loops || nodes > kManyNodes)
      return false;
    if (!plan_.reductions.empty() || !plan_.finish.empty()) return false;
    return std::all_of(plan_.stages[0].bindings.begin(), plan_.stages[0].bindings.end(), [&](uint32_t b) {
      return kernel_.bindings[b].kind == SoacKind::Reduce && info_.bindings[b].localReads.empty();
    });
  }

  /// Threads of a block, items of a thread at most, and threads of a multiprocessor that registers must
  /// suffice for. The figures in milliseconds are of an H200 and 2^27 float32 (or as many bytes).
  struct Budget {
    int threads, items;
    int resident = 0;  ///< 0: by what items fill
  };
  Budget budget(const Weight& weight) const {
    const int words = std::max(1, weight.words);
    const bool wide = weight.carried >= 16;
    Budget budget{plan_.grid == Grid::Single ? 32 : options_.threads,
                  std::min(options_.maxItems, kItemWords / words)};
    if (plan_.scansRanges()) {
      // What is scanned and what is folded is there at the same time. The greatest of running sums of float64
      // in segments of 8 and 1000 took 0.53 and 0.318 on an H200 with 4 items, 0.46 and 0.327 with 8, of
      // float32 0.28 and 0.174 with 8, 0.24 and 0.183 with 16. 40 bytes and quotients of float64 took 1.42
      // with 8 and 0.77 with 4, 40 bytes alone 0.72 and 0.86; two 8-byte columns 1.62 with registers for 768
      // threads, 1.80 for 512.
      constexpr int64_t kFew = 8, kSome = 16, kMany = 64;
      int64_t bytes = 0;
      for (const LevelPlan& level : plan_.levels) bytes += level.usualBytes();
      const bool many = bytes + static_cast<int64_t>(weight.nodes) > kMany;
      return {options_.threads / 4,
              std::min(options_.maxItems, bytes <= kFew ? 16
                                          : many        ? 4
                                                        : 8),
              bytes <= kSome ? 768 : 512};
    }
    if (plan_.ranges()) {
      // Warps work by themselves and load a tile ahead, so registers count for more than many warps: sums of
      // segments of 8 took 0.218 with registers for 1024 threads, 0.195 for 768; of four arrays 0.31 for 640
      // and 0.17 for 512; a sparse matrix with rows of 8 took 0.275 and 0.265. Of more than 16 bytes a scan
      // over the lanes takes long, so tiles are long: sums of 3, 4 and 6 float64 columns in segments of 16
      // took 0.45, 0.49 and 1.04 with 4, 4 and 2 items, 0.36, 0.39 and 0.72 with twice as many. Where 3
      // are gathered, long segments took 1.89 with 4 items and 2.28 with 8.
      if (wide) {
        // Loops, in which other warps are worked on meanwhile, want registers for as many as can be: rays
        // through a picture, folded to two sums, took 6.06 ms with 4 items and registers for 512 threads,
        // 5.70 with 2 for 1024; searches for connections 0.160 and 0.129. What carries less had better stay.
        if (weight.loops) return {options_.threads / 4, std::min(budget.items, 2), 1024};
        const int carried = static_cast<int>(weight.carried);
        const int bytes = carried > 16 && weight.gathered < 2 ? 256 : 128;
        return {options_.threads / 4, std::min(options_.maxItems, std::max(1, bytes / carried)), 512};
      }
      budget.resident = 768;
      // Loops wait for what they load, so the more warps, the better: searches of neighbours in lists of
      // neighbours took 4.17 and 1.39 ms with registers for 768 threads on an H200, 3.95 and 1.27 for 1024,
      // with 4 items 4.09 and 1.32; six other programs 0.87 to 0.96 of the time.
      if (weight.gathers) return {options_.threads / 2, std::min(budget.items, 8), weight.loops ? 1024 : 768};
      budget.threads /= 4;
      // Sums of exp(x - c) in 1.3*10^5 segments of 1000, each with its c, took 0.69 on an H100 with registers
      // for 768 threads and 0.45 for 512. Segments of different lengths do not mind.
      const bool functionsOfSegments =
          weight.functions > 0 && plan_.numbersInThunks && info_.space.kind == lcu::SpaceKind::Regular;
      if (functionsOfSegments) budget.resident = 512;
    } else if (plan_.numbered()) {
      // Scans of numbers times one of their segment, of 1024 each, took 0.48 with 256 threads and 16 items,
      // 0.40 with 128 and 32.
      budget.threads /= 2;
      budget.items = std::min(2 * options_.maxItems, kNumberedItemWords / words);
      // Filters wait for numbers, and for what is loaded with them, more than for lower tiles: of 8*10^7
      // elements in segments of 8, each loaded by where its segment begins, they took 0.88 to 1.07 ms with 32
      // items (and registers for 512 threads) on an H100, 0.59 to 0.74 with 16 (for 1024), 0.83 to 0.86
      // with 8.
      constexpr int kFiltered = 16;
      if (plan_.scanned() && weight.countsOnly) budget.items = std::min(budget.items, kFiltered);
      // Those beside each other that leave nothing but how many they keep (and sums) wait for lower tiles
      // most of the time: two of 4*10^8 elements in segments of 16384 took 5.57 ms on an H200 with 128
      // threads and 8 items, 3.67 with 256, 2.42 with 256 and 16.
      if (plan_.scanned() && weight.filters && weight.kept == 0 && scannedLevels() == 0) {
        budget.threads = options_.threads;
        budget.items = options_.maxItems;
      }
      // A thread goes through the loops of its items one after the other, so it has one; but to find where a
      // tile of 128 items begins takes 3 us, which counts where there are many tiles and loops are short.
      // Digits of 10^7 numbers in segments of 10 took 0.145 ms with one item on an H200, 0.112 with 4 and
      // 0.107 with 8; steps of Collatz 1.95, 2.03 and 2.05; of 10^6 numbers 0.199, 0.223 and 0.238.
      constexpr int kManyLoops = 4;
      if (weight.loops)
        budget.items = plan_.scanned() || plan_.longTiles ? std::min(budget.items, kManyLoops) : 1;
    } else if (plan_.scanned()) {
      // Long tiles wait less often. Scans of four arrays took 0.33 with 256 threads and 8 items, 0.29 with
      // 128 and 16.
      budget.items = std::min(2 * options_.maxItems, (wide ? 2 : 1) * kWaitingItemWords / words);
      // Of what is small, or not stored, 256 threads hold as much: two scans of 6.4*10^7 truth values and
      // their counts took 0.60 ms on an H100 with 128 threads and 16 items, 0.37 with 256; of three columns
      // 0.34 with 128 and 32, 0.30.
      constexpr int kFewWords = 8;
      if (wide && words <= kFewWords)
        budget.items = std::min(budget.items, options_.maxItems);
      else if (wide)
        budget.threads /= 2;
      // What waits several times waits the less often the longer its tiles are, and a level's items are gone
      // when the next one begins: three scans and four sums of 2^27 int64 took 2.93 ms with 1024 items on an
      // H100, 1.71 with 128 threads and 16 items, 1.59 with 256; four scans 1.57 and 1.51 with the latter
      // two.
      // So do filters beside each other: five of 5*10^7 numbers took 1.13 ms with 128 threads and 8 items,
      // 0.45 with 256 and 16.
      constexpr int kDeepWords = 384;
      if ((scannedLevels() > 1 || weight.filters) && !weight.loops)
        return {options_.threads, std::min(options_.maxItems, kDeepWords / words), 512};
      // What a filter has loaded it keeps until it knows where survivors go. Of 2^27 int64, the positions of
      // few took 0.65 with 32 items on an H100 (registers for 1024 threads, which spilled), and 0.41 with 16.
      constexpr int kLoadedWords = 48;
      while (weight.countsOnly && budget.items > 4 && budget.items * weight.packed > kLoadedWords)
        budget.items /= 2;
      // Filters of 2^27 characters took 0.167 with 256 threads, 0.156 with 512.
      if (weight.countsOnly && plan_.narrow && !weight.gathers) budget.threads *= 2;
      if (weight.countsOnly && budget.items * words <= 64) budget.resident = weight.gathers ? 768 : 1280;
      constexpr size_t kLongLoops = 400;
      if (weight.loops && weight.nodes > kManyNodes) {
        // Registers that do not suffice for such loops take longer than anything else. Short tiles take long,
        // too, where loops are short: their carries go through one scanner, 9.6 ns for each of 128 items.
        budget = {options_.threads / 2, onlyMarks() ? 8 : weight.nodes <= kLongLoops ? 4 : 2, 512};
      } else if (weight.loops) {
        budget.items = std::min(budget.items, 4);
      }
      // Lanes that take each other's items have more of them.
      if (plan_.refilledInTiles) budget.items = std::max(budget.items, weight.nodes <= kLongLoops ? 8 : 4);
    } else if (weight.loops) {
      // Few items, so that there are blocks enough to even out how long they take; a thread does its items
      // one after the other in any case.
      budget.items = 1;
    } else if (plan_.grid == Grid::Tiles && weight.nodes > kManyNodes) {
      // Arithmetic wants other warps to work on meanwhile. Black-Scholes took 0.21 with 16 items, 0.19
      // with 8.
      budget.items = std::min(budget.items, 8);
      budget.resident = 1024;
    } else if (plan_.grid == Grid::Tiles && weight.gathers && !plan_.narrow) {
      // Few items, so that registers suffice for many warps: on an H100 x[i - 1], x[i] and x[i + 1] of 2^27
      // float64 took 0.92 with 16 items, 0.82 with 4 and 0.74 with 2, five points of a plane 0.89, 0.78 and
      // 0.81, gathers of what is near 1.21, 1.07 and 1.06.
      budget.items = std::min(budget.items, 4);
    } else if (plan_.grid == Grid::Chunks && weight.gathers && weight.nodes > kManyNodes) {
      // The same, and a few hundred thousand elements should occupy the whole device.
      budget.items = std::min(budget.items, 4);
    }
    return budget;
  }

  /// Levels that carry more than counts.
  size_t scannedLevels() const {
    return static_cast<size_t>(
        std::count_if(plan_.levels.begin(), plan_.levels.end(),
                      [](const LevelPlan& level) { return !level.fields.empty() && !level.countsOnly; }));
  }

  /// Nodes of thunk code that run for each segment.
  size_t epilogueNodes() const {
    size_t nodes = 0;
    for (uint32_t b : plan_.epilogues)
      lcu::forEachNode(thunksOf(kernel_.bindings[b]), [&](ExprRef) { ++nodes; });
    return nodes;
  }

  /// Whether the last of several writers to a place stays: the earlier it writes, the fewer others try.
  bool writesLast() const {
    return std::any_of(kernel_.bindings.begin(), kernel_.bindings.end(),
                       [](const Soac& s) { return s.kind == SoacKind::Permute && !s.writesInAnyOrder(); });
  }

  /// Threads have as many segments at once as registers hold what belongs to each: the more, the fewer loads
  /// by position.
  void chooseRowShape(const Weight& weight) {
    constexpr int kWords = 64;
    constexpr size_t kNodes = 400;
    int words = static_cast<int>(plan_.levels[0].bytes() + 3) / 4;
    std::unordered_set<ExprRef> bySegment;
    bool functions = false;
    for (uint32_t b : plan_.stages[0].bindings) {
      lcu::forEachNode(thunksOf(kernel_.bindings[b]), [&](ExprRef e) {
        if (e->kind == ExprKind::Load && usesParam(e, 1) && bySegment.insert(e).second)
          words += sizeOf(e->type) == 8 ? 2 : 1;
        functions |= e->type == ScalarType::Float64 && isLongFunction(e);
      });
    }
    TileShape& shape = plan_.shape;
    shape.threads = options_.threads;
    shape.width = shape.rows = 1;
    // What is read across comes from memory, which many blocks keep busier than many segments of each.
    // Functions of float64 fill registers themselves: sums of exp(x - c) of rows of 32 that are made on the
    // way took 0.93 ms on an H100 with 8 rows and registers for 768 threads, which spilled, 0.30 for 512,
    // 0.33 with 4 rows; of ln(1 + d * d) 0.41, 0.42 and 0.37, of sin(x * y) 0.33, 0.33 and 0.26.
    const bool across = plan_.across;
    const int most = plan_.fewColumns ? 1 : across || functions ? 4 : 8;
    const auto fits = [&](int rows) {
      return rows <= most && rows * words <= (plan_.indices ? 2 : 1) * kWords &&
             static_cast<size_t>(rows) * weight.nodes <= kNodes;
    };
    while (!weight.loops && fits(2 * shape.rows)) shape.rows *= 2;
    const bool few = shape.rows * words <= kWords / 2;
    // Of as many columns as lanes, or fewer, a thread has one: with no registers for others there is room for
    // more threads. Sums of 3 and 16 columns of 1.2*10^8 float64, by indices, took 0.59 and 0.49 on an H100
    // with those of 4 columns, 0.42 and 0.37 with those of one (100 columns: 0.39 and 0.42).
    // Of short segments, 2^24 float64 in rows of 3, with 12 other rows, 0.403 ms on an H200 with 8 rows and
    // registers for 1024 threads, which spilled, 0.367 for 768, 0.380 with 4 rows; of float32 0.280, 0.309
    // and 0.365.
    const int resident = functions          ? 512
                         : plan_.shorts()   ? (plan_.levels[0].bytes() <= 4 ? 1024 : 768)
                         : plan_.fewColumns ? 1280
                         : !few             ? 512
                         : across           ? 1024
                                            : 768;
    plan_.blocksAtOnce = std::max(1, resident / shape.threads);
  }

  /// A thread has as many segments as registers hold, as near to a square as can be: the fewer loads from
  /// shared memory.
  void chooseProductShape() {
    constexpr int kWords = 32;
    const int words = static_cast<int>(plan_.levels[0].bytes() + 3) / 4;
    TileShape& shape = plan_.shape;
    shape.threads = options_.threads;
    shape.rows = shape.width = 4;
    if (16 * words > kWords) shape.width = 2;
    if (8 * words > kWords) shape.rows = 2;
    plan_.blocksAtOnce = std::max(1, 512 / shape.threads);
  }

  /// As many segments as make up a piece of 32 bytes of what a thread reads for them, if registers hold their
  /// results. Transpositions of 8000 x 8000 int64 took 0.32 ms with 4 on an H200, 0.38 with 8; of 20,000,000
  /// x 3 0.29 and 0.59; of 8000 x 8000 characters 0.20, 0.18 and 0.18 with 4, 8 and 16.
  void chooseTransposedShape() {
    constexpr int kPiece = 32, kWords = 40, kNodes = 320;
    int words = 0, nodes = 0;  // of a row: what depends on the position alone is there once
    int widest = 1;            // of what is read across
    const auto wordsOf = [](ScalarType t) { return sizeOf(t) == 8 ? 2 : 1; };
    std::unordered_set<ExprRef> seen;
    for (uint32_t b : plan_.stages[0].bindings) {
      const Soac& soac = kernel_.bindings[b];
      for (VarId v : soac.results) words += info_.output(v) ? wordsOf(program_.vars.at(v).type) : 0;
      lcu::forEachNode(thunksOf(soac), [&](ExprRef e) {
        if (!seen.insert(e).second || !(usesParam(e, 0) || usesParam(e, 1))) return;
        ++nodes;
        if (e->kind != ExprKind::Load) return;
        words += wordsOf(e->type);
        if (readsAcross(e)) widest = std::max(widest, sizeOf(e->type));
      });
    }
    TileShape& shape = plan_.shape;
    shape.threads = options_.threads;
    shape.width = shape.rows = 1;
    const auto fits = [&](int rows) {
      return rows * widest <= kPiece && rows <= options_.maxRows && rows * words <= kWords &&
             rows * nodes <= kNodes;
    };
    while (fits(2 * shape.rows)) shape.rows *= 2;
  }

  /// As many segments as tables of all warps have room for; four blocks of a multiprocessor fill its shared
  /// memory. What fills registers gets more of these, and larger tables, from fewer threads.
  void chooseKeyShape(const Weight& weight) {
    constexpr size_t kNodes = 120;
    constexpr int kFewWords = 4, kWords = 24, kMostKeys = 2048;
    const int words = static_cast<int>(plan_.levels[0].bytes() + 3) / 4;
    TileShape& shape = plan_.shape;
    const bool fills = weight.loops || weight.nodes > kNodes || words > kFewWords;
    shape.threads = fills ? std::max(32, options_.threads / 2) : options_.threads;
    shape.width = 1;
    shape.rows = 4;
    while (shape.rows > 1 && (weight.loops || static_cast<size_t>(shape.rows) * weight.nodes > kNodes ||
                              shape.rows * words > kWords))
      shape.rows /= 2;
    const int bytes = static_cast<int>(plan_.levels[0].bytes()) * (shape.threads / 32);
    shape.keys = std::clamp(options_.sharedBytes / bytes, 1, kMostKeys);
    plan_.blocksAtOnce = kKeyBlocks;
  }

  /// By what was fastest on an H200: an end takes more work than an element of 4 or 8 bytes, less than one
  /// with a gather.
  void weighRanges(const Weight& weight) {
    if (weight.gathers) {
      plan_.elementWeight = 2;
    } else {
      plan_.endWeight = weight.carried >= 16 ? 2 : 3;
    }
  }

  /// Whether filters mark which elements they keep, and nothing else is left of an item: what they keep is
  /// computed again where it is stored.
  bool onlyMarks() const {
    const StagePlan& stage = plan_.stages[0];
    return plan_.scanned() && !plan_.segmented() && plan_.stages.size() == 1 && stage.packs.empty() &&
           plan_.reductions.empty() &&
           std::all_of(stage.bindings.begin(), stage.bindings.end(), [this](uint32_t b) {
             const Soac& soac = kernel_.bindings[b];
             return soac.kind == SoacKind::Filter &&
                    std::all_of(soac.results.begin() + 1, soac.results.end(),
                                [this](VarId v) { return plan_.recomputed.contains(v); });
           });
  }

  /// Fewer than all where a row ends with its stores and the code is long: then the rest would cost compile
  /// time and registers, and gain nothing.
  int rowsAtOnce(const Weight& weight) const {
    if (weight.loops && onlyMarks()) return plan_.shape.rows > 1 ? 1 : 0;
    const StagePlan& stage = plan_.stages[0];
    const bool rowsEnd =
        (plan_.grid == Grid::Tiles || plan_.grid == Grid::Chunks || plan_.numbered()) &&
        plan_.stages.size() == 1 && plan_.levels[0].fields.empty() && stage.packs.empty() &&
        std::all_of(stage.bindings.begin(), stage.bindings.end(), [this](uint32_t b) {
          const SoacKind kind = kernel_.bindings[b].kind;
          return kind == SoacKind::Map || kind == SoacKind::Permute || kind == SoacKind::Reduce;
        });
    if (!rowsEnd) return 0;
    const size_t ofRow =
        static_cast<size_t>(plan_.shape.width) * (weight.nodes + (plan_.numbered() ? kNumberNodes : 0));
    int rows = 1;
    while (rows < plan_.shape.rows && 2 * static_cast<size_t>(rows) * ofRow <= kLoopNodes) rows *= 2;
    return rows < plan_.shape.rows ? rows : 0;
  }

  /// Chooses how much is collected at once. `bytes`: what else an item needs. Gives all that is used.
  int dealSharedMemory(int bytes) {
    const int items = plan_.shape.items(), used = items * bytes;
    if (plan_.bufferBytesPerItem == 0) return used;
    constexpr int kLeast = 32;
    const int fit = (options_.sharedBytes - used) / plan_.bufferBytesPerItem / 128 * 128;
    plan_.bufferItems = std::min(items, std::max(kLeast, fit));
    return used + plan_.bufferItems * plan_.bufferBytesPerItem;
  }

  /// A lane stores 16 bytes of the widest elements at once: a warp's go out as whole lines then, where of 32
  /// bytes a lane each half goes out by itself (from 2^27 characters to int64 took 0.50 to 0.62 ms with 32).
  /// Of bytes alone it moves 8.
  /// Lanes that load at computed places near their items touch twice as many lines where they have two items
  /// side by side. On an H200 a step of a cloth (12 such loads) took 0.77 of the time with one, rows times a
  /// table of 8 x 8 (16 of them) 0.84; with 4 to 6 such loads it was 0.85 to 1.2, with 8 or 9 the same.
  int widthOf(const Weight& weight) const {
    constexpr int kManyGathers = 12;
    if (flatOnce() && weight.gathered >= kManyGathers && weight.smallest >= 4) return 1;
    // A scan over the lanes for each row of items takes longer than loads of which each touches 32 places.
    // Greatest running sums of 5*10^7 float64 in segments of 8 and 1000 took 0.241 and 0.177 ms on an H200
    // with 2 neighbours a lane, 0.212 and 0.138 with 8; stored as well, 0.275 and 0.241, and 0.310 and 0.294.
    if (plan_.scansRanges() && !storesElementsOf8Bytes()) return 8;
    if (weight.smallest >= 8 || weight.stored >= 8) return 2;
    if (gathersBytesOfSegments(weight)) return 8;
    return plan_.narrow && weight.widest == 1 && 8 * weight.nodes <= 2 * kLoopNodes ? 8 : 4;
  }

  /// Whether tiles keep what their segments have in shared memory. It comes from far away once for each row
  /// of items otherwise, which waits for it. On an H200 scans of 2^27 float32 times a number of their segment
  /// took 0.541 ms without in segments of 8 and 0.404 with, of 1024 0.347 and 0.337; maps 0.377 and 0.344,
  /// 0.297 and 0.283. What gathers or filters, or has few rows of wide elements, takes up to 1.1 times as
  /// long with it (bench/results/h200-2026-11-29-values-of-segments.txt).
  bool keepsSegmentValues(const Weight& weight) const {
    if (!plan_.numbered() || plan_.reckons() || weight.gathers) return false;
    const bool folds = std::any_of(plan_.levels.begin(), plan_.levels.end(), [](const LevelPlan& level) {
      return !level.fields.empty() && !level.countsOnly;
    });
    return plan_.scanned() ? folds : weight.packed > 0 && weight.widest <= 4;
  }

  /// Whether a map of segments stores bytes that it gathers, or computes of nothing, and has at most one
  /// number of each segment. Of 1.3*10^8 characters, `t[b + p]` took 0.346 ms on an H200 with 4 neighbours a
  /// lane in segments of 12, 0.283 with 8; in segments of 3 0.349 and 0.325. Of three numbers a warp loads
  /// twice as many lines at once in short segments: 0.41 and 0.34 ms of 12, 0.48 and 1.04 of 3; so it does
  /// with elements: 0.317 and 0.304, 0.343 and 0.398.
  bool gathersBytesOfSegments(const Weight& weight) const {
    if (!plan_.numbered() || plan_.scanned() || weight.widest > 1 || weight.nodes > kManyNodes) return false;
    std::set<VarId> ofSegments;
    for (uint32_t b : plan_.stages[0].bindings)
      lcu::forEachNode(thunksOf(kernel_.bindings[b]), [&](ExprRef e) {
        if (loadsAtSegment(e, info_)) ofSegments.insert(e->index);
      });
    return plan_.stages[0].packs.empty() && ofSegments.size() <= 1;
  }

  bool storesElementsOf8Bytes() const {
    return std::any_of(kernel_.bindings.begin(), kernel_.bindings.end(), [&](const Soac& soac) {
      return (soac.kind == SoacKind::Map || soac.kind == SoacKind::Scan) &&
             soac.space.extent == info_.space.extent &&
             std::any_of(soac.results.begin(), soac.results.end(),
                         [&](VarId v) { return info_.output(v) && sizeOf(program_.vars.at(v).type) == 8; });
    });
  }

  /// Whether elements are independent: fewer of them at once only cost the wait for their loads.
  bool flatOnce() const {
    return (plan_.grid == Grid::Tiles || plan_.grid == Grid::Chunks) && !plan_.scanned();
  }

  PassPlan& plan_;
  const lcu::Kernel& kernel_;
  const KernelInfo& info_;
  const lcu::Program& program_;
  const CudaOptions& options_;
};

}  // namespace

bool isLongFunction(ExprRef e) {
  return e->kind == ExprKind::Op && e->op > ScalarOp::Sqrt && e->op != ScalarOp::Floor;
}

void chooseShape(PassPlan& plan, const lcu::Kernel& kernel, const KernelInfo& info,
                 const lcu::Program& program, const CudaOptions& options) {
  ShapeChooser(plan, kernel, info, program, options).run();
}

}  // namespace kelpie::codegen::cuda
