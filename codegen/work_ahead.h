// What code computes ahead of the bindings of a loop over elements.
//
// Code for a kernel computes what one binding needs after the other, each value once (ExpressionEmitter). So
// where the first binding needs a value in a branch only, and a later one in any case, it would be computed
// in that branch and again for the later one:
//
//   REDUCE add { i => if a[i] == 2 then f(i) else 0 }      f(i) in the branch
//   MAP { i => f(i) }                                      f(i) again
//
// Compilers put simple operations together, but no loops.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/lcu.h"

namespace kelpie::codegen {

/// Loops, recursions and operations that take long which a binding needs for every element, and who comes
/// before it in branches only; nothing that the kernel makes is in them.
struct WorkAhead {
  uint32_t binding;
  std::vector<lcu::ExprRef> values;  ///< one of each, as roots for an emitter
};
/// `bindings`: of `kernel`, in the order in which they are computed.
std::vector<WorkAhead> longWorkAhead(const lcu::Kernel& kernel, const std::vector<uint32_t>& bindings);

}  // namespace kelpie::codegen
