// Samples of thunks (runtime/thunk_sampler.h), where the memory of a launch is not that of the host and every
// look at it takes a wait.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "runtime/host_target.h"
#include "tests/fusion/random_program.h"

namespace kelpie::fusion {
namespace {

using kelpie::testing::Builder;
using lcu::ExprRef;
using lcu::VarId;

class Elsewhere final : public runtime::HostTarget {
 public:
  struct Options {
    bool remote = true;
    std::chrono::milliseconds wait{0};
    bool computes = true;  ///< what launches compute
    /// What it sees is not to depend on how busy the machine is.
    std::chrono::milliseconds sampleTime = std::chrono::minutes(1);
    const runtime::EarlierKernels* earlier = nullptr;
  };
  explicit Elsewhere(const Options& options) : HostTarget(0), options_(options) {}
  std::string name() const override { return "elsewhere"; }
  bool hostAddressable() const override { return !options_.remote; }
  runtime::Failure read(std::span<const runtime::HostRead> reads,
                        std::optional<runtime::DeviceError>& error) override {
    wait();
    if (auto failure = synchronise(error)) return failure;
    for (const runtime::HostRead& r : reads) HostTarget::download(r.to, r.from, r.bytes);
    return std::nullopt;
  }
  runtime::Failure download(void* to, runtime::DevicePointer from, size_t bytes) override {
    wait();
    return HostTarget::download(to, from, bytes);
  }
  int waits() const { return waits_; }

 protected:
  runtime::Failure execute(const runtime::LaunchRequest& request,
                           std::optional<runtime::DeviceError>& error) override {
    if (options_.computes) interpret(request, error);
    return std::nullopt;
  }

 private:
  void wait() {
    ++waits_;
    std::this_thread::sleep_for(options_.wait);
  }

  Options options_;
  int waits_ = 0;
};

struct Sampled {
  std::vector<codegen::ThunkSample> samples;  ///< by kernel
  int waits;                                  ///< that they took
};

Sampled sampled(Builder& b, const Elsewhere::Options& where) {
  const auto run = [&](bool sample) {
    auto target = std::make_unique<Elsewhere>(where);
    const Elsewhere& elsewhere = *target;
    runtime::Executor executor(std::move(target));
    runtime::RunOptions options;
    options.sampleThunks = sample;
    options.sampleTime = where.sampleTime;
    options.earlier = where.earlier;
    runtime::RunStatistics statistics;
    b.run(executor, options, &statistics);
    Sampled result{{}, elsewhere.waits()};
    for (const runtime::KernelStatistics& kernel : statistics.kernels)
      result.samples.push_back(kernel.sample);
    return result;
  };
  const int others = run(false).waits;
  Sampled result = run(true);
  result.waits -= others;
  return result;
}
Sampled onHost(Builder& b) { return sampled(b, {.remote = false}); }
Sampled remotely(Builder& b, std::chrono::milliseconds wait = {}) { return sampled(b, {.wait = wait}); }

void expectEqual(const codegen::ThunkSample& a, const codegen::ThunkSample& b) {
  EXPECT_EQ(a.entered, b.entered);
  EXPECT_EQ(a.inStep, b.inStep);
  EXPECT_EQ(a.slowest, b.slowest);
  EXPECT_EQ(a.ofFour, b.ofFour);
  ASSERT_EQ(a.positions.size(), b.positions.size());
  for (size_t k = 0; k < a.positions.size(); ++k) {
    const auto &x = a.positions[k], &y = b.positions[k];
    EXPECT_EQ(x.number, y.number);
    EXPECT_EQ(x.sectors, y.sectors);
    EXPECT_EQ(x.granules, y.granules);
    EXPECT_EQ(x.blocks, y.blocks);
    EXPECT_EQ(x.fresh, y.fresh);
    EXPECT_EQ(x.visited, y.visited);
  }
}

std::vector<int64_t> scattered(int64_t elements) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < elements; ++i) places.push_back((i * 77773 + 41) % elements);
  return places;
}

