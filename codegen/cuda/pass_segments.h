// Results of segments: reductions are stored, epilogues computed, survivors' offsets ranked.
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// What is done for each segment: its results are stored, epilogues computed.
void writeSegmentBody(PassText& t);
/// What a pass that scans folds of segments (segment_ends.cuh): the type of a segment's folds, where those of
/// items lie in shared memory, the blocks for empty segments, and what a tile does for those that end in it.
void declareFolds(PassText& t);
void declareFoldsOfItems(PassText& t);
void writeBlocksOfEmpty(PassText& t, int indent);
void writeEnds(PassText& t);
/// Of tiles of elements: enters survivors into the tables by which offsets of filtered segments are found.
void writeRankTables(PassText& t);

}  // namespace kelpie::codegen::cuda
