#include "ir/failures.h"

#include <algorithm>
#include <array>

#include "ir/places.h"

namespace kelpie::lcu {

namespace {

bool isChosen(ExprRef e) { return e->kind == ExprKind::Project && e->operands[0]->kind == ExprKind::If; }
/// Of a value of an If: what it is in one of the branches.
ExprRef inBranch(ExprRef e, bool taken) {
  const ExprRef choice = e->operands[0];
  return choice->operands[1 + e->index + (taken ? 0 : valueCount(choice))];
}

}  // namespace

void Evaluated::add(ExprRef root, int& work) {
  std::vector<ExprRef> left = {root}, chosen;
  while (!left.empty()) {
    const ExprRef e = left.back();
    left.pop_back();
    if (!nodes_.insert(e).second) continue;
    --work;
    left.insert(left.end(), e->operands.begin(), e->operands.begin() + ptrdiff_t(strictOperands(e)));
    if (isChosen(e) && e->canFail) chosen.push_back(e);
  }
  for (const ExprRef e : chosen) {
    std::array<Evaluated*, 2> sides{};
    for (const bool taken : {false, true}) {
      if (work < 0) return;
      auto& branch = branches_[{e->operands[0]->operands[0]->id, taken}];
      if (!branch) branch = std::make_unique<Evaluated>();
      branch->add(inBranch(e, taken), work);
      sides[taken] = branch.get();
    }
    if (sides[0]->nodes_.size() > sides[1]->nodes_.size()) std::swap(sides[0], sides[1]);
    for (const ExprRef node : sides[0]->nodes_)
      if (sides[1]->nodes_.contains(node)) nodes_.insert(node);
  }
}

bool Evaluated::contains(ExprRef e) const {
  if (nodes_.contains(e)) return true;
  return e->kind == ExprKind::Project && isUnbounded(e->operands[0]) && nodes_.contains(e->operands[0]);
}

const Evaluated* Evaluated::where(ExprRef condition, bool holds) const {
  const auto it = branches_.find({condition->id, holds});
  return it == branches_.end() ? nullptr : it->second.get();
}

namespace {

class Failures {
 public:
  /// `early`: loads that stay.
  Failures(const std::vector<ExprRef>& roots, const std::unordered_set<ExprRef>& early) : early_(early) {
    for (const ExprRef root : roots) evaluated_.add(root);
  }
  /// Appends those of `e`, the last one first.
  void of(ExprRef e, std::vector<ExprRef>& found) {
    look(e, {&evaluated_}, true, [&](ExprRef failing) {
      found.push_back(failing);
      evaluated_.add(failing);
      return true;
    });
  }

 private:
  using Made = std::vector<const Evaluated*>;  ///< one for each branch that has been gone into

  static bool contains(const Made& made, ExprRef e) {
    return std::any_of(made.begin(), made.end(), [&](const Evaluated* one) { return one->contains(e); });
  }

  /// Calls `visit` for what makes checks itself, until that says no. `stays`: and for what stays.
  template <class Visit>
  void look(ExprRef root, const Made& made, bool stays, const Visit& visit) {
    std::vector<ExprRef> left = {root};
    std::unordered_set<ExprRef> seen;
    while (!left.empty()) {
      const ExprRef e = left.back();
      left.pop_back();
      if (!e->canFail || !seen.insert(e).second || contains(made, e)) continue;
      --work_;
      if (itself(e, made) || (stays && early_.contains(e))) {
        if (!visit(e)) return;
      } else {
        left.insert(left.end(), e->operands.begin(), e->operands.begin() + ptrdiff_t(strictOperands(e)));
      }
    }
  }

  /// Whether it makes a check, not only what it is computed from.
  bool itself(ExprRef e, const Made& made) {
    if (e->kind == ExprKind::Check) return true;
    if (e->kind != ExprKind::Project) return false;
    const ExprRef node = e->operands[0];
    if (node->kind == ExprKind::If) return inside(e, true, made) || inside(e, false, made);
    return node->kind != ExprKind::Loop ||
           std::any_of(node->operands.begin() + node->count, node->operands.end(),
                       [&](ExprRef repeated) { return makesCheck(repeated, made); });
  }
  bool inside(ExprRef e, bool taken, Made made) {
    for (size_t k = made.size(); k-- > 0;)
      if (const Evaluated* more = made[k]->where(e->operands[0]->operands[0], taken)) made.push_back(more);
    return makesCheck(inBranch(e, taken), made);
  }
  bool makesCheck(ExprRef e, const Made& made) {
    if (!e->canFail || work_ < 0) return e->canFail;
    bool found = false;
    look(e, made, false, [&](ExprRef) {
      found = true;
      return false;
    });
    return found;
  }

  const std::unordered_set<ExprRef>& early_;
  Evaluated evaluated_;
  int work_ = 1 << 14;  ///< nodes that may still be looked at before no more branches are
};

std::vector<ExprRef> allFailures(const std::vector<ExprRef>& es, const std::vector<ExprRef>& roots,
                                 const std::unordered_set<ExprRef>& early) {
  std::vector<ExprRef> found;  // the last one first, as a later one often has earlier ones inside
  if (std::none_of(es.begin(), es.end(), [](ExprRef e) { return e->canFail; })) return found;
  Failures failures(roots, early);
  for (size_t k = es.size(); k-- > 0;) failures.of(es[k], found);
  std::unordered_set<ExprRef> within;
  std::vector<ExprRef> left = found;
  while (!left.empty()) {
    const ExprRef e = left.back();
    left.pop_back();
    for (size_t k = 0; k < strictOperands(e); ++k)
      if (within.insert(e->operands[k]).second) left.push_back(e->operands[k]);
  }
  std::erase_if(found, [&](ExprRef e) { return within.contains(e); });
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<ExprRef> failuresIn(const std::vector<ExprRef>& es, const std::vector<ExprRef>& roots) {
  return allFailures(es, roots, {});
}

std::vector<ExprRef> failuresBeside(const std::vector<ExprRef>& es, const std::vector<ExprRef>& roots) {
  const auto ofElement = [](ExprRef e) { return e->kind == ExprKind::Param && e->index != 1; };
  std::unordered_set<ExprRef> early;
  forEachNode(roots, [&](ExprRef e) {
    if (e->kind == ExprKind::Load && goesAlong(e->operands[0]) && anyNode({e->operands[0]}, ofElement))
      early.insert(e);
  });
  return allFailures(es, roots, early);
}

}  // namespace kelpie::lcu
