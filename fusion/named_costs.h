// The constants of a target by name: to read them from a file, to fit them, to tell how much each of them has
// to do with a predicted time, and to tell what they become on another GPU (device_costs.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fusion/cost_constants.h"

namespace kelpie::fusion {

/// What of a GPU a constant is a time of.
enum class Resource : uint8_t {
  None,         ///< a share, a size, or what is no faster on larger GPUs, as a launch
  Memory,       ///< by how fast it copies
  SharedCache,  ///< the cache of all cores
  Cores,        ///< their arithmetic, their own caches
};

struct NamedCost {
  std::string_view name;
  double TargetCosts::*value;
  Resource resource;
};
/// All that are numbers.
std::span<const NamedCost> namedCosts();
/// Null: there is none of this name.
const NamedCost* namedCost(std::string_view name);

/// By which share of itself a time grows if a constant grows by its own.
struct CostShare {
  const NamedCost* cost;
  double share;
};
/// Of the constants that have to do with it, greatest first. `time`: what is predicted with some costs.
std::vector<CostShare> sharesOfCosts(const TargetCosts& costs,
                                     const std::function<double(const TargetCosts&)>& time);

}  // namespace kelpie::fusion
