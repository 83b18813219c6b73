// Thunks evaluated for some of a launch's elements (codegen/thunk_sample.h).
#include <array>
#include <cmath>
#include <unordered_set>

#include "runtime/interp/launch_evaluation.h"
#include "runtime/interp/lock_step.h"
#include "runtime/interp/repeated_draws.h"

namespace kelpie::runtime {

namespace {

constexpr int64_t kNeighbours = codegen::kNeighbours;
constexpr int64_t kInStep = 32;

/// Something is not in the memory of the host yet; the element is to be evaluated again.
struct NotThere {};

/// Which elements are looked at: all, or groups of neighbours that are spread evenly, and many short runs of
/// neighbours in each of two windows. The former tell most, the latter whether a place is visited again soon.
/// A window is what a launch works on while a cache remembers: neighbours of one element, or a few neighbours
/// in each of so many streams (codegen/streams.h).
class ChosenElements {
 public:
  struct Batch {
    std::vector<std::pair<int64_t, int64_t>> runs;  ///< begin, end
    int window = -1;                                ///< of short runs
  };
  explicit ChosenElements(int64_t elements) : n_(elements) {
    groups_ = (elements + kNeighbours - 1) / kNeighbours;
    complete_ = groups_ <= 2 * kGroups;
  }
  bool complete() const { return complete_; }
  /// Batches before windows are chosen, and in all.
  int64_t first() const { return complete_ ? groups_ : kFirst; }
  int64_t batches() const { return complete_ ? groups_ : 2 * kGroups; }
  int64_t ofWindow() const { return streams_ * ofStream_; }
  /// `elements` of a window.
  void chooseWindows(codegen::Streams streams, int64_t elements) {
    rounds_ = std::clamp<int64_t>(streams.rounds, 1, std::max<int64_t>(1, n_ / (3 * kNeighbours)));
    elements = std::clamp<int64_t>(elements, kNeighbours, n_ / 3 / rounds_);
    streams_ = std::clamp<int64_t>(streams.number, 1, elements / kRun);
    ofStream_ = elements / streams_ / kRun * kRun;
    // Anywhere in the windows: at even distances nobody would meet what a neighbour visits.
    const int64_t all = ofWindow() / kRun;
    uint64_t seed = 0;
    for (std::vector<int64_t>& runs : runs_) {
      std::unordered_set<int64_t> chosen;
      while (static_cast<int64_t>(runs.size()) < std::min(all, kGroups / 2 * kRuns))
        if (const int64_t run = mixed(++seed) % all; chosen.insert(run).second) runs.push_back(run);
    }
  }
  /// Any first few are spread, too.
  Batch operator[](int64_t k) const {
    if (complete_) return {{{k * kNeighbours, std::min(n_, (k + 1) * kNeighbours)}}, -1};
    // The first are groups, the last are of windows; between them they alternate.
    if (k < kFirst) return group(k);
    if (k >= 2 * kGroups - kFirst) return inWindow(k - kGroups);
    return (k - kFirst) % 2 == 0 ? inWindow((k - kFirst) / 2) : group(kFirst + (k - kFirst) / 2);
  }

 private:
  static constexpr int64_t kGroups = 48, kStride = 19;  ///< without a common divisor
  static constexpr int64_t kFirst = 2;                  ///< groups
  static constexpr int64_t kRun = 8, kRuns = kNeighbours / kRun;

