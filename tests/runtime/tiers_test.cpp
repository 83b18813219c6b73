// The tiers of the target cpu: evaluator, background compilation, cache.
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/runtime.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

namespace fs = std::filesystem;
using runtime::CpuOptions;
using runtime::CpuTarget;
using runtime::Executor;
using runtime::Jit;

/// A folder of its own for each test.
class Tiers : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("kelpie-tiers-" + std::to_string(getpid()) + "-" +
                                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  CpuOptions options(Jit jit, const std::string& compiler = "") {
    CpuOptions o;
    o.jit = jit;
    o.threads = 2;
    o.cache.directory = folder_.string();
    o.cache.compiler = compiler;
    return o;
  }
  /// Runs `rounds` launches over n elements each; gives the statistics. `terms`: of each element.
  static runtime::CpuStatistics run(const CpuOptions& options, int64_t n, int64_t rounds,
                                    std::string* error = nullptr, int terms = 1) {
    Builder b;
    VarId size = b.global("n", ints({n}));
    HostLoop loop;
    VarId zero = b.let("zero", b.num(0)), nothing = b.let("nothing", b.real(0));
    VarId k = b.var("k", VarKind::Host, kI64), sum = b.var("sum", VarKind::Host, kF64);
    loop.params = {k, sum};
    loop.initial = {zero, nothing};
    loop.condition = std::make_shared<Block>();
    loop.body = std::make_shared<Block>();
    b.enter(*loop.condition);
    loop.condition->results = {b.let("more", b.op(ScalarOp::Less, b.host(k), b.num(rounds)))};
    b.leave();
    b.enter(*loop.body);
    VarId next = b.let("next", b.arena().add(b.host(k), b.num(1)));
    ExprRef x =
        b.op(ScalarOp::Div, b.real(1), b.op(ScalarOp::Add, b.arena().convert(b.i(), kF64), b.real(1)));
    for (int k = 1; k < terms; ++k)
      x = b.op(ScalarOp::Add, x, b.op(ScalarOp::Mul, x, b.op(ScalarOp::Sub, b.real(k), x)));
    VarId total = b.launch(b.reduce(b.flat(b.host(size)), {x}, b.sum(kF64)), "harmonic")[0];
    VarId more = b.let("more", b.op(ScalarOp::Add, b.host(sum), b.host(total)));
    loop.body->results = {next, more};
    b.leave();
    VarId last = b.var("last", VarKind::Host, kI64), out = b.var("out", VarKind::Host, kF64);
    b.add({last, out}, loop);
    b.result(out);
    auto target = std::make_unique<CpuTarget>(options);
    CpuTarget& cpu = *target;
    Executor executor(std::move(target));
    auto result = b.run(executor);
    complaint_ = cpu.takeComplaint();
    if (error) {
      *error = messageOf(result);
    } else {
      results_.push_back(succeed(result).at(0).at(0).f);
    }
    return cpu.cpuStatistics();
  }
  static inline std::vector<double> results_;
  static inline std::string complaint_;
  fs::path folder_;
};

