// Scalars that a loop carries from kernel to kernel stay on the device.
//
//   In:  λcu before fusion, loop invariants removed.
//   Out: the same program; parameters of loops whose values are those of cells, in every step, are cells, if
//   the host computes nothing from them within the loop but conditions (device_conditions.h). Initial values
//   that are the host's become cells by a kernel of one Once.
//
//   let start: float64 = rr                             loop (rest: &float64 = rr) ... do {
//   loop (rest: float64 = start) ... do {                 kernel ... alpha: &float64 = ONCE { rest / pq }
//     kernel ... alpha: &float64 = ONCE { rest / pq }     kernel ... next: &float64 = REDUCE ...
//     kernel ... next: &float64 = REDUCE ...              yield next
//     let more: float64 = next                          }
//     yield more
//   }
//
// The host would wait for the value in each step, only to hand it to the next one.
#pragma once

#include "ir/lcu.h"

namespace kelpie::flatten {

void scalarsOnDevice(lcu::Program& program);

}  // namespace kelpie::flatten
