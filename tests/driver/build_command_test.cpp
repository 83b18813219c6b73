// `kelpie build` from outside.
#include <gmock/gmock.h>

#include "tests/driver/command.h"

namespace {

using testing::HasSubstr;
using testing::Not;

using kelpie::testing::Command;
using kelpie::testing::Outcome;

constexpr const char* kProgram = "m = [[1, 2], [3]]; {sum(row) : row in m}; y = 2;";

class BuildCommand : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    setenv("KELPIE_CACHE", path("cache").c_str(), 1);  // with nothing in it
  }
  void TearDown() override {
    unsetenv("KELPIE_CACHE");
    Command::TearDown();
  }
  Outcome build(const std::string& options, const std::string& program = kProgram) {
    return kelpie("build " + options + " -", program);
  }
  static bool lacksCompiler(const Outcome& outcome) {
    return outcome.status == 1 && outcome.messages.find("NVRTC (libnvrtc.so)") != std::string::npos;
  }
  int64_t filesIn(const std::string& name) const {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path(name)))
      count += entry.path().extension() == ".cubin" ? 1 : 0;
    return count;
  }
};

TEST_F(BuildCommand, CompilesIntoAFolder) {
  const Outcome outcome = build("--output " + path("kernels"));
  if (lacksCompiler(outcome)) GTEST_SKIP() << "NVRTC is not installed";
  EXPECT_EQ(outcome.status, 0) << outcome.messages;
  EXPECT_THAT(outcome.output, HasSubstr("sm_90: "));
  EXPECT_THAT(outcome.output, HasSubstr(" kernels compiled, 0 found compiled"));
  EXPECT_GT(filesIn("kernels"), 0);
  const Outcome again = build("--output " + path("kernels"));
  EXPECT_THAT(again.output, HasSubstr("sm_90: 0 kernels compiled, "));
}

// `m` may turn out to be regular or not when the program runs: there are kernels for both.
TEST_F(BuildCommand, NestedGlobalsAreCompiledForBothShapes) {
  const Outcome outcome = build("--output " + path("kernels"));
  if (lacksCompiler(outcome)) GTEST_SKIP() << "NVRTC is not installed";
  ASSERT_EQ(build("--output " + path("flat"), "m = [1, 2]; {x + 1 : x in m};").status, 0);
  EXPECT_GT(filesIn("kernels"), filesIn("flat"));
}

TEST_F(BuildCommand, CompilesForSeveralArchitectures) {
  const Outcome outcome = build("--arch sm_80,sm_120 --output " + path("kernels"));
  if (lacksCompiler(outcome)) GTEST_SKIP() << "NVRTC is not installed";
  EXPECT_EQ(outcome.status, 0) << outcome.messages;
  EXPECT_THAT(outcome.output, HasSubstr("sm_80: "));
  EXPECT_THAT(outcome.output, HasSubstr("sm_120: "));
  EXPECT_THAT(outcome.output, Not(HasSubstr("sm_90: ")));
}

TEST_F(BuildCommand, TellsWhatIsWrong) {
  EXPECT_EQ(build("--arch sm_75").status, 2);
  const Outcome wrong = build("--output " + path("kernels"), "1 + t;");
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.messages, HasSubstr("error:"));
  write("taken", "a file, no folder");
  const Outcome outcome = build("--output " + path("taken"));
  if (lacksCompiler(outcome)) GTEST_SKIP() << "NVRTC is not installed";
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.messages, HasSubstr("cannot write to the folder " + path("taken")));
  setenv("KELPIE_CACHE", path("taken").c_str(), 1);
  const Outcome uncached = build("");
  EXPECT_EQ(uncached.status, 1);
  EXPECT_THAT(uncached.messages, HasSubstr("nothing can be written to the cache"));
}

}  // namespace
