// A target that evaluates kernels, and is launched over numbers of elements that only its memory holds, as a
// device far from the host would be.
#pragma once

#include "runtime/host_target.h"

namespace kelpie::testing {

class CountingTarget : public runtime::HostTarget {
 public:
  CountingTarget() : HostTarget(0) {}
  std::string name() const override { return "counting"; }
  bool hostAddressable() const override { return false; }
  bool canCount() override { return true; }
  const runtime::LaunchWork* lastWork() const override { return nullptr; }

  runtime::Failure read(std::span<const runtime::HostRead> reads,
                        std::optional<runtime::DeviceError>& error) override {
    std::vector<runtime::HostRead> found(reads.begin(), reads.end());
    if (auto failure = synchronise(error)) return failure;
    for (runtime::HostRead& read : found) {
      if (error || !read.position) continue;
      const int64_t position = *static_cast<const int64_t*>(read.position);
      if (position < 0 || position > read.most) return "a position that was not announced";
      read.from = static_cast<std::byte*>(read.from) + static_cast<size_t>(position) * read.bytes;
    }
    return HostTarget::read(found, error);
  }

 protected:
  runtime::Failure execute(const runtime::LaunchRequest& request,
                           std::optional<runtime::DeviceError>& error) override {
    runtime::LaunchRequest known = request;
    if (request.counted) {
      known.extents.elements = *static_cast<const int64_t*>(request.counted);
      if (known.extents.elements < 0 || known.extents.elements > request.extents.elements)
        return "more elements than were announced";
    }
    interpret(known, error);
    return std::nullopt;
  }
};

}  // namespace kelpie::testing
