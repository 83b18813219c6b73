// `kelpie fusion` and profiles from outside.
#include "driver/fusion_command.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/driver/command.h"
#include "tests/flatten/random_nesl.h"

namespace {

using kelpie::testing::Command;
using kelpie::testing::Outcome;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

/// Tells, when it ends, whether somebody still holds the values of a run.
class Ending final : public kelpie::driver::Backend {
 public:
  Ending(std::weak_ptr<kelpie::ArrayBytes> values, bool& held) : values_(std::move(values)), held_(held) {}
  ~Ending() override { held_ = !values_.expired(); }
  std::string name() const override { return "ending"; }
  std::variant<kelpie::Columns, kelpie::RuntimeError> run(const kelpie::core::Program&,
                                                          const kelpie::driver::CellValues&,
                                                          kelpie::Services&) override {
    return kelpie::Columns();
  }
  std::unique_ptr<kelpie::driver::PreparedForm> prepare(const kelpie::core::Program&,
                                                        const kelpie::driver::CellValues&) override {
    return nullptr;
  }

 private:
  std::weak_ptr<kelpie::ArrayBytes> values_;
  bool& held_;
};

/// A backend that ends before the values of its run brings them all to the host: 35 s for 17 kernels over 1.2
/// GB each.
TEST(MeasuredRuns, LetGoOfValuesBeforeTheirBackendEnds) {
  bool held = true;
  {
    kelpie::driver::MeasuredRuns runs;
    kelpie::Column column = kelpie::scalarColumn(kelpie::ScalarType::Int64, std::vector<std::byte>(24));
    runs.backend = std::make_unique<Ending>(column.bytes.bytes(), held);
    runs.cells[0] = {std::move(column)};
  }
  EXPECT_FALSE(held);
}

class FusionCommand : public Command {
 protected:
  const std::string program =
      "function norm2(xs) = let s1 = sum(xs); gts = {x in xs | x > 0.0}; s2 = sum(gts)\n"
      "  in ({x/s1 : x in xs}, {x/s2 : x in xs});\n"
      "function scale(xs) = let top = max_val(xs) in {x / top : x in xs};\n"
      "xs = {float(rem(i * 37, 101)) - 30.0 : i in [0:5000]};\n"
      "norm2(xs);\nscale(xs);\n";

  json reportOf(const std::string& options) { return reportOf(options, program); }
  json reportOf(const std::string& options, const std::string& text) {
    const Outcome outcome = kelpie("fusion --format=json " + options + " -", text);
    EXPECT_EQ(outcome.status, 0) << outcome.messages;
    return json::parse(outcome.output);
  }
  int expectBytesArePredicted(const std::string& text, const std::string& what);
};

/// What in `value` does not obey the schema (of the keywords that docs/fusion-report.md uses); empty:
/// nothing.
std::string violation(const json& schema, const json& value, const std::string& at) {
  const std::string type = schema.at("type");
  const bool fits = type == "object"    ? value.is_object()
                    : type == "array"   ? value.is_array()
                    : type == "string"  ? value.is_string()
                    : type == "boolean" ? value.is_boolean()
                    : type == "integer" ? value.is_number_integer()
                                        : type == "number" && value.is_number();
  if (!fits) return at + " is no " + type;
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return at + " is not in the enumeration";
  for (const json& key : schema.value("required", json::array()))
    if (!value.contains(key)) return at + " lacks " + key.get<std::string>();
  if (type == "object")
    for (const auto& [key, member] : value.items()) {
      if (!schema["properties"].contains(key)) return at + " has " + key;
      if (const std::string bad = violation(schema["properties"][key], member, at + "." + key); !bad.empty())
        return bad;
    }
  if (type == "array")
    for (const json& item : value)
      if (const std::string bad = violation(schema["items"], item, at + "[]"); !bad.empty()) return bad;
  return "";
}

json documentedSchema() {
  std::ifstream file(KELPIE_SOURCE_DIR "/docs/fusion-report.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str(), mark = "```json\n";
  const size_t begin = all.find(mark) + mark.size();
  return json::parse(all.substr(begin, all.find("```", begin) - begin));
}

TEST_F(FusionCommand, CountsWithOtherCosts) {
  const auto timeOf = [](const json& report) {
    double time = 0;
    for (const json& form : report["forms"])
      for (const json& region : form["report"]["regions"])
        for (const json& cluster : region["clusters"]) time += cluster["microseconds"].get<double>();
    return time;
  };
  write("costs", R"({"launch": 5000, "byte": 1.0})");
  write("unknown", R"({"bytes": 1})");
  write("negative", R"({"byte": -1})");
  const json own = reportOf(""), other = reportOf("--costs=" + path("costs"));
  EXPECT_GT(timeOf(other), 1000 * timeOf(own));
  const json& cluster = other["forms"].back()["report"]["regions"].back()["clusters"][0];
  EXPECT_EQ(cluster["shares"][0]["constant"], "byte") << cluster["shares"].dump();
  const Outcome unknown = kelpie("fusion --costs=" + path("unknown") + " -", program);
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.messages, HasSubstr("no constant bytes"));
  const Outcome negative = kelpie("fusion --costs=" + path("negative") + " -", program);
  EXPECT_EQ(negative.status, 2);
  EXPECT_THAT(negative.messages, HasSubstr("byte is no number"));
}

TEST_F(FusionCommand, JsonIsAsDocumented) {
  const json schema = documentedSchema();
  for (const char* options :
       {"", "--target=cpu --strategy=greedy", "--run --target=interp", "--strategy=none", "--compare"}) {
    EXPECT_EQ(violation(schema, reportOf(options), "report"), "") << options;
  }
  const json all = reportOf("--compare")["strategies"];
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0]["strategy"], "none");
  EXPECT_GT(all[0]["launches"], all[3]["launches"]);
  EXPECT_LE(all[3]["bound"], all[3]["objective"]);
  json broken = reportOf("");
  broken["forms"][0]["report"]["regions"][0]["nodes"][0]["kernel"] = 3;
  EXPECT_THAT(violation(schema, broken, "report"), HasSubstr("kernel is no boolean"));
}

