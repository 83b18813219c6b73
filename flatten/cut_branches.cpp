#include "flatten/cut_branches.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include "flatten/core_walk.h"
#include "flatten/split_applies.h"

namespace kelpie::flatten {
namespace {

using core::Atom;
using core::Call;
using core::Each;
using core::ExpPtr;
using core::FunctionId;
using core::If;
using core::Prim;
using core::PrimOp;
using core::Values;
using core::Var;
using core::VarId;

/// Branches that call, of one conditional: each of them hands on what any of them does.
constexpr size_t kMostBranches = 16;

/// Whether evaluation can end in an error. Such work stays before the calls: it may be what ends the
/// recursion.
bool mayFail(const ExpPtr& e) {
  const Chain chain = takeApart(e);
  const auto part = [](const ExpPtr& x) {
    if (const auto* prim = std::get_if<Prim>(&x->node)) return isChecked(prim->op);
    if (std::holds_alternative<Call>(x->node)) return true;
    const auto* each = std::get_if<Each>(&x->node);
    bool fails = each && each->bindings.size() > 1;  // lengths may differ
    forEachPart(*x, [&](const ExpPtr& body) { fails = fails || mayFail(body); });
    return fails;
  };
  return part(chain.tail) || std::any_of(chain.lets.begin(), chain.lets.end(),
                                         [&](const Chain::Binding& let) { return part(let.rhs); });
}

/// A branch: a chain that ends in a conditional with branches of its own, or that calls, or neither.
struct Branch {
  Chain chain;
  std::vector<bool> before;   ///< lets that come before the calls
  std::vector<size_t> calls;  ///< positions of its calls in the chain, its tail being the last
  bool overSequence = false;  ///< the only call is the body of an apply-to-each
  std::unique_ptr<Branch> thenBranch, elseBranch;
  std::vector<std::pair<Var, size_t>> slots;  ///< variables that are handed on

  bool isNode() const { return thenBranch != nullptr; }
  bool isLeaf() const { return !isNode(); }
  const ExpPtr& part(size_t k) const { return k < chain.lets.size() ? chain.lets[k].rhs : chain.tail; }
};

const Call* callOf(const ExpPtr& e, FunctionId self) {
  const auto* call = std::get_if<Call>(&e->node);
  return call && call->function == self ? call : nullptr;
}

/// The call that an apply-to-each ends in, for each element.
std::optional<Call> callOfEach(const ExpPtr& e, FunctionId self) {
  const auto* each = std::get_if<Each>(&e->node);
  if (!each || each->serial || countCalls(each->body, self) != 1) return std::nullopt;
  const Chain body = takeApart(each->body);
  const Call* call = callOf(body.tail, self);
  return call ? std::optional(*call) : std::nullopt;
}

class Cutter {
 public:
  Cutter(core::Program& program, FunctionId self) : program_(program), self_(self) {}

  ExpPtr cut(const ExpPtr& conditional) {
    Chain chain;
    chain.tail = conditional;
    root_ = std::make_unique<Branch>();
    root_->chain = chain;
    const auto& node = std::get<If>(conditional->node);
    root_->thenBranch = branch(node.thenBranch);
    root_->elseBranch = branch(node.elseBranch);
    if (!root_->thenBranch || !root_->elseBranch) return nullptr;
    if (!calls(*root_->thenBranch) || !calls(*root_->elseBranch)) return nullptr;
    if (!findBefore(*root_)) return nullptr;
    size_t calling = 0;
    forEachLeaf(*root_, [&](const Branch& leaf) { calling += !leaf.calls.empty(); });
    if (calling > kMostBranches) return nullptr;
    forEachLeaf(*root_, [&](const Branch& leaf) {
      someCallNot_ |= leaf.calls.empty();
      inSequences_ |= leaf.calls.size() > 1 || leaf.overSequence;
    });
    findArguments();
    if (positions_.empty()) return nullptr;
    assignSlots(*root_, {});
    return assembled(conditional);
  }

 private:
  // ---- what there is ----

