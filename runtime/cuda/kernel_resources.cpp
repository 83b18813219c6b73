#include "runtime/cuda/kernel_resources.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

namespace kelpie::runtime::cuda {

namespace {

constexpr int kMostFrameBytes = 64, kMostFlatFrameBytes = 191;  ///< that are let be
constexpr int kMostFrameAccesses = 15;                          ///< to frames that are
constexpr int kRegisters = 65536, kRegisterBytes = 4;

// ELF, 64 bits, little-endian: offsets in its header and in the headers of sections.
constexpr size_t kSectionsAt = 0x28, kSectionSizeAt = 0x3a, kSectionCountAt = 0x3c, kNamesAt = 0x3e;
constexpr size_t kOffsetAt = 0x18, kBytesAt = 0x20;
// Section .nv.info: entries of a form, an attribute and 16 bits, of form kSized followed by so many bytes:
// the number of a symbol and a value.
constexpr uint8_t kSized = 4, kFrameSize = 0x11, kRegisterCount = 0x2f;
// Sections .text.NAME: instructions of 16 bytes, whose lowest 12 bits tell what they do, from compute
// capability 7.0 on.
constexpr size_t kInstructionBytes = 16;
constexpr uint32_t kOperation = 0xfff, kLoadFromFrame = 0x983, kStoreToFrame = 0x387;

class File {
 public:
  explicit File(const std::vector<char>& bytes) : bytes_(bytes) {}
  /// 0 outside of the file.
  template <class T>
  T at(size_t place) const {
    T value = 0;
    if (place <= bytes_.size() && sizeof(T) <= bytes_.size() - place)
      std::memcpy(&value, bytes_.data() + place, sizeof(T));
    return value;
  }
  std::string textAt(size_t place) const {
    if (place >= bytes_.size()) return "";
    return std::string(bytes_.data() + place, strnlen(bytes_.data() + place, bytes_.size() - place));
  }
  size_t size() const { return bytes_.size(); }

