#include "runtime/interp/sample_totals.h"

#include <algorithm>
#include <span>

#include "codegen/kernel_analysis.h"

namespace kelpie::runtime {

using codegen::ThunkSample;

namespace {
constexpr size_t kFour = 4;  ///< warps, of ThunkSample::ofFour
}

SampleTotals::SampleTotals(const lcu::Soac& soac, const KernelCode::Binding& code, int64_t n)
    : inStep_{LockStep(codegen::scheduleExpressions(codegen::eagerThunks(soac))),
              LockStep(codegen::scheduleExpressions(codegen::lateThunks(soac)))},
      n_(n),
      eagerBlocks_(code.thunks.blockCount()),
      eagerDivisions_(code.thunks.divisions().size()),
      eagerCalls_(inStep_[0].calls()) {
  enteredByAll_.resize(eagerBlocks_ + code.late.blockCount());
  inStepByAll_.resize(enteredByAll_.size());
  slowest_.resize(enteredByAll_.size());
  fours_.resize(enteredByAll_.size());
  four_.resize(enteredByAll_.size());
  divisions_.resize(eagerDivisions_ + code.late.divisions().size());
  calls_.resize(eagerCalls_ + inStep_[1].calls());
}

size_t SampleTotals::arrayOf(lcu::VarId array, double bytes, int64_t width, bool inOrder) {
  const auto [known, isNew] = numbers_.try_emplace(array, arrays_.size());
  if (isNew) arrays_.emplace_back(bytes, width, inOrder);
  return known->second;
}

void SampleTotals::addLoad(lcu::VarId array, double bytes, int64_t width, bool inOrder, bool known) {
  loads_.push_back({arrayOf(array, bytes, width, inOrder), known});
  tellsWhere_ |= known;
}

void SampleTotals::addWrites(double bytes, int64_t width) {
  writes_ = loads_.size();
  loads_.push_back({arrays_.size()});
  tellsWhere_ = true;
  arrays_.emplace_back(bytes, width, false);
}

void SampleTotals::beginAll() {
  everything_ = true;
  std::fill(enteredByAll_.begin(), enteredByAll_.end(), 0);
  std::fill(inStepByAll_.begin(), inStepByAll_.end(), 0);
  std::fill(slowest_.begin(), slowest_.end(), 0);
  std::fill(fours_.begin(), fours_.end(), Four());
  std::fill(divisions_.begin(), divisions_.end(), ThunkSample::Division());
  std::fill(calls_.begin(), calls_.end(), ThunkSample::Call());
  for (Load& load : loads_) load.number = 0;
  weight_ = 0;
}

void SampleTotals::beginInWindow(int64_t begin, int64_t end) {
  for (VisitedArray& array : arrays_) array.beginInWindow(begin, end);
  inWindow_ += end - begin;
}

void SampleTotals::addInWindow(const std::vector<std::pair<uint32_t, int64_t>>& positions) {
  for (const auto& [load, position] : positions) {
    arrays_[loads_[load].array].insertInWindow(position);
    if (load != writes_) continue;
    written_.insert(position);
    ++writers_;
  }
}

void SampleTotals::endInWindow() {
  for (VisitedArray& array : arrays_) array.endInWindow();
}

void SampleTotals::endPart() {
  for (VisitedArray& array : arrays_) array.endPart();
  inWindow_ = 0;
}

void SampleTotals::endWindow(double parts) {
  for (VisitedArray& array : arrays_) array.endWindow(parts);
  inWindow_ = 0;
  const auto writers = static_cast<double>(writers_);
  seen_ += writers;
  pairs_ += writers * (writers - 1) / 2;
  met_ += writers - static_cast<double>(written_.size());
  writers_ = 0;
  written_.clear();
}

double SampleTotals::gatheredInWindow() const {
  double bytes = 0;
  for (const VisitedArray& array : arrays_) bytes += array.gatheredInWindow();
  return bytes;
}

double SampleTotals::gatheredLately() const {
  double bytes = 0;
  for (const VisitedArray& array : arrays_) bytes += array.gatheredLately();
  return bytes;
}

double SampleTotals::gatheredInGroups() const {
  double bytes = 0;
  for (const VisitedArray& array : arrays_) bytes += array.gatheredInGroups();
  return bytes / static_cast<double>(std::max<int64_t>(grouped_, 1));
}

void SampleTotals::add(const ChosenElements::Batch& batch, const ElementsDone& done) {
  size_t place = 0;
  for (const auto& [begin, end] : batch.runs) {
    addRun(begin, end, place, batch, done);
    place += static_cast<size_t>(end - begin);
  }
  elements_ += batch.elements();
  if (batch.ofCore > 0) simulate(batch, done);
}

/// What warps load that go in step, and the others of their multiprocessor with them: the first load of each
/// element, then the second of each, and so on.
void SampleTotals::simulate(const ChosenElements::Batch& batch, const ElementsDone& done) {
  constexpr double kLines = 1536;  // what shared memory leaves
  constexpr auto kInStep = static_cast<size_t>(ChosenElements::kInStep);
  core_.limit(static_cast<size_t>(kLines * std::min(1.0, batch.ofCore)));
  double others = bytesInOrder_;
  for (size_t k = 0; k < arrays_.size(); ++k) {
    const VisitedArray& array = arrays_[k];
    if (!array.loadedInOrder()) continue;
    others -= static_cast<double>(array.width());
    for (const auto& [begin, end] : batch.runs)
      for (int64_t i = begin; i < end; ++i)
        core_.misses(static_cast<uint32_t>(k), i * array.width() / CoreCache::kSector);
  }
  core_.pass(std::max(0.0, others) * static_cast<double>(batch.elements()));

  for (Load& load : loads_) load.simulated.emplace_back(0, 0);
  std::vector<size_t> going;  // warps, by their first place
  size_t place = 0;
  for (const auto& [begin, end] : batch.runs) {
    for (size_t k = 0; k < static_cast<size_t>(end - begin); k += kInStep) going.push_back(place + k);
    place += static_cast<size_t>(end - begin);
  }
  std::vector<std::pair<uint32_t, int64_t>> asked;  // by a warp: array and piece
  for (size_t turn = 0; !going.empty(); ++turn) {
    std::erase_if(going, [&](size_t first) {
      asked.clear();
      bool some = false;
      for (size_t e = first; e < std::min(first + kInStep, done.positions.size()); ++e) {
        if (!done.positions[e] || done.positions[e]->size() <= turn) continue;
        some = true;
        const auto& [number, position] = (*done.positions[e])[turn];
        Load& load = loads_[number];
        ++load.simulated.back().first;
        const std::pair piece(static_cast<uint32_t>(load.array),
                              position * arrays_[load.array].width() / CoreCache::kSector);
        if (std::find(asked.begin(), asked.end(), piece) != asked.end()) continue;
        asked.push_back(piece);
        load.simulated.back().second += core_.misses(piece.first, piece.second);
      }
      return !some;
    });
  }
}

/// Neighbours, the first of which is at `place`.
void SampleTotals::addRun(int64_t begin, int64_t end, size_t place, const ChosenElements::Batch& batch,
                          const ElementsDone& done) {
  const auto places = std::span(done.positions).subspan(place, static_cast<size_t>(end - begin));
  std::vector<std::vector<int64_t>> byLoad(loads_.size());
  double kept = 0;
  for (const auto& positions : places) {
    if (!positions) continue;
    ++kept;
    for (const auto& [load, position] : *positions) byLoad[load].push_back(position);
  }
  // Of the others there are too many.
  const double times = kept > 0 ? static_cast<double>(places.size()) / kept : 0;
  // Neighbours resemble each other: what is spread counts by places, not by elements.
  const double weight = everything_ ? 1 : 1 / static_cast<double>(end - begin);
  for (size_t k = 0; k < loads_.size(); ++k)
    loads_[k].number += weight * times * static_cast<double>(byLoad[k].size());
  addEntered(place, place + places.size(), weight, done);
  weight_ += weight * static_cast<double>(places.size());
  if (batch.kind == ChosenElements::Kind::SmallGroups) return;

  for (VisitedArray& array : arrays_) array.beginGroup(begin, end);
  for (size_t k = 0; k < loads_.size(); ++k) {
    VisitedArray& array = arrays_[loads_[k].array];
    const size_t sectors = array.sectors(), granules = array.granules(), blocks = array.blocks();
    for (const int64_t position : byLoad[k]) array.insert(position);
    ThunkSample::Positions& found = loads_[k].found;
    found.number += times * static_cast<double>(byLoad[k].size());
    found.sectors += times * static_cast<double>(array.sectors() - sectors);
    found.granules += times * static_cast<double>(array.granules() - granules);
    found.blocks += times * static_cast<double>(array.blocks() - blocks);
  }
  for (VisitedArray& array : arrays_) array.endGroup(everything_);
  grouped_ += end - begin;
}

/// What the elements at these places of the batch entered.
void SampleTotals::addEntered(size_t begin, size_t end, double weight, const ElementsDone& done) {
  const size_t blocks = enteredByAll_.size();
  constexpr auto kInStep = static_cast<size_t>(ChosenElements::kInStep);
  for (size_t k = begin * blocks; k < end * blocks; ++k)
    enteredByAll_[k % blocks] += weight * static_cast<double>(done.entered[k]);
  for (size_t first = begin; first < end; first += kInStep) {
    const size_t last = std::min(end, first + kInStep);
    addInStep(first, last, 0, weight, done);
    addInStep(first, last, 1, weight, done);
    const size_t warps = (first - begin) / kInStep + 1;
    if (warps % kFour == 0 || last == end) addFour((warps - 1) % kFour + 1);
  }
}

/// Fewer side by side tell nothing.
void SampleTotals::addFour(size_t warps) {
  for (size_t k = 0; k < four_.size(); ++k) {
    if (warps == kFour) {
      fours_[k].most += four_[k].most;
      fours_[k].all += four_[k].all;
    }
    four_[k] = {};
  }
}

/// Of the eager thunks or the late ones, for elements that go in step. Where their paths are not known, the
/// one that enters a block most often counts for all.
void SampleTotals::addInStep(size_t first, size_t end, size_t late, double weight, const ElementsDone& done) {
  const size_t blocks = enteredByAll_.size(), begin = firstBlock(late), number = endBlock(late) - begin;
  std::vector<const LockStep::Path*> paths;
  bool known = true;
  for (size_t e = first; e < end; ++e) {
    if (done.entered[e * blocks + begin] == 0) continue;
    paths.push_back(&done.paths[late][e]);
    known = known && paths.back()->size() < kMostSteps;
  }
  std::optional<LockStep::Together> together;
  if (known) together = inStep_[late].of(paths);
  if (!together) {
    together.emplace().entered.resize(number);
    for (size_t e = first; e < end; ++e) {
      for (size_t k = 0; k < number; ++k) {
        double& most = together->entered[k];
        most = std::max(most, static_cast<double>(done.entered[e * blocks + begin + k]));
      }
    }
  }
  const double all = weight * static_cast<double>(end - first);
  for (size_t k = 0; k < number; ++k) {
    inStepByAll_[begin + k] += all * together->entered[k];
    slowest_[begin + k] = std::max(slowest_[begin + k], together->entered[k]);
    four_[begin + k].most = std::max(four_[begin + k].most, together->entered[k]);
    four_[begin + k].all += together->entered[k] / kFour;
  }
  for (size_t k = 0; k < together->divisions.size(); ++k)
    divisions_[(late ? eagerDivisions_ : 0) + k].add(together->divisions[k], all);
  for (size_t k = 0; k < together->calls.size(); ++k)
    calls_[(late ? eagerCalls_ : 0) + k].add(together->calls[k], all);
}

void SampleTotals::appendTo(ThunkSample& sample) const {
  const double times = weight_ > 0 ? static_cast<double>(n_) / weight_ : 0;
  for (size_t k = 0; k < enteredByAll_.size(); ++k) {
    sample.entered.push_back(enteredByAll_[k] * times);
    sample.inStep.push_back(inStepByAll_[k] * times);
    sample.slowest.push_back(weight_ > 0 ? slowest_[k] * static_cast<double>(n_) : 0);
    const double longer = fours_[k].all > 0 ? fours_[k].most / fours_[k].all : 1;
    sample.ofFour.push_back(inStepByAll_[k] * times * longer);
  }
  for (const ThunkSample::Division& division : divisions_) {
    sample.divisions.emplace_back();
    sample.divisions.back().add(division, times);
  }
  for (const ThunkSample::Call& call : calls_) {
    sample.calls.emplace_back();
    sample.calls.back().add(call, times);
  }
  const bool all = everything_ && grouped_ == n_;
  for (const Load& load : loads_) {
    if (!load.known) {
      sample.positions.push_back({-1});
      continue;
    }
    const VisitedArray& array = arrays_[load.array];
    ThunkSample::Positions found = load.found;
    if (found.number > 0) {
      const auto looked = static_cast<double>(grouped_), elements = static_cast<double>(n_);
      found.fresh = found.sectors * array.fresh(all, looked, elements);
      found.visited = found.number * array.visited(all, looked, elements);
      // In the first half of the batches the cache may have been filled.
      for (size_t k = load.simulated.size() / 2; k < load.simulated.size(); ++k) {
        found.simulated += load.simulated[k].first;
        found.missed += load.simulated[k].second;
      }
      if (found.simulated > 0) {
        found.missed *= found.number / found.simulated;
        found.simulated = found.number;
      }
    } else {  // no group was looked at, or none loads here: anywhere
      found = {1, 1, 1, 1, 1, array.bytes()};
    }
    sample.positions.emplace_back();
    sample.positions.back().add(found, times * load.number / found.number);
    if (writes_ && &load == &loads_[*writes_]) {
      sample.positions.back().seen = seen_;
      sample.positions.back().pairs = pairs_;
      sample.positions.back().met = met_;
    }
  }
}

}  // namespace kelpie::runtime
