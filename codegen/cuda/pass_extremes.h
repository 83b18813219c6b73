// Part of a pass (pass_text.h): who meets the elements of a segment in ascending order and folds where the
// least or greatest one of them is (fusion/paired_reductions.h, min_index).
//
// The operator of such pairs compares three times and chooses four times. Of an element that comes later than
// all before it, it needs to be known only whether these have one that is as good.
#pragma once

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// Of a pass that folds rows, or whose places are those of the space (CudaPass): those of its first level.
std::vector<FirstOfExtremes> firstOfExtremes(const PassText& t);
/// Of a value `before` and an `item` that comes after all of it, what `after`, their combination, has there.
void writeLaterItem(PassText& t, const FirstOfExtremes& first, int indent);
/// When the value `own` has met all elements of a thread, the first of them at position `begin`: leaves what
/// combinations would have.
void writeAllMet(PassText& t, const FirstOfExtremes& first, const std::string& begin, int indent);

}  // namespace kelpie::codegen::cuda
