#include "fusion/product_tiles.h"

#include <algorithm>
#include <cmath>

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;

namespace {

/// How many places there are. That may be a scalar of the host that nobody knows: then as many as outer
/// indices, unless these are known.
double placesOf(const codegen::Product& product, const lcu::Space& space, const CostModel& model,
                double segments) {
  const ExprRef places = product.indices.inner, all = space.segments;
  if (places->kind != ExprKind::Host || model.isTold(places)) return model.elements(places);
  if (all->kind == ExprKind::Op && all->op == ScalarOp::Mul)
    for (size_t k : {0, 1})
      if (all->operands[k] == places && model.isTold(all->operands[1 - k]))
        return segments / std::max(1.0, model.elements(all->operands[1 - k]));
  return std::sqrt(segments);
}

constexpr double kSide = 64, kRowsOfShorts = 8;

/// Indices that tiles have for so many. Half a tile takes 0.7 of its time: what it loads is as much. (On an
/// H100 a position of a tile takes 0.73 ns, of a half 0.57, of a quarter 0.36.)
double inTiles(double indices) {
  constexpr double kHalf = kSide / 2, kTimeOfHalf = 0.7 * kSide;
  const double rest = std::fmod(indices, kSide);
  return indices - rest + (rest == 0 ? 0 : rest <= kHalf ? kTimeOfHalf : kSide);
}

}  // namespace

ProductTiles productTiles(const codegen::Product& product, const lcu::Space& space, const CostModel& model,
                          double elements, double segments, bool byColumns) {
  const double places = placesOf(product, space, model, segments), outers = segments / std::max(1.0, places);
  const double length = elements / std::max(1.0, segments);
  const codegen::cuda::TileShape shape;
  using codegen::cuda::ProductWay;
  ProductTiles result{codegen::cuda::productWay(shape, byColumns, outers, places, length)};
  if (result.way == ProductWay::Tiles) {
    result.number = codegen::cuda::ProductTime(shape, outers, places, length).tiles;
    result.empty = inTiles(places) * inTiles(outers) / std::max(1.0, segments);
    result.serves = kSide;
  }
  if (result.way == ProductWay::Shorts) {
    result.empty = codegen::cuda::segmentsOfShorts(outers, places) / std::max(1.0, segments);
    result.serves = kRowsOfShorts;
  }
  return result;
}

}  // namespace kelpie::fusion
