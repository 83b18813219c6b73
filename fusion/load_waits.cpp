#include "fusion/load_waits.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "fusion/compiled_blocks.h"

namespace kelpie::fusion {

using codegen::Schedule;
using codegen::ScheduleStep;
using lcu::ExprKind;
using lcu::ExprRef;

namespace {

bool variesIn(ExprRef e, ExprRef loop) {
  return lcu::anyNode({e},
                      [&](ExprRef x) { return x->kind == ExprKind::LoopVar && x->index == loop->index; });
}

/// `x and false`, which is kept for what can fail in it.
bool isDecided(ExprRef e) {
  return e->kind == ExprKind::Op && e->type == ScalarType::Bool &&
         (e->op == ScalarOp::And || e->op == ScalarOp::Or) &&
         std::any_of(e->operands.begin(), e->operands.end(), [&](ExprRef operand) {
           return operand->kind == ExprKind::Constant &&
                  operand->constant.isTrue() == (e->op == ScalarOp::Or);
         });
}

/// What of a loop depends on what its turns load.
class Dependents {
 public:
  Dependents(ExprRef loop, const std::unordered_set<ExprRef>& exits)
      : loop_(loop), exits_(exits), variables_(codegen::loopInitial(loop).size()) {
    markVariables(loop, variables_, [this](ExprRef next) {
      known_.clear();
      return contains(next);
    });
    known_.clear();
  }
  bool contains(ExprRef e) {
    if (const auto it = known_.find(e); it != known_.end()) return it->second;
    bool result = false;
    if (e->kind == ExprKind::LoopVar) {
      result = e->index == loop_->index && variables_[e->count];
    } else if (e->kind == ExprKind::Load) {
      result = variesIn(e, loop_);
    } else if (e->kind == ExprKind::Project && e->operands[0]->kind == ExprKind::If) {
      const ExprRef choice = e->operands[0];
      const size_t values = (choice->operands.size() - 1) / 2;
      result = (!exits_.contains(choice) && contains(choice->operands[0])) ||
               contains(choice->operands[1 + e->index]) || contains(choice->operands[1 + values + e->index]);
    } else if (isDecided(e)) {
      result = false;
    } else {
      result = std::any_of(e->operands.begin(), e->operands.end(),
                           [&](ExprRef operand) { return contains(operand); });
    }
    return known_[e] = result;
  }

 private:
  ExprRef loop_;
  const std::unordered_set<ExprRef>& exits_;  ///< of what they choose the loop only goes on with one side
  std::vector<bool> variables_;
  std::unordered_map<ExprRef, bool> known_;
};

/// Elements that a thread loads for before it needs the first, and turns of an unrolled loop.
constexpr double kTogether = 8, kUnrolled = 4;

}  // namespace

std::unordered_set<ExprRef> awaitedInLoops(const Schedule& schedule) {
  std::unordered_set<ExprRef> awaited;
  for (const codegen::ScheduleBlock& block : schedule.blocks) {
    for (const ScheduleStep& step : block.steps) {
      if (step.node->kind != ExprKind::Loop) continue;
      const std::unordered_set<ExprRef> exits = exitsOfLoop(schedule, step);
      Dependents dependents(step.node, exits);
      const bool ends = dependents.contains(codegen::loopCondition(step.node)) ||
                        std::any_of(exits.begin(), exits.end(), [&](ExprRef e) {
                          return e->kind == ExprKind::If && dependents.contains(e->operands[0]);
                        });
      lcu::forEachNode(codegen::loopNext(step.node), [&](ExprRef e) {
        if (e->kind == ExprKind::Load && (ends || dependents.contains(e->operands[0]))) awaited.insert(e);
      });
    }
  }
  return awaited;
}

LoadWaits::LoadWaits(const Schedule& schedule, std::vector<bool> behindBranches)
    : schedule_(schedule), behindBranches_(std::move(behindBranches)), awaited_(awaitedInLoops(schedule)) {}

void LoadWaits::add(size_t block, ExprRef load, double wait, bool inLoop) {
  const double together = !behindBranches_[block]              ? kTogether
                          : inLoop && !awaited_.contains(load) ? kUnrolled
                                                               : 1;
  waits_[{block, load}] = wait / together;
}

double LoadWaits::ofElement(const std::vector<double>& inStep) const {
  Times times;
  return before_ + ofBlock(0, 0, inStep, times);
}

double LoadWaits::ofBlock(size_t block, double from, const std::vector<double>& inStep, Times& times) const {
  if (!(inStep[block] > 0)) return 0;
  std::vector<ExprRef> own;  // whose times this block adds
  const std::function<double(ExprRef)> when = [&](ExprRef e) {
    if (const auto it = times.find(e); it != times.end()) return it->second;
    double last = 0;
    if (!codegen::isAtom(e) || e->kind == ExprKind::Project)
      for (ExprRef operand : e->operands) last = std::max(last, when(operand));
    own.push_back(e);
    return times[e] = last;
  };
  double end = from;
  for (const ScheduleStep& step : schedule_.blocks[block].steps) {
    const ExprRef e = step.node;
    double begin = from;
    if (step.first == 0) {
      for (ExprRef operand : e->operands) begin = std::max(begin, when(operand));
    } else if (e->kind == ExprKind::If) {
      begin = std::max(begin, when(e->operands[0]));
    } else if (e->kind == ExprKind::Loop) {
      for (ExprRef initial : codegen::loopInitial(e)) begin = std::max(begin, when(initial));
    }
    const auto wait = waits_.find({block, e});
    double waited = wait == waits_.end() ? 0 : wait->second;
    for (const uint32_t nested : {step.first, step.second})
      if (nested != 0)
        waited = std::max(waited, inStep[nested] / inStep[block] * ofBlock(nested, begin, inStep, times));
    if (times.insert_or_assign(e, begin + waited).second) own.push_back(e);
    end = std::max(end, begin + waited);
  }
  for (ExprRef e : own) times.erase(e);
  return end - from;
}

}  // namespace kelpie::fusion
