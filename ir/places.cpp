#include "ir/places.h"

namespace kelpie::lcu {

namespace {

/// Whether `e` is the same for all elements of a segment.
bool ofSegment(ExprRef e) {
  return !anyNode({e}, [](ExprRef node) { return node->kind == ExprKind::Param && node->index != 1; });
}

}  // namespace

bool goesAlong(ExprRef position) {
  switch (position->kind) {
    case ExprKind::Param:
      return true;
    case ExprKind::Check:
      return goesAlong(position->operands[1]);
    case ExprKind::If:
      return position->operands.size() == 3 && goesAlong(position->operands[1]) &&
             goesAlong(position->operands[2]);
    case ExprKind::Project:
      return position->operands[0]->kind == ExprKind::If && position->operands[0]->operands.size() == 3 &&
             goesAlong(position->operands[0]);
    case ExprKind::Op:
      break;
    default:
      return ofSegment(position);
  }
  if (ofSegment(position)) return true;
  const ExprRef a = position->operands[0], b = position->operands.back();
  if (position->op == ScalarOp::Min || position->op == ScalarOp::Max) return goesAlong(a) && goesAlong(b);
  if (position->op == ScalarOp::Add) return (ofSegment(a) && goesAlong(b)) || (ofSegment(b) && goesAlong(a));
  return position->op == ScalarOp::Sub && ofSegment(b) && goesAlong(a);
}

}  // namespace kelpie::lcu
