#include "driver/profile.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace kelpie::driver {

using fusion::KernelSizes;

namespace {

using Json = nlohmann::ordered_json;

std::map<std::string, const runtime::KernelStatistics*> byName(const runtime::RunStatistics& statistics) {
  std::map<std::string, const runtime::KernelStatistics*> result;
  for (const runtime::KernelStatistics& kernel : statistics.kernels) {
    if (kernel.launches > 0) result[kernel.name] = &kernel;
  }
  return result;
}

/// Sums over the launches of kernels that have members of the same name.
struct Total {
  double launches = 0, elements = 0, segments = 0, survivors = 0;
  bool counted = false;  ///< the survivors
};

std::unordered_map<std::string, KernelSizes> averages(const std::map<std::string, Total>& totals) {
  std::unordered_map<std::string, KernelSizes> sizes;
  for (const auto& [name, total] : totals) {
    sizes[name] = {total.elements / total.launches, total.segments / total.launches,
                   total.counted ? total.survivors / total.launches : -1};
  }
  return sizes;
}

}  // namespace

void Profile::add(const std::string& form, const fusion::FusionReport& report,
                  const runtime::RunStatistics& statistics) {
  const auto measured = byName(statistics);
  for (const fusion::RegionReport& region : report.regions) {
    for (const fusion::ClusterReport& cluster : region.clusters) {
      const auto it = measured.find(cluster.kernel);
      if (it != measured.end())
        entries_.push_back({form, region.function, cluster.kernel, cluster.anchored, *it->second});
    }
  }
}

std::unordered_map<std::string, KernelSizes> Profile::sizes() const {
  std::map<std::string, Total> totals;
  for (const Entry& entry : entries_) {
    for (const std::string& member : entry.members) {
      Total& total = totals[member];
      total.launches += static_cast<double>(entry.statistics.launches);
      total.elements += static_cast<double>(entry.statistics.elements);
      total.segments += static_cast<double>(entry.statistics.segments);
      total.survivors += static_cast<double>(entry.statistics.work.survivors);
      total.counted = entry.statistics.work.elements > 0;
    }
  }
  return averages(totals);
}

std::string Profile::toJson() const {
  Json kernels = Json::array();
  for (const Entry& entry : entries_) {
    kernels.push_back({{"form", entry.form},
                       {"region", entry.region},
                       {"kernel", entry.kernel},
                       {"members", entry.members},
                       {"launches", entry.statistics.launches},
                       {"elements", entry.statistics.elements},
                       {"segments", entry.statistics.segments},
                       {"microseconds", 1e6 * entry.statistics.seconds}});
    // Only interp counts survivors (and bytes).
    if (entry.statistics.work.elements > 0) kernels.back()["survivors"] = entry.statistics.work.survivors;
  }
  return Json{{"kelpieProfile", 1}, {"kernels", std::move(kernels)}}.dump(2, ' ', false,
                                                                          Json::error_handler_t::replace) +
         "\n";
}

bool Profile::read(const std::string& path, std::unordered_map<std::string, KernelSizes>& sizes,
                   std::string& problem) {
  std::ifstream file(path);
  if (!file) {
    problem = "cannot read it";
    return false;
  }
  try {
    const Json json = Json::parse(file);
    if (json.at("kelpieProfile") != 1) throw std::runtime_error("another version of profiles");
    std::map<std::string, Total> totals;
    for (const Json& kernel : json.at("kernels")) {
      const auto launches = kernel.at("launches").get<double>();
      if (!(launches > 0)) continue;
      for (const Json& member : kernel.at("members")) {
        Total& total = totals[member.get<std::string>()];
        total.launches += launches;
        total.elements += kernel.at("elements").get<double>();
        total.segments += kernel.at("segments").get<double>();
        total.counted = kernel.contains("survivors");
        if (total.counted) total.survivors += kernel.at("survivors").get<double>();
      }
    }
    sizes = averages(totals);
    return true;
  } catch (const std::exception& error) {
    problem = fmt::format("not a profile: {}", error.what());
    return false;
  }
}

void addMeasured(fusion::FusionReport& report, const runtime::RunStatistics& statistics, bool countsBytes) {
  const auto measured = byName(statistics);
  for (fusion::RegionReport& region : report.regions) {
    for (fusion::ClusterReport& cluster : region.clusters) {
      const auto it = measured.find(cluster.kernel);
      if (it == measured.end()) continue;
      const runtime::KernelStatistics& kernel = *it->second;
      const auto launches = static_cast<double>(kernel.launches);
      cluster.measured.launches = kernel.launches;
      cluster.measured.elements = kernel.elements;
      cluster.measured.microseconds = 1e6 * kernel.seconds / launches;
      if (!countsBytes) continue;
      cluster.measured.bytesRead = static_cast<double>(kernel.work.bytesRead) / launches;
      cluster.measured.bytesWritten = static_cast<double>(kernel.work.bytesWritten) / launches;
    }
  }
}

}  // namespace kelpie::driver