/// A loop over k < turns, and one more variable.
ExprRef loopOf(Builder& b, ExprRef turns, ExprRef initial,
               const std::function<ExprRef(ExprRef k, ExprRef value)>& next) {
  const uint32_t id = b.arena().newLoop();
  const ExprRef k = b.arena().loopVar(id, 0, ScalarType::Int64);
  const ExprRef value = b.arena().loopVar(id, 1, ScalarType::Int64);
  return b.arena().loop(id, {b.num(0), initial}, b.op(ScalarOp::Less, k, turns),
                        {b.arena().add(k, b.num(1)), next(k, value)})[1];
}

/// The sum of what lies at 64 places that are known before anything is loaded.
ExprRef sumOfPlaces(Builder& b, VarId table, int64_t length) {
  return loopOf(b, b.num(64), b.num(0), [&](ExprRef k, ExprRef sum) {
    const ExprRef place = b.arena().add(b.arena().mul(b.i(), b.num(7919)), b.arena().mul(k, b.num(104729)));
    return b.arena().add(sum, b.at(table, b.op(ScalarOp::Rem, place, b.num(length))));
  });
}

/// Of 64 warps one divides by more than 32 bits hold, another does so in one thread.
TEST(ThunkSample, SizesOfWhatIsDivided) {
  std::vector<int64_t> divisors(64 * 32, 7);
  for (size_t k = 0; k < 32; ++k) divisors[32 * 5 + k] = int64_t{1} << 40;
  divisors[32 * 9 + 3] = -1;
  Builder b;
  const VarId by = b.globalArray("by", testing::ints(divisors));
  const ExprRef quotient = b.op(ScalarOp::Div, b.num(1000), b.at(by, b.i()));
  b.result(b.launch(b.map(b.flat(b.num(64 * 32)), {quotient}), "k")[0]);
  const codegen::ThunkSample sample = onHost(b).samples.at(0);
  ASSERT_EQ(sample.divisions.size(), 1u);
  EXPECT_EQ(sample.divisions[0].number, 64 * 32);
  EXPECT_EQ(sample.divisions[0].ofLong, 2 * 32);
  EXPECT_EQ(sample.divisions[0].ofShort, 63 * 32);
}

/// One element in each of two times 128 turns its loop more often than the ten times of all others; of the
/// last 32 there are no four.
TEST(ThunkSample, TurnsThatOthersWaitFor) {
  constexpr int64_t kElements = 4 * 128 + 32;
  std::vector<int64_t> turns(kElements, 10);
  turns[70] = 50;
  turns[128 + 3] = 90;
  turns[4 * 128] = 20;
  Builder b;
  const VarId of = b.globalArray("turns", testing::ints(turns));
  const ExprRef looped = loopOf(b, b.at(of, b.i()), b.num(0), [&](ExprRef k, ExprRef sum) {
    return b.arena().add(sum, b.arena().mul(k, k));
  });
  b.result(b.launch(b.map(b.flat(b.num(kElements)), {looped}), "k")[0]);
  const codegen::ThunkSample sample = onHost(b).samples.at(0);
  ASSERT_EQ(sample.inStep.size(), 4u);  // (one of what is computed late)
  const double warps = 32, inStep = warps * (14 * 10 + 50 + 90 + 20);
  EXPECT_EQ(sample.inStep[2], inStep);
  EXPECT_EQ(sample.slowest[2], kElements * 90);
  const double ofFour = 50 + 90 + 2 * 10, onAverage = 20 + 30 + 2 * 10;
  EXPECT_NEAR(sample.ofFour[2], inStep * ofFour / onAverage, 1e-6);
  EXPECT_EQ(sample.ofFour[0], kElements);
}

TEST(ThunkSample, LoopsThatGatherAtKnownPlacesTakeFewWaits) {
  constexpr int64_t kLength = 1 << 18;
  Builder b;
  const VarId table = b.globalArray("table", testing::ints(scattered(kLength)));
  b.result(b.launch(b.map(b.flat(b.num(256)), {sumOfPlaces(b, table, kLength)}), "k")[0]);
  const Sampled remote = remotely(b, std::chrono::milliseconds(20));
  EXPECT_LT(remote.waits, 16);  // it were 68 with one piece of each element in a wait
  ASSERT_EQ(remote.samples.at(0).positions.size(), 1u);
  EXPECT_EQ(remote.samples.at(0).positions[0].number, 64 * 256);
  expectEqual(remote.samples[0], onHost(b).samples.at(0));
}

