// The command `kelpie` from outside: output, messages, exit status.
#include "tests/driver/command.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace {

using testing::HasSubstr;
using testing::Not;

using kelpie::testing::Command;
using kelpie::testing::Outcome;

/// As many digits as one likes.
TEST_F(Command, PrintLengthMayBeLarge) {
  for (const char* length : {"1000000000", "0000000000150", "99999999999999999999999"}) {
    const Outcome outcome =
        kelpie("run --target=cpu -", "set print_length " + std::string(length) + ";\n[0:150];\n");
    EXPECT_THAT(outcome.output, HasSubstr(" 149]")) << length;
    EXPECT_EQ(outcome.messages, "") << length;
  }
}

TEST_F(Command, PrintsResultsAsNeslDoes) {
  const Outcome outcome = run(R"(
    function double(x) = x + x;
    function later(x) : int -> int;
    datatype polar(float, float);
    a, b = double(3), 4.5;
    v |= [1, 2];
    polar(1.0, b);
    {double(i) : i in v | i > 1};
    function double(x) = x + 1.0;
    set print_length 2;
    [1, 2, 3];
    print_string("no line end");
    1, 2;
  )");
  EXPECT_EQ(outcome.output,
            "double = fn : a -> a :: (a in number)\n"
            "later = fn : int -> int\n"
            "polar = fn : (float, float) -> polar\n"
            "(a, b) = (6, 4.5) : int, float\n"
            "v : [int]\n"
            "it = polar(1.0, 4.5) : polar\n"
            "it = [4] : [int]\n"
            "Redefining double with a new type.  Old calls will not be modified.\n"
            "double = fn : float -> float\n"
            "it = [1, 2,...] : [int]\n"
            "no line end\n"
            "it = T : bool\n"
            "it = (1, 2) : int, int\n");
  EXPECT_EQ(outcome.messages, "");
  EXPECT_EQ(outcome.status, 0);
}

TEST_F(Command, RandomFloatsOf32BitsAreBelowTheirBound) {
  const std::string program = "rand(3.4e38); {rand(x) : x in [99999999.5, 2.5, 3.4e38]};";
  const Outcome expected = run(program, "--target=reference --float=32");
  EXPECT_EQ(expected.output.find("INF"), std::string::npos);
  for (const char* target : {"interp", "cpu"})
    EXPECT_EQ(run(program, std::string("--float=32 --target=") + target).output, expected.output) << target;
}

TEST_F(Command, RandomFloatsAreBelowTheirBound) {
  const std::string program = "{rand(x) : x in dist(1.7e308, 5)}; rand(1e308) < 1e308;";
  const Outcome expected = run(program);
  EXPECT_EQ(expected.output.find("INF"), std::string::npos);
  EXPECT_THAT(expected.output, HasSubstr("it = T"));
  for (const char* target : {"interp", "cpu"})
    EXPECT_EQ(run(program, std::string("--target=") + target).output, expected.output) << target;
}

/// A draw that is near enough to the bound to be rounded up to it, and what is found by loops in elements.
TEST_F(Command, ValuesOf32BitsAreTheSameOnAllTargets) {
  const std::string program = R"(
    let s = rand_seed(22100322) in {rand(x) : x in [3.0]};
    {rand(x) : x in [1e-45, 3e-45]};
    {@x : x in [8388607.5, 123456.789, 0.3, 1e-45]};
    {@(int64(i) * int64(1000000000)) : i in [3, -9]};
    {parse_float(s) : s in ["1.17549435e-38", "3.14159274", "1e4294967297", "0e400"]};
    {isqrt(x) : x in [16785408, 16785409, max_int]};
  )";
  for (const char* target : {"reference", "interp", "cpu"}) {
    const Outcome outcome = run(program, std::string("--int=32 --float=32 --target=") + target);
    EXPECT_EQ(outcome.output,
              "it = [2.9999998] : [float]\n"
              "it = [0.0, 1.0E-45] : [float]\n"
              "it = [\"8388607.5\", \"123456.79\", \"0.30000001\", \"1.4012985e-45\"] : [[char]]\n"
              "it = [\"3000000000\", \"-9000000000\"] : [[char]]\n"
              "it = [(1.1754944E-38, T), (3.1415927, T), (INF, T), (0.0, T)] : [(float, bool)]\n"
              "it = [4096, 4097, 46340] : [int]\n")
        << target << ": " << outcome.messages;
  }
}

