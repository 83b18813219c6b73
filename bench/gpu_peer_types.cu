// Peers of gpu_bench's jobs `types_` and `chars_`, written as an expert would with CUB; times as lines of
// JSON.
//
//   gpu_peer_types [log2 of the number of float32, or of characters, 27]
//
// What CUB does by key needs the number of the segment of each element in memory, which is made beforehand.
// Sums of segments are measured both ways; the better one is the peer.
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

#include <cstdint>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <cub/device/device_transform.cuh>
#include <cuda/std/functional>
#include <random>

#include "cub_peer.cuh"

namespace {

using namespace kelpie::bench;

/// Sums, scans and filters, flat and of segments. `positive`: what the filter keeps.
template <class In, class Out, class Plus, class T, class Positive>
void typeJobs(const std::string& suffix, int64_t n, double size, double kept, In in, Out out, Plus plus,
              T zero, Positive positive) {
  const double all = size * static_cast<double>(n);
  Device<int64_t> count(1);
  run("types_sum" + suffix, "cub", all,
      [&](void* s, size_t& b) { return cub::DeviceReduce::Reduce(s, b, in, out, n, plus, zero, kStream); });
  run("types_scan" + suffix, "cub", 2 * all, [&](void* s, size_t& b) {
    return cub::DeviceScan::ExclusiveScan(s, b, in, out, plus, zero, n, kStream);
  });
  run("types_filter" + suffix, "cub", all + size * kept, [&](void* s, size_t& b) {
    return cub::DeviceSelect::If(s, b, in, out, count.data, n, positive, kStream);
  });
  for (const char* lengths : {"8", "1024", "1048576", "zipf", "half_giant"}) {
    const Segments segments(lengths, n);
    const std::string name = suffix + "_" + lengths;
    sumSegments("types_segmented_sum" + name, segments, n,
                all + segments.ends + size * static_cast<double>(segments.count), in, out, plus, zero);
    run("types_segmented_scan" + name, "cub by key", 2 * all + segments.ends, [&](void* s, size_t& b) {
      return cub::DeviceScan::ExclusiveScanByKey(s, b, segments.keys.data, in, out, plus, zero, n,
                                                 ::cuda::std::equal_to<>(), kStream);
    });
  }
}

using Plus = ::cuda::std::plus<>;  // which CUB is tuned for
struct Positive {
  template <class T>
  __host__ __device__ bool operator()(T x) const {
    return x > 0;
  }
};

using Four = thrust::tuple<float, float, float, float>;
struct PlusFour {
  __host__ __device__ Four operator()(const Four& a, const Four& b) const {
    return {thrust::get<0>(a) + thrust::get<0>(b), thrust::get<1>(a) + thrust::get<1>(b),
            thrust::get<2>(a) + thrust::get<2>(b), thrust::get<3>(a) + thrust::get<3>(b)};
  }
};
struct FirstPositive {
  __host__ __device__ bool operator()(const Four& x) const { return thrust::get<0>(x) > 0; }
};

template <class T>
void oneArray(const std::string& suffix, int64_t n) {
  std::vector<T> values;
  std::mt19937 random(3);
  double kept = 0;
  for (int64_t k = 0; k < n; ++k) {
    const auto word = static_cast<int32_t>(random());
    values.push_back(static_cast<T>(std::is_integral_v<T> ? word : word / 2147483648.0));
    kept += word > 0;
  }
  Device<T> in(values.size()), out(values.size());
  in.put(values);
  typeJobs(suffix, n, sizeof(T), kept, in.data, out.data, Plus(), T(0), Positive());
}

void fourArrays(int64_t n) {
  std::vector<float> values;
  std::mt19937 random(3);
  double kept = 0;
  for (int64_t k = 0; k < n; ++k) {
    values.push_back(static_cast<float>(random()) / 2147483648.0f - 1.0f);
    kept += values.back() > 0;
  }
  const auto count = static_cast<size_t>(n);
  Device<float> a(count), b(count), c(count), d(count), r(count), s(count), t(count), u(count);
  for (Device<float>* in : {&a, &b, &c, &d}) in->put(values);
  typeJobs("_4", n, 16, kept, thrust::make_zip_iterator(thrust::make_tuple(a.data, b.data, c.data, d.data)),
           thrust::make_zip_iterator(thrust::make_tuple(r.data, s.data, t.data, u.data)), PlusFour(),
           Four(0.0f, 0.0f, 0.0f, 0.0f), FirstPositive());
}

// ---- characters -------------------------------------------------------------------------------------------

struct Upper {
  __host__ __device__ uint8_t operator()(uint8_t c) const { return c == 'e' ? 'E' : c; }
};
struct Low {
  __host__ __device__ bool operator()(uint8_t c) const { return c < 'k'; }
};
struct Code {
  __host__ __device__ int64_t operator()(uint8_t c) const { return c; }
};
struct IsE {
  __host__ __device__ int64_t operator()(uint8_t c) const { return c == 'e'; }
};
struct IsEAt {
  const uint8_t* text;
  __device__ bool operator()(int64_t k) const { return text[k] == 'e'; }
};
struct ChangesAt {
  const uint8_t* text;
  __device__ bool operator()(int64_t k) const { return text[k] != text[k + 1]; }
};

void characters(int64_t n) {
  std::vector<uint8_t> host(static_cast<size_t>(n) + 1);
  std::mt19937 random(2);
  for (uint8_t& c : host) c = static_cast<uint8_t>('a' + (random() >> 8) % 26);
  double low = 0, es = 0, changes = 0;
  for (size_t k = 0; k + 1 < host.size(); ++k) {
    low += host[k] < 'k';
    es += host[k] == 'e';
    changes += host[k] != host[k + 1];
  }
  const auto count = static_cast<size_t>(n);
  Device<uint8_t> text(host.size()), out(count);
  Device<int64_t> numbers(count), kept(1);
  text.put(host);
  const double all = static_cast<double>(n);
  const auto codes = thrust::make_transform_iterator(text.data, Code());
  const auto marks = thrust::make_transform_iterator(text.data, IsE());
  const thrust::counting_iterator<int64_t> positions(0);
  report("chars_map", "cub", median([&] {
           check(cub::DeviceTransform::Transform(text.data, out.data, n, Upper(), kStream), "CUB");
         }),
         2 * all);
  report("chars_test", "cub", median([&] {
           check(cub::DeviceTransform::Transform(text.data, reinterpret_cast<bool*>(out.data), n, Low(),
                                                 kStream),
                 "CUB");
         }),
         2 * all);
  report("chars_codes", "cub", median([&] {
           check(cub::DeviceTransform::Transform(text.data, numbers.data, n, Code(), kStream), "CUB");
         }),
         9 * all);
  run("chars_count", "cub", all,
      [&](void* s, size_t& b) { return cub::DeviceReduce::Sum(s, b, marks, numbers.data, n, kStream); });
  run("chars_filter", "cub", all + low, [&](void* s, size_t& b) {
    return cub::DeviceSelect::If(s, b, text.data, out.data, kept.data, n, Low(), kStream);
  });
  run("chars_upper", "cub", all + low, [&](void* s, size_t& b) {
    return cub::DeviceSelect::If(s, b, text.data, thrust::make_transform_output_iterator(out.data, Upper()),
                                 kept.data, n, Low(), kStream);
  });
  run("chars_positions", "cub", all + 8 * es, [&](void* s, size_t& b) {
    return cub::DeviceSelect::If(s, b, positions, numbers.data, kept.data, n, IsEAt{text.data}, kStream);
  });
  run("chars_changes", "cub", all + 8 * changes, [&](void* s, size_t& b) {
    return cub::DeviceSelect::If(s, b, positions, numbers.data, kept.data, n, ChangesAt{text.data}, kStream);
  });
  run("chars_scan", "cub", 9 * all, [&](void* s, size_t& b) {
    return cub::DeviceScan::ExclusiveSum(s, b, codes, numbers.data, n, kStream);
  });
  const Segments segments("zipf", n);
  sumSegments("chars_segmented_count", segments, n, all + 3 * segments.ends, marks, numbers.data, Plus(),
              int64_t{0});
  run("chars_segmented_scan", "cub by key", 9 * all + segments.ends, [&](void* s, size_t& b) {
    return cub::DeviceScan::ExclusiveSumByKey(s, b, segments.keys.data, codes, numbers.data, n,
                                              ::cuda::std::equal_to<>(), kStream);
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t n = int64_t{1} << (argc > 1 ? std::atoi(argv[1]) : 27);
  oneArray<double>("_f64", n / 2);
  oneArray<int64_t>("_i64", n / 2);
  fourArrays(n / 4);
  characters(n);
  return 0;
}
