#include "fusion/region_problem.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::SoacKind;
using lcu::VarId;

namespace {

/// Variables that something else than a kernel of the block needs.
std::set<VarId> outliving(const lcu::Block& block, const DependenceGraph& graph) {
  std::set<VarId> result(block.results.begin(), block.results.end());
  for (const GraphNode& node : graph.nodes) {
    if (node.soac) continue;
    for (VarId var : lcu::freeVars(*node.stmt)) result.insert(var);
  }
  return result;
}

class Accesses {
 public:
  Accesses(const DependenceGraph& graph, const lcu::Program& program, const CostModel& model)
      : program_(program), model_(model) {
    for (size_t v = 0; v < graph.nodes.size(); ++v) {
      for (VarId result : graph.nodes[v].stmt->results) producer_[result] = static_cast<int>(v);
    }
  }

  void addKernel(int node, const lcu::Soac& soac) {
    std::set<Key> keys;
    if (soac.kind == SoacKind::Once) return;  // a few scalars
    std::unordered_map<ExprRef, double> shares;
    for (ExprRef thunk : thunksOf(soac)) addShares(thunk, 1, shares);
    for (const auto& [e, share] : shares) {
      if (e->kind != ExprKind::Load) continue;
      const Key key = keyOf(e, soac.space);
      keys.insert(key);
      shares_[key] = std::max(shares_[key], share);
    }
    if (soac.space.kind == lcu::SpaceKind::Offsets)
      keys.insert({soac.space.offsets, nullptr, soac.space.segments});
    for (const Key& key : keys) readers_[key].push_back(node);
  }

  void finish(RegionProblem& region) const {
    std::map<VarId, double> inOrder;  // the most loads of an array in order: it has that many elements
    for (const auto& [key, readers] : readers_) {
      if (pattern(key) == AccessPattern::InOrder || pattern(key) == AccessPattern::Shifted)
        inOrder[key.var] = std::max(inOrder[key.var], model_.elements(key.count));
    }
    for (const auto& [key, readers] : readers_) {
      const auto& [var, position, count] = key;
      const double loads =
          model_.elements(count) + (position ? 0 : 1);  // of n segments there are n + 1 offsets
      const auto producer = producer_.find(var);
      const double time =
          near(key, readers) ? loads * model_.costs().cachedLoad : loadingTime(key, loads, inOrder[var]);
      region.problem.accesses.push_back({producer == producer_.end() ? -1 : producer->second, readers, time});
      region.accessBytes.push_back(loads * sizeOf(program_.vars[var].type));
    }
  }

 private:
  /// Array, position (null for segment descriptors), how many loads. Ordered by age, so that all is
  /// deterministic.
  struct Key {
    VarId var;
    ExprRef position, count;
    bool operator<(const Key& other) const {
      const auto rank = [](ExprRef e) { return e ? static_cast<int64_t>(e->id) : -1; };
      return std::tuple(var, rank(position), rank(count)) <
             std::tuple(other.var, rank(other.position), rank(other.count));
    }
  };

  /// Of every node, for which share of the elements it is evaluated: the largest on any way to it.
  void addShares(ExprRef e, double share, std::unordered_map<ExprRef, double>& shares) const {
    double& known = shares[e];
    if (known >= share) return;
    known = share;
    for (size_t k = 0; k < e->operands.size(); ++k) {
      const bool branch = e->kind == ExprKind::If && k > 0;
      addShares(e->operands[k], branch ? share * model_.taken(e->operands[0], k == 1) : share, shares);
    }
  }

  /// What is loaded in order comes in whole cache lines, whoever needs it.
  double loadingTime(const Key& key, double loads, double least) const {
    const auto it = shares_.find(key);
    const bool lone = pattern(key) == AccessPattern::Arbitrary && it != shares_.end();
    return model_.loads(pattern(key), key.var, loads * (lone ? it->second : 1), least);
  }

  AccessPattern pattern(const Key& key) const {
    if (!key.position) return AccessPattern::InOrder;
    const auto [known, isNew] = patterns_.try_emplace(key.position);
    if (isNew) known->second = patternOf(key.position);
    return known->second;
  }

