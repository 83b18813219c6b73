#include "ir/regularity.h"

namespace kelpie {

namespace {

void add(const Column& column, bool outermost, Regularity& regularity) {
  regularity.push_back(!outermost && column.type.isSequence() && isRegular(column));
  for (const Column& element : column.elements) add(element, false, regularity);
}

}  // namespace

size_t variablesOf(const CoreType& type) {
  if (type.isScalar()) return 1;
  size_t count = 1;
  for (const CoreType& element : type.elements()) count += variablesOf(element);
  return count;
}

bool isRegular(const Column& column) {
  const SharedArray<int64_t>& offsets = column.offsets;
  const int64_t each = offsets.size() > 1 ? offsets[1] : 0;
  for (size_t k = 1; k < offsets.size(); ++k)
    if (offsets[k] - offsets[k - 1] != each) return false;
  return true;
}

Regularity regularityOf(const Columns& row) {
  Regularity regularity;
  for (const Column& column : row) add(column, true, regularity);
  return regularity;
}

}  // namespace kelpie
