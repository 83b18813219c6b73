// What becomes of the checks of element thunks, and which forms of the loop over items (pass_items.h) a stage
// has.
//
// Items do not stop for errors, so that no load waits for the check before it: they note that there was one,
// and warps that have noted any look for it again, item by item. Whole tiles may have a copy of their own.
#pragma once

#include <string_view>

#include "codegen/cuda/pass_text.h"

namespace kelpie::codegen::cuda {

/// The loop over the items of a stage in its forms, with the search for errors that goes with them.
void writeCheckedItems(PassText& t, size_t number);
/// The thunks of a stage for element `i`, only for their checks, or, with `stores`, for the results of its
/// maps, too; the segment is searched for.
void checkElement(PassText& t, size_t number, bool stores = false);
/// Behind the loop over the tiles of a range: looks for the errors that there were in any of them.
void searchRangeForErrors(PassText& t);
/// The same behind loops of threads over positions `at` of several rows of a regular space: the head of that
/// loop, how many rows there are, and the segment of `row`.
void searchRowsForErrors(PassText& t, std::string_view positions, std::string_view rows,
                         std::string_view segment);

}  // namespace kelpie::codegen::cuda
