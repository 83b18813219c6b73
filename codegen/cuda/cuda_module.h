// λcu kernels -> CUDA C++: one source for all kernels of a program, and what a host must know to launch them.
//
// In:  a verified program and its kernels (fused or not).
// Out: a `CudaModule`. Its source includes the device library (device_library.h) and has, for each kernel,
//      one entry point a *pass*. Most kernels are one pass; scans in opposite directions, and reductions of
//      segments beside scans, need one each (pass_split.h).
//
// A pass runs over tiles of the anchor space (codegen/cuda/tile.cuh). For each level of the kernel, in order:
// pull the items of the level, then scan what the level carries across the tile (scan.cuh), beginning with
// what lies below, which one block, the scanner, works out for all (scanner.cuh); then compacted results,
// results of segments and their epilogues; the block that finishes last folds reductions and runs Once
// bindings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "codegen/kernel_analysis.h"
#include "codegen/many_writers.h"
#include "codegen/short_arrays.h"
#include "codegen/streams.h"
#include "ir/lcu.h"

namespace kelpie::codegen::cuda {

/// How a pass is cut into blocks.
enum class Grid : uint8_t {
  Single,  ///< one block: Once bindings only
  Tiles,   ///< tiles of a flat space
  Chunks,  ///< blocks take tiles in turn; at most maxChunks (4 times as many with queues), whatever the
           ///< device, so that sums are reproducible
  Heads,  ///< tiles of a segmented space whose segments have no results: elements need to know where segments
          ///< begin (segment_heads.cuh) or what number theirs has (segment_numbers.cuh)
  Ranges,      ///< contiguous pieces of the merged list of elements and segment ends, a warp each; at most
               ///< maxChunks blocks, which all run at once, or so many times as many that those who do gather
               ///< near each other (segment_ranges.cuh)
  Rows,        ///< segments of a regular space, several to a thread or to a block (segment_rows.cuh)
  Columns,     ///< the same, neighbouring segments to neighbouring threads (segment_columns.cuh)
  Products,    ///< the same, tiles of segments with two indices (segment_products.cuh)
  Shorts,      ///< the same, short ones, several to a thread (segment_shorts.cuh)
  Keys,        ///< the same, of elements whose segment a key tells (segment_keys.cuh)
  Transposed,  ///< tiles of segments and positions of a regular space (transposed_tile.cuh)
};
/// How a space is cut does not depend on the device, so that results do not: it suits a large one.
constexpr int64_t kMultiprocessors = 132;
constexpr int64_t kMaxChunks = 16 * kMultiprocessors;

/// Groups of blocks that each count those of theirs that have finished.
constexpr int64_t kMostGroups = kMaxChunks / 4;

/// Groups that may have counters (segment_chunks.cuh).
constexpr int64_t kMostCounters = kMaxChunks;

/// Blocks of a multiprocessor that run at once where keys tell segments (segment_keys.cuh).
constexpr int kKeyBlocks = 4;

/// Columns that are put side by side at most, and how many times a pass.
constexpr size_t kMostColumns = 8, kMostRecords = 2;
/// ... and for how many times as many places as there are elements: of more, many may never be looked at.
constexpr int64_t kMostRowsOfElement = 2;

struct TileShape {
  int threads = 256, rows = 4, width = 4;
  bool backward = false;
  int keys = 0;  ///< of Keys: segments of a block
  int items() const { return threads * rows * width; }
  /// Of Products: a tile has so many outer indices and places, a thread `rows` and `width` of them.
  static constexpr int kThreadsOfPlaces = 16;
  int outers() const { return threads / kThreadsOfPlaces * rows; }
  int places() const { return kThreadsOfPlaces * width; }
};

/// Ways to fold segments of two indices that load by one of these at a time: as other folds, that is by
/// ranges of elements, or by columns where neighbouring segments load side by side; by tiles
/// (segment_products.cuh); short ones by threads that have several each (segment_shorts.cuh).
enum class ProductWay : uint8_t { AsOthers, Tiles, Shorts };

/// What a fold by tiles takes, and how many there are.
struct ProductTime {
  /// Nanoseconds of a tile on an H200, 264 at a time, and of each of its positions: all of it, half, a
  /// quarter.
  static constexpr double kTile = 11, kPosition = 0.7, kPositionOfHalf = 0.45, kPositionOfQuarter = 0.36;