TEST_F(FusionCommand, MeasuredBytesAreThosePredicted) {
  int kernels = 0;
  for (const char* strategy : {"none", "greedy", "delayed", "ilp"}) {
    const json report = reportOf("--run --target=interp --strategy=" + std::string(strategy));
    for (const json& form : report["forms"])
      for (const json& region : form["report"]["regions"])
        for (const json& cluster : region["clusters"]) {
          if (cluster["kernel"].get<std::string>().empty()) continue;
          ASSERT_TRUE(cluster.contains("measured")) << cluster;
          EXPECT_EQ(cluster["measured"]["bytesRead"], cluster["bytesRead"]) << cluster;
          EXPECT_EQ(cluster["measured"]["bytesWritten"], cluster["bytesWritten"]) << cluster;
          ++kernels;
        }
  }
  EXPECT_GT(kernels, 12);
}

/// Runs the program without fusion and with it for the sizes, and expects what they predict of every kernel
/// to be what the last run counts; gives the number of kernels.
int FusionCommand::expectBytesArePredicted(const std::string& text, const std::string& what) {
  const std::string sizes = path("sizes");
  if (kelpie("run --target=interp --fusion=none --profile=" + sizes + " -", text).status != 0) return 0;
  int kernels = 0;
  for (const char* strategy : {"ilp", "greedy", "delayed", "none"}) {
    const Outcome outcome =
        kelpie("fusion --run --target=interp --format=json --strategy=" + std::string(strategy) +
                   " --fusion-sizes=" + sizes + " -",
               text);
    EXPECT_EQ(outcome.status, 0) << outcome.messages;
    const json report = json::parse(outcome.output);
    for (const json& form : report["forms"])
      for (const json& region : form["report"]["regions"])
        for (const json& cluster : region["clusters"]) {
          if (!cluster.contains("measured")) continue;
          SCOPED_TRACE(::testing::Message() << what << ", " << strategy << "\n"
                                            << cluster["text"].get<std::string>());
          const double read = cluster["measured"]["bytesRead"], written = cluster["measured"]["bytesWritten"];
          EXPECT_EQ(cluster["bytesExact"], true);
          // Predictions are of averages over launches.
          EXPECT_NEAR(cluster["bytesRead"].get<double>(), read, 1e-9 * read);
          EXPECT_NEAR(cluster["bytesWritten"].get<double>(), written, 1e-9 * written);
          ++kernels;
        }
  }
  return kernels;
}

TEST_F(FusionCommand, MeasuredBytesOfRandomProgramsAreThosePredicted) {
  int kernels = 0;
  for (uint32_t seed = 0; seed < 40; ++seed)
    kernels += expectBytesArePredicted(kelpie::testing::randomNesl(seed, 4), "seed " + std::to_string(seed));
  EXPECT_GT(kernels, 500);
}

/// Forms with kernels of one name, several filters of a kernel, targets of permutes, loads under conditions
/// and in loops, recursion.
TEST_F(FusionCommand, MeasuredBytesOfProgramsAreThosePredicted) {
  const char* const programs[] = {
      R"(
xs = {rem(i * 7919, 1000) : i in [0:1000]};
ys = {x + 1 : x in xs};
sum({y : y in ys | y > 3});
zs = {x + 1 : x in [0:17]};
sum({z : z in zs | z > 3});)",
      R"(
function both(xs, a) = ({x in xs | x < a}, {x * 2 : x in xs | x >= a}, {x in xs | rem(x, 3) == 0});
both({rem(i * 7919, 1000) : i in [0:1000]}, 300);)",
      R"(
