#include "runtime/interp/lock_step.h"

#include <algorithm>
#include <list>
#include <set>
#include <utility>

#include "codegen/integer_division.h"

namespace kelpie::runtime {

using codegen::ScheduleStep;
using codegen::ThunkSample;
using lcu::ExprKind;
using lcu::ExprRef;

LockStep::LockStep(codegen::Schedule schedule)
    : schedule_(std::move(schedule)), firstCall_{0}, firstDivision_{0} {
  for (const codegen::ScheduleBlock& block : schedule_.blocks) {
    size_t calls = firstCall_.back(), divisions = firstDivision_.back();
    for (const ScheduleStep& step : block.steps) {
      if (step.node->kind == ExprKind::Recursion) {
        bodies_[step.node->index] = step.first;
        if (auto pending = codegen::pendingCalls(schedule_, step))
          inFrames_[step.node->index] = std::move(*pending);
      }
      if (step.node->kind == ExprKind::Call) ++calls;
      if (codegen::dividesByWords(step.node)) ++divisions;
    }
    firstCall_.push_back(calls);
    firstDivision_.push_back(divisions);
  }
}

std::optional<LockStep::Together> LockStep::of(std::span<const Path* const> paths) const {
  std::vector<Neighbour> neighbours;
  for (const Path* path : paths) neighbours.push_back({path->data(), path->data() + path->size()});
  std::vector<Neighbour*> all;
  for (Neighbour& neighbour : neighbours) all.push_back(&neighbour);
  Together together{std::vector<double>(schedule_.blocks.size(), 0),
                    std::vector<ThunkSample::Division>(firstDivision_.back()),
                    std::vector<ThunkSample::Call>(firstCall_.back())};
  if (all.empty()) return together;
  together.entered[0] = 1;
  walk(0, all, together);
  if (std::any_of(neighbours.begin(), neighbours.end(), [](const Neighbour& n) { return n.next != n.end; }))
    return std::nullopt;
  return together;
}

void LockStep::walk(uint32_t block, const std::vector<Neighbour*>& neighbours, Together& together) const {
  size_t division = firstDivision_[block];
  for (const ScheduleStep& step : schedule_.blocks[block].steps) {
    switch (step.node->kind) {
      case ExprKind::If:
        enter(step.first, neighbours, together);
        enter(step.second, neighbours, together);
        break;
      case ExprKind::Loop:
        for (bool more = true; more;) {
          more = enter(step.first, neighbours, together);
          more = enter(step.second, neighbours, together) || more;
        }
        break;
      case ExprKind::Recursion:
        if (inFrames_.contains(step.node->index)) {
          turns(step, neighbours, together);
          break;
        }
        [[fallthrough]];
      case ExprKind::Call:
        enter(bodies_.at(step.node->index), neighbours, together);
        break;
      default:
        if (codegen::dividesByWords(step.node)) divide(division++, neighbours, together);
        break;
    }
  }
}

/// Those whose next block it is. False: there are none.
bool LockStep::enter(uint32_t block, const std::vector<Neighbour*>& neighbours, Together& together) const {
  if (block == 0) return false;
  std::vector<Neighbour*> inside;
  for (Neighbour* neighbour : neighbours) {
    if (!neighbour->goesTo(block)) continue;
    ++neighbour->next;
    inside.push_back(neighbour);
  }
  if (inside.empty()) return false;
  ++together.entered[block];
  walk(block, inside, together);
  return true;
}

void LockStep::divide(size_t division, const std::vector<Neighbour*>& neighbours, Together& together) const {
  size_t ofLong = 0;
  for (Neighbour* neighbour : neighbours) {
    if (!neighbour->goesTo(schedule_.blocks.size() + division)) continue;
    ++neighbour->next;
    ++ofLong;
  }
  ThunkSample::Division& found = together.divisions[division];
  ++found.number;
  if (ofLong > 0) ++found.ofLong;
  if (ofLong < neighbours.size()) ++found.ofShort;
}

/// The way of one neighbour through a recursion, turn by turn.
class LockStep::Turns {
 public:
  /// What a turn does: blocks that it enters and, behind their numbers, long divisions, and behind these
  /// short ones.
  using Done = std::vector<uint32_t>;

  Turns(const LockStep& steps, const codegen::PendingCalls& calls, uint32_t body, Neighbour& neighbour)
      : steps_(steps), calls_(calls), body_(body), neighbour_(neighbour) {}

  /// A call that ended the turn, and how deep it was; none: it left nothing pending, or the turn ended
  /// otherwise.
  struct Made {
    size_t call, depth;
  };

  bool over() const { return begun_ && stack_.empty(); }

  std::optional<Made> turn(Done& done) {
    if (!begun_) {
      begun_ = true;
      enter(body_, done);
    }
    while (!stack_.empty()) {
      Place& place = stack_.back();
      const std::vector<ScheduleStep>& steps = steps_.schedule_.blocks[place.block].steps;
      if (place.step == steps.size()) {
        const bool function = place.block == body_;
        stack_.pop_back();
        if (function && (stack_.empty() || !isLast(stepOf(stack_.back()).node))) return std::nullopt;
        continue;
      }
      const ScheduleStep& step = steps[place.step];
      const size_t depth = stack_.size();
      const std::optional<size_t> call =
          step.node->kind == ExprKind::Call && !place.inside ? std::optional(numberOf(place)) : std::nullopt;
      if (!goOn(place, step, done) || !call) continue;
      return isLast(step.node) ? std::nullopt : std::optional(Made{*call, depth});
    }
    return std::nullopt;
  }

