#include "driver/emit.h"

#include <fmt/format.h>

#include "ir/core_print.h"

namespace kelpie::driver {

namespace {

std::string emitForm(const core::Program& program, Stage stage, const Pipeline& pipeline) {
  if (stage == Stage::Core) return core::toString(program);
  lcu::Program flat = pipeline.flatten(program);
  if (stage == Stage::Lcu) return lcu::toString(flat);
  pipeline.fuse(flat);
  switch (stage) {
    case Stage::Cuda:
      return pipeline.generate(flat, "cuda");
    case Stage::Cpu:
      return pipeline.generate(flat, "cpu");
    default:
      return lcu::toString(flat);
  }
}

}  // namespace

std::string emitForms(const std::vector<FormResult>& forms, Stage stage, const Pipeline& pipeline,
                      const SourceManager& sources) {
  std::string out;
  for (const FormResult& form : forms) {
    if (!form.program) continue;
    if (!out.empty()) out += '\n';
    out += fmt::format("// {}: {} : {}\n", sources.describe(form.span), form.name, form.type);
    out += emitForm(*form.program, stage, pipeline);
    if (out.back() != '\n') out += '\n';
  }
  return out;
}

}  // namespace kelpie::driver
