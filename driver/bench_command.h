// `kelpie bench`: a function of a program on data sets, each measured until its time is known.
//
// The bindings of the program are evaluated once, its other forms not at all. The arguments are made, and
// moved to the target, before the clock starts; results stay there. A run's time is that of the host from
// the call to the moment when the result is there. A line of the table is written as soon as it is known.
#pragma once

#include "driver/backend.h"
#include "driver/bench_results.h"
#include "driver/options.h"
#include "driver/pipeline.h"
#include "driver/runner.h"

namespace kelpie::driver {

struct BenchOutcome {
  BenchResults results;  ///< of what could be measured
  bool good = true;      ///< false, after messages on standard error: something could not
};

/// `forms` have been analysed in `session`. A data set that fails does not keep others from being measured.
BenchOutcome bench(const std::vector<FormResult>& forms, const Options& options, Session& session,
                   SourceManager& sources, const Pipeline& pipeline, Backend& backend, Services& services,
                   Output& output);

}  // namespace kelpie::driver
