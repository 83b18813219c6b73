#include "runtime/buffer_pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

namespace kelpie::runtime {
namespace {

/// Sizes are rounded to a quarter of their power of two, so that a few lists serve all and little is wasted.
size_t roundedSize(size_t bytes) {
  if (bytes <= 256) return 256;
  const size_t step = std::max<size_t>(std::bit_floor(bytes) / 4, 256);
  return (bytes + step - 1) / step * step;
}

}  // namespace

Buffer::~Buffer() {
  if (pool_) pool_->giveBack(pointer_, bytes_);
}

BufferPool::~BufferPool() {
  trim();
  if (zeros_) target_.deallocate(zeros_);
}

BufferRef BufferPool::empty() {
  constexpr std::array<std::byte, 16> kZeros{};
  if (!zeros_) {
    zeros_ = target_.allocate(kZeros.size());
    if (!zeros_) return nullptr;
    if (target_.upload(zeros_, kZeros.data(), kZeros.size())) {
      target_.deallocate(std::exchange(zeros_, nullptr));
      return nullptr;
    }
  }
  return std::make_shared<const Buffer>(std::shared_ptr<const void>(shared_from_this()), zeros_,
                                        kZeros.size());
}

BufferRef BufferPool::allocate(size_t bytes) {
  if (bytes > std::numeric_limits<size_t>::max() / 4) return nullptr;
  const size_t size = roundedSize(bytes);
  DevicePointer pointer = nullptr;
  if (auto it = unused_.find(size); it != unused_.end() && !it->second.empty()) {
    pointer = it->second.back();
    it->second.pop_back();
  } else {
    const size_t limit = target_.memoryLimit();
    if (size > limit || inUse_ > limit - size) return nullptr;
    if (held_ > limit - size) trim();
    ++allocations_;
    pointer = target_.allocate(size);
    if (!pointer) {
      trim();
      pointer = target_.allocate(size);
    }
    if (!pointer) return nullptr;
    held_ += size;
  }
  inUse_ += size;
  peak_ = std::max(peak_, inUse_);
  return std::make_shared<const Buffer>(shared_from_this(), pointer, size);
}

void BufferPool::giveBack(DevicePointer pointer, size_t bytes) {
  unused_[bytes].push_back(pointer);
  inUse_ -= bytes;
}

void BufferPool::trim() {
  for (auto& [size, pointers] : unused_) {
    for (DevicePointer p : pointers) target_.deallocate(p);
    held_ -= size * pointers.size();
  }
  unused_.clear();
}

}  // namespace kelpie::runtime
