// Let, conditionals, apply-to-each, invariants: the structure of Core.
//
// Worked example, in a context C of n instances (arrays a, k over C):
//   if k > 0 then sum({x*x : x in v}) else k
// The then-branch needs a kernel, the else-branch is delayable. The instances with k > 0 are filtered into
// `active`; the branch is compiled in Restrict(active) and stored (array r of the survivors); the result is
// the delayed  k[%i] > 0 ? r[rank[%i]] : k[%i],  rank being the exclusive scan of the condition.
#include <algorithm>

#include "flatten/flattener.h"
#include "ir/diagnostic.h"

namespace kelpie::flatten {

using lcu::ExprKind;
using lcu::SoacKind;

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
    const Value& value = values[k];
    if (value.isScalar()) {
      names_.try_emplace(value.scalar(), vars[k].name);
      notePending(value.scalar(), context);
    } else {
      notePending(value.sequence().length, context);
    }
    frame[vars[k].id] = {&context, value};
  }
}

Values Flattener::compile(core::ExpPtr e, Context& context, Frame& frame) {
  const Span outer = span_;
  while (true) {  // lets in a loop: their chains can be long
    if (e->span.known()) span_ = e->span;
    auto* let = std::get_if<core::Let>(&e->node);
    if (!let) break;
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

// ---- conditionals -----------------------------------------------------------------------------------------

Values Flattener::compileSelect(const core::If& node, ExprRef condition, Context& context, Frame& frame) {
  // Expressions a branch owes but does not use stay owed under its condition.
  auto branch = [&](const core::ExpPtr& body, Values& values, std::vector<ExprRef>& owed) {
    size_t mark = context.pending.size();
    values = compile(body, context, frame);
    owed.assign(context.pending.begin() + static_cast<ptrdiff_t>(mark), context.pending.end());
    context.pending.resize(mark);
    std::vector<ExprRef> roots;
    for (const Value& v : values)
      if (v.isScalar()) roots.push_back(v.scalar());
    dropEvaluated(owed, roots);
  };
  ++delayed_;
  Values left, right;
  std::vector<ExprRef> owedLeft, owedRight;
  branch(node.thenBranch, left, owedLeft);
  branch(node.elseBranch, right, owedRight);
  --delayed_;
  for (ExprRef e : owedLeft)
    notePending(arena().select(condition, e, arena().constant(Scalar::zero(e->type))), context);
  for (ExprRef e : owedRight)
    notePending(arena().select(condition, arena().constant(Scalar::zero(e->type)), e), context);
  return choose(condition, left, right);
}

Values Flattener::compileHostIf(const core::Exp& e, const core::If& node, ExprRef condition, Context& context,
                                Frame& frame) {
  flushPending(context);
  auto branch = [&](const core::ExpPtr& body) {
    auto block = std::make_shared<lcu::Block>();
    lcu::Block* outer = std::exchange(block_, block.get());
    Context& root = newContext(Context::Kind::Root, &context, {}, block_);
    block->results = canonical(compile(body, root, frame), root);
    flushPending(root);
    block_ = outer;
    return block;
  };
  lcu::HostIf hostIf;
  hostIf.condition = condition;
  hostIf.thenBlock = branch(node.thenBranch);
  hostIf.elseBlock = branch(node.elseBranch);
  lcu::Stmt stmt;
  stmt.results = declare(e.type, context, "r");
  std::vector<VarId> results = stmt.results;
  stmt.node = std::move(hostIf);
  append(block_, std::move(stmt));
  return fromCanonical(e.type, results, context);
}

/// Known to be at least one: a number of instances inside the block that a test of it guards.
bool Flattener::positive(ExprRef instances) const {
  if (instances->kind == ExprKind::Constant) return instances->constant.i > 0;
  if (instances->kind == ExprKind::Op && instances->op == ScalarOp::Mul)
    return positive(instances->operands[0]) && positive(instances->operands[1]);
  return std::find(positive_.begin(), positive_.end(), instances) != positive_.end();
}

/// Compiles for `instances` instances and stores what they compute; where there are none nothing runs at all,
/// which the host decides.
std::vector<StorePtr> Flattener::compileUnlessEmpty(ExprRef instances,
                                                    const std::function<Context&(Values&)>& compileInside) {
  if (positive(instances)) {
    Values row;
    Context& inside = compileInside(row);
    std::vector<StorePtr> stores = storeRow(row, inside);
    flushPending(inside);
    return stores;
  }
  lcu::HostIf hostIf;
  hostIf.condition = arena().op(ScalarOp::Greater, instances, arena().index(0));
  hostIf.thenBlock = std::make_shared<lcu::Block>();
  hostIf.elseBlock = std::make_shared<lcu::Block>();
  lcu::Block* outer = std::exchange(block_, hostIf.thenBlock.get());
  Values row;
  positive_.push_back(instances);
  Context& inside = compileInside(row);
  positive_.pop_back();
  std::vector<VarId>& computed = hostIf.thenBlock->results;
  std::vector<StorePtr> shapes = storeRow(row, inside, Form::Appended);
  for (const StorePtr& store : shapes) canonicalStore(store, computed);
  flushPending(inside);
  block_ = hostIf.elseBlock.get();
  for (VarId var : computed) emptyArray(program_.vars[var].type, hostIf.elseBlock->results);
  block_ = outer;
  lcu::Stmt stmt;
  std::vector<StorePtr> stores;
  for (const StorePtr& shape : shapes) stores.push_back(declareLike(*shape, "r", instances, stmt.results));
  stmt.node = std::move(hostIf);
  append(block_, std::move(stmt));
  return stores;
}

std::vector<StorePtr> Flattener::compileBranch(const core::ExpPtr& branch, ExprRef condition, bool owned,
                                               Context& context, Frame& frame) {
  lcu::Soac filter;
  filter.kind = SoacKind::Filter;
  filter.space = flat(context.space.extent);
  filter.pull = {arena().param(0)};
  filter.where = condition;
  std::vector<VarId> found = launch(std::move(filter), "active", block_, "active");
  ExprRef count = arena().nonNegative(arena().host(found[0], lcu::kIndex));

  auto compileIn = [&](Values& row) -> Context& {
    Context& inside = newContext(Context::Kind::Restrict, &context, flat(count), block_);
    inside.active = found[1];
    row = compile(branch, inside, frame);
    return inside;
  };
  if (analysis_.uncontained(branch) || analysis_.effects(branch)) return compileUnlessEmpty(count, compileIn);
  Values row;
  Context& inside = compileIn(row);
  for (Value& v : row)
    if (owned && !v.isScalar()) v = {copy(v.sequence(), inside)};
  std::vector<StorePtr> stores = storeRow(row, inside);
  flushPending(inside);
  return stores;
}

Values Flattener::compileIf(const core::Exp& e, const core::If& node, Context& context, Frame& frame) {
  ExprRef condition = atom(node.condition, context, frame).scalar();
  if (condition->kind == ExprKind::Constant)
    return compile(condition->constant.isTrue() ? node.thenBranch : node.elseBranch, context, frame);
  const bool thenDelayable = analysis_.delayable(node.thenBranch);
  const bool elseDelayable = analysis_.delayable(node.elseBranch);
  bool scalars = true;
  for (const CoreType& type : e.type) scalars &= type.isScalar();
  if (thenDelayable && elseDelayable && (scalars || !context.isRoot() || delayed_ > 0))
    return compileSelect(node, condition, context, frame);
  if (context.isRoot()) return compileHostIf(e, node, condition, context, frame);

  condition = cheap(condition) ? overInstances(condition, context) : stored(condition, context);
  ExprRef other = arena().op(ScalarOp::Not, condition);
  // Position among the instances that take the then-branch: an exclusive scan of the condition.
  lcu::Soac scan;
  scan.kind = SoacKind::Scan;
  scan.space = flat(context.space.extent);
  scan.pull = {arena().convert(condition, lcu::kIndex)};
  scan.combine.identity = {Scalar::ofInt(lcu::kIndex, 0)};
  scan.combine.result = {arena().add(arena().param(0), arena().param(1))};
  ExprRef rank = nullptr;
  if (!e.type.empty()) {
    VarId array = launch(std::move(scan), "rank", block_, "rank")[0];
    rank = arena().load(array, lcu::kIndex, arena().param(0));
  }
  // A delayed branch would keep what it reads alive as long as the other one recurses: the ends of a
  // recursion take copies of their own, and each level's sequences can go before the next level begins.
  const bool leaves = !scalars && (thenDelayable || elseDelayable) &&
                      (analysis_.uncontained(node.thenBranch) || analysis_.uncontained(node.elseBranch));
  auto side = [&](const core::ExpPtr& body, bool delayable, ExprRef taken, ExprRef position) {
    if (delayable && !leaves) {
      size_t mark = context.pending.size();
      ++delayed_;
      Values row = compile(body, context, frame);
      --delayed_;
      std::vector<ExprRef> owed(context.pending.begin() + static_cast<ptrdiff_t>(mark),
                                context.pending.end());
      context.pending.resize(mark);
      for (ExprRef x : owed)
        notePending(arena().select(taken, x, arena().constant(Scalar::zero(x->type))), context);
      return row;
    }
    Values row;
    for (const StorePtr& store : compileBranch(body, taken, delayable, context, frame))
      row.push_back(storeAt(*store, position, context));
    return row;
  };
  ExprRef otherRank = rank ? arena().sub(arena().param(0), rank) : nullptr;
  Values left, right;
  if (thenDelayable) left = side(node.thenBranch, true, condition, rank);
  right = side(node.elseBranch, elseDelayable, other, otherRank);
  if (!thenDelayable) left = side(node.thenBranch, false, condition, rank);
  return choose(condition, left, right);
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

  auto body = [&](Values& row) -> Context& {
    Entered entered = enterSpace(space, sequences, context);
    for (size_t k = 0; k < node.bindings.size(); ++k)
      bind(node.bindings[k].vars, entered.elements[k], *entered.context, frame);
    row = compile(node.body, *entered.context, frame);
    return *entered.context;
  };
  if (!analysis_.uncontained(node.body) && !analysis_.effects(node.body)) {
    Values row;
    Context& inside = body(row);
    std::vector<StorePtr> stores = storeRow(row, inside);
    flushPending(inside);
    return {{sequenceOver(space, length, types, stores, context)}};
  }
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
  for (Context* c = &context; c; c = c->parent) flushPending(*c);
  lcu::HostIf hostIf;
  hostIf.condition = arena().op(ScalarOp::Greater, context.space.extent, arena().index(0));
  hostIf.thenBlock = std::make_shared<lcu::Block>();
  hostIf.elseBlock = std::make_shared<lcu::Block>();
  lcu::Block* outer = std::exchange(block_, hostIf.thenBlock.get());
  Context& root = newContext(Context::Kind::Root, &rootOf(context), {}, block_);
  hostIf.thenBlock->results = canonical(compile(node.body, root, frame), root);
  flushPending(root);
  block_ = hostIf.elseBlock.get();
  hostIf.elseBlock->results = canonicalZero(e.type, true);
  block_ = outer;
  lcu::Stmt stmt;
  stmt.results = declare(e.type, root, "once");
  std::vector<VarId> vars = stmt.results;
  stmt.node = std::move(hostIf);
  append(block_, std::move(stmt));
  return fromCanonical(e.type, vars, root);  // host variables mean the same in every context
}

Values Flattener::compileConstant(const core::Constant& node) {
  std::vector<VarId> vars;
  lcu::Stmt stmt;
  lcu::ArrayConstant constant;
  std::function<void(const Column&)> add = [&](const Column& column) {
    Column array = column;
    if (column.type.isSequence()) {
      std::vector<std::byte> bytes(column.offsets->size() * sizeof(int64_t));
      std::copy_n(reinterpret_cast<const std::byte*>(column.offsets->data()), bytes.size(), bytes.begin());
      array = scalarColumn(lcu::kIndex, std::move(bytes));
    }
    vars.push_back(
        newVar(lcu::VarKind::Array, array.type.scalar(), "literal", arena().index(array.length())));
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
    result.push_back({fromColumns(column.type, arena().index(column.offsets->back()), vars, next)});
  return result;
}

}  // namespace kelpie::flatten
