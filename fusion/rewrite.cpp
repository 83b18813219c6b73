#include "fusion/rewrite.h"

#include <algorithm>
#include <unordered_map>

#include "fusion/dependence_graph.h"
#include "fusion/effects.h"
#include "fusion/rules.h"
#include "ir/diagnostic.h"

namespace kelpie::fusion {
namespace {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::SoacKind;
using lcu::VarId;

class Rewriter {
 public:
  Rewriter(const std::vector<const lcu::Kernel*>& members, const std::set<VarId>& needed,
           lcu::Program& program)
      : program_(program), needed_(needed) {
    for (const lcu::Kernel* kernel : members) {
      bindings_.insert(bindings_.end(), kernel->bindings.begin(), kernel->bindings.end());
    }
  }

  RewrittenKernel run() {
    const std::vector<Soac> members = bindings_;
    liftSurvivors();
    needSizes();
    for (bool changed = true; changed;) {
      changed = inlineMaps();
      changed |= inlineOnces();
      dropUnused();
      changed |= mergeSideways();
    }
    noteWhatStays();
    if (rules_.empty()) {  // all but one did nothing else than that one does, as the same checks
      for (size_t k = 1; k < members.size(); ++k) note(members[k - 1], members[k], false);
    }
    RewrittenKernel result;
    for (const Soac& soac : bindings_) {
      for (VarId var : soac.results) {
        if (needed_.contains(var)) result.kernel.returns.push_back(var);
      }
    }
    result.kernel.bindings = std::move(bindings_);
    result.rules = std::move(rules_);
    return result;
  }

 private:
  void note(const Soac& producer, const Soac& consumer, bool vertical) {
    rules_.push_back(ruleName(producer, consumer, vertical));
  }

  /// Of an expression. Those of a large cluster are asked for again and again, for each pair of bindings.
  const std::vector<VarId>& freeVars(ExprRef e) const {
    const auto [it, isNew] = freeVars_.try_emplace(e);
    if (isNew) it->second = lcu::freeVars(std::vector{e});
    return it->second;
  }
  /// Visits the variables of a binding until `found` holds.
  template <class Found>
  bool anyFreeVar(const Soac& soac, const Found& found) const {
    const auto inExpression = [&](ExprRef e) {
      return e && std::any_of(freeVars(e).begin(), freeVars(e).end(), found);
    };
    std::vector<ExprRef> roots = thunksOf(soac);
    roots.insert(roots.end(), soac.combine.result.begin(), soac.combine.result.end());
    roots.push_back(soac.target);
    if (soac.kind != SoacKind::Once) {
      roots.insert(roots.end(), {soac.space.extent, soac.space.segments, soac.space.length});
      if (soac.space.kind == lcu::SpaceKind::Offsets && found(soac.space.offsets)) return true;
    }
    return std::any_of(soac.onto.begin(), soac.onto.end(), found) ||
           std::any_of(roots.begin(), roots.end(), inExpression);
  }
  bool reads(const Soac& consumer, const Soac& producer) const {
    return anyFreeVar(consumer, [&](VarId var) {
      return std::find(producer.results.begin(), producer.results.end(), var) != producer.results.end();
    });
  }
  bool isNeeded(const Soac& soac) const {
    return std::any_of(soac.results.begin(), soac.results.end(),
                       [&](VarId var) { return needed_.contains(var); });
  }

  /// What stays several SOACs: REDUCE-ONCE, SEG-REDUCE-MAP, SCAN-FILTER, ... where the later reads the
  /// earlier while its values are at hand; FILTER+FILTER, MAP+REDUCE, ... where it reads none and has its
  /// place beside the others because they go through the same elements.
  void noteWhatStays() {
    for (size_t c = 1; c < bindings_.size(); ++c) {
      bool readsSome = false;
      for (size_t u = 0; u < c; ++u) {
        if (!reads(bindings_[c], bindings_[u])) continue;
        note(bindings_[u], bindings_[c], true);
        readsSome = true;
      }
      if (!readsSome) note(bindings_[c - 1], bindings_[c], false);
    }
  }

  // ---- filters whose survivors are consumed here ----

  void liftSurvivors() {
    for (size_t f = 0; f < bindings_.size(); ++f) {
      if (bindings_[f].kind != SoacKind::Filter) continue;
      const ExprRef survivors = survivorExtent(bindings_[f], program_);
      for (size_t c = f + 1; c < bindings_.size();) {
        if (bindings_[c].kind == SoacKind::Once || bindings_[c].space.extent != survivors) {
          ++c;
          continue;
        }
        note(bindings_[f], bindings_[c], true);
        c = liftConsumer(f, c);
      }
    }
  }

