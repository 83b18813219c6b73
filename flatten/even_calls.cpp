// Recursion over sequences of one length.
//
//   function merged(a) = if #a == 1 then a else ... flatten({merged(v) : v in [low, high]})
//
// Lifted, such a function takes the lengths of all its arguments as an array: each level filters the
// instances that take either branch, adds up lengths, waits for both, and searches for the segments that
// elements belong to. Where all instances have sequences of one length, as on every level of a balanced
// divide and conquer, the host knows as much: conditions are its own, spaces are regular, and a level takes
// the kernels that do its work.
//
// An *even* instance of a function is lifted, but its sequences have one length, which is a host scalar, and
// lie one after the other. A function has one if its recursive calls are even again. Results are even where
// the function says so, which is assumed first; otherwise they are dense, as those of other lifted functions.
// A caller whose lengths only the device knows looks whether they are all the same: once, not in every level.
#include <algorithm>
#include <limits>

#include "flatten/flattener.h"
#include "flatten/host_part.h"
#include "flatten/saved.h"
#include "ir/diagnostic.h"

namespace kelpie::flatten {

using lcu::ExprKind;
using lcu::SpaceKind;
using lcu::VarKind;

/// Computed by the host, without errors, the same for all instances.
bool Flattener::hostKnown(ExprRef e) const {
  return !e->usesParam && !e->canFail && !readsDevice(e) &&
         !lcu::anyNode({e}, [](ExprRef n) { return lcu::isUnbounded(n); });
}

namespace {

bool sequencesAre(const Values& row, const std::function<bool(const Sequence&)>& good) {
  return std::all_of(row.begin(), row.end(),
                     [&](const Value& v) { return v.isScalar() || good(v.sequence()); });
}

}  // namespace

// ---- instances --------------------------------------------------------------------------------------------

const Flattener::Even* Flattener::evenInstance(core::FunctionId f) {
  if (const auto found = even_.find(f); found != even_.end())
    return found->second ? &*found->second : nullptr;
  const core::Function& function = core_.functions[f];
  const bool sequences = std::any_of(function.parameters.begin(), function.parameters.end(),
                                     [](const core::Var& p) { return p.type.isSequence(); });
  even_[f] = std::nullopt;
  if (!sequences || !analysis_.recursive(f) || analysis_.effects(function.body)) return nullptr;
  if (compileEven(f, true) || (even_[f] && compileEven(f, false))) return &*even_[f];
  return nullptr;
}

/// Sequences that all calls hand on as they are would be copied for each instance of each level. They stay
/// where they are: an instance has the place at which its own begins.
bool Flattener::isShared(core::FunctionId f, size_t parameter) const {
  return core_.functions[f].parameters[parameter].type.isSequence() && analysis_.passedOn(f, parameter);
}

/// Compiles the even instance of `f`, whose results are even or not. False: it calls itself with other
/// sequences (then there is none), or its results are not what was assumed (then even_ still has it).
bool Flattener::compileEven(core::FunctionId f, bool evenResults) {
  const core::Function& function = core_.functions[f];
  const auto index = static_cast<uint32_t>(program_.functions.size());
  const Mark before = mark();
  program_.functions.emplace_back();
  even_[f] = Even{index, evenResults, std::nullopt, false};
  evens_.push_back({f, true, {}});

  lcu::HostFunction result;
  result.name = function.name + "_even";
  bool asAssumed = true;
  {
    Saved block(block_);
    Saved delayed(delayed_);
    Saved decided(decided_);
    Saved positive(positive_);
    lcu::Block body;
    block_ = &body;
    delayed_ = 0;
    decided_.clear();
    Context& root = newContext(Context::Kind::Root, nullptr, {}, block_);
    result.params.push_back(newVar(VarKind::Host, lcu::kIndex, "n"));
    ExprRef instances = arena().nonNegative(arena().host(result.params[0], lcu::kIndex));
    positive_.push_back(instances);  // nobody calls it for none
    Context& context = newContext(Context::Kind::Lifted, &root, flat(instances), block_);
    Frame frame;
    for (size_t k = 0; k < function.parameters.size(); ++k) {
      const core::Var& parameter = function.parameters[k];
      std::vector<VarId> vars;
      size_t next = 0;
      Value value;
      if (isShared(f, k)) {
        vars = {newVar(VarKind::Host, lcu::kIndex, parameter.name + "_each")};
        declareStore(parameter.type, parameter.name, instances, vars);
        value = storeAt(*storeFrom(parameter.type, vars, ++next), arena().param(0), context);
        std::get<Sequence>(value.node).length = arena().nonNegative(arena().host(vars[0], lcu::kIndex));
      } else {
        declareDense(parameter.type, parameter.name, instances, vars, SpaceKind::Regular);
        value = storeAt(*denseFrom(parameter.type, vars, next, instances, SpaceKind::Regular),
                        arena().param(0), context);
      }
      frame[parameter.id] = {&context, value};
      result.params.insert(result.params.end(), vars.begin(), vars.end());
    }
    for (const StorePtr& store : compileStored(function.body, context, frame, Form::Dense)) {
      if (!evenResults) {
        crossing(store, body.results);
      } else if (store->type.isScalar() || store->regular()) {
        crossing(store, body.results, SpaceKind::Regular);
      } else {
        asAssumed = false;
      }
    }
    result.body = std::move(body);
  }
  Attempt attempt = std::move(evens_.back());
  evens_.pop_back();
  even_[f]->conditional = !attempt.conditions.empty();
  if (attempt.evenCalls && asAssumed && even_[f]->conditional)
    attempt.evenCalls = makeHostPart(f, result, attempt.conditions);
  if (attempt.evenCalls && asAssumed) {
    program_.functions[index] = std::move(result);
    return true;
  }
  goBack(before, f);  // what was compiled on the way may call it
  if (!attempt.evenCalls) even_[f] = std::nullopt;
  return false;
}

void Flattener::goBack(const Mark& mark, std::optional<core::FunctionId> kept) {
  inlined_ = mark.inlined;
  kernels_ = mark.kernels;
  program_.functions.resize(mark.functions);
  std::erase_if(instances_, [&](const auto& entry) { return entry.second >= mark.functions; });
  std::erase_if(even_, [&](const auto& entry) {
    return entry.first != kept && entry.second && entry.second->function >= mark.functions;
  });
  for (auto& [function, even] : even_)
    if (even && even->hostPart && *even->hostPart >= mark.functions) even->hostPart.reset();
}

/// Gives an even instance a host part. False: it can have none.
bool Flattener::makeHostPart(core::FunctionId f, const lcu::HostFunction& function,
                             const std::unordered_map<VarId, ExprRef>& conditions) {
  const auto evenOf = [&](uint32_t callee) {
    return std::find_if(even_.begin(), even_.end(),
                        [&](const auto& entry) { return entry.second && entry.second->function == callee; });
  };
  const auto index = static_cast<uint32_t>(program_.functions.size());
  program_.functions.emplace_back();
  even_[f]->hostPart = index;
  EvenCalls calls;
  calls.conditions = conditions;
  calls.callee = [&](uint32_t callee) {
    const auto even = evenOf(callee);
    if (even == even_.end()) return EvenCalls::Callee::Other;
    const bool unfinished = std::any_of(evens_.begin(), evens_.end(),
                                        [&](const Attempt& other) { return other.function == even->first; });
    return unfinished ? EvenCalls::Callee::Unfinished : EvenCalls::Callee::Even;
  };
  calls.hostPart = [&](uint32_t callee) {
    const auto even = evenOf(callee);
    if (!even->second->hostPart && even->second->results) {
      const lcu::HostFunction copy = program_.functions[callee];
      if (!makeHostPart(even->first, copy, {})) even->second->hostPart.reset();
    }
    return even->second->hostPart;
  };
  std::optional<lcu::HostFunction> part = hostPart(program_, function, calls);
  if (!part) return false;
  program_.functions[index] = std::move(*part);
  return true;
}

// ---- calls ------------------------------------------------------------------------------------------------

/// A call for the instances of a context that is no root, by the even instance if there is one; none: there
/// is not.
std::optional<Values> Flattener::callEvenly(core::FunctionId f, const Values& arguments, Context& context) {
  const bool known =
      sequencesAre(arguments, [&](const Sequence& v) { return !hostAlternatives(v.length).empty(); });
  const bool guarded = positive(context.space.extent);
  const auto own = std::find_if(evens_.begin(), evens_.end(),
                                [&](const Attempt& attempt) { return attempt.function == f; });
  if (own != evens_.end()) {
    own->evenCalls &= known && guarded;
    if (!own->evenCalls) return std::nullopt;
    Values same = arguments;
    ExprRef condition = sameLengths(same);
    if (condition->kind != ExprKind::Constant)
      for (Value& v : same)
        if (!v.isScalar())
          condition = arena().op(ScalarOp::And, condition, sideBySide(std::get<Sequence>(v.node), context));
    // Another function's instance, in which this one is called back, has no host part that would look.
    const bool looks = condition->kind != ExprKind::Constant;
    const bool never = !looks && !condition->constant.isTrue();
    if (never || (looks && std::next(own) != evens_.end())) {
      own->evenCalls = false;
      return std::nullopt;
    }
    const lcu::Block* block = block_;
    const size_t before = block->stmts.size();
    Values values = callEven(f, *even_[f], same, context);
    if (looks)
      for (size_t k = before; k < block->stmts.size(); ++k)
        if (const auto* call = std::get_if<lcu::CallFunction>(&block->stmts[k].node))
          own->conditions[call->arguments[0]] = condition;
    return values;
  }
  const bool inside = std::find(lifted_.begin(), lifted_.end(), f) != lifted_.end();
  if (!guarded || (!known && inside)) return std::nullopt;
  const Even* even = evenInstance(f);
  if (!even) return std::nullopt;
  const bool same = sequencesAre(arguments, [&](const Sequence& v) { return hostKnown(v.length); });
  return same && !even->conditional ? callEven(f, *even, arguments, context)
                                    : callIfEven(f, *even, arguments, context);
}

/// The values that an expression may have, for one instance or another, if the host knows all of them; else
/// none.
std::vector<ExprRef> Flattener::hostAlternatives(ExprRef e) const {
  if (hostKnown(e)) return {e};
  if (e->kind != ExprKind::Project || e->operands[0]->kind != ExprKind::If) return {};
  const std::vector<ExprRef>& branches = e->operands[0]->operands;
  const size_t count = (branches.size() - 1) / 2;
  std::vector<ExprRef> values;
  for (ExprRef branch : {branches[1 + e->index], branches[1 + count + e->index]}) {
    const std::vector<ExprRef> some = hostAlternatives(branch);
    if (some.empty()) return {};
    for (ExprRef value : some)
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  constexpr size_t kMost = 8;
  return values.size() <= kMost ? values : std::vector<ExprRef>{};
}

/// Gives each sequence whose length the host knows for all instances the length of one of them; returns when
/// that is right.
ExprRef Flattener::sameLengths(Values& arguments) const {
  lcu::ExprArena& arena = *program_.arena;
  ExprRef condition = arena.boolean(true);
  for (Value& v : arguments) {
    if (v.isScalar() || hostKnown(v.sequence().length)) continue;
    const std::vector<ExprRef> lengths = hostAlternatives(v.sequence().length);
    if (lengths.empty()) continue;
    for (size_t k = 1; k < lengths.size(); ++k)
      condition = arena.op(ScalarOp::And, condition, arena.op(ScalarOp::Equal, lengths[0], lengths[k]));
    std::get<Sequence>(v.node).length = lengths[0];
  }
  return condition;
}

Values Flattener::callEven(core::FunctionId f, const Even& even, Values arguments, Context& context) {
  flushAll(context);
  for (Value& v : arguments) {
    auto* sequence = std::get_if<Sequence>(&v.node);
    if (!sequence) continue;
    if (sequence->descriptor && sequence->descriptor->kind != SpaceKind::Regular)
      sequence->descriptor.reset();
    if (sequence->run && sequence->run->space.kind != SpaceKind::Regular) sequence->run.reset();
  }
  ExprRef instances = context.space.extent;
  lcu::CallFunction call;
  call.function = even.function;
  call.arguments = {hostLet(instances, block_, "n")};
  Values shared, own;
  for (size_t k = 0; k < arguments.size(); ++k) (isShared(f, k) ? shared : own).push_back(arguments[k]);
  const std::vector<StorePtr> sharedStores = storeRow(shared, context, Form::Canonical);
  const std::vector<StorePtr> ownStores = storeRow(own, context, Form::Dense);
  size_t nextShared = 0, nextOwn = 0;
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (isShared(f, k)) {
      call.arguments.push_back(hostLet(arguments[k].sequence().length, block_, "each"));
      canonicalStore(sharedStores[nextShared++], call.arguments);
    } else {
      crossing(ownStores[nextOwn++], call.arguments, SpaceKind::Regular);
    }
  }
  const std::string& name = core_.functions[f].name;
  lcu::Stmt stmt;
  Values values;
  for (const CoreType& type : core_.functions[f].result) {
    size_t next = stmt.results.size();
    const SpaceKind kind = even.results ? SpaceKind::Regular : SpaceKind::Offsets;
    declareDense(type, name, instances, stmt.results, kind);
    const StorePtr store = denseFrom(type, stmt.results, next, instances, kind);
    values.push_back(storeAt(*store, arena().param(0), context));
  }
  stmt.node = std::move(call);
  append(block_, std::move(stmt));
  return values;
}

namespace {

/// factor * %s + rest; null: it is nothing of the kind.
struct Linear {
  ExprRef factor = nullptr, rest = nullptr;
};

}  // namespace

/// Slices of one store for the elements of sequences of a few, such as both halves of all: when they lie one
/// after the other they need no copy. Gives them the descriptor for that, and returns the condition; true
/// where they have a descriptor, or none can be found.
ExprRef Flattener::sideBySide(Sequence& v, const Context& context) const {
  lcu::ExprArena& arena = *program_.arena;
  const ExprRef always = arena.boolean(true);
  const Space& few = context.space;
  constexpr int64_t kMost = 8;
  const int64_t count =
      few.kind == SpaceKind::Regular ? lcu::asIndex(few.length).value_or(kMost + 1) : kMost + 1;
  if (v.descriptor || count > kMost || v.views.empty() || !hostKnown(v.length)) return always;
  const std::function<Linear(ExprRef)> linear = [&](ExprRef e) -> Linear {
    if (hostKnown(e)) return {arena.index(0), e};
    if (e->kind == ExprKind::Param && e->index == 1) return {arena.index(1), arena.index(0)};
    if (e->kind != ExprKind::Op || (e->op != ScalarOp::Add && e->op != ScalarOp::Mul)) return {};
    const Linear a = linear(e->operands[0]), b = linear(e->operands[1]);
    if (!a.factor || !b.factor) return {};
    if (e->op == ScalarOp::Add) return {arena.add(a.factor, b.factor), arena.add(a.rest, b.rest)};
    if (b.factor != arena.index(0)) return {};
    return {arena.mul(a.factor, b.rest), arena.mul(a.rest, b.rest)};
  };
  ExprRef condition = always;
  for (const ViewPtr& view : v.views) {
    if (view->kind != View::Kind::Direct || view->stride != arena.index(1) || view->made ||
        !plain(*view->store))
      return always;
    for (int64_t k = 0; k < count; ++k) {
      const Linear start = linear(arena.rewrite(view->start, [&](ExprRef n) -> ExprRef {
        return n->kind == ExprKind::Param && n->index == 2 ? arena.index(k) : nullptr;
      }));
      if (!start.factor) return always;
      const auto require = [&](ExprRef a, ExprRef b) {
        condition = arena.op(ScalarOp::And, condition, arena.op(ScalarOp::Equal, a, b));
      };
      require(start.factor, arena.mul(v.length, few.length));
      require(start.rest, arena.mul(v.length, arena.index(k)));
    }
  }
  if (condition->kind == ExprKind::Constant && !condition->constant.isTrue()) return always;
  Space space;
  space.kind = SpaceKind::Regular;
  space.segments = few.extent;
  space.length = v.length;
  space.extent = arena.elements(space.segments, space.length);
  v.descriptor = space;
  for (ViewPtr& view : v.views) {
    auto aligned = std::make_shared<View>(*view);
    aligned->aligned = true;
    view = aligned;
  }
  return condition;
}

/// The host looks whether all instances have sequences of one length.
Values Flattener::callIfEven(core::FunctionId f, const Even& even, const Values& arguments,
                             Context& context) {
  flushPending(context);
  Values same = arguments;
  ExprRef condition = sameLengths(same);
  std::vector<size_t> measured;  // those whose length the device knows
  for (size_t k = 0; k < same.size(); ++k) {
    if (same[k].isScalar() || hostKnown(same[k].sequence().length)) continue;
    auto& v = std::get<Sequence>(same[k].node);
    auto bound = [&](ReduceOp op, ScalarOp combine) {
      lcu::Soac reduce;
      reduce.kind = lcu::SoacKind::Reduce;
      reduce.space = flat(context.space.extent);
      reduce.pull = {overInstances(v.length, context)};
      reduce.combine.identity = {identity(op, lcu::kIndex)};
      reduce.combine.result = {arena().op(combine, arena().param(0), arena().param(1))};
      return arena().host(launch(std::move(reduce), "reduce", block_, "length")[0], lcu::kIndex);
    };
    ExprRef least = bound(ReduceOp::Min, ScalarOp::Min), greatest = bound(ReduceOp::Max, ScalarOp::Max);
    condition = arena().op(ScalarOp::And, condition, arena().op(ScalarOp::Equal, least, greatest));
    v.length = greatest;
    measured.push_back(k);
  }
  // Inside a block that runs if the lengths are the same: they are scalars of the host there.
  const auto asHostScalars = [&] {
    Values row = same;
    for (size_t k : measured) {
      auto& v = std::get<Sequence>(row[k].node);
      v.length = arena().nonNegative(arena().host(hostLet(v.length, block_, "each"), lcu::kIndex));
    }
    return row;
  };
  if (even.conditional) {
    lcu::HostIf looks;
    looks.condition = condition;
    looks.thenBlock = inBlock(context, [&](std::vector<VarId>& out) {
      lcu::CallFunction call{*even.hostPart, {hostLet(context.space.extent, block_, "n")}};
      for (const Value& v : asHostScalars())
        if (!v.isScalar()) call.arguments.push_back(hostLet(v.sequence().length, block_, "each"));
      lcu::Stmt stmt;
      stmt.results = {newVar(VarKind::Host, ScalarType::Bool, "good")};
      if (even.results)
        for (const CoreType& type : core_.functions[f].result)
          if (type.isSequence()) stmt.results.push_back(newVar(VarKind::Host, lcu::kIndex, "each"));
      out = {stmt.results[0]};
      stmt.node = std::move(call);
      append(block_, std::move(stmt));
    });
    looks.elseBlock = inBlock(
        context, [&](std::vector<VarId>& out) { out = {hostLet(arena().boolean(false), block_, "good")}; });
    lcu::Stmt stmt;
    stmt.results = {newVar(VarKind::Host, ScalarType::Bool, "good")};
    condition = arena().host(stmt.results[0], ScalarType::Bool);
    stmt.node = std::move(looks);
    append(block_, std::move(stmt));
  }
  lcu::HostIf hostIf;
  hostIf.condition = condition;
  const auto hand = [&](const Values& values, std::vector<VarId>& out) {
    for (const StorePtr& store : storeRow(values, context, Form::Dense)) crossing(store, out);
  };
  hostIf.thenBlock = inBlock(context, [&](std::vector<VarId>& out) {
    Values row = asHostScalars();
    for (size_t k : measured) {
      auto& v = std::get<Sequence>(row[k].node);
      regroup(v, context);
      if (!v.descriptor || v.descriptor->segments != context.space.extent) continue;
      // What lies there one after the other does so in a regular space.
      Space space;
      space.kind = SpaceKind::Regular;
      space.segments = context.space.extent;
      space.length = v.length;
      space.extent = arena().elements(space.segments, space.length);
      v.descriptor = space;
      v.run.reset();
    }
    hand(callEven(f, even, row, context), out);
  });
  hostIf.elseBlock =
      inBlock(context, [&](std::vector<VarId>& out) { hand(callInstance(f, arguments, context), out); });
  lcu::Stmt stmt;
  Values values;
  for (const CoreType& type : core_.functions[f].result) {
    size_t next = stmt.results.size();
    declareDense(type, core_.functions[f].name, context.space.extent, stmt.results);
    values.push_back(
        storeAt(*denseFrom(type, stmt.results, next, context.space.extent), arena().param(0), context));
  }
  stmt.node = std::move(hostIf);
  append(block_, std::move(stmt));
  return values;
}

// ---- conditions that are the same for all instances -------------------------------------------------------

bool Flattener::decidedByHost(ExprRef condition, const Context& context) const {
  return !context.isRoot() && hostKnown(condition) && positive(context.space.extent);
}

/// One branch for all instances, of which there are some.
std::vector<StorePtr> Flattener::storeDecided(const core::Exp& e, const core::If& node, ExprRef condition,
                                              Context& context, Frame& frame) {
  flushPending(context);
  std::vector<StorePtr> first, second;
  const auto branch = [&](const core::ExpPtr& body, std::vector<StorePtr>& stores) {
    return inBlock(context,
                   [&](std::vector<VarId>&) { stores = compileStored(body, context, frame, Form::Dense); });
  };
  lcu::HostIf hostIf;
  hostIf.condition = condition;
  hostIf.thenBlock = branch(node.thenBranch, first);
  hostIf.elseBlock = branch(node.elseBranch, second);
  const auto kindOf = [&](size_t k) {
    return first[k]->regular() && second[k]->regular() ? SpaceKind::Regular : SpaceKind::Offsets;
  };
  const auto hand = [&](const std::vector<StorePtr>& stores, lcu::Block& block) {
    Saved outer(block_);
    block_ = &block;
    for (size_t k = 0; k < stores.size(); ++k) crossing(stores[k], block.results, kindOf(k));
  };
  hand(first, *hostIf.thenBlock);
  hand(second, *hostIf.elseBlock);
  lcu::Stmt stmt;
  std::vector<StorePtr> stores;
  for (size_t k = 0; k < e.type.size(); ++k) {
    size_t next = stmt.results.size();
    declareDense(e.type[k], "r", context.space.extent, stmt.results, kindOf(k));
    stores.push_back(denseFrom(e.type[k], stmt.results, next, context.space.extent, kindOf(k)));
  }
  stmt.node = std::move(hostIf);
  append(block_, std::move(stmt));
  return stores;
}

/// A block that runs or does not: what it has stored for the context other blocks do not have.
std::shared_ptr<lcu::Block> Flattener::inBlock(Context& context,
                                               const std::function<void(std::vector<VarId>&)>& fill) {
  auto block = std::make_shared<lcu::Block>();
  lcu::Block* outer = std::exchange(block_, block.get());
  lcu::Block* contextBlock = std::exchange(context.block, block.get());
  auto stored = context.stored;
  auto spaces = context.spaces;
  auto holds = context.holds;
  fill(block->results);
  flushPending(context);
  context.stored = std::move(stored);
  context.spaces = std::move(spaces);
  context.holds = std::move(holds);
  context.block = contextBlock;
  block_ = outer;
  return block;
}

}  // namespace kelpie::flatten
