// Thunks evaluated for some of a launch's elements (codegen/thunk_sample.h).
#include <unordered_set>

#include "runtime/interp/launch_evaluation.h"

namespace kelpie::runtime {

/// The thunks of one binding for groups of neighbouring elements, spread evenly.
class LaunchEvaluation::SampledBinding final : private ExpressionCode::Trace {
 public:
  SampledBinding(LaunchEvaluation& launch, uint32_t b, codegen::ThunkSample& sample, size_t blocks,
                 size_t positions, const BeforeReading& beforeReading)
      : launch_(launch),
        soac_(launch.kernel_.bindings[b]),
        epilogue_(launch.info_.bindings[b].role == BindingRole::Epilogue),
        code_(launch.code_.bindings()[b]),
        entered_(code_.thunks.blockCount() + code_.late.blockCount()),
        thunks_(launch.instantiate(code_.thunks, entered_.data())),
        late_(launch.instantiate(code_.late, entered_.data() + code_.thunks.blockCount())),
        sample_(sample),
        blocks_(blocks),
        positions_(positions),
        beforeReading_(beforeReading) {
    for (const ExpressionCode* code : {&code_.thunks, &code_.late})
      for (const lcu::ExprRef load : code->gathers()) widths_.push_back(sizeOf(load->type));
    if (soac_.kind == SoacKind::Permute)
      widths_.push_back(soac_.pull.empty() ? 1 : sizeOf(soac_.pull[0]->type));
  }

  void run(Deadline deadline) {
    constexpr int64_t kGroups = 48;
    const int64_t n = epilogue_ ? launch_.m_ : launch_.n_;
    const int64_t groups = std::min(kGroups, (n + codegen::kNeighbours - 1) / codegen::kNeighbours);
    const int64_t step = groups < kGroups ? 1 : n / groups / codegen::kNeighbours;
    everywhere_.resize(widths_.size());
    for (int64_t g = 0; g < groups && std::chrono::steady_clock::now() < deadline; ++g) {
      const int64_t begin = g * step * codegen::kNeighbours;
      group(begin, std::min(n, begin + codegen::kNeighbours));
    }
    for (size_t k = 0; k < everywhere_.size(); ++k)
      sample_.positions[positions_ + k].distinct += static_cast<double>(everywhere_[k].size());
  }

 private:
  static constexpr int64_t kInStep = 32;
  static constexpr size_t kMostPositions = 1 << 16;  ///< of a group

  void group(int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += kInStep) {
      std::vector<uint64_t> most(entered_.size(), 0);
      for (int64_t i = first; i < std::min(end, first + kInStep); ++i) {
        element(i);
        for (size_t k = 0; k < entered_.size(); ++k) {
          sample_.entered[blocks_ + k] += static_cast<double>(entered_[k]);
          most[k] = std::max(most[k], entered_[k]);
        }
      }
      const auto lanes = static_cast<double>(std::min(end, first + kInStep) - first);
      for (size_t k = 0; k < most.size(); ++k)
        sample_.inStep[blocks_ + k] += lanes * static_cast<double>(most[k]);
    }
    tell();
  }

  void loads(const std::byte* address) override { beforeReading_(address); }
  void gathers(uint32_t number, int64_t position) override {
    if (seen_.size() < kMostPositions) seen_.emplace_back(firstGather_ + number, position);
  }

  /// Leaves in `entered_` what evaluating it did.
  void element(int64_t i) {
    std::fill(entered_.begin(), entered_.end(), 0);
    launch_.trace_ = this;
    const auto [s, p] = epilogue_ ? std::pair<int64_t, int64_t>{0, i} : segmentOf(i);
    launch_.evaluate(thunks_, i, s, p);
    entered_[0] = 1;
    size_t next = soac_.effects.size();
    if (soac_.kind == SoacKind::Filter && launch_.result(thunks_, next).i != 0) {
      firstGather_ = static_cast<uint32_t>(code_.thunks.gathers().size());
      launch_.evaluate(late_, i, s, p);
      firstGather_ = 0;
      entered_[code_.thunks.blockCount()] = 1;
    }
    if (soac_.kind == SoacKind::Permute && soac_.where && launch_.result(thunks_, next++).i == 0) return;
    if (soac_.kind == SoacKind::Permute)
      gathers(static_cast<uint32_t>(widths_.size() - 1), launch_.result(thunks_, next).i);
    launch_.trace_ = nullptr;
  }

