#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ir/lcu.h"
#include "ir/lcu_names.h"

namespace kelpie::lcu {
namespace {

/// What a variable must be, as far as a rule asks.
struct Expected {
  VarKind kind;
  ScalarType type;
  bool descriptor = false;  ///< offsets of a nested sequence
};

std::string_view toString(VarKind kind) {
  switch (kind) {
    case VarKind::Host:
      return "a host scalar";
    case VarKind::Cell:
      return "a cell";
    case VarKind::Array:
      return "an array";
  }
  return "";
}

/// The variables that hold a sequence's columns: offsets, then the components, nested ones likewise.
void addSequenceLayout(const CoreType& sequence, std::vector<Expected>& layout) {
  layout.push_back({VarKind::Array, kIndex, true});
  for (const CoreType& component : sequence.elements()) {
    if (component.isScalar())
      layout.push_back({VarKind::Array, component.scalar()});
    else
      addSequenceLayout(component, layout);
  }
}

std::vector<Expected> layoutOf(const std::vector<CoreType>& types) {
  std::vector<Expected> layout;
  for (const CoreType& type : types) {
    if (type.isScalar()) {
      layout.push_back({VarKind::Host, type.scalar()});
      continue;
    }
    const size_t length = layout.size();
    addSequenceLayout(type, layout);
    layout[length] = {VarKind::Host, kIndex};  // one instance: a length instead of offsets
  }
  return layout;
}

class Verifier {
 public:
  Verifier(const Program& program, bool fused) : program_(program), names_(program), fused_(fused) {}

  std::vector<std::string> run() {
    where_ = "globals";
    for (const GlobalInput& global : program_.globals) {
      for (VarId var : global.vars) declare(var);
      bind(global.vars);
      std::vector<Expected> expected = layoutOf(global.types);
      for (size_t k = 0; k < std::min(expected.size(), global.vars.size()); ++k)
        if (expected[k].descriptor && exists(global.vars[k]) &&
            program_.vars[global.vars[k]].kind == VarKind::Host)
          expected[k].kind = VarKind::Host;  // regular
      layout(global.vars, expected, "global", false);
    }
    for (const HostFunction& f : program_.functions) function(f);
    if (!program_.entry.params.empty()) report("the entry has parameters");
    function(program_.entry);
    layout(program_.entry.body.results, layoutOf(program_.resultTypes), "result of the entry", true);
    return std::move(violations_);
  }

 private:
  void report(const std::string& message) { violations_.push_back(where_ + ": " + message); }

  // ---- variables
  // --------------------------------------------------------------------------------------------

  bool exists(VarId var) const { return var > 0 && var < program_.vars.size(); }

  /// Before `bind`: the variable is bound nowhere else.
  void declare(VarId var) {
    if (!exists(var)) return report(fmt::format("variable {} does not exist", var));
    if (!bound_.insert(var).second) report(fmt::format("{} is bound twice", names_.var(var)));
  }

  /// Variables bound together; the extent of an array may use the others of the group.
  void bind(const std::vector<VarId>& vars) {
    for (VarId var : vars) {
      scope_.insert(var);
      trail_.push_back(var);
    }
    for (VarId var : vars) {
      if (!exists(var) || program_.vars[var].kind != VarKind::Array) continue;
      hostExpr(program_.vars[var].extent, kIndex, "extent of " + names_.var(var));
    }
  }

  void leave(size_t mark) {
    for (; trail_.size() > mark; trail_.pop_back()) scope_.erase(trail_.back());
  }

  bool visible(VarId var, const std::string& what) {
    if (exists(var) && scope_.contains(var)) return true;
    report(fmt::format("{} uses {} outside its scope", what, names_.var(var)));
    return false;
  }

  void expect(VarId var, Expected expected, const std::string& what) {
    if (!exists(var)) return;
    const VarInfo& info = program_.vars[var];
    if (info.kind != expected.kind || info.type != expected.type)
      report(fmt::format("{}: {} is {} of {} where {} of {} is due", what, names_.var(var),
                         toString(info.kind), kelpie::toString(info.type), toString(expected.kind),
                         kelpie::toString(expected.type)));
  }

