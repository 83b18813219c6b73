#include "fusion/cheapest_together.h"

#include <algorithm>
#include <set>

#include "fusion/contraction.h"
#include "fusion/counted_search.h"
#include "fusion/solve_greedy.h"

namespace kelpie::fusion {
namespace {

constexpr double kTiny = 1e-9;
constexpr int kNodesSearched = 64;    ///< in larger problems the search through all gets nowhere
constexpr int64_t kStepsOfPair = 64;  ///< to price two clusters as one, and what follows from that

bool asCheap(double cost, double other) { return cost <= other + kTiny * (1 + other); }

int clusterCount(const Assignment& cluster) {
  return cluster.empty() ? 0 : *std::max_element(cluster.begin(), cluster.end()) + 1;
}

}  // namespace

CheapestTogether::CheapestTogether(const PartitionProblem& problem, const PairTable& pairs,
                                   const Assignment& chosen, const std::vector<Partition>& known,
                                   FoundCosts* found)
    : problem_(problem), pairs_(pairs), chosen_(chosen), known_(known), found_(found) {
  for (const Partition& p : known) bound_ = std::max(bound_, p.bound);
  pricing_ = problem.nodes + static_cast<int64_t>(problem.edges.size() + problem.forbidden.size() +
                                                  problem.requirements.size());
  for (const Access& a : problem.accesses) pricing_ += static_cast<int64_t>(a.readers.size());
  for (const Store& s : problem.stores) pricing_ += static_cast<int64_t>(s.readers.size());
}

TogetherCost CheapestTogether::of(const Assignment& group, int a, CountedWork& work) const {
  if (!found_) return search(group, a, work);
  std::vector<int64_t> key{work.left()};
  for (int v = 0; v < problem_.nodes; ++v)
    if (group[v] == group[a]) key.push_back(v);
  {
    const std::lock_guard lock(ofFound_);
    if (const auto known = found_->find(key); known != found_->end()) {
      work.spend(known->second.steps);
      return {known->second.cost, known->second.proven};
    }
  }
  const int64_t before = work.left();
  const TogetherCost cost = search(group, a, work);
  const std::lock_guard lock(ofFound_);
  found_->emplace(std::move(key), FoundCost{cost.cost, cost.proven, before - work.left()});
  return cost;
}

TogetherCost CheapestTogether::search(const Assignment& group, int a, CountedWork& work) const {
  TogetherCost best;
  const auto take = [&](double cost) {
    best.cost = std::min(best.cost, cost);
    best.proven = asCheap(best.cost, bound_);
  };
  for (const Partition& partition : known_) {
    bool together = true;
    for (int v = 0; v < problem_.nodes; ++v)
      together = together && (group[v] != group[a] || partition.cluster[v] == partition.cluster[a]);
    if (together) take(partition.cost);
  }
  if (best.proven) return best;

  std::vector<Assignment> candidates = nearby(group, a);
  candidates.push_back(group);  // everybody else alone
  std::vector<std::pair<double, Assignment>> starts;
  for (const Assignment& candidate : candidates) {
    if (work.spent()) break;
    const int64_t clusters = clusterCount(candidate), merging = kStepsOfPair * clusters * clusters;
    work.spend(pricing_);
    if (illegal(problem_, candidate) || work.left() < merging) continue;
    work.spend(merging);
    Assignment start = mergeGreedily(problem_, pairs_, candidate);
    starts.emplace_back(costOf(problem_, start), std::move(start));
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  std::vector<std::vector<int>> blocks(clusterCount(group));
  for (int v = 0; v < problem_.nodes; ++v) blocks[group[v]].push_back(v);
  for (const auto& [cost, start] : starts) {
    if (!best.proven) take(descend(start, cost, blocks, work));
  }
  const int64_t forcing = kStepsOfPair * problem_.nodes * problem_.nodes;
  if (best.proven || problem_.nodes > kNodesSearched || work.left() < forcing) return best;

  work.spend(forcing);
  const PartitionProblem forced = contracted(problem_, group);
  const PartitionProblem small = contracted(forced, contractionGroups(forced, PairTable(forced)));
  const CountedSearchResult search = searchCounted(small, PairTable(small), best.cost, work);
  take(search.cost);
  best.proven = best.proven || search.complete;
  return best;
}

/// The chosen partition with the group in one of the clusters that its members are in, in one of its own,
/// with all these clusters merged, and with all others of them alone. Who cannot be with the group leaves it.
std::vector<Assignment> CheapestTogether::nearby(const Assignment& group, int a) const {
  std::set<int> homes;
  const auto inGroup = [&](int v) { return group[v] == group[a]; };
  for (int v = 0; v < problem_.nodes; ++v)
    if (inGroup(v)) homes.insert(chosen_[v]);
  const auto fits = [&](int v) {
    for (int u = 0; u < problem_.nodes; ++u)
      if (inGroup(u) && !pairs_.canShare(u, v)) return false;
    return true;
  };
  enum class Others : uint8_t { Stay, Come, Leave };
  const auto moved = [&](int to, Others others) {
    Assignment result = chosen_;
    for (int v = 0; v < problem_.nodes; ++v) {
      if (inGroup(v)) {
        result[v] = to;
      } else if (homes.contains(chosen_[v])) {
        const bool wanted = others == Others::Come || (others == Others::Stay && chosen_[v] == to);
        if (others == Others::Leave || (wanted && !fits(v))) {
          result[v] = problem_.nodes + 1 + v;  // alone
        } else if (wanted) {
          result[v] = to;
        }
      }
    }
    return normalised(result);
  };
  const int own = problem_.nodes;
  std::vector<Assignment> result{moved(own, Others::Stay), moved(own, Others::Come),
                                 moved(own, Others::Leave)};
  for (int home : homes) result.push_back(moved(home, Others::Stay));
  return result;
}

/// The cost after blocks have moved to other clusters, one at a time, while that made it less.
double CheapestTogether::descend(Assignment cluster, double cost, const std::vector<std::vector<int>>& blocks,
                                 CountedWork& work) const {
  for (bool better = true; better && !work.spent();) {
    better = false;
    for (const std::vector<int>& block : blocks) {
      work.spend(problem_.nodes);
      const std::vector<bool> possible = clustersFor(block, cluster);
      for (int to = 0; to < static_cast<int>(possible.size()) && !work.spent(); ++to) {
        if (!possible[to] || to == cluster[block[0]]) continue;
        work.spend(pricing_);
        Assignment candidate = cluster;
        for (int v : block) candidate[v] = to;
        candidate = normalised(candidate);
        const double changed = costOf(problem_, candidate);
        if (changed >= cost - kTiny * (1 + cost) || illegal(problem_, candidate)) continue;
        cluster = std::move(candidate);
        cost = changed;
        better = true;
        break;  // clusters have other numbers now
      }
    }
  }
  return cost;
}

/// Which clusters, a new one as the last, nobody is in who cannot be with the block.
std::vector<bool> CheapestTogether::clustersFor(const std::vector<int>& block,
                                                const Assignment& cluster) const {
  std::vector<bool> possible(clusterCount(cluster) + 1, true);
  for (int u = 0; u < problem_.nodes; ++u)
    for (int v : block)
      if (cluster[u] != cluster[v] && !pairs_.canShare(u, v)) possible[cluster[u]] = false;
  const auto size = std::count(cluster.begin(), cluster.end(), cluster[block[0]]);
  if (static_cast<size_t>(size) == block.size()) possible.back() = false;  // it has a cluster of its own
  return possible;
}

}  // namespace kelpie::fusion
