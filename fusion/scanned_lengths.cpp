#include "fusion/scanned_lengths.h"

#include <map>

#include "fusion/sizes.h"

namespace kelpie::fusion {
namespace {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

/// Whether component k of the scan's operator adds, alone.
bool adds(const Soac& scan, size_t k, lcu::ExprArena& arena) {
  const auto left = static_cast<uint32_t>(k), right = static_cast<uint32_t>(k + scan.pull.size());
  return scan.pull[k]->type == lcu::kIndex && scan.combine.identity[k] == Scalar::ofInt(lcu::kIndex, 0) &&
         scan.combine.result[k] == arena.add(arena.param(left), arena.param(right));
}

bool mayBeCopied(ExprRef pull) { return !pull->canFail && !lcu::anyNode({pull}, lcu::isUnbounded); }

class Replacer {
 public:
  explicit Replacer(lcu::Program& program) : program_(program), arena_(*program.arena) {}

  int run() {
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      for (lcu::Stmt& stmt : block.stmts) {
        const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
        if (launch) collect(launch->kernel.bindings[0]);
      }
    });
    if (lengths_.empty()) return 0;
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      for (lcu::Stmt& stmt : block.stmts) {
        auto* launch = std::get_if<lcu::Launch>(&stmt.node);
        if (!launch) continue;
        for (Soac& soac : launch->kernel.bindings) {
          changeExpressions(soac, [&](ExprRef e) { return replaced(e); });
        }
      }
    });
    return count_;
  }

 private:
  void collect(const Soac& scan) {
    if (scan.kind != SoacKind::Scan || !scan.withTotal || scan.inclusive || scan.backward) return;
    for (size_t k = 0; k < scan.pull.size(); ++k) {
      if (adds(scan, k, arena_) && mayBeCopied(scan.pull[k])) lengths_[scan.results[k]] = scan.pull[k];
    }
  }

  ExprRef replaced(ExprRef e) {
    return arena_.rewrite(e, [&](ExprRef node) -> ExprRef {
      if (node->kind != ExprKind::Op || node->op != ScalarOp::Sub) return nullptr;
      const ExprRef end = node->operands[0], begin = node->operands[1];
      if (end->kind != ExprKind::Load || begin->kind != ExprKind::Load || end->index != begin->index)
        return nullptr;
      const auto length = lengths_.find(begin->index);
      const ExprRef position = begin->operands[0];
      if (length == lengths_.end() || end->operands[0] != arena_.add(position, arena_.index(1)))
        return nullptr;
      ++count_;
      return replaced(arena_.substituteParams({length->second}, {replaced(position)})[0]);
    });
  }

  lcu::Program& program_;
  lcu::ExprArena& arena_;
  std::map<VarId, ExprRef> lengths_;
  int count_ = 0;
};

}  // namespace

int useScannedLengths(lcu::Program& program) { return Replacer(program).run(); }

}  // namespace kelpie::fusion
