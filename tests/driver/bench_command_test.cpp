// `kelpie bench`: data sets, repetition, results and their comparison.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "driver/bench_results.h"
#include "driver/data_set.h"
#include "driver/measurement.h"
#include "tests/driver/command.h"

namespace {

using namespace kelpie::driver;
using kelpie::testing::Outcome;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string expressionOf(const std::string& data) {
  const auto set = readDataSet(data);
  const auto* problem = std::get_if<DataProblem>(&set);
  return problem ? "problem: " + problem->text : std::get<DataSet>(set).expression;
}

TEST(Measurement, TellsTheMedianAndAnInterval) {
  const Measurement one = summarise({3});
  EXPECT_EQ(one.median, 3);
  EXPECT_EQ(one.low, 3);
  EXPECT_EQ(one.high, 3);
  const Measurement few = summarise({4, 1, 3, 2});
  EXPECT_EQ(few.median, 2.5);
  EXPECT_EQ(few.low, 1);
  EXPECT_EQ(few.high, 4);
  std::vector<double> seconds;
  for (int k = 0; k < 101; ++k) seconds.push_back((k * 37) % 101);
  const Measurement many = summarise(seconds);
  EXPECT_EQ(many.median, 50);
  EXPECT_EQ(many.low, 40);  // the ranks 41 to 61 of 101 contain the median with 95 %
  EXPECT_EQ(many.high, 60);
}

TEST(Measurement, WarmsUpThenRepeats) {
  // Compiling takes 1 s in the first run, and the second is slow, too.
  int calls = 0;
  const auto run = [&]() -> std::optional<double> {
    ++calls;
    return calls == 1 ? 1 : calls == 2 ? 0.5 : 0.1;
  };
  const auto measured = kelpie::driver::measure(run, 0);
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->median, 0.1);
  EXPECT_EQ(measured->high, 0.1);
  EXPECT_EQ(measured->seconds.size(), 10u);
  EXPECT_EQ(kelpie::driver::measure(run, 3)->seconds.size(), 3u);
}

TEST(Measurement, GoesOnWhileTimesVary) {
  int calls = 0;
  const auto varying = [&]() -> std::optional<double> { return ++calls % 2 ? 0.1 : 0.2; };
  const auto measured = kelpie::driver::measure(varying, 0);
  ASSERT_TRUE(measured);
  EXPECT_GT(measured->seconds.size(), 60u);  // ten seconds
  EXPECT_LT(measured->seconds.size(), 75u);
  EXPECT_FALSE(kelpie::driver::measure([] { return std::optional<double>(); }, 0));
}

TEST(DataSet, ValuesAreTakenAsTheyAre) { EXPECT_EQ(expressionOf("[1, 2], 3"), "[1, 2], 3"); }

TEST(DataSet, WrongTypesAreNamed) {
  EXPECT_THAT(expressionOf("random [3int"), HasSubstr("at `int`: `]` is expected"));
  EXPECT_THAT(expressionOf("random [3]string"), HasSubstr("at `string`: a type is"));
  EXPECT_THAT(expressionOf("random (int, bool"),
              HasSubstr("`random (int, bool`: at its end: `)` is expected"));
  EXPECT_THAT(expressionOf("random [x]int"), HasSubstr("a number is expected"));
  EXPECT_THAT(expressionOf("random int:0"), HasSubstr("a bound is more than 0"));
  EXPECT_THAT(expressionOf("random int bool"), HasSubstr("a type ends before it"));
  EXPECT_THAT(expressionOf("random int:0.5"), HasSubstr("whole numbers"));
  EXPECT_THAT(expressionOf("random float:2:1"), HasSubstr("a bound is more than the lowest number"));
}

TEST(DataSet, FilesThatAreMissingAreNamed) {
  for (const char* path : {"points.data", "/nowhere/points", "./points", "data/points.nesl"})
    EXPECT_EQ(expressionOf(path), "problem: there is no file " + std::string(path));
  for (const char* value : {"1.5", "1.5e10", "xs", "n/2", "2.0 * x"}) EXPECT_EQ(expressionOf(value), value);
}

