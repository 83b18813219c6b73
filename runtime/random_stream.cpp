#include "runtime/random_stream.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

namespace kelpie {

namespace {

constexpr size_t kShortTap = 28;      // x^31 = x^28 + 1, because r[i] = r[i-3] + r[i-31]
constexpr uint64_t kDiscarded = 310;  // r[34] .. r[343] are never drawn
constexpr size_t kParallelBlock = size_t{1} << 18;
constexpr size_t kFewSteps = 1024;  // take less time than the arithmetic of a jump

/// One draw of Philox 4x32-10: word `number % 4` of the block `number / 4`.
uint32_t philox(uint32_t key, uint64_t number) {
  const uint64_t block = number / 4;
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0};
  uint32_t k0 = key, k1 = 0;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c[number % 4];
}

}  // namespace

/// a * b mod (x^31 - x^28 - 1), coefficients mod 2^32.
RandomStream::Jump RandomStream::both(const Jump& a, const Jump& b) {
  std::array<uint32_t, 2 * kTaps - 1> product{};
  for (size_t i = 0; i < kTaps; ++i) {
    for (size_t j = 0; j < kTaps; ++j) product[i + j] += a[i] * b[j];
  }
  for (size_t i = product.size() - 1; i >= kTaps; --i) {
    product[i - kTaps + kShortTap] += product[i];
    product[i - kTaps] += product[i];
  }
  Jump result;
  std::copy_n(product.begin(), kTaps, result.begin());
  return result;
}

RandomStream::Jump RandomStream::jumpOver(uint64_t count) {
  Jump result{}, square{};
  result[0] = 1;
  square[1] = 1;
  for (; count != 0; count >>= 1) {
    if (count & 1) result = both(result, square);
    square = both(square, square);
  }
  return result;
}

void RandomStream::seed(int64_t value) {
  const auto word = static_cast<int32_t>(value);
  key_ = static_cast<uint32_t>(word);
  position_ = 0;
  // r[0] .. r[30] by a multiplicative generator, computed without overflow as the C library does, which
  // matters for negative seeds only.
  std::array<int64_t, kTaps> r{};
  r[0] = word == 0 ? 1 : word;
  for (size_t i = 1; i < kTaps; ++i) {
    r[i] = 16807 * (r[i - 1] % 127773) - 2836 * (r[i - 1] / 127773);
    if (r[i] < 0) r[i] += 2147483647;
  }
  // r[31] .. r[33] repeat r[0] .. r[2]; the state before r[34] is r[3] .. r[33].
  for (size_t i = 0; i < kTaps; ++i) state_[i] = static_cast<uint32_t>(r[(i + 3) % kTaps]);
  if (generator_ == RandomGenerator::Additive) skip(kDiscarded);
}

/// By rounds of 31 draws, after each of which the oldest word is the first again.
void RandomStream::drawSerially(std::span<int64_t> draws) {
  const auto round = [this](int64_t* to, size_t count) {
    for (size_t j = 0; j < count; ++j) {
      state_[j] += j < 3 ? state_[j + kShortTap] : state_[j - 3];
      to[j] = state_[j] >> 1;
    }
  };
  size_t done = 0;
  for (; done + kTaps <= draws.size(); done += kTaps) round(draws.data() + done, kTaps);
  const size_t left = draws.size() - done;
  round(draws.data() + done, left);
  std::rotate(state_.begin(), state_.begin() + static_cast<std::ptrdiff_t>(left), state_.end());
}

void RandomStream::skip(uint64_t count) {
  if (generator_ == RandomGenerator::Philox) {
    position_ += count;
    return;
  }
  if (count <= kFewSteps) {
    std::array<int64_t, kFewSteps> ignored;
    return drawSerially({ignored.data(), static_cast<size_t>(count)});
  }
  // r[n+j] is the sum of c[k] * r[j+k], where x^n = sum of c[k] x^k: needs r[0] .. r[60].
  const Jump c = jumpOver(count);
  std::array<uint32_t, 2 * kTaps> r{};
  std::copy(state_.begin(), state_.end(), r.begin());
  for (size_t i = kTaps; i < r.size(); ++i) r[i] = r[i - 3] + r[i - kTaps];
  for (size_t j = 0; j < kTaps; ++j) {
    uint32_t word = 0;
    for (size_t k = 0; k < kTaps; ++k) word += c[k] * r[j + k];
    state_[j] = word;
  }
}

void RandomStream::draw(std::span<int64_t> draws) {
  const size_t blocks =
      std::min<size_t>(std::max(1U, std::thread::hardware_concurrency()), draws.size() / kParallelBlock);
  auto fill = [](RandomStream& stream, std::span<int64_t> part) {
    if (stream.generator_ == RandomGenerator::Additive) return stream.drawSerially(part);
    for (int64_t& draw : part) draw = philox(stream.key_, stream.position_++) >> 1;
  };
  if (blocks < 2) return fill(*this, draws);
  const auto fillBlock = [&](size_t b) {
    const size_t begin = draws.size() * b / blocks, end = draws.size() * (b + 1) / blocks;
    RandomStream stream = *this;
    stream.skip(begin);
    fill(stream, draws.subspan(begin, end - begin));
  };
  std::vector<std::thread> others;
  size_t next = 1;
  try {
    for (; next < blocks; ++next) others.emplace_back(fillBlock, next);
  } catch (const std::exception&) {
    // The system has no more threads (or memory for them): this one does the rest.
  }
  fillBlock(0);
  for (; next < blocks; ++next) fillBlock(next);
  for (std::thread& thread : others) thread.join();
  skip(draws.size());
}

}  // namespace kelpie
