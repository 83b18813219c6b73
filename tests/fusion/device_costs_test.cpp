// Constants for GPUs that were not measured.
#include "fusion/device_costs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fusion/named_costs.h"

namespace kelpie::fusion {
namespace {

void expectSame(const TargetCosts& a, const TargetCosts& b) {
  for (const NamedCost& cost : namedCosts()) EXPECT_EQ(a.*cost.value, b.*cost.value) << cost.name;
}

TEST(DeviceCosts, OfTheReferenceAndOfNoGpuAreAsTheyWere) {
  expectSame(costsOn(referenceFigures(), cudaCosts()), cudaCosts());
  expectSame(costsOn({}, cpuCosts()), cpuCosts());
}

TEST(DeviceCosts, WhatIsNotKnownStays) {
  codegen::DeviceFigures device;
  device.name = "some GPU";
  expectSame(costsOn(device, cudaCosts()), cudaCosts());
}

/// An H100: less and slower memory, a smaller cache, the same cores.
TEST(DeviceCosts, GoByMemoryCacheAndCores) {
  codegen::DeviceFigures device = referenceFigures();
  device.name = "NVIDIA H100 80GB HBM3";
  device.copyBandwidth /= 1.4;
  device.cacheBytes /= 1.2;
  const TargetCosts costs = costsOn(device, cudaCosts());
  EXPECT_NEAR(costs.byte / cudaCosts().byte, 1.4, 1e-9);
  EXPECT_NEAR(costs.randomStore / cudaCosts().randomStore, 1.4, 1e-9);
  EXPECT_NEAR(costs.sharedLoad / cudaCosts().sharedLoad, 1.2, 1e-9);
  EXPECT_NEAR(costs.randomLoad / cudaCosts().randomLoad, std::sqrt(1.4 * 1.2),
              1e-9);  // rows that stacks open
  EXPECT_NEAR(costs.cacheBytes / cudaCosts().cacheBytes, 1 / 1.2, 1e-9);
  EXPECT_EQ(costs.division, cudaCosts().division);
  EXPECT_EQ(costs.overlap, cudaCosts().overlap);
}

/// Of another generation with half the cores, what they do takes twice as long, and so does their cache.
TEST(DeviceCosts, OfFewerCores) {
  codegen::DeviceFigures device = referenceFigures();
  device.name = "half";
  device.architecture = 89;
  device.multiprocessors /= 2;
  device.cacheBytes *= 2;
  const TargetCosts costs = costsOn(device, cudaCosts());
  EXPECT_NEAR(costs.division / cudaCosts().division, 2, 1e-9);
  EXPECT_NEAR(costs.cachedLoad / cudaCosts().cachedLoad, 2, 1e-9);
  EXPECT_NEAR(costs.sharedLoad / cudaCosts().sharedLoad, 2, 1e-9);
  EXPECT_EQ(costs.byte, cudaCosts().byte);
}

}  // namespace
}  // namespace kelpie::fusion
