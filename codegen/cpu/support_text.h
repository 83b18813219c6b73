// The text of the support headers, embedded by the build (codegen/cpu/embed.cmake).
#pragma once

#include <string_view>

namespace kelpie::codegen::cpu {

std::string_view reductionOrderText();
std::string_view supportText();

}  // namespace kelpie::codegen::cpu