/// Of many elements each group is as cheap.
TEST(ThunkSample, ManyGroupsThatGatherAtKnownPlaces) {
  constexpr int64_t kLength = 1 << 18;
  Builder b;
  const VarId table = b.globalArray("table", testing::ints(scattered(kLength)));
  b.result(b.launch(b.map(b.flat(b.num(4 * 256)), {sumOfPlaces(b, table, kLength)}), "k")[0]);
  const Sampled remote = remotely(b, std::chrono::milliseconds(20));
  EXPECT_LT(remote.waits, 32);
  expectEqual(remote.samples.at(0), onHost(b).samples.at(0));
}

/// Of very many elements those of a window are looked at in order, and far fewer waits than elements.
TEST(ThunkSample, WindowsOfManyElementsTakeFewWaits) {
  constexpr int64_t kLength = 1 << 17;
  Builder b;
  const VarId table = b.globalArray("table", testing::ints(scattered(kLength)));
  b.result(b.launch(b.map(b.flat(table), {b.at(table, b.at(table, b.at(table)))}), "k")[0]);
  const Sampled remote = remotely(b, std::chrono::milliseconds(5));
  EXPECT_LT(remote.waits, 250);
  ASSERT_EQ(remote.samples.at(0).positions.size(), 2u);
  expectEqual(remote.samples[0], onHost(b).samples.at(0));
}

/// The first look waits so long that the time does not seem to suffice for all elements, but it does.
TEST(ThunkSample, TimeThatSufficesAfterAll) {
  constexpr int64_t kLength = 20'000;
  Builder b;
  const VarId table = b.globalArray("table", testing::ints(scattered(kLength)));
  b.result(b.launch(b.map(b.flat(table), {b.at(table, b.at(table))}), "k")[0]);
  const codegen::ThunkSample sample =
      sampled(b, {.wait = std::chrono::milliseconds(5), .sampleTime = std::chrono::seconds(3)}).samples.at(0);
  ASSERT_EQ(sample.positions.size(), 1u);
  const codegen::ThunkSample::Positions& found = sample.positions[0];
  EXPECT_NEAR(found.number, kLength, 1);
  EXPECT_NEAR(found.visited / found.number, 8 * kLength, 8 * kLength / 20);
  EXPECT_LT(found.fresh / found.sectors, 0.5);
}

TEST(ThunkSample, ChainsOfPointersTakeAWaitForEach) {
  constexpr int64_t kLength = 1 << 16;
  Builder b;
  const VarId table = b.globalArray("table", testing::ints(scattered(kLength)));
  const ExprRef last =
      loopOf(b, b.num(10), b.i(), [&](ExprRef /*k*/, ExprRef place) { return b.at(table, place); });
  b.result(b.launch(b.map(b.flat(b.num(512)), {last}), "k")[0]);
  const Sampled remote = remotely(b, std::chrono::milliseconds(20));
  EXPECT_GE(remote.waits, 10);
  EXPECT_LT(remote.waits, 30);
  ASSERT_EQ(remote.samples.at(0).positions.size(), 1u);
  EXPECT_EQ(remote.samples.at(0).positions[0].number, 10 * 512);
  expectEqual(remote.samples[0], onHost(b).samples.at(0));
}