table = dist(0, 77) <- {(rem(i * i, 77), i) : i in [0:500]};
sum(table);
other = dist(0.5, 1000) <- {(i, 1.0) : i in table};
sum(other);)",
      R"(
xs = {rem(i * 31, 101) : i in [0:600]};
{if x > 50 then xs[x * 2] else if x > 20 then xs[x] + xs[x + 1] else 0 : x in xs};
function chase(next, i, n) = if n == 0 then i else chase(next, next[i], n - 1);
{chase(xs, rem(x, 101), rem(x, 5)) : x in xs};)",
      R"(
function search(xs, key, low, high) =
  if low >= high then low
  else let middle = (low + high) / 2
       in if xs[middle] < key then search(xs, key, middle + 1, high) else search(xs, key, low, middle);
sorted = {i * 3 : i in [0:400]};
{search(sorted, rem(i * 7, 1300), 0, 400) : i in [0:500]};)",
      R"(
function qs(a) =
  if #a < 2 then a else
  let p = a[#a / 2] in
  let r = {qs(v) : v in [{e in a | e < p}, {e in a | e > p}]} in r[0] ++ {e in a | e == p} ++ r[1];
qs({rem(i * 7919, 1009) : i in [0:700]});
rows = {{rem(i * j, 13) : j in [0:rem(i, 9)]} : i in [0:60]};
{qs(r) : r in rows};
{{x in r | x > 4} : r in rows};)",
  };
  for (const char* text : programs) EXPECT_GE(expectBytesArePredicted(text, text), 8);
}

TEST_F(FusionCommand, EveryPairApartHasAReason) {
  const json report = reportOf("");
  for (const json& form : report["forms"])
    for (const json& region : form["report"]["regions"])
      for (const json& pair : region["pairs"]) {
        EXPECT_NE(pair["reason"], "");
        EXPECT_THAT(pair["reason"].get<std::string>(), Not(HasSubstr("unknown")));
      }
}

TEST_F(FusionCommand, FunctionChoosesRegions) {
  const Outcome scale = kelpie("fusion --function=scale -", program);
  EXPECT_EQ(scale.status, 0);
  EXPECT_THAT(scale.output, HasSubstr("scale_"));
  EXPECT_THAT(scale.output, Not(HasSubstr("norm2_")));
  const Outcome none = kelpie("fusion --function=missing -", program);
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.messages, HasSubstr("error: the program defines no function `missing` [K0406]\n"
                                       "hint: it defines norm2, scale\n"));
  EXPECT_THAT(kelpie("fusion --function=scales -", program).messages, HasSubstr("did you mean `scale`?"));
  for (const char* format : {"json", "html", "dot"})
    EXPECT_EQ(kelpie("fusion --function=missing --format=" + std::string(format) + " -", program).status, 1);
}

TEST_F(FusionCommand, FunctionIsNoPrefixOfAnother) {
  const std::string text =
      "function a(x) = {y + 1 : y in x};\nfunction a_b(x) = {y * 2 : y in "
      "x};\na_b(index(10));\na(index(10));\n";
  const Outcome a = kelpie("fusion --function=a -", text);
  EXPECT_EQ(a.status, 0) << a.messages;
  EXPECT_THAT(a.output, HasSubstr("a_map_1"));
  EXPECT_THAT(a.output, Not(HasSubstr("a_b_map_1")));
}

/// What has no elements is not launched, which is no reason not to know its size.
TEST_F(FusionCommand, SizesOfZeroAreKnownAndKernelsNeverLaunchedMarked) {
  const std::string text =
      "xs = [] int;\nplus_scan({x * 2 : x in xs});\nif #xs > 3 then sum({x * x : x in xs}) else 0;\n"
      "plus_scan({x * 2 : x in index(1000)});\n";
  const Outcome outcome = kelpie("fusion --run --target=interp --format=json -v -", text);
  ASSERT_EQ(outcome.status, 0) << outcome.messages;
  EXPECT_THAT(outcome.messages, HasSubstr("<stdin>:2:1: region of main: "));
  const json report = json::parse(outcome.output);
  EXPECT_EQ(violation(documentedSchema(), report, "report"), "");
  const auto regionOf = [&](size_t form) { return report["forms"][form]["report"]["regions"][0]; };
  for (const size_t form : {1, 2}) {
    for (const json& cluster : regionOf(form)["clusters"])
      EXPECT_EQ(cluster.contains("neverLaunched"), cluster["kernel"] != "") << cluster;
  }
  for (const json& strategy : regionOf(1)["strategies"]) {
    EXPECT_EQ(strategy["bytesRead"], 0);
    EXPECT_LT(strategy["objective"], 100) << "launches alone";
    EXPECT_EQ(strategy.contains("bound"), strategy["strategy"] == "ilp");
  }
  EXPECT_FALSE(regionOf(3)["clusters"][0].contains("neverLaunched"));
  EXPECT_NE(regionOf(3)["clusters"][0]["code"], "") << "interp has no code of its own: CUDA's is shown";
  EXPECT_THAT(kelpie("fusion --run --target=interp -", text).output, HasSubstr("measured: not launched"));
}

