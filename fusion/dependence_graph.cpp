#include "fusion/dependence_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::SpaceKind;
using lcu::VarId;

const char* toString(EdgeClass edgeClass) {
  switch (edgeClass) {
    case EdgeClass::Pointwise:
      return "pointwise";
    case EdgeClass::Survivors:
      return "survivors";
    case EdgeClass::SegmentResult:
      return "segment result";
    case EdgeClass::Finish:
      return "finish";
    case EdgeClass::Whole:
      return "whole";
    case EdgeClass::HostFetch:
      return "host fetch";
    case EdgeClass::Order:
      return "order";
  }
  return "";
}

ExprRef survivorExtent(const Soac& filter, const lcu::Program& program) {
  if (filter.results.size() > 1) return program.vars[filter.results[1]].extent;
  if (filter.space.segmented())
    return program.arena->load(filter.results[0], lcu::kIndex, filter.space.segments);
  return program.arena->host(filter.results[0], lcu::kIndex);
}

std::map<VarId, ReadWays> readsOf(const Soac& soac) {
  std::map<VarId, ReadWays> reads;
  const bool hasIndices = soac.kind != SoacKind::Once;
  lcu::forEachNode(thunksOf(soac), [&](ExprRef e) {
    if (e->kind == ExprKind::Host) reads[e->index].scalar = true;
    if (e->kind == ExprKind::Size) reads[e->index].extent = true;
    if (e->kind != ExprKind::Load) return;
    const ExprRef at = e->operands[0];
    if (hasIndices && at->kind == ExprKind::Param && at->index == 0) {
      reads[e->index].pointwise = true;
    } else if (hasIndices && at->kind == ExprKind::Param && at->index == 1) {
      reads[e->index].segment = true;
    } else {
      reads[e->index].elsewhere = true;
    }
  });
  lcu::forEachNode(soac.combine.result, [&](ExprRef e) {
    if (e->kind == ExprKind::Host) reads[e->index].scalar = true;
    if (e->kind == ExprKind::Load) reads[e->index].elsewhere = true;
  });
  for (VarId var : soac.onto) reads[var].elsewhere = true;
  std::vector<ExprRef> extents;
  if (hasIndices) {
    for (ExprRef e : {soac.space.extent, soac.space.segments, soac.space.length, soac.target}) {
      if (e) extents.push_back(e);
    }
    if (soac.space.kind == SpaceKind::Offsets) reads[soac.space.offsets].offsets = true;
  }
  lcu::forEachNode(extents, [&](ExprRef e) {
    if (e->kind == ExprKind::Host || e->kind == ExprKind::Load || e->kind == ExprKind::Size) {
      reads[e->index].extent = true;
    }
  });
  return reads;
}

namespace {

/// "n_length, total, offset and 2 more"
std::string namesOf(const std::vector<VarId>& vars, const lcu::Program& program) {
  constexpr size_t kMost = 3;
  std::string names;
  for (size_t k = 0; k < std::min(vars.size(), kMost); ++k)
    names += (k > 0 ? ", " : "") + program.vars[vars[k]].name;
  if (vars.size() > kMost) names += " and " + std::to_string(vars.size() - kMost) + " more";
  return names;
}

std::string labelOf(const lcu::Stmt& stmt, const lcu::Program& program) {
  struct Label {
    const lcu::Stmt& stmt;
    const lcu::Program& program;
    std::string operator()(const lcu::HostLet&) const { return "scalars " + namesOf(stmt.results, program); }
    std::string operator()(const lcu::Launch& launch) const { return launch.kernel.name; }
    std::string operator()(const lcu::CallFunction& call) const {
      return "call of " + program.functions[call.function].name;
    }
    std::string operator()(const lcu::HostIf&) const { return "if"; }
    std::string operator()(const lcu::HostLoop&) const { return "loop"; }
    std::string operator()(const lcu::ArrayConstant&) const { return "constant array"; }
    std::string operator()(const lcu::Join&) const { return "join"; }
    std::string operator()(const lcu::Grade&) const { return "sort"; }
    std::string operator()(const lcu::Service& service) const { return service.name; }
  };
  return std::visit(Label{stmt, program}, stmt.node);
}

class Builder {
 public:
  Builder(const lcu::Block& block, const lcu::Program& program, const Effects& effects,
          const std::function<bool(const Soac&)>& mayFinishSegments)
      : program_(program), effects_(effects), mayFinishSegments_(mayFinishSegments) {
    for (const lcu::Stmt& stmt : block.stmts) {
      const int node = static_cast<int>(graph_.nodes.size());
      const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
      graph_.nodes.push_back({&stmt, launch ? &launch->kernel.bindings[0] : nullptr, labelOf(stmt, program),
                              effects.mayServe(stmt)});
      for (VarId result : stmt.results) producer_[result] = node;
      if (launch && launch->kernel.bindings[0].kind == SoacKind::Filter) {
        filterOfExtent_[survivorExtent(launch->kernel.bindings[0], program)] = node;
      }
    }
  }

