#include "runtime/sealed_file.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <sstream>

namespace kelpie::runtime {

namespace {

/// Remainders of bytes by the polynomial of `cksum`.
constexpr std::array<uint32_t, 256> kRemainders = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t rest = byte << 24;
    for (int bit = 0; bit < 8; ++bit) rest = rest << 1 ^ (rest >> 31) * 0x04c11db7u;
    table[byte] = rest;
  }
  return table;
}();

uint32_t withByte(uint32_t rest, uint8_t byte) { return rest << 8 ^ kRemainders[rest >> 24 ^ byte]; }

}  // namespace

std::string sealOf(std::string_view content) {
  uint32_t rest = 0;
  for (const char c : content) rest = withByte(rest, static_cast<uint8_t>(c));
  for (size_t size = content.size(); size != 0; size >>= 8) rest = withByte(rest, static_cast<uint8_t>(size));
  return fmt::format("{} {}\n", ~rest, content.size());
}

std::optional<std::string> readSealed(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || !text) return std::nullopt;
  std::string all = std::move(text).str();
  size_t size = all.size();
  std::from_chars(all.data() + all.rfind(' ') + 1, all.data() + all.size(), size);  // npos + 1 is 0
  if (size >= all.size() || all.compare(size, std::string::npos, sealOf({all.data(), size})) != 0)
    return std::nullopt;
  all.resize(size);
  return all;
}

}  // namespace kelpie::runtime
