// Thunks evaluated for some of a launch's elements (codegen/thunk_sample.h).
#include <cmath>
#include <limits>
#include <unordered_set>

#include "runtime/interp/launch_evaluation.h"

namespace kelpie::runtime {

namespace {

constexpr int64_t kNeighbours = codegen::kNeighbours;
constexpr int64_t kInStep = 32;

/// Something is not in the memory of the host yet; the element is to be evaluated again.
struct NotThere {};

/// Which elements are looked at: all, or groups of neighbours that are spread evenly, and many short runs of
/// neighbours in each of two windows. The former tell most, the latter whether a place is visited again soon.
class ChosenElements {
 public:
  struct Batch {
    std::vector<std::pair<int64_t, int64_t>> runs;  ///< begin, end
    int window = -1;                                ///< of short runs
  };
  explicit ChosenElements(int64_t elements) : n_(elements) {
    groups_ = (elements + kNeighbours - 1) / kNeighbours;
    complete_ = groups_ <= 2 * kGroups;
    window_ = std::min<int64_t>(codegen::kWindow, elements / 3);
  }
  bool complete() const { return complete_; }
  int64_t batches() const { return complete_ ? groups_ : 2 * kGroups; }
  int64_t ofWindow() const { return window_; }
  /// Any first few are spread, too.
  Batch operator[](int64_t k) const {
    if (complete_) return {{{k * kNeighbours, std::min(n_, (k + 1) * kNeighbours)}}, -1};
    const int64_t place = k / 2 * kStride % kGroups;
    Batch batch;
    if (k % 2 == 0) {
      const int64_t group = somewhere(place, kGroups, groups_, k);
      batch.runs.emplace_back(group * kNeighbours, std::min(n_, (group + 1) * kNeighbours));
      return batch;
    }
    batch.window = static_cast<int>(k / 2 % 2);
    const int64_t runs = window_ / kRun, begin = (1 + batch.window) * n_ / 3 - window_ / 2;
    constexpr int64_t kRuns = kNeighbours / kRun;
    for (int64_t r = 0; r < kRuns; ++r) {
      const int64_t run = somewhere(place / 2 * kRuns + r, kGroups / 2 * kRuns, runs, k * kRuns + r);
      batch.runs.emplace_back(begin + run * kRun, begin + (run + 1) * kRun);
    }
    return batch;
  }

 private:
  static constexpr int64_t kGroups = 48, kStride = 19;  ///< without a common divisor
  static constexpr int64_t kRun = 8;

  /// In the part of [0, all) with the number `part`; at even distances, positions with a period would tell
  /// too much.
  static int64_t somewhere(int64_t part, int64_t parts, int64_t all, int64_t seed) {
    auto mixed = static_cast<uint64_t>(seed + 1) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu >> 33;
    const int64_t first = part * all / parts, end = (part + 1) * all / parts;
    return first + static_cast<int64_t>(mixed) % std::max<int64_t>(1, end - first);
  }

  int64_t n_, groups_ = 0, window_ = 0;
  bool complete_ = true;
};

/// How often pieces were drawn, and what that tells of many more draws: a part of them goes to pieces that
/// are drawn again and again, each as likely as the other, the rest to pieces of which there are endlessly
/// many.
class Draws {
 public:
  void add(const std::unordered_set<int64_t>& pieces) {
    for (int64_t piece : pieces) ++times_[piece];
    number_ += static_cast<double>(pieces.size());
  }
  double number() const { return number_; }
  double distinct() const { return static_cast<double>(times_.size()); }
  /// Different pieces among so many draws.
  double among(double draws) const {
    const auto [share, pieces] = repeated();
    const double again = share * draws;
    return again <= 0 ? draws : pieces * -std::expm1(-again / pieces) + draws - again;
  }
  /// All pieces there are; infinite where not all are drawn again.
  double all() const {
    const auto [share, pieces] = repeated();
    constexpr double kAll = 0.95;
    return share < kAll ? std::numeric_limits<double>::infinity() : pieces;
  }

 private:
  /// Share of the draws that goes to pieces that are drawn again, and how many of those there are. With x
  /// draws for each of p, p e^-x x^k / k! are drawn k times.
  std::pair<double, double> repeated() const {
    double twice = 0, thrice = 0;
    for (const auto& [piece, times] : times_) {
      twice += times == 2;
      thrice += times == 3;
    }
    const double meetings = number_ - distinct();
    constexpr double kFew = 5, kMany = 20;  // less may be chance
    if (meetings < kFew) return {0, 0};
    if (thrice >= kMany && twice >= kMany) {
      const double x = 3 * thrice / twice, share = 2 * twice * std::exp(x) / (number_ * x);
      if (share < 1) return {share, share * number_ / x};
    }
    double low = 1e-9, high = 1e6;  // draws for each piece
    for (int k = 0; k < 100; ++k) {
      const double middle = std::sqrt(low * high);
      (-std::expm1(-middle) / middle > distinct() / number_ ? low : high) = middle;
    }
    return {1, number_ / low};
  }

  std::unordered_map<int64_t, uint32_t> times_;
  double number_ = 0;
};

/// What is visited of one array.
class VisitedArray {
 public:
  /// `bytes` of the array, `width` of an element; `inOrder`: element i loads it at i, too.
  VisitedArray(double bytes, int64_t width, bool inOrder)
      : bytes_(bytes), width_(width), loadedInOrder_(inOrder) {}

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
      inWindow_[window].add(granules_);
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
    const auto window = static_cast<double>(chosen.ofWindow());
    double distinct = 0;
    for (const Draws& draws : inWindow_) distinct += draws.among(draws.number() * 2 * window / probed) / 2;
    const double inOrder = (everywhere_.number() - gathered_) / looked * window;
    return std::clamp((distinct - inOrder) / (gathered_ / looked * window), 0.0, 1.0);
  }
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
  Draws everywhere_, inWindow_[2];
  double gathered_ = 0;
};

}  // namespace

