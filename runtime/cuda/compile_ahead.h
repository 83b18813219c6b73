// Compiles the kernels of programs for the target cuda before they run, and without a GPU.
//
// In:  fused programs, an architecture.
// Out: machine code in a folder, or in the user's cache (code_cache.h), where a run finds it.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "ir/lcu.h"
#include "runtime/target.h"

namespace kelpie::runtime {

namespace cuda {
class CompilerServer;
}

/// The sources that the target cuda compiles for a program.
std::vector<std::string> cudaSources(const lcu::Program& program);

/// What compiles for compileAhead, and gets ready while a program is still read.
struct Compilers {
  std::shared_ptr<cuda::CompilerServer> server;  ///< null: there are few cores
  std::future<void> here;                        ///< NVRTC of this process; not valid: there is no thread
};
/// `command`: CudaTargetOptions::compilerHelper.
Compilers startCompilers(const std::string& command);

/// Compiles sources for sm_<architecture> (90 for 9.0), several at a time, into `folder`; empty: the cache.
Failure compileAhead(const std::vector<std::string>& sources, int architecture, const std::string& folder,
                     const Compilers& compilers, CompilerStatistics& statistics);

}  // namespace kelpie::runtime
