#include "codegen/expression_schedule.h"

#include <algorithm>
#include <unordered_map>

#include "codegen/loop_exits.h"
#include "ir/failures.h"

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::valueCount;

bool isAtom(ExprRef e) {
  switch (e->kind) {
    case ExprKind::Constant:
    case ExprKind::Param:
    case ExprKind::Host:
    case ExprKind::Size:
    case ExprKind::LoopVar:
    case ExprKind::Project:
      return true;
    default:
      return false;
  }
}

bool takesLong(ExprRef e) {
  if (e->kind != ExprKind::Op) return false;
  if (e->op == ScalarOp::Div || e->op == ScalarOp::Rem) return e->operands[1]->kind != ExprKind::Constant;
  return e->op >= ScalarOp::Sqrt && e->op != ScalarOp::Floor;
}

std::vector<ExprRef> thenValues(ExprRef e) {
  return {e->operands.begin() + 1, e->operands.begin() + 1 + valueCount(e)};
}
std::vector<ExprRef> elseValues(ExprRef e) {
  return {e->operands.begin() + 1 + valueCount(e), e->operands.end()};
}
std::vector<ExprRef> loopInitial(ExprRef e) { return {e->operands.begin(), e->operands.begin() + e->count}; }
ExprRef loopCondition(ExprRef e) { return e->operands[e->count]; }
std::vector<ExprRef> loopNext(ExprRef e) { return {e->operands.begin() + e->count + 1, e->operands.end()}; }
std::vector<ExprRef> recursionArguments(ExprRef e) {
  return {e->operands.begin(), e->operands.end() - e->count};
}
std::vector<ExprRef> recursionResults(ExprRef e) { return {e->operands.end() - e->count, e->operands.end()}; }

namespace {

/// A set of nodes by their dense number.
class NodeSet {
 public:
  explicit NodeSet(size_t n) : words_((n + 63) / 64) {}
  void insert(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  void erase(size_t i) { words_[i / 64] &= ~(uint64_t{1} << (i % 64)); }
  void unite(const NodeSet& o) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= o.words_[w];
  }
  void intersect(const NodeSet& o) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] &= o.words_[w];
  }
  bool contains(size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  template <typename Visit>
  void forEach(const Visit& visit) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t bits = words_[w]; bits != 0; bits &= bits - 1) {
        visit(w * 64 + static_cast<size_t>(__builtin_ctzll(bits)));
      }
    }
  }

 private:
  std::vector<uint64_t> words_;
};

class Scheduler {
 public:
  Scheduler(const std::vector<ExprRef>& roots, const std::unordered_set<ExprRef>& available)
      : available_(available) {
    collect(roots);
    for (ExprRef root : roots) evaluated_.add(root);
    computeNeeds();
    place(roots);
    for (ScheduleBlock& block : schedule_.blocks) delayLastCall(block.steps);
  }
  Schedule take() { return std::move(schedule_); }

 private:
  /// All nodes below the roots that are not available yet, numbered operands before users.
  void collect(const std::vector<ExprRef>& roots) {
    std::unordered_set<ExprRef> seen;
    std::vector<ExprRef> work;
    auto push = [&](ExprRef e) {
      if (!available_.contains(e) && seen.insert(e).second) work.push_back(e);
    };
    for (ExprRef r : roots) push(r);
    while (!work.empty()) {
      ExprRef e = work.back();
      work.pop_back();
      nodes_.push_back(e);
      for (ExprRef o : e->operands) push(o);
    }
    std::sort(nodes_.begin(), nodes_.end(), lcu::comesBefore);
    for (size_t k = 0; k < nodes_.size(); ++k) number_[nodes_[k]] = k;
  }