  /// Moves consumer c of the survivors of filter f over the filter's elements; the position to go on at, and
  /// `f` is where the filter is now.
  size_t liftConsumer(size_t& f, size_t c) {
    const Soac filter = bindings_[f], consumer = bindings_[c];
    switch (consumer.kind) {
      case SoacKind::Map:
        bindings_[f] = filterMap(filter, consumer, program_);
        bindings_.erase(bindings_.begin() + static_cast<ptrdiff_t>(c));
        return c;
      case SoacKind::Scan: {
        auto [scan, survivors] = filterScan(filter, consumer, program_);
        bindings_.erase(bindings_.begin() + static_cast<ptrdiff_t>(c));
        bindings_[f] = std::move(survivors);
        bindings_.insert(bindings_.begin() + static_cast<ptrdiff_t>(f), std::move(scan));
        ++f;
        return c + 1;
      }
      case SoacKind::Reduce:
        bindings_[c] = filterReduce(filter, consumer, program_);
        return c + 1;
      case SoacKind::Filter:
        bindings_[c] = filterFilter(filter, consumer, program_);
        return c + 1;
      default:
        throw InternalError("a cluster has a consumer of survivors that cannot be moved");
    }
  }

  /// The number of survivors that leave the kernel is needed with them.
  void needSizes() {
    for (const Soac& soac : bindings_) {
      if ((soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition) && isNeeded(soac)) {
        needed_.insert(soac.results[0]);
      }
    }
  }

  // ---- maps that are read here ----

  /// Whether computing the map again in each reader is as good as keeping its values in registers. Others
  /// that stay are read by maps, too: what takes such a map in next, a reduction say, would compute it beside
  /// it.
  static bool isCheap(const Soac& map) {
    int nodes = 0;
    bool heavy = false;
    lcu::forEachNode(thunksOf(map), [&](ExprRef e) {
      heavy |= lcu::isUnbounded(e) || e->kind == ExprKind::Check ||
               (e->kind == ExprKind::Op && e->op >= ScalarOp::Sqrt && e->op != ScalarOp::Floor);
      ++nodes;
    });
    return !heavy && nodes <= 8;
  }

  static bool usesSegments(const Soac& soac) {
    return lcu::anyNode(thunksOf(soac), [](ExprRef e) { return e->kind == ExprKind::Param && e->index > 0; });
  }

  bool inlineMaps() {
    bool changed = false;
    for (size_t u = 0; u < bindings_.size(); ++u) {
      if (bindings_[u].kind != SoacKind::Map) continue;
      std::vector<size_t> readers;
      for (size_t c = u + 1; c < bindings_.size(); ++c) {
        if (reads(bindings_[c], bindings_[u])) readers.push_back(c);
      }
      const bool cheap = isCheap(bindings_[u]);
      const bool disappears = !isNeeded(bindings_[u]) && (readers.size() == 1 || cheap);
      for (size_t c : readers) {
        const Soac& consumer = bindings_[c];
        const bool anySpace = consumer.kind == SoacKind::Map || consumer.kind == SoacKind::Permute;
        if (!disappears && !(cheap && consumer.kind == SoacKind::Map)) continue;
        if (usesSegments(bindings_[u]) && !consumer.space.segmented() && !anySpace) continue;
        note(bindings_[u], consumer, true);
        bindings_[c] = mapInto(bindings_[u], consumer);
        changed = true;
      }
    }
    return changed;
  }

  Soac mapInto(const Soac& map, const Soac& consumer) {
    switch (consumer.kind) {
      case SoacKind::Map:
        return mapMap(map, consumer, program_);
      case SoacKind::Reduce:
        return mapReduce(map, consumer, program_);
      case SoacKind::Scan:
        return mapScan(map, consumer, program_);
      case SoacKind::Filter:
        return mapFilter(map, consumer, program_);
      case SoacKind::Permute:
        return mapPermute(map, consumer, program_);
      case SoacKind::Partition:
        return mapPartition(map, consumer, program_);
      case SoacKind::Once:
        break;
    }
    throw InternalError("a once reads the elements of a map in its own cluster");
  }

