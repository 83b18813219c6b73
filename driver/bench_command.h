// `kelpie bench`: a function of a program on data sets, each measured until its time is known.
//
// The bindings of the program are evaluated once, its other forms not at all. The arguments are made, and
// moved to the target, before the clock starts; results stay there. A run's time is that of the host from
// the call to the moment when the result is there.
#pragma once

#include <optional>

#include "driver/backend.h"
#include "driver/bench_results.h"
#include "driver/options.h"
#include "driver/pipeline.h"

namespace kelpie::driver {

/// Nothing, after messages on standard error: something failed. `forms` have been analysed in `session`.
std::optional<BenchResults> bench(const std::vector<FormResult>& forms, const Options& options,
                                  Session& session, SourceManager& sources, const Pipeline& pipeline,
                                  Backend& backend, Services& services);

}  // namespace kelpie::driver
