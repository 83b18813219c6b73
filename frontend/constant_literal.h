// Questions about typed expressions that the specialiser asks: is it a constant, and which variables occur.
#pragma once

#include <unordered_set>

#include "frontend/ground_type.h"
#include "frontend/typed.h"
#include "ir/data.h"

namespace kelpie {

/// Whether the expression is made of literals only: scalars, strings, sequences, pairs and records of them.
bool isConstantExpression(const typed::Exp& exp);

/// The columns, of length 1, of a constant expression of the closed type. Linear in its size.
Columns constantColumns(const typed::Exp& exp, Type* type, GroundTypes& grounds);

/// Adds the variables that occur in the expression.
void collectUses(const typed::Exp& exp, std::unordered_set<const typed::Variable*>& uses);

}  // namespace kelpie