TEST_F(FusionCommand, FormsThatFailAreMarkedAndTheOthersReported) {
  const std::string text =
      "xs = index(100);\n{100 / (x - 5) : x in xs};\nxs = {x + 1 : x in take(xs, 200)};\nsum(xs);\n"
      "max_val({x * x : x in index(50)});\n";
  const Outcome outcome = kelpie("fusion --run --target=interp --format=json -", text);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.messages.find("division by zero"), outcome.messages.rfind("division by zero"))
      << outcome.messages;
  const json report = json::parse(outcome.output);
  EXPECT_EQ(violation(documentedSchema(), report, "report"), "");
  std::vector<std::string> failures;
  for (const json& form : report["forms"]) failures.push_back(form.value("failure", ""));
  EXPECT_THAT(failures, testing::ElementsAre("", "division by zero", HasSubstr("take"),
                                             "this form reads `xs`, which has no value", ""));
  EXPECT_TRUE(report["forms"][4]["report"]["regions"][0]["clusters"][0].contains("measured"));
  const Outcome shown = kelpie("fusion --run --target=cpu -", text);
  EXPECT_THAT(shown.output, HasSubstr("it\nfailed when it ran: division by zero\n"));
  EXPECT_THAT(kelpie("fusion --run --target=cpu --format=html -", text).output,
              HasSubstr("failed when it ran: division by zero"));
}

TEST_F(FusionCommand, FunctionsThatNoFormCallsAreReported) {
  const std::string functions =
      "function twice(a) = {x + x : x in a};\nfunction mean(a) = sum(twice(a)) / #a;\n"
      "function spread(a) = let m = mean(a) in max_val({abs(x - m) : x in a});\nfunction next(i) = i + 1;\n"
      "function apply(g, a) = {g(x) : x in a};\n";
  const Outcome all = kelpie("fusion -", functions);
  EXPECT_EQ(all.status, 0) << all.messages;
  for (const char* name : {"1:1: twice", "2:1: mean", "3:1: spread"})
    EXPECT_THAT(all.output, HasSubstr(name));
  const Outcome mean = kelpie("fusion --function=mean -", functions + "twice([1, 2]);\n");
  EXPECT_EQ(mean.status, 0) << mean.messages;
  EXPECT_THAT(mean.output, HasSubstr("2:1: mean"));
  EXPECT_THAT(mean.output, Not(HasSubstr("3:1: spread")));
  EXPECT_THAT(all.output, Not(HasSubstr("next")));
  EXPECT_EQ(kelpie("fusion --function=Spread -", functions).status, 0) << "case does not matter in NESL";
  const Outcome next = kelpie("fusion --function=next -", functions);
  EXPECT_EQ(next.status, 0) << next.messages;
  EXPECT_THAT(next.output, HasSubstr("no kernels: there is nothing to fuse"));
  EXPECT_THAT(kelpie("fusion -", "limit = 3.5;\n" + functions).output, HasSubstr("3:1: mean"));
  const Outcome notRun = kelpie("fusion --run --target=interp -", "limit = 3.5;\n" + functions);
  EXPECT_EQ(notRun.status, 0) << notRun.messages;
  EXPECT_THAT(notRun.output, HasSubstr("3:1: mean"));
  EXPECT_EQ(kelpie("fusion -", "").status, 0);
}

