// From delayed values to stored ones: element stores, dense columns, and the canonical form at boundaries.
#include <algorithm>

#include "flatten/flattener.h"
#include "ir/diagnostic.h"

namespace kelpie::flatten {

using lcu::ExprKind;
using lcu::SpaceKind;
using lcu::VarKind;

/// Scalar expressions of one context waiting to be stored by one map; entries that are already the elements
/// of an array of the context's extent are not stored again.
struct Flattener::Columns {
  std::vector<ExprRef> pulls;
  struct Entry {
    int pull = -1;       ///< index into pulls, or
    VarId existing = 0;  ///< an array that is there already
  };
  std::vector<Entry> entries;
};

void Flattener::addColumn(ExprRef e, Columns& columns, Context& context) {
  Columns::Entry entry;
  if (e->kind == ExprKind::Load && e->operands[0] == arena().param(0) &&
      representative(program_.vars[e->index].extent, context) ==
          representative(context.space.extent, context)) {
    entry.existing = e->index;
  } else if (auto found = context.stored.find(e); found != context.stored.end()) {
    entry.existing = found->second->kind == ExprKind::Load ? found->second->index : 0;
  }
  if (!entry.existing) {
    for (size_t k = 0; k < columns.pulls.size() && entry.pull < 0; ++k)
      if (columns.pulls[k] == e) entry.pull = static_cast<int>(k);
    if (entry.pull < 0) {
      entry.pull = static_cast<int>(columns.pulls.size());
      columns.pulls.push_back(e);
    }
  }
  columns.entries.push_back(entry);
}

bool Flattener::plain(const Store& store) const {
  if (store.kind == Store::Kind::Array) return true;
  if (store.kind == Store::Kind::Iota) return false;
  for (const Store::Component& component : store.components)
    if (component.splits || component.stride != 1 || !plain(*component.store)) return false;
  return true;
}

/// Pieces that whoever copies them makes anew: better copied at once, and never stored.
static bool isMade(const View& view) {
  if (view.kind == View::Kind::Append) return isMade(*view.first) && isMade(*view.second);
  return view.made != nullptr;
}

bool Flattener::plain(const View& view, Form form) const {
  lcu::ExprArena& arena = *program_.arena;
  if (view.kind == View::Kind::Append && (form == Form::Stored || form == Form::Appended))
    return !(form == Form::Appended && isMade(view)) && view.start == arena.index(0) &&
           view.stride == arena.index(1) && plain(*view.first, form) && plain(*view.second, form);
  if (view.kind != View::Kind::Direct) return false;
  if (view.stride->kind != ExprKind::Constant) return false;
  return form == Form::Stored || (view.stride->constant.i == 1 && plain(*view.store));
}

/// The same sequence over a new dense store: one segmented map.
Sequence Flattener::copy(const Sequence& v, Context& context) {
  ExprRef length;
  Space space = commonSpace({&v}, context, nullptr, &length);
  Entered entered = enterSpace(space, {&v}, context, true);
  std::vector<StorePtr> stores = storeRow(entered.elements[0], *entered.context, Form::Canonical);
  return sequenceOver(space, length, v.elements, stores, context);
}

/// A choice between survivors of several filters as a slice of one array that contains them all. The filters
/// have done at least the work of a copy, should one be needed, so this never costs more than they did.
ViewPtr Flattener::joined(const ViewPtr& view) {
  std::vector<VarId> arrays;
  ScalarType type{};
  const std::function<bool(const View&)> collect = [&](const View& v) {
    if (v.kind == View::Kind::Choice) return collect(*v.first) && collect(*v.second);
    if (v.kind != View::Kind::Direct || v.store->kind != Store::Kind::Array || v.stride != arena().index(1))
      return false;
    type = v.store->type.scalar();
    auto found = joinable_.find(v.store->array);
    if (std::find(arrays.begin(), arrays.end(), v.store->array) == arrays.end())
      arrays.push_back(v.store->array);
    return found != joinable_.end() && found->second == block_;
  };
  if (view->kind != View::Kind::Choice || !collect(*view) || arrays.size() < 2) return view;
  lcu::Stmt stmt;
  stmt.results.push_back(newVar(VarKind::Array, type, "joined"));
  std::unordered_map<VarId, ExprRef> begins;
  for (VarId array : arrays) {
    stmt.results.push_back(newVar(VarKind::Host, lcu::kIndex, "begin"));
    begins[array] = arena().host(stmt.results.back(), lcu::kIndex);
    joinable_.erase(array);
  }
  auto store = std::make_shared<Store>();
  store->type = type;
  store->array = stmt.results[0];
  stmt.node = lcu::Join{arrays};
  append(block_, std::move(stmt));
  const std::function<ExprRef(const View&)> start = [&](const View& v) {
    if (v.kind == View::Kind::Choice) return arena().select(v.condition, start(*v.first), start(*v.second));
    return arena().add(begins[v.store->array], v.start);
  };
  return direct(start(*view), arena().index(1), store);
}

bool isWhole(const Sequence& v) {
  bool whole = v.descriptor.has_value();
  for (const ViewPtr& view : v.views) whole &= view->aligned;
  return whole;
}

void Flattener::regroup(Sequence& v, Context& context) {
  if (context.isRoot() || !v.run || isWhole(v)) return;
  const Space& parts = v.run->space;
  ExprRef i = arena().param(0), count = arena().index(v.run->count);
  if (v.run->first != arena().mul(i, count)) return;
  if (parts.segments != arena().mul(context.space.extent, count)) return;
  Space space;
  space.kind = parts.kind;
  space.segments = context.space.extent;
  space.extent = parts.extent;
  if (parts.kind == SpaceKind::Regular) {
    space.length = arena().elements(parts.length, count);
  } else {
    ExprRef begin = arena().load(parts.offsets, lcu::kIndex, v.run->first);
    space.offsets = map(flat(arena().add(space.segments, arena().index(1))), begin, block_, "offsets");
  }
  v.descriptor = space;
  for (ViewPtr& view : v.views) view = direct(view->start, view->stride, view->store, true);
}

Value Flattener::normalise(const Value& v, Context& context, Form form) {
  if (v.isScalar()) return v;
  Sequence sequence = v.sequence();
  // `dist`: the value once for each instance, stride 0.
  for (ViewPtr& view : sequence.views) {
    if (view->kind != View::Kind::Repeat || context.isRoot() || form != Form::Stored) continue;
    std::vector<StorePtr> stores = storeRow({view->values[0]}, context);
    view = direct(arena().param(0), arena().index(0), stores[0]);
  }
  if (form == Form::Dense || form == Form::Appended) regroup(sequence, context);
  bool good = form != Form::Dense || isWhole(sequence);
  for (ViewPtr& view : sequence.views) {
    if (form != Form::Stored && good) view = joined(view);
    good &= plain(*view, form);
  }
  return {good ? sequence : copy(sequence, context)};
}

void Flattener::addColumns(const View& view, std::vector<ExprRef>& out) {
  if (view.kind == View::Kind::Direct) return out.push_back(view.start);
  out.push_back(view.split);
  addColumns(*view.first, out);
  addColumns(*view.second, out);
}

Store::Component Flattener::componentFrom(const View& view, const std::function<VarId()>& next) {
  Store::Component component;
  if (view.kind == View::Kind::Direct) {
    component.starts = next();
    component.stride = view.stride->constant.i;
    component.store = view.store;
    return component;
  }
  component.splits = next();
  component.parts = {componentFrom(*view.first, next), componentFrom(*view.second, next)};
  return component;
}

/// Sequences that have no columns, of functions that capture nothing, are as many as they have lengths:
/// nothing else tells.
bool Flattener::lengthIsKnown(const Sequence& sequence) const {
  return hostKnown(sequence.length) && !sequence.views.empty();
}

std::vector<ExprRef> Flattener::columnsOf(const Value& v) const {
  if (v.isScalar()) return {v.scalar()};
  const Sequence& sequence = v.sequence();
  if (isWhole(sequence)) return {};
  std::vector<ExprRef> columns;
  if (!lengthIsKnown(sequence)) columns.push_back(sequence.length);
  for (const ViewPtr& view : sequence.views) addColumns(*view, columns);
  return columns;
}

StorePtr Flattener::storeOf(const Value& v, const CoreType& type, const std::function<VarId()>& next) const {
  auto store = std::make_shared<Store>();
  store->type = type;
  if (v.isScalar()) {
    store->array = next();
    return store;
  }
  const Sequence& sequence = v.sequence();
  store->kind = Store::Kind::Sequence;
  if (isWhole(sequence)) {
    store->dense = sequence.descriptor;
    for (const ViewPtr& view : sequence.views) store->components.push_back({0, 1, view->store, 0, {}});
    return store;
  }
  if (lengthIsKnown(sequence))
    store->length = sequence.length;
  else
    store->lengths = next();
  for (const ViewPtr& view : sequence.views) store->components.push_back(componentFrom(*view, next));
  return store;
}

namespace {
CoreType typeOf(const Value& v) {
  return v.isScalar() ? CoreType(v.scalar()->type) : CoreType::sequence(v.sequence().elements);
}
}  // namespace

std::vector<StorePtr> Flattener::storeRow(const Values& row, Context& context, Form form) {
  Columns columns;
  Values normalised;
  for (const Value& v : row) {
    normalised.push_back(normalise(v, context, form));
    for (ExprRef e : columnsOf(normalised.back())) addColumn(e, columns, context);
  }
  std::vector<VarId> arrays;
  const std::vector<ExprRef> effects = lcu::failuresBeside(context.pending, columns.pulls);
  if (!columns.pulls.empty()) {
    lcu::Soac soac;
    soac.space = context.space;
    soac.pull = columns.pulls;
    soac.effects = effects;
    context.pending.clear();
    arrays = launch(std::move(soac), "map", block_, "r");
    if (context.block == block_)
      for (size_t k = 0; k < arrays.size(); ++k)
        context.stored[columns.pulls[k]] = arena().load(arrays[k], columns.pulls[k]->type, arena().param(0));
  }
  std::vector<StorePtr> stores;
  size_t next = 0;
  auto nextArray = [&] {
    const Columns::Entry& entry = columns.entries[next++];
    return entry.existing ? entry.existing : arrays[static_cast<size_t>(entry.pull)];
  };
  for (size_t k = 0; k < row.size(); ++k) stores.push_back(storeOf(normalised[k], typeOf(row[k]), nextArray));
  return stores;
}

// ---- dense columns ----------------------------------------------------------------------------------------

VarId Flattener::offsetsArray(const Space& space) {
  if (space.kind == SpaceKind::Offsets) return space.offsets;
  Space positions = flat(arena().add(space.segments, arena().index(1)));
  const VarId offsets = map(positions, arena().mul(arena().param(0), space.length), block_, "offsets");
  regularDescriptors_.insert(offsets);
  return offsets;
}

/// Of a value of a non-root context: one entry for each instance. Of a root's sequence: one entry in all.
void Flattener::denseColumns(const Value& v, const CoreType& type, Context& context,
                             std::vector<VarId>& out) {
  if (type.isScalar()) {
    if (context.isRoot())
      out.push_back(hostLet(v.scalar(), block_, "result"));
    else
      out.push_back(storeRow({v}, context)[0]->array);
    return;
  }
  const Sequence& sequence = v.sequence();
  ExprRef length;
  Space space = commonSpace({&sequence}, context, nullptr, &length);
  if (context.isRoot()) {
    out.push_back(hostLet(length, block_, "length"));
  } else {
    out.push_back(offsetsArray(space));
  }
  Entered entered = enterSpace(space, {&sequence}, context);
  const Row types = sequence.elements;
  // One map stores all scalar columns together.
  std::vector<VarId> scalars;
  Values row;
  for (size_t k = 0; k < types.size(); ++k)
    if (types[k].isScalar()) row.push_back(entered.elements[0][k]);
  std::vector<StorePtr> stores = storeRow(row, *entered.context, Form::Canonical);
  size_t next = 0;
  for (size_t k = 0; k < types.size(); ++k) {
    if (types[k].isScalar())
      out.push_back(stores[next++]->array);
    else
      denseColumns(entered.elements[0][k], types[k], *entered.context, out);
  }
}

/// The store of a column whose variables begin at vars[next], `count` values; a null count becomes the size
/// of what is there. Columns side by side share one symbolic size. A descriptor that is a host scalar is the
/// length of every segment (lcu::GlobalInput).
StorePtr Flattener::denseStore(const CoreType& type, const std::vector<VarId>& vars, size_t& next,
                               ExprRef& count) {
  auto store = std::make_shared<Store>();
  store->type = type;
  VarId first = vars[next++];
  if (type.isScalar()) {
    store->array = first;
    if (count)
      program_.vars[first].extent = count;
    else
      count = program_.vars[first].extent;
    return store;
  }
  const bool regular = program_.vars[first].kind == VarKind::Host;
  if (regular && !count) throw InternalError("a regular descriptor without a number of segments");
  if (count && !regular)
    program_.vars[first].extent = arena().add(count, arena().index(1));
  else if (!count)
    count = arena().sub(arena().size(first), arena().index(1));
  store->kind = Store::Kind::Sequence;
  Space space;
  space.segments = count;
  if (regular) {
    space.kind = SpaceKind::Regular;
    space.length = arena().nonNegative(arena().host(first, lcu::kIndex));
    space.extent = arena().elements(count, space.length);
  } else {
    space.kind = SpaceKind::Offsets;
    space.offsets = first;
  }
  for (const CoreType& element : type.elements()) {
    const bool regularInside = element.isSequence() && program_.vars[vars[next]].kind == VarKind::Host;
    if (regularInside && !space.extent) space.extent = arena().load(first, lcu::kIndex, count);
    store->components.push_back({0, 1, denseStore(element, vars, next, space.extent), 0, {}});
  }
  if (!space.extent) space.extent = arena().load(first, lcu::kIndex, count);
  store->dense = space;
  return store;
}

/// A root's sequence of `length` elements from its columns.
Sequence Flattener::fromColumns(const CoreType& type, ExprRef length, const std::vector<VarId>& vars,
                                size_t& next) {
  Sequence sequence;
  sequence.elements = type.elements();
  sequence.length = arena().nonNegative(length);
  for (const CoreType& element : type.elements())
    sequence.views.push_back(
        direct(arena().index(0), arena().index(1), denseStore(element, vars, next, length)));
  return sequence;
}

Values Flattener::fromDenseColumns(const Row& types, const std::vector<VarId>& vars) {
  Values result;
  size_t next = 0;
  for (const CoreType& type : types) {
    ExprRef first = arena().host(vars[next++], type.isScalar() ? type.scalar() : lcu::kIndex);
    if (type.isScalar())
      result.push_back({first});
    else
      result.push_back({fromColumns(type, first, vars, next)});
  }
  return result;
}

}  // namespace kelpie::flatten
