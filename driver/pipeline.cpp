#include "driver/pipeline.h"

#include <fmt/format.h>

#include "ir/core_verify.h"
#include "runtime/runtime.h"

namespace kelpie::driver {

namespace {

void expectSound(const std::vector<std::string>& violations, const char* pass) {
  if (!violations.empty()) throw InternalError(fmt::format("after {}: {}", pass, violations.front()));
}

}  // namespace

std::vector<FormResult> Pipeline::analyse(Session& session, uint32_t file) const {
  std::vector<FormResult> results = session.processFile(file);
  if (options_.verify)
    for (const FormResult& result : results)
      if (result.program) expectSound(core::verify(*result.program), "specialisation");
  return results;
}

lcu::Program Pipeline::flatten(const core::Program& program, const RegularCells& globals) const {
  lcu::Program flat = flatten::flatten(program, globals);
  flat.span = program.span;
  if (options_.verify) expectSound(lcu::verify(flat, false), "flattening");
  return flat;
}

fusion::FusionReport Pipeline::fuse(lcu::Program& program, const GlobalSizes& globals) const {
  return fuse(program, globals, options_.fusion);
}

fusion::FusionReport Pipeline::fuseAs(const fusion::GivenSchedule& schedule, lcu::Program& program,
                                      const GlobalSizes& globals) const {
  fusion::FusionOptions options = options_.fusion;
  options.observe = nullptr;
  options.given = schedule;
  return fuse(program, globals, std::move(options));
}

fusion::FusionReport Pipeline::fuse(lcu::Program& program, const GlobalSizes& globals,
                                    fusion::FusionOptions options) const {
  options.globals = globals;
  for (const std::string& form : {formKey(sources_.describe(program.span)), std::string()}) {
    const auto known = options_.known.find(form);
    if (known == options_.known.end()) continue;
    options.known = known->second;
    break;
  }
  fusion::FusionReport report = fusion::fuse(program, options);
  // Always: a fault here would be a wrong result, which nobody sees, and it takes a hundredth of the time.
  expectSound(lcu::verify(program, true), "fusion");
  return report;
}

std::string Pipeline::generate(const lcu::Program& program, const std::string& target) const {
  return runtime::generatedCode(program, target, [this](Span span) { return describe(span); });
}

std::unordered_map<std::string, std::string> Pipeline::generateKernels(const lcu::Program& program,
                                                                       const std::string& target) const {
  std::unordered_map<std::string, std::string> texts;
  for (const lcu::Kernel* kernel : runtime::kernelsOf(program))
    texts[kernel->name] =
        runtime::generatedCode(*kernel, program, target, [this](Span span) { return describe(span); });
  return texts;
}

std::string Pipeline::describe(Span span) const {
  if (!span.known()) return "";
  const Location location = sources_.locate(span.file, span.begin);
  std::string_view text = sources_.text(span);
  text = text.substr(0, text.find('\n'));
  return fmt::format("{}:{}: {}", sources_.name(span.file), location.line, text.substr(0, 80));
}

}  // namespace kelpie::driver
