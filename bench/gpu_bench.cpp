// Times of Kelpie's generated GPU kernels on well-known jobs, as lines of JSON; gpu_peers.cu has the peers.
//
//   gpu_bench [log2 of the number of elements, 27] [jobs: what their names must contain]
//
// A job is launched in batches between two synchronisations; the median over batches, per launch, is
// reported. Results are compared with a plain computation in double precision on the host.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>

#include "runtime/cuda/cuda.h"
#include "tests/codegen/known_kernels.h"

namespace kelpie::bench {
namespace {

constexpr int kBatches = 9, kLaunches = 10;

using Clock = std::chrono::steady_clock;
double milliseconds(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}

void stop(const std::string& why) {
  std::fprintf(stderr, "gpu_bench: %s\n", why.c_str());
  std::exit(1);
}
void check(const runtime::Failure& failure) {
  if (failure) stop(*failure);
}

/// Hands out the same buffers to every launch, as a pool does.
class ReusedScratch final : public runtime::Scratch {
 public:
  explicit ReusedScratch(runtime::Target& target) : target_(target) {}
  ~ReusedScratch() override {
    for (auto& [bytes, pointer] : held_) target_.deallocate(pointer);
  }
  void restart() { next_ = 0; }
  runtime::DevicePointer take(size_t bytes) override {
    if (next_ == held_.size()) held_.emplace_back(bytes, target_.allocate(bytes));
    auto& [size, pointer] = held_[next_++];
    if (size < bytes) {
      target_.deallocate(pointer);
      size = bytes;
      pointer = target_.allocate(bytes);
    }
    return pointer;
  }

 private:
  runtime::Target& target_;
  std::vector<std::pair<size_t, runtime::DevicePointer>> held_;
  size_t next_ = 0;
};

class Bench {
 public:
  Bench(runtime::Target& target, const tests::KnownKernels& known, const runtime::ProgramKernels& program,
        std::string wanted)
      : target_(target), known_(known), program_(program), wanted_(std::move(wanted)), scratch_(target) {}
  ~Bench() {
    for (const auto& [name, buffer] : inputs_) target_.deallocate(buffer.pointer);
  }

  template <class T>
  void input(const std::string& name, const std::vector<T>& values) {
    if (inputs_.contains(name)) target_.deallocate(inputs_[name].pointer);
    size_t bytes = std::max<size_t>(16, values.size() * sizeof(T));
    runtime::DevicePointer pointer = target_.allocate(bytes);
    if (!pointer) stop("out of device memory");
    inputs_[name] = {pointer, static_cast<int64_t>(values.size())};
    check(target_.upload(pointer, values.data(), values.size() * sizeof(T)));
  }

  /// Outputs of the job as bytes, in order of KernelInfo::outputs.
  using Verify = std::function<std::string(const std::vector<std::vector<std::byte>>&)>;
  void run(const std::string& job, const std::string& kernel, int64_t elements, int64_t segments,
           double bytes, const Verify& verify = {}) {
    if (job.find(wanted_) == std::string::npos) return;
    size_t number = known_.number(kernel);
    const codegen::KernelInfo& info = program_.kernels[number].info;
    codegen::LaunchExtents extents;
    extents.elements = elements;
    extents.segments = segments;
    std::vector<runtime::KernelArgument> arguments;
    for (const auto& p : info.parameters) {
      const std::string& name = known_.program.vars[p.var].name;
      runtime::KernelArgument argument;
      if (p.kind == codegen::ParameterKind::Size) {
        argument.integer = inputs_.at(name).count;
      } else {
        argument.pointer = inputs_.at(name).pointer;
      }
      arguments.push_back(argument);
    }
    std::vector<runtime::DevicePointer> outputs;
    std::vector<size_t> sizes;
    for (const auto& o : info.outputs) {
      sizes.push_back(static_cast<size_t>(codegen::capacity(o, extents) * sizeOf(o.type)));
      outputs.push_back(target_.allocate(std::max<size_t>(16, sizes.back())));
    }
    auto once = [&] {
      scratch_.restart();
      check(target_.launch({&program_, number, extents, arguments, outputs, &scratch_}));
    };
    std::optional<runtime::DeviceError> error;
    once();
    once();
    check(target_.synchronise(error));
    int launches = elements < 100'000 ? 1000 : kLaunches;
    std::vector<double> times;
    double hostTime = 0;
    for (int batch = 0; batch < kBatches; ++batch) {
      auto begin = Clock::now();
      for (int k = 0; k < launches; ++k) once();
      auto issued = Clock::now();
      check(target_.synchronise(error));
      times.push_back(milliseconds(begin, Clock::now()) / launches);
      hostTime = milliseconds(begin, issued) / launches;
    }
    std::sort(times.begin(), times.end());
    std::string wrong = error ? "an error was recorded" : "";
    if (verify && wrong.empty()) {
      std::vector<std::vector<std::byte>> results;
      for (size_t k = 0; k < outputs.size(); ++k) {
        results.emplace_back(sizes[k]);
        check(target_.download(results.back().data(), outputs[k], sizes[k]));
      }
      wrong = verify(results);
    }
    for (auto p : outputs) target_.deallocate(p);
    std::printf(
        "{\"job\": \"%s\", \"who\": \"kelpie\", \"ms\": %.5f, \"bytes\": %.0f, \"issue_ms\": %.5f, "
        "\"wrong\": \"%s\"}\n",
        job.c_str(), times[times.size() / 2], bytes, hostTime, wrong.c_str());
    std::fflush(stdout);
  }

