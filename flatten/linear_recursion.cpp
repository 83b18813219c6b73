#include "flatten/linear_recursion.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace kelpie::flatten {

using lcu::ExprArena;
using lcu::ExprKind;
using lcu::ExprRef;

namespace {

/// Calls on top of each other, about as many as stacks hold.
constexpr int64_t kDeepest = int64_t{1} << 22;

/// Of a conditional's value: its condition and the values of the branches.
struct Choice {
  ExprRef condition, yes, no;
};
std::optional<Choice> asChoice(ExprRef e) {
  if (e->kind != ExprKind::Project || e->operands[0]->kind != ExprKind::If) return std::nullopt;
  const std::vector<ExprRef>& operands = e->operands[0]->operands;
  const size_t count = (operands.size() - 1) / 2;
  return Choice{operands[0], operands[1 + e->index], operands[1 + count + e->index]};
}

bool isConstant(ExprRef e, int64_t value) {
  return e->kind == ExprKind::Constant && !isFloat(e->type) && e->constant.i == value;
}

class Rewriter {
 public:
  Rewriter(const LinearRecursion& recursion, ExprArena& arena) : recursion_(recursion), arena_(arena) {}

  std::optional<std::vector<ExprRef>> run() {
    if (!inspect()) return std::nullopt;
    // What is accumulated is evaluated on the way down; where it can fail behind the call, the way back is
    // the one that finds the first error.
    if (!failsLate())
      if (auto results = accumulate()) return results;
    if (auto results = undo()) return results;
    return accumulate();
  }

 private:
  using Values = std::vector<ExprRef>;

  bool isCall(ExprRef e) const { return e->kind == ExprKind::Call && e->index == recursion_.id; }
  bool isVariable(ExprRef e) const { return e->kind == ExprKind::LoopVar && e->index == recursion_.id; }
  bool isResult(ExprRef e, size_t number) const {
    return e->kind == ExprKind::Project && isCall(e->operands[0]) && e->index == number;
  }
  bool calls(ExprRef e) const { return calling_.contains(e); }

  /// What calls, and what changes from call to call. False: calls stand in each other, in loops or in other
  /// recursions.
  bool inspect() {
    bool simple = true;
    lcu::forEachNode(recursion_.results, [&](ExprRef e) {
      const auto among = [&](const std::unordered_set<ExprRef>& set) {
        return std::any_of(e->operands.begin(), e->operands.end(),
                           [&](ExprRef x) { return set.contains(x); });
      };
      if (among(calling_)) simple = simple && !lcu::isUnbounded(e);
      if (isCall(e) || among(calling_)) calling_.insert(e);
      if (isVariable(e) || isCall(e) || among(changing_)) changing_.insert(e);
      if (isCall(e)) calls_.push_back(e);
    });
    return simple && !calls_.empty();
  }

  /// Whether `e`, which does not call, is evaluated before calls are, as the program has them. (Operands are
  /// made from left to right.)
  bool isEarly(ExprRef e) const {
    return std::all_of(calls_.begin(), calls_.end(), [e](ExprRef call) { return e->id < call->id; });
  }
  bool failsLate() const {
    return lcu::anyNode(recursion_.results, [&](ExprRef e) {
      return calls(e) && std::any_of(e->operands.begin(), e->operands.end(),
                                     [&](ExprRef x) { return x->canFail && !calls(x) && !isEarly(x); });
    });
  }

  /// Evaluates what of `e` can fail before it calls; always false.
  ExprRef checksBefore(ExprRef e) {
    const ExprRef nothing = arena_.boolean(false);
    if (isCall(e)) return nothing;
    if (!calls(e)) {
      if (!e->canFail || !isEarly(e) || lcu::isMultiValued(e)) return nothing;
      const ExprRef any = e->type == ScalarType::Bool
                              ? e
                              : arena_.op(ScalarOp::NotEqual, e, arena_.constant(Scalar::zero(e->type)));
      return arena_.op(ScalarOp::And, any, nothing);
    }
    const auto known = checks_.find(e);
    if (known != checks_.end()) return known->second;
    ExprRef result = nothing;
    if (const auto choice = asChoice(e)) {
      result = checksBefore(choice->condition);
      if (!calls(choice->condition))
        result = either(
            result, arena_.select(choice->condition, checksBefore(choice->yes), checksBefore(choice->no)));
    } else {
      for (ExprRef operand : e->operands) result = either(result, checksBefore(operand));
    }
    return checks_[e] = result;
  }

