#include "driver/build_command.h"

#include <fmt/format.h>

#include <algorithm>

namespace kelpie::driver {

namespace {

/// Values of the cells that a program reads in which all elements of a nested sequence have one length.
flatten::KnownGlobals regularShapes(const core::Program& program) {
  return [&program](uint32_t cell) {
    Columns columns;
    for (const core::Global& global : program.globals)
      if (global.cell == cell)
        for (const core::Var& var : global.vars) columns.push_back(zeroColumn(var.type, 1));
    return columns;
  };
}

}  // namespace

std::string build(const std::vector<FormResult>& forms, const Options& options, const Pipeline& pipeline,
                  const runtime::Compilers& compilers) {
  std::vector<std::string> sources;
  const auto add = [&](lcu::Program program) {
    pipeline.fuse(program);
    for (std::string& source : runtime::cudaSources(program))
      if (std::find(sources.begin(), sources.end(), source) == sources.end())
        sources.push_back(std::move(source));
  };
  for (const FormResult& form : forms) {
    if (!form.program || form.failed()) continue;
    add(pipeline.flatten(*form.program));
    if (!form.program->globals.empty()) add(pipeline.flatten(*form.program, regularShapes(*form.program)));
  }
  for (const int architecture : options.architectures) {
    runtime::CompilerStatistics statistics;
    if (auto failure =
            runtime::compileAhead(sources, architecture, options.outputFile, compilers, statistics))
      return *failure;
    fmt::print("sm_{}: {} {} compiled, {} found compiled, {:.2f} s\n", architecture, statistics.compiled,
               statistics.compiled == 1 ? "kernel" : "kernels", statistics.cached, statistics.waitedSeconds);
  }
  return "";
}

}  // namespace kelpie::driver
