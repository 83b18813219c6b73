#include "fusion/named_costs.h"

#include <algorithm>
#include <cmath>

namespace kelpie::fusion {

namespace {

using T = TargetCosts;
using R = Resource;
constexpr NamedCost kCosts[] = {
    {"launch", &T::launch, R::None},
    {"byte", &T::byte, R::Memory},
    {"storedByte", &T::storedByte, R::Memory},
    {"besideLoad", &T::besideLoad, R::Cores},
    {"cachedLoad", &T::cachedLoad, R::Cores},
    {"sharedLoad", &T::sharedLoad, R::SharedCache},
    {"randomLoad", &T::randomLoad, R::Memory},
    {"ownBytes", &T::ownBytes, R::None},
    {"cacheBytes", &T::cacheBytes, R::None},
    {"ownWait", &T::ownWait, R::Cores},
    {"sharedWait", &T::sharedWait, R::Cores},
    {"memoryWait", &T::memoryWait, R::Cores},
    {"guardedLoad", &T::guardedLoad, R::Cores},
    {"checkedFilter", &T::checkedFilter, R::Cores},
    {"element", &T::element, R::Cores},
    {"access", &T::access, R::Cores},
    {"address", &T::address, R::Cores},
    {"iteration", &T::iteration, R::Cores},
    {"variable", &T::variable, R::Cores},
    {"call", &T::call, R::Cores},
    {"frameValue", &T::frameValue, R::Cores},
    {"operation", &T::operation, R::Cores},
    {"integerOperation", &T::integerOperation, R::Cores},
    {"integerProduct", &T::integerProduct, R::Cores},
    {"conversion", &T::conversion, R::Cores},
    {"narrow", &T::narrow, R::None},
    {"constantDivision", &T::constantDivision, R::Cores},
    {"integerDivision", &T::integerDivision, R::Cores},
    {"longDivision", &T::longDivision, R::Cores},
    {"division", &T::division, R::Cores},
    {"exponential", &T::exponential, R::Cores},
    {"logarithm", &T::logarithm, R::Cores},
    {"trigonometric", &T::trigonometric, R::Cores},
    {"float32", &T::float32, R::None},
    {"segmentedWork", &T::segmentedWork, R::None},
    {"cachesOverlap", &T::cachesOverlap, R::None},
    {"pipesOverlap", &T::pipesOverlap, R::None},
    {"overlap", &T::overlap, R::None},
    {"collectiveOverlap", &T::collectiveOverlap, R::None},
    {"scanOverlap", &T::scanOverlap, R::None},
    {"filterOverlap", &T::filterOverlap, R::None},
    {"segmentedOverlap", &T::segmentedOverlap, R::None},
    {"passes", &T::passes, R::None},
    {"scanElement", &T::scanElement, R::Cores},
    {"scanByte", &T::scanByte, R::Cores},
    {"filterElement", &T::filterElement, R::Cores},
    {"filterByte", &T::filterByte, R::Cores},
    {"furtherScan", &T::furtherScan, R::Cores},
    {"furtherFilter", &T::furtherFilter, R::Cores},
    {"segmentedElement", &T::segmentedElement, R::Cores},
    {"segment", &T::segment, R::Cores},
    {"keptElement", &T::keptElement, R::Cores},
    {"numberedElement", &T::numberedElement, R::Cores},
    {"foldedElement", &T::foldedElement, R::Cores},
    {"foldedSegment", &T::foldedSegment, R::Cores},
    {"headedElement", &T::headedElement, R::Cores},
    {"headedSegment", &T::headedSegment, R::Cores},
    {"scannedTile", &T::scannedTile, R::Cores},
    {"rowElement", &T::rowElement, R::Cores},
    {"columnElement", &T::columnElement, R::Cores},
    {"productElement", &T::productElement, R::Cores},
    {"productTile", &T::productTile, R::Cores},
    {"shortSegment", &T::shortSegment, R::Cores},
    {"shortElement", &T::shortElement, R::Cores},
    {"keyedElement", &T::keyedElement, R::Cores},
    {"permuteElement", &T::permuteElement, R::Cores},
    {"sharedStore", &T::sharedStore, R::SharedCache},
    {"randomStore", &T::randomStore, R::Memory},
    {"collectedWriter", &T::collectedWriter, R::Cores},
    {"crowdedBytes", &T::crowdedBytes, R::None},
    {"collectiveBudget", &T::collectiveBudget, R::None},
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
