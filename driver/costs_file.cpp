#include "driver/costs_file.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace kelpie::driver {

bool readCosts(const std::string& path, Costs& costs, std::string& problem) {
  constexpr double kGreatest = 1e15;  // more makes infinite times
  std::ifstream file(path);
  std::error_code none;
  if (!file || std::filesystem::is_directory(path, none)) {
    problem = "cannot read it";
    return false;
  }
  const auto json = nlohmann::ordered_json::parse(file, nullptr, false);
  if (!json.is_object()) {
    problem = "no JSON object with constants of the cost model";
    return false;
  }
  for (const auto& [name, value] : json.items()) {
    const fusion::NamedCost* cost = fusion::namedCost(name);
    if (!cost || !value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= kGreatest)) {
      problem = cost ? name + " is no number from 0 to 1e15" : "the cost model has no constant " + name;
      return false;
    }
    costs.emplace_back(cost, value.get<double>());
  }
  return true;
}

}  // namespace kelpie::driver
