#include "ir/expr.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <optional>

#include "ir/diagnostic.h"
#include "ir/node_map.h"

namespace kelpie::lcu {
namespace {

struct HashNode {
  size_t operator()(const Expr* e) const {
    size_t hash = static_cast<size_t>(e->kind);
    const auto mix = [&](uint64_t v) { hash = (hash ^ v) * 0x9E3779B97F4A7C15U + (hash >> 29); };
    mix(static_cast<uint64_t>(e->type) << 8 | static_cast<uint64_t>(e->op));
    mix(uint64_t{e->index} << 32 | e->count);
    mix(static_cast<uint64_t>(e->constant.i));
    for (ExprRef operand : e->operands) mix(operand->id);
    return hash;
  }
};

struct SameNode {
  bool operator()(const Expr* a, const Expr* b) const {
    return a->kind == b->kind && a->type == b->type && a->op == b->op && a->index == b->index &&
           a->count == b->count && a->constant == b->constant && a->operands == b->operands;
  }
};

void require(bool condition, const char* what) {
  if (!condition) throw InternalError(std::string("expression: ") + what);
}

/// Whether a op b = b op a to the bit. (The sum of two NaNs may carry the payload of either.)
bool commutes(const Expr& e) {
  if (e.kind != ExprKind::Op) return false;
  switch (e.op) {
    case ScalarOp::Add:
    case ScalarOp::Mul:
    case ScalarOp::Max:
    case ScalarOp::Min:
      return !isFloat(e.type);
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor:
    case ScalarOp::Equal:
    case ScalarOp::NotEqual:
      return true;
    default:
      return false;
  }
}

/// `e` where `condition` is known to be `holds`: sees through conditionals and checks of that very condition.
ExprRef assuming(ExprRef e, ExprRef condition, bool holds) {
  while (true) {
    if (e->kind == ExprKind::Project && e->operands[0]->kind == ExprKind::If &&
        e->operands[0]->operands[0] == condition &&
        (valueCount(e->operands[0]) == 1 || !e->operands[0]->canFail)) {
      ExprRef conditional = e->operands[0];
      e = conditional->operands[1 + e->index + (holds ? 0 : valueCount(conditional))];
    } else if (holds && e->kind == ExprKind::Check && e->operands[0] == condition &&
               !e->operands[3]->canFail && !e->operands[4]->canFail) {
      e = e->operands[1];
    } else {
      return e;
    }
  }
}

/// What has no operands and is there before all others.
bool isName(ExprKind kind) {
  return kind == ExprKind::Constant || kind == ExprKind::Param || kind == ExprKind::Host ||
         kind == ExprKind::Size || kind == ExprKind::LoopVar;
}

/// Of an expression that is not negative, by its operands alone: Expr::bits. None: it may be negative.
std::optional<uint8_t> bitsOfNonNegative(const Expr& e) {
  if (e.type != kIndex) return std::nullopt;
  constexpr int kMostBits = 63;
  const auto bits = [](ExprRef x) { return x->nonNegative ? std::optional<int>(x->bits) : std::nullopt; };
  const auto of = [&](size_t k) { return bits(e.operands[k]); };
  const auto larger = [](std::optional<int> a, std::optional<int> b) -> std::optional<uint8_t> {
    if (!a || !b) return std::nullopt;
    return static_cast<uint8_t>(std::max(*a, *b));
  };
  const auto within = [](int result) -> std::optional<uint8_t> {
    return result <= kMostBits ? std::optional(static_cast<uint8_t>(result)) : std::nullopt;
  };
  switch (e.kind) {
    case ExprKind::Constant:
      if (e.constant.i < 0) return std::nullopt;
      return static_cast<uint8_t>(std::bit_width(static_cast<uint64_t>(e.constant.i)));
    case ExprKind::Size:
      return kLengthBits;
    case ExprKind::Check:
      return larger(of(1), of(2));
    case ExprKind::Project: {
      if (e.operands[0]->kind != ExprKind::If) return std::nullopt;
      const auto& values = e.operands[0]->operands;
      return larger(bits(values[1 + e.index]), bits(values[1 + e.index + (values.size() - 1) / 2]));
    }
    case ExprKind::Op:
      switch (e.op) {
        case ScalarOp::Max:
          if (!of(0) && !of(1)) return std::nullopt;
          return larger(of(0).value_or(kMostBits), of(1).value_or(kMostBits));
        case ScalarOp::Rem:
          return of(0) ? within(std::min(*of(0), of(1).value_or(kMostBits))) : std::nullopt;
        case ScalarOp::Add:
          return of(0) && of(1) ? within(std::max(*of(0), *of(1)) + 1) : std::nullopt;
        case ScalarOp::Mul:
          return of(0) && of(1) ? within(*of(0) + *of(1)) : std::nullopt;
        case ScalarOp::Min:
          return of(0) && of(1) ? within(std::min(*of(0), *of(1))) : std::nullopt;
        case ScalarOp::Div:
          return of(0) && of(1) ? within(*of(0)) : std::nullopt;
        default:
          return std::nullopt;
      }
    default:
      return std::nullopt;
  }
}

}  // namespace

struct ExprArena::Impl {
  std::deque<Expr> nodes;
  /// Loops and recursions with their variables named by how deep such nodes nest below them, keys of `table`
  /// only: those that differ in the id alone have the same one.
  std::deque<Expr> aliases;
  std::unordered_map<const Expr*, ExprRef, HashNode, SameNode> table;
  std::vector<uint32_t> loopDepth;  ///< by loop id; 0: not made yet, 1: without loops inside
  bool inOrder = false;             ///< of rewriteInOrder
  bool inside = false;              ///< of rewriteInOrderInside

