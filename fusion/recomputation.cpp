#include "fusion/recomputation.h"

#include <algorithm>

#include "fusion/effects.h"

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

bool isOwnSegment(ExprRef load) {
  const ExprRef at = load->operands.empty() ? nullptr : load->operands[0];
  return at && at->kind == ExprKind::Param && at->index == 1;
}

namespace {

/// Of an element that a load tells.
bool isTold(ExprRef load) {
  return lcu::anyNode({load->operands[0]},
                      [](ExprRef e) { return e->kind == ExprKind::Load && e->usesParam; });
}

}  // namespace

Recomputation::SpaceKey Recomputation::keyOf(const lcu::Space& space) {
  return {space.kind, space.extent, space.segments, space.offsets, space.length};
}

ExprRef Recomputation::unchecked(ExprRef place) const {
  if (!place->canFail) return place;
  return program_.arena->rewriteUp(place, [](ExprRef node, const std::vector<ExprRef>& operands) {
    return node->kind == ExprKind::Check ? operands[1] : nullptr;
  });
}

void Recomputation::addLoads(const Soac& reader) {
  lcu::forEachNode(thunksOf(reader), [&](ExprRef e) {
    if (e->kind == ExprKind::Load) loaded_.insert({keyOf(reader.space), e->index, unchecked(e->operands[0])});
  });
}

void Recomputation::addRead(const Soac& reader, ExprRef read, double turns, bool ofFew) {
  Read added;
  added.turns = turns;
  added.space = keyOf(reader.space);
  if (read->kind == ExprKind::Load) {
    added.place = unchecked(read->operands[0]);
    added.far = patternOf(read->operands[0]) == AccessPattern::Arbitrary;
  }
  added.irregular = isOwnSegment(read) && !ofFew && reader.space.kind == lcu::SpaceKind::Offsets;
  added.times = reader.kind == SoacKind::Once ? 1 : model_.elements(reader.space.extent);
  added.places = isOwnSegment(read) ? model_.elements(reader.space.segments) : added.times;
  reads_[read->index].push_back(added);
}

bool Recomputation::isShared(const Read& read, ExprRef load) const {
  if (!read.place) return false;
  const ExprRef place = program_.arena->substituteParams({load->operands[0]}, {read.place})[0];
  return loaded_.contains({read.space, load->index, unchecked(place)});
}

double Recomputation::timeOf(VarId array, const Read& read, ExprRef pull, double arithmetic) const {
  const TargetCosts& costs = model_.costs();
  std::set<VarId> loaded;
  bool further = false;
  double loads = 0, told = 0;
  lcu::forEachNode({pull}, [&](ExprRef e) {
    if (e->kind != ExprKind::Load || patternOf(e->operands[0]) == AccessPattern::Same) return;
    const bool beside = !loaded.insert(e->index).second;
    if (isShared(read, e)) return;
    if (isTold(e)) {
      told += model_.farLoad(e->index);
    } else {
      const double near = read.irregular ? costs.cachedLoad : costs.besideLoad;
      loads += read.far && further && !beside ? model_.farLoad(e->index) : near;
      further = true;
    }
  });
  // What loads nothing spares the load of x, wherever that is.
  const double spared = read.far && loaded.empty() ? model_.farLoad(array) : costs.cachedLoad;
  return read.times * std::max(0.0, arithmetic + loads - spared) + read.places * told;
}

double Recomputation::computing(VarId array, ExprRef pull) const {
  const double arithmetic = model_.arithmetic({pull});
  double total = 0;
  for (const Read& read : reads_.at(array)) total += read.turns * timeOf(array, read, pull, arithmetic);
  return total;
}

double Recomputation::storing(VarId array, ExprRef pull, const Soac& map, bool accompanied) const {
  accompanied &= std::all_of(reads_.at(array).begin(), reads_.at(array).end(),
                             [](const Read& read) { return read.irregular; });
  const double launch = accompanied ? 0 : model_.costs().launch / static_cast<double>(map.pull.size());
  if (map.kind == SoacKind::Once) return launch;
  double told = 0;
  lcu::forEachNode({pull}, [&](ExprRef e) {
    if (e->kind == ExprKind::Load && isTold(e)) told += model_.farLoad(e->index);
  });
  return launch + 2 * model_.bytesOf(array) * model_.costs().byte +
         model_.elements(program_.vars[array].extent) * told;
}

}  // namespace kelpie::fusion
