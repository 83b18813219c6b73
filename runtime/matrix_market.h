// Sparse matrices in Matrix Market coordinate form, the exchange format of sparse linear algebra.
//
// In:  a file "%%MatrixMarket matrix coordinate real|integer|pattern general|symmetric|skew-symmetric".
// Out: rows of (column, value), columns counted from 0, in the order of the file within a row, as the Core
// row
//      [[int, float]], int (the number of columns). Entries of pattern matrices are 1. Or what is wrong with
//      it.
#pragma once

#include <string>
#include <variant>

#include "ir/data.h"

namespace kelpie {

std::variant<Columns, std::string> readMatrixMarket(const std::string& path, ScalarType intType,
                                                    ScalarType floatType);

}  // namespace kelpie
