// Permutes in which the last of several writers stays: where there are many, a GPU finds out who that is once
// all have noted where they write (runtime/cuda/last_writers.h). Below, which takes four launches more, and
// where there are more places than that, all of which are looked at, each writes if nobody behind it has.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ir/lcu.h"

namespace kelpie::codegen {

inline constexpr int64_t kManyWriters = int64_t{1} << 22;

/// `onto`: places hold what counts, too. `many`: writers from which on it pays.
inline bool findsWritersTogether(int64_t writers, int64_t places, bool onto, int64_t many = kManyWriters) {
  constexpr int64_t kMostOfWriter = 16, kMostOfWriterOnto = 4;
  return writers >= many && writers < INT32_MAX &&
         places <= (onto ? kMostOfWriterOnto : kMostOfWriter) * writers;
}

/// So many permutes of a kernel may be found so; the others write.
inline constexpr size_t kMostFoundTogether = 4;
/// Whether the last of several writers stays.
inline bool keepsLastWriter(const lcu::Soac& soac) {
  return soac.kind == lcu::SoacKind::Permute && !soac.writesInAnyOrder();
}
/// The number of a binding among those of its kernel of which that holds.
inline size_t numberAmongLastWriters(const lcu::Kernel& kernel, uint32_t binding) {
  return static_cast<size_t>(
      std::count_if(kernel.bindings.begin(), kernel.bindings.begin() + binding, keepsLastWriter));
}

}  // namespace kelpie::codegen
