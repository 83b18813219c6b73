#include "runtime/cuda/host_reader.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace kelpie::runtime::cuda {

namespace {

constexpr size_t kMostWords = 32;
constexpr size_t kWordBytes = 8;
constexpr size_t kPieceBytes = 128, kMostPieces = 2048;

// Mirror of codegen/cuda/host_words.cuh.
struct HostWords {
  const void* from[kMostWords];
  const void* position[kMostWords];
  int64_t most[kMostWords];
  uint8_t bytes[kMostWords];
  uint64_t* to;
  uint64_t number;
};

/// False: they are too many.
bool divide(std::span<const HostRead> reads, HostWords& words) {
  size_t next = 0;
  for (const HostRead& r : reads) {
    for (size_t at = 0; at < r.bytes; at += kWordBytes) {
      if (next == kMostWords) return false;
      words.from[next] = static_cast<const std::byte*>(r.from) + at;
      words.position[next] = r.position;
      words.most[next] = r.most;
      words.bytes[next++] = static_cast<uint8_t>(std::min(kWordBytes, r.bytes - at));
    }
  }
  return true;
}

}  // namespace

std::string HostReader::source() { return "#include \"host_words.cuh\"\n"; }

Function HostReader::function(const std::string& entry) {
  if (!load()) return nullptr;
  const auto [known, isNew] = functions_.try_emplace(entry);
  if (isNew) known->second = module_->function(entry);
  return known->second;
}

bool HostReader::load() {
  if (tried_) return module_ != nullptr;
  if (!isReady()) return false;
  tried_ = true;
  memory_ = static_cast<uint64_t*>(device_.sharedMemory((kMostWords + 1) * sizeof(uint64_t)));
  if (!memory_ ||
      device_.compile(source(), {"kelpie_host_words", "kelpie_foretold", "kelpie_host_pieces"}, module_))
    return false;
  memory_[kMostWords] = 0;
  function_ = module_->function("kelpie_host_words");
  return true;
}

Failure HostReader::read(std::span<const HostRead> reads) {
  const auto isPiece = [](const HostRead& r) { return r.bytes == kPieceBytes && !r.position; };
  const auto pieces = static_cast<size_t>(std::count_if(reads.begin(), reads.end(), isPiece));
  if (pieces <= kMostWords * kWordBytes / kPieceBytes || pieces > kMostPieces || !loadPieces())
    return readWords(reads);
  std::vector<HostRead> others;
  auto* from = static_cast<const void**>(pieces_);
  std::byte* const to = static_cast<std::byte*>(pieces_) + kMostPieces * sizeof(void*);
  for (const HostRead& r : reads) {
    if (isPiece(r)) {
      *from++ = r.from;
    } else {
      others.push_back(r);
    }
  }
  void *list = pieces_, *place = to;
  auto count = static_cast<int64_t>(pieces);
  void* arguments[] = {&list, &place, &count};
  constexpr size_t kOfBlock = 16;
  if (auto failure = device_.launch(module_->function("kelpie_host_pieces"),
                                    static_cast<int64_t>((pieces + kOfBlock - 1) / kOfBlock), 256, arguments))
    return failure;
  if (auto failure = readWords(others)) return failure;  // and waits for the pieces
  const std::byte* next = to;
  for (const HostRead& r : reads) {
    if (!isPiece(r)) continue;
    std::memcpy(r.to, next, kPieceBytes);
    next += kPieceBytes;
  }
  return std::nullopt;
}

bool HostReader::loadPieces() {
  if (!pieces_ && load()) pieces_ = device_.sharedMemory(kMostPieces * (sizeof(void*) + kPieceBytes));
  return pieces_ != nullptr && load();
}

Failure HostReader::readWords(std::span<const HostRead> reads) {
  HostWords words{};
  if (!divide(reads, words) || !load()) return device_.read(reads);
  words.to = memory_;
  words.number = ++number_;
  void* arguments[] = {&words};
  if (auto failure = device_.launch(function_, 1, kMostWords, arguments)) return failure;
  if (auto failure = device_.await(memory_ + kMostWords, number_)) return failure;
  const uint64_t* next = memory_;
  for (const HostRead& r : reads) {
    std::memcpy(r.to, next, r.bytes);
    next += (r.bytes + kWordBytes - 1) / kWordBytes;
  }
  return std::nullopt;
}

}  // namespace kelpie::runtime::cuda
