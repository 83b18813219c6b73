// The element thunks of a pass: loads of arrays by packs, then a loop over the items of a thread for each
// stage.
//
// A stage computes what one level scans, counts or folds, stores what maps make, and leaves the rest in
// registers for later stages (pass_items.h; pass_checks.h for what can fail).
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// The packs that a stage is the first to read: their declarations, their loads from `tile` by one of the
/// functions for that (tile.cuh), and both.
void declarePacks(PassText& t, size_t number);
void loadPacks(PassText& t, size_t number, const char* function);
void writeLoads(PassText& t, size_t number);
/// The loop of a stage; loads its packs, but for stage 0, whose loads belong to the prologue (pass_frame.h).
void writeStage(PassText& t, size_t number);

}  // namespace kelpie::codegen::cuda
