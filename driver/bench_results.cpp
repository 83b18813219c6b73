#include "driver/bench_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace kelpie::driver {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

/// One line of at most 48 characters.
std::string shortened(std::string text) {
  constexpr size_t kWidth = 48;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.size() <= kWidth ? text : text.substr(0, kWidth - 3) + "...";
}

/// What stands before a result in a table: the data set, or the entry where there is none, or both.
std::string label(const std::string& entry, const std::string& data, bool severalEntries) {
  if (data.empty()) return shortened(entry);
  return severalEntries ? shortened(entry + ": " + data) : shortened(data);
}

/// Whether results are of more than one function.
bool severalEntries(const std::vector<BenchResult>& results) {
  return std::any_of(results.begin(), results.end(),
                     [&](const BenchResult& r) { return r.entry != results.front().entry; });
}

/// The width of a column of labels: that of the widest one.
size_t widthOf(const std::vector<BenchResult>& results) {
  size_t width = 4;
  for (const BenchResult& r : results)
    width = std::max(width, label(r.entry, r.data, severalEntries(results)).size());
  return width;
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.{}f}", 1e3 * seconds, seconds < 1e-3 ? 4 : 3);
}

Json toJson(const BenchResult& r) {
  Json times = Json::array();
  for (double seconds : r.time.seconds) times.push_back(1e6 * seconds);
  return {{"entry", r.entry},
          {"data", r.data},
          {"median", 1e6 * r.time.median},
          {"low", 1e6 * r.time.low},
          {"high", 1e6 * r.time.high},
          {"microseconds", std::move(times)},
          {"waitedMicroseconds", 1e6 * r.statistics.waitedSeconds},
          {"bytes", r.bytes},
          {"launches", r.statistics.launches},
          {"synchronisations", r.statistics.synchronisations},
          {"services", r.statistics.services},
          {"uploadedBytes", r.statistics.uploadedBytes},
          {"downloadedBytes", r.statistics.downloadedBytes},
          {"allocations", r.statistics.allocations},
          {"peakBytes", r.statistics.peakBytes}};
}

BenchResult fromJson(const Json& json) {
  BenchResult r;
  r.entry = json.at("entry");
  r.data = json.at("data");
  for (const Json& time : json.at("microseconds")) r.time.seconds.push_back(1e-6 * time.get<double>());
  if (r.time.seconds.empty()) throw std::runtime_error("a result without runs");
  r.time = summarise(std::move(r.time.seconds));
  r.bytes = json.at("bytes");
  return r;
}

const BenchResult* find(const BenchResults& results, const BenchResult& like) {
  for (const BenchResult& r : results.results)
    if (r.entry == like.entry && r.data == like.data) return &r;
  return nullptr;
}

std::string onlyIn(const char* which, const BenchResults& some, const BenchResults& others) {
  std::string out;
  for (const BenchResult& r : some.results)
    if (!find(others, r))
      out += fmt::format("only in the {} file: {}\n", which,
                         r.data.empty() ? r.entry : r.entry + " on " + shortened(r.data));
  return out;
}

}  // namespace

BenchTable::BenchTable(const std::vector<std::string>& entries, const std::vector<std::string>& data)
    : width_(4), severalEntries_(entries.size() > 1) {
  for (const std::string& entry : entries) {
    if (data.empty()) width_ = std::max(width_, label(entry, "", severalEntries_).size());
    for (const std::string& set : data) width_ = std::max(width_, label(entry, set, severalEntries_).size());
  }
}

std::string BenchTable::heading(const BenchResults& results) const {
  std::string out = fmt::format("{} on {}", results.program, results.target);
  if (results.copyBandwidth > 0)
    out += fmt::format("; a copy runs at {:.1f} GB/s", results.copyBandwidth / 1e9);
  return out + fmt::format("\n{:<{}}  {:>11}  {:>22}  {:>5}  {:>10}  {:>7}  {:>8}  {:>6}\n", "data", width_,
                           "median ms", "95 % interval", "runs", "MB moved", "of copy", "launches", "waits");
}

