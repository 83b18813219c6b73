// Thunks evaluated for some of a launch's elements (codegen/thunk_sample.h).
//
// Memory that has to be fetched. An element that meets something that is away stands still: what it has done
// is kept, and it goes on from there when all that was noted has been fetched in one wait. Before it stands
// still it *guesses*: it goes on with what happens to be in memory and notes what else it meets that is away,
// and nothing else of that counts. A guess is right where positions do not depend on what was loaded: then
// one wait suffices for a loop. It reaches about as far as guesses proved right before, and ends at an
// address of no array.
#include <cmath>
#include <unordered_map>

#include "runtime/interp/chosen_elements.h"
#include "runtime/interp/launch_evaluation.h"
#include "runtime/interp/lock_step.h"
#include "runtime/interp/visited_array.h"

namespace kelpie::runtime {

namespace {

using Clock = std::chrono::steady_clock;

/// Something is not in the memory of the host yet, and a guess has come to its end.
struct NotThere {};

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

/// The thunks of one binding.
class LaunchEvaluation::SampledBinding final : private ExpressionCode::Trace {
 public:
  /// `bytes` of the arrays behind the parameters.
  SampledBinding(LaunchEvaluation& launch, uint32_t b, std::span<const size_t> bytes, SampledMemory* memory,
                 codegen::Streams streams)
      : launch_(launch),
        soac_(launch.kernel_.bindings[b]),
        epilogue_(launch.info_.bindings[b].role == BindingRole::Epilogue),
        code_(launch.code_.bindings()[b]),
        entered_(code_.thunks.blockCount() + code_.late.blockCount()),
        thunks_(launch.instantiate(code_.thunks, entered_.data())),
        late_(launch.instantiate(code_.late, entered_.data() + code_.thunks.blockCount())),
        inStep_{LockStep(codegen::scheduleExpressions(codegen::eagerThunks(soac_))),
                LockStep(codegen::scheduleExpressions(codegen::lateThunks(soac_)))},
        memory_(memory),
        streams_(streams),
        n_(epilogue_ ? launch.m_ : launch.n_),
        chosen_(n_),
        enteredByAll_(entered_.size()),
        inStepByAll_(entered_.size()) {
    for (const ExpressionCode* code : {&code_.thunks, &code_.late})
      for (const lcu::ExprRef load : code->gathers()) loads_.push_back({arrayOf(load, bytes)});
    addProducers(b);
    if (soac_.kind != SoacKind::Permute) return;
    size_t permute = 0;
    for (uint32_t other = 0; other < b; ++other)
      permute += launch.kernel_.bindings[other].kind == SoacKind::Permute;
    const int64_t width = soac_.pull.empty() ? 1 : sizeOf(soac_.pull[0]->type);
    loads_.push_back({arrays_.size()});
    arrays_.emplace_back(static_cast<double>(width * launch.request_.extents.targets.at(permute)), width,
                         false);
  }

  /// Looks at some more elements. False: it has seen enough, or cannot see more before the deadline.
  bool advance(Deadline deadline) {
    const Clock::time_point begin = Clock::now();
    const std::optional<ChosenElements::Batch> batch =
        next(std::chrono::duration<double>(deadline - begin).count());
    if (!batch || !evaluate(*batch, deadline)) return false;
    nextPlace_ = 0;
    for (const auto& [first, end] : batch->runs) visit(first, end, *batch);
    elements_ += batch->elements();
    seconds_ += secondsSince(begin);
    return true;
  }
  double seconds() const { return seconds_; }

