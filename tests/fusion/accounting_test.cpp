// What is predicted is what is counted: with the sizes of a first run, the bytes of every kernel are those
// that the interp target counts.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <set>
#include <thread>

#include "fusion/fuse.h"
#include "runtime/host_target.h"
#include "tests/fusion/random_program.h"

namespace kelpie::fusion {
namespace {

using kelpie::testing::RandomProgram;

std::vector<lcu::Launch*> launchesOf(lcu::Program& program) {
  std::vector<lcu::Launch*> launches;
  for (lcu::Stmt& stmt : program.entry.body.stmts) {
    if (auto* launch = std::get_if<lcu::Launch>(&stmt.node)) launches.push_back(launch);
  }
  return launches;
}

/// Kernels of one name would share what a profile says.
void nameApart(lcu::Program& program) {
  int number = 0;
  for (lcu::Launch* launch : launchesOf(program)) launch->kernel.name += std::to_string(number++);
}

runtime::RunStatistics statisticsOf(RandomProgram& program) {
  runtime::Executor executor(std::make_unique<runtime::InterpTarget>(0));
  runtime::RunStatistics statistics;
  program.b.run(executor, {}, &statistics);
  return statistics;
}

/// Loads at computed positions may be skipped by a condition: their number is not known in advance.
bool gathers(const lcu::Kernel& kernel) {
  for (const lcu::Soac& soac : kernel.bindings) {
    bool found = false;
    lcu::forEachNode(thunksOf(soac), [&](lcu::ExprRef e) {
      found |= e->kind == lcu::ExprKind::Load && e->operands[0]->kind != lcu::ExprKind::Param;
    });
    if (found) return true;
  }
  return false;
}

TEST(Accounting, PredictedBytesAreThoseCounted) {
  int exact = 0, bounded = 0, written = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    RandomProgram first(seed, 12, false);
    nameApart(first.b.program);
    FusionOptions options;
    options.strategy = Strategy::None;
    const FusionReport unfused = fuse(first.b.program, options);
    for (const runtime::KernelStatistics& kernel : statisticsOf(first).kernels) {
      options.known.kernels[kernel.name] = {
          static_cast<double>(kernel.elements), static_cast<double>(kernel.segments),
          kernel.work.survivors.size() == 1 ? static_cast<double>(kernel.work.survivors[0]) : -1};
    }
    for (Strategy strategy : {Strategy::None, Strategy::Delayed, Strategy::Greedy, Strategy::Ilp}) {
      RandomProgram program(seed, 12, false);
      nameApart(program.b.program);
      options.strategy = strategy;
      const FusionReport report = fuse(program.b.program, options);
      std::map<std::string, runtime::KernelStatistics> counted;
      for (const runtime::KernelStatistics& kernel : statisticsOf(program).kernels)
        counted[kernel.name] = kernel;
      std::map<std::string, const lcu::Kernel*> kernels;
      for (lcu::Launch* launch : launchesOf(program.b.program))
        kernels[launch->kernel.name] = &launch->kernel;
      for (const RegionReport& region : report.regions) {
        for (const ClusterReport& cluster : region.clusters) {
          const auto it = counted.find(cluster.kernel);
          if (it == counted.end() || it->second.launches == 0) continue;
          SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << toString(strategy) << "\n"
                                            << lcu::toString(*kernels.at(cluster.kernel), program.b.program));
          EXPECT_EQ(cluster.bytesWritten, static_cast<double>(it->second.work.bytesWritten));
          ++written;
          const auto read = static_cast<double>(it->second.work.bytesRead);
          if (cluster.bytesExact) {
            EXPECT_EQ(cluster.bytesRead, read);
            ++exact;
          } else {
            EXPECT_GE(cluster.bytesRead, read);  // no loops in these programs
            EXPECT_TRUE(gathers(*kernels.at(cluster.kernel)));
            ++bounded;
          }
        }
      }
    }
  }
  EXPECT_GT(exact, 500);
  EXPECT_GT(bounded, 100);
  EXPECT_GT(written, 1000);
}

/// Evaluates kernels, but does not tell what it counts, as targets of compiled code.
class Uncounted final : public runtime::HostTarget {
 public:
  Uncounted() : HostTarget(0) {}
  std::string name() const override { return "uncounted"; }
  const runtime::LaunchWork* lastWork() const override { return nullptr; }

 protected:
  runtime::Failure execute(const runtime::LaunchRequest& request,
                           std::optional<runtime::DeviceError>& error) override {
    interpret(request, error);
    return std::nullopt;
  }
};

