#include "ir/shared_array.h"

#include <algorithm>

namespace kelpie {
namespace {

/// Who looks at one element looks at the next one, as a rule.
constexpr size_t kLeastBrought = size_t{1} << 16;

/// Memory that nobody has touched yet: what is never brought takes none.
std::shared_ptr<std::byte[]> untouched(size_t size) {
  return std::shared_ptr<std::byte[]>(new std::byte[size]);
}

}  // namespace

void ArrayBytes::bring(size_t end) {
  if (own_ == nullptr) {
    auto memory = untouched(size_);
    own_ = memory.get();
    data_ = own_;
    owner_ = std::move(memory);
  }
  const size_t until = std::min(size_, std::max({end, 2 * here_, kLeastBrought}));
  source_->read(own_ + here_, here_, until - here_);
  here_ = until;
  if (here_ == size_) source_.reset();
}

void ArrayBytes::lose() {
  class Nowhere final : public ElementSource {
    void read(std::byte*, size_t, size_t) override { throw ElementsLost("a value was lost with its device"); }
  };
  if (!source_) return;
  if (own_ == nullptr) {
    data_ = nullptr;
    here_ = 0;
  }
  source_ = std::make_unique<Nowhere>();
}

void ArrayBytes::settle() {
  if (!source_) return;
  if (own_ == nullptr) here_ = 0;  // at the source's own place
  bring(size_);
  source_.reset();
}

}  // namespace kelpie