TEST_F(Tiers, SmallProgramsAreNeverCompiled) {
  auto statistics = run(options(Jit::Auto), 100, 20);
  EXPECT_EQ(statistics.interpretedLaunches, 20u);
  EXPECT_EQ(statistics.compiledLaunches, 0u);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(Tiers, HotProgramsAreCompiledWhileTheyRunAndFoundTheNextTime) {
  results_.clear();
  // One launch of this size takes longer than the compiler is waited for.
  auto first = run(options(Jit::Auto), 20000000, 2);
  EXPECT_EQ(first.compiledUnits, 1u);
  EXPECT_EQ(first.compiledLaunches, 2u);
  auto second = run(options(Jit::Auto), 20000000, 2);
  EXPECT_EQ(second.compiledUnits, 0u);
  EXPECT_EQ(second.cachedUnits, 1u);
  EXPECT_EQ(second.waitedSeconds, 0.0);
  EXPECT_EQ(results_[0], results_[1]);
}

/// Long sources are compiled quickly first. The process need not wait for the other: compilers finish alone.
TEST_F(Tiers, WhatGoesOnIsCompiledWell) {
  results_.clear();
  constexpr int kTerms = 300;
  constexpr int64_t kElements = 300000;
  const auto objects = [&] {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) count += entry.path().extension() == ".so";
    return count;
  };
  const auto first = run(options(Jit::Auto), kElements, 3, nullptr, kTerms);
  EXPECT_EQ(first.compiledUnits, 1u);
  EXPECT_EQ(first.improvedUnits, 0u);
  EXPECT_EQ(objects(), 1u);
  // It was there, and takes more than a tenth of a second.
  run(options(Jit::Auto), kElements, 40, nullptr, kTerms);
  for (int k = 0; k < 600 && objects() < 2; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(objects(), 2u);
  const auto last = run(options(Jit::Auto), kElements, 3, nullptr, kTerms);
  EXPECT_EQ(last.cachedUnits, 1u);
  EXPECT_EQ(last.compiledUnits, 0u);
  EXPECT_EQ(results_[0], results_[2]);
}

TEST_F(Tiers, ShortSourcesAreCompiledWellAtOnce) {
  run(options(Jit::Auto), 20000000, 2);
  const auto always = run(options(Jit::Always), 20000000, 2);
  EXPECT_EQ(always.cachedUnits, 1u);
  EXPECT_EQ(always.compiledUnits, 0u);
}

TEST_F(Tiers, TheTierIsNotObservable) {
  results_.clear();
  run(options(Jit::Never), 30000, 3);
  run(options(Jit::Always), 30000, 3);
  run(options(Jit::Auto), 30000, 3);
  EXPECT_EQ(results_[0], results_[1]);
  EXPECT_EQ(results_[0], results_[2]);
}

TEST_F(Tiers, WithoutACompilerTheEvaluatorGoesOn) {
  auto statistics = run(options(Jit::Auto, "/nowhere/compiler"), 100000, 200);
  EXPECT_EQ(statistics.compiledLaunches, 0u);
  EXPECT_EQ(statistics.compileFailure, "no C++ compiler was found (set KELPIE_CXX)");
  EXPECT_EQ(complaint_, statistics.compileFailure);
  std::string error;
  run(options(Jit::Always, "/nowhere/compiler"), 10, 1, &error);
  EXPECT_EQ(error, "the kernels could not be compiled: no C++ compiler was found (set KELPIE_CXX)");
}

TEST_F(Tiers, WithoutAFolderTheEvaluatorGoesOnAndTells) {
  std::ofstream(folder_) << "not a folder";
  const auto statistics = run(options(Jit::Auto), 100000, 200);
  EXPECT_EQ(statistics.compiledLaunches, 0u);
  EXPECT_EQ(complaint_, "there is no folder for compiled kernels (set KELPIE_CACHE): " + folder_.string() +
                            ": Not a directory");
  std::string error;
  run(options(Jit::Always), 10, 1, &error);
  EXPECT_THAT(error, ::testing::StartsWith("the kernels could not be compiled: there is no folder"));
  EXPECT_EQ(complaint_, "");  // nothing is interpreted
}

/// A compiler that writes something else makes nothing that could be loaded.
TEST_F(Tiers, WhatCannotBeLoadedIsTold) {
  fs::create_directories(folder_);
  const fs::path compiler = folder_ / "compiler";
  std::ofstream(compiler) << "#!/bin/sh\n"
                             "while [ \"$1\" != -o ]; do shift; done\n"
                             "echo 'not an object' >\"$2\"\n";
  fs::permissions(compiler, fs::perms::owner_all);
  const auto statistics = run(options(Jit::Auto, compiler.string()), 20000000, 1);
  EXPECT_EQ(statistics.compiledLaunches, 0u);
  EXPECT_THAT(complaint_,
              ::testing::StartsWith("a compiled kernel could not be loaded: " + folder_.string()));
  EXPECT_THAT(complaint_, ::testing::HasSubstr("file too short"));
}

TEST_F(Tiers, ABrokenCompilerIsReported) {
  std::string error;
  run(options(Jit::Always, "/bin/false"), 10, 1, &error);
  EXPECT_THAT(error, ::testing::HasSubstr("/bin/false failed on a generated kernel"));
}

TEST_F(Tiers, ADamagedObjectIsMadeAgain) {
  run(options(Jit::Always), 1000, 1);
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().extension(), ".so") << "left behind: " << entry.path();
    fs::resize_file(entry.path(), 10);
  }
  auto statistics = run(options(Jit::Always), 1000, 1);
  EXPECT_EQ(statistics.compiledUnits, 1u);
  EXPECT_EQ(statistics.compiledLaunches, 1u);
}

