// Where the device notes how conditions came out that the host foretold (Target::foretell).
//
// A kernel compares and writes the outcome into memory of the host; of a condition that came out otherwise it
// also writes the error word, so that kernels after it do nothing.
#pragma once

#include <array>

#include "runtime/cuda/device.h"
#include "runtime/cuda/host_reader.h"

namespace kelpie::runtime::cuda {

class OutcomeBoard {
 public:
  /// `reader` has the kernel.
  OutcomeBoard(Device& device, HostReader& reader) : device_(device), reader_(reader) {}

  /// Without a compiler, or memory of the host that the device can write, it cannot be used.
  bool usable();
  /// `launch`: a number for the error word `error`; `launches` is kept with the condition.
  Failure foretell(DevicePointer condition, bool expected, DevicePointer error, uint64_t launch,
                   uint64_t launches, uint64_t& number);
  Failure outcomeOf(uint64_t number, bool wait, Outcome& outcome);
  uint64_t launchesBefore(uint64_t number) const { return launches_[number % kPlaces]; }

 private:
  static constexpr size_t kPlaces = Target::kMostForetold;

  Device& device_;
  HostReader& reader_;
  bool tried_ = false;
  Function function_ = nullptr;
  uint64_t* memory_ = nullptr;  ///< of the host, shared: one word for each place
  uint64_t number_ = 0;         ///< of the latest condition
  std::array<uint64_t, kPlaces> launches_{};
};

}  // namespace kelpie::runtime::cuda
