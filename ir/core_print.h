// Core as text, for `kelpie emit --stage=core` and for tests. Every variable is written name.id with its type
// where it is bound; blocks are indented. The text is for reading: it does not parse back.
#pragma once

#include <string>

#include "ir/core.h"

namespace kelpie::core {

std::string_view toString(PrimOp op);  ///< "scalar" "index" "distribute" ...
std::string toString(const Program& program);
std::string toString(const Function& function, const Program& program);
std::string toString(const ExpPtr& exp, const Program& program);

}  // namespace kelpie::core
