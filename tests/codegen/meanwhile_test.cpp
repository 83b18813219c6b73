// Launches that the host does while their code is being compiled (runtime/cuda/host_evaluation.h).
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "codegen/cuda/cuda_module.h"
#include "emulated_device.h"
#include "kernel_runs.h"
#include "runtime/cuda/cuda_target.h"
#include "runtime/host_target.h"
#include "tests/flatten/program_runner.h"

namespace kelpie::testing {
namespace {

using Clock = std::chrono::steady_clock;

/// Compiles slowly: no code is ready before `ready`, but that of the kernel that reads words for the host
/// and, with `support`, that of the support library.
class LateDevice final : public tests::EmulatedDevice {
 public:
  struct Log {
    Clock::time_point ready = Clock::time_point::max();
    bool support = false;
    std::set<std::string> compiled = {}, hurried = {};
  };
  explicit LateDevice(Log& log) : EmulatedDevice(7), log_(log) {}
  bool isReady(const std::string& source) override {
    return isReadyAtOnce(source) || Clock::now() >= log_.ready;
  }
  void hurry(const std::string& source) override { log_.hurried.insert(source); }
  runtime::Failure compile(const std::string& source, const std::vector<std::string>& entries,
                           std::unique_ptr<runtime::cuda::Module>& module) override {
    if (!isReadyAtOnce(source)) log_.compiled.insert(source);
    return EmulatedDevice::compile(source, entries, module);
  }

 private:
  bool isReadyAtOnce(const std::string& source) const {
    return source == runtime::cuda::HostReader::source() ||
           (log_.support && source == codegen::cuda::supportSource());
  }
  Log& log_;
};

/// Runs a program there and compares with the reference.
std::vector<FormOutcome> run(const std::string& nesl, LateDevice::Log& log) {
  RunnerOptions options;
  options.timed = false;
  options.target = [&] {
    return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<LateDevice>(log));
  };
  std::vector<FormOutcome> outcomes = runProgram(nesl, options);
  EXPECT_FALSE(outcomes.empty());
  for (const FormOutcome& outcome : outcomes)
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
  return outcomes;
}

TEST(Meanwhile, LaunchesOfRandomKernelsGiveTheSameBits) {
  LateDevice::Log log;
  log.support = true;  // of arrays that the test itself stores short
  tests::Random random(11);
  runtime::InterpTarget interp;
  runtime::cuda::CudaTarget cuda(std::make_unique<LateDevice>(log));
  int counted = 0, shortened = 0;
  for (int k = 0; k < 400; ++k) {
    tests::RandomKernelOptions options;
    options.space = static_cast<lcu::SpaceKind>(k % 3);
    options.bindings = 1 + static_cast<int>(random() % 5);
    options.canFail = k % 2 == 0;
    options.loops = k % 5 == 0;
    const tests::KernelCase testCase = tests::randomKernel(random, options);
    runtime::ProgramKernels program{
        testCase.program.get(),
        {{&testCase.kernel, codegen::analyseKernel(testCase.kernel, *testCase.program)}}};
    runtime::KernelEntry& entry = program.kernels[0];
    entry.shortArrays = tests::randomShortArrays(random, testCase.kernel, entry.info);
    if (!runtime::cuda::HostKernel(entry).exact()) continue;
    ASSERT_EQ(interp.prepare(program), std::nullopt);
    ASSERT_EQ(cuda.prepare(program), std::nullopt);
    for (const int64_t size : {0, 1, 40, 300}) {
      const tests::KernelData data = tests::randomData(random, testCase, size, tests::Lengths::Mixed);
      const tests::LaunchResult expected = tests::runKernel(interp, program, 0, data);
      ASSERT_EQ(tests::difference(expected, tests::runKernel(cuda, program, 0, data), entry.info), "")
          << lcu::toString(testCase.kernel, *testCase.program);
      if (!entry.info.counted) continue;
      ++counted;
      ASSERT_EQ(tests::difference(expected, tests::runKernel(cuda, program, 0, data, 70), entry.info), "")
          << lcu::toString(testCase.kernel, *testCase.program);
    }
    shortened += !entry.shortArrays.empty();
    interp.release(program);
    cuda.release(program);
  }
  EXPECT_LT(log.compiled.size(), 20u);  // a few of them have segments of thousands of elements
  EXPECT_GT(cuda.statistics().evaluated, 800u);
  EXPECT_GT(counted, 50);
  EXPECT_GT(shortened, 50);
}

/// What the host reads by is compiled before kernels, which nobody may wait for.
TEST(Meanwhile, TheKernelThatReadsForTheHostComesFirst) {
  class Device final : public tests::EmulatedDevice {
   public:
    explicit Device(std::vector<std::string>& announced) : EmulatedDevice(7), announced_(announced) {}
    bool isReady(const std::string&) override { return false; }
    void announce(const std::vector<std::string>& sources, bool soon) override {
      if (soon) announced_.insert(announced_.begin(), sources.begin(), sources.end());
    }

   private:
    std::vector<std::string>& announced_;
  };
  std::vector<std::string> announced;
  RunnerOptions options;
  options.timed = false;
  options.target = [&] {
    return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<Device>(announced));
  };
  runProgram("{x * x : x in [1, 2, 3]};", options);
  ASSERT_GE(announced.size(), 2u);
  EXPECT_EQ(announced.front(), runtime::cuda::HostReader::source());
}

