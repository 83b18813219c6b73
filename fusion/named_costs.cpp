#include "fusion/named_costs.h"

#include <algorithm>
#include <cmath>

namespace kelpie::fusion {

namespace {

using T = TargetCosts;
constexpr NamedCost kCosts[] = {
    {"launch", &T::launch},
    {"byte", &T::byte},
    {"storedByte", &T::storedByte},
    {"besideLoad", &T::besideLoad},
    {"cachedLoad", &T::cachedLoad},
    {"sharedLoad", &T::sharedLoad},
    {"randomLoad", &T::randomLoad},
    {"ownBytes", &T::ownBytes},
    {"cacheBytes", &T::cacheBytes},
    {"guardedLoad", &T::guardedLoad},
    {"checkedFilter", &T::checkedFilter},
    {"element", &T::element},
    {"access", &T::access},
    {"address", &T::address},
    {"iteration", &T::iteration},
    {"call", &T::call},
    {"frameValue", &T::frameValue},
    {"operation", &T::operation},
    {"integerOperation", &T::integerOperation},
    {"integerProduct", &T::integerProduct},
    {"conversion", &T::conversion},
    {"narrow", &T::narrow},
    {"constantDivision", &T::constantDivision},
    {"integerDivision", &T::integerDivision},
    {"longDivision", &T::longDivision},
    {"division", &T::division},
    {"exponential", &T::exponential},
    {"logarithm", &T::logarithm},
    {"trigonometric", &T::trigonometric},
    {"float32", &T::float32},
    {"segmentedWork", &T::segmentedWork},
    {"cachesOverlap", &T::cachesOverlap},
    {"pipesOverlap", &T::pipesOverlap},
    {"overlap", &T::overlap},
    {"collectiveOverlap", &T::collectiveOverlap},
    {"scanOverlap", &T::scanOverlap},
    {"filterOverlap", &T::filterOverlap},
    {"segmentedOverlap", &T::segmentedOverlap},
    {"passes", &T::passes},
    {"scanElement", &T::scanElement},
    {"scanByte", &T::scanByte},
    {"filterElement", &T::filterElement},
    {"filterByte", &T::filterByte},
    {"furtherScan", &T::furtherScan},
    {"furtherFilter", &T::furtherFilter},
    {"segmentedElement", &T::segmentedElement},
    {"segment", &T::segment},
    {"keptElement", &T::keptElement},
    {"numberedElement", &T::numberedElement},
    {"foldedElement", &T::foldedElement},
    {"foldedSegment", &T::foldedSegment},
    {"headedElement", &T::headedElement},
    {"headedSegment", &T::headedSegment},
    {"numberedScan", &T::numberedScan},
    {"rowElement", &T::rowElement},
    {"columnElement", &T::columnElement},
    {"productElement", &T::productElement},
    {"keyedElement", &T::keyedElement},
    {"permuteElement", &T::permuteElement},
    {"sharedStore", &T::sharedStore},
    {"randomStore", &T::randomStore},
    {"crowdedBytes", &T::crowdedBytes},
    {"collectiveBudget", &T::collectiveBudget},
};

}  // namespace

std::span<const NamedCost> namedCosts() { return kCosts; }

const NamedCost* namedCost(std::string_view name) {
  const auto* found = std::find_if(std::begin(kCosts), std::end(kCosts),
                                   [&](const NamedCost& cost) { return cost.name == name; });
  return found == std::end(kCosts) ? nullptr : found;
}

std::vector<CostShare> sharesOfCosts(const TargetCosts& costs,
                                     const std::function<double(const TargetCosts&)>& time) {
  constexpr double kStep = 0.01, kLeast = 0.001;
  const double before = time(costs);
  std::vector<CostShare> shares;
  for (const NamedCost& cost : kCosts) {
    TargetCosts more = costs;
    more.*cost.value *= 1 + kStep;
    const double share = before > 0 ? (time(more) / before - 1) / kStep : 0;
    if (std::abs(share) >= kLeast) shares.push_back({&cost, share});
  }
  std::stable_sort(shares.begin(), shares.end(), [](const CostShare& a, const CostShare& b) {
    return std::abs(a.share) > std::abs(b.share);
  });
  return shares;
}

}  // namespace kelpie::fusion
