#include "fusion/cluster_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include "fusion/cluster_relaxation.h"
#include "fusion/contraction.h"
#include "fusion/solve_greedy.h"
#include "fusion/work_time.h"

namespace kelpie::fusion {
namespace {

constexpr double kAlmost = 1 - 1e-6;
constexpr size_t kMostCandidates = 2'000;
constexpr int kProgramsToProve = 100;   ///< relaxations in a search over known clusters
constexpr int kMostSlowRounds = 4;      ///< of cuts that hardly raise the bound
constexpr double kSlow = 0.02;          ///< of what is left to the incumbent
constexpr double kWorthRestart = 0.05;  ///< of the pairs in doubt
constexpr int kNodesToAscend = 250;     ///< fewer are solved sooner without

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
  int fewest = 0;  ///< clusters of a better partition
};

/// The nodes of each pair as one, with whoever must be with them; empty if that cannot be.
Assignment mergedWithAll(const PartitionProblem& problem, const PairTable& pairs,
                         const std::vector<std::pair<int, int>>& together) {
  Assignment group = separate(problem.nodes);
  bool changed = false;
  const auto unite = [&](int a, int b) {
    const int from = group[b], to = group[a];
    if (from == to) return;
    for (int& g : group) g = g == from ? to : g;
    changed = true;
  };
  for (auto [a, b] : together) unite(a, b);
  do {
    changed = false;
    BitMatrix after(problem.nodes), before(problem.nodes);  // by group: who is on a path from it, to it
    for (int v = 0; v < problem.nodes; ++v) {
      for (int w = 0; w < problem.nodes; ++w) {
        if (pairs.reaches(v, w)) after.set(group[v], w);
        if (pairs.reaches(w, v)) before.set(group[v], w);
      }
    }
    for (int v = 0; v < problem.nodes; ++v) {
      for (int w = 0; w < problem.nodes; ++w) {
        if (after.get(group[v], w) && before.get(group[v], w)) unite(v, w);
      }
    }
    for (const Requirement& r : problem.requirements) {
      if (group[r.a] == group[r.b]) unite(r.a, r.third);
    }
  } while (changed);
  std::vector<double> weight(problem.nodes, 0.0);
  for (int v = 0; v < problem.nodes; ++v) {
    weight[group[v]] += problem.weight[v];
    for (int u = 0; u < v; ++u) {
      if (group[u] != group[v]) continue;
      if (!pairs.canShare(u, v) || weight[group[v]] > problem.budget) return {};
    }
  }
  group = normalised(group);
  if (!clusterOrder(problem, group)) return {};
  return group;
}

/// What all costs are multiples of; 0 if that is nothing of a size that matters.
double quantumOf(const PartitionProblem& problem) {
  constexpr double kRounding = 1e-9, kSmallest = 1e-5;  // of the greatest cost
  std::vector<double> costs = problem.launch;
  for (const Access& a : problem.accesses) costs.push_back(a.cost);
  for (const Store& s : problem.stores) costs.push_back(s.cost);
  double greatest = 0, quantum = 0;
  for (double cost : costs) greatest = std::max(greatest, cost);
  for (double cost : costs) {
    for (double rest = quantum; rest > kRounding * greatest;) {  // Euclid
      quantum = rest;
      rest = std::abs(cost - rest * std::round(cost / rest));
      cost = quantum;
    }
    if (quantum == 0) quantum = cost;
    if (quantum > 0 && quantum < kSmallest * greatest) return 0;
  }
  return quantum;
}

/// About how many seconds it takes to begin: each node has a network of pairs of those that it can share with
/// and that have had none themselves (cluster_network.h).
double beginningOf(const PartitionProblem& problem) {
  // With the rest of a network; its pairs alone are counted as 12 (cluster_network.cpp).
  constexpr double kNanosecondsOfAPair = 16, kWithoutThoseBefore = 1.0 / 3;
  const PairTable pairs(problem);
  double all = 0;
  for (int u = 0; u < problem.nodes; ++u) {
    double sharing = 0;
    for (int v = 0; v < problem.nodes; ++v) sharing += pairs.canShare(u, v);
    all += sharing * sharing;
  }
  return 1e-9 * kNanosecondsOfAPair * kWithoutThoseBefore * all;
}

class Search {
 public:
  Search(const PartitionProblem& problem, const Assignment& incumbent)
      : problem_(problem),
        beginning_(beginningOf(problem)),
        cost_(costOf(problem, incumbent)),
        quantum_(quantumOf(problem)) {
    result_.cluster = incumbent;
    open_.push({problem_, separate(problem_.nodes), clustersOf(incumbent), {}, 0, 0, 0});
  }

