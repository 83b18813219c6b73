#include "driver/cell_sizes.h"

namespace kelpie::driver {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::VarId;
using lcu::VarKind;

namespace {

/// The variables of a column of a global in their order (lcu::GlobalInput).
class ColumnSizes {
 public:
  ColumnSizes(const lcu::Program& program, const lcu::GlobalInput& global, GlobalSizes& sizes)
      : program_(program), global_(global), sizes_(sizes) {}

  void add(const Column& column, bool top) {
    const VarId var = global_.vars.at(next_++);
    if (program_.vars[var].kind == VarKind::Array) {
      sizes_[var] = static_cast<double>(column.length() + (column.type.isSequence() ? 1 : 0));
    } else if (column.type.isSequence()) {
      sizes_[var] = column.length() > 0 ? static_cast<double>(column.offsets[1]) : 0;
    } else if (top && isInt(column.type.scalar())) {
      sizes_[var] = static_cast<double>(column.at(0).i);
    }
    for (const Column& element : column.elements) add(element, false);
  }

 private:
  const lcu::Program& program_;
  const lcu::GlobalInput& global_;
  GlobalSizes& sizes_;
  size_t next_ = 0;
};

/// Integers of the host that follow from the sizes of globals and from constants alone.
class Constants {
 public:
  Constants(const lcu::Program& program, const GlobalSizes& globals) : program_(program) {
    for (const auto& [var, size] : globals) values_[var] = static_cast<int64_t>(size);
    for (const lcu::Stmt& stmt : program.entry.body.stmts) {
      const auto* let = std::get_if<lcu::HostLet>(&stmt.node);
      for (size_t k = 0; let && k < let->values.size(); ++k)
        if (isInt(let->values[k]->type))
          if (const auto value = valueOf(let->values[k])) values_[stmt.results[k]] = *value;
    }
  }

  std::optional<double> of(VarId var) {
    if (program_.vars[var].kind != VarKind::Array || values_.contains(var)) return known(var);
    const ExprRef extent = program_.vars[var].extent;
    const auto value = extent ? valueOf(extent) : std::nullopt;
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
  }

 private:
  std::optional<double> known(VarId var) const {
    const auto it = values_.find(var);
    return it == values_.end() ? std::nullopt : std::optional(static_cast<double>(it->second));
  }

  std::optional<int64_t> valueOf(ExprRef e) {
    const ExprRef value = program_.arena->rewrite(e, [this](ExprRef node) -> ExprRef {
      const bool names = node->kind == ExprKind::Host || node->kind == ExprKind::Size;
      const auto it = names ? values_.find(node->index) : values_.end();
      if (it == values_.end()) return nullptr;
      return program_.arena->constant(Scalar::ofInt(node->type, it->second));
    });
    if (value->kind == ExprKind::Constant) return value->constant.i;
    return std::nullopt;
  }

  const lcu::Program& program_;
  std::unordered_map<VarId, int64_t> values_;  ///< of arrays their sizes
};

}  // namespace

GlobalSizes sizesOf(const lcu::Program& program, const CellValues& values) {
  GlobalSizes sizes;
  for (const lcu::GlobalInput& global : program.globals) {
    ColumnSizes of(program, global, sizes);
    for (const Column& column : values(global.cell)) of.add(column, true);
  }
  return sizes;
}

GlobalSizes CellSizes::readBy(const lcu::Program& program) const {
  GlobalSizes sizes;
  for (const lcu::GlobalInput& global : program.globals) {
    const auto cell = cells_.find(global.cell);
    if (cell == cells_.end() || cell->second.size() != global.vars.size()) continue;
    for (size_t k = 0; k < global.vars.size(); ++k)
      if (const auto& size = cell->second[k]) sizes[global.vars[k]] = *size;
  }
  return sizes;
}

void CellSizes::assign(const std::vector<CellAssignment>& assignments, const lcu::Program& program) {
  Constants constants(program, readBy(program));
  for (const CellAssignment& assignment : assignments) {
    size_t first = 0, count = 0;
    for (size_t k = 0; k < assignment.first + assignment.count; ++k)
      (k < assignment.first ? first : count) += variablesOf(program.resultTypes[k]);
    std::vector<std::optional<double>>& sizes = cells_[assignment.cell];
    sizes.clear();
    for (size_t k = first; k < first + count; ++k)
      sizes.push_back(constants.of(program.entry.body.results.at(k)));
  }
}

}  // namespace kelpie::driver
