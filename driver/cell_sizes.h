// How large the values of session cells are: as they are, where the program has run, or as far as forms tell
// that bind them to constants, to ranges with constant ends, and to what is made element by element of those.
//
// In:  programs in the order of their forms. Out: what fusion predicts with (FusionOptions::globals).
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "frontend/session.h"
#include "ir/data.h"
#include "ir/lcu.h"

namespace kelpie::driver {

/// The value of a session cell, as columns of length 1.
using CellValues = std::function<Columns(uint32_t cell)>;

/// Of variables that hold globals: elements of an array, values of integers of the host.
using GlobalSizes = std::unordered_map<lcu::VarId, double>;

GlobalSizes sizesOf(const lcu::Program& program, const CellValues& values);

class CellSizes {
 public:
  /// Of the globals of a program behind all that were told.
  GlobalSizes readBy(const lcu::Program& program) const;
  /// What the results of a flattened program are assigned to.
  void assign(const std::vector<CellAssignment>& assignments, const lcu::Program& program);

 private:
  /// By cell, of its variables in their order (lcu::GlobalInput); nullopt: not known before the program runs.
  std::unordered_map<uint32_t, std::vector<std::optional<double>>> cells_;
};

}  // namespace kelpie::driver
