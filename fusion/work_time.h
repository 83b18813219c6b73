// Time that searches count instead of measure.
//
// A search that stops when time is up would find more on a machine that is quiet, and the schedule, with it
// the kernels and the last bits of their float sums, would depend on what runs beside the compiler. So what
// takes long here counts its own work, in nanoseconds that it takes about on one core of an AMD EPYC, and a
// deadline (deadline.h) is a number of these: the same search stops at the same place, everywhere. What a
// step of a kind takes is stated where the step is made; `fusion-solver` prints what the counts and a clock
// say beside each other. (Gurobi and CPLEX have the same under the names of work and deterministic time.)
#pragma once

#include <cstdint>

namespace kelpie::fusion {

class WorkTime {
 public:
  /// Nanoseconds, by this thread.
  static int64_t spent() { return spent_; }
  static void spend(int64_t nanoseconds) { spent_ += nanoseconds; }
  /// For threads that take over work of another (parallel.h).
  static void set(int64_t nanoseconds) { spent_ = nanoseconds; }

 private:
  static inline thread_local int64_t spent_ = 0;
};

}  // namespace kelpie::fusion
