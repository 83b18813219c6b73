#include "driver/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "frontend/text.h"

namespace kelpie::driver {

namespace {

/// Takes the name of a value for the value; what is no name is wrong usage, which lists the names.
template <typename Value>
CLI::Validator oneOf(const std::map<std::string, Value>& values) {
  const auto translate = [values](std::string& text) -> std::string {
    const auto it = values.find(text);
    if (it == values.end()) {
      std::string names;
      for (const auto& [name, value] : values) names += (names.empty() ? "" : ",") + name;
      return text + " not in {" + names + "}";
    }
    text = std::to_string(static_cast<int>(it->second));
    return "";
  };
  return CLI::Validator(translate, "");
}

std::optional<int64_t> wholeNumber(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A whole number, `least` or more.
CLI::Validator atLeast(int64_t least) {
  const auto check = [least](const std::string& text) -> std::string {
    const auto value = wholeNumber(text);
    return value && *value >= least ? "" : fmt::format("{} is not a whole number from {} on", text, least);
  };
  return CLI::Validator(check, "");
}

/// The random stream has seeds of 32 bits (language.md 4.9).
CLI::Validator seedNumber() {
  static constexpr int64_t kLeast = std::numeric_limits<int32_t>::min(),
                           kMost = std::numeric_limits<uint32_t>::max();
  const auto check = [](const std::string& text) -> std::string {
    const auto value = wholeNumber(text);
    if (value && *value >= kLeast && *value <= kMost) return "";
    return fmt::format("{} is not a whole number from {} to {}", text, kLeast, kMost);
  };
  return CLI::Validator(check, "");
}

/// Of a text that is empty, for want of a variable's value in a script, say, `what` is told.
CLI::Validator named(const char* what) {
  return CLI::Validator(
      [what](const std::string& text) { return text.find_first_not_of(" \t\n") == text.npos ? what : ""; },
      "");
}

void addLanguageOptions(CLI::App& app, Options& options) {
  const std::map<std::string, ScalarType> ints = {{"32", ScalarType::Int32}, {"64", ScalarType::Int64}};
  const std::map<std::string, ScalarType> floats = {{"32", ScalarType::Float32}, {"64", ScalarType::Float64}};
  app.add_option("--int", options.widths.intType, "Width of int in bits: 32 or 64 (default)")
      ->transform(oneOf(ints))
      ->type_name("BITS");
  app.add_option("--float", options.widths.floatType, "Width of float in bits: 32 or 64 (default)")
      ->transform(oneOf(floats))
      ->type_name("BITS");
  app.add_flag("--keep-going", options.keepGoing, "Leave out wrong forms and go on with the others");
  app.add_flag("--verify", options.verify, "Check the intermediate program after every pass");
  app.add_flag("-v,--verbose", options.verbose, "Tell on standard error what is done and how long it takes");
}

void addFile(CLI::App& app, Options& options) {
  app.add_option("FILE", options.file, "NESL program; - is standard input")->required()->type_name("");
}

const std::map<std::string, Stage>& stages() {
  static const std::map<std::string, Stage> kStages = {{"ast", Stage::Ast},   {"core", Stage::Core},
                                                       {"lcu", Stage::Lcu},   {"fused", Stage::Fused},
                                                       {"cuda", Stage::Cuda}, {"cpu", Stage::Cpu}};
  return kStages;
}

void addFusionOption(CLI::App& app, Options& options, const std::string& names = "--fusion,--strategy") {
  using fusion::Strategy;
  const std::map<std::string, Strategy> strategies = {{"none", Strategy::None},
                                                      {"greedy", Strategy::Greedy},
                                                      {"delayed", Strategy::Delayed},
                                                      {"ilp", Strategy::Ilp}};
  app.add_option(names, options.fusion, "How kernels are fused: none, greedy, delayed or ilp (default)")
      ->transform(oneOf(strategies))
      ->type_name("STRATEGY");
  app.add_option("--fusion-sizes", options.sizesFile, "Let fusion count with the sizes of a profile")
      ->check(named("a file has a name"))
      ->type_name("FILE");
}

void addTargetOption(CLI::App& app, Options& options, const std::string& what,
                     const std::set<std::string>& targets) {
  app.add_option("--target", options.target, what)
      ->check(CLI::IsMember(targets).description(""))
      ->type_name("TARGET");
}

void addRunOptions(CLI::App& app, Options& options) {
  addTargetOption(app, options,
                  "Where to run: reference, interp, cpu or cuda; default: cuda when a GPU answers, else cpu",
                  {"reference", "interp", "cpu", "cuda"});
  addFusionOption(app, options);
  addLanguageOptions(app, options);
  app.add_option("--seed", options.seed, "First seed of the random stream (default 1)")
      ->check(seedNumber())
      ->type_name("N");
  const std::map<std::string, RandomGenerator> generators = {{"additive", RandomGenerator::Additive},
                                                             {"philox", RandomGenerator::Philox}};
  app.add_option("--rng", options.generator, "Random numbers: additive (NESL's own, default) or philox")
      ->transform(oneOf(generators))
      ->type_name("GENERATOR");
  app.add_flag("--long-offsets", options.longOffsets,
               "Offsets in 64 bits on a GPU: for more than 2^31 elements in sequences of sequences");
  app.add_option("--kernels", options.kernelsFolder, "Folder of kernels that `build` compiled for the GPU")
      ->check(CLI::ExistingDirectory.description(""))
      ->type_name("FOLDER");
  app.add_option("--print-length", options.printLength,
                 "Elements of a sequence that are printed (default 100)")
      ->check(atLeast(0))
      ->type_name("N");
}

void addWaitOption(CLI::App& app, Options& options) {
  app.add_flag("--wait-for-kernels", options.waitForKernels,
               "Evaluate nothing on the host while kernels are compiled for the GPU");
}

}  // namespace

bool isCompilerHelper(int argc, const char* const* argv) {
  return argc == 2 && std::string_view(kCompilerHelper).ends_with(std::string(" ") + argv[1]);
}

CommandLine parseCommandLine(int argc, const char* const* argv) {
  Options options;
  CLI::App app("Kelpie compiles NESL, the nested data-parallel language, to GPUs and multicore CPUs.",
               "kelpie");
  app.set_version_flag("--version", "kelpie 0.1");
  app.require_subcommand(0, 1);
  app.footer(
      "Exit status: 0 when every form succeeded, 1 for errors in the program or its run, 2 for wrong usage.");

  CLI::App* run =
      app.add_subcommand("run", "Evaluate the top-level forms of a program and print each result");
  addRunOptions(*run, options);
  addWaitOption(*run, options);
  run->add_flag("--profile", options.profileFile,
                "Tell on standard error, or write to FILE, what each kernel took")
      ->option_text("[=FILE]");
  addFile(*run, options);

  CLI::App* repl = app.add_subcommand("repl", "Evaluate forms as they are typed; the same as no arguments");
  addRunOptions(*repl, options);
  addWaitOption(*repl, options);

  CLI::App* check =
      app.add_subcommand("check", "Check a program and print the types of its forms, without running it");
  addLanguageOptions(*check, options);
  addFile(*check, options);

  CLI::App* emit = app.add_subcommand("emit", "Print what a program becomes at one stage of compilation");
  emit->add_option("--stage", options.stage, "ast, core (default), lcu, fused, cuda or cpu")
      ->transform(oneOf(stages()))
      ->type_name("STAGE");
  addFusionOption(*emit, options);
  addLanguageOptions(*emit, options);
  addFile(*emit, options);

  CLI::App* report = app.add_subcommand("fusion", "Report which kernels are fused, which are not, and why");
  const std::map<std::string, FusionFormat> formats = {{"text", FusionFormat::Text},
                                                       {"json", FusionFormat::Json},
                                                       {"dot", FusionFormat::Dot},
                                                       {"html", FusionFormat::Html}};
  report->add_option("--format", options.format, "text (default), json, dot or html")
      ->transform(oneOf(formats))
      ->type_name("FORMAT");
  report->add_option("--function", options.function, "Report only regions with code of this function")
      ->check(named("a function has a name"))
      ->type_name("NAME");
  report->add_flag("--compare", options.compare,
                   "Sum up, at the end, what each strategy takes (not in a graph)");
  CLI::Option* measure =
      report->add_flag("--run", options.measure,
                       "Run the program, some four times, and report measured beside predicted figures");
  report
      ->add_option("--profile", options.profileFile,
                   "With --run: write what was measured and sampled, for --fusion-sizes")
      ->needs(measure)
      ->check(named("a file has a name"))
      ->type_name("FILE");
  report->add_option("-o,--output", options.outputFile, "Write the report to a file")
      ->check(named("a file has a name"))
      ->type_name("FILE");
  report
      ->add_option("--emit-lp", options.lpFile,
                   "Write the integer program of each region in CPLEX LP format; "
                   "those after the first get -2, -3, ... before the ending")
      ->check(named("a file has a name"))
      ->type_name("FILE");
  report
      ->add_option("--costs", options.costsFile,
                   "Constants of the cost model, as JSON, in the place of the target's")
      ->check(named("a file has a name"))
      ->type_name("FILE");
  addTargetOption(*report, options,
                  "Whose costs to count with, and where --run runs: interp, cpu or cuda (default)",
                  {"interp", "cpu", "cuda"});
  addFusionOption(*report, options, "--strategy,--fusion");
  addLanguageOptions(*report, options);
  addFile(*report, options);

  CLI::App* build = app.add_subcommand("build", "Compile the kernels of a program for GPUs before it runs");
  const std::map<std::string, int> architectures = {{"sm_80", 80}, {"sm_86", 86},   {"sm_89", 89},
                                                    {"sm_90", 90}, {"sm_100", 100}, {"sm_120", 120}};
  build
      ->add_option("--arch", options.architectures,
                   "sm_90 (default), sm_80, sm_86, sm_89, sm_100, sm_120, or several with commas")
      ->delimiter(',')
      ->transform(oneOf(architectures))
      ->type_name("ARCH");
  build
      ->add_option("-o,--output", options.outputFile,
                   "Folder to compile into, for `run --kernels`; default: the cache of compiled kernels")
      ->check(named("a folder has a name"))
      ->type_name("FOLDER");
  addFusionOption(*build, options);
  addLanguageOptions(*build, options);
  addFile(*build, options);

  CLI::App* bench = app.add_subcommand("bench", "Measure a function of a program on data sets");
  bench
      ->add_option("-e,--entry", options.entries,
                   "Function to measure; without --data an expression; may be given several times")
      ->allow_extra_args(false)
      ->check(named("a function has a name"))
      ->type_name("FUNCTION");
  bench
      ->add_option("--data", options.data,
                   "Arguments: a file of NESL values, values, or types of random ones, as in "
                   "'random [1000000]int:100, float'; may be given several times")
      ->allow_extra_args(false)
      ->type_name("DATA");
  bench
      ->add_option("-r,--runs", options.runs,
                   "Runs on each data set; default: until the median is known to 1 %")
      ->check(atLeast(1))
      ->type_name("N");
  bench
      ->add_option("--json", options.jsonFile,
                   "Write the results to a file, too; -: to standard output, instead of the table")
      ->check(named("a file has a name"))
      ->type_name("FILE");
  bench->add_option("--compare", options.compared, "Compare two files of results instead")
      ->expected(2)
      ->type_name("FILE FILE");
  addRunOptions(*bench, options);
  bench->add_option("FILE", options.file, "NESL program; - is standard input")->type_name("");
  run->callback([&options] {
    if (options.target == "reference" && !options.profileFile.empty())
      throw CLI::ValidationError("--profile", "the target reference has no kernels");
  });
  report->callback([&options] {
    if (options.compare && options.format == FusionFormat::Dot)
      throw CLI::ValidationError("--compare", "a graph has no place for sums; text, json and html have");
  });
  bench->callback([&options] {
    if (options.compared.empty() && (options.file.empty() || options.entries.empty()))
      throw CLI::RequiredError("FILE and --entry, or --compare,");
    if (!options.compared.empty() &&
        !(options.file.empty() && options.entries.empty() && options.data.empty()))
      throw CLI::ValidationError("--compare", "compares two files of results and measures nothing");
  });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') {
      std::error_code none;
      std::cerr << "kelpie: `" << argv[1] << "` is no command; ";
      if (std::filesystem::is_regular_file(argv[1], none))
        std::cerr << "to run a program: kelpie run " << argv[1] << "\n";
      else
        std::cerr << "kelpie --help lists the commands\n";
      return {std::nullopt, 2};
    }
    const int status = app.exit(error, std::cout, std::cerr) == 0 ? 0 : 2;
    if (dynamic_cast<const CLI::ExtrasError*>(&error) && options.profileFile == "true")
      std::cerr << "A file for the profile is written behind `=`: --profile=FILE\n";
    return {std::nullopt, status};
  }
  if (options.profileFile == "true") options.profileFile = "-";  // what CLI11 makes of a flag without value
  if (options.architectures.empty()) options.architectures = {90};
  options.function = lowerCase(options.function);  // as names are in the compiler
  options.command = run->parsed()      ? Command::Run
                    : check->parsed()  ? Command::Check
                    : emit->parsed()   ? Command::Emit
                    : report->parsed() ? Command::Fusion
                    : build->parsed()  ? Command::Build
                    : bench->parsed()  ? Command::Bench
                                       : Command::Repl;
  return {options, 0};
}

PipelineOptions pipelineOptions(const Options& options, const std::string& target) {
  PipelineOptions pipeline;
  pipeline.fusion.strategy = options.fusion;
  pipeline.known = options.knownSizes;
  pipeline.fusion.device = options.device;
  pipeline.fusion.predict = false;
  pipeline.verify = options.verify;
#ifdef KELPIE_ALWAYS_VERIFY
  pipeline.verify = true;
#endif
  if (target == "cpu") {
    pipeline.fusion.costs = fusion::cpuCosts();
    pipeline.fusion.evaluator = fusion::interpCosts();
  }
  if (target == "cuda") pipeline.fusion.costs.shortOffsets = true;
  if (target == "interp") pipeline.fusion.costs = fusion::interpCosts();
  for (const auto& [cost, value] : options.costs) pipeline.fusion.costs.*cost->value = value;
  return pipeline;
}

std::optional<Stage> stageFromName(const std::string& name) {
  const auto found = stages().find(name);
  return found == stages().end() ? std::nullopt : std::optional(found->second);
}

}  // namespace kelpie::driver
