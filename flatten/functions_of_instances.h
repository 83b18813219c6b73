// Which functions are called for several instances: inside of an apply-to-each, or by a function that is.
#pragma once

#include <vector>

#include "ir/core.h"

namespace kelpie::flatten {

/// By number of the function.
std::vector<bool> functionsOfInstances(const core::Program& program);

}  // namespace kelpie::flatten