  /// Null if it cannot be cut.
  std::unique_ptr<Branch> branch(const ExpPtr& e) {
    auto made = std::make_unique<Branch>();
    made->chain = takeApart(e);
    splitApplies(made->chain);
    made->before.assign(made->chain.lets.size(), false);
    const size_t tail = made->chain.lets.size();
    size_t first = 0;
    while (first <= tail && countCalls(made->part(first), self_) == 0) ++first;
    if (first > tail) return made;
    if (callOfEach(made->part(first), self_)) {
      made->overSequence = true;
      made->calls = {first};
    } else if (callOf(made->part(first), self_)) {
      findSiblings(*made, first);
    } else if (const auto* node = std::get_if<If>(&made->chain.tail->node); node && first == tail) {
      made->thenBranch = branch(node->thenBranch);
      made->elseBranch = branch(node->elseBranch);
      if (!made->thenBranch || !made->elseBranch) return nullptr;
    } else {
      return nullptr;
    }
    return made;
  }

  /// If the first step with calls is an apply-to-each that goes on after its call, it ends there.
  void splitApplies(Chain& chain) {
    const auto calling = std::find_if(chain.lets.begin(), chain.lets.end(), [&](const Chain::Binding& let) {
      return countCalls(let.rhs, self_) > 0;
    });
    if (calling != chain.lets.end()) {
      if (const auto parts = splitAtCall(program_, self_, *calling))
        chain.lets.insert(chain.lets.erase(calling), parts->begin(), parts->end());
      return;
    }
    if (!std::holds_alternative<Each>(chain.tail->node)) return;
    const Var all{program_.nextVar++, "", chain.tail->type[0]};
    if (const auto parts = splitAtCall(program_, self_, {{all}, chain.tail, chain.tail->span})) {
      chain.lets.insert(chain.lets.end(), parts->begin(), parts->end());
      chain.tail = makeExp(Values{{atomOf(all)}}, chain.tail->type, chain.tail->span);
    }
  }

  /// Calls from `first` on that do not need the results of one another.
  void findSiblings(Branch& branch, size_t first) {
    std::unordered_set<VarId> results;
    for (size_t k = first; k <= branch.chain.lets.size(); ++k) {
      const std::unordered_set<VarId> uses = usesOf(branch.part(k));
      const bool needs = std::any_of(uses.begin(), uses.end(), [&](VarId v) { return results.contains(v); });
      const bool sibling = !needs && callOf(branch.part(k), self_);
      if (sibling) branch.calls.push_back(k);
      if ((sibling || needs) && k < branch.chain.lets.size())
        for (const Var& var : branch.chain.lets[k].vars) results.insert(var.id);
    }
  }

  bool calls(const Branch& branch) const {
    return branch.isNode() ? calls(*branch.thenBranch) || calls(*branch.elseBranch) : !branch.calls.empty();
  }

  template <typename Visit>
  void forEachLeaf(const Branch& branch, const Visit& visit) const {
    if (branch.isLeaf()) return visit(branch);
    forEachLeaf(*branch.thenBranch, visit);
    forEachLeaf(*branch.elseBranch, visit);
  }

  /// Marks what conditions and arguments of calls need. False: one needs the result of a call.
  bool findBefore(Branch& branch) { return findBefore(branch, needed_); }
  bool findBefore(Branch& branch, std::unordered_set<VarId>& needed) {
    if (branch.isNode()) {
      if (!findBefore(*branch.thenBranch, needed) || !findBefore(*branch.elseBranch, needed)) return false;
      const Atom& condition = std::get<If>(branch.chain.tail->node).condition;
      if (calls(branch) && !condition.isConstant()) needed.insert(condition.var());
    }
    for (size_t k : branch.calls) collectUses(branch.part(k), needed);
    const size_t firstCall = branch.isNode()        ? branch.chain.lets.size()
                             : branch.calls.empty() ? 0
                                                    : branch.calls.front();
    for (size_t k = branch.chain.lets.size(); k-- > 0;) {
      const Chain::Binding& let = branch.chain.lets[k];
      const bool ends = k < firstCall && mayFail(let.rhs);
      if (!ends &&
          std::none_of(let.vars.begin(), let.vars.end(), [&](const Var& v) { return needed.contains(v.id); }))
        continue;
      if (countCalls(let.rhs, self_) > 0) return false;
      branch.before[k] = true;
      collectUses(let.rhs, needed);
    }
    return true;
  }

  // ---- what is handed on ----

  Call callAt(const Branch& leaf, size_t k) const {
    const ExpPtr& part = leaf.part(leaf.calls[k]);
    return leaf.overSequence ? *callOfEach(part, self_) : *callOf(part, self_);
  }

