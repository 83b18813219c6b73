#include "driver/emit.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "fusion/report.h"
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
  const auto lookup = [&](Span span) {
    fusion::SourceLine found;
    if (!span.known()) return found;
    found.place = sources.describe(span);
    found.line = static_cast<int>(sources.locate(span.file, span.begin).line);
    const std::string_view text = sources.text(span.file);
    const size_t begin = span.begin == 0 ? 0 : text.rfind('\n', span.begin - 1) + 1;  // npos + 1 is 0
    found.text = text.substr(begin, text.find('\n', span.begin) - begin);
    return found;
  };
  std::string out;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FormResult& form : forms) {
    if (!form.program) continue;
    lcu::Program program = pipeline.flatten(*form.program);
    const fusion::FusionReport report = pipeline.fuse(program);
    const std::string place = sources.describe(form.span);
    if (json) {
      list.push_back({{"place", place},
                      {"name", form.name},
                      {"report", nlohmann::ordered_json::parse(fusion::reportJson(report, lookup))}});
    } else {
      if (!out.empty()) out += '\n';
      out += fmt::format("{}: {}\n{}", place, form.name, fusion::reportText(report, lookup));
    }
  }
  // Names come from the program's text, which is bytes: anything that is no UTF-8 is replaced.
  if (json)
    out = nlohmann::ordered_json{{"forms", std::move(list)}}.dump(
              2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
          "\n";
  return out;
}

}  // namespace kelpie::driver
