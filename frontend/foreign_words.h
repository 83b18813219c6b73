// Words of other languages that are not defined here, and what is written instead: advice for messages.
#pragma once

#include <string>
#include <string_view>

namespace kelpie {

/// For a name, such as "len"; empty where nothing is known.
std::string foreignNameAdvice(std::string_view name);
/// For the name of a type, such as "string"; empty where nothing is known.
std::string foreignTypeAdvice(std::string_view name);

/// Whether the word, in front of a name, was meant to be `function`: "def", "fun", "funtion".
bool definesFunctions(std::string_view word);

}  // namespace kelpie
