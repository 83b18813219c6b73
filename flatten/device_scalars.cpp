#include "flatten/device_scalars.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace kelpie::flatten {
namespace {

using lcu::Block;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::HostLoop;
using lcu::Stmt;
using lcu::VarId;
using lcu::VarKind;

size_t placeOf(const std::vector<VarId>& vars, VarId v) {
  return static_cast<size_t>(std::find(vars.begin(), vars.end(), v) - vars.begin());
}

class ScalarPass {
 public:
  explicit ScalarPass(lcu::Program& program) : program_(program) {}

  void run() {
    // A change moves statements, so what is known of them is found again for the next loop.
    bool changed = false;
    do {
      changed = false;
      learn();
      lcu::forEachBlock(program_, [&](Block& block) {
        for (size_t k = 0; k < block.stmts.size() && !changed; ++k)
          if (std::holds_alternative<HostLoop>(block.stmts[k].node)) changed = improve(block, k);
      });
    } while (changed);
    removeUnusedCopies();
  }

 private:
  /// What a change of one parameter takes.
  struct Change {
    VarId param = 0;
    std::unordered_set<VarId> branches;  ///< results of HostIfs that become cells
    std::unordered_set<VarId> copies;    ///< lets of cells; what they copy takes their places
    std::unordered_set<VarId>
        computed;        ///< lets that compute with cells; kernels of a Once take their places
    bool cells = false;  ///< some step ends with a cell
  };

  bool isCell(VarId v) const { return program_.vars[v].kind == VarKind::Cell; }
  const Stmt* definitionOf(VarId v) const {
    const auto found = definitions_.find(v);
    return found == definitions_.end() ? nullptr : found->second;
  }
  /// The cell that a let copies; 0: it does not.
  VarId copiedCell(VarId v) const {
    const Stmt* stmt = definitionOf(v);
    const auto* let = stmt ? std::get_if<lcu::HostLet>(&stmt->node) : nullptr;
    const ExprRef value = let ? let->values[placeOf(stmt->results, v)] : nullptr;
    return value && value->kind == ExprKind::Host && isCell(value->index) ? value->index : 0;
  }
  bool readsCell(VarId v) const {
    const auto& values = std::get<lcu::HostLet>(definitionOf(v)->node).values;
    const auto reads = lcu::freeVars({values[placeOf(definitionOf(v)->results, v)]});
    return std::any_of(reads.begin(), reads.end(), [&](VarId r) { return isCell(r); });
  }
  /// Whether `v` is computed from a cell, or from what would be one: the parameter.
  bool computesWithCells(VarId v, VarId param) const {
    const Stmt* stmt = definitionOf(v);
    const auto* let = stmt ? std::get_if<lcu::HostLet>(&stmt->node) : nullptr;
    if (!let) return false;
    const ExprRef value = let->values[placeOf(stmt->results, v)];
    const auto reads = lcu::freeVars({value});
    const bool simple = !lcu::anyNode({value}, [](ExprRef e) {
      return e->kind == ExprKind::Load || e->kind == ExprKind::Size || lcu::isUnbounded(e);
    });
    return simple &&
           std::any_of(reads.begin(), reads.end(), [&](VarId r) { return isCell(r) || r == param; });
  }

  /// Whether `v` is a cell, or the parameter, on every way, or computed from those.
  bool collect(VarId v, Change& change) const {
    if (v == change.param) return true;
    if (copiedCell(v) != 0) {
      change.copies.insert(v);
      change.cells = true;
      return true;
    }
    if (computesWithCells(v, change.param)) {
      change.computed.insert(v);
      if (readsCell(v)) change.cells = true;  // a counter that the host knows stays with it
      return true;
    }
    const Stmt* stmt = definitionOf(v);
    const auto* branch = stmt ? std::get_if<lcu::HostIf>(&stmt->node) : nullptr;
    if (!branch) return false;
    const size_t place = placeOf(stmt->results, v);
    change.branches.insert(v);
    return collect(branch->thenBlock->results[place], change) &&
           collect(branch->elseBlock->results[place], change);
  }

