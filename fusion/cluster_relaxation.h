// The relaxation of the program over all legal clusters (cluster_program.h), by column generation.
//
// In: a problem. Out: a lower bound that rises; the clusters and the order cuts that hold the relaxation.
//
// The prices of any moment give a bound, the Lagrangian one: what the prices are worth, plus the cheapest
// cluster of each representative where that is negative. So a relaxation that is stopped early has one, too.
// Prices are smoothed towards those with the best bound: those of the program alone jump about. The first
// ones come from an ascent that needs no program (the volume algorithm: steps along an average of what was
// missing): at a thousand nodes two seconds of it are worth half a minute of programs.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "fusion/cluster_pricing.h"
#include "fusion/cluster_program.h"
#include "fusion/deadline.h"
#include "fusion/order_cuts.h"

namespace kelpie::fusion {

class ClusterRelaxation {
 public:
  /// `fewest`: no partition that is wanted has fewer clusters.
  ClusterRelaxation(const PartitionProblem& problem, const PairTable& pairs, int fewest = 0)
      : problem_(problem),
        pricing_(problem, pairs),
        orderCuts_(problem, pairs),
        program_(problem, pricing_, fewest) {}

  ClusterProgram& program() { return program_; }
  const ClusterProgram& program() const { return program_; }
  const OrderCuts& orderCuts() const { return orderCuts_; }

  /// Raises the bound before any other work, from the clusters known, without solving programs: for large
  /// problems.
  void ascend(double enough, const Deadline& deadline);
  /// Adds clusters until none improves the program, or the bound reaches `enough` or comes close to the value
  /// of the program; false when the time was up before.
  bool generate(double enough, const Deadline& deadline);
  /// Adds the order cuts that the relaxation breaks; false if there are none. Forgets the clusters that a
  /// partition below `enough` hardly has.
  bool addCuts(double enough);

  double value() const { return value_; }  ///< of the program over the clusters known
  double bound() const { return bound_; }  ///< no legal partition costs less
  /// Those that the bound comes from. A cluster that costs more at them than a partition costs above the
  /// bound is in no partition that is better.
  ClusterPrices bestPrices() const;

  /// What the clusters of a partition better than `cost` have in common, by node.
  std::vector<ClusterPricing::Forced> forced(double cost, const Deadline& deadline) const;

  /// All clusters that may be in a partition better than `cost`; nothing if there are more than `most`.
  std::optional<std::vector<std::vector<int>>> candidates(double cost, size_t most) const;

 private:
  /// The cheapest clusters at some duals, by representative.
  struct Pricing {
    explicit Pricing(int nodes) : cheapest(nodes), searched(nodes, 0) {}
    std::vector<ClusterPricing::Cheapest> cheapest;
    std::vector<char> searched;  ///< to the end
    bool complete = false;       ///< all of them
  };
  bool price(const std::vector<double>& duals, int64_t mostSteps, bool add, const Deadline& deadline,
             Pricing& pricing);

  const PartitionProblem& problem_;
  ClusterPricing pricing_;
  OrderCuts orderCuts_;
  ClusterProgram program_;
  std::vector<double> bestDuals_;
  double bound_ = -1e300, value_ = 0;
};

}  // namespace kelpie::fusion
