// Removes statements that nobody can notice are missing: no result is used, nothing inside can fail, no
// service runs.
//
// Calls, branches and loops always stay: whether they fail or run forever is not decided here.
#pragma once

#include "ir/lcu.h"

namespace kelpie::fusion {

/// The number of statements removed.
int removeDeadCode(lcu::Program& program);

}  // namespace kelpie::fusion
