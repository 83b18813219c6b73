// A device without memory: the error has sizes, and what runs next is as if nothing had happened.
#include <gmock/gmock.h>

#include <limits>

#include "emulated_device.h"
#include "flatten/flatten.h"
#include "frontend/session.h"
#include "fusion/fuse.h"
#include "runtime/cuda/cuda_target.h"
#include "runtime/executor.h"
#include "runtime/services.h"

namespace kelpie::testing {
namespace {

/// Refuses every allocation after some, all beyond a size, and what is too much in all. Devices with the same
/// means compile a source once.
class PoorDevice final : public tests::EmulatedDevice {
 public:
  using Module = runtime::cuda::Module;
  struct Means {
    int allocations = std::numeric_limits<int>::max();
    size_t bytes = std::numeric_limits<size_t>::max();
    size_t all = std::numeric_limits<size_t>::max();
    size_t used = 0;
    std::map<std::string, std::shared_ptr<Module>> modules;
  };
  explicit PoorDevice(Means& means) : EmulatedDevice(3), means_(means) {}
  runtime::DevicePointer allocate(size_t bytes) override {
    if (means_.allocations == 0 || bytes > means_.bytes || bytes > means_.all - means_.used) return nullptr;
    --means_.allocations;
    means_.used += bytes;
    runtime::DevicePointer pointer = EmulatedDevice::allocate(bytes);
    sizes_[pointer] = bytes;
    return pointer;
  }
  void deallocate(runtime::DevicePointer pointer) override {
    means_.used -= sizes_.at(pointer);
    sizes_.erase(pointer);
    EmulatedDevice::deallocate(pointer);
  }

  runtime::Failure compile(const std::string& source, const std::vector<std::string>& entries,
                           std::unique_ptr<Module>& module) override {
    std::shared_ptr<Module>& shared = means_.modules[source];
    if (!shared) {
      if (auto failure = EmulatedDevice::compile(source, entries, module)) return failure;
      shared = std::move(module);
    }
    module = std::make_unique<SharedModule>(shared);
    return std::nullopt;
  }

 private:
  struct SharedModule final : Module {
    explicit SharedModule(std::shared_ptr<Module> all) : all(std::move(all)) {}
    runtime::cuda::Function function(const std::string& entry) override { return all->function(entry); }
    std::shared_ptr<Module> all;
  };
  Means& means_;
  std::map<runtime::DevicePointer, size_t> sizes_;
};

class OutOfMemory : public ::testing::Test {
 protected:
  using Result = std::variant<Columns, RuntimeError>;

  Result run(const std::string& nesl) {
    const std::vector<FormResult> forms = Session(sources_).processFile(sources_.add("test.nesl", nesl));
    EXPECT_TRUE(!forms.empty() && forms.back().program) << nesl;
    lcu::Program program = flatten::flatten(*forms.back().program);
    fusion::fuse(program);
    return executor_->run(program, {}, *services_);
  }
  std::unique_ptr<runtime::Executor> start(const codegen::cuda::CudaOptions& options = {}) {
    return std::make_unique<runtime::Executor>(
        std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<PoorDevice>(means_), options));
  }
  static std::string messageOf(const Result& result) {
    const auto* error = std::get_if<RuntimeError>(&result);
    return error ? error->message : "";
  }

  /// Whatever number of allocations succeeds, the error has sizes, and then the same form gives `expected`.
  void failAnywhere(const std::string& nesl, double expected) {
    int failures = 0;
    for (int allocations = 0;; ++allocations) {
      means_.allocations = allocations;
      // The pool of an executor that has run has memory left; every number of allocations starts with none.
      executor_ = start();
      const Result result = run(nesl);
      means_.allocations = std::numeric_limits<int>::max();
      const std::string message = messageOf(result);
      const Result next = message.empty() ? result : run(nesl);
      ASSERT_EQ(messageOf(next), "") << allocations;
      const Scalar value = std::get<Columns>(next)[0].at(0);
      EXPECT_EQ(isFloat(value.type) ? value.f : static_cast<double>(value.i), expected) << allocations;
      if (message.empty()) break;
      ++failures;
      EXPECT_THAT(message, ::testing::ContainsRegex("^out of memory: .*[0-9]+ .*bytes")) << allocations;
    }
    EXPECT_GT(failures, 4);
  }