/// What is not there yet may be any position: far outside of the array, and one at which a loop stays.
TEST(ThunkSample, WrongGuessesChangeNothing) {
  constexpr int64_t kLength = 1 << 12;
  std::vector<int64_t> far, next;
  for (const int64_t place : scattered(kLength)) far.push_back((place + (int64_t{1} << 40)) * 3);
  for (int64_t i = 0; i < kLength; ++i) next.push_back(1 + i % 3);
  Builder b;
  const VarId table = b.globalArray("far", testing::ints(far)),
              steps = b.globalArray("steps", testing::ints(next));
  auto& a = b.arena();
  const ExprRef place = a.sub(b.op(ScalarOp::Div, b.at(table, a.sub(b.num(kLength - 1), b.i())), b.num(3)),
                              b.num(int64_t{1} << 40));
  // From a place to one further on until the end; where a step is 0 it stays for ever.
  const uint32_t id = a.newLoop();
  const ExprRef at = a.loopVar(id, 0, ScalarType::Int64);
  const ExprRef end = a.loop(id, {b.op(ScalarOp::Max, place, b.num(kLength - 200))},
                             b.op(ScalarOp::Less, at, b.num(kLength - 3)), {a.add(at, b.at(steps, at))})[0];
  const ExprRef back = b.at(table, b.at(steps, b.op(ScalarOp::Div, b.num(1000), b.at(steps, place))));
  b.result(
      b.launch(b.filter(b.flat(table), {a.add(end, back)}, b.op(ScalarOp::Less, b.num(7), place)), "k")[1]);
  const Sampled remote = remotely(b);
  EXPECT_GT(remote.samples.at(0).entered.at(0), 0);
  expectEqual(remote.samples.at(0), onHost(b).samples.at(0));
}

/// A recursion that is endless where what it loads is 0.
TEST(ThunkSample, GuessesEndInRecursions) {
  constexpr int64_t kLength = 1 << 14;
  Builder b;
  const VarId table = b.globalArray("table", testing::ints(std::vector<int64_t>(kLength, 1)));
  auto& a = b.arena();
  const uint32_t id = a.newLoop();
  const ExprRef x = a.loopVar(id, 0, ScalarType::Int64);
  const ExprRef left = a.sub(x, b.at(table, b.op(ScalarOp::Rem, a.mul(x, b.num(511)), b.num(kLength))));
  const ExprRef twice = a.add(a.call(id, {left}, {ScalarType::Int64})[0], b.num(1));
  const ExprRef depth = a.recursion(id, 0, {b.op(ScalarOp::Rem, b.i(), b.num(20))},
                                    {a.select(b.op(ScalarOp::LessEqual, x, b.num(0)), b.num(0), twice)})[0];
  b.result(b.launch(b.map(b.flat(b.num(1024)), {depth}), "k")[0]);
  const Sampled remote = remotely(b);
  EXPECT_EQ(remote.samples.at(0).entered.at(0), 1024);
  expectEqual(remote.samples.at(0), onHost(b).samples.at(0));
}

/// Segments are found by their offsets, and maps of the kernel are evaluated for others that read them.
TEST(ThunkSample, SegmentsAndMapsOfTheKernel) {
  constexpr int64_t kLength = 1 << 14;
  std::vector<int64_t> offsets = {0};
  while (offsets.back() < kLength)
    offsets.push_back(std::min(kLength, offsets.back() + static_cast<int64_t>(offsets.size()) * 5 % 13));
  Builder b;
  const auto [starts, values] = b.globalNested("values", offsets, testing::ints(scattered(kLength)));
  lcu::Soac first = b.map(b.segmented(starts, values), {b.at(values, b.at(values))});
  b.named(first, "first");
  lcu::Soac second = b.map(
      b.segmented(starts, values),
      {b.arena().add(
          b.p(), b.at(values, b.arena().add(b.s(), b.op(ScalarOp::Rem, b.at(first.results[0]), b.num(5)))))});
  b.named(second, "second");
  const std::vector<VarId> results = {first.results[0], second.results[0]};
  b.kernel({first, second}, results);
  for (const VarId v : results) b.result(v);
  const Sampled remote = remotely(b);
  const Sampled host = onHost(b);
  ASSERT_EQ(remote.samples.at(0).positions.size(), 2u);
  EXPECT_EQ(remote.samples[0].positions[1].number, kLength);
  expectEqual(remote.samples[0], host.samples.at(0));
}

