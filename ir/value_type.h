// The NESL type of a printed value, as far as printing needs it: where the components of a row belong.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/scalar.h"

namespace kelpie {

struct ValueType;
using ValueTypePtr = std::shared_ptr<const ValueType>;

struct ValueType {
  enum class Kind : uint8_t {
    Scalar,    // one component of type `scalar`
    Pair,      // parts: first, second; their components in this order
    Sequence,  // one component, a sequence; part: the element
    Record,    // part: the field; `name` is written in front of it
    Function,  // `components` captured values, which are not shown
  };
  Kind kind = Kind::Scalar;
  ScalarType scalar{};
  std::string name;
  std::vector<ValueTypePtr> parts;
  size_t components = 1;  ///< size of the row that holds a value of this type
};

}  // namespace kelpie
