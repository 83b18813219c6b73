// Conditions of loops are computed on the device.
//
//   In:  λcu before fusion.
//   Out: the same program; in loops that wait for conditions only, each condition that reads the device's
//   memory
//        is a cell, computed by a kernel of one Once.
//
//   loop (grid, steps) ... do {                        loop (grid, steps) ... do {
//     kernel ... max: &float64 = REDUCE ...              kernel ... max: &float64 = REDUCE ...
//     if max <= 1e-4 { ...                               kernel ... decided: &bool = ONCE { max <= 1e-4 }
//                                                        if decided { ...
//
// Fusion puts the Once into the kernel before it, where it costs nothing. A target can compare a cell with
// what it is expected to be while the host goes on (runtime/run_ahead.h). Loops in which the host also waits
// for sizes or for values of its own stay as they are.
#pragma once

#include "ir/lcu.h"

namespace kelpie::flatten {

void conditionsOnDevice(lcu::Program& program);

}  // namespace kelpie::flatten
