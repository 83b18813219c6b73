#include "frontend/interpreter.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <deque>
#include <new>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "frontend/effects.h"
#include "frontend/instance_vector.h"
#include "frontend/interpreter_primitives.h"
#include "ir/check_messages.h"
#include "ir/deep_stack.h"
#include "ir/random_float.h"

namespace kelpie {

namespace {

struct Stop {  // thrown to leave the form
  RuntimeError error;
};

using Variables = std::unordered_map<core::VarId, InstanceVector>;

/// One activation of a function: what its scopes can see outside, and the positions of its errors.
struct Frame {
  const Variables& globals;
  bool fromLibrary = false;
  Span userSpan{};  ///< the innermost call made by user code
};

/// The variables of the active instances. Instance k of a scope is instance map[k] of its parent; values of
/// outer scopes are brought in when they are first used.
class Scope {
 public:
  Scope(const Frame& frame, int64_t instances) : frame_(frame), instances_(instances) {}
  Scope(Scope& parent, Indices map)
      : frame_(parent.frame_),
        parent_(&parent),
        map_(std::move(map)),
        instances_(static_cast<int64_t>(map_.size())) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  const Frame& frame() const { return frame_; }
  int64_t instances() const { return instances_; }

  void bind(const std::vector<core::Var>& vars, InstanceRow row) {
    for (size_t c = 0; c < vars.size(); ++c) values_.insert_or_assign(vars[c].id, std::move(row[c]));
  }

  const InstanceVector& lookUp(core::VarId id) {
    const auto found = values_.find(id);
    if (found != values_.end()) return found->second;
    if (!parent_) {
      const auto global = frame_.globals.find(id);
      if (global == frame_.globals.end()) throw InternalError(fmt::format("unbound Core variable {}", id));
      return global->second;
    }
    InstanceVector value = parent_->lookUp(id);
    if (parent_->instances_ == 1) {
      value.uniform = true;
    } else {
      value = gather(value, map_);
    }
    return values_.emplace(id, std::move(value)).first->second;
  }

 private:
  const Frame& frame_;
  Scope* parent_ = nullptr;
  Indices map_;
  int64_t instances_;
  Variables values_;
};

/// Results for some of the instances of a function body.
struct Piece {
  Indices positions;
  InstanceRow values;
};

/// Calls in tail position that wait until the rest of the body is done.
struct PendingCall {
  core::FunctionId function;
  InstanceRow arguments;
  Indices positions;
  Span userSpan;
};

struct TailState {
  std::vector<Piece> done;
  std::deque<PendingCall> pending;
};

Indices firstIndices(int64_t n) {
  Indices indices(static_cast<size_t>(n));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return indices;
}

Indices select(const Indices& values, const Indices& which) {
  Indices result;
  result.reserve(which.size());
  for (const int64_t k : which) result.push_back(values[static_cast<size_t>(k)]);
  return result;
}

InstanceRow merge(std::vector<Piece> pieces, int64_t instances) {
  if (pieces.size() == 1 && std::is_sorted(pieces[0].positions.begin(), pieces[0].positions.end())) {
    return std::move(pieces[0].values);
  }
  std::vector<InstanceRow> rows;
  Indices source(static_cast<size_t>(instances));
  int64_t next = 0;
  for (Piece& piece : pieces) {
    for (const int64_t position : piece.positions) source[static_cast<size_t>(position)] = next++;
    rows.push_back(expanded(piece.values, static_cast<int64_t>(piece.positions.size())));
  }
  return gather(concatenated(rows), source);
}

/// How far down the stack of this thread may be used, with a reserve for calls below the limit.
const char* lowestUsableStack() {
  constexpr size_t kReserve = size_t{1} << 18;
  pthread_attr_t attributes;
  void* stack = nullptr;
  size_t size = 0;
  ::pthread_getattr_np(::pthread_self(), &attributes);
  ::pthread_attr_getstack(&attributes, &stack, &size);
  ::pthread_attr_destroy(&attributes);
  return static_cast<const char*>(stack) + kReserve;
}

class Interpreter {
 public:
  Interpreter(const core::Program& program, Services& services, const InterpreterOptions& options)
      : program_(program), services_(services), options_(options), effects_(program) {}

