// Constants of the cost model in a file, JSON: {"byte": 2.5e-7, ...}.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fusion/named_costs.h"

namespace kelpie::driver {

using Costs = std::vector<std::pair<const fusion::NamedCost*, double>>;

/// False, with the reason in `problem`: it cannot be read, or names what is no constant, or gives it what is
/// no number or less than 0.
bool readCosts(const std::string& path, Costs& costs, std::string& problem);

}  // namespace kelpie::driver