  /// Segment of an element, and its place in it.
  std::pair<int64_t, int64_t> segmentOf(int64_t i) const {
    if (!soac_.space.segmented()) return {0, i};
    const LaunchRequest& request = launch_.request_;
    if (!launch_.offsets_)
      return {i / std::max<int64_t>(request.extents.length, 1),
              i % std::max<int64_t>(request.extents.length, 1)};
    const int64_t* offsets = launch_.offsets_;
    int64_t s = 0;  // the last one that begins at i or before
    for (int64_t end = launch_.m_; end - s > 1;) {
      const int64_t middle = s + (end - s) / 2;
      beforeReading_(reinterpret_cast<const std::byte*>(offsets + middle));
      (offsets[middle] <= i ? s : end) = middle;
    }
    beforeReading_(reinterpret_cast<const std::byte*>(offsets + s));
    return {s, i - offsets[s]};
  }

  void tell() {
    std::vector<std::unordered_set<int64_t>> sectors(widths_.size()), lines(widths_.size());
    for (const auto& [k, position] : seen_) {
      const int64_t byte = position * widths_[k];
      sample_.positions[positions_ + k].number += 1;
      sectors[k].insert(byte / 32);
      lines[k].insert(byte / 128);
      everywhere_[k].insert(byte / 32);
    }
    for (size_t k = 0; k < widths_.size(); ++k) {
      sample_.positions[positions_ + k].sectors += static_cast<double>(sectors[k].size());
      sample_.positions[positions_ + k].lines += static_cast<double>(lines[k].size());
    }
    seen_.clear();
  }

  LaunchEvaluation& launch_;
  const Soac& soac_;
  const bool epilogue_;
  const KernelCode::Binding& code_;
  std::vector<uint64_t> entered_;  ///< by block, of one element
  Instance thunks_, late_;
  codegen::ThunkSample& sample_;
  const size_t blocks_, positions_;  ///< where those of the binding begin in the sample
  const BeforeReading& beforeReading_;
  std::vector<std::pair<uint32_t, int64_t>> seen_;  ///< gather and position, of the group
  uint32_t firstGather_ = 0;                        ///< where the numbers of the thunks at hand begin
  std::vector<int64_t> widths_;                     ///< bytes of what is at a position
  std::vector<std::unordered_set<int64_t>> everywhere_;
};

codegen::ThunkSample LaunchEvaluation::sample(const BeforeReading& beforeReading, Deadline deadline) {
  bindParameters();
  codegen::ThunkSample sample;
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    const KernelCode::Binding& code = code_.bindings()[b];
    const size_t blocks = sample.entered.size(), positions = sample.positions.size();
    sample.entered.resize(blocks + code.thunks.blockCount() + code.late.blockCount());
    sample.inStep.resize(sample.entered.size());
    const bool permutes = kernel_.bindings[b].kind == SoacKind::Permute;
    sample.positions.resize(positions + code.thunks.gathers().size() + code.late.gathers().size() + permutes);
    if (info_.bindings[b].role == BindingRole::Finish || !info_.bindings[b].localReads.empty()) continue;
    SampledBinding(*this, b, sample, blocks, positions, beforeReading).run(deadline);
  }
  return sample;
}

codegen::ThunkSample sampleThunks(const KernelCode& code, const LaunchRequest& request,
                                  const BeforeReading& beforeReading, Deadline deadline) {
  LaunchWork work;
  LaunchEvaluation launch(code, request, work, deadline);
  try {
    return launch.sample(beforeReading, deadline);
  } catch (const DeadlinePassed&) {
    return {};
  }
}

}  // namespace kelpie::runtime