  void same(const std::vector<VarId>& from, const std::vector<VarId>& to, const std::string& what) {
    if (from.size() != to.size())
      return report(fmt::format("{}: {} values for {} variables", what, from.size(), to.size()));
    for (size_t k = 0; k < from.size(); ++k)
      if (exists(to[k])) expect(from[k], {program_.vars[to[k]].kind, program_.vars[to[k]].type}, what);
  }

  void layout(const std::vector<VarId>& vars, const std::vector<Expected>& expected, const std::string& what,
              bool cellsMayStayOnDevice) {
    if (vars.size() != expected.size())
      return report(
          fmt::format("{}: {} variables where the types need {}", what, vars.size(), expected.size()));
    for (size_t k = 0; k < vars.size(); ++k) {
      const bool isCell = exists(vars[k]) && program_.vars[vars[k]].kind == VarKind::Cell;
      const bool takesCell = cellsMayStayOnDevice && expected[k].kind == VarKind::Host && isCell;
      expect(vars[k], {takesCell ? VarKind::Cell : expected[k].kind, expected[k].type}, what);
    }
  }

  // ---- expressions
  // ------------------------------------------------------------------------------------------

  /// `params` are the types of the Params that may occur.
  void exprs(const std::vector<ExprRef>& es, const std::vector<ScalarType>& params, const std::string& what) {
    if (std::find(es.begin(), es.end(), nullptr) != es.end()) return report(what + " is missing");
    std::unordered_map<uint32_t, ExprRef> loops;
    forEachNode(es, [&](ExprRef e) {
      if (e->kind == ExprKind::Loop || e->kind == ExprKind::Recursion) loops[e->index] = e;
      node(*e, params, what);
    });
    loopVariables(es, loops, what);
    for (ExprRef e : es)
      if (isMultiValued(e)) report(what + " is multi-valued");
  }

  void node(const Expr& e, const std::vector<ScalarType>& params, const std::string& what) {
    switch (e.kind) {
      case ExprKind::Param:
        if (e.index >= params.size())
          report(fmt::format("{} uses parameter {} of {}", what, e.index, params.size()));
        else if (params[e.index] != e.type)
          report(fmt::format("{}: parameter {} is used as {}", what, e.index, kelpie::toString(e.type)));
        return;
      case ExprKind::Host:
        if (visible(e.index, what))
          expect(e.index,
                 {program_.vars[e.index].kind == VarKind::Cell ? VarKind::Cell : VarKind::Host, e.type},
                 what);
        return;
      case ExprKind::Load:
        if (visible(e.index, what)) expect(e.index, {VarKind::Array, e.type}, what);
        return;
      case ExprKind::Size:
        if (visible(e.index, what)) expect(e.index, {VarKind::Array, program_.vars[e.index].type}, what);
        return;
      case ExprKind::Check:
        if (e.index >= std::max<size_t>(program_.sites.size(), 1))
          report(fmt::format("{}: error site {} does not exist", what, e.index));
        return;
      case ExprKind::Recursion:
        if (e.constant.i < 0 ||
            e.constant.i >= static_cast<int64_t>(std::max<size_t>(program_.sites.size(), 1)))
          report(fmt::format("{}: error site {} does not exist", what, e.constant.i));
        return;
      default:
        return;
    }
  }

  /// Loop variables and calls belong to a loop or recursion of the same thunk and are not used outside what
  /// it repeats.
  void loopVariables(const std::vector<ExprRef>& es, const std::unordered_map<uint32_t, ExprRef>& loops,
                     const std::string& what) {
    const auto isVariable = [](ExprRef e) {
      return e->kind == ExprKind::LoopVar || e->kind == ExprKind::Call;
    };
    const auto isResult = [](ExprRef e) {
      return e->kind == ExprKind::Project && e->operands[0]->kind == ExprKind::Call;
    };
    if (!anyNode(es, isVariable)) return;
    forEachNode(es, [&](ExprRef e) {
      if (!isVariable(e) && !isResult(e)) return;
      const auto owner = loops.find(isResult(e) ? e->operands[0]->index : e->index);
      if (owner == loops.end() || !fits(*e, *owner->second))
        report(fmt::format("{}: a variable or call of loop {} has no such loop", what, e->index));
    });
    std::unordered_set<ExprRef> seen;
    std::vector<ExprRef> work = es;
    while (!work.empty()) {
      ExprRef e = work.back();
      work.pop_back();
      if (!seen.insert(e).second) continue;
      if (isVariable(e))
        report(fmt::format("{} uses a variable or call of loop {} outside the loop", what, e->index));
      work.insert(work.end(), e->operands.begin(),
                  e->operands.begin() + static_cast<ptrdiff_t>(outerOperands(e)));
    }
  }