  /// Whether evaluating `e` calls; null: that cannot be told before.
  ExprRef reached(ExprRef e) {
    if (!calls(e)) return arena_.boolean(false);
    const auto known = reached_.find(e);
    if (known != reached_.end()) return known->second;
    ExprRef result = arena_.boolean(false);
    if (isCall(e)) {
      result = arena_.boolean(true);
    } else if (const auto choice = asChoice(e)) {
      if (calls(choice->condition)) {
        const ExprRef before = reached(choice->condition);
        result = before && isConstant(before, 1) ? before : nullptr;
      } else {
        const ExprRef yes = reached(choice->yes), no = reached(choice->no);
        result = yes && no ? arena_.select(choice->condition, yes, no) : nullptr;
      }
    } else {
      for (ExprRef operand : e->operands) {
        const ExprRef there = reached(operand);
        result = result && there ? either(result, there) : nullptr;
      }
    }
    return reached_[e] = result;
  }
  ExprRef either(ExprRef a, ExprRef b) { return a == b ? a : arena_.select(a, arena_.boolean(true), b); }

  /// `es` with these in place of the parameters, and of the results of calls where they are given.
  Values with(const Values& es, const Values& parameters, const Values& results = {}) {
    return arena_.rewrite(es, [&](ExprRef e) -> ExprRef {
      if (isVariable(e)) return parameters[e->count];
      if (!results.empty() && e->kind == ExprKind::Project && isCall(e->operands[0]))
        return results[e->index];
      return nullptr;
    });
  }
  /// The results for parameters with which the function does not call itself.
  Values last(const Values& parameters) {
    Values values, zeros;
    for (ExprRef result : recursion_.results) {
      values.push_back(returning(result));
      zeros.push_back(arena_.constant(Scalar::zero(result->type)));
    }
    return with(values, parameters, zeros);
  }
  /// What is chosen if nothing calls.
  ExprRef returning(ExprRef e) {
    const auto choice = asChoice(e);
    if (!choice || !calls(e) || calls(choice->condition)) return e;
    if (isConstant(reached(choice->yes), 1)) return returning(choice->no);
    if (isConstant(reached(choice->no), 1)) return returning(choice->yes);
    const auto known = returning_.find(e);
    if (known != returning_.end()) return known->second;
    return returning_[e] = arena_.select(choice->condition, returning(choice->yes), returning(choice->no));
  }

  /// Variables of a loop and what they begin with.
  struct Loop {
    uint32_t id;
    Values initial;
  };
  ExprRef variable(Loop& loop, ExprRef initial) {
    loop.initial.push_back(initial);
    return arena_.loopVar(loop.id, static_cast<uint32_t>(loop.initial.size() - 1), initial->type);
  }
  ExprRef deeper(ExprRef depth) {
    return arena_.check(arena_.op(ScalarOp::Less, depth, arena_.index(kDeepest)),
                        arena_.add(depth, arena_.index(1)), Scalar::ofInt(lcu::kIndex, 0), recursion_.tooDeep,
                        arena_.index(0), arena_.index(0));
  }

  /// Whether the loop that has counted runs, with its checks, whenever the results are evaluated: they may be
  /// known without it.
  static bool runsFor(ExprRef counted, const Values& results) {
    if (counted->kind != ExprKind::Project) return true;  // it has no turns
    std::vector<ExprRef> work = results;
    std::unordered_set<ExprRef> evaluated;
    while (!work.empty()) {
      const ExprRef e = work.back();
      work.pop_back();
      if (e == counted->operands[0]) return true;
      if (!evaluated.insert(e).second) continue;
      for (size_t k = 0; k < lcu::strictOperands(e); ++k) work.push_back(e->operands[k]);
    }
    return false;
  }

