// What a code generator and a target need to know about a kernel, fused or not (lcu::Kernel).
//
// In:  a well-formed kernel and its program.
// Out: `KernelInfo`: the space that anchors it, its parameters, its outputs with their extents, the role and
//      the scan level of every binding, the reads of arrays that never leave the kernel.
//
// Order of evaluation, agreed by all targets: the `pull` of a Filter is evaluated for survivors only; every
// other thunk (where, effects, destination, all other pulls) for every element.
//
// Scan level. A thunk of level L can be evaluated for an element once the results of all scans of level < L
// are known there. A Scan whose pull has level L gives values of level L+1; a Map has the level of its
// thunks. Example: {x+p : x,p in xs, plus_scan(xs)} then plus_scan of that: the second scan has level 1. A
// generator that makes passes over the elements needs one pass for each level below `levels`, then a last
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/lcu.h"

namespace kelpie::codegen {

/// Parameters stand in this order: arrays, sizes, cells, scalars; ascending variables within each kind.
enum class ParameterKind : uint8_t {
  Array,   ///< address of the elements of an array that exists before the launch
  Size,    ///< Int64 by value: number of elements of an array variable
  Cell,    ///< address of one scalar on the device
  Scalar,  ///< by value: a host scalar
};
struct KernelParameter {
  ParameterKind kind;
  lcu::VarId var;
  ScalarType type;
  std::string name;       ///< a C identifier, distinct from all other names of the KernelInfo
  bool gathered = false;  ///< of an Array: neighbours read it at places that need not lie side by side
};

/// Number of elements to allocate for an output; see `capacity`.
enum class ExtentKind : uint8_t {
  One,              // a cell
  Elements,         // n: also the upper bound for the results of filters and partitions
  ElementsPlusOne,  // scan with total
  Segments,         // m: segmented reductions, epilogues
  SegmentsPlusOne,  // offsets of a segmented filter
  Target,           // permute: LaunchExtents::targets[`target`]
};
struct KernelOutput {
  lcu::VarId var;
  ScalarType type;
  bool cell;
  ExtentKind extent;
  uint32_t target = 0;
  /// Arrays of a Filter or Partition: the output that tells how many elements there are: a cell, or for
  /// segmented filters the offsets, whose last entry it is. Partition's false elements: extent - that many.
  std::optional<lcu::VarId> count;
  bool countsFalse = false;
  uint32_t binding, result;  ///< kernel.bindings[binding].results[result]
  std::string name;          ///< a C identifier
  /// Permute: the array whose elements the memory of the output holds when the kernel starts; 0: none.
  lcu::VarId onto = 0;
  bool scattered = false;  ///< Permute without a fill: only places that are written change
};

enum class BindingRole : uint8_t {
  Element,   ///< over the elements of the anchor space
  Epilogue,  ///< Map over the segments of the anchor space (parameter %i is the segment)
  Finish,    ///< Once, after everything else
};
struct BindingInfo {
  BindingRole role = BindingRole::Element;
  uint32_t level = 0;                              ///< of its thunks
  bool usesSegment = false, usesPosition = false;  ///< its thunks read %s, %p
  std::vector<lcu::VarId> localReads;  ///< results of earlier bindings of this kernel that its thunks read
};

/// Extents of one launch, in elements.
struct LaunchExtents {
  int64_t elements = 0, segments = 0;
  int64_t length = 0;            ///< Regular: elements of each segment
  std::vector<int64_t> targets;  ///< one for each Permute, in order of bindings
  int64_t gatheredBytes = 0;     ///< of the arrays that are `gathered` parameters, as far as that is known
  int64_t inner = 0;             ///< of segments with two indices (codegen/regular_reads.h): places
  int64_t blocksAtOnce = 0;      ///< of a multiprocessor, as compiled; 0: as planned
};

struct KernelInfo {
  std::string name;  ///< a C identifier
  lcu::Space space;  ///< the anchor: a segmented space when there is one; Flat of null extent if only Once
  std::vector<lcu::ExprRef> targets;  ///< extents of the Permutes, in order of bindings
  std::vector<KernelParameter> parameters;
  /// Results that leave the kernel, in order of bindings.
  std::vector<KernelOutput> outputs;
  std::vector<BindingInfo> bindings;  ///< one for each binding of the kernel
  uint32_t levels = 0;  ///< one more than the greatest level of a scan, filter or partition; 0: there is none
  std::optional<uint32_t> offsetsParameter;  ///< number of the parameter that holds space.offsets
  /// The space is flat and its extent a variable that a cell may have given its value: targets may launch the
  /// kernel before the host knows it.
  bool counted = false;

  bool hasRole(BindingRole role) const;
  const KernelParameter* parameter(ParameterKind kind, lcu::VarId var) const;
  const KernelOutput* output(lcu::VarId var) const;  ///< null: the result never leaves the kernel
};

KernelInfo analyseKernel(const lcu::Kernel& kernel, const lcu::Program& program);

int64_t capacity(const KernelOutput& output, const LaunchExtents& extents);

/// Elements of an output that a launch writes: its capacity, or what a permute throws onto an array.
int64_t written(const KernelOutput& output, const LaunchExtents& extents);

/// All thunks of a binding: pull, where, destination, effects (not the operator).
std::vector<lcu::ExprRef> thunksOf(const lcu::Soac& soac);

/// The same by when they are evaluated: for every element (effects, where, destination, pull), and for
/// survivors only (the pull of a Filter).
std::vector<lcu::ExprRef> eagerThunks(const lcu::Soac& soac);
std::vector<lcu::ExprRef> lateThunks(const lcu::Soac& soac);

/// Whether a position is that of the element, %i.
bool isElement(lcu::ExprRef e);
/// Whether parameter `number` is `e` or a part of it.
bool usesParam(lcu::ExprRef e, uint32_t number);

/// By component: the operation when it is lanewise, that is result[j] = op(param j, param k+j) for one
/// commutative scalar operation, and no other component reads these two parameters. Such a component may be
/// combined in any order of lanes, whatever it shares a kernel with.
std::vector<std::optional<ScalarOp>> componentOperations(const lcu::Operator& combine);
/// The same when every component is lanewise; nothing otherwise.
std::optional<std::vector<ScalarOp>> lanewiseOperations(const lcu::Operator& combine);
/// How a component is folded by itself, in lanes: by one commutative scalar operation, over the elements
/// whose component `of` equals the fold of that one; or over all of them, if that is the component itself.
struct LaneFold {
  ScalarOp operation;
  size_t of;
};
/// By component: where all others are least or greatest elements and what is folded of the elements that
/// equal these (fusion/paired_reductions.h), all; otherwise those that are lanewise.
std::vector<std::optional<LaneFold>> laneFolds(const lcu::Operator& combine);
/// The component that has the least or greatest elements of which component k has the first position, if it
/// is such a pair that begins with what comes last of all: who meets elements in ascending order need only
/// know whether one before is as good (codegen/cuda/pass_extremes.h).
std::optional<size_t> extremeOfFirst(const lcu::Soac& reduction, size_t k);
/// Whether left and right may change places, all components together: what they give is the same but for the
/// order of the operands of commutative scalar operations. Lanewise operators do.
bool commutes(const lcu::Operator& combine);

/// A C identifier like `text`; letters, digits and _ only, never empty, never a C++ keyword.
std::string identifier(const std::string& text);

}  // namespace kelpie::codegen
