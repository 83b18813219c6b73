// What both branches of a conditional append rows to is appended to once. Core -> Core.
//
//   In:  a verified program.
//   Out: an equivalent program, in which, where it is evaluated for several instances,
//
//   let e2 = if c then e ++ [row] else e     becomes     let part = if c then [row] else []; e2 = e ++ part
//
// and the same where both branches append, and for single results of a conditional that has several. Only of
// sequences of sequences: which row an element belongs to is found for each, and of a choice of sequences
// that is done for either branch. With both of them over what the conditional before has given (messages,
// each of which is there or not), every conditional more took twice the code: ten took 6 s to compile, and
// now 0.03. On the host, where branches are taken, a sequence that stays as it is had better not be copied.
#pragma once

#include "ir/core.h"

namespace kelpie::flatten {

core::Program shareAppends(core::Program program);

}  // namespace kelpie::flatten