  /// Whether the host reads one of `vars` in a block other than to decide a condition or to hand it on to a
  /// branch that becomes a cell.
  bool hostReads(const Block& block, const std::unordered_set<VarId>& vars) const {
    return std::any_of(block.stmts.begin(), block.stmts.end(),
                       [&](const Stmt& stmt) { return hostReads(stmt, vars); });
  }
  bool hostReads(const Stmt& stmt, const std::unordered_set<VarId>& vars) const {
    const auto reads = [&](const std::vector<VarId>& read) {
      return std::any_of(read.begin(), read.end(), [&](VarId v) { return vars.contains(v); });
    };
    if (const auto* launch = std::get_if<lcu::Launch>(&stmt.node)) {
      std::vector<ExprRef> ofHost;
      for (const lcu::Soac& soac : launch->kernel.bindings)
        for (ExprRef e : {soac.space.extent, soac.space.segments, soac.space.length, soac.target})
          if (e) ofHost.push_back(e);
      return reads(lcu::freeVars(ofHost));
    }
    if (const auto* branch = std::get_if<lcu::HostIf>(&stmt.node)) {
      for (size_t k = 0; k < stmt.results.size(); ++k) {
        const bool handsOn = vars.contains(stmt.results[k]);
        if (!handsOn && reads({branch->thenBlock->results[k], branch->elseBlock->results[k]})) return true;
      }
      return hostReads(*branch->thenBlock, vars) || hostReads(*branch->elseBlock, vars);
    }
    if (const auto* loop = std::get_if<HostLoop>(&stmt.node))
      return reads(loop->initial) || reads(loop->body->results) || hostReads(*loop->condition, vars) ||
             hostReads(*loop->body, vars);
    if (const auto* let = std::get_if<lcu::HostLet>(&stmt.node)) {
      for (size_t k = 0; k < stmt.results.size(); ++k)
        if (!vars.contains(stmt.results[k]) && reads(lcu::freeVars({let->values[k]}))) return true;
      return false;
    }
    return reads(lcu::freeVars(stmt));
  }
  static bool kernelsRead(const Block& block, VarId v) {
    return std::any_of(block.stmts.begin(), block.stmts.end(), [&](const Stmt& stmt) {
      if (const auto* branch = std::get_if<lcu::HostIf>(&stmt.node))
        return kernelsRead(*branch->thenBlock, v) || kernelsRead(*branch->elseBlock, v);
      const auto read = lcu::freeVars(stmt);
      return std::holds_alternative<lcu::Launch>(stmt.node) &&
             std::find(read.begin(), read.end(), v) != read.end();
    });
  }

  /// Whether a copy goes anywhere but to ends of branches and of the step.
  bool readsCopies(const Block& block, const std::unordered_set<VarId>& copies) const {
    return std::any_of(block.stmts.begin(), block.stmts.end(), [&](const Stmt& stmt) {
      if (const auto* branch = std::get_if<lcu::HostIf>(&stmt.node))
        return readsCopies(*branch->thenBlock, copies) || readsCopies(*branch->elseBlock, copies) ||
               anyOf(lcu::freeVars({branch->condition}), copies);
      return anyOf(lcu::freeVars(stmt), copies);
    });
  }
  static bool anyOf(const std::vector<VarId>& vars, const std::unordered_set<VarId>& wanted) {
    return std::any_of(vars.begin(), vars.end(), [&](VarId v) { return wanted.contains(v); });
  }

  /// Makes a parameter of the loop a cell; false: none can become one.
  bool improve(Block& block, size_t at) {
    const HostLoop& loop = std::get<HostLoop>(block.stmts[at].node);
    const std::vector<VarId>& next = loop.body->results;
    for (size_t k = 0; k < loop.params.size(); ++k) {
      Change change;
      change.param = loop.params[k];
      if (isCell(change.param) || program_.vars[change.param].kind != VarKind::Host ||
          !kernelsRead(*loop.body, change.param) || !collect(next[k], change) || !change.cells)
        continue;
      std::unordered_set<VarId> vars = change.branches;
      vars.insert(change.computed.begin(), change.computed.end());
      vars.insert(change.param);
      bool elsewhere = loop.condition->results[0] == change.param;
      for (size_t j = 0; j < next.size(); ++j)
        elsewhere |= j != k && (vars.contains(next[j]) || change.copies.contains(next[j]));
      if (elsewhere || hostReads(*loop.condition, vars) || hostReads(*loop.body, vars) ||
          readsCopies(*loop.condition, change.copies) || readsCopies(*loop.body, change.copies))
        continue;
      apply(block, at, k, change);
      return true;
    }
    return false;
  }

