// Code is loaded from folders that this user alone can write to, and from no others.
#include "runtime/object_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

namespace kelpie::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// Without any folder but those of a test.
class ObjectFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kelpie-folder-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    std::ofstream(root_ / "file") << "no folder";
    for (const char* name : {"KELPIE_CACHE", "XDG_CACHE_HOME", "HOME", "TMPDIR"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      ::unsetenv(name);
    }
    ::setenv("TMPDIR", root_.c_str(), 1);
    shared_ = root_ / ("kelpie-" + std::to_string(::geteuid()));
  }
  void TearDown() override {
    for (const char* name : {"KELPIE_CACHE", "XDG_CACHE_HOME", "HOME", "TMPDIR"}) ::unsetenv(name);
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
    fs::remove_all(root_);
  }
  /// Expects that there is none.
  static std::string problem() {
    const auto folder = objectFolder("");
    const auto* none = std::get_if<NoFolder>(&folder);
    return none ? none->message : "found " + std::get<std::string>(folder);
  }

  std::map<std::string, std::string> before_;
  fs::path root_, shared_;
};

TEST_F(ObjectFolder, AmongOthersItIsOfThisUserAlone) {
  EXPECT_EQ(std::get<std::string>(objectFolder("")), shared_);
  struct stat info {};
  ASSERT_EQ(::lstat(shared_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, mode_t{0700});
  EXPECT_EQ(std::get<std::string>(objectFolder("")), shared_);  // it is there

  for (const mode_t open : {0777, 0770, 0702}) {
    ASSERT_EQ(::chmod(shared_.c_str(), open), 0);
    EXPECT_THAT(problem(), HasSubstr(shared_.string() + ": other users can write to it"));
  }
  ASSERT_EQ(::chmod(shared_.c_str(), 0755), 0);
  EXPECT_EQ(std::get<std::string>(objectFolder("")), shared_);
  fs::remove(shared_);

  fs::create_directory(root_ / "elsewhere");
  fs::create_directory_symlink(root_ / "elsewhere", shared_);
  EXPECT_THAT(problem(), HasSubstr("it is no folder"));
  fs::remove(shared_);

  if (::geteuid() != 0) return;  // nobody else can give folders away
  fs::create_directory(shared_);
  ASSERT_EQ(::chown(shared_.c_str(), 12345, 12345), 0);
  EXPECT_THAT(problem(), HasSubstr("it belongs to another user"));
}

TEST_F(ObjectFolder, ATemporaryFolderIsAskedForLast) {
  ::setenv("TMPDIR", (root_ / "none").c_str(), 1);
  EXPECT_THAT(problem(), HasSubstr("there is no folder for compiled kernels (set KELPIE_CACHE): TMPDIR: "));
  ::setenv("KELPIE_CACHE", (root_ / "cache").c_str(), 1);
  EXPECT_EQ(std::get<std::string>(objectFolder("")), root_ / "cache");
  ::setenv("KELPIE_CACHE", (root_ / "file").c_str(), 1);
  EXPECT_THAT(problem(), HasSubstr(root_.string() + "/file: Not a directory; TMPDIR: "));
  ::setenv("HOME", root_.c_str(), 1);
  EXPECT_EQ(std::get<std::string>(objectFolder("")), root_ / ".cache/kelpie");
}

TEST_F(ObjectFolder, WhatIsChosenHasNoSubstitute) {
  EXPECT_EQ(std::get<std::string>(objectFolder(root_ / "mine")), root_ / "mine");
  EXPECT_TRUE(std::holds_alternative<NoFolder>(objectFolder(root_ / "file" / "below")));
}

}  // namespace
}  // namespace kelpie::runtime
