// Types of Core: scalars and sequences of rows.
//
// Tuples, records and function values are flattened away before Core: a Core expression yields a *row*,
// a list of components without tuple types. A sequence has a row of element components and one length
// for all of them; the row may be empty (a sequence of capture-free functions is only a length).
//
//   NESL  [(int, [float])]      Core  [int64, [float64]]      (one component: a sequence of 2-component rows)
//   NESL  (int, [char])         Core  int64, [char]           (a row of two components)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/scalar.h"

namespace kelpie {

class CoreType;
using Row = std::vector<CoreType>;

class CoreType {
 public:
  CoreType() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a scalar type is a type
  CoreType(ScalarType scalar) : scalar_(scalar) {}
  static CoreType sequence(Row elements);

  bool isScalar() const { return !elements_; }
  bool isSequence() const { return elements_ != nullptr; }
  ScalarType scalar() const { return scalar_; }       ///< requires isScalar()
  const Row& elements() const { return *elements_; }  ///< requires isSequence()
  /// Scalar 0; a sequence is one deeper than its deepest component.
  int depth() const;

  friend bool operator==(const CoreType& a, const CoreType& b);

 private:
  ScalarType scalar_ = ScalarType::Int64;
  std::shared_ptr<const Row> elements_;
};

bool operator==(const CoreType& a, const CoreType& b);
std::string toString(const CoreType& type);  ///< "int64", "[int64, [float64]]", "[]" for an empty row
std::string toString(const Row& row);        ///< components separated by ", "

}  // namespace kelpie
