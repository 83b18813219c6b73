// What `kelpie bench` measured: a table, a file (docs/bench.md describes it), and two files compared.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/measurement.h"
#include "runtime/executor.h"

namespace kelpie::driver {

/// One function on one data set.
struct BenchResult {
  std::string entry, data;  ///< as on the command line
  Measurement time;
  runtime::RunStatistics statistics;  ///< of the last run
  uint64_t bytes = 0;                 ///< that its kernels load and store; 0: not known
};

struct BenchResults {
  std::string program, target;
  double copyBandwidth = 0;  ///< bytes read plus bytes written a second; 0: not known
  std::vector<BenchResult> results;

  std::string toJson() const;
  /// Of a file that toJson() made; nothing, with the reason in `problem`, when it is none.
  static std::optional<BenchResults> read(const std::string& path, std::string& problem);
};

/// The table of results, line by line: each is shown as soon as it is known.
class BenchTable {
 public:
  /// `entries`, `data`: what will be measured; no data: the entries are expressions.
  BenchTable(const std::vector<std::string>& entries, const std::vector<std::string>& data);
  /// Program, target and titles of columns.
  std::string heading(const BenchResults& results) const;
  std::string row(const BenchResult& result, double copyBandwidth) const;

 private:
  size_t width_;
  bool severalEntries_;
};

/// A table: how much faster or slower `after` is than `before`, by entry and data set, and what only one has.
std::string compare(const BenchResults& before, const BenchResults& after);

}  // namespace kelpie::driver
