#include "fusion/scanner_time.h"

#include <algorithm>

namespace kelpie::fusion {

double scannerTime(const codegen::cuda::PassPlan& plan, double elements, const TargetCosts& costs) {
  constexpr double kQuick = 0.4;                // where lanes take several tiles each (scanShortTiles)
  constexpr double kThree = 1.35, kWide = 1.8;  // where a tile carries three words, and more
  constexpr int64_t kWord = 8;
  constexpr int kShortTile = 1024;
  using namespace codegen::cuda;
  if (!plan.scanned()) return 0;
  const bool quick = plan.shape.items() <= kShortTile &&
                     std::all_of(plan.levels.begin(), plan.levels.end(), [](const LevelPlan& level) {
                       return !level.segmented && level.bytes() <= int64_t{sizeof(int64_t)};
                     });
  int64_t carried = 0;
  for (const LevelPlan& level : plan.levels)
    carried = std::max<int64_t>(carried, level.bytes() + (level.segmented ? kWord : 0));
  const double wide = carried > 3 * kWord ? kWide : carried == 3 * kWord ? kThree : 1;
  return elements / plan.shape.items() * costs.scannedTile * (quick ? kQuick : wide);
}

}  // namespace kelpie::fusion
