// A stable radix sort in the memory of the host, eight bits a pass, in parallel.
//
// Only the bits are sorted by in which keys differ; where these are up to 32, what is moved has 8 bytes
// instead of 16. The first pass reads the keys and the last one writes the result, so keys that differ in one
// byte are neither copied nor moved but once. Memory is not cleared, and taken from a pool where there is
// one: ranks of 4*10^6 such keys of 64 bits took 450 ms on two cores, most of it for new memory, and take 12
// (cpu-2026-11-29-sorts.txt).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "runtime/target.h"
#include "runtime/thread_team.h"

namespace kelpie::runtime {

// Keys as unsigned integers that order as they do: all NaNs equal and last, -0.0 equal to 0.0.
template <typename T>
using OrderedKey =
    std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint8_t>>;
template <typename T>
OrderedKey<T> ordered(T v) {
  using Key = OrderedKey<T>;
  constexpr Key kTop = static_cast<Key>(Key{1} << (sizeof(Key) * 8 - 1));
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(v)) return std::numeric_limits<Key>::max();
    if (v == 0) v = 0;  // -0.0 as 0.0
    const Key bits = std::bit_cast<Key>(v);
    return (bits & kTop) != 0 ? ~bits : bits | kTop;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(v) ^ kTop;
  } else {
    return v;
  }
}
/// The integer that `ordered` gave.
template <typename T>
T unordered(OrderedKey<T> key) {
  if constexpr (std::is_signed_v<T>) key ^= OrderedKey<T>{1} << (sizeof(T) * 8 - 1);
  return static_cast<T>(key);
}

/// Two buffers that grow, of `scratch` or, if that is null, of their own.
class SortingMemory {
 public:
  explicit SortingMemory(Scratch* scratch = nullptr) : scratch_(scratch) {}
  /// Throws std::bad_alloc.
  template <typename Item>
  Item* buffer(int which, int64_t count) {
    Buffer& buffer = buffers_[static_cast<size_t>(which)];
    const size_t bytes = static_cast<size_t>(count) * sizeof(Item);
    if (buffer.bytes < bytes) {
      if (scratch_) {
        buffer.begin = scratch_->take(bytes);
        if (!buffer.begin) throw std::bad_alloc();
      } else {
        buffer.own = std::make_unique_for_overwrite<std::byte[]>(bytes);
        buffer.begin = buffer.own.get();
      }
      buffer.bytes = bytes;
    }
    return static_cast<Item*>(buffer.begin);
  }

 private:
  struct Buffer {
    void* begin = nullptr;
    size_t bytes = 0;
    std::unique_ptr<std::byte[]> own;
  };
  Scratch* scratch_;
  std::array<Buffer, 2> buffers_;
};

/// Sorts `n` keys, by the threads of a team together.
template <typename T>
class RadixSort {
 public:
  RadixSort(const T* keys, int64_t n, ThreadTeam& team, SortingMemory& memory)
      : keys_(keys), n_(n), team_(team), memory_(memory) {
    constexpr int64_t kChunk = 65536, kMostChunks = 64;
    chunks_ = std::clamp<int64_t>(n / kChunk, 1, kMostChunks);
    look();
  }

  /// order[e] = position of the e-th key; ranks[position] = e. Either may be null.
  void grade(int64_t* order, int64_t* ranks = nullptr) const {
    const auto write = [order, ranks](int64_t e, const auto& item) {
      if (order) order[e] = static_cast<int64_t>(item.position);
      if (ranks) ranks[item.position] = e;
    };
    if (bits_ <= 32 && n_ <= int64_t{std::numeric_limits<uint32_t>::max()}) {
      sort<ShortItem>(write);
    } else {
      sort<LongItem>(write);
    }
  }
  /// The keys themselves, integers.
  void sort(T* sorted) const {
    const auto write = [this, sorted](int64_t e, const auto& item) {
      sorted[e] =
          unordered<T>(static_cast<Key>(common_ | static_cast<Key>(static_cast<Key>(item.key) << low_)));
    };
    if (bits_ <= 32) {
      sort<ShortKey>(write);
    } else {
      sort<LongKey>(write);
    }
  }

 private:
  using Key = OrderedKey<T>;
  static constexpr size_t kBuckets = 256;
  struct ShortItem {
    uint32_t key, position;
  };
  struct LongItem {
    uint64_t key;
    int64_t position;
  };
  struct ShortKey {
    uint32_t key;
  };
  struct LongKey {
    uint64_t key;
  };

