// Arrays that the host goes through element by element (runtime/host_copy.h).
#include "runtime/host_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace kelpie::testing {
namespace {

/// How many reads it takes to look at the elements at `positions`; each is right.
int reads(const std::vector<int32_t>& remote, const std::vector<int64_t>& positions) {
  runtime::HostCopy copy(static_cast<int64_t>(remote.size()), sizeof(int32_t));
  int count = 0;
  for (const int64_t position : positions) {
    if (!copy.find(position)) {
      const runtime::HostCopy::Piece piece = copy.next(position);
      EXPECT_LE(piece.offset + piece.bytes, remote.size() * sizeof(int32_t));
      std::memcpy(piece.to, reinterpret_cast<const std::byte*>(remote.data()) + piece.offset, piece.bytes);
      EXPECT_EQ(copy.find(position), nullptr);  // whoever fails to read it will want it again
      copy.arrived(piece);
      ++count;
    }
    int32_t element;
    const std::byte* found = copy.find(position);
    if (!found) return -1;
    std::memcpy(&element, found, sizeof element);
    EXPECT_EQ(element, remote[static_cast<size_t>(position)]) << position;
  }
  return count;
}

TEST(HostCopy, AnyOrderTakesFewReads) {
  std::vector<int32_t> remote(1000003);
  for (size_t k = 0; k < remote.size(); ++k) remote[k] = static_cast<int32_t>(k * 7919);
  std::vector<int64_t> forward, backward, anywhere;
  std::mt19937_64 random(7);
  for (int64_t k = 0; k < 1000003; ++k) {
    forward.push_back(k);
    backward.push_back(1000002 - k);
    anywhere.push_back(static_cast<int64_t>(random() % 1000003));
  }
  EXPECT_LE(reads(remote, forward), 30);
  EXPECT_LE(reads(remote, backward), 30);
  EXPECT_LE(reads(remote, anywhere), 60);
  EXPECT_EQ(reads(remote, {0, 1, 2, 999, 0}), 1);
  EXPECT_EQ(reads({5}, {0, 0}), 1);
}

}  // namespace
}  // namespace kelpie::testing
