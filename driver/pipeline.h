// The passes of the compiler in order.
//
//   parse        frontend/parser.h       text              -> ast::Form
//   infer        frontend/infer.h        ast::Form         -> typed tree      } form by form, in
//   specialise   frontend/specialise.h   typed tree        -> core::Program   } frontend/session.h
//   flatten      flatten/flatten.h       core::Program     -> lcu::Program
//   fuse         fusion/fuse.h           lcu::Program      -> lcu::Program, fused
//   generate     codegen/                kernels           -> CUDA C++, C++
//   run          runtime/executor.h      lcu::Program      -> values
//
// A pass that breaks an invariant of the intermediate program is a bug of the compiler: with `verify` (always
// in debug builds) every result is checked and a violation is an InternalError that names the pass.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/cell_sizes.h"
#include "driver/profile.h"
#include "flatten/flatten.h"
#include "frontend/session.h"
#include "fusion/fuse.h"
#include "ir/core.h"
#include "ir/lcu.h"

namespace kelpie::driver {

struct PipelineOptions {
  fusion::FusionOptions fusion;
  SizesByForm known;  ///< from a profile; takes the place of fusion.known
  bool verify = false;
};

class Pipeline {
 public:
  Pipeline(const SourceManager& sources, PipelineOptions options)
      : sources_(sources), options_(std::move(options)) {
    options_.fusion.solved = std::make_shared<fusion::SolvedProblems>();
  }

  /// Parse, infer, specialise: every form of a file.
  std::vector<FormResult> analyse(Session& session, uint32_t file) const;
  /// `globals`: see flatten/flatten.h.
  lcu::Program flatten(const core::Program& program, const RegularCells& globals = {}) const;
  /// `globals` tell it what it predicts with.
  fusion::FusionReport fuse(lcu::Program& program, const GlobalSizes& globals = {}) const;
  /// What fuse() reports of another strategy, whose clusters its report has: the same regions with that
  /// strategy's kernels. `program` as it was flattened; globals as then.
  fusion::FusionReport fuseAs(const fusion::GivenSchedule& schedule, lcu::Program& program,
                              const GlobalSizes& globals = {}) const;
  /// The source of all kernels for the target "cuda" or "cpu".
  std::string generate(const lcu::Program& program, const std::string& target) const;
  /// The same of each kernel alone, by its name.
  std::unordered_map<std::string, std::string> generateKernels(const lcu::Program& program,
                                                               const std::string& target) const;

  /// "file.nesl:12: the text of that place", for comments in generated code.
  std::string describe(Span span) const;

 private:
  fusion::FusionReport fuse(lcu::Program& program, const GlobalSizes& globals,
                            fusion::FusionOptions options) const;

  const SourceManager& sources_;
  PipelineOptions options_;
};

}  // namespace kelpie::driver
