// What most tests of flattening ask: that a program's forms give what the reference interpreter gives.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "program_runner.h"

namespace kelpie::testing {

/// Unfused, on the evaluator of λcu.
inline void expectAgreement(const std::string& nesl) {
  std::vector<FormOutcome> outcomes = runProgram(nesl);
  EXPECT_FALSE(outcomes.empty()) << nesl;
  for (const FormOutcome& outcome : outcomes)
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
}

/// The same after fusion, by every strategy.
inline void expectAgreementOfStrategies(const std::string& nesl) {
  RunnerOptions options;
  options.strategies = true;
  for (const FormOutcome& outcome : runProgram(nesl, options))
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
}

}  // namespace kelpie::testing