TEST(Accounting, ExtentsTellWhatIsCounted) {
  size_t kernels = 0, filters = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    for (Strategy strategy : {Strategy::None, Strategy::Ilp}) {
      FusionOptions options;
      options.strategy = strategy;
      RandomProgram program(seed, 12, false);
      nameApart(program.b.program);
      fuse(program.b.program, options);
      const std::vector<runtime::KernelStatistics> counted = statisticsOf(program).kernels;
      runtime::Executor executor(std::make_unique<Uncounted>());
      runtime::RunStatistics timed, untimed;
      program.b.run(executor, {nullptr, size_t{1} << 28, true}, &timed);
      program.b.run(executor, {}, &untimed);
      EXPECT_EQ(timed.synchronisations, untimed.synchronisations);  // asking for counts is not the program's
      EXPECT_EQ(timed.fetches, untimed.fetches);
      const std::vector<lcu::Launch*> launches = launchesOf(program.b.program);
      ASSERT_EQ(counted.size(), timed.kernels.size());
      for (size_t k = 0; k < counted.size(); ++k) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << toString(strategy) << "\n"
                                          << lcu::toString(launches[k]->kernel, program.b.program));
        EXPECT_EQ(timed.kernels[k].launches, counted[k].launches);
        if (counted[k].launches == 0) continue;
        EXPECT_GT(timed.kernels[k].seconds, 0);
        EXPECT_EQ(timed.kernels[k].work.elements, counted[k].work.elements);
        EXPECT_EQ(timed.kernels[k].work.bytesWritten, counted[k].work.bytesWritten);
        const auto isOutput = [&](const lcu::Soac& soac) {
          const std::vector<lcu::VarId>& returns = launches[k]->kernel.returns;
          return soac.kind != lcu::SoacKind::Filter ||
                 std::find(returns.begin(), returns.end(), soac.results[0]) != returns.end();
        };
        const auto& bindings = launches[k]->kernel.bindings;
        if (std::all_of(bindings.begin(), bindings.end(), isOutput)) {
          EXPECT_EQ(timed.kernels[k].work.survivors, counted[k].work.survivors);
          filters += counted[k].work.survivors.size();
        }
        if (gathers(launches[k]->kernel)) continue;
        EXPECT_EQ(timed.kernels[k].work.bytesRead, counted[k].work.bytesRead);
        ++kernels;
      }
    }
  }
  EXPECT_GT(kernels, 500);
  EXPECT_GT(filters, 50);
}

/// The same, in memory that the host has to ask for.
class Remote final : public runtime::HostTarget {
 public:
  Remote() : HostTarget(0) {}
  std::string name() const override { return "remote"; }
  bool hostAddressable() const override { return false; }

 protected:
  runtime::Failure execute(const runtime::LaunchRequest& request,
                           std::optional<runtime::DeviceError>& error) override {
    interpret(request, error);
    return std::nullopt;
  }
};

/// Of so few elements, all are in the sample.
TEST(Accounting, SamplesTellWhatIsCounted) {
  int sampled = 0, positions = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    RandomProgram program(seed, 12, false);
    fuse(program.b.program);
    runtime::Executor executor(std::make_unique<Remote>());
    runtime::RunStatistics statistics;
    runtime::RunOptions options;
    options.sampleThunks = true;
    options.sampleTime = std::chrono::minutes(1);
    program.b.run(executor, options, &statistics);
    for (const runtime::KernelStatistics& kernel : statistics.kernels) {
      const codegen::ThunkSample& sample = kernel.sample;
      if (sample.empty() || kernel.launches != 1) continue;
      ASSERT_EQ(sample.entered.size(), kernel.work.entered.size());
      for (size_t b = 0; b < sample.entered.size(); ++b) {
        EXPECT_GE(sample.inStep[b], sample.entered[b]) << "seed " << seed << ", " << kernel.name;
        EXPECT_GE(sample.slowest[b], 0.999 * sample.inStep[b]) << "seed " << seed << ", " << kernel.name;
        EXPECT_GE(sample.ofFour[b], 0.999 * sample.inStep[b]) << "seed " << seed << ", " << kernel.name;
        const auto counted = static_cast<double>(kernel.work.entered[b]);
        if (counted == 0 || sample.entered[b] == 0) continue;  // bindings that need others are not sampled
        EXPECT_EQ(sample.entered[b], counted) << "seed " << seed << ", " << kernel.name;
        ++sampled;
      }
      for (const auto& p : sample.positions) {
        if (p.number < 0) continue;  // it is not known where
        EXPECT_LE(p.granules, p.sectors);
        EXPECT_LE(p.blocks, p.granules);
        EXPECT_LE(p.fresh, p.sectors);
        EXPECT_LE(p.sectors, p.number);
        positions += p.number > 0;
      }
    }
  }
  EXPECT_GT(sampled, 50);
  EXPECT_GT(positions, 50);
}

