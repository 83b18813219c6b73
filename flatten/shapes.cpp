// Values of a root between blocks: what is known of them, and the variables that stand for them.
#include <functional>

#include "flatten/flattener.h"
#include "flatten/saved.h"
#include "flatten/shape.h"

namespace kelpie::flatten {

using lcu::ExprKind;
using lcu::SpaceKind;
using lcu::VarKind;
using Kind = Shape::Kind;

// ---- what is known ----------------------------------------------------------------------------------------

Shape meet(const Shape& a, const Shape& b) {
  Shape met = a.kind == Kind::Nothing ? b : a;
  met.whole = a.whole && b.whole;
  if (a.kind == Kind::Nothing || b.kind == Kind::Nothing) return met;
  if (a.kind == Kind::Regular) met.kind = b.kind;
  if (a.kind != b.kind && a.kind != Kind::Regular && b.kind != Kind::Regular) met.kind = Kind::Slices;
  if (a.each != b.each) met.each = nullptr;
  met.components.clear();
  for (size_t k = 0; k < a.components.size(); ++k)
    met.components.push_back(meet(a.components[k], b.components[k]));
  return met;
}

Shapes meet(const Shapes& a, const Shapes& b) {
  if (a.empty()) return b;
  Shapes met = a;
  for (size_t v = 0; v < b.size(); ++v) {
    if (a[v].length != b[v].length) met[v].length = nullptr;
    for (size_t k = 0; k < b[v].components.size(); ++k)
      met[v].components[k] = meet(a[v].components[k], b[v].components[k]);
  }
  return met;
}

namespace {

void settle(std::vector<Shape>& shapes, Kind kind) {
  for (Shape& shape : shapes) {
    if (shape.kind == Kind::Nothing) shape.kind = kind;
    settle(shape.components, kind);
  }
}

std::vector<Shape> uniform(const Row& types, Kind kind) {
  std::vector<Shape> shapes;
  for (const CoreType& type : types)
    shapes.push_back({kind, kind != Kind::Slices, nullptr,
                      type.isScalar() ? std::vector<Shape>{} : uniform(type.elements(), kind)});
  return shapes;
}

bool isDense(const Shape& shape) { return shape.kind == Kind::Regular || shape.kind == Kind::Offsets; }

}  // namespace

Shapes settled(Shapes shapes, Kind kind) {
  for (SequenceShape& shape : shapes) settle(shape.components, kind);
  return shapes;
}

Shapes withLengths(Shapes shapes, const std::function<ExprRef(ExprRef)>& change) {
  const auto changeOne = [&](ExprRef& length) {
    if (length) length = change(length);
  };
  const std::function<void(std::vector<Shape>&)> changeAll = [&](std::vector<Shape>& components) {
    for (Shape& shape : components) {
      changeOne(shape.each);
      changeAll(shape.components);
    }
  };
  for (SequenceShape& shape : shapes) {
    changeOne(shape.length);
    changeAll(shape.components);
  }
  return shapes;
}

Shapes beyond(Shapes shapes, VarId first) {
  return withLengths(std::move(shapes), [&](ExprRef length) {
    const bool inside = lcu::anyNode({length}, [&](ExprRef e) {
      const bool variable =
          e->kind == ExprKind::Host || e->kind == ExprKind::Load || e->kind == ExprKind::Size;
      return variable && e->index >= first;
    });
    return inside ? nullptr : length;
  });
}

Shapes slices(const Row& types) {
  Shapes shapes;
  for (const CoreType& type : types)
    shapes.push_back(
        {nullptr, type.isScalar() ? std::vector<Shape>{} : uniform(type.elements(), Kind::Slices)});
  return shapes;
}

Shape Flattener::shapeOf(const Store& store) const {
  Shape shape;
  if (store.kind == Store::Kind::Array) return shape;
  if (store.dense)
    shape.kind = store.regular() ? Kind::Regular : Kind::Offsets;
  else
    shape.kind = store.length ? Kind::Windows : Kind::Slices;
  const ExprRef each = store.regular() ? store.dense->length : store.length;
  if (each && hostKnown(each)) shape.each = each;
  for (const Store::Component& component : store.components) {
    const Store& inner = *component.store;
    shape.components.push_back(shapeOf(inner));
    if (store.dense && inner.dense && inner.dense->segments != store.dense->extent)
      shape.components.back().kind = Kind::Slices;
  }
  return shape;
}

SequenceShape Flattener::shapeOf(const Sequence& v, Context& root) const {
  SequenceShape shape;
  if (hostKnown(v.length)) shape.length = v.length;
  if (lcu::asIndex(v.length) == 0) {
    shape.components = uniform(v.elements, Kind::Nothing);
    return shape;
  }
  for (const ViewPtr& view : v.views) {
    const Store& store = *view->store;
    shape.components.push_back(shapeOf(store));
    const ExprRef count = store.kind == Store::Kind::Array ? program_.vars[store.array].extent
                          : store.dense                    ? store.dense->segments
                                                           : nullptr;
    shape.components.back().whole = lcu::asIndex(view->start) == 0 && count &&
                                    representative(count, root) == representative(v.length, root);
  }
  return shape;
}

// ---- out of a block ---------------------------------------------------------------------------------------

Flattener::Outgoing Flattener::leave(const Values& row, Context& root) {
  Outgoing outgoing;
  outgoing.block = block_;
  outgoing.span = span_;
  for (const Value& v : row) {
    if (v.isScalar()) {
      outgoing.types.emplace_back(v.scalar()->type);
      outgoing.row.emplace_back(hostLet(v.scalar(), block_, nameOf(v.scalar(), "x")));
      outgoing.shapes.emplace_back();
      dropEvaluated(root.pending, {v.scalar()});
      continue;
    }
    const Value plain = normalise(v, root, Form::Canonical);
    outgoing.types.push_back(CoreType::sequence(plain.sequence().elements));
    outgoing.row.emplace_back(plain.sequence());
    outgoing.shapes.push_back(shapeOf(plain.sequence(), root));
  }
  flushPending(root);
  return outgoing;
}

std::vector<VarId> Flattener::cross(const Outgoing& outgoing, const Shapes& shapes) {
  Saved block(block_);
  Saved span(span_);
  block_ = outgoing.block;
  span_ = outgoing.span;
  std::vector<VarId> out;
  for (size_t k = 0; k < outgoing.row.size(); ++k) {
    if (const auto* scalar = std::get_if<VarId>(&outgoing.row[k])) {
      out.push_back(*scalar);
      continue;
    }
    const auto& sequence = std::get<Sequence>(outgoing.row[k]);
    if (shapes[k] != outgoing.shapes[k] && lcu::asIndex(sequence.length) == 0) {
      const std::vector<VarId> none = crossNothing({outgoing.types[k]}, {shapes[k]});
      out.insert(out.end(), none.begin(), none.end());
      continue;
    }
    out.push_back(hostLet(sequence.length, block_, "length"));
    for (size_t c = 0; c < sequence.views.size(); ++c) {
      const View& view = *sequence.views[c];
      const Shape& shape = shapes[k].components[c];
      if (!shape.whole) out.push_back(hostLet(view.start, block_, "start"));
      crossShaped(*view.store, shape, shape.whole, out);
    }
  }
  return out;
}

/// `counted`: the other side knows how many sequences there are.
void Flattener::crossShaped(const Store& store, const Shape& shape, bool counted, std::vector<VarId>& out) {
  if (store.kind == Store::Kind::Array) return out.push_back(store.array);
  if (isDense(shape)) {
    const Space& space = *store.dense;
    if (!counted) out.push_back(hostLet(space.segments, block_, "count"));
    out.push_back(shape.kind == Kind::Regular ? hostLet(space.length, block_, "each") : offsetsArray(space));
    for (size_t k = 0; k < store.components.size(); ++k)
      crossShaped(*store.components[k].store, shape.components[k], true, out);
    return;
  }
  VarId starts = 0;
  if (shape.kind == Kind::Windows) {
    out.push_back(hostLet(store.dense ? store.dense->length : store.length, block_, "each"));
    if (store.dense) starts = startsOf(*store.dense);
  } else if (store.dense) {
    const auto slices = slicesOf(*store.dense);
    out.push_back(slices.first);
    starts = slices.second;
  } else {
    out.push_back(lengthsOf(store));
  }
  for (size_t k = 0; k < store.components.size(); ++k) {
    out.push_back(starts ? starts : store.components[k].starts);
    crossShaped(*store.components[k].store, shape.components[k], false, out);
  }
}

std::vector<VarId> Flattener::crossNothing(const Row& types, const Shapes& shapes) {
  std::vector<VarId> out;
  const auto none = [&] { out.push_back(hostLet(arena().index(0), block_, "none")); };
  for (size_t v = 0; v < types.size(); ++v) {
    if (types[v].isScalar()) {
      out.push_back(hostLet(arena().constant(Scalar::zero(types[v].scalar())), block_, "none"));
      continue;
    }
    none();
    for (size_t k = 0; k < shapes[v].components.size(); ++k) {
      const Shape& shape = shapes[v].components[k];
      if (!shape.whole) none();
      crossNothing(types[v].elements()[k], shape, shape.whole, out);
    }
  }
  return out;
}

void Flattener::crossNothing(const CoreType& type, const Shape& shape, bool counted,
                             std::vector<VarId>& out) {
  if (type.isScalar()) return emptyArray(type.scalar(), out);
  const auto none = [&] { out.push_back(hostLet(arena().index(0), block_, "none")); };
  if (isDense(shape) && !counted) none();
  switch (shape.kind) {
    case Kind::Regular:
    case Kind::Windows:
      none();
      break;
    case Kind::Offsets:
      constantArray(zeroColumn(lcu::kIndex, 1), out);  // the end of no segment
      break;
    default:
      emptyArray(lcu::kIndex, out);
  }
  for (size_t k = 0; k < shape.components.size(); ++k) {
    if (!isDense(shape)) emptyArray(lcu::kIndex, out);
    crossNothing(type.elements()[k], shape.components[k], isDense(shape), out);
  }
}

// ---- into the blocks around -------------------------------------------------------------------------------

std::vector<VarId> Flattener::declare(const Row& types, const Shapes& shapes, const std::string& name) {
  std::vector<VarId> out;
  for (size_t v = 0; v < types.size(); ++v) {
    if (types[v].isScalar()) {
      out.push_back(newVar(VarKind::Host, types[v].scalar(), name));
      continue;
    }
    out.push_back(newVar(VarKind::Host, lcu::kIndex, name + "_length"));
    for (size_t k = 0; k < shapes[v].components.size(); ++k) {
      const Shape& shape = shapes[v].components[k];
      if (!shape.whole) out.push_back(newVar(VarKind::Host, lcu::kIndex, name + "_start"));
      declareShaped(types[v].elements()[k], shape, shape.whole, name, out);
    }
  }
  return out;
}

void Flattener::declareShaped(const CoreType& type, const Shape& shape, bool counted, const std::string& name,
                              std::vector<VarId>& out) {
  if (type.isScalar()) {
    out.push_back(newVar(VarKind::Array, type.scalar(), name));
    return;
  }
  if (isDense(shape) && !counted) out.push_back(newVar(VarKind::Host, lcu::kIndex, name + "_count"));
  if (shape.kind == Kind::Regular || shape.kind == Kind::Windows)
    out.push_back(newVar(VarKind::Host, lcu::kIndex, name + "_each"));
  else
    out.push_back(
        newVar(VarKind::Array, lcu::kIndex, name + (shape.kind == Kind::Offsets ? "_offsets" : "_lengths")));
  for (size_t k = 0; k < shape.components.size(); ++k) {
    if (!isDense(shape)) out.push_back(newVar(VarKind::Array, lcu::kIndex, name + "_starts"));
    declareShaped(type.elements()[k], shape.components[k], isDense(shape), name, out);
  }
}

Values Flattener::arrive(const Row& types, const Shapes& shapes, const std::vector<VarId>& vars) {
  Values result;
  size_t next = 0;
  const auto host = [&](ScalarType type) { return arena().host(vars[next++], type); };
  for (size_t v = 0; v < types.size(); ++v) {
    if (types[v].isScalar()) {
      result.push_back({host(types[v].scalar())});
      continue;
    }
    Sequence sequence;
    sequence.elements = types[v].elements();
    const ExprRef length = arena().nonNegative(host(lcu::kIndex));
    sequence.length = shapes[v].length ? shapes[v].length : length;
    for (size_t k = 0; k < shapes[v].components.size(); ++k) {
      const Shape& shape = shapes[v].components[k];
      ExprRef start = shape.whole ? arena().index(0) : host(lcu::kIndex);
      StorePtr store =
          shapedStore(sequence.elements[k], shape, vars, next, shape.whole ? sequence.length : nullptr);
      sequence.views.push_back(direct(start, arena().index(1), std::move(store)));
    }
    result.push_back({sequence});
  }
  return result;
}

/// Of `count` elements; null, of sequences: a variable tells.
StorePtr Flattener::shapedStore(const CoreType& type, const Shape& shape, const std::vector<VarId>& vars,
                                size_t& next, ExprRef count) {
  auto store = std::make_shared<Store>();
  store->type = type;
  if (type.isScalar()) {
    store->array = vars[next++];
    if (count) program_.vars[store->array].extent = count;
    return store;
  }
  store->kind = Store::Kind::Sequence;
  if (!isDense(shape)) {
    const VarId first = vars[next++];
    if (shape.kind == Kind::Windows)
      store->length = shape.each ? shape.each : arena().nonNegative(arena().host(first, lcu::kIndex));
    else
      store->lengths = first;
    for (size_t k = 0; k < shape.components.size(); ++k) {
      const VarId starts = vars[next++];
      store->components.push_back(
          {starts, 1, shapedStore(type.elements()[k], shape.components[k], vars, next, nullptr), 0, {}});
    }
    return store;
  }
  if (!count) count = arena().nonNegative(arena().host(vars[next++], lcu::kIndex));
  Space space =
      denseSpace(vars[next++], count, shape.kind == Kind::Regular ? SpaceKind::Regular : SpaceKind::Offsets);
  if (shape.kind == Kind::Offsets) {
    program_.vars[space.offsets].extent = arena().add(count, arena().index(1));
  } else if (shape.each) {
    space.length = shape.each;
    space.extent = arena().elements(count, shape.each);
  }
  for (size_t k = 0; k < shape.components.size(); ++k)
    store->components.push_back(
        {0, 1, shapedStore(type.elements()[k], shape.components[k], vars, next, space.extent), 0, {}});
  store->dense = space;
  return store;
}

}  // namespace kelpie::flatten
