#include "driver/fusion_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "driver/cell_shapes.h"
#include "driver/profile.h"
#include "driver/source_line.h"
#include "fusion/report.h"
#include "fusion/report_dot.h"
#include "runtime/subprocess.h"

namespace kelpie::driver {

bool concerns(const fusion::RegionReport& region, const std::string& function) {
  if (function.empty() || region.function == function || region.function.starts_with(function + ","))
    return true;
  return std::any_of(region.nodes.begin(), region.nodes.end(), [&](const fusion::NodeReport& node) {
    return node.kernel && node.function == function;
  });
}

namespace {

/// Draws by Graphviz, which may take minutes for hundreds of kernels: what is not there after a while is
/// drawn with less care, and so is everything behind it.
class Graphviz {
 public:
  fusion::Drawing operator()(const std::string& dot) {
    const PipeSignalBlocked blocked;
    if (!isInstalled()) return {"", "Graphviz is not installed here."};
    constexpr int kSeconds = 10;
    while (care_ < std::size(kCare)) {
      const auto svg = runProcess(fmt::format("timeout {} dot {} -Tsvg", kSeconds, kCare[care_]), dot);
      const auto* text = std::get_if<std::string>(&svg);
      if (text && text->find("</svg>") != std::string::npos) return {*text, ""};
      ++care_;
    }
    return {"", fmt::format("Graphviz takes longer than {} s.", kSeconds)};
  }

 private:
  static constexpr const char* kCare[] = {"", "-Gnslimit=1 -Gnslimit1=1 -Gmclimit=0.1 -Gsplines=line"};

  static bool isInstalled() {
    static const bool installed = [] {
      const auto svg = runProcess("dot -Tsvg", "digraph {}");
      const auto* text = std::get_if<std::string>(&svg);
      return text && !text->empty();
    }();
    return installed;
  }

  size_t care_ = 0;
};

/// What each strategy takes over all regions.
std::vector<fusion::StrategyReport> totals(const std::vector<fusion::FormReport>& forms) {
  std::vector<fusion::StrategyReport> sums;
  for (const fusion::FormReport& form : forms) {
    for (const fusion::RegionReport& region : form.report.regions) {
      for (const fusion::StrategyReport& s : region.strategies) {
        auto it = std::find_if(sums.begin(), sums.end(),
                               [&](const auto& sum) { return sum.strategy == s.strategy; });
        if (it == sums.end()) {
          fusion::StrategyReport sum;
          sum.strategy = s.strategy;
          it = sums.insert(it, sum);
        }
        it->objective += s.objective;
        it->bound += s.bound;
        it->launches += s.launches;
        it->bytesRead += s.bytesRead;
        it->bytesWritten += s.bytesWritten;
        it->seconds += s.seconds;
      }
    }
  }
  return sums;
}

std::string totalsAsText(const std::vector<fusion::FormReport>& forms) {
  std::string out =
      fmt::format("\nall regions, each once\n  {:<10}{:>9} {:>13} {:>13} {:>15} {:>15} {:>11}\n", "strategy",
                  "launches", "read", "written", "objective us", "bound us", "solved ms");
  for (const fusion::StrategyReport& s : totals(forms)) {
    out += fmt::format(
        "  {:<10}{:>9} {:>13} {:>13} {:>15} {:>15} {:>11.2f}\n", toString(s.strategy), s.launches,
        fusion::bytesText(s.bytesRead), fusion::bytesText(s.bytesWritten), fusion::timeText(s.objective),
        s.strategy == fusion::Strategy::Ilp ? fusion::timeText(s.bound) : "", 1000 * s.seconds);
  }
  return out;
}

nlohmann::ordered_json totalsAsJson(const std::vector<fusion::FormReport>& forms) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const fusion::StrategyReport& s : totals(forms)) {
    list.push_back({{"strategy", toString(s.strategy)},
                    {"launches", s.launches},
                    {"bytesRead", s.bytesRead},
                    {"bytesWritten", s.bytesWritten},
                    {"objective", s.objective},
                    {"seconds", s.seconds}});
    if (s.strategy == fusion::Strategy::Ilp) list.back()["bound"] = s.bound;
  }
  return list;
}