  /// A variable, a call or the result of a call agrees with the loop or recursion it names.
  static bool fits(const Expr& e, const Expr& owner) {
    const size_t variables = owner.kind == ExprKind::Loop ? owner.count : outerOperands(&owner);
    if (e.kind == ExprKind::LoopVar) return e.count < variables && owner.operands[e.count]->type == e.type;
    if (owner.kind != ExprKind::Recursion) return false;
    if (e.kind == ExprKind::Project)
      return e.index < owner.count && owner.operands[variables + e.index]->type == e.type;
    if (e.count != owner.count || e.operands.size() != variables) return false;
    for (size_t k = 0; k < variables; ++k)
      if (e.operands[k]->type != owner.operands[k]->type) return false;
    return true;
  }

  void hostExpr(ExprRef e, ScalarType type, const std::string& what) {
    exprs({e}, {}, what);
    if (e && e->type != type) report(what + " is not of type " + std::string(kelpie::toString(type)));
  }

  // ---- host level
  // -------------------------------------------------------------------------------------------

  void function(const HostFunction& f) {
    where_ = f.name;
    const size_t mark = trail_.size();
    for (VarId var : f.params) {
      declare(var);
      if (exists(var) && program_.vars[var].kind == VarKind::Cell)
        report(names_.var(var) + ": a parameter is a cell");
    }
    bind(f.params);
    block(f.body);
    leave(mark);
  }

  /// Leaves the variables of the block out of scope again.
  void block(const Block& block) {
    const size_t mark = trail_.size();
    for (const Stmt& stmt : block.stmts) statement(stmt);
    for (VarId var : block.results) visible(var, "result of a block");
    leave(mark);
  }

  void statement(const Stmt& stmt) {
    const auto visibleAll = [&](const std::vector<VarId>& vars, const std::string& what) {
      for (VarId var : vars) visible(var, what);
    };
    if (const auto* launch = std::get_if<Launch>(&stmt.node)) {
      if (stmt.results != launch->kernel.returns)
        report("kernel " + launch->kernel.name + ": results are not its returns");
      return kernel(launch->kernel);
    }
    if (const auto* let = std::get_if<HostLet>(&stmt.node)) {
      if (let->values.size() != stmt.results.size())
        report("host let: another number of values than results");
      exprs(let->values, {}, "host let");
      for (size_t k = 0; k < std::min(let->values.size(), stmt.results.size()); ++k)
        if (let->values[k]) expect(stmt.results[k], {VarKind::Host, let->values[k]->type}, "host let");
    } else if (const auto* call = std::get_if<CallFunction>(&stmt.node)) {
      visibleAll(call->arguments, "call");
      if (call->function >= program_.functions.size()) return report("call of an unknown function");
      const HostFunction& callee = program_.functions[call->function];
      same(call->arguments, callee.params, "argument of " + callee.name);
      same(callee.body.results, stmt.results, "result of " + callee.name);
    } else if (const auto* conditional = std::get_if<HostIf>(&stmt.node)) {
      hostExpr(conditional->condition, ScalarType::Bool, "condition");
      for (const auto& branch : {conditional->thenBlock, conditional->elseBlock}) {
        block(*branch);
        same(branch->results, stmt.results, "branch");
      }
    } else if (const auto* loop = std::get_if<HostLoop>(&stmt.node)) {
      visibleAll(loop->initial, "loop");
      hostLoop(*loop, stmt.results);
    } else if (const auto* constant = std::get_if<ArrayConstant>(&stmt.node)) {
      if (constant->columns.size() != stmt.results.size())
        report("constant: another number of columns than results");
      for (size_t k = 0; k < std::min(constant->columns.size(), stmt.results.size()); ++k) {
        if (constant->columns[k].type.isScalar())
          expect(stmt.results[k], {VarKind::Array, constant->columns[k].type.scalar()}, "constant");
        else
          report("constant: a column is not of scalars");
      }
    } else if (const auto* join = std::get_if<Join>(&stmt.node)) {
      visibleAll(join->arrays, "join");
      if (join->arrays.empty() || !exists(join->arrays[0])) return report("join: no arrays");
      const Expected array = {VarKind::Array, program_.vars[join->arrays[0]].type};
      layout(join->arrays, std::vector<Expected>(join->arrays.size(), array), "join", false);
      std::vector<Expected> results(join->arrays.size() + 1, {VarKind::Host, kIndex});
      results[0] = array;
      layout(stmt.results, results, "join", false);
    } else if (const auto* grade = std::get_if<Grade>(&stmt.node)) {
      visible(grade->keys, "grade");
      if (exists(grade->keys))
        expect(grade->keys, {VarKind::Array, program_.vars[grade->keys].type}, "grade");
      space(grade->space, "grade");
      std::vector<Expected> results;
      if (grade->order) results.push_back({VarKind::Array, kIndex});
      if (grade->sorted && exists(grade->keys))
        results.push_back({VarKind::Array, program_.vars[grade->keys].type});
      if (grade->sorted && isFloat(results.back().type)) report("grade: sorted keys are floats");
      if (grade->ranks) results.push_back({VarKind::Array, kIndex});
      layout(stmt.results, results, "grade", false);
      if (!grade->order && !grade->sorted && !grade->ranks) report("grade: no results");
    } else if (const auto* service = std::get_if<Service>(&stmt.node)) {
      visibleAll(service->arguments, "service " + service->name);
      layout(service->arguments, layoutOf(service->argumentTypes), "argument of service " + service->name,
             false);
      layout(stmt.results, layoutOf(service->resultTypes), "result of service " + service->name, false);
      if (service->site >= std::max<size_t>(program_.sites.size(), 1))
        report("service: error site does not exist");
    }
    for (VarId var : stmt.results) declare(var);
    bind(stmt.results);
  }

