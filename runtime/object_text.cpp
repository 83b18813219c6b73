#include "runtime/object_text.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "ir/literal.h"

namespace kelpie {

namespace {

void writeColumn(const Column& column, std::string& out) {
  auto append = std::back_inserter(out);
  if (column.type.isSequence()) {
    const SharedArray<int64_t>& offsets = column.offsets;
    out += "[";
    for (size_t k = 0; k + 1 < offsets.size(); ++k)
      fmt::format_to(append, " {}", offsets[k + 1] - offsets[k]);
    out += " ]\n";
    for (const Column& element : column.elements) writeColumn(element, out);
    return;
  }
  const int64_t n = column.length();
  if (column.type.scalar() == ScalarType::Char) {
    fmt::format_to(append, "( {} )\n", n);
    if (n > 0) out.append(reinterpret_cast<const char*>(column.bytes.data()), static_cast<size_t>(n));
    return;
  }
  out += "(";
  for (int64_t k = 0; k < n; ++k) {
    const Scalar v = column.at(k);
    if (v.type == ScalarType::Bool) {
      out += v.isTrue() ? " T" : " F";
    } else if (isFloat(v.type) && std::isnan(v.f)) {
      out += " nan";  // whose sign depends on the target
    } else if (isFloat(v.type)) {
      fmt::format_to(append, " {:.14e}", v.f);
    } else {
      fmt::format_to(append, " {}", v.i);
    }
  }
  out += " )\n";
}

/// Reads the tokens of one bracketed list; every failure is thrown as its message and caught by the callers.
class Reader {
 public:
  struct Failure {
    std::string message;
  };

  explicit Reader(std::FILE* file) : file_(file) {}

  void open(char bracket) {
    if (!readToken() || token_.size() != 1 || token_[0] != bracket) fail(std::string("'") + bracket + "'");
  }
  /// The next token before `close`; null at `close` itself.
  const std::string* next(char close) {
    if (!readToken()) fail(std::string("'") + close + "' before the end of the file");
    return token_.size() == 1 && token_[0] == close ? nullptr : &token_;
  }

  Scalar number(const std::string& token, ScalarType type) {
    if (type == ScalarType::Bool) {
      if (token != "T" && token != "F") fail("T or F");
      return Scalar::ofBool(token == "T");
    }
    if (isFloat(type)) {
      char* end = nullptr;
      const Scalar value = readFloat(type, token.c_str(), &end);
      if (end != token.c_str() + token.size()) fail("a number");
      return value;
    }
    int64_t value = 0;
    const char* begin = token.c_str() + (token[0] == '+' ? 1 : 0);
    const auto [end, error] = std::from_chars(begin, token.c_str() + token.size(), value);
    if (error == std::errc::invalid_argument || *end != '\0') fail("an integer");
    if (error != std::errc() || Scalar::ofInt(type, value).i != value) fail("an integer in range");
    return Scalar::ofInt(type, value);
  }

  Column column(const CoreType& type, int64_t n) {
    if (type.isSequence()) {
      std::vector<int64_t> offsets = {0};
      open('[');
      while (const std::string* token = next(']')) {
        const int64_t length = number(*token, ScalarType::Int64).i;
        if (length < 0 || length > std::numeric_limits<int64_t>::max() - offsets.back()) fail("a length");
        offsets.push_back(offsets.back() + length);
      }
      expectCount(static_cast<int64_t>(offsets.size()) - 1, n);
      Columns elements;
      for (const CoreType& element : type.elements()) elements.push_back(column(element, offsets.back()));
      return sequenceColumn(type.elements(), std::move(offsets), std::move(elements));
    }
    if (type.scalar() == ScalarType::Char) return characters(n);
    std::vector<Scalar> values;
    open('(');
    while (const std::string* token = next(')')) values.push_back(number(*token, type.scalar()));
    expectCount(static_cast<int64_t>(values.size()), n);
    return scalarColumn(type.scalar(), values);
  }

 private:
  [[noreturn]] void fail(const std::string& expected) {
    throw Failure{"expected " + expected + (token_.empty() ? "" : ", found '" + token_ + "'")};
  }
  void expectCount(int64_t found, int64_t expected) {
    token_.clear();
    if (found != expected) fail(fmt::format("{} values, found {}", expected, found));
  }

  Column characters(int64_t n) {
    open('(');
    const std::string* token = next(')');
    if (!token) fail("the number of characters");
    expectCount(number(*token, ScalarType::Int64).i, n);
    if (next(')')) fail("')'");
    if (const int c = std::getc(file_); c != '\n' && c != EOF) std::ungetc(c, file_);
    std::vector<std::byte> bytes;
    for (int64_t k = 0; k < n; ++k) {
      const int c = std::getc(file_);
      if (c == EOF) fail("more characters");
      bytes.push_back(static_cast<std::byte>(c));
    }
    return scalarColumn(ScalarType::Char, std::move(bytes));
  }

  static bool isBracket(int c) { return c == '(' || c == ')' || c == '[' || c == ']'; }

  /// Brackets are tokens of their own; everything else ends at white space or a bracket.
  bool readToken() {
    token_.clear();
    int c = std::getc(file_);
    while (c != EOF && std::isspace(c)) c = std::getc(file_);
    if (c == EOF) return false;
    token_ += static_cast<char>(c);
    if (isBracket(c)) return true;
    for (c = std::getc(file_); c != EOF && !std::isspace(c) && !isBracket(c); c = std::getc(file_)) {
      token_ += static_cast<char>(c);
    }
    if (c != EOF) std::ungetc(c, file_);
    return true;
  }

  std::FILE* file_;
  std::string token_;
};

}  // namespace

std::string objectText(const Columns& row) {
  std::string out;
  for (const Column& column : row) writeColumn(column, out);
  return out;
}

std::variant<Columns, std::string> readObject(std::FILE* file, const Row& row) {
  try {
    Reader reader(file);
    Columns columns;
    for (const CoreType& type : row) columns.push_back(reader.column(type, 1));
    return columns;
  } catch (Reader::Failure& failure) {
    return std::move(failure.message);
  }
}

std::variant<Column, std::string> readNumbers(std::FILE* file, ScalarType element) {
  try {
    Reader reader(file);
    std::vector<Scalar> values;
    reader.open('(');
    while (const std::string* token = reader.next(')')) values.push_back(reader.number(*token, element));
    return scalarColumn(element, values);
  } catch (Reader::Failure& failure) {
    return std::move(failure.message);
  }
}

}  // namespace kelpie
