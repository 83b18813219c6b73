// Let, apply-to-each, invariants: the structure of Core. Conditionals are in conditionals.cpp.
#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "flatten/flattener.h"
#include "ir/diagnostic.h"

namespace kelpie::flatten {
namespace {

/// Sequences that are chosen among more views than this are stored, if these are views of few stores: steps
/// that each choose between what the step before gave and parts of it, or its reverse, have twice the views
/// of the step before. (A choice among many literals has one view of each.)
constexpr size_t kChosenViews = 16, kViewsOfStore = 4;

/// The views that a sequence is chosen among, and the stores that they are of: all lists are one.
struct ChosenViews {
  std::unordered_set<const View*> seen;
  size_t views = 0;
  std::set<std::pair<VarId, const Store*>> stores;

  void add(const Sequence& v) {
    for (const ViewPtr& view : v.views) add(*view);
  }
  void add(const View& view) {
    if (views > kViewsOfStore * kChosenViews || !seen.insert(&view).second) return;
    if (view.first) add(*view.first);
    if (view.second) add(*view.second);
    for (const Value& value : view.values)
      if (!value.isScalar()) add(value.sequence());
    if (view.first) return;
    ++views;
    const bool isArray = view.store && view.store->kind == Store::Kind::Array;
    stores.emplace(isArray ? view.store->array : 0, isArray ? nullptr : view.store.get());
  }
};

bool chosenAmongMany(const Sequence& v) {
  const bool chosen = std::any_of(v.views.begin(), v.views.end(),
                                  [](const ViewPtr& view) { return view->kind == View::Kind::Choice; });
  if (!chosen) return false;
  ChosenViews found;
  found.add(v);
  return found.views > kChosenViews && found.views > kViewsOfStore * found.stores.size();
}

}  // namespace

Value Flattener::atom(const core::Atom& a, Context& context, Frame& frame) {
  if (a.isConstant()) return {arena().constant(a.constant())};
  auto found = frame.find(a.var());
  if (found == frame.end()) {
    found = globals_.find(a.var());
    if (found == globals_.end()) throw InternalError("unbound Core variable");
    return found->second.value;  // canonical root values mean the same in every context
  }
  return translate(found->second.value, *found->second.context, context);
}

Values Flattener::atoms(const std::vector<core::Atom>& as, Context& context, Frame& frame) {
  Values values;
  for (const core::Atom& a : as) values.push_back(atom(a, context, frame));
  return values;
}

void Flattener::bind(const std::vector<core::Var>& vars, const Values& values, Context& context,
                     Frame& frame) {
  for (size_t k = 0; k < vars.size(); ++k) {
    Value value = values[k];
    if (value.isScalar()) {
      names_.try_emplace(value.scalar(), vars[k].name);
      // What the host computes for all instances it computes once.
      if (!context.isRoot() && delayed_ == 0 && hostKnown(value.scalar()) && !cheap(value.scalar()))
        value = {stored(value.scalar(), context)};
      notePending(value.scalar(), context);
    } else {
      if (!context.isRoot() && delayed_ == 0 && chosenAmongMany(value.sequence()))
        value = {copy(value.sequence(), context)};
      notePending(value.sequence().length, context);
    }
    frame[vars[k].id] = {&context, value};
  }
}

/// Compiles what the expression binds; returns the expression that is its value. Changes span_.
core::ExpPtr Flattener::compileLets(core::ExpPtr e, Context& context, Frame& frame) {
  while (true) {  // in a loop: chains of lets can be long
    if (e->span.known()) span_ = e->span;
    auto* let = std::get_if<core::Let>(&e->node);
    if (!let) return e;
    if (let->vars.size() == 1 && analysis_.predicate(let->vars[0].id)) {
      predicates_[let->vars[0].id] = let->rhs;  // compiled by the Pack that uses it
      e = let->body;
      continue;
    }
    Values values = compile(let->rhs, context, frame);
    if (let->vars.empty())  // evaluated for its checks and effects
      for (const Value& v : values)
        if (v.isScalar()) notePending(v.scalar(), context);
    bind(let->vars, values, context, frame);
    e = let->body;
  }
}

Values Flattener::compile(core::ExpPtr e, Context& context, Frame& frame) {
  const Span outer = span_;
  e = compileLets(e, context, frame);
  Values result;
  if (auto* values = std::get_if<core::Values>(&e->node)) {
    result = atoms(values->atoms, context, frame);
  } else if (auto* branch = std::get_if<core::If>(&e->node)) {
    result = compileIf(*e, *branch, context, frame);
  } else if (auto* call = std::get_if<core::Call>(&e->node)) {
    result = compileCall(*e, *call, context, frame);
  } else if (auto* prim = std::get_if<core::Prim>(&e->node)) {
    result = compilePrim(*e, *prim, context, frame);
  } else if (auto* constant = std::get_if<core::Constant>(&e->node)) {
    result = compileConstant(*constant);
  } else if (auto* each = std::get_if<core::Each>(&e->node)) {
    result = compileEach(*e, *each, context, frame);
  } else if (auto* invariant = std::get_if<core::Invariant>(&e->node)) {
    result = compileInvariant(*e, *invariant, context, frame);
  }
  span_ = outer;
  return result;
}

// ---- apply-to-each ----------------------------------------------------------------------------------------

Values Flattener::compileEach(const core::Exp& e, const core::Each& node, Context& context, Frame& frame) {
  std::vector<Value> sources;
  for (const core::Each::Binding& binding : node.bindings)
    sources.push_back(atom(binding.sequence, context, frame));
  std::vector<const Sequence*> sequences;
  for (const Value& v : sources) sequences.push_back(&v.sequence());
  ExprRef length;
  Space space = commonSpace(sequences, context, &e, &length);
  const Row& types = e.type[0].elements();

  auto enterBody = [&]() -> Context& {
    Entered entered = enterSpace(space, sequences, context);
    for (size_t k = 0; k < node.bindings.size(); ++k)
      bind(node.bindings[k].vars, entered.elements[k], *entered.context, frame);
    return *entered.context;
  };
  if (!analysis_.uncontained(node.body) && !analysis_.effects(node.body)) {
    Context& inside = enterBody();
    Values row = compile(node.body, inside, frame);
    Sequence result = sequenceOver(space, length, types, storeRow(row, inside), context);
    flushPending(inside);
    rememberMaking(result, row, context);
    return {{result}};
  }
  auto body = [&](Form form) { return compileStored(node.body, enterBody(), frame, form); };
  // A body without instances is not run: a test on the host (language.md 4.6.5).
  flushPending(context);
  std::vector<StorePtr> stores = compileUnlessEmpty(space.extent, body);
  return {{sequenceOver(space, length, types, stores, context)}};
}

// ---- the rest ---------------------------------------------------------------------------------------------

Values Flattener::compileInvariant(const core::Exp& e, const core::Invariant& node, Context& context,
                                   Frame& frame) {
  const bool anywhere =
      analysis_.delayable(node.body) && !analysis_.effects(node.body) && !analysis_.repeats(node.body);
  if (context.isRoot() || delayed_ > 0 || anywhere) return compile(node.body, context, frame);
  // Once for all instances, if there are any.
  flushAll(context);
  lcu::HostIf hostIf;
  hostIf.condition = arena().op(ScalarOp::Greater, context.space.extent, arena().index(0));
  hostIf.thenBlock = std::make_shared<lcu::Block>();
  hostIf.elseBlock = std::make_shared<lcu::Block>();
  lcu::Block* outer = std::exchange(block_, hostIf.thenBlock.get());
  Context& root = newContext(Context::Kind::Root, &rootOf(context), {}, block_);
  const Outgoing outgoing = leave(compile(node.body, root, frame), root);
  // There may be nothing, also where one length is told: of sequences of sequences the host would look for
  // them.
  Shapes shapes = settled(beyond(outgoing.shapes, 0), Shape::Kind::Regular);
  for (size_t v = 0; v < e.type.size(); ++v) {
    if (e.type[v].isScalar()) continue;
    const Row& elements = e.type[v].elements();
    if (std::any_of(elements.begin(), elements.end(), [](const CoreType& t) { return t.isSequence(); }))
      shapes[v] = withLengths({shapes[v]}, [](ExprRef) -> ExprRef { return nullptr; })[0];
  }
  hostIf.thenBlock->results = cross(outgoing, shapes);
  block_ = hostIf.elseBlock.get();
  hostIf.elseBlock->results = crossNothing(e.type, shapes);
  block_ = outer;
  lcu::Stmt stmt;
  stmt.results = declare(e.type, shapes, "once");
  std::vector<VarId> vars = stmt.results;
  stmt.node = std::move(hostIf);
  append(block_, std::move(stmt));
  return arrive(e.type, shapes, vars);  // host variables mean the same in every context
}

Values Flattener::compileConstant(const core::Constant& node) {
  std::vector<VarId> vars;
  lcu::Stmt stmt;
  lcu::ArrayConstant constant;
  std::function<void(const Column&)> add = [&](const Column& column) {
    Column array = column;
    if (column.type.isSequence()) {
      std::vector<std::byte> bytes(column.offsets.size() * sizeof(int64_t));
      std::copy_n(reinterpret_cast<const std::byte*>(column.offsets.data()), bytes.size(), bytes.begin());
      array = scalarColumn(lcu::kIndex, std::move(bytes));
    }
    vars.push_back(
        newVar(lcu::VarKind::Array, array.type.scalar(), "literal", arena().index(array.length())));
    if (column.type.isSequence() && isRegular(column)) regularDescriptors_.insert(vars.back());
    stmt.results.push_back(vars.back());
    constant.columns.push_back(std::move(array));
    for (const Column& inner : column.elements) add(inner);
  };
  for (const Column& column : node.columns)
    for (const Column& inner : column.elements) add(inner);
  stmt.node = std::move(constant);
  if (!vars.empty()) append(block_, std::move(stmt));
  Values result;
  size_t next = 0;
  for (const Column& column : node.columns)  // lengths of literals are known numbers
    result.push_back({fromColumns(column.type, arena().index(column.offsets.back()), vars, next)});
  return result;
}

}  // namespace kelpie::flatten
