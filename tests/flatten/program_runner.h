// NESL text through the whole compiler, run on several targets and compared with the reference interpreter.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/data.h"
#include "ir/lcu.h"
#include "runtime/executor.h"
#include "runtime/target.h"

namespace kelpie::testing {

/// One expression of a NESL program: what the reference says and what the flat program computes.
struct FormOutcome {
  std::string text;        ///< the form
  std::string difference;  ///< empty when both agree (or both fail); otherwise what differs
  std::string error;       ///< the run-time error, if any
  Columns reference;
  std::string lcu;  ///< the flat program, printed
  /// Of the last way of running on the λcu evaluator: fused by ilp with RunnerOptions::strategies, else
  /// unfused.
  runtime::RunStatistics statistics;
  runtime::RunStatistics targetStatistics;  ///< of RunnerOptions::target
  /// Over all its launches.
  uint64_t elements() const;
  uint64_t bytesRead() const;
  uint64_t bytesWritten() const;
};

struct RunnerOptions {
  bool reference = true;    ///< compare with the reference interpreter (slow on large data)
  bool strategies = false;  ///< also after fusion, by every strategy
  bool fused = false;       ///< also after fusion by ilp
  bool compiled = false;    ///< also as compiled code of the target cpu (needs a compiler; slow)
  /// A further target, run after fusion by ilp.
  std::function<std::unique_ptr<runtime::Target>()> target;
  bool timed = true;      ///< times the kernels of that target
  bool int32 = false;     ///< NESL's int
  bool positions = true;  ///< errors must be reported at the same place
};

/// Runs every form of the program; static errors and broken invariants are reported as differences.
std::vector<FormOutcome> runProgram(const std::string& nesl, const RunnerOptions& options = {});

}  // namespace kelpie::testing
