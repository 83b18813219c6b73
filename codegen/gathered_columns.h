// Columns of 8 bytes that elements gather together: each element loads all of them at one place, which an
// array tells, as rows of a table by their numbers. Outside of loops; those in loops are found while they are
// emitted (ExpressionEmitter, Dialect::record).
//
//     {(x[i], y[i]) : i in numbers}          position numbers[%i], columns x and y
//
// Where places lie far apart each column costs a piece of memory of its own; put side by side all of them lie
// in one or two. Not so where neighbours load neighbours: there it would be twice the work, or more
// (bench/results/h200-2026-11-30-gathered-records.txt).
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernel_analysis.h"
#include "ir/lcu.h"

namespace kelpie::codegen {

struct GatheredColumns {
  lcu::ExprRef position;            ///< what the columns are loaded at
  lcu::VarId places;                ///< a parameter: its elements are the positions
  std::vector<lcu::VarId> columns;  ///< parameters, all of one length; at least two
};

/// Of a kernel that maps and folds alone, without loops, the most columns at one position.
std::optional<GatheredColumns> gatheredColumns(const lcu::Kernel& kernel, const KernelInfo& info,
                                               const lcu::Program& program);

}  // namespace kelpie::codegen