  SourceManager sources_;
  PoorDevice::Means means_;
  std::unique_ptr<Services> services_ = makeServices();
  std::unique_ptr<runtime::Executor> executor_ = start();
};

TEST_F(OutOfMemory, TheErrorHasSizesAndTheSessionGoesOn) {
  means_.bytes = 100000;
  EXPECT_THAT(messageOf(run("{i * i : i in [0:50000]};")),
              ::testing::MatchesRegex(
                  "out of memory: .* needs 50000 elements of 8 bytes; .* of 1073.7 MB are in use"));
  const Result next = run("sum({i * i : i in [0:100]});");
  ASSERT_EQ(messageOf(next), "");
  EXPECT_EQ(std::get<Columns>(next)[0].at(0).i, 328350);
}

// The memory that an earlier form left to the pool serves what launches need beside their results.
TEST_F(OutOfMemory, UnusedMemoryServesScans) {
  codegen::cuda::CudaOptions small;  // so that a scan has many tiles
  small.threads = 32;
  small.maxItems = small.maxRows = 1;
  executor_ = start(small);
  ASSERT_EQ(messageOf(run("plus_scan({rem(i, 7) : i in [0:100]})[3];")), "");
  // Values that nobody keeps: one has room for the scan, one for what it needs beside.
  ASSERT_EQ(messageOf(run("({i * i : i in [0:300000]}, {i + i : i in [0:300000]});")), "");
  means_.all = means_.used;
  const Result next = run("plus_scan({rem(7 * i, 13) : i in [0:300000]})[299999];");
  ASSERT_EQ(messageOf(next), "");
  EXPECT_EQ(std::get<Columns>(next)[0].at(0).i, 1799988);
}

// What the host has, too, need not stay on the device.
TEST_F(OutOfMemory, ValuesOfTheSessionMakeRoom) {
  means_.all = 1500000;
  const Result first = run("{i * i : i in [0:100000]};");
  ASSERT_EQ(messageOf(first), "");
  const Result second = run("{i + i : i in [0:100001]};");
  EXPECT_EQ(messageOf(second), "");
}

// Code and the driver need memory, too, beside that of the pool.
TEST_F(OutOfMemory, AFormThatFailedLeavesNothing) {
  ASSERT_EQ(messageOf(run("1 + sum({i : i in [0:3]});")), "");
  const size_t before = means_.used;
  means_.all = 2000000;
  EXPECT_THAT(
      messageOf(run("let xs = {i * i : i in [0:100000]}; ys = {x in xs | x > 3}; zs = {y + i : y in ys; "
                    "i in [0:#ys]} in (xs, ys, zs, plus_scan(xs));")),
      ::testing::StartsWith("out of memory"));
  EXPECT_LT(means_.used, before + 100000);
}

// Filters, scans, permutes, segmented sums over enough to need temporary memory.
TEST_F(OutOfMemory, WhereverItHappens) {
  failAnywhere(
      "let xs = {rem(i * 7919, 5003) : i in [0:5003]}; ys = {x in xs | rem(x, 3) > 0}; r = {rem(7 * k, #ys) "
      ": k in [0:#ys]};"
      "    zs = permute(ys, r); rows = {sum({i * j : j in [0:rem(i, 9)]}) : i in zs}"
      " in sum(rows) + plus_scan(ys)[100] * 0 + zs[8] * 1000000000;",
      91756708.0 + 4468e9);
}

// Conditions that are foretold, and what is kept to come back to.
TEST_F(OutOfMemory, InLoops) {
  failAnywhere(
      "function halved(xs, k) = let ys = {0.5 * x : x in xs} in if max_val(ys) < 1.0 then (ys, k) else "
      "halved(ys, k + 1);"
      "let (ys, k) = halved({float(rem(i, 64)) : i in [0:5000]}, 0) in float(k) + 64.0 * sum(ys);",
      5.0 + 157276.0);
}

}  // namespace
}  // namespace kelpie::testing