  DependenceGraph run(const lcu::Block& block) {
    const int n = static_cast<int>(graph_.nodes.size());
    reads_.resize(n);
    graph_.liftedOver.assign(n, -1);
    graph_.liftObstacle.resize(n);
    graph_.obstructedFilter.assign(n, -1);
    for (int v = 0; v < n; ++v) {
      if (graph_.nodes[v].soac) {
        reads_[v] = readsOf(*graph_.nodes[v].soac);
        findFilter(v);
        kernelEdges(v);
      } else {
        hostEdges(v);
      }
      orderEdges(v);
      guardEdges(v);
    }
    for (int v = 0; v < n; ++v) overwritingEdges(v, block);
    std::sort(graph_.edges.begin(), graph_.edges.end(), [](const GraphEdge& a, const GraphEdge& b) {
      return std::pair(a.from, a.to) < std::pair(b.from, b.to);
    });
    fusibleInto_.resize(n);
    fusibleFrom_.resize(n);
    for (const GraphEdge& edge : graph_.edges) {
      if (!edge.fusible) continue;
      fusibleInto_[edge.to].push_back(edge.from);
      fusibleFrom_[edge.from].push_back(edge.to);
    }
    findEpilogues();
    for (int a = 0; a < n; ++a) {
      for (int b = a + 1; b < n; ++b) {
        if (graph_.nodes[a].soac && graph_.nodes[b].soac) relatePair(a, b);
      }
    }
    return std::move(graph_);
  }

 private:
  const Soac& soac(int node) const { return *graph_.nodes[node].soac; }
  std::string name(VarId var) const { return program_.vars[var].name; }
  int producerOf(VarId var) const {
    const auto it = producer_.find(var);
    return it == producer_.end() ? -1 : it->second;
  }

  // ---- survivors ----

  /// Whether the elements of v can be those of the filter instead of its survivors.
  void findFilter(int v) {
    const Soac& s = soac(v);
    if (s.kind == SoacKind::Once) return;
    const auto found = filterOfExtent_.find(s.space.extent);
    if (found == filterOfExtent_.end() || found->second >= v) return;
    const int f = found->second;
    std::string obstacle = liftObstacle(v, f);
    if (obstacle.empty()) {
      graph_.liftedOver[v] = f;
    } else {
      graph_.liftObstacle[v] = std::move(obstacle);
      graph_.obstructedFilter[v] = f;
    }
  }

  static bool usesSegments(const Soac& s) {
    return lcu::anyNode(thunksOf(s), [](ExprRef e) { return e->kind == ExprKind::Param && e->index > 0; });
  }

  /// Whether v, or what it reads of the same elements and may share a kernel with, needs to know their
  /// segments.
  bool needsSegments(int v) {
    const auto [it, fresh] = needsSegments_.try_emplace(v, false);
    if (!fresh) return it->second;
    const bool needs =
        usesSegments(soac(v)) || std::any_of(reads_[v].begin(), reads_[v].end(), [&](const auto& read) {
          const int u = producerOf(read.first);
          return read.second.pointwise && u >= 0 && graph_.nodes[u].soac && needsSegments(u);
        });
    return needsSegments_[v] = needs;
  }