  /// Nodes made since there were `before` take the place of `e`, unless they have that of another one.
  void takePlace(size_t before, ExprRef e) {
    for (size_t k = before; k < nodes.size(); ++k) {
      Expr& made = nodes[k];
      if (made.order != made.id) continue;
      made.order = e->order;
      for (ExprRef operand : made.operands) made.order = std::max(made.order, operand->order);
    }
  }
  /// What `e` became may have been there already, with a place behind that of `e`, as what another loop
  /// became, of which only a check was different: it is evaluated where the first of those is that become it,
  /// with all that it needs. (Where else it is used, it comes earlier, too. Among nodes of one place ids
  /// tell, operands first.)
  void comeForward(ExprRef became, ExprRef e) {
    if (became == e) return;
    std::vector<ExprRef> work = {became};
    while (!work.empty()) {
      Expr& known = nodes[work.back()->id];
      work.pop_back();
      if (known.order <= e->order) continue;
      known.order = e->order;
      work.insert(work.end(), known.operands.begin(), known.operands.end());
    }
  }

  ExprRef find(const Expr& e) const {
    const auto at = table.find(&e);
    return at == table.end() ? nullptr : at->second;
  }
};

ExprArena::ExprArena() : impl_(std::make_unique<Impl>()) {}
ExprArena::~ExprArena() = default;

size_t ExprArena::size() const { return impl_->nodes.size(); }

ExprRef ExprArena::nonNegative(ExprRef e, uint8_t bits) {
  require(e->type == kIndex && !isMultiValued(e), "not a length");
  e->bits = e->nonNegative ? std::min(e->bits, bits) : bits;
  e->nonNegative = true;
  return e;
}

ExprRef ExprArena::elements(ExprRef segments, ExprRef length) {
  const ExprRef product = mul(segments, length);
  return segments->nonNegative && length->nonNegative ? nonNegative(product) : product;
}

ExprRef ExprArena::intern(Expr e) {
  if (ExprRef known = impl_->find(e)) return known;
  if (commutes(e) && !(e.operands[0]->canFail && e.operands[1]->canFail)) {
    std::swap(e.operands[0], e.operands[1]);
    if (ExprRef known = impl_->find(e)) return known;
    std::swap(e.operands[0], e.operands[1]);
  }
  e.canFail = e.kind == ExprKind::Check || e.kind == ExprKind::Recursion || e.kind == ExprKind::Call;
  e.usesParam = e.kind == ExprKind::Param;
  for (ExprRef operand : e.operands) {
    e.canFail |= operand->canFail;
    e.usesParam |= operand->usesParam;
  }
  if (const auto bits = bitsOfNonNegative(e)) {
    e.nonNegative = true;
    e.bits = *bits;
  }
  e.id = static_cast<uint32_t>(impl_->nodes.size());
  e.order = isName(e.kind) ? 0 : e.id;
  const Expr& node = impl_->nodes.emplace_back(std::move(e));
  impl_->table.emplace(&node, &node);
  return &node;
}

ExprRef ExprArena::constant(Scalar value) {
  Expr e{.kind = ExprKind::Constant, .type = value.type};
  e.constant = value;
  return intern(std::move(e));
}

ExprRef ExprArena::index(int64_t value) { return constant(Scalar::ofInt(kIndex, value)); }

ExprRef ExprArena::boolean(bool value) { return constant(Scalar::ofBool(value)); }

ExprRef ExprArena::param(uint32_t number, ScalarType type) {
  return intern({.kind = ExprKind::Param, .type = type, .index = number});
}

ExprRef ExprArena::host(VarId var, ScalarType type) {
  return intern({.kind = ExprKind::Host, .type = type, .index = var});
}

ExprRef ExprArena::load(VarId array, ScalarType element, ExprRef position) {
  require(position->type == kIndex && !isMultiValued(position), "load position is not an index");
  return intern({.kind = ExprKind::Load, .type = element, .index = array, .operands = {position}});
}

ExprRef ExprArena::size(VarId array) {
  return intern({.kind = ExprKind::Size, .type = kIndex, .index = array});
}

ExprRef ExprArena::project(ExprRef multiValued, uint32_t number, ScalarType type) {
  return intern({.kind = ExprKind::Project, .type = type, .index = number, .operands = {multiValued}});
}

ExprRef ExprArena::select(ExprRef condition, ExprRef thenValue, ExprRef elseValue) {
  return select(condition, std::vector{thenValue}, std::vector{elseValue})[0];
}

std::vector<ExprRef> ExprArena::select(ExprRef condition, std::vector<ExprRef> thenValues,
                                       std::vector<ExprRef> elseValues) {
  require(condition->type == ScalarType::Bool && !isMultiValued(condition),
          "condition of a conditional is not a bool");
  require(thenValues.size() == elseValues.size(), "branches of different numbers of values");
  const size_t count = thenValues.size();
  if (condition->kind == ExprKind::Constant) return condition->constant.isTrue() ? thenValues : elseValues;
  if (condition->kind == ExprKind::Op && condition->op == ScalarOp::Not) {
    condition = condition->operands[0];
    std::swap(thenValues, elseValues);
  }
  std::vector<ExprRef> results(count);
  std::vector<size_t> differing;
  for (size_t k = 0; k < count; ++k) {
    require(thenValues[k]->type == elseValues[k]->type, "branches of different types");
    require(!isMultiValued(thenValues[k]) && !isMultiValued(elseValues[k]), "branch value is multi-valued");
    ExprRef& a = thenValues[k] = assuming(thenValues[k], condition, true);
    ExprRef& b = elseValues[k] = assuming(elseValues[k], condition, false);
    const auto isBoolean = [](ExprRef e, bool value) {
      return e->kind == ExprKind::Constant && e->constant == Scalar::ofBool(value);
    };
    if (a == b && !condition->canFail) {
      results[k] = a;
    } else if (isBoolean(a, true) && isBoolean(b, false)) {
      results[k] = condition;
    } else if (isBoolean(a, false) && isBoolean(b, true)) {
      results[k] = negation(condition);
    } else {
      differing.push_back(k);
    }
  }
  if (differing.empty()) return results;
  Expr e{.kind = ExprKind::If, .operands = {condition}};
  for (size_t k : differing) e.operands.push_back(thenValues[k]);
  for (size_t k : differing) e.operands.push_back(elseValues[k]);
  ExprRef conditional = intern(std::move(e));
  for (uint32_t j = 0; j < differing.size(); ++j)
    results[differing[j]] = project(conditional, j, thenValues[differing[j]]->type);
  return results;
}

ExprRef ExprArena::check(ExprRef condition, ExprRef value, Scalar fallback, SiteId site, ExprRef payload0,
                         ExprRef payload1) {
  require(condition->type == ScalarType::Bool && !isMultiValued(condition),
          "condition of a check is not a bool");
  require(value->type == fallback.type && !isMultiValued(value), "fallback of a check is of another type");
  require(payload0->type == ScalarType::Int64 && payload1->type == ScalarType::Int64,
          "payload is not an int64");
  const auto mayDrop = [&](ExprRef e) { return !e->canFail || e == value; };
  if (condition->kind == ExprKind::Constant && condition->constant.isTrue() && mayDrop(payload0) &&
      mayDrop(payload1))
    return value;
  // The inner one fails first, so its site and payloads stand; the outer fallback is the one seen outside.
  if (value->kind == ExprKind::Check && value->operands[0] == condition && mayDrop(payload0) &&
      mayDrop(payload1)) {
    site = value->index;
    payload0 = value->operands[3];
    payload1 = value->operands[4];
    value = value->operands[1];
  }
  return intern({.kind = ExprKind::Check,
                 .type = value->type,
                 .index = site,
                 .operands = {condition, value, constant(fallback), payload0, payload1}});
}

uint32_t ExprArena::newLoop() {
  impl_->loopDepth.push_back(0);
  return static_cast<uint32_t>(impl_->loopDepth.size() - 1);
}

ExprRef ExprArena::loopVar(uint32_t loop, uint32_t number, ScalarType type) {
  return intern({.kind = ExprKind::LoopVar, .type = type, .index = loop, .count = number});
}

std::vector<ExprRef> ExprArena::loop(uint32_t loop, std::vector<ExprRef> initial, ExprRef condition,
                                     std::vector<ExprRef> next) {
  require(loop < impl_->loopDepth.size(), "loop id was not made by newLoop");
  require(condition->type == ScalarType::Bool && !isMultiValued(condition),
          "condition of a loop is not a bool");
  require(initial.size() == next.size(), "loop steps another number of variables");
  const auto count = static_cast<uint32_t>(initial.size());
  for (uint32_t k = 0; k < count; ++k) {
    require(initial[k]->type == next[k]->type, "loop variable changes its type");
    require(!isMultiValued(initial[k]) && !isMultiValued(next[k]), "loop variable is multi-valued");
  }
  const bool mayDropOthers =
      count == 1 || std::ranges::none_of(initial, [](ExprRef e) { return e->canFail; });
  if (condition->kind == ExprKind::Constant && !condition->constant.isTrue() && mayDropOthers) return initial;

  std::vector<ExprRef> body = {condition};
  body.insert(body.end(), next.begin(), next.end());
  ExprRef node = repeating(
      {.kind = ExprKind::Loop, .index = loop, .count = count, .operands = std::move(initial)}, body);
  std::vector<ExprRef> results;
  for (uint32_t k = 0; k < count; ++k) results.push_back(project(node, k, next[k]->type));
  return results;
}

std::vector<ExprRef> ExprArena::call(uint32_t id, std::vector<ExprRef> arguments,
                                     const std::vector<ScalarType>& types) {
  for (ExprRef argument : arguments) require(!isMultiValued(argument), "argument is multi-valued");
  ExprRef node = intern({.kind = ExprKind::Call,
                         .index = id,
                         .count = static_cast<uint32_t>(types.size()),
                         .operands = std::move(arguments)});
  std::vector<ExprRef> results;
  for (uint32_t k = 0; k < types.size(); ++k) results.push_back(project(node, k, types[k]));
  return results;
}

std::vector<ExprRef> ExprArena::recursion(uint32_t id, SiteId site, std::vector<ExprRef> arguments,
                                          const std::vector<ExprRef>& results) {
  require(id < impl_->loopDepth.size(), "recursion id was not made by newLoop");
  require(std::ranges::none_of(arguments, isMultiValued) && std::ranges::none_of(results, isMultiValued),
          "argument or result is multi-valued");
  Expr e{.kind = ExprKind::Recursion, .index = id, .count = static_cast<uint32_t>(results.size())};
  e.constant = Scalar::ofInt(kIndex, site);
  e.operands = std::move(arguments);
  ExprRef node = repeating(std::move(e), results);
  std::vector<ExprRef> values;
  for (uint32_t k = 0; k < results.size(); ++k) values.push_back(project(node, k, results[k]->type));
  return values;
}

/// The node with `body` after its operands, under its own id if that is free; or the one there is already
/// that differs in the id at most.
ExprRef ExprArena::repeating(Expr node, const std::vector<ExprRef>& body) {
  const uint32_t own = node.index;
  const auto withId = [&](uint32_t id) {
    Expr e = node;
    e.index = id;
    const auto repeated = id == own ? body : renamed(body, own, id);
    e.operands.insert(e.operands.end(), repeated.begin(), repeated.end());
    return e;
  };
  if (ExprRef known = impl_->find(withId(own))) return known;
  uint32_t depth = 1;
  forEachNode(body, [&](ExprRef n) {
    if (n->kind == ExprKind::Loop || n->kind == ExprKind::Recursion)
      depth = std::max(depth, impl_->loopDepth[n->index] + 1);
  });
  Expr alias = withId(std::numeric_limits<uint32_t>::max() - depth);
  if (ExprRef known = impl_->find(alias)) return known;
  const uint32_t id = impl_->loopDepth[own] == 0 ? own : newLoop();
  ExprRef made = intern(withId(id));
  impl_->loopDepth[id] = depth;
  impl_->table.emplace(&impl_->aliases.emplace_back(std::move(alias)), made);
  return made;
}

/// Variables and calls of `from` become those of `to`.
std::vector<ExprRef> ExprArena::renamed(const std::vector<ExprRef>& es, uint32_t from, uint32_t to) {
  const auto variable = [&](ExprRef n) {
    return n->kind == ExprKind::LoopVar && n->index == from ? loopVar(to, n->count, n->type) : nullptr;
  };
  return rewrite(es, variable, nullptr, from, to);
}

ExprRef ExprArena::rewrite(ExprRef e, const std::function<ExprRef(ExprRef)>& replace) {
  return rewrite(std::vector{e}, replace)[0];
}

std::vector<ExprRef> ExprArena::rewrite(const std::vector<ExprRef>& es,
                                        const std::function<ExprRef(ExprRef)>& replace) {
  return rewrite(es, replace, nullptr, 0, 0);
}

ExprRef ExprArena::rewriteInOrder(ExprRef e, const std::function<ExprRef(ExprRef)>& replace) {
  impl_->inOrder = true;
  const ExprRef result = rewrite(e, replace);
  impl_->inOrder = false;
  return result;
}

ExprRef ExprArena::rewriteInOrderInside(ExprRef e, const std::function<ExprRef(ExprRef)>& replace) {
  impl_->inside = true;
  const ExprRef result = rewriteInOrder(e, replace);
  impl_->inside = false;
  return result;
}

ExprRef ExprArena::rewriteUp(ExprRef e, const ReplaceAbove& replace) {
  return rewrite(
      {e}, [](ExprRef) { return nullptr; }, replace, 0, 0)[0];
}

/// Both, and calls of recursion `oldCalls` become calls of `newCalls`.
std::vector<ExprRef> ExprArena::rewrite(const std::vector<ExprRef>& es, const Replace& replace,
                                        const ReplaceAbove& above, uint32_t oldCalls, uint32_t newCalls) {
  NodeMap<ExprRef> done;                     // null: waits for its operands
  NodeMap<std::vector<ExprRef>> doneValues;  // rebuilt multi-valued nodes: their values
  NodeMap<ExprRef> replaced;                 // by something that is rewritten, too
  const auto rebuild = [&](ExprRef e) -> ExprRef {
    if (e->kind == ExprKind::Project)
      if (const auto* values = doneValues.find(e->operands[0])) return (*values)[e->index];
    const auto isUnchanged = [&](ExprRef operand) { return *done.find(operand) == operand; };
    const bool otherCall = e->kind == ExprKind::Call && e->index == oldCalls && oldCalls != newCalls;
    const bool unchanged = !otherCall && std::ranges::all_of(e->operands, isUnchanged);
    if (unchanged && !above) return e;
    std::vector<ExprRef> operands;
    operands.reserve(e->operands.size());
    for (ExprRef operand : e->operands) operands.push_back(*done.find(operand));
    if (above && !isMultiValued(e))
      if (const ExprRef other = above(e, operands)) return other;
    if (unchanged) return e;
    const auto part = [&](size_t from, size_t count) {
      const auto begin = operands.begin() + static_cast<ptrdiff_t>(from);
      return std::vector<ExprRef>(begin, begin + static_cast<ptrdiff_t>(count));
    };
    switch (e->kind) {
      case ExprKind::Load:
        return load(e->index, e->type, operands[0]);
      case ExprKind::Op:
        return op(e->op, operands[0], operands.size() == 2 ? operands[1] : nullptr);
      case ExprKind::Convert:
        return convert(operands[0], e->type);
      case ExprKind::Check:
        return check(operands[0], operands[1], operands[2]->constant, e->index, operands[3], operands[4]);
      case ExprKind::Project:
        return project(operands[0], e->index, e->type);
      case ExprKind::If: {
        const uint32_t k = valueCount(e);
        doneValues.insert(e, select(operands[0], part(1, k), part(1 + k, k)));
        return e;
      }
      case ExprKind::Loop:
        doneValues.insert(
            e, loop(e->index, part(0, e->count), operands[e->count], part(e->count + 1, e->count)));
        return e;
      case ExprKind::Recursion: {
        const size_t arguments = e->operands.size() - e->count;
        doneValues.insert(e, recursion(e->index, static_cast<SiteId>(e->constant.i), part(0, arguments),
                                       part(arguments, e->count)));
        return e;
      }
      case ExprKind::Call: {
        Expr other{.kind = ExprKind::Call, .index = otherCall ? newCalls : e->index, .count = e->count};
        other.operands = std::move(operands);
        return intern(std::move(other));
      }
      default:
        return e;
    }
  };

  std::vector<ExprRef> work(es.rbegin(), es.rend());
  while (!work.empty()) {
    ExprRef e = work.back();
    if (ExprRef* result = done.find(e)) {
      work.pop_back();
      if (const ExprRef* other = replaced.find(e); other && !*result) {
        *result = *done.find(*other);
      } else if (!*result) {
        const size_t before = impl_->nodes.size();
        ExprRef rebuilt = rebuild(e);
        if (impl_->inOrder) {
          impl_->takePlace(before, e);
          impl_->comeForward(rebuilt, e);
          if (const auto* values = doneValues.find(e))
            for (ExprRef value : *values) impl_->comeForward(value, e);
        }
        *done.find(e) = rebuilt;
      }
      continue;
    }
    ExprRef replacement = replace(e);
    if (replacement && impl_->inside) {
      replaced.insert(e, replacement);
      done.insert(e, nullptr);
      if (!done.contains(replacement)) work.push_back(replacement);
      continue;
    }
    done.insert(e, replacement);
    if (replacement) {
      work.pop_back();
      continue;
    }
    for (size_t k = e->operands.size(); k-- > 0;)
      if (!done.contains(e->operands[k])) work.push_back(e->operands[k]);
  }
  std::vector<ExprRef> results;
  results.reserve(es.size());
  for (ExprRef e : es) results.push_back(*done.find(e));
  return results;
}

std::vector<ExprRef> ExprArena::substituteParams(const std::vector<ExprRef>& es,
                                                 const std::vector<ExprRef>& arguments) {
  return rewrite(es, [&](ExprRef e) -> ExprRef {
    if (!e->usesParam) return e;
    return e->kind == ExprKind::Param && e->index < arguments.size() ? arguments[e->index] : nullptr;
  });
}

std::optional<int64_t> asIndex(ExprRef e) {
  if (e->kind != ExprKind::Constant || e->type != kIndex) return std::nullopt;
  return e->constant.i;
}

bool anyNode(const std::vector<ExprRef>& roots, const std::function<bool(ExprRef)>& predicate) {
  // Each node is pushed once as unseen; it comes up again, seen, when its operands are finished.
  NodeMap<bool> finished;
  std::vector<ExprRef> work(roots.rbegin(), roots.rend());
  while (!work.empty()) {
    ExprRef e = work.back();
    if (finished.insert(e, false)) {
      for (size_t k = e->operands.size(); k-- > 0;)
        if (!finished.contains(e->operands[k])) work.push_back(e->operands[k]);
      continue;
    }
    work.pop_back();
    bool& isFinished = *finished.find(e);
    if (isFinished) continue;
    isFinished = true;
    if (predicate(e)) return true;
  }
  return false;
}

void forEachNode(const std::vector<ExprRef>& roots, const std::function<void(ExprRef)>& visit) {
  anyNode(roots, [&](ExprRef e) {
    visit(e);
    return false;
  });
}

}  // namespace kelpie::lcu