  Batch group(int64_t number) const {
    const int64_t place = number * kStride % kGroups;
    const int64_t first = place * groups_ / kGroups, end = (place + 1) * groups_ / kGroups;
    const auto seed = static_cast<uint64_t>(2 * number + 1);
    const int64_t group = first + mixed(seed) % std::max<int64_t>(1, end - first);
    return {{{group * kNeighbours, std::min(n_, (group + 1) * kNeighbours)}}, -1};
  }
  Batch inWindow(int64_t number) const {
    Batch batch;
    batch.window = static_cast<int>(number % 2);
    const std::vector<int64_t>& runs = runs_[static_cast<size_t>(batch.window)];
    const int64_t ofStream = ofStream_ / kRun, length = n_ / rounds_ / streams_;
    const int64_t firstRound = (1 + batch.window) * rounds_ / 3 * (n_ / rounds_);
    const auto from = static_cast<size_t>(number / 2 * kRuns);
    for (size_t r = from; r < std::min(runs.size(), from + kRuns); ++r) {
      const int64_t begin =
          firstRound + runs[r] / ofStream * length + (1 + batch.window) * length / 3 - ofStream_ / 2;
      const int64_t first = begin + runs[r] % ofStream * kRun;
      batch.runs.emplace_back(first, first + kRun);
    }
    return batch;
  }

  static int64_t mixed(uint64_t seed) {
    seed *= 0x9e3779b97f4a7c15u;
    seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    return static_cast<int64_t>((seed ^ seed >> 27) * 0x94d049bb133111ebu >> 33);
  }

  int64_t n_, groups_ = 0;
  int64_t rounds_ = 1;                        ///< in one of which a window is
  int64_t streams_ = 1, ofStream_ = 0;        ///< of a window, and elements of it in each
  std::array<std::vector<int64_t>, 2> runs_;  ///< by window: numbers of those that are looked at
  bool complete_ = true;
};

/// What is visited of one array.
class VisitedArray {
 public:
  /// `bytes` of the array, `width` of an element; `inOrder`: element i loads it at i, too.
  VisitedArray(double bytes, int64_t width, bool inOrder)
      : bytes_(bytes),
        width_(width),
        loadedInOrder_(inOrder),
        everywhere_(bytes / 64, 1),
        inWindow_(bytes / 64, 2) {}

  /// Before the positions of a run, which are added load by load.
  void beginRun(int64_t begin, int64_t end) {
    sectors_.clear();
    granules_.clear();
    blocks_.clear();
    for (int64_t i = begin; i < end && loadedInOrder_; ++i) insert(i);
    inOrder_ = static_cast<double>(granules_.size());
  }
  void insert(int64_t position) {
    sectors_.insert(position * width_ / 32);
    granules_.insert(position * width_ / 64);
    blocks_.insert(position * width_ / 1024);
  }
  size_t sectors() const { return sectors_.size(); }
  size_t granules() const { return granules_.size(); }
  size_t blocks() const { return blocks_.size(); }
  void endRun(int window) {
    if (window >= 0) {
      inWindow_.add(granules_, static_cast<size_t>(window));
      return;
    }
    everywhere_.add(granules_);
    gathered_ += static_cast<double>(granules_.size()) - inOrder_;
  }

  /// Share of the granules gathered that were not visited shortly before; `looked` elements in groups,
  /// `probed` ones in the windows.
  double fresh(const ChosenElements& chosen, double looked, double probed) const {
    if (gathered_ == 0) return 1;
    if (chosen.complete()) return std::min(1.0, everywhere_.distinct() / everywhere_.number());
    if (probed == 0) return 1;
    const auto windows = 2 * static_cast<double>(chosen.ofWindow());
    const double distinct = inWindow_.among(windows / probed);
    const double inOrder = (everywhere_.number() - gathered_) / looked * windows;
    return std::clamp((distinct - inOrder) / (gathered_ / looked * windows), 0.0, 1.0);
  }
  /// Of the groups, in pieces of 64.
  double gatheredBytes() const { return 64 * gathered_; }
  /// Bytes.
  double visited(const ChosenElements& chosen) const {
    return std::min(bytes_, 64 * (chosen.complete() ? everywhere_.distinct() : everywhere_.all()));
  }

