// λcu scalar expressions: first-order code of thunks, operators and host scalars, hash-consed in an arena.
//
// Equal expressions of one arena are the same pointer, so common subexpressions share for free and symbolic
// sizes compare by pointer. Expressions form a DAG; evaluation is strict except that the branches of `If`
// the steps of `Loop` and the results of `Recursion` are evaluated only when reached. A code generator places
// each shared node once, in the innermost scope (branch, loop body, recursive function, whole thunk) that
// needs it unconditionally.
//
// Example, `{x * v[i] : (i,x) in row}` for element i of the space:
//   mul(val[%i], v[check(and(ge(col[%i],0), lt(col[%i],#v)), col[%i], 0, @3, col[%i], #v)])
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/scalar.h"

namespace kelpie::lcu {

using VarId = uint32_t;   ///< host-level variable of a Program
using SiteId = uint32_t;  ///< error site: index into Program::sites

/// All index arithmetic (positions, lengths, starts, offsets) is Int64, whatever NESL's int is.
constexpr ScalarType kIndex = ScalarType::Int64;

struct Expr;
using ExprRef = const Expr*;

enum class ExprKind : uint8_t {
  Constant,  // `constant`
  Param,     // thunk parameter number `index`. Thunks over a space: 0 = i (element), 1 = s (segment),
             // 2 = p (position in the segment), all Int64; flat spaces have only i. Operators over k-tuples:
             // 0..k-1 the left values, k..2k-1 the right ones.
  Host,      // value of host scalar or cell variable `index`
  Load,      // element operands[0] of array variable `index`; the position is always in range
  Size,      // number of elements of array variable `index`; Int64
  Op,        // `op` on operands
  Convert,   // operands[0] converted to `type`
  If,        // multi-valued: operands = condition, k then-values, k else-values. Use through Project.
  Check,     // operands = condition, value, fallback, payload0, payload1. The value when the condition holds;
             // otherwise an error is recorded for site `index` with the payloads (Int64) and the fallback,
             // a constant that keeps later code safe, is the result
  Loop,      // multi-valued: `index` is the loop's id, `count` = k variables; operands = k initial values,
             // condition, k next values; condition and next values may use LoopVar. While the condition holds
             // (and no error was recorded by this evaluation) all variables step together.
             // Project j is variable j at the end.
  Recursion,  // multi-valued: a recursive function and its first call. `index` is its id among those of
              // loops, `count` = k results; operands = n arguments, k results, which may use its LoopVars
              // (the arguments of the call at hand) and its Calls. Where the stack ends, an error is recorded
              // for the site `constant`, with payloads 0. Recursions that call each other are nested.
  Call,       // multi-valued: a call of Recursion `index`, in its results only; operands = n arguments,
              // `count` = k results. When an error was recorded by this evaluation, the results are zeros.
  LoopVar,    // variable `count` of Loop or argument `count` of Recursion `index`; in what they repeat only
  Project,    // value number `index` of operands[0], a multi-valued node
};

struct Expr {
  ExprKind kind;
  ScalarType type = ScalarType::Int64;  ///< unused for multi-valued nodes
  ScalarOp op{};
  uint32_t index = 0, count = 0;
  Scalar constant{};
  std::vector<ExprRef> operands{};
  uint32_t id = 0;         ///< order of creation in the arena: operands come before users; deterministic
  uint32_t order = 0;      ///< of evaluation (comesBefore): the id, or that of what it took the place of
  bool canFail = false;    ///< a Check is reachable
  bool usesParam = false;  ///< a Param is reachable
  /// Int64 known never to be below zero (lengths and what is made of them), so that checks of it fold.
  mutable bool nonNegative = false;
  /// ... and below 2^bits. Sums and products wrap around, so they are not negative only if it does not come
  /// to that.
  mutable uint8_t bits = 63;
};
/// No memory holds 2^48 elements. (Sequences that nothing needs but their lengths may be longer:
/// docs/limits.md.)
constexpr uint8_t kLengthBits = 48;

/// Whether schedules evaluate `a` first where both are evaluated together; operands come before users.
inline bool comesBefore(ExprRef a, ExprRef b) {
  return a->order != b->order ? a->order < b->order : a->id < b->id;
}

/// What it costs to evaluate cannot be told from its nodes.
inline bool isUnbounded(ExprRef e) {
  return e->kind == ExprKind::Loop || e->kind == ExprKind::Recursion || e->kind == ExprKind::Call;
}
inline bool isMultiValued(ExprRef e) { return e->kind == ExprKind::If || isUnbounded(e); }
/// The number of values of a multi-valued node.
inline uint32_t valueCount(ExprRef e) {
  return e->kind == ExprKind::If ? static_cast<uint32_t>(e->operands.size() - 1) / 2 : e->count;
}
/// The number of operands, from the first, that are evaluated whenever `e` is; the others are branches or are
/// repeated.
inline size_t strictOperands(ExprRef e) {
  switch (e->kind) {
    case ExprKind::If:
      return 1;
    case ExprKind::Loop:
      return e->count + 1;
    case ExprKind::Recursion:
      return e->operands.size() - e->count;
    default:
      return e->operands.size();
  }
}
/// The number of operands, from the first, in which variables and calls of `e` itself may not occur.
inline size_t outerOperands(ExprRef e) {
  if (e->kind == ExprKind::Loop) return e->count;
  return e->kind == ExprKind::Recursion ? e->operands.size() - e->count : e->operands.size();
}
/// The value of an Int64 constant; nothing for any other expression.
std::optional<int64_t> asIndex(ExprRef e);

/// Creates and owns expressions. The constructors simplify: constants fold, x+0, x*1, x*0, If of equal
/// branches or constant condition, Check of a constant true condition, x-x, ... What they promise:
///   - no Check is lost: an operand that can fail is never dropped, nor moved out of a branch or loop. (A
///   value of
///     a conditional stands for the condition and its own two branch values, not for the values beside it; a
///     value of a loop stands for the whole loop.)
///   - float results keep their bits (x+0.0 stays; x*1.0 is x), and functions that differ between targets
///     (exp, sin, ...) are not folded;
///   - no operand is evaluated where it was not before (a Load in a branch may be in range only there);
///   - each loop id belongs to one Loop or Recursion: making a second one with the id of another renames its
///     variables and calls, and those that differ in their ids only are one.
/// Operands of the wrong type or number are an InternalError.
class ExprArena {
 public:
  ExprArena();
  ~ExprArena();
  ExprArena(const ExprArena&) = delete;
  ExprArena& operator=(const ExprArena&) = delete;