  // ---- accumulation ----

  /// What becomes of a result of the call.
  enum class Pending : uint8_t { Nothing, Linear, Greatest, Least, Logical };

  /// In a turn in which the function calls itself: what is chosen if the others do not.
  ExprRef calling(ExprRef e) const {
    while (const auto choice = asChoice(e)) {
      if (calls(choice->condition) || calls(choice->yes) == calls(choice->no)) break;
      e = calls(choice->yes) ? choice->yes : choice->no;
    }
    return e;
  }

  /// The arguments of the call that `e` makes; empty: there are several.
  Values next(ExprRef e) {
    const auto known = next_.find(e);
    return known != next_.end() ? known->second : next_[e] = nextAnew(e);
  }
  Values nextAnew(ExprRef e) {
    if (isCall(e)) return e->operands;
    if (const auto choice = asChoice(e)) {
      if (calls(choice->condition)) return {};
      Values yes = calls(choice->yes) ? next(choice->yes) : Values();
      Values no = calls(choice->no) ? next(choice->no) : Values();
      if (!calls(choice->no)) return yes;
      if (!calls(choice->yes)) return no;
      return yes.empty() || no.empty() ? Values() : arena_.select(choice->condition, yes, no);
    }
    Values result;
    for (ExprRef operand : e->operands) {
      if (!calls(operand)) continue;
      Values there = next(operand);
      if (there.empty() || (!result.empty() && there != result)) return {};
      result = std::move(there);
    }
    return result;
  }

  struct Linear {
    ExprRef factor, summand;
  };
  /// `e` as factor * r + summand, r being that result of the call.
  std::optional<Linear> linear(ExprRef e, size_t number) {
    const auto known = linear_.find({e, number});
    return known != linear_.end() ? known->second : linear_[{e, number}] = linearAnew(e, number);
  }
  std::optional<Linear> linearAnew(ExprRef e, size_t number) {
    const ExprRef zero = arena_.constant(Scalar::zero(e->type));
    if (!calls(e)) return Linear{zero, e};
    if (isResult(e, number)) return Linear{arena_.constant(Scalar::ofInt(e->type, 1)), zero};
    if (const auto choice = asChoice(e)) {
      if (calls(choice->condition)) return std::nullopt;
      const auto yes = linear(choice->yes, number), no = linear(choice->no, number);
      if (!yes || !no) return std::nullopt;
      return Linear{arena_.select(choice->condition, yes->factor, no->factor),
                    arena_.select(choice->condition, yes->summand, no->summand)};
    }
    if (e->kind != ExprKind::Op || e->operands[0]->type != e->type) return std::nullopt;
    Values factors, summands;
    for (ExprRef operand : e->operands) {
      const auto part = linear(operand, number);
      if (!part) return std::nullopt;
      factors.push_back(part->factor);
      summands.push_back(part->summand);
    }
    switch (e->op) {
      case ScalarOp::Add:
      case ScalarOp::Sub:
        return Linear{arena_.op(e->op, factors[0], factors[1]), arena_.op(e->op, summands[0], summands[1])};
      case ScalarOp::Negate:
        return Linear{arena_.op(e->op, factors[0]), arena_.op(e->op, summands[0])};
      case ScalarOp::Mul: {
        const size_t constant = calls(e->operands[0]) ? 1 : 0;
        if (calls(e->operands[constant])) return std::nullopt;
        const ExprRef by = e->operands[constant];
        return Linear{arena_.mul(factors[1 - constant], by), arena_.mul(summands[1 - constant], by)};
      }
      default:
        return std::nullopt;
    }
  }

