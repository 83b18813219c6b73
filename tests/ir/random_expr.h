// Random well-typed λcu expressions, as plain nodes that no arena has simplified, and their way into an
// arena.
#pragma once

#include <deque>
#include <random>

#include "ir/lcu.h"
#include "tests/ir/expr_evaluate.h"

namespace kelpie::lcu {

/// Names to speak of: a host scalar and an array (of four elements) of every type.
struct RandomWorld {
  static constexpr ScalarType kTypes[] = {ScalarType::Bool,  ScalarType::Char,    ScalarType::Int32,
                                          ScalarType::Int64, ScalarType::Float32, ScalarType::Float64};
  static constexpr int64_t kLength = 4;
  static VarId hostOf(ScalarType t) { return 1 + static_cast<VarId>(t); }
  static VarId arrayOf(ScalarType t) { return 7 + static_cast<VarId>(t); }

  /// The same variables in a program, in this order, as parameters of its one function.
  static void declare(Program& program) {
    HostFunction function{"world", {}, {}};
    for (ScalarType t : kTypes)
      function.params.push_back(program.newVar({"h" + std::string(toString(t)), VarKind::Host, t}));
    for (ScalarType t : kTypes)
      function.params.push_back(program.newVar({"a" + std::string(toString(t)), VarKind::Array, t}));
    program.functions.push_back(std::move(function));
    program.newSite({{}, "first"});
    program.newSite({{}, "second"});
  }
};

class RandomExpr {
 public:
  explicit RandomExpr(uint64_t seed) : random_(seed) {}

  ExprRef make(ScalarType type, int depth) {
    if (depth == 0 || chance(10)) return leaf(type);
    switch (below(12)) {
      case 0:
        return leaf(type);
      case 1:
        return add({.kind = ExprKind::Load,
                    .type = type,
                    .index = RandomWorld::arrayOf(type),
                    .operands = {position(depth - 1)}});
      case 2:
        return add({.kind = ExprKind::Convert, .type = type, .operands = {make(anyType(), depth - 1)}});
      case 3:
        return check(type, depth);
      case 4:
      case 5:
        return conditional(type, depth);
      case 6:
        if (loopsInside_ == 2) return operation(type, depth);
        return chance(60) ? loop(type, depth) : recursion(type, depth);
      case 7:
        return made_.empty() ? leaf(type) : again(type);
      default:
        return operation(type, depth);
    }
  }

  Evaluation world() {
    Evaluation world;
    for (int k = 0; k < 3; ++k) world.params.push_back(Scalar::ofInt(kIndex, below(RandomWorld::kLength)));
    for (ScalarType t : RandomWorld::kTypes) {
      world.hosts[RandomWorld::hostOf(t)] = constant(t);
      for (int k = 0; k < RandomWorld::kLength; ++k)
        world.arrays[RandomWorld::arrayOf(t)].push_back(constant(t));
    }
    return world;
  }