void addCode(fusion::FusionReport& report, const lcu::Program& program, const Pipeline& pipeline,
             const std::string& target) {
  const auto code = pipeline.generateKernels(program, target == "cpu" ? "cpu" : "cuda");
  for (fusion::RegionReport& region : report.regions)
    for (fusion::ClusterReport& cluster : region.clusters)
      if (const auto it = code.find(cluster.kernel); it != code.end()) cluster.code = it->second;
}

/// For each strategy but the chosen one the report with its kernels.
std::vector<fusion::FusionReport> reportsOfOthers(const core::Program& program, const Pipeline& pipeline,
                                                  const RegularCells& shapes, const GlobalSizes& globals,
                                                  const fusion::FusionReport& chosen,
                                                  const std::string& target) {
  std::vector<fusion::FusionReport> reports;
  if (chosen.regions.empty()) return reports;
  for (size_t s = 0; s < chosen.regions[0].strategies.size(); ++s) {
    fusion::GivenSchedule given;
    given.strategy = chosen.regions[0].strategies[s].strategy;
    if (given.strategy == chosen.regions[0].chosen) continue;
    for (const fusion::RegionReport& region : chosen.regions)
      given.clusters.push_back(region.strategies[s].cluster);
    lcu::Program flat = pipeline.flatten(program, shapes);
    reports.push_back(pipeline.fuseAs(given, flat, globals));
    addCode(reports.back(), flat, pipeline, target);
  }
  return reports;
}

}  // namespace

std::optional<Diagnostic> undefinedFunction(const std::vector<FormResult>& forms, const std::string& function,
                                            const Environment& environment) {
  std::set<std::string> defined;
  for (const FormResult& form : forms)
    if (form.kind == FormKind::Definition) defined.insert(form.name);
  if (function.empty() || function == "main" || defined.contains(function)) return std::nullopt;
  std::string hint;
  for (const std::string& name : environment.similarNames(function, false))
    if (defined.contains(name)) hint += fmt::format("{}`{}`", hint.empty() ? "did you mean " : " or ", name);
  constexpr size_t kMostListed = 20;
  if (!hint.empty()) {
    hint += "?";
  } else if (defined.empty()) {
    hint = "it defines none at all; what its forms compute is in `main`";
  } else if (defined.size() <= kMostListed) {
    hint = fmt::format("it defines {}", fmt::join(defined, ", "));
  }
  return Diagnostic{
      Severity::Error, "K0406", {}, fmt::format("the program defines no function `{}`", function), hint, {}};
}

std::vector<FormResult> callsOfFunctions(const std::vector<FormResult>& forms, const std::string& function,
                                         Session& session) {
  std::map<std::string, Span> functions;  // of several definitions the last, which is the one to be called
  for (const FormResult& form : forms) {
    if (form.kind == FormKind::Definition && (function.empty() || form.name == function))
      functions[form.name] = form.span;
  }
  std::vector<FormResult> calls;
  for (const auto& [name, span] : functions) {
    FormResult call =
        session.inspect(std::make_shared<const ast::Exp>(ast::Exp{ast::Name{name}, span}), true);
    call.name = name;
    calls.push_back(std::move(call));
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const FormResult& a, const FormResult& b) { return a.span.begin < b.span.begin; });
  return calls;
}

