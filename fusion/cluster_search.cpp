#include "fusion/cluster_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include "fusion/cluster_relaxation.h"
#include "fusion/contraction.h"

namespace kelpie::fusion {
namespace {

constexpr double kTolerance = 1e-9;
constexpr size_t kMostCandidates = 2'000;
constexpr int kProgramsToFind = 100,
              kProgramsToProve = 20'000;  ///< relaxations in a search over known clusters
constexpr int kMostSlowRounds = 4;        ///< of cuts that hardly raise the bound
constexpr double kSlow = 0.02;            ///< of what is left to the incumbent

using Clusters = std::vector<std::vector<int>>;

Clusters clustersOf(const Assignment& cluster) {
  Clusters result;
  for (size_t v = 0; v < cluster.size(); ++v) {
    if (cluster[v] >= static_cast<int>(result.size())) result.resize(cluster[v] + 1);
    result[cluster[v]].push_back(static_cast<int>(v));
  }
  return result;
}

/// A part of the search: some nodes merged, some pairs kept apart.
struct Branch {
  PartitionProblem problem;
  Assignment group;            ///< of each node of the whole problem
  Clusters clusters;           ///< worth knowing
  std::vector<OrderCut> cuts;  ///< worth knowing
  double bound = 0;
  int number = 0;
};

/// Two nodes as one, with whoever must be with them; empty if that cannot be.
Assignment mergedWithAll(const PartitionProblem& problem, const PairTable& pairs, int a, int b) {
  std::vector<int> together{a, b};
  const auto in = [&](int v) { return std::find(together.begin(), together.end(), v) != together.end(); };
  const auto reaches = [&](int v, int w) { return pairs.reaches(v, w); };
  for (size_t known = 0; known < together.size();) {
    known = together.size();
    for (int w = 0; w < problem.nodes; ++w) {
      const bool between =
          std::any_of(together.begin(), together.end(), [&](int v) { return reaches(v, w); }) &&
          std::any_of(together.begin(), together.end(), [&](int v) { return reaches(w, v); });
      if (between && !in(w)) together.push_back(w);
    }
    for (const Requirement& r : problem.requirements) {
      if (in(r.a) && in(r.b) && !in(r.third)) together.push_back(r.third);
    }
  }
  Assignment group = separate(problem.nodes);
  double weight = 0;
  for (int u : together) {
    weight += problem.weight[u];
    group[u] = a;
    for (int v : together) {
      if (u != v && !pairs.canShare(u, v)) return {};
    }
  }
  if (weight > problem.budget) return {};
  return normalised(group);
}

class Search {
 public:
  Search(const PartitionProblem& problem, const Assignment& incumbent, double lower, double seconds)
      : problem_(problem), deadline_(seconds), cost_(costOf(problem, incumbent)) {
    result_.cluster = incumbent;
    result_.bound = lower;
  }

  ClusterSearchResult run() {
    glp_term_out(GLP_OFF);
    open_.push({problem_, separate(problem_.nodes), clustersOf(result_.cluster), {}, result_.bound, 0});
    while (!open_.empty() && !deadline_.passed()) {
      Branch branch = open_.top();
      open_.pop();
      if (!worse(branch.bound)) solve(std::move(branch));
      const double waiting = open_.empty() ? cost_ : open_.top().bound;
      result_.bound = std::max(result_.bound, std::min(unfinished_, waiting));
    }
    result_.bound = std::min(result_.bound, cost_);
    return result_;
  }

 private:
  /// Not better than what is known.
  bool worse(double bound) const { return cost_ - bound <= kTolerance * (1 + cost_); }

  void offer(const Branch& branch, const std::optional<Assignment>& cluster);
  void solve(Branch branch);
  bool raiseBound(Branch& branch, ClusterRelaxation& relaxation);
  double solveOverKnown(const Branch& branch, const ClusterRelaxation& relaxation, int mostPrograms);
  void split(Branch branch, const PairTable& pairs, const ClusterRelaxation& relaxation,
             const Together& pair);

