#include "driver/cell_shapes.h"

#include <algorithm>

namespace kelpie::driver {

namespace {

/// `regularity` tells of a global.
template <class Tells>
RegularCells cellsOfShapes(const core::Program& program, const Tells& regularity) {
  RegularCells cells;
  for (const core::Global& global : program.globals)
    if (std::any_of(global.vars.begin(), global.vars.end(),
                    [](const core::Var& var) { return var.type.depth() > 1; }))
      cells[global.cell] = regularity(global);
  return cells;
}

/// Of a global in which every nested sequence is so, or none.
Regularity uniform(const core::Global& global, bool regular) {
  size_t variables = 0;
  for (const core::Var& var : global.vars) variables += variablesOf(var.type);
  return Regularity(variables, regular);
}

}  // namespace

RegularCells shapesOfCells(const core::Program& program, const CellValues& values) {
  return cellsOfShapes(program,
                       [&](const core::Global& global) { return regularityOf(values(global.cell)); });
}

RegularCells regularShapesOfCells(const core::Program& program) {
  return cellsOfShapes(program, [](const core::Global& global) { return uniform(global, true); });
}

RegularCells ForeseenCells::readBy(const core::Program& program) const {
  return cellsOfShapes(program, [this](const core::Global& global) {
    if (const auto known = cells_.find(global.cell); known != cells_.end()) return known->second;
    const auto value = values_.find(global.cell);
    return value != values_.end() ? regularityOf(value->second) : uniform(global, false);
  });
}

void ForeseenCells::assign(const std::vector<CellAssignment>& assignments, const lcu::Program& program) {
  for (const CellAssignment& assignment : assignments) {
    size_t first = 0, count = 0;
    for (size_t k = 0; k < assignment.first + assignment.count; ++k)
      (k < assignment.first ? first : count) += variablesOf(program.resultTypes[k]);
    const auto begin = program.regularResults.begin() + static_cast<std::ptrdiff_t>(first);
    cells_[assignment.cell] = Regularity(begin, begin + static_cast<std::ptrdiff_t>(count));
  }
}

}  // namespace kelpie::driver
