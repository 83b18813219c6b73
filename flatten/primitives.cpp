// The primitives of Core: scalar operations with their checks, views, and the sequence operations.
#include <algorithm>

#include "flatten/flattener.h"
#include "flatten/zero_lengths.h"
#include "ir/check_messages.h"
#include "ir/diagnostic.h"

namespace kelpie::flatten {

using core::PrimOp;
using lcu::ExprKind;
using lcu::SoacKind;
using lcu::SpaceKind;

Values Flattener::compilePrim(const core::Exp& e, const core::Prim& node, Context& context, Frame& frame) {
  if (node.op == PrimOp::Pack) return {pack(e, node, context, frame)};
  Values a = atoms(node.arguments, context, frame);
  auto scalar = [&](size_t k) { return a[k].scalar(); };
  auto sequence = [&](size_t k) -> const Sequence& { return a[k].sequence(); };
  switch (node.op) {
    case PrimOp::Scalar:
      return {{arena().op(node.scalarOp, scalar(0), a.size() > 1 ? scalar(1) : nullptr)}};
    case PrimOp::CheckedScalar:
      return {{checkedScalar(e, node, scalar(0), a.size() > 1 ? scalar(1) : nullptr)}};
    case PrimOp::Convert:
      return {{checkedConvert(e, scalar(0), e.type[0].scalar())}};
    case PrimOp::Check: {
      const bool hasValue = !e.type.empty();
      ExprRef value = hasValue ? scalar(1) : arena().boolean(true);
      ExprRef checked = check(scalar(0), value, Scalar::zero(value->type), e.span, node.text,
                              toIndex(scalar(1)), toIndex(scalar(2)), context);
      if (hasValue) return {{checked}};
      notePending(checked, context);
      flushPending(context);  // what follows may fail only because this does
      return {};
    }
    case PrimOp::Length:
      return {{fromIndex(sequence(0).length)}};
    case PrimOp::Index:
      return indexSequence(e, sequence(0), toIndex(scalar(1)), context);
    case PrimOp::Range:
      return {range(e, toIndex(scalar(0)), toIndex(scalar(1)), toIndex(scalar(2)), context)};
    case PrimOp::Distribute: {
      Sequence result;
      ExprRef n = toIndex(scalar(0));
      ExprRef zeroIndex = arena().index(0);
      result.elements = e.type[0].elements();
      result.length =
          check(arena().op(ScalarOp::GreaterEqual, n, zeroIndex), n, Scalar::ofInt(lcu::kIndex, 0), e.span,
                check_message::kCopies, n, zeroIndex, context);
      for (size_t k = 1; k < a.size(); ++k) {
        auto view = std::make_shared<View>();
        view->kind = View::Kind::Repeat;
        view->values = {a[k]};
        result.views.push_back(view);
      }
      return {{result}};
    }
    case PrimOp::Literal: {
      Sequence result;
      result.elements = e.type[0].elements();
      result.length = arena().index(node.count);
      const size_t width = result.elements.size();
      for (size_t k = 0; k < width; ++k) {
        auto view = std::make_shared<View>();
        view->kind = View::Kind::Listed;
        view->start = arena().index(0);
        view->stride = arena().index(1);
        for (size_t row = 0; row < node.count; ++row) view->values.push_back(a[row * width + k]);
        result.views.push_back(view);
      }
      return {{result}};
    }
    case PrimOp::Reduce:
      return {reduce(e, node.reduceOp, sequence(0), context)};
    case PrimOp::Scan:
      return {scan(e, node.reduceOp, sequence(0), context)};
    case PrimOp::Append:
      return {append(sequence(0), sequence(1), context)};
    case PrimOp::Flatten:
      return {flattenSequence(sequence(0), context)};
    case PrimOp::Partition:
      return {partition(e, sequence(0), sequence(1), context)};
    case PrimOp::Zip: {
      std::vector<const Sequence*> parts;
      for (size_t k = 0; k < a.size(); ++k) parts.push_back(&sequence(k));
      return {zip(e, parts, context)};
    }
    case PrimOp::Project: {
      Sequence result = sequence(0);
      auto part = [&](auto& v) { v = {v.begin() + node.first, v.begin() + node.first + node.count}; };
      part(result.elements);
      part(result.views);
      return {{result}};
    }
    case PrimOp::Slice:
      return {slice(e, sequence(0), toIndex(scalar(1)), toIndex(scalar(2)), toIndex(scalar(3)), context)};
    case PrimOp::LastWriter:
      return {lastWriter(e, sequence(0), toIndex(scalar(1)), context)};
    case PrimOp::Grade:
      return {grade(sequence(0), context)};
    case PrimOp::RandomInt:
    case PrimOp::RandomFloat:
      return random(e, node, scalar(0), context);
    default:
      return effect(e, node, a, context);
  }
}

// ---- scalars ----------------------------------------------------------------------------------------------

ExprRef Flattener::checkedScalar(const core::Exp& e, const core::Prim& node, ExprRef a, ExprRef b) {
  const ScalarType type = a->type;
  ExprRef none = arena().index(0);
  auto guarded = [&](ExprRef condition, ExprRef value, Scalar fallback, const char* message, ExprRef p) {
    return arena().check(condition, value, fallback, site(userSpan(e.span), message), p, none);
  };
  Scalar one = isFloat(type) ? Scalar::ofFloat(type, 1) : Scalar::ofInt(type, 1);
  ExprRef zeroValue = arena().constant(Scalar::zero(type));
  switch (node.scalarOp) {
    case ScalarOp::Div:
    case ScalarOp::Rem:
      b = guarded(arena().op(ScalarOp::NotEqual, b, zeroValue), b, one, check_message::kDivision, none);
      return arena().op(node.scalarOp, a, b);
    case ScalarOp::Sqrt:
    case ScalarOp::Ln: {
      const char* message =
          node.scalarOp == ScalarOp::Sqrt ? check_message::kSquareRoot : check_message::kLogarithm;
      ExprRef good = arena().op(ScalarOp::Not, arena().op(ScalarOp::Less, a, zeroValue));
      return arena().op(node.scalarOp, guarded(good, a, one, message, none));
    }
    case ScalarOp::ShiftLeft:
    case ScalarOp::ShiftRight: {
      ExprRef width = arena().constant(Scalar::ofInt(type, int64_t{8} * sizeOf(type)));
      ExprRef good = arena().op(ScalarOp::And, arena().op(ScalarOp::GreaterEqual, b, zeroValue),
                                arena().op(ScalarOp::Less, b, width));
      return arena().op(node.scalarOp, a,
                        guarded(good, b, Scalar::zero(type), check_message::kShift, toIndex(b)));
    }
    default:
      throw InternalError("unexpected checked operation");
  }
}

ExprRef Flattener::checkedConvert(const core::Exp& e, ExprRef a, ScalarType to) {
  ExprRef none = arena().index(0);
  if (isFloat(a->type) && isInt(to)) {
    // Bounds that are exact as doubles; the comparison is false for NaN.
    const double top = to == ScalarType::Int32 ? 2147483648.0 : 9223372036854775808.0;
    const double below = to == ScalarType::Int32 ? -2147483649.0 : -9223372036854777856.0;
    ExprRef wide = arena().convert(a, ScalarType::Float64);
    auto bound = [&](double x) { return arena().constant(Scalar::ofFloat(ScalarType::Float64, x)); };
    ExprRef good = arena().op(ScalarOp::And, arena().op(ScalarOp::Greater, wide, bound(below)),
                              arena().op(ScalarOp::Less, wide, bound(top)));
    a = arena().check(good, a, Scalar::zero(a->type), site(userSpan(e.span), check_message::kFloatToInt),
                      none, none);
  } else if (isInt(a->type) && to == ScalarType::Char) {
    auto bound = [&](int64_t x) { return arena().constant(Scalar::ofInt(a->type, x)); };
    ExprRef good = arena().op(ScalarOp::And, arena().op(ScalarOp::GreaterEqual, a, bound(0)),
                              arena().op(ScalarOp::Less, a, bound(256)));
    a = arena().check(good, a, Scalar::zero(a->type), site(userSpan(e.span), check_message::kCharacter),
                      toIndex(a), none);
  }
  return arena().convert(a, to);
}

// ---- views ------------------------------------------------------------------------------------------------

Values Flattener::indexSequence(const core::Exp& e, const Sequence& v, ExprRef position, Context& context) {
  ExprRef good = arena().op(ScalarOp::And, arena().op(ScalarOp::GreaterEqual, position, arena().index(0)),
                            arena().op(ScalarOp::Less, position, v.length));
  ExprRef safe = check(good, position, Scalar::ofInt(lcu::kIndex, 0), e.span, check_message::kIndex, position,
                       v.length, context);
  if (!safe->canFail) return elementAt(v, safe, context);
  Sequence guarded = v;
  for (ViewPtr& view : guarded.views) view = guard(view, good, true);
  Values row = elementAt(guarded, safe, context);
  // Of an empty store not even the first element has a length.
  for (Value& value : row) {
    if (value.isScalar() || hostKnown(value.sequence().length)) continue;
    ExprRef& length = std::get<Sequence>(value.node).length;
    length = arena().check(good, length, Scalar::ofInt(lcu::kIndex, 0),
                           site(userSpan(e.span), check_message::kIndex), position, v.length);
  }
  // Rows of equal lengths, copies of one value and listed elements need not contain the position.
  std::vector<ExprRef> known, owed = {safe};
  for (const Value& value : row) known.push_back(value.isScalar() ? value.scalar() : value.sequence().length);
  dropEvaluated(owed, known);
  if (!owed.empty()) notePending(safe, context);
  return row;
}

Value Flattener::range(const core::Exp& e, ExprRef start, ExprRef end, ExprRef stride, Context& context) {
  ExprRef one = arena().index(1);
  ExprRef span = arena().sub(end, start);
  ExprRef length = span;
  if (stride != one)  // rounded up, without a sum that may be too large
    length = arena().add(arena().op(ScalarOp::Div, span, stride),
                         arena().op(ScalarOp::Min, arena().op(ScalarOp::Rem, span, stride), one));
  Scalar none = Scalar::ofInt(lcu::kIndex, 0);
  length = check(arena().op(ScalarOp::GreaterEqual, stride, one), length, none, e.span,
                 check_message::kRangeStride, stride, arena().index(0), context);
  length = check(arena().op(ScalarOp::LessEqual, start, end), length, none, e.span,
                 check_message::kRangeOrder, start, end, context);
  if (!start->nonNegative && lcu::asIndex(start).value_or(-1) < 0) {
    ExprRef counted = arena().op(ScalarOp::GreaterEqual, span, arena().index(0));
    length = check(arena().op(ScalarOp::Or, arena().op(ScalarOp::Greater, start, end), counted), length, none,
                   e.span, check_message::kRangeSpan, start, end, context);
  }
  auto store = std::make_shared<Store>();
  store->kind = Store::Kind::Iota;
  store->type = core_.intType;
  Sequence result;
  result.elements = {core_.intType};
  result.length = length;
  result.views = {direct(start, stride, store)};
  return {result};
}

Value Flattener::slice(const core::Exp& e, const Sequence& v, ExprRef start, ExprRef count, ExprRef stride,
                       Context& context) {
  ExprRef nothing = arena().index(0);
  auto op = [&](ScalarOp o, ExprRef x, ExprRef y) { return arena().op(o, x, y); };
  auto inside = [&](ExprRef x) {
    return op(ScalarOp::And, op(ScalarOp::GreaterEqual, x, nothing), op(ScalarOp::Less, x, v.length));
  };
  ExprRef last = arena().add(start, arena().mul(arena().sub(count, arena().index(1)), stride));
  ExprRef good = op(ScalarOp::Or, op(ScalarOp::Equal, count, nothing),
                    op(ScalarOp::And, op(ScalarOp::Greater, count, nothing),
                       op(ScalarOp::And, inside(start), inside(last))));
  if (start == nothing && stride == arena().index(1) && count == v.length) return {v};
  Sequence result;
  result.elements = v.elements;
  result.length =
      check(good, count, Scalar::ofInt(lcu::kIndex, 0), e.span, check_message::kSlice, count, start, context);
  std::function<ViewPtr(const ViewPtr&)> moved = [&](const ViewPtr& view) {
    auto copy = std::make_shared<View>(*view);
    copy->aligned = false;
    if (view->kind == View::Kind::Choice) {
      copy->first = moved(view->first);
      copy->second = moved(view->second);
    } else if (view->kind != View::Kind::Repeat) {
      copy->start = arena().add(view->start, arena().mul(start, view->stride));
      if (view->made) copy->place = arena().add(view->place, arena().mul(start, view->stride));
      copy->stride = arena().mul(view->stride, stride);
    }
    return ViewPtr(copy);
  };
  for (const ViewPtr& view : v.views) result.views.push_back(moved(view));
  return {result};
}

Value Flattener::zip(const core::Exp& e, const std::vector<const Sequence*>& parts, Context& context) {
  if (parts.size() == 1) return {*parts[0]};
  Sequence result;
  const Sequence* leader = parts[0];
  for (const Sequence* part : parts)
    if (part->descriptor && !leader->descriptor) leader = part;
  result.length = sameLength(parts, *leader, e.span, context);
  if (result.length == leader->length || !result.length->canFail) result.descriptor = leader->descriptor;
  for (const Sequence* part : parts) {
    result.elements.insert(result.elements.end(), part->elements.begin(), part->elements.end());
    for (const ViewPtr& view : part->views) {
      const bool keeps =
          view->aligned && part->descriptor && result.descriptor && *part->descriptor == *result.descriptor;
      result.views.push_back(view->aligned && !keeps ? direct(view->start, view->stride, view->store) : view);
    }
  }
  if (!result.descriptor)
    for (ViewPtr& view : result.views)
      if (view->aligned) view = direct(view->start, view->stride, view->store);
  return {result};
}

// ---- reductions, scans, filters ---------------------------------------------------------------------------

namespace {
lcu::Operator operatorOf(lcu::ExprArena& arena, ReduceOp op, ScalarType type) {
  return {{identity(op, type)}, {arena.op(scalarOp(op), arena.param(0, type), arena.param(1, type))}};
}
}  // namespace

Value Flattener::reduce(const core::Exp&, ReduceOp op, const Sequence& v, Context& context) {
  Entered entered = enter({&v}, context);
  ExprRef pull = entered.elements[0][0].scalar();
  lcu::Soac soac;
  soac.kind = SoacKind::Reduce;
  soac.space = entered.context->space;
  soac.pull = {pull};
  soac.combine = operatorOf(arena(), op, pull->type);
  VarId result = launch(std::move(soac), "reduce", block_, std::string(toString(op)))[0];
  if (context.isRoot()) return {arena().host(result, pull->type)};
  return {arena().load(result, pull->type, arena().param(0))};
}

Value Flattener::scan(const core::Exp&, ReduceOp op, const Sequence& v, Context& context) {
  ExprRef length;
  Space space = commonSpace({&v}, context, nullptr, &length);
  Entered entered = enterSpace(space, {&v}, context);
  ExprRef pull = entered.elements[0][0].scalar();
  lcu::Soac soac;
  soac.kind = SoacKind::Scan;
  soac.space = space;
  soac.pull = {pull};
  soac.combine = operatorOf(arena(), op, pull->type);
  auto store = std::make_shared<Store>();
  store->type = pull->type;
  store->array = launch(std::move(soac), "scan", block_, "scan")[0];
  return {sequenceOver(space, length, v.elements, {store}, context)};
}

namespace {
/// The sequence without its descriptor.
Value sliced(Sequence v) {
  v.descriptor.reset();
  for (ViewPtr& view : v.views) {
    if (!view->aligned) continue;
    auto copy = std::make_shared<View>(*view);
    copy->aligned = false;
    view = copy;
  }
  return {v};
}
/// Whether a filter of sequences, which have segments of their own in stores that they cover, drops none that
/// has elements.
bool leavesOutEmpty(const Sequence& v, ExprRef where) {
  return isWhole(v) && v.descriptor->kind == SpaceKind::Offsets &&
         lengthOfOthersZero(where, true) == v.length;
}
}  // namespace

Value Flattener::pack(const core::Exp& e, const core::Prim& node, Context& context, Frame& frame) {
  Value source = atom(node.arguments[1], context, frame);
  const Sequence& v = source.sequence();
  std::vector<Value> flags;
  const core::Each* predicate = nullptr;
  const core::Exp* where = &e;
  if (auto found = predicates_.find(node.arguments[0].var()); found != predicates_.end()) {
    where = found->second.get();
    predicate = &std::get<core::Each>(where->node);
    for (const core::Each::Binding& binding : predicate->bindings)
      flags.push_back(atom(binding.sequence, context, frame));
  } else {
    flags.push_back(atom(node.arguments[0], context, frame));
  }
  std::vector<const Sequence*> sequences;
  for (const Value& value : flags) sequences.push_back(&value.sequence());
  sequences.push_back(&v);
  Entered entered = enter(sequences, context, where);
  Context& inside = *entered.context;
  lcu::Soac soac;
  soac.kind = SoacKind::Filter;
  soac.space = inside.space;
  if (predicate) {
    for (size_t k = 0; k < predicate->bindings.size(); ++k)
      bind(predicate->bindings[k].vars, entered.elements[k], inside, frame);
    soac.where = compile(predicate->body, inside, frame)[0].scalar();
  } else {
    soac.where = entered.elements[0][0].scalar();
  }
  Values row;
  std::vector<ExprRef> covered;  // by component: elements that survivors have between them, or null
  for (const Value& value : entered.elements.back()) {
    row.push_back(normalise(value, inside, Form::Stored));
    const bool covers =
        !value.isScalar() && context.isRoot() && leavesOutEmpty(row.back().sequence(), soac.where);
    covered.push_back(covers ? row.back().sequence().descriptor->extent : nullptr);
    if (!value.isScalar())
      row.back() = sliced(row.back().sequence());  // a part of a dense store is not dense
    for (ExprRef column : columnsOf(row.back())) soac.pull.push_back(column);
  }
  std::vector<ExprRef> evaluated = soac.pull;
  evaluated.push_back(soac.where);
  soac.effects = lcu::failuresIn(std::exchange(inside.pending, {}), evaluated);
  std::vector<VarId> arrays = launch(std::move(soac), "filter", block_, "kept");
  std::vector<StorePtr> stores;
  size_t next = 1;
  for (size_t k = 0; k < row.size(); ++k) {
    stores.push_back(storeOf(row[k], v.elements[k], [&] { return arrays[next++]; }));
    if (stores.back()->kind == Store::Kind::Array) joinable_[stores.back()->array] = block_;
    if (!covered[k]) continue;
    auto store = std::make_shared<Store>(*stores.back());
    store->covers = {arena().host(arrays[0], lcu::kIndex), covered[k]};
    stores.back() = store;
  }
  if (context.isRoot()) {
    ExprRef count = arena().nonNegative(arena().host(arrays[0], lcu::kIndex));
    return {sequenceOver(flat(count), count, v.elements, stores, context)};
  }
  Space space;
  space.kind = SpaceKind::Offsets;
  space.offsets = arrays[0];
  space.segments = context.space.extent;
  space.extent = arena().load(arrays[0], lcu::kIndex, space.segments);
  ExprRef i = arena().param(0);
  ExprRef length = arena().sub(arena().load(arrays[0], lcu::kIndex, arena().add(i, arena().index(1))),
                               arena().load(arrays[0], lcu::kIndex, i));
  arena().nonNegative(length);
  return {sequenceOver(space, length, v.elements, stores, context)};
}

// ---- structure --------------------------------------------------------------------------------------------

namespace {
/// Every element of a delayed `++` finds its piece by comparisons: sequences of more pieces are stored.
constexpr int kAppendedPieces = 8;

int pieces(const View& view) {
  return view.kind == View::Kind::Append ? pieces(*view.first) + pieces(*view.second) : 1;
}
}  // namespace

namespace {
bool sameStores(const Sequence& a, const Sequence& b) {
  for (size_t k = 0; k < a.views.size(); ++k) {
    const View &left = *a.views[k], &right = *b.views[k];
    if (left.kind != View::Kind::Direct || right.kind != View::Kind::Direct || left.store != right.store ||
        left.stride != right.stride)
      return false;
  }
  return true;
}
}  // namespace

bool Flattener::follows(const Run& a, const Run& b) {
  return a.space == b.space && b.first == arena().add(a.first, arena().index(a.count));
}

Value Flattener::append(const Sequence& a, const Sequence& b, Context& context) {
  auto empty = [](const Sequence& v) {
    return v.length->kind == ExprKind::Constant && v.length->constant.i == 0;
  };
  if (empty(a)) return {b};
  if (empty(b)) return {a};
  Sequence result;
  result.elements = a.elements;
  result.length = arena().add(a.length, b.length);
  if (a.run && b.run && follows(*a.run, *b.run) && sameStores(a, b)) {  // they lie side by side
    result.views = a.views;
    result.run = Run{a.run->space, a.run->first, a.run->count + b.run->count};
    return sliced(result);
  }
  bool simple = true;
  for (size_t k = 0; k < a.views.size(); ++k) {
    result.views.push_back(appended(a.length, a.views[k], b.views[k]));
    simple &= pieces(*result.views[k]) <= kAppendedPieces;
  }
  return {simple || delayed_ > 0 ? result : copy(result, context)};
}

Value Flattener::flattenSequence(const Sequence& v, Context& context) {
  // Slices of a dense store in order lie side by side: the result is a view of the inner store. Anything else
  // is copied once to make it so.
  const View& view = *v.views[0];
  const bool dense = view.kind == View::Kind::Direct && view.store->kind == Store::Kind::Sequence &&
                     view.store->dense && view.stride == arena().index(1);
  if (!dense) {
    ExprRef length;
    Space space = commonSpace({&v}, context, nullptr, &length);
    Entered entered = enterSpace(space, {&v}, context);
    Sequence inner = entered.elements[0][0].sequence();
    bool whole = inner.descriptor.has_value();
    for (const ViewPtr& part : inner.views) whole &= part->aligned;
    if (!whole) inner = copy(inner, *entered.context);
    std::vector<StorePtr> stores = storeRow({{inner}}, *entered.context);
    return flattenSequence(sequenceOver(space, length, v.elements, stores, context), context);
  }
  const Space& inner = *view.store->dense;
  Sequence result;
  result.elements = v.elements[0].elements();
  auto boundary = [&](ExprRef address) {
    return inner.kind == SpaceKind::Regular ? arena().mul(address, inner.length)
                                            : arena().load(inner.offsets, lcu::kIndex, address);
  };
  const bool all = view.start == arena().index(0) && v.length == inner.segments && context.isRoot();
  ExprRef begin = all ? arena().index(0) : boundary(view.start);
  result.length = all ? inner.extent : arena().sub(boundary(arena().add(view.start, v.length)), begin);
  bool aligned = false;
  if (v.descriptor && view.aligned && v.descriptor->extent == inner.segments) {
    // The segments of the result are the outer segments, seen through the inner offsets.
    Space space;
    space.segments = v.descriptor->segments;
    space.extent = inner.extent;
    if (inner.kind == SpaceKind::Regular && v.descriptor->kind == SpaceKind::Regular) {
      space.kind = SpaceKind::Regular;
      space.length = arena().elements(v.descriptor->length, inner.length);
      result.length = space.length;
    } else {
      ExprRef i = arena().param(0);
      ExprRef outer = v.descriptor->kind == SpaceKind::Regular
                          ? arena().mul(i, v.descriptor->length)
                          : arena().load(v.descriptor->offsets, lcu::kIndex, i);
      space.kind = SpaceKind::Offsets;
      space.offsets =
          map(flat(arena().add(space.segments, arena().index(1))), boundary(outer), block_, "offsets");
    }
    result.descriptor = space;
    aligned = true;
  }
  for (const Store::Component& component : view.store->components)
    result.views.push_back(direct(begin, arena().index(component.stride), component.store, aligned));
  return {result};
}

Value Flattener::lastWriter(const core::Exp& e, const Sequence& index, ExprRef n, Context& context) {
  ExprRef zeroIndex = arena().index(0), i = arena().param(0);
  Entered entered = enter({&index}, context);
  Context& inside = *entered.context;
  ExprRef position = toIndex(entered.elements[0][0].scalar());
  if (n == index.length && position->kind == ExprKind::Load && position->operands[0] == i) {
    // Who writes where an order says is what the ranks tell, and the other way round.
    const auto sort = inverses_.find(position->index);
    if (sort != inverses_.end() && sort->second.space == inside.space) {
      const ExprRef writer = arena().load(sort->second.inverse, lcu::kIndex, i);
      const std::vector<StorePtr> stores = storeRow({{fromIndex(writer)}}, inside);
      return {sequenceOver(inside.space, n, {core_.intType}, stores, context)};
    }
  }
  n = check(arena().op(ScalarOp::GreaterEqual, n, zeroIndex), n, Scalar::ofInt(lcu::kIndex, 0), e.span,
            check_message::kNegativeLength, n, zeroIndex, context);
  Space target = spaceFor(n, context);
  ExprRef size = translate(n, context, inside);
  ExprRef good = arena().op(ScalarOp::And, arena().op(ScalarOp::GreaterEqual, position, zeroIndex),
                            arena().op(ScalarOp::Less, position, size));
  ExprRef base = context.isRoot() ? zeroIndex
                 : target.kind == SpaceKind::Regular
                     ? arena().mul(arena().param(1), target.length)
                     : arena().load(target.offsets, lcu::kIndex, arena().param(1));
  lcu::Soac permute;
  permute.kind = SoacKind::Permute;
  permute.space = inside.space;
  permute.pull = {i};
  permute.destination = arena().check(good, arena().add(base, position), Scalar::ofInt(lcu::kIndex, 0),
                                      site(userSpan(e.span), check_message::kIndex), position, size);
  permute.target = target.extent;
  permute.fill = {Scalar::ofInt(lcu::kIndex, -1)};
  VarId writers = launch(std::move(permute), "permute", block_, "writer")[0];
  // The number of the writer within its own segment.
  ExprRef writer = arena().load(writers, lcu::kIndex, i);
  if (!context.isRoot()) {
    const Space& from = inside.space;
    ExprRef start = from.kind == SpaceKind::Regular
                        ? arena().mul(arena().param(1), from.length)
                        : arena().load(from.offsets, lcu::kIndex, arena().param(1));
    writer =
        arena().select(arena().op(ScalarOp::Less, writer, zeroIndex), writer, arena().sub(writer, start));
  }
  Context& over = newContext(Context::Kind::Each, &context, target, block_);
  std::vector<StorePtr> stores = storeRow({{fromIndex(writer)}}, over);
  return {sequenceOver(target, n, {core_.intType}, stores, context)};
}

Value Flattener::grade(const Sequence& keys, Context& context) {
  ExprRef length;
  Space space = commonSpace({&keys}, context, nullptr, &length);
  Entered entered = enterSpace(space, {&keys}, context);
  std::vector<StorePtr> stores = storeRow(entered.elements[0], *entered.context, Form::Canonical);
  // What nobody uses of these goes (fusion/dead_code.h).
  VarId order = newVar(lcu::VarKind::Array, lcu::kIndex, "order", space.extent);
  VarId ranks = newVar(lcu::VarKind::Array, lcu::kIndex, "ranks", space.extent);
  inverses_[order] = {ranks, space};
  inverses_[ranks] = {order, space};
  lcu::Stmt stmt;
  stmt.results = {order, ranks};
  stmt.node = lcu::Grade{stores[0]->array, space, true, false, true};
  append(block_, std::move(stmt));
  ExprRef element = fromIndex(arena().load(order, lcu::kIndex, arena().param(0)));
  std::vector<StorePtr> result = storeRow({{element}}, *entered.context);
  return {sequenceOver(space, length, {core_.intType}, result, context)};
}

}  // namespace kelpie::flatten
