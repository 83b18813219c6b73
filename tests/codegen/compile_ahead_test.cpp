// `kelpie build` compiles what a run asks for.
#include "runtime/cuda/compile_ahead.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "emulated_device.h"
#include "flatten/flatten.h"
#include "frontend/session.h"
#include "fusion/fuse.h"
#include "runtime/cuda/code_cache.h"
#include "runtime/cuda/cuda_target.h"
#include "runtime/cuda/nvrtc_compiler.h"
#include "runtime/executor.h"
#include "runtime/services.h"

namespace kelpie::testing {
namespace {

namespace fs = std::filesystem;

/// Notes the name under which machine code of each compiled source would be found.
class RecordingDevice final : public tests::EmulatedDevice {
 public:
  explicit RecordingDevice(std::set<std::string>& keys) : EmulatedDevice(5), keys_(keys) {}
  runtime::Failure compile(const std::string& source, const std::vector<std::string>& entries,
                           std::unique_ptr<runtime::cuda::Module>& module) override {
    keys_.insert(runtime::cuda::CodeCache::key(source, 90));
    return EmulatedDevice::compile(source, entries, module);
  }

 private:
  std::set<std::string>& keys_;
};

constexpr std::chrono::milliseconds kLoading{500};

/// Takes its time to load code.
class SlowDevice final : public tests::EmulatedDevice {
 public:
  SlowDevice() : EmulatedDevice(5) {}
  runtime::Failure compile(const std::string& source, const std::vector<std::string>& entries,
                           std::unique_ptr<runtime::cuda::Module>& module) override {
    std::this_thread::sleep_for(kLoading);
    return EmulatedDevice::compile(source, entries, module);
  }
};

lcu::Program compiled(const core::Program& program) {
  lcu::Program result = flatten::flatten(program);
  fusion::fuse(result);
  return result;
}

std::vector<FormResult> forms(SourceManager& sources, const std::string& nesl) {
  return Session(sources).processFile(sources.add("test.nesl", nesl));
}

TEST(CompileAhead, ARunFindsEveryKernel) {
  SourceManager sources;
  std::set<std::string> asked, known;
  auto services = makeServices();
  // Segmented sums and writes to computed places also need the kernels of the support library, random numbers
  // theirs; comments in the code of the run name places of the program.
  codegen::cuda::CudaOptions options;
  options.describe = [](Span) { return "a place"; };
  runtime::Executor executor(
      std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<RecordingDevice>(asked), options));
  for (const FormResult& form :
       forms(sources,
             "let xs = {rand(i) : i in dist(13, 5000)}; ys = {x in xs | x > 3} in"
             "  ({sum({i * j : j in [0:i]}) : i in ys}, {(rem(y, 50), y) : y in ys} -> dist(0, 50));")) {
    ASSERT_TRUE(form.program);
    const lcu::Program program = compiled(*form.program);
    for (const std::string& source : runtime::cudaSources(program))
      known.insert(runtime::cuda::CodeCache::key(source, 90));
    auto result = executor.run(program, {}, *services);
    EXPECT_TRUE(std::holds_alternative<Columns>(result));
  }
  EXPECT_GE(asked.size(), 3u);
  for (const std::string& key : asked) EXPECT_TRUE(known.contains(key)) << key;
}

// Where tiles begin in the list of segments a kernel of the support library tells, which is loaded for the
// first launch that wants it.
TEST(CompileAhead, TimesOfLaunchesLeaveOutTheLoadingOfCode) {
  SourceManager sources;
  auto services = makeServices();
  codegen::cuda::CudaOptions options;
  options.fewTiles = 0;
  runtime::Executor executor(
      std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<SlowDevice>(), options));
  runtime::RunOptions timed;
  timed.timeKernels = true;
  for (const FormResult& form : forms(sources, "{plus_scan({i * j : j in [0:i]}) : i in [0:20]};")) {
    ASSERT_TRUE(form.program);
    runtime::RunStatistics statistics;
    const auto result = executor.run(compiled(*form.program), {}, *services, timed, &statistics);
    EXPECT_TRUE(std::holds_alternative<Columns>(result));
    EXPECT_FALSE(statistics.kernels.empty());
    for (const runtime::KernelStatistics& kernel : statistics.kernels) {
      EXPECT_GT(kernel.seconds, 0) << kernel.name;
      EXPECT_LT(kernel.seconds, std::chrono::duration<double>(kLoading).count()) << kernel.name;
      ASSERT_FALSE(kernel.passes.empty()) << kernel.name;
      for (const codegen::CompiledPass& pass : kernel.passes) {
        EXPECT_GE(pass.threads, 32);
        EXPECT_GE(pass.blocks, 1);
      }
    }
  }
}

TEST(CompileAhead, CodeIsWrittenOncePerArchitecture) {
  if (!runtime::cuda::NvrtcCompiler().available()) GTEST_SKIP() << "NVRTC is not installed";
  SourceManager sources;
  const std::vector<FormResult> results = forms(sources, "sum({i * i : i in [0:100]});");
  const std::vector<std::string> texts = runtime::cudaSources(compiled(*results[0].program));
  const fs::path folder = fs::temp_directory_path() / ("kelpie-ahead-" + std::to_string(getpid()));
  const auto compile = [&](int architecture) {
    runtime::CompilerStatistics statistics;
    const runtime::Failure failure =
        runtime::compileAhead(texts, architecture, folder.string(), {}, statistics);
    EXPECT_EQ(failure, std::nullopt) << *failure;
    return statistics;
  };
  compile(90);
  const auto files = [&] { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); };
  EXPECT_EQ(static_cast<size_t>(files()), texts.size());
  EXPECT_EQ(compile(90).compiled, 0u);
  compile(80);
  EXPECT_EQ(static_cast<size_t>(files()), 2 * texts.size());
  const runtime::cuda::CodeCache cache(folder.string());
  for (const std::string& text : texts) {
    std::vector<char> code;
    ASSERT_TRUE(cache.read(runtime::cuda::CodeCache::key(text, 80), code));
    EXPECT_EQ(std::string(code.data() + 1, 3), "ELF");
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace kelpie::testing
