// What a thread of a compiled kernel takes, and what its block should give up if that is too much.
//
// Generated kernels say how many of their blocks a multiprocessor shall have room for, which limits the
// registers of a thread. How many a thread needs only the compiler knows: what does not fit it keeps in the
// thread's frame, in memory. A few bytes of that cost nothing; a loop over elements that goes to memory for
// more is slower than with fewer blocks. On an H200, 2/3 of the blocks made these kernels of segments faster,
// to a share of their time: frames of 200 bytes 0.60, 136 bytes 0.74, 112 bytes 0.71 and 0.77, 72 bytes 0.74;
// 104 bytes 0.86. Of those with frames of 32 bytes and less most became slower; of those with 64 one took
// 0.93, another (running sums of numbers times one of their segment) 1.08 to 1.11. Flat scans and filters
// wait for other tiles, and want many at work: one with a frame of 432 bytes took 0.40 of its time, one of
// 224 bytes 0.71, two of 144 and 160 bytes 1.22 and 1.24.
//
// Flat maps and folds have as many registers as the compiler likes. Where that leaves room for three or fewer
// blocks, one more is tried: it took 0.82 to 0.83 (connected components, Kalman filters), 0.92 and 0.96 to
// 1.02 of the time (11 kernels) where hardly anything went into frames, 0.88 to 1.73 (12 kernels) where more
// did.
//
// In:  code of one kernel (an ELF file, as NVRTC makes it) and its source. Out: numbers; nothing is compiled
// here.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kelpie::runtime::cuda {

/// Of a thread.
struct KernelResources {
  int registers = 0;   ///< of 4 bytes
  int frameBytes = 0;  ///< of memory of its own
};

/// Empty if the file does not tell.
std::optional<KernelResources> resourcesOf(const std::vector<char>& code);

/// How many blocks fewer a multiprocessor should have, so that registers hold what is in the frames; 0: none,
/// or the source does not leave that open (KELPIE_BLOCKS_LESS and KELPIE_FLAT_BLOCKS_LESS in base.cuh). At
/// least half of the blocks stay.
int blocksToGiveUp(const std::string& source, const KernelResources& resources);

/// For how many blocks of a multiprocessor registers should be made to suffice; 0: the code is good as it is,
/// or the source does not leave that open (KELPIE_MIN_BLOCKS).
int blocksToTry(const std::string& source, const KernelResources& resources);
/// Whether that was worth it.
bool isBetterWithMore(const KernelResources& asLiked, const KernelResources& withMoreBlocks);

}  // namespace kelpie::runtime::cuda
