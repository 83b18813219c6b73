// The textbook formulation of clustering (Robinson, Lippmeier, Chakravarty and Keller, after Megiddo and
// Sarkar), for comparison with solve_ilp.h: one x for every pair, positions, and all constraints stated in
// advance.
//
//   minimise  sum W_ij x_ij + sum N c_i      W_ij = N^2 where i -> j or both read a common array, otherwise 1
//   x_ij = 0: i and j share a cluster;  c_i = 0: the array that i makes is never stored
//   no edge          -N x_ij <= pos_j - pos_i <= N x_ij
//   fusible i -> j       x_ij <= pos_j - pos_i <= N x_ij,  x_ij <= c_i
//   blocking i -> j         1 <= pos_j - pos_i,            c_i = 1
//
// Pairs that can never share (a blocking edge on some path between them, or sizes that have nothing to do
// with each other) have x_ij = 1, which is left out of the objective. Pairs of different sizes that descend
// by filters from parents share only if the parents do, and each is with its own parent.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fusion/partition.h"

namespace kelpie::fusion {

struct TextbookProblem {
  int nodes = 0;
  std::vector<PartitionEdge> edges;
  std::vector<bool> makesArray;                ///< whether N c_i is counted
  std::vector<std::vector<int>> sharedInputs;  ///< for each array: the nodes that read it
  /// Pairs of different sizes, and the filters (or the nodes themselves) through which they may share.
  struct Sizes {
    int a = 0, b = 0;
    int parentA = 0, parentB = 0;
  };
  std::vector<Sizes> sizes;
  std::vector<std::pair<int, int>> never;  ///< sizes without a common ancestor
};

struct TextbookSolution {
  Assignment cluster;
  double objective = 0;
  bool optimal = false;
  double seconds = 0;
};

TextbookSolution solveTextbook(const TextbookProblem& problem, double seconds);

}  // namespace kelpie::fusion
