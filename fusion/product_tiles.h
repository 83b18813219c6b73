// How a fold of two indices is done on a GPU, whichever way takes the least time, and how it is cut into
// tiles (codegen/cuda/segment_products.cuh).
#pragma once

#include "codegen/cuda/cuda_module.h"
#include "codegen/regular_reads.h"
#include "fusion/cost_model.h"

namespace kelpie::fusion {

struct ProductTiles {
  codegen::cuda::ProductWay way{};
  double number = 0;  ///< of tiles, if that is the way
  double empty = 1;   ///< how many times as many segments they have; parts of tiles take part of the time
  double serves = 1;  ///< segments that a value serves
};

/// Of `segments` that have `elements` together. `byColumns`: they are folded by columns otherwise, not by
/// ranges.
ProductTiles productTiles(const codegen::Product& product, const lcu::Space& space, const CostModel& model,
                          double elements, double segments, bool byColumns);

}  // namespace kelpie::fusion