TEST_F(Command, HashTellsOfItsRangeWhereItIsFused) {
  for (const char* options : {"--target=reference", "--target=interp", "--target=cpu --fusion=delayed"}) {
    const Outcome outcome = run("v = [5, 0]; hash(v[0], v[1]); {hash(x, y) : x in v; y in v};", options);
    EXPECT_THAT(outcome.messages, HasSubstr(":1:13: error: hash: the range 0 is not positive")) << options;
    EXPECT_THAT(outcome.messages, HasSubstr(":1:32: error: hash: the range 0 is not positive")) << options;
  }
}

/// Sources of different lengths are a mistake of the whole apply-to-each, also of one with a filter.
TEST_F(Command, LengthsAreToldOfTheApplyToEach) {
  for (const char* target : {"reference", "interp"}) {
    const Outcome outcome = run("{x : x in [1]; y in [1, 2] | t};", std::string("--target=") + target);
    EXPECT_THAT(outcome.messages, HasSubstr(":1:1: error: sequences of different lengths, 1 and 2"))
        << target;
  }
}

TEST_F(Command, NansInFilesHaveNoSign) {
  const std::string file = path("nans");
  for (const char* target : {"reference", "interp", "cpu"}) {
    run("inf = 1e400; v = [0.0, inf - inf]; write_object_to_file({abs(x + asin(2.0)) : x in v}, \"" + file +
            "\");",
        std::string("--target=") + target);
    EXPECT_EQ(read("nans"), "[ 2 ]\n( nan nan )\n") << target;
  }
}

TEST_F(Command, ErrorsInFunctionsTellTheForm) {
  const Outcome outcome = run("function part(s, k) = s[k];\npart([1], 0);\npart([1], 1);\n[1][2];");
  EXPECT_THAT(outcome.messages, HasSubstr("<stdin>:3:1: note: in the evaluation of this form"));
  EXPECT_THAT(outcome.messages, Not(HasSubstr("<stdin>:4:1: note")));
}

TEST_F(Command, StaticErrorsAreAllReportedAndNothingRuns) {
  const Outcome outcome = run("print_string(\"ran\"); 1 + ; undefined_name; 1 + 2.0; 4;");
  EXPECT_EQ(outcome.output, "");
  EXPECT_THAT(outcome.messages,
              HasSubstr("<stdin>:1:26: error: expected an expression but found `;` [K0101]"));
  EXPECT_THAT(outcome.messages, HasSubstr("<stdin>:1:28: error: `undefined_name` is not defined"));
  EXPECT_THAT(outcome.messages, HasSubstr("<stdin>:1:44: error:"));
  EXPECT_EQ(outcome.status, 1);
}

TEST_F(Command, LinesOfPipedInputAreCounted) {
  const Outcome outcome = kelpie("repl --target=reference", "1;\n\n  1/0;\nfunction g(x) =\n  x + tt;\n1 +");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.output, "it = 1 : int\n");
  EXPECT_THAT(outcome.messages, HasSubstr("<input>:3:3: error: division by zero [K0501]\n 3 |   1/0;\n"));
  EXPECT_THAT(outcome.messages, HasSubstr("<input>:5:7: error: `tt` is not defined"));
  EXPECT_THAT(outcome.messages, HasSubstr("<input>:6:4: error: the last form is not ended"));
}

TEST_F(Command, AFloodOfErrorsIsCut) {
  std::string program = "[x0";
  for (int i = 1; i < 500; ++i) program += ", x" + std::to_string(i);
  const Outcome outcome = run(program + "];");
  EXPECT_THAT(outcome.messages, HasSubstr("more messages are not shown"));
  EXPECT_THAT(outcome.messages, Not(HasSubstr("`x499`")));
  EXPECT_EQ(outcome.status, 1);
}

