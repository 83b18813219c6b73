#include "driver/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

namespace kelpie::driver {

namespace {

std::map<std::string, const runtime::KernelStatistics*> byName(const runtime::RunStatistics& statistics) {
  std::map<std::string, const runtime::KernelStatistics*> result;
  for (const runtime::KernelStatistics& kernel : statistics.kernels) {
    if (kernel.launches + kernel.empty > 0) result[kernel.name] = &kernel;
  }
  return result;
}

/// A sum over launches.
struct Total {
  double launches = 0, sum = 0;
  void add(double more, double ofLaunches) {
    sum += more;
    launches += ofLaunches;
  }
  double average(double unknown) const { return launches > 0 ? sum / launches : unknown; }
};

/// Sums over the launches of kernels that have a member.
struct MemberTotals {
  Total elements, segments, survivors, target;
};

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

}  // namespace

namespace {

using Json = nlohmann::ordered_json;

Json jsonOf(const std::vector<codegen::CompiledPass>& passes) {
  Json json = Json::array();
  for (const codegen::CompiledPass& p : passes)
    json.push_back({p.registers, p.frameBytes, p.threads, p.blocksAtOnce, p.blocks});
  return json;
}

Json jsonOf(const codegen::DeviceFigures& device) {
  return {{"name", device.name},
          {"architecture", device.architecture},
          {"multiprocessors", device.multiprocessors},
          {"clock", device.clock},
          {"cacheBytes", device.cacheBytes}};
}

Json jsonOf(const codegen::ThunkSample& sample) {
  Json positions = Json::array();
  for (const auto& p : sample.positions)
    positions.push_back({p.number, p.sectors, p.granules, p.blocks, p.fresh, p.visited, p.missed, p.simulated,
                         p.seen, p.pairs, p.met});
  Json divisions = Json::array();
  for (const auto& d : sample.divisions) divisions.push_back({d.number, d.ofLong, d.ofShort});
  Json calls = Json::array();
  for (const auto& c : sample.calls) calls.push_back({c.number, c.depths});
  return {{"entered", sample.entered},
          {"inStep", sample.inStep},
          {"positions", std::move(positions)},
          {"divisions", std::move(divisions)},
          {"calls", std::move(calls)},
          {"slowest", sample.slowest},
          {"ofFour", sample.ofFour}};
}

codegen::ThunkSample sampleOf(const Json& json) {
  codegen::ThunkSample sample;
  sample.entered = json.at("entered").get<std::vector<double>>();
  sample.inStep = json.at("inStep").get<std::vector<double>>();
  for (const Json& p : json.at("positions")) {
    const auto at = [&p](size_t k) { return k < p.size() ? p.at(k).get<double>() : 0; };  // of before: fewer
    sample.positions.push_back(
        {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), at(10)});
  }
  for (const Json& d : json.value("divisions", Json::array()))
    sample.divisions.push_back({d.at(0), d.at(1), d.at(2)});
  sample.slowest = json.value("slowest", std::vector<double>());
  sample.ofFour = json.value("ofFour", std::vector<double>());
  for (const Json& c : json.value("calls", Json::array())) sample.calls.push_back({c.at(0), c.at(1)});
  return sample;
}

}  // namespace

/// Gathers the kernels of a profile as the file has them.
class Profile::Sizes {
 public:
  void add(const Json& kernel) {
    if (!kernel.is_object()) throw std::runtime_error("a kernel is no object of JSON");
    const auto amount = [](const Json& number) {
      if (number < 0) throw std::runtime_error("a size is negative");
      return number.get<double>();
    };
    const double launches = kernel.at("launches");
    const std::string form = formKey(kernel.at("place"));
    if (!(launches > 0)) {  // a kernel that never had an element, not one of a branch that was not taken
      if (kernel.value("empty", 0) == 0) return;
      for (const std::string member : kernel.at("members")) {
        members_[form][member].elements.add(0, 1);
        members_[form][member].segments.add(0, 1);
      }
      return;
    }
    for (auto* totals : {&members_[form], &members_[""]}) {
      for (const std::string member : kernel.at("members")) {
        (*totals)[member].elements.add(amount(kernel.at("elements")), launches);
        (*totals)[member].segments.add(amount(kernel.at("segments")), launches);
      }
      for (const Json& filter : kernel.at("filters"))
        (*totals)[filter.at("member")].survivors.add(amount(filter.at("survivors")), launches);
      for (const Json& permute : kernel.at("permutes"))
        (*totals)[permute.at("member")].target.add(amount(permute.at("target")), launches);
    }
    const std::string identity = kernel.value("identity", kernel.at("kernel"));  // files of before: the name
    if (kernel.contains("passes")) {
      std::vector<double>& threads = threads_[form][identity];
      for (const Json& pass : kernel.at("passes"))
        threads.push_back(pass.at(2).get<double>() * pass.at(3).get<double>());
    }
    if (kernel.contains("sample")) samples_[form][identity] = sampleOf(kernel.at("sample"));
    if (kernel.at("evaluated") != launches) return;
    std::vector<double>& entered = entered_[form][identity];
    for (const Json& sum : kernel.at("entered")) entered.push_back(sum.get<double>() / launches);
  }

