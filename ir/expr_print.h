// Expressions as λcu text. A node used more than once is named by a let in the innermost branch, loop or
// thunk that holds all its uses, and so is one that nests too deep; the rest is written in place, with infix
// operators.
#pragma once

#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/lcu_names.h"

namespace kelpie::lcu {

/// "let t1 = xs[i] in t1 * t1, t1 + n": the roots separated by commas. `params` names the Params; when there
/// are several lets, each goes on a line of its own, indented by `indent`.
std::string exprsText(const std::vector<ExprRef>& roots, const std::vector<std::string>& params,
                      const Names& names, size_t indent);

}  // namespace kelpie::lcu