TEST_F(FusionCommand, WrongUsageIsExplained) {
  const auto messagesOf = [&](const std::string& options) {
    const Outcome outcome = kelpie("fusion " + options + " -", program);
    EXPECT_EQ(outcome.status, 2) << options;
    EXPECT_EQ(outcome.output, "") << options;
    return outcome.messages;
  };
  EXPECT_THAT(messagesOf("--format=pdf"), HasSubstr("--format: pdf not in {dot,html,json,text}"));
  EXPECT_THAT(messagesOf("--strategy=best"), HasSubstr("--strategy: best not in {delayed,greedy,ilp,none}"));
  EXPECT_THAT(messagesOf("--profile=" + path("profile")), HasSubstr("--profile requires --run"));
  EXPECT_THAT(messagesOf("--fusion-sizes=" + path("missing")), HasSubstr("cannot read it"));
  EXPECT_THAT(messagesOf("--fusion-sizes=" + path("input")), HasSubstr("not a profile: it is not JSON\n"));
  write("list", "[1]");
  EXPECT_THAT(messagesOf("--fusion-sizes=" + path("list")),
              HasSubstr("not a profile: it is no object of JSON\n"));
  write("broken", R"({"kelpieProfile": 3, "kernels": [{"kernel": 7}]})");
  EXPECT_THAT(messagesOf("--fusion-sizes=" + path("broken")),
              HasSubstr("not a profile: key 'launches' not found\n"));
  write("wrong", R"({"kelpieProfile": 3, "kernels": [7]})");
  EXPECT_THAT(messagesOf("--fusion-sizes=" + path("wrong")),
              HasSubstr("not a profile: a kernel is no object of JSON\n"));
  write("negative", R"({"kelpieProfile": 3, "kernels": [{"kernel": "k", "place": "", "launches": 1,
                        "members": ["k"], "elements": 5, "segments": -5.5}]})");
  EXPECT_THAT(messagesOf("--fusion-sizes=" + path("negative")),
              HasSubstr("not a profile: a size is negative\n"));
  EXPECT_THAT(messagesOf("-o ''"), HasSubstr("--output: a file has a name"));
  EXPECT_THAT(messagesOf("--emit-lp ''"), HasSubstr("--emit-lp: a file has a name"));
  EXPECT_THAT(messagesOf("--function ''"), HasSubstr("--function: a function has a name"));
  EXPECT_THAT(messagesOf("--format=dot --compare"), HasSubstr("a graph has no place for sums"));
  EXPECT_THAT(messagesOf("-o " + path("both") + " --emit-lp " + path("./both")),
              HasSubstr("--emit-lp and -o would both write"));
  EXPECT_EQ(kelpie("fusion " + path("missing.nesl")).status, 2);
}

TEST_F(FusionCommand, ProgramsAreNotWrittenOver) {
  write("program.nesl", program);
  const std::string file = path("program.nesl"),
                    same = path("../" + folder_.filename().string() + "/program.nesl");
  for (const std::string& command :
       {"fusion --format=html -o " + same, "fusion --emit-lp " + same, "run --profile=" + same}) {
    const Outcome outcome = kelpie(command + " " + file);
    EXPECT_EQ(outcome.status, 2) << command;
    EXPECT_THAT(outcome.messages, HasSubstr("would write over the program"));
  }
  EXPECT_EQ(read("program.nesl"), program);
  write("costs", "{}");
  EXPECT_THAT(kelpie("fusion --costs " + path("costs") + " -o " + path("costs") + " -").messages,
              HasSubstr("-o would write over the constants"));
}

TEST_F(FusionCommand, ConstantsAreReadFromFilesOfNumbers) {
  EXPECT_THAT(kelpie("fusion --costs " + folder_.string() + " -").messages, HasSubstr("cannot read it"));
  write("costs", R"({"launch": 1e300})");
  EXPECT_THAT(kelpie("fusion --costs " + path("costs") + " -").messages,
              HasSubstr("launch is no number from 0 to 1e15"));
}

/// Of the first region.
json lastKernel(const json& form) {
  json last;
  for (const json& cluster : form["report"]["regions"][0]["clusters"])
    if (cluster["kernel"] != "") last = cluster;
  return last;
}

/// What constants say of sizes is predicted with, in forms that read them, without a run.
TEST_F(FusionCommand, SizesThatFollowFromConstantsAreKnown) {
  const Outcome outcome = kelpie("fusion --format=json -",
                                 "n = 1000 * 3;\nones = [1, 2, 3, 4];\nxs = {i * 2 : i in [0:n]};\n"
                                 "pairs = {(x, x > 9) : x in xs};\nkept = {x in xs | x > 7};\nsum(xs);\n"
                                 "count({b : (x, b) in pairs});\nsum(ones);\nsum(kept);\nn = sum(ones);\n"
                                 "sum({i * i : i in [0:n]});\n");
  ASSERT_EQ(outcome.status, 0) << outcome.messages;
  const json forms = json::parse(outcome.output)["forms"];
  ASSERT_EQ(forms.size(), 11u);
  const auto bytes = [&](size_t form, const char* which) {
    return lastKernel(forms[form])[which].get<double>();
  };
  EXPECT_EQ(bytes(2, "bytesWritten"), 8 * 3000);
  EXPECT_EQ(bytes(5, "bytesRead"), 8 * 3000);
  EXPECT_EQ(bytes(6, "bytesRead"), 3000);
  EXPECT_EQ(bytes(7, "bytesRead"), 8 * 4);
  EXPECT_EQ(bytes(8, "bytesRead"), 8 * (1 << 20));  // what a filter keeps is not known
}

