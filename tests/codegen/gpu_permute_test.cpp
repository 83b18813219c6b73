// Last writers on a real GPU (runtime/cuda/last_writers.h). Skips itself where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/cuda/driver_device.h"
#include "runtime/cuda/last_writers.h"

namespace kelpie::tests {
namespace {

using Random = std::mt19937_64;

/// Where writers write, of so many places.
struct Distribution {
  const char* name;
  uint32_t (*place)(int64_t writer, int64_t target, Random& random);
};
const Distribution kDistributions[] = {
    {"in order", [](int64_t i, int64_t target, Random&) { return static_cast<uint32_t>(i % target); }},
    {"backwards",
     [](int64_t i, int64_t target, Random&) { return static_cast<uint32_t>(target - 1 - i % target); }},
    {"at random",
     [](int64_t, int64_t target, Random& random) {
       return static_cast<uint32_t>(random() % static_cast<uint64_t>(target));
     }},
    {"at one place", [](int64_t, int64_t target, Random&) { return static_cast<uint32_t>(target / 3); }},
    {"half of them near each other",
     [](int64_t i, int64_t target, Random& random) {
       const auto all = static_cast<uint64_t>(target);
       return static_cast<uint32_t>(i % 2 == 0 ? random() % all : random() % std::min<uint64_t>(all, 100));
     }},
    {"some nowhere",
     [](int64_t, int64_t target, Random& random) {
       return random() % 3 == 0 ? KELPIE_WRITES_NOWHERE
                                : static_cast<uint32_t>(random() % static_cast<uint64_t>(target));
     }},
};

class GpuPermutes : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    device_ = runtime::cuda::openDriverDevice(0, "", "", false, why);
    if (!device_) GTEST_SKIP() << why;
    const char* seed = std::getenv("KELPIE_SEED");
    seed_ = seed ? std::strtoull(seed, nullptr, 10) : std::random_device{}();
    random_.seed(seed_);
    std::cout << "KELPIE_SEED=" << seed_ << std::endl;
  }

  template <class T>
  runtime::DevicePointer uploaded(const std::vector<T>& values) {
    const runtime::DevicePointer pointer = device_->allocate(values.size() * sizeof(T));
    EXPECT_EQ(device_->upload(pointer, values.data(), values.size() * sizeof(T)), std::nullopt);
    return pointer;
  }

  /// `less`: so many of the elements are not there, which the device alone knows.
  void expectLastWriters(int64_t elements, int64_t target, const Distribution& distribution, bool onto,
                         int64_t less) {
    constexpr int64_t kFill = -7;
    std::vector<uint32_t> places(static_cast<size_t>(elements));
    for (int64_t i = 0; i < elements; ++i)
      places[static_cast<size_t>(i)] = distribution.place(i, target, random_);
    std::vector<int64_t> held(static_cast<size_t>(target));
    for (int64_t& h : held) h = static_cast<int64_t>(random_() % static_cast<uint64_t>(elements + 1)) - 1;
    const std::vector<int64_t> counted{elements - less};
    std::vector<int64_t> expected = onto ? held : std::vector<int64_t>(held.size(), kFill);
    for (int64_t i = 0; i < counted[0]; ++i)
      if (const uint32_t p = places[static_cast<size_t>(i)]; p < target)
        expected[p] = std::max(expected[p], i);

    runtime::DevicePointer number = uploaded(counted);
    runtime::cuda::LastWriters request{.places = uploaded(places),
                                       .elements = elements,
                                       .counted = less > 0 ? number : nullptr,
                                       .writers = uploaded(held),
                                       .target = target,
                                       .onto = onto,
                                       .fill = kFill,
                                       .error = uploaded(std::vector<uint64_t>{0})};
    const size_t bytes = device_->lastWritersBytes(request);
    ASSERT_GT(bytes, 0U) << "the device has too little shared memory, or no code was compiled for it";
    const runtime::DevicePointer scratch = device_->allocate(bytes);
    if (asksAboutBefore_) device_->lastWritersBytes(*asksAboutBefore_);
    const auto failure = device_->findLastWriters(request, scratch);
    ASSERT_EQ(failure, std::nullopt) << *failure;
    std::vector<int64_t> got(expected.size());
    ASSERT_EQ(device_->download(got.data(), request.writers, got.size() * sizeof(int64_t)), std::nullopt);
    const auto [wrong, right] = std::mismatch(got.begin(), got.end(), expected.begin());
    EXPECT_TRUE(wrong == got.end()) << elements << " writers of which " << less << " are not there, "
                                    << target << " places, " << distribution.name
                                    << (onto ? ", onto others" : "") << ": place " << wrong - got.begin()
                                    << " has " << *wrong << ", not " << *right << "; KELPIE_SEED=" << seed_;
    for (runtime::DevicePointer p : {request.places, request.writers, request.error, number, scratch})
      device_->deallocate(p);
  }

