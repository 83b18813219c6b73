// Which parts of a Core program act on the outside world: output, random draws, files, clocks, `error`.
// Run-time checks and non-termination are no effects here.
#pragma once

#include <unordered_set>

#include "ir/core.h"

namespace kelpie {

class Effects {
 public:
  explicit Effects(const core::Program& program);
  /// Whether evaluating `exp`, a branch of an If of the program, may have an effect.
  bool of(const core::Exp& exp) const { return effectful_.contains(&exp); }

 private:
  bool scan(const core::Exp& exp);

  std::vector<bool> functions_;
  std::unordered_set<const core::Exp*> effectful_;  ///< branches only
};

}  // namespace kelpie