/// Where a program is run from makes no difference to its profile.
TEST_F(FusionCommand, ProfilesAreFoundFromOtherFolders) {
  write("program.nesl", program);
  std::filesystem::create_directories(path("inside"));
  const std::string here = path("program.nesl"), other = path("inside/../program.nesl");
  ASSERT_EQ(kelpie("run --target=interp --profile=" + path("profile") + " " + here).status, 0);
  const std::string options = "fusion --format=json --fusion-sizes=" + path("profile") + " ";
  const Outcome same = kelpie(options + here), elsewhere = kelpie(options + other);
  EXPECT_EQ(same.messages + elsewhere.messages, "");
  const auto read = [](const Outcome& outcome) {
    return json::parse(outcome.output)["forms"].back()["report"]["regions"][0]["clusters"][0]["bytesRead"];
  };
  EXPECT_EQ(read(same), read(elsewhere));
  write("other.nesl", program);
  EXPECT_THAT(kelpie(options + path("other.nesl")).messages, HasSubstr("has none of the forms of"));
}

/// Of a profile only what has the name of a kernel counts: one of another program is none.
TEST_F(FusionCommand, AProfileOfAnotherProgramIsHarmless) {
  const std::string other =
      "function g(a) = {x in a | x > 3}; g([1, 4, 5]); sum(g({rem(i, 7) : i in [0:50]}));\n"
      "dist(0, 9) <- [(1, 2), (3, 4)]; {sum({rem(i, 7) : i in [0:n]}) : n in [0:9]};\n";
  ASSERT_EQ(kelpie("run --target=interp --profile=" + path("profile") + " -", other).status, 0);
  const json report = reportOf("--fusion-sizes=" + path("profile"));
  EXPECT_EQ(report["forms"].size(), reportOf("")["forms"].size());
  EXPECT_EQ(violation(documentedSchema(), report, "report"), "");
}

/// Samples of a profile are as good as those of a run of its own.
TEST_F(FusionCommand, ProfilesTellSamples) {
  const std::string text =
      "table = {rem(i * 7919, 4096) : i in [0:4096]};\n"
      "function steps(x) = if x < 2 then 0 else 1 + steps(x / 2);\n"
      "sum({steps(table[rem(i * 31, 4096)]) : i in [0:100000]});\n";
  const auto times = [&](const std::string& options) {
    const Outcome outcome = kelpie("fusion --run --target=cpu --format=json " + options + " -", text);
    EXPECT_EQ(outcome.status, 0) << outcome.messages;
    const json report = json::parse(outcome.output);
    std::vector<std::pair<double, int>> predicted;
    for (const json& form : report["forms"])
      for (const json& region : form["report"]["regions"])
        for (const json& cluster : region["clusters"])
          if (cluster.contains("measured"))
            predicted.emplace_back(cluster["microseconds"], cluster["measured"]["evaluated"]);
    return predicted;
  };
  const auto first = times("--profile=" + path("profile"));
  EXPECT_THAT(read("profile"), HasSubstr("\"sample\""));
  const auto second = times("--fusion-sizes=" + path("profile"));
  ASSERT_EQ(first.size(), second.size());
  ASSERT_FALSE(first.empty());
  // How often a kernel is evaluated before it is compiled depends on how busy the machine is.
  for (size_t k = 0; k < first.size(); ++k) {
    if (first[k].second != second[k].second) continue;
    EXPECT_NEAR(second[k].first / first[k].first, 1, 1e-6);
  }
}

TEST_F(FusionCommand, GraphsAndPagesAreWritten) {
  const Outcome dot = kelpie("fusion --format=dot -", program);
  EXPECT_THAT(dot.output, HasSubstr("digraph"));
  EXPECT_THAT(dot.output, HasSubstr("subgraph cluster_"));
  ASSERT_EQ(kelpie("fusion --format=html -o " + path("report.html") + " -", program).output, "");
  const std::string page = read("report.html");
  EXPECT_THAT(page, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("__global__"));  // the generated kernels
  EXPECT_THAT(page, HasSubstr("print-color-adjust: exact"));
  for (const char* part : {"radio", "apart, and why", "JSON.parse", "norm2_reduce_1"})
    EXPECT_THAT(page, HasSubstr(part));
  for (const char* remote : {"src=", "@import", "<link", "fetch("}) EXPECT_THAT(page, Not(HasSubstr(remote)));
  if (std::system("dot -V 2> /dev/null") == 0) {
    EXPECT_THAT(page, HasSubstr("<svg"));
  }
  EXPECT_EQ(kelpie("fusion -o " + path("no/such/folder") + " -", program).status, 2);
}

TEST_F(FusionCommand, PagesShowTheSameRegionOnce) {
  const std::string text = "function squares(v) = sum({x * x : x in v | x > 2});\n";
  const auto count = [&](const std::string& calls, const std::string& what) {
    const std::string page = kelpie("fusion --format=html -", text + calls).output;
    size_t times = 0;
    for (size_t at = page.find(what); at != std::string::npos; at = page.find(what, at + 1)) ++times;
    return times;
  };
  const size_t once = count("squares([1, 2, 3]);\n", "<section class=\"region\"");
  ASSERT_GT(once, 0u);
  EXPECT_EQ(
      count("squares([1, 2, 3]);\nsquares([4, 5, 6]);\nsquares([7, 8, 9]);\n", "<section class=\"region\""),
      once);
  EXPECT_EQ(count("squares([1, 2, 3]);\nsquares([4, 5, 6]);\nsquares([7, 8, 9]);\n", "The same as <a href"),
            2 * once);
}