/// What scans of the kernel make of elements before is not known, so they are evaluated for the element
/// alone. That tells what branches do that do not depend on them, but not where loads go that do.
TEST(ThunkSample, ScansOfTheKernel) {
  constexpr int64_t kLength = 1 << 14;
  Builder b;
  const VarId values = b.globalArray("values", testing::ints(scattered(kLength)));
  lcu::Soac scan = b.scan(b.flat(values), {b.at(values)}, b.sum(ScalarType::Int64));
  b.named(scan, "scan");
  const ExprRef sum = b.at(scan.results[0]);
  lcu::Soac near = b.map(b.flat(values), {b.arena().add(sum, b.at(values, b.at(values)))});
  b.named(near, "near");
  // Half of the elements load at a place of their own, the others where the scan tells.
  const ExprRef own = b.at(values), told = b.at(values, b.op(ScalarOp::Rem, sum, b.num(kLength)));
  lcu::Soac far =
      b.map(b.flat(values),
            {b.arena().select(b.op(ScalarOp::Less, own, b.num(kLength / 2)), b.at(values, own), told)});
  b.named(far, "far");
  lcu::Soac turns =
      b.map(b.flat(values), {loopOf(b, b.op(ScalarOp::Rem, b.at(near.results[0]), b.num(9)), b.num(0),
                                    [&](ExprRef k, ExprRef total) {
                                      return b.arena().add(total, b.op(ScalarOp::Rem, k, b.num(3)));
                                    })});
  b.named(turns, "turns");
  const std::vector<VarId> results = {near.results[0], far.results[0], turns.results[0]};
  b.kernel({scan, near, far, turns}, results);
  for (const VarId v : results) b.result(v);
  const Sampled host = onHost(b);
  const codegen::ThunkSample& sample = host.samples.at(0);
  ASSERT_EQ(sample.positions.size(), 3u);
  EXPECT_EQ(sample.positions[0].number, kLength);
  EXPECT_EQ(sample.positions[1].number, kLength / 2);
  EXPECT_LT(sample.positions[2].number, 0);
  const std::vector<double> ofFar(sample.entered.begin() + 4, sample.entered.begin() + 7);
  EXPECT_EQ(ofFar, std::vector<double>({kLength, kLength / 2, kLength / 2}));
  EXPECT_EQ(sample.entered.back(), 0);  // the loop's, which goes by the scan
  expectEqual(remotely(b).samples.at(0), sample);
}

/// What an epilogue does depends on what was folded of its segment, which other bindings make: a loop of as
/// many turns as the greatest of the numbers that a map makes of the segment's elements.
TEST(ThunkSample, EpiloguesOfWhatTheirSegmentsFold) {
  constexpr int64_t kLength = 1 << 14;
  std::vector<int64_t> offsets = {0};
  while (offsets.back() < kLength)
    offsets.push_back(std::min(kLength, offsets.back() + static_cast<int64_t>(offsets.size()) * 5 % 13));
  const std::vector<int64_t> numbers = scattered(kLength);
  double turns = 0, gathers = 0;
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    int64_t greatest = 3;
    for (int64_t k = offsets[s]; k < offsets[s + 1]; ++k)
      greatest = std::max(greatest, numbers[static_cast<size_t>(k)] % 50);
    turns += static_cast<double>(greatest);
    gathers += 1;
  }
  Builder b;
  const auto [starts, values] = b.globalNested("values", offsets, testing::ints(numbers));
  lcu::Soac first = b.map(b.segmented(starts, values), {b.op(ScalarOp::Rem, b.at(values, b.i()), b.num(50))});
  b.named(first, "first");
  lcu::Soac most = b.reduce(b.segmented(starts, values), {b.at(first.results[0])},
                            b.operation(ScalarOp::Max, Scalar::ofInt(ScalarType::Int64, 3)));
  b.named(most, "most");
  lcu::Soac twice = b.map(b.flat(most.space.segments), {b.arena().mul(b.at(most.results[0]), b.num(2))});
  b.named(twice, "twice");
  const ExprRef half = b.op(ScalarOp::Div, b.at(twice.results[0]), b.num(2));
  const ExprRef looped = loopOf(b, half, b.num(0), [&](ExprRef k, ExprRef sum) {
    return b.arena().add(sum, b.op(ScalarOp::Rem, k, b.num(3)));
  });
  lcu::Soac last =
      b.map(b.flat(most.space.segments), {b.arena().add(looped, b.at(values, b.at(most.results[0])))});
  b.named(last, "last");
  const std::vector<VarId> results = {last.results[0]};
  b.kernel({first, most, twice, last}, results);
  b.result(last.results[0]);
  const Sampled remote = remotely(b);
  const Sampled host = onHost(b);
  ASSERT_FALSE(host.samples.at(0).empty());
  EXPECT_NE(std::find(host.samples[0].entered.begin(), host.samples[0].entered.end(), turns),
            host.samples[0].entered.end());
  ASSERT_EQ(host.samples[0].positions.size(), 1u);
  EXPECT_EQ(host.samples[0].positions[0].number, gathers);
  expectEqual(remote.samples.at(0), host.samples[0]);
}