  template <typename Body>
  void forEachChunk(const Body& body) const {
    const int64_t chunk = (n_ + chunks_ - 1) / chunks_;
    team_.forEach(chunks_, [&](int64_t c) {
      body(static_cast<size_t>(c), std::min(n_, c * chunk), std::min(n_, (c + 1) * chunk));
    });
  }

  /// Finds the bits in which keys differ.
  void look() {
    std::vector<Key> all(static_cast<size_t>(chunks_)), any(static_cast<size_t>(chunks_));
    forEachChunk([&](size_t c, int64_t begin, int64_t end) {
      Key inAll = std::numeric_limits<Key>::max(), inAny = 0;
      for (int64_t e = begin; e < end; ++e) {
        const Key key = ordered(keys_[e]);
        inAll &= key;
        inAny |= key;
      }
      all[c] = inAll;
      any[c] = inAny;
    });
    Key inAll = std::numeric_limits<Key>::max(), inAny = 0;
    for (Key k : all) inAll &= k;
    for (Key k : any) inAny |= k;
    const Key differing = inAll ^ inAny;
    if (differing != 0) {
      low_ = std::countr_zero(differing);
      bits_ = static_cast<int>(std::bit_width(differing)) - low_;
    }
    common_ = inAll & static_cast<Key>(~differing);
    for (int shift = 0; shift < bits_; shift += 8)
      if ((static_cast<uint64_t>(differing) >> (low_ + shift) & 0xff) != 0) shifts_.push_back(shift);
    if (shifts_.empty()) shifts_.push_back(0);
    differing_ = differing;
  }

  template <typename Item>
  Item itemOf(int64_t e) const {
    Item item;
    item.key = static_cast<decltype(item.key)>(static_cast<Key>(ordered(keys_[e]) & differing_) >> low_);
    if constexpr (requires { item.position; }) item.position = static_cast<decltype(item.position)>(e);
    return item;
  }

  /// `write` takes the e-th item.
  template <typename Item, typename Write>
  void sort(const Write& write) const {
    const size_t passes = shifts_.size();
    Item* buffers[] = {passes > 1 ? memory_.buffer<Item>(0, n_) : nullptr,
                       passes > 2 ? memory_.buffer<Item>(1, n_) : nullptr};
    for (size_t k = 0; k < passes; ++k) {
      const Item* from = k == 0 ? nullptr : buffers[(k - 1) % 2];
      Item* to = k + 1 == passes ? nullptr : buffers[k % 2];
      const auto readKeys = [this](int64_t e) { return itemOf<Item>(e); };
      const auto readItems = [from](int64_t e) { return from[e]; };
      const auto writeItems = [to](int64_t e, const Item& item) { to[e] = item; };
      if (from) {
        to ? pass<Item>(readItems, writeItems, shifts_[k]) : pass<Item>(readItems, write, shifts_[k]);
      } else {
        to ? pass<Item>(readKeys, writeItems, shifts_[k]) : pass<Item>(readKeys, write, shifts_[k]);
      }
    }
  }

  /// By one digit: counts by chunk, prefix over (digit, chunk), scatter by chunk.
  template <typename Item, typename Read, typename Write>
  void pass(const Read& read, const Write& write, int shift) const {
    std::vector<std::array<int64_t, kBuckets>> places(static_cast<size_t>(chunks_));
    forEachChunk([&](size_t c, int64_t begin, int64_t end) {
      auto& count = places[c];
      count.fill(0);
      for (int64_t e = begin; e < end; ++e) ++count[(read(e).key >> shift) & 0xff];
    });
    int64_t place = 0;
    for (size_t d = 0; d < kBuckets; ++d) {
      for (auto& count : places) {
        const int64_t here = count[d];
        count[d] = place;
        place += here;
      }
    }
    forEachChunk([&](size_t c, int64_t begin, int64_t end) {
      auto& next = places[c];
      for (int64_t e = begin; e < end; ++e) {
        const Item item = read(e);
        write(next[(item.key >> shift) & 0xff]++, item);
      }
    });
  }

  const T* keys_;
  int64_t n_;
  ThreadTeam& team_;
  SortingMemory& memory_;
  int64_t chunks_ = 1;
  Key differing_ = 0, common_ = 0;  ///< bits in which keys differ; the others
  int low_ = 0, bits_ = 1;          ///< the former are among these
  std::vector<int> shifts_;         ///< of digits, above `low_`
};

}  // namespace kelpie::runtime