/// The thunks of one binding.
class LaunchEvaluation::SampledBinding final : private ExpressionCode::Trace {
 public:
  /// `bytes` of the arrays behind the parameters.
  SampledBinding(LaunchEvaluation& launch, uint32_t b, std::span<const size_t> bytes, SampledMemory* memory)
      : launch_(launch),
        soac_(launch.kernel_.bindings[b]),
        epilogue_(launch.info_.bindings[b].role == BindingRole::Epilogue),
        code_(launch.code_.bindings()[b]),
        entered_(code_.thunks.blockCount() + code_.late.blockCount()),
        thunks_(launch.instantiate(code_.thunks, entered_.data())),
        late_(launch.instantiate(code_.late, entered_.data() + code_.thunks.blockCount())),
        memory_(memory) {
    for (const ExpressionCode* code : {&code_.thunks, &code_.late})
      for (const lcu::ExprRef load : code->gathers()) loads_.push_back({arrayOf(load, bytes)});
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
    const ChosenElements chosen(n);
    std::vector<double> entered(entered_.size()), inStep(entered_.size());
    double looked = 0, probed = 0;
    for (int64_t k = 0; k < chosen.batches(); ++k) {
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

  struct Load {
    size_t array;
    codegen::ThunkSample::Positions found = {};
  };
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
    for (size_t first = 0; first < elements; first += kInStep) {
      const size_t end = std::min<size_t>(elements, first + kInStep);
      for (size_t k = 0; k < blocks; ++k) {
        uint64_t most = 0;
        for (size_t e = first; e < end; ++e) {
          entered[k] += static_cast<double>(done_[e * blocks + k]);
          most = std::max(most, done_[e * blocks + k]);
        }
        inStep[k] += static_cast<double>(end - first) * static_cast<double>(most);
      }
    }
  }

  void loads(const std::byte* address, bool gathers) override {
    if (!memory_) return;
    if (!gathers) {
      memory_->need(address);
    } else if (!memory_->holds(address)) {
      throw NotThere{};
    }
  }
  void gathers(uint32_t number, int64_t position) override {
    if (seen_.size() < kMostPositions) seen_.emplace_back(firstGather_ + number, position);
  }

  /// Leaves in `entered_` and `seen_` what evaluating it did. False: it has to wait.
  bool element(int64_t i) {
    std::fill(entered_.begin(), entered_.end(), 0);
    seen_.clear();
    firstGather_ = 0;
    launch_.trace_ = this;
    size_t next = soac_.effects.size();
    try {
      const auto [s, p] = epilogue_ ? std::pair<int64_t, int64_t>{0, i} : segmentOf(i);
      launch_.evaluate(thunks_, i, s, p);
      entered_[0] = 1;
      if (soac_.kind == SoacKind::Filter && launch_.result(thunks_, next).i != 0) {
        firstGather_ = static_cast<uint32_t>(code_.thunks.gathers().size());
        launch_.evaluate(late_, i, s, p);
        firstGather_ = 0;
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

  /// Segment of an element, and its place in it.
  std::pair<int64_t, int64_t> segmentOf(int64_t i) const {
    if (!soac_.space.segmented()) return {0, i};
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
  SampledMemory* memory_;
  std::vector<Load> loads_;  ///< at computed positions, then of a Permute
  std::vector<VisitedArray> arrays_;
  std::unordered_map<VarId, size_t> numbers_;  ///< in arrays_
  // Of the elements of the batch: `entered_` and `seen_`, and which of them come next in visit().
  std::vector<uint64_t> done_;
  std::vector<std::vector<std::pair<uint32_t, int64_t>>> positions_;
  size_t next_ = 0;
  std::vector<std::pair<uint32_t, int64_t>> seen_;  ///< gather and position, of the element
  uint32_t firstGather_ = 0;                        ///< where the numbers of the thunks at hand begin
};

codegen::ThunkSample LaunchEvaluation::sample(std::span<const size_t> bytes, SampledMemory* memory,
                                              std::chrono::milliseconds most) {
  bindParameters();
  const auto end = std::chrono::steady_clock::now() + most;
  codegen::ThunkSample sample;
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    const KernelCode::Binding& code = code_.bindings()[b];
    const size_t blocks = sample.entered.size() + code.thunks.blockCount() + code.late.blockCount();
    const size_t positions = sample.positions.size() + code.thunks.gathers().size() +
                             code.late.gathers().size() + (kernel_.bindings[b].kind == SoacKind::Permute);
    if (info_.bindings[b].role != BindingRole::Finish && info_.bindings[b].localReads.empty()) {
      const auto now = std::chrono::steady_clock::now();
      const auto left = static_cast<int64_t>(kernel_.bindings.size() - b);
      const Deadline deadline = now + std::max(end - now, Deadline::duration(0)) / left;
      log_.setDeadline(deadline);
      SampledBinding(*this, b, bytes, memory).run(sample, deadline);
    }
    sample.entered.resize(blocks);
    sample.inStep.resize(blocks);
    sample.positions.resize(positions);
  }
  return sample;
}

codegen::ThunkSample sampleThunks(const KernelCode& code, const LaunchRequest& request,
                                  std::span<const size_t> bytes, SampledMemory* memory,
                                  std::chrono::milliseconds most) {
  LaunchWork work;
  return LaunchEvaluation(code, request, work, std::nullopt).sample(bytes, memory, most);
}

}  // namespace kelpie::runtime
