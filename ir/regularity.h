// Which nested sequences have elements of one length. Index spaces over those are regular, which takes
// neither a descriptor nor searches, so that a form is compiled for what is known of the session cells that
// it reads.
//
// Nomenclature: the *variables* of a value are those of lcu::GlobalInput: a scalar has one; a sequence has
// its length, then one for each scalar column and each descriptor of its elements, outermost first. Example:
// of `m : [([int], char)]` they are its length, the descriptor, the integers, the characters.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/data.h"

namespace kelpie {

/// For each variable of a row of values whether it is the descriptor of segments that all have one length.
using Regularity = std::vector<bool>;
/// By session cell; of those that are not in it nothing is known.
using RegularCells = std::unordered_map<uint32_t, Regularity>;

/// How many variables a value has.
size_t variablesOf(const CoreType& type);
/// Whether all sequences of a column have one length.
bool isRegular(const Column& column);
/// Of a row of columns of length 1. Looks at all descriptors.
Regularity regularityOf(const Columns& row);

}  // namespace kelpie
