// The scale of the fusion solver: random regions of growing size, and the regions of NESL programs, solved
// with Kelpie's formulation and with the textbook's side by side. Writes one line of CSV for each region.
//
//   fusion-solver [--only-ours] random [largest number of nodes] [regions of each size]
//   fusion-solver [--only-ours] nesl FILE...
//   fusion-solver [--only-ours] stated [number of nodes] [problems of each shape]
//
// Both see the same dependences, index spaces and shared inputs. The objectives differ (modelled time there,
// counted weights here), so what is compared is how long it takes to prove the optimum. `counted` is the time
// that the solver counts (fusion/work_time.h), beside the seconds that it takes. `stated` problems come from
// no program: they have shapes of regions, and are denser.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "driver/pipeline.h"
#include "frontend/session.h"
#include "fusion/fuse.h"
#include "fusion/solve_greedy.h"
#include "fusion/solve_ilp.h"
#include "fusion/textbook.h"
#include "ir/deep_stack.h"
#include "tests/fusion/random_program.h"
#include "tests/fusion/shaped_problem.h"

namespace kelpie {
namespace {

using namespace fusion;

constexpr double kTextbookSeconds = 10;
constexpr int kTextbookNodes = 110;  ///< beyond, it only takes longer to state the program that is not solved

/// The same region in the textbook's terms. Pairs that need a third node with them are taken as free.
TextbookProblem textbookOf(const PartitionProblem& problem, const PairTable& pairs) {
  TextbookProblem result;
  result.nodes = problem.nodes;
  // The formulation numbers nodes along the edges.
  std::vector<int> at(problem.nodes);
  for (int v = 0; v < problem.nodes; ++v) at[v] = pairs.rank(v);
  for (const PartitionEdge& e : problem.edges) result.edges.push_back({at[e.from], at[e.to], e.fusible});
  result.makesArray.assign(problem.nodes, false);
  for (const Store& s : problem.stores) result.makesArray[at[s.producer]] = true;
  for (const Access& a : problem.accesses) {
    std::vector<int> readers;
    for (int r : a.readers) readers.push_back(at[r]);
    if (readers.size() > 1) result.sharedInputs.push_back(readers);
  }
  for (auto [a, b] : problem.forbidden)
    result.never.emplace_back(std::min(at[a], at[b]), std::max(at[a], at[b]));
  return result;
}

bool onlyOurs = false;

void measure(const std::string& source, const PartitionProblem& problem, const PairTable& pairs) {
  const double seconds = problem.nodes <= 100 ? 5 : problem.nodes <= 300 ? 28 : 36;
  const Partition ours = solveIlp(problem, pairs, {seconds, true, true});
  const double none = costOf(problem, separate(problem.nodes));
  const double greedy = costOf(problem, solveGreedy(problem, pairs));
  int clusters = 0;
  for (int c : ours.cluster) clusters = std::max(clusters, c + 1);
  std::string textbook = ",,,";
  if (problem.nodes <= kTextbookNodes && !onlyOurs) {
    const TextbookSolution t = solveTextbook(textbookOf(problem, pairs), kTextbookSeconds);
    int count = 0;
    for (int c : t.cluster) count = std::max(count, c + 1);
    textbook = fmt::format("{:.4f},{},{},{:.0f}", t.seconds, t.optimal ? 1 : 0, count, t.objective);
  }
  fmt::print("{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.5f},{:.4f},{:.4f},{},{},{},{},{}\n", source, problem.nodes,
             none, greedy, ours.cost, ours.bound, ours.gap(), ours.seconds, ours.counted, clusters,
             ours.columns, ours.rows, ours.cuts, textbook);
  std::fflush(stdout);
}

void randomRegions(int largest, int regions) {
  for (int statements : {5, 10, 15, 20, 25, 30, 40, 50, 70, 100, 150, 200, 300, 500, 1000, 2000}) {
    if (statements > largest) return;
    const int rounds = statements > 300 ? 1 : statements > 100 ? std::min(regions, 3) : regions;
    for (int seed = 0; seed < rounds; ++seed) {
      testing::RandomProgram program(static_cast<uint32_t>(seed), statements, false);
      FusionOptions options;
      options.strategy = Strategy::None;
      options.observe = [&](const RegionReport&, const PartitionProblem& problem, const PairTable& pairs) {
        measure("random", problem, pairs);
      };
      // Only `none` is solved here, but the passes before it are those of the other strategies.
      options.prepare = true;
      fuse(program.b.program, options);
    }
  }
}

void statedProblems(int nodes, int problems) {
  for (const RegionShape shape : kRegionShapes) {
    for (int seed = 0; seed < problems; ++seed) {
      const PartitionProblem problem = ShapedProblem(shape, nodes, static_cast<uint32_t>(seed)).problem();
      measure(toString(shape), problem, PairTable(problem));
    }
  }
}

int programRegions(int count, char** files) {
  for (int k = 0; k < count; ++k) {
    SourceManager sources;
    std::string problem;
    const std::optional<uint32_t> file = sources.load(files[k], problem);
    if (!file) {
      fmt::print(stderr, "{}: {}\n", files[k], problem);
      return 1;
    }
    const std::string name = std::filesystem::path(files[k]).stem().string();
    driver::PipelineOptions passes;
    passes.fusion.strategy = Strategy::None;
    passes.fusion.prepare = true;
    passes.fusion.observe = [&](const RegionReport&, const PartitionProblem& region, const PairTable& pairs) {
      measure(name, region, pairs);
    };
    const driver::Pipeline pipeline(sources, passes);
    Session session(sources, {Widths(), ""});
    for (const FormResult& form : pipeline.analyse(session, *file)) {
      if (!form.program) continue;
      lcu::Program program = pipeline.flatten(*form.program);
      pipeline.fuse(program);
    }
  }
  return 0;
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--only-ours") {
    onlyOurs = true;
    ++argv;
    --argc;
  }
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode != "random" && mode != "stated" && !(mode == "nesl" && argc > 2)) {
    fmt::print(stderr,
               "usage: fusion-solver [--only-ours] random [nodes] [regions] | stated [nodes] [problems] | "
               "nesl FILE...\n");
    return 2;
  }
  fmt::print(
      "source,nodes,none_us,greedy_us,ilp_us,bound_us,gap,seconds,counted,clusters,columns,rows,cuts,"
      "textbook_"
      "seconds,"
      "textbook_optimal,textbook_clusters,textbook_objective\n");
  if (mode == "nesl") return programRegions(argc - 2, argv + 2);
  if (mode == "stated") {
    statedProblems(argc > 2 ? std::atoi(argv[2]) : 100, argc > 3 ? std::atoi(argv[3]) : 10);
    return 0;
  }
  randomRegions(argc > 2 ? std::atoi(argv[2]) : 300, argc > 3 ? std::atoi(argv[3]) : 5);
  return 0;
}

}  // namespace
}  // namespace kelpie

int main(int argc, char** argv) {
  int status = 1;
  kelpie::runOnDeepStack([&] { status = kelpie::run(argc, argv); });
  return status;
}
