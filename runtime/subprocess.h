// Running another program: its input given, its output collected.
#pragma once

#include <string>
#include <variant>

namespace kelpie {

/// Splits `command` at blanks, looks the program up in PATH, feeds it `input` and waits for it to end. Yields
/// its standard output. No shell, no quoting.
struct ProcessError {
  std::string message;
};
std::variant<std::string, ProcessError> runProcess(const std::string& command, const std::string& input);

}  // namespace kelpie
