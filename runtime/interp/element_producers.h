// What the thunks of a binding read of other bindings of its kernel, computed for one element at a time
// (sampled_binding.h).
//
// Producers are evaluated one after another: maps and scans of the same elements, a scan as if there were no
// others, and for an epilogue, whose element is a segment, reductions of the segment. A reduction is a group
// of stages, the maps that it reads and its own thunk, through which each element of the segment goes. Of a
// long segment the first elements alone are folded.
#pragma once

#include <algorithm>
#include <optional>

#include "runtime/interp/launch_evaluation.h"

namespace kelpie::runtime {

class LaunchEvaluation::Producers {
 public:
  static constexpr int64_t kMostFolded = 1 << 12;  ///< elements of a segment

  /// Of binding b, whose thunks are `readers`.
  Producers(LaunchEvaluation& launch, uint32_t b, const std::vector<Instance*>& readers) : launch_(launch) {
    for (const uint32_t other : readBy(b)) {
      const size_t first = stages_.size();
      if (launch.kernel_.bindings[other].kind == SoacKind::Reduce)
        for (const uint32_t inner : readBy(other)) add(inner, first, true);
      add(other, first, false);
    }
    for (Instance* reader : readers) readers_.push_back({reader, reads(*reader, stages_.size(), false, 0)});
    for (size_t k = 0; k < stages_.size(); ++k) {
      const bool grouped = stages_[k].inner || stages_[k].folder;
      stages_[k].reads = reads(stages_[k].thunks, k, grouped, grouped ? stages_[k].first : 0);
    }
  }

  size_t stages() const { return stages_.size(); }
  /// Whether a map is over segments, so that elements have to know theirs; whether elements are segments
  /// that are gone through.
  bool findSegments() const {
    return std::any_of(stages_.begin(), stages_.end(),
                       [](const Stage& stage) { return stage.soac->space.segmented(); });
  }
  bool fold() const {
    return std::any_of(stages_.begin(), stages_.end(), [](const Stage& s) { return s.folder.has_value(); });
  }
  Instance& thunks(size_t stage) { return stages_[stage].thunks; }

  /// An element, and where it is: the places of its segment if it is one that is gone through.
  struct Element {
    int64_t i = 0, s = 0, p = 0;
    int64_t begin = 0, end = 0;
  };
  /// How far an element has come.
  struct Progress {
    int64_t folded = 0;  ///< place of the segment at hand
    std::vector<std::vector<Register>> values = {};
  };

  /// The results are those of this element from now on, as far as they are known.
  void begin(const Element& element) {
    element_ = element;
    folded_ = element.begin;
    for (auto& [reader, reads] : readers_) place(*reader, reads, element.i);
  }
  void resume(const Element& element, const Progress& progress) {
    begin(element);
    folded_ = progress.folded;
    for (size_t k = 0; k < stages_.size(); ++k) {
      stages_[k].values = progress.values[k];
      store(stages_[k]);
    }
  }
  Progress progress() const {
    Progress progress{folded_};
    for (const Stage& stage : stages_) progress.values.push_back(stage.values);
    return progress;
  }

  /// Evaluates a stage. Returns the next one.
  size_t evaluate(size_t k) {
    Stage& stage = stages_[k];
    if (!stage.inner && !stage.folder) {
      place(stage.thunks, stage.reads, element_.i);
      launch_.evaluate(stage.thunks, element_.i, element_.s, element_.p);
      take(stage);
      return k + 1;
    }
    // A group: which reduction is it of?
    size_t last = k;
    while (!stages_[last].folder) ++last;
    Stage& reduction = stages_[last];
    if (folded_ == element_.begin && k == stage.first) reduction.values = reduction.folder->identity;
    if (element_.begin == element_.end) {
      store(reduction);
      return last + 1;
    }
    place(stage.thunks, stage.reads, folded_);
    launch_.evaluate(stage.thunks, folded_, element_.i, folded_ - element_.begin);
    if (stage.inner) {
      take(stage);
      return k + 1;
    }
    std::vector<Register> values;
    for (size_t j = 0; j < stage.values.size(); ++j) values.push_back(pulled(stage, j));
    launch_.combine(*stage.folder, stage.values, values.data());
    if (++folded_ < element_.end) return stage.first;
    folded_ = element_.begin;
    store(stage);
    return last + 1;
  }