  bool inlineOnces() {
    bool changed = false;
    for (size_t u = 0; u < bindings_.size(); ++u) {
      if (bindings_[u].kind != SoacKind::Once) continue;
      for (size_t c = u + 1; c < bindings_.size(); ++c) {
        if (bindings_[c].kind != SoacKind::Once || !reads(bindings_[c], bindings_[u])) continue;
        note(bindings_[u], bindings_[c], true);
        bindings_[c] = onceOnce(bindings_[u], bindings_[c], program_);
        changed = true;
      }
    }
    return changed;
  }

  // ---- what nobody reads any more ----

  void dropUnused() {
    std::set<VarId> used(needed_);
    for (size_t k = bindings_.size(); k-- > 0;) {
      dropResults(k, used);
      anyFreeVar(bindings_[k], [&](VarId var) {
        used.insert(var);
        return false;
      });
    }
    std::erase_if(bindings_, [](const Soac& soac) { return soac.results.empty() && soac.effects.empty(); });
  }

  /// Whether another binding evaluates `e` for at least the elements for which this one does.
  bool evaluatedElsewhere(size_t k, ExprRef e, ExprRef guard) const {
    for (size_t c = 0; c < bindings_.size(); ++c) {
      const Soac& other = bindings_[c];
      if (c == k || other.kind == SoacKind::Once || other.space.extent != bindings_[k].space.extent) continue;
      std::vector<ExprRef> roots = thunksOf(other);
      if (other.kind == SoacKind::Filter) {
        std::erase_if(roots, [&](ExprRef root) {
          return std::find(other.pull.begin(), other.pull.end(), root) != other.pull.end();
        });
        if (guard && other.where == guard) roots.insert(roots.end(), other.pull.begin(), other.pull.end());
      }
      if (guard) {
        std::vector<ExprRef> inside;
        for (ExprRef root : roots) {
          if (root->kind != ExprKind::Project || root->operands[0]->kind != ExprKind::If) continue;
          const ExprRef conditional = root->operands[0];
          if (conditional->operands[0] != guard) continue;
          const size_t values = (conditional->operands.size() - 1) / 2;
          inside.insert(inside.end(), conditional->operands.begin() + 1,
                        conditional->operands.begin() + 1 + static_cast<ptrdiff_t>(values));
        }
        roots.insert(roots.end(), inside.begin(), inside.end());
      }
      if (alwaysEvaluates(roots, e)) return true;
    }
    return false;
  }

  void dropResults(size_t k, const std::set<VarId>& used) {
    Soac& soac = bindings_[k];
    const auto unused = [&](VarId var) { return !used.contains(var); };
    const bool dead = std::all_of(soac.results.begin(), soac.results.end(), unused);
    std::vector<ExprRef> owed;  // thunks that go, for the checks in them
    if (dead) {
      owed = soac.pull;
      for (ExprRef e : {soac.where, soac.destination}) {
        if (e) owed.push_back(e);
      }
    } else if (soac.kind == SoacKind::Filter && !soac.space.segmented() &&
               std::all_of(soac.results.begin() + 1, soac.results.end(), unused)) {
      rules_.push_back("FILTER-COUNT");
      soac = filterCount(soac, program_);
      return;
    } else if (soac.kind == SoacKind::Map || soac.kind == SoacKind::Filter || soac.kind == SoacKind::Once) {
      const size_t first = soac.kind == SoacKind::Filter ? 1 : 0;
      for (size_t j = soac.pull.size(); j-- > 0;) {
        if (!unused(soac.results[first + j]) || soac.pull.size() == 1) continue;
        owed.push_back(soac.pull[j]);
        soac.pull.erase(soac.pull.begin() + static_cast<ptrdiff_t>(j));
        soac.results.erase(soac.results.begin() + static_cast<ptrdiff_t>(first + j));
      }
      std::reverse(owed.begin(), owed.end());  // of several that fail, the first one is told
    }
    const bool filter = soac.kind == SoacKind::Filter;
    const ExprRef where = soac.where;
    if (dead) {
      std::vector<ExprRef> effects = std::move(soac.effects);
      const std::vector<ExprRef> pulls = soac.pull;
      Soac checks;
      checks.kind = soac.kind == SoacKind::Once ? SoacKind::Once : SoacKind::Map;
      checks.space = soac.space;
      checks.span = soac.span;
      checks.origin = soac.origin;
      for (ExprRef e : effects) {
        if (e->canFail && !evaluatedElsewhere(k, e, nullptr)) checks.effects.push_back(e);
      }
      soac = std::move(checks);
      for (ExprRef e : owed) {
        const bool guardedPull = filter && std::find(pulls.begin(), pulls.end(), e) != pulls.end();
        owe(k, e, guardedPull ? where : nullptr);
      }
      return;
    }
    for (ExprRef e : owed) owe(k, e, filter ? where : nullptr);
  }