  /// Whether all readers load the array in order at another position, too, so that this one is in a cache.
  bool near(const Key& key, const std::vector<int>& readers) const {
    if (pattern(key) != AccessPattern::Shifted) return false;
    const auto first = readers_.lower_bound({key.var, nullptr, nullptr});
    const auto end = readers_.lower_bound({key.var + 1, nullptr, nullptr});
    return std::any_of(first, end, [&](const auto& other) {
      if (other.first.count != key.count ||
          !std::includes(other.second.begin(), other.second.end(), readers.begin(), readers.end()))
        return false;
      const AccessPattern otherPattern = pattern(other.first);
      return otherPattern == AccessPattern::InOrder ||
             (otherPattern == AccessPattern::Shifted && other.first < key);
    });
  }

  static Key keyOf(ExprRef load, const lcu::Space& space) {
    const ExprRef at = load->operands[0];
    const bool bySegment = at->kind == ExprKind::Param && at->index == 1;
    return {load->index, at, bySegment ? space.segments : space.extent};
  }

  const lcu::Program& program_;
  const CostModel& model_;
  std::map<VarId, int> producer_;
  std::map<Key, std::vector<int>> readers_;
  std::map<Key, double> shares_;  ///< of the elements that load
  mutable std::unordered_map<ExprRef, AccessPattern> patterns_;
};

}  // namespace

RegionProblem regionProblem(const lcu::Block& block, const DependenceGraph& graph,
                            const lcu::Program& program, const CostModel& model) {
  RegionProblem region;
  PartitionProblem& p = region.problem;
  p.nodes = static_cast<int>(graph.nodes.size());
  p.budget = model.costs().collectiveBudget;
  Accesses accesses(graph, program, model);
  std::map<VarId, std::vector<int>> arrayReaders;
  for (int v = 0; v < p.nodes; ++v) {
    const lcu::Soac* soac = graph.nodes[v].soac;
    p.launch.push_back(soac ? model.costs().launch : 0);
    p.weight.push_back(soac ? model.collectiveBytes(*soac) : 0);
    region.rest.push_back(soac ? model.timeOf(*soac) : SoacTime());
    region.elementwise.push_back(soac && soac->kind == SoacKind::Map);
    if (!soac) {
      for (int u = 0; u < p.nodes; ++u) {
        if (u < v || graph.nodes[u].soac) p.forbidden.emplace_back(std::min(u, v), std::max(u, v));
      }
      continue;
    }
    accesses.addKernel(v, *soac);
    for (const auto& [var, ways] : readsOf(*soac)) {
      arrayReaders[var].push_back(v);
    }
  }
  for (const GraphEdge& e : graph.edges) p.edges.push_back({e.from, e.to, e.fusible});
  for (const SpaceConflict& c : graph.conflicts) p.forbidden.emplace_back(c.a, c.b);
  p.requirements = graph.requirements;
  accesses.finish(region);
  const std::set<VarId> outlives = outliving(block, graph);
  for (int v = 0; v < p.nodes; ++v) {
    if (!graph.nodes[v].soac) continue;
    for (VarId var : graph.nodes[v].soac->results) {
      const lcu::VarInfo& info = program.vars[var];
      if (info.kind == lcu::VarKind::Host) continue;
      const lcu::Soac& soac = *graph.nodes[v].soac;
      const bool scattered = soac.kind == SoacKind::Permute && soac.fill.empty();
      const double bytes = scattered ? model.elements(soac.space.extent) * sizeOf(info.type)
                           : info.kind == lcu::VarKind::Array ? model.bytesOf(var)
                                                              : sizeOf(info.type);
      p.stores.push_back({v, arrayReaders[var], outlives.contains(var), bytes * model.costs().byte});
      region.storeBytes.push_back(bytes);
      region.countsSurvivors.push_back(soac.kind == SoacKind::Filter && var == soac.results[0]);
    }
  }
  return region;
}

}  // namespace kelpie::fusion
