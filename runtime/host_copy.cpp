#include "runtime/host_copy.h"

#include <algorithm>
#include <bit>

namespace kelpie::runtime {

HostCopy::HostCopy(int64_t elements, size_t width)
    : elements_(elements),
      inPiece_(static_cast<int64_t>(kPieceBytes / width)),
      width_(width),
      bytes_(
          static_cast<std::byte*>(std::malloc(std::max<size_t>(1, static_cast<size_t>(elements) * width)))),
      here_(static_cast<size_t>((elements + inPiece_ - 1) / inPiece_)) {}

HostCopy::Piece HostCopy::next(int64_t position) {
  if (!bytes_) return {nullptr, 0, 0};
  // Aligned, so that whoever goes backwards has as much of it.
  const size_t pieces = std::bit_floor(std::min(++reads_, kMostBytes / kPieceBytes));
  const size_t first = static_cast<size_t>(position / inPiece_) / pieces * pieces;
  const size_t end = std::min(first + pieces, here_.size());
  const size_t offset = first * kPieceBytes;
  return {bytes_.get() + offset, offset,
          std::min(end * kPieceBytes, static_cast<size_t>(elements_) * width_) - offset};
}

void HostCopy::arrived(const Piece& piece) {
  const auto first = here_.begin() + static_cast<std::ptrdiff_t>(piece.offset / kPieceBytes);
  std::fill_n(first, (piece.bytes + kPieceBytes - 1) / kPieceBytes, true);
}

}  // namespace kelpie::runtime
