// The block that finishes last: it folds what reductions left of all blocks, and runs Once bindings.
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// Once bindings alone, where one thread is the whole kernel.
void writeFinishBindings(PassText& t, int indent);
/// The block that comes last goes on, folds and runs them.
void writeFinish(PassText& t);

}  // namespace kelpie::codegen::cuda
