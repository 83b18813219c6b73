#include "driver/costs_file.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace kelpie::driver {

bool readCosts(const std::string& path, Costs& costs, std::string& problem) {
  std::ifstream file(path);
  if (!file) {
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
    if (!cost || !value.is_number() || value.get<double>() < 0) {
      problem = cost ? name + " is no number from 0 on" : "the cost model has no constant " + name;
      return false;
    }
    costs.emplace_back(cost, value.get<double>());
  }
  return true;
}

}  // namespace kelpie::driver