  /// B if `e` is op(r, B), op being Max or Min; the neutral element if it is r.
  ExprRef extreme(ExprRef e, ScalarOp op, size_t number) {
    const auto known = extremes_.find({e, op, number});
    return known != extremes_.end() ? known->second : extremes_[{e, op, number}] = extremeAnew(e, op, number);
  }
  ExprRef extremeAnew(ExprRef e, ScalarOp op, size_t number) {
    if (isResult(e, number)) return bound(e->type, op);
    if (const auto choice = asChoice(e)) {
      if (calls(choice->condition) || !calls(choice->yes) || !calls(choice->no)) return nullptr;
      const ExprRef yes = extreme(choice->yes, op, number), no = extreme(choice->no, op, number);
      return yes && no ? arena_.select(choice->condition, yes, no) : nullptr;
    }
    if (e->kind != ExprKind::Op || e->op != op || calls(e->operands[0]) == calls(e->operands[1]))
      return nullptr;
    const size_t calling = calls(e->operands[0]) ? 0 : 1;
    const ExprRef inside = extreme(e->operands[calling], op, number);
    return inside ? arena_.op(op, inside, e->operands[1 - calling]) : nullptr;
  }
  ExprRef bound(ScalarType type, ScalarOp op) {
    const bool narrow = type == ScalarType::Int32;
    const int64_t least = narrow ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
    const int64_t most = narrow ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max();
    return arena_.constant(Scalar::ofInt(type, op == ScalarOp::Max ? least : most));
  }

  /// What is pending of one result, and its values for the parameters of the recursion.
  struct Accumulator {
    Pending pending = Pending::Nothing;
    Values own;        ///< Linear: factor and summand; Greatest, Least: the bound; Logical: of F and of T
    Values variables;  ///< the same of all turns so far; Linear: null where a turn changes nothing
  };
  std::optional<Accumulator> accumulator(size_t number) {
    const ExprRef e = calling(recursion_.results[number]);
    Accumulator result;
    if (isResult(e, number)) return result;
    if (e->type == ScalarType::Bool) {
      result.pending = Pending::Logical;
      for (const bool value : {false, true}) {
        const auto known = [&](ExprRef x) { return isResult(x, number) ? arena_.boolean(value) : nullptr; };
        const ExprRef of = arena_.rewrite(e, known);
        if (lcu::anyNode({of}, [&](ExprRef x) { return isCall(x); })) return std::nullopt;
        result.own.push_back(of);
      }
      return result;
    }
    if (!isInt(e->type)) return std::nullopt;
    for (const auto& [op, pending] :
         {std::pair{ScalarOp::Max, Pending::Greatest}, {ScalarOp::Min, Pending::Least}}) {
      if (const ExprRef found = extreme(e, op, number)) {
        result.pending = pending;
        result.own = {found};
        return result;
      }
    }
    const auto found = linear(e, number);
    if (!found) return std::nullopt;
    result.pending = Pending::Linear;
    result.own = {found->factor, found->summand};
    return result;
  }
  static ScalarOp operatorOf(Pending pending) {
    return pending == Pending::Greatest ? ScalarOp::Max : ScalarOp::Min;
  }

