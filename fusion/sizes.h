// Sizes in normal form: `Size(a)` becomes the symbolic extent of `a` wherever one is known.
//
// After it, equal numbers of elements that follow from each other are the same expression, in every thunk,
// space, target and extent; and a statement that needs only the size of an array no longer needs the array.
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

void normaliseSizes(lcu::Program& program);

/// Replaces every expression of a SOAC (thunks, operator, extents) by `change` of it.
void changeExpressions(lcu::Soac& soac, const std::function<lcu::ExprRef(lcu::ExprRef)>& change);

}  // namespace kelpie::fusion
