// Launches in a row go straight to the device first, then in graphs; order and failures are kept.
#include "runtime/cuda/launch_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/device_library.h"

namespace kelpie::testing {
namespace {

using runtime::cuda::LaunchConfiguration;
using runtime::cuda::LaunchFunctions;
using runtime::cuda::LaunchQueue;

/// A driver whose stream, graphs and executables are this one object: what ran, and how it got there.
struct Recorder {
  std::vector<unsigned> ran, captured, graph, executable;
  std::string calls;  ///< b(egin), e(nd), i(nstantiate), u(pdate), g(raph launch), x: an executable destroyed
  bool capturing = false, updates = true;
  unsigned early = 0;  ///< launches that need not wait for the one before
  int failing = -1;    ///< the launch, by blocks, that fails
  int graphs = 0;      ///< what launches of graphs give
};
Recorder& of(void* stream) { return *static_cast<Recorder*>(stream); }

LaunchFunctions recording() {
  LaunchFunctions f;
  f.launchKernel = [](const LaunchConfiguration* configuration, void*, void**, void**) {
    Recorder& r = of(configuration->stream);
    const unsigned blocks = configuration->blocks[0];
    r.early += configuration->attributeCount;
    if (static_cast<int>(blocks) == r.failing) return 1;
    (r.capturing ? r.captured : r.ran).push_back(blocks);
    return 0;
  };
  f.beginCapture = [](void* stream, int) {
    of(stream).capturing = true;
    of(stream).calls += 'b';
    return 0;
  };
  f.endCapture = [](void* stream, void** graph) {
    Recorder& r = of(stream);
    r.capturing = false;
    r.calls += 'e';
    r.graph = std::exchange(r.captured, {});
    *graph = stream;
    return 0;
  };
  f.instantiate = [](void** executable, void* graph, unsigned long long) {
    *executable = graph;
    of(graph).executable = of(graph).graph;
    of(graph).calls += 'i';
    return 0;
  };
  f.update = [](void* executable, void* graph, void*) {
    if (!of(graph).updates) return 1;
    of(executable).executable = of(graph).graph;
    of(graph).calls += 'u';
    return 0;
  };
  f.launchGraph = [](void* executable, void* stream) {
    Recorder& r = of(stream);
    if (r.graphs != 0) return r.graphs;
    r.ran.insert(r.ran.end(), of(executable).executable.begin(), of(executable).executable.end());
    r.calls += 'g';
    return 0;
  };
  f.destroyGraph = [](void*) { return 0; };
  f.destroyExecutable = [](void* executable) {
    of(executable).calls += 'x';
    return 0;
  };
  return f;
}

class Launches : public ::testing::Test {
 protected:
  void launch(unsigned count) {
    for (unsigned k = 0; k < count; ++k) EXPECT_EQ(queue_.launch(nullptr, next_++, 32, nullptr), 0);
  }
  /// Everything ran, in order.
  void expectAll() {
    ASSERT_EQ(queue_.flush(), 0);
    ASSERT_EQ(recorder_.ran.size(), next_);
    for (unsigned k = 0; k < next_; ++k) EXPECT_EQ(recorder_.ran[k], k);
  }
  static constexpr unsigned kDirect = LaunchQueue::kDirect, kFirst = LaunchQueue::kFirst,
                            kBatch = LaunchQueue::kBatch;

