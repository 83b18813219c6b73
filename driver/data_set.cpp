#include "driver/data_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace kelpie::driver {

namespace {

/// An expression of a random value in two parts: the bounds of all its draws, which has the shape of the
/// value, and the draws, which go over the bounds. An expression without the bounds' variables would be the
/// same for all elements of a sequence (language: invariants are evaluated once).
struct RandomValue {
  std::string bounds;
  std::string pattern;  ///< of the variables that stand for the bounds
  std::string draws;
};

class RandomTypes {
 public:
  explicit RandomTypes(std::string_view text) : text_(text) {}

  std::variant<DataSet, DataProblem> read() {
    try {
      const RandomValue value = tuple();
      skipSpaces();
      if (at_ < text_.size()) throw DataProblem{"a type ends before it"};
      return DataSet{"--data", fmt::format("let {} = {} in {}", value.pattern, value.bounds, value.draws)};
    } catch (const DataProblem& problem) {
      const std::string place =
          at_ < text_.size() ? fmt::format("at `{}`", text_.substr(at_)) : std::string("at its end");
      return DataProblem{fmt::format("`random{}`: {}: {}", text_, place, problem.text)};
    }
  }

 private:
  RandomValue tuple() {
    RandomValue result = type();
    bool several = false;
    for (skipSpaces(); take(","); skipSpaces()) {
      const RandomValue next = type();
      result.bounds += ", " + next.bounds;
      result.pattern += ", " + next.pattern;
      result.draws += ", " + next.draws;
      several = true;
    }
    if (!several) return result;
    return {"(" + result.bounds + ")", "(" + result.pattern + ")", "(" + result.draws + ")"};
  }

  RandomValue type() {
    skipSpaces();
    if (take("(")) {
      RandomValue value = tuple();
      expect(")");
      return value;
    }
    if (take("[")) return sequence();
    const std::string variable = fmt::format("v{}", ++variables_);
    const std::string draw = fmt::format("rand({})", variable);
    if (take("int")) {
      const Range range = this->range(1 << 30);
      if (range.low != std::floor(range.low) || range.high != std::floor(range.high))
        throw DataProblem{"bounds of ints are whole numbers"};
      return {fmt::format("{:.0f}", range.high - range.low), variable, moved(draw, range.low, "{:.0f}")};
    }
    if (take("float")) {
      const Range range = this->range(1);
      return {fmt::format("{:#}", range.high - range.low), variable, moved(draw, range.low, "{:#}")};
    }
    if (take("bool")) return {"2", variable, fmt::format("({} == 1)", draw)};
    if (take("char")) return {"26", variable, fmt::format("code_char({} + 97)", draw)};
    throw DataProblem{
        "a type is [N]TYPE, [~N]TYPE, (TYPE, ...), int, int:BOUND, int:LOWEST:BOUND, float, bool or char"};
  }

  RandomValue sequence() {
    const bool varies = take("~");
    const double length = number();
    if (length != std::floor(length)) throw DataProblem{"a length is a whole number"};
    expect("]");
    const RandomValue element = type();
    const std::string variable = fmt::format("v{}", ++variables_);
    const auto draws = [&](const std::string& over) {
      return fmt::format("{{{} : {} in {}}}", element.draws, element.pattern, over);
    };
    if (!varies) return {fmt::format("dist({}, {:.0f})", element.bounds, length), variable, draws(variable)};
    return {fmt::format("{:.0f}", 2 * length + 1), variable,
            draws(fmt::format("dist({}, rand({}))", element.bounds, variable))};
  }

  struct Range {
    double low, high;
  };
  Range range(double otherwise) {
    if (!take(":")) return {0, otherwise};
    const double first = signedNumber();
    if (!take(":")) {
      if (first <= 0) throw DataProblem{"a bound is more than 0"};
      return {0, first};
    }
    const double second = signedNumber();
    if (second <= first) throw DataProblem{"a bound is more than the lowest number"};
    return {first, second};
  }
  static std::string moved(const std::string& draw, double by, const char* format) {
    if (by == 0) return draw;
    return fmt::format("({} {} {})", draw, by < 0 ? '-' : '+',
                       fmt::format(fmt::runtime(format), std::abs(by)));
  }

  double signedNumber() {
    skipSpaces();
    return take("-") ? -number() : number();
  }
  /// "1000000", "1e6", "2^20", "0.5"
  double number() {
    skipSpaces();
    const double value = plainNumber();
    if (!take("^")) return value;
    const double power = std::pow(value, plainNumber());
    if (power > kGreatest) throw DataProblem{"the number is too large"};
    return power;
  }
  double plainNumber() {
    size_t end = at_;
    while (end < text_.size() &&
           (std::isdigit(static_cast<unsigned char>(text_[end])) || text_[end] == '.' || text_[end] == 'e'))
      ++end;
    const std::string digits(text_.substr(at_, end - at_));
    char* rest = nullptr;
    const double value = std::strtod(digits.c_str(), &rest);
    if (digits.empty() || *rest != 0) throw DataProblem{"a number is expected"};
    if (value > kGreatest) throw DataProblem{"the number is too large"};
    at_ = end;
    return value;
  }

  void skipSpaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view sign) {
    skipSpaces();
    if (!take(sign)) throw DataProblem{fmt::format("`{}` is expected", sign)};
  }

  static constexpr double kGreatest = 1e15;

  std::string_view text_;
  size_t at_ = 0;
  int variables_ = 0;
};

/// Whether a text is a path rather than a value of NESL.
bool namesFile(const std::string& text) {
  constexpr std::string_view kOther = "_-./~";
  const auto isLetter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  if (!std::all_of(text.begin(), text.end(), [&](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || kOther.find(c) != std::string_view::npos;
      }))
    return false;
  const size_t dot = text.rfind('.');
  return text.starts_with("/") || text.starts_with("~/") || text.starts_with("./") ||
         text.starts_with("../") ||
         (dot != std::string::npos && dot + 1 < text.size() && isLetter(text[dot + 1]));
}

}  // namespace

std::variant<DataSet, DataProblem> readDataSet(const std::string& text) {
  std::error_code none;
  if (std::filesystem::is_regular_file(text, none)) {
    std::ostringstream content;
    content << std::ifstream(text, std::ios::binary).rdbuf();
    return DataSet{text, content.str()};
  }
  if (std::filesystem::is_directory(text, none)) return DataProblem{text + " is a directory"};
  if (namesFile(text)) return DataProblem{fmt::format("there is no file {}", text)};
  const std::string_view random = "random ";
  if (text.starts_with(random)) return RandomTypes(std::string_view(text).substr(random.size() - 1)).read();
  return DataSet{"--data", text};
}

}  // namespace kelpie::driver