class BenchCommand : public kelpie::testing::Command {
 protected:
  Outcome bench(const std::string& options, const std::string& program) {
    return kelpie("bench --target=interp --json " + path("results") + " " + options + " -", program);
  }
  json results() const { return json::parse(read("results")); }
  /// What the program makes of random data, as NESL prints it.
  std::string valueOf(const std::string& data, const std::string& expression) {
    return run("x = " + expressionOf(data) + "; " + expression + ";", "--target=interp").output;
  }
};

TEST_F(BenchCommand, MeasuresEveryDataSet) {
  write("values", "[1.5, 2.5],\n[2.0, 4.0]\n");
  const Outcome outcome = bench("--entry dot --runs 4 --data " + path("values") +
                                    " --data '[1, 2], [3, 4]' --data 'random [1e3]int, [10^3]int'",
                                "function dot(xs, ys) = sum({x * y : x in xs; y in ys});\n"
                                "this_is_not_run = 1; 1 / 0;");
  EXPECT_EQ(outcome.status, 0) << outcome.messages;
  EXPECT_EQ(outcome.messages, "");
  EXPECT_THAT(outcome.output, HasSubstr("- on interp"));
  EXPECT_THAT(outcome.output, HasSubstr("too few runs"));  // for an interval
  const json file = results();
  EXPECT_EQ(file["target"], "interp");
  ASSERT_EQ(file["results"].size(), 3u);
  EXPECT_EQ(file["results"][1]["data"], "[1, 2], [3, 4]");
  const json& last = file["results"][2];
  EXPECT_EQ(last["entry"], "dot");
  EXPECT_EQ(last["microseconds"].size(), 4u);
  EXPECT_GE(last["bytes"], 16000);  // two arrays of a thousand ints are read
  EXPECT_GE(last["launches"], 1);
  EXPECT_LE(last["low"], last["median"]);
  EXPECT_LE(last["median"], last["high"]);
}

TEST_F(BenchCommand, MeasuresAnExpressionOfTheProgram) {
  const Outcome outcome =
      bench("--entry 'double(v)' --runs 1", "v = [1, 2]; function double(a) = {2 * x : x in a};");
  EXPECT_EQ(outcome.status, 0) << outcome.messages;
  EXPECT_EQ(results()["results"][0]["entry"], "double(v)");
}

TEST_F(BenchCommand, MeasuresSeveralEntries) {
  const Outcome outcome = bench("-e sum -e twice --runs 2 --data '[1, 2]' --data '[3]'",
                                "function twice(xs) = {2 * x : x in xs};");
  EXPECT_EQ(outcome.status, 0) << outcome.messages;
  EXPECT_THAT(outcome.output, HasSubstr("sum: [1, 2] "));
  EXPECT_THAT(outcome.output, HasSubstr("twice: [3] "));
  EXPECT_EQ(results()["results"].size(), 4u);
  EXPECT_THAT(kelpie("bench --compare " + path("results") + " " + path("results")).output,
              HasSubstr("twice: [1, 2] "));
}

TEST_F(BenchCommand, WhatFailsLeavesTheOthers) {
  const Outcome outcome = bench("-e first --runs 2 --data '[1, 2]' --data '[] int' --data '[' --data '[3]'",
                                "function first(a) = a[0];");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.messages, HasSubstr("index 0 is out of range"));
  EXPECT_THAT(outcome.output, HasSubstr("\n[3] "));
  EXPECT_EQ(results()["results"].size(), 2u);
}

TEST_F(BenchCommand, ResultsHaveAPlaceBeforeAnythingRuns) {
  const Outcome outcome = kelpie("bench -e sum --data '[1]' --json " + path("no/results") + " -", " ");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.output, "");
  EXPECT_THAT(outcome.messages, HasSubstr("cannot write " + path("no/results")));
  EXPECT_EQ(kelpie("run --profile=" + path("no/profile") + " -", "1;").status, 2);
  EXPECT_EQ(kelpie("run --kernels " + path("no") + " -", "1;").status, 2);
}

TEST_F(BenchCommand, ResultsMayBeTheOutput) {
  const Outcome outcome = kelpie("bench --target=interp -e sum --data '[1]' --runs 2 --json - -", " ");
  EXPECT_EQ(outcome.status, 0) << outcome.messages;
  EXPECT_EQ(json::parse(outcome.output)["results"].size(), 1u);
}

