// Effects that need one caller at a time must not be reached from an apply-to-each (language.md 4.7, 6.16).
//
// Inference has refused calls of serial functions by name; this check on Core sees calls through function
// values and in instances made by the specialiser.
#pragma once

#include <vector>

#include "ir/core.h"
#include "ir/diagnostic.h"

namespace kelpie {

std::vector<Diagnostic> checkSerial(const core::Program& program);

}  // namespace kelpie