/// Where every fetch takes as long as a tenth of what a sample may.
class Slow final : public runtime::HostTarget {
 public:
  Slow() : HostTarget(0) {}
  std::string name() const override { return "slow"; }
  bool hostAddressable() const override { return false; }
  runtime::Failure read(std::span<const runtime::HostRead> reads,
                        std::optional<runtime::DeviceError>& error) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return HostTarget::read(reads, error);
  }

 protected:
  runtime::Failure execute(const runtime::LaunchRequest& request,
                           std::optional<runtime::DeviceError>& error) override {
    interpret(request, error);
    return std::nullopt;
  }
};

/// The time suffices for a few groups: they stand for all elements.
TEST(Accounting, SamplesThatAreCutShortCountInFull) {
  constexpr int64_t kElements = 1 << 17;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < kElements; ++i) places.push_back(i * 77773 % kElements);
  testing::Builder b;
  const lcu::VarId next = b.globalArray("next", testing::ints(places));
  const auto gather = [&] { return b.map(b.flat(next), {b.at(next, b.at(next))}); };
  b.result(b.launch(gather(), "gather")[0]);
  runtime::Executor executor(std::make_unique<Slow>());
  runtime::RunStatistics statistics;
  runtime::RunOptions options;
  options.sampleThunks = true;
  options.sampleTime = std::chrono::minutes(1);
  b.run(executor, options, &statistics);
  const codegen::ThunkSample& sample = statistics.kernels.at(0).sample;
  ASSERT_FALSE(sample.empty());
  EXPECT_NEAR(sample.entered[0], kElements, 1);
  ASSERT_EQ(sample.positions.size(), 1u);
  EXPECT_NEAR(sample.positions[0].number, kElements, 1);
  EXPECT_NEAR(sample.positions[0].visited / kElements, 8 * kElements, 4e5);
}

/// Works at many places at the same time.
class Scattered final : public runtime::HostTarget {
 public:
  explicit Scattered(codegen::Streams streams) : HostTarget(0), streams_(streams) {}
  std::string name() const override { return "scattered"; }
  codegen::Streams streams(const runtime::LaunchRequest& /*request*/) override { return streams_; }

 protected:
  runtime::Failure execute(const runtime::LaunchRequest& request,
                           std::optional<runtime::DeviceError>& error) override {
    interpret(request, error);
    return std::nullopt;
  }

 private:
  codegen::Streams streams_;
};

codegen::ThunkSample sampleOf(testing::Builder& b, codegen::Streams streams) {
  runtime::Executor executor(std::make_unique<Scattered>(streams));
  runtime::RunStatistics statistics;
  runtime::RunOptions options;
  options.sampleThunks = true;
  options.sampleTime = std::chrono::minutes(1);
  b.run(executor, options, &statistics);
  return statistics.kernels.at(0).sample;
}

/// Of table[places[i]]; or, if nothing is kept, of a filter that would pass these on.
codegen::ThunkSample sampleOfGathers(const std::vector<int64_t>& places, int64_t streams, bool kept = true) {
  testing::Builder b;
  const lcu::VarId table = b.globalArray("table", testing::ints(places));
  const lcu::ExprRef gathered = b.at(table, b.at(table));
  b.result(b.launch(kept ? b.map(b.flat(table), {gathered})
                         : b.filter(b.flat(table), {gathered}, b.arena().boolean(false)),
                    "gather")
               .back());
  return sampleOf(b, {streams});
}

/// A map that reads another one of its kernel, which is evaluated for it.
TEST(Accounting, SamplesEvaluateTheMapsOfTheKernelThatThunksRead) {
  constexpr int64_t kElements = 1 << 14;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < kElements; ++i) places.push_back(i * 7919 % kElements);
  testing::Builder b;
  const lcu::VarId table = b.globalArray("table", testing::ints(places));
  lcu::Soac first = b.map(b.flat(table), {b.op(ScalarOp::Sub, b.num(kElements - 1), b.at(table))});
  b.named(first, "first");
  lcu::Soac second = b.map(b.flat(table), {b.at(table, b.at(first.results[0]))});
  b.named(second, "second");
  const std::vector<lcu::VarId> results = {first.results[0], second.results[0]};
  b.kernel({first, second}, results);
  for (lcu::VarId v : results) b.result(v);
  const codegen::ThunkSample sample = sampleOf(b, {});
  ASSERT_EQ(sample.positions.size(), 1u);
  EXPECT_NEAR(sample.positions[0].number, kElements, 1);
  EXPECT_GT(sample.positions[0].sectors, 0.9 * kElements) << "places that lie apart";
}