  std::string liftObstacle(int v, int f) {
    const Soac& s = soac(v);
    const Soac& filter = soac(f);
    if (s.kind == SoacKind::Permute) return "permutes survivors and has nowhere to send the others";
    if (s.kind == SoacKind::Partition) return "partitions survivors, which it needs packed";
    if (s.kind == SoacKind::Scan && s.withTotal) return "makes offsets of survivors, which it needs packed";
    if (s.space.segmented()) {
      const bool same = s.space.kind == SpaceKind::Offsets && filter.space.segmented() &&
                        s.space.offsets == filter.results[0] && s.space.segments == filter.space.segments;
      if (!same) return "has other segments than the filter";
    } else if (filter.space.segmented() && s.kind != SoacKind::Map) {
      if (s.kind == SoacKind::Filter || s.kind == SoacKind::Scan || needsSegments(f) || needsSegments(v))
        return "is not segmented like the filter";
    }
    // The position of a survivor is known only after packing; its values are known at once.
    std::string obstacle;
    std::vector<ExprRef> bare;
    lcu::forEachNode(thunksOf(s), [&](ExprRef e) {
      for (ExprRef operand : e->operands) {
        if (operand->kind == ExprKind::Param && operand->index != 1 && e->kind != ExprKind::Load)
          bare.push_back(e);
      }
      if (e->kind == ExprKind::Load && e->operands[0]->kind == ExprKind::Param &&
          e->operands[0]->index == 2) {
        bare.push_back(e);
      }
    });
    for (ExprRef e : thunksOf(s)) {
      if (e->kind == ExprKind::Param && e->index != 1) bare.push_back(e);
    }
    if (!bare.empty()) return "uses the positions of the survivors";
    for (const auto& [var, ways] : reads_[v]) {
      if (!ways.pointwise) continue;
      const int u = producerOf(var);
      const bool survivor = u == f && var != filter.results[0];
      const bool computed = u >= 0 && graph_.nodes[u].soac && graph_.liftedOver[u] == f &&
                            (soac(u).kind == SoacKind::Map || soac(u).kind == SoacKind::Scan);
      if (!survivor && !computed)
        return fmt::format("reads {}, which is stored over the survivors", name(var));
    }
    return "";
  }

  // ---- edges ----

  /// One edge for each pair: that which forbids more, or, of those that forbid nothing, `own`, of elements
  /// that are read by their like.
  void addEdge(GraphEdge edge, bool own = false) {
    const auto [it, fresh] = edgeOf_.try_emplace({edge.from, edge.to}, graph_.edges.size());
    if (fresh) {
      graph_.edges.push_back(std::move(edge));
      return;
    }
    GraphEdge& known = graph_.edges[it->second];
    if (known.fusible && (!edge.fusible || own)) known = std::move(edge);
  }

  void kernelEdges(int v) {
    for (const auto& [var, ways] : reads_[v])
      if (const int u = producerOf(var); u >= 0) addEdge(classify(u, v, var, ways), ways.pointwise);
  }

