// Dense columnar values: the interchange form of nested data (literals, globals, results, files).
//
// A `Column` holds n values of one Core type side by side:
//   scalar type        n packed elements
//   sequence type [r]  offsets of length n+1 (offsets[0] = 0), and one column for each component of the
//                      row r, all of length offsets[n], the elements of value k at offsets[k]..offsets[k+1]-1
// A single value is a column of length 1; a value of a tuple type is one column for each component.
// Columns are immutable once shared; copies share their storage, which may be on a device until it is looked
// at.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/scalar.h"
#include "ir/shared_array.h"
#include "ir/type.h"

namespace kelpie {

struct Column {
  CoreType type;
  /// Scalar type: packed elements (sizeOf(type) bytes each). Sequence type: empty.
  SharedArray<std::byte> bytes;
  /// Sequence type only.
  SharedArray<int64_t> offsets;
  std::vector<Column> elements;

  int64_t length() const;
  Scalar at(int64_t index) const;  ///< scalar columns only
};

Column scalarColumn(ScalarType type, const std::vector<Scalar>& values);
Column scalarColumn(ScalarType type, std::vector<std::byte> bytes);
/// `offsets` as described above; `row` gives the element types (kept even when there are no elements).
Column sequenceColumn(Row row, std::vector<int64_t> offsets, std::vector<Column> elements);
/// n zero scalars or n empty sequences.
Column zeroColumn(const CoreType& type, int64_t n);
bool operator==(const Column& a, const Column& b);  ///< same type, same structure, same bits

using Columns = std::vector<Column>;

}  // namespace kelpie
