// Which names stand in a syntax tree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/ast.h"

namespace kelpie {

/// Whether the name stands in the expression, whatever it means there.
bool mentions(const ast::Exp& exp, std::string_view name);

struct BoundName {
  std::string name;
  Span span;
};
/// The names that a pattern binds, in order.
std::vector<BoundName> boundNames(const ast::Pattern& pattern);

/// Whether `g(x) = value` looks like a definition of a function g: the value uses x, or g.
bool usesParts(const ast::RecordPattern& pattern, const ast::Exp& value);

}  // namespace kelpie
