// The forms in which values cross host-level boundaries: calls of functions and host conditionals.
#include "flatten/flattener.h"
#include "ir/diagnostic.h"

namespace kelpie::flatten {

using lcu::SpaceKind;
using lcu::VarKind;

// ---- canonical form ---------------------------------------------------------------------------------------

void Flattener::canonicalComponent(const Store::Component& component, std::vector<VarId>& out) {
  if (!component.splits) {
    out.push_back(component.starts);
    return canonicalStore(component.store, out);
  }
  out.push_back(component.splits);
  for (const Store::Component& part : component.parts) canonicalComponent(part, out);
}

Store::Component Flattener::declareLike(const Store::Component& shape, const CoreType& type,
                                        const std::string& name, ExprRef extent, std::vector<VarId>& out) {
  Store::Component component;
  out.push_back(newVar(VarKind::Array, lcu::kIndex, name + (shape.splits ? "_splits" : "_starts"), extent));
  if (shape.splits) {
    component.splits = out.back();
    for (const Store::Component& part : shape.parts)
      component.parts.push_back(declareLike(part, type, name, extent, out));
    return component;
  }
  component.starts = out.back();
  size_t next = out.size();
  declareStore(type, name, nullptr, out);
  component.store = storeFrom(type, out, next);
  return component;
}

bool Flattener::dense(const Store& store) const {
  return store.kind == Store::Kind::Array || (store.dense && plain(store));
}

void Flattener::crossing(const StorePtr& store, std::vector<VarId>& out, SpaceKind kind) {
  if (!store->dense) return canonicalStore(store, out);
  if (kind == SpaceKind::Regular) {
    if (!store->regular()) throw InternalError("sequences of one length without a regular space");
    out.push_back(hostLet(store->dense->length, block_, "each"));
  } else {
    out.push_back(offsetsArray(*store->dense));
  }
  for (const Store::Component& component : store->components) canonicalStore(component.store, out);
}

Space Flattener::denseSpace(VarId var, ExprRef instances, SpaceKind kind) {
  Space space;
  space.kind = kind;
  space.segments = instances;
  if (kind == SpaceKind::Regular) {
    space.length = arena().nonNegative(arena().host(var, lcu::kIndex));
    space.extent = arena().elements(instances, space.length);
  } else {
    space.offsets = var;
    space.extent = arena().load(var, lcu::kIndex, instances);
  }
  return space;
}

void Flattener::declareDense(const CoreType& type, const std::string& name, ExprRef instances,
                             std::vector<VarId>& out, SpaceKind kind) {
  if (type.isScalar()) return declareStore(type, name, instances, out);
  const ExprRef positions = arena().add(instances, arena().index(1));
  out.push_back(kind == SpaceKind::Regular
                    ? newVar(VarKind::Host, lcu::kIndex, name + "_each")
                    : newVar(VarKind::Array, lcu::kIndex, name + "_offsets", positions));
  const ExprRef extent = denseSpace(out.back(), instances, kind).extent;
  for (const CoreType& element : type.elements()) declareStore(element, name, extent, out);
}

StorePtr Flattener::denseFrom(const CoreType& type, const std::vector<VarId>& vars, size_t& next,
                              ExprRef instances, SpaceKind kind) {
  if (type.isScalar()) return storeFrom(type, vars, next);
  auto store = std::make_shared<Store>();
  store->kind = Store::Kind::Sequence;
  store->type = type;
  store->dense = denseSpace(vars[next++], instances, kind);
  for (const CoreType& element : type.elements())
    store->components.push_back({0, 1, storeFrom(element, vars, next), 0, {}});
  return store;
}

StorePtr Flattener::declareLike(const Store& shape, const std::string& name, ExprRef extent,
                                std::vector<VarId>& out) {
  if (shape.type.isScalar()) {
    size_t next = out.size();
    declareStore(shape.type, name, extent, out);
    return storeFrom(shape.type, out, next);
  }
  if (shape.dense) {
    size_t next = out.size();
    declareDense(shape.type, name, extent, out);
    return denseFrom(shape.type, out, next, extent);
  }
  auto store = std::make_shared<Store>();
  store->kind = Store::Kind::Sequence;
  store->type = shape.type;
  store->lengths = newVar(VarKind::Array, lcu::kIndex, name + "_lengths", extent);
  out.push_back(store->lengths);
  for (size_t k = 0; k < shape.components.size(); ++k)
    store->components.push_back(
        declareLike(shape.components[k], shape.type.elements()[k], name, extent, out));
  return store;
}

std::pair<VarId, VarId> Flattener::slicesOf(const Space& space) {
  ExprRef i = arena().param(0);
  ExprRef start, length;
  if (space.kind == SpaceKind::Regular) {
    start = arena().mul(i, space.length);
    length = space.length;
  } else {
    start = arena().load(space.offsets, lcu::kIndex, i);
    length = arena().sub(arena().load(space.offsets, lcu::kIndex, arena().add(i, arena().index(1))), start);
  }
  lcu::Soac soac;
  soac.space = flat(space.segments);
  soac.pull = {length, start};
  std::vector<VarId> arrays = launch(std::move(soac), "slices", block_, "slices");
  return {arrays[0], arrays[1]};
}

VarId Flattener::startsOf(const Space& space) {
  const ExprRef start = space.kind == SpaceKind::Regular
                            ? arena().mul(arena().param(0), space.length)
                            : arena().load(space.offsets, lcu::kIndex, arena().param(0));
  return map(flat(space.segments), start, block_, "starts");
}

VarId Flattener::lengthsOf(const Store& store) {
  if (!store.length) return store.lengths;
  const Store::Component& first = store.components.front();
  const ExprRef count = program_.vars[first.splits ? first.splits : first.starts].extent;
  return map(flat(count), store.length, block_, "lengths");
}

/// `store` is canonical, or has appended components (Form::Appended): of these, the splits and both parts.
void Flattener::canonicalStore(const StorePtr& store, std::vector<VarId>& out) {
  if (store->kind == Store::Kind::Array) {
    out.push_back(store->array);
    return;
  }
  if (store->kind == Store::Kind::Iota) throw InternalError("an unbounded store at a boundary");
  if (!store->dense) {
    out.push_back(lengthsOf(*store));
    for (const Store::Component& component : store->components) canonicalComponent(component, out);
    return;
  }
  const auto [lengths, starts] = slicesOf(*store->dense);
  out.push_back(lengths);
  for (const Store::Component& component : store->components) {
    out.push_back(starts);
    canonicalStore(component.store, out);
  }
}

std::vector<VarId> Flattener::canonical(const Values& row, Context& context) {
  if (context.isRoot()) {
    const Outgoing outgoing = leave(row, context);
    return cross(outgoing, slices(outgoing.types));
  }
  std::vector<VarId> out;
  for (const StorePtr& store : storeRow(row, context, Form::Canonical)) canonicalStore(store, out);
  return out;
}

void Flattener::declareStore(const CoreType& type, const std::string& name, ExprRef extent,
                             std::vector<VarId>& out) {
  if (type.isScalar()) {
    out.push_back(newVar(VarKind::Array, type.scalar(), name, extent));
    return;
  }
  out.push_back(newVar(VarKind::Array, lcu::kIndex, name + "_lengths", extent));
  for (const CoreType& element : type.elements()) {
    out.push_back(newVar(VarKind::Array, lcu::kIndex, name + "_starts", extent));
    declareStore(element, name, nullptr, out);
  }
}

std::vector<VarId> Flattener::declare(const Row& types, Context& context, const std::string& name) {
  if (context.isRoot()) return declare(types, slices(types), name);
  std::vector<VarId> out;
  for (const CoreType& type : types) declareStore(type, name, context.space.extent, out);
  return out;
}

StorePtr Flattener::storeFrom(const CoreType& type, const std::vector<VarId>& vars, size_t& next) {
  auto store = std::make_shared<Store>();
  store->type = type;
  VarId first = vars[next++];
  if (type.isScalar()) {
    store->array = first;
    return store;
  }
  store->kind = Store::Kind::Sequence;
  store->lengths = first;
  for (const CoreType& element : type.elements()) {
    Store::Component component;
    component.starts = vars[next++];
    component.store = storeFrom(element, vars, next);
    store->components.push_back(component);
  }
  return store;
}

Values Flattener::fromCanonical(const Row& types, const std::vector<VarId>& vars, Context& context) {
  if (context.isRoot()) return arrive(types, slices(types), vars);
  Values result;
  size_t next = 0;
  for (const CoreType& type : types)
    result.push_back(storeAt(*storeFrom(type, vars, next), arena().param(0), context));
  return result;
}

void Flattener::constantArray(Column column, std::vector<VarId>& out) {
  out.push_back(newVar(VarKind::Array, column.type.scalar(), "none", arena().index(column.length())));
  lcu::Stmt stmt;
  stmt.results = {out.back()};
  stmt.node = lcu::ArrayConstant{{std::move(column)}};
  append(block_, std::move(stmt));
}

void Flattener::emptyArray(ScalarType type, std::vector<VarId>& out) {
  constantArray(zeroColumn(type, 0), out);
}

void Flattener::emptyLike(const Store::Component& shape, std::vector<VarId>& out) {
  emptyArray(lcu::kIndex, out);
  if (!shape.splits) return emptyStore(shape.store->type, out);
  for (const Store::Component& part : shape.parts) emptyLike(part, out);
}

void Flattener::emptyLike(const Store& shape, std::vector<VarId>& out) {
  if (shape.type.isScalar()) return emptyArray(shape.type.scalar(), out);
  if (shape.dense) {
    constantArray(zeroColumn(lcu::kIndex, 1), out);  // the end of no segment
    for (const CoreType& element : shape.type.elements()) emptyStore(element, out);
    return;
  }
  emptyArray(lcu::kIndex, out);
  for (const Store::Component& component : shape.components) emptyLike(component, out);
}

void Flattener::emptyStore(const CoreType& type, std::vector<VarId>& out) {
  if (type.isScalar()) return emptyArray(type.scalar(), out);
  emptyArray(lcu::kIndex, out);
  for (const CoreType& element : type.elements()) {
    emptyArray(lcu::kIndex, out);
    emptyStore(element, out);
  }
}

}  // namespace kelpie::flatten