/// Forms that read what a failed one should have bound do not bury it.
TEST_F(Command, FormsWithoutValuesAreCounted) {
  std::string program = "a = 1 / 0;";
  for (const char* form : {"a + 1;", "b = a;", "b + 1;", "a + 2;", "3;", "a + 4;"}) program += form;
  const Outcome outcome = run(program);
  EXPECT_THAT(outcome.messages, HasSubstr("this form reads `b`, which has no value"));
  EXPECT_THAT(outcome.messages, HasSubstr("kelpie: 2 more forms read what has no value\n"));
  EXPECT_THAT(outcome.output, HasSubstr("it = 3"));
  EXPECT_EQ(outcome.status, 1);
}

TEST_F(Command, MoreElementsThanCanBeCountedAreOutOfMemory) {
  for (const char* target : {"interp", "cpu"}) {
    const Outcome outcome =
        kelpie(std::string("run --target=") + target + " -", "{[0:n] : n in [max_int, 1]}; 8;");
    EXPECT_EQ(outcome.output, "it = 8 : int\n") << target;
    EXPECT_THAT(outcome.messages, HasSubstr("out of memory: an apply-to-each has more elements")) << target;
    EXPECT_EQ(outcome.status, 1) << target;
  }
  // Rounded up to whole blocks, or counted with their segments, these are more than 2^63.
  for (const char* target : {"interp", "cpu"})
    for (const char* form :
         {"sum(dist(1, max_int));", "max_val([0:max_int]);", "any({i == 3 : i in [0:max_int]});",
          "#{i in [0:max_int] | i < 5};", "max_index([0:max_int]);"}) {
      const Outcome outcome = kelpie(std::string("run --target=") + target + " -", form);
      EXPECT_EQ(outcome.output, "") << target << ' ' << form;
      EXPECT_THAT(outcome.messages, HasSubstr("out of memory")) << target << ' ' << form;
    }
}

TEST_F(Command, CountsOfOneAreSingular) {
  const Outcome outcome =
      kelpie("run --target=interp -v -", "sum([1, 2, 3]); sum([0:3]) + #{i in [0:9] | i > 3};");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.messages, HasSubstr(" launch"));
  EXPECT_THAT(outcome.messages, testing::ContainsRegex(" 1 (launch|wait|allocation)[, ]"));
  EXPECT_THAT(outcome.messages, Not(testing::ContainsRegex(" 1 (launches|waits|allocations)")));
}

TEST_F(Command, AFileWithoutACommandIsNotGuessedAt) {
  write("some.nesl", "1;");
  const Outcome file = kelpie(path("some.nesl"));
  EXPECT_EQ(file.status, 2);
  EXPECT_THAT(file.messages, HasSubstr("to run a program: kelpie run " + path("some.nesl")));
  const Outcome word = kelpie("rum " + path("some.nesl"));
  EXPECT_EQ(word.status, 2);
  EXPECT_THAT(word.messages, HasSubstr("`rum` is no command"));
}