  /// Appends what it found to the sample; all zero if it was nothing.
  void appendTo(codegen::ThunkSample& sample) const {
    const double times = weight_ > 0 ? static_cast<double>(n_) / weight_ : 0;
    for (size_t k = 0; k < enteredByAll_.size(); ++k) {
      sample.entered.push_back(enteredByAll_[k] * times);
      sample.inStep.push_back(inStepByAll_[k] * times);
    }
    const bool all = grouped_ == n_;
    const auto inWindows = 2 * static_cast<double>(chosen_.ofWindow());
    for (const Load& load : loads_) {
      const VisitedArray& array = arrays_[load.array];
      codegen::ThunkSample::Positions found = load.found;
      if (found.number > 0) {
        found.fresh = found.sectors * array.fresh(all, static_cast<double>(grouped_),
                                                  static_cast<double>(probed_), inWindows);
        found.visited = found.number * array.visited(all);
      } else {  // no group was looked at, or none loads here: anywhere
        found = {1, 1, 1, 1, 1, array.bytes()};
      }
      sample.positions.emplace_back();
      sample.positions.back().add(found, times * load.number / found.number);
    }
  }

 private:
  static constexpr size_t kMostPositions = size_t{1} << 20;  ///< of a batch
  static constexpr size_t kMostSteps = 1 << 13;              ///< of a path
  static constexpr size_t kLeastGuess = 8, kMostGuess = 1 << 13;
  static constexpr size_t kMostNoted = 2000;  ///< pieces before they are fetched
  static constexpr double kMostGuessing = 6;  ///< waits that guesses take before they are fetched

  struct Load {
    size_t array;
    codegen::ThunkSample::Positions found = {};  ///< in groups; small ones do not tell how near others are
    double number = 0;                           ///< by weight
  };
  /// A map of the kernel whose elements the thunks read: it is evaluated before them.
  struct Producer {
    const Soac* soac;
    Instance thunks;
    std::vector<Register> values;   ///< memory of its results, of the element at hand
    std::vector<uint64_t> entered;  ///< of no interest here
  };

  /// Adds the maps that binding b reads, after those that these read.
  void addProducers(uint32_t b) {
    std::vector<uint32_t> wanted = {b};
    for (size_t k = 0; k < wanted.size(); ++k)
      for (const uint32_t other : launch_.mapsReadBy(wanted[k]))
        if (std::find(wanted.begin(), wanted.end(), other) == wanted.end()) wanted.push_back(other);
    std::sort(wanted.begin(), wanted.end());
    wanted.pop_back();  // b itself, the last
    for (const uint32_t other : wanted) {
      const Soac& soac = launch_.kernel_.bindings[other];
      const ExpressionCode& code = launch_.code_.bindings()[other].thunks;
      segmented_ |= soac.space.segmented();
      std::vector<uint64_t> entered(code.blockCount());
      producers_.push_back({&soac, launch_.instantiate(code, entered.data()),
                            std::vector<Register>(soac.results.size()), std::move(entered)});
    }
  }

  /// Where element i of the producers' results is loaded from, for all thunks that do.
  void placeResults(int64_t i) {
    const auto place = [&](Instance& reader) {
      for (const Producer& producer : producers_) {
        for (size_t j = 0; j < producer.values.size(); ++j) {
          const std::vector<VarId>& arrays = reader.code->arrays();
          const auto array = std::find(arrays.begin(), arrays.end(), producer.soac->results[j]);
          if (array == arrays.end()) continue;
          const auto offset =
              static_cast<uintptr_t>(i) * static_cast<uintptr_t>(sizeOf(producer.soac->pull[j]->type));
          reader.arrays[static_cast<size_t>(array - arrays.begin())] =
              reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(&producer.values[j]) - offset);
        }
      }
    };
    for (Producer& producer : producers_) place(producer.thunks);
    place(thunks_);
    place(late_);
  }
  bool isResult(const std::byte* address) const {
    return std::any_of(producers_.begin(), producers_.end(), [&](const Producer& producer) {
      const auto* begin = reinterpret_cast<const std::byte*>(producer.values.data());
      return std::less_equal<>()(begin, address) &&
             std::less<>()(address, begin + producer.values.size() * sizeof(Register));
    });
  }

