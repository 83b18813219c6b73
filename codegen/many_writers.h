// Permutes in which the last of several writers stays: where there are many, a GPU finds out who that is once
// all have noted where they write (runtime/cuda/last_writers.h). Below, which takes four launches more, and
// where there are more places than that, all of which are looked at, each writes if nobody behind it has.
#pragma once

#include <cstdint>

namespace kelpie::codegen {

inline constexpr int64_t kManyWriters = int64_t{1} << 22;

/// `onto`: places hold what counts, too. `many`: writers from which on it pays.
inline bool findsWritersTogether(int64_t writers, int64_t places, bool onto, int64_t many = kManyWriters) {
  constexpr int64_t kMostOfWriter = 16, kMostOfWriterOnto = 4;
  return writers >= many && places <= (onto ? kMostOfWriterOnto : kMostOfWriter) * writers;
}

}  // namespace kelpie::codegen