  /// Arguments that are the same in all calls stay arguments; the others are handed on.
  void findArguments() {
    std::optional<Call> first;
    std::unordered_set<VarId> bound;  // inside of branches
    const auto bind = [&](const Chain& chain) {
      for (const Chain::Binding& let : chain.lets)
        for (const Var& var : let.vars) bound.insert(var.id);
    };
    const auto bindAll = [&](const Branch& branch, const auto& self) -> void {
      bind(branch.chain);
      if (branch.isNode()) {
        self(*branch.thenBranch, self);
        self(*branch.elseBranch, self);
      } else if (branch.overSequence) {
        const auto& each = std::get<Each>(branch.part(branch.calls[0])->node);
        bind(takeApart(each.body));
        for (const Each::Binding& binding : each.bindings)
          for (const Var& var : binding.vars) bound.insert(var.id);
      }
    };
    bindAll(*root_, bindAll);
    std::vector<bool> differs;
    forEachLeaf(*root_, [&](const Branch& leaf) {
      for (size_t k = 0; k < leaf.calls.size(); ++k) {
        const Call call = callAt(leaf, k);
        if (!first) {
          first = call;
          differs.assign(call.arguments.size(), false);
          span_ = leaf.part(leaf.calls[k])->span;
          results_ = program_.functions[self_].result;
        }
        for (size_t p = 0; p < differs.size(); ++p) {
          const Atom& argument = call.arguments[p];
          differs[p] = differs[p] || !same(argument, first->arguments[p]) ||
                       (!argument.isConstant() && bound.contains(argument.var()));
        }
      }
    });
    call_ = *first;
    for (size_t p = 0; p < differs.size(); ++p)
      if (differs[p]) positions_.push_back(p);
  }

  /// Variables that are used after the calls.
  void collectAfter(const Branch& branch, std::unordered_set<VarId>& uses) const {
    for (size_t k = 0; k < branch.chain.lets.size(); ++k)
      if (!branch.before[k] && !isCall(branch, k)) collectUses(branch.chain.lets[k].rhs, uses);
    if (branch.isNode()) {
      const Atom& condition = std::get<If>(branch.chain.tail->node).condition;
      if (!condition.isConstant()) uses.insert(condition.var());
      collectAfter(*branch.thenBranch, uses);
      collectAfter(*branch.elseBranch, uses);
    } else if (!isCall(branch, branch.chain.lets.size())) {
      collectUses(branch.chain.tail, uses);
    }
  }
  static bool isCall(const Branch& branch, size_t k) {
    return std::find(branch.calls.begin(), branch.calls.end(), k) != branch.calls.end();
  }

  /// Gives variables that are used after the calls places among what is handed on. `taken`: those of the
  /// branches around.
  void assignSlots(Branch& branch, std::vector<bool> taken) {
    std::unordered_set<VarId> after;
    collectAfter(branch, after);
    for (size_t k = 0; k < branch.chain.lets.size(); ++k) {
      if (!branch.before[k]) continue;
      for (const Var& var : branch.chain.lets[k].vars) {
        if (!after.contains(var.id)) continue;
        size_t slot = 0;
        taken.resize(slots_.size());
        while (slot < slots_.size() && (taken[slot] || !(slots_[slot].type == var.type))) ++slot;
        if (slot == slots_.size()) slots_.push_back({program_.nextVar++, "", var.type});
        taken.resize(slots_.size());
        taken[slot] = true;
        branch.slots.emplace_back(var, slot);
      }
    }
    if (branch.isLeaf()) return;
    assignSlots(*branch.thenBranch, taken);
    assignSlots(*branch.elseBranch, taken);
  }

  // ---- what it becomes ----

