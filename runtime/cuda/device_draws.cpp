#include "runtime/cuda/device_draws.h"

#include <array>
#include <vector>

namespace kelpie::runtime::cuda {

namespace {

// Mirrors of codegen/cuda/additive_draws.cuh and philox_draws.cuh.
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

std::string DeviceDraws::source(RandomGenerator generator) {
  return generator == RandomGenerator::Additive ? "#include \"additive_draws.cuh\"\n"
                                                : "#include \"philox_draws.cuh\"\n";
}

Failure DeviceDraws::load(RandomGenerator generator) {
  const size_t k = place(generator);
  const bool additive = generator == RandomGenerator::Additive;
  if (!modules_[k]) {
    const std::string entry = additive ? "kelpie_draw_additive" : "kelpie_draw_philox";
    if (auto failure = device_.compile(source(generator), {entry}, modules_[k])) return failure;
    functions_[k] = modules_[k]->function(entry);
  }
  if (!additive || jumps_) return std::nullopt;
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
  int64_t isShort = type == ScalarType::Int32 ? 1 : 0;
  const Function function = functions_[place(stream.generator())];
  if (stream.generator() == RandomGenerator::Additive) {
    RandomStream::State state = stream.state();
    std::array<void*, 5> arguments = {&state, &jumps_, &count, &isShort, &to};
    return device_.launch(function, blocksFor(count, kDrawsOfBlock), kThreads, arguments.data());
  }
  uint32_t key = stream.key();
  uint64_t position = stream.position();
  std::array<void*, 5> arguments = {&key, &position, &count, &isShort, &to};
  const int64_t fromBlock = count + static_cast<int64_t>(position % kDrawsOfPhilox);
  return device_.launch(function, blocksFor(fromBlock, kDrawsOfPhilox * kThreads), kThreads,
                        arguments.data());
}

Failure DeviceDraws::drawOnHost(const RandomStream& stream, ScalarType type, DevicePointer to,
                                int64_t count) {
  RandomStream own = stream;
  std::vector<int64_t> draws(static_cast<size_t>(count));
  own.draw(draws);
  if (type != ScalarType::Int32) return device_.upload(to, draws.data(), draws.size() * sizeof(int64_t));
  const std::vector<int32_t> shorter(draws.begin(), draws.end());
  return device_.upload(to, shorter.data(), shorter.size() * sizeof(int32_t));
}

void DeviceDraws::unload() {
  if (jumps_) device_.deallocate(jumps_);
  jumps_ = nullptr;
  for (auto& module : modules_) module.reset();
}

}  // namespace kelpie::runtime::cuda
