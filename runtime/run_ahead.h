// Going on before a condition is known.
//
// The host part of a program branches on values that the device computes: "has it converged?" Waiting for
// each would leave the device idle for ten microseconds a time (docs/launch-costs.md). A condition that came
// out the same way several times is foretold instead: the host goes on as if it had, while a small kernel
// compares (Target::foretell). As long as it was right nothing else happens. Otherwise all launches after the
// condition do nothing, and the run returns to it: to the values its variables had, and to the statistics.
//
// Invariants. What the top frame held at every open condition is kept, memory included, so nothing a return
// needs is overwritten. Open conditions are settled before the host waits for anything else, before calls,
// returns, sorts and services, and when much memory is kept: whatever can be seen from outside happens only
// when the run is known to be where it thinks it is.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "runtime/plan_stack.h"
#include "runtime/run_context.h"
#include "runtime/run_recorder.h"

namespace kelpie::runtime {

class RunAhead {
 public:
  /// Thrown when a condition came out otherwise: frame and position in the plan are those after it.
  struct Returned {};

  RunAhead(RunContext& context, PlanStack& stack, RunRecorder& recorder)
      : context_(context), stack_(stack), recorder_(recorder) {}

  /// The value of the condition, known or foretold. May throw Returned, for an earlier one.
  bool decide(const PlanInstruction& i);
  /// Waits until nothing is open. May throw Returned.
  void settle();

 private:
  /// What is known of the conditions of an instruction.
  struct History {
    bool latest = false;
    int agreed = 0;    ///< of the latest, how many in a row had that value
    int foretold = 0;  ///< since the host waited for another reason
    int futile = 0;    ///< how often it was one when the host did
  };
  struct Open {
    uint64_t number;
    const PlanInstruction* instruction;
    bool expected;
    std::vector<PlanValue> values;  ///< of the frame
    uint32_t next;                  ///< where the frame goes on when the condition is true
    size_t journal;
    size_t bytes;  ///< in use
  };

  bool mayForetell(const History& history) const;
  void foretell(const PlanInstruction& i, History& history);
  /// Closes conditions until at most `most` are open.
  void makeRoom(size_t most);
  /// The first open condition; false: not known yet.
  bool close(bool wait);
  /// Of the first open condition: ends the run, or returns to it.
  [[noreturn]] void takeBack(Outcome outcome);
  static void note(History& history, bool value);

  RunContext& context_;
  PlanStack& stack_;
  RunRecorder& recorder_;
  std::deque<Open> open_;
  std::unordered_map<const PlanInstruction*, History> history_;
};

}  // namespace kelpie::runtime
