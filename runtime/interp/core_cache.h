// The cache of one multiprocessor, simulated for what a sample sees it load (sample_totals.h).
//
// Nomenclature. A *line* has 128 bytes, a *sector* 32. A line has its place as a whole, but only the sectors
// that were asked for are loaded: loads at random fill a quarter of each line or little more, so a cache of
// 256 kB holds 64 kB of a table (NVIDIA, "CUDA C++ Best Practices Guide", on transactions of 32 bytes). What
// was used longest ago is forgotten first; hardware does about that.
//
// Example: a thread walks through the characters of a piece of text of its own. Its sector serves 32 steps if
// it is still there at the next one. Of 2,048 threads that go in step it is, for 2,048 lines are there; with
// two texts each, it is not, and each step loads a sector again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace kelpie::runtime {

class CoreCache {
 public:
  static constexpr int64_t kSector = 32, kLine = 128;

  /// Of so many lines, at least one.
  explicit CoreCache(size_t lines) : most_(lines > 0 ? lines : 1) {}

  /// From now on.
  void limit(size_t lines) {
    most_ = lines > 0 ? lines : 1;
    while (places_.size() > most_) forget();
  }
  /// Loads the sector of an array; whether it was not there.
  bool misses(uint32_t array, int64_t sector) {
    constexpr int64_t kSectors = kLine / kSector;
    const uint64_t key = uint64_t{array} << 48 ^ static_cast<uint64_t>(sector / kSectors);
    const auto bit = static_cast<uint8_t>(1u << (sector & (kSectors - 1)));
    const auto [found, isNew] = places_.try_emplace(key, 0);
    if (isNew) {
      found->second = place(key);
    } else {
      unlink(found->second);
    }
    Entry& entry = entries_[found->second];
    const bool missed = (entry.sectors & bit) == 0;
    entry.sectors |= bit;
    append(found->second);
    return missed;
  }
  /// Loads so many bytes that nobody comes back to.
  void pass(double bytes) {
    for (passed_ += bytes; passed_ >= kLine; passed_ -= kLine)
      misses(kNobodys, sectorsPassed_ += kLine / kSector);
  }

 private:
  static constexpr uint32_t kNobodys = 0xffff;
  struct Entry {
    uint64_t key = 0;
    size_t before = 0, behind = 0;  ///< used earlier and later; entry 0 is between the last and the first
    uint8_t sectors = 0;
  };

  /// For a line that comes, in the place of the one that was used longest ago if there is no other.
  size_t place(uint64_t key) {
    if (places_.size() > most_) forget();  // the new line is among them
    size_t at = entries_.size();
    if (free_.empty()) {
      entries_.emplace_back();
    } else {
      at = free_.back();
      free_.pop_back();
    }
    entries_[at].key = key;
    entries_[at].sectors = 0;
    return at;
  }
  void forget() {
    const size_t oldest = entries_[0].behind;
    unlink(oldest);
    places_.erase(entries_[oldest].key);
    free_.push_back(oldest);
  }
  void unlink(size_t at) {
    const Entry entry = entries_[at];
    entries_[entry.before].behind = entry.behind;
    entries_[entry.behind].before = entry.before;
  }
  void append(size_t at) {
    const size_t last = entries_[0].before;
    entries_[at].before = last;
    entries_[at].behind = 0;
    entries_[last].behind = at;
    entries_[0].before = at;
  }

  size_t most_;
  std::vector<Entry> entries_ = std::vector<Entry>(1);
  std::vector<size_t> free_;                     ///< of entries_
  std::unordered_map<uint64_t, size_t> places_;  ///< in entries_
  double passed_ = 0;
  int64_t sectorsPassed_ = 0;
};

}  // namespace kelpie::runtime
