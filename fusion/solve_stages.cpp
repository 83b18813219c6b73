#include "fusion/solve_stages.h"

#include <glpk.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "fusion/counted_simplex.h"
#include "fusion/link_bound.h"
#include "fusion/lower_bound.h"
#include "fusion/stage_program.h"

namespace kelpie::fusion {
namespace {

constexpr int kMostStages = 20;
constexpr int kMostNodes = 600;
constexpr int kMostRows = 50'000;
constexpr int kMostPrograms = 40'000;   ///< relaxations of one number of stages
constexpr int kIdleRounds = 3;          ///< of cuts that hardly raise the bound: there are no more
constexpr double kWorthARound = 0.01;   ///< of what is missing
constexpr int kRowsToDive = 2'000;      ///< smaller programs are searched at once
constexpr double kShareOfLinks = 0.2;   ///< of the time
constexpr double kShareOfDive = 0.3;    ///< of the time
constexpr double kShareOfStages = 0.5;  ///< of the time that is left
constexpr double kTolerance = 1e-10;    ///< of objectives
constexpr double kWhole = 1e-5;         ///< further from 0 and 1 is between them
constexpr double kNoPartition = 1e300;  ///< the bound where there is none

/// Whether all clusters cost the same launch, whatever is in them.
bool launchesAlike(const PartitionProblem& problem) {
  return std::all_of(problem.launch.begin(), problem.launch.end(),
                     [&](double launch) { return launch == problem.launch[0]; });
}

/// A partition found by following the relaxation: of the variables that are nearly decided a share is, the
/// relaxation is solved again, and so on. Nothing if that does not end well.
class Dive {
 public:
  explicit Dive(const StageProgram& program) : program_(program), lp_(glp_create_prob(), glp_delete_prob) {
    glp_copy_prob(lp_.get(), program.lp(), GLP_OFF);
  }

  std::optional<Assignment> run(const Deadline& deadline) {
    const glp_smcp simplex = silentSimplex(GLP_DUALP);
    while (!deadline.passed()) {
      if (solveSimplex(lp_.get(), simplex, deadline) != 0) return std::nullopt;
      if (glp_get_status(lp_.get()) != GLP_OPT) {
        if (!stepBack()) return std::nullopt;
      } else if (!program_.addBrokenRules(lp_.get()) && !decideMore()) {
        return program_.partition(lp_.get(), glp_get_col_prim);
      }
    }
    return std::nullopt;
  }

 private:
  struct Decision {
    int column;
    double value;
  };

  void decide(const std::vector<Decision>& decisions) {
    for (const Decision& d : decisions) glp_set_col_bnds(lp_.get(), d.column, GLP_FX, d.value, d.value);
    last_ = decisions;
  }

  /// False if all are whole.
  bool decideMore() {
    constexpr double kShare = 0.1;
    struct Open {
      double distance;
      Decision nearest;
    };
    std::vector<Open> open;
    for (int column : program_.variables()) {
      const double value = glp_get_col_prim(lp_.get(), column), whole = std::round(value);
      if (std::abs(value - whole) > kWhole) open.push_back({std::abs(value - whole), {column, whole}});
    }
    if (open.empty()) return false;
    std::stable_sort(open.begin(), open.end(),
                     [](const Open& a, const Open& b) { return a.distance < b.distance; });
    const double share = kShare * static_cast<double>(open.size());
    open.resize(std::max<size_t>(1, static_cast<size_t>(share)));
    std::vector<Decision> decisions;
    for (const Open& o : open) decisions.push_back(o.nearest);
    decide(decisions);
    return true;
  }

  /// Of the last decisions only the first; and if it was alone, the other way. False if that is no way
  /// either.
  bool stepBack() {
    if (last_.empty()) return false;
    for (const Decision& d : last_) glp_set_col_bnds(lp_.get(), d.column, GLP_DB, 0, 1);
    const bool alone = last_.size() == 1;
    const Decision first = last_[0];
    decide({{first.column, alone ? 1 - first.value : first.value}});
    if (alone) last_.clear();
    return true;
  }

  const StageProgram& program_;
  std::unique_ptr<glp_prob, void (*)(glp_prob*)> lp_;
  std::vector<Decision> last_;
};

/// What GLPK's search calls back with.
struct StageSearch {
  const StageProgram& program;
  double least;                                  ///< objectives, as what follows: there is nothing below
  double below;                                  ///< and nothing else is looked for
  double bound;                                  ///< of all that is open
  std::optional<std::vector<double>> incumbent;  ///< what it begins with: others need be no better
  CountedTree counted;
  int programsLeft = kMostPrograms;