std::string BenchTable::row(const BenchResult& r, double copyBandwidth) const {
  const double bytes = static_cast<double>(r.bytes);
  return fmt::format(
      "{:<{}}  {:>11}  {:>22}  {:>5}  {:>10}  {:>7}  {:>8}  {:>6}\n", label(r.entry, r.data, severalEntries_),
      width_, milliseconds(r.time.median),
      r.time.hasInterval() ? milliseconds(r.time.low) + " .. " + milliseconds(r.time.high) : "too few runs",
      r.time.seconds.size(), r.bytes > 0 ? fmt::format("{:.3f}", bytes / 1e6) : "",
      r.bytes > 0 && copyBandwidth > 0 ? fmt::format("{:.1f}%", 100 * bytes / r.time.median / copyBandwidth)
                                       : "",
      r.statistics.launches, r.statistics.synchronisations);
}

std::string BenchResults::toJson() const {
  Json list = Json::array();
  for (const BenchResult& r : results) list.push_back(driver::toJson(r));
  return Json{{"kelpieBench", kVersion},
              {"program", program},
              {"target", target},
              {"copyBytesPerSecond", copyBandwidth},
              {"results", std::move(list)}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

std::optional<BenchResults> BenchResults::read(const std::string& path, std::string& problem) {
  std::ifstream file(path);
  std::error_code none;
  if (!file || std::filesystem::is_directory(path, none)) {
    problem = "cannot read it";
    return std::nullopt;
  }
  try {
    const Json json = Json::parse(file, nullptr, false);
    if (json.is_discarded()) throw std::runtime_error("it is not JSON");
    if (!json.is_object()) throw std::runtime_error("it is no object of JSON");
    if (json.at("kelpieBench") != kVersion) throw std::runtime_error("another version of results");
    BenchResults results{json.at("program"), json.at("target"), json.at("copyBytesPerSecond"), {}};
    for (const Json& r : json.at("results")) results.results.push_back(fromJson(r));
    return results;
  } catch (const Json::exception& error) {
    const std::string text = error.what();  // "[json.exception.out_of_range.403] key 'results' not found"
    problem = "no results of kelpie bench: " + text.substr(std::min(text.size(), text.find("] ") + 2));
    return std::nullopt;
  } catch (const std::exception& error) {
    problem = fmt::format("no results of kelpie bench: {}", error.what());
    return std::nullopt;
  }
}

std::string compare(const BenchResults& before, const BenchResults& after) {
  const size_t width = widthOf(before.results);
  const bool several = severalEntries(before.results);
  std::string out = fmt::format("before: {} on {}; after: {} on {}\n{:<{}}  {:>11}  {:>11}  {}\n",
                                before.program, before.target, after.program, after.target, "data", width,
                                "before ms", "after ms", "after is");
  double logarithms = 0;
  int count = 0;
  for (const BenchResult& b : before.results) {
    const BenchResult* a = find(after, b);
    if (!a) continue;
    const double ratio = b.time.median / a->time.median;
    const bool overlap = a->time.low <= b.time.high && b.time.low <= a->time.high;
    const bool known = a->time.hasInterval() && b.time.hasInterval();
    const std::string verdict =
        fmt::format("{:.2f} times {}{}", std::max(ratio, 1 / ratio), ratio >= 1 ? "faster" : "slower",
                    known ? "" : ", of too few runs to tell");
    out += fmt::format("{:<{}}  {:>11}  {:>11}  {}\n", label(b.entry, b.data, several), width,
                       milliseconds(b.time.median), milliseconds(a->time.median),
                       known && overlap ? "the same: the intervals overlap" : verdict);
    logarithms += std::log(ratio);
    ++count;
  }
  if (count > 1) {
    const double mean = std::exp(logarithms / count);
    out += fmt::format("all, geometric mean: {:.2f} times {}\n", std::max(mean, 1 / mean),
                       mean >= 1 ? "faster" : "slower");
  }
  return out + onlyIn("first", before, after) + onlyIn("second", after, before);
}

}  // namespace kelpie::driver
