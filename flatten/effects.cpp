// Effects and random numbers. Inside an apply-to-each they run in lock step (language.md 4.7): one operation
// for all instances, in their order.
#include "flatten/flattener.h"
#include "ir/check_messages.h"
#include "ir/diagnostic.h"
#include "ir/random_float.h"

namespace kelpie::flatten {

using core::PrimOp;

Sequence Flattener::joinInstances(const Sequence& text, Context& context, Context& root) {
  if (context.isRoot()) return text;
  ExprRef length;
  Space space = commonSpace({&text}, context, nullptr, &length);
  Entered entered = enterSpace(space, {&text}, context);
  std::vector<StorePtr> stores = storeRow(entered.elements[0], *entered.context, Form::Canonical);
  return sequenceOver(flat(space.extent), space.extent, text.elements, stores, root);
}

Values Flattener::random(const core::Exp& e, const core::Prim& node, ExprRef bound, Context& context) {
  flushAll(context);
  const bool integer = node.op == PrimOp::RandomInt;
  ExprRef none = arena().index(0), i = arena().param(0);
  Scalar one = integer ? Scalar::ofInt(bound->type, 1) : Scalar::ofFloat(bound->type, 1);
  bound = check(arena().op(ScalarOp::Greater, bound, arena().constant(Scalar::zero(bound->type))), bound, one,
                e.span, check_message::kRandom, none, none, context);
  // Draws for each instance: two where the bound needs more than 31 bits.
  ExprRef large = arena().boolean(false);
  if (integer) large = arena().op(ScalarOp::Greater, toIndex(bound), arena().index(int64_t{1} << 31));
  ExprRef draws = arena().select(large, arena().index(2), arena().index(1));
  ExprRef total, first;
  if (context.isRoot()) {
    total = draws;
    first = none;
  } else if (draws->kind == lcu::ExprKind::Constant) {
    total = arena().mul(context.space.extent, draws);
    first = arena().mul(i, draws);
  } else {
    bound = stored(bound, context);
    draws = arena().select(arena().op(ScalarOp::Greater, toIndex(bound), arena().index(int64_t{1} << 31)),
                           arena().index(2), arena().index(1));
    Space space = spaceFor(draws, context);
    total = space.extent;
    first = space.kind == lcu::SpaceKind::Regular ? arena().mul(i, space.length)
                                                  : arena().load(space.offsets, lcu::kIndex, i);
  }
  VarId count = hostLet(total, block_, "draws");
  std::vector<VarId> vars =
      service("random_draws", {lcu::kIndex}, {count}, {CoreType::sequence({lcu::kIndex})}, block_);
  VarId array = vars[1];
  program_.vars[array].extent = total;
  ExprRef draw = arena().load(array, lcu::kIndex, first);
  if (!integer) {
    ExprRef low = arena().op(ScalarOp::And, draw, arena().index((int64_t{1} << 30) - 1));
    const auto wide = [&](ExprRef x) { return arena().convert(x, ScalarType::Float64); };
    const auto number = [&](double x) { return arena().constant(Scalar::ofFloat(ScalarType::Float64, x)); };
    ExprRef value = arena().mul(wide(bound), arena().mul(wide(low), number(1.0 / 1073741824.0)));
    if (bound->type == ScalarType::Float32) {
      ExprRef below = arena().mul(wide(bound), number(kBelowFloat32));
      value = arena().op(ScalarOp::Min, value, arena().op(ScalarOp::Sub, below, number(kHalfLeastFloat32)));
    }
    return {{arena().convert(value, bound->type)}};
  }
  ExprRef wide = toIndex(bound);
  ExprRef small = arena().op(ScalarOp::Rem, draw, wide);
  ExprRef second = arena().load(array, lcu::kIndex, arena().add(first, arena().index(1)));
  ExprRef pair = arena().add(arena().mul(draw, arena().index(int64_t{1} << 31)), second);
  ExprRef big = arena().op(ScalarOp::Rem, pair, wide);
  ExprRef value = arena().convert(arena().select(large, big, small), bound->type);
  return {{stored(value, context)}};
}

/// The one service allowed inside an apply-to-each besides printing writes a text to a stream
/// (language.md 6.16): a host loop over the instances in order. Every instance yields (T, ""): a failure is
/// reported by the service.
Values Flattener::writeInstances(const core::Exp& e, const std::string& name,
                                 const std::vector<CoreType>& types, const Values& arguments,
                                 Context& context) {
  std::vector<StorePtr> stores = storeRow(arguments, context, Form::Canonical);
  lcu::HostLoop loop;
  loop.initial = {hostLet(arena().index(0), block_, "first")};
  loop.params = {newVar(lcu::VarKind::Host, lcu::kIndex, "i")};
  loop.condition = std::make_shared<lcu::Block>();
  loop.body = std::make_shared<lcu::Block>();
  ExprRef i = arena().host(loop.params[0], lcu::kIndex);
  lcu::Block* outer = std::exchange(block_, loop.condition.get());
  loop.condition->results = {hostLet(arena().op(ScalarOp::Less, i, context.space.extent), block_, "more")};
  block_ = loop.body.get();
  Context& root = newContext(Context::Kind::Root, &rootOf(context), {}, block_);
  std::vector<VarId> vars;
  for (size_t k = 0; k < stores.size(); ++k) denseColumns(storeAt(*stores[k], i, root), types[k], root, vars);
  service(name, types, vars, {e.type.begin(), e.type.end()}, block_);
  loop.body->results = {hostLet(arena().add(i, arena().index(1)), block_, "next")};
  block_ = outer;
  lcu::Stmt stmt;
  stmt.results = {newVar(lcu::VarKind::Host, lcu::kIndex, "end")};
  stmt.node = std::move(loop);
  append(block_, std::move(stmt));
  Values results;
  for (const CoreType& type : e.type) {
    const bool flag = type.isScalar() && type.scalar() == ScalarType::Bool;
    results.push_back(flag ? Value{arena().boolean(true)} : zero(type));
  }
  return results;
}

Values Flattener::effect(const core::Exp& e, const core::Prim& node, const Values& arguments,
                         Context& context) {
  flushAll(context);
  Context& root = context.isRoot() ? context : newContext(Context::Kind::Root, &rootOf(context), {}, block_);
  const CoreType string = CoreType::sequence({ScalarType::Char});
  auto call = [&](const std::string& name, const std::vector<CoreType>& types, const Values& values) {
    std::vector<VarId> vars;
    for (size_t k = 0; k < values.size(); ++k) denseColumns(values[k], types[k], root, vars);
    return fromDenseColumns(e.type, service(name, types, vars, {e.type.begin(), e.type.end()}, block_));
  };
  switch (node.op) {
    case PrimOp::Print: {
      call("print", {string}, {{joinInstances(arguments[0].sequence(), context, root)}});
      return {{arena().boolean(true)}};
    }
    case PrimOp::Raise: {
      Value text = arguments[0];
      if (!context.isRoot())
        text = storeAt(*storeRow({text}, context, Form::Canonical)[0], arena().index(0), root);
      return call("raise", {string}, {text});
    }
    case PrimOp::StartTimer:
    case PrimOp::StopTimer: {
      ExprRef timer =
          context.isRoot() ? arguments[0].scalar() : arena().constant(Scalar::zero(core_.intType));
      return call(node.op == PrimOp::StartTimer ? "start_timer" : "stop_timer", {CoreType(core_.intType)},
                  {{timer}});
    }
    case PrimOp::RandomSeed:
      return call("random_seed", {CoreType(core_.intType)}, arguments);
    case PrimOp::Extern: {
      std::vector<CoreType> types;
      for (const core::Atom& a : node.arguments) types.push_back(a.type);
      if (context.isRoot()) return call(node.text, types, arguments);
      return writeInstances(e, node.text, types, arguments, context);
    }
    case PrimOp::Unsupported: {
      hostLet(arena().check(arena().boolean(false), arena().boolean(true), Scalar::ofBool(false),
                            site(userSpan(e.span), node.text), arena().index(0), arena().index(0)),
              block_, "unsupported");
      Values zeros;
      for (const CoreType& type : e.type) zeros.push_back(zero(type));
      return zeros;
    }
    default:
      throw InternalError("not an effect");
  }
}

}  // namespace kelpie::flatten
