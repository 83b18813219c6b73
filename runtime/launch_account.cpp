#include "runtime/launch_account.h"

#include <algorithm>
#include <map>

namespace kelpie::runtime {

using codegen::BindingRole;
using codegen::ParameterKind;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

LaunchAccount::LaunchAccount(const KernelEntry& entry, const lcu::Program& program)
    : entry_(entry), program_(program) {
  struct Reads {
    bool atElements = false, atSegments = false;
  };
  std::map<VarId, Reads> reads;
  for (size_t b = 0; b < entry.kernel->bindings.size(); ++b) {
    const Soac& soac = entry.kernel->bindings[b];
    const BindingRole role = entry.info.bindings[b].role;
    const auto scan = [&](const std::vector<lcu::ExprRef>& thunks, Times gathered) {
      lcu::forEachNode(thunks, [&](lcu::ExprRef e) {
        if (e->kind != lcu::ExprKind::Load || !entry.info.parameter(ParameterKind::Array, e->index)) return;
        const lcu::ExprRef at = e->operands[0];
        const bool inOrder = at->kind == lcu::ExprKind::Param && at->index < 2;
        if (!inOrder) {
          reads_.push_back({gathered, e->index, gathered == Times::Survivors ? soac.results[0] : VarId{}});
        } else if (at->index == 1 || role == BindingRole::Epilogue) {
          reads[e->index].atSegments = true;
        } else {
          reads[e->index].atElements = true;
        }
      });
    };
    const Times times = role == BindingRole::Finish     ? Times::Once
                        : role == BindingRole::Epilogue ? Times::Segments
                                                        : Times::Elements;
    if (soac.kind == SoacKind::Filter) {
      std::vector<lcu::ExprRef> eager = soac.effects;
      eager.push_back(soac.where);
      scan(eager, times);
      scan(soac.pull, Times::Survivors);
    } else {
      scan(codegen::thunksOf(soac), times);
    }
  }
  for (const auto& [var, r] : reads) {
    if (r.atElements) reads_.push_back({Times::Elements, var, 0});
    if (r.atSegments) reads_.push_back({Times::Segments, var, 0});
  }
}

LaunchWork LaunchAccount::of(const codegen::LaunchExtents& extents, const std::function<int64_t(VarId)>& kept,
                             std::span<const VarId> shortArrays) const {
  const auto n = static_cast<uint64_t>(extents.elements), m = static_cast<uint64_t>(extents.segments);
  const auto survivors = [&](VarId counter) {
    return static_cast<uint64_t>(std::clamp<int64_t>(kept(counter), 0, extents.elements));
  };
  const auto widthOf = [&](VarId v) {
    const bool isShort = std::binary_search(shortArrays.begin(), shortArrays.end(), v);
    return static_cast<uint64_t>(sizeOf(isShort ? ScalarType::Int32 : program_.vars.at(v).type));
  };
  LaunchWork work;
  if (const auto& p = entry_.info.offsetsParameter)
    work.bytesRead = (m + 1) * widthOf(entry_.info.parameters[*p].var);
  for (const Read& r : reads_) {
    const uint64_t times = r.times == Times::Once       ? 1
                           : r.times == Times::Segments ? m
                           : r.times == Times::Elements ? n
                                                        : survivors(r.counter);
    work.bytesRead += times * widthOf(r.array);
  }
  for (const codegen::KernelOutput& o : entry_.info.outputs) {
    uint64_t count = static_cast<uint64_t>(codegen::written(o, extents));
    if (o.count) count = o.countsFalse ? n - survivors(*o.count) : survivors(*o.count);
    work.bytesWritten += count * widthOf(o.var);
  }
  for (size_t b = 0; b < entry_.kernel->bindings.size(); ++b) {
    const BindingRole role = entry_.info.bindings[b].role;
    work.elements += role == BindingRole::Finish ? 1 : role == BindingRole::Epilogue ? m : n;
  }
  for (const Soac& soac : entry_.kernel->bindings) {
    if (soac.kind != SoacKind::Filter) continue;
    work.survivors.push_back(survivors(soac.results[0]));
  }
  return work;
}

}  // namespace kelpie::runtime
