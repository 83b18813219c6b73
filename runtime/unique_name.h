// Names for files that are not finished.
//
// Process numbers do not tell processes apart that share a folder: in containers they begin at 1 everywhere.
#pragma once

#include <string>

namespace kelpie {

/// Sixteen hexadecimal digits that nobody else has been given, in this process or another.
std::string uniqueName();

}  // namespace kelpie