  void beginAccumulator(Accumulator& x, ScalarType type, Loop& loop) {
    switch (x.pending) {
      case Pending::Nothing:
        break;
      case Pending::Linear: {
        const ExprRef one = arena_.constant(Scalar::ofInt(type, 1));
        x.variables = {
            isConstant(x.own[0], 1) ? nullptr : variable(loop, one),
            isConstant(x.own[1], 0) ? nullptr : variable(loop, arena_.constant(Scalar::zero(type)))};
        break;
      }
      case Pending::Greatest:
      case Pending::Least:
        x.variables = {variable(loop, bound(type, operatorOf(x.pending)))};
        break;
      case Pending::Logical:
        for (const bool value : {false, true}) x.variables.push_back(variable(loop, arena_.boolean(value)));
        break;
    }
  }
  /// Those of the variables after a turn in which what is pending is `own`.
  Values accumulated(const Accumulator& x, const Values& own) {
    switch (x.pending) {
      case Pending::Nothing:
        break;
      case Pending::Linear: {
        Values next;
        if (x.variables[0]) next.push_back(arena_.mul(x.variables[0], own[0]));
        if (x.variables[1]) {
          const ExprRef summand = x.variables[0] ? arena_.mul(x.variables[0], own[1]) : own[1];
          next.push_back(arena_.add(x.variables[1], summand));
        }
        return next;
      }
      case Pending::Greatest:
      case Pending::Least:
        return {arena_.op(operatorOf(x.pending), x.variables[0], own[0])};
      case Pending::Logical:
        return {arena_.select(own[0], x.variables[1], x.variables[0]),
                arena_.select(own[1], x.variables[1], x.variables[0])};
    }
    return {};
  }
  /// The result of all turns, `last` being that of the last call.
  ExprRef finished(const Accumulator& x, ExprRef last) {
    switch (x.pending) {
      case Pending::Nothing:
        return last;
      case Pending::Linear: {
        const ExprRef product = x.variables[0] ? arena_.mul(x.variables[0], last) : last;
        return x.variables[1] ? arena_.add(x.variables[1], product) : product;
      }
      case Pending::Greatest:
      case Pending::Least:
        return arena_.op(operatorOf(x.pending), x.variables[0], last);
      case Pending::Logical:
        return arena_.select(last, x.variables[1], x.variables[0]);
    }
    return last;
  }

  std::optional<Values> accumulate() {
    // All results have to go on under the same condition, with the same arguments.
    ExprRef more = nullptr;
    Values arguments;
    std::vector<Accumulator> pending;
    for (size_t j = 0; j < recursion_.results.size(); ++j) {
      const ExprRef result = recursion_.results[j];
      if (!calls(result)) return std::nullopt;
      const ExprRef condition = reached(result);
      const Values passed = next(result);
      if (!condition || passed.empty() || (more && (condition != more || passed != arguments)))
        return std::nullopt;
      more = condition;
      arguments = passed;
      const auto own = accumulator(j);
      if (!own) return std::nullopt;
      pending.push_back(*own);
    }
    Loop loop{arena_.newLoop(), {}};
    const ExprRef depth = variable(loop, arena_.index(0));
    Values parameters;
    for (ExprRef argument : recursion_.arguments) parameters.push_back(variable(loop, argument));
    for (size_t j = 0; j < pending.size(); ++j)
      beginAccumulator(pending[j], recursion_.results[j]->type, loop);

    Values step = {deeper(depth)};
    for (ExprRef argument : with(arguments, parameters)) step.push_back(argument);
    for (const Accumulator& x : pending)
      for (ExprRef value : accumulated(x, with(x.own, parameters))) step.push_back(value);
    const Values after = arena_.loop(loop.id, loop.initial, with({more}, parameters)[0], step);

    const Values ends(after.begin() + 1, after.begin() + 1 + static_cast<ptrdiff_t>(parameters.size()));
    const Values base = last(ends);
    size_t place = 1 + parameters.size();
    Values results;
    for (size_t j = 0; j < pending.size(); ++j) {
      for (ExprRef& value : pending[j].variables)
        if (value) value = after[place++];
      results.push_back(finished(pending[j], base[j]));
    }
    if (!runsFor(after[0], results)) return std::nullopt;
    return results;
  }

  // ---- undoing ----

  /// Of argument k of the call: what is added to the parameter, null if nothing is; nothing: it is another.
  std::optional<ExprRef> added(size_t k, bool& subtracted) const {
    const ExprRef e = calls_[0]->operands[k];
    const auto isOwn = [&](ExprRef x) { return isVariable(x) && x->count == k; };
    if (isOwn(e)) return nullptr;
    if (e->kind != ExprKind::Op || !isInt(e->type) || (e->op != ScalarOp::Add && e->op != ScalarOp::Sub))
      return std::nullopt;
    subtracted = e->op == ScalarOp::Sub;
    const bool first = isOwn(e->operands[0]);
    if (!first && (subtracted || !isOwn(e->operands[1]))) return std::nullopt;
    const ExprRef other = e->operands[first ? 1 : 0];
    if (changing_.contains(other) || other->canFail) return std::nullopt;
    return other;
  }

