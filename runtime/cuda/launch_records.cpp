#include <algorithm>

#include "runtime/cuda/argument_block.h"
#include "runtime/cuda/cuda_target.h"
#include "runtime/cuda/launch_words.h"

namespace kelpie::runtime::cuda {

using codegen::cuda::CudaPass, codegen::cuda::SideBySide;

/// Columns of a pass that loads them at the same positions are put side by side, if that may pay
/// (codegen/cuda/records.cuh). Where it depends on the positions whether it does, a sample of them tells, and
/// kernels find out on the device: the host does not wait.
Failure CudaTarget::interleave(const LaunchRequest& request, const PreparedKernel& kernel,
                               const PreparedPass& prepared, const CudaPass& pass, size_t number,
                               LaunchWord& word) {
  constexpr size_t kHeaderBytes = 32;  // RecordsHeader
  const SideBySide& wanted = pass.records[number];
  RecordColumns arrays{};
  int64_t count = 0;
  for (size_t k = 0; k < wanted.columns.size(); ++k) {
    const Origin& origin = prepared.parameters[wanted.columns[k]];
    if (origin.of != Origin::Of::Argument || origin.index >= request.lengths.size()) return std::nullopt;
    const int64_t length = request.lengths[origin.index];
    count = k == 0 ? length : std::min(count, length);
    arrays.column[k] = request.arguments[origin.index].pointer;
  }
  const auto width = static_cast<int64_t>(wanted.columns.size()), stride = (width + 1) / 2 * 2;
  const size_t bytes = static_cast<size_t>(count * stride) * sizeof(uint64_t);
  const int64_t least = wanted.places ? options_.gatheredBytes : options_.recordBytes;
  const int64_t elements = request.extents.elements;
  if (count == 0 || elements == 0 || static_cast<int64_t>(bytes) < least ||
      count / codegen::cuda::kMostRowsOfElement > elements)
    return std::nullopt;
  constexpr int kThreads = 256;
  constexpr int64_t kPairsOfBlock = 1024, kMostBlocks = 2048;
  const int64_t blocks = std::min<int64_t>(count * stride / 2 / kPairsOfBlock + 1, kMostBlocks);
  if (!wanted.places) {
    DevicePointer place = request.scratch->take(bytes);
    if (!place) return std::nullopt;
    if (auto failure = loadSupport()) return failure;
    word.records[number] = place;
    ArgumentBlock arguments(4);
    arguments.set(0, arrays);
    arguments.set(1, count);
    arguments.set(2, width);
    arguments.set(3, place);
    return device_->launch(interleave_, blocks, kThreads, arguments.addresses());
  }
  const Origin& origin = prepared.parameters[*wanted.places];
  if (request.counted || origin.of != Origin::Of::Argument) return std::nullopt;
  DevicePointer header = request.scratch->take(kHeaderBytes + bytes);
  if (!header) return std::nullopt;
  if (auto failure = loadSupport()) return failure;
  const codegen::KernelParameter& places = pass.info.parameters[*wanted.places];
  const GatheredPlaces gathered{request.arguments[origin.index].pointer,
                                kernel.isShort(places.var) ? 4 : sizeOf(places.type), elements,
                                options_.gatherWindow};
  ArgumentBlock arguments(6);
  arguments.set(0, word);
  arguments.set(1, gathered);
  arguments.set(2, arrays);
  arguments.set(3, count);
  arguments.set(4, width);
  arguments.set(5, header);
  word.records[number] = header;
  return device_->launch(interleaveScattered_, blocks, kThreads, arguments.addresses());
}

}  // namespace kelpie::runtime::cuda
