#include "ir/lcu.h"

#include <algorithm>
#include <iterator>

namespace kelpie::lcu {
namespace {

template <typename... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overload(Fs...) -> Overload<Fs...>;

using Vars = std::vector<VarId>;  // in any order, some of them several times

Vars ascending(Vars vars) {
  std::sort(vars.begin(), vars.end());
  vars.erase(std::unique(vars.begin(), vars.end()), vars.end());
  return vars;
}

void addVars(const Vars& vars, Vars& reads) { reads.insert(reads.end(), vars.begin(), vars.end()); }

/// Those `inside` of something that it does not bind.
void addFree(Vars inside, Vars bound, Vars& reads) {
  inside = ascending(std::move(inside));
  std::sort(bound.begin(), bound.end());
  std::set_difference(inside.begin(), inside.end(), bound.begin(), bound.end(), std::back_inserter(reads));
}

void addExprs(const std::vector<ExprRef>& es, Vars& reads) {
  forEachNode(es, [&](ExprRef e) {
    if (e->kind == ExprKind::Host || e->kind == ExprKind::Load || e->kind == ExprKind::Size)
      reads.push_back(e->index);
  });
}

void addSpace(const Space& space, std::vector<ExprRef>& roots, Vars& reads) {
  for (ExprRef e : {space.extent, space.segments, space.length})
    if (e) roots.push_back(e);
  if (space.kind == SpaceKind::Offsets) reads.push_back(space.offsets);
}

void addSoac(const Soac& soac, Vars& reads) {
  std::vector<ExprRef> roots;
  if (soac.kind != SoacKind::Once) addSpace(soac.space, roots, reads);
  for (const auto* part : {&soac.pull, &soac.combine.result, &soac.effects})
    roots.insert(roots.end(), part->begin(), part->end());
  for (ExprRef e : {soac.where, soac.destination, soac.target})
    if (e) roots.push_back(e);
  addVars(soac.onto, reads);
  addExprs(roots, reads);
}

void addStmt(const Stmt& stmt, Vars& reads);

/// `parameters` are variables that the block's owner binds before it.
void addBlock(const Block& block, const Vars& parameters, Vars& reads) {
  Vars inside, bound = parameters;
  for (const Stmt& stmt : block.stmts) {
    addStmt(stmt, inside);
    addVars(stmt.results, bound);
  }
  addVars(block.results, inside);
  addFree(std::move(inside), std::move(bound), reads);
}

void addStmt(const Stmt& stmt, Vars& reads) {
  std::visit(Overload{
                 [&](const HostLet& let) { addExprs(let.values, reads); },
                 [&](const Launch& launch) {
                   Vars inside, bound;
                   for (const Soac& soac : launch.kernel.bindings) {
                     addSoac(soac, inside);
                     addVars(soac.results, bound);
                   }
                   addFree(std::move(inside), std::move(bound), reads);
                 },
                 [&](const CallFunction& call) { addVars(call.arguments, reads); },
                 [&](const HostIf& conditional) {
                   addExprs({conditional.condition}, reads);
                   addBlock(*conditional.thenBlock, {}, reads);
                   addBlock(*conditional.elseBlock, {}, reads);
                 },
                 [&](const HostLoop& loop) {
                   addVars(loop.initial, reads);
                   addBlock(*loop.condition, loop.params, reads);
                   addBlock(*loop.body, loop.params, reads);
                 },
                 [&](const ArrayConstant&) {},
                 [&](const Join& join) { addVars(join.arrays, reads); },
                 [&](const Grade& grade) {
                   std::vector<ExprRef> roots;
                   reads.push_back(grade.keys);
                   addSpace(grade.space, roots, reads);
                   addExprs(roots, reads);
                 },
                 [&](const Service& service) { addVars(service.arguments, reads); },
             },
             stmt.node);
}

/// Program and Block are both const or neither.
template <typename Program, typename Block>
void visitBlocks(Program& program, const std::function<void(Block&)>& visit) {
  const std::function<void(Block&)> descend = [&](Block& block) {
    visit(block);
    for (auto& stmt : block.stmts) {
      if (auto* conditional = std::get_if<HostIf>(&stmt.node)) {
        descend(*conditional->thenBlock);
        descend(*conditional->elseBlock);
      } else if (auto* loop = std::get_if<HostLoop>(&stmt.node)) {
        descend(*loop->condition);
        descend(*loop->body);
      }
    }
  };
  descend(program.entry.body);
  for (auto& function : program.functions) descend(function.body);
}

}  // namespace

VarId Program::newVar(VarInfo info) {
  if (vars.empty()) vars.emplace_back();
  const auto id = static_cast<VarId>(vars.size());
  if (info.kind == VarKind::Array && !info.extent) info.extent = arena->size(id);
  vars.push_back(std::move(info));
  return id;
}

SiteId Program::newSite(Site site) {
  if (sites.empty()) sites.push_back({{}, "unknown error"});
  sites.push_back(std::move(site));
  return static_cast<SiteId>(sites.size() - 1);
}

void forEachBlock(Program& program, const std::function<void(Block&)>& visit) {
  visitBlocks<Program, Block>(program, visit);
}

void forEachBlock(const Program& program, const std::function<void(const Block&)>& visit) {
  visitBlocks<const Program, const Block>(program, visit);
}

std::vector<VarId> freeVars(const std::vector<ExprRef>& es) {
  Vars reads;
  addExprs(es, reads);
  return ascending(std::move(reads));
}

std::vector<VarId> freeVars(const Soac& soac) {
  Vars reads;
  addSoac(soac, reads);
  return ascending(std::move(reads));
}

std::vector<VarId> freeVars(const Stmt& stmt) {
  Vars reads;
  addStmt(stmt, reads);
  return ascending(std::move(reads));
}

}  // namespace kelpie::lcu
