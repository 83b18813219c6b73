// A file is whole or it is not there.
#include "runtime/sealed_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/cuda/code_cache.h"

namespace kelpie::runtime {
namespace {

namespace fs = std::filesystem;

class SealedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kelpie-sealed-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::optional<std::string> readBack(const std::string& all) const {
    const fs::path path = folder_ / "file";
    std::ofstream(path, std::ios::binary) << all;
    return readSealed(path);
  }

  fs::path folder_;
};

/// Shells make the same seal.
TEST_F(SealedFile, SealsAreThoseOfCksum) {
  EXPECT_EQ(sealOf(""), "4294967295 0\n");
  EXPECT_EQ(sealOf("hello\n"), "3015617425 6\n");
  EXPECT_EQ(sealOf(std::string(100'000, '\xff')), "2554837191 100000\n");
}

TEST_F(SealedFile, OnlyWhatIsWholeIsRead) {
  for (const std::string& content : {std::string(), std::string("12 34"), std::string(5000, '\0')}) {
    const std::string all = content + sealOf(content);
    EXPECT_EQ(readBack(all), content);
    for (size_t size = 0; size < all.size(); size += all.size() < 100 ? 1 : 997)
      EXPECT_EQ(readBack(all.substr(0, size)), std::nullopt) << size;
    std::string changed = all;
    changed[changed.size() / 3] ^= 1;
    EXPECT_EQ(readBack(changed), std::nullopt);
    EXPECT_EQ(readBack(all + "\n"), std::nullopt);
  }
  EXPECT_EQ(readBack("no seal"), std::nullopt);
  EXPECT_EQ(readSealed(folder_ / "none"), std::nullopt);
}

/// The driver reads what it takes for code as far as that says, whatever there is.
TEST_F(SealedFile, MachineCodeOfGpusIsWholeToo) {
  const cuda::CodeCache cache(folder_.string());
  const std::vector<char> code(10'000, '\x7f');
  std::vector<char> read;
  EXPECT_FALSE(cache.read("key", read));
  ASSERT_TRUE(cache.write("key", code));
  ASSERT_TRUE(cache.read("key", read));
  EXPECT_EQ(read, code);
  for (const auto& file : fs::directory_iterator(folder_)) {
    EXPECT_EQ(file.path().filename(), "key.cubin");
    fs::resize_file(file, 4096);
  }
  EXPECT_FALSE(cache.read("key", read));
  ASSERT_TRUE(cache.write("key", code));  // it is made anew
  EXPECT_TRUE(cache.read("key", read));
}

}  // namespace
}  // namespace kelpie::runtime