TEST_F(FusionCommand, WhatProgramsSayDoesNotBreakReports) {
  const std::string text = "sum({code(c) : c in \"<!-- <script> \xff\" | c /= `<});\n";
  const std::string page =
      kelpie("fusion --format=html -", "function code(c) = char_code(c);\n" + text).output;
  EXPECT_THAT(page, HasSubstr("\\u003c!-- \\u003cscript>"));
  EXPECT_THAT(page, Not(HasSubstr("<!-- <script>")));
  const std::string dot = kelpie("fusion --format=dot -", "function code(c) = char_code(c);\n" + text).output;
  EXPECT_THAT(dot, HasSubstr("<script> \xef\xbf\xbd"));
}

TEST_F(FusionCommand, KernelsShowTheirPartOfTheLine) {
  std::string sum = "sum({x";
  for (int k = 0; k < 40; ++k) sum += "\t+ x * x";
  const std::string text = "tt = {c : c in \"" + std::string(3, ' ') +
                           "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字\" | c /= `a};\n" +
                           sum + " : x in index(1000)}) + max_val({y * 3 : y in index(50)});\n" +
                           "{sum({y : y in [0:x] | y > 2}) : x in index(9)};\n";
  for (const char* strategy : {"ilp", "none", "delayed"}) {
    std::stringstream report(kelpie("fusion --strategy=" + std::string(strategy) + " -", text).output);
    std::string all = report.str();
    EXPECT_THAT(all, HasSubstr("max_val({y * 3"));
    EXPECT_THAT(all, Not(HasSubstr("generator")));
    for (std::string line; std::getline(report, line);) {
      EXPECT_FALSE(line.ends_with(' ')) << line;
      EXPECT_THAT(line, Not(HasSubstr("\t")));
      const bool made = line.starts_with("  │ MAP") || line.starts_with("  │ ONCE");
      EXPECT_TRUE(!made || line.find(" | ") != line.npos) << line;
      const auto columns = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(columns, 100) << line;
    }
    EXPECT_THAT(all, Not(testing::ContainsRegex("┌ kernel [0-9]+\n  │ MAP"))) << "over nothing";
  }
  EXPECT_THAT(kelpie("fusion -", "3;\n").output, HasSubstr("there is nothing to fuse"));
  EXPECT_THAT(kelpie("fusion --format=dot -", "sum(index(10));\n").output,
              HasSubstr("<stdin>:1:1: sum(index(10));"));
}

TEST_F(FusionCommand, TextFitsAHundredColumns) {
  const std::string recursive =  // branches inside of branches, under a long name
      "function sorted_by_smaller_and_larger_parts(a) = if #a < 2 then a else if #a < 3 then (if a[0] < a[1] "
      "then a else "
      "reverse(a)) "
      "else\n  let r = {sorted_by_smaller_and_larger_parts(v) : v in [{e in a | e < a[0]}, {e in a | e > "
      "a[0]}]}\n"
      "  in r[0] ++ {e in a | e == a[0]} ++ r[1];\nsorted_by_smaller_and_larger_parts([3, 1, 2]);\n";
  for (const std::string& source : {program, recursive}) {
    std::stringstream text(kelpie("fusion --compare -", source).output);
    EXPECT_THAT(text.str(), HasSubstr("all regions, each once"));
    for (std::string line; std::getline(text, line);) {
      const auto columns = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(columns, 100) << line;
    }
  }
}

/// Kernels over 1000 elements take 5 us on a CPU, schedules are chosen for 2^20.
TEST_F(FusionCommand, TellsWhereObjectivesCountWithGuesses) {
  const std::string small = "xs = {float(i) : i in [0:1000]};\n", of = "sum({x * x : x in xs});\n";
  const std::string note = "count with guessed sizes of what variables hold";
  EXPECT_THAT(kelpie("fusion --target=cpu -", small + of).output, HasSubstr(note));
  EXPECT_THAT(kelpie("fusion --target=cpu -", "sum({float(i) : i in [0:1000]});\n").output,
              Not(HasSubstr(note)));
}

