#include "fusion/scanned_lengths.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "fusion/rules.h"
#include "fusion/segment_lengths.h"
#include "fusion/sizes.h"

namespace kelpie::fusion {
namespace {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

bool mayBeCopied(ExprRef pull) { return !pull->canFail && !lcu::anyNode({pull}, lcu::isUnbounded); }

class Replacer {
 public:
  explicit Replacer(lcu::Program& program) : program_(program), arena_(*program.arena) {}

  int run() {
    countSurvivors();
    forEachLaunch([&](lcu::Stmt&, lcu::Launch& launch) { collect(launch.kernel.bindings[0]); });
    if (lengths_.empty()) return 0;
    count_ = 0;
    forEachLaunch([&](lcu::Stmt&, lcu::Launch& launch) {
      for (Soac& soac : launch.kernel.bindings)
        changeExpressions(soac, [&](ExprRef e) { return replaced(e); });
    });
    return count_;
  }

 private:
  template <class Visit>
  void forEachLaunch(const Visit& visit) {
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      for (lcu::Stmt& stmt : block.stmts)
        if (auto* launch = std::get_if<lcu::Launch>(&stmt.node)) visit(stmt, *launch);
    });
  }

  /// Filters that are there for the number of survivors of each segment only become reductions, which count
  /// them.
  void countSurvivors() {
    std::map<VarId, std::pair<lcu::Stmt*, lcu::Launch*>> filters;  // by their offsets
    forEachLaunch([&](lcu::Stmt& stmt, lcu::Launch& launch) {
      const Soac& soac = launch.kernel.bindings[0];
      if (soac.kind != SoacKind::Filter || !soac.space.segmented()) return;
      filters[soac.results[0]] = {&stmt, &launch};
      // For now of a variable that there will not be. The simplifier must not know anything of it, or it
      // drops branches, and what reads the filter there would be overlooked.
      const auto unknown = static_cast<VarId>(program_.vars.size() + filters.size());
      lengths_[soac.results[0]] = arena_.load(unknown, lcu::kIndex, arena_.param(0));
    });
    if (filters.empty()) return;
    const std::set<VarId> used = usedBesideLengths();
    for (const auto& [offsets, made] : filters) {
      const auto& [stmt, launch] = made;
      const Soac& filter = launch->kernel.bindings[0];
      lengths_.erase(offsets);
      if (!measured_.contains(offsets) || std::any_of(filter.results.begin(), filter.results.end(),
                                                      [&](VarId v) { return used.contains(v); }))
        continue;
      const VarId lengths =
          program_.newVar({"lengths", lcu::VarKind::Array, lcu::kIndex, filter.space.segments});
      lengths_[offsets] = arena_.load(lengths, lcu::kIndex, arena_.param(0));
      Soac count = filterCount(filter, program_);
      count.results = {lengths};
      launch->kernel.returns = stmt->results = count.results;
      launch->kernel.bindings = {std::move(count)};
    }
  }

  /// What is read anywhere once differences of offsets are lengths.
  std::set<VarId> usedBesideLengths() {
    std::set<VarId> used;
    const auto use = [&](const std::vector<VarId>& vars) { used.insert(vars.begin(), vars.end()); };
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      use(block.results);
      for (const lcu::Stmt& stmt : block.stmts) {
        if (const auto* launch = std::get_if<lcu::Launch>(&stmt.node)) {
          Soac soac = launch->kernel.bindings[0];
          changeExpressions(soac, [&](ExprRef e) { return replaced(e); });
          use(lcu::freeVars(soac));
        } else if (const auto* choice = std::get_if<lcu::HostIf>(&stmt.node)) {
          use(lcu::freeVars(std::vector{choice->condition}));  // branches are blocks of their own
        } else if (const auto* loop = std::get_if<lcu::HostLoop>(&stmt.node)) {
          use(loop->initial);
        } else {
          use(lcu::freeVars(stmt));
        }
      }
    });
    return used;
  }

  void collect(const Soac& scan) {
    if (scan.kind != SoacKind::Scan) return;
    for (size_t k = 0; k < scan.pull.size(); ++k)
      if (isOffsets(scan, k) && mayBeCopied(scan.pull[k])) lengths_[scan.results[k]] = scan.pull[k];
  }

  ExprRef replaced(ExprRef e) {
    return arena_.rewriteUp(e, [&](ExprRef node, const std::vector<ExprRef>& operands) -> ExprRef {
      if (node->kind != ExprKind::Op || node->op != ScalarOp::Sub) return nullptr;
      const ExprRef end = node->operands[0], begin = node->operands[1];
      if (end->kind != ExprKind::Load || begin->kind != ExprKind::Load || end->index != begin->index)
        return nullptr;
      const auto length = lengths_.find(begin->index);
      const ExprRef position = begin->operands[0];
      if (length == lengths_.end() || end->operands[0] != arena_.add(position, arena_.index(1)))
        return nullptr;
      ++count_;
      measured_.insert(begin->index);
      return replaced(arena_.substituteParams({length->second}, {operands[1]->operands[0]})[0]);
    });
  }

  lcu::Program& program_;
  lcu::ExprArena& arena_;
  std::map<VarId, ExprRef> lengths_;  ///< by offsets, of segment %i
  std::set<VarId> measured_;          ///< offsets of which differences have been replaced
  int count_ = 0;
};

}  // namespace

int useScannedLengths(lcu::Program& program) { return Replacer(program).run(); }

}  // namespace kelpie::fusion
