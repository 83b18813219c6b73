#include "ir/type.h"

#include <algorithm>

namespace kelpie {

CoreType CoreType::sequence(Row elements) {
  CoreType type;
  type.elements_ = std::make_shared<const Row>(std::move(elements));
  return type;
}

int CoreType::depth() const {
  if (isScalar()) return 0;
  int deepest = 0;
  for (const CoreType& component : elements()) deepest = std::max(deepest, component.depth());
  return deepest + 1;
}

bool operator==(const CoreType& a, const CoreType& b) {
  if (a.isScalar() || b.isScalar()) return a.isScalar() && b.isScalar() && a.scalar_ == b.scalar_;
  return a.elements_ == b.elements_ || *a.elements_ == *b.elements_;
}

std::string toString(const CoreType& type) {
  if (type.isScalar()) return std::string(toString(type.scalar()));
  return "[" + toString(type.elements()) + "]";
}

std::string toString(const Row& row) {
  std::string text;
  for (const CoreType& component : row) {
    if (!text.empty()) text += ", ";
    text += toString(component);
  }
  return text;
}

}  // namespace kelpie