 private:
  struct Input {
    runtime::DevicePointer pointer;
    int64_t count;
  };
  runtime::Target& target_;
  const tests::KnownKernels& known_;
  const runtime::ProgramKernels& program_;
  std::string wanted_;
  ReusedScratch scratch_;
  std::map<std::string, Input> inputs_;
};

/// As in gpu_peers.cu.
std::vector<int64_t> offsetsOf(const std::string& kind, int64_t n) {
  std::vector<int64_t> offsets = {0};
  std::mt19937_64 random(1);
  auto grow = [&](int64_t length) { offsets.push_back(std::min(n, offsets.back() + length)); };
  if (kind == "half_giant") grow(n / 2);
  while (offsets.back() < n) {
    if (kind == "8") grow(8);
    if (kind == "1024") grow(1024);
    if (kind == "1048576") grow(1 << 20);
    if (kind == "half_giant") grow(1 + static_cast<int64_t>(random() % 4));
    if (kind == "zipf") {
      double u = (static_cast<double>(random() >> 11) + 1) / 9007199254740993.0;
      grow(random() % 10 == 0 ? 0 : static_cast<int64_t>(std::min(1048576.0, 1 / u)));
    }
  }
  return offsets;
}

const float* floats(const std::vector<std::byte>& bytes) {
  return reinterpret_cast<const float*>(bytes.data());
}

/// ||got - expected|| / ||expected|| is small.
std::string near(const float* got, const std::vector<double>& expected) {
  double error = 0, norm = 0;
  for (size_t k = 0; k < expected.size(); ++k) {
    double d = got[k] - expected[k];
    error += d * d;
    norm += expected[k] * expected[k];
  }
  if (std::sqrt(error) <= 1e-4 * std::sqrt(norm) + 1e-6) return "";
  return "relative error " + std::to_string(std::sqrt(error / norm));
}

void runAll(int exponent, const std::string& wanted) {
  std::string why;
  auto target = runtime::makeCudaTarget(why);
  if (!target) stop(why);
  tests::KnownKernels known;
  auto program = known.programKernels();
  auto before = Clock::now();
  check(target->prepare(program));
  std::printf("{\"job\": \"compile_all\", \"who\": \"kelpie\", \"ms\": %.3f, \"bytes\": 0}\n",
              milliseconds(before, Clock::now()));

  const int64_t n = int64_t{1} << exponent;
  const double all = 4.0 * static_cast<double>(n);
  std::vector<float> xs(static_cast<size_t>(n));
  std::mt19937 random(2);
  for (float& x : xs) x = static_cast<float>(random()) / 2147483648.0f - 1.0f;
  Bench bench(*target, known, program, wanted);
  bench.input("xs", xs);
  bench.input("c1", std::vector<float>{3.0f});
  bench.input("c2", std::vector<float>{5.0f});

  double total = 0, positive = 0;
  int64_t kept = 0;
  for (float x : xs) {
    total += x;
    if (x > 0) {
      positive += x;
      ++kept;
    }
  }
  auto nearTotal = [&](float got, double expected) -> std::string {
    return std::abs(got - expected) <= 1e-5 * static_cast<double>(n) ? "" : "sum is " + std::to_string(got);
  };
  bench.run("copy", "copy", n, 0, 2 * all, [&](const auto& out) {
    for (size_t k = 0; k < xs.size(); ++k)
      if (floats(out[0])[k] != xs[k] + 1) return std::string("element ") + std::to_string(k);
    return std::string();
  });
  bench.run("sum", "sum", n, 0, all, [&](const auto& out) { return nearTotal(floats(out[0])[0], total); });
  bench.run("sum_1024", "sum", 1024, 0, 4096);
  bench.run("scan", "scan", n, 0, 2 * all, [&](const auto& out) {
    double running = 0;
    for (size_t k = 0; k < xs.size(); ++k) {
      if (std::abs(floats(out[0])[k] - running) > 1e-6 * static_cast<double>(n))
        return "element " + std::to_string(k);
      running += xs[k];
    }
    return std::string();
  });
  bench.run("filter", "filter", n, 0, all + 4.0 * static_cast<double>(kept), [&](const auto& out) {
    int64_t count = 0;
    std::memcpy(&count, out[0].data(), sizeof count);
    if (count != kept) return "count " + std::to_string(count);
    size_t at = 0;
    for (float x : xs)
      if (x > 0 && floats(out[1])[at++] != x) return "survivor " + std::to_string(at - 1);
    return std::string();
  });
  bench.run("norm2_sums", "norm2_sums", n, 0, all, [&](const auto& out) {
    std::string wrong = nearTotal(floats(out[0])[0], total);
    return wrong.empty() ? nearTotal(floats(out[1])[0], positive) : wrong;
  });
  bench.run("norm2_scale", "norm2_scale", n, 0, 3 * all);
  for (const char* kind : {"8", "1024", "1048576", "zipf", "half_giant"}) {
    auto offsets = offsetsOf(kind, n);
    auto m = static_cast<int64_t>(offsets.size()) - 1;
    bench.input("offsets", offsets);
    std::vector<double> sums(static_cast<size_t>(m));
    for (size_t s = 0; s < sums.size(); ++s)
      for (int64_t k = offsets[s]; k < offsets[s + 1]; ++k) sums[s] += xs[static_cast<size_t>(k)];
    bench.run(std::string("segmented_sum_") + kind, "segmented_sum", n, m,
              all + 12.0 * static_cast<double>(m),
              [&](const auto& out) { return near(floats(out[0]), sums); });
    bench.run(std::string("segmented_scan_") + kind, "segmented_scan", n, m,
              2 * all + 8.0 * static_cast<double>(m), [&](const auto& out) {
                std::vector<double> expected(xs.size());
                for (size_t s = 0; s < sums.size(); ++s) {
                  double running = 0;
                  for (int64_t k = offsets[s]; k < offsets[s + 1]; ++k) {
                    expected[static_cast<size_t>(k)] = running;
                    running += xs[static_cast<size_t>(k)];
                  }
                }
                return near(floats(out[0]), expected);
              });
  }
  // SpMV: a quarter of the elements, 2^20 columns, the same row lengths.
  const int64_t nonzeros = n / 4, columns = 1 << 20;
  std::vector<int32_t> col32(static_cast<size_t>(nonzeros));
  std::vector<float> v(static_cast<size_t>(columns));
  for (auto& c : col32) c = static_cast<int32_t>(random() % columns);
  for (auto& x : v) x = static_cast<float>(random()) / 4294967296.0f;
  std::vector<int64_t> col(col32.begin(), col32.end());
  bench.input("col32", col32);
  bench.input("col", col);
  bench.input("v", v);
  for (const char* kind : {"8", "1024", "1048576", "zipf", "half_giant"}) {
    auto offsets = offsetsOf(kind, nonzeros);
    auto m = static_cast<int64_t>(offsets.size()) - 1;
    bench.input("offsets", offsets);
    std::vector<double> rows(static_cast<size_t>(m));
    for (size_t s = 0; s < rows.size(); ++s)
      for (int64_t k = offsets[s]; k < offsets[s + 1]; ++k) {
        auto e = static_cast<size_t>(k);
        rows[s] += static_cast<double>(xs[e]) * v[static_cast<size_t>(col32[e])];
      }
    double bytes = 8.0 * static_cast<double>(nonzeros) + 12.0 * static_cast<double>(m) + 4.0 * columns;
    auto verify = [&](const auto& out) { return near(floats(out[0]), rows); };
    bench.run(std::string("spmv32_") + kind, "spmv32", nonzeros, m, bytes, verify);
    bench.run(std::string("spmv_") + kind, "spmv", nonzeros, m, bytes + 4.0 * static_cast<double>(nonzeros),
              verify);
  }
  const int64_t options = n / 4;
  std::vector<float> spot(static_cast<size_t>(options)), strike = spot, years = spot;
  for (size_t k = 0; k < spot.size(); ++k) {
    spot[k] = 5 + 25 * static_cast<float>(random()) / 4294967296.0f;
    strike[k] = 1 + 99 * static_cast<float>(random()) / 4294967296.0f;
    years[k] = 0.25f + 9.75f * static_cast<float>(random()) / 4294967296.0f;
  }
  bench.input("xs", spot);
  bench.input("ys", strike);
  bench.input("zs", years);
  bench.run("black_scholes", "black_scholes", options, 0, 16.0 * static_cast<double>(options));
}

}  // namespace
}  // namespace kelpie::bench

int main(int argc, char** argv) {
  kelpie::bench::runAll(argc > 1 ? std::atoi(argv[1]) : 27, argc > 2 ? argv[2] : "");
}