 private:
  struct Place {
    uint32_t block;
    size_t step = 0;
    bool inside = false;  ///< of the step: its condition, or its branch or call, is done
  };
  const ScheduleStep& stepOf(const Place& place) const {
    return steps_.schedule_.blocks[place.block].steps[place.step];
  }
  bool isLast(ExprRef call) const { return call->kind == ExprKind::Call && calls_.last.contains(call); }

  /// Of a call or a division.
  size_t numberOf(const Place& place) const {
    const std::vector<ScheduleStep>& steps = steps_.schedule_.blocks[place.block].steps;
    const bool call = steps[place.step].node->kind == ExprKind::Call;
    size_t number = (call ? steps_.firstCall_ : steps_.firstDivision_)[place.block];
    for (size_t k = 0; k < place.step; ++k)
      number += call ? steps[k].node->kind == ExprKind::Call : codegen::dividesByWords(steps[k].node);
    return number;
  }

  void enter(uint32_t block, Done& done) {
    ++neighbour_.next;
    done.push_back(block);
    stack_.push_back({block});
  }
  /// To the block that comes next if the path says so.
  bool mayEnter(uint32_t block, Done& done) {
    if (block == 0 || !neighbour_.goesTo(block)) return false;
    enter(block, done);
    return true;
  }

  /// Makes a step, or a part of it. True: it has entered a block.
  bool goOn(Place& place, const ScheduleStep& step, Done& done) {
    const bool inside = std::exchange(place.inside, true);
    switch (step.node->kind) {
      case ExprKind::If:
        if (!inside && (mayEnter(step.first, done) || mayEnter(step.second, done))) return true;
        break;
      case ExprKind::Loop:
        if (inside) {
          place.inside = false;
          if (mayEnter(step.second, done)) return true;
        } else if (mayEnter(step.first, done)) {
          return true;
        }
        break;
      case ExprKind::Call:
        if (!inside && mayEnter(body_, done)) return true;
        break;
      default:
        if (codegen::dividesByWords(step.node)) divide(place, done);
        break;
    }
    place.inside = false;
    ++place.step;
    return false;
  }

  void divide(const Place& place, Done& done) {
    const auto number = static_cast<uint32_t>(steps_.schedule_.blocks.size() + numberOf(place));
    if (neighbour_.goesTo(number)) {
      ++neighbour_.next;
      done.push_back(number);
    } else {
      done.push_back(number + static_cast<uint32_t>(steps_.firstDivision_.back()));
    }
  }

  const LockStep& steps_;
  const codegen::PendingCalls& calls_;
  const uint32_t body_;
  Neighbour& neighbour_;
  bool begun_ = false;
  std::vector<Place> stack_;
};

/// In each turn a block counts as often as the one counts it that enters it most.
void LockStep::turns(const ScheduleStep& recursion, const std::vector<Neighbour*>& neighbours,
                     Together& together) const {
  std::list<Turns> open;
  for (Neighbour* neighbour : neighbours)
    if (neighbour->goesTo(recursion.first))
      open.emplace_back(*this, inFrames_.at(recursion.node->index), recursion.first, *neighbour);
  const size_t blocks = schedule_.blocks.size(), divisions = firstDivision_.back();
  std::vector<uint32_t> most(blocks + 2 * divisions), own(most.size());  // of a turn: of all, of one of them
  Turns::Done done, touched;
  std::set<std::pair<size_t, size_t>> made;  // calls and depths
  while (!open.empty()) {
    touched.clear();
    for (Turns& one : open) {
      done.clear();
      if (const auto call = one.turn(done)) made.insert({call->call, call->depth});
      for (const uint32_t k : done) {
        if (most[k] == 0) touched.push_back(k);
        most[k] = std::max(most[k], ++own[k]);
      }
      for (const uint32_t k : done) own[k] = 0;
    }
    for (const uint32_t k : touched) {
      if (k < blocks) {
        together.entered[k] += std::exchange(most[k], 0);
        continue;
      }
      const size_t division = (k - blocks) % divisions;
      const double ofLong = std::exchange(most[blocks + division], 0);
      const double ofShort = std::exchange(most[blocks + divisions + division], 0);
      together.divisions[division].add({std::max(ofLong, ofShort), ofLong, ofShort}, 1);
    }
    for (auto it = made.begin(); it != made.end(); ++it) {
      ThunkSample::Call& call = together.calls[it->first];
      if (it == made.begin() || std::prev(it)->first != it->first) ++call.number;
      ++call.depths;
    }
    made.clear();
    std::erase_if(open, [](const Turns& one) { return one.over(); });
  }
}

}  // namespace kelpie::runtime