  /// Whether this is where a result is kept.
  bool keep(const std::byte* address) const {
    return std::any_of(stages_.begin(), stages_.end(), [&](const Stage& stage) {
      const auto* begin = reinterpret_cast<const std::byte*>(stage.memory.data());
      return std::less_equal<>()(begin, address) &&
             std::less<>()(address, begin + stage.memory.size() * sizeof(Register));
    });
  }

 private:
  /// A result that thunks read.
  struct Read {
    size_t array;  ///< of the thunks
    const Register* memory;
    int64_t width;
  };
  struct Stage {
    const Soac* soac;
    bool inner;    ///< of elements of the segment, for the reduction that comes next
    size_t first;  ///< of its group
    Instance thunks;
    std::optional<Folder> folder;
    std::vector<Register> values;   ///< of the element at hand; of a reduction, what it has folded
    std::vector<Register> memory;   ///< the same, as arrays hold it
    std::vector<uint64_t> entered;  ///< of no interest here
    std::vector<Read> reads = {};
  };

  /// What a binding reads, and what maps among these read, in the order of the kernel.
  std::vector<uint32_t> readBy(uint32_t b) const {
    std::vector<uint32_t> wanted = {b};
    for (size_t k = 0; k < wanted.size(); ++k) {
      if (k > 0 && launch_.kernel_.bindings[wanted[k]].kind == SoacKind::Reduce) continue;
      for (const uint32_t other : launch_.producersOf(wanted[k]))
        if (std::find(wanted.begin(), wanted.end(), other) == wanted.end()) wanted.push_back(other);
    }
    wanted.erase(wanted.begin());
    std::sort(wanted.begin(), wanted.end());
    return wanted;
  }

  void add(uint32_t b, size_t first, bool inner) {
    const Soac& soac = launch_.kernel_.bindings[b];
    const ExpressionCode& code = launch_.code_.bindings()[b].thunks;
    std::vector<uint64_t> entered(code.blockCount());
    Stage stage{&soac,
                inner,
                first,
                launch_.instantiate(code, entered.data()),
                {},
                std::vector<Register>(soac.pull.size()),
                std::vector<Register>(soac.pull.size()),
                std::move(entered)};
    if (soac.kind == SoacKind::Reduce) stage.folder = launch_.folder(b);
    stages_.push_back(std::move(stage));
  }

  /// Of stages from `first` to `end`, of a group or outside of groups.
  std::vector<Read> reads(const Instance& reader, size_t end, bool inner, size_t first) const {
    std::vector<Read> found;
    const std::vector<VarId>& arrays = reader.code->arrays();
    for (size_t k = first; k < end; ++k) {
      const Stage& stage = stages_[k];
      for (size_t j = 0; stage.inner == inner && j < stage.memory.size(); ++j) {
        const auto array = std::find(arrays.begin(), arrays.end(), stage.soac->results[j]);
        if (array == arrays.end()) continue;
        found.push_back({static_cast<size_t>(array - arrays.begin()), &stage.memory[j],
                         sizeOf(stage.soac->pull[j]->type)});
      }
    }
    return found;
  }

  /// The thunks read element i of these results where they are.
  static void place(Instance& thunks, const std::vector<Read>& reads, int64_t i) {
    for (const Read& read : reads)
      thunks.arrays[read.array] =
          reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(read.memory) -
                                        static_cast<uintptr_t>(i) * static_cast<uintptr_t>(read.width));
  }

  Register pulled(const Stage& stage, size_t j) const {
    return launch_.result(stage.thunks, stage.thunks.results->size() - stage.values.size() + j);
  }
  void take(Stage& stage) {
    for (size_t j = 0; j < stage.values.size(); ++j) stage.values[j] = pulled(stage, j);
    store(stage);
  }
  static void store(Stage& stage) {
    for (size_t j = 0; j < stage.values.size(); ++j)
      storeElement(stage.soac->pull[j]->type, &stage.memory[j], 0, stage.values[j]);
  }

  LaunchEvaluation& launch_;
  std::vector<Stage> stages_;
  std::vector<std::pair<Instance*, std::vector<Read>>> readers_;
  Element element_;
  int64_t folded_ = 0;
};

}  // namespace kelpie::runtime