/// Neighbours of a row come to the same places again, if they come soon.
TEST(Accounting, SamplesLookAtWhatALaunchWorksOnAtATime) {
  constexpr int64_t kElements = 1 << 23, kSpan = 4096;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < kElements; ++i)
    places.push_back(std::min(kElements - 1, i + (i * 2654435761 >> 12) % kSpan));
  const auto fresh = [&](int64_t streams) {
    testing::Builder b;
    const lcu::VarId at = b.globalArray("places", testing::ints(places)),
                     table = b.globalArray("table", testing::ints(places));
    b.result(b.launch(b.map(b.flat(at), {b.at(table, b.at(at))}), "gather")[0]);
    const codegen::ThunkSample sample = sampleOf(b, {streams});
    return sample.positions.at(0).fresh / sample.positions.at(0).sectors;
  };
  const double ofOne = fresh(1);
  EXPECT_NEAR(ofOne, 0.125, 0.03);  // eight to a piece
  EXPECT_GT(fresh(1024), 2 * ofOne);
}

/// Of the gathers table[places[i]].
codegen::ThunkSample::Positions positionsOf(int64_t elements, codegen::Streams streams,
                                            const std::function<int64_t(int64_t)>& place) {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < elements; ++i) positions.push_back(place(i));
  testing::Builder b;
  const lcu::VarId places = b.globalArray("places", testing::ints(positions)),
                   table = b.globalArray("table", testing::ints(positions));
  b.result(b.launch(b.map(b.flat(places), {b.at(table, b.at(places))}), "gather")[0]);
  return sampleOf(b, streams).positions.at(0);
}

/// Share of the pieces loaded that no element has visited shortly before, and bytes visited.
std::pair<double, double> freshAndVisited(int64_t elements, const std::function<int64_t(int64_t)>& place) {
  const auto found = positionsOf(elements, {}, place);
  return {found.fresh / found.sectors, found.visited / found.number};
}

/// What an element gathers ahead, another one loads in order soon: the array comes from memory once, which is
/// what is loaded in order. (If that other one comes too late, it counts again.)
TEST(Accounting, SamplesSeeThatStencilsLoadWhatIsLoadedInOrder) {
  constexpr int64_t kElements = 1 << 23;
  const auto fresh = [&](int64_t row) {
    std::vector<int64_t> values(static_cast<size_t>(kElements), 1);
    testing::Builder b;
    const lcu::VarId table = b.globalArray("table", testing::ints(values));
    const lcu::ExprRef below = b.op(ScalarOp::Min, b.arena().add(b.i(), b.num(row)), b.num(kElements - 1));
    b.result(b.launch(b.map(b.flat(table), {b.arena().add(b.at(table), b.at(table, below))}), "step")[0]);
    const codegen::ThunkSample sample = sampleOf(b, {});
    return sample.positions.at(0).fresh / sample.positions.at(0).sectors;
  };
  EXPECT_LT(fresh(1 << 12), 0.05);
  EXPECT_GT(fresh(1 << 22), 0.9);
}

/// Places that no element comes to twice soon, and that all lie in a small part of the table: few draws of
/// them look as if they came from anywhere.
TEST(Accounting, SamplesSeeThatAPartOfATableIsAllThereIs) {
  constexpr int64_t kPart = 80'000;
  const auto [fresh, visited] = freshAndVisited(1 << 22, [](int64_t i) {
    const int64_t h = (i * 2654435769) & 0xffffffff;
    return (h ^ h >> 13) % kPart;
  });
  EXPECT_LT(fresh, 0.02);
  EXPECT_NEAR(visited, 8 * kPart, 8 * kPart / 10);
}

/// Eight columns of 16,384 rows lie in the same pieces.
TEST(Accounting, SamplesSeeThatColumnsComeBackToTheirRows) {
  constexpr int64_t kRows = 1 << 14, kColumns = 1 << 8;
  const auto [fresh, visited] =
      freshAndVisited(kRows * kColumns, [](int64_t i) { return i % kRows * kColumns + i / kRows; });
  EXPECT_NEAR(fresh, 0.125, 0.03);
  EXPECT_NEAR(visited, 8 * kRows * kColumns, 2 * kRows * kColumns);
}

