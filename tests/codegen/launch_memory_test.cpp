// What a kernel of several launches needs is there before the first of them: memory that is taken or code
// that is loaded in between keeps the device waiting, and counts as time of the kernel.
#include <gmock/gmock.h>

#include "emulated_device.h"
#include "flatten/flatten.h"
#include "frontend/session.h"
#include "fusion/fuse.h"
#include "runtime/cuda/cuda_target.h"
#include "runtime/executor.h"
#include "runtime/services.h"

namespace kelpie::testing {
namespace {

/// Writes down what it is asked for while launches are timed.
class WatchedDevice final : public tests::EmulatedDevice {
 public:
  explicit WatchedDevice(std::vector<std::string>& events) : EmulatedDevice(5), events_(events) {}
  runtime::DevicePointer allocate(size_t bytes) override {
    events_.push_back("memory");
    return EmulatedDevice::allocate(bytes);
  }
  runtime::Failure compile(const std::string& source, const std::vector<std::string>& entries,
                           std::unique_ptr<runtime::cuda::Module>& module) override {
    events_.push_back("code");
    return EmulatedDevice::compile(source, entries, module);
  }
  runtime::Failure launch(runtime::cuda::Function function, int64_t blocks, int threads,
                          void** arguments) override {
    events_.push_back("launch");
    return EmulatedDevice::launch(function, blocks, threads, arguments);
  }
  runtime::Failure markLaunch() override {
    events_.push_back("begin");
    return EmulatedDevice::markLaunch();
  }
  runtime::Failure mark() override {
    events_.push_back("end");
    return EmulatedDevice::mark();
  }

 private:
  std::vector<std::string>& events_;
};

class LaunchMemory : public ::testing::Test {
 protected:
  /// Events between the first and the last launch of each kernel that are no launches; and the most launches
  /// of one.
  std::vector<std::string> between(const std::string& nesl, int& launches) {
    codegen::cuda::CudaOptions small;  // so that there are many tiles
    small.threads = 32;
    small.maxItems = small.maxRows = 1;
    small.fewTiles = 0;
    auto target =
        std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<WatchedDevice>(events_), small);
    target->timeLaunches(true);
    runtime::Executor executor(std::move(target));
    const std::vector<FormResult> forms = Session(sources_).processFile(sources_.add("test.nesl", nesl));
    EXPECT_TRUE(!forms.empty() && forms.back().program) << nesl;
    lcu::Program program = flatten::flatten(*forms.back().program);
    fusion::fuse(program);
    const auto services = makeServices();
    const auto result = executor.run(program, {}, *services);
    EXPECT_TRUE(std::holds_alternative<Columns>(result));
    std::vector<std::string> found, pending;
    launches = 0;
    int ofKernel = 0;
    for (const std::string& event : events_) {
      if (event == "begin" || event == "end") {
        pending.clear();
        ofKernel = 0;
      } else if (event == "launch") {
        found.insert(found.end(), pending.begin(), pending.end());
        pending.clear();
        launches = std::max(launches, ++ofKernel);
      } else if (ofKernel > 0) {
        pending.push_back(event);
      }
    }
    return found;
  }

 private:
  SourceManager sources_;
  std::vector<std::string> events_;
};

// One launch finds where tiles begin, one filters, one counts for each segment.
TEST_F(LaunchMemory, SegmentedFiltersHaveTheirTables) {
  int launches = 0;
  EXPECT_THAT(between("{{x * i : x in [0:rem(i, 90)] | rem(x * x, 7) < 3} : i in [0:3000]};", launches),
              ::testing::IsEmpty());
  EXPECT_GE(launches, 3);
}

// Of a regular space nobody has to find where tiles begin, so the code that counts is loaded first here.
TEST_F(LaunchMemory, RegularFiltersHaveTheirCode) {
  int launches = 0;
  EXPECT_THAT(between("{{x * i : x in [0:50] | rem(x * x + i, 7) < 3} : i in [0:3000]};", launches),
              ::testing::IsEmpty());
  EXPECT_GE(launches, 2);
}

}  // namespace
}  // namespace kelpie::testing
