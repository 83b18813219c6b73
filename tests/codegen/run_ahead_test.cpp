// Conditions of loops that the host does not wait for.
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "emulated_device.h"
#include "runtime/cuda/cuda_target.h"
#include "runtime/host_target.h"
#include "tests/flatten/program_runner.h"

namespace kelpie::testing {
namespace {

using runtime::Failure;
using runtime::Outcome;

/// Evaluates kernels, and tells how conditions came out as late as it may: when it is asked to wait, or when
/// `later` conditions follow. What runs after a condition that came out otherwise does nothing.
class LateTarget final : public runtime::HostTarget {
 public:
  /// `most`: elements of a launch; those of more are refused.
  LateTarget(size_t later, bool foretells, int64_t most = std::numeric_limits<int64_t>::max())
      : HostTarget(0), later_(later), foretells_(foretells), most_(most) {}
  std::string name() const override { return "late"; }
  const runtime::LaunchWork* lastWork() const override { return nullptr; }
  bool canForetell() override { return foretells_; }

  Failure foretell(runtime::DevicePointer condition, bool expected, uint64_t& number) override {
    number = ++latest_;
    std::optional<runtime::DeviceError> error;
    synchronise(error);
    Outcome outcome = Outcome::Unreached;
    if (!stopped_ && !error) {
      outcome = *static_cast<const bool*>(condition) == expected ? Outcome::AsForetold : Outcome::Otherwise;
      stopped_ = outcome == Outcome::Otherwise;
    }
    outcomes_[number] = {outcome, statistics().launches};
    return std::nullopt;
  }
  Failure outcomeOf(uint64_t number, bool wait, Outcome& outcome) override {
    EXPECT_TRUE(outcomes_.count(number));
    EXPECT_LE(latest_ - number, kMostForetold);
    outcome = wait || latest_ - number >= later_ ? outcomes_.at(number).first : Outcome::Open;
    return std::nullopt;
  }
  void takeBack(uint64_t number) override {
    EXPECT_NE(outcomes_.at(number).first, Outcome::AsForetold);
    stopped_ = false;
  }

 protected:
  Failure execute(const runtime::LaunchRequest& request,
                  std::optional<runtime::DeviceError>& error) override {
    if (request.extents.elements > most_) return "a launch that is too large";
    if (!stopped_) interpret(request, error);
    return std::nullopt;
  }

