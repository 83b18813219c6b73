#include "fusion/device_costs.h"

#include <cmath>

#include "fusion/named_costs.h"

namespace kelpie::fusion {

namespace {

/// How many times as long something takes that one device has `there` of, and the other `here`.
double slower(double there, double here) { return there > 0 && here > 0 ? there / here : 1; }

}  // namespace

const codegen::DeviceFigures& referenceFigures() {
  static const codegen::DeviceFigures figures{"NVIDIA H200", 90, 132, 1.98e9, 4.175e12, 62914560};
  return figures;
}

TargetCosts costsOn(const codegen::DeviceFigures& device, const TargetCosts& costs) {
  if (device.name.empty()) return costs;  // no GPU
  const codegen::DeviceFigures& reference = referenceFigures();
  const double memory = slower(reference.copyBandwidth, device.copyBandwidth);
  const double cores =
      slower(reference.multiprocessors * reference.clock, device.multiprocessors * device.clock);
  const double shared =
      reference.architecture == device.architecture ? slower(reference.cacheBytes, device.cacheBytes) : cores;
  TargetCosts result = costs;
  for (const NamedCost& cost : namedCosts()) {
    double& value = result.*cost.value;
    switch (cost.resource) {
      case Resource::None:
        break;
      case Resource::Memory:
        value *= memory;
        break;
      case Resource::SharedCache:
        value *= shared;
        break;
      case Resource::Cores:
        value *= cores;
        break;
    }
  }
  result.cacheBytes /= slower(reference.cacheBytes, device.cacheBytes);
  // Of pieces at random a stack of memory brings as many as it opens rows, whatever its speed; of one
  // generation stacks are about as many as slices of the cache. On an H100, 1.4 times slower than an H200 in
  // order with 5 stacks of 6, they take 1.3 times as long.
  if (reference.architecture == device.architecture) result.randomLoad *= std::sqrt(shared / memory);
  return result;
}

}  // namespace kelpie::fusion
