#include "runtime/object_cache.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace kelpie::runtime {
namespace {

namespace fs = std::filesystem;

class ObjectCacheTest : public ::testing::Test {
 protected:
  ObjectCacheTest() : folder_(fs::temp_directory_path() / ("kelpie-objects-" + std::to_string(getpid()))) {}
  ~ObjectCacheTest() override { fs::remove_all(folder_); }
  ObjectCacheOptions options(bool quick = false) const { return {folder_.string(), "", quick}; }

  const fs::path folder_;
  const std::string source_ = "extern \"C\" int answer() { return 42; }\n";
};

TEST_F(ObjectCacheTest, FindsWhatItCompiled) {
  ObjectCache cache(options());
  const std::string key = cache.keyOf(source_);
  EXPECT_EQ(cache.find(key), nullptr);
  ASSERT_EQ(cache.start({source_}), std::nullopt);
  cache.wait();
  void* handle = cache.find(key);
  ASSERT_NE(handle, nullptr);
  const auto answer = reinterpret_cast<int (*)()>(dlsym(handle, "answer"));
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer(), 42);
  EXPECT_NE(ObjectCache(options(true)).keyOf(source_), key);  // other flags, another object
}

/// A terminal sends Ctrl-C to all that run in it. Compilers that ended by it were taken for useless.
TEST_F(ObjectCacheTest, CompilersSurviveInterrupts) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setpgid(0, 0);
    std::signal(SIGINT, [](int) {});  // unlike SIG_IGN, what is started does not inherit it
    ObjectCache cache(options());
    std::string slow = "#include <regex>\n" + source_;
    if (cache.start({slow})) _exit(2);
    for (int k = 0; k < 20; ++k) {
      usleep(10'000);
      kill(0, SIGINT);
    }
    cache.wait();
    _exit(cache.find(cache.keyOf(slow)) != nullptr ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// While compilers work, somebody looks every few milliseconds whether any of some dozen objects is there.
/// With megabytes of sources that took longer than compiling them, as each look read the source.
TEST_F(ObjectCacheTest, LooksWithoutReadingSources) {
  ObjectCache cache(options());
  std::string large = source_;
  while (large.size() < (1u << 20)) large += "// a kernel like many others\n";
  const std::string key = cache.keyOf(large);
  const clock_t before = std::clock();
  for (int look = 0; look < 2'000; ++look) EXPECT_EQ(cache.find(key), nullptr);
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.5);
}

/// What is left of an object by a machine that stopped ended every process that loaded it.
TEST_F(ObjectCacheTest, WhatIsDamagedIsMadeAnew) {
  ObjectCache compiling(options());
  const fs::path object = folder_ / (compiling.keyOf(source_) + ".so");
  for (const uintmax_t size : {0, 1000, 4096, 8192, 12288}) {
    ASSERT_EQ(compiling.start({source_}), std::nullopt);
    compiling.wait();
    ASSERT_GT(fs::file_size(object), size);
    fs::resize_file(object, size);
    EXPECT_EQ(compiling.find(compiling.keyOf(source_)), nullptr) << size;
    EXPECT_FALSE(fs::exists(object)) << size;
    EXPECT_EQ(compiling.failureOf(source_),
              "a compiled kernel could not be loaded: " + object.string() + " is damaged");
  }
  ASSERT_EQ(compiling.start({source_}), std::nullopt);
  compiling.wait();
  std::fstream(object, std::ios::in | std::ios::out).seekp(5000).write("damage", 6);
  EXPECT_EQ(compiling.find(compiling.keyOf(source_)), nullptr);
  ASSERT_EQ(compiling.start({source_}), std::nullopt);
  compiling.wait();
  EXPECT_NE(compiling.find(compiling.keyOf(source_)), nullptr);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // nothing else is left
}

/// Two containers that share a folder may both be process 1.
TEST_F(ObjectCacheTest, TemporaryFilesHaveNamesOfTheirOwn) {
  const fs::path compiler = folder_ / "compiler";
  fs::create_directories(folder_);
  std::ofstream(compiler) << "#!/bin/sh\nsleep 1\nexit 1\n";
  fs::permissions(compiler, fs::perms::owner_all);
  const auto sources = [&] {
    std::set<std::string> names;
    for (const auto& file : fs::directory_iterator(folder_))
      if (file.path().extension() == ".cpp") names.insert(file.path().filename());
    return names;
  };
  ObjectCache one({folder_.string(), compiler.string(), false}),
      other({folder_.string(), compiler.string(), false});
  ASSERT_EQ(one.start({source_}), std::nullopt);
  ASSERT_EQ(other.start({source_}), std::nullopt);
  EXPECT_EQ(sources().size(), 2u);
  one.wait();
  other.wait();
  EXPECT_EQ(sources().size(), 0u);
}

/// Nothing is left of sources that cannot be written, and the reason is told.
TEST_F(ObjectCacheTest, AFullDiskIsTold) {
  ObjectCache cache(options());
  const std::string large = source_ + "// " + std::string(1 << 16, 'x') + "\n";
  (void)cache.keyOf(source_);  // makes the folder
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{1 << 12, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const std::optional<std::string> failure = cache.start({source_, large});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(failure.has_value());
  EXPECT_THAT(*failure, ::testing::StartsWith("cannot write " + folder_.string()));
  EXPECT_THAT(*failure, ::testing::EndsWith(".cpp: File too large"));
  EXPECT_TRUE(fs::is_empty(folder_));
  // It is no longer taken for begun.
  ASSERT_EQ(cache.start({source_}), std::nullopt);
  cache.wait();
  EXPECT_NE(cache.find(cache.keyOf(source_)), nullptr);
}

/// Whose fault it is that a compiler fails.
TEST_F(ObjectCacheTest, MistakesAreToldFromFullDisks) {
  const auto failure = [&](const std::string& compiler, const std::string& source) {
    ObjectCache cache({folder_.string(), compiler, false});
    EXPECT_EQ(cache.start({source}), std::nullopt);
    cache.wait();
    EXPECT_EQ(cache.find(cache.keyOf(source)), nullptr);
    return cache.failureOf(source);
  };
  const std::string mistake = "This is a mistake in Kelpie";
  EXPECT_THAT(failure("", "int answer() { return x; }\n"), ::testing::HasSubstr(mistake));
  EXPECT_EQ(
      failure("/bin/false", source_),
      "/bin/false failed on a generated kernel without a word; there may be no space in " + folder_.string());
  EXPECT_TRUE(fs::is_empty(folder_));
  const fs::path compiler = folder_ / "compiler";
  std::ofstream(compiler)
      << "#!/bin/sh\n"
         "echo \"$3: x.cpp:1:1: fatal error: error writing: No space left on device\" >&2\n"
         "echo 'collect2: error: ld returned 1 exit status' >&2\n"
         "exit 1\n";
  fs::permissions(compiler, fs::perms::owner_all);
  const std::string full = failure(compiler.string(), source_);
  EXPECT_THAT(full, ::testing::HasSubstr("No space left on device"));
  EXPECT_THAT(full, ::testing::Not(::testing::HasSubstr(mistake)));
  std::ofstream(compiler) << "#!/bin/sh\nkill -9 $PPID\n";
  EXPECT_EQ(failure(compiler.string(), source_),
            compiler.string() + " was stopped, or could not write to " + folder_.string());
}

}  // namespace
}  // namespace kelpie::runtime
