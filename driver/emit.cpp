#include "driver/emit.h"

#include <fmt/format.h>

#include "driver/fusion_report.h"
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

std::string reportFusion(const std::vector<FormResult>& forms, bool json, const Pipeline& pipeline,
                         const SourceManager& sources) {
  std::vector<FormReport> reports;
  for (const FormResult& form : forms) {
    if (!form.program) continue;
    lcu::Program program = pipeline.flatten(*form.program);
    reports.push_back({sources.describe(form.span), form.name, pipeline.fuse(program)});
  }
  return json ? fusionReportAsJson(reports, sources) : fusionReportAsText(reports, sources);
}

}  // namespace kelpie::driver
