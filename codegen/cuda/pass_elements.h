// The element thunks of a pass: loads of arrays by packs, then a loop over the items of a thread for each
// stage.
//
// A stage computes what one level scans, counts or folds, stores what maps make, and leaves the rest in
// registers for later stages.
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
/// Replaces the recording of errors by a note that there are some; tells whether there was any.
bool noteErrors(const PassText& t, std::string& text);
/// The thunks of a stage for element `i`, only for their checks, or, with `stores`, for the results of its
/// maps, too; the segment is searched for.
void checkElement(PassText& t, size_t number, bool stores = false);
/// Behind the loop over the tiles of a range: looks for the errors that there were in any of them.
void searchRangeForErrors(PassText& t);

}  // namespace kelpie::codegen::cuda
