// Emission of host statements, kernels of one SOAC, checks and error sites.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <unordered_set>

#include "flatten/flattener.h"
#include "ir/diagnostic.h"

namespace kelpie::flatten {

using lcu::ExprKind;
using lcu::SoacKind;
using lcu::VarKind;

VarId Flattener::newVar(VarKind kind, ScalarType type, const std::string& name, ExprRef extent) {
  VarId var = program_.newVar({name, kind, type, extent});
  if (kind == VarKind::Array && !extent) program_.vars[var].extent = arena().size(var);
  return var;
}

void Flattener::append(lcu::Block* block, lcu::Stmt stmt) {
  if (!stmt.span.known()) stmt.span = userSpan(span_);
  block->stmts.push_back(std::move(stmt));
}

Space Flattener::flat(ExprRef extent) const {
  Space space;
  space.extent = extent;
  return space;
}

std::string Flattener::nameOf(ExprRef e, const std::string& otherwise) const {
  auto found = names_.find(e);
  return found == names_.end() || found->second.empty() ? otherwise : found->second;
}

std::vector<VarId> Flattener::launch(lcu::Soac soac, const char* kind, lcu::Block* block,
                                     const std::string& name) {
  const Space& space = soac.space;
  auto array = [&](ExprRef e, ExprRef extent) {
    return newVar(VarKind::Array, e->type, nameOf(e, name), extent);
  };
  std::vector<VarId> results;
  switch (soac.kind) {
    case SoacKind::Map:
      for (ExprRef e : soac.pull) results.push_back(array(e, space.extent));
      break;
    case SoacKind::Permute:
      for (ExprRef e : soac.pull) results.push_back(array(e, soac.target));
      break;
    case SoacKind::Reduce:
      for (ExprRef e : soac.pull)
        results.push_back(space.segmented() ? newVar(VarKind::Array, e->type, name, space.segments)
                                            : newVar(VarKind::Cell, e->type, name));
      break;
    case SoacKind::Scan:
      for (ExprRef e : soac.pull)
        results.push_back(
            newVar(VarKind::Array, e->type, name,
                   soac.withTotal ? arena().add(space.extent, arena().index(1)) : space.extent));
      break;
    case SoacKind::Filter: {
      ExprRef survivors;
      if (space.segmented()) {
        VarId offsets = newVar(VarKind::Array, lcu::kIndex, name + "_offsets",
                               arena().add(space.segments, arena().index(1)));
        results.push_back(offsets);
        survivors = arena().load(offsets, lcu::kIndex, space.segments);
      } else {
        results.push_back(newVar(VarKind::Cell, lcu::kIndex, name + "_count"));
        survivors = arena().host(results[0], lcu::kIndex);
      }
      for (ExprRef e : soac.pull) results.push_back(array(e, survivors));
      break;
    }
    case SoacKind::Once:
      for (ExprRef e : soac.pull) results.push_back(newVar(VarKind::Cell, e->type, nameOf(e, name)));
      break;
    case SoacKind::Partition:
      throw InternalError("the flattener does not use PARTITION");
  }
  soac.results = results;
  soac.span = userSpan(span_);
  soac.origin = origin_;
  lcu::Kernel kernel;
  kernel.name = fmt::format("{}_{}_{}", origin_, kind, ++kernels_);
  kernel.returns = results;
  kernel.bindings.push_back(std::move(soac));
  lcu::Stmt stmt;
  stmt.results = results;
  stmt.node = lcu::Launch{std::move(kernel)};
  append(block, std::move(stmt));
  return results;
}

VarId Flattener::map(const Space& space, ExprRef pull, lcu::Block* block, const std::string& name) {
  lcu::Soac soac;
  soac.space = space;
  soac.pull = {pull};
  return launch(std::move(soac), "map", block, name)[0];
}

VarId Flattener::hostLet(ExprRef e, lcu::Block* block, const std::string& name) {
  VarId var = newVar(VarKind::Host, e->type, nameOf(e, name));
  lcu::Stmt stmt;
  stmt.results = {var};
  stmt.node = lcu::HostLet{{e}};
  append(block, std::move(stmt));
  return var;
}

std::vector<VarId> Flattener::service(const std::string& name, std::vector<CoreType> argumentTypes,
                                      std::vector<VarId> arguments, std::vector<CoreType> resultTypes,
                                      lcu::Block* block) {
  // The dense columns of one instance of each result: see lcu::Service.
  std::vector<VarId> results;
  std::function<void(const CoreType&)> column = [&](const CoreType& type) {
    if (type.isScalar()) {
      results.push_back(newVar(VarKind::Array, type.scalar(), name));
      return;
    }
    results.push_back(newVar(VarKind::Array, lcu::kIndex, name + "_offsets"));
    for (const CoreType& element : type.elements()) column(element);
  };
  for (const CoreType& type : resultTypes) {
    if (type.isScalar()) {
      results.push_back(newVar(VarKind::Host, type.scalar(), name));
      continue;
    }
    results.push_back(newVar(VarKind::Host, lcu::kIndex, name + "_length"));
    for (const CoreType& element : type.elements()) column(element);
  }
  lcu::Service node;
  node.name = name;
  node.argumentTypes = std::move(argumentTypes);
  node.arguments = std::move(arguments);
  node.resultTypes = std::move(resultTypes);
  node.site = site(userSpan(span_), name);
  lcu::Stmt stmt;
  stmt.results = results;
  stmt.node = std::move(node);
  append(block, std::move(stmt));
  return results;
}

lcu::SiteId Flattener::site(Span span, const std::string& message) {
  auto key = std::make_tuple(span.file, span.begin, span.end, message);
  auto found = sites_.find(key);
  if (found != sites_.end()) return found->second;
  return sites_[key] = program_.newSite({span, message});
}

ExprRef Flattener::asBool(ExprRef e) {
  if (e->type == ScalarType::Bool) return e;
  return arena().op(ScalarOp::NotEqual, e, arena().constant(Scalar::zero(e->type)));
}

ExprRef Flattener::evaluatedBefore(const std::vector<ExprRef>& owed, ExprRef value) {
  std::unordered_set<ExprRef> made;  // calls, whose results come together
  for (size_t k = owed.size(); k-- > 0;) {
    const bool ofCall =
        owed[k]->kind == lcu::ExprKind::Project && owed[k]->operands[0]->kind == lcu::ExprKind::Call;
    if (ofCall && !made.insert(owed[k]->operands[0]).second) continue;
    const ExprRef never = arena().op(ScalarOp::And, asBool(owed[k]), arena().boolean(false));
    value = arena().select(never, value, value);
  }
  return value;
}

/// Whether the host has checked it already, for all that `context` is in, or places are where they are.
bool Flattener::holds(ExprRef condition, const Context& context) const {
  if (condition->kind == ExprKind::Op && condition->op == ScalarOp::And)
    return holds(condition->operands[0], context) && holds(condition->operands[1], context);
  if (holdsOfPlaces(condition, context)) return true;
  for (const Context* c = &context; c; c = c->parent)
    if (c->holds.contains(condition)) return true;
  return false;
}

namespace {
/// A sum of an expression, or nothing, and a constant.
struct Sum {
  ExprRef base = nullptr;
  int64_t added = 0;
  explicit Sum(ExprRef e) : base(e) {
    if (const auto constant = lcu::asIndex(e)) {
      base = nullptr;
      added = *constant;
    } else if (e->kind == ExprKind::Op && e->op == ScalarOp::Add && lcu::asIndex(e->operands[1])) {
      base = e->operands[0];
      added = *lcu::asIndex(e->operands[1]);
    }
  }
  /// Far from where sums with what is below a length overflow.
  bool isNear() const {
    constexpr int64_t kFar = int64_t{1} << 60;
    return -kFar < added && added < kFar;
  }
};
}  // namespace

/// place + a < bound + b or place + a >= c.
bool Flattener::holdsOfPlaces(ExprRef condition, const Context& context) {
  if (condition->kind != ExprKind::Op || condition->operands.size() != 2) return false;
  if (condition->operands[0]->type != lcu::kIndex) return false;
  const Sum left(condition->operands[0]), right(condition->operands[1]);
  const auto known = context.places.find(left.base);
  if (known == context.places.end() || !left.isNear() || !right.isNear()) return false;
  if (condition->op == ScalarOp::GreaterEqual) return !right.base && left.added >= right.added;
  return condition->op == ScalarOp::Less &&
         std::any_of(known->second.begin(), known->second.end(), [&](ExprRef bound) {
           const Sum most(bound);
           return most.base == right.base && most.isNear() && left.added + most.added <= right.added;
         });
}

namespace {

void addLeaves(ExprRef condition, std::vector<ExprRef>& leaves) {
  if (condition->kind == ExprKind::Op && condition->op == ScalarOp::And)
    for (ExprRef operand : condition->operands) addLeaves(operand, leaves);
  else
    leaves.push_back(condition);
}

/// Whether every place of every space around has instances in this context, if there are any: none is
/// restricted to some, and no segment is shorter than others.
bool hasAllPlaces(const Context& context) {
  for (const Context* c = &context; !c->isRoot(); c = c->parent)
    if (c->kind != Context::Kind::Each || c->space.kind == lcu::SpaceKind::Offsets) return false;
  return true;
}

}  // namespace

/// `e` as the sum of numbers of instances, different ones, and of what is the same for all.
struct Flattener::PlaceSum {
  std::vector<ExprRef> lengths;  ///< what the numbers are below
  ExprRef first;                 ///< the sum where all of them are 0
};

std::optional<Flattener::PlaceSum> Flattener::placeSumOf(ExprRef e, const Context& context) {
  if (e->type != lcu::kIndex) return std::nullopt;
  PlaceSum sum{{}, arena().index(0)};
  std::set<ExprRef> seen;
  const std::function<bool(ExprRef)> add = [&](ExprRef term) {
    if (hostKnown(term)) {
      sum.first = arena().add(sum.first, term);
      return true;
    }
    if (const auto known = context.places.find(term); known != context.places.end()) {
      const auto most = std::find_if(known->second.begin(), known->second.end(),
                                     [&](ExprRef bound) { return hostKnown(bound); });
      if (most == known->second.end() || !seen.insert(term).second) return false;
      sum.lengths.push_back(*most);
      return true;
    }
    if (term->kind != ExprKind::Op || term->type != lcu::kIndex) return false;
    if (term->op == ScalarOp::Add) return add(term->operands[0]) && add(term->operands[1]);
    if (term->op != ScalarOp::Sub || !hostKnown(term->operands[1])) return false;
    if (!add(term->operands[0])) return false;
    sum.first = arena().sub(sum.first, term->operands[1]);
    return true;
  };
  if (!add(e) || sum.lengths.empty()) return std::nullopt;
  return sum;
}

/// Whether no instance is in a context all of whose places have instances, or none has. A product of their
/// numbers might overflow.
ExprRef Flattener::hasNoInstances(const Context& context) {
  const bool regular = context.space.kind == lcu::SpaceKind::Regular;
  ExprRef none = arena().op(ScalarOp::LessEqual, regular ? context.space.length : context.space.extent,
                            arena().index(0));
  return regular ? arena().op(ScalarOp::Or, hasNoInstances(*context.parent), none) : none;
}

/// Whether 0 <= sum < q, for all numbers of instances, is up to what the host knows: then it checks that,
/// here and now. The first instance for which it is not so is told, as instances would tell.
bool Flattener::checkedOfPlaces(ExprRef condition, Span span, const std::string& message, ExprRef q,
                                Context& context) {
  if (delayed_ > 0 || context.isRoot() || block_ != context.block || !hostKnown(context.space.extent) ||
      !hostKnown(q) || q->type != lcu::kIndex || !hasAllPlaces(context))
    return false;
  std::vector<ExprRef> leaves;
  addLeaves(condition, leaves);
  const auto compares = [&](ExprRef leaf, ScalarOp op) {
    return leaf->kind == ExprKind::Op && leaf->op == op && leaf->operands[0] == leaves.back()->operands[0];
  };
  ExprRef less = leaves.back();
  if (!compares(less, ScalarOp::Less) || less->operands[1] != q) return false;
  ExprRef position = less->operands[0];
  const bool mayBeNegative = !position->nonNegative;  // else nobody asks
  if (leaves.size() != (mayBeNegative ? 2u : 1u)) return false;
  if (mayBeNegative &&
      (!compares(leaves[0], ScalarOp::GreaterEqual) || lcu::asIndex(leaves[0]->operands[1]) != 0))
    return false;
  const auto sum = placeSumOf(position, context);
  if (!sum) return false;
  struct Fact {
    ExprRef holds, first;
  };
  std::vector<Fact> facts;
  if (mayBeNegative && !holds(leaves[0], context))
    facts.push_back({arena().op(ScalarOp::GreaterEqual, sum->first, arena().index(0)), sum->first});
  if (!holds(less, context)) {
    // Numbers go on one by one: the first sum that is too large is q, or the first of all. Differences of
    // what is not below 0 do not overflow.
    ExprRef good = arena().op(ScalarOp::Less, sum->first, q), room = arena().sub(q, sum->first);
    for (ExprRef length : sum->lengths) {
      ExprRef last = arena().sub(length, arena().index(1));
      good = arena().op(ScalarOp::And, good, arena().op(ScalarOp::Less, last, room));
      room = arena().sub(room, last);
    }
    facts.push_back({good, arena().op(ScalarOp::Max, sum->first, q)});
  }
  ExprRef none = hasNoInstances(context);
  for (const Fact& fact : facts) {
    if (holds(fact.holds, context)) continue;
    ExprRef checked = arena().check(arena().op(ScalarOp::Or, fact.holds, none), arena().boolean(true),
                                    Scalar::ofBool(true), site(userSpan(span), message), fact.first, q);
    if (checked->canFail) hostLet(checked, block_, "checked");
    learn(fact.holds, context);
  }
  return true;
}

/// The places of a context around, and where an element is of those that `context` has entered.
void Flattener::notePlaces(const std::vector<const Sequence*>& sequences, Context& context) {
  Context& parent = *context.parent;
  if (!parent.isRoot()) {
    for (const auto& [place, bounds] : parent.places)
      if (ExprRef here = translateFreely(place, parent, context)) context.places[here] = bounds;
  }
  if (context.kind == Context::Kind::Restrict) return;
  std::vector<ExprRef>& own = context.places[arena().param(parent.isRoot() ? 0 : 2)];
  for (const Sequence* v : sequences)
    if (!v->length->usesParam && !v->length->canFail) own.push_back(v->length);
}

void Flattener::learn(ExprRef condition, Context& context) {
  if (condition->kind == ExprKind::Op && condition->op == ScalarOp::And) {
    learn(condition->operands[0], context);
    learn(condition->operands[1], context);
  } else {
    context.holds.insert(condition);
  }
}

ExprRef Flattener::check(ExprRef condition, ExprRef value, Scalar fallback, Span span,
                         const std::string& message, ExprRef p, ExprRef q, Context& context) {
  ExprRef checked = arena().check(condition, value, fallback, site(userSpan(span), message), p, q);
  if (holds(condition, context) && !p->canFail && !q->canFail) return value;
  if (!value->canFail && !p->canFail && !q->canFail && checkedOfPlaces(condition, span, message, q, context))
    return value;
  if (delayed_ > 0 || readsDevice(checked) || !checked->canFail) return checked;
  // Host-known: raise here and now, so that lengths stay symbolic and kernels need no check.
  if (!context.isRoot()) {
    // The same for all instances, so it must hold if there is any.
    ExprRef instances = context.space.extent;
    const bool plain = !condition->canFail && !value->canFail && !p->canFail && !q->canFail;
    if (checked->usesParam || !plain || readsDevice(instances) || block_ != context.block) return checked;
    ExprRef none = hasAllPlaces(context) ? hasNoInstances(context)
                                         : arena().op(ScalarOp::LessEqual, instances, arena().index(0));
    checked = arena().check(arena().op(ScalarOp::Or, condition, none), value, fallback,
                            site(userSpan(span), message), p, q);
    if (!checked->canFail) return value;
  }
  hostLet(checked, block_, "checked");
  if (block_ == context.block && hostKnown(condition)) learn(condition, context);
  return value;
}

void Flattener::notePending(ExprRef e, Context& context) {
  if (e->canFail) context.pending.push_back(e);
}

void Flattener::dropEvaluated(std::vector<ExprRef>& pending, const std::vector<ExprRef>& roots) const {
  if (pending.empty()) return;
  lcu::Evaluated evaluated;
  for (ExprRef root : roots) evaluated.add(root);
  std::erase_if(pending, [&](ExprRef e) { return evaluated.contains(e); });
}

std::vector<ExprRef> Flattener::takeOwed(size_t mark, Context& context) {
  std::vector<ExprRef> owed(context.pending.begin() + static_cast<ptrdiff_t>(mark), context.pending.end());
  context.pending.resize(mark);
  return owed;
}

std::vector<ExprRef> Flattener::stillOwed(const std::vector<ExprRef>& owed,
                                          std::vector<ExprRef> roots) const {
  roots.insert(roots.end(), decided_.begin(), decided_.end());
  return lcu::failuresIn(owed, roots);
}

void Flattener::flushAll(Context& context) {
  for (Context* c = &context; c; c = c->parent) flushPending(*c);
}

void Flattener::flushPending(Context& context) {
  if (context.pending.empty() || delayed_ > 0) return;
  std::vector<ExprRef> pending = std::move(context.pending);
  context.pending.clear();
  std::vector<ExprRef> done;
  std::erase_if(pending, [&](ExprRef e) {
    if (!context.stored.contains(e)) return false;
    done.push_back(e);
    return true;
  });
  if (context.isRoot()) {         // values themselves, as others may use them
    std::vector<ExprRef> values;  // the last one first, as a later one often has earlier ones inside
    for (size_t k = pending.size(); k-- > 0;) {
      std::vector<ExprRef> one = {pending[k]};
      dropEvaluated(one, values);
      values.insert(values.end(), one.begin(), one.end());
    }
    for (size_t k = values.size(); k-- > 0;) stored(values[k], context);
    return;
  }
  std::vector<ExprRef> kept = lcu::failuresIn(pending, done);
  if (kept.empty()) return;
  lcu::Soac soac;
  soac.space = context.space;
  soac.effects = std::move(kept);
  launch(std::move(soac), "check", context.block);
}

}  // namespace kelpie::flatten
