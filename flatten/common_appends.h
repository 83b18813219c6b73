// What both branches of a conditional append to, or put something in front of, is appended to once.
// Core -> Core.
//
//   In:  a verified program.
//   Out: an equivalent program, in which, where it is evaluated for several instances,
//
//   let e2 = if c then e ++ [x] else e     becomes     let part = if c then [x] else []; e2 = e ++ part
//
// and the same for parts in front (`[x] ++ e`), several parts (`e ++ [x] ++ [y]`), where both branches
// append, and for single results of a conditional that has several. A choice between both sequences is a
// choice, for each element, between two places of one sequence; where that is itself such a choice (a list of
// messages, each of which is there or not), every conditional more took twice the code: ten took 6 s to
// compile, and now 0.03. On the host, where branches are taken, a sequence that stays as it is had better not
// be copied.
#pragma once

#include "ir/core.h"

namespace kelpie::flatten {

core::Program shareAppends(core::Program program);

}  // namespace kelpie::flatten