  std::optional<Values> undo() {
    if (calls_.size() != 1) return std::nullopt;
    ExprRef more = arena_.boolean(false);
    for (ExprRef result : recursion_.results) {
      const ExprRef there = reached(result);
      if (!there) return std::nullopt;
      more = either(more, there);
    }
    struct Step {
      ExprRef added;
      bool subtracted = false;
    };
    std::vector<Step> steps;
    for (size_t k = 0; k < recursion_.arguments.size(); ++k) {
      Step step{};
      const auto found = added(k, step.subtracted);
      if (!found) return std::nullopt;
      step.added = *found;
      steps.push_back(step);
    }
    // Values of the parameters, by those of a loop behind its counter.
    const auto parametersOf = [&](const Values& variables) {
      Values parameters = recursion_.arguments;
      size_t place = 1;
      for (size_t k = 0; k < steps.size(); ++k)
        if (steps[k].added) parameters[k] = variables[place++];
      return parameters;
    };
    const auto stepped = [&](const Values& parameters, bool back) {
      Values values = parameters;
      for (size_t k = 0; k < steps.size(); ++k) {
        if (!steps[k].added) continue;
        const bool minus = steps[k].subtracted != back;
        values[k] = arena_.op(minus ? ScalarOp::Sub : ScalarOp::Add, parameters[k], steps[k].added);
      }
      return values;
    };
    const auto begin = [&](Loop& loop, const Values& parameters) {
      Values variables(1);
      for (size_t k = 0; k < steps.size(); ++k)
        if (steps[k].added) variables.push_back(variable(loop, parameters[k]));
      return parametersOf(variables);
    };
    const auto appendChanged = [&](Values& step, const Values& parameters) {
      for (size_t k = 0; k < steps.size(); ++k)
        if (steps[k].added) step.push_back(parameters[k]);
    };

    Loop down{arena_.newLoop(), {}};
    const ExprRef depth = variable(down, arena_.index(0));
    Values parameters = begin(down, recursion_.arguments);
    ExprRef checks = arena_.boolean(false);
    for (ExprRef result : recursion_.results) checks = either(checks, checksBefore(result));
    const ExprRef checked = with({checks}, parameters)[0];
    Values step = {arena_.select(checked, depth, deeper(depth))};
    appendChanged(step, stepped(parameters, false));
    const Values deepest = arena_.loop(down.id, down.initial, with({more}, parameters)[0], step);

    const Values ends = parametersOf(deepest);
    const Values base = last(ends);
    Loop up{arena_.newLoop(), {}};
    const ExprRef left = variable(up, deepest[0]);
    parameters = stepped(begin(up, ends), true);
    Values results;
    for (ExprRef value : base) results.push_back(variable(up, value));
    step = {arena_.add(left, arena_.index(-1))};
    appendChanged(step, parameters);
    for (ExprRef value : with(recursion_.results, parameters, results)) step.push_back(value);
    const Values back =
        arena_.loop(up.id, up.initial, arena_.op(ScalarOp::Greater, left, arena_.index(0)), step);
    results.assign(back.end() - static_cast<ptrdiff_t>(results.size()), back.end());
    if (!runsFor(deepest[0], results)) return std::nullopt;
    return results;
  }

  const LinearRecursion& recursion_;
  ExprArena& arena_;
  std::unordered_set<ExprRef> calling_, changing_;
  std::vector<ExprRef> calls_;
  // What is known of expressions, which may be shared: each is looked at once.
  std::unordered_map<ExprRef, ExprRef> reached_, checks_, returning_;
  std::unordered_map<ExprRef, Values> next_;
  std::map<std::pair<ExprRef, size_t>, std::optional<Linear>> linear_;
  std::map<std::tuple<ExprRef, ScalarOp, size_t>, ExprRef> extremes_;
};

}  // namespace

std::optional<std::vector<ExprRef>> recursionAsLoops(const LinearRecursion& recursion, ExprArena& arena) {
  return Rewriter(recursion, arena).run();
}

}  // namespace kelpie::flatten
