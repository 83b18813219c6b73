// What one target costs: the constants of the cost model (cost_model.h).
//
// Times are microseconds. A kernel takes `launch`, plus the time of its loads and stores, plus that of its
// work (arithmetic, and what scans and filters add) as far as the two do not overlap, plus what nothing
// hides: segments, permutes, guarded loads.
#pragma once

#include <string_view>

namespace kelpie::fusion {

struct TargetCosts {
  std::string_view name;
  double launch;  ///< one kernel

  // Memory.
  double byte;        ///< one byte loaded or stored in order
  double storedByte;  ///< one byte stored, where little is loaded
  double besideLoad;  ///< a load of what a neighbour loads, too, or of what their segment has
  double cachedLoad;  ///< a load at an arbitrary position that finds its element in a core's own cache
  double sharedLoad;  ///< the same in the cache of all cores
  double randomLoad;  ///< a load at an arbitrary position of a large array
  double ownBytes, cacheBytes;  ///< what the two caches hold: of a larger array, only this part is there
  /// On a GPU, what one element waits for a load behind a branch or in a loop, if each multiprocessor has
  /// `kUsualThreads` at once: in its core's cache, beyond that, and beyond the cache of all cores.
  double ownWait, sharedWait, memoryWait;
  double guardedLoad;    ///< beyond its bytes, a load in order of what a filter passes on and its condition
                         ///< does not read; or in a branch of a fold of segments
  double checkedFilter;  ///< a check in a filter: nothing goes on before it is known

  // Arithmetic on one element.
  double element;           ///< what any element takes: its place, and whether it is there
  double access;            ///< a load or store in order, beyond its bytes
  double address;           ///< a load at a computed position, beside what it waits for
  double iteration;         ///< one turn of a loop
  double variable;          ///< a word of what a turn changes
  double call;              ///< of a recursion inside a thunk, that leaves something pending
  double frameValue;        ///< a value of its frame, for each depth of stacks in a warp
  double operation;         ///< of floats: add, multiply, compare
  double integerOperation;  ///< of integers and truth values: add, compare, choose, shift
  double integerProduct;
  double conversion;        ///< between integers and floats
  double narrow;            ///< the last four for at most 32 bits (on a GPU: 32), relative to 64
  double constantDivision;  ///< of integers, by a constant
  double integerDivision;
  double longDivision;  ///< of integers, when the dividend is a product
  double division;      ///< of floats; square root
  double exponential, logarithm, trigonometric;
  double float32;        ///< the last four, of floats, for 32 bits, relative to 64
  double segmentedWork;  ///< arithmetic in a segmented reduction, relative to that elsewhere
  double cachesOverlap;  ///< share of the shorter of memory and caches that hides
  double pipesOverlap;   ///< share of the shorter of arithmetic of integers and of floats that hides
  /// Share of the shorter of memory and work that hides behind the other: without and with scans or filters.
  double overlap, collectiveOverlap;
  double scanOverlap;       ///< the latter where no thunk needs to know its segment
  double filterOverlap;     ///< the same with filters, but no scan
  double segmentedOverlap;  ///< the same where elements need to know their segment; at most the former
  double passes;            ///< how often kernels with scans or filters load and compute their elements

  // Beyond loads, stores and arithmetic, on one element, byte of it, or segment.
  double scanElement, scanByte;
  double filterElement, filterByte;   ///< of what it passes on
  double furtherScan, furtherFilter;  ///< one element, of each after the first of its kernel
  double segmentedElement, segment;   ///< for knowing one's segment
  double keptElement;                 ///< the same in a kernel with a segmented filter
  /// For a segmented reduction whose thunks need to know it, and for one whose thunks do not. On a GPU: for
  /// each column, of an element that a thread holds alone.
  double numberedElement;
  double foldedElement, foldedSegment;
  double headedElement, headedSegment;  ///< a segmented scan that need not know it
  double scannedTile;  ///< of a GPU: a tile of a kernel with scans or filters takes at least this
  /// A position of a segmented reduction whose loads depend on the segment or on the position alone, for all
  /// rows that go through the positions together.
  double rowElement;
  /// On a GPU: an element of a map that neighbouring segments read side by side (codegen/regular_reads.h).
  double columnElement;
  double productElement;  ///< of a fold by tiles: what it reads from shared memory
  double productTile;     ///< ... and a tile, until it has what it folds first
  /// Of a fold by threads that have several short segments (codegen/cuda/segment_shorts.cuh): a segment, and
  /// an element of 8 bytes, unless its arithmetic takes longer.
  double shortSegment, shortElement;
  double keyedElement;  ///< a position of one in which keys tell which of many (codegen/keyed_segments.h)
  // An element of a permute that writes in order, to arbitrary positions that the cache of all cores holds,
  // and to those of a large array.
  // On a GPU: an element of which the last writer stays, a piece of 32 bytes in that cache, a granule of 64.
  double permuteElement, sharedStore, randomStore;
  /// On a GPU: a writer beside other many of which the last stay (codegen/many_writers.h), but for storing
  /// it.
  double collectedWriter;

  double crowdedBytes;  ///< writes to so few take twice as long: those to one piece take turns

  bool lockStep;  ///< 32 neighbouring elements enter a branch or a loop together
  /// Offsets count as they are stored, in 32 bits (codegen/short_arrays.h); else as the evaluator counts
  /// them.
  bool shortOffsets = false;

  double collectiveBudget;  ///< bytes an element that scans, filters and partitions of one kernel may keep
};

constexpr double kUsualThreads = 1024;

const TargetCosts& cudaCosts();
const TargetCosts& cpuCosts();
/// The λcu evaluator: the target `interp`, and kernels of `cpu` that do not pay for compiling.
const TargetCosts& interpCosts();

}  // namespace kelpie::fusion