  /// How many elements pass before a cache has forgotten what it held: by what is loaded and stored.
  int64_t remembered() const {
    double bytes = 0;
    for (const auto& parameter : launch_.info_.parameters) {
      const bool inOrder =
          parameter.kind == ParameterKind::Array &&
          std::any_of(launch_.kernel_.bindings.begin(), launch_.kernel_.bindings.end(),
                      [&](const Soac& soac) {
                        return lcu::anyNode(codegen::thunksOf(soac), [&](lcu::ExprRef e) {
                          return e->kind == lcu::ExprKind::Load && e->index == parameter.var &&
                                 e->operands[0]->kind == lcu::ExprKind::Param && e->operands[0]->index == 0;
                        });
                      });
      if (inOrder) bytes += sizeOf(parameter.type);
    }
    for (const auto& output : launch_.info_.outputs)
      if (output.extent == codegen::ExtentKind::Elements) bytes += sizeOf(output.type);
    for (const VisitedArray& array : arrays_) bytes += array.gatheredBytes() / static_cast<double>(grouped_);
    return static_cast<int64_t>(codegen::kRemembered / std::max(1.0, bytes));
  }
  /// Number of what is known of the array.
  size_t arrayOf(lcu::ExprRef load, std::span<const size_t> bytes) {
    const auto [known, isNew] = numbers_.try_emplace(load->index, arrays_.size());
    if (!isNew) return known->second;
    double size = 0;
    for (size_t k = 0; k < launch_.info_.parameters.size(); ++k) {
      const auto& parameter = launch_.info_.parameters[k];
      if (parameter.kind == ParameterKind::Array && parameter.var == load->index)
        size = static_cast<double>(bytes[k]);
    }
    const bool inOrder = !epilogue_ && lcu::anyNode(codegen::thunksOf(soac_), [&](lcu::ExprRef e) {
      return e->kind == lcu::ExprKind::Load && e->index == load->index &&
             e->operands[0]->kind == lcu::ExprKind::Param && e->operands[0]->index == 0;
    });
    arrays_.emplace_back(size, sizeOf(load->type), inOrder);
    return known->second;
  }

  /// An element under way that stands still, as it was when it met what is away.
  struct Standing {
    size_t place = 0;  ///< in the batch
    int64_t i = 0, s = 0, p = 0;
    size_t stage = 0;
    std::vector<Register> registers = {};  ///< of the stage
    ExpressionCode::Progress progress = {};
    std::vector<std::vector<Register>> produced = {};
    std::vector<uint64_t> entered = {};
    std::vector<std::pair<uint32_t, int64_t>> seen = {};
    std::array<LockStep::Path, 2> path = {};
    size_t guessed = 0;  ///< steps that it went on
  };

  /// What to look at next, if there is so much time left.
  std::optional<ChosenElements::Batch> next(double left) {
    if (n_ == 0) return std::nullopt;
    if (elements_ == 0) return smallGroups(1);  // tells how long they take
    const double ofElement = seconds_ / static_cast<double>(elements_);
    const double ofGroup = ofElement * codegen::kNeighbours;
    const bool suffices = ofGroup * static_cast<double>(chosen_.batches() - next_) < left;
    if (next_ == 0 && chosen_.all() && suffices) {
      everything_ = true;
      forgetSmallGroups();
    }
    const bool isDone = next_ == chosen_.batches();
    if (everything_) return isDone ? std::nullopt : std::optional(chosen_[next_++]);

    const auto someSmallGroups = [&] {
      const double number = left / 8 / (ofElement * ChosenElements::kInStep);
      return smallGroups(static_cast<int64_t>(
          std::clamp<double>(number, 1, codegen::kNeighbours / ChosenElements::kInStep)));
    };
    if (loads_.empty()) {
      if (elements_ >= ChosenElements::kBatches * codegen::kNeighbours) return std::nullopt;
      return someSmallGroups();
    }
    if (isDone) return std::nullopt;
    // Where the time does not suffice for all, small groups see more of the launch: half of it is theirs.
    const bool isTheirTurn = elements_ < 2 * (grouped_ + probed_);
    if (ofGroup > left || (!suffices && isTheirTurn)) return someSmallGroups();
    if (next_ == ChosenElements::kFirst && !chosen_.all())
      chosen_.chooseWindows(epilogue_ ? codegen::Streams() : streams_, remembered());
    return chosen_[next_++];
  }
  void forgetSmallGroups() {
    std::fill(enteredByAll_.begin(), enteredByAll_.end(), 0);
    std::fill(inStepByAll_.begin(), inStepByAll_.end(), 0);
    for (Load& load : loads_) load.number = 0;
    weight_ = 0;
  }
  ChosenElements::Batch smallGroups(int64_t number) {
    smallGroups_ += number;
    return chosen_.smallGroups(smallGroups_ - number, number);
  }

