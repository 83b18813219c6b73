// Specialisation: typed expressions to Core (ir/core.h).
//
// In:   one closed typed expression, and the contents that all function cells have now.
// Out:  its Core program: an instance of every function it reaches, for each closed type it is used with.
// Then: no polymorphism (each instance has closed types), no function values (a value of a function type is
// the
//       row of its captured variables, the called function is known from the type), no tuples, records or
//       patterns, no filters; operands are atoms and evaluation order is the order of lets.
#pragma once

#include <vector>

#include "frontend/environment.h"
#include "frontend/ground_type.h"
#include "ir/core.h"
#include "ir/diagnostic.h"

namespace kelpie {

struct Specialised {
  core::Program program;
  ValueTypePtr type;                    ///< of the entry
  std::vector<Diagnostic> diagnostics;  ///< serial functions reached inside an apply-to-each through values
};

Specialised specialise(const typed::Exp& expression, Environment& environment, GroundTypes& grounds);

}  // namespace kelpie
