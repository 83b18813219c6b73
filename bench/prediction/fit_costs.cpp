// Fits the constants of the cost model (fusion/cost_constants.h) to kernels that were measured on a GPU, and
// tells what a fit is worth for programs it has not seen.
//
//   fit_costs [--rounds N] [--folds K] [--least MICROSECONDS] [--homesick WEIGHT] [--costs FILE] [--write
//   FILE] PROGRAM.nesl ...
//
// Beside each program lies PROGRAM.prof, which `kelpie fusion --run --target=cuda --profile=FILE` wrote for
// this very text (the folder may be another one). Each program is compiled once, with the sizes and samples
// of its profile; then the model itself is asked, kernel by kernel, with any constants. With 0 rounds nothing
// is fitted: the table is that of the model as it is, or with the constants of --costs.
//
// What is made least is the sum over kernels of a bounded square of log(predicted / measured), and of how far
// the constants are from where they began. Kernels of one program share its weight, as they resemble each
// other. With K folds, K more fits leave a part of the programs out each and are tried on these.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "driver/cell_sizes.h"
#include "driver/costs_file.h"
#include "driver/pipeline.h"
#include "frontend/session.h"
#include "fusion/device_costs.h"
#include "ir/deep_stack.h"

namespace kelpie {
namespace {

using fusion::NamedCost;
using fusion::TargetCosts;

struct MeasuredKernel {
  size_t program;
  std::string name;
  double microseconds;  ///< of a launch
  std::function<double(const TargetCosts&)> time;
  std::set<const NamedCost*> concerns = {};  ///< found before anything is fitted
};

struct MeasuredPrograms {
  std::vector<std::string> names;
  std::vector<lcu::Program> flat;  ///< what the kernels are of
  std::vector<MeasuredKernel> kernels;
};

/// The constants that have to do with a kernel's time, as they are or where they are greater or less by half.
std::set<const NamedCost*> concernsOf(const std::function<double(const TargetCosts&)>& time,
                                      const TargetCosts& costs) {
  std::set<const NamedCost*> concerns;
  const double before = time(costs);
  for (const NamedCost& cost : fusion::namedCosts()) {
    for (const double factor : {0.67, 1.5}) {
      TargetCosts other = costs;
      other.*cost.value *= factor;
      if (std::abs(time(other) / before - 1) > 1e-4) concerns.insert(&cost);
    }
  }
  return concerns;
}

/// "FILE:LINE:COLUMN" of the same place of another file.
std::string moved(const std::string& place, const std::string& file) {
  const size_t column = place.rfind(':');
  return place.empty() ? place : file + place.substr(place.rfind(':', column - 1));
}

/// By place and name.
std::map<std::pair<std::string, std::string>, double> timesOf(const std::string& profile,
                                                              const std::string& file) {
  std::map<std::pair<std::string, std::string>, double> times;
  std::ifstream text(profile);
  const auto json = nlohmann::json::parse(text);
  for (const auto& kernel : json.at("kernels"))
    if (kernel.at("launches") > 0)
      times[{moved(kernel.at("place"), file), kernel.at("kernel")}] =
          kernel.at("microseconds").get<double>() / kernel.at("launches").get<double>();
  return times;
}

bool addProgram(const std::string& file, double least, const TargetCosts& costs,
                std::deque<SourceManager>& allSources, MeasuredPrograms& all) {
  SourceManager& sources = allSources.emplace_back();
  const std::filesystem::path profile = std::filesystem::path(file).replace_extension("prof");
  std::string problem;
  const std::optional<uint32_t> text = sources.load(file, problem);
  driver::PipelineOptions passes;
  driver::SizesByForm sizes;
  codegen::DeviceFigures device;
  if (!text || !driver::Profile::read(profile, sizes, device, problem)) {
    fmt::print(stderr, "{}: {}\n", file, problem);
    return false;
  }
  for (auto& [place, known] : sizes) passes.known[driver::formKey(moved(place, file))] = std::move(known);
  passes.fusion.costs = costs;
  passes.fusion.remodel = true;
  const driver::Pipeline pipeline(sources, passes);
  const auto times = timesOf(profile, file);
  Session session(sources, {Widths(), ""});
  all.names.push_back(std::filesystem::path(file).stem());
  std::set<std::pair<std::string, std::string>> found;
  driver::CellSizes foreseen;
  for (const FormResult& form : pipeline.analyse(session, *text)) {
    if (!form.program) continue;
    const auto program = std::make_shared<lcu::Program>(pipeline.flatten(*form.program));
    const fusion::FusionReport report = pipeline.fuse(*program, foreseen.readBy(*program));
    foreseen.assign(form.assignments, *program);
    for (const fusion::RegionReport& region : report.regions) {
      for (const fusion::ClusterReport& cluster : region.clusters) {
        const auto time = times.find({sources.describe(form.program->span), cluster.kernel});
        if (time == times.end() || !found.insert(time->first).second) continue;
        if (time->second < least) continue;
        all.kernels.push_back({all.names.size() - 1, cluster.kernel, time->second,
                               [program, device, with = cluster.timeWith](const TargetCosts& other) {
                                 return with(fusion::costsOn(device, other));
                               }});
      }
    }
  }
  for (const auto& [place, time] : times)
    if (time >= least && !found.contains(place) && place.second != "grade")
      fmt::print(stderr, "{}: no kernel {} any more, {:.0f} us\n", all.names.back(), place.second, time);
  return true;
}

/// Numbers from 0 to 1 are moved on the scale of their odds, others on that of their logarithm.
bool isShare(const NamedCost& cost) { return cost.name.ends_with("verlap") && cost.name != "passes"; }
double moveOf(const NamedCost& cost, double value, double by) {
  if (!isShare(cost)) return value * std::exp(by);
  const double odds = value / (1 - value) * std::exp(by);
  return odds / (1 + odds);
}

class Fit {
 public:
  /// `homesick`: weight of a constant's way from where it began.
  Fit(const std::vector<MeasuredKernel>& kernels, const std::vector<bool>& seen, const TargetCosts& start,
      double homesick)
      : start_(start), homesick_(homesick) {
    std::map<size_t, double> ofProgram;
    for (const MeasuredKernel& kernel : kernels)
      if (seen[kernel.program]) {
        kernels_.push_back(&kernel);
        ofProgram[kernel.program] += 1;
      }
    for (const MeasuredKernel* kernel : kernels_)
      weights_.push_back((kernel->microseconds >= 1000 ? 2 : 1) / std::sqrt(ofProgram[kernel->program]));
    for (const NamedCost& cost : fusion::namedCosts()) {
      const double value = start.*cost.value;
      if (value > 0 && !(isShare(cost) && value >= 1) && !kFixed.contains(cost.name)) costs.push_back(&cost);
    }
    moved_.assign(costs.size(), 0);
  }