  NodeSet needOf(const std::vector<ExprRef>& es) const {
    NodeSet set(nodes_.size());
    for (ExprRef e : es) addNeed(set, e);
    return set;
  }
  void addNeed(NodeSet& set, ExprRef e) const {
    auto it = number_.find(e);
    if (it != number_.end()) set.unite(need_[it->second]);
  }
  /// What `es` need that does not change with the loop or recursion `id` around them.
  /// `unbounded`: also what may not end, which is not to come before a check of the body that fails.
  void addOuterNeed(NodeSet& set, const std::vector<ExprRef>& es, uint32_t id, bool unbounded = true) const {
    needOf(es).forEach([&](size_t other) {
      if (!dependsOn(other, id) && (unbounded || !lcu::anyNode({nodes_[other]}, lcu::isUnbounded)))
        set.insert(other);
    });
  }
  /// What takes long and does not change with a loop is computed before it. What every step computes, and one
  /// step there is, may load on the way; what steps compute in branches must not. Checks have to be made
  /// anyway: where one in front of the loop has failed no step is due, nor are its checks.
  /// `around`: loops that the whole loop depends on.
  void addLongOfSteps(NodeSet& set, ExprRef loop, const std::vector<uint32_t>& around) const {
    NodeSet everyStep(nodes_.size());
    if (endFlag(loop)) everyStep = needOf(loopNext(loop));
    std::unordered_set<ExprRef> seen;
    std::vector<ExprRef> work = loopNext(loop);
    while (!work.empty()) {
      const ExprRef e = work.back();
      work.pop_back();
      const auto it = number_.find(e);
      if (it == number_.end() || !seen.insert(e).second) continue;
      const size_t k = it->second;
      if (takesLong(e) && sound_[k] &&
          std::includes(around.begin(), around.end(), loops_[k].begin(), loops_[k].end()) &&
          (simple_[k] || everyStep.contains(k)))
        addNeed(set, e);
      work.insert(work.end(), e->operands.begin(), e->operands.end());
    }
  }
  bool ofAllOperands(ExprRef e, const std::vector<bool>& holds) const {
    return std::all_of(e->operands.begin(), e->operands.end(), [&](ExprRef o) {
      const auto it = number_.find(o);
      return it == number_.end() || holds[it->second];
    });
  }
  bool isSimple(ExprRef e) const {
    if (isAtom(e)) return e->kind != ExprKind::Project;
    if (e->kind == ExprKind::Check) return sound_[number_.at(e)];
    return (e->kind == ExprKind::Op || e->kind == ExprKind::Convert) && ofAllOperands(e, simple_);
  }
  bool isSound(ExprRef e) const {
    if (!e->canFail) return true;
    if (e->kind == ExprKind::Recursion || e->kind == ExprKind::Call) return false;
    return (e->kind != ExprKind::Check || evaluated_.contains(e)) && ofAllOperands(e, sound_);
  }
  bool dependsOn(size_t node, uint32_t loop) const {
    return std::binary_search(loops_[node].begin(), loops_[node].end(), loop);
  }

  void computeNeeds() {
    need_.reserve(nodes_.size());
    simple_.resize(nodes_.size());
    sound_.resize(nodes_.size());
    loops_.resize(nodes_.size());
    for (size_t k = 0; k < nodes_.size(); ++k) {
      ExprRef e = nodes_[k];
      NodeSet need(nodes_.size());
      sound_[k] = isSound(e);
      simple_[k] = isSimple(e);
      if (!isAtom(e)) need.insert(k);
      std::vector<uint32_t> loops;
      for (ExprRef o : e->operands) {
        auto it = number_.find(o);
        if (it != number_.end())
          loops.insert(loops.end(), loops_[it->second].begin(), loops_[it->second].end());
      }
      if (e->kind == ExprKind::LoopVar || e->kind == ExprKind::Call) loops.push_back(e->index);
      std::sort(loops.begin(), loops.end());
      loops.erase(std::unique(loops.begin(), loops.end()), loops.end());
      if (e->kind == ExprKind::If) {
        addNeed(need, e->operands[0]);
        NodeSet both = needOf(thenValues(e));
        both.intersect(needOf(elseValues(e)));
        need.unite(both);
      } else if (e->kind == ExprKind::Loop) {
        schedule_.hasLoop = true;
        for (ExprRef o : loopInitial(e)) addNeed(need, o);
        addOuterNeed(need, {loopCondition(e)}, e->index);
        loops.erase(std::remove(loops.begin(), loops.end(), e->index), loops.end());
        addLongOfSteps(need, e, loops);
      } else if (e->kind == ExprKind::Recursion) {
        schedule_.hasRecursion = true;
        for (ExprRef o : recursionArguments(e)) addNeed(need, o);
        addOuterNeed(need, recursionResults(e), e->index, false);
        loops.erase(std::remove(loops.begin(), loops.end(), e->index), loops.end());
      } else {
        if (e->kind == ExprKind::Check) schedule_.hasCheck = true;
        for (ExprRef o : e->operands) addNeed(need, o);
      }
      loops_[k] = std::move(loops);
      need_.push_back(std::move(need));
    }
  }