  ExprRef constant(Scalar value);
  ExprRef index(int64_t value);  ///< Int64 constant
  ExprRef boolean(bool value);
  ExprRef param(uint32_t number, ScalarType type = kIndex);
  ExprRef host(VarId var, ScalarType type);
  ExprRef load(VarId array, ScalarType element, ExprRef position);
  ExprRef size(VarId array);
  ExprRef op(ScalarOp op, ExprRef a, ExprRef b = nullptr);
  ExprRef convert(ExprRef a, ScalarType to);
  /// Single-valued conditional (an If with its Project).
  ExprRef select(ExprRef condition, ExprRef thenValue, ExprRef elseValue);
  std::vector<ExprRef> select(ExprRef condition, std::vector<ExprRef> thenValues,
                              std::vector<ExprRef> elseValues);
  ExprRef check(ExprRef condition, ExprRef value, Scalar fallback, SiteId site, ExprRef payload0,
                ExprRef payload1);
  /// `e`, from now on known to be at least zero, and below 2^bits, wherever it has a value: a length, an
  /// entry of a segment descriptor.
  ExprRef nonNegative(ExprRef e, uint8_t bits = kLengthBits);
  /// The number of elements of so many segments of one length. It is a length, too: their product does not
  /// wrap around.
  ExprRef elements(ExprRef segments, ExprRef length);
  uint32_t newLoop();  ///< a fresh id of a Loop or a Recursion
  ExprRef loopVar(uint32_t loop, uint32_t number, ScalarType type);
  /// The projections of the finished loop.
  std::vector<ExprRef> loop(uint32_t loop, std::vector<ExprRef> initial, ExprRef condition,
                            std::vector<ExprRef> next);
  /// The projections of the finished recursion.
  std::vector<ExprRef> recursion(uint32_t id, SiteId site, std::vector<ExprRef> arguments,
                                 const std::vector<ExprRef>& results);
  /// Its results are of the given types.
  std::vector<ExprRef> call(uint32_t id, std::vector<ExprRef> arguments,
                            const std::vector<ScalarType>& types);