  bool nothingLeft() const { return bound >= below; }
  void at(glp_tree* tree) {
    if (const int best = glp_ios_best_node(tree); best > 0) {
      const double open = glp_ios_node_bound(tree, best);
      if (std::isfinite(open) && std::abs(open) < kNoPartition) bound = std::max(bound, open);
      if (nothingLeft()) return glp_ios_terminate(tree);
    }
    if (!counted.goesOn(tree)) return;
    if (glp_ios_reason(tree) == GLP_IBRANCH && --programsLeft < 0) return glp_ios_terminate(tree);
    if (glp_ios_reason(tree) == GLP_IHEUR && incumbent) {
      glp_ios_heur_sol(tree, incumbent->data());
      incumbent.reset();
    }
    if (glp_ios_reason(tree) == GLP_IROWGEN) program.addBrokenRules(glp_ios_get_prob(tree));
    if (glp_prob* lp = glp_ios_get_prob(tree); glp_mip_status(lp) == GLP_FEAS && glp_mip_obj_val(lp) <= least)
      glp_ios_terminate(tree);
  }
};

enum class Relaxed { Optimal, NoPartition, NoAnswer };

Relaxed relax(glp_prob* lp, const Deadline& deadline) {
  glp_smcp simplex = silentSimplex();
  // The presolver's bases make the search shorter; but where it does not see by itself that nothing is
  // feasible, its answer is undefined.
  for (const int presolve : {GLP_ON, GLP_OFF}) {
    simplex.presolve = presolve;
    const int status = solveSimplex(lp, simplex, deadline);
    if (status == GLP_ENOPFS || (status == 0 && glp_get_status(lp) == GLP_NOFEAS))
      return Relaxed::NoPartition;
    if (status == 0 && glp_get_status(lp) == GLP_OPT) return Relaxed::Optimal;
  }
  return Relaxed::NoAnswer;
}

class StageSolver {
 public:
  StageSolver(const PartitionProblem& problem, const PairTable& pairs, const Assignment& incumbent,
              double lower, const Deadline& deadline)
      : problem_(problem),
        pairs_(pairs),
        lower_(lower),
        cost_(costOf(problem, incumbent)),
        result_{incumbent, 0, lower} {
    if (problem.nodes > kMostNodes) return;
    always_ = linkBound(problem, pairs, Deadline(kShareOfLinks * deadline.secondsLeft()));
    exclusions_ = exclusions(problem, pairs);
  }

  StagedPartition run(const Deadline& deadline) {
    if (problem_.nodes > kMostNodes) return result_;
    // Where that cannot prove the best, it may still find it.
    const int clusters = 1 + *std::max_element(result_.cluster.begin(), result_.cluster.end());
    const int most = nothingLeft(kMostStages + 1) ? kMostStages : std::min(kMostStages, clusters);
    result_.fewest = std::max(StageWindows(problem_, pairs_, problem_.nodes).fewest(),
                              leastCosts(problem_, pairs_).clusters);
    double open = kNoPartition;  // the least bound of a number of stages of which something is left
    int stages = result_.fewest;
    for (; !nothingLeft(stages) && stages <= most && !deadline.passed(); ++stages) {
      const StageProgram program(problem_, pairs_, exclusions_, stages);
      if (program.rows() > kMostRows) break;
      // What is not finished for this number is no bound for more stages, of which little is known but their
      // launches: so all numbers get some time.
      const double share = nothingLeft(stages + 1) || stages == most ? 1 : kShareOfStages;
      const double here = std::max(boundOf(stages), solve(program, Deadline(share * deadline.secondsLeft())));
      if (here >= enough()) {
        if (open == kNoPartition) result_.fewest = stages + 1;
      } else {
        open = std::min(open, here);
      }
    }
    result_.bound = std::max(lower_, std::min(open, boundOf(stages)));
    return result_;
  }

 private:
  double boundOf(int stages) const {
    return stages > problem_.nodes ? kNoPartition : stages * problem_.launch[0] + always_;
  }
  /// With so many clusters, or more.
  bool nothingLeft(int stages) const { return std::max(lower_, boundOf(stages)) >= enough(); }
  double enough() const { return cost_ - negligible(cost_, problem_.nodes); }

