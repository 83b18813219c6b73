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
#include "flatten/saved.h"

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

bool isRegular(const StorePtr& store) { return store->dense && store->dense->kind == SpaceKind::Regular; }

bool sequencesAre(const Values& row, const std::function<bool(const Sequence&)>& good) {
  return std::all_of(row.begin(), row.end(),
                     [&](const Value& v) { return v.isScalar() || good(v.sequence()); });
}

}  // namespace

// ---- even values at boundaries ----------------------------------------------------------------------------

void Flattener::declareEven(const CoreType& type, const std::string& name, ExprRef instances,
                            std::vector<VarId>& out) {
  if (type.isScalar()) return declareStore(type, name, instances, out);
  out.push_back(newVar(VarKind::Host, lcu::kIndex, name + "_each"));
  ExprRef each = arena().nonNegative(arena().host(out.back(), lcu::kIndex));
  for (const CoreType& element : type.elements())
    declareStore(element, name, arena().mul(instances, each), out);
}

StorePtr Flattener::evenFrom(const CoreType& type, const std::vector<VarId>& vars, size_t& next,
                             ExprRef instances) {
  if (type.isScalar()) return storeFrom(type, vars, next);
  auto store = std::make_shared<Store>();
  store->kind = Store::Kind::Sequence;
  store->type = type;
  Space space;
  space.kind = SpaceKind::Regular;
  space.segments = instances;
  space.length = arena().nonNegative(arena().host(vars[next++], lcu::kIndex));
  space.extent = arena().mul(instances, space.length);
  store->dense = space;
  for (const CoreType& element : type.elements())
    store->components.push_back({0, 1, storeFrom(element, vars, next), 0, {}});
  return store;
}

/// The store is regular, or one of scalars.
void Flattener::crossingEven(const StorePtr& store, std::vector<VarId>& out) {
  if (!store->dense) return canonicalStore(store, out);
  out.push_back(hostLet(store->dense->length, block_, "each"));
  for (const Store::Component& component : store->components) canonicalStore(component.store, out);
}

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

/// Compiles the even instance of `f`, whose results are even or not. False: it calls itself with other
/// sequences (then there is none), or its results are not what was assumed (then even_ still has it).
bool Flattener::compileEven(core::FunctionId f, bool evenResults) {
  const core::Function& function = core_.functions[f];
  const auto index = static_cast<uint32_t>(program_.functions.size());
  program_.functions.emplace_back();
  even_[f] = Even{index, evenResults};
  evens_.push_back({f, true});

  lcu::HostFunction result;
  result.name = function.name + "_even";
  bool asAssumed = true;
  const size_t inlined = inlined_;
  const uint32_t kernels = kernels_;
  {
    Saved block(block_);
    Saved delayed(delayed_);
    Saved positive(positive_);
    lcu::Block body;
    block_ = &body;
    delayed_ = 0;
    Context& root = newContext(Context::Kind::Root, nullptr, {}, block_);
    result.params.push_back(newVar(VarKind::Host, lcu::kIndex, "n"));
    ExprRef instances = arena().nonNegative(arena().host(result.params[0], lcu::kIndex));
    positive_.push_back(instances);  // nobody calls it for none
    Context& context = newContext(Context::Kind::Lifted, &root, flat(instances), block_);
    Frame frame;
    for (const core::Var& parameter : function.parameters) {
      std::vector<VarId> vars;
      declareEven(parameter.type, parameter.name, instances, vars);
      size_t next = 0;
      frame[parameter.id] = {
          &context, storeAt(*evenFrom(parameter.type, vars, next, instances), arena().param(0), context)};
      result.params.insert(result.params.end(), vars.begin(), vars.end());
    }
    for (const StorePtr& store : compileStored(function.body, context, frame, Form::Dense)) {
      if (!evenResults) {
        crossing(store, body.results);
      } else if (store->type.isScalar() || isRegular(store)) {
        crossingEven(store, body.results);
      } else {
        asAssumed = false;
      }
    }
    result.body = std::move(body);
  }
  const bool evenCalls = evens_.back().evenCalls;
  evens_.pop_back();
  if (evenCalls && asAssumed) {
    program_.functions[index] = std::move(result);
    return true;
  }
  // What was compiled on the way may call it.
  inlined_ = inlined;
  kernels_ = kernels;
  program_.functions.resize(index);
  std::erase_if(instances_, [&](const auto& entry) { return entry.second >= index; });
  std::erase_if(even_, [&](const auto& entry) {
    return entry.first != f && entry.second && entry.second->function >= index;
  });
  if (!evenCalls) even_[f] = std::nullopt;
  return false;
}

// ---- calls ------------------------------------------------------------------------------------------------

/// A call for the instances of a context that is no root, by the even instance if there is one; none: there
/// is not.
std::optional<Values> Flattener::callEvenly(core::FunctionId f, const Values& arguments, Context& context) {
  const bool known = sequencesAre(arguments, [&](const Sequence& v) { return hostKnown(v.length); });
  const bool guarded = positive(context.space.extent);
  const auto own = std::find_if(evens_.begin(), evens_.end(),
                                [&](const Attempt& attempt) { return attempt.function == f; });
  if (own != evens_.end()) {
    own->evenCalls &= known && guarded;
    if (!own->evenCalls) return std::nullopt;
    return callEven(f, *even_[f], arguments, context);
  }
  const bool inside = std::find(lifted_.begin(), lifted_.end(), f) != lifted_.end();
  if (!guarded || (!known && inside)) return std::nullopt;
  const Even* even = evenInstance(f);
  if (!even) return std::nullopt;
  return known ? callEven(f, *even, arguments, context) : callIfEven(f, *even, arguments, context);
}