TEST_F(Command, AFileOfAProfileNeedsAnEqualsSign) {
  write("some.nesl", "1;");
  const Outcome outcome = kelpie("run --profile " + path("some.prof") + " " + path("some.nesl"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.messages, HasSubstr("--profile=FILE"));
}

TEST_F(Command, KeepGoingRunsTheRest) {
  const Outcome outcome = run("1; 2 + ; undefined_name; 3;", "--target=reference --keep-going");
  EXPECT_EQ(outcome.output, "it = 1 : int\nit = 3 : int\n");
  EXPECT_THAT(outcome.messages, HasSubstr("undefined_name"));
  EXPECT_EQ(outcome.status, 1);
}

/// A reserved name is told once for each form, where it is bound; what needs a definition that has a mistake
/// is told once, and not what needs that in turn.
TEST_F(Command, OneMistakeIsToldOnce) {
  const Outcome reserved =
      run("function way(trips) =\n"
          "  let time = sum({m : (m, d) in trips})\n"
          "  in (time, time + 1);\n"
          "ways = {way(s) : s in [[(1, 2)], [(3, 4)]]};\n"
          "ways;\n"
          "way([(1, 2)]);\n"
          "sum({time : (time, d) in [(1, 2)]});\n"
          "time + 1;\n"
          "1 + 1;\n");
  EXPECT_EQ(reserved.status, 1);
  const auto count = [](const std::string& text, const std::string& part) {
    size_t number = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
    return number;
  };
  EXPECT_EQ(count(reserved.messages, "error:"), 4u) << reserved.messages;
  EXPECT_THAT(reserved.messages, HasSubstr("<stdin>:2:7: error: `time` is reserved and cannot be bound"));
  EXPECT_THAT(reserved.messages, HasSubstr("<stdin>:4:9: error: `way` is not defined, because its"));
  EXPECT_THAT(reserved.messages, HasSubstr("<stdin>:7:14: error: `time` is reserved and cannot be bound"));
  EXPECT_THAT(reserved.messages, HasSubstr("<stdin>:8:1: error: `time` is not a value"));
  const Outcome others = run("f = [1];\n(t, x) = (f, t);\n");
  EXPECT_THAT(others.messages, HasSubstr("`f` is a boolean constant and cannot be bound"));
  EXPECT_THAT(others.messages, HasSubstr("`t` is a boolean constant and cannot be bound"));
}

TEST_F(Command, ARunTimeErrorStopsItsFormAndThoseThatNeedIt) {
  const Outcome outcome =
      run("x = 5;\n"
          "function addx(n) = n + x;\n"
          "y = [1,2][x];\n"
          "y + 1;\n"
          "addx(1);\n"
          "z = y;\n"
          "z;\n"
          "y = 7;\n"
          "y;\n");
  EXPECT_EQ(outcome.output, "x = 5 : int\naddx = fn : int -> int\nit = 6 : int\ny = 7 : int\nit = 7 : int\n");
  EXPECT_THAT(outcome.messages, HasSubstr("<stdin>:3:"));
  EXPECT_THAT(outcome.messages, HasSubstr(" 3 | y = [1,2][x];"));
  EXPECT_THAT(outcome.messages, HasSubstr("[K0501]"));
  EXPECT_THAT(outcome.messages, HasSubstr("<stdin>:4:1: error: this form reads `y`, which has no value"));
  EXPECT_THAT(outcome.messages, HasSubstr("<stdin>:6:1: error: this form reads `y`, which has no value"));
  EXPECT_THAT(outcome.messages, HasSubstr("<stdin>:7:1: error: this form reads `z`, which has no value"));
  EXPECT_THAT(outcome.messages, HasSubstr("the form that should have bound `y` failed"));
  EXPECT_EQ(outcome.status, 1);
}

TEST_F(Command, ErrorsComeBetweenTheOutputsOfTheirNeighbours) {
  const std::string text = kelpie("run --target=reference - 2>&1 | cat", "1; 2 / 0; 3;").output;
  ASSERT_NE(text.find("it = 1"), std::string::npos);
  EXPECT_LT(text.find("it = 1"), text.find("error"));
  EXPECT_LT(text.find("error"), text.find("it = 3"));
}

TEST_F(Command, OptionsReachTheProgram) {
  EXPECT_EQ(run("2147483647 + 1;", "--target=reference --int=32").output, "it = -2147483648 : int\n");
  EXPECT_EQ(run("2147483647 + 1;").output, "it = 2147483648 : int\n");
  EXPECT_EQ(run("[0:9];", "--target=reference --print-length=3").output, "it = [0, 1, 2,...] : [int]\n");
  EXPECT_EQ(run("{rand(i) : i in dist(100,6)};").output, "it = [83, 86, 77, 15, 93, 35] : [int]\n");
  EXPECT_NE(run("{rand(i) : i in dist(100,6)};", "--target=reference --seed 7").output,
            "it = [83, 86, 77, 15, 93, 35] : [int]\n");
  const std::string philox = run("{rand(i) : i in dist(100,6)};", "--target=reference --rng=philox").output;
  EXPECT_NE(philox, "it = [83, 86, 77, 15, 93, 35] : [int]\n");
  EXPECT_EQ(run("{rand(i) : i in dist(100,6)};", "--target=reference --rng=philox").output, philox);
  EXPECT_THAT(run("1;", "--target=reference -v").messages, HasSubstr("target reference"));
}

TEST_F(Command, TargetsAndStrategiesAgree) {
  const std::string program = R"(
    function qs(a) = if #a < 2 then a else
      let pivot = a[#a/2];
          les = {e in a | e < pivot}; eq = {e in a | e == pivot}; grt = {e in a | e > pivot};
          r = {qs(v) : v in [les, grt]}
      in r[0] ++ eq ++ r[1];
    qs({rem(i * 7919, 1009) : i in [0:60]});
    {sum({x * y : x in row}) : row in [[1, 2], [] int, [3]]; y in [10, 20, 30]};
    x = {1.0 / float(i) : i in [1:20]};
    (sum(x), max_scan(x), "abc" ++ "d");
    [1, 2][5];
    {if i == 2 then [10] else [i : 4] : i in [0:4]};
  )";
  const Outcome reference = run(program);
  EXPECT_THAT(reference.output, HasSubstr("it = [30, 0, 90] : [int]"));
  for (const char* options : {"--target=interp --verify", "--target=interp --fusion=none --verify",
                              "--target=interp --fusion=greedy --verify", "--target=cpu --verify"}) {
    const Outcome outcome = run(program, options);
    EXPECT_EQ(outcome.output, reference.output) << options;
    EXPECT_EQ(outcome.messages, reference.messages) << options;
    EXPECT_EQ(outcome.status, 1) << options;
  }
}

/// What one branch of an apply-to-each prints comes before what fails in a later one, and not after what has
/// failed in an earlier one.
TEST_F(Command, BranchesPrintAndFailInOrder) {
  for (const std::string target : {"reference", "interp", "cpu"}) {
    const Outcome later =
        run("{if i > 1 then print_string(@i) else 10 / (i - 1) > 0 : i in [3, 1]};", "--target=" + target);
    EXPECT_EQ(later.output, "3") << target;
    EXPECT_THAT(later.messages, HasSubstr("<stdin>:1:38: error: division by zero")) << target;
    const Outcome earlier =
        run("{if i > 1 then 10 / (i - 3) else (let b = print_string(@i) in 1) : i in [3, 1]};",
            "--target=" + target);
    EXPECT_EQ(earlier.output, "") << target;
    EXPECT_THAT(earlier.messages, HasSubstr("<stdin>:1:16: error: division by zero")) << target;
  }
}

TEST_F(Command, CheckPrintsTypesWithoutRunning) {
  const Outcome outcome =
      kelpie("check -", "function g(x) = x + 1; y = error(\"no\"); print_string(\"no\");");
  EXPECT_EQ(outcome.output, "g : int -> int\ny : bool\nit : bool\n");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(kelpie("check -", "1 + t;").status, 1);
}

TEST_F(Command, EmitShowsEveryStage) {
  const std::string program = "function g(xs) = sum({x * x : x in xs}); g([1.0, 2.0]);";
  const auto emit = [&](const std::string& stage) { return kelpie("emit --stage=" + stage + " -", program); };
  EXPECT_EQ(emit("ast").output, "function g(xs) =\n  sum({(x * x) : x in xs});\ng([1.0, 2.0]);\n");
  for (const char* stage : {"core", "lcu", "fused", "cuda", "cpu"}) {
    const Outcome outcome = emit(stage);
    EXPECT_EQ(outcome.status, 0) << stage << outcome.messages;
    EXPECT_THAT(outcome.output, HasSubstr("<stdin>:1:42")) << stage;
  }
  EXPECT_THAT(emit("lcu").output, HasSubstr("REDUCE"));
  EXPECT_THAT(emit("cuda").output, HasSubstr("__global__"));
}

TEST_F(Command, FusionReports) {
  const std::string program =
      "function norm2(xs) = let s1 = sum(xs); gts = {x in xs | x > 0.0}; s2 = sum(gts)\n"
      "  in ({x/s1 : x in xs}, {x/s2 : x in xs});\n"
      "norm2({float(i) - 3.0 : i in [0:10]});";
  const Outcome text = kelpie("fusion -", program);
  EXPECT_EQ(text.status, 0) << text.messages;
  EXPECT_THAT(text.output, HasSubstr("ilp"));
  const Outcome json = kelpie("fusion --format=json -", program);
  EXPECT_EQ(json.status, 0) << json.messages;
  const auto report = nlohmann::json::parse(json.output);
  ASSERT_EQ(report["forms"].size(), 1u);
  EXPECT_FALSE(report["forms"][0]["report"]["regions"].empty());
}

// The paper's section 5: five kernels become two.
TEST_F(Command, Norm2IsTwoKernels) {
  const std::string program =
      "function norm2(xs) = let s1 = sum(xs); gts = {x in xs | x > 0.0}; s2 = sum(gts)\n"
      "  in ({x/s1 : x in xs}, {x/s2 : x in xs});\n"
      "xs = [1.0, -2.0, 4.0];\nnorm2(xs);";
  const Outcome text = kelpie("fusion -", program);
  EXPECT_THAT(text.output, HasSubstr("5 kernels before, 2 after fusion (ilp, proven optimal"));
  EXPECT_THAT(text.output, HasSubstr("fused by FILTER-REDUCE, REDUCE+REDUCE"));
}

TEST_F(Command, WrongUsageIsStatus2) {
  EXPECT_EQ(kelpie("frobnicate").status, 2);
  const Outcome noCommand = kelpie(path("input"), "1;");
  EXPECT_EQ(noCommand.status, 2);
  EXPECT_THAT(noCommand.messages, HasSubstr("kelpie run " + path("input")));
  EXPECT_EQ(kelpie("run").status, 2);
  EXPECT_EQ(kelpie("run --target=quantum -").status, 2);
  EXPECT_EQ(kelpie("run --int=16 -").status, 2);
  for (const char* seed : {"99999999999999999999", "4294967296", "-2147483649", "0x10", "1.5", "''"})
    EXPECT_THAT(kelpie(std::string("run --seed ") + seed + " -").messages,
                HasSubstr("not a whole number from"))
        << seed;
  EXPECT_EQ(kelpie("run --target=reference --seed 4294967295 -", "1;").status, 0);
  EXPECT_THAT(kelpie("run --fusion-sizes=" + folder_.string() + " -").messages, HasSubstr("cannot read it"));
  EXPECT_EQ(kelpie("run " + path("missing.nesl")).status, 2);
  EXPECT_THAT(kelpie("run " + path("missing.nesl")).messages, HasSubstr("No such file or directory"));
  const Outcome help = kelpie("--help");
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.output, HasSubstr("run"));
}

