// Part of a pass (pass_text.h): elements with one loop each, which lanes take when they have come to the end
// of others (lane_queue.cuh, codegen/refilled_loop.h).
//
//   while (true) {
//     if (held && !busy) { ...what comes behind the loop... }
//     if (take(!busy, number)) { ...what comes before it... }
//     if (nobody holds an element) break;
//     do { if (busy) ...some turns of the loop... } while (goesOn(busy));
//     weigh();
//   }
//   if (any check of the warp has failed) begin again, without a queue;
//   for (all tiles that are left) ...in step, as in any other pass...
//
// What the parts of the first loop share is declared ahead of it.
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// All between the signature and the end of a kernel whose plan has a refilled loop.
void writeRefilledLanes(PassText& t);

}  // namespace kelpie::codegen::cuda
