#include "fusion/solve_again.h"

#include <algorithm>
#include <set>

#include "fusion/restricted_problem.h"
#include "fusion/solve_stages.h"

namespace kelpie::fusion {
namespace {

constexpr double kNothing = 1e-9;      ///< of costs
constexpr double kSecondsOfAPart = 2;  ///< at most

class Again {
 public:
  Again(const PartitionProblem& problem, const PairTable& pairs, const Assignment& incumbent,
        const Deadline& deadline, size_t mostNodes)
      : problem_(problem), pairs_(pairs), deadline_(deadline), mostNodes_(mostNodes), cluster_(incumbent) {}

  Assignment run() {
    // Parts around clusters that were in no part of this round; then around all.
    for (bool all = false; !deadline_.passed();) {
      arrange();
      covered_.assign(problem_.nodes, false);
      bool better = false;
      for (const std::vector<int>& part : parts()) {
        if (deadline_.passed()) break;
        if (!all && covered_[part[0]]) continue;
        for (int v : part) covered_[v] = true;
        better |= solve(part);
      }
      if (all && !better) break;
      all = !better;
    }
    return cluster_;
  }

 private:
  void arrange() {
    cluster_ = normalised(cluster_);
    members_.clear();
    for (int v = 0; v < problem_.nodes; ++v) {
      if (cluster_[v] >= static_cast<int>(members_.size())) members_.resize(cluster_[v] + 1);
      members_[cluster_[v]].push_back(v);
    }
  }

  /// What clusters pay for the arrays that two of them have in common.
  std::vector<std::vector<double>> inCommon() const {
    const size_t n = members_.size();
    std::vector<std::vector<double>> common(n, std::vector<double>(n, 0));
    const auto meet = [&](std::vector<int> nodes, int producer, double cost) {
      if (producer >= 0) nodes.push_back(producer);
      std::set<int> clusters;
      for (int v : nodes) clusters.insert(cluster_[v]);
      for (int a : clusters) {
        for (int b : clusters) common[a][b] += cost;
      }
    };
    for (const Access& a : problem_.accesses) meet(a.readers, a.producer, a.cost);
    for (const Store& s : problem_.stores) meet(s.readers, s.producer, s.cost);
    return common;
  }

  bool mayMeet(int a, int b) const {
    return std::any_of(members_[a].begin(), members_[a].end(), [&](int u) {
      return std::any_of(members_[b].begin(), members_[b].end(),
                         [&](int v) { return pairs_.canShare(u, v); });
    });
  }

  std::vector<std::vector<int>> parts() const {
    std::vector<std::vector<int>> result;
    const std::vector<int> order = clusterOrder(problem_, cluster_).value();
    const auto add = [&](const std::vector<int>& wanted) {
      std::vector<int> part;
      size_t nodes = 0;
      for (int c : wanted) {
        if (!part.empty() && (nodes + members_[c].size() > mostNodes_)) break;
        if (!part.empty() && !mayMeet(part[0], c)) continue;
        part.push_back(c);
        nodes += members_[c].size();
      }
      if (part.size() < 2 || nodes > mostNodes_) return;
      result.emplace_back();
      for (int c : part) result.back().insert(result.back().end(), members_[c].begin(), members_[c].end());
    };
    for (size_t k = 0; k < order.size(); ++k) add({order.begin() + static_cast<long>(k), order.end()});
    const std::vector<std::vector<double>> common = inCommon();
    for (int c : order) {
      std::vector<int> near(order);
      std::stable_sort(near.begin(), near.end(), [&](int a, int b) {
        return std::pair(a != c, -common[c][a]) < std::pair(b != c, -common[c][b]);
      });
      add(near);
    }
    return result;
  }

  /// Nodes of a part: with their clusters they make it up.
  bool solve(std::vector<int> nodes) {
    arrange();
    std::vector<bool> within(problem_.nodes, false);
    for (int v : nodes) within[cluster_[v]] = true;
    nodes.clear();
    for (int v = 0; v < problem_.nodes; ++v)
      if (within[cluster_[v]]) nodes.push_back(v);
    if (!tried_.insert(nodes).second) return false;
    Assignment start;
    for (int v : nodes) start.push_back(cluster_[v]);
    const PartitionProblem part = restrictedAmid(problem_, pairs_, nodes, cluster_);
    const PairTable pairs(part);
    start = normalised(start);
    const double seconds = std::min(kSecondsOfAPart, deadline_.secondsLeft());
    const Assignment found = solveStages(part, pairs, start, 0, Deadline(seconds)).cluster;
    if (costOf(part, start) - costOf(part, found) <= kNothing * (1 + costOf(part, start))) return false;
    Assignment whole = cluster_;
    for (size_t k = 0; k < nodes.size(); ++k) whole[nodes[k]] = problem_.nodes + found[k];
    whole = normalised(whole);
    if (illegal(problem_, whole)) return false;
    cluster_ = std::move(whole);
    return true;
  }

  const PartitionProblem& problem_;
  const PairTable& pairs_;
  const Deadline& deadline_;
  const size_t mostNodes_;  ///< of a part
  Assignment cluster_;
  std::vector<std::vector<int>> members_;  ///< by cluster
  std::vector<bool> covered_;              ///< nodes that were in a part of this round
  std::set<std::vector<int>> tried_;       ///< parts, by their nodes; all else may have changed since
};

}  // namespace

Assignment solveAgain(const PartitionProblem& problem, const PairTable& pairs, const Assignment& incumbent,
                      const Deadline& deadline, size_t mostNodes) {
  return problem.nodes == 0 ? incumbent : Again(problem, pairs, incumbent, deadline, mostNodes).run();
}

}  // namespace kelpie::fusion