  const ClusterSearchResult& run(const Assignment& incumbent, double lower, int fewest, double seconds) {
    glp_term_out(GLP_OFF);
    deadline_ = Deadline(seconds);
    fewest_ = fewest;
    if (const double cost = costOf(problem_, incumbent); cost < cost_) {
      cost_ = cost;
      result_.cluster = incumbent;
    }
    result_.bound = std::max(result_.bound, lower);
    // A turn that is hardly longer than it takes to begin finds nothing.
    constexpr double kTimesTheBeginning = 3;
    const bool worthwhile = seconds >= kTimesTheBeginning * beginning_;
    while (worthwhile && !open_.empty() && !worse(result_.bound) && !deadline_.passed()) {
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
  double tolerance() const { return negligible(cost_, problem_.nodes); }
  /// Not better than what is known.
  bool worse(double bound) const { return cost_ - bound <= tolerance(); }
  /// What proves a partition worse: all costs are multiples of the quantum.
  double enough() const { return cost_ - kAlmost * quantum_; }
  void raise(Branch& branch, double bound) const {
    branch.bound = std::max(branch.bound, bound >= enough() ? cost_ : bound);
  }

  void offer(const Branch& branch, const std::optional<Assignment>& cluster);
  struct Decided {
    bool possible = false;       ///< a better partition
    std::optional<Branch> rest;  ///< if enough was decided
  };
  void solve(Branch first);
  std::optional<Branch> advance(Branch branch);
  Decided decide(const Branch& branch, const PairTable& pairs, const ClusterRelaxation& relaxation) const;
  int fewestClusters(const Branch& branch, const PairTable& pairs, const ClusterRelaxation& relaxation) const;
  Clusters usefulOf(const ClusterRelaxation& relaxation) const;
  static Branch merged(const Branch& branch, const Assignment& group, const Clusters& clusters,
                       const std::vector<OrderCut>& cuts);
  bool raiseBound(Branch& branch, const PairTable& pairs, ClusterRelaxation& relaxation);
  double solveOverKnown(const Branch& branch, const ClusterRelaxation& relaxation, int mostPrograms);
  void split(Branch branch, const PairTable& pairs, const ClusterRelaxation& relaxation,
             const Together& pair);

  const PartitionProblem& problem_;
  Deadline deadline_ = Deadline(0);
  double beginning_;  ///< seconds that it takes to begin, about or as it took last
  int fewest_ = 0;    ///< clusters of a better partition, as far as others know
  double cost_;       ///< of the incumbent
  const double quantum_;
  ClusterSearchResult result_;
  double unfinished_ = 1e300;  ///< the least bound of branches that could not be split
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
  const double room = enough() - relaxation.bound() + tolerance();
  std::vector<int> columns;
  for (int k = 0; k < static_cast<int>(program.clusters().size()); ++k) {
    if (program.reducedCost(k, prices) <= room) columns.push_back(k);
  }
  const ClusterProgram::Whole whole =
      program.solveWhole(columns, relaxation.orderCuts(), enough(), mostPrograms, deadline_);
  offer(branch, whole.cluster);
  return whole.bound;
}

/// Rounds of clusters and cuts; false when the time was up.
bool Search::raiseBound(Branch& branch, const PairTable& pairs, ClusterRelaxation& relaxation) {
  if (branch.number == 0 && branch.problem.nodes >= kNodesToAscend) relaxation.ascend(enough(), deadline_);
  int slow = 0;
  double last = -1e300;
  for (int round = 0;; ++round) {
    const bool finished = relaxation.generate(enough(), deadline_);
    raise(branch, relaxation.bound());
    if (branch.number == 0) result_.bound = std::max(result_.bound, std::min(branch.bound, cost_));
    if (!finished) return false;
    if (worse(branch.bound)) return true;
    offer(branch, relaxation.program().partition());
    if (const int fewest = fewestClusters(branch, pairs, relaxation); fewest > branch.fewest) {
      branch.fewest = fewest;
      relaxation.program().needAtLeast(fewest);
      continue;
    }
    slow = relaxation.value() - last < kSlow * (cost_ - relaxation.value()) ? slow + 1 : 0;
    last = relaxation.value();
    if (worse(branch.bound) || slow >= kMostSlowRounds || !relaxation.addCuts(enough())) return true;
  }
}

void Search::solve(Branch first) {
  std::optional<Branch> branch = std::move(first);
  while (branch) branch = advance(std::move(*branch));
}

/// Solves the branch, or splits it, or returns what remains of it when much of it is decided.
std::optional<Branch> Search::advance(Branch branch) {
  const PairTable pairs(branch.problem);
  branch.fewest = std::max(branch.fewest, fewest_);
  const int64_t before = WorkTime::spent();
  ClusterRelaxation relaxation(branch.problem, pairs, branch.fewest);
  if (branch.number == 0) beginning_ = 1e-9 * static_cast<double>(WorkTime::spent() - before);
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

  const bool finished = raiseBound(branch, pairs, relaxation);
  result_.columns = std::max(result_.columns, static_cast<int>(program.clusters().size()));
  result_.rows = std::max(result_.rows, program.rows());
  result_.cuts += program.cuts();
  if (worse(branch.bound)) return std::nullopt;
  const std::vector<Together> together = togetherIn(program.shares());
  if (finished || branch.number == 0) offer(branch, solveAlong(branch.problem, pairs, together));
  if (finished) {
    Decided decided = decide(branch, pairs, relaxation);
    if (!decided.possible || worse(branch.bound)) return std::nullopt;
    if (decided.rest) return std::move(decided.rest);
    const std::optional<Clusters> candidates = relaxation.candidates(enough(), kMostCandidates);
    if (candidates) {
      const double before = cost_;
      for (const std::vector<int>& c : *candidates) program.add(c);
      raise(branch, std::min(before, solveOverKnown(branch, relaxation, kProgramsToProve)));
      if (worse(branch.bound)) return std::nullopt;
    }
  }
  // Branch on the pair that is most in doubt.
  const auto doubt = [](const Together& t) { return std::abs(t.share - 0.5); };
  const auto pair =
      std::min_element(together.begin(), together.end(),
                       [&](const Together& a, const Together& b) { return doubt(a) < doubt(b); });
  if (deadline_.passed()) {  // later from where it is
    branch.clusters = usefulOf(relaxation);
    branch.cuts = program.tightCuts();
    open_.push(std::move(branch));
    return std::nullopt;
  }
  if (!finished || pair == together.end()) {
    unfinished_ = std::min(unfinished_, branch.bound);
    return std::nullopt;
  }
  split(std::move(branch), pairs, relaxation, *pair);
  return std::nullopt;
}

/// How many clusters a better partition has at least: more than `branch.fewest` if the relaxation says that
/// it is between k and k + 1, and k are not enough. Of at most k clusters, none that is better exists if each
/// costs so much more that even k times that is reached.
int Search::fewestClusters(const Branch& branch, const PairTable& pairs,
                           const ClusterRelaxation& relaxation) const {
  constexpr double kFraction = 0.01;  // of a cluster
  constexpr int kMostSurcharges = 3;
  constexpr double kMostLaunches = 1;  // that one cluster more can make up for
  const auto countOf = [](const ClusterRelaxation& r) {
    double count = 0;
    for (const ClusterShare& c : r.program().shares()) count += c.share;
    return count;
  };
  double count = countOf(relaxation), value = relaxation.value(), surcharge = 0;
  const double most = std::floor(count + kFraction);
  if (most >= branch.problem.nodes) return branch.fewest;
  const double launch = *std::max_element(branch.problem.launch.begin(), branch.problem.launch.end());
  if (enough() - value > kMostLaunches * launch) return branch.fewest;
  PartitionProblem dearer = branch.problem;
  Clusters clusters = relaxation.program().clusters();
  for (int k = 0; k < kMostSurcharges && count > most + kFraction && !deadline_.passed(); ++k) {
    const double more = 2 * std::max(0.0, enough() - value) / (count - most);
    surcharge += more;
    for (double& launch : dearer.launch) launch += more;
    ClusterRelaxation probe(dearer, pairs, branch.fewest);
    for (const std::vector<int>& c : clusters) probe.program().add(c);
    for (const OrderCut& cut : relaxation.program().tightCuts()) probe.program().addCut(cut);
    const bool finished = probe.generate(enough() + surcharge * most, deadline_);
    if (probe.bound() >= enough() + surcharge * most) return static_cast<int>(most) + 1;
    if (!finished) break;
    clusters = probe.program().clusters();
    count = countOf(probe);
    value = probe.value() - surcharge * most;
  }
  return branch.fewest;
}

/// Merges the pairs that every better partition has in one cluster, and keeps those apart that none has.
Search::Decided Search::decide(const Branch& branch, const PairTable& pairs,
                               const ClusterRelaxation& relaxation) const {
  Decided result;
  const std::vector<ClusterPricing::Forced> forced = relaxation.forced(enough(), deadline_);
  std::vector<std::pair<int, int>> together, apart;
  int open = 0;
  for (int v = 0; v < branch.problem.nodes; ++v) {
    if (!forced[v].any) return result;
    for (int w : forced[v].with) together.emplace_back(v, w);
    for (int w : forced[v].without) apart.emplace_back(v, w);
    for (int w = 0; w < branch.problem.nodes; ++w) open += v != w && pairs.canShare(v, w);
  }
  const Assignment merge = mergedWithAll(branch.problem, pairs, together);
  if (merge.empty()) return result;
  result.possible = true;
  if (together.empty() && static_cast<double>(apart.size()) < kWorthRestart * open) return result;
  Branch rest = merged(branch, merge, usefulOf(relaxation), relaxation.program().tightCuts());
  for (auto [a, b] : apart) {
    if (merge[a] == merge[b]) {
      result.possible = false;
      return result;
    }
    rest.problem.forbidden.emplace_back(merge[a], merge[b]);
  }
  rest.number = branch.number;
  result.rest = std::move(rest);
  return result;
}

/// The clusters known that may be in a better partition.
Clusters Search::usefulOf(const ClusterRelaxation& relaxation) const {
  const ClusterProgram& program = relaxation.program();
  const ClusterPrices prices = relaxation.bestPrices();
  Clusters useful;
  for (int k = 0; k < static_cast<int>(program.clusters().size()); ++k) {
    if (program.reducedCost(k, prices) <= cost_ - relaxation.bound()) useful.push_back(program.clusters()[k]);
  }
  return useful;
}

/// The branch with the nodes of each group as one, and what remains of clusters and cuts.
Branch Search::merged(const Branch& branch, const Assignment& group, const Clusters& clusters,
                      const std::vector<OrderCut>& cuts) {
  Branch result;
  result.problem = contracted(branch.problem, group);
  for (int g : branch.group) result.group.push_back(group[g]);
  result.bound = branch.bound;
  result.fewest = branch.fewest;
  std::vector<int> size(result.problem.nodes, 0);
  for (int g : group) ++size[g];
  for (const std::vector<int>& c : clusters) {  // those that have all of a group, or nothing of it
    std::vector<int> image;
    for (int v : c) image.push_back(group[v]);
    std::sort(image.begin(), image.end());
    image.erase(std::unique(image.begin(), image.end()), image.end());
    int members = 0;
    for (int g : image) members += size[g];
    if (members == static_cast<int>(c.size())) result.clusters.push_back(std::move(image));
  }
  for (OrderCut cut : cuts) {
    const auto move = [&](std::pair<int, int>& p) { p = {group[p.first], group[p.second]}; };
    std::erase_if(cut.pairs, [&](std::pair<int, int>& p) {
      move(p);
      if (p.first == p.second) cut.upper -= 1;
      return p.first == p.second;
    });
    std::erase_if(cut.stars, [&](OrderCut::Star& star) {
      star.node = group[star.node];
      for (int& v : star.others) v = group[v];
      std::sort(star.others.begin(), star.others.end());
      star.others.erase(std::unique(star.others.begin(), star.others.end()), star.others.end());
      const bool always = std::binary_search(star.others.begin(), star.others.end(), star.node);
      if (always) cut.upper -= 1;
      return always;
    });
    if (cut.unless.first >= 0) move(cut.unless);
    const bool isVoid = cut.unless.first >= 0 && cut.unless.first == cut.unless.second;
    if (!isVoid) result.cuts.push_back(std::move(cut));
  }
  return result;
}

void Search::split(Branch branch, const PairTable& pairs, const ClusterRelaxation& relaxation,
                   const Together& pair) {
  Clusters useful = usefulOf(relaxation);
  std::vector<OrderCut> cuts = relaxation.program().tightCuts();
  const Assignment merge = mergedWithAll(branch.problem, pairs, {{pair.a, pair.b}});
  if (!merge.empty()) {
    Branch both = merged(branch, merge, useful, cuts);
    both.number = ++branches_;
    open_.push(std::move(both));
  }
  Branch apart = std::move(branch);
  apart.problem.forbidden.emplace_back(pair.a, pair.b);
  apart.number = ++branches_;
  apart.clusters = std::move(useful);  // those with the pair are left out when it is solved
  apart.cuts = std::move(cuts);
  open_.push(std::move(apart));
}

}  // namespace

class ClusterSearch::Impl : public Search {
 public:
  using Search::Search;
};

ClusterSearch::ClusterSearch(const PartitionProblem& problem, const Assignment& incumbent)
    : impl_(std::make_unique<Impl>(problem, incumbent)) {}
ClusterSearch::~ClusterSearch() = default;

const ClusterSearchResult& ClusterSearch::run(const Assignment& incumbent, double lower, int fewest,
                                              double seconds) {
  return impl_->run(incumbent, lower, fewest, seconds);
}

}  // namespace kelpie::fusion