  ExpPtr assembled(const ExpPtr& conditional) {
    const bool flag = someCallNot_ && !inSequences_;
    std::vector<Var> handed;
    Row types;
    const auto hand = [&](const Var& var) {
      handed.push_back(var);
      types.push_back(var.type);
      return atomOf(var);
    };
    const auto fresh = [&](const CoreType& type) { return Var{program_.nextVar++, "", type}; };
    Atom calls;
    if (flag) calls = hand(fresh(CoreType(ScalarType::Bool)));
    std::vector<Atom> arguments;
    for (size_t p : positions_) {
      const CoreType& type = call_.arguments[p].type;
      arguments.push_back(hand(fresh(inSequences_ ? CoreType::sequence({type}) : type)));
    }
    for (const Var& slot : slots_) hand(slot);
    types_ = types;

    Chain result;
    result.lets.push_back(
        {handed, untilCalls(*root_, std::vector<std::optional<Atom>>(slots_.size())), conditional->span});
    for (const CoreType& type : inSequences_ ? Row{CoreType::sequence(results_)} : results_)
      made_.push_back(fresh(type));
    result.lets.push_back({made_, calling(arguments, flag ? std::optional(calls) : std::nullopt), span_});
    result.tail = renamed(afterCalls(*root_), names_);
    return putTogether(std::move(result));
  }

  ExpPtr calling(const std::vector<Atom>& arguments, const std::optional<Atom>& flag) {
    Call call = call_;
    if (!inSequences_) {
      for (size_t k = 0; k < positions_.size(); ++k) call.arguments[positions_[k]] = arguments[k];
      ExpPtr made = makeExp(std::move(call), results_, span_);
      if (!flag) return made;
      Chain otherwise;
      Values values;
      for (const CoreType& type : results_) values.atoms.push_back(nothing(type, otherwise));
      otherwise.tail = makeExp(std::move(values), results_, span_);
      return makeExp(If{*flag, made, putTogether(std::move(otherwise))}, results_, span_);
    }
    Each each;
    for (size_t k = 0; k < positions_.size(); ++k) {
      const Var element{program_.nextVar++, "", call_.arguments[positions_[k]].type};
      each.bindings.push_back({{element}, arguments[k]});
      call.arguments[positions_[k]] = atomOf(element);
    }
    each.body = makeExp(std::move(call), results_, span_);
    return makeExp(std::move(each), {CoreType::sequence(results_)}, span_);
  }

  /// A branch until its calls: what it hands on. `slots`: what the branches around hand on.
  ExpPtr untilCalls(const Branch& branch, std::vector<std::optional<Atom>> slots) {
    Chain chain;
    for (size_t k = 0; k < branch.chain.lets.size(); ++k)
      if (branch.before[k]) chain.lets.push_back(branch.chain.lets[k]);
    for (const auto& [var, slot] : branch.slots) slots[slot] = atomOf(var);
    if (branch.isNode() && calls(branch)) {
      const auto& node = std::get<If>(branch.chain.tail->node);
      chain.tail = makeExp(
          If{node.condition, untilCalls(*branch.thenBranch, slots), untilCalls(*branch.elseBranch, slots)},
          types_, branch.chain.tail->span);
      return putTogether(std::move(chain));
    }
    Values values;
    const bool leafCalls = !branch.calls.empty();
    if (someCallNot_ && !inSequences_)
      values.atoms.push_back({Scalar::ofBool(leafCalls), CoreType(ScalarType::Bool)});
    for (const Atom& atom : arguments(branch, chain)) values.atoms.push_back(atom);
    for (size_t slot = 0; slot < slots_.size(); ++slot)
      values.atoms.push_back(slots[slot] ? *slots[slot] : nothing(slots_[slot].type, chain));
    chain.tail = makeExp(std::move(values), types_, span_);
    return putTogether(std::move(chain));
  }

