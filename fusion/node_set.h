// A set of the nodes 0 to size - 1, for the inner loops of the exact search.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kelpie::fusion {

class NodeSet {
 public:
  explicit NodeSet(size_t size = 0) : words_((size + 63) / 64) {}
  bool has(int v) const { return (words_[static_cast<size_t>(v) >> 6] >> (v & 63)) & 1; }
  void add(int v) { words_[static_cast<size_t>(v) >> 6] |= uint64_t{1} << (v & 63); }
  /// The least node in both; -1 if there is none.
  int firstCommon(const NodeSet& other) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      if (const uint64_t both = words_[w] & other.words_[w])
        return static_cast<int>(64 * w) + std::countr_zero(both);
    }
    return -1;
  }
  bool meets(const NodeSet& other) const { return firstCommon(other) >= 0; }
  /// How many are in both.
  int common(const NodeSet& other) const {
    int count = 0;
    for (size_t w = 0; w < words_.size(); ++w) count += std::popcount(words_[w] & other.words_[w]);
    return count;
  }
  NodeSet& operator|=(const NodeSet& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
    return *this;
  }
  /// What is in both.
  NodeSet operator&(const NodeSet& other) const {
    NodeSet both = *this;
    for (size_t w = 0; w < words_.size(); ++w) both.words_[w] &= other.words_[w];
    return both;
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace kelpie::fusion
