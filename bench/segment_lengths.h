// Segments for measurements: the same distributions of lengths, from the same seed, for Kelpie and its peers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace kelpie::bench {

/// Where segments of n elements begin, and n: `kind` is their length (8, 1024, 1048576), "zipf" (by a power
/// law, cut at 2^20; one in ten is empty) or "half_giant" (one of half of the elements, the others of 1 to
/// 4).
template <class Offset>
std::vector<Offset> offsetsOf(const std::string& kind, int64_t n) {
  std::vector<Offset> offsets = {0};
  std::mt19937_64 random(1);
  const auto grow = [&](int64_t length) {
    offsets.push_back(static_cast<Offset>(std::min<int64_t>(n, offsets.back() + length)));
  };
  if (kind == "half_giant") grow(n / 2);
  while (offsets.back() < n) {
    if (kind == "8") grow(8);
    if (kind == "1024") grow(1024);
    if (kind == "1048576") grow(1 << 20);
    if (kind == "half_giant") grow(1 + static_cast<int64_t>(random() % 4));
    if (kind == "zipf") {
      const double u = (static_cast<double>(random() >> 11) + 1) / 9007199254740993.0;
      grow(random() % 10 == 0 ? 0 : static_cast<int64_t>(std::min(1048576.0, 1 / u)));
    }
  }
  return offsets;
}

}  // namespace kelpie::bench
