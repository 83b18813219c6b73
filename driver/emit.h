// `kelpie emit`: what a program becomes, as text.
#pragma once

#include <string>
#include <vector>

#include "driver/options.h"
#include "driver/pipeline.h"

namespace kelpie::driver {

/// The forms of a file at a stage other than Ast, each under a comment with its place.
std::string emitForms(const std::vector<FormResult>& forms, Stage stage, const Pipeline& pipeline,
                      const SourceManager& sources);

}  // namespace kelpie::driver
