// Programs of tests, from their text.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fusion/lcu_reader.h"

namespace kelpie::fusion {

/// An empty program, and failures, where the text is wrong.
inline lcu::Program read(std::string_view text) {
  lcu::ReadResult result = lcu::readProgram(text);
  if (const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result)) {
    for (const Diagnostic& d : *diagnostics) ADD_FAILURE() << lcu::describe(d, text);
    return {};
  }
  return std::move(std::get<lcu::Program>(result));
}

}  // namespace kelpie::fusion
