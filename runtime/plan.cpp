#include "runtime/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/short_arrays.h"
#include "ir/diagnostic.h"

namespace kelpie::runtime {

using lcu::Block;
using lcu::Stmt;
using lcu::VarId;

namespace {

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

using VarSet = std::set<VarId>;

class Planner {
 public:
  explicit Planner(const lcu::Program& program) : program_(program) {
    plan_.shortArrays = codegen::shortArrays(program);
    plan_.slotOf.resize(program.vars.size());
    plan_.kernels.program = &program;
  }

  Plan run() {
    lcu::forEachBlock(program_, [&](const Block& b) {
      for (const Stmt& stmt : b.stmts)
        if (const auto* join = std::get_if<lcu::Join>(&stmt.node))
          for (VarId array : join->arrays) joinOf_.emplace(array, join);
    });
    for (const auto& global : program_.globals) {
      for (VarId v : global.vars) {
        plan_.slotOf[v] = plan_.globals++ | kGlobalSlot;
      }
    }
    for (const auto& f : program_.functions) function(f);
    function(program_.entry);
    return std::move(plan_);
  }

 private:
  /// Where the results of a block go: to the caller, or into these variables.
  struct Sink {
    bool returns;
    std::vector<VarId> into;
  };

  void function(const lcu::HostFunction& f) {
    out_ = PlanFunction{f.name, {}, {}, 0};
    free_.clear();
    VarSet owned;
    for (VarId v : f.params) {
      out_.params.push_back(define(v));
      owned.insert(v);
    }
    block(f.body, owned, {true, {}});
    plan_.functions.push_back(std::move(out_));
  }

  // ---- slots ----

  Slot define(VarId v) {
    Slot s;
    if (free_.empty()) {
      s = out_.slots++;
    } else {
      s = *free_.begin();
      free_.erase(free_.begin());
    }
    return plan_.slotOf[v] = s;
  }
  std::vector<Slot> defineAll(const std::vector<VarId>& vars) {
    std::vector<Slot> slots;
    for (VarId v : vars) slots.push_back(define(v));
    return slots;
  }

  // ---- instructions ----
  Slot slot(VarId v) const { return plan_.slotOf[v]; }
  std::vector<Slot> slots(const std::vector<VarId>& vars) const {
    std::vector<Slot> result;
    for (VarId v : vars) result.push_back(slot(v));
    return result;
  }
  PlanInstruction& emit(PlanOp op, const Stmt* stmt = nullptr) {
    PlanInstruction& i = out_.code.emplace_back();
    i.op = op;
    i.stmt = stmt;
    return i;
  }
  uint32_t here() const { return static_cast<uint32_t>(out_.code.size()); }

  void release(const VarSet& vars) {
    if (vars.empty()) return;
    auto& i = emit(PlanOp::Release);
    for (VarId v : vars) {
      i.operands.push_back(plan_.slotOf[v]);
      freeSlot(v);
    }
  }
  /// Those of a loop's parameters wait for its next step.
  void freeSlot(VarId v) {
    if (!parameters_.contains(v)) free_.insert(plan_.slotOf[v]);
  }
  void move(const std::vector<VarId>& from, const std::vector<VarId>& to) {
    if (to.empty()) return;
    auto& i = emit(PlanOp::Move);
    i.operands = slots(from);
    i.results = slots(to);
  }

  std::unique_ptr<HostCode> code(const std::vector<lcu::ExprRef>& roots) const {
    std::vector<ScalarType> types;
    for (lcu::ExprRef e : roots) types.push_back(e->type);
    auto isCell = [this](VarId v) { return program_.vars.at(v).kind == lcu::VarKind::Cell; };
    return std::make_unique<HostCode>(
        HostCode{ExpressionCode(roots, ExpressionCode::Mode::Host, isCell), std::move(types)});
  }
  /// n, m, length (0 where the space has none), then `more`. `counted`: 0 for n.
  std::unique_ptr<HostCode> extents(const lcu::Space& space, const std::vector<lcu::ExprRef>& more,
                                    bool counted = false) const {
    lcu::ExprRef zero = program_.arena->index(0);
    std::vector<lcu::ExprRef> roots = {space.extent && !counted ? space.extent : zero,
                                       space.segments ? space.segments : zero,
                                       space.length ? space.length : zero};
    roots.insert(roots.end(), more.begin(), more.end());
    return code(roots);
  }

