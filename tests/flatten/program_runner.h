// NESL text through the whole compiler, run on several targets and compared with the reference interpreter.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/data.h"
#include "ir/lcu.h"
#include "runtime/target.h"

namespace kelpie::testing {

/// One expression of a NESL program: what the reference says and what the flat program computes.
struct FormOutcome {
  std::string text;        ///< the form
  std::string difference;  ///< empty when both agree (or both fail); otherwise what differs
  std::string error;       ///< the run-time error, if any
  Columns reference;
  std::string lcu;      ///< the flat program, printed
  size_t launches = 0;  ///< executed, without fusion
};

struct RunnerOptions {
  bool strategies = false;  ///< also after fusion, by every strategy
  bool compiled = false;    ///< also as compiled code of the target cpu (needs a compiler; slow)
  /// A further target, run after fusion by ilp.
  std::function<std::unique_ptr<runtime::Target>()> target;
  bool int32 = false;     ///< NESL's int
  bool positions = true;  ///< errors must be reported at the same place
};

/// Runs every form of the program; static errors and broken invariants are reported as differences.
std::vector<FormOutcome> runProgram(const std::string& nesl, const RunnerOptions& options = {});

}  // namespace kelpie::testing