  void hostLoop(const HostLoop& loop, const std::vector<VarId>& results) {
    const size_t mark = trail_.size();
    same(loop.initial, loop.params, "start of a loop");
    for (VarId var : loop.params) declare(var);
    bind(loop.params);
    block(*loop.condition);
    layout(loop.condition->results, {{VarKind::Host, ScalarType::Bool}}, "condition of a loop", false);
    block(*loop.body);
    same(loop.body->results, loop.params, "step of a loop");
    same(loop.params, results, "end of a loop");
    leave(mark);
  }

  // ---- kernels
  // ----------------------------------------------------------------------------------------------

  void space(const Space& space, const std::string& what) {
    hostExpr(space.extent, kIndex, what + ": extent of the space");
    if (!space.segmented()) return;
    hostExpr(space.segments, kIndex, what + ": segments of the space");
    if (space.kind == SpaceKind::Regular) hostExpr(space.length, kIndex, what + ": length of segments");
    if (space.kind == SpaceKind::Offsets && visible(space.offsets, what))
      expect(space.offsets, {VarKind::Array, kIndex}, what + ": offsets");
  }

  std::vector<Expected> resultsOf(const Soac& soac) const {
    std::vector<Expected> results;
    const bool segmented = soac.space.segmented();
    const bool counts = soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition;
    if (counts) results.push_back({segmented ? VarKind::Array : VarKind::Cell, kIndex});
    const bool cells = soac.kind == SoacKind::Once || (soac.kind == SoacKind::Reduce && !segmented);
    for (int copy = 0; copy < (soac.kind == SoacKind::Partition ? 2 : 1); ++copy)
      for (ExprRef e : soac.pull)
        results.push_back({cells ? VarKind::Cell : VarKind::Array, e ? e->type : kIndex});
    return results;
  }

  void combine(const Soac& soac, const std::string& what) {
    const size_t k = soac.pull.size();
    const Operator& op = soac.combine;
    if (op.identity.size() != k || op.result.size() != k)
      return report(what + ": operator of another width than the thunk");
    std::vector<ScalarType> params;
    for (int side = 0; side < 2; ++side)
      for (const Scalar& identity : op.identity) params.push_back(identity.type);
    exprs(op.result, params, what + ": operator");
    for (size_t j = 0; j < k; ++j)
      if (op.result[j] && soac.pull[j] &&
          (op.result[j]->type != params[j] || soac.pull[j]->type != params[j]))
        report(what + ": operator, identity and thunk differ in type");
  }

