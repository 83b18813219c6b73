#include "ir/data.h"

#include <cstring>

#include "ir/diagnostic.h"

namespace kelpie {
namespace {

/// Float32 lives in four bytes as a float; every other type is stored as its integer or double.
void store(std::byte* to, const Scalar& value) {
  switch (value.type) {
    case ScalarType::Bool:
    case ScalarType::Char:
      *to = static_cast<std::byte>(value.i);
      return;
    case ScalarType::Int32: {
      const auto narrow = static_cast<int32_t>(value.i);
      std::memcpy(to, &narrow, sizeof narrow);
      return;
    }
    case ScalarType::Int64:
      std::memcpy(to, &value.i, sizeof value.i);
      return;
    case ScalarType::Float32: {
      const auto narrow = static_cast<float>(value.f);
      std::memcpy(to, &narrow, sizeof narrow);
      return;
    }
    case ScalarType::Float64:
      std::memcpy(to, &value.f, sizeof value.f);
      return;
  }
}

Scalar fetch(ScalarType type, const std::byte* from) {
  switch (type) {
    case ScalarType::Bool:
      return Scalar::ofBool(*from != std::byte{0});
    case ScalarType::Char:
      return Scalar::ofChar(static_cast<unsigned char>(*from));
    case ScalarType::Int32: {
      int32_t value;
      std::memcpy(&value, from, sizeof value);
      return Scalar::ofInt(type, value);
    }
    case ScalarType::Int64: {
      int64_t value;
      std::memcpy(&value, from, sizeof value);
      return Scalar::ofInt(type, value);
    }
    case ScalarType::Float32: {
      float value;
      std::memcpy(&value, from, sizeof value);
      return Scalar::ofFloat(type, value);
    }
    case ScalarType::Float64: {
      double value;
      std::memcpy(&value, from, sizeof value);
      return Scalar::ofFloat(type, value);
    }
  }
  throw InternalError("fetch: unknown scalar type");
}

}  // namespace

int64_t Column::length() const {
  if (type.isScalar()) return static_cast<int64_t>(bytes.size()) / sizeOf(type.scalar());
  return offsets.empty() ? 0 : static_cast<int64_t>(offsets.size()) - 1;
}

Scalar Column::at(int64_t index) const {
  if (!type.isScalar() || index < 0 || index >= length()) throw InternalError("Column::at: no such element");
  const int64_t begin = index * sizeOf(type.scalar());
  return fetch(type.scalar(), bytes.upTo(static_cast<size_t>(begin + sizeOf(type.scalar()))) + begin);
}

Column scalarColumn(ScalarType type, const std::vector<Scalar>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(sizeOf(type)));
  std::byte* to = bytes.data();
  for (const Scalar& value : values) {
    if (value.type != type) throw InternalError("scalarColumn: element of another type");
    store(to, value);
    to += sizeOf(type);
  }
  return scalarColumn(type, std::move(bytes));
}

Column scalarColumn(ScalarType type, std::vector<std::byte> bytes) {
  if (bytes.size() % static_cast<size_t>(sizeOf(type)) != 0)
    throw InternalError("scalarColumn: part of an element");
  return {type, std::move(bytes), {}, {}};
}

Column sequenceColumn(Row row, std::vector<int64_t> offsets, std::vector<Column> elements) {
  if (offsets.empty() || offsets.front() != 0) throw InternalError("sequenceColumn: offsets must start at 0");
  if (elements.size() != row.size()) throw InternalError("sequenceColumn: one column for each component");
  for (size_t c = 0; c < row.size(); ++c) {
    if (!(elements[c].type == row[c])) throw InternalError("sequenceColumn: element of another type");
    if (elements[c].length() != offsets.back())
      throw InternalError("sequenceColumn: elements of another length");
  }
  return {CoreType::sequence(std::move(row)), {}, std::move(offsets), std::move(elements)};
}

Column zeroColumn(const CoreType& type, int64_t n) {
  const auto count = static_cast<size_t>(n);
  if (type.isScalar())
    return scalarColumn(type.scalar(),
                        std::vector<std::byte>(count * static_cast<size_t>(sizeOf(type.scalar()))));
  std::vector<Column> elements;
  for (const CoreType& component : type.elements()) elements.push_back(zeroColumn(component, 0));
  return sequenceColumn(type.elements(), std::vector<int64_t>(count + 1), std::move(elements));
}

bool operator==(const Column& a, const Column& b) {
  return a.type == b.type && a.bytes == b.bytes && a.offsets == b.offsets && a.elements == b.elements;
}

}  // namespace kelpie
