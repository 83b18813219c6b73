// What flattened programs cost, counted by the λcu evaluator after fusion: thunk evaluations, bytes, kernels
// and peak memory stay within what the NESL program's own work and data say.
#include <gtest/gtest.h>

#include <cmath>

#include "program_runner.h"

namespace kelpie::testing {
namespace {

/// The last form of a program, fused by ilp. `reference`: also compared with the reference interpreter.
FormOutcome costOf(const std::string& nesl, bool reference = true) {
  RunnerOptions options;
  options.fused = true;
  options.reference = reference;
  std::vector<FormOutcome> outcomes = runProgram(nesl, options);
  for (const FormOutcome& outcome : outcomes)
    EXPECT_EQ(outcome.difference + outcome.error, "") << outcome.text;
  return outcomes.empty() ? FormOutcome{} : outcomes.back();
}

std::string show(const FormOutcome& o) {
  return o.lcu + "\nelements " + std::to_string(o.elements()) + " read " + std::to_string(o.bytesRead()) +
         " written " + std::to_string(o.bytesWritten()) + " launches " +
         std::to_string(o.statistics.launches) + " peak " + std::to_string(o.statistics.peakBytes) + "\n";
}

TEST(Dump, All) {  // temporary
  const char* file = std::getenv("KELPIE_DUMP");
  if (!file) return;
  FILE* f = fopen(file, "r");
  std::string text(1 << 20, 0);
  text.resize(fread(text.data(), 1, text.size(), f));
  fclose(f);
  FormOutcome o = costOf(text);
  puts(show(o).c_str());
  for (auto& k : o.statistics.kernels)
    printf("%-50s launches %lu elements %lu segs %lu work %lu\n", k.name.c_str(), k.launches, k.elements, k.segments, k.work.elements);
}

}  // namespace
}  // namespace kelpie::testing
