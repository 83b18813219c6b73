// What a profile tells of other schedules than the one that it saw.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/driver/command.h"

namespace {

using kelpie::testing::Command;
using kelpie::testing::Outcome;
using nlohmann::json;

class ProfileSizes : public Command {
 protected:
  struct Bytes {
    double predicted = 0, counted = 0;  ///< read in one launch
    bool exact = false;
  };
  /// By kernel: what the report with a profile's sizes predicts, and what a run with them counts.
  std::map<std::string, Bytes> bytesRead(const std::string& text) {
    const std::string first = path("first"), second = path("second");
    EXPECT_EQ(kelpie("run --target=interp --profile=" + first + " -", text).status, 0);
    const Outcome report =
        kelpie("fusion --target=interp --format=json --fusion-sizes=" + first + " -", text);
    EXPECT_EQ(report.status, 0) << report.messages;
    EXPECT_EQ(
        kelpie("run --target=interp --fusion-sizes=" + first + " --profile=" + second + " -", text).status,
        0);
    std::map<std::string, Bytes> result;
    const json told = json::parse(report.output), counted = json::parse(read("second"));
    for (const json& region : told["forms"].back()["report"]["regions"])
      for (const json& cluster : region["clusters"])
        if (const std::string kernel = cluster["kernel"]; !kernel.empty())
          result[kernel] = {cluster["bytesRead"], -1, cluster["bytesExact"]};
    for (const json& kernel : counted["kernels"])
      if (const auto found = result.find(kernel["kernel"]); found != result.end() && kernel["launches"] > 0)
        found->second.counted = kernel["bytesRead"].get<double>() / kernel["launches"].get<double>();
    return result;
  }
};

/// A profile of a schedule in which one filter is another's condition knows nothing of what that keeps, which
/// is not nothing.
TEST_F(ProfileSizes, OfFiltersThatWereConditionsAreGuessed) {
  const auto kernels = bytesRead(
      "xs = {float(rem(i * 7825 + 77, 50)) * 0.5 : i in [0:200]};\n"
      "function kept(xs) = let a = {x in xs | x > 0.5}; b = {x in a | x > 1.0}; m = sum(b); r = "
      "plus_scan(b);\n"
      "  in sum({x + m : x in r; y in b | y > 1.5});\n"
      "kept(xs);\n");
  EXPECT_GT(kernels.size(), 1u);
  for (const auto& [name, bytes] : kernels) {
    EXPECT_GT(bytes.predicted, 0) << name;
    EXPECT_GT(bytes.counted, 0) << name;
  }
}

/// How often branches were taken belongs to a kernel's code: one of the same name has other branches.
TEST_F(ProfileSizes, OfBranchesAreThoseOfTheSameCode) {
  const auto kernels = bytesRead(
      "a = {rem(i * 4546 + 61, 10) : i in [0:200]};\nb = {rem(i * 789 + 30, 10) : i in [0:200]};\n"
      "c = {rem(i * 9115 + 86, 10) : i in [0:200]};\n"
      "function chosen(p1, p2, p3) =\n"
      "  let v6 = {p3[mod(i, #p3)] : i in p3};\n"
      "      v7 = {4.0 : x8 in p3; x9 in v6 | oddp(x8)};\n"
      "      v12 = p3 <- {(0, 4) : x14 in v7};\n"
      "      v15 = {p1[mod(i, #p1)] : i in p1};\n"
      "      v17 = v15 <- {(mod((if x20 > 1 then p3[mod(x20, #p3)] else 3), #v15),\n"
      "                     (if x18 > 18 then (x18 - x21) else 1)) : x18 in p3; x19 in p1; x20 in p2; x21 in "
      "v15}\n"
      "  in v17;\n"
      "chosen(a, b, c);\n");
  int exact = 0;
  for (const auto& [name, bytes] : kernels) {
    if (bytes.counted < 0 || !bytes.exact) continue;
    EXPECT_EQ(bytes.predicted, bytes.counted) << name;
    ++exact;
  }
  EXPECT_GT(exact, 1);
}

}  // namespace