  /// False: the time is over.
  bool evaluate(const ChosenElements::Batch& batch, Deadline deadline) {
    standing_.clear();
    for (const auto& [begin, end] : batch.runs)
      for (int64_t i = begin; i < end; ++i) standing_.push_back({standing_.size(), i});
    done_.assign(standing_.size() * entered_.size(), 0);
    positions_.assign(standing_.size(), std::nullopt);
    for (std::vector<LockStep::Path>& paths : paths_) paths.assign(standing_.size(), {});
    seenByBatch_ = 0;
    launch_.log_.setDeadline(deadline);
    launch_.trace_ = this;
    launch_.progress_ = &progress_;
    const bool done = evaluateStanding(deadline);
    launch_.trace_ = nullptr;
    launch_.progress_ = nullptr;
    return done;
  }
  bool evaluateStanding(Deadline deadline) try {
    while (!standing_.empty()) {
      double guessing = 0;
      size_t still = 0;
      for (Standing& element : standing_) {
        const Clock::time_point begin = Clock::now();
        if (begin >= deadline) return false;
        if (goOn(element)) continue;
        Standing& kept = standing_[still++];
        if (&kept != &element) kept = std::move(element);
        guessing += secondsSince(begin);
        if (guessing < kMostGuessing * wait_ && memory_->noted() < kMostNoted) continue;
        fetch();
        guessing = 0;
      }
      standing_.resize(still);
      if (still > 0) fetch();
    }
    return true;
  } catch (const DeadlinePassed&) {
    return false;
  }

  void fetch() {
    const Clock::time_point begin = Clock::now();
    memory_->fetch();
    wait_ = secondsSince(begin);
  }

  /// What the next elements did, a run of neighbours.
  void visit(int64_t begin, int64_t end, const ChosenElements::Batch& batch) {
    const auto places = std::span(positions_).subspan(nextPlace_, static_cast<size_t>(end - begin));
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
    if (batch.kind != ChosenElements::Kind::OfWindow) {
      for (size_t k = 0; k < loads_.size(); ++k)
        loads_[k].number += weight * times * static_cast<double>(byLoad[k].size());
      addEntered(nextPlace_, nextPlace_ + places.size(), weight);
      weight_ += weight * static_cast<double>(places.size());
    }
    nextPlace_ += places.size();
    if (batch.kind == ChosenElements::Kind::SmallGroups) return;

    for (VisitedArray& array : arrays_) array.beginRun(begin, end);
    for (size_t k = 0; k < loads_.size(); ++k) {
      VisitedArray& array = arrays_[loads_[k].array];
      const size_t sectors = array.sectors(), granules = array.granules(), blocks = array.blocks();
      for (const int64_t position : byLoad[k]) array.insert(position);
      if (batch.kind == ChosenElements::Kind::OfWindow) continue;
      codegen::ThunkSample::Positions& found = loads_[k].found;
      found.number += times * static_cast<double>(byLoad[k].size());
      found.sectors += times * static_cast<double>(array.sectors() - sectors);
      found.granules += times * static_cast<double>(array.granules() - granules);
      found.blocks += times * static_cast<double>(array.blocks() - blocks);
    }
    for (VisitedArray& array : arrays_) {
      if (batch.kind == ChosenElements::Kind::Groups) {
        array.endGroup();
      } else {
        array.endRunOf(batch.window);
      }
    }
    (batch.kind == ChosenElements::Kind::Groups ? grouped_ : probed_) += end - begin;
  }

