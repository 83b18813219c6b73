#include "ir/literal.h"

#include <fmt/core.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace kelpie {
namespace {

constexpr uint64_t kUsualNan = 0x7ff8000000000000;

template <typename F>
std::string floatText(F value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);  // shortest text that reads back
  std::string text(buffer, end.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

bool consumeSuffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

template <typename T>
std::optional<T> number(std::string_view text, auto... format) {
  T value;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, format...);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Scalar> floatFromText(std::string_view text, ScalarType type) {
  if (text == "nan") return Scalar::ofFloat(type, std::bit_cast<double>(kUsualNan));
  if (text.starts_with("nan(0x") && text.ends_with(")")) {
    const auto bits = number<uint64_t>(text.substr(6, text.size() - 7), 16);
    if (!bits || !std::isnan(std::bit_cast<double>(*bits))) return std::nullopt;
    return Scalar::ofFloat(type, std::bit_cast<double>(*bits));
  }
  if (text == "inf" || text == "-inf") {
    const double infinity = std::numeric_limits<double>::infinity();
    return Scalar::ofFloat(type, text == "inf" ? infinity : -infinity);
  }
  if (text.find_first_not_of("0123456789.e+-") != std::string_view::npos)
    return std::nullopt;  // infinity, nan(x), ...
  // A float32 is read in its own precision: by way of double it would be rounded twice.
  if (type == ScalarType::Float32) {
    const auto value = number<float>(text);
    return value ? std::optional(Scalar::ofFloat(type, static_cast<double>(*value))) : std::nullopt;
  }
  const auto value = number<double>(text);
  return value ? std::optional(Scalar::ofFloat(type, *value)) : std::nullopt;
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

Scalar readFloat(ScalarType type, const char* text, char** end) {
  const bool narrow = type == ScalarType::Float32;
  return Scalar::ofFloat(type, narrow ? double{std::strtof(text, end)} : std::strtod(text, end));
}

std::string literalText(const Scalar& value) {
  switch (value.type) {
    case ScalarType::Bool:
      return value.isTrue() ? "true" : "false";
    case ScalarType::Char:
      return quotedText(std::string(1, static_cast<char>(value.i)), '\'');
    case ScalarType::Int32:
      return fmt::format("{}i32", value.i);
    case ScalarType::Int64:
      return fmt::format("{}", value.i);
    default:
      break;
  }
  const bool single = value.type == ScalarType::Float32;
  std::string text;
  if (!std::isnan(value.f))
    text = single ? floatText(static_cast<float>(value.f)) : floatText(value.f);
  else if (std::bit_cast<uint64_t>(value.f) == kUsualNan)
    text = "nan";
  else
    text = fmt::format("nan({:#x})", std::bit_cast<uint64_t>(value.f));
  return single ? text + "f32" : text;
}

std::optional<Scalar> literalFromText(std::string_view text) {
  if (text == "true" || text == "false") return Scalar::ofBool(text == "true");
  if (text.starts_with('\'')) {
    const auto bytes = unquotedText(text);
    if (!bytes || bytes->size() != 1) return std::nullopt;
    return Scalar::ofChar(static_cast<unsigned char>((*bytes)[0]));
  }
  if (consumeSuffix(text, "f32")) return floatFromText(text, ScalarType::Float32);
  if (consumeSuffix(text, "i32")) {
    const auto value = number<int32_t>(text);
    return value ? std::optional(Scalar::ofInt(ScalarType::Int32, *value)) : std::nullopt;
  }
  if (const auto value = number<int64_t>(text)) return Scalar::ofInt(ScalarType::Int64, *value);
  if (text.find_first_of(".en") == std::string_view::npos) return std::nullopt;  // an integer out of range
  return floatFromText(text, ScalarType::Float64);
}

std::string quotedText(std::string_view bytes, char quote) {
  std::string text(1, quote);
  for (const char c : bytes) {
    if (c == quote || c == '\\')
      text += {'\\', c};
    else if (c == '\n')
      text += "\\n";
    else if (c == '\t')
      text += "\\t";
    else if (c >= ' ' && c <= '~')
      text += c;
    else
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text + quote;
}

std::optional<std::string> unquotedText(std::string_view text) {
  if (text.size() < 2 || text.front() != text.back()) return std::nullopt;
  const char quote = text.front();
  text = text.substr(1, text.size() - 2);
  std::string bytes;
  for (size_t k = 0; k < text.size(); ++k) {
    if (text[k] == quote) return std::nullopt;
    if (text[k] != '\\') {
      bytes += text[k];
      continue;
    }
    if (++k == text.size()) return std::nullopt;
    switch (text[k]) {
      case 'n':
        bytes += '\n';
        break;
      case 't':
        bytes += '\t';
        break;
      case 'x':
        if (k + 2 >= text.size() || hexDigit(text[k + 1]) < 0 || hexDigit(text[k + 2]) < 0)
          return std::nullopt;
        bytes += static_cast<char>(hexDigit(text[k + 1]) * 16 + hexDigit(text[k + 2]));
        k += 2;
        break;
      default:
        if (text[k] != '\\' && text[k] != '\'' && text[k] != '"') return std::nullopt;
        bytes += text[k];
    }
  }
  return bytes;
}

}  // namespace kelpie