  SizesByForm averages() const {
    SizesByForm result;
    for (const auto& [form, members] : members_) {
      for (const auto& [name, totals] : members) {
        result[form].kernels[name] = {totals.elements.average(-1), totals.segments.average(-1),
                                      totals.survivors.average(-1), totals.target.average(-1)};
      }
    }
    for (const auto& [form, entered] : entered_) result[form].entered = entered;
    for (const auto& [form, threads] : threads_) result[form].threads = threads;
    for (const auto& [form, samples] : samples_) result[form].samples = samples;
    return result;
  }

 private:
  std::map<std::string, std::map<std::string, MemberTotals>> members_;  ///< by form and name
  std::map<std::string, std::unordered_map<std::string, std::vector<double>>> entered_;
  std::map<std::string, std::unordered_map<std::string, std::vector<double>>> threads_;
  std::map<std::string, std::unordered_map<std::string, codegen::ThunkSample>> samples_;
};

void Profile::addLine(Entry& entry, Span span) const {
  if (!lookup_ || !span.known()) return;
  fusion::SourceLine line = lookup_(span);
  line.text = trimmed(line.text);
  const bool known = std::any_of(
      entry.lines.begin(), entry.lines.end(),
      [&](const fusion::SourceLine& other) { return other.line == line.line && other.text == line.text; });
  if (!known) entry.lines.push_back(std::move(line));
}

void Profile::add(const std::string& form, const std::string& place, const fusion::FusionReport& report,
                  const runtime::RunStatistics& statistics) {
  total_.launches += statistics.launches;
  total_.fetches += statistics.fetches;
  total_.synchronisations += statistics.synchronisations;
  total_.services += statistics.services;
  total_.uploadedBytes += statistics.uploadedBytes;
  total_.downloadedBytes += statistics.downloadedBytes;
  total_.peakBytes = std::max(total_.peakBytes, statistics.peakBytes);
  total_.seconds += statistics.seconds;
  auto measured = byName(statistics);
  for (const fusion::RegionReport& region : report.regions) {
    for (const fusion::ClusterReport& cluster : region.clusters) {
      const auto it = measured.find(cluster.kernel);
      if (it == measured.end()) continue;
      Entry& entry = entries_.emplace_back();
      entry.form = form;
      entry.place = place;
      entry.region = region.function;
      entry.kernel = cluster.kernel;
      entry.identity = cluster.identity;
      entry.members = cluster.anchored;
      entry.filters = cluster.filters;
      entry.permutes = cluster.permutes;
      entry.statistics = *it->second;
      for (int v : cluster.nodes) addLine(entry, region.nodes[v].span);
      measured.erase(it);
    }
  }
  for (const auto& [name, kernel] : measured) {  // sorts
    Entry& entry = entries_.emplace_back();
    entry.form = form;
    entry.place = place;
    entry.kernel = entry.identity = name;
    entry.statistics = *kernel;
    addLine(entry, kernel->span);
  }
}

SizesByForm Profile::sizes() const {
  Sizes sizes;
  for (const Entry& entry : entries_) sizes.add(jsonOf(entry));
  return sizes.averages();
}

void Profile::addSamples(const SizesByForm& sizes) {
  for (Entry& entry : entries_) {
    const auto form = sizes.find(formKey(entry.place));
    if (form == sizes.end()) continue;
    const auto sample = form->second.samples.find(entry.identity);
    if (sample != form->second.samples.end()) entry.statistics.sample = sample->second;
  }
}