  Columns run(const std::function<Columns(uint32_t)>& cells) {
    for (const core::Global& global : program_.globals) {
      const Columns columns = cells(global.cell);
      for (size_t c = 0; c < columns.size(); ++c) {
        InstanceVector& value = globals_[global.vars[c].id];
        value = fromColumn(columns[c]);
        value.uniform = true;
      }
    }
    const Frame frame{globals_};
    Scope scope(frame, 1);
    return instanceColumns(evaluate(*program_.entry, scope), 0);
  }

 private:
  // ---- expressions ---------------------------------------------------------------------------------------

  InstanceRow evaluate(const core::Exp& first, Scope& scope) {
    const core::Exp& exp = bindLets(first, scope);
    if (const auto* values = std::get_if<core::Values>(&exp.node)) return atoms(values->atoms, scope);
    if (const auto* prim = std::get_if<core::Prim>(&exp.node)) return primitive(exp, *prim, scope);
    if (const auto* constant = std::get_if<core::Constant>(&exp.node)) {
      InstanceRow row;
      for (const Column& column : constant->columns) {
        row.push_back(fromColumn(column));
        row.back().uniform = true;
      }
      return row;
    }
    checkProgress(exp, scope);
    if (const auto* each = std::get_if<core::Each>(&exp.node)) return applyToEach(exp, *each, scope);
    if (const auto* invariant = std::get_if<core::Invariant>(&exp.node)) {
      Scope once(scope, {0});
      InstanceRow row = evaluate(*invariant->body, once);
      for (InstanceVector& component : row) component.uniform = true;
      return row;
    }
    if (const auto* branch = std::get_if<core::If>(&exp.node)) return conditional(*branch, scope);
    const auto& call = std::get<core::Call>(exp.node);
    return complete(
        {call.function, atoms(call.arguments, scope), firstIndices(scope.instances()), userSpan(exp, scope)});
  }

  /// Evaluates the bindings in front of `exp` and yields what follows them.
  const core::Exp& bindLets(const core::Exp& exp, Scope& scope) {
    const core::Exp* rest = &exp;
    while (const auto* let = std::get_if<core::Let>(&rest->node)) {
      scope.bind(let->vars, evaluate(*let->rhs, scope));
      rest = let->body.get();
    }
    return *rest;
  }

  InstanceVector atom(const core::Atom& atom, Scope& scope) {
    return atom.isConstant() ? uniformScalar(atom.constant()) : scope.lookUp(atom.var());
  }
  InstanceRow atoms(const std::vector<core::Atom>& list, Scope& scope) {
    InstanceRow row;
    row.reserve(list.size());
    for (const core::Atom& a : list) row.push_back(atom(a, scope));
    return row;
  }

  // ---- conditionals, calls, loops
  // --------------------------------------------------------------------------

  struct Split {
    Indices whenTrue, whenFalse;
  };
  Split split(const InstanceVector& condition, int64_t instances) {
    Split result;
    for (int64_t k = 0; k < instances; ++k)
      (condition.word(k) != 0 ? result.whenTrue : result.whenFalse).push_back(k);
    return result;
  }

  InstanceRow conditional(const core::If& branch, Scope& scope) {
    Split groups = split(atom(branch.condition, scope), scope.instances());
    std::vector<Piece> pieces;
    for (auto& [side, group] :
         {std::pair{&branch.thenBranch, &groups.whenTrue}, {&branch.elseBranch, &groups.whenFalse}}) {
      if (group->empty()) continue;
      Scope inner(scope, *group);
      pieces.push_back({std::move(*group), evaluate(**side, inner)});
    }
    return merge(std::move(pieces), scope.instances());
  }

