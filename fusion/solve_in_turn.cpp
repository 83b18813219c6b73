#include "fusion/solve_in_turn.h"

#include <algorithm>
#include <utility>

#include "fusion/restricted_problem.h"
#include "fusion/solve_greedy.h"
#include "fusion/solve_part.h"

namespace kelpie::fusion {
namespace {

constexpr double kNothing = 1e-9;      ///< of costs
constexpr double kShareOfATurn = 0.4;  ///< of the time that is left, at most

class Turns {
 public:
  Turns(const PartitionProblem& problem, const PairTable& pairs, std::vector<SolvedComponent> components,
        const Assignment& incumbent, const Deadline& deadline)
      : problem_(problem),
        pairs_(pairs),
        components_(std::move(components)),
        deadline_(deadline),
        best_(incumbent),
        cost_(costOf(problem, incumbent)) {
    std::stable_sort(
        components_.begin(), components_.end(),
        [](const SolvedComponent& a, const SolvedComponent& b) { return a.nodes.size() > b.nodes.size(); });
    for (const SolvedComponent& c : components_) bound_ += c.bound;
  }

  Assignment run() {
    for (size_t first = 0; first < components_.size() && open(); ++first) {
      cluster_ = separate(problem_.nodes);
      put(components_[first], components_[first].cluster);
      for (size_t k = 0; k < components_.size() && !deadline_.passed(); ++k)
        if (k != first) solve(components_[k], false);
      offer();
      improveAll();
    }
    return best_;
  }

 private:
  bool open() const { return !deadline_.passed() && cost_ - bound_ > negligible(cost_, problem_.nodes); }

  void put(const SolvedComponent& component, const Assignment& cluster) {
    for (size_t k = 0; k < component.nodes.size(); ++k)
      cluster_[component.nodes[k]] = problem_.nodes + cluster[k];
    cluster_ = normalised(cluster_);
  }

  /// Amid all others as they are; from what it is itself, or from nothing.
  void solve(const SolvedComponent& component, bool fromWhatIs) {
    PartitionProblem part = restrictedAmid(problem_, pairs_, component.nodes, cluster_);
    Assignment start;
    if (fromWhatIs) {
      for (int v : component.nodes) start.push_back(cluster_[v]);
      start = normalised(start);
    } else {
      const PairTable pairs(part);
      start = improve(part, pairs, solveGreedy(part, pairs));
    }
    PartSolver solver(std::move(part), start, component.bound, true);
    solver.run(kShareOfATurn * deadline_.secondsLeft());
    put(component, solver.cluster());
  }

  void improveAll() {
    for (bool better = true; better && open();) {
      better = false;
      for (const SolvedComponent& c : components_) {
        if (!open()) break;
        solve(c, true);
        better |= offer();
      }
    }
  }

  bool offer() {
    const double cost = costOf(problem_, cluster_);
    if (cost >= cost_ - kNothing * (1 + cost_) || illegal(problem_, cluster_)) return false;
    cost_ = cost;
    best_ = cluster_;
    return true;
  }

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  std::vector<SolvedComponent> components_;  ///< the largest first
  const Deadline& deadline_;
  double bound_ = 0;
  Assignment best_;
  double cost_;
  Assignment cluster_;  ///< what is being tried
};

}  // namespace

Assignment solveInTurn(const PartitionProblem& problem, const PairTable& pairs,
                       std::vector<SolvedComponent> components, const Assignment& incumbent,
                       const Deadline& deadline) {
  return Turns(problem, pairs, std::move(components), incumbent, deadline).run();
}

}  // namespace kelpie::fusion