  /// What the elements at these places of the batch entered.
  void addEntered(size_t begin, size_t end, double weight) {
    const size_t blocks = entered_.size();
    constexpr auto kInStep = static_cast<size_t>(ChosenElements::kInStep);
    for (size_t k = begin * blocks; k < end * blocks; ++k)
      enteredByAll_[k % blocks] += weight * static_cast<double>(done_[k]);
    for (size_t first = begin; first < end; first += kInStep) {
      const size_t last = std::min(end, first + kInStep);
      addInStep(first, last, 0, 0, code_.thunks.blockCount(), weight);
      addInStep(first, last, 1, code_.thunks.blockCount(), blocks, weight);
    }
  }

  /// Of the eager thunks or the late ones, whose blocks are firstBlock and so on, for elements that go in
  /// step. Where their paths are not known, the one that enters a block most often counts for all.
  void addInStep(size_t first, size_t end, size_t late, size_t firstBlock, size_t endBlock, double weight) {
    const size_t blocks = entered_.size();
    std::vector<double> together(endBlock - firstBlock);
    std::vector<const LockStep::Path*> paths;
    bool known = true;
    for (size_t e = first; e < end; ++e) {
      if (done_[e * blocks + firstBlock] == 0) continue;
      paths.push_back(&paths_[late][e]);
      known = known && paths.back()->size() < kMostSteps;
    }
    if (!known || !inStep_[late].add(paths, together)) {
      for (size_t e = first; e < end; ++e)
        for (size_t k = firstBlock; k < endBlock; ++k)
          together[k - firstBlock] =
              std::max(together[k - firstBlock], static_cast<double>(done_[e * blocks + k]));
    }
    for (size_t k = firstBlock; k < endBlock; ++k)
      inStepByAll_[k] += weight * static_cast<double>(end - first) * together[k - firstBlock];
  }

  void loads(const std::byte* address, bool /*gathers*/) override {
    if (!memory_ || isResult(address)) return;
    step();
    const SampledMemory::Presence presence = memory_->find(address);
    if (presence == SampledMemory::Presence::Here) return;
    if (presence == SampledMemory::Presence::Nowhere) {
      if (guessing_) throw NotThere{};
      return;
    }
    if (!guessing_) beginToGuess();
  }
  void gathers(uint32_t number, int64_t position) override {
    if (tells() && seen_.size() < kMostPositions) seen_.emplace_back(firstGather_ + number, position);
  }
  void enters(uint32_t block) override {
    step();
    LockStep::Path& path = path_[ofLate_];
    if (tells() && path.size() < kMostSteps) path.push_back(block);
  }
  /// Of producers and guesses nothing is told.
  bool tells() const { return stage_ >= eager() && !guessing_; }
  /// Counts what an element does, and ends guesses that are long enough.
  void step() {
    ++steps_;
    if (guessing_ && steps_ >= guess_) throw NotThere{};
  }
  /// What is done until here is kept.
  void beginToGuess() {
    Standing& kept = *element_;
    if (kept.guessed > 0) adaptGuess(steps_ >= kept.guessed);
    kept.stage = stage_;
    kept.registers = instance(stage_).registers;
    kept.progress = progress_;
    kept.produced.clear();
    for (const Producer& producer : producers_) kept.produced.push_back(producer.values);
    kept.entered = entered_;
    kept.seen = std::move(seen_);
    kept.path = std::move(path_);
    kept.guessed = guess_;
    seen_.clear();
    for (LockStep::Path& path : path_) path.clear();
    guessing_ = true;
    steps_ = 0;
  }
  void adaptGuess(bool right) {
    guess_ = right ? std::min(2 * guess_, kMostGuess) : std::max(guess_ / 2, kLeastGuess);
  }