  // Shorthands on Int64 and bool.
  ExprRef add(ExprRef a, ExprRef b) { return op(ScalarOp::Add, a, b); }
  ExprRef sub(ExprRef a, ExprRef b) { return op(ScalarOp::Sub, a, b); }
  ExprRef mul(ExprRef a, ExprRef b) { return op(ScalarOp::Mul, a, b); }
  ExprRef conjunction(ExprRef a, ExprRef b) { return op(ScalarOp::And, a, b); }
  ExprRef negation(ExprRef a) { return op(ScalarOp::Not, a); }

  /// Rebuilds `e` with each node for which `replace` returns non-null replaced (operands are not visited
  /// below a replaced node). Shared nodes are visited once: linear in the size of the DAG, no recursion on
  /// the C++ stack deeper than the arena's fixed work list.
  ExprRef rewrite(ExprRef e, const std::function<ExprRef(ExprRef)>& replace);
  std::vector<ExprRef> rewrite(const std::vector<ExprRef>& es,
                               const std::function<ExprRef(ExprRef)>& replace);
  /// The same, and what is rebuilt is evaluated where the node was that it takes the place of, and not behind
  /// all that is not rebuilt: where checks may fail in front of loops, and loops in front of checks.
  ExprRef rewriteInOrder(ExprRef e, const std::function<ExprRef(ExprRef)>& replace);
  /// The same, and what takes the place of a node, which is something inside of it, is rewritten, too. If it
  /// stayed until the next time, there would be two of what others need, and twice as many each time.
  ExprRef rewriteInOrderInside(ExprRef e, const std::function<ExprRef(ExprRef)>& replace);
  /// From the operands up: `replace(node, operands)` tells what takes the place of a node with one value
  /// whose operands have become these, or null: it is rebuilt with them. So what is replaced inside of what
  /// is replaced is looked at once, where a `replace` of `rewrite` that rewrites operands would look at it
  /// each time, and twice as often with every level.
  using ReplaceAbove = std::function<ExprRef(ExprRef node, const std::vector<ExprRef>& operands)>;
  ExprRef rewriteUp(ExprRef e, const ReplaceAbove& replace);
  /// Param k becomes arguments[k]; those beyond the list stay.
  std::vector<ExprRef> substituteParams(const std::vector<ExprRef>& es,
                                        const std::vector<ExprRef>& arguments);

  size_t size() const;  ///< nodes created so far; ids are below it

 private:
  using Replace = std::function<ExprRef(ExprRef)>;
  ExprRef project(ExprRef multiValued, uint32_t number, ScalarType type);
  ExprRef intern(Expr e);
  std::vector<ExprRef> rewrite(const std::vector<ExprRef>& es, const Replace& replace,
                               const ReplaceAbove& above, uint32_t oldCalls, uint32_t newCalls);
  std::vector<ExprRef> renamed(const std::vector<ExprRef>& es, uint32_t from, uint32_t to);
  ExprRef repeating(Expr node, const std::vector<ExprRef>& body);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Calls `visit` once for each node reachable from the roots, operands before users.
void forEachNode(const std::vector<ExprRef>& roots, const std::function<void(ExprRef)>& visit);
/// Whether a node reachable from the roots satisfies the predicate; stops at the first.
bool anyNode(const std::vector<ExprRef>& roots, const std::function<bool(ExprRef)>& predicate);

}  // namespace kelpie::lcu
