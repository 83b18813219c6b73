// Graphs as bench/programs/graphs.nesl makes them: ends of edges, and adjacency lists as offsets and
// neighbours.
#pragma once

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "peer.cuh"

/// Directed edges (from[k], to[k]) between vertices 0 to n - 1.
struct Ends {
  int64_t n;
  std::vector<int64_t> from, to;
};

inline int64_t rmatEnd(int64_t i, int64_t scale, bool second) {
  int64_t end = 0;
  for (int64_t k = scale; k > 0; --k) {
    const int64_t r = below(64 * i + k, 100);
    end = 2 * end + (second ? (r >= 57 && (r < 76 || r >= 95)) : r >= 76);
  }
  return end;
}

/// "random N M", "rmat SCALE M", "grid SIDE"
inline Ends endsOf(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  Ends ends;
  if (kind == "grid") {
    const int64_t side = argument(argc, argv, 2), cells = side * (side - 1);
    ends.n = side * side;
    for (int64_t c = 0; c < cells; ++c) {
      ends.from.push_back(c % (side - 1) + side * (c / (side - 1)));
      ends.to.push_back(ends.from.back() + 1);
    }
    for (int64_t c = 0; c < cells; ++c) {
      ends.from.push_back(c);
      ends.to.push_back(c + side);
    }
    return ends;
  }
  const int64_t size = argument(argc, argv, 2), m = argument(argc, argv, 3);
  ends.n = kind == "rmat" ? int64_t{1} << size : size;
  for (int64_t i = 0; i < m; ++i) {
    ends.from.push_back(kind == "rmat" ? rmatEnd(i, size, false) : below(2 * i, size));
    ends.to.push_back(kind == "rmat" ? rmatEnd(i, size, true) : below(2 * i + 1, size));
  }
  return ends;
}

inline Ends bothWays(Ends ends) {
  const std::vector<int64_t> from = ends.from;
  ends.from.insert(ends.from.end(), ends.to.begin(), ends.to.end());
  ends.to.insert(ends.to.end(), from.begin(), from.end());
  return ends;
}

struct Adjacency {
  std::vector<int64_t> offsets, neighbours;
};

/// Neighbours in the order of the edges.
inline Adjacency adjacency(const Ends& ends) {
  Adjacency graph;
  graph.offsets.assign(size_t(ends.n) + 1, 0);
  for (int64_t u : ends.from) ++graph.offsets[size_t(u) + 1];
  for (size_t v = 0; v < size_t(ends.n); ++v) graph.offsets[v + 1] += graph.offsets[v];
  std::vector<int64_t> next(graph.offsets.begin(), graph.offsets.end() - 1);
  graph.neighbours.resize(ends.from.size());
  for (size_t k = 0; k < ends.from.size(); ++k)
    graph.neighbours[size_t(next[size_t(ends.from[k])]++)] = ends.to[k];
  return graph;
}
