#include "fusion/device_costs.h"

namespace kelpie::fusion {

namespace {

using Cost = double TargetCosts::*;

constexpr Cost kOfMemory[] = {&TargetCosts::byte, &TargetCosts::storedByte, &TargetCosts::randomLoad,
                              &TargetCosts::randomStore};
constexpr Cost kOfSharedCache[] = {&TargetCosts::sharedLoad, &TargetCosts::sharedStore};
constexpr Cost kOfCores[] = {
    &TargetCosts::besideLoad,       &TargetCosts::cachedLoad,    &TargetCosts::guardedLoad,
    &TargetCosts::checkedFilter,    &TargetCosts::element,       &TargetCosts::access,
    &TargetCosts::address,          &TargetCosts::iteration,     &TargetCosts::call,
    &TargetCosts::frameValue,       &TargetCosts::operation,     &TargetCosts::integerOperation,
    &TargetCosts::integerProduct,   &TargetCosts::conversion,    &TargetCosts::constantDivision,
    &TargetCosts::integerDivision,  &TargetCosts::longDivision,  &TargetCosts::division,
    &TargetCosts::exponential,      &TargetCosts::logarithm,     &TargetCosts::trigonometric,
    &TargetCosts::scanElement,      &TargetCosts::scanByte,      &TargetCosts::filterElement,
    &TargetCosts::filterByte,       &TargetCosts::furtherScan,   &TargetCosts::furtherFilter,
    &TargetCosts::segmentedElement, &TargetCosts::segment,       &TargetCosts::keptElement,
    &TargetCosts::numberedElement,  &TargetCosts::foldedElement, &TargetCosts::foldedSegment,
    &TargetCosts::headedElement,    &TargetCosts::headedSegment, &TargetCosts::numberedScan,
    &TargetCosts::rowElement,       &TargetCosts::columnElement, &TargetCosts::productElement,
    &TargetCosts::keyedElement,     &TargetCosts::permuteElement};

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
  for (const Cost cost : kOfMemory) result.*cost *= memory;
  for (const Cost cost : kOfSharedCache) result.*cost *= shared;
  for (const Cost cost : kOfCores) result.*cost *= cores;
  result.cacheBytes /= slower(reference.cacheBytes, device.cacheBytes);
  return result;
}

}  // namespace kelpie::fusion