  GraphEdge classify(int u, int v, VarId var, const ReadWays& ways) const {
    const auto blocking = [&](EdgeClass edgeClass, std::string reason) {
      return GraphEdge{u, v, edgeClass, false, var, std::move(reason)};
    };
    const auto fusible = [&](EdgeClass edgeClass, std::string reason) {
      return GraphEdge{u, v, edgeClass, true, var, std::move(reason)};
    };
    const Soac* p = graph_.nodes[u].soac;
    const Soac& c = soac(v);
    const std::string& maker = graph_.nodes[u].label;
    if (!p) return blocking(EdgeClass::Whole, fmt::format("needs {}, which the host makes", name(var)));
    const bool lifted = graph_.liftedOver[v] == u;
    if (ways.scalar) {
      if (c.kind == SoacKind::Once && (p->kind == SoacKind::Once || p->kind == SoacKind::Reduce)) {
        return fusible(EdgeClass::Finish, fmt::format("takes the result of {} when it is finished", maker));
      }
      const bool count = p->kind == SoacKind::Filter || p->kind == SoacKind::Partition;
      return blocking(
          EdgeClass::Whole,
          fmt::format("needs {} of {}", count ? "the number of survivors" : "the finished result", maker));
    }
    if (ways.elsewhere || ways.segment) {
      const bool onto = std::find(c.onto.begin(), c.onto.end(), var) != c.onto.end();
      if (onto)
        return blocking(EdgeClass::Whole, fmt::format("writes onto {}, made by {}", name(var), maker));
      const char* where = c.kind == SoacKind::Once ? "after all of it"
                          : ways.elsewhere         ? "at computed positions"
                                                   : "by segment";
      return blocking(EdgeClass::Whole, fmt::format("reads {}, made by {}, {}", name(var), maker, where));
    }
    if ((ways.offsets || ways.extent) && !(lifted && var == p->results[0])) {
      if (graph_.obstructedFilter[v] == u)
        return blocking(EdgeClass::HostFetch,
                        fmt::format("runs over the survivors of {} and {}", maker, graph_.liftObstacle[v]));
      return blocking(EdgeClass::HostFetch, ways.offsets
                                                ? fmt::format("runs over segments that {} makes", maker)
                                                : fmt::format("runs over a size that {} makes", maker));
    }
    if (!ways.pointwise) {
      return fusible(EdgeClass::Survivors, fmt::format("runs over the survivors of {}", maker));
    }
    if (lifted)
      return fusible(EdgeClass::Survivors,
                     fmt::format("reads the survivors of {}, element for element", maker));
    switch (p->kind) {
      case SoacKind::Map:
      case SoacKind::Scan:
        if (p->space.extent != c.space.extent) break;
        return fusible(EdgeClass::Pointwise, fmt::format("reads {}, element for element", maker));
      case SoacKind::Reduce:
        if (!p->space.segmented() || p->space.segments != c.space.extent) break;
        // Else the kernel could not tell which %i is meant, its own or, where it is with filters that its
        // elements have come through, theirs.
        if (std::ranges::any_of(chain(u), [&](const Step& s) { return s.extent == p->space.segments; })) {
          return blocking(EdgeClass::Whole,
                          fmt::format("reads the segment results of {}, which are as many as "
                                      "the elements that other kernels of this size run over",
                                      maker));
        }
        if (c.kind != SoacKind::Map || c.space.segmented()) {
          return blocking(
              EdgeClass::Whole,
              fmt::format("is no map, which alone can take the segment results of {} at once", maker));
        }
        if (!mayFinishSegments_(c)) {
          return blocking(
              EdgeClass::SegmentResult,
              fmt::format("loops for each segment result of {}, of which a warp of its kernel has "
                          "few at a time",
                          maker));
        }
        return fusible(EdgeClass::SegmentResult, fmt::format("takes the segment results of {}", maker));
      case SoacKind::Permute:
        return blocking(EdgeClass::Whole,
                        fmt::format("reads what {} permutes, which is complete only after it", maker));
      case SoacKind::Filter:
      case SoacKind::Partition:
        return blocking(EdgeClass::Whole, graph_.liftObstacle[v].empty()
                                              ? fmt::format("reads what {} leaves, packed", maker)
                                              : graph_.liftObstacle[v]);
      case SoacKind::Once:
        break;
    }
    return blocking(EdgeClass::Whole,
                    fmt::format("reads {}, made by {} over other elements", name(var), maker));
  }

  void hostEdges(int v) {
    for (VarId var : lcu::freeVars(*graph_.nodes[v].stmt)) {
      const int u = producerOf(var);
      if (u < 0 || u == v) continue;
      const bool kernel = graph_.nodes[u].soac != nullptr;
      addEdge({u, v, kernel ? EdgeClass::HostFetch : EdgeClass::Whole, false, var,
               fmt::format("needs {}, made by {}", name(var), graph_.nodes[u].label)});
    }
  }

  /// A permute onto an array that nothing reads later takes over its memory, if whoever reads it is done.
  void overwritingEdges(int v, const lcu::Block& block) {
    if (!graph_.nodes[v].soac) return;
    for (VarId var : soac(v).onto) {
      const auto reads = [&](int node) {
        const std::vector<VarId> vars = lcu::freeVars(*graph_.nodes[node].stmt);
        return std::binary_search(vars.begin(), vars.end(), var);
      };
      bool dies = std::find(block.results.begin(), block.results.end(), var) == block.results.end();
      for (int later = v + 1; dies && later < static_cast<int>(graph_.nodes.size()); ++later)
        dies = !reads(later);
      for (int u = 0; dies && u < v; ++u)
        if (reads(u)) addOrder(u, v, fmt::format("overwrites what {} reads", graph_.nodes[u].label));
    }
  }

