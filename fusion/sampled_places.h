// Where the loads and writes of a kernel go, by what a sample of its thunks tells (codegen/thunk_sample.h):
// for the cost model, which counts with the share that each cache holds.
//
// Nomenclature. A *piece* has 32 bytes. The cache of all cores has *forgotten* a piece when, since its last
// visit, as many bytes of others have come as it holds. That time is about the same for all pieces (the
// characteristic time of Che, Tung and Wang, "Hierarchical web caching systems", 2002); here it is a share of
// the launch.
//
// Example: 10^8 elements load 8 bytes in order, gather 8 of a table of 32 MB (10^6 pieces), and store 8. A
// cache of 40 MB forgets after as many gathers g as let 16 g + 32 * 10^6 (1 - exp(-g / 10^6)) be 40 *
// 10^6: 1.1 * 10^6. So it holds 1 - exp(-1.1) of the pieces, two thirds, although the table would fit.
#pragma once

#include <optional>

#include "codegen/thunk_sample.h"
#include "fusion/cost_model.h"

namespace kelpie::fusion {

/// How much of the launches of a sample passes until a cache of so many bytes has forgotten. `passing`: bytes
/// that a launch loads and stores in order. If it never does, the greatest number.
double remembered(const codegen::ThunkSample& sample, double launches, double passing, double cacheBytes);

/// `remembered`: as above, or 0 if it is not known.
Places placesOf(const codegen::ThunkSample::Positions& positions, double remembered);

/// Of `elements` that write to so many places, the share that finds nobody behind it there; nothing if too
/// few were looked at.
std::optional<double> writersOf(const codegen::ThunkSample::Positions& positions, double elements,
                                double places);

}  // namespace kelpie::fusion