  TargetCosts run(int rounds) {
    double loss = lossAt(moved_), damping = 0.1;
    for (int round = 0; round < rounds; ++round) {
      const std::vector<double> step = this->step(damping);
      std::vector<double> next = moved_;
      for (size_t k = 0; k < step.size(); ++k) next[k] += std::clamp(step[k], -kMostStep, kMostStep);
      const double there = lossAt(next);
      if (there < loss) {
        const bool settled = loss - there < 1e-4 * loss;
        loss = there;
        moved_ = next;
        damping /= 3;
        if (settled) break;
      } else {
        damping *= 4;
        if (damping > 1e3) break;
      }
    }
    return at(moved_);
  }

 private:
  static constexpr double kMostStep = 0.3;  ///< of a logarithm, in one round
  static constexpr double kBounded = 0.35;  ///< errors beyond count less and less
  /// What decides where other constants count.
  inline static const std::set<std::string_view> kFixed = {"launch", "passes", "collectiveBudget"};

  TargetCosts at(const std::vector<double>& moved) const {
    TargetCosts result = start_;
    for (size_t k = 0; k < costs.size(); ++k)
      result.*costs[k]->value = moveOf(*costs[k], start_.*costs[k]->value, moved[k]);
    return result;
  }
  std::vector<double> errorsAt(const std::vector<double>& moved) const {
    const TargetCosts costs = at(moved);
    std::vector<double> errors;
    for (const MeasuredKernel* kernel : kernels_)
      errors.push_back(std::log(kernel->time(costs) / kernel->microseconds));
    return errors;
  }
  double lossAt(const std::vector<double>& moved) const {
    const std::vector<double> errors = errorsAt(moved);
    double loss = 0;
    for (size_t k = 0; k < errors.size(); ++k)
      loss += weights_[k] * kBounded * kBounded * std::log1p(errors[k] * errors[k] / kBounded / kBounded);
    for (double m : moved) loss += homesick_ * m * m;
    return loss;
  }
  /// Of Gauss and Newton, with errors weighted by how they are bounded.
  std::vector<double> step(double damping) const {
    constexpr double kDifference = 0.01;
    const size_t n = costs.size();
    const std::vector<double> errors = errorsAt(moved_);
    std::vector<std::vector<double>> slopes;
    for (size_t k = 0; k < n; ++k) {
      std::vector<double> there = moved_;
      there[k] += kDifference;
      const TargetCosts with = at(there);
      std::vector<double>& slope = slopes.emplace_back(errors.size(), 0);
      for (size_t e = 0; e < errors.size(); ++e) {
        const MeasuredKernel& kernel = *kernels_[e];
        if (!kernel.concerns.contains(costs[k])) continue;
        slope[e] = (std::log(kernel.time(with) / kernel.microseconds) - errors[e]) / kDifference;
      }
    }
    std::vector<std::vector<double>> a(n, std::vector<double>(n + 1, 0));
    for (size_t i = 0; i < n; ++i) {
      for (size_t e = 0; e < errors.size(); ++e) {
        const double weight = weights_[e] / (1 + errors[e] * errors[e] / kBounded / kBounded) * slopes[i][e];
        for (size_t j = 0; j < n; ++j) a[i][j] += weight * slopes[j][e];
        a[i][n] -= weight * errors[e];
      }
      a[i][n] -= homesick_ * moved_[i];
      a[i][i] += homesick_ + damping;
    }
    return solved(std::move(a));
  }
  /// A positive definite system with its right side as last column.
  static std::vector<double> solved(std::vector<std::vector<double>> a) {
    const size_t n = a.size();
    for (size_t i = 0; i < n; ++i)
      for (size_t j = i + 1; j < n; ++j) {
        const double factor = a[j][i] / a[i][i];
        for (size_t k = i; k <= n; ++k) a[j][k] -= factor * a[i][k];
      }
    std::vector<double> x(n);
    for (size_t i = n; i-- > 0;) {
      double rest = a[i][n];
      for (size_t k = i + 1; k < n; ++k) rest -= a[i][k] * x[k];
      x[i] = rest / a[i][i];
    }
    return x;
  }

