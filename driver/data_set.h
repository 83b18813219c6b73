// The data sets of `kelpie bench`: what `--data` says, as a NESL expression for the arguments of a function.
//
//   FILE             a file with the values, as NESL expressions with commas between them
//   random TYPES     values drawn from the program's random stream, one for each type
//   VALUES           NESL expressions with commas between them
//
//   TYPES = TYPE, ...
//   TYPE  = [N]TYPE | [~N]TYPE | (TYPES) | int RANGE | float RANGE | bool | char
//   RANGE = | :BOUND | :LOWEST:BOUND
//
// [N] is a sequence of N elements, [~N] one whose length is drawn from 0 to 2N; numbers may be written as 1e6
// or 2^20. Drawn numbers lie from LOWEST (0) to BOUND (int: 2^30, float: 1), without BOUND, characters from a
// to z.
#pragma once

#include <string>
#include <variant>

namespace kelpie::driver {

struct DataSet {
  std::string source;      ///< the file's name, or "--data"
  std::string expression;  ///< one value: several arguments are a tuple
};

/// Why there is no such data set: a file that cannot be read, a wrong type.
struct DataProblem {
  std::string text;
};

std::variant<DataSet, DataProblem> readDataSet(const std::string& text);

}  // namespace kelpie::driver
