// Which passes keep values of segments in shared memory.
#include "codegen/cuda/segment_values.h"

#include <gtest/gtest.h>

#include "codegen/cuda/cuda_module.h"
#include "tests/codegen/known_kernels.h"

namespace kelpie::tests {
namespace {

/// Scans, and maps of what is read in order, have what their segments have in shared memory; not what gathers
/// or filters, nor maps of wide elements.
TEST(SegmentValues, AreKeptWhereRowsWouldWait) {
  KnownKernels known;
  auto& a = *known.program.arena;
  const auto keeps = [&](const lcu::Kernel& kernel) {
    const auto passes = codegen::cuda::generateKernel(kernel, known.program, "k").passes;
    return codegen::cuda::sourceOf(passes.at(0)).find("numbers.kept") != std::string::npos;
  };
  const lcu::Kernel &map = known.kernels.at("segmented_map"),
                    &scan = known.kernels.at("segmented_weighted_scan");
  EXPECT_TRUE(keeps(map));
  EXPECT_TRUE(keeps(scan));
  EXPECT_FALSE(keeps(known.kernels.at("segmented_scan")));
  EXPECT_FALSE(keeps(known.kernels.at("segmented_weighted_sum")));  // (of ranges)

  const lcu::ExprRef weighted = map.bindings[0].pull[0], weight = weighted->operands[1];
  const auto mapOf = [&](lcu::ExprRef e) {
    lcu::Soac soac = map.bindings[0];
    soac.pull = {e};
    soac.results = {known.program.newVar({"made", lcu::VarKind::Array, e->type, soac.space.extent})};
    return lcu::Kernel{"made", {soac}, soac.results};
  };
  EXPECT_TRUE(keeps(mapOf(a.add(weighted, weight))));
  EXPECT_FALSE(keeps(mapOf(a.convert(weighted, ScalarType::Float64))));
  const lcu::ExprRef near =
      a.load(weighted->operands[0]->index, weighted->type, a.convert(weight, lcu::kIndex));
  EXPECT_FALSE(keeps(mapOf(a.add(weighted, near))));
  const lcu::ExprRef elsewhere = a.load(weight->index, weight->type, a.add(a.param(1), a.index(1)));
  EXPECT_FALSE(keeps(mapOf(a.add(weighted->operands[0], elsewhere))));
}

}  // namespace
}  // namespace kelpie::tests