  // Stages of an element: its segment, the producers, the eager thunks, the late ones.
  size_t eager() const { return 1 + producers_.size(); }
  size_t late() const { return eager() + 1; }
  Instance& instance(size_t stage) {
    return stage < eager() ? producers_[stage - 1].thunks : stage == eager() ? thunks_ : late_;
  }

  /// Evaluates an element as far as memory is there. False: it stands still.
  bool goOn(Standing& element) {
    element_ = &element;
    stage_ = element.stage;
    guessing_ = false;
    steps_ = 0;
    if (stage_ == 0) {
      std::fill(entered_.begin(), entered_.end(), 0);
      seen_.clear();
      for (LockStep::Path& path : path_) path.clear();
      progress_ = {};
    } else {
      instance(stage_).registers.swap(element.registers);
      progress_ = std::move(element.progress);
      for (size_t k = 0; k < producers_.size(); ++k)
        std::copy(element.produced[k].begin(), element.produced[k].end(), producers_[k].values.begin());
      std::copy(element.entered.begin(), element.entered.end(), entered_.begin());
      seen_ = std::move(element.seen);
      path_ = std::move(element.path);
      placeResults(element.i);
    }
    setLate(stage_ == late());
    try {
      if (stage_ == 0) {
        if (!findSegment(element)) return false;
        placeResults(element.i);
        ++stage_;
      }
      while (evaluateStage(element)) ++stage_;
    } catch (const NotThere&) {
    }
    if (guessing_) return false;
    if (element.guessed > 0) adaptGuess(true);
    store(element.place);
    return true;
  }
  /// False: it was the last.
  bool evaluateStage(const Standing& element) {
    launch_.evaluate(instance(stage_), element.i, element.s, element.p);
    if (stage_ < eager()) {
      Producer& producer = producers_[stage_ - 1];
      for (size_t j = 0; j < producer.values.size(); ++j)
        storeElement(producer.soac->pull[j]->type, &producer.values[j], 0,
                     launch_.result(producer.thunks, producer.soac->effects.size() + j));
      return true;
    }
    const size_t next = soac_.effects.size();
    if (stage_ == eager()) {
      entered_[0] = 1;
      if (soac_.kind != SoacKind::Filter || launch_.result(thunks_, next).i == 0) return false;
      setLate(true);
      return true;
    }
    entered_[code_.thunks.blockCount()] = 1;
    return false;
  }
  /// What evaluating the element did.
  void store(size_t place) {
    setLate(false);
    size_t next = soac_.effects.size();
    const bool writes =
        soac_.kind == SoacKind::Permute && (!soac_.where || launch_.result(thunks_, next++).i != 0);
    if (writes) gathers(static_cast<uint32_t>(loads_.size() - 1), launch_.result(thunks_, next).i);
    seenByBatch_ += seen_.size();
    if (seenByBatch_ <= kMostPositions) positions_[place] = seen_;
    std::copy(entered_.begin(), entered_.end(),
              done_.begin() + static_cast<ptrdiff_t>(place * entered_.size()));
    for (size_t late : {0, 1}) paths_[late][place] = path_[late];
  }

  void setLate(bool late) {
    ofLate_ = late ? 1 : 0;
    firstGather_ = late ? static_cast<uint32_t>(code_.thunks.gathers().size()) : 0;
  }