  double tiles, nanoseconds;
  /// Of `outers` by `places` segments that are `length` long.
  ProductTime(const TileShape& shape, double outers, double places, double length);
};

/// Of Grid::Shorts: how many segments threads have, those included that there are not.
double segmentsOfShorts(double outers, double places);

/// What takes the least time. `byColumns`: that is how other folds go.
ProductWay productWay(const TileShape& shape, bool byColumns, double outers, double places, double length);

/// Parameters, by number.
struct SideBySide {
  std::vector<uint32_t> columns;
  /// None: loops load them. Else all elements do, at the places that this one holds in order
  /// (codegen/gathered_columns.h); whether it pays depends on these.
  std::optional<uint32_t> places;
  bool operator==(const SideBySide&) const = default;
};

struct CudaPass {
  lcu::Kernel kernel;
  std::vector<uint32_t>
      bindings;  ///< numbers of its bindings in the whole kernel, by which errors are ordered
  KernelInfo info;
  /// Results of folds of segments that are positions in the whole space, or max_int: those in their segments
  /// are wanted (segment_places.h).
  std::unordered_set<lcu::VarId> placesOfSpace;
  std::string entry;  ///< name of the entry point
  Grid grid = Grid::Tiles;
  TileShape shape;
  int stateWords = 0;         ///< of a tile (look_back.cuh)
  bool votes = false;         ///< there are more, of many tiles each (TileVotes of lane_queue.cuh)
  bool scanned = false;       ///< one more block, the scanner, unless there is one tile only
  bool endsSegments = false;  ///< beside scans, segments have results (segment_ends.cuh)
  bool needsLaunch = true;    ///< false: nothing happens when there are no elements and no segments
  int64_t fixedBytes = 0;     ///< scratch of the launch
  int64_t bytesPerTile = 0;
  int64_t maxChunks = kMaxChunks;
  /// Outputs, by number: offsets of filtered segments, each found by a table (segment_ranks.cuh).
  std::vector<uint32_t> ranked;
  /// What is launched instead for inputs that they suit, the first that does: products
  /// (segment_products.cuh), short ones (segment_shorts.cuh), warps and groups of threads
  /// (segment_warps.cuh, segment_groups.cuh), few columns, tiles of many elements.
  std::vector<std::shared_ptr<const CudaPass>> alternatives;
  int64_t mostOfGroups = 0;       ///< of groups: elements of such inputs
  bool byWarps = false;           ///< groups are whole warps
  bool fewColumns = false;        ///< of Columns: no more segments than a warp has lanes
  bool insteadOfColumns = false;  ///< of an alternative: what is launched otherwise has Grid::Columns
  int64_t leastOfLongTiles = 0;   ///< of long tiles: elements of such inputs
  /// Columns that are loaded at the same positions (records.cuh), which launches may put side by side.
  std::vector<SideBySide> records;
  bool evenChunks = false;  ///< few tiles go in equal numbers to as many blocks as run at once
  bool refills = false;     ///< of Chunks: blocks should have several tiles each (lane_queue.cuh)
  int64_t nearBytes = 1;    ///< of Ranges: CudaOptions::nearBytes
  int blocksAtOnce = 1;     ///< of a multiprocessor, for which registers suffice
  /// Of Columns, Products and Shorts, segments of two indices: the constant number of places, or the
  /// parameter, by number, that tells it. Neither: one index.
  int64_t innerConstant = 0;
  std::optional<uint32_t> innerParameter;
  std::string text;

  /// Tiles are told where in the list of segments they begin.
  bool findsBegins() const { return grid == Grid::Heads; }
  bool segmented() const {
    return grid == Grid::Heads || grid == Grid::Rows || grid == Grid::Columns || grid == Grid::Keys ||
           grid == Grid::Ranges || grid == Grid::Transposed || grid == Grid::Products || grid == Grid::Shorts;
  }
  /// Elements of a tile, or entries of the merged list (Ranges): of those fewer than there are positions, so
  /// that the range of a warp may begin at an aligned element.
  int64_t tileSize() const;
  /// Groups of elements in such a table, and its bytes.
  int64_t rankGroups(int64_t tiles) const;
  int64_t rankBytes(int64_t tiles) const;
  /// Of groups: segments that a block takes, or 0, where ranges are better.
  int64_t together(const LaunchExtents& extents) const;
  /// Of an alternative.
  bool suits(const LaunchExtents& extents) const;
  /// Tiles of a launch; ranges, where blocks work on those.
  int64_t tiles(const LaunchExtents& extents) const;
  int64_t blocks(int64_t tiles) const;
  /// State words of a launch.
  int64_t states(int64_t tiles) const;
  /// Blocks behind those of the tiles, for empty segments where these crowd tiles (segment_ends.cuh).
  int64_t blocksOfEmpty(const LaunchExtents& extents) const;
  Streams streams(const LaunchExtents& extents) const;

