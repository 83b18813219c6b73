// What a pass computes where: the decisions of code generation, made before any text is written.
//
// In:  a kernel with one direction and its KernelInfo. Out: `PassPlan`: levels with the fields that each
// carries,
//      reductions, reads that are worth wide loads, and the tile shape that fits registers and shared memory.
#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "codegen/cuda/cuda_module.h"
#include "codegen/keyed_segments.h"
#include "codegen/refilled_loop.h"
#include "codegen/regular_reads.h"

namespace kelpie::codegen::cuda {

/// A component of what a level carries along, or of the flat reductions of a pass.
struct Field {
  uint32_t binding;
  uint32_t component;  ///< of the operator; 0 for counts
  bool count;          ///< number of survivors of a filter or partition
  bool segmented;
  ScalarType type;  ///< of the component; counts are uint32_t in a tile and int64_t between tiles
  /// A place of the space (CudaPass::placesOfSpace): a Place (cuda_module.h), or of 8 bytes like what it lies
  /// beside. (With gaps, values are moved piece by piece: greatest float64 of segments of 20, and where they
  /// are, took 0.83 ms on an H200 with places of 4 bytes, 0.64 with 8; float32 0.48 with 4, 0.84 with 8.)
  enum class Place : uint8_t { No, Usual, Wide } place = Place::No;
};

/// What one scan of the tile carries (scan.cuh).
struct LevelPlan {
  std::vector<Field> fields;
  bool segmented = false, restarts = true, counts = false;
  bool commutes = true;        ///< every operator does
  bool countsOnly = false;     ///< all fields are counts: BlockCount does
  int64_t bytes() const;       ///< of a carry, at most
  int64_t usualBytes() const;  ///< ... if a Place has 4
};

/// What is folded of each segment, and the field of the first level that has it: of its own, or of a scan
/// that folds the same.
struct SegmentFold {
  lcu::VarId result;
  Field field;
};

/// The element thunks of one level.
struct StagePlan {
  std::vector<uint32_t> bindings;
  std::vector<lcu::VarId> packs;  ///< arrays whose element %i is read through wide loads, first here
};

struct PassPlan {
  std::vector<StagePlan> stages;
  std::vector<LevelPlan> levels;  ///< levels[k] is scanned after stages[k]; may have no fields
  std::vector<Field> reductions;  ///< flat commutative reductions, folded by lanes
  std::vector<SegmentFold> segmentFolds;
  size_t foldLevel = 0;             ///< that folds segments: behind the one that scans, where `scansRanges`
  std::vector<uint32_t> epilogues;  ///< bindings over segments
  std::vector<uint32_t> finish;     ///< Once bindings
  /// Components of filters that are computed when survivors, by their offsets in the tile, have been put side
  /// by side, which spares registers and shared memory.
  std::unordered_set<lcu::VarId> recomputed;
  Grid grid = Grid::Tiles;
  std::optional<RefilledLoop> refilled;  ///< of Chunks: lanes take elements by themselves (lane_queue.cuh)
  std::optional<RefilledLoop> refilledInTiles;  ///< of the first stage: they do so in each tile
  std::optional<KeyedSegments> keyed;           ///< of Keys
  std::optional<TwoIndices> indices;            ///< of Columns
  std::optional<Product> product;               ///< of Products, and where that is an alternative
  bool across = false;      ///< of Columns, by one index: neighbouring segments read side by side
  bool fewColumns = false;  ///< ... and there are no more of them than lanes
  bool lengthens = false;   ///< of Heads: longer tiles are better for many elements
  bool longTiles = false;   ///< ... and it has those
  TileShape shape;
  int rowsAtOnce = 0;                     ///< rows of items that are unrolled together; 0: all
  bool dividesInPlace = false;            ///< each long division has its own code
  int elementWeight = 1, endWeight = 1;   ///< of ranges: what elements and segment ends cost
  int blocksAtOnce = 1;                   ///< blocks of a multiprocessor that registers must suffice for
  bool narrow = false;                    ///< flat, and elements of one byte are moved: arithmetic counts
  bool streams = false;                   ///< items take equally long and are read in order
  bool regular = false;                   ///< segments are equally long
  bool numbersInThunks = false;           ///< ... by thunks
  std::vector<lcu::VarId> segmentValues;  ///< what tiles keep of all their segments (segment_values.h)
  bool borders = false;                   ///< segment borders of items are needed
  bool ends = false;                      ///< of Heads: segments have results (segment_ends.cuh)
  int bufferBytesPerItem = 0;             ///< compaction buffer
  int bufferItems = 0;                    ///< ... which holds so many items, of which a tile may have more

  bool heads() const { return grid == Grid::Heads; }
  bool numbered() const { return heads() && numbersInThunks; }  ///< (segment_numbers.cuh)
  /// Items outside of tiles may do what the nearest one does: there are no reductions that would count them.
  bool repeats() const { return numbered() && !finishes(); }
  bool reckons() const { return numbered() && regular; }  ///< (regular_numbers.cuh)
  bool ranges() const { return grid == Grid::Ranges; }
  /// Whether ranges scan what they fold, or beside it (range_scans.h).
  bool scansRanges() const { return foldLevel > 0; }
  bool rows() const { return grid == Grid::Rows || grid == Grid::Columns || shorts(); }
  bool columns() const { return grid == Grid::Columns; }
  bool shorts() const { return grid == Grid::Shorts; }
  bool transposed() const { return grid == Grid::Transposed; }
  bool keys() const { return grid == Grid::Keys; }
  bool products() const { return grid == Grid::Products; }
  /// Segments of a regular space get their results from a structure of their own.
  bool folds() const { return rows() || keys() || products(); }
  bool canGroup = false;  ///< of ranges: small inputs may be folded by groups (segment_groups.cuh)
  bool groups = false;    ///< ... and are
  bool warps = false;     ///< ... or by warps (segment_warps.cuh)
  bool compact = false;   ///< of ranges: code for the ends of segments is short rather than fast
  bool segmented() const { return heads() || ranges(); }
  bool whole() const { return groups || warps; }  ///< blocks have whole segments
  bool needsLower() const;                        ///< of what lies in lower tiles or ranges
  /// Whether a level has fields of a binding.
  bool carries(uint32_t binding) const;
  bool scanned() const { return needsLower() && !ranges() && !folds(); }
  bool finishes() const { return !reductions.empty() || !finish.empty(); }
};

/// Ways to write a pass: for inputs of any kind, or an alternative for some.
enum class PassForm : uint8_t { General, Groups, Warps, Product, Shorts, FewColumns, LongTiles };

/// `places`: CudaPass::placesOfSpace.
PassPlan planPass(const lcu::Kernel& kernel, const KernelInfo& info, const lcu::Program& program,
                  const CudaOptions& options, PassForm form,
                  const std::unordered_set<lcu::VarId>& places = {});

}  // namespace kelpie::codegen::cuda