TEST(Runtime, ListsItsTargets) {
  std::string why;
  EXPECT_EQ(runtime::targetNames(), (std::vector<std::string>{"interp", "cpu", "cuda"}));
  EXPECT_EQ(runtime::makeTarget("interp", why)->name(), "interp");
  EXPECT_EQ(runtime::makeTarget("cpu", why)->name(), "cpu");
  EXPECT_EQ(runtime::makeTarget("vax", why), nullptr);
  EXPECT_EQ(why, "there is no target \"vax\"");
}

TEST(Runtime, EmitsCode) {
  Builder b;
  VarId xs = b.globalArray("xs", floats({1}));
  b.result(b.launch(b.map(b.flat(xs), {b.op(ScalarOp::Sqrt, b.at(xs))}), "roots")[0]);
  std::string cpu = runtime::generatedCode(b.program, "cpu");
  EXPECT_THAT(cpu, ::testing::HasSubstr("k_sqrt(xs[i]);"));
  EXPECT_THAT(cpu, ::testing::Not(::testing::HasSubstr("k_atomic_max(int64_t* to")));
  EXPECT_THAT(runtime::generatedCode(b.program, "cpu", {}, true),
              ::testing::HasSubstr("k_atomic_max(int64_t* to"));
  EXPECT_THAT(runtime::generatedCode(b.program, "cuda"), ::testing::HasSubstr("__global__"));
}

/// Counts down from each of `n` elements by `step`, which may be 0.
Builder countingDown(int64_t step, int64_t n = 4) {
  Builder b;
  VarId by = b.global("step", ints({step}));
  const uint32_t id = b.arena().newLoop();
  ExprRef v = b.arena().loopVar(id, 0, kI64);
  const std::vector<ExprRef> last =
      b.arena().loop(id, {b.i()}, b.op(ScalarOp::GreaterEqual, v, b.num(0)), {b.arena().sub(v, b.host(by))});
  b.result(b.launch(b.map(b.flat(b.num(n)), last), "down")[0]);
  return b;
}

TEST_F(Tiers, CompiledLoopsCanBeInterrupted) {
  auto target = std::make_unique<CpuTarget>(options(Jit::Always));
  const CpuTarget& cpu = *target;
  Executor executor(std::move(target));
  std::atomic<bool> interrupt = false;
  runtime::RunOptions runOptions;
  runOptions.interrupt = &interrupt;
  Builder ending = countingDown(1), endless = countingDown(0);
  EXPECT_EQ(intsOf(succeed(ending.run(executor, runOptions)).at(0).elements[0]),
            (std::vector<int64_t>{-1, -1, -1, -1}));
  std::thread user([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    interrupt = true;
  });
  EXPECT_EQ(messageOf(endless.run(executor, runOptions)), "interrupted");
  user.join();
  EXPECT_EQ(cpu.cpuStatistics().compiledLaunches, 2u);
}

TEST_F(Tiers, ManyShortLoopsAreCompiledAsALongOneIs) {
  // 50 million turns, 2,500 at most for any element: neither the number of elements nor one of them tells.
  constexpr int64_t kElements = 40000;
  auto target = std::make_unique<CpuTarget>(options(Jit::Auto));
  const CpuTarget& cpu = *target;
  Executor executor(std::move(target));
  const auto counted = succeed(countingDown(16, kElements).run(executor));
  EXPECT_EQ(intsOf(counted.at(0).elements[0]).back(), -1);
  EXPECT_EQ(cpu.cpuStatistics().interpretedLaunches, 0u);
  EXPECT_EQ(cpu.cpuStatistics().compiledLaunches, 1u);
}

}  // namespace
}  // namespace kelpie::testing
