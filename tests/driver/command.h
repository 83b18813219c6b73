// Runs the command `kelpie` in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace kelpie::testing {

struct Outcome {
  std::string output, messages;
  int status = -1;
};

class Command : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("kelpie-test-" + std::to_string(getpid()));
    create_directories(folder_);
  }
  void TearDown() override { remove_all(folder_); }

  /// Runs `kelpie ARGUMENTS` with `program` as standard input.
  Outcome kelpie(const std::string& arguments, const std::string& program = "") {
    write("input", program);
    const std::string command = "{ " + std::string(KELPIE_BINARY) + " " + arguments + "; } < " +
                                path("input") + " > " + path("output") + " 2> " + path("messages");
    const int status = std::system(command.c_str());
    return {read("output"), read("messages"), WIFEXITED(status) ? WEXITSTATUS(status) : -1};
  }
  Outcome run(const std::string& program, const std::string& options = "--target=reference --verify") {
    return kelpie("run " + options + " -", program);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name, std::ios::binary).rdbuf();
    return text.str();
  }
  std::filesystem::path folder_;
};

}  // namespace kelpie::testing