 private:
  int below(int64_t n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  ScalarType anyType() { return RandomWorld::kTypes[below(6)]; }

  ExprRef add(Expr e) {
    e.id = static_cast<uint32_t>(nodes_.size());
    return &nodes_.emplace_back(std::move(e));
  }

  Scalar constant(ScalarType type) {
    static const std::vector<int64_t> kSmall = {0, 0, 1, 1, -1, 2, 3, 7, INT64_MIN, INT64_MAX};
    const int64_t v = kSmall[static_cast<size_t>(below(10))];
    if (!isFloat(type)) return Scalar::ofInt(type, v);
    return Scalar::ofFloat(type, chance(10) ? -0.0 : static_cast<double>(v) / 2);
  }

  ExprRef literal(Scalar value) {
    Expr e{.kind = ExprKind::Constant, .type = value.type};
    e.constant = value;
    return add(std::move(e));
  }

  ExprRef leaf(ScalarType type) {
    if (!loopVars_.empty() && chance(40)) {
      ExprRef variable = loopVars_[static_cast<size_t>(below(static_cast<int64_t>(loopVars_.size())))];
      if (variable->type == type) return variable;
    }
    if (type == kIndex && chance(30))
      return add({.kind = ExprKind::Param, .index = static_cast<uint32_t>(below(3))});
    if (type == kIndex && chance(20))
      return add({.kind = ExprKind::Size, .index = RandomWorld::arrayOf(anyType())});
    if (chance(50)) return add({.kind = ExprKind::Host, .type = type, .index = RandomWorld::hostOf(type)});
    return literal(constant(type));
  }

  /// Always in range.
  ExprRef position(int depth) {
    return add({.kind = ExprKind::Op,
                .op = ScalarOp::And,
                .operands = {make(kIndex, depth), literal(Scalar::ofInt(kIndex, 3))}});
  }

  /// A node that is used already, if one of the type can be (loop variables are in scope only in their loop).
  ExprRef again(ScalarType type) {
    for (int k = 0; k < 10; ++k) {
      ExprRef e = made_[static_cast<size_t>(below(static_cast<int64_t>(made_.size())))];
      if (e->type == type) return e;
    }
    return leaf(type);
  }

  ExprRef operation(ScalarType type, int depth) {
    for (int k = 0; k < 100; ++k) {
      const auto op = static_cast<ScalarOp>(below(static_cast<int>(ScalarOp::Floor) + 1));
      const ScalarType operand = isComparison(op) ? anyType() : type;
      if (!accepts(op, operand) || resultType(op, operand) != type) continue;
      Expr e{.kind = ExprKind::Op, .type = type, .op = op, .operands = {make(operand, depth - 1)}};
      if (arity(op) == 2) e.operands.push_back(chance(15) ? e.operands[0] : make(operand, depth - 1));
      ExprRef result = add(std::move(e));
      if (loopVars_.empty()) made_.push_back(result);
      return result;
    }
    return leaf(type);
  }

  ExprRef check(ScalarType type, int depth) {
    ExprRef condition = make(ScalarType::Bool, depth - 1), value = make(type, depth - 1);
    ExprRef fallback = literal(constant(type)), first = make(kIndex, depth / 2), second = make(kIndex, 0);
    return add({.kind = ExprKind::Check,
                .type = type,
                .index = static_cast<uint32_t>(1 + below(2)),
                .operands = {condition, value, fallback, first, second}});
  }

  ExprRef conditional(ScalarType type, int depth) {
    const int count = 1 + below(2);
    Expr e{.kind = ExprKind::If, .operands = {make(ScalarType::Bool, depth - 1)}};
    std::vector<ScalarType> types = {type};
    if (count == 2) types.push_back(anyType());
    for (int branch = 0; branch < 2; ++branch)
      for (ScalarType t : types) e.operands.push_back(make(t, depth - 1));
    return add({.kind = ExprKind::Project, .type = type, .index = 0, .operands = {add(std::move(e))}});
  }

  /// Counts up to a few steps beside whatever it does.
  ExprRef loop(ScalarType type, int depth) {
    const uint32_t id = loops_++;
    Expr e{.kind = ExprKind::Loop,
           .index = id,
           .count = 2,
           .operands = {literal(Scalar::ofInt(kIndex, 0)), make(type, depth - 1)}};
    ++loopsInside_;
    ExprRef counter = add({.kind = ExprKind::LoopVar, .index = id, .count = 0});
    ExprRef value = add({.kind = ExprKind::LoopVar, .type = type, .index = id, .count = 1});
    loopVars_.push_back(counter);
    loopVars_.push_back(value);
    ExprRef few = add({.kind = ExprKind::Op,
                       .type = ScalarType::Bool,
                       .op = ScalarOp::Less,
                       .operands = {counter, literal(Scalar::ofInt(kIndex, below(4)))}});
    e.operands.push_back(few);
    e.operands.push_back(add({.kind = ExprKind::Op,
                              .op = ScalarOp::Add,
                              .operands = {counter, literal(Scalar::ofInt(kIndex, 1))}}));
    e.operands.push_back(make(type, depth - 1));
    loopVars_.resize(loopVars_.size() - 2);
    --loopsInside_;
    return add({.kind = ExprKind::Project, .type = type, .index = 1, .operands = {add(std::move(e))}});
  }

  /// Calls itself a few times, for one value more or less than it was given.
  ExprRef recursion(ScalarType type, int depth) {
    const uint32_t id = loops_++;
    const auto operation = [&](ScalarOp op, ScalarType result, ExprRef a, int64_t b) {
      return add({.kind = ExprKind::Op,
                  .type = result,
                  .op = op,
                  .operands = {a, literal(Scalar::ofInt(kIndex, b))}});
    };
    const auto choice = [&](ExprRef condition, ExprRef a, ExprRef b) {
      ExprRef both = add({.kind = ExprKind::If, .operands = {condition, a, b}});
      return add({.kind = ExprKind::Project, .type = type, .operands = {both}});
    };
    Expr e{.kind = ExprKind::Recursion,
           .index = id,
           .count = 1,
           .operands = {literal(Scalar::ofInt(kIndex, below(4))), make(type, depth - 1)}};
    e.constant = Scalar::ofInt(kIndex, 1);
    ++loopsInside_;
    ExprRef counter = add({.kind = ExprKind::LoopVar, .index = id, .count = 0});
    ExprRef value = add({.kind = ExprKind::LoopVar, .type = type, .index = id, .count = 1});
    loopVars_.push_back(counter);
    loopVars_.push_back(value);
    ExprRef call = add({.kind = ExprKind::Call,
                        .index = id,
                        .count = 1,
                        .operands = {operation(ScalarOp::Sub, kIndex, counter, 1), make(type, depth - 1)}});
    ExprRef called = add({.kind = ExprKind::Project, .type = type, .operands = {call}});
    loopVars_.push_back(called);  // in the branch where it is evaluated only
    ExprRef again =
        chance(50) ? choice(make(ScalarType::Bool, depth - 1), called, value) : make(type, depth - 1);
    loopVars_.pop_back();
    ExprRef more = operation(ScalarOp::Greater, ScalarType::Bool, counter, 0);
    e.operands.push_back(choice(more, again, make(type, depth - 1)));
    loopVars_.resize(loopVars_.size() - 2);
    --loopsInside_;
    return add({.kind = ExprKind::Project, .type = type, .operands = {add(std::move(e))}});
  }

  std::mt19937_64 random_;
  std::deque<Expr> nodes_;
  std::vector<ExprRef> made_, loopVars_;
  uint32_t loops_ = 0;
  int loopsInside_ = 0;
};

/// The same expression built by the simplifying constructors.
class IntoArena {
 public:
  explicit IntoArena(ExprArena& arena) : arena_(arena) {}