  void where(const Soac& soac, const std::vector<ScalarType>& params, const std::string& what) {
    exprs({soac.where}, params, what + ": where");
    if (soac.where && soac.where->type != ScalarType::Bool) report(what + ": where is not a bool");
  }

  void permute(const Soac& soac, const std::vector<ScalarType>& params, const std::string& what) {
    exprs({soac.destination}, params, what + ": destination");
    if (soac.destination && soac.destination->type != kIndex) report(what + ": destination is not an index");
    hostExpr(soac.target, kIndex, what + ": target");
    if (soac.where) where(soac, params, what);
    if (!soac.fill.empty() && !soac.onto.empty()) report(what + ": both a fill and arrays to write onto");
    if (!soac.fill.empty() && soac.fill.size() != soac.pull.size())
      return report(what + ": fill of another width than the thunk");
    for (size_t j = 0; j < soac.fill.size(); ++j)
      if (soac.pull[j] && soac.fill[j].type != soac.pull[j]->type)
        report(what + ": fill differs in type from the thunk");
    if (!soac.onto.empty() && soac.onto.size() != soac.pull.size())
      return report(what + ": writes onto another number of arrays than the thunk has values");
    for (size_t j = 0; j < soac.onto.size(); ++j)
      if (soac.pull[j] && visible(soac.onto[j], what))
        expect(soac.onto[j], {VarKind::Array, soac.pull[j]->type}, what + ": onto");
    const bool isWriter = soac.pull.size() == 1 && soac.pull[0] && soac.pull[0]->kind == ExprKind::Param &&
                          soac.pull[0]->index == 0;
    if (!soac.writesInAnyOrder() && !isWriter)
      report(what + ": destinations may collide, so it must pull exactly its index");
  }

  void soac(const Soac& soac, const std::string& what) {
    std::vector<ScalarType> params;
    if (soac.kind != SoacKind::Once) {
      space(soac.space, what);
      params.assign(soac.space.segmented() ? 3 : 1, kIndex);
    }
    exprs(soac.pull, params, what + ": thunk");
    exprs(soac.effects, params, what + ": effects");
    const bool needsValues =
        soac.kind == SoacKind::Reduce || soac.kind == SoacKind::Scan || soac.kind == SoacKind::Permute;
    if (soac.pull.empty() && needsValues) report(what + ": thunk without values");
    if (soac.kind == SoacKind::Reduce || soac.kind == SoacKind::Scan) combine(soac, what);
    if (soac.kind == SoacKind::Permute) permute(soac, params, what);
    if (soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition) where(soac, params, what);
    if (soac.kind == SoacKind::Partition && soac.space.segmented())
      report(what + ": only flat spaces are partitioned");
    if (soac.kind == SoacKind::Scan && soac.withTotal && soac.space.segmented())
      report(what + ": only flat scans have a total");
    layout(soac.results, resultsOf(soac), what + ": result", false);
  }

  void kernel(const Kernel& kernel) {
    const std::string outside = where_;
    where_ += fmt::format(", kernel {}", kernel.name);
    if (kernel.bindings.empty()) report("no bindings");
    if (!fused_ && kernel.bindings.size() > 1) report("several bindings before fusion");
    const size_t mark = trail_.size();
    std::unordered_set<VarId> made;
    for (const Soac& binding : kernel.bindings) {
      const std::string what = fmt::format("{} {}", toString(binding.kind),
                                           binding.results.empty() ? "" : names_.var(binding.results[0]));
      soac(binding, what);
      for (VarId var : binding.results) declare(var);
      bind(binding.results);
      made.insert(binding.results.begin(), binding.results.end());
    }
    if (fused_) cluster(kernel);
    for (VarId var : kernel.returns)
      if (!made.contains(var)) report(names_.var(var) + " is returned but not made by the kernel");
    // The others are never stored: nothing outside may mention them.
    leave(mark);
    for (VarId var : kernel.returns) {
      scope_.insert(var);
      trail_.push_back(var);
    }
    where_ = outside;
  }

