// Peer of quicksort.nesl and batcher_sort.nesl: CUB's radix sort and segmented sort of 64-bit keys.
//
//   sort_peer input N | sort_peer rows N LENGTH
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include "peer.cuh"

struct Begin {
  int64_t length;
  __host__ __device__ int64_t operator()(int64_t k) const { return k * length; }
};

int main(int argc, char** argv) {
  const bool rows = argc > 1 && std::string(argv[1]) == "rows";
  const int64_t segments = argument(argc, argv, 2), length = rows ? argument(argc, argv, 3) : 1;
  const int64_t n = segments * length;
  Array<int64_t> keys(n), sorted(n);
  int64_t* data = keys;
  forEach(n, [=] __device__(int64_t k) { data[k] = below(k, int64_t{1} << 31); });
  Temporary temporary;
  const auto job = [&] {
    temporary.run([&](void* memory, size_t& bytes) {
      if (!rows) return cub::DeviceRadixSort::SortKeys(memory, bytes, keys.get(), sorted.get(), n);
      const auto begins =
          thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0), Begin{length});
      return cub::DeviceSegmentedSort::SortKeys(memory, bytes, keys.get(), sorted.get(), n, segments, begins,
                                                begins + 1);
    });
  };
  const double time = medianMilliseconds(job);
  report(rows ? "segmented sort" : "sort", time, digest(sorted.host()));
}