  Recorder recorder_;
  LaunchFunctions functions_ = recording();
  LaunchQueue queue_{functions_, &recorder_, true};
  unsigned next_ = 0;
};

TEST_F(Launches, FewBetweenWaitsAreLaunchedDirectly) {
  for (int k = 0; k < 5; ++k) {
    launch(kDirect);
    EXPECT_EQ(recorder_.ran.size(), next_);
    queue_.waited();
  }
  expectAll();
  EXPECT_EQ(recorder_.calls, "");
}

TEST_F(Launches, LongRowsBecomeGraphs) {
  launch(kDirect + kFirst + 2 * kFirst + 4 * kFirst + 10);
  EXPECT_EQ(recorder_.ran.size(), kDirect + 7 * kFirst);
  expectAll();
  EXPECT_EQ(recorder_.calls, "beigbeigbeigbeig");
  queue_.waited();
  launch(kDirect + kFirst + 10);
  expectAll();
  EXPECT_EQ(recorder_.calls, "beigbeigbeigbeigbeugbeug");
}

/// The first graph is complete soon; later ones, whose launches the device is not ready for, cost less each.
TEST_F(Launches, GraphsBecomeLonger) {
  launch(kDirect + kFirst - 1);
  EXPECT_EQ(recorder_.ran.size(), kDirect);
  launch(1);
  EXPECT_EQ(recorder_.ran.size(), next_);
  while (recorder_.ran.size() < kDirect + 3 * kFirst + 2 * kBatch) {
    launch(1);
    EXPECT_LT(next_, kDirect + 3 * kFirst + 4 * kBatch);
  }
  const size_t before = recorder_.ran.size();
  launch(kBatch - 1);
  EXPECT_EQ(recorder_.ran.size(), before);
  launch(1);
  EXPECT_EQ(recorder_.ran.size(), before + kBatch);
  queue_.waited();
  launch(kDirect + kFirst);
  expectAll();
}

TEST_F(Launches, AnExecutableThatCannotBeUpdatedIsMadeAnew) {
  launch(kDirect + kFirst);
  queue_.waited();
  recorder_.updates = false;
  launch(kDirect + kFirst);
  expectAll();
  EXPECT_EQ(recorder_.calls, "beigbexig");
}

TEST_F(Launches, ShortGraphsAreAvoided) {
  // Something else uses the stream after every second launch.
  for (int k = 0; k < 40; ++k) {
    launch(2);
    ASSERT_EQ(queue_.flush(), 0);
    EXPECT_EQ(recorder_.ran.size(), next_);
  }
  expectAll();
  EXPECT_LE(recorder_.calls.size(), 4u * 10);
}

TEST_F(Launches, AreEarlyWhereKernelsWait) {
  launch(3);
  EXPECT_EQ(recorder_.early, 3u);
  LaunchQueue other(functions_, &recorder_, false);
  EXPECT_EQ(other.launch(nullptr, next_++, 32, nullptr), 0);
  EXPECT_EQ(recorder_.early, 3u);
}

/// Kernels of the device library, all of which go by way of the queue. (Generated ones: pass_frame.cpp.)
TEST(EarlyLaunches, EveryKernelOfTheLibraryWaitsFirst) {
  int kernels = 0;
  for (const auto& file : codegen::cuda::deviceLibrary()) {
    const std::string text = file.text;
    for (size_t at = text.find("__global__"); at != std::string::npos; at = text.find("__global__", at + 1)) {
      const size_t body = text.find("{\n", at) + 2;
      EXPECT_EQ(text.substr(body).find("  kelpie::followEarlierLaunches();\n"), 0u)
          << file.name << ": " << text.substr(at, body - at);
      ++kernels;
    }
  }
  EXPECT_GE(kernels, 11);
}

TEST_F(Launches, AFailureDoesNotSpoilWhatComesLater) {
  launch(kDirect + 2);
  recorder_.failing = static_cast<int>(next_);
  EXPECT_EQ(queue_.launch(nullptr, next_, 32, nullptr), 1);
  recorder_.failing = -1;
  queue_.waited();
  EXPECT_FALSE(recorder_.capturing);
  recorder_.ran.clear();
  next_ = 0;
  launch(kDirect + kBatch + 3);
  expectAll();
}

// Memory is freed and asked for between launches, by those who have nobody to tell.
TEST_F(Launches, AFailureThatNobodyWasToldOfIsToldLater) {
  launch(kDirect + 3);
  recorder_.graphs = 2;
  queue_.flushForNow();
  recorder_.graphs = 0;
  queue_.flushForNow();
  EXPECT_EQ(queue_.flush(), 2);
  EXPECT_EQ(queue_.flush(), 0);
}

}  // namespace
}  // namespace kelpie::testing