/// A lattice that comes back to a piece after a long while only.
TEST(Accounting, SamplesSeeThatALatticeDoesNotComeBack) {
  constexpr int64_t kElements = 1 << 23;
  const auto place = [](int64_t i) { return i * 3539 % kElements; };
  const auto [fresh, visited] = freshAndVisited(kElements, place);
  std::set<int64_t> before;
  double last = 0;  // of as many as a cache remembers
  constexpr int64_t kWindow = 1 << 19;
  for (int64_t i = 0; i < kWindow; ++i) last += before.insert(place(i) / 8).second && i >= kWindow / 2;
  EXPECT_NEAR(fresh, 2 * last / kWindow, 0.1);
}

/// Where a multiprocessor works on tiles of so many neighbours, eight at a time: pieces that its cache does
/// not hold, for each load.
double missed(int64_t elements, int64_t tile, const std::function<int64_t(int64_t)>& place) {
  const auto found = positionsOf(elements, {1, 1, tile, 8, 132}, place);
  EXPECT_GT(found.simulated, 0);
  return found.missed / found.simulated;
}

TEST(Accounting, SamplesSeeWhatTheCacheOfACoreHolds) {
  constexpr int64_t kElements = 1 << 22;
  const auto anywhere = [](int64_t size) {
    return [size](int64_t i) { return (i * 2654435769 >> 7) % size; };
  };
  EXPECT_LT(missed(kElements, 256, anywhere(1 << 10)), 0.05) << "8 kB";
  EXPECT_GT(missed(kElements, 256, anywhere(1 << 16)), 0.8) << "512 kB, as lines hold a sector each";
  EXPECT_GT(missed(kElements, 256, anywhere(kElements)), 0.98);
}

/// Neighbours of a row are in the tile, if it is longer than the row.
TEST(Accounting, SamplesSeeWhatATileLoadsAgain) {
  constexpr int64_t kElements = 1 << 22, kRow = 256;
  const auto row = [](int64_t i) { return i % 2 == 0 ? i : std::min(i + kRow, kElements - 1); };
  EXPECT_NEAR(missed(kElements, 4096, row), 0.25, 0.03);
  EXPECT_NEAR(missed(kElements, 256, row), 0.5, 0.03);
}

/// All different, anywhere, and by fours.
TEST(Accounting, SamplesSeeWhetherWritersMeet) {
  constexpr int64_t kElements = 1 << 20;
  const auto writes = [&](const std::function<int64_t(int64_t)>& place) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < kElements; ++i) positions.push_back(place(i));
    testing::Builder b;
    const lcu::VarId places = b.globalArray("places", testing::ints(positions));
    b.result(b.launch(b.permute(b.flat(places), {b.i()}, b.at(places), b.num(kElements),
                                {Scalar::ofInt(ScalarType::Int64, -1)}),
                      "scatter")[0]);
    return sampleOf(b, {}).positions.back();
  };
  const auto scattered = [](int64_t i) {
    return static_cast<int64_t>(static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15u >> 20);
  };
  const auto distinct = writes([](int64_t i) { return i * 613 % kElements; });
  EXPECT_GT(distinct.seen, 0);
  EXPECT_EQ(distinct.met, 0);
  const auto anywhere = writes([&](int64_t i) {
    const int64_t h = scattered(i);
    return (h ^ h >> 17 ^ i * i) % kElements;
  });
  const double places =
      kElements * (1 - std::exp(-anywhere.seen / kElements));  // that so many fill at random
  EXPECT_NEAR(anywhere.met, anywhere.seen - places, places / 50);
  const auto together = writes([](int64_t i) { return i / 4; });
  EXPECT_NEAR(together.met / together.seen, 0.75, 0.01);
}

TEST(Accounting, SamplesOfWhatIsNeverEvaluatedAreNumbers) {
  std::vector<int64_t> places(100'000, 0);
  const codegen::ThunkSample sample = sampleOfGathers(places, 1, false);
  ASSERT_EQ(sample.positions.size(), 1u);
  EXPECT_EQ(sample.positions[0].number, 0);
  EXPECT_EQ(sample.positions[0].fresh, 0);
  EXPECT_EQ(sample.positions[0].visited, 0);
}

}  // namespace
}  // namespace kelpie::fusion