  /// Runs a call and, one after another, the calls in tail position that it leads to. Calls of one function
  /// that wait at the same time go on together.
  InstanceRow complete(PendingCall call) {
    TailState tail;
    const auto instances = static_cast<int64_t>(call.positions.size());
    tail.pending.push_back(std::move(call));
    while (!tail.pending.empty()) {
      PendingCall next = takePending(tail.pending);
      const core::Function& function = program_.functions[next.function];
      const Frame frame{globals_, function.fromLibrary, next.userSpan};
      if (!function.body) {
        throw Stop{{next.userSpan, fmt::format("{} is declared but was never defined", function.name)}};
      }
      checkInterrupt(next.userSpan);
      Scope scope(frame, static_cast<int64_t>(next.positions.size()));
      scope.bind(function.parameters, std::move(next.arguments));
      evaluateTail(*function.body, scope, std::move(next.positions), tail);
    }
    return merge(std::move(tail.done), instances);
  }

  PendingCall takePending(std::deque<PendingCall>& pending) {
    PendingCall next = std::move(pending.front());
    pending.pop_front();
    std::vector<InstanceRow> arguments;
    for (auto other = pending.begin(); other != pending.end();) {
      if (other->function != next.function) {
        ++other;
        continue;
      }
      if (arguments.empty()) {
        arguments.push_back(expanded(next.arguments, static_cast<int64_t>(next.positions.size())));
      }
      arguments.push_back(expanded(other->arguments, static_cast<int64_t>(other->positions.size())));
      next.positions.insert(next.positions.end(), other->positions.begin(), other->positions.end());
      other = pending.erase(other);
    }
    if (!arguments.empty() && !next.arguments.empty()) next.arguments = concatenated(arguments);
    return next;
  }

  /// Evaluates `first`, which ends a function body, for the instances at `positions` of the whole call.
  void evaluateTail(const core::Exp& first, Scope& scope, Indices positions, TailState& tail) {
    const core::Exp& exp = bindLets(first, scope);
    if (const auto* call = std::get_if<core::Call>(&exp.node)) {
      tail.pending.push_back(
          {call->function, atoms(call->arguments, scope), std::move(positions), userSpan(exp, scope)});
      return;
    }
    const auto* branch = std::get_if<core::If>(&exp.node);
    if (!branch) {
      tail.done.push_back({std::move(positions), evaluate(exp, scope)});
      return;
    }
    const Split groups = split(atom(branch->condition, scope), scope.instances());
    // A call that ends the then branch may wait for the else branch only if nobody can see that it did.
    const bool mayWait = !effects_.of(*branch->thenBranch) || !effects_.of(*branch->elseBranch);
    for (const auto& [side, group] : {std::pair{branch->thenBranch.get(), &groups.whenTrue},
                                      {branch->elseBranch.get(), &groups.whenFalse}}) {
      if (group->empty()) continue;
      Scope inner(scope, *group);
      Indices innerPositions = select(positions, *group);
      if (mayWait || side == branch->elseBranch.get() || groups.whenFalse.empty()) {
        evaluateTail(*side, inner, std::move(innerPositions), tail);
      } else {
        tail.done.push_back({std::move(innerPositions), evaluate(*side, inner)});
      }
    }
  }

  // ---- apply-to-each -------------------------------------------------------------------------------------

  InstanceRow applyToEach(const core::Exp& exp, const core::Each& each, Scope& scope) {
    const int64_t instances = scope.instances();
    InstanceRow sources;
    for (const core::Each::Binding& binding : each.bindings) sources.push_back(atom(binding.sequence, scope));
    Indices lengths;
    for (int64_t k = 0; k < instances; ++k) {
      lengths.push_back(sources[0].length(k));
      for (const InstanceVector& source : sources) {
        if (source.length(k) == lengths.back()) continue;
        fail(exp, scope, formatCheck(check_message::kLengths, lengths.back(), source.length(k)));
      }
    }
    const Row& row = exp.type[0].elements();
    ElementPlaces first = elementPlaces(sources[0], instances);
    const auto total = static_cast<int64_t>(first.instance.size());
    if (total == 0) {
      InstanceRow none;
      for (const CoreType& type : row) none.push_back(fromColumn(zeroColumn(type, 0)));
      return {denseSequences(row, std::move(lengths), std::move(none))};
    }
    Scope inner(scope, std::move(first.instance));
    for (size_t b = 0; b < sources.size(); ++b) {
      const InstanceVector& source = sources[b];
      inner.bind(each.bindings[b].vars,
                 b == 0 ? gather(*source.elements, first.places) : allElements(source, instances));
    }
    InstanceRow results = each.serial ? oneByOne(*each.body, inner) : evaluate(*each.body, inner);
    return {denseSequences(row, std::move(lengths), expanded(results, total))};
  }

