// Values across contexts: entering element spaces, reaching values of enclosing contexts, element access.
#include <algorithm>

#include "flatten/flattener.h"
#include "flatten/short_segments.h"
#include "ir/check_messages.h"
#include "ir/diagnostic.h"

namespace kelpie::flatten {

using lcu::ExprKind;
using lcu::SoacKind;
using lcu::SpaceKind;
using lcu::VarKind;

Context& Flattener::newContext(Context::Kind kind, Context* parent, Space space, lcu::Block* block) {
  Context& context = contexts_.emplace_back();
  context.kind = kind;
  context.parent = parent;
  context.space = space;
  context.block = block;
  return context;
}

Context& Flattener::rootOf(Context& context) {
  Context* c = &context;
  while (!c->isRoot()) c = c->parent;
  return *c;
}

/// Reads device memory on the way: a cell or an array element.
bool Flattener::readsDevice(ExprRef e) const {
  bool device = false;
  lcu::forEachNode({e}, [&](ExprRef n) {
    device |= n->kind == ExprKind::Load;
    device |= n->kind == ExprKind::Host && program_.vars[n->index].kind == VarKind::Cell;
  });
  return device;
}

/// Worth repeating at every use rather than storing: a handful of operations on at most two loads. In `user`,
/// if its segments will be unrolled (short_segments.h), what all elements of one compute is computed once.
bool Flattener::cheap(ExprRef e, const Context* user) const {
  if (e->canFail) return false;
  const bool once = user && user->space.kind == SpaceKind::Regular &&
                    lcu::asIndex(user->space.length).value_or(kLongestUnrolled + 1) <= kLongestUnrolled;
  int nodes = 0, loads = 0;
  bool simple = true;
  lcu::forEachNode({e}, [&](ExprRef n) {
    ++nodes;
    loads += n->kind == ExprKind::Load;
    simple &= n->kind != ExprKind::If && !lcu::isUnbounded(n) && n->kind != ExprKind::LoopVar;
    simple &= n->kind != ExprKind::Op || n->op < ScalarOp::Sqrt;
    if (n->kind == ExprKind::Op && !once) simple &= n->op != ScalarOp::Div && n->op != ScalarOp::Rem;
  });
  return simple && nodes <= 8 && loads <= 2;
}

/// Depends on the instance only, not on its segment or position: means the same over the flat space.
bool Flattener::onlyInstance(ExprRef e) const {
  return !lcu::anyNode({e}, [](ExprRef n) { return n->kind == ExprKind::Param && n->index != 0; });
}

ExprRef Flattener::stored(ExprRef e, Context& context) {
  if (e->kind == ExprKind::Constant) return e;
  auto found = context.stored.find(e);
  if (found != context.stored.end()) return found->second;
  ExprRef result;
  if (!context.isRoot() && !hostKnown(e)) {
    VarId array = map(context.space, e, context.block, nameOf(e, "x"));
    result = arena().load(array, e->type, arena().param(0));
  } else if (readsDevice(e)) {
    lcu::Soac once;
    once.kind = SoacKind::Once;
    once.pull = {e};
    result = arena().host(launch(std::move(once), "once", context.block, nameOf(e, "x"))[0], e->type);
  } else {
    result = arena().host(hostLet(e, context.block, nameOf(e, "x")), e->type);
  }
  dropEvaluated(context.pending, {e});
  context.stored[e] = result;
  if (e->nonNegative) arena().nonNegative(result, e->bits);
  return result;
}

ExprRef Flattener::step(ExprRef e, Context& parent, Context& child) {
  if (parent.isRoot()) {
    if (child.isRoot()) return e;
    if (e->kind == ExprKind::Constant || e->kind == ExprKind::Host || e->kind == ExprKind::Size) return e;
    return stored(e, parent);
  }
  if (!e->usesParam && cheap(e)) return e;
  if (!cheap(e, &child) || !(onlyInstance(e) || dividable(e, parent))) e = stored(e, parent);
  ExprRef instance = child.kind == Context::Kind::Restrict
                         ? arena().load(child.active, lcu::kIndex, arena().param(0))
                         : arena().param(1);
  return ofInstance(e, parent.space, instance);
}

/// In a regular space %s and %p can be had from %i by division; worth it for arithmetic that needs no memory.
bool Flattener::dividable(ExprRef e, const Context& context) const {
  return context.space.kind == SpaceKind::Regular && !readsDevice(e);
}

/// An expression over %i, %s, %p of a space as one over the number of the instance alone. In an irregular
/// space it must use no more than that.
ExprRef Flattener::ofInstance(ExprRef e, const Space& space, ExprRef instance) {
  ExprRef result = arena().rewrite(e, [&](ExprRef n) -> ExprRef {
    if (n->kind != ExprKind::Param) return nullptr;
    if (n->index == 0) return instance;
    return arena().nonNegative(
        arena().op(n->index == 1 ? ScalarOp::Div : ScalarOp::Rem, instance, space.length));
  });
  if (e->nonNegative) arena().nonNegative(result, e->bits);
  return result;
}

/// The expression over the flat space of a context's instances.
ExprRef Flattener::overInstances(ExprRef e, Context& context) {
  if (onlyInstance(e)) return e;
  if (dividable(e, context) && cheap(e)) return ofInstance(e, context.space, arena().param(0));
  return stored(e, context);
}

ExprRef Flattener::translate(ExprRef e, Context& from, Context& to) {
  if (&from == &to || e->kind == ExprKind::Constant) return e;
  std::vector<Context*> path = {&to};
  while (path.back() != &from) {
    if (!path.back()->parent) throw InternalError("a value is used outside its context");
    path.push_back(path.back()->parent);
  }
  for (size_t k = path.size() - 1; k > 0; --k) e = step(e, *path[k], *path[k - 1]);
  return e;
}

/// As translate where that stores nothing; else null.
ExprRef Flattener::translateFreely(ExprRef e, Context& from, Context& to) {
  if (&from == &to || e->kind == ExprKind::Constant) return e;
  if (from.isRoot()) return nullptr;
  std::vector<Context*> path = {&to};
  while (path.back() != &from) path.push_back(path.back()->parent);
  for (size_t k = path.size() - 1; k > 0; --k) {
    if (!cheap(e, path[k - 1]) || !(onlyInstance(e) || dividable(e, *path[k]))) return nullptr;
    e = step(e, *path[k], *path[k - 1]);
  }
  return e;
}

ViewPtr Flattener::translate(const ViewPtr& v, Context& from, Context& to) {
  auto result = std::make_shared<View>(*v);
  result->aligned = false;
  if (v->made) {
    result->instance = translateFreely(v->instance, from, to);
    result->place = translateFreely(v->place, from, to);
    if (!result->instance || !result->place) result->made = nullptr;
  }
  if (v->start) result->start = translate(v->start, from, to);
  if (v->stride) result->stride = translate(v->stride, from, to);
  if (v->condition) result->condition = translate(v->condition, from, to);
  if (v->split) result->split = translate(v->split, from, to);
  if (v->first) result->first = translate(v->first, from, to);
  if (v->second) result->second = translate(v->second, from, to);
  for (Value& value : result->values) value = translate(value, from, to);
  return result;
}

Value Flattener::translate(const Value& v, Context& from, Context& to) {
  if (&from == &to) return v;
  if (v.isScalar()) return {translate(v.scalar(), from, to)};
  Sequence result;
  const Sequence& sequence = v.sequence();
  result.elements = sequence.elements;
  result.length = translate(sequence.length, from, to);
  for (const ViewPtr& view : sequence.views) result.views.push_back(translate(view, from, to));
  // Between roots a flat space stays what it is; elsewhere the descriptor belongs to the other instances. But
  // where these have no elements, what is left covers the stores as before.
  const bool others = to.parent == &from && to.positive != nullptr && to.positive == sequence.length &&
                      result.length->usesParam;
  if (others && sequence.descriptor && sequence.descriptor->kind == SpaceKind::Offsets) {
    result.descriptor = covering(result.length, sequence.descriptor->extent, to);
    for (size_t k = 0; k < result.views.size(); ++k) {
      if (!sequence.views[k]->aligned) continue;
      const View& view = *result.views[k];
      result.views[k] = direct(view.start, view.stride, view.store, true);
    }
  }
  return {result};
}

/// The segments of the context's instances, which have all `elements` of some stores between them: so many,
/// as the host may know already.
Space Flattener::covering(ExprRef length, ExprRef elements, Context& context) {
  const bool known = context.spaces.contains(length);
  Space result = spaceFor(length, context);
  if (!known) context.spaces[length].extent = result.extent = elements;
  return result;
}

// ---- spaces -----------------------------------------------------------------------------------------------

ExprRef Flattener::extent(ExprRef e, Context& root) {
  switch (e->kind) {
    case ExprKind::Constant:
    case ExprKind::Host:
    case ExprKind::Size:
      return e;
    case ExprKind::Load:
      if (!e->canFail) return e;
      break;
    default: {
      bool symbolic = !e->canFail;
      lcu::forEachNode({e}, [&](ExprRef n) {
        symbolic &= n->kind == ExprKind::Constant || n->kind == ExprKind::Host || n->kind == ExprKind::Size ||
                    n->kind == ExprKind::Op;
      });
      if (symbolic && cheap(e)) return e;
    }
  }
  auto found = root.stored.find(e);
  if (found != root.stored.end()) return found->second;
  ExprRef result = arena().nonNegative(arena().host(hostLet(e, block_, "length"), lcu::kIndex));
  dropEvaluated(root.pending, {e});
  if (root.block == block_) root.stored[e] = result;
  return result;
}

/// The sum of lengths of the instances that take a branch, summed up over all instances beside the filter
/// that finds these: so the host waits for it and for their number at once, not again in the branch. Null:
/// the lengths are known in the branch only.
ExprRef Flattener::totalBefore(ExprRef length, Context& context) {
  if (context.kind != Context::Kind::Restrict || !context.around || length->canFail) return nullptr;
  bool before = true;
  ExprRef i = arena().param(0);
  ExprRef outside = arena().rewrite(length, [&](ExprRef n) -> ExprRef {
    if (n->kind == ExprKind::Load && n->index == context.active && n->operands[0] == i) return i;
    const bool reads = n->kind == ExprKind::Load || n->kind == ExprKind::Host || n->kind == ExprKind::Size;
    before &= n->kind != ExprKind::Param && n->kind != ExprKind::LoopVar;
    before &= !reads || n->index < context.firstInside;
    return nullptr;
  });
  if (!before || lcu::anyNode({outside}, [](ExprRef n) { return lcu::isUnbounded(n); })) return nullptr;
  lcu::Soac sum;
  sum.kind = SoacKind::Reduce;
  sum.space = flat(context.parent->space.extent);
  sum.pull = {arena().select(context.taken, outside, arena().index(0))};
  sum.combine.identity = {Scalar::ofInt(lcu::kIndex, 0)};
  sum.combine.result = {arena().add(arena().param(0), arena().param(1))};
  return arena().nonNegative(
      arena().host(launch(std::move(sum), "total", context.around, "total")[0], lcu::kIndex));
}

Space Flattener::spaceFor(ExprRef length, Context& context) {
  auto found = context.spaces.find(length);
  if (found != context.spaces.end()) return found->second;
  // Of sequences that have been compared all kernels run over the elements of one, so that they may become
  // one; but what has run over the other's before goes on so, and a length that has to be computed for its
  // checks is used.
  if (context.isRoot() && length->kind == ExprKind::Host)
    if (const ExprRef same = representative(length, context); same != length)
      return context.spaces[length] = spaceFor(same, context);
  Space space;
  if (context.isRoot()) {
    space = flat(extent(length, context));
    if (space.extent != length && context.block != block_) return space;
  } else if (!length->usesParam && !length->canFail && !readsDevice(length)) {
    ExprRef each = extent(length, rootOf(context));
    space.kind = SpaceKind::Regular;
    space.segments = context.space.extent;
    space.length = each;
    space.extent = arena().elements(space.segments, each);
  } else {
    // A scan over all instances, whatever segments they form.
    ExprRef pull = overInstances(length, context);
    lcu::Soac scan;
    scan.kind = SoacKind::Scan;
    scan.space = flat(context.space.extent);
    scan.pull = {pull};
    scan.withTotal = true;
    scan.combine.identity = {Scalar::ofInt(lcu::kIndex, 0)};
    scan.combine.result = {arena().add(arena().param(0), arena().param(1))};
    dropEvaluated(context.pending, {length});
    VarId offsets = launch(std::move(scan), "offsets", context.block, "offsets")[0];
    space.kind = SpaceKind::Offsets;
    space.segments = context.space.extent;
    space.offsets = offsets;
    space.extent = totalBefore(pull, context);
    if (!space.extent) space.extent = arena().load(offsets, lcu::kIndex, space.segments);
  }
  context.spaces[length] = space;
  return space;
}

/// The length of one of the sequences, which all have to have. The first of them is compared with the others,
/// as error messages name it first.
ExprRef Flattener::sameLength(const std::vector<const Sequence*>& sequences, const Sequence& leader,
                              Span span, Context& context) {
  const Sequence& first = *sequences[0];
  const auto alike = [](const Sequence& a, const Sequence& b) {
    return a.length == b.length || (a.descriptor && b.descriptor && *a.descriptor == *b.descriptor);
  };
  ExprRef common = leader.length;
  std::vector<const Sequence*> known = {&first};
  for (const Sequence* v : sequences) {
    if (std::any_of(known.begin(), known.end(), [&](const Sequence* other) { return alike(*other, *v); }))
      continue;
    known.push_back(v);
    common =
        check(arena().op(ScalarOp::Equal, first.length, v->length), common, Scalar::ofInt(lcu::kIndex, 0),
              span, check_message::kLengths, first.length, v->length, context);
  }
  return common;
}

Space Flattener::commonSpace(const std::vector<const Sequence*>& sequences, Context& context,
                             const core::Exp* e, ExprRef* length) {
  const Sequence* leader = sequences[0];
  for (const Sequence* v : sequences)
    if (v->length->kind == ExprKind::Constant && sequences[0]->length->kind != ExprKind::Constant) leader = v;
  for (const Sequence* v : sequences)
    if (v->descriptor && !leader->descriptor) leader = v;
  const ExprRef common = sameLength(sequences, *leader, e ? e->span : span_, context);
  *length = common;
  if (common == leader->length && leader->descriptor) return *leader->descriptor;
  const Space space = spaceFor(common, context);
  if (!context.isRoot()) return space;
  for (const Sequence* v : sequences) {
    const ExprRef theirs = representative(v->length, context), ours = representative(space.extent, context);
    if (theirs != ours) context.sameExtents[theirs] = ours;
  }
  return space;
}

/// Of all extents that are known to be the same number in a context, always the same one.
ExprRef Flattener::representative(ExprRef extent, const Context& context) const {
  const Context* c = &context;
  while (c != nullptr) {
    const auto found = c->sameExtents.find(extent);
    if (found == c->sameExtents.end()) {
      c = c->parent;
    } else {
      extent = found->second;
      c = &context;
    }
  }
  return extent;
}

Flattener::Entered Flattener::enterSpace(const Space& space, const std::vector<const Sequence*>& sequences,
                                         Context& context, bool making) {
  Context& inside = newContext(Context::Kind::Each, &context, space, block_);
  ExprRef position = arena().param(context.isRoot() ? 0 : 2);
  Entered entered{&inside, {}};
  notePlaces(sequences, inside);
  for (const Sequence* v : sequences) {
    Values row;
    const bool own = v->descriptor && *v->descriptor == space;
    for (size_t k = 0; k < v->views.size(); ++k) {
      const View& view = *v->views[k];
      if (own && view.aligned) {
        row.push_back(storeAt(*view.store, arena().param(0), inside));
      } else {
        ViewPtr outer = translate(v->views[k], context, inside);
        row.push_back(viewAt(*outer, v->elements[k], position, inside, making));
      }
    }
    entered.elements.push_back(std::move(row));
  }
  return entered;
}

Flattener::Entered Flattener::enter(const std::vector<const Sequence*>& sequences, Context& context,
                                    const core::Exp* e) {
  ExprRef length;
  Space space = commonSpace(sequences, context, e, &length);
  return enterSpace(space, sequences, context);
}

// ---- elements ---------------------------------------------------------------------------------------------

ViewPtr Flattener::direct(ExprRef start, ExprRef stride, StorePtr store, bool aligned) {
  auto view = std::make_shared<View>();
  view->start = start;
  view->stride = stride;
  view->store = std::move(store);
  view->aligned = aligned;
  return view;
}

Value Flattener::storeAt(const Store& store, ExprRef address, Context& context) {
  if (store.kind == Store::Kind::Iota) return {arena().convert(address, store.type.scalar())};
  if (store.kind == Store::Kind::Array) return {arena().load(store.array, store.type.scalar(), address)};
  Sequence result;
  result.elements = store.type.elements();
  ExprRef begin = nullptr;
  // The instances of the context are exactly the elements, of which there are so many.
  const auto areAll = [&](ExprRef count) {
    return !context.isRoot() && address->kind == ExprKind::Param && address->index == 0 &&
           representative(context.space.extent, context) == representative(count, context);
  };
  bool whole = false;
  if (store.dense) {
    const Space& space = *store.dense;
    whole = areAll(space.segments);  // the descriptor is this sequence's
    if (space.kind == SpaceKind::Regular) {
      result.length = space.length;
      begin = arena().mul(address, space.length);
    } else {
      begin = arena().load(space.offsets, lcu::kIndex, address);
      ExprRef end = arena().load(space.offsets, lcu::kIndex, arena().add(address, arena().index(1)));
      result.length = arena().nonNegative(arena().sub(end, arena().nonNegative(begin)));
    }
    if (whole) {
      result.descriptor = space;
      result.descriptor->segments = context.space.extent;
    }
    result.run = Run{space, address, 1};
  } else {
    result.length =
        store.length ? store.length : arena().nonNegative(arena().load(store.lengths, lcu::kIndex, address));
    whole = store.covers && areAll(store.covers->count);
    if (whole) result.descriptor = covering(result.length, store.covers->elements, context);
  }
  for (const Store::Component& component : store.components) {
    ViewPtr view = store.dense ? direct(begin, arena().index(component.stride), component.store, whole)
                               : componentAt(component, address);
    if (whole && !store.dense) view = direct(view->start, view->stride, view->store, true);
    result.views.push_back(std::move(view));
  }
  return {result};
}

ViewPtr Flattener::componentAt(const Store::Component& component, ExprRef address) {
  auto at = [&](VarId array) { return arena().nonNegative(arena().load(array, lcu::kIndex, address)); };
  if (!component.splits)
    return direct(at(component.starts), arena().index(component.stride), component.store);
  return appended(at(component.splits), componentAt(component.parts[0], address),
                  componentAt(component.parts[1], address));
}

ViewPtr Flattener::appended(ExprRef split, ViewPtr first, ViewPtr second) {
  auto view = std::make_shared<View>();
  view->kind = View::Kind::Append;
  view->start = arena().index(0);
  view->stride = arena().index(1);
  view->split = split;
  view->first = std::move(first);
  view->second = std::move(second);
  return view;
}

Value Flattener::listed(const std::vector<Value>& values, size_t low, size_t high, ExprRef position) {
  if (high - low == 1) return values[low];
  size_t middle = (low + high) / 2;
  ExprRef left = arena().op(ScalarOp::Less, position, arena().index(static_cast<int64_t>(middle)));
  return choose(left, listed(values, low, middle, position), listed(values, middle, high, position));
}

/// Costs no more to make again than to load twice: few operations and loads, nothing that may fail.
bool Flattener::makeable(ExprRef element) const {
  constexpr int kOperations = 32, kLoads = 8;
  int operations = 0, loads = 0;
  bool simple = !element->canFail;
  lcu::forEachNode({element}, [&](ExprRef n) {
    operations += n->kind == ExprKind::Op || n->kind == ExprKind::If;
    loads += n->kind == ExprKind::Load;
    simple &= !lcu::isUnbounded(n) && n->kind != ExprKind::LoopVar;
    simple &= n->kind != ExprKind::Op || n->op <= ScalarOp::Sqrt;
  });
  return simple && operations <= kOperations && loads <= kLoads;
}

void Flattener::rememberMaking(Sequence& sequence, const Values& row, Context& context) {
  if (context.isRoot()) return;  // there fusion finds the map by itself
  for (size_t k = 0; k < row.size(); ++k) {
    if (!row[k].isScalar() || !makeable(row[k].scalar())) continue;
    auto view = std::make_shared<View>(*sequence.views[k]);
    view->made = row[k].scalar();
    view->instance = arena().param(0);
    view->place = arena().index(0);
    sequence.views[k] = view;
  }
}

Value Flattener::viewAt(const View& view, const CoreType& type, ExprRef position, Context& context,
                        bool making) {
  switch (view.kind) {
    case View::Kind::Direct:
      if (making && view.made)
        return {arena().rewrite(view.made, [&](ExprRef n) -> ExprRef {
          if (n->kind != ExprKind::Param) return nullptr;
          if (n->index == 1) return view.instance;
          return arena().add(n->index == 0 ? view.start : view.place, arena().mul(position, view.stride));
        })};
      return storeAt(*view.store, arena().add(view.start, arena().mul(position, view.stride)), context);
    case View::Kind::Choice:
      return choose(view.condition, viewAt(*view.first, type, position, context, making),
                    viewAt(*view.second, type, position, context, making));
    case View::Kind::Repeat:
      return view.values[0];
    case View::Kind::Listed:
    case View::Kind::Append:
      break;
  }
  ExprRef number = arena().add(view.start, arena().mul(position, view.stride));
  if (view.kind == View::Kind::Append) {
    // Neither part has an element for every position, so what it loads by position is guarded, too.
    const ExprRef isFirst = arena().op(ScalarOp::Less, number, view.split);
    const auto part = [&](const View& v, ExprRef at, bool first) {
      Value value = viewAt(v, type, at, context, making);
      if (value.isScalar()) return value;
      Sequence sequence = value.sequence();
      for (ViewPtr& inner : sequence.views)
        if (loads(*inner)) inner = guard(inner, isFirst, first);
      return Value{sequence};
    };
    return choose(isFirst, part(*view.first, number, true),
                  part(*view.second, arena().sub(number, view.split), false));
  }
  if (number->kind == ExprKind::Constant) {
    int64_t last = static_cast<int64_t>(view.values.size()) - 1;
    return view.values[static_cast<size_t>(std::clamp<int64_t>(number->constant.i, 0, last))];
  }
  return listed(view.values, 0, view.values.size(), number);
}

Values Flattener::elementAt(const Sequence& v, ExprRef position, Context& context) {
  Values row;
  for (size_t k = 0; k < v.views.size(); ++k)
    row.push_back(viewAt(*v.views[k], v.elements[k], position, context));
  return row;
}

/// The view for the instances where `condition` is `wanted`; elsewhere it addresses element 0. A view may be
/// stored for all instances, and must not compute there what only some may (a checked or a distant address).
ViewPtr Flattener::guard(const ViewPtr& v, ExprRef condition, bool wanted) {
  auto guarded = [&](ExprRef e) {
    if (!e || e->kind == ExprKind::Constant) return e;
    ExprRef other = arena().constant(Scalar::zero(e->type));
    return wanted ? arena().select(condition, e, other) : arena().select(condition, other, e);
  };
  auto result = std::make_shared<View>(*v);
  result->aligned = false;
  result->made = nullptr;
  result->start = guarded(v->start);
  result->condition = guarded(v->condition);
  result->split = guarded(v->split);
  if (v->first) result->first = guard(v->first, condition, wanted);
  if (v->second) result->second = guard(v->second, condition, wanted);
  for (Value& value : result->values) {
    if (value.isScalar()) {
      value = {guarded(value.scalar())};
      continue;
    }
    Sequence sequence = value.sequence();
    sequence.descriptor.reset();
    sequence.length = guarded(sequence.length);
    for (ViewPtr& view : sequence.views) view = guard(view, condition, wanted);
    value = {sequence};
  }
  return result;
}

/// Has a check, or loads from a position that may be out of range for instances that do not take this branch:
/// anything but an array over the context's own instances, segments or their descriptors.
bool Flattener::partial(ExprRef e) const {
  if (!e) return false;
  if (e->canFail) return true;
  auto own = [](ExprRef position) {
    if (position->kind == ExprKind::Op && position->op == ScalarOp::Add)
      position = position->operands[position->operands[0]->kind == ExprKind::Param ? 0 : 1];
    return position->kind == ExprKind::Param && position->index < 2;
  };
  return lcu::anyNode({e}, [&](ExprRef n) { return n->kind == ExprKind::Load && !own(n->operands[0]); });
}

/// Whether storing the view for all instances evaluates an expression of which the predicate holds.
bool Flattener::evaluates(const View& v, const std::function<bool(ExprRef)>& is) const {
  for (ExprRef e : {v.start, v.stride, v.condition, v.split})
    if (e && is(e)) return true;
  if ((v.first && evaluates(*v.first, is)) || (v.second && evaluates(*v.second, is))) return true;
  for (const Value& value : v.values) {
    if (is(value.isScalar() ? value.scalar() : value.sequence().length)) return true;
    if (!value.isScalar())
      for (const ViewPtr& view : value.sequence().views)
        if (evaluates(*view, is)) return true;
  }
  return false;
}

bool Flattener::partial(const View& v) const {
  return evaluates(v, [this](ExprRef e) { return partial(e); });
}

bool Flattener::loads(const View& v) const {
  return evaluates(
      v, [](ExprRef e) { return lcu::anyNode({e}, [](ExprRef n) { return n->kind == ExprKind::Load; }); });
}

ViewPtr Flattener::chooseView(ExprRef condition, const ViewPtr& a, const ViewPtr& b) {
  if (a == b) return a;
  if (a->kind == View::Kind::Direct && b->kind == View::Kind::Direct && a->stride == b->stride) {
    const bool same =
        a->store == b->store || (a->store->kind == Store::Kind::Array && b->store->array == a->store->array &&
                                 b->store->kind == Store::Kind::Array);
    if (same) return direct(arena().select(condition, a->start, b->start), a->stride, a->store);
  }
  auto view = std::make_shared<View>();
  view->kind = View::Kind::Choice;
  view->condition = condition;
  view->first = partial(*a) ? guard(a, condition, true) : a;
  view->second = partial(*b) ? guard(b, condition, false) : b;
  return view;
}

Value Flattener::choose(ExprRef condition, const Value& a, const Value& b) {
  if (condition->kind == ExprKind::Constant) return condition->constant.isTrue() ? a : b;
  if (a.isScalar()) return {arena().select(condition, a.scalar(), b.scalar())};
  const Sequence& left = a.sequence();
  const Sequence& right = b.sequence();
  Sequence result;
  result.elements = left.elements;
  result.length = arena().select(condition, left.length, right.length);
  auto empty = [](const Sequence& v) {
    return v.length->kind == ExprKind::Constant && v.length->constant.i == 0;
  };
  for (size_t k = 0; k < left.views.size(); ++k) {
    if (empty(left))
      result.views.push_back(partial(*right.views[k]) ? guard(right.views[k], condition, false)
                                                      : right.views[k]);
    else if (empty(right))
      result.views.push_back(partial(*left.views[k]) ? guard(left.views[k], condition, true) : left.views[k]);
    else
      result.views.push_back(chooseView(condition, left.views[k], right.views[k]));
  }
  for (ViewPtr& view : result.views)  // no longer the whole of any descriptor
    if (view->aligned) view = direct(view->start, view->stride, view->store);
  return {result};
}

Values Flattener::choose(ExprRef condition, const Values& a, const Values& b) {
  // Scalars of one conditional stay together in one multi-valued If, which generated code enters once.
  Values result(a.size());
  std::vector<ExprRef> left, right;
  for (size_t k = 0; k < a.size(); ++k) {
    if (!a[k].isScalar()) {
      result[k] = choose(condition, a[k], b[k]);
      continue;
    }
    left.push_back(a[k].scalar());
    right.push_back(b[k].scalar());
  }
  if (left.empty()) return result;
  std::vector<ExprRef> merged = arena().select(condition, left, right);
  size_t next = 0;
  for (size_t k = 0; k < a.size(); ++k)
    if (a[k].isScalar()) result[k] = {merged[next++]};
  return result;
}

Value Flattener::zero(const CoreType& type) {
  if (type.isScalar()) return {arena().constant(Scalar::zero(type.scalar()))};
  Sequence result;
  result.elements = type.elements();
  result.length = arena().index(0);
  for (const CoreType& element : type.elements()) {
    auto view = std::make_shared<View>();
    view->kind = View::Kind::Repeat;
    view->values = {zero(element)};
    result.views.push_back(view);
  }
  return {result};
}

Sequence Flattener::sequenceOver(const Space& space, ExprRef length, Row types,
                                 const std::vector<StorePtr>& stores, Context& context) {
  Sequence result;
  result.elements = std::move(types);
  result.length = length;
  ExprRef start = arena().index(0);
  if (!context.isRoot()) {
    result.descriptor = space;
    start = space.kind == SpaceKind::Regular ? arena().mul(arena().param(0), space.length)
                                             : arena().load(space.offsets, lcu::kIndex, arena().param(0));
  }
  for (const StorePtr& store : stores)
    result.views.push_back(direct(start, arena().index(1), store, !context.isRoot()));
  return result;
}

}  // namespace kelpie::flatten