  /// False if it is illegal: GLPK keeps rules but for its tolerance.
  bool offer(Assignment cluster) {
    if (illegal(problem_, cluster)) return false;
    const double cost = costOf(problem_, cluster);
    if (cost >= cost_) return true;
    cost_ = cost;
    result_.cluster = std::move(cluster);
    return true;
  }

  /// Adds to a relaxed program what its relaxation breaks, as long as that raises the bound, which is
  /// returned.
  double tighten(const StageProgram& program, const Deadline& deadline) const {
    glp_prob* lp = program.lp();
    const glp_smcp simplex = silentSimplex(GLP_DUALP);
    double bound = program.cost(glp_get_obj_val(lp));
    for (int idle = 0; idle < kIdleRounds && bound < enough() && !deadline.passed();) {
      const bool requirements = program.addBrokenRules(lp);
      if (!program.addBrokenCuts(lp) && !requirements) break;
      if (solveSimplex(lp, simplex, deadline) != 0) break;  // what it came to may be no bound
      if (glp_get_status(lp) == GLP_NOFEAS) return kNoPartition;
      if (glp_get_status(lp) != GLP_OPT) break;
      const double before = bound;
      bound = std::max(bound, program.cost(glp_get_obj_val(lp)));
      idle = bound - before < kWorthARound * (enough() - before) ? idle + 1 : 0;
    }
    return bound;
  }

  /// Looks for what is cheaper than the best known; what all that costs at least that is not known then:
  /// `kNoPartition` where nothing is left.
  double solve(const StageProgram& program, const Deadline& deadline) {
    if (!program.possible()) return kNoPartition;
    if (program.variables().empty()) {  // every node has one stage: GLPK wants something to decide
      const bool legal = offer(program.partition(program.lp(), glp_get_col_prim));
      return legal ? kNoPartition : 0;
    }
    glp_term_out(GLP_OFF);
    const Relaxed relaxed = relax(program.lp(), deadline);
    if (relaxed == Relaxed::NoPartition) return kNoPartition;
    if (relaxed == Relaxed::NoAnswer) return 0;
    const double root = tighten(program, deadline);
    if (root >= enough()) return kNoPartition;
    if (program.rows() > kRowsToDive) {
      const Deadline mine(kShareOfDive * deadline.secondsLeft());
      if (std::optional<Assignment> found = Dive(program).run(mine)) offer(std::move(*found));
      if (std::max(root, lower_) >= enough()) return kNoPartition;
    }
    StageSearch stages{program,
                       program.objective(lower_ + negligible(lower_, problem_.nodes)),
                       program.objective(enough()),
                       program.objective(std::max(root, lower_)),
                       program.solution(result_.cluster),
                       CountedTree(deadline)};
    glp_iocp search;
    glp_init_iocp(&search);
    search.msg_lev = GLP_MSG_OFF;
    search.br_tech = GLP_BR_DTH;
    search.bt_tech = GLP_BT_BLB;
    search.cov_cuts = GLP_ON;
    search.tol_obj = kTolerance;
    search.tm_lim = deadline.millisecondsLeft();
    search.cb_info = &stages;
    search.cb_func = [](glp_tree* tree, void* info) { static_cast<StageSearch*>(info)->at(tree); };
    const int status = glp_intopt(program.lp(), &search);
    const int found = glp_mip_status(program.lp());
    const bool legal =
        (found != GLP_OPT && found != GLP_FEAS) || offer(program.partition(program.lp(), glp_mip_col_val));
    if (!legal) return root;  // others that cost as much may be hidden behind it
    const bool complete = (status == 0 && (found == GLP_OPT || found == GLP_NOFEAS)) || stages.nothingLeft();
    return complete ? kNoPartition : program.cost(stages.bound);
  }

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  std::vector<std::vector<int>> exclusions_;
  const double lower_;  ///< nothing costs less
  double always_ = 0;   ///< what every partition pays beside launches
  double cost_;         ///< of the best known
  StagedPartition result_;
};

}  // namespace

StagedPartition solveStages(const PartitionProblem& problem, const PairTable& pairs,
                            const Assignment& incumbent, double lower, const Deadline& deadline) {
  if (problem.nodes == 0 || !launchesAlike(problem)) return {incumbent, 0, 0};
  return StageSolver(problem, pairs, incumbent, lower, deadline).run(deadline);
}

}  // namespace kelpie::fusion
