#include "runtime/interp/lock_step.h"

#include <algorithm>

namespace kelpie::runtime {

using codegen::ScheduleStep;

using lcu::ExprKind;

LockStep::LockStep(codegen::Schedule schedule) : schedule_(std::move(schedule)) {
  for (const codegen::ScheduleBlock& block : schedule_.blocks)
    for (const ScheduleStep& step : block.steps)
      if (step.node->kind == ExprKind::Recursion) bodies_[step.node->index] = step.first;
}

bool LockStep::add(std::span<const Path* const> paths, std::vector<double>& entered) const {
  std::vector<Neighbour> neighbours;
  for (const Path* path : paths) neighbours.push_back({path->data(), path->data() + path->size()});
  std::vector<Neighbour*> together;
  for (Neighbour& neighbour : neighbours) together.push_back(&neighbour);
  std::vector<double> times(schedule_.blocks.size(), 0);
  times[0] = together.empty() ? 0 : 1;
  walk(0, together, times);
  if (std::any_of(neighbours.begin(), neighbours.end(), [](const Neighbour& n) { return n.next != n.end; }))
    return false;
  for (size_t b = 0; b < times.size(); ++b) entered[b] += times[b];
  return true;
}

void LockStep::walk(uint32_t block, std::vector<Neighbour*>& together, std::vector<double>& times) const {
  for (const ScheduleStep& step : schedule_.blocks[block].steps) {
    switch (step.node->kind) {
      case ExprKind::If:
        enter(step.first, together, times);
        enter(step.second, together, times);
        break;
      case ExprKind::Loop:
        for (bool more = true; more;) {
          more = enter(step.first, together, times);
          more = enter(step.second, together, times) || more;
        }
        break;
      case ExprKind::Recursion:
      case ExprKind::Call:
        enter(bodies_.at(step.node->index), together, times);
        break;
      default:
        break;
    }
  }
}

/// Those whose next block it is. False: there are none.
bool LockStep::enter(uint32_t block, const std::vector<Neighbour*>& together,
                     std::vector<double>& times) const {
  if (block == 0) return false;
  std::vector<Neighbour*> inside;
  for (Neighbour* neighbour : together) {
    if (neighbour->next == neighbour->end || *neighbour->next != block) continue;
    ++neighbour->next;
    inside.push_back(neighbour);
  }
  if (inside.empty()) return false;
  ++times[block];
  walk(block, inside, times);
  return true;
}

}  // namespace kelpie::runtime
