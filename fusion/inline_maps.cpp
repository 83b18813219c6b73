#include "fusion/inline_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "fusion/companions.h"
#include "fusion/effects.h"
#include "fusion/recomputation.h"
#include "fusion/rules.h"
#include "fusion/segment_lengths.h"
#include "fusion/sizes.h"

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

struct Candidate {
  const Soac* map = nullptr;
  size_t result = 0;
  ExprRef pull = nullptr;  ///< once decided: with the maps before it inlined, whatever position it is read at
  bool generator = false;
  bool hostUse = false;  ///< used outside of kernels
  bool farRead = false;  ///< by others than elements of short segments, each of its own segment
  int loops = 0;         ///< of the host, that it is in
  bool inlined = false;
  bool stays = false;  ///< decided, and not inlined
};

/// What elements of short segments compute reads other maps, at their segment: these are looked at once more.
constexpr int kRounds = 3;

/// Elements of a segment that may each compute again what can fail for their segment.
constexpr int64_t kMostElements = 4;

/// How often the body of a loop of the host may run: what is made before the loop and computed in it instead
/// is computed in every turn.
constexpr double kTurns = 8;

/// In how many loops of the host the statements of each block are.
using LoopDepths = std::map<const lcu::Block*, int>;
void findLoops(const lcu::Block& block, int depth, LoopDepths& depths) {
  depths[&block] = depth;
  for (const lcu::Stmt& stmt : block.stmts) {
    if (const auto* conditional = std::get_if<lcu::HostIf>(&stmt.node)) {
      findLoops(*conditional->thenBlock, depth, depths);
      findLoops(*conditional->elseBlock, depth, depths);
    } else if (const auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
      findLoops(*loop->condition, depth + 1, depths);
      findLoops(*loop->body, depth + 1, depths);
    }
  }
}

bool mayBeCopied(ExprRef pull) {
  return !lcu::anyNode(
      {pull}, [](ExprRef e) { return lcu::isUnbounded(e) || (e->kind == ExprKind::Param && e->index > 0); });
}

bool isGenerator(ExprRef pull) {
  int nodes = 0;
  const bool loads = lcu::anyNode({pull}, [&](ExprRef e) {
    nodes += e->kind != ExprKind::Constant && e->kind != ExprKind::Host && e->kind != ExprKind::Param;
    return e->kind == ExprKind::Load || (e->kind == ExprKind::Op && e->op >= ScalarOp::Sqrt);
  });
  return !loads && nodes <= 8;
}

/// Operations and loads that one reading may stand for. Without a limit a chain of maps that each read the
/// one before at several positions would be inlined to a thunk of exponential size as long as a launch costs
/// more.
constexpr int kMostNodes = 128;

bool isSmall(ExprRef pull) {
  int nodes = 0;
  return !lcu::anyNode({pull}, [&](ExprRef) { return ++nodes > kMostNodes; });
}

class Inliner {
 public:
  /// `mayReadFar`: not only elements of short segments may compute what they read.
  Inliner(lcu::Program& program, const CostModel& model, std::set<VarId> stored, bool mayReadFar)
      : program_(program),
        recomputation_(program, model),
        mayReadFar_(mayReadFar),
        stored_(std::move(stored)) {}