TEST_F(Command, OutputThatCannotBeWrittenIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  write("program.nesl", "1;");
  const std::string command = std::string(KELPIE_BINARY) + " run --target=reference " + path("program.nesl") +
                              " > /dev/full 2> " + path("messages");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
}

TEST_F(Command, LoadsFilesBesideTheMainOne) {
  write("part.nesl", "function triple(x) = 3 * x; 99;");
  write("main.nesl", "load \"part\"; triple(4); load(\"part\", print := t);");
  const Outcome outcome = kelpie("run --target=reference " + path("main.nesl"));
  EXPECT_EQ(outcome.output, "it = 12 : int\ntriple = fn : int -> int\nit = 99 : int\n");
  EXPECT_EQ(outcome.status, 0) << outcome.messages;
  EXPECT_EQ(run("load \"nowhere\";").status, 1);
}

TEST_F(Command, FilesThatLoadThemselvesAreLoadedOnce) {
  write("self.nesl", "load \"self\"; print_string(\"hi\");");
  const Outcome self = kelpie("run --target=reference --keep-going " + path("self.nesl"));
  EXPECT_EQ(self.output, "hi\nit = T : bool\n");
  EXPECT_THAT(self.messages, HasSubstr("self.nesl:1:1: error"));
  write("one.nesl", "load \"two\";");
  write("two.nesl", "load \"one\";");
  EXPECT_THAT(kelpie("run --target=reference " + path("one.nesl")).messages,
              HasSubstr("two.nesl:1:1: error: `" + path("one.nesl") + "` loads itself"));
}

