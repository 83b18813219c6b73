// Short arrays: those of Int64 that a target may store in 32 bits.
//
// Where segments are short, a program moves about as many bytes of offsets as of elements. Offsets are
// positions, which nearly always fit into 32 bits; to the program they are Int64 all the same. So a target
// may store an array short, and a kernel that reads it widens what it loads (runtime/target.h,
// Target::storesShort).
//
// In:  a well-formed program.
// Out: the arrays that it had better store so: offsets of nested sequences, as far as what makes them can,
// and
//      whatever variables they go through. Others may still come across one (a session's value, say), so
//      which arrays of a launch are short is only known when it happens.
//
// So are random draws, which have 31 bits.
//
// Where a sequence may be empty, as at the end of a recursion, its offsets may be a constant: it is as short
// as what it meets.
//
// Example. Of `{sum({x : x in row | x > 0.0}) : row in rows}` the offsets of `rows` are short, and those that
// the filter gives: their last entry is no more than the number of elements. Those of
// `{[0:n] : n in ns}` come from a scan, whose total nobody knows before: it stores them short, and records
// kTooLongSite where they do not fit.
#pragma once

#include <vector>

#include "codegen/kernel_analysis.h"
#include "ir/lcu.h"

namespace kelpie::codegen {

/// The greatest element of a short array.
constexpr int64_t kLongestShort = (int64_t{1} << 31) - 1;

/// What a scan records as its site when its total is greater than that. Behind all sites of a program.
constexpr lcu::SiteId kTooLongSite = 0xfffffffe;

/// Ascending.
std::vector<lcu::VarId> shortArrays(const lcu::Program& program);

/// Those of `arrays` that are parameters or outputs of a kernel; both ascending.
std::vector<lcu::VarId> shortArraysOf(const KernelInfo& info, const std::vector<lcu::VarId>& arrays);

}  // namespace kelpie::codegen