/// Expressions are evaluated only where a variable reads one.
TEST_F(BenchCommand, VariablesMayReadIt) {
  const std::string program = "print_string(\"a\"); 5 + 6; r = it + 1; s = r; print_string(\"b\");";
  const Outcome outcome = bench("-e r -e s", program);
  EXPECT_EQ(outcome.status, 0) << outcome.messages;
  EXPECT_EQ(outcome.output.find('"'), std::string::npos);
  EXPECT_THAT(bench("-e it", "r = 1; 2;").messages, HasSubstr("give the expression a name"));
}

TEST_F(BenchCommand, ReferenceHasNoKernels) {
  const Outcome outcome = kelpie("bench --target=reference --entry sum --data '[1, 2]' --runs 2 -", " ");
  EXPECT_EQ(outcome.status, 0) << outcome.messages;
  EXPECT_THAT(outcome.output, HasSubstr("on reference"));
}

TEST_F(BenchCommand, RandomDataHasItsType) {
  const std::string some = "random [200](int:5, float, bool), [30][4]char, [50][~3]int:7, float:0.5";
  EXPECT_THAT(valueOf(some,
                      "let (a, b, c, d) = x in"
                      " (#a, all({(i >= 0) and (i < 5) and (u >= 0.0) and (u < 1.0) : (i, u, t1) in a}),"
                      "  #b, {#r : r in take(b, 3)}, #c, max_val({#r : r in c}) <= 6, d < 0.5)"),
              HasSubstr("it = (200, T, 30, [4, 4, 4], 50, T, T)"));
  EXPECT_THAT(valueOf("random [500]int:-3:2, [100]float:0.5:2^2",
                      "let (a, b) = x in (min_val(a), max_val(a), all({(v >= 0.5) and (v < 4.0) : v in b}))"),
              HasSubstr("it = (-3, 1, T)"));
}

TEST_F(BenchCommand, FailuresAreReported) {
  const auto failure = [&](const std::string& options, const std::string& program) {
    const Outcome outcome = bench(options, program);
    EXPECT_EQ(outcome.status, 1) << options;
    return outcome.messages;
  };
  const std::string program = "function first(a) = a[0];";
  EXPECT_THAT(failure("--entry first --data '[] int'", program), HasSubstr("index 0 is out of range"));
  EXPECT_THAT(failure("--entry last --data '[1]'", program), HasSubstr("`last` is not defined"));
  EXPECT_THAT(failure("--entry first --data '[1'", program), HasSubstr("error"));
  EXPECT_THAT(failure("--entry first --data 'random [1'", program), HasSubstr("`]` is expected"));
  EXPECT_THAT(failure("-e x", "x = 1 / 0;" + program), HasSubstr("kelpie: x reads `x`, which has no value"));
  EXPECT_THAT(failure("-e first --data '[1]'", "x = 1 / 0;" + program), HasSubstr("division by zero"));
  EXPECT_THAT(failure("-e first --data '[1]' --keep-going", "x = 1 + t;" + program), HasSubstr("[K0301]"));
  EXPECT_THAT(failure("-e first --data '[2, 1/0]'", program),
              HasSubstr("--data:1:5: error: division by zero"));
  EXPECT_THAT(failure("-e first --data 'random [2^70]int'", program), HasSubstr("the number is too large"));
  EXPECT_THAT(failure("-e first --data 'random [1.5]int'", program), HasSubstr("a length is a whole number"));
  EXPECT_THAT(failure("-e first", program), HasSubstr("first is a function; --data says"));
  EXPECT_THAT(failure("-e first --data points.data", program), HasSubstr("there is no file points.data"));
  EXPECT_THAT(kelpie("bench -e first --runs 0 --data '[1]' -", program).messages,
              HasSubstr("--runs: 0 is not a whole number from 1 on"));
  EXPECT_THAT(failure("-e first --data '[1]; [2]'", program), HasSubstr("[1]; [2] is not one expression"));
  EXPECT_THAT(failure("-e 'a = 3'", program), HasSubstr("a = 3 is not one expression"));
  EXPECT_THAT(failure("-e first --data " + folder_.string(), program), HasSubstr("is a directory"));
  EXPECT_THAT(failure("-e first --data 'random [1e30]int'", program), HasSubstr("the number is too large"));
  EXPECT_EQ(kelpie("bench -", program).status, 2);
  EXPECT_EQ(kelpie("bench --entry first").status, 2);
  EXPECT_EQ(kelpie("bench --entry first --runs 0 --data '[1]' -", program).status, 2);
}

