// A NESL program as Core.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "frontend/session.h"
#include "frontend/source_manager.h"
#include "ir/core.h"

namespace kelpie::testing {

/// The program of the last expression.
inline core::Program compiled(const std::string& nesl) {
  SourceManager sources;
  const uint32_t file = sources.add("test.nesl", nesl);
  Session session(sources, {});
  core::Program program;
  for (FormResult& form : session.processFile(file)) {
    EXPECT_TRUE(form.diagnostics.empty()) << form.diagnostics.front().message;
    if (form.program) program = *form.program;
  }
  return program;
}

}  // namespace kelpie::testing
