// partition(v, counts): pieces of a sequence, which are views of it.
//
// At a root the pieces of a whole sequence are segments of its stores: of a regular space where the host
// knows that all pieces have one length, else with the scan of the counts as offsets. Other pieces are
// slices.
#include "flatten/flattener.h"
#include "ir/check_messages.h"

namespace kelpie::flatten {

using lcu::SoacKind;
using lcu::SpaceKind;

/// Pieces of one length have as many elements together as the sequence; the host knows all of these numbers.
void Flattener::checkPieces(const core::Exp& e, ExprRef pieces, ExprRef length, ExprRef elements,
                            Context& root) {
  const auto equal = [&](ExprRef a, ExprRef b) { return arena().op(ScalarOp::Equal, a, b); };
  const auto both = [&](ExprRef a, ExprRef b) { return arena().op(ScalarOp::And, a, b); };
  const ExprRef zero = arena().index(0), all = arena().mul(pieces, length);
  // The product may overflow, but not where the quotient is the length.
  const ExprRef quotient =
      arena().op(ScalarOp::Div, elements, arena().op(ScalarOp::Max, pieces, arena().index(1)));
  const ExprRef fits = arena().op(ScalarOp::Or, both(equal(pieces, zero), equal(elements, zero)),
                                  both(equal(quotient, length), equal(all, elements)));
  // What the message tells does not overflow, either.
  const ExprRef most = arena().add(elements, arena().index(check_message::kExcessOfPiece));
  const ExprRef told = arena().mul(pieces, arena().op(ScalarOp::Min, length, most));
  check(fits, arena().boolean(true), Scalar::ofBool(true), e.span, check_message::kPieceSum, told, elements,
        root);
}

Value Flattener::partition(const core::Exp& e, const Sequence& v, const Sequence& counts, Context& context) {
  ExprRef zeroIndex = arena().index(0), one = arena().index(1), i = arena().param(0);
  ExprRef outerLength;
  Space outer = commonSpace({&counts}, context, nullptr, &outerLength);
  Entered entered = enterSpace(outer, {&counts}, context);
  Context& inside = *entered.context;
  ExprRef raw = toIndex(entered.elements[0][0].scalar());
  ExprRef count =
      check(arena().op(ScalarOp::GreaterEqual, raw, zeroIndex), raw, Scalar::ofInt(lcu::kIndex, 0), e.span,
            check_message::kPieceLength, raw, zeroIndex, inside);
  Sequence source = translate({v}, context, inside).sequence();
  const char* message = check_message::kPieceSum;
  auto smaller = [&](ExprRef a, ExprRef b) { return arena().op(ScalarOp::Min, a, b); };
  bool whole = context.isRoot();
  for (const ViewPtr& view : v.views)
    whole &= view->kind == View::Kind::Direct && view->start == zeroIndex && view->stride == one;
  const CoreType type = CoreType::sequence(v.elements);
  const auto pieces = [&](const std::vector<StorePtr>& stores) {
    return Value{sequenceOver(outer, outerLength, {type}, stores, context)};
  };
  // The sequence's own stores, with segments one after the other.
  const auto segments = [&](const Space& space) {
    auto store = std::make_shared<Store>();
    store->kind = Store::Kind::Sequence;
    store->type = type;
    store->dense = space;
    for (const ViewPtr& view : v.views) store->components.push_back({0, 1, view->store, 0, {}});
    return pieces({store});
  };
  // Slices of them.
  const auto slices = [&](ExprRef offset, ExprRef length) {
    Sequence piece;
    piece.elements = v.elements;
    piece.length = length;
    std::function<ViewPtr(const ViewPtr&)> moved = [&](const ViewPtr& view) {
      auto copy = std::make_shared<View>(*view);
      if (view->kind == View::Kind::Choice) {
        copy->first = moved(view->first);
        copy->second = moved(view->second);
      } else if (view->kind != View::Kind::Repeat) {
        copy->start = arena().add(view->start, arena().mul(offset, view->stride));
        if (view->made) copy->place = arena().add(view->place, arena().mul(offset, view->stride));
      }
      return ViewPtr(copy);
    };
    for (const ViewPtr& view : source.views) piece.views.push_back(moved(view));
    return pieces(storeRow({{piece}}, inside));
  };

  if (context.isRoot() && hostKnown(count) && hostKnown(v.length) && hostKnown(outer.extent)) {
    const ExprRef all = arena().elements(outer.extent, count);
    checkPieces(e, outer.extent, count, v.length, context);
    const ExprRef theirs = representative(all, context), ours = representative(v.length, context);
    if (theirs != ours) context.sameExtents[theirs] = ours;
    if (!whole) return slices(arena().mul(i, count), count);
    Space space;
    space.kind = SpaceKind::Regular;
    space.segments = outer.extent;
    space.length = count;
    space.extent = all;
    return segments(space);
  }

  count = stored(count, inside);
  ExprRef counted = smaller(count, arena().add(source.length, arena().index(check_message::kExcessOfPiece)));
  lcu::Soac scan;
  scan.kind = SoacKind::Scan;
  scan.space = outer;
  scan.pull = {counted};
  scan.combine = {{Scalar::ofInt(lcu::kIndex, 0)}, {arena().add(i, arena().param(1))}};
  if (whole) {
    // The counts' scan is the descriptor, cut to the sequence so that a wrong sum stays inside it.
    scan.withTotal = true;
    VarId sums = launch(std::move(scan), "offsets", block_, "sums")[0];
    ExprRef n = source.length;
    ExprRef last = arena().op(ScalarOp::Equal, i, translate(outer.extent, context, inside));
    ExprRef sum = arena().load(sums, lcu::kIndex, i);
    ExprRef wrong = arena().op(ScalarOp::And, last, arena().op(ScalarOp::NotEqual, sum, n));
    ExprRef bound = arena().check(arena().op(ScalarOp::Not, wrong), smaller(sum, n),
                                  Scalar::ofInt(lcu::kIndex, 0), site(userSpan(e.span), message), sum, n);
    Space space;
    space.kind = SpaceKind::Offsets;
    space.segments = outer.extent;
    space.extent = v.length;
    space.offsets = map(flat(arena().add(outer.extent, one)), bound, block_, "offsets");
    return segments(space);
  }
  lcu::Soac sum = scan;
  VarId before = launch(std::move(scan), "starts", block_, "before")[0];
  sum.kind = SoacKind::Reduce;
  VarId total = launch(std::move(sum), "reduce", block_, "total")[0];
  ExprRef sumValue =
      context.isRoot() ? arena().host(total, lcu::kIndex) : arena().load(total, lcu::kIndex, i);
  ExprRef checkedSum =
      arena().check(arena().op(ScalarOp::Equal, sumValue, v.length), arena().boolean(true),
                    Scalar::ofBool(false), site(userSpan(e.span), message), sumValue, v.length);
  notePending(checkedSum, context);
  // Cut to the sequence's length so that a wrong sum stays inside it.
  ExprRef offset = smaller(arena().load(before, lcu::kIndex, i), source.length);
  return slices(offset, smaller(count, arena().sub(source.length, offset)));
}

}  // namespace kelpie::flatten
