// What the host alone does in a function.
//
// In:  a host function of λcu, for sequences of one length (even_calls.cpp), and of each call of such
// functions in
//      it the condition under which the sequences that it passes on have one length again.
// Out: a function of the host scalars among the parameters. It takes the same branches and makes the same
// calls
//      as long as all conditions hold; its results are whether they do, then the host scalars among the
//      results. Checks that fail give their fallbacks; no kernel runs. None: a branch, a condition, what a
//      call is given or a result needs more than the host knows.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "ir/lcu.h"

namespace kelpie::flatten {

struct EvenCalls {
  /// By the first argument of a call.
  std::unordered_map<lcu::VarId, lcu::ExprRef> conditions;
  enum class Callee { Other, Even, Unfinished };
  std::function<Callee(uint32_t function)> callee;
  /// The host part of an even function; none: it has none, as nothing can go wrong in it.
  std::function<std::optional<uint32_t>(uint32_t function)> hostPart;
};

std::optional<lcu::HostFunction> hostPart(lcu::Program& program, const lcu::HostFunction& function,
                                          const EvenCalls& calls);

}  // namespace kelpie::flatten