  void orderEdges(int v) {
    if (graph_.nodes[v].effectful) {
      if (lastEffect_ >= 0) addOrder(lastEffect_, v, "has effects, which keep their order");
      for (int u : failing_)
        addOrder(u, v, fmt::format("has effects, which come after errors of {}", graph_.nodes[u].label));
      failing_.clear();
      lastEffect_ = v;
    } else if (effects_.mayFail(*graph_.nodes[v].stmt)) {
      if (lastEffect_ >= 0) addOrder(lastEffect_, v, "may fail, which comes after earlier effects");
      if (effects_.mayGoOn(*graph_.nodes[v].stmt)) {
        // What is behind it may never be reached. (It may fail itself: what follows comes after these, too.)
        for (int u : failing_)
          addOrder(u, v, fmt::format("may have no end, and comes after errors of {}", graph_.nodes[u].label));
        failing_.clear();
      }
      failing_.push_back(v);
    }
  }

  /// A check on the host (equal lengths, a size that is not negative) stops the program before code that
  /// takes what was checked for granted: whatever comes later and uses one of the variables that were
  /// checked, or an array that may have come with one of them as its length.
  void guardEdges(int v) {
    const lcu::Stmt& stmt = *graph_.nodes[v].stmt;
    std::set<VarId> mine, origins;
    for (VarId var : lcu::freeVars(stmt)) addRoots(var, mine);
    for (VarId var : mine) {
      if (isOfUnknownSize(var)) origins.insert(originOf(var));
    }
    for (const Guard& guard : guards_) {
      const auto any = [](const std::set<VarId>& vars, const std::set<VarId>& among) {
        return std::any_of(vars.begin(), vars.end(), [&](VarId var) { return among.contains(var); });
      };
      const bool concerned = guard.checked.empty() || any(mine, guard.checked) || any(origins, guard.origins);
      if (concerned) addOrder(guard.node, v, "comes after a check on the host");
    }
    const bool hostLet = std::holds_alternative<lcu::HostLet>(stmt.node);
    if (hostLet && effects_.mayFail(stmt)) {
      Guard guard{v, mine, {}};
      for (VarId var : mine) {
        if (program_.vars[var].kind == lcu::VarKind::Host) guard.origins.insert(originOf(var));
      }
      guards_.push_back(std::move(guard));
    }
    if (!hostLet) return;
    for (VarId result : stmt.results) roots_[result] = mine;
  }

  /// Where the value or the size of a variable comes from, through scalars of the host.
  void addRoots(VarId var, std::set<VarId>& roots) const {
    if (const auto it = roots_.find(var); it != roots_.end()) {
      roots.insert(it->second.begin(), it->second.end());
      return;
    }
    if (!roots.insert(var).second) return;
    const ExprRef extent = program_.vars[var].extent;
    if (!extent) return;
    for (VarId read : lcu::freeVars(std::vector{extent})) addRoots(read, roots);
  }

  bool isOfUnknownSize(VarId var) const {
    const lcu::VarInfo& info = program_.vars[var];
    return info.kind == lcu::VarKind::Array && (!info.extent || info.extent->kind == ExprKind::Size);
  }

  /// The statement that makes the variable, by its first result, or the outside of the block: arrays of
  /// unknown size come with their lengths.
  VarId originOf(VarId var) const {
    const int u = producerOf(var);
    return u < 0 ? std::numeric_limits<VarId>::max() : graph_.nodes[u].stmt->results[0];
  }

  void addOrder(int u, int v, std::string reason) {
    addEdge({u, v, EdgeClass::Order, false, 0, std::move(reason)});
  }

  // ---- index spaces of pairs ----

  struct Related {
    const char* conflict = nullptr;
    std::vector<int> thirds;  ///< must be in the cluster, too
  };
  static Related apart(const char* reason) { return {reason, {}}; }