  InstanceRow oneByOne(const core::Exp& body, Scope& scope) {
    std::vector<Piece> pieces;
    for (int64_t k = 0; k < scope.instances(); ++k) {
      Scope single(scope, {k});
      pieces.push_back({{k}, evaluate(body, single)});
    }
    return merge(std::move(pieces), scope.instances());
  }

  // ---- primitives ----------------------------------------------------------------------------------------

  InstanceRow primitive(const core::Exp& exp, const core::Prim& prim, Scope& scope) {
    const InstanceRow arguments = atoms(prim.arguments, scope);
    try {
      if (prim.op < core::PrimOp::RandomInt)
        return evaluatePrimitive(prim, arguments, scope.instances(), exp.type);
      return effect(exp, prim, arguments, scope);
    } catch (PrimitiveFailure& failure) {
      fail(exp, scope, std::move(failure.message));
    } catch (const std::bad_alloc&) {
      fail(exp, scope, "out of memory");
    } catch (const std::length_error&) {
      fail(exp, scope, "out of memory");
    }
  }

  InstanceRow effect(const core::Exp& exp, const core::Prim& prim, const InstanceRow& arguments,
                     Scope& scope) {
    using core::PrimOp;
    const int64_t instances = scope.instances();
    switch (prim.op) {
      case PrimOp::RandomInt:
        return {randomInts(exp, arguments[0], scope)};
      case PrimOp::RandomFloat:
        return {randomFloats(exp, arguments[0], scope)};
      case PrimOp::RandomSeed:
        return perInstance("random_seed", exp, arguments, scope);
      case PrimOp::Print: {
        // The texts of all instances are one text: flattened they are the elements of the argument.
        InstanceRow characters = allElements(arguments[0], instances);
        const Row& row = arguments[0].type.elements();
        Indices length = {characters[0].size()};
        const InstanceVector text = denseSequences(row, std::move(length), std::move(characters));
        return uniformResult(call("print", exp, {text}, 0, scope));
      }
      case PrimOp::Raise:
        return call("raise", exp, arguments, 0, scope);
      case PrimOp::StartTimer:
        return uniformResult(call("start_timer", exp, arguments, 0, scope));
      case PrimOp::StopTimer:
        return uniformResult(call("stop_timer", exp, arguments, 0, scope));
      case PrimOp::Extern:
        return perInstance(prim.text, exp, arguments, scope);
      default:
        fail(exp, scope, prim.text);
    }
  }

  InstanceRow call(std::string_view service, const core::Exp& exp, const InstanceRow& arguments,
                   int64_t instance, Scope& scope) {
    auto result =
        services_.call(service, instanceColumns(arguments, instance), exp.type, errorSpan(exp, scope));
    if (auto* error = std::get_if<RuntimeError>(&result)) throw Stop{std::move(*error)};
    InstanceRow row;
    for (const Column& column : std::get<Columns>(result)) row.push_back(fromColumn(column));
    return row;
  }

  static InstanceRow uniformResult(InstanceRow row) {
    for (InstanceVector& component : row) component.uniform = true;
    return row;
  }

  InstanceRow perInstance(std::string_view service, const core::Exp& exp, const InstanceRow& arguments,
                          Scope& scope) {
    std::vector<InstanceRow> rows;
    for (int64_t k = 0; k < scope.instances(); ++k) rows.push_back(call(service, exp, arguments, k, scope));
    return concatenated(rows);
  }

  /// The next raw draws of the random stream.
  InstanceVector draws(int64_t count, const core::Exp& exp, Scope& scope) {
    const Column counted =
        scalarColumn(ScalarType::Int64, std::vector<Scalar>{Scalar::ofInt(ScalarType::Int64, count)});
    auto result = services_.call("random_draws", {counted}, {CoreType::sequence({ScalarType::Int64})},
                                 errorSpan(exp, scope));
    if (auto* error = std::get_if<RuntimeError>(&result)) throw Stop{std::move(*error)};
    return fromColumn(std::get<Columns>(result)[0].elements[0]);
  }