 private:
  size_t later_;
  bool foretells_;
  int64_t most_;
  bool stopped_ = false;
  uint64_t latest_ = 0;
  std::map<uint64_t, std::pair<Outcome, uint64_t>> outcomes_;
};

/// Runs a program with conditions foretold and not, compares both with the reference; gives the statistics of
/// the last form when foretold.
runtime::RunStatistics agree(const std::string& nesl) {
  runtime::RunStatistics plain, foretold;
  const auto run = [&](const std::function<std::unique_ptr<runtime::Target>()>& target) {
    RunnerOptions options;
    options.target = target;
    options.timed = false;
    const std::vector<FormOutcome> outcomes = runProgram(nesl, options);
    EXPECT_FALSE(outcomes.empty());
    for (const FormOutcome& outcome : outcomes)
      EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
    return outcomes.back().targetStatistics;
  };
  plain = run([] { return std::make_unique<LateTarget>(1, false); });
  EXPECT_EQ(plain.foretold, 0u);
  for (size_t later : {0, 1, 5, 1000}) {
    foretold = run([later] { return std::make_unique<LateTarget>(later, true); });
    for (size_t k = 0; k < plain.kernels.size(); ++k) {
      EXPECT_EQ(foretold.kernels[k].launches, plain.kernels[k].launches) << foretold.kernels[k].name;
      EXPECT_EQ(foretold.kernels[k].elements, plain.kernels[k].elements) << foretold.kernels[k].name;
    }
  }
  const runtime::RunStatistics device = run(
      [] { return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<tests::EmulatedDevice>(7)); });
  for (size_t k = 0; k < plain.kernels.size(); ++k)
    EXPECT_EQ(device.kernels[k].launches, plain.kernels[k].launches) << device.kernels[k].name;
  EXPECT_EQ(device.foretold > 0, foretold.foretold > 0);
  return foretold;
}

TEST(RunAhead, AnIterationUntilItConverges) {
  const runtime::RunStatistics statistics = agree(
      "function halved(a, n) = let b = {x / 2.0 : x in a} in"
      "  if max_val(b) < 0.0001 then (b, n) else halved(b, n + 1);"
      "halved({float(i + 1) : i in [0:300]}, 0);");
  EXPECT_GE(statistics.foretold, 15u);
}

TEST(RunAhead, AConditionMayReadTheHostAsWell) {
  const runtime::RunStatistics statistics = agree(
      "function halved(a, n, most) = let b = {x / 2.0 : x in a} in"
      "  if (max_val(b) < 0.0001) or (n == most) then (b, n) else halved(b, n + 1, most);"
      "(halved([900.0, 10.0], 0, 1000), halved([900.0, 10.0], 0, 13));");
  EXPECT_GE(statistics.foretold, 15u);
}

/// Scalars go from kernel to kernel; the host waits for none of them.
TEST(RunAhead, ConjugateGradients) {
  const runtime::RunStatistics statistics = agree(
      "function dot(a, b) = sum({x * y : x in a; y in b});"
      "function applied(v) = {2.0 * v[i] - (if i == 0 then 0.0 else v[i - 1]) -"
      "  (if i == #v - 1 then 0.0 else v[i + 1]) : i in [0:#v]};"
      "function improve(x, r, p, rr, n) = if rr <= 1e-12 then (x, n) else"
      "  let q = applied(p); alpha = rr / dot(p, q);"
      "      x = {a + alpha * b : a in x; b in p}; r = {a - alpha * b : a in r; b in q};"
      "      next = dot(r, r); beta = next / rr; p = {a + beta * b : a in r; b in p}"
      "  in improve(x, r, p, next, n + 1);"
      "let b = {float(rem(i * 37, 11)) : i in [0:60]} in improve({0.0 : y in b}, b, b, dot(b, b), 0);");
  EXPECT_GE(statistics.foretold, 50u);
}

/// A step more would divide by zero.
TEST(RunAhead, ErrorsAfterTheEndDoNotCount) {
  agree(
      "function down(a, c) = let d = {y + 100 / x : x in a; y in c}; b = {x - 1 : x in a} in"
      "  if max_val(b) == 0 then d else down(b, d);"
      "down([30, 30], [0, 0]);");
}

/// Nor do loops of the host that do not end, in a step that is foretold and not taken; nor sizes that nobody
/// can count.
TEST(RunAhead, StepsThatAreNotTakenHaveNoEnd) {
  agree(
      "function spin(k, c) = if k == 57 then (if c < 0 then 0 else spin(k, 1)) else if c > 10 then c else"
      "  spin(k, c + 1);"
      "function steps(k, a) = if sum(a) > 6000 then (k, a) else"
      "  let c = spin(k, 0) in steps(k + 1, {x + c : x in a});"
      "steps(0, [0:10]);");
  agree(
      "function steps(k, a) = if sum(a) > 6000 then (k, a) else"
      "  let n = (if k < 57 then 3 else 4611686018427387904); w = sum({rem(i, 5) : i in index(n)})"
      "  in steps(k + 1, {x + 11 + (if w > 100000 then 1 else 0) : x in a});"
      "function up(n, a) = if n == 0 then let k, b = steps(0, a) in sum(b) else up(n - 1, a) + n;"
      "up(3, [0:10]);");
}

TEST(RunAhead, ErrorsBeforeTheEndDo) {
  agree(
      "function down(a, c) = let d = {y + 100 / x : x in a; y in c}; b = {x - 1 : x in a} in"
      "  if max_val(b) == 0 then d else down(b, d);"
      "down([60, 25], [0, 0]);");
}

TEST(RunAhead, ErrorsOfTheHostComeAfterThoseOfTheDevice) {
  agree(
      "function down(a, n) = let b = {x - 1 : x in a} in"
      "  if max_val(b) == 0 then (a, n) else down(b, n + 100 / (n - 22));"
      "down([200, 25], 0);"
      "function lower(a, n) = let b = {x - 1 : x in a}; m = n - 1; k = 100 / m in"
      "  if max_val(b) == 0 then (a, n + k) else lower(b, m);"
      "lower([12, 5], 30);"
      "lower([12, 5], 9);");
}

TEST(RunAhead, LoopsInLoops) {
  const runtime::RunStatistics statistics = agree(
      "function inner(a, k) = let b = {x / 2.0 : x in a} in"
      "  if max_val(b) < 1.0 then (b, k) else inner(b, k + 1);"
      "function outer(a, k, steps) = let b, n = inner(a, 0); c = {x * 3000.0 : x in b} in"
      "  if k == 7 then (c, steps) else outer(c, k + 1, steps + n);"
      "outer([900.0, 10.0, 3.0], 0, 0);");
  EXPECT_GE(statistics.foretold, 40u);
}

TEST(RunAhead, ConditionsInTheBody) {
  agree(
      "function collatz(a, n) ="
      "  if sum(a) > 100000 then collatz({x / 2 : x in a}, n + 1)"
      "  else if max_val(a) == 4 then (a, n)"
      "  else collatz({if rem(x, 2) == 0 then x / 2 else 3 * x + 1 : x in a}, n + 1);"
      "collatz([27], 0);");
}

/// The host needs the size of the survivors in every step.
TEST(RunAhead, NothingIsForetoldWhereTheHostWaitsAnyway) {
  const runtime::RunStatistics statistics = agree(
      "function sieve(a, n) = let b = {x - 1 : x in a | x > 1} in"
      "  if max_val(b) < 2 then (b, n) else sieve(b, n + 1);"
      "sieve([2:90], 0);");
  EXPECT_LE(statistics.foretold, 3u);
}

/// Runs a program where launches of more elements are refused.
void agreeWithoutLarge(const std::string& nesl, int64_t most) {
  RunnerOptions options;
  options.timed = false;
  options.target = [=] { return std::make_unique<LateTarget>(8, true, most); };
  for (const FormOutcome& outcome : runProgram(nesl, options))
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
}

/// A step that does not happen may be too large for the device: it was only foretold.
TEST(RunAhead, WhatIsRefusedMayNotHappen) {
  agreeWithoutLarge(
      "function grow(n, v) = if any({x >= 3 : x in v}) then n else"
      "  let marks = dist(0, 16) <- {(rem(i, 16), 1) : i in [0:n]}"
      "  in grow(n * 4, {x + y : x in v; y in marks});"
      "grow(128, dist(0, 16));",
      4096);
}

/// Refuses launches of more blocks, as devices do, whatever kernels before have found.
class NarrowDevice final : public tests::EmulatedDevice {
 public:
  explicit NarrowDevice(int64_t most) : EmulatedDevice(5), most_(most) {}
  Failure launch(runtime::cuda::Function function, int64_t blocks, int threads, void** arguments) override {
    if (blocks > most_) return "a launch that is too large";
    return EmulatedDevice::launch(function, blocks, threads, arguments);
  }

 private:
  int64_t most_;
};

/// An error that the host has not looked for yet comes before what the device refuses.
TEST(RunAhead, ErrorsComeBeforeWhatIsRefused) {
  RunnerOptions options;
  options.timed = false;
  options.target = [] {
    return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<NarrowDevice>(4));
  };
  for (const FormOutcome& outcome :
       runProgram("z = [0, 1];"
                  "function both(z, n) = let a = {1 / x : x in z};"
                  "  b = dist(0, 16) <- {(rem(i, 16), 1) : i in [0:n]} in (a, b);"
                  "both(z, 20000);",
                  options))
    EXPECT_EQ(outcome.difference, "") << outcome.text;
}

}  // namespace
}  // namespace kelpie::testing
