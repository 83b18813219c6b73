// Columns of one element that a thread loads at a place of its own, step after step of a loop or where
// another array tells (codegen/gathered_columns.h): where the host has put them side by side, a load brings
// two of them, and all lie in one or two pieces of 32 bytes instead of one piece each.
#pragma once

#include "base.cuh"

namespace kelpie {

/// Columns of 8 bytes; an odd one is followed by nothing.
template <int kColumns>
struct alignas(16) Record {
  uint64_t column[(kColumns + 1) / 2 * 2];
};

KELPIE_DEVICE uint64_t columnBits(int64_t x) { return uint64_t(x); }
#if defined(KELPIE_EMULATION)
KELPIE_DEVICE uint64_t columnBits(double x) {
  Words<double> words;
  words.value = x;
  return uint64_t(words.word[1]) << 32 | words.word[0];
}
#else
KELPIE_DEVICE uint64_t columnBits(double x) { return uint64_t(__double_as_longlong(x)); }
#endif

/// A record that the host has put there. (The compiler would load the columns one by one: it finds that those
/// in arrays of their own are loaded, too, and makes one load of both, at an address that it chooses.)
template <int kColumns>
KELPIE_DEVICE Record<kColumns> loadRecord(const Record<kColumns>* place) {
#if defined(KELPIE_EMULATION)
  return *place;
#else
  Record<kColumns> record;
  KELPIE_UNROLL
  for (int k = 0; k < kColumns; k += 2)
    asm volatile("ld.global.nc.v2.u64 {%0, %1}, [%2];"
                 : "=l"(record.column[k]), "=l"(record.column[k + 1])
                 : "l"(place->column + k));
  return record;
#endif
}

/// The columns at a position, from `records` or, where that is null, from each array.
template <class... T>
KELPIE_DEVICE Record<sizeof...(T)> recordAt(const void* records, int64_t position, const T*... columns) {
  using Own = Record<sizeof...(T)>;
  if (records) return loadRecord(static_cast<const Own*>(records) + position);
  return Own{{columnBits(columns[position])...}};
}

/// In front of the records of gathered columns: whether the launch has put any there (kelpie_interleave_scattered).
struct alignas(32) RecordsHeader {
  uint64_t scattered;
};

/// The records behind a header; null where there is none, or it says that there are none.
KELPIE_DEVICE const void* scatteredRecords(const void* header) {
  const auto* found = static_cast<const RecordsHeader*>(header);
  return found && found->scattered != 0 ? found + 1 : nullptr;
}

/// A record of `records`, which are there.
template <int kColumns>
KELPIE_DEVICE Record<kColumns> recordIn(const void* records, int64_t position) {
  return loadRecord(static_cast<const Record<kColumns>*>(records) + position);
}

KELPIE_DEVICE int64_t integerColumn(uint64_t bits) { return int64_t(bits); }
KELPIE_DEVICE double floatColumn(uint64_t bits) { return k_double_bits(bits); }

}  // namespace kelpie
