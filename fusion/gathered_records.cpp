#include "fusion/gathered_records.h"

#include <algorithm>

#include "codegen/cuda/cuda_module.h"

namespace kelpie::fusion {

void GatheredRecords::add(const GatherTime& column) {
  ++columns_;
  apart_ = {apart_.memory + column.memory, apart_.shared + column.shared, apart_.own + column.own};
  greatest_ = {std::max(greatest_.memory, column.memory), std::max(greatest_.shared, column.shared),
               std::max(greatest_.own, column.own)};
}

GatherTime GatheredRecords::time(const CostModel& model, double rows, double elements) const {
  constexpr double kBytes = 8, kPiece = 4;  // of a column; columns in a piece of 32 bytes
  constexpr double kFewerHeld = 1.15;
  const int even = (columns_ + 1) / 2 * 2;
  const double stride = even;
  const double bytes = rows * stride * kBytes;
  const auto least = static_cast<double>(codegen::cuda::CudaOptions().gatheredBytes);
  if (columns_ < 2 || bytes < least || rows > codegen::cuda::kMostRowsOfElement * elements) return apart_;
  // A record has no more than the 64 bytes that memory hands over at a time, but caches hold fewer of them.
  const double pieces = std::max(1.0, stride / kPiece);
  GatherTime records{kFewerHeld * greatest_.memory, greatest_.shared * pieces, greatest_.own * pieces};
  records.memory += (bytes + rows * columns_ * kBytes) * model.costs().byte + model.costs().launch;
  return model.together(records) < model.together(apart_) ? records : apart_;
}

}  // namespace kelpie::fusion
