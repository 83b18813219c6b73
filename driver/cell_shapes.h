// The shapes of nested session cells for which forms that read them are compiled (flatten/flatten.h): those
// of their values, or those that are foreseen before the forms that give them values have run.
#pragma once

#include <unordered_map>
#include <vector>

#include "driver/pipeline.h"
#include "frontend/session.h"
#include "ir/core.h"
#include "ir/lcu.h"
#include "ir/regularity.h"

namespace kelpie::driver {

/// Of the cells that a program reads those whose shapes make a difference, by their values.
RegularCells shapesOfCells(const core::Program& program, const CellValues& values);
/// The same if all elements of nested sequences have one length.
RegularCells regularShapesOfCells(const core::Program& program);

/// Cells of programs in the order in which they will run. Of what flattening does not know it is foreseen
/// that elements have different lengths.
class ForeseenCells {
 public:
  /// `values`: of cells that have one before all of these programs; must outlive this.
  explicit ForeseenCells(const std::unordered_map<uint32_t, Columns>& values) : values_(values) {}
  RegularCells readBy(const core::Program& program) const;
  /// What a form will give its cells. `program`: the form's, flattened.
  void assign(const std::vector<CellAssignment>& assignments, const lcu::Program& program);

 private:
  const std::unordered_map<uint32_t, Columns>& values_;
  RegularCells cells_;
};

}  // namespace kelpie::driver
