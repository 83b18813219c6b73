// What the tiles of a pass do together: scans of levels and counts of survivors, storing survivors, totals.
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// Scans what a level carries (scan.cuh), or counts (compact.cuh), and stores the results of scans.
void writeLevel(PassText& t, size_t number);
/// Stores what filters and partitions keep and drop.
void writeCompactions(PassText& t);
/// What the last tile knows: totals of scans, counts of filters, ordered reductions.
void writeTotals(PassText& t);

}  // namespace kelpie::codegen::cuda
