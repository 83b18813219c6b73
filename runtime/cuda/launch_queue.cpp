#include "runtime/cuda/launch_queue.h"

#include <algorithm>
#include <utility>

namespace kelpie::runtime::cuda {

namespace {

constexpr int kRelaxed = 2;  // CUstreamCaptureMode: other calls of this thread are allowed
constexpr int kProgrammaticStreamSerialization = 6;  // CUlaunchAttributeID

/// A graph of fewer launches costs as much as they do. When the stream is used in another way that often,
/// capturing waits for the next long row.
constexpr int kWorthIt = 6;

/// CUgraphExecUpdateResultInfo, which nobody looks at.
struct UpdateResult {
  void* parts[4];
};

}  // namespace

LaunchQueue::~LaunchQueue() {
  flush();
  for (const auto& [launches, executable] : executables_) driver_.destroyExecutable(executable);
}

int LaunchQueue::launch(void* function, unsigned blocks, unsigned threads, void** arguments) {
  if (!capturing_ && ++inARow_ > kDirect) {
    most_ = inARow_ == kDirect + 1 ? kFirst : std::min(2 * most_, kBatch);
    if (int result = driver_.beginCapture(stream_, kRelaxed)) return result;
    capturing_ = true;
    captured_ = 0;
  }
  LaunchAttribute early{kProgrammaticStreamSerialization, 0, 1, {}};
  const LaunchConfiguration configuration{{blocks, 1, 1}, {threads, 1, 1}, 0,
                                          stream_,        &early,          early_ ? 1u : 0u};
  const int result = driver_.launchKernel(&configuration, function, arguments, nullptr);
  if (result != 0 && capturing_) abandon();
  if (result != 0 || !capturing_ || ++captured_ < most_) return result;
  return flush();
}

/// After a launch that failed, so that it does not spoil what comes later.
void LaunchQueue::abandon() {
  capturing_ = false;
  void* graph = nullptr;
  if (driver_.endCapture(stream_, &graph) == 0 && graph) driver_.destroyGraph(graph);
}

int LaunchQueue::flush() {
  const int result = launchCaptured();
  const int earlier = std::exchange(unreported_, 0);
  return earlier != 0 ? earlier : result;
}

void LaunchQueue::flushForNow() {
  const int result = launchCaptured();
  if (unreported_ == 0) unreported_ = result;
}

int LaunchQueue::launchCaptured() {
  if (!capturing_) return 0;
  capturing_ = false;
  if (captured_ < kWorthIt) inARow_ = -kDirect;
  void* graph = nullptr;
  if (int result = driver_.endCapture(stream_, &graph)) return result;
  // Graphs of as many launches differ in functions and arguments only.
  void*& executable = executables_[captured_];
  UpdateResult ignored{};
  int result = 0;
  if (executable && driver_.update(executable, graph, &ignored) != 0) {
    driver_.destroyExecutable(executable);
    executable = nullptr;
  }
  if (!executable) result = driver_.instantiate(&executable, graph, 0);
  if (result != 0) executables_.erase(captured_);
  driver_.destroyGraph(graph);
  return result != 0 ? result : driver_.launchGraph(executable, stream_);
}

}  // namespace kelpie::runtime::cuda
