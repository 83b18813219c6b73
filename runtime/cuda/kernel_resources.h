// What a thread of a compiled kernel takes, and what its block should give up if that is too much.
//
// Generated kernels say how many of their blocks a multiprocessor shall have room for, which limits the
// registers of a thread. How many a thread needs only the compiler knows: what does not fit it keeps in the
// thread's frame, in memory. A few bytes of that cost nothing; a loop over elements that goes to memory for
// more is slower than with fewer blocks. On an H200, 2/3 of the blocks made these kernels of segments faster,
// to a share of their time: frames of 200 bytes 0.60, 136 bytes 0.74, 112 bytes 0.71 and 0.77, 72 bytes 0.74;
// 104 bytes 0.86. Of those with frames of 32 bytes and less most became slower; of those with 64 one took
// 0.93, another (running sums of numbers times one of their segment) 1.08 to 1.11. But where many
// instructions go to a small frame, they are unrolled from a loop over elements. If that calls exponential
// functions and the like, which compute with what is kept there, the loop takes three times as long: sums of
// exponentials whose logarithm or square root is taken, with frames of 32 and 40 bytes, took 0.32 to 0.35 of
// their time with 2/3 of the blocks, and 0.67. Two kernels that load in their loops took 1.12 and 1.14. Flat
// scans and filters wait for other tiles, and want many at work: one with a frame of 432 bytes took 0.40 of
// its time, one of 224 bytes 0.71, two of 144 and 160 bytes 1.22 and 1.24.
//
// Flat maps and folds have as many registers as the compiler likes. Where that leaves room for three or fewer
// blocks (four, if it has a queue, codegen/cuda/lane_queue.cuh), one more is tried: it took 0.82 to 0.83
// (connected components, Kalman filters), 0.92 and 0.96 to 1.02 of the time (11 kernels) where hardly
// anything went into frames, 0.88 to 1.73 (12 kernels) where more did. Only those have this that load at
// computed places or take long operations: of 18 others, one found room for one more.
//
// Maps over segments that branch wait for one load after the other (fusion/load_waits.h), others for long
// operations: the more threads there are meanwhile, the better. 16 blocks of 128 threads instead of 9 or 10
// took 0.76 to 0.98 of the time where nothing went into frames (ten kernels; one took 1.03), 0.80 with 8
// bytes there, 0.82 to 0.90 with 24 to 56 and 1.22 with 16 in another; 12 blocks 0.80 with 16, 0.92 and 1.05
// with 24, 1.14 and more with 80.
//
// In:  code of one kernel (an ELF file, as NVRTC makes it) and its source. Out: numbers; nothing is compiled
// here.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kelpie::runtime::cuda {

/// Changes with what blocksToTry does: what was compiled by another way is no longer taken from the cache.
constexpr int kWayToChooseBlocks = 2;

/// Of a thread.
struct KernelResources {
  int registers = 0;      ///< of 4 bytes
  int frameBytes = 0;     ///< of memory of its own
  int frameAccesses = 0;  ///< instructions that go there
};

/// Empty if the file does not tell.
std::optional<KernelResources> resourcesOf(const std::vector<char>& code);

/// Another number of blocks for which registers might suffice.
struct OtherBlocks {
  std::string macro;   ///< NAME=VALUE, to compile with
  int mostFrameBytes;  ///< with which that is better
};

/// What to try before the code as it is planned, which is not needed where one of them is good: so most
/// kernels that want more blocks are compiled once. Empty if the source leaves no more open. In the order of
/// blocksToTry, which has the same ones for code that takes so many registers.
std::vector<OtherBlocks> blocksHopedFor(const std::string& source);

/// What to try, one after the other until something is better; empty: the code is good as it is, or the
/// source does not leave that open (KELPIE_BLOCKS_LESS, KELPIE_FLAT_BLOCKS_LESS, KELPIE_BLOCKS_MORE and
/// KELPIE_MIN_BLOCKS in base.cuh). Of blocks that are given up at least half stay.
std::vector<OtherBlocks> blocksToTry(const std::string& source, const KernelResources& resources);

}  // namespace kelpie::runtime::cuda