  InstanceVector randomInts(const core::Exp& exp, const InstanceVector& bounds, Scope& scope) {
    constexpr int64_t kDrawLimit = int64_t{1} << 31;
    const int64_t instances = scope.instances();
    int64_t count = 0;
    for (int64_t k = 0; k < instances; ++k) {
      if (bounds.word(k) <= 0) fail(exp, scope, check_message::kRandom);
      count += bounds.word(k) > kDrawLimit ? 2 : 1;
    }
    const InstanceVector raw = draws(count, exp, scope);
    Indices words;
    int64_t next = 0;
    for (int64_t k = 0; k < instances; ++k) {
      const int64_t bound = bounds.word(k);
      int64_t draw = raw.word(next++);
      if (bound > kDrawLimit) draw = draw * kDrawLimit + raw.word(next++);
      words.push_back(draw % bound);
    }
    return scalarVector(bounds.type.scalar(), std::move(words));
  }

  InstanceVector randomFloats(const core::Exp& exp, const InstanceVector& bounds, Scope& scope) {
    constexpr int64_t kDrawLimit = int64_t{1} << 30;
    const int64_t instances = scope.instances();
    for (int64_t k = 0; k < instances; ++k) {
      if (!(bounds.at(k).f > 0)) fail(exp, scope, check_message::kRandom);
    }
    const InstanceVector raw = draws(instances, exp, scope);
    const ScalarType type = bounds.type.scalar();
    Indices words;
    for (int64_t k = 0; k < instances; ++k) {
      const auto draw = static_cast<double>(raw.word(k) % kDrawLimit);
      const double bound = bounds.at(k).f;
      double value = bound * (draw / static_cast<double>(kDrawLimit));
      if (type == ScalarType::Float32) value = std::min(value, bound * kBelowFloat32 - kHalfLeastFloat32);
      words.push_back(Scalar::ofFloat(type, value).i);
    }
    return scalarVector(type, std::move(words));
  }

  // ---- errors --------------------------------------------------------------------------------------------

  /// Where an error of `exp` is reported: library code answers at the user's call.
  static Span errorSpan(const core::Exp& exp, const Scope& scope) {
    const Frame& frame = scope.frame();
    return frame.fromLibrary || !exp.span.known() ? frame.userSpan : exp.span;
  }
  static Span userSpan(const core::Exp& call, const Scope& scope) { return errorSpan(call, scope); }

  [[noreturn]] static void fail(const core::Exp& exp, const Scope& scope, std::string message) {
    throw Stop{{errorSpan(exp, scope), std::move(message)}};
  }

  void checkInterrupt(Span span) const {
    if (options_.interrupted && options_.interrupted->load(std::memory_order_relaxed)) {
      throw Stop{{span, "interrupted"}};
    }
  }

  void checkProgress(const core::Exp& exp, const Scope& scope) const {
    const char here = 0;
    if (&here < lowestStack_) fail(exp, scope, check_message::kTooDeep);
    checkInterrupt(errorSpan(exp, scope));
  }

  const core::Program& program_;
  Services& services_;
  const InterpreterOptions& options_;
  const char* lowestStack_ = lowestUsableStack();
  Effects effects_;
  Variables globals_;
};

}  // namespace

std::variant<Columns, RuntimeError> interpret(const core::Program& program,
                                              const std::function<Columns(uint32_t cell)>& cells,
                                              Services& services, const InterpreterOptions& options) {
  std::variant<Columns, RuntimeError> result;
  services.beginForm();
  runOnDeepStack([&] {
    try {
      result = Interpreter(program, services, options).run(cells);
    } catch (Stop& stop) {
      result = std::move(stop.error);
    } catch (const std::bad_alloc&) {
      result = RuntimeError{program.entry->span, "out of memory"};
    }
  });
  services.endForm(std::holds_alternative<Columns>(result));
  return result;
}

}  // namespace kelpie