  ExprRef operator()(ExprRef e) {
    const auto known = done_.find(e);
    if (known != done_.end()) return known->second;
    ExprRef result = convert(e);
    done_.emplace(e, result);
    return result;
  }

 private:
  std::vector<ExprRef> all(ExprRef e, size_t from, size_t count) {
    std::vector<ExprRef> result;
    for (size_t k = 0; k < count; ++k) result.push_back((*this)(e->operands[from + k]));
    return result;
  }

  /// `type` is that of the value that is asked for.
  std::vector<ExprRef> values(ExprRef e, ScalarType type) {
    const auto known = doneValues_.find(e);
    if (known != doneValues_.end()) return known->second;
    std::vector<ExprRef> result;
    if (e->kind == ExprKind::If) {
      const size_t k = valueCount(e);
      result = arena_.select((*this)(e->operands[0]), all(e, 1, k), all(e, 1 + k, k));
    } else if (e->kind == ExprKind::Recursion) {
      const uint32_t id = loops_[e->index] = arena_.newLoop();
      const size_t count = e->operands.size() - e->count;
      auto arguments = all(e, 0, count);
      result = arena_.recursion(id, static_cast<SiteId>(e->constant.i), std::move(arguments),
                                all(e, count, e->count));
    } else if (e->kind == ExprKind::Call) {
      result = arena_.call(loops_.at(e->index), all(e, 0, e->operands.size()), {type});
    } else {
      const uint32_t id = loops_[e->index] = arena_.newLoop();
      const auto initial = all(e, 0, e->count);
      ExprRef condition = (*this)(e->operands[e->count]);
      result = arena_.loop(id, initial, condition, all(e, e->count + 1, e->count));
    }
    doneValues_.emplace(e, result);
    return result;
  }

  ExprRef convert(ExprRef e) {
    switch (e->kind) {
      case ExprKind::Constant:
        return arena_.constant(e->constant);
      case ExprKind::Param:
        return arena_.param(e->index, e->type);
      case ExprKind::Host:
        return arena_.host(e->index, e->type);
      case ExprKind::Load:
        return arena_.load(e->index, e->type, (*this)(e->operands[0]));
      case ExprKind::Size:
        return arena_.size(e->index);
      case ExprKind::Op:
        return arena_.op(e->op, (*this)(e->operands[0]),
                         arity(e->op) == 2 ? (*this)(e->operands[1]) : nullptr);
      case ExprKind::Convert:
        return arena_.convert((*this)(e->operands[0]), e->type);
      case ExprKind::Check:
        return arena_.check((*this)(e->operands[0]), (*this)(e->operands[1]), e->operands[2]->constant,
                            e->index, (*this)(e->operands[3]), (*this)(e->operands[4]));
      case ExprKind::LoopVar:
        return arena_.loopVar(loops_.at(e->index), e->count, e->type);
      case ExprKind::Project:
        return values(e->operands[0], e->type)[e->index];
      case ExprKind::If:
      case ExprKind::Loop:
      case ExprKind::Recursion:
      case ExprKind::Call:
        break;
    }
    return nullptr;
  }

  ExprArena& arena_;
  std::map<ExprRef, ExprRef> done_;
  std::map<ExprRef, std::vector<ExprRef>> doneValues_;
  std::map<uint32_t, uint32_t> loops_;
};

}  // namespace kelpie::lcu
