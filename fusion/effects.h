// Which functions may run a Service: their calls keep their order relative to other effects. And which may go
// on without end: what fails before them does so first.
#pragma once

#include <vector>

#include "ir/lcu.h"

namespace kelpie::fusion {

class Effects {
 public:
  explicit Effects(const lcu::Program& program);
  /// Whether a Service may run inside the statement (itself, nested blocks, called functions).
  bool mayServe(const lcu::Stmt& stmt) const;
  /// Whether the statement may record or raise an error.
  bool mayFail(const lcu::Stmt& stmt) const;
  /// Whether it has a loop of the host, or a call of a function that calls itself, on whatever way.
  bool mayGoOn(const lcu::Stmt& stmt) const;

 private:
  using OfStatement = bool (*)(const lcu::Stmt&);
  /// Whether the predicate holds of a statement, of one in its blocks, or in those of functions that it calls
  /// and `found` tells of.
  static bool holds(const lcu::Stmt& stmt, OfStatement predicate, const std::vector<bool>& found);
  static bool holds(const lcu::Block& block, OfStatement predicate, const std::vector<bool>& found);
  std::vector<bool> serves_, goesOn_;  // by function
};

/// All expressions of a SOAC: thunks, operator, extents.
std::vector<lcu::ExprRef> expressionsOf(const lcu::Soac& soac);
/// The expressions over the indices of its space (or, for a Once, over nothing).
std::vector<lcu::ExprRef> thunksOf(const lcu::Soac& soac);

}  // namespace kelpie::fusion
