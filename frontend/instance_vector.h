// The values of the reference interpreter: one component of a row, for all active instances at once.
//
// Scalars are packed. A sequence is a start and a length into a store of elements that instances may share,
// so binding a free variable in an apply-to-each, indexing into nested sequences, slicing and partitioning
// move descriptors only, never elements. A value that is the same for all instances is stored once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/data.h"

namespace kelpie {

using Indices = std::vector<int64_t>;
using SharedIndices = std::shared_ptr<const Indices>;

struct InstanceVector;
using InstanceRow = std::vector<InstanceVector>;  ///< a row: one vector for each component

struct InstanceVector {
  CoreType type;
  bool uniform = false;   ///< one stored value stands for any number of instances
  SharedIndices words;    ///< scalar: the bits of Scalar; sequence: where each value starts in the store
  SharedIndices lengths;  ///< sequence only
  std::shared_ptr<const InstanceRow> elements;  ///< sequence only: the store; never uniform

  int64_t size() const { return static_cast<int64_t>(words->size()); }  ///< stored values
  int64_t word(int64_t k) const { return (*words)[static_cast<size_t>(uniform ? 0 : k)]; }
  int64_t start(int64_t k) const { return word(k); }
  int64_t length(int64_t k) const { return (*lengths)[static_cast<size_t>(uniform ? 0 : k)]; }
  Scalar at(int64_t k) const {
    Scalar scalar;
    scalar.type = type.scalar();
    scalar.i = word(k);
    return scalar;
  }
};

InstanceVector scalarVector(ScalarType type, Indices words);
InstanceVector uniformScalar(const Scalar& value);
/// Sequences that lie one after another in `elements`, which holds exactly their elements.
InstanceVector denseSequences(Row row, Indices lengths, InstanceRow elements);
InstanceVector sequences(Row row, Indices starts, Indices lengths,
                         std::shared_ptr<const InstanceRow> elements);

/// Value k is value indices[k] of `v`.
InstanceVector gather(const InstanceVector& v, const Indices& indices);
InstanceRow gather(const InstanceRow& row, const Indices& indices);
/// The same values, each instance stored on its own.
InstanceVector expanded(const InstanceVector& v, int64_t instances);
InstanceRow expanded(const InstanceRow& row, int64_t instances);
/// All values of the first, then all of the second, ...; none uniform, at least one.
InstanceVector concatenated(const std::vector<InstanceVector>& parts);
InstanceRow concatenated(const std::vector<InstanceRow>& parts);

/// Where the elements of all instances lie in the store, one instance after another.
struct ElementPlaces {
  Indices places;    ///< of every element
  Indices instance;  ///< of every element
};
ElementPlaces elementPlaces(const InstanceVector& sequence, int64_t instances);
/// The elements of all instances, one instance after another.
InstanceRow allElements(const InstanceVector& sequence, int64_t instances);

InstanceVector fromColumn(const Column& column);
Column toColumn(const InstanceVector& v, int64_t instances);
/// The value of one instance, as columns of length 1.
Columns instanceColumns(const InstanceRow& row, int64_t instance);

}  // namespace kelpie