TEST_F(FusionCommand, ProfilesTellRealSizes) {
  const std::string filtered = program + "norm2({x in xs | x > -20.0});\n";
  const Outcome run = kelpie("run --target=interp --profile=" + path("profile") + " -", filtered);
  EXPECT_EQ(run.status, 0) << run.messages;
  const json profile = json::parse(read("profile"));
  EXPECT_GT(profile["kernels"].size(), 5u);
  const json guessed = reportOf("--function=norm2", filtered),
             known = reportOf("--function=norm2 --fusion-sizes=" + path("profile"), filtered);
  const auto kept = [](const json& report) {
    return lastKernel(report["forms"].back())["bytesRead"].get<double>() / 8;
  };
  EXPECT_EQ(kept(guessed), 2500);
  int above = 0;
  for (int i = 0; i < 5000; ++i) above += i * 37 % 101 > 10;
  EXPECT_EQ(kept(known), above);
  EXPECT_EQ(kelpie("run --fusion-sizes=" + path("profile") + " -", filtered).output, run.output);
  EXPECT_EQ(kelpie("run --fusion-sizes=" + path("missing") + " -", program).status, 2);
  write("broken", "{}");
  EXPECT_EQ(kelpie("run --fusion-sizes=" + path("broken") + " -", program).status, 2);
}

TEST_F(FusionCommand, ProfilesOfAllTargetsAccountForTheSame) {
  const std::string filtering =
      "function high(xs) = let s = sum(xs);\n  hs = {x in xs | x > 0.0} in (s, hs);\n"
      "xs = {float(rem(i * 37, 101)) - 30.0 : i in [0:5000]};\nhigh(xs);\nsort(xs);\n";
  std::map<std::string, json> known;
  for (const char* target : {"interp", "cpu"}) {
    const Outcome run =
        kelpie("run --target=" + std::string(target) + " --profile=" + path("profile") + " -", filtering);
    ASSERT_EQ(run.status, 0) << run.messages;
    const json profile = json::parse(read("profile"));
    EXPECT_EQ(profile["target"], target);
    EXPECT_EQ(profile["device"]["name"], "");
    EXPECT_GT(profile["copyBytesPerSecond"].get<double>(), 1e8);
    EXPECT_EQ(profile["launches"], 4);
    for (json kernel : profile["kernels"]) {
      EXPECT_GT(kernel["microseconds"].get<double>(), 0);
      kernel.erase("microseconds");
      kernel.erase("entered");  // only the evaluator knows
      kernel.erase("evaluated");
      const std::string name = kernel["form"].get<std::string>() + ": " + kernel["kernel"].get<std::string>();
      EXPECT_EQ(kernel, known.emplace(name, kernel).first->second);
    }
  }
  ASSERT_EQ(known.size(), 4u);
  const json& high = known["it: high_reduce_1_filter_2"];
  ASSERT_TRUE(high.is_object()) << json(known);
  EXPECT_EQ(high["filters"], json::parse(R"([{"member": "high_filter_2", "survivors": 3465}])"));
  EXPECT_EQ(high["lines"].size(), 2u);
  EXPECT_EQ(high["bytesRead"], 8 * 5000);
  EXPECT_EQ(high["bytesWritten"], 8 * (3465 + 2));
}

TEST_F(FusionCommand, ProfilesAreShown) {
  const Outcome run = kelpie("run --target=interp --profile -", program);
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.messages, HasSubstr("profile on interp: 5 launches took"));
  EXPECT_THAT(run.messages, HasSubstr("let s1 = sum(xs)"));
  EXPECT_THAT(run.messages, HasSubstr("of copy"));
  EXPECT_THAT(run.output, Not(HasSubstr("launches")));
  const Outcome both = kelpie("run --target=interp -v --profile=" + path("profile") + " -", program);
  EXPECT_THAT(both.messages, HasSubstr("profile on interp"));
  EXPECT_EQ(kelpie("run --target=interp --profile=" + path("no/such/file") + " -", program).status, 2);
}

/// bench/fusion-programs: what greedy fuses first keeps it from the best schedule for the sizes there are.
TEST_F(FusionCommand, ProgramsOnWhichTheBestScheduleBeatsGreedy) {
  int programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KELPIE_SOURCE_DIR "/bench/fusion-programs")) {
    const std::string text =
        std::regex_replace(read(entry.path().string()), std::regex("\nn = \\d+;"), "\nn = 50000;");
    const std::string sizes = path("sizes");
    kelpie("run --target=cpu --fusion=none --profile=" + sizes + " -", text);
    const json report =
        json::parse(kelpie("fusion --target=cpu --format=json --fusion-sizes=" + sizes + " -", text).output);
    double greedy = 0, ilp = 0;
    for (const json& form : report["forms"])
      for (const json& region : form["report"]["regions"])
        for (const json& s : region["strategies"]) {
          if (s["strategy"] == "greedy") greedy += s["objective"].get<double>();
          if (s["strategy"] == "ilp") ilp += s["objective"].get<double>();
        }
    EXPECT_LT(ilp, greedy) << entry.path();
    ++programs;
  }
  EXPECT_GE(programs, 5);
}

}  // namespace
