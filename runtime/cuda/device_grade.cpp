#include "runtime/cuda/device_grade.h"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "runtime/host_grade.h"
#include "runtime/host_memory.h"
#ifdef KELPIE_HAVE_CUB
#include "runtime/cuda/grade_cub.h"
#endif

namespace kelpie::runtime::cuda {

namespace {

/// Sorts in the memory of the host: right everywhere, at the price of two copies.
Failure gradeByWayOfHost(Device& device, const GradeRequest& request) {
  const auto elements = static_cast<size_t>(request.extents.elements);
  // Keys, what is made of them, and as much again that the sort has beside these.
  constexpr size_t kBeside = 2;
  const size_t width = static_cast<size_t>(sizeOf(request.type)) +
                       (request.sorted ? sizeOf(request.type) : 0) + (request.order ? sizeof(int64_t) : 0) +
                       (request.ranks ? sizeof(int64_t) : 0);
  if (const size_t needed = elements * width * kBeside; needed > availableMemory())
    return fmt::format(
        "out of memory: a sort of {} elements goes by way of the host and takes {} bytes there", elements,
        needed);
  std::vector<std::byte> keys(elements * static_cast<size_t>(sizeOf(request.type)));
  std::vector<std::byte> sorted(request.sorted ? keys.size() : 0);
  std::vector<int64_t> order(request.order ? elements : 0), ranks(request.ranks ? elements : 0), offsets;
  if (auto f = device.download(keys.data(), request.keys, keys.size())) return f;
  GradeRequest onHost = request;
  onHost.keys = keys.data();
  onHost.scratch = nullptr;
  if (request.order) onHost.order = order.data();
  if (request.sorted) onHost.sorted = sorted.data();
  if (request.ranks) onHost.ranks = ranks.data();
  if (request.offsets) {
    offsets.resize(static_cast<size_t>(request.extents.segments) + 1);
    if (auto f = device.download(offsets.data(), request.offsets, offsets.size() * sizeof(int64_t))) return f;
    onHost.offsets = offsets.data();
    uint64_t failure = 0;
    if (request.failure)
      if (auto f = device.download(&failure, request.failure, sizeof failure)) return f;
    if (failure != 0) return std::nullopt;  // who was to make them has not
  }
  ThreadTeam team;
  gradeOnHost(onHost, team);
  const std::pair<DevicePointer, std::span<const std::byte>> results[] = {
      {request.order, std::as_bytes(std::span(order))},
      {request.sorted, sorted},
      {request.ranks, std::as_bytes(std::span(ranks))}};
  for (const auto& [to, from] : results)
    if (to)
      if (auto f = device.upload(to, from.data(), from.size())) return f;
  return std::nullopt;
}

#ifdef KELPIE_HAVE_CUB
int kindOf(ScalarType type) {
  switch (type) {
    case ScalarType::Bool:
    case ScalarType::Char:
      return 1;
    case ScalarType::Int32:
      return 2;
    case ScalarType::Int64:
      return 3;
    case ScalarType::Float32:
      return 4;
    case ScalarType::Float64:
      return 5;
  }
  return 0;
}
#endif

}  // namespace

Failure gradeOnDevice(Device& device, void* stream, const GradeRequest& request,
                      const std::function<Failure()>& begin) {
#ifdef KELPIE_HAVE_CUB
  const auto& x = request.extents;
  if (x.elements < INT32_MAX && x.segments < INT32_MAX) {
    const auto* offsets = static_cast<const int64_t*>(request.offsets);
    int64_t length = request.space == lcu::SpaceKind::Regular ? x.length : 0;
    auto* order = static_cast<int64_t*>(request.order);
    auto* ranks = static_cast<int64_t*>(request.ranks);
    uint64_t bytes = 0;
    int waits = 0;
    auto run = [&](void* scratch) {
      return kelpie_cub_grade(kindOf(request.type), request.keys, order, request.sorted, ranks, x.elements,
                              x.segments, offsets, length, request.failure, scratch, &bytes, stream, &waits);
    };
    int error = run(nullptr);
    if (error == 0) {
      void* scratch = request.scratch->take(bytes);
      if (!scratch) return "out of memory: " + std::to_string(bytes) + " bytes for a sort";
      if (auto f = begin()) return f;
      error = run(scratch);
      if (request.waited) *request.waited = waits > 0;
    }
    if (error != 0) return fmt::format("sorting on the device failed (CUDA error {})", error);
    return std::nullopt;
  }
#endif
  (void)stream;
  if (auto f = begin()) return f;
  return gradeByWayOfHost(device, request);
}

}  // namespace kelpie::runtime::cuda
