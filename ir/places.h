// Where loads of an element lie.
#pragma once

#include "ir/expr.h"

namespace kelpie::lcu {

/// Whether neighbours of a segment (or of a flat space) that load there load side by side: at their own
/// places, moved by what is the same for all of it, and kept within limits.
bool goesAlong(ExprRef position);

}  // namespace kelpie::lcu
