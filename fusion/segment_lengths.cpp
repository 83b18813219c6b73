#include "fusion/segment_lengths.h"

#include <algorithm>
#include <unordered_map>

namespace kelpie::fusion {
namespace {

using lcu::ExprKind;
using lcu::ExprRef;

/// Beyond it lengths are not short for any purpose, and sums of so few of them do not overflow.
constexpr int64_t kMost = 1 << 20;

bool isParam(ExprRef e, size_t number) { return e->kind == ExprKind::Param && e->index == number; }

class Ranges {
 public:
  std::optional<LengthRange> of(ExprRef e) {
    if (const auto it = known_.find(e); it != known_.end()) return it->second;
    std::optional<LengthRange> range = find(e);
    if (range && (range->least < -kMost || range->most > kMost)) range.reset();
    known_.emplace(e, range);
    return range;
  }

 private:
  std::optional<LengthRange> find(ExprRef e) {
    switch (e->kind) {
      case ExprKind::Constant:
        if (isFloat(e->type)) return std::nullopt;
        return LengthRange{e->constant.i, e->constant.i};
      case ExprKind::Convert:
        if (e->operands[0]->type == ScalarType::Bool) return LengthRange{0, 1};
        return isFloat(e->operands[0]->type) ? std::nullopt : of(e->operands[0]);
      case ExprKind::Check:
        return of(e->operands[1]);  // what an error leaves is never looked at
      case ExprKind::If:
        return either(e, 0);
      case ExprKind::Project:
        if (e->operands[0]->kind != ExprKind::If) return std::nullopt;
        return either(e->operands[0], e->index);
      case ExprKind::Op:
        return ofOperation(e);
      default:
        return std::nullopt;
    }
  }

  /// Value `number` of an If.
  std::optional<LengthRange> either(ExprRef choice, uint32_t number) {
    const size_t count = lcu::valueCount(choice);
    const auto a = of(choice->operands[1 + number]), b = of(choice->operands[1 + count + number]);
    if (!a || !b) return std::nullopt;
    return LengthRange{std::min(a->least, b->least), std::max(a->most, b->most)};
  }

  std::optional<LengthRange> ofOperation(ExprRef e) {
    if (e->operands.size() != 2) return std::nullopt;
    const auto a = of(e->operands[0]), b = of(e->operands[1]);
    if (!a || !b) return std::nullopt;
    switch (e->op) {
      case ScalarOp::Add:
        return LengthRange{a->least + b->least, a->most + b->most};
      case ScalarOp::Sub:
        return LengthRange{a->least - b->most, a->most - b->least};
      case ScalarOp::Max:
        return LengthRange{std::max(a->least, b->least), std::max(a->most, b->most)};
      case ScalarOp::Min:
        return LengthRange{std::min(a->least, b->least), std::min(a->most, b->most)};
      default:
        return std::nullopt;
    }
  }

  std::unordered_map<ExprRef, std::optional<LengthRange>> known_;
};

}  // namespace

bool isOffsets(const lcu::Soac& scan, size_t k) {
  if (scan.kind != lcu::SoacKind::Scan || !scan.withTotal || scan.inclusive || scan.backward) return false;
  const size_t other = k + scan.pull.size();
  const ExprRef sum = scan.combine.result[k];
  return scan.pull[k]->type == lcu::kIndex && scan.combine.identity[k] == Scalar::ofInt(lcu::kIndex, 0) &&
         sum->kind == ExprKind::Op && sum->op == ScalarOp::Add &&
         ((isParam(sum->operands[0], k) && isParam(sum->operands[1], other)) ||
          (isParam(sum->operands[0], other) && isParam(sum->operands[1], k)));
}

std::optional<LengthRange> lengthRange(const lcu::Soac& scan, size_t k) {
  if (!isOffsets(scan, k)) return std::nullopt;
  std::optional<LengthRange> range = Ranges().of(scan.pull[k]);
  if (range) range->least = std::max<int64_t>(range->least, 0);
  return range;
}

}  // namespace kelpie::fusion
