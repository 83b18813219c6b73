// What stands around the work of a tile: declarations, the kernel's signature, how blocks come to their
// tiles.
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// Where the kernel comes from in the program.
void writeComments(PassText& t);
/// The shape of tiles, levels, reductions, shared memory.
void writeStructures(PassText& t);
/// The entry point up to the test for earlier errors.
void writeSignature(PassText& t);
/// From there to the items of a tile: its place, loads of the first stage, borders of segments.
void writePrologue(PassText& t);
/// Closes what the prologue opened.
void writeEndOfTile(PassText& t);

}  // namespace kelpie::codegen::cuda