  /// The rules for several bindings of one kernel (see Kernel in ir/lcu.h).
  void cluster(const Kernel& kernel) {
    const Space* segmented = nullptr;
    for (const Soac& binding : kernel.bindings) {
      if (binding.kind == SoacKind::Once || !binding.space.segmented()) continue;
      if (segmented && !(*segmented == binding.space)) report("two different segmented spaces");
      if (!segmented) segmented = &binding.space;
    }
    ExprRef anchor = segmented ? segmented->extent : nullptr;
    for (const Soac& binding : kernel.bindings)
      if (!anchor && binding.kind != SoacKind::Once) anchor = binding.space.extent;

    std::unordered_map<VarId, const Soac*> makers;
    for (const Soac& binding : kernel.bindings) {
      const bool isMain = binding.space.segmented() || binding.space.extent == anchor;
      const bool isEpilogue = !isMain && segmented && binding.kind == SoacKind::Map &&
                              binding.space.extent == segmented->segments;
      if (binding.kind != SoacKind::Once && !isMain && !isEpilogue)
        report("bindings over different elements");
      reads(binding, makers);
      // Of its own, or for an epilogue that reads it.
      if (isEpilogue && !binding.results.empty() && !reducesSegments(kernel))
        report("a map over segments of which the kernel reduces none");
      for (VarId var : binding.results) makers.emplace(var, &binding);
    }
  }

  static bool reducesSegments(const Kernel& kernel) {
    return std::any_of(kernel.bindings.begin(), kernel.bindings.end(), [](const Soac& binding) {
      return binding.kind == SoacKind::Reduce && binding.space.segmented();
    });
  }

  /// Results of the kernel's earlier bindings are read element by element only.
  void reads(const Soac& reader, const std::unordered_map<VarId, const Soac*>& makers) {
    const std::string what = fmt::format("{} {}", toString(reader.kind),
                                         reader.results.empty() ? "" : names_.var(reader.results[0]));
    for (ExprRef e : {reader.space.extent, reader.space.segments, reader.space.length, reader.target})
      if (e)
        for (VarId var : freeVars(std::vector{e}))
          if (makers.contains(var)) report(what + " takes its size from a result of the same kernel");
    if (reader.space.kind == SpaceKind::Offsets && makers.contains(reader.space.offsets))
      report(what + " takes its segments from a result of the same kernel");
    for (VarId var : reader.onto)
      if (makers.contains(var)) report(what + " writes onto a result of the same kernel");

    std::vector<ExprRef> thunks = reader.pull;
    thunks.insert(thunks.end(), reader.effects.begin(), reader.effects.end());
    thunks.insert(thunks.end(), reader.combine.result.begin(), reader.combine.result.end());
    for (ExprRef e : {reader.where, reader.destination})
      if (e) thunks.push_back(e);
    if (std::find(thunks.begin(), thunks.end(), nullptr) != thunks.end()) return;
    forEachNode(thunks, [&](ExprRef e) {
      if (e->kind != ExprKind::Host && e->kind != ExprKind::Load && e->kind != ExprKind::Size) return;
      const auto at = makers.find(e->index);
      if (at == makers.end()) return;
      if (!mayRead(reader, *e, *at->second))
        report(fmt::format("{} may not read {} of the same kernel so", what, names_.var(e->index)));
    });
  }

  static bool mayRead(const Soac& reader, const Expr& read, const Soac& maker) {
    if (read.kind == ExprKind::Size) return false;
    if (read.kind == ExprKind::Host)
      return reader.kind == SoacKind::Once &&
             (maker.kind == SoacKind::Reduce || maker.kind == SoacKind::Once);
    ExprRef position = read.operands[0];
    if (reader.kind == SoacKind::Once || position->kind != ExprKind::Param || position->index != 0)
      return false;
    if (maker.kind == SoacKind::Reduce)  // by an epilogue, per segment
      return maker.space.segmented() && !reader.space.segmented() &&
             reader.space.extent == maker.space.segments;
    const bool isPointwise = maker.kind == SoacKind::Map || maker.kind == SoacKind::Scan;
    return isPointwise && reader.space.extent == maker.space.extent;
  }

  const Program& program_;
  const Names names_;
  const bool fused_;
  std::string where_;
  std::unordered_set<VarId> bound_, scope_;
  std::vector<VarId> trail_;  ///< variables in scope, innermost last
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> verify(const Program& program, bool fused) { return Verifier(program, fused).run(); }

}  // namespace kelpie::lcu
