// Random clustering problems of the shapes that regions have: chains, trees, layers, filters of filters, the
// trap of filters that need each other, independent nodes, dense graphs.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "fusion/partition.h"

namespace kelpie::fusion {

enum class RegionShape : uint8_t { Chains, InTree, OutTree, Layers, Filters, Traps, Independent, Dense };

constexpr RegionShape kRegionShapes[] = {RegionShape::Chains,      RegionShape::InTree,  RegionShape::OutTree,
                                         RegionShape::Layers,      RegionShape::Filters, RegionShape::Traps,
                                         RegionShape::Independent, RegionShape::Dense};

inline const char* toString(RegionShape shape) {
  constexpr const char* kNames[] = {"chains",  "in-tree", "out-tree",    "layers",
                                    "filters", "traps",   "independent", "dense"};
  return kNames[static_cast<size_t>(shape)];
}

/// A region in the making: nodes run over spaces, a space may be what a filter leaves of another one.
class ShapedProblem {
 public:
  ShapedProblem(RegionShape shape, int nodes, uint32_t seed) : random_(seed), wanted_(nodes) {
    for (int k = number(1, 3 + nodes / 25); k > 0; --k) spaces_.push_back({-1, -1});
    inputs_.resize(static_cast<size_t>(std::max(2, nodes / 8)));
    blocking_ = any({0.1, 0.25, 0.5});
    lines_ = number(1, 2 + nodes / 8);
    near_ = number(2, 6);
    while (count() < wanted_) grow(shape);
  }

  PartitionProblem problem() {
    PartitionProblem p;
    p.nodes = count();
    const double unit = any({1.0, 0.125, 0.3});
    p.launch.assign(p.nodes, number(1, 8));
    if (chance(0.3)) p.budget = 32;
    std::vector<std::vector<int>> readers(p.nodes);
    for (int v = 0; v < p.nodes; ++v) {
      p.weight.push_back(chance(0.2) ? 8 : 0);
      for (const Read& r : nodes_[v].reads) {
        p.edges.push_back({r.producer, v, r.fusible});
        readers[r.producer].push_back(v);
      }
    }
    for (int v = 0; v < p.nodes; ++v) {
      const double cost = unit * number(1, 12);
      if (!readers[v].empty()) p.accesses.push_back({v, readers[v], cost});
      p.stores.push_back({v, readers[v], readers[v].empty() || chance(0.1), cost});
    }
    for (std::vector<int>& input : inputs_) {
      if (!input.empty()) p.accesses.push_back({-1, input, unit * number(1, 12)});
    }
    for (int a = 0; a < p.nodes; ++a) {
      for (int b = a + 1; b < p.nodes; ++b) relate(p, a, b);
    }
    return p;
  }

 private:
  struct Read {
    int producer;
    bool fusible;
  };
  struct Node {
    int space;
    std::vector<Read> reads;
  };
  struct Space {
    int parent, filter;  ///< -1: a space of its own
  };

  int count() const { return static_cast<int>(nodes_.size()); }
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  int number(int low, int high) { return std::uniform_int_distribution<>(low, high)(random_); }
  double any(const std::vector<double>& values) {
    return values[static_cast<size_t>(number(0, static_cast<int>(values.size()) - 1))];
  }
  int anySpace() { return number(0, static_cast<int>(spaces_.size()) - 1); }
  std::vector<int> someOf(int low, int high, int most) {
    std::vector<int> result;
    for (int k = number(1, most); k > 0; --k) result.push_back(number(low, high));
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  void grow(RegionShape shape) {
    const int v = count();
    switch (shape) {
      case RegionShape::Chains:
        return v < lines_ ? add(anySpace()) : after({v - lines_});
      case RegionShape::InTree: {  // leaves first; every other node joins two
        const int leaves = wanted_ / 2 + 1, pair = 2 * (v - leaves);
        return v < leaves ? add(anySpace()) : after({pair, pair + 1});
      }
      case RegionShape::OutTree:
        return v == 0 ? add(0) : after({number(std::max(0, v - 10), v - 1)});
      case RegionShape::Layers: {
        const int begin = v / lines_ * lines_;
        return v < lines_ ? add(anySpace()) : after(someOf(begin - lines_, begin - 1, 3));
      }
      case RegionShape::Filters:
        if (v == 0) return add(0);
        return chance(0.3) ? filter(anySpace()) : after(someOf(std::max(0, v - 12), v - 1, 2));
      case RegionShape::Traps:
        return trap();
      case RegionShape::Independent:
        return add(anySpace());
      case RegionShape::Dense:
        return v < 2 ? add(anySpace()) : after(someOf(std::max(0, v - 30), v - 1, near_));
    }
  }

  void add(int space, std::vector<Read> reads = {}) {
    nodes_.push_back({space, std::move(reads)});
    for (std::vector<int>& input : inputs_) {
      if (chance(1.5 / static_cast<double>(inputs_.size()))) input.push_back(count() - 1);
    }
  }
  /// A node that reads these, over the space of one of them; element for element what is over that space.
  void after(const std::vector<int>& producers) {
    const int space = chance(0.85)
                          ? nodes_[producers[number(0, static_cast<int>(producers.size()) - 1)]].space
                          : anySpace();
    std::vector<Read> reads;
    for (int u : producers) reads.push_back({u, nodes_[u].space == space && !chance(blocking_)});
    add(space, std::move(reads));
  }
  /// A filter over a space, and with it the space of what it leaves; a consumer, mostly.
  void filter(int space) {
    const int f = count();
    add(space);
    spaces_.push_back({space, f});
    if (count() < wanted_ && chance(0.8)) add(static_cast<int>(spaces_.size()) - 1, {{f, true}});
  }
  /// as = filter xs; b = reduce as; cs = filter[b] xs; ds = reduce as; es = reduce cs
  void trap() {
    const int space = number(0, std::min(3, static_cast<int>(spaces_.size()) - 1));
    const int as = count(), b = as + 1, cs = as + 2;
    const int left = static_cast<int>(spaces_.size()), right = left + 1;
    spaces_.push_back({space, as});
    spaces_.push_back({space, cs});
    add(space);
    add(left, {{as, true}});
    add(space, {{b, false}});
    add(left, {{as, true}});
    add(right, {{cs, true}});
    if (chance(0.5)) add(space, {{b, false}, {as, false}});
  }

  /// What lies above a node's space: the filters down to it, the nearest first, and the space they start
  /// from.
  std::vector<Space> lineage(int v) const {
    std::vector<Space> result;
    for (int s = nodes_[v].space; s >= 0; s = spaces_[s].parent) result.push_back({s, spaces_[s].filter});
    return result;
  }
  void relate(PartitionProblem& p, int a, int b) const {
    const std::vector<Space> as = lineage(a), bs = lineage(b);
    for (size_t i = 0; i < as.size(); ++i) {
      for (size_t j = 0; j < bs.size(); ++j) {
        if (as[i].parent != bs[j].parent) continue;
        for (size_t k = 0; k < i; ++k) need(p, a, b, as[k].filter);
        for (size_t k = 0; k < j; ++k) need(p, a, b, bs[k].filter);
        return;
      }
    }
    p.forbidden.emplace_back(a, b);
  }
  static void need(PartitionProblem& p, int a, int b, int third) {
    if (third != a && third != b) p.requirements.push_back({a, b, third});
  }

  std::mt19937 random_;
  int wanted_, lines_ = 1, near_ = 1;
  double blocking_ = 0;
  std::vector<Node> nodes_;
  std::vector<Space> spaces_;
  std::vector<std::vector<int>> inputs_;
};

}  // namespace kelpie::fusion