Profile::Json Profile::jsonOf(const Entry& entry) {
  const runtime::KernelStatistics& s = entry.statistics;
  Json lines = Json::array(), filters = Json::array(), permutes = Json::array();
  for (const fusion::SourceLine& line : entry.lines)
    lines.push_back({{"place", line.place}, {"line", line.line}, {"text", line.text}});
  for (size_t k = 0; k < std::min(entry.filters.size(), s.work.survivors.size()); ++k)
    filters.push_back({{"member", entry.filters[k]}, {"survivors", s.work.survivors[k]}});
  for (size_t k = 0; k < std::min(entry.permutes.size(), s.targets.size()); ++k)
    permutes.push_back({{"member", entry.permutes[k]}, {"target", s.targets[k]}});
  Json kernel{{"form", entry.form},
              {"place", entry.place},
              {"region", entry.region},
              {"kernel", entry.kernel},
              {"identity", entry.identity},
              {"members", entry.members},
              {"lines", std::move(lines)},
              {"launches", s.launches},
              {"empty", s.empty},
              {"evaluated", s.evaluated},
              {"elements", s.elements},
              {"segments", s.segments},
              {"microseconds", 1e6 * s.seconds},
              {"bytesRead", s.work.bytesRead},
              {"bytesWritten", s.work.bytesWritten},
              {"filters", std::move(filters)},
              {"permutes", std::move(permutes)},
              {"entered", s.work.entered}};
  if (!s.passes.empty()) kernel["passes"] = driver::jsonOf(s.passes);
  if (!s.sample.empty()) kernel["sample"] = driver::jsonOf(s.sample);
  return kernel;
}

std::string Profile::toJson(const Machine& machine) const {
  Json kernels = Json::array();
  for (const Entry& entry : entries_) kernels.push_back(jsonOf(entry));
  return Json{{"kelpieProfile", 3},
              {"target", machine.target},
              {"device", driver::jsonOf(machine.device)},
              {"copyBytesPerSecond", machine.copyBandwidth},
              {"microseconds", 1e6 * total_.seconds},
              {"launches", total_.launches},
              {"synchronisations", total_.synchronisations},
              {"fetches", total_.fetches},
              {"services", total_.services},
              {"uploadedBytes", total_.uploadedBytes},
              {"downloadedBytes", total_.downloadedBytes},
              {"peakBytes", total_.peakBytes},
              {"kernels", std::move(kernels)}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

bool Profile::samePlaces(const Entry& a, const Entry& b) {
  return std::equal(
      a.lines.begin(), a.lines.end(), b.lines.begin(), b.lines.end(),
      [](const fusion::SourceLine& x, const fusion::SourceLine& y) { return x.place == y.place; });
}

std::string Profile::toText(const Machine& machine) const {
  std::vector<Entry> rows;
  for (const Entry& entry : entries_) {
    if (entry.statistics.launches == 0) continue;
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Entry& other) {
      return other.kernel == entry.kernel && other.region == entry.region && samePlaces(other, entry);
    });
    if (row == rows.end()) {
      rows.push_back(entry);
      continue;
    }
    runtime::KernelStatistics& sum = row->statistics;
    sum.launches += entry.statistics.launches;
    sum.evaluated += entry.statistics.evaluated;
    sum.seconds += entry.statistics.seconds;
    sum.work.bytesRead += entry.statistics.work.bytesRead;
    sum.work.bytesWritten += entry.statistics.work.bytesWritten;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Entry& a, const Entry& b) {
    return a.statistics.seconds > b.statistics.seconds;
  });
  double inKernels = 0;
  bool anyEvaluated = false;
  for (const Entry& row : rows) {
    inKernels += row.statistics.seconds;
    anyEvaluated |= row.statistics.evaluated > 0 && machine.target != "interp";
  }
  std::string out =
      fmt::format("profile on {}: {} launches took {:.3f} ms of {:.3f} ms, with {} waits for the device\n",
                  machine.target, total_.launches, 1e3 * inKernels, 1e3 * total_.seconds,
                  total_.synchronisations) +
      fmt::format(
          "{:.3f} MB up, {:.3f} MB down, {:.3f} MB at the peak{}\n",
          static_cast<double>(total_.uploadedBytes) / 1e6, static_cast<double>(total_.downloadedBytes) / 1e6,
          static_cast<double>(total_.peakBytes) / 1e6,
          machine.copyBandwidth > 0 ? fmt::format("; a copy runs at {:.1f} GB/s", machine.copyBandwidth / 1e9)
                                    : "");
  if (rows.empty()) return out;
  out += fmt::format("{:>11} {:>7} {:>9} {:>12} {:>12} {:>8}  {}\n", "ms", "share", "launches", "MB read",
                     "MB written", "of copy", "kernel, and the lines it comes from");
  for (const Entry& row : rows) {
    const runtime::KernelStatistics& s = row.statistics;
    const auto read = static_cast<double>(s.work.bytesRead),
               written = static_cast<double>(s.work.bytesWritten);
    out += fmt::format(
        "{:>11.3f} {:>6.1f}% {:>9} {:>12.3f} {:>12.3f} {:>8}  {}{}\n", 1e3 * s.seconds,
        share(s.seconds, inKernels), s.launches, read / 1e6, written / 1e6,
        machine.copyBandwidth > 0 && s.seconds > 0
            ? fmt::format("{:.1f}%", share((read + written) / s.seconds, machine.copyBandwidth))
            : "",
        row.kernel, anyEvaluated && s.evaluated > 0 ? fmt::format(" ({} evaluated)", s.evaluated) : "");
    constexpr size_t kLinesShown = 8;
    for (size_t k = 0; k < std::min(kLinesShown, row.lines.size()); ++k)
      out += fmt::format("{:>13}{} | {}\n", "", row.lines[k].place, row.lines[k].text.substr(0, 64));
    if (row.lines.size() > kLinesShown)
      out += fmt::format("{:>13}and {} more lines\n", "", row.lines.size() - kLinesShown);
  }
  return out;
}

