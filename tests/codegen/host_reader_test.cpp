// Words read from the device in one wait.
#include "runtime/cuda/host_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "emulated_device.h"

namespace kelpie::testing {
namespace {

/// Counts how often the driver copies.
class CountingDevice final : public tests::EmulatedDevice {
 public:
  CountingDevice() : EmulatedDevice(2) {}
  runtime::Failure download(void* to, runtime::DevicePointer from, size_t bytes) override {
    ++downloads;
    return EmulatedDevice::download(to, from, bytes);
  }
  int downloads = 0;
};

class HostReader : public ::testing::Test {
 protected:
  void SetUp() override {
    std::iota(bytes_.begin(), bytes_.end(), 1);
    memory_ = device_.allocate(bytes_.size());
    ASSERT_EQ(device_.upload(memory_, bytes_.data(), bytes_.size()), std::nullopt);
  }
  void TearDown() override {
    reader_.unload();
    device_.deallocate(memory_);
  }
  void expect(const std::vector<std::pair<size_t, size_t>>& places) {
    std::vector<std::vector<unsigned char>> read;
    std::vector<runtime::HostRead> reads;
    for (const auto& [place, size] : places) read.emplace_back(size);
    for (size_t k = 0; k < places.size(); ++k)
      reads.push_back({read[k].data(), static_cast<std::byte*>(memory_) + places[k].first, places[k].second});
    const runtime::Failure failure = reader_.read(reads);
    ASSERT_EQ(failure, std::nullopt) << *failure;
    for (size_t k = 0; k < places.size(); ++k)
      EXPECT_EQ(std::memcmp(read[k].data(), bytes_.data() + places[k].first, places[k].second), 0) << k;
  }

  std::vector<unsigned char> bytes_ = std::vector<unsigned char>(512);
  CountingDevice device_;
  runtime::cuda::HostReader reader_{device_};
  runtime::DevicePointer memory_ = nullptr;
};

TEST_F(HostReader, ReadsWordsOfEverySizeTogether) {
  expect({{3, 1}, {8, 8}, {20, 4}, {64, 48}});
  expect({{7, 1}});
  expect({});
  EXPECT_EQ(device_.downloads, 0);
}

TEST_F(HostReader, MoreWordsThanItCanHoldAreCopied) {
  expect({{0, 8 * 32}});
  EXPECT_EQ(device_.downloads, 0);
  expect({{0, 8 * 32}, {300, 1}});
  EXPECT_EQ(device_.downloads, 2);
}

/// In one wait, with words between them; more than 2,048 are copied.
TEST_F(HostReader, ReadsManyPieces) {
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t k = 0; k < 300; ++k) places.emplace_back(k * 8 % 384, 128);
  places.insert(places.begin() + 7, {3, 1});
  places.emplace_back(40, 48);
  expect(places);
  expect({{0, 128}, {128, 128}, {8, 128}});
  EXPECT_EQ(device_.downloads, 0);
  expect(std::vector<std::pair<size_t, size_t>>(2049, {256, 128}));
  EXPECT_EQ(device_.downloads, 2049);
}

}  // namespace
}  // namespace kelpie::testing