 private:
  double bytes_;
  int64_t width_;
  bool loadedInOrder_;
  std::unordered_set<int64_t> sectors_, granules_, blocks_;  ///< of the run at hand
  double inOrder_ = 0;  ///< granules of the run at hand that are loaded in order
  RepeatedDraws everywhere_, inWindow_;
  double gathered_ = 0;
};

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
        streams_(streams) {
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

  /// Appends what it finds to the sample; all zero if the deadline comes before the first group is done.
  void run(codegen::ThunkSample& sample, Deadline deadline) {
    const int64_t n = epilogue_ ? launch_.m_ : launch_.n_;
    ChosenElements chosen(n);
    std::vector<double> entered(entered_.size()), inStep(entered_.size());
    double looked = 0, probed = 0;
    for (int64_t k = 0; k < chosen.batches(); ++k) {
      if (k == chosen.first())
        chosen.chooseWindows(epilogue_ ? codegen::Streams() : streams_, remembered(looked));
      const ChosenElements::Batch batch = chosen[k];
      if (!evaluate(batch, deadline)) break;
      for (const auto& [begin, end] : batch.runs) {
        (batch.window < 0 ? looked : probed) += static_cast<double>(end - begin);
        visit(begin, end, batch.window);
      }
      if (batch.window < 0) addGroup(entered, inStep);
    }
    const double times = looked > 0 ? static_cast<double>(n) / looked : 0;
    for (size_t k = 0; k < entered.size(); ++k) {
      sample.entered.push_back(entered[k] * times);
      sample.inStep.push_back(inStep[k] * times);
    }
    for (const Load& load : loads_) {
      const VisitedArray& array = arrays_[load.array];
      codegen::ThunkSample::Positions found = load.found;
      found.fresh = found.sectors * array.fresh(chosen, looked, probed);
      found.visited = found.number * array.visited(chosen);
      sample.positions.emplace_back();
      sample.positions.back().add(found, times);
    }
  }

 private:
  static constexpr size_t kMostPositions = 1 << 16;  ///< of a batch
  static constexpr size_t kMostSteps = 1 << 13;      ///< of a path

  struct Load {
    size_t array;
    codegen::ThunkSample::Positions found = {};
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
  void produce(int64_t i, int64_t s, int64_t p) {
    placeResults(i);
    producing_ = true;
    for (Producer& producer : producers_) {
      launch_.evaluate(producer.thunks, i, s, p);
      for (size_t j = 0; j < producer.values.size(); ++j)
        storeElement(producer.soac->pull[j]->type, &producer.values[j], 0,
                     launch_.result(producer.thunks, producer.soac->effects.size() + j));
    }
    producing_ = false;
  }

  /// How many elements pass before a cache has forgotten what it held: by what is loaded and stored.
  int64_t remembered(double looked) const {
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
    for (const VisitedArray& array : arrays_) bytes += array.gatheredBytes() / looked;
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

  /// Evaluates the elements, those first that need nothing more from elsewhere. False: the time is over.
  bool evaluate(const ChosenElements::Batch& batch, Deadline deadline) {
    std::vector<std::pair<size_t, int64_t>> waiting;  // place in the batch, element
    for (const auto& [begin, end] : batch.runs)
      for (int64_t i = begin; i < end; ++i) waiting.emplace_back(waiting.size(), i);
    const size_t blocks = entered_.size();
    done_.assign(waiting.size() * blocks, 0);
    positions_.assign(waiting.size(), {});
    for (std::vector<LockStep::Path>& paths : paths_) paths.assign(waiting.size(), {});
    size_t seen = 0;
    try {
      while (!waiting.empty()) {
        if (std::chrono::steady_clock::now() >= deadline) return false;
        std::erase_if(waiting, [&](const auto& next) {
          const auto [place, i] = next;
          if (!element(i)) return false;
          seen += seen_.size();
          if (seen <= kMostPositions) positions_[place] = seen_;
          std::copy(entered_.begin(), entered_.end(), done_.begin() + static_cast<ptrdiff_t>(place * blocks));
          for (size_t late : {0, 1}) paths_[late][place] = path_[late];
          return true;
        });
        if (!waiting.empty()) memory_->fetch();
      }
    } catch (const DeadlinePassed&) {
      launch_.trace_ = nullptr;
      return false;
    }
    next_ = 0;
    return true;
  }

  /// The positions of the next elements that were evaluated, a run of neighbours.
  void visit(int64_t begin, int64_t end, int window) {
    for (VisitedArray& array : arrays_) array.beginRun(begin, end);
    for (uint32_t k = 0; k < loads_.size(); ++k) {
      VisitedArray& array = arrays_[loads_[k].array];
      const size_t sectors = array.sectors(), granules = array.granules(), blocks = array.blocks();
      double number = 0;
      for (size_t place = next_; place < next_ + static_cast<size_t>(end - begin); ++place) {
        for (const auto& [load, position] : positions_[place]) {
          if (load != k) continue;
          array.insert(position);
          ++number;
        }
      }
      if (window >= 0) continue;
      codegen::ThunkSample::Positions& found = loads_[k].found;
      found.number += number;
      found.sectors += static_cast<double>(array.sectors() - sectors);
      found.granules += static_cast<double>(array.granules() - granules);
      found.blocks += static_cast<double>(array.blocks() - blocks);
    }
    for (VisitedArray& array : arrays_) array.endRun(window);
    next_ += static_cast<size_t>(end - begin);
  }

  void addGroup(std::vector<double>& entered, std::vector<double>& inStep) const {
    const size_t blocks = entered.size(), elements = blocks == 0 ? 0 : done_.size() / blocks;
    for (size_t k = 0; k < done_.size(); ++k) entered[k % blocks] += static_cast<double>(done_[k]);
    for (size_t first = 0; first < elements; first += kInStep) {
      const size_t end = std::min<size_t>(elements, first + kInStep);
      addInStep(first, end, 0, 0, code_.thunks.blockCount(), inStep);
      addInStep(first, end, 1, code_.thunks.blockCount(), blocks, inStep);
    }
  }

  /// Of the eager thunks or the late ones, whose blocks are firstBlock and so on, for elements that go in
  /// step. Where their paths are not known, the one that enters a block most often counts for all.
  void addInStep(size_t first, size_t end, size_t late, size_t firstBlock, size_t endBlock,
                 std::vector<double>& inStep) const {
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
      inStep[k] += static_cast<double>(end - first) * together[k - firstBlock];
  }

  void loads(const std::byte* address, bool gathers) override {
    if (!memory_ || isResult(address)) return;
    if (!gathers) {
      memory_->need(address);
    } else if (!memory_->holds(address)) {
      throw NotThere{};
    }
  }
  void gathers(uint32_t number, int64_t position) override {
    if (!producing_ && seen_.size() < kMostPositions) seen_.emplace_back(firstGather_ + number, position);
  }
  void enters(uint32_t block) override {
    LockStep::Path& path = path_[ofLate_];
    if (!producing_ && path.size() < kMostSteps) path.push_back(block);
  }

  /// Leaves in `entered_` and `seen_` what evaluating it did. False: it has to wait.
  bool element(int64_t i) {
    std::fill(entered_.begin(), entered_.end(), 0);
    seen_.clear();
    for (LockStep::Path& path : path_) path.clear();
    setLate(false);
    launch_.trace_ = this;
    producing_ = false;
    size_t next = soac_.effects.size();
    try {
      const auto [s, p] = epilogue_ ? std::pair<int64_t, int64_t>{0, i} : segmentOf(i);
      produce(i, s, p);
      launch_.evaluate(thunks_, i, s, p);
      entered_[0] = 1;
      if (soac_.kind == SoacKind::Filter && launch_.result(thunks_, next).i != 0) {
        setLate(true);
        launch_.evaluate(late_, i, s, p);
        setLate(false);
        entered_[code_.thunks.blockCount()] = 1;
      }
    } catch (const NotThere&) {
      launch_.trace_ = nullptr;
      return false;
    }
    const bool writes =
        soac_.kind == SoacKind::Permute && (!soac_.where || launch_.result(thunks_, next++).i != 0);
    if (writes) gathers(static_cast<uint32_t>(loads_.size() - 1), launch_.result(thunks_, next).i);
    launch_.trace_ = nullptr;
    return true;
  }

  void setLate(bool late) {
    ofLate_ = late ? 1 : 0;
    firstGather_ = late ? static_cast<uint32_t>(code_.thunks.gathers().size()) : 0;
  }

  /// Segment of an element, and its place in it.
  std::pair<int64_t, int64_t> segmentOf(int64_t i) const {
    if (!segmented_) return {0, i};
    const LaunchRequest& request = launch_.request_;
    if (!launch_.offsets_)
      return {i / std::max<int64_t>(request.extents.length, 1),
              i % std::max<int64_t>(request.extents.length, 1)};
    const int64_t* offsets = launch_.offsets_;
    const auto at = [&](int64_t k) {
      if (memory_) memory_->need(reinterpret_cast<const std::byte*>(offsets + k));
      return offsets[k];
    };
    int64_t s = 0;  // the last one that begins at i or before
    for (int64_t end = launch_.m_; end - s > 1;) {
      const int64_t middle = s + (end - s) / 2;
      (at(middle) <= i ? s : end) = middle;
    }
    return {s, i - at(s)};
  }

  LaunchEvaluation& launch_;
  const Soac& soac_;
  const bool epilogue_;
  const KernelCode::Binding& code_;
  std::vector<uint64_t> entered_;  ///< by block, of one element
  Instance thunks_, late_;
  const std::array<LockStep, 2> inStep_;  ///< of the eager thunks and of the late ones
  bool segmented_ = soac_.space.segmented();
  std::vector<Producer> producers_;
  bool producing_ = false;  ///< a producer is evaluated, of which nothing is told
  SampledMemory* memory_;
  const codegen::Streams streams_;
  std::vector<Load> loads_;  ///< at computed positions, then of a Permute
  std::vector<VisitedArray> arrays_;
  std::unordered_map<VarId, size_t> numbers_;  ///< in arrays_
  // Of the elements of the batch: `entered_` and `seen_`, and which of them come next in visit().
  std::vector<uint64_t> done_;
  std::vector<std::vector<std::pair<uint32_t, int64_t>>> positions_;
  std::array<std::vector<LockStep::Path>, 2> paths_;
  size_t next_ = 0;
  std::vector<std::pair<uint32_t, int64_t>> seen_;  ///< gather and position, of the element
  std::array<LockStep::Path, 2> path_;              ///< of the element, in the eager thunks and the late ones
  size_t ofLate_ = 0;                               ///< which thunks are at hand
  uint32_t firstGather_ = 0;                        ///< where their numbers begin
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
  const auto end = std::chrono::steady_clock::now() + most;
  codegen::ThunkSample sample;
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    const KernelCode::Binding& code = code_.bindings()[b];
    const size_t blocks = sample.entered.size() + code.thunks.blockCount() + code.late.blockCount();
    const size_t positions = sample.positions.size() + code.thunks.gathers().size() +
                             code.late.gathers().size() + (kernel_.bindings[b].kind == SoacKind::Permute);
    if (tells(b) && canBeSampled(b)) {
      const auto now = std::chrono::steady_clock::now();
      int64_t left = 0;
      for (uint32_t later = b; later < kernel_.bindings.size(); ++later) left += tells(later);
      const Deadline deadline = now + std::max(end - now, Deadline::duration(0)) / left;
      log_.setDeadline(deadline);
      SampledBinding(*this, b, bytes, memory, streams).run(sample, deadline);
    }
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
