// Compiles the kernels of programs for the target cuda before they run, and without a GPU.
//
// In:  fused programs, an architecture.
// Out: machine code in a folder, or in the user's cache (code_cache.h), where a run finds it.
#pragma once

#include <string>
#include <vector>

#include "ir/lcu.h"
#include "runtime/target.h"

namespace kelpie::runtime {

/// The sources that the target cuda compiles for a program.
std::vector<std::string> cudaSources(const lcu::Program& program);

/// Compiles sources for sm_<architecture> (90 for 9.0), several at a time, into `folder`; empty: the cache.
/// `helper`: CudaTargetOptions::compilerHelper.
Failure compileAhead(const std::vector<std::string>& sources, int architecture, const std::string& folder,
                     const std::string& helper, CompilerStatistics& statistics);

}  // namespace kelpie::runtime
