// Speed of generated CPU kernels against a plain loop that reads the same memory. Not run by default, since
// times on a busy machine tell nothing: test_codegen_cpu --gtest_also_run_disabled_tests
// --gtest_filter='*Speed*'
#include <gtest/gtest.h>
#include <time.h>

#include <cstdio>
#include <filesystem>
#include <functional>

#include "runtime/cpu_target.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

constexpr int64_t kN = 10'000'000;

/// Time of the processor, on one thread: what other programs do at the same time matters little.
double now() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double seconds(const std::function<void()>& work) {
  double best = 1e9;
  for (int round = 0; round < 7; ++round) {
    const double start = now();
    work();
    best = std::min(best, now() - start);
  }
  return best;
}

/// The target with the time of its first launch.
class TimedCpu final : public runtime::HostTarget {
 public:
  explicit TimedCpu(runtime::CpuOptions options) : HostTarget(0), cpu_(std::move(options)) {}
  std::string name() const override { return "cpu"; }
  runtime::Failure prepare(const runtime::ProgramKernels& program) override {
    first = true;
    return cpu_.prepare(program);
  }
  void release(const runtime::ProgramKernels& program) override { cpu_.release(program); }
  double best = 1e9;

 protected:
  runtime::Failure execute(const runtime::LaunchRequest& request,
                           std::optional<runtime::DeviceError>&) override {
    const double start = now();
    auto failure = cpu_.launch(request);
    if (first) best = std::min(best, now() - start);
    first = false;
    return failure;
  }

 private:
  runtime::CpuTarget cpu_;
  bool first = true;
};

/// Best time of the first kernel of a program, over several runs.
double kernelSeconds(Builder& b) {
  runtime::CpuOptions options;
  options.jit = runtime::Jit::Always;
  options.threads = 1;
  options.cache.directory = (std::filesystem::temp_directory_path() / "kelpie-cpu-test").string();
  auto target = std::make_unique<TimedCpu>(options);
  TimedCpu& timed = *target;
  runtime::Executor cpu(std::move(target));
  for (int round = 0; round < 7; ++round) succeed(b.run(cpu));
  return timed.best;
}

std::vector<double> data() {
  std::vector<double> v(kN);
  for (int64_t k = 0; k < kN; ++k) v[static_cast<size_t>(k)] = static_cast<double>(k % 1000) * 0.001;
  return v;
}

/// One pass over the data at the speed of memory.
double readSeconds(const std::vector<double>& v) {
  volatile double sink = 0;
  return seconds([&] {
    double total = 0;
    for (int64_t block = 0; block < kN / 1000; ++block) {
      double lane[16] = {};
      for (int64_t e = block * 1000; e + 16 <= block * 1000 + 1000; e += 16)
        for (int l = 0; l < 16; ++l) lane[l] += v[static_cast<size_t>(e + l)];
      for (double x : lane) total += x;
    }
    sink = total;
  });
}

TEST(CpuSpeed, DISABLED_Kernels) {
  const std::vector<double> v = data();
  const double read = readSeconds(v);
  auto report = [&](const char* what, double time) {
    std::printf("%-28s %7.2f ms, %5.2f x one read\n", what, time * 1e3, time / read);
  };
  report("plain read", read);
  {
    Builder b;
    VarId xs = b.globalArray("xs", floats(v));
    b.result(b.launch(b.reduce(b.flat(xs), {b.at(xs)}, b.sum(kF64)), "sum")[0]);
    report("sum", kernelSeconds(b));
  }
  {
    Builder b;
    VarId xs = b.globalArray("xs", floats(v)), ys = b.globalArray("ys", floats(v));
    b.result(
        b.launch(b.reduce(b.flat(xs), {b.op(ScalarOp::Mul, b.at(xs), b.at(ys))}, b.sum(kF64)), "dot")[0]);
    report("dot (two reads)", kernelSeconds(b));
  }
  for (int64_t length : {1, 8, 1024, 1 << 20}) {
    Builder b;
    std::vector<int64_t> offsets;
    for (int64_t o = 0; o <= kN / length; ++o) offsets.push_back(o * length);
    std::vector<double> part(v.begin(), v.begin() + offsets.back());
    auto [off, xs] = b.globalNested("xs", offsets, floats(part));
    VarId sums = b.launch(b.reduce(b.segmented(off, xs), {b.at(xs)}, b.sum(kF64)), "sums")[0];
    b.result(b.launch(b.reduce(b.flat(sums), {b.at(sums)}, b.sum(kF64)), "total")[0]);
    report(("segmented sum of " + std::to_string(length)).c_str(), kernelSeconds(b));
  }
  {
    Builder b;
    std::vector<int64_t> offsets(kN + 1, 0);
    for (int64_t o = kN / 2; o <= kN; ++o) offsets[static_cast<size_t>(o)] = kN / 2;
    std::vector<double> part(v.begin(), v.begin() + kN / 2);
    auto [off, xs] = b.globalNested("xs", offsets, floats(part));
    VarId sums = b.launch(b.reduce(b.segmented(off, xs), {b.at(xs)}, b.sum(kF64)), "sums")[0];
    b.result(b.launch(b.reduce(b.flat(sums), {b.at(sums)}, b.sum(kF64)), "total")[0]);
    report("a giant among empty ones", kernelSeconds(b));
  }
  {
    Builder b;
    VarId xs = b.globalArray("xs", floats(v));
    VarId scanned = b.launch(b.scan(b.flat(xs), {b.at(xs)}, b.sum(kF64)), "scanned")[0];
    b.result(b.launch(b.reduce(b.flat(scanned), {b.at(scanned)}, b.sum(kF64)), "total")[0]);
    report("scan (two reads, one write)", kernelSeconds(b));
  }
  {
    Builder b;
    VarId xs = b.globalArray("xs", floats(v));
    auto kept =
        b.launch(b.filter(b.flat(xs), {b.at(xs)}, b.op(ScalarOp::Greater, b.at(xs), b.real(0.5))), "kept");
    b.result(b.launch(b.reduce(b.flat(kept[1]), {b.at(kept[1])}, b.sum(kF64)), "total")[0]);
    report("filter (two reads, 1/2 write)", kernelSeconds(b));
  }
  {
    Builder b;
    VarId xs = b.globalArray("xs", floats(v));
    ExprRef x = b.at(xs);
    VarId ys = b.launch(
        b.map(b.flat(xs), {b.op(ScalarOp::Add, b.op(ScalarOp::Mul, x, b.real(2)), b.real(1))}), "ys")[0];
    b.result(b.launch(b.reduce(b.flat(ys), {b.at(ys)}, b.sum(kF64)), "total")[0]);
    report("map (read, write)", kernelSeconds(b));
  }
}

}  // namespace
}  // namespace kelpie::testing