TEST(Meanwhile, ProgramsOfFewElementsNeedNoCode) {
  LateDevice::Log log;
  run("function qs(a) = if #a < 2 then a else let p = a[#a/2]; l = {e in a | e < p}; q = {e in a | e == p};"
      "  g = {e in a | e > p}; r = {qs(v) : v in [l, g]} in r[0] ++ q ++ r[1];"
      "qs([3,1,4,1,5,9,2,6,5,3,5]);"
      "xs = {rand(i) : i in dist(13, 500)}; {sum({i * j : j in [0:i]}) : i in xs};"
      "{(rem(x, 50), x) : x in xs} -> dist(0, 50); d = {1.5 * float(x) / 3.0 : x in xs};"
      "{e in d | sqrt(e) > 2.0}; \"ab\" ++ {lowercase(c) : c in \"XY\"};"
      "function count(n, s) = if n == 0 then s else count(n - 1, s <- [(rem(n, 5), s[0] + n)]);"
      "count(200, [0, 1, 2, 3, 4]);",
      log);
  EXPECT_TRUE(log.compiled.empty());
}

TEST(Meanwhile, ErrorsAreThoseOfTheProgram) {
  LateDevice::Log log;
  for (const std::string form :
       {"{100 / x : x in xs};", "let ys = {xs[x] : x in xs} in {y + 1 : y in ys};",
        "let big = {x * 1000 : x in xs}; part = {big[b] : b in big} in (part, {p : p in part | p > 0});"}) {
    const std::vector<FormOutcome> outcomes = run("xs = {i - 3 : i in [0:9]}; sum(xs);" + form, log);
    ASSERT_EQ(outcomes.size(), 3u);
    EXPECT_NE(outcomes[2].error, "") << form;
  }
  EXPECT_TRUE(log.compiled.empty());
}

/// What the device would add in another order, or compute with other last bits, or what is large.
TEST(Meanwhile, OtherLaunchesWaitForTheirCode) {
  for (const std::string nesl :
       {"sum({float(i) * 0.1 : i in [0:9]});", "{exp(float(i)) : i in [0:9]};",
        "plus_scan({1.0 / float(i + 1) : i in [0:20]});", "{i * i : i in [0:1000000]};"}) {
    LateDevice::Log log;
    run(nesl, log);
    EXPECT_FALSE(log.compiled.empty()) << nesl;
  }
}

TEST(Meanwhile, ALoopThatGoesOnIsLaunchedWhenItsCodeIsReady) {
  LateDevice::Log log;
  log.ready = Clock::now() + std::chrono::milliseconds(20);
  const auto begin = Clock::now();
  run("function turns(n, k) = if n == 0 then k else turns(n - 1, rem(n * k + 1, 65537));"
      "{turns(500000, i) : i in [0:4]};",
      log);
  EXPECT_EQ(log.compiled.size(), 1u);
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(20));
}

/// Code that is never ready is asked for, and waited for in the end.
TEST(Meanwhile, ManyLaunchesAreWorthTheirCode) {
  const std::string program =
      "function turns(x, k) = if k == 0 then x else turns(rem(1664525 * x + k, 65537), k - 1);"
      "function steps(v, n) = if n == 0 then v else steps({turns(x, 200) : x in v}, n - 1);";
  LateDevice::Log log;
  run(program + "steps([0:300], 3);", log);
  EXPECT_TRUE(log.compiled.empty());
  run(program + "steps([0:500], 600);", log);
  EXPECT_FALSE(log.compiled.empty());
  for (const std::string& source : log.compiled) EXPECT_TRUE(log.hurried.contains(source));
}

/// Loops of the host go on with what the host and the device have left behind.
TEST(Meanwhile, ProgramsGoOnWithCodeThatIsReady) {
  for (const int milliseconds : {2, 8}) {
    LateDevice::Log log;
    log.ready = Clock::now() + std::chrono::milliseconds(milliseconds);
    run("function steps(v, n) = if n == 0 then v else"
        "  let w = {rem(7 * x + i, 1009) : x in v; i in index(#v)}; few = {x in w | x < 900}"
        "  in steps(few ++ take([n, n + 1, n + 2], 3), n - 1);"
        "steps([0:50], 300);",
        log);
    EXPECT_FALSE(log.compiled.empty());
  }
}

}  // namespace
}  // namespace kelpie::testing