  /// Segment of an element, and its place in it. False: offsets have to be fetched.
  bool findSegment(Standing& element) {
    const int64_t i = element.i;
    element.s = 0;
    element.p = i;
    if (epilogue_ || !segmented_) return true;
    if (!launch_.offsets_) {
      const int64_t length = std::max<int64_t>(launch_.request_.extents.length, 1);
      element.s = i / length;
      element.p = i % length;
      return true;
    }
    int64_t s = 0;  // the last one that begins at i or before
    for (int64_t end = launch_.m_; end - s > 1;) {
      if (!findMiddles(s, end, kLevels)) return false;
      const int64_t middle = s + (end - s) / 2;
      (launch_.offsets_[middle] <= i ? s : end) = middle;
    }
    if (!isOffsetHere(s)) return false;
    element.s = s;
    element.p = i - launch_.offsets_[s];
    return true;
  }
  /// Whether the middle is there; otherwise what may come next is noted, too.
  bool findMiddles(int64_t s, int64_t end, int levels) {
    if (end - s <= 1) return isOffsetHere(s);
    const int64_t middle = s + (end - s) / 2;
    if (isOffsetHere(middle)) return true;
    if (levels > 1) {
      findMiddles(s, middle, levels - 1);
      findMiddles(middle, end, levels - 1);
    }
    return false;
  }
  bool isOffsetHere(int64_t k) {
    const auto* address = reinterpret_cast<const std::byte*>(launch_.offsets_ + k);
    return !memory_ || memory_->find(address) != SampledMemory::Presence::Away;
  }
  static constexpr int kLevels = 5;  ///< of a search that are fetched together

  LaunchEvaluation& launch_;
  const Soac& soac_;
  const bool epilogue_;
  const KernelCode::Binding& code_;
  std::vector<uint64_t> entered_;  ///< by block, of one element
  Instance thunks_, late_;
  const std::array<LockStep, 2> inStep_;  ///< of the eager thunks and of the late ones
  bool segmented_ = soac_.space.segmented();
  std::vector<Producer> producers_;
  SampledMemory* memory_;
  const codegen::Streams streams_;
  std::vector<Load> loads_;  ///< at computed positions, then of a Permute
  std::vector<VisitedArray> arrays_;
  std::unordered_map<VarId, size_t> numbers_;  ///< in arrays_

  // What was looked at so far.
  const int64_t n_;
  ChosenElements chosen_;
  int64_t next_ = 0, smallGroups_ = 0;               ///< batches, small groups
  bool everything_ = false;                          ///< all elements, each once
  std::vector<double> enteredByAll_, inStepByAll_;   ///< by block, by weight, as far as they are spread
  double weight_ = 0;                                ///< of these elements
  int64_t elements_ = 0, grouped_ = 0, probed_ = 0;  ///< looked at in all, in groups, in windows
  double seconds_ = 0, wait_ = 20e-6;                ///< for all that; for the latest wait

  // Of the batch, by place: what its elements did, and which of them come next in visit().
  std::vector<Standing> standing_;
  std::vector<uint64_t> done_;
  std::vector<std::optional<std::vector<std::pair<uint32_t, int64_t>>>> positions_;  ///< none: too many
  std::array<std::vector<LockStep::Path>, 2> paths_;
  size_t seenByBatch_ = 0, nextPlace_ = 0;

