// Columns that elements gather together, of a kernel on a GPU: each in its array, or all side by side, which
// takes a pass over them before (codegen/gathered_columns.h, runtime/cuda/launch_records.cpp). A launch finds
// out by a sample of the places; here it is whichever takes less time.
#pragma once

#include "fusion/cost_model.h"

namespace kelpie::fusion {

class GatheredRecords {
 public:
  /// One more column, of all its loads.
  void add(const GatherTime& column);

  /// Of all columns together, of arrays with so many elements, that `elements` gather; nothing if there are
  /// none.
  GatherTime time(const CostModel& model, double rows, double elements) const;

 private:
  GatherTime apart_, greatest_;
  int columns_ = 0;
};

}  // namespace kelpie::fusion
