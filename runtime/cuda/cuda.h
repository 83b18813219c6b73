// The target `cuda`, if this machine has what it needs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/target.h"

namespace kelpie::runtime {

struct CudaTargetOptions {
  int device = 0;             ///< number of the GPU
  std::string compiledAhead;  ///< folder of kernels that `kelpie build` made; empty: none
  bool longOffsets = false;   ///< offsets in 64 bits, whether they need it or not
  /// Launches of few elements are evaluated on the host while compilers are at work on their code, where that
  /// gives the same bits (cuda/host_evaluation.h).
  bool evaluateMeanwhile = false;
  std::string compilerHelper;  ///< command that calls serveAsCompiler; empty: this process alone compiles
  /// Gives "file.nesl:12: text" for comments in generated code; it may be empty.
  std::function<std::string(Span)> describe;
};

/// Null, and `why` in words, when there is no driver, no GPU, or neither NVRTC nor code compiled ahead.
std::unique_ptr<Target> makeCudaTarget(std::string& why, const CudaTargetOptions& options = {});

/// Whether compilers of targets that are gone are still at work in this process, which can only happen with
/// evaluateMeanwhile: it must end without destructors then.
bool compilersAreAtWork();

/// What `compilerHelper` does: compiles for the process that started it (cuda/compiler_process.h).
void serveAsCompiler();

}  // namespace kelpie::runtime
