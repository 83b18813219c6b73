#include "runtime/object_cache.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
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
  EXPECT_EQ(cache.failureOf(source_), std::nullopt);
  void* handle = cache.find(key);
  ASSERT_NE(handle, nullptr);
  const auto answer = reinterpret_cast<int (*)()>(dlsym(handle, "answer"));
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer(), 42);
  EXPECT_NE(ObjectCache(options(true)).keyOf(source_), key);  // other flags, another object
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

}  // namespace
}  // namespace kelpie::runtime