std::vector<fusion::FormReport> fusionReports(const std::vector<FormResult>& forms,
                                              const FusionRequest& request, const Pipeline& pipeline,
                                              const SourceManager& sources, const MeasuredRuns* runs) {
  std::vector<fusion::FormReport> reports;
  CellSizes foreseen;
  for (const FormResult& form : forms) {
    if (!form.program) continue;
    // What ran was compiled for the values of the globals it reads.
    CellValues values;
    RegularCells shapes;
    const bool ran = runs && runs->byProgram.contains(&*form.program);
    const auto& read = form.program->globals;
    if (ran && std::all_of(read.begin(), read.end(),
                           [&](const core::Global& global) { return runs->cells.contains(global.cell); })) {
      values = [&](uint32_t cell) { return runs->cells.at(cell); };
      shapes = shapesOfCells(*form.program, values);
    }
    lcu::Program program = pipeline.flatten(*form.program, shapes);
    const GlobalSizes globals = values ? sizesOf(program, values) : foreseen.readBy(program);
    fusion::FusionReport report = pipeline.fuse(program, globals);
    foreseen.assign(form.assignments, program);
    if (request.format == FusionFormat::Json || request.format == FusionFormat::Html)
      addCode(report, program, pipeline, request.target);
    std::vector<fusion::FusionReport> others;
    if (request.format == FusionFormat::Html)
      others = reportsOfOthers(*form.program, pipeline, shapes, globals, report, request.target);
    if (ran) addMeasured(report, runs->byProgram.at(&*form.program));
    const auto unwanted = [&](const auto& region) { return !concerns(region, request.function); };
    std::erase_if(report.regions, unwanted);
    for (fusion::FusionReport& other : others) std::erase_if(other.regions, unwanted);
    if (report.regions.empty() && !request.function.empty()) continue;
    reports.push_back({sources.describe(form.span), form.name, std::move(report), std::move(others), {}});
    if (runs)
      if (const auto failed = runs->failed.find(&*form.program); failed != runs->failed.end())
        reports.back().failure = failed->second;
  }
  return reports;
}

/// Whether the objective of some region is not what its kernels are predicted with.
bool countsWithGuesses(const std::vector<fusion::FormReport>& reports) {
  constexpr double kFurther = 2;
  for (const fusion::FormReport& form : reports)
    for (const fusion::RegionReport& region : form.report.regions)
      for (const fusion::StrategyReport& s : region.strategies) {
        double predicted = 0;
        for (const fusion::ClusterReport& cluster : region.clusters) predicted += cluster.microseconds;
        if (s.strategy == region.chosen && s.objective > kFurther * predicted && predicted > 0) return true;
      }
  return false;
}

std::string writtenReports(const std::vector<fusion::FormReport>& reports, const FusionRequest& request,
                           const SourceManager& sources) {
  const auto lookup = [&](Span span) { return sourceLine(span, sources); };
  std::string out;
  switch (request.format) {
    case FusionFormat::Text:
      for (const fusion::FormReport& form : reports) {
        if (!out.empty()) out += '\n';
        out += fmt::format("{}: {}\n", form.place, form.name);
        if (!form.failure.empty()) out += fmt::format("failed when it ran: {}\n", form.failure);
        out += fusion::reportText(form.report, lookup);
      }
      if (std::none_of(reports.begin(), reports.end(),
                       [](const fusion::FormReport& form) { return !form.report.regions.empty(); }))
        out += "no kernels: there is nothing to fuse\n";
      else if (countsWithGuesses(reports))
        out +=
            "\nObjectives, and times of pairs together, count with guessed sizes of what variables hold,\n"
            "as schedules do not depend on it; predicted times and bytes with the sizes that are known.\n";
      if (request.compare) out += totalsAsText(reports);
      break;
    case FusionFormat::Json: {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const fusion::FormReport& form : reports) {
        list.push_back({{"place", form.place},
                        {"name", form.name},
                        {"report", fusion::reportAsJson(form.report, lookup)}});
        if (!form.failure.empty()) list.back()["failure"] = form.failure;
      }
      nlohmann::ordered_json all{{"forms", std::move(list)}};
      if (request.compare) all["strategies"] = totalsAsJson(reports);
      // Names come from the program's text, which is bytes: anything that is no UTF-8 is replaced.
      out = all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
      break;
    }
    case FusionFormat::Dot:
      for (const fusion::FormReport& form : reports) out += fusion::reportDot(form.report, lookup);
      break;
    case FusionFormat::Html:
      out = fusion::reportHtml(request.title, reports, lookup, Graphviz(),
                               request.compare ? totalsAsText(reports) : "");
      break;
  }
  return out;
}

}  // namespace kelpie::driver
