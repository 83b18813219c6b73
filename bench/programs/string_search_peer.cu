// Peer of string_search.nesl: CUB's selection of the places where the word is.
//
//   string_search_peer input N
#include <thrust/iterator/counting_iterator.h>

#include <cub/device/device_select.cuh>

#include "peer.cuh"

struct IsAt {
  const char* text;
  char word[8];
  __device__ bool operator()(int64_t place) const {
#pragma unroll
    for (int k = 0; k < 8; ++k)
      if (text[place + k] != word[k]) return false;
    return true;
  }
};

int main(int argc, char** argv) {
  const int64_t n = argument(argc, argv, 2), places = n - 7;
  Array<char> text(n);
  Array<int64_t> found(n / 16 + 1024), count(1);
  char* data = text;
  forEach(n, [=] __device__(int64_t k) { data[k] = char(97 + below(k, 4)); });
  Temporary temporary;
  const double time = medianMilliseconds([&] {
    temporary.run([&](void* memory, size_t& bytes) {
      return cub::DeviceSelect::If(memory, bytes, thrust::make_counting_iterator<int64_t>(0), found.get(),
                                   count.get(), places,
                                   IsAt{text.get(), {'a', 'b', 'c', 'a', 'b', 'd', 'a', 'b'}});
    });
  });
  report("string_search", time, digest(found.host(size_t(count.host()[0]))));
}
