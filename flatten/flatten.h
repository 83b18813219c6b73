// Flattening: Core (nested) -> λcu (flat). DESIGN.md section 5; docs/flattening.md carries a program through.
//
// In:  a verified core::Program (one top-level form).
// Out: an lcu::Program in which every kernel has exactly one SOAC and `lcu::verify(p, false)` is empty.
//
// The scheme compiles an expression *in a context*, the stack of index spaces that enclose it
// (flatten/context.h), to delayed values (flatten/value.h). Work and depth are those of NESL's cost model:
// a free variable is reached through indices and never replicated, views move nothing, an untaken branch
// has no instances, and an apply-to-each or branch without instances that contains a recursive call is
// skipped by a test on the host, which is what ends recursions.
#pragma once

#include "ir/core.h"
#include "ir/lcu.h"
#include "ir/regularity.h"

namespace kelpie::flatten {

/// `globals`: what is known of the session cells that the program reads. A nested sequence whose elements
/// have one length gets a regular descriptor.
lcu::Program flatten(const core::Program& program, const RegularCells& globals = {});

}  // namespace kelpie::flatten
