// `kelpie fusion --emit-lp`: the integer programs of a program's regions.
#include <glpk.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/driver/command.h"

namespace {

using kelpie::testing::Outcome;
using nlohmann::json;
using testing::HasSubstr;

class IntegerPrograms : public kelpie::testing::Command {
 protected:
  const std::string program =
      "function mean(xs) = let s = sum(xs); gts = {x in xs | x > 0.0} in {x / s + float(#gts) : x in xs};\n"
      "function scale(xs) = let top = max_val(xs) in {x / top : x in xs};\n"
      "xs = {float(rem(i * 37, 101)) - 30.0 : i in [0:5000]};\n"
      "mean(xs);\nscale(xs);\n";
};

/// The optimum of an integer program, found by GLPK's own branch and cut from what the file says.
double optimumOf(const std::string& path) {
  glp_term_out(GLP_OFF);
  const std::unique_ptr<glp_prob, void (*)(glp_prob*)> lp(glp_create_prob(), glp_delete_prob);
  EXPECT_EQ(glp_read_lp(lp.get(), nullptr, path.c_str()), 0) << path;
  glp_iocp search;
  glp_init_iocp(&search);
  search.msg_lev = GLP_MSG_OFF;
  search.presolve = GLP_ON;
  EXPECT_EQ(glp_intopt(lp.get(), &search), 0) << path;
  EXPECT_EQ(glp_mip_status(lp.get()), GLP_OPT) << path;
  return glp_mip_obj_val(lp.get());
}

/// Filters, segments, checks, branches, loops, services and recursion: what regions are made of.
TEST_F(IntegerPrograms, HaveTheOptimaThatAreReported) {
  const char* const programs[] = {
      program.c_str(),
      R"(
function clip(a) = let m = sum(a) / #a; high = {x in a | x > m}; low = {x in a | x <= m} in
  ({x - m : x in high}, {m - x : x in low}, plus_scan(a), #high);
clip({rem(i * 7919, 1000) : i in [0:1000]});
rows = {{float(rem(i * j, 13)) : j in [0:rem(i, 9)]} : i in [0:60]};
{let s = sum(r) in {x / (s + 1.0) : x in r | x > 2.0} : r in rows};
{max_index(plus_scan(r)) : r in rows | #r > 2};)",
      R"(
xs = {rem(i * 31, 101) : i in [0:600]};
{if x > 50 then xs[x * 2] else 7 / (x + 1) : x in xs};
function steps(a, n) = if n == 0 then a else steps({x + y : x in a; y in drop(a, 1) ++ [0]}, n - 1);
steps(xs, 3);
let s = plus_scan(xs); total = sum(xs); u = print_line(@total) in {rem(x, total) : x in s | x > xs[3]};
function halves(a) = if #a < 2 then a else let r = {halves(v) : v in [take(a, #a / 2), drop(a, #a / 2)]} in
  {x + y : x in r[0] ++ r[1]; y in a};
halves(xs);
table = dist(0, 77) <- {(rem(i * i, 77), i) : i in [0:500]};
rank(table);)",
  };
  int regions = 0;
  for (const char* text : programs) {
    const json report = json::parse(
        kelpie("fusion --format=json --target=cpu --emit-lp " + path("model.lp") + " -", text).output);
    int number = 0;
    for (const json& form : report["forms"])
      for (const json& region : form["report"]["regions"]) {
        const std::string name = ++number == 1 ? "model.lp" : "model-" + std::to_string(number) + ".lp";
        EXPECT_THAT(read(name), HasSubstr("region of " + region["function"].get<std::string>()));
        constexpr size_t kMostNodes = 20;  // a plain search takes long for more
        if (region["nodes"].size() > kMostNodes) continue;
        const json& ilp = *std::find_if(region["strategies"].begin(), region["strategies"].end(),
                                        [](const json& s) { return s["strategy"] == "ilp"; });
        const double objective = ilp["objective"];
        EXPECT_NEAR(optimumOf(path(name)), objective, 1e-6 * (1 + objective)) << region["function"];
        ++regions;
      }
    EXPECT_FALSE(std::filesystem::exists(path("model-" + std::to_string(number + 1) + ".lp")));
    std::filesystem::remove_all(folder_);
    create_directories(folder_);
  }
  EXPECT_GT(regions, 15);
}

TEST_F(IntegerPrograms, OfOneFunction) {
  ASSERT_EQ(kelpie("fusion --function=scale --emit-lp " + path("model.lp") + " -", program).status, 0);
  EXPECT_THAT(read("model.lp"), HasSubstr("Minimize"));
  EXPECT_FALSE(std::filesystem::exists(path("model-2.lp")));
  // The file of the second region has a name that nobody typed.
  write("model-2.lp", program);
  const Outcome over = kelpie("fusion --emit-lp " + path("model.lp") + " " + path("model-2.lp"));
  EXPECT_EQ(over.status, 1);
  EXPECT_THAT(over.messages, HasSubstr("--emit-lp would write region 2 over " + path("model-2.lp")));
  EXPECT_EQ(read("model-2.lp"), program);
  EXPECT_EQ(kelpie("fusion --emit-lp " + path("no/such/folder.lp") + " -", program).status, 2);
}

}  // namespace
