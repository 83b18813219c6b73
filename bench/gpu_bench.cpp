// Times of Kelpie's generated GPU kernels on well-known jobs, as lines of JSON; gpu_peers.cu has the peers.
//
//   gpu_bench [log2 of the number of elements, 27] [jobs: what their names must contain]
//   gpu_bench sweep [log2 of the greatest number of elements, 30] [jobs]
//
// A job is launched in batches between two synchronisations; the median over batches, per launch, is
// reported. Results are compared with a plain computation in double precision on the host.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "bench/gpu_jobs.h"
#include "bench/segment_lengths.h"
#include "runtime/cuda/cuda.h"

namespace kelpie::bench {
namespace {

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

/// Bytes of an offset.
constexpr double kOffset = 4;

struct Data {
  int64_t n;
  double all;             ///< bytes of n float32
  std::vector<float> xs;  ///< from -1 to 1
  std::mt19937 random{2};
};

void flatJobs(Bench& bench, const Data& data) {
  const int64_t n = data.n;
  const double all = data.all;
  const std::vector<float>& xs = data.xs;
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
  bench.run("sum_1024", "sum", 1024, 0, 4096, Bench::Repetitions{9, 1000});
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
}

/// What needs to know the segments of elements, and segmented sums beside other work.
void numberedJobs(Bench& bench, const Data& data, const std::string& kind,
                  const std::vector<int64_t>& lengths, const std::vector<double>& sums) {
  const auto m = static_cast<int64_t>(lengths.size());
  const int64_t n = data.n;
  const double ends = kOffset * static_cast<double>(m), results = 4.0 * static_cast<double>(m);
  std::vector<float> weights(static_cast<size_t>(m));
  std::vector<double> weighted = sums;
  for (size_t s = 0; s < sums.size(); ++s) {
    weights[s] = static_cast<float>(s % 5) - 2;
    weighted[s] *= weights[s];
  }
  bench.input("weights", weights);
  auto run = [&](const std::string& job, double bytes, const Bench::Verify& verify = {}) {
    bench.run(job + "_" + kind, job, n, m, bytes, verify);
  };
  run("segmented_map", 2 * data.all + ends + results);
  run("segmented_weighted_sum", data.all + ends + 2 * results,
      [&](const auto& out) { return near(floats(out[0]), weighted); });
  run("segmented_weighted_scan", 2 * data.all + ends + results);
  run("segmented_sum_and_scan", 2 * data.all + ends + results,
      [&](const auto& out) { return near(floats(out[0]), sums); });
  run("segmented_weighted_sum_and_scan", 2 * data.all + ends + 2 * results);
  run("segmented_sum_and_squares", 2 * data.all + ends + results);
  run("segmented_first_greatest", data.all + ends + 2 * results, [&](const auto& out) {
    int64_t begin = 0;
    for (size_t s = 0; s < lengths.size(); ++s) {
      const auto first = data.xs.begin() + begin, end = first + lengths[s];
      const int64_t place =
          first == end ? std::numeric_limits<int64_t>::max() : std::max_element(first, end) - first;
      int64_t got = 0;
      std::memcpy(&got, out[0].data() + s * sizeof got, sizeof got);
      if (got != place) return "segment " + std::to_string(s);
      begin += lengths[s];
    }
    return std::string();
  });
  run("segmented_wide_sum_and_scan", 3 * data.all + ends + 2 * results);
  run("segmented_sum_of_scan", data.all + ends + results);
  double kept = 0;
  for (float x : data.xs) kept += x > 0;
  run("segmented_filter", data.all + 4 * kept + 2 * ends);
  run("segmented_sum_and_filter", data.all + 4 * kept + 2 * ends + results,
      [&](const auto& out) { return near(floats(out[0]), sums); });
}

void segmentedJobs(Bench& bench, const Data& data) {
  const int64_t n = data.n;
  const double all = data.all;
  const std::vector<float>& xs = data.xs;
  for (const char* kind : {"8", "1024", "1048576", "zipf", "half_giant"}) {
    auto offsets = offsetsOf<int64_t>(kind, n);
    auto m = static_cast<int64_t>(offsets.size()) - 1;
    bench.offsets(offsets);
    std::vector<double> sums(static_cast<size_t>(m));
    for (size_t s = 0; s < sums.size(); ++s)
      for (int64_t k = offsets[s]; k < offsets[s + 1]; ++k) sums[s] += xs[static_cast<size_t>(k)];
    bench.run(std::string("segmented_sum_") + kind, "segmented_sum", n, m,
              all + (kOffset + 4) * static_cast<double>(m),
              [&](const auto& out) { return near(floats(out[0]), sums); });
    bench.run(std::string("segmented_scan_") + kind, "segmented_scan", n, m,
              2 * all + kOffset * static_cast<double>(m), [&](const auto& out) {
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
    std::vector<int64_t> lengths;
    for (size_t s = 0; s < sums.size(); ++s) lengths.push_back(offsets[s + 1] - offsets[s]);
    numberedJobs(bench, data, kind, lengths, sums);
  }
}

/// A quarter of the elements, 2^20 columns, the same row lengths.
void sparseJobs(Bench& bench, Data& data) {
  const int64_t n = data.n;
  const std::vector<float>& xs = data.xs;
  std::mt19937& random = data.random;
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
    auto offsets = offsetsOf<int64_t>(kind, nonzeros);
    auto m = static_cast<int64_t>(offsets.size()) - 1;
    bench.offsets(offsets);
    std::vector<double> rows(static_cast<size_t>(m));
    for (size_t s = 0; s < rows.size(); ++s)
      for (int64_t k = offsets[s]; k < offsets[s + 1]; ++k) {
        auto e = static_cast<size_t>(k);
        rows[s] += static_cast<double>(xs[e]) * v[static_cast<size_t>(col32[e])];
      }
    double bytes =
        8.0 * static_cast<double>(nonzeros) + (kOffset + 4) * static_cast<double>(m) + 4.0 * columns;
    auto verify = [&](const auto& out) { return near(floats(out[0]), rows); };
    bench.run(std::string("spmv32_") + kind, "spmv32", nonzeros, m, bytes, verify);
    bench.run(std::string("spmv_") + kind, "spmv", nonzeros, m, bytes + 4.0 * static_cast<double>(nonzeros),
              verify);
  }
}

void blackScholes(Bench& bench, Data& data) {
  const int64_t n = data.n;
  std::mt19937& random = data.random;
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

/// As many bytes as before: half as many elements of 8 bytes, a quarter as many of four arrays.
void otherTypes(Bench& bench, Data& data) {
  std::vector<double> doubles;
  std::vector<int64_t> integers;
  for (int64_t k = 0; k < data.n / 2; ++k) {
    const auto word = static_cast<int32_t>(data.random());
    doubles.push_back(word / 2147483648.0);
    integers.push_back(word);
  }
  bench.input("xs_f64", doubles);
  bench.input("xs_i64", integers);
  for (const char* name : {"xs", "ys", "zs", "ws"}) bench.input(name, data.xs);
  struct Kind {
    const char* suffix;
    int64_t elements;
    double size;  ///< bytes of an element
    double kept;
  };
  auto positive = [](const auto& values, int64_t n) {
    double kept = 0;
    for (int64_t k = 0; k < n; ++k) kept += values[static_cast<size_t>(k)] > 0;
    return kept;
  };
  const int64_t half = data.n / 2, quarter = data.n / 4;
  for (const Kind& kind :
       {Kind{"_f64", half, 8, positive(doubles, half)}, Kind{"_i64", half, 8, positive(integers, half)},
        Kind{"_4", quarter, 16, positive(data.xs, quarter)}}) {
    const double all = kind.size * static_cast<double>(kind.elements);
    auto run = [&](const std::string& job, const std::string& lengths, int64_t m, double bytes) {
      bench.run("types_" + job + kind.suffix + lengths, job + kind.suffix, kind.elements, m, bytes);
    };
    run("sum", "", 0, all);
    run("scan", "", 0, 2 * all);
    run("filter", "", 0, all + kind.size * kind.kept);
    for (const char* lengths : {"8", "1024", "1048576", "zipf", "half_giant"}) {
      const auto offsets = offsetsOf<int64_t>(lengths, kind.elements);
      const auto m = static_cast<int64_t>(offsets.size()) - 1;
      const auto segments = static_cast<double>(m);
      bench.offsets(offsets);
      run("segmented_sum", std::string("_") + lengths, m, all + (kOffset + kind.size) * segments);
      run("segmented_scan", std::string("_") + lengths, m, 2 * all + kOffset * segments);
    }
  }
}

/// Kernels with and without their checks (KnownKernels::withAndWithoutChecks).
void checkJobs(Bench& bench, Data& data) {
  const int64_t n = data.n / 2;
  const auto count = static_cast<size_t>(n);
  const int64_t columns = 1 << 20;
  std::vector<int64_t> places(count), integers(count);
  std::vector<int32_t> col32(count);
  for (size_t k = 0; k < count; ++k) {
    places[k] = static_cast<int64_t>(k ^ 37);  // elements change places within 64
    integers[k] = static_cast<int64_t>(data.random());
    col32[k] = 1 + static_cast<int32_t>(data.random() % (columns - 1));
  }
  const auto offsets = offsetsOf<int64_t>("zipf", n);
  const auto m = static_cast<int64_t>(offsets.size()) - 1;
  bench.input("xs", std::vector<float>(data.xs.begin(), data.xs.begin() + n));
  bench.input("xs_i64", integers);
  bench.input("places", places);
  bench.input("col32", col32);
  bench.input("v", std::vector<float>(static_cast<size_t>(columns), 0.5f));
  bench.offsets(offsets);
  bench.input("weights", std::vector<float>(static_cast<size_t>(m), 2.0f));
  const double elements = static_cast<double>(n), ends = kOffset * static_cast<double>(m);
  const struct {
    const char* name;
    bool segmented;
    double bytes;
  } jobs[] = {{"gather_near", false, 16 * elements},
              {"gather_random", false, 12 * elements},
              {"sum_of_gathered", false, 12 * elements},
              {"scan_of_gathered", false, 16 * elements},
              {"permute", false, 16 * elements},
              {"division", false, 20 * elements},
              {"segmented_gather", true, 16 * elements + 2 * ends},
              {"segmented_sum_of_gathered", true, 12 * elements + 2 * ends},
              {"segmented_scan_of_gathered", true, 16 * elements + ends}};
  for (const auto& job : jobs) {
    // Both in turn, so that they meet the same clock speeds.
    for (int repetition = 0; repetition < 3; ++repetition)
      for (const char* kind : {"checked_", "unchecked_"})
        bench.run(std::string("checks_") + kind + job.name, std::string(kind) + job.name, n,
                  job.segmented ? m : 0, job.bytes);
  }
}

/// Kernels over characters (KnownKernels::ofCharacters), as many as there are floats elsewhere.
void characterJobs(Bench& bench, Data& data) {
  const int64_t n = data.n;
  // One more than there are elements: the last one has a neighbour, too.
  std::vector<uint8_t> text(static_cast<size_t>(n) + 1);
  for (uint8_t& c : text) c = static_cast<uint8_t>('a' + (data.random() >> 8) % 26);
  const auto at = [&](int64_t k) { return text[static_cast<size_t>(k)]; };
  std::vector<uint8_t> low;
  std::vector<int64_t> es, changes;
  for (int64_t k = 0; k < n; ++k) {
    if (at(k) < 'k') low.push_back(at(k));
    if (at(k) == 'e') es.push_back(k);
    if (at(k) != at(k + 1)) changes.push_back(k);
  }
  bench.input("text", text);
  const auto offsets = offsetsOf<int64_t>("zipf", n);
  const auto m = static_cast<int64_t>(offsets.size()) - 1;
  bench.offsets(offsets);
  const auto all = static_cast<double>(n), ends = kOffset * static_cast<double>(m);
  const auto size = [](const auto& values) { return static_cast<double>(values.size() * sizeof(values[0])); };
  const auto sameAs = [](size_t output, const auto& expected) {
    return [output, &expected](const auto& out) -> std::string {
      const bool same =
          std::memcmp(out[output].data(), expected.data(), expected.size() * sizeof(expected[0])) == 0;
      return same ? "" : "results differ";
    };
  };
  bench.run("chars_map", "chars_map", n, 0, 2 * all);
  bench.run("chars_test", "chars_test", n, 0, 2 * all);
  bench.run("chars_codes", "chars_codes", n, 0, 9 * all, [&](const auto& out) -> std::string {
    const auto* codes = reinterpret_cast<const int64_t*>(out[0].data());
    for (int64_t k = 0; k < n; ++k)
      if (codes[k] != at(k)) return "element " + std::to_string(k);
    return "";
  });
  bench.run("chars_count", "chars_count", n, 0, all, [&](const auto& out) -> std::string {
    const auto count = *reinterpret_cast<const int64_t*>(out[0].data());
    return count == static_cast<int64_t>(es.size()) ? "" : "count " + std::to_string(count);
  });
  bench.run("chars_filter", "chars_filter", n, 0, all + size(low), sameAs(1, low));
  bench.run("chars_upper", "chars_upper", n, 0, all + size(low));
  bench.run("chars_positions", "chars_positions", n, 0, all + size(es), sameAs(1, es));
  bench.run("chars_changes", "chars_changes", n, 0, all + size(changes), sameAs(1, changes));
  bench.run("chars_scan", "chars_scan", n, 0, 9 * all, [&](const auto& out) -> std::string {
    const auto* sums = reinterpret_cast<const int64_t*>(out[0].data());
    int64_t sum = 0;
    for (int64_t k = 0; k < n; sum += at(k++))
      if (sums[k] != sum) return "element " + std::to_string(k);
    return "";
  });
  bench.run("chars_segmented_count", "chars_segmented_count", n, m, all + 3 * ends);
  bench.run("chars_segmented_filter", "chars_segmented_filter", n, m, all + size(low) + 2 * ends,
            sameAs(1, low));
  bench.run("chars_segmented_scan", "chars_segmented_scan", n, m, 9 * all + ends);
}

/// Sums, scans and filters of 2^10 and more elements; sums and scans of their segments, of every mean length
/// from 1 to all elements, without empty segments, and with as many empty ones.
void sweep(Bench& bench, int greatest) {
  for (int exponent : {10, 12, 14, 16, 18, 20, 22, 24, 27, 30}) {
    if (exponent > greatest) break;
    const int64_t n = int64_t{1} << exponent;
    const double all = 4.0 * static_cast<double>(n);
    // What a wait costs must not show.
    const Bench::Repetitions repetitions =
        exponent < 24 ? Bench::Repetitions{5, 256} : Bench::Repetitions{3, exponent < 30 ? 40 : 5};
    bench.input("xs", std::vector<float>(1));
    bench.scalar("count", n);
    bench.compute("xs", "sweep_values", n);
    const std::string size = "_" + std::to_string(exponent);
    bench.run("sweep_sum" + size, "sum", n, 0, all, repetitions);
    bench.run("sweep_scan" + size, "scan", n, 0, 2 * all, repetitions);
    bench.run("sweep_filter" + size, "filter", n, 0, 1.5 * all, repetitions);
    for (int length = 0; length <= exponent; length += 2) {
      for (int64_t share : {1, 2}) {
        const int64_t segments = n >> length, m = segments * share;
        bench.scalar("mean", int64_t{1} << length);
        bench.scalar("share", share);
        bench.scalar("segments", segments);
        bench.compute("offsets", "sweep_offsets", m + 1);
        const std::string name = size + "_" + std::to_string(length) + (share > 1 ? "_empties" : "");
        const double ends = kOffset * static_cast<double>(m);
        bench.run("sweep_sum" + name, "segmented_sum", n, m, all + 2 * ends, repetitions);
        bench.run("sweep_scan" + name, "segmented_scan", n, m, 2 * all + ends, repetitions);
      }
    }
  }
}

int runAll(int argc, char** argv) {
  const bool sweeps = argc > 1 && std::string(argv[1]) == "sweep";
  std::string why;
  auto target = runtime::makeCudaTarget(why);
  if (!target) stop(why);
  tests::KnownKernels known;
  const auto program = known.programKernels();
  check(target->prepare(program));
  const int jobs = sweeps ? 3 : 2;
  Bench bench(*target, known, program, argc > jobs ? argv[jobs] : "");
  if (sweeps) {
    sweep(bench, argc > 2 ? std::atoi(argv[2]) : 30);
    return 0;
  }
  const int64_t n = int64_t{1} << (argc > 1 ? std::atoi(argv[1]) : 27);
  Data data{n, 4.0 * static_cast<double>(n), std::vector<float>(static_cast<size_t>(n))};
  for (float& x : data.xs) x = static_cast<float>(data.random()) / 2147483648.0f - 1.0f;
  bench.input("xs", data.xs);
  bench.input("c1", std::vector<float>{3.0f});
  bench.input("c2", std::vector<float>{5.0f});
  flatJobs(bench, data);
  if (bench.wantsLike("segmented_")) segmentedJobs(bench, data);
  if (bench.wantsLike("spmv")) sparseJobs(bench, data);
  if (bench.wantsLike("types_")) otherTypes(bench, data);
  if (bench.wantsLike("black_scholes")) blackScholes(bench, data);
  if (bench.wantsLike("chars_")) characterJobs(bench, data);
  if (bench.wantsLike("checks_")) checkJobs(bench, data);
  return 0;
}

}  // namespace
}  // namespace kelpie::bench

int main(int argc, char** argv) { return kelpie::bench::runAll(argc, argv); }
