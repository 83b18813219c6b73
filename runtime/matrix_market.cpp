#include "runtime/matrix_market.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

namespace kelpie {
namespace {

struct Header {
  bool pattern = false;
  bool symmetric = false;  ///< entries stand for both triangles
  bool negated = false;    ///< skew-symmetric
};

std::variant<Header, std::string> readHeader(const std::string& line) {
  std::istringstream words(line);
  std::string banner, object, format, field, symmetry;
  words >> banner >> object >> format >> field >> symmetry;
  for (std::string* word : {&object, &format, &field, &symmetry})
    std::transform(word->begin(), word->end(), word->begin(),
                   [](unsigned char c) { return std::tolower(c); });
  if (banner != "%%MatrixMarket" || object != "matrix") return std::string("not a Matrix Market file");
  if (format != "coordinate") return fmt::format("only coordinate matrices can be read, not \"{}\"", format);
  Header header;
  header.pattern = field == "pattern";
  if (!header.pattern && field != "real" && field != "integer")
    return fmt::format("entries of kind \"{}\"", field);
  header.negated = symmetry == "skew-symmetric";
  header.symmetric = header.negated || symmetry == "symmetric";
  if (!header.symmetric && symmetry != "general") return fmt::format("symmetry \"{}\"", symmetry);
  return header;
}

/// Numbers of a text in order; comment lines are skipped.
class Numbers {
 public:
  Numbers(const char* at, const char* end) : at_(at), end_(end) {}
  template <typename T>
  bool next(T& value) {
    while (at_ < end_ && (std::isspace(static_cast<unsigned char>(*at_)) || *at_ == '%' || *at_ == '+')) {
      if (*at_ == '%')
        at_ = std::find(at_, end_, '\n');
      else
        ++at_;
    }
    auto [end, problem] = std::from_chars(at_, end_, value);
    at_ = end;
    return problem == std::errc();
  }

 private:
  const char *at_, *end_;
};

template <typename T>
Column packed(ScalarType type, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(sizeOf(type)));
  for (size_t k = 0; k < values.size(); ++k) {
    std::byte* place = bytes.data() + k * static_cast<size_t>(sizeOf(type));
    auto store = [&](auto value) { std::memcpy(place, &value, sizeof value); };
    switch (type) {
      case ScalarType::Int32:
        store(static_cast<int32_t>(values[k]));
        break;
      case ScalarType::Int64:
        store(static_cast<int64_t>(values[k]));
        break;
      case ScalarType::Float32:
        store(static_cast<float>(values[k]));
        break;
      default:
        store(static_cast<double>(values[k]));
        break;
    }
  }
  return scalarColumn(type, std::move(bytes));
}

}  // namespace

std::variant<Columns, std::string> readMatrixMarket(const std::string& path, ScalarType intType,
                                                    ScalarType floatType) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fmt::format("{}: {}", path, std::strerror(errno));
  std::ostringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  const size_t firstLine = std::min(text.find('\n'), text.size());
  auto parsed = readHeader(text.substr(0, firstLine));
  if (auto* problem = std::get_if<std::string>(&parsed)) return fmt::format("{}: {}", path, *problem);
  const Header header = std::get<Header>(parsed);

  Numbers numbers(text.data() + firstLine, text.data() + text.size());
  int64_t rows = 0, columns = 0, entries = 0;
  if (!numbers.next(rows) || !numbers.next(columns) || !numbers.next(entries) || rows < 0 || columns < 0 ||
      entries < 0)
    return fmt::format("{}: the size line must give rows, columns and entries", path);
  if (static_cast<size_t>(entries) > text.size() || static_cast<size_t>(rows) > (size_t{1} << 40))
    return fmt::format("{}: the size line does not fit the file", path);
  if (const int64_t most = std::max(rows, columns); Scalar::ofInt(intType, most).i != most)
    return fmt::format("{}: {} {} do not fit an int", path, most, most == columns ? "columns" : "rows");
  struct Entry {
    int64_t row, column;
    double value;
  };
  std::vector<Entry> list;
  list.reserve(static_cast<size_t>(entries));
  for (int64_t k = 0; k < entries; ++k) {
    Entry e{0, 0, 1.0};
    if (!numbers.next(e.row) || !numbers.next(e.column) || (!header.pattern && !numbers.next(e.value)))
      return fmt::format("{}: entry {} of {} cannot be read", path, k + 1, entries);
    if (e.row < 1 || e.row > rows || e.column < 1 || e.column > columns)
      return fmt::format("{}: entry {} is outside the matrix: row {}, column {}", path, k + 1, e.row,
                         e.column);
    list.push_back(e);
    if (header.symmetric && e.row != e.column)
      list.push_back({e.column, e.row, header.negated ? -e.value : e.value});
  }
  // A stable counting sort by row.
  std::vector<int64_t> offsets(static_cast<size_t>(rows) + 1, 0);
  for (const Entry& e : list) ++offsets[static_cast<size_t>(e.row)];
  for (size_t r = 1; r < offsets.size(); ++r) offsets[r] += offsets[r - 1];
  std::vector<int64_t> next = offsets, column(list.size());
  std::vector<double> value(list.size());
  for (const Entry& e : list) {
    auto place = static_cast<size_t>(next[static_cast<size_t>(e.row) - 1]++);
    column[place] = e.column - 1;
    value[place] = e.value;
  }
  Row element = {intType, floatType};
  Column matrix =
      sequenceColumn(element, std::move(offsets), {packed(intType, column), packed(floatType, value)});
  Column whole = sequenceColumn({matrix.type}, {0, rows}, {matrix});
  return Columns{whole, packed(intType, std::vector<int64_t>{columns})};
}

}  // namespace kelpie
