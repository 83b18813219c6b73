// The syntax tree as text, for `kelpie emit --stage=ast` and for tests.
//
// Expressions are printed fully parenthesised in NESL's own syntax, so that the text shows how the parser
// read them and parses back to the same tree. Forms end with `;`.
#pragma once

#include <string>

#include "frontend/ast.h"

namespace kelpie {

std::string toString(const ast::Form& form);
std::string toString(const ast::Exp& exp);
std::string toString(const ast::Pattern& pattern);
std::string toString(const ast::TypeExp& type);

}  // namespace kelpie
