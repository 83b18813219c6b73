// How a fold of two indices is cut into tiles on a GPU (codegen/cuda/segment_products.cuh), if these take
// less time than what is launched otherwise.
#pragma once

#include <optional>

#include "codegen/regular_reads.h"
#include "fusion/cost_model.h"

namespace kelpie::fusion {

struct ProductTiles {
  static constexpr double kSide = 64;  ///< segments of a tile that a value serves

  double number = 0;  ///< of tiles
  double empty = 1;   ///< how many times as many segments they have; parts of tiles take part of the time
};

/// Of `segments` that have `elements` together. `byColumns`: they are folded by columns otherwise, not by
/// ranges.
std::optional<ProductTiles> productTiles(const codegen::Product& product, const lcu::Space& space,
                                         const CostModel& model, double elements, double segments,
                                         bool byColumns);

}  // namespace kelpie::fusion
