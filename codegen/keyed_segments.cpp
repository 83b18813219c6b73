#include "codegen/keyed_segments.h"

#include <algorithm>
#include <vector>

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;

namespace {

constexpr uint32_t kElement = 0, kSegment = 1;

bool usesAnyParam(ExprRef e) {
  return lcu::anyNode({e}, [](ExprRef node) { return node->kind == ExprKind::Param; });
}

/// Whether `e` is the number of the segment, or its lower bits as an Int32.
bool isSegment(ExprRef e) {
  if (e->kind == ExprKind::Convert && e->type == ScalarType::Int32) e = e->operands[0];
  return e->kind == ExprKind::Param && e->index == kSegment;
}

/// `e` as a test of keys.
std::optional<KeyedSegments> asTest(ExprRef e) {
  if (e->kind != ExprKind::Op || e->op != ScalarOp::Equal) return std::nullopt;
  for (const size_t side : {0, 1}) {
    const ExprRef segment = e->operands[side], key = e->operands[1 - side];
    if (usesParam(key, kElement) || usesParam(key, kSegment)) continue;
    if (isSegment(segment)) return KeyedSegments{e, key, nullptr};
    if (segment->kind != ExprKind::Op || segment->op != ScalarOp::Add) continue;
    for (const size_t term : {0, 1}) {
      const ExprRef offset = segment->operands[1 - term];
      if (isSegment(segment->operands[term]) && !usesAnyParam(offset) && !offset->canFail)
        return KeyedSegments{e, key, offset};
    }
  }
  return std::nullopt;
}

/// The value of `e` where `test` is false, if that is the same for all elements and nothing else is evaluated
/// for it that could fail.
std::optional<Scalar> valueWithout(ExprRef e, ExprRef test) {
  if (e == test) return Scalar::ofBool(false);
  if (e->kind == ExprKind::Constant) return e->constant;
  if (e->kind == ExprKind::Convert) {
    const auto value = valueWithout(e->operands[0], test);
    return value ? std::optional(convert(*value, e->type)) : std::nullopt;
  }
  if (e->kind == ExprKind::Op && e->op == ScalarOp::And) {
    for (const size_t side : {0, 1}) {
      const auto value = valueWithout(e->operands[side], test);
      if (value && value->i == 0 && !e->operands[1 - side]->canFail) return value;
    }
    return std::nullopt;
  }
  if (e->kind == ExprKind::Project && e->operands[0]->kind == ExprKind::If) {
    const ExprRef choice = e->operands[0];
    const auto condition = valueWithout(choice->operands[0], test);
    if (!condition) return std::nullopt;
    const size_t first = condition->i != 0 ? 1 : 1 + lcu::valueCount(choice);
    return valueWithout(choice->operands[first + e->index], test);
  }
  return std::nullopt;
}

/// Whether a fold that began with the identity is the same, to the bit, with one identity less. (Sums that
/// begin with 0.0 never become -0.0, which 0.0 would change; a NaN gives way to any number in max and min.)
bool ignoresIdentity(ScalarOp op, ScalarType type) {
  return !isFloat(type) || op == ScalarOp::Add || op == ScalarOp::Mul;
}

bool isElementOnlyWith(const KeyedSegments& keyed, const Soac& soac) {
  for (size_t j = 0; j < soac.pull.size(); ++j) {
    const auto value = valueWithout(soac.pull[j], keyed.test);
    if (!value || !(*value == soac.combine.identity[j])) return false;
  }
  return true;
}

}  // namespace

std::optional<KeyedSegments> keyedSegments(const lcu::Kernel& kernel, const KernelInfo& info) {
  if (info.space.kind != lcu::SpaceKind::Regular) return std::nullopt;
  std::vector<const Soac*> folds;
  for (size_t b = 0; b < kernel.bindings.size(); ++b) {
    const Soac& soac = kernel.bindings[b];
    if (info.bindings[b].role == BindingRole::Epilogue) continue;
    if (soac.kind != SoacKind::Reduce || !(soac.space == info.space) || !soac.effects.empty() ||
        !info.bindings[b].localReads.empty())
      return std::nullopt;
    const auto operations = lanewiseOperations(soac.combine);
    if (!operations || lcu::anyNode(soac.pull, [](ExprRef e) { return e->kind == ExprKind::Recursion; }))
      return std::nullopt;
    for (size_t j = 0; j < operations->size(); ++j)
      if (!ignoresIdentity((*operations)[j], soac.combine.identity[j].type)) return std::nullopt;
    folds.push_back(&soac);
  }
  if (folds.empty()) return std::nullopt;
  std::optional<KeyedSegments> found;
  lcu::forEachNode(folds[0]->pull, [&](ExprRef e) {
    if (found) return;
    const auto keyed = asTest(e);
    if (keyed && std::all_of(folds.begin(), folds.end(),
                             [&](const Soac* soac) { return isElementOnlyWith(*keyed, *soac); }))
      found = keyed;
  });
  return found;
}

}  // namespace kelpie::codegen
