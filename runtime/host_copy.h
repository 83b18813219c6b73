// Elements of a device array that the host has read, for host code that goes through arrays element by
// element.
//
// A wait takes as long as bringing 200 kB. So who comes back to an array for another element gets what is
// around it, too, and more each time, up to all of it: n elements in any order take a few dozen waits, not n,
// and no more bytes than the waits that they spare are worth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace kelpie::runtime {

class HostCopy {
 public:
  /// Of an array of `elements`, each of `width` bytes (a power of two).
  HostCopy(int64_t elements, size_t width);

  /// Where the element is; null: it is not here.
  const std::byte* find(int64_t position) const {
    return here_[static_cast<size_t>(position / inPiece_)]
               ? bytes_.get() + static_cast<size_t>(position) * width_
               : nullptr;
  }

  struct Piece {
    std::byte* to;
    size_t offset, bytes;  ///< in the array
  };
  /// What is to be read for an element that is not here. Nothing, if there is no memory.
  Piece next(int64_t position);
  /// It has been read: its elements are here from now on.
  void arrived(const Piece& piece);

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  static constexpr size_t kPieceBytes = size_t{16} << 10, kMostBytes = size_t{64} << 20;

  int64_t elements_, inPiece_;
  size_t width_;
  size_t reads_ = 0;
  std::unique_ptr<std::byte[], Free> bytes_;  ///< all of it; the system gives memory where something is put
  std::vector<bool> here_;                    ///< by piece
};

}  // namespace kelpie::runtime
