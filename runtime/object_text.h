// The text forms of data in files: number sequences (language.md 7.4) and object files (7.5).
#pragma once

#include <cstdio>
#include <string>
#include <variant>

#include "ir/data.h"

namespace kelpie {

/// The text of a row of columns, as write_object_to_file writes it.
std::string objectText(const Columns& row);

/// Reads an object of the given row from the file's current position. The string says what was expected.
std::variant<Columns, std::string> readObject(std::FILE* file, const Row& row);

/// Reads `( v v ... )`, the elements of a sequence of numbers of type `element`, as one scalar column.
std::variant<Column, std::string> readNumbers(std::FILE* file, ScalarType element);

}  // namespace kelpie
