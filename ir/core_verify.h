// The rules of Core (ir/core.h), checked: every variable is bound once and used in its scope with its type;
// the operands and the row of every expression and primitive agree; an Invariant uses no local variables.
#pragma once

#include <string>
#include <vector>

#include "ir/core.h"

namespace kelpie::core {

/// Every violation, one message each; empty when well-formed.
std::vector<std::string> verify(const Program& program);

}  // namespace kelpie::core