  // Of the element.
  Standing* element_ = nullptr;
  size_t stage_ = 0;
  ExpressionCode::Progress progress_;
  std::vector<std::pair<uint32_t, int64_t>> seen_;  ///< gather and position
  std::array<LockStep::Path, 2> path_;              ///< in the eager thunks and the late ones
  size_t ofLate_ = 0;                               ///< which thunks are at hand
  uint32_t firstGather_ = 0;                        ///< where their numbers begin
  bool guessing_ = false;
  size_t steps_ = 0;   ///< since it went on or began to guess
  size_t guess_ = 64;  ///< steps of a guess
};

std::vector<uint32_t> LaunchEvaluation::mapsReadBy(uint32_t b) const {
  std::vector<uint32_t> maps;
  for (uint32_t other = 0; other < b; ++other) {
    const Soac& soac = kernel_.bindings[other];
    if (soac.kind == SoacKind::Map && info_.bindings[other].role != BindingRole::Epilogue &&
        readsFrom(b, soac))
      maps.push_back(other);
  }
  return maps;
}

bool LaunchEvaluation::tells(uint32_t b) const {
  const KernelCode::Binding& code = code_.bindings()[b];
  const auto any = [](const ExpressionCode& thunks) {
    return thunks.blockCount() > 1 || !thunks.gathers().empty();
  };
  return any(code.thunks) || any(code.late) || kernel_.bindings[b].kind == SoacKind::Permute;
}

bool LaunchEvaluation::canBeSampled(uint32_t b) const {
  if (info_.bindings[b].role == BindingRole::Finish) return false;
  const std::vector<uint32_t> maps = mapsReadBy(b);
  for (uint32_t other = 0; other < b; ++other)
    if (readsFrom(b, kernel_.bindings[other]) && std::find(maps.begin(), maps.end(), other) == maps.end())
      return false;
  return std::all_of(maps.begin(), maps.end(), [this](uint32_t map) { return canBeSampled(map); });
}

bool LaunchEvaluation::readsFrom(uint32_t b, const Soac& producer) const {
  const std::vector<VarId>& reads = info_.bindings[b].localReads;
  return std::any_of(producer.results.begin(), producer.results.end(),
                     [&](VarId v) { return std::find(reads.begin(), reads.end(), v) != reads.end(); });
}

codegen::ThunkSample LaunchEvaluation::sample(std::span<const size_t> bytes, SampledMemory* memory,
                                              codegen::Streams streams, std::chrono::milliseconds most) {
  bindParameters();
  for (const Soac& soac : kernel_.bindings)
    for (VarId v : soac.results) arrays_.try_emplace(v, nullptr);
  std::vector<std::unique_ptr<SampledBinding>> bindings(kernel_.bindings.size());
  std::vector<SampledBinding*> open;
  for (uint32_t b = 0; b < bindings.size(); ++b) {
    if (!tells(b) || !canBeSampled(b)) continue;
    bindings[b] = std::make_unique<SampledBinding>(*this, b, bytes, memory, streams);
    open.push_back(bindings[b].get());
  }
  // In turns, so that what one of them does not need is there for the others.
  for (const Deadline end = Clock::now() + most; !open.empty();) {
    const auto least = std::min_element(
        open.begin(), open.end(), [](const auto* a, const auto* b) { return a->seconds() < b->seconds(); });
    const auto left = std::max(end - Clock::now(), Deadline::duration(0));
    if (!(*least)->advance(Clock::now() + left / static_cast<int64_t>(open.size()))) open.erase(least);
  }
  codegen::ThunkSample sample;
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    const KernelCode::Binding& code = code_.bindings()[b];
    const size_t blocks = sample.entered.size() + code.thunks.blockCount() + code.late.blockCount();
    const size_t positions = sample.positions.size() + code.thunks.gathers().size() +
                             code.late.gathers().size() + (kernel_.bindings[b].kind == SoacKind::Permute);
    if (bindings[b]) bindings[b]->appendTo(sample);
    sample.entered.resize(blocks);
    sample.inStep.resize(blocks);
    sample.positions.resize(positions);
  }
  return sample;
}

codegen::ThunkSample sampleThunks(const KernelCode& code, const LaunchRequest& request,
                                  std::span<const size_t> bytes, SampledMemory* memory,
                                  codegen::Streams streams, std::chrono::milliseconds most) {
  LaunchWork work;
  return LaunchEvaluation(code, request, work, std::nullopt).sample(bytes, memory, streams, most);
}

}  // namespace kelpie::runtime