  const PartitionProblem& problem_;
  const Deadline deadline_;
  double cost_;  ///< of the incumbent
  ClusterSearchResult result_;
  double unfinished_ = 1e300;  ///< the least bound of branches that time did not suffice for
  int branches_ = 0;
  struct ByBound {
    bool operator()(const Branch& a, const Branch& b) const {
      return std::pair(a.bound, a.number) > std::pair(b.bound, b.number);
    }
  };
  std::priority_queue<Branch, std::vector<Branch>, ByBound> open_;
};

/// A partition of the branch: better than the incumbent?
void Search::offer(const Branch& branch, const std::optional<Assignment>& cluster) {
  if (!cluster) return;
  Assignment whole(problem_.nodes);
  for (int v = 0; v < problem_.nodes; ++v) whole[v] = (*cluster)[branch.group[v]];
  whole = normalised(whole);
  const double cost = costOf(problem_, whole);
  if (worse(cost) || illegal(problem_, whole)) return;
  cost_ = cost;
  result_.cluster = std::move(whole);
}

/// Solves the program over the clusters known that may be in a better partition; what such a partition costs
/// at least.
double Search::solveOverKnown(const Branch& branch, const ClusterRelaxation& relaxation, int mostPrograms) {
  const ClusterProgram& program = relaxation.program();
  const ClusterPrices prices = relaxation.bestPrices();
  const double room = cost_ - relaxation.bound() + kTolerance * (1 + cost_);
  std::vector<int> columns;
  for (int k = 0; k < static_cast<int>(program.clusters().size()); ++k) {
    if (program.reducedCost(k, prices) <= room) columns.push_back(k);
  }
  const ClusterProgram::Whole whole =
      program.solveWhole(columns, relaxation.orderCuts(), cost_, mostPrograms, deadline_);
  offer(branch, whole.cluster);
  return whole.bound;
}

/// Rounds of clusters and cuts; false when the time was up.
bool Search::raiseBound(Branch& branch, ClusterRelaxation& relaxation) {
  int slow = 0;
  double last = -1e300;
  for (int round = 0;; ++round) {
    const bool finished = relaxation.generate(cost_, deadline_);
    branch.bound = std::max(branch.bound, relaxation.bound());
    if (branch.number == 0) result_.bound = std::max(result_.bound, std::min(branch.bound, cost_));
    if (!finished) return false;
    if (worse(branch.bound)) return true;
    offer(branch, relaxation.program().partition());
    if (branch.number == 0 && (round == 0 || round == kMostSlowRounds))
      solveOverKnown(branch, relaxation, kProgramsToFind);
    slow = relaxation.value() - last < kSlow * (cost_ - relaxation.value()) ? slow + 1 : 0;
    last = relaxation.value();
    if (worse(branch.bound) || slow >= kMostSlowRounds || !relaxation.addCuts()) return true;
  }
}

void Search::solve(Branch branch) {
  const PairTable pairs(branch.problem);
  ClusterRelaxation relaxation(branch.problem, pairs);
  ClusterProgram& program = relaxation.program();
  const auto possible = [&](const std::vector<int>& c) {
    for (size_t i = 0; i < c.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (!pairs.canShare(c[i], c[j])) return false;
      }
    }
    return true;
  };
  for (const std::vector<int>& c : branch.clusters) {
    if (possible(c)) program.add(c);
  }
  for (const OrderCut& cut : branch.cuts) program.addCut(cut);

  const bool finished = raiseBound(branch, relaxation);
  result_.columns = std::max(result_.columns, static_cast<int>(program.clusters().size()));
  result_.rows = std::max(result_.rows, program.rows());
  result_.cuts += program.cuts();
  if (worse(branch.bound)) return;
  if (finished) {
    const std::optional<Clusters> candidates = relaxation.candidates(cost_, kMostCandidates);
    if (candidates) {
      const double before = cost_;
      for (const std::vector<int>& c : *candidates) program.add(c);
      const double bound = solveOverKnown(branch, relaxation, kProgramsToProve);
      branch.bound = std::max(branch.bound, std::min(before, bound));
      if (worse(branch.bound)) return;
    }
  }
  // Branch on the pair that is most in doubt.
  const std::vector<Together> together = program.together();
  const auto doubt = [](const Together& t) { return std::abs(t.share - 0.5); };
  const auto pair =
      std::min_element(together.begin(), together.end(),
                       [&](const Together& a, const Together& b) { return doubt(a) < doubt(b); });
  if (!finished || deadline_.passed() || pair == together.end()) {
    unfinished_ = std::min(unfinished_, branch.bound);
    return;
  }
  split(std::move(branch), pairs, relaxation, *pair);
}

void Search::split(Branch branch, const PairTable& pairs, const ClusterRelaxation& relaxation,
                   const Together& pair) {
  const ClusterProgram& program = relaxation.program();
  const ClusterPrices prices = relaxation.bestPrices();
  Clusters useful;
  for (int k = 0; k < static_cast<int>(program.clusters().size()); ++k) {
    if (program.reducedCost(k, prices) <= cost_ - relaxation.bound()) useful.push_back(program.clusters()[k]);
  }
  const std::vector<OrderCut> cuts = program.tightCuts();

  const Assignment merge = mergedWithAll(branch.problem, pairs, pair.a, pair.b);
  if (!merge.empty()) {
    Branch merged;
    merged.problem = contracted(branch.problem, merge);
    for (int g : branch.group) merged.group.push_back(merge[g]);
    merged.bound = branch.bound;
    merged.number = ++branches_;
    for (const std::vector<int>& c : useful) {  // those that have all that is merged, or nothing of it
      const auto isMerged = [&](int v) { return merge[v] == merge[pair.a]; };
      const auto inside = std::count_if(c.begin(), c.end(), isMerged);
      if (inside != 0 && inside != std::count(merge.begin(), merge.end(), merge[pair.a])) continue;
      std::vector<int> image;
      for (int v : c) image.push_back(merge[v]);
      std::sort(image.begin(), image.end());
      image.erase(std::unique(image.begin(), image.end()), image.end());
      merged.clusters.push_back(std::move(image));
    }
    for (OrderCut cut : cuts) {
      const auto move = [&](std::pair<int, int>& p) { p = {merge[p.first], merge[p.second]}; };
      std::erase_if(cut.pairs, [&](std::pair<int, int>& p) {
        move(p);
        if (p.first == p.second) cut.upper -= 1;
        return p.first == p.second;
      });
      if (cut.unless.first >= 0) move(cut.unless);
      const bool void_ = cut.unless.first >= 0 && cut.unless.first == cut.unless.second;
      if (!void_) merged.cuts.push_back(std::move(cut));
    }
    open_.push(std::move(merged));
  }

  Branch apart = std::move(branch);
  apart.problem.forbidden.emplace_back(pair.a, pair.b);
  apart.number = ++branches_;
  apart.clusters = std::move(useful);  // those with the pair are left out when it is solved
  apart.cuts = cuts;
  open_.push(std::move(apart));
}

}  // namespace

ClusterSearchResult searchClusters(const PartitionProblem& problem, const Assignment& incumbent, double lower,
                                   double seconds) {
  if (seconds <= 0) return {incumbent, lower, 0, 0, 0};
  return Search(problem, incumbent, lower, seconds).run();
}

}  // namespace kelpie::fusion