  // ---- blocks ----

  /// `owned`: variables from outside whose last use is in this block (or nowhere in it).
  void block(const Block& b, VarSet owned, const Sink& sink) {
    const size_t end = b.stmts.size();
    std::map<VarId, size_t> lastUse;
    for (size_t k = 0; k < end; ++k) {
      for (VarId v : lcu::freeVars(b.stmts[k])) lastUse[v] = k;
    }
    for (VarId v : b.results) lastUse[v] = end;

    VarSet unused;
    for (VarId v : owned)
      if (!lastUse.contains(v)) unused.insert(v);
    release(unused);
    for (VarId v : unused) owned.erase(v);

    for (size_t k = 0; k < end; ++k) {
      const Stmt& stmt = b.stmts[k];
      VarSet dying;
      for (VarId v : lcu::freeVars(stmt))
        if (owned.contains(v) && lastUse[v] == k) dying.insert(v);
      for (VarId v : dying) owned.erase(v);
      const bool tail = sink.returns && k + 1 == end && stmt.results == b.results;
      if (statement(stmt, dying, tail)) return;
      VarSet dead;
      for (VarId v : stmt.results) {
        if (lastUse.contains(v)) {
          owned.insert(v);
        } else {
          dead.insert(v);
        }
      }
      release(dead);
    }
    if (sink.returns) {
      emit(PlanOp::Return).operands = slots(b.results);
      return;
    }
    move(b.results, sink.into);
    for (VarId v : sink.into) owned.erase(v);  // a loop's body has just given its parameters new values
    release(owned);
  }

  /// Gives true when the statement returns from the function.
  bool statement(const Stmt& stmt, const VarSet& dying, bool tail) {
    return std::visit(
        Overloaded{
            [&](const lcu::HostLet& let) {
              simple(PlanOp::Let, stmt, cellsOf(let), code(let.values), dying);
              return false;
            },
            [&](const lcu::Launch& launch) {
              launchKernel(stmt, launch, dying);
              return false;
            },
            [&](const lcu::CallFunction& call) { return callFunction(stmt, call, dying, tail); },
            [&](const lcu::HostIf& branch) { return conditional(stmt, branch, dying, tail); },
            [&](const lcu::HostLoop& loop) {
              hostLoop(stmt, loop, dying);
              return false;
            },
            [&](const lcu::ArrayConstant&) {
              simple(PlanOp::Constant, stmt, {}, nullptr, dying);
              return false;
            },
            [&](const lcu::Join& join) {
              simple(PlanOp::Join, stmt, join.arrays, nullptr, dying);
              return false;
            },
            [&](const lcu::Grade& grade) {
              std::vector<VarId> operands = {grade.keys};
              if (grade.space.kind == lcu::SpaceKind::Offsets) operands.push_back(grade.space.offsets);
              simple(PlanOp::Grade, stmt, operands, extents(grade.space, {}), dying);
              return false;
            },
            [&](const lcu::Service& service) {
              plan_.kernels.draws |= service.name == "random_draws";
              simple(PlanOp::Service, stmt, service.arguments, nullptr, dying);
              return false;
            },
        },
        stmt.node);
  }

  /// If all that is bound are integers in cells, these.
  std::vector<VarId> cellsOf(const lcu::HostLet& let) const {
    std::vector<VarId> cells;
    for (lcu::ExprRef e : let.values) {
      if (e->kind != lcu::ExprKind::Host || e->type != ScalarType::Int64 ||
          program_.vars.at(e->index).kind != lcu::VarKind::Cell)
        return {};
      cells.push_back(e->index);
    }
    return cells;
  }

