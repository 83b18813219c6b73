// The random stream of a top-level form (language.md 4.9): draws of 31 bits, consecutive from a seed.
//
// The default generator is additive feedback, r[i] = r[i-3] + r[i-31] mod 2^32, which is linear: the state
// after n steps is x^n mod (x^31 - x^28 - 1) applied to the state, so large blocks are filled in parallel by
// jumping ahead. The other generator, Philox 4x32-10, computes every draw from its number alone.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace kelpie {

enum class RandomGenerator : uint8_t { Additive, Philox };

class RandomStream {
 public:
  explicit RandomStream(RandomGenerator generator = RandomGenerator::Additive) : generator_(generator) {
    seed(1);
  }

  /// Restarts the stream. Seed 0 counts as 1 for the additive generator.
  void seed(int64_t value);
  /// The next draws, in order; each is in 0 .. 2^31-1.
  void draw(std::span<int64_t> draws);
  /// Passes over `count` draws in O(log count) steps.
  void skip(uint64_t count);

  // For those who make draws elsewhere (runtime/cuda/device_draws.h).
  static constexpr size_t kTaps = 31;
  using State = std::array<uint32_t, kTaps>;  ///< the last 31 words r[i-31] .. r[i-1]
  /// Coefficients c of x^n mod (x^31 - x^28 - 1): n steps on, word j is the sum over k of c[k] r[j+k].
  using Jump = std::array<uint32_t, kTaps>;
  static Jump jumpOver(uint64_t count);
  static Jump both(const Jump& a, const Jump& b);  ///< one after the other
  RandomGenerator generator() const { return generator_; }
  const State& state() const { return state_; }  ///< additive
  uint32_t key() const { return key_; }          ///< Philox: the seed
  uint64_t position() const { return position_; }

 private:
  void drawSerially(std::span<int64_t> draws);

  RandomGenerator generator_;
  State state_{};
  uint32_t key_ = 0;       ///< Philox: the seed
  uint64_t position_ = 0;  ///< Philox: number of the next draw
};

}  // namespace kelpie
