#include "runtime/unique_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

namespace kelpie {

std::string uniqueName() {
  uint64_t bits = 0;
  if (::getentropy(&bits, sizeof bits) != 0) {  // a system without: nearly as good
    static std::atomic<uint64_t> count{0};
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    bits = (static_cast<uint64_t>(now) + ++count) * 0x9e3779b97f4a7c15ull ^ static_cast<uint64_t>(getpid());
  }
  return fmt::format("{:016x}", bits);
}

}  // namespace kelpie