TEST_F(Command, TooLargeValuesLeaveTheOtherForms) {
  for (const char* target : {"interp", "cpu"}) {
    const Outcome outcome =
        run("a = sum([0:1000]);\n"
            "r = {rand(i) : i in dist(100, 30000000000000)};\n"
            "xs = {i * i : i in [0:100000000000000]};\n"
            "a + 1;",
            std::string("--target=") + target);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.messages, HasSubstr("out of memory: rand needs 30000000000000 elements of 8 bytes"));
    EXPECT_THAT(outcome.messages, HasSubstr("needs 100000000000000 elements of 8 bytes"));
    EXPECT_THAT(outcome.output, HasSubstr("it = 499501 : int"));
  }
}

/// What a compiler does not take is evaluated, and the user is told. (A variable here has the name that the
/// least of several numbers gets, too: that did not compile.)
TEST_F(Command, CompilersThatFailAreReported) {
  const std::string program =
      "function nearest(x, centres) = min_index({(x - c) * (x - c) : c in centres});\n"
      "function mean(xs) = if #xs == 0 then 0.0 else sum(xs) / float(#xs);\n"
      "points = {float(rem(i * 7919, 10007)) : i in [0:400000]};\n"
      "function study(points) = let labels = {nearest(x, {float(i) * 2.5 : i in [0:16]}) : x in points}\n"
      "  in (mean({p in points; l in labels | l == 0}), count({l == 3 : l in labels}));\n"
      "{study(points) : again in [0:2]};\n";
  const Outcome outcome = run(program, "--target=cpu --print-length 1");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.messages, "");
  setenv("KELPIE_CXX", "/bin/false", 1);
  const Outcome other = run(program, "--target=cpu --print-length 1");
  unsetenv("KELPIE_CXX");
  EXPECT_EQ(other.status, 0);
  EXPECT_EQ(other.output, outcome.output);
  EXPECT_THAT(other.messages, HasSubstr("kernels are interpreted, which takes longer: /bin/false failed"));
}

