// Keeps the statistics of a run's kernels and sorts (RunStatistics::kernels).
//
// Always how often each ran, and over how much. What the evaluator counts, too; with RunOptions::timeKernels
// also times on the device and, where nothing is counted, an account of bytes.
#pragma once

#include <unordered_map>
#include <vector>

#include "runtime/launch_account.h"
#include "runtime/plan.h"
#include "runtime/run_context.h"

namespace kelpie::runtime {

class RunRecorder {
 public:
  RunRecorder(RunContext& context, const Plan& plan);
  ~RunRecorder();  ///< fetches the times
  RunRecorder(const RunRecorder&) = delete;
  RunRecorder& operator=(const RunRecorder&) = delete;

  /// After the launch, of whose arrays `shortArrays` are short; `results` by KernelInfo::outputs.
  void launched(uint32_t kernel, const codegen::LaunchExtents& extents,
                std::span<const lcu::VarId> shortArrays, const std::vector<DeviceRef>& results);
  /// Not launched: it has no elements.
  void leftOut(uint32_t kernel) { ++context_.statistics.kernels[kernel].empty; }
  void graded(const lcu::Stmt* stmt, const codegen::LaunchExtents& extents, ScalarType keys);
  void drew(const lcu::Stmt* stmt, int64_t draws, ScalarType type);

  /// From now on, or no longer, launches can be taken back.
  void keepJournal(bool keep) {
    keepsJournal_ = keep;
    if (!keep) journal_.clear();
  }
  size_t journal() const { return journal_.size(); }
  /// Takes back all launches since the journal had that length. Where launches are timed or counted none can
  /// be.
  void takeBack(size_t journal);

 private:
  /// Of a statement that is no launch, in statistics.kernels.
  size_t placeOf(const lcu::Stmt* stmt, const std::string& name);
  void record(size_t kernel, const codegen::LaunchExtents& extents, const LaunchWork& work);
  int64_t peek(const codegen::KernelInfo& info, const codegen::LaunchExtents& extents,
               const std::vector<DeviceRef>& results, lcu::VarId counter);

  RunContext& context_;
  const Plan& plan_;
  /// A launch that may be taken back.
  struct Entry {
    size_t kernel;
    uint64_t elements, segments;
  };
  bool timing_;
  bool keepsJournal_ = false;
  std::vector<Entry> journal_;
  std::vector<LaunchAccount> accounts_;                  ///< by kernel, when launches are timed
  std::vector<size_t> timed_;                            ///< whose times are to come, by statistics.kernels
  std::unordered_map<const lcu::Stmt*, size_t> others_;  ///< by statement that is no launch
  std::unordered_map<std::string, int> named_;           ///< how many of them have the name
};

}  // namespace kelpie::runtime
