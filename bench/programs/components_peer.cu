// Peer of components.nesl: a union-find forest of all edges at once, larger roots below smaller ones; the
// host never waits.
//
//   components_peer random N M | rmat SCALE M | grid SIDE
#include "graph_peer.cuh"

__device__ int64_t rootOf(int64_t* parent, int64_t v) {
  int64_t p = parent[v];
  while (p != v) {
    const int64_t above = parent[p];
    if (above != p) parent[v] = above;  // halves the path; other threads only make it shorter
    v = p;
    p = above;
  }
  return v;
}

int main(int argc, char** argv) {
  const Ends ends = endsOf(argc, argv);
  const int64_t n = ends.n, m = int64_t(ends.from.size());
  Array<int64_t> from(ends.from), to(ends.to), parents(n);
  int64_t *us = from, *vs = to, *parent = parents;
  const double time = medianMilliseconds([&] {
    forEach(n, [=] __device__(int64_t v) { parent[v] = v; });
    forEach(m, [=] __device__(int64_t e) {
      int64_t a = rootOf(parent, us[e]), b = rootOf(parent, vs[e]);
      while (a != b) {
        const int64_t large = max(a, b), small = min(a, b);
        const auto seen = static_cast<int64_t>(
            atomicCAS(reinterpret_cast<unsigned long long*>(parent + large),
                      static_cast<unsigned long long>(large), static_cast<unsigned long long>(small)));
        if (seen == large) break;
        a = rootOf(parent, seen);
        b = small;
      }
    });
    // Without shortcuts: one thread's would undo what another has found.
    forEach(n, [=] __device__(int64_t v) {
      int64_t root = v;
      while (parent[root] != root) root = parent[root];
      parent[v] = root;
    });
  });
  report("components", time, digest(parents.host()));
}