  std::vector<const NamedCost*> costs;  ///< that are moved
  TargetCosts start_;
  double homesick_;
  std::vector<const MeasuredKernel*> kernels_;
  std::vector<double> weights_;
  std::vector<double> moved_;
};

constexpr double kWithin = 0.25, kLong = 1000;

bool good(const MeasuredKernel& kernel, double predicted) {
  return std::abs(predicted / kernel.microseconds - 1) <= kWithin;
}

struct Score {
  int all = 0, ofAll = 0, longOnes = 0, ofLong = 0;
  double squares = 0;  ///< of logarithms
  void add(const MeasuredKernel& kernel, double predicted) {
    const bool inside = good(kernel, predicted);
    const double error = std::log(predicted / kernel.microseconds);
    squares += error * error;
    ++ofAll;
    all += inside;
    if (kernel.microseconds < kLong) return;
    ++ofLong;
    longOnes += inside;
  }
  std::string text() const {
    return fmt::format("{} of {} within 25 %, {} of {} of 1 ms or more; logarithms are {:.3f} off (r.m.s.)",
                       all, ofAll, longOnes, ofLong, std::sqrt(squares / std::max(1, ofAll)));
  }
};

void table(const MeasuredPrograms& all, const TargetCosts& costs) {
  for (const MeasuredKernel& kernel : all.kernels) {
    const double predicted = kernel.time(costs);
    std::string shares;
    for (const fusion::CostShare& share : fusion::sharesOfCosts(costs, kernel.time))
      if (share.share >= 0.08) shares += fmt::format(" {} {:.0f}", share.cost->name, 100 * share.share);
    fmt::print("{:20} {:40} {:9.3f} {:9.3f} {:6.2f} {} {}\n", all.names[kernel.program].substr(0, 20),
               kernel.name.substr(0, 40), predicted / 1000, kernel.microseconds / 1000,
               predicted / kernel.microseconds, good(kernel, predicted) ? " " : "*", shares);
  }
}

int fit(int argc, char** argv) {
  int rounds = 0, folds = 0;
  double least = 200, homesick = 0.15;
  std::string write;
  TargetCosts costs = fusion::cudaCosts();
  costs.shortOffsets = true;
  std::vector<std::string> files;
  std::string costsFile;
  CLI::App app("Fits the constants of the cost model to measured kernels", "fit_costs");
  app.add_option("--rounds", rounds, "Of fitting; 0 (default): none");
  app.add_option("--folds", folds, "Parts of the programs that fits leave out");
  app.add_option("--least", least, "Microseconds that a kernel has to take; default: 200");
  app.add_option("--homesick", homesick, "Weight of a constant's way from where it began; default: 0.15");
  app.add_option("--costs", costsFile, "Constants to begin with");
  app.add_option("--write", write, "Where to write the constants that have changed");
  app.add_option("PROGRAM", files, "Programs beside their profiles")->required();
  CLI11_PARSE(app, argc, argv);
  driver::Costs read;
  std::string problem;
  if (!costsFile.empty() && !driver::readCosts(costsFile, read, problem)) {
    fmt::print(stderr, "{}: {}\n", costsFile, problem);
    return 2;
  }
  for (const auto& [cost, number] : read) costs.*cost->value = number;
  MeasuredPrograms all;
  std::deque<SourceManager> sources;
  for (const std::string& file : files)
    if (!addProgram(file, least, costs, sources, all)) return 1;

  if (rounds > 0)
    for (MeasuredKernel& kernel : all.kernels) kernel.concerns = concernsOf(kernel.time, costs);
  const auto scoreOf = [&](const TargetCosts& with, const std::vector<bool>& which) {
    Score score;
    for (const MeasuredKernel& kernel : all.kernels)
      if (which[kernel.program]) score.add(kernel, kernel.time(with));
    return score;
  };
  const std::vector<bool> every(all.names.size(), true);
  TargetCosts fitted = costs;
  if (rounds > 0) fitted = Fit(all.kernels, every, costs, homesick).run(rounds);
  table(all, fitted);
  fmt::print("as it is: {}\n", scoreOf(costs, every).text());
  if (rounds > 0) fmt::print("fitted:   {}\n", scoreOf(fitted, every).text());
  Score unseen;
  for (int fold = 0; fold < folds; ++fold) {
    std::vector<bool> seen = every;
    for (size_t p = 0; p < seen.size(); ++p)
      seen[p] = static_cast<int>(p * 7 % static_cast<size_t>(folds)) != fold;
    const TargetCosts others = Fit(all.kernels, seen, costs, homesick).run(rounds);
    for (const MeasuredKernel& kernel : all.kernels)
      if (!seen[kernel.program]) unseen.add(kernel, kernel.time(others));
  }
  if (folds > 0) fmt::print("unseen:   {}\n", unseen.text());
  nlohmann::ordered_json json;
  for (const NamedCost& cost : fusion::namedCosts()) {
    const double before = costs.*cost.value, after = fitted.*cost.value;
    if (before == after) continue;
    json[std::string(cost.name)] = std::stod(fmt::format("{:.3g}", after));
    fmt::print("{:20} {:9.3g} {:9.3g}  {:.2f}\n", cost.name, before, after, after / before);
  }
  if (!write.empty()) std::ofstream(write) << json.dump(2) << "\n";
  return 0;
}

}  // namespace
}  // namespace kelpie

int main(int argc, char** argv) {
  int status = 1;
  kelpie::runOnDeepStack([&] { status = kelpie::fit(argc, argv); });
  return status;
}
