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

lcu::Program Pipeline::flatten(const core::Program& program, const flatten::KnownGlobals& globals) const {
  lcu::Program flat = flatten::flatten(program, globals);
  if (options_.verify) expectSound(lcu::verify(flat, false), "flattening");
  return flat;
}

fusion::FusionReport Pipeline::fuse(lcu::Program& program) const {
  fusion::FusionReport report = fusion::fuse(program, options_.fusion);
  if (options_.verify) expectSound(lcu::verify(program, true), "fusion");
  return report;
}

std::string Pipeline::generate(const lcu::Program& program, const std::string& target) const {
  return runtime::generatedCode(program, target, [this](Span span) { return describe(span); });
}

std::string Pipeline::describe(Span span) const {
  if (!span.known()) return "";
  const Location location = sources_.locate(span.file, span.begin);
  std::string_view text = sources_.text(span);
  text = text.substr(0, text.find('\n'));
  return fmt::format("{}:{}: {}", sources_.name(span.file), location.line, text.substr(0, 80));
}

}  // namespace kelpie::driver