  uint32_t newBlock(std::vector<ExprRef> roots) {
    schedule_.blocks.push_back({std::move(roots), {}});
    return static_cast<uint32_t>(schedule_.blocks.size() - 1);
  }

  /// Fills the blocks from the outermost in; `placed` holds what the enclosing blocks compute.
  void place(const std::vector<ExprRef>& roots) {
    std::vector<bool> placed(nodes_.size());
    struct Task {
      uint32_t block;
      std::vector<size_t> leave;  ///< nodes to forget; when empty, `block` is to be entered
    };
    std::vector<Task> tasks{{newBlock(roots), {}}};
    while (!tasks.empty()) {
      Task task = std::move(tasks.back());
      tasks.pop_back();
      if (!task.leave.empty()) {
        for (size_t k : task.leave) placed[k] = false;
        continue;
      }
      std::vector<size_t> here;
      needOf(schedule_.blocks[task.block].roots).forEach([&](size_t k) {
        if (!placed[k]) here.push_back(k);
      });
      for (size_t k : here) placed[k] = true;
      if (!here.empty()) tasks.push_back({task.block, here});
      for (size_t k : here) {
        ScheduleStep step{nodes_[k], 0, 0};
        if (step.node->kind == ExprKind::If) {
          step.first = newBlock(thenValues(step.node));
          step.second = newBlock(elseValues(step.node));
          tasks.push_back({step.second, {}});
        } else if (step.node->kind == ExprKind::Loop) {
          step.first = newBlock({loopCondition(step.node)});
          step.second = newBlock(loopNext(step.node));
          loopBodies_[step.first] = step.second;
        } else if (step.node->kind == ExprKind::Recursion) {
          step.first = newBlock(recursionResults(step.node));
        }
        if (step.first != 0) tasks.push_back({step.first, {}});
        schedule_.blocks[task.block].steps.push_back(step);
      }
      // The body of a loop may use what its condition computed: it is entered while that is placed.
      if (auto body = loopBodies_.find(task.block); body != loopBodies_.end()) {
        tasks.push_back({body->second, {}});
      }
    }
  }

  static void delayLastCall(std::vector<ScheduleStep>& steps) {
    const auto isCall = [](const ScheduleStep& step) { return step.node->kind == ExprKind::Call; };
    const auto last = std::find_if(steps.rbegin(), steps.rend(), isCall);
    if (last == steps.rend()) return;
    const auto call = last.base() - 1;
    std::unordered_set<ExprRef> behind;
    std::stable_partition(call, steps.end(), [&](const ScheduleStep& step) {
      const ExprRef e = step.node;
      const bool simple =
          e->kind == ExprKind::Op || e->kind == ExprKind::Convert || e->kind == ExprKind::Load;
      const auto isBehind = [&](ExprRef operand) {
        return behind.contains(operand->kind == ExprKind::Project ? operand->operands[0] : operand);
      };
      if (simple && std::none_of(e->operands.begin(), e->operands.end(), isBehind)) return true;
      behind.insert(e);
      return false;
    });
  }

  const std::unordered_set<ExprRef>& available_;
  std::vector<ExprRef> nodes_;
  std::unordered_map<ExprRef, size_t> number_;
  std::vector<NodeSet> need_;                 ///< by node: what evaluating it evaluates unconditionally
  lcu::Evaluated evaluated_;                  ///< whenever the roots are
  std::vector<bool> sound_;                   ///< by node: what makes no check that is not made anyway
  std::vector<bool> simple_;                  ///< by node: operations on values alone that are sound
  std::vector<std::vector<uint32_t>> loops_;  ///< by node: loops whose variables it depends on, ascending
  std::unordered_map<uint32_t, uint32_t> loopBodies_;
  Schedule schedule_;
};

}  // namespace

Schedule scheduleExpressions(const std::vector<ExprRef>& roots,
                             const std::unordered_set<ExprRef>& available) {
  return Scheduler(roots, available).take();
}

}  // namespace kelpie::codegen
