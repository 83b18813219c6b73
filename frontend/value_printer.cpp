#include "frontend/value_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "ir/diagnostic.h"

namespace kelpie {

namespace {

constexpr size_t kPiece = size_t{1} << 16;

class Printer {
 public:
  Printer(int64_t printLength, const std::function<void(std::string_view)>& sink)
      : printLength_(printLength), sink_(sink) {}

  /// The value number `index` of the columns that start at `first`.
  void print(const ValueType& type, const Column* first, int64_t index) {
    switch (type.kind) {
      case ValueType::Kind::Scalar:
        scalar(first->at(index));
        break;
      case ValueType::Kind::Pair:
        text_ += '(';
        components(type, first, index);
        text_ += ')';
        break;
      case ValueType::Kind::Record:
        text_ += type.name;
        text_ += '(';
        components(*type.parts[0], first, index);
        text_ += ')';
        break;
      case ValueType::Kind::Sequence:
        sequence(*type.parts[0], *first, index);
        break;
      case ValueType::Kind::Function:
        text_ += "fn";
        break;
    }
    if (text_.size() >= kPiece) flush();
  }

  void flush() {
    sink_(text_);
    text_.clear();
  }

 private:
  /// The inside of a tuple: right-nested pairs are written flat.
  void components(const ValueType& type, const Column* first, int64_t index) {
    const ValueType* rest = &type;
    while (rest->kind == ValueType::Kind::Pair) {
      print(*rest->parts[0], first, index);
      text_ += ", ";
      first += rest->parts[0]->components;
      rest = rest->parts[1].get();
    }
    print(*rest, first, index);
  }

  void sequence(const ValueType& element, const Column& column, int64_t index) {
    const auto begin = column.offsets[static_cast<size_t>(index)];
    const auto end = column.offsets[static_cast<size_t>(index) + 1];
    if (element.kind == ValueType::Kind::Scalar && element.scalar == ScalarType::Char) {
      string(column.elements[0], begin, end);
      return;
    }
    text_ += '[';
    const int64_t shown = std::min(end - begin, std::max<int64_t>(printLength_, 0));
    for (int64_t k = 0; k < shown; ++k) {
      if (k > 0) text_ += ", ";
      print(element, column.elements.data(), begin + k);
    }
    if (shown < end - begin) text_ += shown > 0 ? ",..." : "...";
    text_ += ']';
  }

  void string(const Column& characters, int64_t begin, int64_t end) {
    const char* data = reinterpret_cast<const char*>(characters.bytes.upTo(static_cast<size_t>(end)));
    text_ += '"';
    for (int64_t k = begin; k < end; ++k) {
      if (data[k] == '"' || data[k] == '\\') text_ += '\\';
      text_ += data[k];
      if (text_.size() >= kPiece) flush();
    }
    text_ += '"';
  }

  void scalar(const Scalar& value) {
    switch (value.type) {
      case ScalarType::Bool:
        text_ += value.isTrue() ? 'T' : 'F';
        break;
      case ScalarType::Char:
        text_ += '`';
        text_ += static_cast<char>(value.i);
        break;
      case ScalarType::Float32:
      case ScalarType::Float64:
        text_ += printFloat(value);
        break;
      default:
        fmt::format_to(std::back_inserter(text_), "{}", value.i);
    }
  }

  int64_t printLength_;
  const std::function<void(std::string_view)>& sink_;
  std::string text_;
};

/// The fewest digits that read back as the same number.
std::string shortestScientific(float x) {
  std::array<char, 32> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, std::chars_format::scientific).ptr;
  return {buffer.data(), end};
}

}  // namespace

void printValue(const ValueType& type, const Columns& row, int64_t printLength,
                const std::function<void(std::string_view)>& sink) {
  if (row.size() != type.components) throw InternalError("a value does not fit the type it is printed with");
  Printer printer(printLength, sink);
  printer.print(type, row.data(), 0);
  printer.flush();
}

std::string printValue(const ValueType& type, const Columns& row, int64_t printLength) {
  std::string text;
  printValue(type, row, printLength, [&text](std::string_view piece) { text += piece; });
  return text;
}

std::string printFloat(const Scalar& value) {
  const double x = value.f;
  if (std::isnan(x)) return "NAN";
  if (std::isinf(x)) return x > 0 ? "INF" : "-INF";
  if (x == 0) return "0.0";
  // d.ddde+xx, then the parts apart
  const std::string scientific = value.type == ScalarType::Float32
                                     ? shortestScientific(static_cast<float>(std::fabs(x)))
                                     : fmt::format("{:.14e}", std::fabs(x));
  const size_t mark = scientific.find('e');
  int exponent = 0;
  const char* exponentText = scientific.c_str() + mark + (scientific[mark + 1] == '+' ? 2 : 1);
  std::from_chars(exponentText, scientific.c_str() + scientific.size(), exponent);
  std::string digits = scientific.substr(0, 1) + (mark > 1 ? scientific.substr(2, mark - 2) : "");
  digits.erase(std::max<size_t>(digits.find_last_not_of('0') + 1, 1));

  std::string text = x < 0 ? "-" : "";
  if (exponent < -3 || exponent >= 7) {
    const std::string decimals = digits.size() > 1 ? digits.substr(1) : "0";
    return text + digits[0] + "." + decimals + "E" + std::to_string(exponent);
  }
  if (exponent < 0) return text + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return text + digits + std::string(whole - digits.size(), '0') + ".0";
  return text + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace kelpie
