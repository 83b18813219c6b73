#include "flatten/analysis.h"

#include <algorithm>
#include <functional>

#include "flatten/core_walk.h"

namespace kelpie::flatten {
namespace {

using core::ExpPtr;
using core::FunctionId;

/// Visits `e` and all its sub-expressions. Chains of lets, which can be very long, are walked in a loop.
void forEachExp(ExpPtr e, const std::function<void(const core::Exp&)>& visit) {
  while (e) {
    visit(*e);
    ExpPtr next;
    if (auto* let = std::get_if<core::Let>(&e->node)) {
      forEachExp(let->rhs, visit);
      next = let->body;
    } else if (auto* branch = std::get_if<core::If>(&e->node)) {
      forEachExp(branch->thenBranch, visit);
      next = branch->elseBranch;
    } else if (auto* each = std::get_if<core::Each>(&e->node)) {
      next = each->body;
    } else if (auto* invariant = std::get_if<core::Invariant>(&e->node)) {
      next = invariant->body;
    }
    e = next;
  }
}

bool isEffect(core::PrimOp op) { return op >= core::PrimOp::RandomInt; }

bool isDelayable(core::PrimOp op) {
  switch (op) {
    case core::PrimOp::Scalar:
    case core::PrimOp::CheckedScalar:
    case core::PrimOp::Convert:
    case core::PrimOp::Check:
    case core::PrimOp::Length:
    case core::PrimOp::Index:
    case core::PrimOp::Range:
    case core::PrimOp::Distribute:
    case core::PrimOp::Literal:
    case core::PrimOp::Zip:
    case core::PrimOp::Project:
    case core::PrimOp::Slice:
    case core::PrimOp::Append:
      return true;
    default:
      return false;
  }
}

}  // namespace

Analysis::Analysis(const core::Program& program) : program_(program) {
  functions_.resize(program.functions.size());
  callees_.resize(program.functions.size());
  for (FunctionId f = 0; f < program.functions.size(); ++f) {
    forEachExp(program.functions[f].body, [&](const core::Exp& e) {
      ++functions_[f].size;
      if (auto* call = std::get_if<core::Call>(&e.node)) callees_[f].push_back(call->function);
    });
    std::sort(callees_[f].begin(), callees_[f].end());
    callees_[f].erase(std::unique(callees_[f].begin(), callees_[f].end()), callees_[f].end());
  }
  findCycles();  // also decides the remaining facts, callees first

  std::unordered_map<core::VarId, int> uses;
  auto countUses = [&](const core::Exp& e) {
    forEachAtom(e, [&](const core::Atom& a) {
      if (!a.isConstant()) ++uses[a.var()];
    });
  };
  for (const core::Function& function : program.functions) forEachExp(function.body, countUses);
  forEachExp(program.entry, countUses);
  for (const core::Function& function : program.functions)
    if (function.body) findPredicates(function.body, uses);
  findPredicates(program.entry, uses);
}

void Analysis::addPartOf(FunctionId f, bool pure) {
  FunctionFacts facts = functions_[f];
  facts.delayable = false;
  if (pure) facts.effects = false;
  functions_.push_back(std::move(facts));
}

void Analysis::findPredicates(const ExpPtr& start, const std::unordered_map<core::VarId, int>& uses) {
  std::unordered_set<core::VarId> candidates;  // bound in this chain of lets
  auto consider = [&](const ExpPtr& e) {
    auto* prim = std::get_if<core::Prim>(&e->node);
    if (!prim || prim->op != core::PrimOp::Pack || prim->arguments[0].isConstant()) return;
    core::VarId flags = prim->arguments[0].var();
    if (candidates.contains(flags) && uses.at(flags) == 1) predicates_.insert(flags);
  };
  auto inside = [&](const ExpPtr& e) {
    if (auto* branch = std::get_if<core::If>(&e->node)) {
      findPredicates(branch->thenBranch, uses);
      findPredicates(branch->elseBranch, uses);
    } else if (auto* each = std::get_if<core::Each>(&e->node)) {
      findPredicates(each->body, uses);
    } else if (auto* invariant = std::get_if<core::Invariant>(&e->node)) {
      findPredicates(invariant->body, uses);
    } else if (std::holds_alternative<core::Let>(e->node)) {
      findPredicates(e, uses);
    }
  };
  ExpPtr e = start;
  while (auto* let = std::get_if<core::Let>(&e->node)) {
    consider(let->rhs);
    inside(let->rhs);
    auto* each = std::get_if<core::Each>(&let->rhs->node);
    if (each && let->vars.size() == 1 && delayable(each->body)) candidates.insert(let->vars[0].id);
    e = let->body;
  }
  consider(e);
  inside(e);
}

/// Tarjan's strongly connected components; components complete callees first, so every other fact is decided
/// in that order.
void Analysis::findCycles() {
  const size_t n = functions_.size();
  std::vector<int> number(n, -1), low(n, 0);
  std::vector<bool> onStack(n, false);
  std::vector<FunctionId> stack;
  int counter = 0;
  std::function<void(FunctionId)> visit = [&](FunctionId f) {
    number[f] = low[f] = counter++;
    stack.push_back(f);
    onStack[f] = true;
    for (FunctionId callee : callees_[f]) {
      if (number[callee] < 0) {
        visit(callee);
        low[f] = std::min(low[f], low[callee]);
      } else if (onStack[callee]) {
        low[f] = std::min(low[f], number[callee]);
      }
    }
    if (low[f] != number[f]) return;
    std::vector<FunctionId> component;
    do {
      component.push_back(stack.back());
      onStack[stack.back()] = false;
      stack.pop_back();
    } while (component.back() != f);
    const bool cycle = component.size() > 1 || std::binary_search(callees_[f].begin(), callees_[f].end(), f);
    for (FunctionId member : component) functions_[member].recursive = cycle;
    if (cycle && component.size() == 1) findTailRecursion(f);
    if (cycle && !functions_[f].scalarLoop) findScalarRecursion(component);
    for (FunctionId member : component) {
      FunctionFacts& facts = functions_[member];
      findPassedOn(member);
      const ExpPtr& body = program_.functions[member].body;
      const bool scalar = facts.scalarLoop || facts.scalarRecursion;
      facts.uncontained = (cycle && !scalar) || !body;
      facts.effects = !body;
      facts.repeats = scalar;
      for (FunctionId callee : callees_[member]) {
        facts.uncontained |= functions_[callee].uncontained;
        facts.repeats |= functions_[callee].repeats;
        facts.effects |= functions_[callee].effects;
      }
      if (body) facts.effects |= effects(body);
      facts.delayable = body && (cycle ? scalar : delayable(body));
      if (body && !cycle) facts.choices = choices(body);
    }
    for (FunctionId member : component)  // effects of a cycle belong to all its members
      for (FunctionId other : component) functions_[member].effects |= functions_[other].effects;
  };
  for (FunctionId f = 0; f < n; ++f)
    if (number[f] < 0) visit(f);
}

bool Analysis::callsDirectly(const ExpPtr& e, FunctionId f) const {
  bool found = false;
  forEachExp(e, [&](const core::Exp& x) {
    auto* call = std::get_if<core::Call>(&x.node);
    found |= call && call->function == f;
  });
  return found;
}

bool Analysis::tailCallsOnly(const ExpPtr& start, FunctionId f, std::vector<bool>& invariant) const {
  ExpPtr e = start;
  while (true) {
    if (auto* let = std::get_if<core::Let>(&e->node)) {
      if (callsDirectly(let->rhs, f)) return false;
      e = let->body;
    } else if (auto* branch = std::get_if<core::If>(&e->node)) {
      if (!tailCallsOnly(branch->thenBranch, f, invariant)) return false;
      e = branch->elseBranch;
    } else if (auto* call = std::get_if<core::Call>(&e->node); call && call->function == f) {
      const auto& parameters = program_.functions[f].parameters;
      for (size_t k = 0; k < parameters.size(); ++k) {
        const core::Atom& argument = call->arguments[k];
        if (argument.isConstant() || argument.var() != parameters[k].id) invariant[k] = false;
      }
      return true;
    } else {
      return !callsDirectly(e, f);
    }
  }
}

void Analysis::findTailRecursion(FunctionId f) {
  FunctionFacts& facts = functions_[f];
  const core::Function& function = program_.functions[f];
  facts.invariant.assign(function.parameters.size(), true);
  facts.tailRecursive = tailCallsOnly(function.body, f, facts.invariant);
  if (!facts.tailRecursive) return;
  bool scalars = std::all_of(function.result.begin(), function.result.end(),
                             [](const CoreType& t) { return t.isScalar(); });
  for (size_t k = 0; k < function.parameters.size(); ++k)
    scalars &= facts.invariant[k] || function.parameters[k].type.isScalar();
  facts.scalarLoop = scalars && delayableBody(function.body, {f});
}

void Analysis::findPassedOn(FunctionId f) {
  const core::Function& function = program_.functions[f];
  std::vector<bool>& passedOn = functions_[f].passedOn;
  passedOn.assign(function.parameters.size(), false);
  if (!function.body || !callsDirectly(function.body, f)) return;
  passedOn.assign(function.parameters.size(), true);
  forEachExp(function.body, [&](const core::Exp& x) {
    const auto* call = std::get_if<core::Call>(&x.node);
    if (!call || call->function != f) return;
    for (size_t k = 0; k < passedOn.size(); ++k) {
      const core::Atom& argument = call->arguments[k];
      if (argument.isConstant() || argument.var() != function.parameters[k].id) passedOn[k] = false;
    }
  });
}

/// A cycle becomes one function (merged_cycles.h), or, where its results differ, functions inside each other
/// (scalar_recursion.cpp), whose code may not grow too much by that: compilers of device code take minutes
/// for some thousand nodes of functions in functions.
void Analysis::findScalarRecursion(const std::vector<FunctionId>& cycle) {
  constexpr size_t kMostNodes = 6000, kMostInside = 400;
  for (FunctionId f : cycle)
    if (const ExpPtr& body = program_.functions[f].body;
        !body || !delayableBody(body, cycle) || effects(body))
      return;
  findUnchanged(cycle);
  size_t nodes = 0;
  bool alike = true;  // their results
  for (FunctionId f : cycle) {
    const core::Function& function = program_.functions[f];
    for (const CoreType& type : function.result)
      if (!type.isScalar()) return;
    if (function.result.empty()) return;
    for (size_t k = 0; k < function.parameters.size(); ++k)
      if (!functions_[f].invariant[k] && !function.parameters[k].type.isScalar()) return;
    nodes += functions_[f].size;
    alike = alike && function.result == program_.functions[cycle[0]].result;
  }
  constexpr size_t kForEach = 3;  // nodes that a merged function has beside those of each
  if (nodes + (cycle.size() > 1 ? kForEach * cycle.size() : 0) > kMostNodes) return;
  if (cycle.size() > 1 && alike) mergeable_.push_back(cycle);
  for (FunctionId f : cycle) {
    std::vector<FunctionId> around;
    size_t inside = kMostInside;
    if (!alike && !expandsTo(f, cycle, around, inside)) return;
  }
  for (FunctionId f : cycle) functions_[f].scalarRecursion = true;
}

/// Decides which parameters every call within the cycle passes on as they are: sets of parameters that are
/// handed to each other and to nothing else, at most one of each function.
void Analysis::findUnchanged(const std::vector<FunctionId>& cycle) {
  std::unordered_map<FunctionId, size_t> first;  // number of a function's first parameter
  size_t count = 1;                              // number 0 stands for everything that is no such parameter
  for (FunctionId f : cycle) {
    first[f] = count;
    count += program_.functions[f].parameters.size();
  }
  std::vector<size_t> set(count);
  for (size_t k = 0; k < count; ++k) set[k] = k;
  const auto find = [&](size_t k) {
    while (set[k] != k) k = set[k] = set[set[k]];
    return k;
  };
  const auto unite = [&](size_t a, size_t b) {
    a = find(a);
    b = find(b);
    set[std::max(a, b)] = std::min(a, b);
  };
  for (FunctionId caller : cycle) {
    const auto& own = program_.functions[caller].parameters;
    forEachExp(program_.functions[caller].body, [&](const core::Exp& e) {
      const auto* call = std::get_if<core::Call>(&e.node);
      if (!call || !first.contains(call->function)) return;
      for (size_t k = 0; k < call->arguments.size(); ++k) {
        const core::Atom& argument = call->arguments[k];
        size_t from = 0;
        for (size_t j = 0; j < own.size() && !argument.isConstant(); ++j)
          if (own[j].id == argument.var()) from = first[caller] + j;
        unite(first[call->function] + k, from);
      }
    });
  }
  for (FunctionId f : cycle) {
    const size_t parameters = program_.functions[f].parameters.size();
    for (size_t k = 0; k < parameters; ++k)
      for (size_t j = 0; j < k; ++j)
        if (find(first[f] + k) == find(first[f] + j)) unite(first[f] + k, 0);
  }
  for (FunctionId f : cycle) {
    std::vector<bool>& invariant = functions_[f].invariant;
    invariant.clear();
    std::vector<size_t>& unchanged = functions_[f].unchanged;
    for (size_t k = 0; k < program_.functions[f].parameters.size(); ++k) {
      unchanged.push_back(find(first[f] + k));
      invariant.push_back(unchanged.back() != 0);
    }
  }
}

/// Whether `f` has at most so many nodes where every call of the cycle is the function called, unless that is
/// `around`; takes them away.
bool Analysis::expandsTo(FunctionId f, const std::vector<FunctionId>& cycle, std::vector<FunctionId>& around,
                         size_t& nodes) const {
  if (functions_[f].size > nodes) return false;
  nodes -= functions_[f].size;
  bool fits = true;
  around.push_back(f);
  forEachExp(program_.functions[f].body, [&](const core::Exp& e) {
    const auto* call = std::get_if<core::Call>(&e.node);
    const auto in = [&](const std::vector<FunctionId>& set) {
      return std::find(set.begin(), set.end(), call->function) != set.end();
    };
    if (fits && call && in(cycle) && !in(around)) fits = expandsTo(call->function, cycle, around, nodes);
  });
  around.pop_back();
  return fits;
}

bool Analysis::delayableBody(const ExpPtr& start, const std::vector<FunctionId>& selves) const {
  for (ExpPtr e = start;;) {
    if (auto* let = std::get_if<core::Let>(&e->node)) {
      if (!delayableBody(let->rhs, selves)) return false;
      e = let->body;
      continue;
    }
    if (auto* branch = std::get_if<core::If>(&e->node)) {
      if (!delayableBody(branch->thenBranch, selves)) return false;
      e = branch->elseBranch;
      continue;
    }
    if (auto* call = std::get_if<core::Call>(&e->node))
      return functions_[call->function].delayable ||
             std::find(selves.begin(), selves.end(), call->function) != selves.end();
    if (auto* prim = std::get_if<core::Prim>(&e->node)) return isDelayable(prim->op);
    if (auto* invariant = std::get_if<core::Invariant>(&e->node)) {
      e = invariant->body;
      continue;
    }
    return std::holds_alternative<core::Values>(e->node) || std::holds_alternative<core::Constant>(e->node);
  }
}

bool Analysis::delayable(const ExpPtr& e) const { return delayableBody(e, {}); }

size_t Analysis::choices(const ExpPtr& start) const {
  std::unordered_map<core::VarId, size_t> before;  // of what is bound in this chain of lets
  const auto ofSequences = [](const core::Exp& e) {
    return std::any_of(e.type.begin(), e.type.end(), [](const CoreType& type) { return !type.isScalar(); });
  };
  const auto of = [&](const ExpPtr& e) {
    size_t chosen = 0, own = 0;
    if (!ofSequences(*e)) return chosen;
    forEachExp(e, [&](const core::Exp& part) {
      forEachAtom(part, [&](const core::Atom& a) {
        if (a.isConstant()) return;
        if (auto found = before.find(a.var()); found != before.end())
          chosen = std::max(chosen, found->second);
      });
    });
    if (auto* branch = std::get_if<core::If>(&e->node))  // a chain of else-ifs is one choice
      own = std::max({size_t{1}, choices(branch->thenBranch), choices(branch->elseBranch)});
    if (auto* call = std::get_if<core::Call>(&e->node)) own = functions_[call->function].choices;
    if (auto* prim = std::get_if<core::Prim>(&e->node)) own = prim->op == core::PrimOp::Index;
    return chosen + own;
  };
  size_t most = 0;
  ExpPtr e = start;
  for (; auto* let = std::get_if<core::Let>(&e->node); e = let->body) {
    const size_t here = of(let->rhs);
    for (const core::Var& var : let->vars)
      if (here > 0 && !var.type.isScalar()) before[var.id] = here;
    most = std::max(most, here);
  }
  return std::max(most, of(e));
}

bool Analysis::repeats(const ExpPtr& e) const {
  bool found = false;
  forEachExp(e, [&](const core::Exp& x) {
    auto* call = std::get_if<core::Call>(&x.node);
    found |= call && functions_[call->function].repeats;
  });
  return found;
}

bool Analysis::uncontained(const ExpPtr& e) const {
  bool found = false;
  forEachExp(e, [&](const core::Exp& x) {
    auto* call = std::get_if<core::Call>(&x.node);
    found |= call && functions_[call->function].uncontained;
  });
  return found;
}

bool Analysis::effects(const ExpPtr& e) const {
  bool found = false;
  forEachExp(e, [&](const core::Exp& x) {
    if (auto* prim = std::get_if<core::Prim>(&x.node)) found |= isEffect(prim->op);
    if (auto* call = std::get_if<core::Call>(&x.node)) found |= functions_[call->function].effects;
  });
  return found;
}

}  // namespace kelpie::flatten
