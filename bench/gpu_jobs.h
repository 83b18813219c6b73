// Runs kernels of tests/codegen/known_kernels.h on a GPU and reports their times as lines of JSON.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/target.h"
#include "tests/codegen/known_kernels.h"

namespace kelpie::bench {

/// Ends the program with a message.
[[noreturn]] void stop(const std::string& why);
void check(const runtime::Failure& failure);

/// Milliseconds from one moment to another.
using Clock = std::chrono::steady_clock;
double milliseconds(Clock::time_point a, Clock::time_point b);

/// Hands out the same buffers to every launch, as a pool does.
class ReusedScratch final : public runtime::Scratch {
 public:
  explicit ReusedScratch(runtime::Target& target) : target_(target) {}
  ~ReusedScratch() override;
  void restart() { next_ = 0; }
  runtime::DevicePointer take(size_t bytes) override;

 private:
  runtime::Target& target_;
  std::vector<std::pair<size_t, runtime::DevicePointer>> held_;
  size_t next_ = 0;
};

/// Inputs by the names of known kernels' variables, and jobs over them.
class Bench {
 public:
  /// `wanted`: what the names of jobs must contain to be run.
  Bench(runtime::Target& target, const tests::KnownKernels& known, const runtime::ProgramKernels& program,
        std::string wanted)
      : target_(target), known_(known), program_(program), wanted_(std::move(wanted)), scratch_(target) {}
  ~Bench();
  bool wants(const std::string& job) const { return job.find(wanted_) != std::string::npos; }

  /// Whether jobs with names that begin so may be wanted.
  bool wantsLike(const std::string& prefix) const {
    return prefix.find(wanted_) == 0 || wanted_.find(prefix) == 0;
  }

  /// Offsets are stored in 32 bits.
  void offsets(const std::vector<int64_t>& values) {
    input("offsets", std::vector<int32_t>(values.begin(), values.end()));
  }
  template <class T>
  void input(const std::string& name, const std::vector<T>& values) {
    runtime::DevicePointer pointer =
        reserve(name, static_cast<int64_t>(values.size()), values.size() * sizeof(T));
    check(target_.upload(pointer, values.data(), values.size() * sizeof(T)));
  }
  void scalar(const std::string& name, int64_t value) { scalars_[name] = value; }
  /// The one output of a kernel over a flat space becomes an input.
  void compute(const std::string& name, const std::string& kernel, int64_t elements);

  /// How often a job is launched; the median of batches is reported, per launch.
  struct Repetitions {
    int batches = 9, launches = 10;
  };
  /// The outputs of the job as bytes, in order of KernelInfo::outputs; says what is wrong with them.
  using Verify = std::function<std::string(const std::vector<std::vector<std::byte>>&)>;
  /// `bytes`: the least traffic of the job.
  void run(const std::string& job, const std::string& kernel, int64_t elements, int64_t segments,
           double bytes, const Verify& verify = {}) {
    run(job, kernel, elements, segments, bytes, Repetitions(), verify);
  }
  void run(const std::string& job, const std::string& kernel, int64_t elements, int64_t segments,
           double bytes, const Repetitions& repetitions, const Verify& verify = {});

 private:
  struct Input {
    runtime::DevicePointer pointer;
    int64_t count;
  };
  runtime::DevicePointer reserve(const std::string& name, int64_t count, size_t bytes);
  std::vector<runtime::KernelArgument> argumentsOf(const codegen::KernelInfo& info) const;
  void forget(const std::string& name);
  /// Of an element in memory.
  static size_t widthOf(const runtime::KernelEntry& entry, const codegen::KernelOutput& output);

  runtime::Target& target_;
  const tests::KnownKernels& known_;
  const runtime::ProgramKernels& program_;
  std::string wanted_;
  ReusedScratch scratch_;
  std::map<std::string, Input> inputs_;
  std::map<std::string, int64_t> scalars_;
};

}  // namespace kelpie::bench
