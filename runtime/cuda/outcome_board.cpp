#include "runtime/cuda/outcome_board.h"

#include <algorithm>

namespace kelpie::runtime::cuda {

namespace {

// Mirror of codegen/cuda/host_words.cuh.
struct ForetoldCondition {
  DevicePointer condition, error;
  uint64_t launch, expected;
  uint64_t* to;
  uint64_t number;
};
constexpr int kOutcomeBit = 62;
constexpr uint64_t kNumberMask = (uint64_t{1} << kOutcomeBit) - 1;
constexpr Outcome kOutcomes[] = {Outcome::AsForetold, Outcome::Otherwise, Outcome::Unreached};

}  // namespace

bool OutcomeBoard::usable() {
  if (tried_) return function_ != nullptr;
  if (!reader_.isReady()) return false;
  tried_ = true;
  memory_ = static_cast<uint64_t*>(device_.sharedMemory(kPlaces * sizeof(uint64_t)));
  if (!memory_) return false;
  std::fill_n(memory_, kPlaces, 0);
  function_ = reader_.function("kelpie_foretold");
  return function_ != nullptr;
}

Failure OutcomeBoard::foretell(DevicePointer condition, bool expected, DevicePointer error, uint64_t launch,
                               uint64_t launches, uint64_t& number) {
  number = ++number_;
  launches_[number % kPlaces] = launches;
  ForetoldCondition foretold{condition, error, launch, expected, memory_ + number % kPlaces, number};
  void* arguments[] = {&foretold};
  return device_.launch(function_, 1, 1, arguments);
}

Failure OutcomeBoard::outcomeOf(uint64_t number, bool wait, Outcome& outcome) {
  const uint64_t* place = memory_ + number % kPlaces;
  if (wait)
    if (auto failure = device_.await(place, number, kNumberMask, number < number_)) return failure;
  const uint64_t word = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  outcome = (word & kNumberMask) == number ? kOutcomes[word >> kOutcomeBit] : Outcome::Open;
  return std::nullopt;
}

}  // namespace kelpie::runtime::cuda
