// The fusion report as text for a terminal of 100 columns, and as JSON.
//
// In: what fuse() reports, filled with `explain` (and `compare`, for the table of strategies), and a way to
// look up the source line of a span. Out: text. The members of the JSON objects are named as in
// fusion/fuse.h.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "fusion/fuse.h"

namespace kelpie::fusion {

struct SourceLine {
  std::string place;  ///< "norm2.nesl:7:13"; empty: nowhere
  int line = 0;
  std::string text;  ///< the whole line
  size_t at = 0;     ///< where in it the span begins
};
using LineLookup = std::function<SourceLine(Span)>;

/// What is computed where it is read, a sentence each.
std::vector<std::string> notStored(const FusionReport& report);

/// "512 B", "1.5 kB", "268 MB".
std::string bytesText(double bytes);
/// With two decimals; as a power of ten where that would be long.
std::string timeText(double microseconds);
/// "proven optimal", or how far from it the schedule may be; empty for strategies that prove nothing.
std::string proofText(const StrategyReport& chosen);

/// Without `lookup` no source lines are shown.
std::string reportText(const FusionReport& report, const LineLookup& lookup = nullptr);
nlohmann::ordered_json reportAsJson(const FusionReport& report, const LineLookup& lookup = nullptr);
std::string reportJson(const FusionReport& report, const LineLookup& lookup = nullptr);

}  // namespace kelpie::fusion