  std::vector<InlinedMap> run() {
    findLoops(program_.entry.body, 0, loops_);
    for (const lcu::HostFunction& function : program_.functions) findLoops(function.body, 0, loops_);
    collect();
    price();
    decide();
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      for (lcu::Stmt& stmt : block.stmts) {
        auto* launch = std::get_if<lcu::Launch>(&stmt.node);
        if (!launch) continue;
        for (Soac& soac : launch->kernel.bindings) inlineInto(soac);
      }
    });
    return std::move(decisions_);
  }

 private:
  void collect() {
    lcu::forEachBlock(program_, [&](const lcu::Block& block) {
      findOverwritten(block);
      companions_.add(program_, block);
      for (const lcu::Stmt& stmt : block.stmts) {
        const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
        if (!launch) continue;
        const Soac& map = launch->kernel.bindings[0];
        for (size_t k = 0; map.kind == SoacKind::Scan && k < map.pull.size(); ++k)
          if (const auto range = lengthRange(map, k); range && range->most <= kMostElements)
            shortSegments_.insert(map.results[k]);
        if (map.kind == SoacKind::Map || map.kind == SoacKind::Scan)
          elementwise_.insert(map.results.begin(), map.results.end());
        const bool once = map.kind == SoacKind::Once;
        if (map.kind != SoacKind::Map && !once) continue;
        for (size_t k = 0; k < map.pull.size(); ++k) {
          if (!mayBeCopied(map.pull[k])) continue;
          if (once && (map.pull[k]->canFail || readsCells(map.pull[k]))) continue;
          Candidate candidate;
          candidate.map = &map;
          candidate.result = k;
          candidate.pull = map.pull[k];
          candidate.loops = loops_.at(&block);
          candidates_[map.results[k]] = candidate;
          order_.push_back(map.results[k]);
        }
      }
    });
  }

  /// Permutes take over the memory of what they write onto, if nobody reads that later; so what reads a
  /// candidate from there on must not load it instead.
  void findOverwritten(const lcu::Block& block) {
    const auto permuteOf = [](const lcu::Stmt& stmt) -> const Soac* {
      const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
      return launch && !launch->kernel.bindings[0].onto.empty() ? &launch->kernel.bindings[0] : nullptr;
    };
    if (std::none_of(block.stmts.begin(), block.stmts.end(), permuteOf)) return;
    std::map<VarId, const lcu::Stmt*> lastReader;
    for (const lcu::Stmt& stmt : block.stmts)
      for (VarId var : lcu::freeVars(stmt)) lastReader[var] = &stmt;
    for (VarId var : block.results) lastReader[var] = nullptr;
    std::set<VarId> overwritten;
    for (const lcu::Stmt& stmt : block.stmts) {
      const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
      if (!launch) continue;
      if (const Soac* permute = permuteOf(stmt))
        for (VarId base : permute->onto)
          if (lastReader[base] == &stmt) overwritten.insert(base);
      if (overwritten.empty()) continue;
      lcu::forEachNode(thunksOf(launch->kernel.bindings[0]), [&](ExprRef e) {
        if (e->kind == ExprKind::Host || e->kind == ExprKind::Load)
          overwritten_[e->index].insert(overwritten.begin(), overwritten.end());
      });
    }
  }
  /// Whether the pull of a candidate loads what is overwritten when it is read.
  bool isOverwritten(VarId var, ExprRef pull) const {
    const auto found = overwritten_.find(var);
    return found != overwritten_.end() && lcu::anyNode({pull}, [&](ExprRef e) {
             return e->kind == ExprKind::Load && found->second.contains(e->index);
           });
  }

  void price() {
    const auto useOnHost = [&](VarId var) {
      stored_.insert(var);
      if (const auto it = candidates_.find(var); it != candidates_.end()) it->second.hostUse = true;
    };
    const auto results = [&](const lcu::Block& block) {
      for (VarId var : block.results) useOnHost(var);
    };
    lcu::forEachBlock(program_, [&](const lcu::Block& block) {
      results(block);
      for (const lcu::Stmt& stmt : block.stmts) {
        const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
        if (launch) {
          for (const Soac& soac : launch->kernel.bindings) priceReads(soac, loops_.at(&block));
        } else if (const auto* conditional = std::get_if<lcu::HostIf>(&stmt.node)) {
          for (VarId var : lcu::freeVars(std::vector{conditional->condition})) useOnHost(var);
        } else if (const auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
          for (VarId var : loop->initial) useOnHost(var);
        } else {
          for (VarId var : lcu::freeVars(stmt)) useOnHost(var);
        }
      }
    });
    for (const auto& [var, candidate] : candidates_) {
      const ExprRef extent = program_.vars[var].extent;
      if (!extent) continue;  // a cell
      for (VarId read : lcu::freeVars(std::vector{extent})) useOnHost(read);
    }
  }

  /// `loops`: that the SOAC is in.
  void priceReads(const Soac& soac, int loops) {
    std::vector<ExprRef> outside;
    for (ExprRef e : {soac.space.extent, soac.space.segments, soac.space.length, soac.target}) {
      if (e) outside.push_back(e);
    }
    std::set<VarId> fixed;
    for (VarId var : lcu::freeVars(outside)) fixed.insert(var);
    if (soac.space.kind == lcu::SpaceKind::Offsets) fixed.insert(soac.space.offsets);
    fixed.insert(soac.onto.begin(), soac.onto.end());
    for (VarId var : fixed) {
      stored_.insert(var);
      if (const auto it = candidates_.find(var); it != candidates_.end()) it->second.hostUse = true;
    }
    recomputation_.addLoads(soac);
    lcu::forEachNode(thunksOf(soac), [&](ExprRef e) {
      if (e->kind != ExprKind::Host && (e->kind != ExprKind::Load || isPointwise(program_, e, soac))) return;
      stored_.insert(e->index);
      const auto it = candidates_.find(e->index);
      if (it == candidates_.end()) return;
      const bool ofFew = isOfShortSegment(e, soac);
      recomputation_.addRead(soac, e, std::pow(kTurns, loops - it->second.loops), ofFew);
      it->second.farRead |= !ofFew;
    });
  }

  /// Element %s of an array, where few elements have the same %s.
  bool isOfShortSegment(ExprRef load, const Soac& soac) const {
    return isOwnSegment(load) && soac.space.kind == lcu::SpaceKind::Offsets &&
           shortSegments_.contains(soac.space.offsets);
  }

  bool readsCells(ExprRef e) const {
    return lcu::anyNode({e}, [&](ExprRef node) {
      return node->kind == ExprKind::Host && program_.vars[node->index].kind == lcu::VarKind::Cell;
    });
  }

  /// In the order of definition: what a map costs to recompute includes the maps that were inlined into it.
  void decide() {
    for (const VarId var : order_) {
      Candidate& candidate = candidates_.at(var);
      const bool fails = candidate.pull->canFail;
      candidate.stays = true;
      candidate.pull = unchecked(inlined(candidate.pull, nullptr));
      candidate.generator = candidate.map->kind != SoacKind::Once && !fails && isGenerator(candidate.pull);
      const std::string& name = program_.vars[var].name;
      if (candidate.generator) {
        candidate.inlined = true;
        candidate.stays = fails;
        decisions_.push_back({name, "generator"});
        continue;
      }
      if (candidate.hostUse || !recomputation_.isRead(var) || !isSmall(candidate.pull)) continue;
      if ((fails || !mayReadFar_) && candidate.farRead) continue;
      if (isOverwritten(var, candidate.pull)) continue;
      if (needsAsMuch(candidate.pull, fails || !mayReadFar_)) continue;
      const double recomputing = recomputation_.computing(var, candidate.pull);
      const double storing =
          recomputation_.storing(var, candidate.pull, *candidate.map, isAccompanied(candidate));
      if (recomputing > storing) continue;
      candidate.inlined = true;
      candidate.stays = fails;  // its checks do
      decisions_.push_back(
          {name, fmt::format("recomputing takes {:.1f} us, storing {:.1f} us", recomputing, storing)});
    }
  }

  /// Whether something that stays, as far as is known, may share the launch that stores a candidate.
  bool isAccompanied(const Candidate& candidate) const {
    return companions_.any(*candidate.map, [&](const Soac& soac) {
      return std::any_of(soac.results.begin(), soac.results.end(), [&](VarId result) {
        const auto it = candidates_.find(result);
        return it == candidates_.end() || it->second.pull->canFail || it->second.stays;
      });
    });
  }

  /// Whether, for the pull to be computed elsewhere, as many bytes would have to be stored that are not now.
  /// `later`: maps that were not inlined may be yet.
  bool needsAsMuch(ExprRef pull, bool later) const {
    std::set<VarId> needed;
    int64_t bytes = 0;
    lcu::forEachNode({pull}, [&](ExprRef e) {
      if (e->kind == ExprKind::Load && elementwise_.contains(e->index) &&
          !(later && candidates_.contains(e->index)) && !stored_.contains(e->index) &&
          needed.insert(e->index).second)
        bytes += sizeOf(e->type);
    });
    return bytes >= sizeOf(pull->type);
  }

  void inlineInto(Soac& soac) {
    const auto change = [&](ExprRef e) { return inlined(e, &soac); };
    for (auto* es : {&soac.pull, &soac.effects, &soac.combine.result}) {
      for (ExprRef& e : *es) e = change(e);
    }
    for (ExprRef* e : {&soac.where, &soac.destination}) {
      if (*e) *e = change(*e);
    }
  }

  /// `reader`: whose pointwise reads stay; null when it is not known at which position the result is read.
  ExprRef inlined(ExprRef e, const Soac* reader) {
    return program_.arena->rewriteUp(e, [&](ExprRef node, const std::vector<ExprRef>& operands) -> ExprRef {
      if (node->kind != ExprKind::Load && node->kind != ExprKind::Host) return nullptr;
      const auto it = candidates_.find(node->index);
      if (it == candidates_.end() || !it->second.inlined) return nullptr;
      const Candidate& producer = it->second;
      if (node->kind == ExprKind::Host) return producer.pull;
      if (reader && isPointwise(program_, node, *reader) && !producer.generator) return nullptr;
      return elementAt(producer.pull, operands[0]);
    });
  }

  /// The same value where nothing fails, and no checks: the map itself stays for these.
  ExprRef unchecked(ExprRef e) {
    if (!e->canFail) return e;
    return program_.arena->rewriteUp(e, [&](ExprRef node, const std::vector<ExprRef>& operands) {
      return node->kind == ExprKind::Check ? program_.arena->select(operands[0], operands[1], operands[2])
                                           : nullptr;
    });
  }

  /// The pull at a position, with all checks of the position; null if it has some that the pull may leave
  /// out.
  ExprRef elementAt(ExprRef pull, ExprRef position) {
    const ExprRef element = program_.arena->substituteParams({pull}, {position})[0];
    if (!position->canFail || alwaysEvaluates({element}, position)) return element;
    if (position->kind != ExprKind::Check) return nullptr;
    const ExprRef checked = elementAt(pull, position->operands[1]);
    if (!checked) return nullptr;
    return program_.arena->check(position->operands[0], checked, Scalar::zero(checked->type), position->index,
                                 position->operands[3], position->operands[4]);
  }

  lcu::Program& program_;
  Recomputation recomputation_;
  Companions companions_;
  const bool mayReadFar_;
  LoopDepths loops_;
  std::map<VarId, Candidate> candidates_;
  std::vector<VarId> order_;       ///< of the candidates: producers before readers
  std::set<VarId> shortSegments_;  ///< offsets of segments of kMostElements at most
  std::set<VarId> elementwise_;    ///< results of maps and scans: a kernel may have them without storing them
  std::map<VarId, std::set<VarId>> overwritten_;  ///< by what is read: arrays that are overwritten then
  std::set<VarId> stored_;  ///< those that somebody reads otherwise than at its own element
  std::vector<InlinedMap> decisions_;
};

}  // namespace

std::vector<InlinedMap> inlineMaps(lcu::Program& program, const CostModel& model,
                                   const std::set<VarId>& stored) {
  std::vector<InlinedMap> decisions;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<InlinedMap> more = Inliner(program, model, stored, round == 0).run();
    if (more.empty()) break;
    decisions.insert(decisions.end(), more.begin(), more.end());
  }
  return decisions;
}

}  // namespace kelpie::fusion
