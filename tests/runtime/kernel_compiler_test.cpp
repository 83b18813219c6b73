// Machine code of GPUs where the system lets nobody help.
#include "runtime/cuda/kernel_compiler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/cuda/compile_ahead.h"
#include "tests/runtime/no_threads.h"

namespace kelpie::testing {
namespace {

namespace fs = std::filesystem;
using runtime::cuda::CompilerServer;
using runtime::cuda::KernelCompiler;

TEST(KernelCompiler, WithoutThreadsWhoWaitsCompiles) {
  const fs::path folder = fs::temp_directory_path() / ("kelpie-alone-" + std::to_string(getpid()));
  ::setenv("KELPIE_CACHE", folder.c_str(), 1);
  for (const bool served : {false, true}) {
    const tests::NoThreads none;
    KernelCompiler compiler(90, "", served ? std::make_shared<CompilerServer>("false") : nullptr, served, 8);
    const std::string good =
        served ? "extern \"C\" __global__ void one() {}\n" : "extern \"C\" __global__ void two() {}\n";
    const std::string bad = "this is no source\n";
    compiler.start({good, bad}, true);
    compiler.hurry(bad);
    EXPECT_TRUE(compiler.isReady(good));  // nobody makes it readier
    std::vector<char> code;
    EXPECT_NE(compiler.take(bad, code), std::nullopt);
    const runtime::Failure failure = compiler.take(good, code);
    EXPECT_EQ(!failure.has_value(), compiler.available()) << failure.value_or("");
    EXPECT_FALSE(compiler.busy());
  }
  ::unsetenv("KELPIE_CACHE");
  fs::remove_all(folder);
}

TEST(KernelCompiler, WithoutThreadsNothingGetsReadyAhead) {
  const tests::NoThreads none;
  EXPECT_FALSE(runtime::startCompilers("false").here.valid());
}

size_t openFiles() { return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {})); }

TEST(CompilerServer, ACommandThatDoesNotStartTakesNoFiles) {
  CompilerServer server("/does/not/exist");
  const size_t before = openFiles();
  for (int k = 0; k < 10; ++k) EXPECT_EQ(server.fork(), -1);
  EXPECT_EQ(openFiles(), before);
}

}  // namespace
}  // namespace kelpie::testing
