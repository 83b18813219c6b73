// Reads a few words of the device's memory, or many pieces of it, in one wait.
//
// A kernel writes them into memory of the host, followed by a number that the host looks for. Copies by the
// driver would take twice as long (docs/launch-costs.md), and these waits are what programs whose control
// flow follows their data spend much of their time on.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "runtime/cuda/device.h"

namespace kelpie::runtime::cuda {

class HostReader {
 public:
  explicit HostReader(Device& device) : device_(device) {}
  HostReader(const HostReader&) = delete;
  HostReader& operator=(const HostReader&) = delete;

  /// The source of its kernels, to be announced. Without a compiler, the driver copies.
  static std::string source();
  bool loaded() const { return module_ != nullptr; }
  /// Whether its code is there, or it is known that there is none.
  bool isReady() { return tried_ || device_.isReady(source()); }
  /// Another kernel of that source; null: there is none, or none yet.
  Function function(const std::string& entry);
  /// Waits for all work before. Words, or up to 2,048 pieces of 128 bytes and words beside them; more are
  /// copied by the driver.
  Failure read(std::span<const HostRead> reads);
  void unload() {
    module_.reset();
    functions_.clear();
  }

 private:
  /// Without code that is ready, the driver copies.
  bool load();
  bool loadPieces();
  Failure readWords(std::span<const HostRead> reads);

  Device& device_;
  std::unique_ptr<Module> module_;
  Function function_ = nullptr;
  std::map<std::string, Function> functions_;  ///< that were asked for: the driver takes some time each
  uint64_t* memory_ = nullptr;                 ///< of the host, shared
  void* pieces_ = nullptr;                     ///< likewise: where pieces come from, and they
  uint64_t number_ = 0;                        ///< of the latest read
  bool tried_ = false;
};

}  // namespace kelpie::runtime::cuda