TEST_F(BenchCommand, ComparesResults) {
  BenchResults before{"a.nesl", "cpu", 1e10, {}};
  const auto add = [](BenchResults& results, const std::string& data, double seconds, int times = 3) {
    std::vector<double> all;
    for (int k = 0; k < times; ++k) all.insert(all.end(), {seconds, 1.01 * seconds, 1.02 * seconds});
    results.results.push_back({"f", data, summarise(all), {}, 0});
  };
  BenchResults after = before;
  add(before, "large", 0.4);
  add(before, "small", 0.01);
  add(before, "old", 1);
  add(after, "large", 0.1);
  add(after, "small", 0.0101);
  add(after, "new", 1);
  write("before", before.toJson());
  write("after", after.toJson());
  const Outcome outcome = kelpie("bench --compare " + path("before") + " " + path("after"));
  EXPECT_EQ(outcome.status, 0) << outcome.messages;
  EXPECT_THAT(outcome.output, HasSubstr("4.00 times faster"));
  EXPECT_THAT(outcome.output, HasSubstr("the same"));
  EXPECT_THAT(outcome.output, HasSubstr("geometric mean: 1.99 times faster"));
  EXPECT_THAT(outcome.output, HasSubstr("only in the first file: f on old"));
  EXPECT_THAT(outcome.output, HasSubstr("only in the second file: f on new"));
  EXPECT_THAT(kelpie("bench --compare " + path("after") + " " + path("before")).output,
              HasSubstr("4.00 times slower"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("too few")));
  BenchResults few{"a.nesl", "cpu", 1e10, {}};
  add(few, "large", 0.4, 1);
  write("few", few.toJson());
  EXPECT_THAT(kelpie("bench --compare " + path("few") + " " + path("after")).output,
              HasSubstr("4.00 times faster, of too few runs to tell"));
  write("text", "function f(a) = a;");
  EXPECT_THAT(kelpie("bench --compare " + path("before") + " " + path("text")).messages,
              HasSubstr("no results of kelpie bench: it is not JSON\n"));
  write("broken", "{}");
  const Outcome broken = kelpie("bench --compare " + path("before") + " " + path("broken"));
  EXPECT_EQ(broken.status, 2);
  EXPECT_THAT(broken.messages, HasSubstr("no results of kelpie bench: key 'kelpieBench' not found"));
  EXPECT_EQ(kelpie("bench --compare " + path("before")).status, 2);
  const Outcome both = kelpie("bench --compare " + path("before") + " " + path("after") + " --entry f");
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.messages, HasSubstr("--compare: compares two files of results and measures nothing"));
}

// A variable that fails stands in the way of nothing that does not read it.
TEST_F(BenchCommand, MeasuresWhatDoesNotFail) {
  const Outcome outcome = kelpie(
      "bench --target=reference -e first --data '[1]' --data '[] int' --data '[7, 8]' --runs 2 --json " +
          path("results") + " -",
      "bad = 1 / 0; function first(a) = a[0];");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.messages, HasSubstr("division by zero"));
  std::string problem;
  const auto results = BenchResults::read(path("results"), problem);
  ASSERT_TRUE(results) << problem;
  ASSERT_EQ(results->results.size(), 2u);
  EXPECT_GT(results->results[1].time.median, 0);
}

TEST_F(BenchCommand, DataIsNotWrittenOver) {
  write("data", "[1, 2]");
  const Outcome outcome = kelpie("bench -e first --data " + path("data") + " --json " + path("data") + " -",
                                 "function first(a) = a[0];");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.messages, HasSubstr("--json would write over the data"));
  EXPECT_EQ(read("data"), "[1, 2]");
}

TEST_F(BenchCommand, WantsTheNameOfAFunction) {
  const Outcome outcome = kelpie("bench - --entry '' --data 1", "function double(a) = 2 * a;");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.messages, HasSubstr("--entry: a function has a name"));
}

}  // namespace
