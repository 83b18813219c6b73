#include "driver/build_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/cell_shapes.h"

namespace kelpie::driver {

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
    if (const RegularCells regular = regularShapesOfCells(*form.program); !regular.empty())
      add(pipeline.flatten(*form.program, regular));
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