bool Profile::read(const std::string& path, SizesByForm& sizes, codegen::DeviceFigures& device,
                   std::string& problem) {
  std::ifstream file(path);
  std::error_code none;
  if (!file || std::filesystem::is_directory(path, none)) {
    problem = "cannot read it";
    return false;
  }
  try {
    const Json json = Json::parse(file, nullptr, false);
    if (json.is_discarded()) throw std::runtime_error("it is not JSON");
    if (!json.is_object()) throw std::runtime_error("it is no object of JSON");
    if (json.at("kelpieProfile") != 3) throw std::runtime_error("another version of profiles");
    Sizes found;
    for (const Json& kernel : json.at("kernels")) found.add(kernel);
    sizes = found.averages();
    if (json.contains("device")) {
      const Json& d = json.at("device");
      device = {d.at("name"),  d.at("architecture"),          d.at("multiprocessors"),
                d.at("clock"), json.at("copyBytesPerSecond"), d.at("cacheBytes")};
    }
    return true;
  } catch (const Json::exception& error) {
    const std::string text = error.what();  // "[json.exception.out_of_range.403] key 'kernels' not found"
    problem = "not a profile: " + text.substr(std::min(text.size(), text.find("] ") + 2));
    return false;
  } catch (const std::exception& error) {
    problem = fmt::format("not a profile: {}", error.what());
    return false;
  }
}

void addMeasured(fusion::FusionReport& report, const runtime::RunStatistics& statistics) {
  const auto measured = byName(statistics);
  for (fusion::RegionReport& region : report.regions) {
    for (fusion::ClusterReport& cluster : region.clusters) {
      cluster.measured.ran = !cluster.kernel.empty();
      const auto it = measured.find(cluster.kernel);
      if (it == measured.end() || it->second->launches == 0) continue;
      const runtime::KernelStatistics& kernel = *it->second;
      const auto launches = static_cast<double>(kernel.launches);
      cluster.measured.launches = kernel.launches;
      cluster.measured.elements = kernel.elements;
      cluster.measured.evaluated = kernel.evaluated;
      if (2 * kernel.evaluated > kernel.launches && cluster.evaluated > 0)
        cluster.microseconds = cluster.evaluated;
      cluster.measured.microseconds = 1e6 * kernel.seconds / launches;
      cluster.measured.bytesRead = static_cast<double>(kernel.work.bytesRead) / launches;
      cluster.measured.bytesWritten = static_cast<double>(kernel.work.bytesWritten) / launches;
    }
  }
}

}  // namespace kelpie::driver