Values Flattener::callEven(core::FunctionId f, const Even& even, Values arguments, Context& context) {
  flushPending(context);
  for (Value& v : arguments) {
    auto* sequence = std::get_if<Sequence>(&v.node);
    if (!sequence || !sequence->descriptor || sequence->descriptor->kind == SpaceKind::Regular) continue;
    sequence->descriptor.reset();
    sequence->run.reset();
  }
  ExprRef instances = context.space.extent;
  lcu::CallFunction call;
  call.function = even.function;
  call.arguments = {hostLet(instances, block_, "n")};
  for (const StorePtr& store : storeRow(arguments, context, Form::Dense)) crossingEven(store, call.arguments);
  const std::string& name = core_.functions[f].name;
  lcu::Stmt stmt;
  Values values;
  for (const CoreType& type : core_.functions[f].result) {
    size_t next = stmt.results.size();
    StorePtr store;
    if (even.results) {
      declareEven(type, name, instances, stmt.results);
      store = evenFrom(type, stmt.results, next, instances);
    } else {
      declareDense(type, name, instances, stmt.results);
      store = denseFrom(type, stmt.results, next, instances);
    }
    values.push_back(storeAt(*store, arena().param(0), context));
  }
  stmt.node = std::move(call);
  append(block_, std::move(stmt));
  return values;
}

/// The host looks whether all instances have sequences of one length.
Values Flattener::callIfEven(core::FunctionId f, const Even& even, const Values& arguments,
                             Context& context) {
  flushPending(context);
  ExprRef condition = arena().boolean(true);
  Values same = arguments;
  for (Value& v : same) {
    if (v.isScalar() || hostKnown(v.sequence().length)) continue;
    auto bound = [&](ReduceOp op, ScalarOp combine) {
      lcu::Soac reduce;
      reduce.kind = lcu::SoacKind::Reduce;
      reduce.space = flat(context.space.extent);
      reduce.pull = {overInstances(v.sequence().length, context)};
      reduce.combine.identity = {identity(op, lcu::kIndex)};
      reduce.combine.result = {arena().op(combine, arena().param(0), arena().param(1))};
      return arena().host(launch(std::move(reduce), "reduce", block_, "length")[0], lcu::kIndex);
    };
    ExprRef least = bound(ReduceOp::Min, ScalarOp::Min), greatest = bound(ReduceOp::Max, ScalarOp::Max);
    condition = arena().op(ScalarOp::And, condition, arena().op(ScalarOp::Equal, least, greatest));
    std::get<Sequence>(v.node).length = greatest;
  }
  lcu::HostIf hostIf;
  hostIf.condition = condition;
  const auto hand = [&](const Values& values, std::vector<VarId>& out) {
    for (const StorePtr& store : storeRow(values, context, Form::Dense)) crossing(store, out);
  };
  hostIf.thenBlock = inBlock(context, [&](std::vector<VarId>& out) {
    for (size_t k = 0; k < same.size(); ++k) {
      if (same[k].isScalar() || hostKnown(arguments[k].sequence().length)) continue;
      Sequence& v = std::get<Sequence>(same[k].node);
      v.length = arena().nonNegative(arena().host(hostLet(v.length, block_, "each"), lcu::kIndex));
      if (!v.descriptor || v.descriptor->segments != context.space.extent) continue;
      // What lies there one after the other does so in a regular space.
      Space space;
      space.kind = SpaceKind::Regular;
      space.segments = context.space.extent;
      space.length = v.length;
      space.extent = arena().mul(space.segments, space.length);
      v.descriptor = space;
      v.run.reset();
    }
    hand(callEven(f, even, same, context), out);
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
  const auto even = [&](size_t k) { return isRegular(first[k]) && isRegular(second[k]); };
  const auto hand = [&](const std::vector<StorePtr>& stores, lcu::Block& block) {
    Saved outer(block_);
    block_ = &block;
    for (size_t k = 0; k < stores.size(); ++k) {
      if (even(k)) {
        crossingEven(stores[k], block.results);
      } else {
        crossing(stores[k], block.results);
      }
    }
  };
  hand(first, *hostIf.thenBlock);
  hand(second, *hostIf.elseBlock);
  lcu::Stmt stmt;
  std::vector<StorePtr> stores;
  for (size_t k = 0; k < e.type.size(); ++k) {
    size_t next = stmt.results.size();
    if (even(k)) {
      declareEven(e.type[k], "r", context.space.extent, stmt.results);
      stores.push_back(evenFrom(e.type[k], stmt.results, next, context.space.extent));
    } else {
      declareDense(e.type[k], "r", context.space.extent, stmt.results);
      stores.push_back(denseFrom(e.type[k], stmt.results, next, context.space.extent));
    }
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
  fill(block->results);
  flushPending(context);
  context.stored = std::move(stored);
  context.spaces = std::move(spaces);
  context.block = contextBlock;
  block_ = outer;
  return block;
}

}  // namespace kelpie::flatten
