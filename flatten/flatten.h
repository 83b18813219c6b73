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

#include <functional>

#include "ir/core.h"
#include "ir/data.h"
#include "ir/lcu.h"

namespace kelpie::flatten {

/// The value of a session cell, as columns of length 1, if it is known when a form that reads it is compiled.
/// Only its shape is looked at: a nested sequence whose elements have one length has a regular descriptor.
using KnownGlobals = std::function<Columns(uint32_t cell)>;

lcu::Program flatten(const core::Program& program, const KnownGlobals& globals = {});

}  // namespace kelpie::flatten
