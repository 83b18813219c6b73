// Arrays that do not change, shared by all their copies, and brought to the host only as far as somebody
// looks.
//
// The elements of an array are in memory of the host or elsewhere: in that of a device. A result of 10^8
// numbers, of which the first hundred are printed and the others read by the next form on the same device,
// travels as these hundred.
//
// Not for several threads at once. What brings elements throws ElementsLost where it cannot, std::bad_alloc
// where the host has no memory for them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace kelpie {

/// Why elements could not be brought: their device failed.
class ElementsLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Where the elements of an array are before they are in memory of its own.
class ElementSource {
 public:
  virtual ~ElementSource() = default;
  /// Copies bytes `begin` .. `begin + size - 1`; throws ElementsLost.
  virtual void read(std::byte* to, size_t begin, size_t size) = 0;
  /// Where the host can read all of them as they are; null: nowhere.
  virtual const std::byte* inPlace() const { return nullptr; }
};

/// The elements of an array as bytes.
class ArrayBytes {
 public:
  /// In memory that `owner` keeps.
  ArrayBytes(std::shared_ptr<const void> owner, const std::byte* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size), here_(size) {}
  ArrayBytes(std::unique_ptr<ElementSource> source, size_t size)
      : source_(std::move(source)),
        data_(source_->inPlace()),
        size_(size),
        here_(data_ != nullptr ? size : 0) {}

  size_t size() const { return size_; }
  /// The bytes, of which at least the first `end` are there.
  const std::byte* upTo(size_t end) {
    if (end > here_) bring(end);
    return data_;
  }
  /// From now on all are in memory that the array has to itself; the source is given up.
  void settle();
  bool isSettled() const { return source_ == nullptr; }
  /// Gives the source up: whoever asks for what has not been brought gets ElementsLost.
  void lose();

 private:
  void bring(size_t end);

  std::unique_ptr<ElementSource> source_;  ///< null: settled
  std::shared_ptr<const void> owner_;      ///< keeps data_, where the source does not
  std::byte* own_ = nullptr;               ///< data_, where the array has memory for what it brings
  const std::byte* data_;
  size_t size_, here_;  ///< bytes in all; the first ones, that are at data_
};

/// A shared array. One that was not given any elements has none.
template <typename T>
class SharedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SharedArray() = default;
  SharedArray(std::vector<T> elements) {  // NOLINT(google-explicit-constructor): a vector that is shared
    auto owner = std::make_shared<const std::vector<T>>(std::move(elements));
    const auto bytes = std::as_bytes(std::span(*owner));
    bytes_ = std::make_shared<ArrayBytes>(owner, bytes.data(), bytes.size());
  }
  SharedArray(std::unique_ptr<ElementSource> source, size_t count)
      : bytes_(std::make_shared<ArrayBytes>(std::move(source), count * sizeof(T))) {}

  size_t size() const { return bytes_ ? bytes_->size() / sizeof(T) : 0; }
  bool empty() const { return size() == 0; }
  /// The element; those before it are brought, too.
  const T& operator[](size_t index) const { return upTo(index + 1)[index]; }
  /// The elements, of which at least the first `count` have been brought.
  const T* upTo(size_t count) const {
    return bytes_ ? reinterpret_cast<const T*>(bytes_->upTo(count * sizeof(T))) : nullptr;
  }
  /// All of them.
  const T* data() const { return upTo(size()); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  const T& back() const { return (*this)[size() - 1]; }

  /// What copies have in common, and nobody else; null where there are no elements.
  const std::shared_ptr<ArrayBytes>& bytes() const { return bytes_; }

  /// The same elements, bit by bit.
  friend bool operator==(const SharedArray& a, const SharedArray& b) {
    if (a.bytes_ == b.bytes_) return true;
    if (a.size() != b.size()) return false;
    const auto elements = std::as_bytes(std::span(a.begin(), a.end()));
    return std::equal(elements.begin(), elements.end(), std::as_bytes(std::span(b.begin(), b.end())).begin());
  }

 private:
  std::shared_ptr<ArrayBytes> bytes_;
};

}  // namespace kelpie
