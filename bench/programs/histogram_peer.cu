// Peer of histogram.nesl: CUB's histogram, and CUB's sort with run lengths.
//
//   histogram_peer input N
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>

#include "peer.cuh"

int main(int argc, char** argv) {
  constexpr int kValues = 1024, kBits = 10;
  const int64_t n = argument(argc, argv, 2);
  Array<int64_t> keys(n), sorted(n), values(kValues);
  Array<unsigned long long> counts(kValues);
  Array<int64_t> lengths(kValues), runs(1);
  int64_t* data = keys;
  forEach(n, [=] __device__(int64_t k) { data[k] = min(below(2 * k, kValues), below(2 * k + 1, kValues)); });
  Temporary temporary;
  double time = medianMilliseconds([&] {
    temporary.run([&](void* memory, size_t& bytes) {
      return cub::DeviceHistogram::HistogramEven(memory, bytes, keys.get(), counts.get(), kValues + 1,
                                                 int64_t{0}, int64_t{kValues}, n);
    });
  });
  std::vector<int64_t> result;
  for (unsigned long long c : counts.host()) result.push_back(int64_t(c));
  report("by_key", time, digest(result));

  time = medianMilliseconds([&] {
    temporary.run([&](void* memory, size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(memory, bytes, keys.get(), sorted.get(), n, 0, kBits);
    });
    temporary.run([&](void* memory, size_t& bytes) {
      return cub::DeviceRunLengthEncode::Encode(memory, bytes, sorted.get(), values.get(), lengths.get(),
                                                runs.get(), n);
    });
  });
  result.assign(kValues, 0);
  const std::vector<int64_t> found = values.host(), times = lengths.host();
  for (int64_t k = 0; k < runs.host()[0]; ++k) result[size_t(found[size_t(k)])] = times[size_t(k)];
  report("by_sort", time, digest(result));
}
