// `kelpie build`: the kernels of a program, compiled before it runs.
//
// A run compiles a form for the shapes of the global variables that it reads (flatten/flatten.h). These are
// not known here, so each form is compiled twice: for any shapes, and for nested sequences whose elements
// have one length. Where a run has another mix and no compiler, it falls back to the form for any shapes.
#pragma once

#include <string>
#include <vector>

#include "driver/options.h"
#include "driver/pipeline.h"
#include "frontend/session.h"
#include "runtime/cuda/compile_ahead.h"

namespace kelpie::driver {

/// Compiles the forms for the architectures of the options, by `compilers`, and tells of each on standard
/// output. What went wrong; empty: nothing.
std::string build(const std::vector<FormResult>& forms, const Options& options, const Pipeline& pipeline,
                  const runtime::Compilers& compilers);

}  // namespace kelpie::driver