  struct Step {
    ExprRef extent;
    int filter;  ///< by which the node came here; -1 at its own space
  };
  /// The extents a node can run over: its own, its filter's, that filter's filter's, ...
  std::vector<Step> chain(int v) const {
    std::vector<Step> steps{{soac(v).space.extent, -1}};
    for (int f = graph_.liftedOver[v]; f >= 0; f = graph_.liftedOver[f])
      steps.push_back({soac(f).space.extent, f});
    return steps;
  }
  const lcu::Space& spaceAt(int v, const Step& step) const {
    return step.filter < 0 || !soac(v).space.segmented() ? soac(v).space : soac(step.filter).space;
  }

  Related relateElements(int u, int v) const {
    const std::vector<Step> us = chain(u), vs = chain(v);
    for (size_t sum = 0; sum + 1 < us.size() + vs.size(); ++sum) {
      for (size_t i = 0; i <= sum && i < us.size(); ++i) {
        const size_t j = sum - i;
        if (j >= vs.size() || us[i].extent != vs[j].extent) continue;
        const lcu::Space &a = spaceAt(u, us[i]), &b = spaceAt(v, vs[j]);
        if (a.segmented() && b.segmented() && !(a == b))
          return apart("the same elements, but in different segments");
        Related related;
        const auto need = [&](int third) {
          if (third != u && third != v) related.thirds.push_back(third);
        };
        // The filters above the nearest one are what that one needs, if it is with the other.
        const auto lift = [&](int node, const std::vector<Step>& steps, size_t levels) {
          if (levels == 0) return;
          need(steps[1].filter);
          for (const auto& [var, ways] : reads_[node]) {
            if (ways.pointwise && producerOf(var) >= 0) need(producerOf(var));
          }
        };
        lift(u, us, i);
        lift(v, vs, j);
        return related;
      }
    }
    return apart("different elements");
  }

  /// Whether the later of two waits for something that waits for the earlier, so that no kernel has both.
  bool separated(int u, int v) {
    const auto [from, to] = std::minmax(u, v);
    const auto [it, fresh] = waiting_.try_emplace(from);
    if (fresh) it->second = waitingFor(from);
    return it->second[to];
  }
  std::vector<bool> waitingFor(int u) const {
    std::vector<bool> reached(graph_.nodes.size()), waits(graph_.nodes.size());
    reached[u] = true;
    auto edge = std::lower_bound(graph_.edges.begin(), graph_.edges.end(), u,
                                 [](const GraphEdge& e, int from) { return e.from < from; });
    for (; edge != graph_.edges.end(); ++edge) {  // by `from`: whatever leads there is known
      if (!reached[edge->from]) continue;
      reached[edge->to] = true;
      if (waits[edge->from] || !edge->fusible) waits[edge->to] = true;
    }
    return waits;
  }

  /// Maps over segments that take results of their reductions, of such maps, or are read by such.
  void findEpilogues() {
    const int n = static_cast<int>(graph_.nodes.size());
    finishes_.assign(n, false);
    leads_.assign(n, false);
    const auto map = [&](int v) { return graph_.nodes[v].soac && isEpilogue(v); };
    for (int v = 0; v < n; ++v)
      finishes_[v] = map(v) && mayFinishSegments_(soac(v)) &&
                     std::any_of(fusibleInto_[v].begin(), fusibleInto_[v].end(),
                                 [&](int u) { return soac(u).kind == SoacKind::Reduce || finishes_[u]; });
    for (int v = n; v-- > 0;)
      leads_[v] = map(v) && mayFinishSegments_(soac(v)) &&
                  std::any_of(fusibleFrom_[v].begin(), fusibleFrom_[v].end(),
                              [&](int w) { return finishes_[w] || leads_[w]; });
  }

