// Conditionals.
//
// Worked example, in a context C of n instances (arrays a, k over C):
//   if k > 0 then sum({x*x : x in v}) else k
// The then-branch needs a kernel, the else-branch is delayable. The instances with k > 0 are filtered into
// `active`; the branch is compiled in Restrict(active) and stored (array r of the survivors); the result is
// the delayed  k[%i] > 0 ? r[rank[%i]] : k[%i],  rank being the exclusive scan of the condition.
//
// Where a branch recurses and the result must be stored at once (the end of a lifted function, of a branch,
// of the body of an apply-to-each), the host looks whether all instances took one branch, as they do on most
// levels of a balanced divide and conquer: what that branch stored is the result then, and nothing is merged.
#include <algorithm>

#include "flatten/flattener.h"
#include "flatten/saved.h"
#include "flatten/zero_lengths.h"
#include "ir/diagnostic.h"

namespace kelpie::flatten {

using lcu::ExprKind;
using lcu::SoacKind;

namespace {
/// Of choices that follow each other each can have twice the views of the one before; where kernels are
/// allowed these are stored now and then (`chosenAmongMany`), in a delayed branch they cannot be.
constexpr size_t kDelayedChoices = 4;
}  // namespace

Values Flattener::compileSelect(const core::If& node, ExprRef condition, Context& context, Frame& frame) {
  // Expressions a branch owes but does not use stay owed under its condition.
  auto branch = [&](const core::ExpPtr& body, Values& values, std::vector<ExprRef>& owed) {
    size_t mark = context.pending.size();
    const auto known = context.sameExtents;
    values = compile(body, context, frame);
    context.sameExtents = known;  // what a branch compares it compares for itself
    std::vector<ExprRef> roots;
    for (const Value& v : values)
      if (v.isScalar()) roots.push_back(v.scalar());
    owed = stillOwed(takeOwed(mark, context), roots);
    // But calls of a recursion are made before what looks at their results in places of its own: with each
    // place making them again, levels would double the work.
    const auto calls = std::stable_partition(owed.begin(), owed.end(), [](ExprRef e) {
      return !lcu::anyNode({e}, [](ExprRef x) { return x->kind == ExprKind::Call; });
    });
    const auto scalar =
        std::find_if(values.begin(), values.end(), [](const Value& v) { return v.isScalar(); });
    if (calls == owed.end() || scalar == values.end()) return;
    *scalar = {evaluatedBefore({calls, owed.end()}, scalar->scalar())};
    owed.erase(calls, owed.end());
  };
  ++delayed_;
  decided_.push_back(condition);
  Values left, right;
  std::vector<ExprRef> owedLeft, owedRight;
  branch(node.thenBranch, left, owedLeft);
  branch(node.elseBranch, right, owedRight);
  decided_.pop_back();
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
  lcu::HostIf hostIf;
  auto branch = [&](const core::ExpPtr& body, std::shared_ptr<lcu::Block>& block) {
    block = std::make_shared<lcu::Block>();
    Saved outer(block_);
    block_ = block.get();
    Context& root = newContext(Context::Kind::Root, &context, {}, block_);
    return leave(compile(body, root, frame), root);
  };
  hostIf.condition = condition;
  const auto firstInside = static_cast<VarId>(program_.vars.size());
  const Outgoing first = branch(node.thenBranch, hostIf.thenBlock);
  const Outgoing second = branch(node.elseBranch, hostIf.elseBlock);
  const Shapes shapes = settled(beyond(meet(first.shapes, second.shapes), firstInside), Shape::Kind::Regular);
  hostIf.thenBlock->results = cross(first, shapes);
  hostIf.elseBlock->results = cross(second, shapes);
  lcu::Stmt stmt;
  stmt.results = declare(e.type, shapes, "r");
  std::vector<VarId> results = stmt.results;
  stmt.node = std::move(hostIf);
  append(block_, std::move(stmt));
  return arrive(e.type, shapes, results);
}

/// Known to be at least one: a number of instances inside the block that a test of it guards.
bool Flattener::positive(ExprRef instances) const {
  if (instances->kind == ExprKind::Constant) return instances->constant.i > 0;
  if (instances->kind == ExprKind::Op && instances->op == ScalarOp::Mul)
    return positive(instances->operands[0]) && positive(instances->operands[1]);
  return std::find(positive_.begin(), positive_.end(), instances) != positive_.end();
}

/// Compiles for `instances` instances what `compileInside` stores; where there are none nothing runs at all,
/// which the host decides.
std::vector<StorePtr> Flattener::compileUnlessEmpty(ExprRef instances, const CompileStored& compileInside) {
  if (positive(instances)) return compileInside(Form::Stored);
  lcu::HostIf hostIf;
  hostIf.condition = arena().op(ScalarOp::Greater, instances, arena().index(0));
  hostIf.thenBlock = std::make_shared<lcu::Block>();
  hostIf.elseBlock = std::make_shared<lcu::Block>();
  lcu::Block* outer = std::exchange(block_, hostIf.thenBlock.get());
  positive_.push_back(instances);
  std::vector<StorePtr> shapes = compileInside(Form::Appended);
  positive_.pop_back();
  for (const StorePtr& store : shapes) crossing(store, hostIf.thenBlock->results);
  block_ = hostIf.elseBlock.get();
  for (const StorePtr& store : shapes) emptyLike(*store, hostIf.elseBlock->results);
  block_ = outer;
  lcu::Stmt stmt;
  std::vector<StorePtr> stores;
  for (const StorePtr& shape : shapes) stores.push_back(declareLike(*shape, "r", instances, stmt.results));
  stmt.node = std::move(hostIf);
  append(block_, std::move(stmt));
  return stores;
}

/// A branch, compiled for the instances that take it and stored, or delayed for all instances.
struct Flattener::Side {
  ExprRef count = nullptr;       ///< of the instances that take it; null: delayed
  std::vector<StorePtr> stores;  ///< of what they computed
  Values delayed;
};

struct Flattener::Sides {
  ExprRef condition;
  Side first, second;
};

Flattener::Side Flattener::compileBranch(const core::ExpPtr& branch, ExprRef condition, ExprRef positive,
                                         bool owned, Context& context, Frame& frame) {
  lcu::Soac filter;
  filter.kind = SoacKind::Filter;
  filter.space = flat(context.space.extent);
  filter.pull = {arena().param(0)};
  filter.where = condition;
  std::vector<VarId> found = launch(std::move(filter), "active", block_, "active");
  ExprRef count = arena().nonNegative(arena().host(found[0], lcu::kIndex));
  lcu::Block* around = block_;
  const auto firstInside = static_cast<VarId>(program_.vars.size());

  auto compileIn = [&](Form form) {
    Context& inside = newContext(Context::Kind::Restrict, &context, flat(count), block_);
    inside.active = found[1];
    inside.positive = positive;
    inside.around = around == block_ ? nullptr : around;
    inside.taken = condition;
    inside.firstInside = firstInside;
    notePlaces({}, inside);
    if (!owned) return compileStored(branch, inside, frame, form);
    Values row = compile(branch, inside, frame);
    for (Value& v : row)
      if (!v.isScalar()) v = {copy(v.sequence(), inside)};
    std::vector<StorePtr> stores = storeRow(row, inside, form);
    flushPending(inside);
    return stores;
  };
  const bool guarded = owned || analysis_.uncontained(branch) || analysis_.effects(branch);
  return {count, guarded ? compileUnlessEmpty(count, compileIn) : compileIn(Form::Stored), {}};
}

/// `atOnce`: elements of sequences that the branch reads are read now, so that the sequences can go.
Flattener::Side Flattener::compileDelayed(const core::ExpPtr& branch, ExprRef condition, bool taken,
                                          bool atOnce, Context& context, Frame& frame) {
  Side side;
  size_t mark = context.pending.size();
  ++delayed_;
  decided_.push_back(condition);
  side.delayed = compile(branch, context, frame);
  const std::vector<ExprRef> owed = stillOwed(takeOwed(mark, context), {});
  decided_.pop_back();
  --delayed_;
  for (ExprRef e : owed) {
    ExprRef none = arena().constant(Scalar::zero(e->type));
    notePending(taken ? arena().select(condition, e, none) : arena().select(condition, none, e), context);
  }
  const auto readsElement = [](ExprRef e) {
    return e->kind == ExprKind::Load &&
           !(e->operands[0]->kind == ExprKind::Param && e->operands[0]->index == 0);
  };
  for (Value& v : side.delayed) {
    if (!atOnce || !v.isScalar() || !lcu::anyNode({v.scalar()}, readsElement)) continue;
    const ExprRef none = arena().constant(Scalar::zero(v.scalar()->type));
    v = {stored(
        taken ? arena().select(condition, v.scalar(), none) : arena().select(condition, none, v.scalar()),
        context)};
  }
  return side;
}

/// Both branches for the instances of a context that is no root. One of them needs kernels, or the result is
/// to be stored.
Flattener::Sides Flattener::compileSides(const core::Exp& e, const core::If& node, ExprRef condition,
                                         Context& context, Frame& frame) {
  Sides sides;
  sides.condition = cheap(condition) ? overInstances(condition, context) : stored(condition, context);
  ExprRef other = arena().op(ScalarOp::Not, sides.condition);
  const bool thenDelayable = delayable(node.thenBranch);
  const bool elseDelayable = delayable(node.elseBranch);
  bool scalars = true;
  for (const CoreType& type : e.type) scalars &= type.isScalar();
  // A delayed branch would keep what it reads alive as long as the other one recurses: the ends of a
  // recursion take copies of their own, and each level's sequences can go before the next level begins.
  const bool recursive = recurses(node);
  // Where one of them has effects, what fails in the other one does so before or after these.
  const bool ordered = analysis_.effects(node.thenBranch) || analysis_.effects(node.elseBranch);
  const bool leaves = ordered || (!scalars && (thenDelayable || elseDelayable) && recursive);
  auto first = [&] {
    sides.first = thenDelayable && !leaves
                      ? compileDelayed(node.thenBranch, sides.condition, true, recursive, context, frame)
                      : compileBranch(node.thenBranch, sides.condition, lengthOfOthersZero(condition, true),
                                      thenDelayable, context, frame);
  };
  auto second = [&] {
    sides.second = elseDelayable && !leaves
                       ? compileDelayed(node.elseBranch, sides.condition, false, recursive, context, frame)
                       : compileBranch(node.elseBranch, other, lengthOfOthersZero(condition, false),
                                       elseDelayable, context, frame);
  };
  if (thenDelayable || !elseDelayable || ordered) {
    first();
    second();
  } else {
    second();
    first();
  }
  return sides;
}

/// A branch that takes no kernel and does not make many views, as choices that follow each other do.
bool Flattener::delayable(const core::ExpPtr& branch) const {
  return analysis_.delayable(branch) && (delayed_ > 0 || analysis_.choices(branch) <= kDelayedChoices);
}

bool Flattener::recurses(const core::If& node) const {
  return analysis_.uncontained(node.thenBranch) || analysis_.uncontained(node.elseBranch);
}

/// The result for every instance, from what its side has stored at its rank.
Values Flattener::merge(const Sides& sides, Context& context) {
  if (sides.first.stores.empty() && sides.first.delayed.empty()) return {};
  // Position among the instances that take the then-branch: an exclusive scan of the condition.
  lcu::Soac scan;
  scan.kind = SoacKind::Scan;
  scan.space = flat(context.space.extent);
  scan.pull = {arena().convert(sides.condition, lcu::kIndex)};
  scan.combine.identity = {Scalar::ofInt(lcu::kIndex, 0)};
  scan.combine.result = {arena().add(arena().param(0), arena().param(1))};
  ExprRef rank =
      arena().load(launch(std::move(scan), "rank", block_, "rank")[0], lcu::kIndex, arena().param(0));
  auto row = [&](const Side& side, ExprRef position) {
    Values values = side.delayed;
    for (const StorePtr& store : side.stores) values.push_back(storeAt(*store, position, context));
    return values;
  };
  return choose(sides.condition, row(sides.first, rank),
                row(sides.second, arena().sub(arena().param(0), rank)));
}

/// What all instances computed, in one of three ways that the host chooses from: one side's stores as they
/// are, the other's, or both merged.
std::vector<StorePtr> Flattener::storeSides(const Sides& sides, const Row& types, Context& context) {
  flushPending(context);
  if (types.empty()) return {};
  // Blocks only one of which runs.
  auto inside = [&](const std::function<void(std::vector<VarId>&)>& fill) { return inBlock(context, fill); };
  std::shared_ptr<lcu::Block> block = inside([&](std::vector<VarId>& out) {
    for (const StorePtr& store : storeRow(merge(sides, context), context, Form::Dense)) crossing(store, out);
  });
  for (const Side* side : {&sides.first, &sides.second}) {
    if (!side->count) continue;
    lcu::HostIf hostIf;
    hostIf.condition = arena().op(ScalarOp::Equal, side->count, context.space.extent);
    hostIf.thenBlock = inside([&](std::vector<VarId>& out) {
      for (const StorePtr& store : side->stores) {
        if (dense(*store)) {
          crossing(store, out);
          continue;
        }
        const Value all = storeAt(*store, arena().param(0), context);
        crossing(storeRow({all}, context, Form::Dense)[0], out);
      }
    });
    hostIf.elseBlock = std::move(block);
    lcu::Stmt stmt;
    for (const CoreType& type : types) declareDense(type, "r", context.space.extent, stmt.results);
    stmt.node = std::move(hostIf);
    block = std::make_shared<lcu::Block>();
    block->results = stmt.results;
    append(block.get(), std::move(stmt));
  }
  // The outermost choice is the only statement of the last block.
  std::vector<VarId> vars = block->results;
  for (lcu::Stmt& stmt : block->stmts) append(block_, std::move(stmt));
  std::vector<StorePtr> stores;
  size_t next = 0;
  for (const CoreType& type : types) stores.push_back(denseFrom(type, vars, next, context.space.extent));
  return stores;
}

std::vector<StorePtr> Flattener::compileStored(core::ExpPtr e, Context& context, Frame& frame, Form form) {
  const Span outer = span_;
  e = compileLets(e, context, frame);
  std::vector<StorePtr> stores;
  auto* node = std::get_if<core::If>(&e->node);
  ExprRef condition = node ? atom(node->condition, context, frame).scalar() : nullptr;
  const bool chooses = node && recurses(*node) && condition->kind != ExprKind::Constant;
  if (chooses && decidedByHost(condition, context)) {
    stores = storeDecided(*e, *node, condition, context, frame);
  } else if (chooses) {
    stores = storeSides(compileSides(*e, *node, condition, context, frame), e->type, context);
  } else {
    stores = storeRow(compile(e, context, frame), context, form);
  }
  flushPending(context);
  span_ = outer;
  return stores;
}

Values Flattener::compileIf(const core::Exp& e, const core::If& node, Context& context, Frame& frame) {
  ExprRef condition = atom(node.condition, context, frame).scalar();
  if (condition->kind == ExprKind::Constant)
    return compile(condition->constant.isTrue() ? node.thenBranch : node.elseBranch, context, frame);
  bool scalars = true;
  for (const CoreType& type : e.type) scalars &= type.isScalar();
  if (delayable(node.thenBranch) && delayable(node.elseBranch) &&
      (scalars || !context.isRoot() || delayed_ > 0))
    return compileSelect(node, condition, context, frame);
  if (context.isRoot()) return compileHostIf(e, node, condition, context, frame);
  if (recurses(node) ? decidedByHost(condition, context) : hostKnown(condition)) {
    Values values;
    for (const StorePtr& store : storeDecided(e, node, condition, context, frame))
      values.push_back(storeAt(*store, arena().param(0), context));
    return values;
  }
  return merge(compileSides(e, node, condition, context, frame), context);
}

}  // namespace kelpie::flatten
