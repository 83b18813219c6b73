#include "runtime/cuda/kernel_resources.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace kelpie::runtime::cuda {

namespace {

constexpr int kMostFrameBytes = 64, kMostFlatFrameBytes = 191;  ///< that are let be
constexpr int kRegisters = 65536, kRegisterBytes = 4;

// ELF, 64 bits, little-endian: offsets in its header and in the headers of sections.
constexpr size_t kSectionsAt = 0x28, kSectionSizeAt = 0x3a, kSectionCountAt = 0x3c, kNamesAt = 0x3e;
constexpr size_t kOffsetAt = 0x18, kBytesAt = 0x20;
// Section .nv.info: entries of a form, an attribute and 16 bits, of form kSized followed by so many bytes:
// the number of a symbol and a value.
constexpr uint8_t kSized = 4, kFrameSize = 0x11, kRegisterCount = 0x2f;

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
    if (file.textAt(names + file.at<uint32_t>(header(k))) != ".nv.info") continue;
    const auto begin = file.at<uint64_t>(header(k) + kOffsetAt);
    const auto end = std::min<uint64_t>(begin + file.at<uint64_t>(header(k) + kBytesAt), file.size());
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

int blocksToGiveUp(const std::string& source, const KernelResources& resources) {
  const size_t bounds = source.find("__launch_bounds__(");
  if (bounds == std::string::npos) return 0;
  int threads = 0, blocks = 0;
  const auto isOpen = [&](const char* form) {
    int parsed = 0;
    return std::sscanf(source.c_str() + bounds, form, &threads, &blocks, &parsed) == 2 && parsed > 0;
  };
  const bool segmented = isOpen("__launch_bounds__(%d, %d - KELPIE_BLOCKS_LESS)%n");
  if (!segmented && !isOpen("__launch_bounds__(%d, %d - KELPIE_FLAT_BLOCKS_LESS)%n")) return 0;
  if (resources.frameBytes <= (segmented ? kMostFrameBytes : kMostFlatFrameBytes)) return 0;
  const int needed = resources.registers + resources.frameBytes / kRegisterBytes;
  const int fit = kRegisters / (threads * needed);
  return std::clamp(blocks - fit, 0, blocks / 2);
}

int blocksToTry(const std::string& source, const KernelResources& resources) {
  constexpr int kFewBlocks = 3, kRegistersTogether = 8;
  const size_t bounds = source.find("__launch_bounds__(");
  if (bounds == std::string::npos) return 0;
  int threads = 0, parsed = 0;
  std::sscanf(source.c_str() + bounds, "__launch_bounds__(%d KELPIE_MIN_BLOCKS)%n", &threads, &parsed);
  if (parsed == 0) return 0;
  const int each = (resources.registers + kRegistersTogether - 1) / kRegistersTogether * kRegistersTogether;
  const int fit = kRegisters / (threads * each);
  return fit <= kFewBlocks ? fit + 1 : 0;
}

bool isBetterWithMore(const KernelResources& asLiked, const KernelResources& withMoreBlocks) {
  constexpr int kFrameBytes = 16;
  return withMoreBlocks.frameBytes <= asLiked.frameBytes + kFrameBytes;
}

}  // namespace kelpie::runtime::cuda