  /// What a leaf hands on as arguments of its calls.
  std::vector<Atom> arguments(const Branch& leaf, Chain& chain) {
    const auto bind = [&](decltype(core::Exp::node) node, const CoreType& type) {
      const Var var{program_.nextVar++, "", type};
      chain.lets.push_back({{var}, makeExp(std::move(node), {type}, span_), span_});
      return atomOf(var);
    };
    std::vector<Atom> made;
    Row row;
    for (size_t p : positions_) row.push_back(call_.arguments[p].type);
    const auto handedType = [&](size_t k) { return inSequences_ ? CoreType::sequence({row[k]}) : row[k]; };
    if (leaf.calls.empty()) {
      for (size_t k = 0; k < row.size(); ++k) made.push_back(nothing(handedType(k), chain));
    } else if (!inSequences_) {
      for (size_t p : positions_) made.push_back(callAt(leaf, 0).arguments[p]);
    } else if (!leaf.overSequence) {
      for (size_t k = 0; k < row.size(); ++k) {
        Prim literal{.op = PrimOp::Literal, .arguments = {}};
        for (size_t call = 0; call < leaf.calls.size(); ++call)
          literal.arguments.push_back(callAt(leaf, call).arguments[positions_[k]]);
        literal.count = static_cast<uint32_t>(leaf.calls.size());
        made.push_back(bind(std::move(literal), handedType(k)));
      }
    } else {
      Each each = std::get<Each>(leaf.part(leaf.calls[0])->node);
      Chain body = takeApart(each.body);
      Values values;
      for (size_t p : positions_) values.atoms.push_back(std::get<Call>(body.tail->node).arguments[p]);
      body.tail = makeExp(std::move(values), row, span_);
      each.body = putTogether(std::move(body));
      const Atom rows = bind(std::move(each), CoreType::sequence(row));
      for (size_t k = 0; k < row.size(); ++k) {
        Prim project{.op = PrimOp::Project, .arguments = {rows}};
        project.first = static_cast<uint32_t>(k);
        project.count = 1;
        made.push_back(row.size() == 1 ? rows : bind(std::move(project), handedType(k)));
      }
    }
    return made;
  }

  /// A branch from its calls on.
  ExpPtr afterCalls(const Branch& branch) {
    Chain chain;
    for (const auto& [var, slot] : branch.slots) names_.emplace(var.id, atomOf(slots_[slot]));
    for (size_t k = 0; k < branch.chain.lets.size(); ++k) {
      if (branch.before[k]) continue;
      Chain::Binding let = branch.chain.lets[k];
      if (isCall(branch, k)) let.rhs = resultOf(branch, k);
      chain.lets.push_back(std::move(let));
    }
    chain.tail = branch.chain.tail;
    if (branch.isNode()) {
      const auto& node = std::get<If>(branch.chain.tail->node);
      chain.tail = makeExp(If{node.condition, afterCalls(*branch.thenBranch), afterCalls(*branch.elseBranch)},
                           branch.chain.tail->type, branch.chain.tail->span);
    } else if (isCall(branch, branch.chain.lets.size())) {
      chain.tail = resultOf(branch, branch.chain.lets.size());
    }
    return putTogether(std::move(chain));
  }

  /// What a call of a branch has given.
  ExpPtr resultOf(const Branch& branch, size_t k) {
    const ExpPtr& call = branch.part(k);
    if (inSequences_ && !branch.overSequence) {
      const auto number = std::find(branch.calls.begin(), branch.calls.end(), k) - branch.calls.begin();
      const Atom position{Scalar::ofInt(program_.intType, number), CoreType(program_.intType)};
      return makeExp(Prim{.op = PrimOp::Index, .arguments = {atomOf(made_[0]), position}}, call->type,
                     call->span);
    }
    Values values;
    for (const Var& var : made_) values.atoms.push_back(atomOf(var));
    return makeExp(std::move(values), call->type, call->span);
  }

  Atom nothing(const CoreType& type, Chain& chain) { return unusedValue(program_, type, chain, span_); }

  core::Program& program_;
  FunctionId self_;
  std::unique_ptr<Branch> root_;
  std::unordered_set<VarId> needed_;  ///< before the calls
  bool someCallNot_ = false, inSequences_ = false;
  Call call_;  ///< one of them
  Row results_;
  Span span_;
  std::vector<size_t> positions_;  ///< of arguments that are handed on
  std::vector<Var> slots_;
  Row types_;                              ///< of all that is handed on
  std::vector<Var> made_;                  ///< results of the calls
  std::unordered_map<VarId, Atom> names_;  ///< of what was handed on
};

}  // namespace

ExpPtr cutAtCalls(core::Program& program, FunctionId self, const ExpPtr& conditional) {
  return Cutter(program, self).cut(conditional);
}

int countCalls(const ExpPtr& e, FunctionId function) {
  int calls = 0;
  const Chain chain = takeApart(e);
  const auto part = [&](const ExpPtr& x) {
    const auto* call = std::get_if<Call>(&x->node);
    calls += call && call->function == function;
    forEachPart(*x, [&](const ExpPtr& body) { calls += countCalls(body, function); });
  };
  for (const Chain::Binding& let : chain.lets) part(let.rhs);
  part(chain.tail);
  return calls;
}

}  // namespace kelpie::flatten
