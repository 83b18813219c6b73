// Work that recurses as deep as programs nest needs more stack than a thread usually has.
#pragma once

#include <functional>

namespace kelpie {

/// Calls `work` on a stack of half a gibibyte (address space only: pages are taken as they are touched), or on
/// this one if it is such a stack, and returns when it has returned, passing its exception on.
void runOnDeepStack(const std::function<void()>& work);

}  // namespace kelpie
