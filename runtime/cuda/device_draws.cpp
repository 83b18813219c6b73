#include "runtime/cuda/device_draws.h"

#include <array>
#include <vector>

namespace kelpie::runtime::cuda {

namespace {

// Mirrors of codegen/cuda/random_draws.cuh.
constexpr int kThreads = 128;
constexpr int64_t kDrawsOfThread = 16 * int64_t{RandomStream::kTaps},
                  kDrawsOfBlock = kThreads * kDrawsOfThread;
constexpr int64_t kDrawsOfPhilox = 4;
constexpr int kBlockBits = 31;  // of the number of a block

int64_t blocksFor(int64_t count, int64_t drawsOfBlock) { return (count + drawsOfBlock - 1) / drawsOfBlock; }

/// The jumps of threads and blocks, as kelpie_draw_additive reads them.
std::vector<uint32_t> jumps() {
  constexpr size_t kTaps = RandomStream::kTaps;
  std::vector<uint32_t> table(kTaps * (kThreads + kBlockBits));
  const RandomStream::Jump step = RandomStream::jumpOver(static_cast<uint64_t>(kDrawsOfThread));
  RandomStream::Jump jump = RandomStream::jumpOver(0);
  for (size_t thread = 0; thread < kThreads; ++thread) {
    for (size_t k = 0; k < kTaps; ++k) table[k * kThreads + thread] = jump[k];
    jump = RandomStream::both(jump, step);
  }
  for (size_t bit = 0; bit < kBlockBits; ++bit) {  // `jump` is over 2^bit blocks
    for (size_t k = 0; k < kTaps; ++k) table[kTaps * (kThreads + bit) + k] = jump[k];
    jump = RandomStream::both(jump, jump);
  }
  return table;
}

}  // namespace

std::string DeviceDraws::source() { return "#include \"random_draws.cuh\"\n"; }

Failure DeviceDraws::load() {
  if (jumps_) return std::nullopt;
  if (!module_) {
    const std::vector<std::string> entries = {"kelpie_draw_additive", "kelpie_draw_philox",
                                              "kelpie_draw_short_additive", "kelpie_draw_short_philox"};
    if (auto failure = device_.compile(source(), entries, module_)) return failure;
    additive_ = module_->function(entries[0]);
    philox_ = module_->function(entries[1]);
    shortAdditive_ = module_->function(entries[2]);
    shortPhilox_ = module_->function(entries[3]);
  }
  const std::vector<uint32_t> table = jumps();
  const size_t bytes = table.size() * sizeof(uint32_t);
  DevicePointer memory = device_.allocate(bytes);
  if (!memory) return "out of memory: " + std::to_string(bytes) + " bytes for random numbers";
  if (auto failure = device_.upload(memory, table.data(), bytes)) {
    device_.deallocate(memory);
    return failure;
  }
  jumps_ = memory;
  return std::nullopt;
}

Failure DeviceDraws::draw(const RandomStream& stream, ScalarType type, DevicePointer to, int64_t count) {
  const bool isShort = type == ScalarType::Int32;
  if (stream.generator() == RandomGenerator::Additive) {
    RandomStream::State state = stream.state();
    std::array<void*, 4> arguments = {&state, &jumps_, &count, &to};
    return device_.launch(isShort ? shortAdditive_ : additive_, blocksFor(count, kDrawsOfBlock), kThreads,
                          arguments.data());
  }
  uint32_t key = stream.key();
  uint64_t position = stream.position();
  std::array<void*, 4> arguments = {&key, &position, &count, &to};
  const int64_t fromBlock = count + static_cast<int64_t>(position) % kDrawsOfPhilox;
  return device_.launch(isShort ? shortPhilox_ : philox_, blocksFor(fromBlock, kDrawsOfPhilox * kThreads),
                        kThreads, arguments.data());
}

void DeviceDraws::unload() {
  if (jumps_) device_.deallocate(jumps_);
  jumps_ = nullptr;
  module_.reset();
}

}  // namespace kelpie::runtime::cuda
