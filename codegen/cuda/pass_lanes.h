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
// What the parts of the first loop share is declared ahead of it. In a pass that scans, filters or folds
// segments a warp does the same with the items of its tile, and what comes behind the loop is that its values
// go to shared memory, where all else finds them:
//
//   TileQueue queue(tile, what other tiles found);
//   {
//     ...as above...
//     if (queue.weighs) votes.add(queue.pays());
//     if (any check of the warp has failed) no item has been through the queue;
//   }
//   for (all items) { ... if (queue.knows(item)) value = shared...; else ...the loop... }
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// All between the signature and the end of a kernel whose plan has a refilled loop.
void writeRefilledLanes(PassText& t);

/// The loops of a tile, before all else that is computed for it, if the plan has them refilled in tiles.
void writeLoopsOfTile(PassText& t);
/// Members of the pass's shared memory for that.
void declareLoopsOfTile(PassText& t);
/// Ahead of the tile, or of all tiles of a range: what others found.
void writeVotes(PassText& t);
/// What an item of such a tile knows of a loop.
std::optional<KnownLoop> knownInTile(const PassText& t, lcu::ExprRef loop);

}  // namespace kelpie::codegen::cuda
