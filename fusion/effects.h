// Which functions may run a Service: their calls keep their order relative to other effects.
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

 private:
  bool mayServe(const lcu::Block& block) const;
  std::vector<bool> serves_;  // by function
};

/// All expressions of a SOAC: thunks, operator, extents.
std::vector<lcu::ExprRef> expressionsOf(const lcu::Soac& soac);
/// The expressions over the indices of its space (or, for a Once, over nothing).
std::vector<lcu::ExprRef> thunksOf(const lcu::Soac& soac);

}  // namespace kelpie::fusion
