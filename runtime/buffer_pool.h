// Memory of a target, pooled: buffers come back to free lists by size and are handed out again.
//
// A buffer is shared by reference count; the last owner gives it back. Targets run everything in one order,
// so a buffer may be reused at once by work that was issued later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/target.h"

namespace kelpie::runtime {

class BufferPool;

class Buffer;
using BufferRef = std::shared_ptr<const Buffer>;

/// A piece of the target's memory, memory of the host that is kept alive by `owner`, or a part of another
/// buffer.
class Buffer {
 public:
  Buffer(std::shared_ptr<BufferPool> pool, DevicePointer pointer, size_t bytes)
      : pool_(std::move(pool)), pointer_(pointer), bytes_(bytes) {}
  Buffer(std::shared_ptr<const void> owner, const void* pointer, size_t bytes)
      : owner_(std::move(owner)), pointer_(const_cast<void*>(pointer)), bytes_(bytes) {}
  ~Buffer();
  Buffer(BufferRef whole, size_t offset, size_t bytes)
      : whole_(std::move(whole)),
        pointer_(static_cast<std::byte*>(whole_->pointer_) + offset),
        bytes_(bytes) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  DevicePointer pointer() const { return pointer_; }
  size_t bytes() const { return bytes_; }
  bool isWhole() const { return pool_ != nullptr; }  ///< a piece of memory that nothing else is in
  const BufferRef& whole() const { return whole_; }  ///< the buffer this is a part of, if it is one

 private:
  std::shared_ptr<BufferPool> pool_;
  std::shared_ptr<const void> owner_;
  BufferRef whole_;
  DevicePointer pointer_;
  size_t bytes_;
};

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  explicit BufferPool(Target& target) : target_(target) {}
  ~BufferPool();

  /// At least `bytes` bytes; null when the limit of the target or its memory is exhausted.
  BufferRef allocate(size_t bytes);
  /// For all arrays without elements: 16 bytes of zeros, which nobody writes to. Where a check fails its
  /// fallback is position 0 of such an array, and what is there may be a position itself, so it must be one.
  BufferRef empty();
  /// Gives all unused memory back to the target.
  void trim();

  size_t bytesInUse() const { return inUse_; }
  size_t peakBytes() const { return peak_; }
  void resetPeak() { peak_ = inUse_; }
  uint64_t allocations() const { return allocations_; }  ///< that the target was asked for

 private:
  friend class Buffer;
  void giveBack(DevicePointer pointer, size_t bytes);

  Target& target_;
  std::map<size_t, std::vector<DevicePointer>> unused_;
  DevicePointer zeros_ = nullptr;  ///< null: not asked for yet
  uint64_t allocations_ = 0;
  size_t inUse_ = 0, held_ = 0, peak_ = 0;  ///< held: in use and unused
};

}  // namespace kelpie::runtime
