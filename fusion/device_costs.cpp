#include "fusion/device_costs.h"

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
  return result;
}

}  // namespace kelpie::fusion