TEST(ThunkSample, OfRemoteMemoryAreThoseOfTheHosts) {
  int compared = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    kelpie::testing::RandomProgram here(seed, 12, false), there(seed, 12, false);
    const Sampled host = onHost(here.b), remote = remotely(there.b);
    ASSERT_EQ(host.samples.size(), remote.samples.size());
    for (size_t k = 0; k < host.samples.size(); ++k) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", kernel " << k);
      expectEqual(host.samples[k], remote.samples[k]);
      compared += !host.samples[k].empty();
    }
  }
  EXPECT_GT(compared, 50);
}

/// Where the time does not suffice, what was looked at is spread over the launch: the last elements take many
/// times longer than the first. Of `elements` the last takes 65,536 turns.
void expectSpread(int64_t elements, bool gathers) {
  Builder b;
  const VarId table = b.globalArray("table", testing::ints(scattered(64)));
  const ExprRef turns = b.op(ScalarOp::Div, b.arena().mul(b.i(), b.num(65'536)), b.num(elements));
  const ExprRef sum = loopOf(b, turns, b.num(0), [&](ExprRef k, ExprRef value) {
    const ExprRef term = gathers ? b.at(table, b.op(ScalarOp::Rem, k, b.num(64))) : b.arena().mul(k, k);
    return b.arena().add(value, term);
  });
  b.result(b.launch(b.map(b.flat(b.num(elements)), {sum}), "k")[0]);
  const codegen::ThunkSample sample =
      sampled(b, {.computes = false, .sampleTime = std::chrono::seconds(1)}).samples.at(0);
  ASSERT_FALSE(sample.empty());
  const double all = 0.5 * 65'536 * static_cast<double>(elements);
  EXPECT_NEAR(*std::max_element(sample.entered.begin(), sample.entered.end()) / all, 1, 0.3);
  for (const auto& load : sample.positions) EXPECT_NEAR(load.number / all, 1, 0.3);
}

TEST(ThunkSample, OfManyElementsThatAreCutShortAreSpread) {
  expectSpread(1 << 20, false);
  expectSpread(1 << 20, true);
}

/// Of many kernels the last takes most of the time: there is none left for its sample, unless that is known.
TEST(ThunkSample, TimeGoesWhereLaunchesTakeTime) {
  constexpr int64_t kLength = 1 << 13, kKernels = 80;
  Builder b;
  const VarId table = b.globalArray("table", testing::ints(scattered(kLength)));
  for (int64_t k = 0; k < kKernels; ++k)
    b.result(
        b.launch(b.map(b.flat(b.num(512)), {b.at(table, b.at(table, b.i()))}), "k" + std::to_string(k))[0]);
  runtime::EarlierKernels earlier;
  for (int64_t k = 0; k < kKernels; ++k) earlier["k" + std::to_string(k)] = {0, 1};
  earlier["k79"].share = 1;
  const Elsewhere::Options options{.wait = std::chrono::milliseconds(10),
                                   .sampleTime = std::chrono::milliseconds(60)};
  Elsewhere::Options informed = options;
  informed.earlier = &earlier;
  const auto numberAt = [](const codegen::ThunkSample& sample) {
    return sample.positions.empty() ? 0 : sample.positions[0].number;
  };
  EXPECT_LT(numberAt(sampled(b, options).samples.at(kKernels - 1)), 512);
  EXPECT_EQ(numberAt(sampled(b, informed).samples.at(kKernels - 1)), 512);
}

TEST(ThunkSample, OfFewElementsThatAreCutShortAreSpread) {
  expectSpread(1 << 13, false);
  expectSpread(1 << 13, true);
}

}  // namespace
}  // namespace kelpie::fusion