  /// An epilogue or a Once, `last`, may be in a kernel with v if what it finishes is there. What else it
  /// reads may be finished before.
  const Related& relateFinish(int last, int v) {
    const auto [it, fresh] = finish_.try_emplace({last, v});
    if (fresh) it->second = findFinish(last, v);
    return it->second;
  }
  Related findFinish(int last, int v) {
    std::vector<int> direct, through;
    for (int source : fusibleInto_[last])
      (soac(source).kind == soac(last).kind ? through : direct).push_back(source);
    for (const std::vector<int>* sources : {&direct, &through}) {
      if (std::find(sources->begin(), sources->end(), v) != sources->end()) return {};
      Related related;
      for (int r : *sources) {
        const bool finishes = soac(r).kind == SoacKind::Map || soac(r).kind == SoacKind::Once;
        const bool conflict = finishes ? relateFinish(r, v).conflict : relate(r, v).conflict;
        if (!conflict && !separated(r, v)) related.thirds.push_back(r);
      }
      if (!related.thirds.empty()) return related;
    }
    return apart("different elements");
  }

  /// A map over the segments that an epilogue reads, `first`, may be in a kernel with v if the epilogue is.
  const Related& relateLead(int first, int v) {
    const auto [it, fresh] = lead_.try_emplace({first, v}, apart("different elements"));
    if (!fresh) return it->second;
    for (int last : fusibleFrom_[first]) {
      if (last == v || separated(last, v)) continue;
      const bool related = (finishes_[last] && !relateFinish(last, v).conflict) ||
                           (leads_[last] && !relateLead(last, v).conflict);
      if (related) return lead_[{first, v}] = {nullptr, {last}};
    }
    return lead_[{first, v}];
  }

  bool isEpilogue(int v) const { return soac(v).kind == SoacKind::Map && !soac(v).space.segmented(); }

  Related relate(int u, int v) {
    const bool onceU = soac(u).kind == SoacKind::Once, onceV = soac(v).kind == SoacKind::Once;
    if (onceU && onceV) return {};
    if (onceU || onceV) {
      const Related related = relateFinish(onceU ? u : v, onceU ? v : u);
      return related.conflict
                 ? apart("one of them runs once, and finishes no reduction of the other's kernel")
                 : related;
    }
    Related related = relateElements(u, v);
    if (!related.conflict) return related;
    for (const auto& [last, other] : {std::pair(v, u), std::pair(u, v)}) {
      if (finishes_[last])
        if (const Related& epilogue = relateFinish(last, other); !epilogue.conflict) return epilogue;
      if (leads_[last])
        if (const Related& lead = relateLead(last, other); !lead.conflict) return lead;
    }
    return related;
  }

  void relatePair(int a, int b) {
    Related related = relate(a, b);
    if (related.conflict) {
      graph_.conflicts.push_back({a, b, related.conflict});
      return;
    }
    std::sort(related.thirds.begin(), related.thirds.end());
    related.thirds.erase(std::unique(related.thirds.begin(), related.thirds.end()), related.thirds.end());
    for (int third : related.thirds) graph_.requirements.push_back({a, b, third});
  }

  const lcu::Program& program_;
  const Effects& effects_;
  const std::function<bool(const Soac&)>& mayFinishSegments_;
  DependenceGraph graph_;
  std::map<VarId, int> producer_;
  std::unordered_map<ExprRef, int> filterOfExtent_;
  std::unordered_map<int, bool> needsSegments_;
  std::vector<std::map<VarId, ReadWays>> reads_;
  std::map<std::pair<int, int>, size_t> edgeOf_;             ///< number of the edge, until they are sorted
  std::vector<std::vector<int>> fusibleInto_, fusibleFrom_;  ///< from whom, and to whom, by node
  std::map<int, std::vector<bool>> waiting_;                 ///< what `separated` has found, by the earlier
  std::vector<bool> finishes_, leads_;                       ///< by node: a map over segments that does
  std::map<std::pair<int, int>, Related> finish_, lead_;     ///< what relateFinish and relateLead have found
  int lastEffect_ = -1;
  std::vector<int> failing_;
  struct Guard {
    int node;
    std::set<VarId> checked;
    std::set<VarId> origins;  ///< of the scalars among them
  };
  std::vector<Guard> guards_;
  std::map<VarId, std::set<VarId>> roots_;  ///< of host scalars made here
};

}  // namespace

DependenceGraph buildDependenceGraph(const lcu::Block& block, const lcu::Program& program,
                                     const Effects& effects,
                                     const std::function<bool(const lcu::Soac&)>& mayFinishSegments) {
  return Builder(block, program, effects, mayFinishSegments).run(block);
}

}  // namespace kelpie::fusion
