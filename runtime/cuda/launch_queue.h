// Launches in a row, put into graphs.
//
// A launch costs the host 3 to 4 us, and 1.1 us as part of a graph that is captured and launched as a whole
// (docs/launch-costs.md). A graph begins to run only when it is complete, so the first launches after a wait
// go straight to the device; those after them, which the device is not ready for anyway, are captured in
// batches: short ones first, so that each is complete when the device is done with the one before. Whoever
// uses the stream in another way calls flush() before; whoever waits for it, waited() after.
//
// Where the device can (compute capability 9.0), a kernel is launched when the blocks of the one before it
// have ended, while what they wrote is on its way to memory; the kernel waits for that (followEarlierLaunches
// of base.cuh). It saves 0.15 to 0.45 us a launch.
#pragma once

#include <cstdint>
#include <map>

namespace kelpie::runtime::cuda {

/// CUlaunchAttribute: 64 bytes of value, of which those that are asked for here take four.
struct LaunchAttribute {
  int id;
  int unused;
  int value;
  int rest[15];
};
/// CUlaunchConfig.
struct LaunchConfiguration {
  unsigned blocks[3], threads[3], sharedBytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attributeCount;
};

/// The functions of the driver used here; handles are pointers, results ints, 0 for success.
struct LaunchFunctions {
  int (*launchKernel)(const LaunchConfiguration*, void* function, void** arguments, void** extra) = nullptr;
  int (*beginCapture)(void*, int) = nullptr;
  int (*endCapture)(void*, void**) = nullptr;
  int (*instantiate)(void**, void*, unsigned long long) = nullptr;
  int (*update)(void*, void*, void*) = nullptr;
  int (*launchGraph)(void*, void*) = nullptr;
  int (*destroyGraph)(void*) = nullptr;
  int (*destroyExecutable)(void*) = nullptr;
};

class LaunchQueue {
 public:
  /// `early`: kernels wait themselves for the one before; else the device does.
  LaunchQueue(const LaunchFunctions& driver, void* stream, bool early)
      : driver_(driver), stream_(stream), early_(early) {}
  ~LaunchQueue();
  LaunchQueue(const LaunchQueue&) = delete;
  LaunchQueue& operator=(const LaunchQueue&) = delete;

  static constexpr int kDirect = 6;  ///< launches in a row before any is captured
  static constexpr int kFirst =
      8;  ///< launches of the first graph of a row at most; of the next, twice as many
  static constexpr int kBatch = 32;  ///< launches of a graph at most

  /// The result of the driver: of this launch or, for a captured one, possibly of flush().
  int launch(void* function, unsigned blocks, unsigned threads, void** arguments);
  /// Hands what was captured to the device.
  int flush();
  /// The same for those who cannot report a failure: it is the result of the next flush().
  void flushForNow();
  void waited() { inARow_ = 0; }

 private:
  void abandon();
  int launchCaptured();

  const LaunchFunctions& driver_;
  void* stream_;
  bool early_;
  int inARow_ = 0;     ///< launches since the latest wait
  int captured_ = 0;   ///< of them in the graph under way
  int most_ = kFirst;  ///< of them in this graph
  bool capturing_ = false;
  int unreported_ = 0;                ///< result of flushForNow()
  std::map<int, void*> executables_;  ///< by number of launches
};

}  // namespace kelpie::runtime::cuda