  std::unique_ptr<runtime::cuda::Device> device_;
  std::optional<runtime::cuda::LastWriters> asksAboutBefore_;
  uint64_t seed_ = 0;
  Random random_;
};

/// Few places and many, of one bin, bins with one part and with several; bins with several chunks.
TEST_F(GpuPermutes, LastWriters) {
  const char* size = std::getenv("KELPIE_SIZE");
  const int64_t largest = size ? std::atoll(size) : int64_t{1} << 22;
  const std::vector<std::pair<int64_t, int64_t>> shapes = {{1, 1},
                                                           {1, 5000},
                                                           {33, 7},
                                                           {40'000, 3},
                                                           {20'000, 8192},
                                                           {20'000, 8193},
                                                           {70'001, 300'000},
                                                           {700'000, 1'000'003},
                                                           {1'000'000, 1000},
                                                           {4'000'000, 4'200'000},
                                                           {3'000'000, 80'000'001}};
  for (const auto& [elements, target] : shapes) {
    if (elements > largest || target > 16 * largest) continue;
    for (const Distribution& distribution : kDistributions) {
      const bool onto = random_() % 2 == 0;
      const int64_t less = random_() % 2 == 0 ? elements / 3 : 0;
      ASSERT_NO_FATAL_FAILURE(expectLastWriters(elements, target, distribution, onto, less));
    }
  }
}

/// A kernel may have several permutes: of all it is asked what they need before the first is launched.
TEST_F(GpuPermutes, LargeAfterAskingAboutSmall) {
  const runtime::cuda::LastWriters small{nullptr, 1, nullptr, nullptr, 1, false, -1, nullptr};
  asksAboutBefore_ = small;
  expectLastWriters(3'000'000, 5'000'000, kDistributions[2], false, 0);
}

/// After an error nothing is written.
TEST_F(GpuPermutes, NothingIsWrittenAfterAnError) {
  const std::vector<int64_t> held(1000, 42);
  runtime::cuda::LastWriters request{.places = uploaded(std::vector<uint32_t>(5000, 3)),
                                     .elements = 5000,
                                     .counted = nullptr,
                                     .writers = uploaded(held),
                                     .target = 1000,
                                     .onto = false,
                                     .fill = -1,
                                     .error = uploaded(std::vector<uint64_t>{17})};
  const runtime::DevicePointer scratch = device_->allocate(device_->lastWritersBytes(request));
  ASSERT_EQ(device_->findLastWriters(request, scratch), std::nullopt);
  std::vector<int64_t> got(held.size());
  ASSERT_EQ(device_->download(got.data(), request.writers, got.size() * sizeof(int64_t)), std::nullopt);
  EXPECT_EQ(got, held);
  for (runtime::DevicePointer p : {request.places, request.writers, request.error, scratch})
    device_->deallocate(p);
}

}  // namespace
}  // namespace kelpie::tests