 private:
  const std::vector<char>& bytes_;
};

}  // namespace

std::optional<KernelResources> resourcesOf(const std::vector<char>& code) {
  const File file(code);
  if (file.textAt(0).rfind("\x7f"
                           "ELF",
                           0) != 0)
    return std::nullopt;
  const auto sections = file.at<uint64_t>(kSectionsAt);
  const auto headerBytes = file.at<uint16_t>(kSectionSizeAt);
  const auto header = [&](size_t number) { return sections + number * headerBytes; };
  const auto names = file.at<uint64_t>(header(file.at<uint16_t>(kNamesAt)) + kOffsetAt);
  KernelResources result;
  for (size_t k = 0; k < file.at<uint16_t>(kSectionCountAt); ++k) {
    const std::string name = file.textAt(names + file.at<uint32_t>(header(k)));
    const auto begin = file.at<uint64_t>(header(k) + kOffsetAt);
    const auto end = std::min<uint64_t>(begin + file.at<uint64_t>(header(k) + kBytesAt), file.size());
    if (name.starts_with(".text.")) {
      for (uint64_t place = begin; place + kInstructionBytes <= end; place += kInstructionBytes) {
        const uint32_t operation = file.at<uint32_t>(place) & kOperation;
        result.frameAccesses += operation == kLoadFromFrame || operation == kStoreToFrame;
      }
    }
    if (name != ".nv.info") continue;
    for (uint64_t place = begin; place + 4 <= end;) {
      const auto form = file.at<uint8_t>(place), attribute = file.at<uint8_t>(place + 1);
      const auto value = file.at<int32_t>(place + 8);
      if (form == kSized && attribute == kFrameSize) result.frameBytes = std::max(result.frameBytes, value);
      if (form == kSized && attribute == kRegisterCount) result.registers = std::max(result.registers, value);
      place += 4 + (form == kSized ? file.at<uint16_t>(place + 2) : 0);
    }
  }
  if (result.registers == 0) return std::nullopt;
  return result;
}

namespace {

/// The bounds of a kernel as its source has them.
struct Bounds {
  int threads = 0, blocks = 0;
  enum class Open : uint8_t { No, ToFewer, ToFewerOrMore, ToFewerOfFlat, ToMoreOfFlat } open = Open::No;
};

Bounds boundsOf(const std::string& source) {
  Bounds bounds;
  const size_t at = source.find("__launch_bounds__(");
  if (at == std::string::npos) return bounds;
  const auto matches = [&](const char* form, Bounds::Open open) {
    int parsed = 0;
    std::sscanf(source.c_str() + at, form, &bounds.threads, &bounds.blocks, &parsed);
    if (parsed > 0) bounds.open = open;
    return parsed > 0;
  };
  int threads = 0, parsed = 0;
  std::sscanf(source.c_str() + at, "__launch_bounds__(%d KELPIE_MIN_BLOCKS)%n", &threads, &parsed);
  if (parsed > 0) return {threads, 1, Bounds::Open::ToMoreOfFlat};
  if (matches("__launch_bounds__(%d, %d - KELPIE_BLOCKS_LESS)%n", Bounds::Open::ToFewer) ||
      matches("__launch_bounds__(%d, %d - KELPIE_BLOCKS_LESS + KELPIE_BLOCKS_MORE)%n",
              Bounds::Open::ToFewerOrMore))
    return bounds;
  matches("__launch_bounds__(%d, %d - KELPIE_FLAT_BLOCKS_LESS)%n", Bounds::Open::ToFewerOfFlat);
  return bounds;
}

bool callsLongFunctions(const std::string& source) {
  static constexpr const char* kFunctions[] = {"k_exp(",  "k_ln(",   "k_sin(",  "k_cos(",
                                               "k_tan(",  "k_asin(", "k_acos(", "k_atan(",
                                               "k_sinh(", "k_cosh(", "k_tanh("};
  return std::any_of(std::begin(kFunctions), std::end(kFunctions),
                     [&](const char* function) { return source.find(function) != std::string::npos; });
}

/// Blocks of a multiprocessor that there is room for.
int blocksThatFit(int threads, int registers) {
  constexpr int kTogether = 8;
  return kRegisters / (threads * ((registers + kTogether - 1) / kTogether * kTogether));
}

}  // namespace

std::vector<OtherBlocks> blocksHopedFor(const std::string& source) {
  if (boundsOf(source).open != Bounds::Open::ToFewerOrMore) return {};
  constexpr int kMostRegisters = 255;
  return blocksToTry(source, {kMostRegisters, 0});
}

std::vector<OtherBlocks> blocksToTry(const std::string& source, const KernelResources& resources) {
  const auto [threads, blocks, open] = boundsOf(source);
  if (open == Bounds::Open::No) return {};
  const int fit = blocksThatFit(threads, resources.registers);
  if (open == Bounds::Open::ToMoreOfFlat) {
    // A queue of elements (codegen/cuda/lane_queue.cuh) has taken a few registers.
    const int fewBlocks = source.find("LaneQueue<") != std::string::npos ? 4 : 3;
    constexpr int kFrameBytes = 16;
    if (fit > fewBlocks) return {};
    return {{"KELPIE_MIN_BLOCKS=, " + std::to_string(fit + 1), resources.frameBytes + kFrameBytes}};
  }
  const bool flat = open == Bounds::Open::ToFewerOfFlat;
  if (resources.frameBytes > (flat ? kMostFlatFrameBytes : kMostFrameBytes)) {
    const int needed = resources.registers + resources.frameBytes / kRegisterBytes;
    const int less = std::clamp(blocks - kRegisters / (threads * needed), 0, blocks / 2);
    if (less == 0) return {};
    return {{"KELPIE_BLOCKS_LESS=" + std::to_string(less), resources.frameBytes - 1}};
  }
  // How many registers would do is not to be seen from a small frame: what is kept there changes all the
  // time.
  if (open == Bounds::Open::ToFewer && resources.frameAccesses > kMostFrameAccesses && blocks >= 3 &&
      callsLongFunctions(source))
    return {{"KELPIE_BLOCKS_LESS=" + std::to_string(blocks / 3), resources.frameBytes / 4}};
  std::vector<OtherBlocks> others;
  if (open != Bounds::Open::ToFewerOrMore) return others;
  constexpr int kAllThreads = 2048, kManyThreads = 1536;  // of a multiprocessor
  for (const auto& [atOnce, frameBytes] : {std::pair(kAllThreads, 8), std::pair(kManyThreads, 16)})
    if (fit * threads < atOnce)
      others.push_back({"KELPIE_BLOCKS_MORE=" + std::to_string(atOnce / threads - blocks),
                        resources.frameBytes + frameBytes});
  return others;
}

}  // namespace kelpie::runtime::cuda