  void apply(Block& block, size_t at, size_t k, const Change& change) {
    Stmt& stmt = block.stmts[at];
    auto& loop = std::get<HostLoop>(stmt.node);
    for (VarId v : change.branches) {
      const Stmt& branch = *definitionOf(v);
      const size_t place = placeOf(branch.results, v);
      const auto& node = std::get<lcu::HostIf>(branch.node);
      for (const auto& end : {node.thenBlock, node.elseBlock}) toCell(end->results[place], change);
      program_.vars[v].kind = VarKind::Cell;
    }
    toCell(loop.body->results[k], change);
    program_.vars[change.param].kind = VarKind::Cell;

    const Span span = stmt.span;
    const VarId result = stmt.results[k], initial = loop.initial[k];
    const ScalarType type = program_.vars[result].type;
    stmt.results[k] = program_.newVar({program_.vars[result].name, VarKind::Cell, type, nullptr});
    Stmt copy;
    copy.span = span;
    copy.results = {result};
    copy.node = lcu::HostLet{{program_.arena->host(stmt.results[k], type)}};
    const VarId known = copiedCell(initial);
    loop.initial[k] = known != 0 ? known : program_.newVar({"start", VarKind::Cell, type, nullptr});
    const VarId start = loop.initial[k];
    block.stmts.insert(block.stmts.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(copy));
    if (known == 0)
      block.stmts.insert(block.stmts.begin() + static_cast<std::ptrdiff_t>(at),
                         computed(start, program_.arena->host(initial, type), span));
    compute(change.computed);
  }
  /// A kernel of one Once that computes `v`, a cell.
  Stmt computed(VarId v, ExprRef value, Span span) const {
    lcu::Soac once;
    once.kind = lcu::SoacKind::Once;
    once.pull = {value};
    once.span = span;
    once.results = {v};
    Stmt launch;
    launch.span = span;
    launch.results = {v};
    launch.node = lcu::Launch{{fmt::format("scalar_{}", v), {once}, {v}}};
    return launch;
  }
  /// Where lets of the host were.
  void compute(const std::unordered_set<VarId>& vars) {
    std::vector<Stmt> kernels;
    lcu::forEachBlock(program_, [&](Block& block) {
      for (size_t at = 0; at < block.stmts.size(); ++at) {
        Stmt& stmt = block.stmts[at];
        auto* let = std::get_if<lcu::HostLet>(&stmt.node);
        if (!let) continue;
        for (size_t k = stmt.results.size(); k-- > 0;) {
          const VarId v = stmt.results[k];
          if (!vars.contains(v)) continue;
          program_.vars[v].kind = VarKind::Cell;
          kernels.push_back(computed(v, let->values[k], stmt.span));
          stmt.results.erase(stmt.results.begin() + static_cast<std::ptrdiff_t>(k));
          let->values.erase(let->values.begin() + static_cast<std::ptrdiff_t>(k));
        }
        for (Stmt& kernel : kernels)
          block.stmts.insert(block.stmts.begin() + static_cast<std::ptrdiff_t>(++at), std::move(kernel));
        kernels.clear();
      }
    });
  }
  void toCell(VarId& v, const Change& change) const {
    if (change.copies.contains(v)) v = copiedCell(v);
  }

  void learn() {
    definitions_.clear();
    lcu::forEachBlock(std::as_const(program_), [this](const Block& block) {
      for (const Stmt& stmt : block.stmts)
        for (VarId v : stmt.results) definitions_[v] = &stmt;
    });
  }

  /// Lets that are left without results, and copies that nobody reads: the host would wait for those.
  void removeUnusedCopies() {
    learn();
    std::unordered_set<VarId> used;
    lcu::forEachBlock(std::as_const(program_), [&](const Block& block) {
      for (const Stmt& stmt : block.stmts)
        for (VarId v : lcu::freeVars(stmt)) used.insert(v);
      used.insert(block.results.begin(), block.results.end());
    });
    std::unordered_set<VarId> unused;
    for (const auto& [v, stmt] : definitions_)
      if (!used.contains(v) && copiedCell(v) != 0) unused.insert(v);
    definitions_.clear();
    lcu::forEachBlock(program_, [&](Block& block) {
      for (Stmt& stmt : block.stmts) {
        auto* let = std::get_if<lcu::HostLet>(&stmt.node);
        if (!let) continue;
        for (size_t k = stmt.results.size(); k-- > 0;) {
          if (!unused.contains(stmt.results[k])) continue;
          stmt.results.erase(stmt.results.begin() + static_cast<std::ptrdiff_t>(k));
          let->values.erase(let->values.begin() + static_cast<std::ptrdiff_t>(k));
        }
      }
      std::erase_if(block.stmts, [](const Stmt& stmt) {
        return std::holds_alternative<lcu::HostLet>(stmt.node) && stmt.results.empty();
      });
    });
  }

  lcu::Program& program_;
  std::unordered_map<VarId, const Stmt*> definitions_;
};

}  // namespace

void scalarsOnDevice(lcu::Program& program) { ScalarPass(program).run(); }

}  // namespace kelpie::flatten