 private:
  int64_t rangesAtOnce(const LaunchExtents& extents) const;
  int64_t mostRanges(int64_t tiles, const LaunchExtents& extents) const;
};

/// Where the stack of a thread ends a recursion, this is recorded instead of a site of the program. It is
/// before all of those, so that no error hides it.
constexpr lcu::SiteId kStackSite = 0;
/// Stack of a thread that kernels with functions that call themselves need (recursion.cuh).
constexpr size_t kStackBytes = size_t{32} << 10;

/// A kernel with its passes; arrays between passes are results of the earlier and parameters of the later
/// ones.
struct CudaKernel {
  std::vector<CudaPass> passes;
  bool recursive = false;  ///< a thunk has a Recursion
  bool calls = false;      ///< ... that may be a function that calls itself (recursion.cuh)
};

struct CudaOptions {
  int threads = 256;
  int maxRows = 16;   ///< rows of items a thread holds at most
  int maxItems = 16;  ///< items a thread holds at most
  int64_t maxChunks = kMaxChunks;
  bool queuesPay = false;  ///< lanes take elements from queues, however short they wait (lane_queue.cuh)
  int64_t mostOfGroups = int64_t{1} << 22;  ///< elements whose segments are folded by groups of threads
  /// Elements from which on tiles are longer where thunks that loop know their segments.
  int64_t leastOfLongTiles = int64_t{1} << 23;
  /// Of gathered arrays, the blocks that run at the same time share the cache for so many: ranges become
  /// shorter, and lie nearer to each other, where arrays are larger.
  int64_t nearBytes = int64_t{8} << 20;
  /// Shared memory a block may use without asking for more, less some for barriers and totals.
  int sharedBytes = 46 * 1024;
  int64_t fewTiles = 1024;  ///< no more tiles than this find their part of a segmented space themselves
  /// Columns of fewer bytes are not put side by side: they are in the caches of single cores.
  int64_t recordBytes = int64_t{1} << 20;
  /// Nor are those of fewer that are loaded outside of loops: L2 has them. On an H200, four columns of 2^22
  /// places took 0.62 of the time, two 1.0 (bench/results/h200-2026-11-30-gathered-columns.txt).
  int64_t gatheredBytes = int64_t{1} << 27;
  /// Elements that gather while a piece of memory stays in L2, at most.
  int64_t gatherWindow = int64_t{1} << 18;
  int64_t manyWriters = kManyWriters;  ///< from which on it pays to find the last ones together
  /// Arrays that are stored in 32 bits (codegen/short_arrays.h), ascending.
  std::vector<lcu::VarId> shortArrays;
  /// Launches of more elements or segments need kernels with long places.
  int64_t mostShortPlaces = (int64_t{1} << 32) - 1;
  bool storesShort = true;               ///< whether launches may have any
  int64_t longestShort = kLongestShort;  ///< total of a scan that is stored so
  /// "file.nesl:12: text" for comments; may be empty.
  std::function<std::string(Span)> describe;
};

struct CudaModule {
  std::string source;
  std::vector<CudaKernel> kernels;
};

/// Blocks of a pass whose lanes are refilled (CudaPass::refills).
int64_t blocksOfQueues(int64_t tiles, int64_t maxChunks = kMaxChunks);

/// The passes of one kernel. Entry points are named `entry`, `entry`_2, ...
CudaKernel generateKernel(const lcu::Kernel& kernel, const lcu::Program& program, const std::string& entry,
                          const CudaOptions& options = {});
/// The name of a kernel's entry point where the kernel is a source of its own.
std::string entryOf(const lcu::Kernel& kernel);
/// The numbers of elements and segments, and places in these, are below 2^32, or have 64 bits.
enum class Places : uint8_t { Short, Long };
/// A source that is compiled by itself: this pass, and the device library.
std::string sourceOf(const CudaPass& pass, Places places = Places::Short);
/// Whether launches of a kernel may need support_kernels.cuh, and the source of those.
bool needsSupport(const CudaKernel& kernel);
std::string supportSource();
/// All kernels of a program, as one source to look at.
CudaModule generateModule(const std::vector<const lcu::Kernel*>& kernels, const lcu::Program& program,
                          const CudaOptions& options = {});

}  // namespace kelpie::codegen::cuda
