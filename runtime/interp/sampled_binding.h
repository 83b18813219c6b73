// The thunks of one binding, evaluated for some of a launch's elements. Private to runtime/interp; the entry
// point is sampleThunks in kernel_evaluator.h.
//
// An element's *stages*: its segment is found; then what the thunks read of other bindings of the kernel is
// computed for it, by *producers*: maps of the same elements, and for an epilogue reductions of its segment,
// which go through the segment's elements with the maps that they read; then come the eager thunks, and the
// late ones.
//
// Memory that has to be fetched. An element that meets something that is away stands still: what it has done
// is kept, and it goes on from there when all that was noted has been fetched in one wait. Before it stands
// still it *guesses*: it goes on with what happens to be in memory and notes what else it meets that is away,
// and nothing else of that counts. A guess is right where positions do not depend on what was loaded: then
// one wait suffices for a loop. It reaches about as far as guesses proved right before, and ends at an
// address of no array.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "runtime/interp/chosen_elements.h"
#include "runtime/interp/element_producers.h"
#include "runtime/interp/sample_totals.h"
#include "runtime/interp/sampled_window.h"

namespace kelpie::runtime {

/// The thunks of one binding.
class LaunchEvaluation::SampledBinding final : private ExpressionCode::Trace {
 public:
  using Clock = std::chrono::steady_clock;

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
        producers_(launch, b, {&thunks_, &late_}),
        memory_(memory),
        streams_(streams),
        n_(epilogue_ ? launch.m_ : launch.n_),
        chosen_(n_),
        totals_(soac_, code_, n_) {
    const auto ofScans = launch.dependsOnScans(b);
    for (const ExpressionCode* code : {&code_.thunks, &code_.late}) {
      for (const lcu::ExprRef load : code->gathers()) {
        known_.push_back(!ofScans(load->operands[0]));
        addLoad(load, bytes, known_.back());
      }
    }
    totals_.setBytesInOrder(bytesInOrder_);
    if (soac_.kind != SoacKind::Permute) return;
    size_t permute = 0;
    for (uint32_t other = 0; other < b; ++other)
      permute += launch.kernel_.bindings[other].kind == SoacKind::Permute;
    const int64_t width = soac_.pull.empty() ? 1 : sizeOf(soac_.pull[0]->type);
    totals_.addWrites(static_cast<double>(width * launch.request_.extents.targets.at(permute)), width);
  }

  /// Looks at some more elements. False: it has seen enough, or cannot see more before the deadline.
  bool advance(Deadline deadline) {
    const Clock::time_point begin = Clock::now();
    const double left = std::chrono::duration<double>(deadline - begin).count();
    if (const std::optional<ChosenElements::Batch> batch = next(left)) {
      if (!evaluate(*batch, deadline)) return false;
      totals_.add(*batch, done_);
    } else if (!goOnInWindow(left, deadline)) {
      return false;
    }
    seconds_ += secondsSince(begin);
    return true;
  }
  double seconds() const { return seconds_; }

  void appendTo(codegen::ThunkSample& sample) {
    if (!totals_.isOfAll() && window_.isInFirst()) totals_.endWindow(window_.parts());
    totals_.appendTo(sample);
  }

 private:
  static constexpr size_t kMostPositions = size_t{1} << 20;  ///< of a batch
  static constexpr size_t kLeastGuess = 8, kMostGuess = 1 << 13;
  static constexpr size_t kMostNoted = 2000;  ///< pieces before they are fetched
  static constexpr double kMostGuessing = 6;  ///< waits that guesses take before they are fetched

  /// Something is not in the memory of the host yet, and a guess has come to its end.
  struct NotThere {};

