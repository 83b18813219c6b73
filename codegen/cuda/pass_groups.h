// The form of a pass over ranges for small inputs: threads share out whole segments (segment_groups.cuh).
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// All that comes behind the declaration of `result`.
void writeGroups(PassText& t);

}  // namespace kelpie::codegen::cuda
