// The primitives of Core that compute (ir/core.h), on all active instances at once: PrimOp::Scalar to
// PrimOp::Grade. Effects are the interpreter's own.
#pragma once

#include <string>

#include "frontend/instance_vector.h"
#include "ir/core.h"

namespace kelpie {

/// A check of a primitive that failed; the interpreter knows where.
struct PrimitiveFailure {
  std::string message;
};

/// `result` is the row of the expression. Throws PrimitiveFailure. There is at least one instance.
InstanceRow evaluatePrimitive(const core::Prim& prim, const InstanceRow& arguments, int64_t instances,
                              const Row& result);

/// "{0}" and "{1}" in a message, replaced by the payloads.
std::string formatCheck(std::string text, int64_t p, int64_t q);

}  // namespace kelpie