/// The reference makes no kernels, so there is nothing to fuse for it.
TEST_F(Command, FusionHasNoReference) {
  EXPECT_EQ(kelpie("fusion --target=interp -", "{x + 1 : x in [1, 2]};").status, 0);
  const Outcome outcome = kelpie("fusion --target=reference -", "{x + 1 : x in [1, 2]};");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.messages, HasSubstr("reference not in {cpu,cuda,interp}"));
}

/// What files report comes behind what was printed before it, as errors do.
TEST_F(Command, MessagesOfFilesFollowWhatWasPrinted) {
  const Outcome outcome =
      kelpie("run --target=interp - 2>&1", "1 + 1;\nread_string_from_file(\"/nonexistent/zz\");\n2 + 2;\n");
  EXPECT_THAT(outcome.output, HasSubstr("it = 2 : int\n/nonexistent/zz: No such file or directory\n"));
}

TEST_F(Command, TellsOfFoldersWhereFilesShouldBe) {
  const std::string folder = "< " + folder_.string();
  const Outcome prompt = kelpie(folder);
  EXPECT_EQ(prompt.status, 2);
  EXPECT_EQ(prompt.messages, "kelpie: cannot read standard input: Is a directory\n");
  EXPECT_EQ(kelpie("run - " + folder).messages, prompt.messages);
  EXPECT_THAT(run("load \"" + folder_.string() + "\";").messages,
              HasSubstr("error: `" + folder_.string() + "` is a folder [K0402]"));
  EXPECT_THAT(run("load \"" + path("none") + "\";").messages, HasSubstr("there is no file"));
}

}  // namespace
