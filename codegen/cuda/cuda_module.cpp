#include "codegen/cuda/cuda_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codegen/cuda/pass_generator.h"
#include "codegen/cuda/pass_split.h"
#include "codegen/expression_schedule.h"

namespace kelpie::codegen::cuda {

namespace {
constexpr int kWarp = 32;
constexpr const char* kPrologue = "#include \"kelpie.cuh\"\n\nusing namespace kelpie;\n";
constexpr const char* kShortPlaces = "using Place = uint32_t;\n";
constexpr const char* kLongPlaces = "using Place = uint64_t;\n";

int64_t pieces(int64_t number, int64_t each) { return std::max<int64_t>(1, (number + each - 1) / each); }

/// Blocks that share the positions of each group of segments, `most` at most: all at once, if that occupies
/// most of the device, else so many that it hardly counts how few there are at the end.
int64_t chunksOf(int64_t groups, int64_t atOnce, int64_t most) {
  constexpr int64_t kRounds = 8, kTogether = 24;  // ... as ChunkFold::kTogether
  const int64_t all = kMultiprocessors * atOnce, each = all / groups;
  if (100 * each * groups >= 85 * all) return std::clamp<int64_t>(each, 1, most);
  if (groups > kMostCounters) return 1;
  return std::clamp<int64_t>(pieces(kRounds * all, groups), 1, std::min(most, kTogether));
}

/// As RowTiles in segment_rows.cuh cuts a space; chunks as long as there are blocks to gain.
int64_t rowTiles(const TileShape& shape, const LaunchExtents& extents) {
  constexpr int64_t kMany = 1 << 17, kBlocks = kMostGroups, kOfThread = 4;
  const bool alone = extents.length <= shape.threads || extents.segments >= kMany;
  const int64_t atOnce = (alone ? int64_t{shape.threads} : 1) * shape.rows;
  const int64_t groups = pieces(extents.segments, atOnce);
  if (alone) return groups;
  const int64_t longest = pieces(extents.length, kOfThread * shape.threads);
  return groups * std::clamp<int64_t>(kBlocks / groups, 1, longest);
}

/// As in transposed_tile.cuh.
int64_t lanesFor(int64_t neighbours) {
  int64_t lanes = kWarp;
  while (lanes > 1 && lanes / 2 >= neighbours) lanes /= 2;
  return lanes;
}

/// As TransposedTile does.
int64_t transposedTiles(const TileShape& shape, const LaunchExtents& extents) {
  int64_t high = shape.threads / lanesFor(extents.length);
  while (high > 1 && high / 2 * shape.rows >= extents.segments) high /= 2;
  return pieces(extents.length, shape.threads / high) * pieces(extents.segments, high * shape.rows);
}

/// As ColumnTiles in segment_columns.cuh cuts a space.
int64_t columnTiles(const TileShape& shape, const LaunchExtents& extents, int64_t atOnce) {
  constexpr int64_t kMany = kMostGroups, kShort = 32, kOfThread = 8;
  const int64_t lanes = lanesFor(extents.inner > 0 ? extents.inner : extents.segments);
  const int64_t warps = shape.threads / kWarp;
  const int64_t sets =
      extents.inner > 0 ? pieces(extents.inner, lanes) * pieces(extents.segments / extents.inner, shape.rows)
                        : pieces(extents.segments, lanes * shape.rows);
  if (extents.length <= kShort || sets >= kMany * warps) return pieces(sets, warps);
  const int64_t longest = pieces(extents.length, kOfThread * warps * (kWarp / lanes));
  return sets * chunksOf(sets, atOnce, longest);
}

/// As ShortReduce in segment_shorts.cuh does.
int64_t shortTiles(const TileShape& shape, const LaunchExtents& extents) {
  const int64_t inner = std::max<int64_t>(1, extents.inner), lanes = lanesFor(inner);
  const int64_t rows = pieces(extents.segments / inner, shape.rows * (kWarp / lanes));
  return std::max<int64_t>(1, pieces(pieces(inner, lanes) * rows, shape.threads / kWarp));
}

/// As ProductTiles in segment_products.cuh cuts a space.
int64_t productTiles(const TileShape& shape, const LaunchExtents& extents, int64_t atOnce) {
  constexpr int64_t kDepth = 16, kDeep = 4;  // ... of which several pay for what is folded afterwards
  const int64_t sets = extents.inner > 0 ? pieces(extents.inner, shape.places()) *
                                               pieces(extents.segments / extents.inner, shape.outers())
                                         : 1;
  return sets * chunksOf(sets, atOnce, pieces(extents.length, kDeep * kDepth));
}

/// As KeyReduce in segment_keys.cuh does: as many blocks as run at once, if all have something to do.
int64_t keyTiles(const TileShape& shape, const LaunchExtents& extents) {
  const int64_t groups = std::max<int64_t>(1, (extents.segments + shape.keys - 1) / shape.keys);
  const int64_t most = std::max<int64_t>(1, (extents.length + shape.items() - 1) / shape.items());
  return groups * std::clamp<int64_t>(kKeyBlocks * kMultiprocessors / groups, 1, most);
}

/// Nanoseconds on an H200 of segments of two indices by threads that have several (segment_shorts.cuh): of a
/// segment and of an element, whether a lane has one or not, and of what is read by outer indices, of which a
/// warp has many where there are few places.
double timeOfShorts(double outers, double places, double length) {
  constexpr double kSegment = 2.6e-3, kElement = 0.52e-3, kRead = 2e-3, kReadApart = 8e-3;
  constexpr double kFewPlaces = 2;
  return segmentsOfShorts(outers, places) * (kSegment + length * kElement) +
         outers * length * (places <= kFewPlaces ? kReadApart : kRead);
}

/// ... of short ones by columns (segment_columns.cuh), for which a warp has eight outer indices or fewer.
double timeOfShortColumns(double outers, double places, double length) {
  constexpr double kOuter = 0.125, kElement = 0.6e-3;
  return outers * (std::ceil(places / kWarp) * kOuter + places * length * kElement);
}
}  // namespace

ProductTime::ProductTime(const TileShape& shape, double outers, double places, double length) {
  const double high = shape.outers(), wide = shape.places();
  tiles = std::ceil(outers / high) * std::ceil(places / wide);
  // As where one tile has them all; others are whole, but for those at the end.
  const bool few = outers <= high / 2, narrow = places <= wide / 2;
  const double position = few && narrow ? kPositionOfQuarter : few || narrow ? kPositionOfHalf : kPosition;
  nanoseconds = tiles * (kTile + position * length);
}

double segmentsOfShorts(double outers, double places) {
  constexpr double kRows = 8;  // of a thread, unless what it folds is wide
  const auto lanes = static_cast<double>(lanesFor(static_cast<int64_t>(places)));
  const double beside = kRows * kWarp / lanes;
  return std::ceil(places / lanes) * lanes * std::ceil(outers / beside) * beside;
}

ProductWay productWay(const TileShape& shape, bool byColumns, double outers, double places, double length) {
  // Of an element of a range, in long segments and in short ones, and of one of a column.
  constexpr double kOfRanges = 3.6e-3, kOfShortRanges = 6e-3, kOfColumns = 1e-3, kLongest = 32;
  const double elements = outers * places * length;
  const double tiles = ProductTime(shape, outers, places, length).nanoseconds;
  if (length > kLongest)
    return tiles < elements * (byColumns ? kOfColumns : kOfRanges) ? ProductWay::Tiles : ProductWay::AsOthers;
  const double others = byColumns ? timeOfShortColumns(outers, places, length) : elements * kOfShortRanges;
  const double shorts = timeOfShorts(outers, places, length);
  if (tiles < std::min(others, shorts)) return ProductWay::Tiles;
  return shorts < others ? ProductWay::Shorts : ProductWay::AsOthers;
}

int64_t CudaPass::tileSize() const {
  const int aligned = grid == Grid::Ranges ? shape.threads / kWarp : 0;
  return shape.items() - aligned * shape.width;
}

int64_t CudaPass::states(int64_t tiles) const {
  constexpr int64_t kTilesOfVote = 1024, kWordsOfVote = 2;  // as in lane_queue.cuh
  return stateWords * tiles + (votes ? kWordsOfVote * (tiles / kTilesOfVote + 2) : 0);
}

int64_t CudaPass::rankGroups(int64_t tiles) const { return tiles * (shape.threads / kWarp) * shape.rows; }
int64_t CudaPass::rankBytes(int64_t tiles) const {
  return (rankGroups(tiles) + 2) * (8 + int64_t{4} * shape.width);
}

int64_t CudaPass::together(const LaunchExtents& extents) const {
  // Every block looks at the cuts of all, so they are few; of those by warps, as many as run at once. Longer
  // segments are better shared by blocks, unless there are many.
  constexpr int64_t kRounds = 16, kBlocks = 384, kLongest = 4, kMany = 64;
  const int64_t n = extents.elements, m = extents.segments, atOnce = shape.items();
  if (mostOfGroups == 0 || n > mostOfGroups || m == 0) return 0;
  if (n > (m < kMany ? 1 : kLongest) * atOnce * m) return 0;
  int bits = 0;  // of their number, less one: a launch should not divide much
  const auto blocks = [&] { return ((m - 1) >> bits) + 1; };
  while (2 << bits <= shape.threads && n << (bits + 1) <= atOnce * m) ++bits;
  if (byWarps) {
    const int64_t most = shape.threads / kWarp;
    while (1 << bits <= most && blocks() > kMultiprocessors * blocksAtOnce) ++bits;
    return 1 << bits <= most ? 1 << bits : 0;
  }
  while (2 << bits <= kRounds * shape.threads && blocks() > kBlocks) ++bits;
  return blocks() <= kBlocks ? 1 << bits : 0;
}

bool CudaPass::suits(const LaunchExtents& extents) const {
  if (fewColumns) return extents.segments <= kWarp;
  if (leastOfLongTiles > 0) return extents.elements >= leastOfLongTiles;
  if (grid != Grid::Products && grid != Grid::Shorts) return together(extents) > 0;
  if (extents.inner == 0) return false;
  const int64_t outers = extents.segments / extents.inner;
  const bool tiles = grid == Grid::Products;
  const ProductWay way =
      productWay(tiles ? shape : TileShape(), insteadOfColumns, static_cast<double>(outers),
                 static_cast<double>(extents.inner), static_cast<double>(extents.length));
  // Tiles are asked before, with a shape of their own.
  return tiles ? way == ProductWay::Tiles : way != ProductWay::AsOthers;
}

int64_t CudaPass::rangesAtOnce(const LaunchExtents& extents) const {
  return extents.blocksAtOnce > 0 ? std::min(maxChunks, kMultiprocessors * extents.blocksAtOnce) : maxChunks;
}

int64_t CudaPass::mostRanges(int64_t tiles, const LaunchExtents& extents) const {
  // To begin a range costs a search, a twentieth of what a warp takes for so many tiles of gathers.
  constexpr int64_t kTiles = 8;
  const int64_t wanted = (extents.gatheredBytes + nearBytes - 1) / nearBytes;
  const int64_t atOnce = rangesAtOnce(extents);
  return atOnce * std::clamp<int64_t>(tiles / (kTiles * atOnce), 1, std::max<int64_t>(wanted, 1));
}

int64_t CudaPass::tiles(const LaunchExtents& extents) const {
  if (grid == Grid::Single) return 1;
  if (grid == Grid::Rows) return rowTiles(shape, extents);
  if (grid == Grid::Columns) return columnTiles(shape, extents, blocksAtOnce);
  if (grid == Grid::Products) return productTiles(shape, extents, blocksAtOnce);
  if (grid == Grid::Shorts) return shortTiles(shape, extents);
  if (grid == Grid::Transposed) return transposedTiles(shape, extents);
  if (grid == Grid::Keys) return keyTiles(shape, extents);
  if (const int64_t each = together(extents)) return (extents.segments + each - 1) / each;
  int64_t work = extents.elements + (grid == Grid::Ranges ? extents.segments : 0);
  int64_t tiles = std::max<int64_t>(1, (work + tileSize() - 1) / tileSize());
  return grid == Grid::Ranges ? std::min(tiles, mostRanges(tiles, extents)) : tiles;
}

Streams CudaPass::streams(const LaunchExtents& extents) const {
  const int64_t blocks = extents.blocksAtOnce > 0 ? extents.blocksAtOnce : blocksAtOnce;
  if (grid == Grid::Tiles || grid == Grid::Chunks || grid == Grid::Heads)
    return {1, 1, tileSize(), blocks, kMultiprocessors};
  if (grid != Grid::Ranges) return {};
  const int64_t ranges = tiles(extents), atOnce = std::min(ranges, rangesAtOnce(extents));
  const int64_t number = atOnce * (shape.threads / kWarp);
  return {number, ranges / atOnce, int64_t{kWarp} * shape.rows * shape.width,
          pieces(number, kMultiprocessors), kMultiprocessors};
}
int64_t blocksOfQueues(int64_t tiles, int64_t maxChunks) {
  constexpr int64_t kAtOnce = 8 * kMultiprocessors, kOfBlock = 16;
  return std::min({tiles, std::max(kAtOnce, tiles / kOfBlock), 4 * maxChunks});
}

int64_t CudaPass::blocks(int64_t tiles) const {
  if (refills) return blocksOfQueues(tiles, maxChunks);
  if (grid == Grid::Chunks) {
    constexpr int64_t kAtOnce = 4 * kMultiprocessors;
    const int64_t each = evenChunks && tiles < maxChunks ? (tiles + kAtOnce - 1) / kAtOnce : 1;
    return std::min((tiles + each - 1) / each, maxChunks);
  }
  return scanned && tiles > 1 ? tiles + 1 : tiles;
}

int64_t CudaPass::blocksOfEmpty(const LaunchExtents& extents) const {
  const int64_t crowded = int64_t{32} * shape.items();  // SegmentHeads::kMany
  return endsSegments && extents.segments > crowded ? kMultiprocessors : 0;
}

CudaKernel generateKernel(const lcu::Kernel& kernel, const lcu::Program& program, const std::string& entry,
                          const CudaOptions& options) {
  CudaKernel result;
  const auto isRecursion = [](lcu::ExprRef e) { return e->kind == lcu::ExprKind::Recursion; };
  for (const lcu::Soac& soac : kernel.bindings) {
    result.recursive |= lcu::anyNode(thunksOf(soac), isRecursion);
    result.calls |= lcu::anyNode(thunksOf(soac), [&](lcu::ExprRef e) {
      return isRecursion(e) && lcu::anyNode(recursionResults(e), isRecursion);
    });
  }
  for (KernelPart& part : splitIntoPasses(kernel, program)) {
    std::string name = entry;
    if (!result.passes.empty()) name += fmt::format("_{}", result.passes.size() + 1);
    result.passes.push_back(generatePass(std::move(part), program, name, options));
  }
  return result;
}

std::string entryOf(const lcu::Kernel& kernel) { return "kernel_" + identifier(kernel.name); }

std::string sourceOf(const CudaPass& pass, Places places) {
  return std::string(kPrologue) + (places == Places::Short ? kShortPlaces : kLongPlaces) + "\n" + pass.text;
}

bool needsSupport(const CudaKernel& kernel) {
  return std::any_of(kernel.passes.begin(), kernel.passes.end(), [](const CudaPass& pass) {
    return (pass.findsBegins() && pass.info.offsetsParameter) || !pass.ranked.empty() ||
           !pass.records.empty() ||
           std::any_of(pass.info.outputs.begin(), pass.info.outputs.end(),
                       [](const KernelOutput& o) { return o.extent == ExtentKind::Target; });
  });
}

std::string supportSource() { return "#include \"support_kernels.cuh\"\n"; }

CudaModule generateModule(const std::vector<const lcu::Kernel*>& kernels, const lcu::Program& program,
                          const CudaOptions& options) {
  CudaModule module;
  module.source = std::string(kPrologue) + kShortPlaces;
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::string entry = fmt::format("k{}_{}", k + 1, identifier(kernels[k]->name));
    module.kernels.push_back(generateKernel(*kernels[k], program, entry, options));
    for (const CudaPass& pass : module.kernels.back().passes) {
      module.source += "\n" + pass.text;
      for (const auto& alternative : pass.alternatives) module.source += "\n" + alternative->text;
    }
  }
  return module;
}

}  // namespace kelpie::codegen::cuda
