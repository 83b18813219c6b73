// The parts of the exact search: minimum cuts, the cheapest cluster at given prices, the relaxation's bound.
#include "fusion/cluster_search.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "fusion/cluster_pricing.h"
#include "fusion/cluster_relaxation.h"
#include "fusion/minimum_cut.h"
#include "fusion/work_time.h"
#include "tests/fusion/random_problem.h"
#include "tests/fusion/shaped_problem.h"

namespace kelpie::fusion {
namespace {

struct Arc {
  int from, to;
  int64_t capacity;
};

/// The least cut by trying all, as (value, nodes of its smallest source side).
std::pair<int64_t, int> leastCut(int nodes, const std::vector<Arc>& arcs) {
  std::pair best(int64_t{1} << 60, nodes);
  for (unsigned side = 0; side < 1u << nodes; ++side) {
    if (!(side & 1) || (side & 2)) continue;
    int64_t value = 0;
    for (const Arc& a : arcs) {
      if ((side >> a.from & 1) && !(side >> a.to & 1)) value += a.capacity;
    }
    best = std::min(best, std::pair(value, std::popcount(side)));
  }
  return best;
}

TEST(MinimumCut, EqualsTheLeastOfAllCutsWhileCapacitiesGrowAndStatesComeBack) {
  std::mt19937 random(17);
  const auto number = [&](int low, int high) { return std::uniform_int_distribution<>(low, high)(random); };
  for (int round = 0; round < 200; ++round) {
    const int nodes = number(3, 8);
    MinimumCut cut;
    while (cut.addNode() < nodes - 1) {
    }
    std::vector<Arc> arcs;
    std::vector<int> names;
    for (int k = number(nodes, 3 * nodes); k > 0; --k) {
      const int from = number(0, nodes - 1), to = number(0, nodes - 1);
      if (from == to || from == MinimumCut::kSink || to == MinimumCut::kSource) continue;
      arcs.push_back({from, to, number(0, 20)});
      names.push_back(cut.addArc(from, to, arcs.back().capacity));
    }
    const auto check = [&] {
      const auto [value, side] = leastCut(nodes, arcs);
      ASSERT_EQ(cut.augment(), value);
      int here = 0;
      for (int v = 0; v < nodes; ++v) here += cut.onSourceSide(v);
      ASSERT_EQ(here, side);
    };
    check();
    for (int step = 0; step < 4 && !arcs.empty(); ++step) {
      const MinimumCut::State state = cut.state();
      const std::vector<Arc> before = arcs;
      const auto k = static_cast<size_t>(number(0, static_cast<int>(arcs.size()) - 1));
      const int by = number(1, 9);
      arcs[k].capacity += by;
      cut.raise(names[k], by);
      check();
      if (step % 2 == 0) continue;
      cut.restore(state);
      arcs = before;
      check();
    }
  }
}

/// Whether the nodes could be a cluster, whatever the others are.
bool legalByItself(const PartitionProblem& p, const PairTable& pairs, const std::vector<int>& members) {
  const auto in = [&](int v) { return std::find(members.begin(), members.end(), v) != members.end(); };
  double weight = 0;
  for (int a : members) {
    weight += p.weight[a];
    for (int b : members) {
      if (a == b) continue;
      if (!pairs.canShare(a, b)) return false;
      for (int w = 0; w < p.nodes; ++w) {
        if (!in(w) && pairs.reaches(a, w) && pairs.reaches(w, b)) return false;
      }
    }
  }
  for (const Requirement& q : p.requirements) {
    if (in(q.a) && in(q.b) && !in(q.third)) return false;
  }
  return members.size() == 1 || weight <= p.budget;
}

std::vector<PartitionProblem> smallProblems() {
  std::vector<PartitionProblem> problems;
  std::mt19937 random(23);
  for (int round = 0; round < 40; ++round)
    problems.push_back(randomProblem(random, {8, 0.25, 0.2, 0.1, round % 4, round % 3 == 0}));
  for (int round = 0; round < 60; ++round)  // clusters that depend on each other
    problems.push_back(randomProblem(random, {9, 0.15, 0.6, 0.25, 0, false}));
  for (const RegionShape shape : kRegionShapes) {
    for (uint32_t seed = 0; seed < 5; ++seed) problems.push_back(ShapedProblem(shape, 8, seed).problem());
  }
  return problems;
}

TEST(ClusterPricing, FindsTheCheapestClusterAndAllBelowALimit) {
  std::mt19937 random(29);
  const auto real = [&](double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random);
  };
  int64_t clusters = 0;
  int decided = 0;
  for (const PartitionProblem& p : smallProblems()) {
    const PairTable pairs(p);
    const ClusterPricing pricing(p, pairs);
    ClusterPrices prices;
    prices.cluster = real(0, 2);
    for (int a = 0; a < p.nodes; ++a) {
      prices.node.push_back(real(-2, 12));
      for (int b = 0; b < a; ++b) {
        if (real(0, 1) < 0.15) prices.pairs.push_back({a, b, real(-3, 3)});
      }
    }
    for (int a = 0; a < p.nodes; ++a) {
      ClusterPrices::Star priced{{a, {}}, real(0, 4)};
      for (int b = 0; b < p.nodes; ++b) {
        if (a != b && real(0, 1) < 0.3) priced.star.others.push_back(b);
      }
      if (!priced.star.others.empty() && real(0, 1) < 0.3) prices.stars.push_back(priced);
    }
    std::set<std::vector<int>> expected, found;
    double least = 1e300;
    const double limit = real(-20, 5);
    for (unsigned set = 1; set < 1u << p.nodes; ++set) {
      std::vector<int> members;
      for (int v = 0; v < p.nodes; ++v) {
        if (set >> v & 1) members.push_back(v);
      }
      if (!legalByItself(p, pairs, members)) continue;
      ++clusters;
      double cost = pricing.costOf(members) - prices.cluster;
      for (int v : members) cost -= prices.node[v];
      for (const ClusterPrices::Pair& pair : prices.pairs)
        cost += ((set >> pair.a) & (set >> pair.b) & 1) * pair.cost;
      for (const auto& [star, price] : prices.stars) {
        const bool some =
            std::any_of(star.others.begin(), star.others.end(), [&](int v) { return set >> v & 1; });
        cost += (set >> star.node & 1) && some ? price : 0;
      }
      least = std::min(least, cost);
      if (cost < limit) expected.insert(members);
    }
    double cheapest = 1e300;
    for (int r = 0; r < p.nodes; ++r) {
      int64_t steps = 1'000'000;
      const ClusterPricing::Cheapest best = pricing.cheapest(r, prices, 1e6, steps);
      EXPECT_LE(best.bound, best.cost + 1e-9);
      EXPECT_GE(best.bound, best.cost - 1e-6);
      cheapest = std::min(cheapest, best.cost);
      int64_t few = 2;
      EXPECT_LE(pricing.cheapest(r, prices, 1e6, few).bound, best.cost + 1e-9);
      EXPECT_TRUE(pricing.forEachBelow(r, prices, limit, steps, [&](std::vector<int> members) {
        EXPECT_TRUE(found.insert(members).second) << "each once";
      }));
    }
    EXPECT_NEAR(cheapest, least, 1e-6);
    EXPECT_EQ(found, expected);
    for (int v = 0; v < p.nodes; ++v) {
      std::vector<const std::vector<int>*> with;  // clusters with v
      for (const std::vector<int>& c : expected) {
        if (std::find(c.begin(), c.end(), v) != c.end()) with.push_back(&c);
      }
      const auto has = [&](int w) {
        return std::count_if(with.begin(), with.end(),
                             [&](const auto* c) { return std::find(c->begin(), c->end(), w) != c->end(); });
      };
      for (const bool knowsSome : {false, true}) {
        std::vector<const std::vector<int>*> known;
        if (knowsSome && !with.empty()) known.push_back(with.back());
        const ClusterPricing::Forced forced = pricing.forced(v, prices, limit, known, Deadline(60));
        EXPECT_TRUE(forced.any || with.empty());
        for (int w : forced.with) EXPECT_EQ(has(w), static_cast<std::ptrdiff_t>(with.size()));
        for (int w : forced.without) EXPECT_EQ(has(w), 0);
        decided += static_cast<int>(forced.with.size() + forced.without.size());
      }
    }
  }
  EXPECT_GT(clusters, 1000);
  EXPECT_GT(decided, 1000);
}

TEST(ClusterPricing, CostsOfClustersAddUpToThatOfThePartition) {
  for (const PartitionProblem& p : smallProblems()) {
    const PairTable pairs(p);
    const ClusterPricing pricing(p, pairs);
    int left = 50;
    forEachPartition(p, pairs, [&](const Assignment& cluster) {
      if (--left < 0 || illegal(p, cluster)) return;
      std::vector<std::vector<int>> members(p.nodes);
      for (int v = 0; v < p.nodes; ++v) members[cluster[v]].push_back(v);
      double sum = 0;
      for (const std::vector<int>& m : members) sum += m.empty() ? 0 : pricing.costOf(m);
      EXPECT_NEAR(sum, costOf(p, cluster), 1e-9);
    });
  }
}

/// Turns that are over before the networks of all nodes were there would find nothing.
TEST(ClusterSearch, IsNotBegunWhereThereIsNoTimeForMore) {
  constexpr int kNodes = 200;
  PartitionProblem p;
  p.nodes = kNodes;
  p.launch.assign(kNodes, 1);
  p.weight.assign(kNodes, 0);
  Assignment apart(kNodes);
  std::iota(apart.begin(), apart.end(), 0);
  ClusterSearch search(p, apart);
  const int64_t before = WorkTime::spent();
  EXPECT_EQ(search.run(apart, 0, 0, 0.05).columns, 0);
  EXPECT_LT(WorkTime::spent() - before, 10'000'000);
  const ClusterSearchResult& found = search.run(apart, 0, 0, 60);
  EXPECT_DOUBLE_EQ(costOf(p, found.cluster), 1);
}

TEST(ClusterRelaxation, BoundsEveryPartitionAndKeepsTheClustersOfBetterOnes) {
  int cuts = 0, problems = 0;
  double ascended = 0, optima = 0;
  for (const PartitionProblem& p : smallProblems()) {
    const PairTable pairs(p);
    const double best = exhaustiveOptimum(p);
    ClusterRelaxation relaxation(p, pairs);
    const Deadline deadline(60);
    if (++problems % 2 == 0) {
      relaxation.ascend(best + 0.5, deadline);
      EXPECT_LE(relaxation.bound(), best + 1e-6);
      ascended += relaxation.bound();
      optima += best;
    }
    for (int round = 0; round < 6; ++round) {
      ASSERT_TRUE(relaxation.generate(1e9, deadline));
      EXPECT_LE(relaxation.bound(), best + 1e-6);
      const auto candidates = relaxation.candidates(best + 0.5, 100'000);
      ASSERT_TRUE(candidates);
      const std::vector<ClusterPricing::Forced> forced = relaxation.forced(best + 0.5, deadline);
      const std::set<std::vector<int>> known(candidates->begin(), candidates->end());
      forEachPartition(p, pairs, [&](const Assignment& cluster) {
        if (costOf(p, cluster) > best + 0.4 || illegal(p, cluster)) return;
        for (int v = 0; v < p.nodes; ++v) {
          EXPECT_TRUE(forced[v].any);
          for (int w : forced[v].with) EXPECT_EQ(cluster[v], cluster[w]);
          for (int w : forced[v].without) EXPECT_NE(cluster[v], cluster[w]);
        }
        std::vector<std::vector<int>> members(p.nodes);
        for (int v = 0; v < p.nodes; ++v) members[cluster[v]].push_back(v);
        for (const std::vector<int>& m : members) EXPECT_TRUE(m.empty() || known.contains(m));
      });
      if (!relaxation.addCuts(best + 0.5)) break;
      ++cuts;
    }
  }
  EXPECT_GT(cuts, 10);
  EXPECT_GT(ascended, 0.95 * optima);
}

}  // namespace
}  // namespace kelpie::fusion