  void simple(PlanOp op, const Stmt& stmt, const std::vector<VarId>& operands, std::unique_ptr<HostCode> c,
              const VarSet& dying) {
    auto operandSlots = slots(operands);
    auto resultSlots = defineAll(stmt.results);
    auto& i = emit(op, &stmt);
    i.operands = std::move(operandSlots);
    i.results = std::move(resultSlots);
    i.code = std::move(c);
    release(dying);
  }

  void launchKernel(const Stmt& stmt, const lcu::Launch& launch, const VarSet& dying) {
    const auto number = static_cast<uint32_t>(plan_.kernels.kernels.size());
    plan_.kernels.kernels.push_back({&launch.kernel, codegen::analyseKernel(launch.kernel, program_)});
    KernelEntry& entry = plan_.kernels.kernels.back();
    const auto& info = entry.info;
    entry.shortArrays = codegen::shortArraysOf(info, plan_.shortArrays);
    std::vector<Slot> operands, results;
    for (const auto& p : info.parameters) operands.push_back(slot(p.var));
    defineAll(stmt.results);
    for (const auto& o : info.outputs) {
      bool wanted = std::find(stmt.results.begin(), stmt.results.end(), o.var) != stmt.results.end();
      results.push_back(wanted ? slot(o.var) : kNoSlot);
    }
    auto& i = emit(PlanOp::Launch, &stmt);
    i.target = number;
    i.operands = std::move(operands);
    i.results = std::move(results);
    if (info.counted) i.counted = slot(info.space.extent->index);
    i.code = extents(info.space, info.targets, info.counted);
    i.joint = jointOutputs(info);
    i.onto = ontoOutputs(info, dying);
    release(dying);
  }

  std::vector<PlanInstruction::Onto> ontoOutputs(const codegen::KernelInfo& info, const VarSet& dying) const {
    std::vector<PlanInstruction::Onto> result;
    std::map<VarId, int> times;
    for (const auto& output : info.outputs) ++times[output.onto];
    for (uint32_t k = 0; k < info.outputs.size(); ++k) {
      const VarId base = info.outputs[k].onto;
      if (base == 0) continue;
      const bool read = info.parameter(codegen::ParameterKind::Array, base) || times[base] > 1;
      result.push_back({k, slot(base), !read && dying.contains(base)});
    }
    return result;
  }

  /// The joins whose arrays are all outputs of this kernel. An array is placed for one join only.
  std::vector<std::vector<uint32_t>> jointOutputs(const codegen::KernelInfo& info) {
    std::vector<std::vector<uint32_t>> groups;
    std::set<const lcu::Join*> seen;
    for (const auto& output : info.outputs) {
      const auto join = joinOf_.find(output.var);
      if (join == joinOf_.end() || !seen.insert(join->second).second) continue;
      std::vector<uint32_t> group;
      for (VarId member : join->second->arrays)
        for (uint32_t k = 0; k < info.outputs.size(); ++k)
          if (info.outputs[k].var == member && joinOf_.at(member) == join->second) group.push_back(k);
      if (group.size() == join->second->arrays.size()) groups.push_back(std::move(group));
    }
    return groups;
  }

  bool callFunction(const Stmt& stmt, const lcu::CallFunction& call, const VarSet& dying, bool tail) {
    if (tail) {
      auto& i = emit(PlanOp::TailCall, &stmt);
      i.target = call.function;
      i.operands = slots(call.arguments);
      return true;
    }
    auto operandSlots = slots(call.arguments);
    auto resultSlots = defineAll(stmt.results);
    auto& i = emit(PlanOp::Call, &stmt);
    i.target = call.function;
    i.operands = std::move(operandSlots);
    i.results = std::move(resultSlots);
    for (VarId v : dying) {
      i.dying.push_back(plan_.slotOf[v]);
      freeSlot(v);
    }
    return false;
  }

