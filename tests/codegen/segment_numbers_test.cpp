// Segments of all items of a tile (codegen/cuda/segment_numbers.cuh, regular_numbers.cuh), also of those that
// are not in it: theirs is that of the nearest item, so that what these load is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "emulated_device.h"

namespace kelpie::tests {
namespace {

constexpr int kThreads = 64, kItems = kThreads * 4;

/// Writes the segment of each item of each tile: as its number, or, with `kept`, as what its tile keeps of
/// its segment, if there is room.
std::string source(bool backward, bool regular, bool kept) {
  const std::string shape = backward ? "Shape<64, 2, 2, true>" : "Shape<64, 2, 2, false>";
  std::string text =
      "#include \"kelpie.cuh\"\n"
      "using namespace kelpie;\n"
      "using S = " +
      shape +
      ";\n"
      "struct Kept {\n"
      "  static constexpr int kRoom = S::kItems / 4;\n"
      "  using Item = int64_t;\n"
      "  int64_t* values;\n"
      "  __device__ Item load(int64_t segment) const { return 3 * segment; }\n"
      "  __device__ void store(int place, const Item& item) const { values[place] = item; }\n"
      "};\n"
      "struct Memory { SegmentNumbers<S>::Shared heads; int64_t values[Kept::kRoom]; };\n"
      "extern \"C\" __global__ void segments_of_items(const int64_t n, const int64_t m, const int64_t "
      "length,\n"
      "    const int64_t tiles, const uint32_t* offsets, int64_t* out) {\n"
      "  KELPIE_SHARED(Memory, shared);\n"
      "  const Tile tile = flatTile<S>(blockIdx.x, tiles, n);\n";
  text += regular ? "  const RegularSegments segments{length, m};\n"
                    "  const RegularNumbers<S> numbers(segments, tile);\n"
                  : "  const OffsetSegments<uint32_t> segments{offsets, m};\n"
                    "  SegmentNumbers<S>::clear(shared.heads);\n"
                    "  __syncthreads();\n"
                    "  const SegmentNumbers<S> numbers(segments, tile, n, nullptr, shared.heads" +
                        std::string(kept ? ", Kept{shared.values}" : "") +
                        ");\n"
                        "  __syncthreads();\n";
  text +=
      "  for (int row = 0; row < S::kRows; ++row) {\n"
      "    int number[S::kWidth];\n";
  text += regular ? "    numbers.row(row, number);\n"
                  : "    numbers.row(row, segments, tile, shared.heads, number);\n";
  const std::string number = "numbers.first + number[v]";
  text +=
      "    for (int v = 0; v < S::kWidth; ++v)\n"
      "      out[tile.base + S::offset(row, v)] = " +
      (kept ? "numbers.kept ? shared.values[number[v]] / 3 : " + number : number) +
      ";\n"
      "  }\n"
      "}\n";
  return text;
}

/// Segments of these lengths, cut into tiles.
void expectSegments(const std::vector<int64_t>& lengths, bool backward, bool regular, bool kept = false) {
  std::vector<uint32_t> offsets{0};
  for (int64_t length : lengths) offsets.push_back(offsets.back() + static_cast<uint32_t>(length));
  int64_t n = offsets.back(), m = static_cast<int64_t>(lengths.size()), length = lengths[0];
  int64_t tiles = (n + kItems - 1) / kItems;
  EmulatedDevice device(3);
  std::unique_ptr<runtime::cuda::Module> module;
  const auto failure = device.compile(source(backward, regular, kept), {"segments_of_items"}, module);
  ASSERT_FALSE(failure) << *failure;
  std::vector<int64_t> out(static_cast<size_t>(tiles * kItems));
  runtime::DevicePointer places = device.allocate(offsets.size() * 4),
                         results = device.allocate(out.size() * 8);
  device.upload(places, offsets.data(), offsets.size() * 4);
  void* arguments[] = {&n, &m, &length, &tiles, &places, &results};
  const auto launched = device.launch(module->function("segments_of_items"), tiles, kThreads, arguments);
  ASSERT_FALSE(launched) << *launched;
  device.download(out.data(), results, out.size() * 8);
  for (int64_t i = 0; i < tiles * kItems; ++i) {
    const auto behind =
        std::upper_bound(offsets.begin(), offsets.end(), static_cast<uint32_t>(std::min(i, n - 1)));
    EXPECT_EQ(out[static_cast<size_t>(i)], behind - offsets.begin() - 1)
        << "of item " << i << " of " << n << (backward ? ", backward" : "") << (regular ? ", regular" : "");
  }
}

TEST(SegmentNumbers, ItemsOutsideHaveThatOfTheNearest) {
  for (const bool backward : {false, true}) {
    for (const bool regular : {false, true}) {
      expectSegments({300}, backward, regular);
      expectSegments(std::vector<int64_t>(7, 50), backward, regular);
      expectSegments(std::vector<int64_t>(301, 1), backward, regular);
    }
    expectSegments({3, 0, 0, 250, 0, 1, 5, 0, 40, 0, 0}, backward, false);
    expectSegments({0, 0, 256, 44, 0}, backward, false);
    std::vector<int64_t> crowded(40'000, 0);
    crowded[39'000] = 100;
    expectSegments(crowded, backward, false);
  }
}

/// As many segments as there is room for, one more, and none that begins behind the first item.
TEST(SegmentNumbers, TilesKeepValuesOfTheirSegments) {
  constexpr int kRoom = kItems / 4;
  for (const bool backward : {false, true}) {
    expectSegments({300, 1000}, backward, false, true);
    expectSegments(std::vector<int64_t>(301, 1), backward, false, true);
    for (const int count : {kRoom - 2, kRoom - 1, kRoom}) {
      std::vector<int64_t> lengths(static_cast<size_t>(1 + count), 0);
      lengths[0] = kItems + 7;  // one that goes on, and `count` that begin in the second tile
      lengths[static_cast<size_t>(count) / 2] = 20;
      lengths.back() = 200;
      expectSegments(lengths, backward, false, true);
    }
    std::vector<int64_t> crowded(40'000, 0);
    crowded[39'000] = 100;
    expectSegments(crowded, backward, false, true);
  }
}

}  // namespace
}  // namespace kelpie::tests
