// An apply-to-each that goes on after a call of a recursive function is split at the call. Core -> Core, for
// cut_branches.h, which moves apply-to-eaches that end in their calls.
//
//   {let y = g(x, c); r = tree(y) in r ++ [y] : x in xs}
//
// becomes
//
//   let ys = {g(x, c) : x in xs}; rs = {tree(y) : y in ys}
//   in {r ++ [y] : y in ys; r in rs}
//
// What the call and what follows need of what comes before is handed on as columns of `ys`. If nothing comes
// before and there is one sequence, it is that itself.
#pragma once

#include <optional>

#include "flatten/core_walk.h"

namespace kelpie::flatten {

/// The lets of the three instead of `let`, the second of which has the call and the last of which binds the
/// variables of `let`. Nothing unless the apply-to-each has one call of `self`, neither its last step nor
/// part of one.
std::optional<std::vector<Chain::Binding>> splitAtCall(core::Program& program, core::FunctionId self,
                                                       const Chain::Binding& let);

}  // namespace kelpie::flatten