  /// Binding k no longer evaluates `e` (for the elements that pass the guard): its checks are made all the
  /// same.
  void owe(size_t k, ExprRef e, ExprRef guard) {
    if (!e->canFail || evaluatedElsewhere(k, e, guard)) return;
    Soac& soac = bindings_[k];
    const ExprRef effect =
        guard ? program_.arena->select(guard, e, program_.arena->constant(Scalar::zero(e->type))) : e;
    if (!alwaysEvaluates(thunksOf(soac), effect)) soac.effects.push_back(effect);
  }

  // ---- neighbours over the same space ----

  bool mayJoin(const Soac& a, const Soac& b) const {
    if (a.kind != b.kind) return false;
    switch (a.kind) {
      case SoacKind::Map:
        return a.space.extent == b.space.extent &&
               (a.space == b.space || a.space.segmented() != b.space.segmented());
      case SoacKind::Reduce:
        return a.space == b.space;
      case SoacKind::Scan:
        return a.space == b.space && a.inclusive == b.inclusive && a.backward == b.backward &&
               a.withTotal == b.withTotal;
      case SoacKind::Once:
        return true;
      default:
        return false;
    }
  }

  /// A map over the segments that needs results of the kernel's segmented reductions. Where every segment has
  /// one element the extents do not tell it from a map over the elements, which runs earlier.
  bool finishes(const Soac& soac) const {
    if (soac.kind != SoacKind::Map || soac.space.segmented()) return false;
    const auto isReduction = [](const Soac& other) {
      return other.kind == SoacKind::Reduce && other.space.segmented();
    };
    if (std::none_of(bindings_.begin(), bindings_.end(), isReduction)) return false;
    return std::any_of(bindings_.begin(), bindings_.end(), [&](const Soac& other) {
      return &other != &soac && reads(soac, other) && (isReduction(other) || finishes(other));
    });
  }

  Soac join(const Soac& a, const Soac& b) {
    switch (a.kind) {
      case SoacKind::Map:
        return mapWithMap(a, b, program_);
      case SoacKind::Reduce:
        return reduceWithReduce(a, b, program_);
      case SoacKind::Scan:
        return scanWithScan(a, b, program_);
      default:
        return onceWithOnce(a, b, program_);
    }
  }

  bool mergeSideways() {
    bool changed = false;
    for (size_t a = 0; a < bindings_.size(); ++a) {
      for (size_t b = a + 1; b < bindings_.size();) {
        if (!mayJoin(bindings_[a], bindings_[b]) || reads(bindings_[b], bindings_[a]) ||
            finishes(bindings_[a]) != finishes(bindings_[b])) {
          ++b;
          continue;
        }
        const auto between = [&](const auto& test) {
          return std::any_of(bindings_.begin() + static_cast<ptrdiff_t>(a) + 1,
                             bindings_.begin() + static_cast<ptrdiff_t>(b), test);
        };
        const bool upwards = !between([&](const Soac& s) { return reads(bindings_[b], s); });
        const bool downwards = !between([&](const Soac& s) { return reads(s, bindings_[a]); });
        if (!upwards && !downwards) {
          ++b;
          continue;
        }
        note(bindings_[a], bindings_[b], false);
        const Soac both = join(bindings_[a], bindings_[b]);
        bindings_[upwards ? a : b] = both;
        bindings_.erase(bindings_.begin() + static_cast<ptrdiff_t>(upwards ? b : a));
        changed = true;
        b = a + 1;
        if (a >= bindings_.size()) break;
      }
    }
    return changed;
  }

  lcu::Program& program_;
  std::set<VarId> needed_;
  std::vector<Soac> bindings_;
  std::vector<std::string> rules_;
  mutable std::unordered_map<ExprRef, std::vector<VarId>> freeVars_;
};

}  // namespace

RewrittenKernel rewriteCluster(const std::vector<const lcu::Kernel*>& members, const std::set<VarId>& needed,
                               lcu::Program& program) {
  return Rewriter(members, needed, program).run();
}

}  // namespace kelpie::fusion