  static double secondsSince(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  /// Bytes that an element loads in order.
  double bytesInOrder() const {
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
    return bytes;
  }
  /// ... and stores.
  double bytesStoredToo() const {
    double bytes = bytesInOrder_;
    for (const auto& output : launch_.info_.outputs)
      if (output.extent == codegen::ExtentKind::Elements) bytes += sizeOf(output.type);
    return bytes;
  }
  void addLoad(lcu::ExprRef load, std::span<const size_t> bytes, bool known) {
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
    totals_.addLoad(load->index, size, sizeOf(load->type), inOrder, known);
  }

  /// An element under way that stands still, as it was when it met what is away.
  struct Standing {
    size_t place = 0;  ///< in the batch
    Producers::Element element = {};
    size_t stage = 0;
    std::vector<Register> registers = {};  ///< of the stage
    ExpressionCode::Progress progress = {};
    Producers::Progress produced = {};
    std::vector<uint64_t> entered = {};
    std::vector<std::pair<uint32_t, int64_t>> seen = {};
    std::array<LockStep::Path, 2> path = {};
    size_t guessed = 0;  ///< steps that it went on
  };

  /// What to look at next, if there is so much time left; none: the window.
  std::optional<ChosenElements::Batch> next(double left) {
    if (n_ == 0) return std::nullopt;
    const int64_t elements = totals_.elements();
    if (elements == 0) return smallGroups(1);  // tells how long they take
    const double ofElement = seconds_ / static_cast<double>(elements);
    const double ofGroup = ofElement * codegen::kNeighbours;
    const bool suffices = ofGroup * static_cast<double>(chosen_.groups() - next_) < left;
    if (next_ == 0 && chosen_.all() && suffices) totals_.beginAll();
    const bool isDone = next_ == chosen_.groups();
    if (totals_.isOfAll()) return isDone ? std::nullopt : std::optional(chosen_[next_++]);

    const auto someSmallGroups = [&] {
      const double number = left / 8 / (ofElement * ChosenElements::kInStep);
      return smallGroups(static_cast<int64_t>(
          std::clamp<double>(number, 1, double{codegen::kNeighbours} / ChosenElements::kInStep)));
    };
    if (!totals_.tellsWhere()) {
      if (elements >= 2 * ChosenElements::kGroups * codegen::kNeighbours) return std::nullopt;
      return someSmallGroups();
    }
    if (window_.hasBegun() || isDone) return std::nullopt;
    // Where the time does not suffice for all, small groups see more of the launch: half of it is theirs. If
    // groups are short, a window has the second half of the time.
    if (ofGroup > left) return someSmallGroups();
    constexpr double kShort = 1.0 / 8;
    if (next_ > 0 && seconds_ > left && ofGroup < kShort * left) return std::nullopt;
    const bool isTheirTurn = elements < 2 * totals_.inGroups();
    if (!suffices && isTheirTurn) return someSmallGroups();
    if (epilogue_ || streams_.together == 0) return chosen_[next_++];
    constexpr double kMostTogether = 8192, kOfTime = 1.0 / 8;
    ChosenElements::Batch batch =
        chosen_.together(streams_, batches_++,
                         static_cast<int64_t>(std::clamp(kOfTime * left / ofElement, 1.0, kMostTogether)));
    next_ = std::min(chosen_.groups(), next_ + std::max<int64_t>(1, batch.elements() / codegen::kNeighbours));
    return batch;
  }

  /// More of a window. False: there are enough of them, or time is over.
  bool goOnInWindow(double left, Deadline deadline) {
    if (n_ == 0 || !totals_.tellsWhere() || totals_.isOfAll() || window_.isDone()) return false;
    const double ofElement = seconds_ / static_cast<double>(totals_.elements() + inWindows_);
    constexpr double kOfTime = 0.8;
    if (!window_.hasBegun()) window_.begin(kOfTime * left / ofElement, totals_.gatheredInGroups());
    if (isWindowOver()) {
      endWindow();
      return true;
    }
    const double ofGroup = ofElement * static_cast<double>(codegen::kNeighbours);
    if (ofGroup > left) return false;
    constexpr double kGroups = 16;
    const auto number = static_cast<size_t>(std::min(kGroups, left / 8 / ofGroup) * codegen::kNeighbours);
    waiting_.clear();
    while (waiting_.empty() || (waiting_.size() < number && !isWindowOver())) {
      const auto run = window_.next(chosen_);
      if (!run) break;
      totals_.beginInWindow(run->first, run->second);
      for (int64_t i = run->first; i < run->second; ++i) waiting_.push_back(i);
    }
    if (waiting_.empty()) {
      if (!window_.isSplit()) return false;
      endWindow();
      return true;
    }
    inWindows_ += static_cast<int64_t>(waiting_.size());
    const bool done = traced(deadline, [&] { return visitWaiting(deadline); });
    if (done) totals_.endInWindow();
    return done;
  }
  bool isWindowOver() const { return window_.isOver(totals_.inWindow(), totals_.gatheredInWindow()); }
  void endWindow() {
    const SampledWindow::End ended = window_.end(totals_.inWindow(), totals_.gatheredLately());
    if (ended == SampledWindow::End::FirstPart) totals_.endPart();
    if (ended == SampledWindow::End::Window) totals_.endWindow(window_.parts());
  }
  /// Where the elements that wait load. What meets something that is away begins again when that is fetched.
  /// False: the time is over.
  bool visitWaiting(Deadline deadline) {
    while (!waiting_.empty()) {
      size_t still = 0;
      for (const int64_t i : waiting_) {
        if (Clock::now() >= deadline) return false;
        if (visit(i)) continue;
        waiting_[still++] = i;
        if (memory_->noted() >= kMostNoted) fetch();
      }
      waiting_.resize(still);
      if (still > 0) fetch();
    }
    return true;
  }
  bool visit(int64_t i) {
    element_ = nullptr;
    Producers::Element element{i};
    begin();
    try {
      if (!findSegment(element)) return false;
      producers_.begin(element);
      ++stage_;
      while (evaluateStage(element)) {
      }
    } catch (const NotThere&) {
    }
    if (guessing_) return false;
    noteWrite();
    totals_.addInWindow(seen_);
    return true;
  }
  ChosenElements::Batch smallGroups(int64_t number) {
    smallGroups_ += number;
    return chosen_.smallGroups(smallGroups_ - number, number);
  }

  /// False: the time is over.
  bool evaluate(const ChosenElements::Batch& batch, Deadline deadline) {
    standing_.clear();
    for (const auto& [begin, end] : batch.runs)
      for (int64_t i = begin; i < end; ++i) standing_.push_back({standing_.size(), {i}});
    done_.entered.assign(standing_.size() * entered_.size(), 0);
    done_.positions.assign(standing_.size(), std::nullopt);
    for (std::vector<LockStep::Path>& paths : done_.paths) paths.assign(standing_.size(), {});
    seenByBatch_ = 0;
    return traced(deadline, [&] { return evaluateStanding(deadline); });
  }
  /// Of an evaluation that tells this what it does; false also if the time is over.
  template <class Evaluation>
  bool traced(Deadline deadline, const Evaluation& evaluation) {
    launch_.log_.setDeadline(deadline);
    launch_.trace_ = this;
    launch_.progress_ = &progress_;
    bool done = false;
    try {
      done = evaluation();
    } catch (const DeadlinePassed&) {
    }
    launch_.trace_ = nullptr;
    launch_.progress_ = nullptr;
    return done;
  }
  bool evaluateStanding(Deadline deadline) {
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
  }

  void fetch() {
    const Clock::time_point begin = Clock::now();
    memory_->fetch();
    wait_ = secondsSince(begin);
  }

  bool makes(uint32_t gather) const override { return stage_ < eager() || known_[firstGather_ + gather]; }
  void loads(const std::byte* address, bool /*gathers*/) override {
    if (!memory_ || producers_.keep(address)) return;
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
    if (tells() && path.size() < SampleTotals::kMostSteps) path.push_back(block);
  }
  void dividesLong(uint32_t number) override {
    LockStep::Path& path = path_[ofLate_];
    const size_t blocks = (ofLate_ ? code_.late : code_.thunks).blockCount();
    if (tells() && path.size() < SampleTotals::kMostSteps)
      path.push_back(static_cast<uint32_t>(blocks + number));
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
    guessing_ = true;
    if (!element_) {
      steps_ = 0;
      return;
    }
    Standing& kept = *element_;
    if (kept.guessed > 0) adaptGuess(steps_ >= kept.guessed);
    kept.stage = stage_;
    kept.registers = instance(stage_).registers;
    kept.progress = progress_;
    kept.produced = producers_.progress();
    kept.entered = entered_;
    kept.seen = std::move(seen_);
    kept.path = std::move(path_);
    kept.guessed = guess_;
    seen_.clear();
    for (LockStep::Path& path : path_) path.clear();
    steps_ = 0;
  }
  void adaptGuess(bool right) {
    guess_ = right ? std::min(2 * guess_, kMostGuess) : std::max(guess_ / 2, kLeastGuess);
  }

  // Stages of an element: its segment, the producers, the eager thunks, the late ones.
  size_t eager() const { return 1 + producers_.stages(); }
  size_t late() const { return eager() + 1; }
  Instance& instance(size_t stage) {
    return stage < eager() ? producers_.thunks(stage - 1) : stage == eager() ? thunks_ : late_;
  }

  /// Before an element is evaluated.
  void begin() {
    stage_ = 0;
    guessing_ = false;
    steps_ = 0;
    std::fill(entered_.begin(), entered_.end(), 0);
    seen_.clear();
    for (LockStep::Path& path : path_) path.clear();
    progress_ = {};
    setLate(false);
  }
  /// Evaluates an element as far as memory is there. False: it stands still.
  bool goOn(Standing& element) {
    element_ = &element;
    begin();
    stage_ = element.stage;
    if (stage_ > 0) {
      instance(stage_).registers.swap(element.registers);
      progress_ = std::move(element.progress);
      producers_.resume(element.element, element.produced);
      std::copy(element.entered.begin(), element.entered.end(), entered_.begin());
      seen_ = std::move(element.seen);
      path_ = std::move(element.path);
    }
    setLate(stage_ == late());
    try {
      if (stage_ == 0) {
        if (!findSegment(element.element)) return false;
        producers_.begin(element.element);
        ++stage_;
      }
      while (evaluateStage(element.element)) {
      }
    } catch (const NotThere&) {
    }
    if (guessing_) return false;
    if (element.guessed > 0) adaptGuess(true);
    store(element.place);
    return true;
  }
  /// False: it was the last.
  bool evaluateStage(const Producers::Element& element) {
    if (stage_ < eager()) {
      stage_ = 1 + producers_.evaluate(stage_ - 1);
      return true;
    }
    launch_.evaluate(instance(stage_), element.i, element.s, element.p);
    if (stage_ == eager()) {
      entered_[0] = 1;
      if (soac_.kind != SoacKind::Filter || launch_.result(thunks_, soac_.effects.size()).i == 0)
        return false;
      setLate(true);
      ++stage_;
      return true;
    }
    entered_[code_.thunks.blockCount()] = 1;
    return false;
  }
  /// What evaluating the element did.
  void store(size_t place) {
    noteWrite();
    seenByBatch_ += seen_.size();
    if (seenByBatch_ <= kMostPositions) done_.positions[place] = seen_;
    std::copy(entered_.begin(), entered_.end(),
              done_.entered.begin() + static_cast<ptrdiff_t>(place * entered_.size()));
    for (size_t late : {0, 1}) done_.paths[late][place] = path_[late];
  }

  /// Where a permute writes the element.
  void noteWrite() {
    setLate(false);
    size_t next = soac_.effects.size();
    const bool writes =
        soac_.kind == SoacKind::Permute && (!soac_.where || launch_.result(thunks_, next++).i != 0);
    if (writes) gathers(static_cast<uint32_t>(totals_.loads() - 1), launch_.result(thunks_, next).i);
  }

  void setLate(bool late) {
    ofLate_ = late ? 1 : 0;
    firstGather_ = late ? static_cast<uint32_t>(code_.thunks.gathers().size()) : 0;
  }

  /// Segment of an element, and its place in it; or the places of an element that is a segment. False:
  /// offsets have to be fetched.
  bool findSegment(Producers::Element& element) {
    const int64_t i = element.i;
    element.s = 0;
    element.p = i;
    if (epilogue_) {
      if (!producers_.fold()) return true;
      const bool begins = isOffsetHere(i), ends = isOffsetHere(i + 1);
      if (!begins || !ends) return false;
      element.begin = launch_.segmentStart(i);
      element.end = std::min(launch_.segmentStart(i + 1), element.begin + Producers::kMostFolded);
      return true;
    }
    if (!segmented_) return true;
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
    return !memory_ || !launch_.offsets_ || memory_->find(address) != SampledMemory::Presence::Away;
  }
  static constexpr int kLevels = 5;  ///< of a search that are fetched together

  LaunchEvaluation& launch_;
  const Soac& soac_;
  const bool epilogue_;
  const KernelCode::Binding& code_;
  std::vector<uint64_t> entered_;  ///< by block, of one element
  Instance thunks_, late_;
  Producers producers_;
  std::vector<bool> known_;  ///< by gather: whether the sample can tell where it loads
  const bool segmented_ = soac_.space.segmented() || producers_.findSegments();
  SampledMemory* memory_;
  const codegen::Streams streams_;
  const double bytesInOrder_ = bytesInOrder();  ///< of an element

  // What was looked at so far.
  const int64_t n_;
  ChosenElements chosen_;
  int64_t next_ = 0, smallGroups_ = 0, batches_ = 0;  ///< groups, small groups, groups that are together
  SampledWindow window_{n_, epilogue_ ? codegen::Streams() : streams_, bytesStoredToo()};
  int64_t inWindows_ = 0;  ///< elements of all windows
  SampleTotals totals_;
  double seconds_ = 0, wait_ = 20e-6;  ///< for all that; for the latest wait

  std::vector<int64_t> waiting_;  ///< elements of the window

  // Of the batch.
  std::vector<Standing> standing_;
  ElementsDone done_;
  size_t seenByBatch_ = 0;

  // Of the element.
  Standing* element_ = nullptr;  ///< null: of the window
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

}  // namespace kelpie::runtime
