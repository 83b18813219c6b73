// The command line of `kelpie`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "driver/pipeline.h"
#include "frontend/nesl_type.h"
#include "fusion/fuse.h"
#include "runtime/random_stream.h"

namespace kelpie::driver {

enum class Command : uint8_t { Repl, Run, Check, Emit, Fusion, Build, Bench };
enum class FusionFormat : uint8_t { Text, Json, Dot, Html };
enum class Stage : uint8_t { Ast, Core, Lcu, Fused, Cuda, Cpu };

struct Options {
  Command command = Command::Run;
  std::string file;    ///< "-": standard input
  std::string target;  ///< "reference", "interp", "cpu", "cuda"; empty: cuda when a GPU answers, else cpu
  Stage stage = Stage::Core;
  FusionFormat format = FusionFormat::Text;  ///< of the fusion report
  std::string function;                      ///< of which alone `fusion` reports; empty: all
  bool compare = false;                      ///< sum up what each strategy takes
  bool measure = false;                      ///< `fusion --run`
  std::string outputFile;                    ///< of the report; empty: standard output
  bool longOffsets = false;                  ///< offsets in 64 bits on a GPU
  std::string kernelsFolder;                 ///< kernels that `build` compiled; empty: none
  std::vector<int> architectures;            ///< that `build` compiles for: 90 for sm_90
  std::vector<std::string> entries;          ///< that `bench` measures
  std::vector<std::string> data;             ///< sets of `bench` (driver/data_set.h)
  int runs = 0;                              ///< of each data set; 0: until the time is known
  std::string jsonFile;               ///< where `bench` writes its results; empty: nowhere, "-": output
  std::vector<std::string> compared;  ///< two files of results; empty: `bench` measures
  std::string lpFile;                 ///< where `fusion` writes its integer programs; empty: nowhere
  std::string profileFile;            ///< that `run` writes; empty: none, "-": a table is shown
  std::string sizesFile;              ///< profile to take sizes from; empty: none
  SizesByForm knownSizes;             ///< what the profile says
  codegen::DeviceFigures device;      ///< where the program has run, for what is predicted
  std::string costsFile;              ///< constants for `fusion` to count with; empty: those of the target
  std::vector<std::pair<const fusion::NamedCost*, double>> costs;  ///< what it says
  fusion::Strategy fusion = fusion::Strategy::Ilp;
  Widths widths;
  int64_t seed = 1;
  RandomGenerator generator = RandomGenerator::Additive;
  int64_t printLength = 100;
  bool waitForKernels = false;  ///< on a GPU nothing is evaluated on the host meanwhile
  bool keepGoing = false, verbose = false, verify = false;
};

/// What the options say about the passes. `target` decides the costs that fusion counts with.
PipelineOptions pipelineOptions(const Options& options, const std::string& target);

std::optional<Stage> stageFromName(const std::string& name);

/// The options, or the exit status when there is nothing to do: 0 after --help and --version, 2 for wrong
/// usage (the reason has been printed).
struct CommandLine {
  std::optional<Options> options;
  int status = 0;
};
CommandLine parseCommandLine(int argc, const char* const* argv);

/// The command with which this program starts itself to compile kernels in another process
/// (runtime/cuda/compiler_process.h); it is no command for users.
inline constexpr const char* kCompilerHelper = "/proc/self/exe compile-for-parent";
bool isCompilerHelper(int argc, const char* const* argv);

}  // namespace kelpie::driver
