#include "codegen/cuda/pass_split.h"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/cuda/pass_plan.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

enum class Direction : uint8_t { Either, Forward, Backward };

Direction directionOf(const Soac& soac) {
  switch (soac.kind) {
    case SoacKind::Scan:
      return soac.backward ? Direction::Backward : Direction::Forward;
    case SoacKind::Filter:
    case SoacKind::Partition:
      return Direction::Forward;
    case SoacKind::Reduce:
      return soac.space.segmented() || laneOperations(soac.combine).empty() ? Direction::Forward
                                                                            : Direction::Either;
    default:
      return Direction::Either;
  }
}

}  // namespace

bool runsBackward(const lcu::Kernel& kernel) {
  return std::any_of(kernel.bindings.begin(), kernel.bindings.end(),
                     [](const Soac& s) { return directionOf(s) == Direction::Backward; });
}

std::vector<KernelPart> splitByDirection(const lcu::Kernel& kernel) {
  std::vector<KernelPart> passes;
  std::vector<Direction> directions;
  std::map<VarId, size_t> passOf;
  std::set<VarId> returned(kernel.returns.begin(), kernel.returns.end());
  for (uint32_t b = 0; b < kernel.bindings.size(); ++b) {
    const Soac& soac = kernel.bindings[b];
    size_t pass = 0;
    auto reads = lcu::freeVars(soac);
    for (VarId v : reads)
      if (auto it = passOf.find(v); it != passOf.end()) pass = std::max(pass, it->second);
    Direction direction = directionOf(soac);
    while (pass < passes.size() && direction != Direction::Either && directions[pass] != Direction::Either &&
           directions[pass] != direction)
      ++pass;
    if (pass == passes.size()) {
      passes.push_back({{kernel.name, {}, {}}, {}});
      directions.push_back(Direction::Either);
    }
    if (direction != Direction::Either) directions[pass] = direction;
    passes[pass].kernel.bindings.push_back(soac);
    passes[pass].bindings.push_back(b);
    for (VarId v : soac.results) passOf[v] = pass;
    for (VarId v : reads)
      if (auto it = passOf.find(v); it != passOf.end() && it->second < pass) returned.insert(v);
  }
  for (KernelPart& part : passes)
    for (const Soac& soac : part.kernel.bindings)
      for (VarId v : soac.results)
        if (returned.contains(v)) part.kernel.returns.push_back(v);
  return passes;
}

}  // namespace kelpie::codegen::cuda