  bool conditional(const Stmt& stmt, const lcu::HostIf& branch, const VarSet& dying, bool tail) {
    const bool isCell = branch.condition->kind == lcu::ExprKind::Host &&
                        program_.vars.at(branch.condition->index).kind == lcu::VarKind::Cell;
    uint32_t jump = here();
    if (isCell) {
      emit(PlanOp::Decide, &stmt).operands = {slot(branch.condition->index)};
    } else {
      Slot condition = testSlot();
      auto& test = emit(PlanOp::Let, &stmt);
      test.code = code({branch.condition});
      test.results = {condition};
      jump = here();
      emit(PlanOp::JumpIfFalse).operands = {condition};
      free_.insert(condition);
    }

    const Sink sink = tail ? Sink{true, {}} : Sink{false, stmt.results};
    if (!tail) defineAll(stmt.results);
    const std::set<Slot> freeBefore = free_;
    const Slot slotsBefore = out_.slots;
    block(*branch.thenBlock, dying, sink);
    const uint32_t over = here();
    if (!tail) emit(PlanOp::Jump);
    out_.code[jump].target = here();
    // What the first branch released still lives in the second; slots it added are free there.
    free_ = freeBefore;
    for (Slot s = slotsBefore; s < out_.slots; ++s) free_.insert(s);
    block(*branch.elseBlock, dying, sink);
    if (!tail) out_.code[over].target = here();
    return tail;
  }
  void hostLoop(const Stmt& stmt, const lcu::HostLoop& loop, const VarSet& dying) {
    auto initial = slots(loop.initial);
    auto paramSlots = defineAll(loop.params);
    if (!initial.empty()) {
      auto& start = emit(PlanOp::Move);
      start.operands = initial;
      start.results = paramSlots;
    }
    // What only starts the loop need not live through it.
    VarSet startOnly, after = dying;
    for (VarId v : dying) {
      if (!usedIn(*loop.condition, v) && !usedIn(*loop.body, v)) {
        startOnly.insert(v);
        after.erase(v);
      }
    }
    release(startOnly);

    const uint32_t top = here();
    Slot condition = testSlot();
    conditionBlock(*loop.condition, condition);
    const uint32_t jump = here();
    emit(PlanOp::JumpIfFalse).operands = {condition};
    free_.insert(condition);
    // The body's results replace the parameters; what they were is released where it is used last.
    parameters_.insert(loop.params.begin(), loop.params.end());
    block(*loop.body, {loop.params.begin(), loop.params.end()}, {false, loop.params});
    for (VarId v : loop.params) parameters_.erase(v);
    emit(PlanOp::Jump).target = top;
    out_.code[jump].target = here();

    defineAll(stmt.results);
    move(loop.params, stmt.results);
    after.insert(loop.params.begin(), loop.params.end());
    release(after);
  }

  /// A block with one result, a host bool, into `condition`.
  void conditionBlock(const Block& b, Slot condition) {
    VarSet owned;
    const VarId result = b.results.at(0);
    for (size_t k = 0; k < b.stmts.size(); ++k) {
      statement(b.stmts[k], {}, false);
      owned.insert(b.stmts[k].results.begin(), b.stmts[k].results.end());
    }
    auto& i = emit(PlanOp::Move);
    i.operands = {slot(result)};
    i.results = {condition};
    release(owned);
  }

  static bool usedIn(const Block& b, VarId v) {
    for (const Stmt& s : b.stmts) {
      auto vars = lcu::freeVars(s);
      if (std::binary_search(vars.begin(), vars.end(), v)) return true;
    }
    return std::find(b.results.begin(), b.results.end(), v) != b.results.end();
  }

  Slot testSlot() {
    if (free_.empty()) return out_.slots++;
    Slot s = *free_.begin();
    free_.erase(free_.begin());
    return s;
  }

  const lcu::Program& program_;
  Plan plan_;
  PlanFunction out_;
  std::set<Slot> free_;
  VarSet parameters_;  ///< of the loops around
  std::map<VarId, const lcu::Join*> joinOf_;
};

}  // namespace

Plan makePlan(const lcu::Program& program) { return Planner(program).run(); }

}  // namespace kelpie::runtime
