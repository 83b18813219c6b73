// Results of segments: reductions are stored, epilogues computed, survivors' offsets ranked.
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// What is done for each segment: its results are stored, epilogues computed.
void writeSegmentBody(PassText& t);
/// Of tiles of elements: enters survivors into the tables by which offsets of filtered segments are found.
void writeRankTables(PassText& t);

}  // namespace kelpie::codegen::cuda
