#include "codegen/short_arrays.h"

#include <algorithm>

namespace kelpie::codegen {

using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

class Positions {
 public:
  explicit Positions(const lcu::Program& program)
      : program_(program),
        sources_(program.vars.size()),
        made_(program.vars.size(), Made::Unknown),
        divides_(program.vars.size(), false) {
    for (const lcu::GlobalInput& global : program.globals) {
      size_t next = 0;
      for (const CoreType& type : global.types) columns(type, true, global.vars, next);
    }
    for (const lcu::HostFunction& function : program.functions) block(function.body);
    block(program.entry.body);
  }

  std::vector<VarId> find() {
    spreadDivides();
    std::vector<std::vector<VarId>> targets(sources_.size());
    for (VarId v = 1; v < sources_.size(); ++v)
      for (VarId from : sources_[v]) targets[from].push_back(v);
    // What a variable cannot be, others that get its value cannot be either; a constant is what they are.
    std::vector<bool> isShort(program_.vars.size());
    for (VarId v = 1; v < isShort.size(); ++v) isShort[v] = isArray(v) && canBe(v);
    for (bool changed = true; changed;) {
      changed = false;
      for (VarId v = 1; v < isShort.size(); ++v) {
        const auto allShort = [&](const std::vector<VarId>& vars) {
          return std::all_of(vars.begin(), vars.end(), [&](VarId other) { return isShort[other]; });
        };
        if (!isShort[v]) continue;
        const bool constant = made_[v] == Made::Constant;
        if (constant ? !targets[v].empty() && allShort(targets[v]) : allShort(sources_[v])) continue;
        isShort[v] = false;
        changed = true;
      }
    }
    std::vector<VarId> result;
    for (VarId v = 1; v < isShort.size(); ++v)
      if (isShort[v]) result.push_back(v);
    return result;
  }

 private:
  /// What makes the value of a variable.
  enum class Made : uint8_t {
    Unknown,
    Offsets,   ///< of sequences from outside, or of a filter
    Draws,     ///< of 31 bits
    Scan,      ///< with its total
    Constant,  ///< of elements that fit
    Else,
  };

  bool isArray(VarId v) const {
    return program_.vars[v].kind == lcu::VarKind::Array && program_.vars[v].type == ScalarType::Int64;
  }
  bool canBe(VarId v) const {
    return made_[v] == Made::Offsets || made_[v] == Made::Draws || made_[v] == Made::Constant ||
           (made_[v] == Made::Scan && divides_[v]) || (made_[v] == Made::Unknown && !sources_[v].empty());
  }

  /// What becomes offsets divides a space, wherever it comes from.
  void spreadDivides() {
    std::vector<VarId> pending;
    for (VarId v = 1; v < divides_.size(); ++v)
      if (divides_[v]) pending.push_back(v);
    while (!pending.empty()) {
      const VarId v = pending.back();
      pending.pop_back();
      for (VarId from : sources_[v]) {
        if (divides_[from]) continue;
        divides_[from] = true;
        pending.push_back(from);
      }
    }
  }

  void flow(const std::vector<VarId>& from, const std::vector<VarId>& to) {
    for (size_t k = 0; k < to.size(); ++k) sources_[to[k]].push_back(from.at(k));
  }
  void make(const std::vector<VarId>& vars, Made how) {
    for (VarId v : vars) made_[v] = how;
  }
  void divide(const lcu::Space& space) {
    if (space.kind == lcu::SpaceKind::Offsets) divides_[space.offsets] = true;
  }

  /// Of dense columns (lcu::Service) those that are offsets.
  void columns(const CoreType& type, bool top, const std::vector<VarId>& vars, size_t& next) {
    const VarId v = vars.at(next++);
    made_[v] = type.isScalar() || top ? Made::Else : Made::Offsets;
    if (type.isScalar()) return;
    for (const CoreType& element : type.elements()) columns(element, false, vars, next);
  }

  void block(const lcu::Block& b) {
    for (const lcu::Stmt& s : b.stmts) std::visit([&](const auto& node) { statement(s, node); }, s.node);
  }
  void statement(const lcu::Stmt& s, const lcu::Launch& launch) {
    make(s.results, Made::Else);
    for (const Soac& soac : launch.kernel.bindings) {
      divide(soac.space);
      make(soac.results, Made::Else);
      if (soac.kind == SoacKind::Filter && soac.space.segmented()) made_[soac.results[0]] = Made::Offsets;
      if (soac.kind == SoacKind::Scan && soac.withTotal && !soac.backward) make(soac.results, Made::Scan);
    }
  }
  void statement(const lcu::Stmt& s, const lcu::Grade& grade) {
    divide(grade.space);
    make(s.results, Made::Else);
  }
  void statement(const lcu::Stmt& s, const lcu::Join& join) {
    make(s.results, Made::Else);
    make(join.arrays, Made::Else);  // they lie side by side in one array
  }
  void statement(const lcu::Stmt& s, const lcu::Service& service) {
    size_t next = 0;
    for (const CoreType& type : service.resultTypes) columns(type, true, s.results, next);
    if (service.name == "random_draws") made_[s.results[1]] = Made::Draws;
  }
  void statement(const lcu::Stmt& s, const lcu::HostIf& branch) {
    block(*branch.thenBlock);
    block(*branch.elseBlock);
    flow(branch.thenBlock->results, s.results);
    flow(branch.elseBlock->results, s.results);
  }
  void statement(const lcu::Stmt& s, const lcu::HostLoop& loop) {
    block(*loop.condition);
    block(*loop.body);
    flow(loop.initial, loop.params);
    flow(loop.body->results, loop.params);
    flow(loop.params, s.results);
  }
  void statement(const lcu::Stmt& s, const lcu::CallFunction& call) {
    const lcu::HostFunction& function = program_.functions.at(call.function);
    flow(call.arguments, function.params);
    flow(function.body.results, s.results);
  }
  void statement(const lcu::Stmt& s, const lcu::HostLet&) { make(s.results, Made::Else); }
  void statement(const lcu::Stmt& s, const lcu::ArrayConstant& constant) {
    for (size_t k = 0; k < s.results.size(); ++k)
      made_[s.results[k]] = fits(constant.columns.at(k)) ? Made::Constant : Made::Else;
  }
  static bool fits(const Column& column) {
    if (column.type.scalar() != ScalarType::Int64) return false;
    for (int64_t k = 0; k < column.length(); ++k)
      if (const int64_t element = column.at(k).i; element < 0 || element > kLongestShort) return false;
    return true;
  }

  const lcu::Program& program_;
  std::vector<std::vector<VarId>> sources_;  ///< by variable: those whose values it gets
  std::vector<Made> made_;
  std::vector<bool> divides_;  ///< used as offsets
};

}  // namespace

std::vector<VarId> shortArrays(const lcu::Program& program) { return Positions(program).find(); }

std::vector<VarId> shortArraysOf(const KernelInfo& info, const std::vector<VarId>& arrays) {
  std::vector<VarId> result;
  const auto add = [&](VarId v) {
    if (std::binary_search(arrays.begin(), arrays.end(), v)) result.push_back(v);
  };
  for (const KernelParameter& p : info.parameters)
    if (p.kind == ParameterKind::Array) add(p.var);
  for (const KernelOutput& o : info.outputs) add(o.var);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace kelpie::codegen
