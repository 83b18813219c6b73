#include "codegen/cuda/pass_plan.h"

#include <algorithm>

#include "codegen/cuda/pass_split.h"
#include "codegen/expression_schedule.h"
#include "ir/diagnostic.h"

namespace kelpie::codegen::cuda {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

std::vector<ScalarOp> laneOperations(const lcu::Operator& combine) {
  std::vector<ScalarOp> operations;
  for (const std::optional<ScalarOp>& op : componentOperations(combine)) {
    if (!op) return {};
    operations.push_back(*op);
  }
  return operations;
}

int64_t LevelPlan::bytes() const {
  int64_t sum = 0, widest = 1;
  for (const Field& f : fields) {
    sum += sizeOf(f.type);
    widest = std::max<int64_t>(widest, sizeOf(f.type));
  }
  return (sum + widest - 1) / widest * widest;
}

bool PassPlan::needsLower() const {
  return std::any_of(levels.begin(), levels.end(), [](const LevelPlan& l) { return !l.fields.empty(); });
}

namespace {

/// Shared memory a block may use without asking for more, less some for barriers and totals.
constexpr int kSharedBytes = 46 * 1024;
/// 4-byte registers that the items of a thread may fill, counted generously: packs and what is made of them.
constexpr int kItemWords = 72;
/// The same where tiles wait for what lies below: longer tiles wait less often. On an H200 a scan of 2^27
/// float32 reached 83 % of copy bandwidth with tiles of 4096 items, 91 % with 8192, 88 % with 16384
/// (bench/results).
constexpr int kWaitingItemWords = 96;
/// Nodes of thunk code that a pass may unroll to; longer code costs compile time and gains nothing.
constexpr int kUnrolledNodes = 3000;

class Planner {
 public:
  Planner(const lcu::Kernel& kernel, const KernelInfo& info, const lcu::Program& program,
          const CudaOptions& options)
      : kernel_(kernel), info_(info), program_(program), options_(options) {}

  PassPlan run() {
    for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) place(b);
    if (!plan_.levels.empty() && plan_.stages.size() < plan_.levels.size()) {
      plan_.stages.resize(plan_.levels.size());
    }
    plan_.levels.resize(plan_.stages.size());
    for (LevelPlan& level : plan_.levels) finishLevel(level);
    sortBySize(plan_.reductions);
    choosePacks();
    chooseGrid();
    chooseShape();
    return std::move(plan_);
  }

 private:
  LevelPlan& level(uint32_t number) {
    if (plan_.levels.size() <= number) plan_.levels.resize(number + 1);
    return plan_.levels[number];
  }

  void place(uint32_t b) {
    const Soac& soac = kernel_.bindings[b];
    const BindingInfo& binding = info_.bindings[b];
    if (binding.role == BindingRole::Finish) {
      plan_.finish.push_back(b);
      return;
    }
    if (binding.role == BindingRole::Epilogue) {
      plan_.epilogues.push_back(b);
      return;
    }
    if (plan_.stages.size() <= binding.level) plan_.stages.resize(binding.level + 1);
    plan_.stages[binding.level].bindings.push_back(b);
    bool segmented = soac.space.segmented();
    plan_.numbersInThunks |= binding.usesSegment || binding.usesPosition;
    plan_.numbers |= plan_.numbersInThunks;
    switch (soac.kind) {
      case SoacKind::Scan:
        addOperator(level(binding.level).fields, b, segmented);
        plan_.borders |= segmented;
        break;
      case SoacKind::Filter:
      case SoacKind::Partition:
        level(binding.level).fields.push_back({b, 0, true, false, ScalarType::Int64});
        for (ExprRef e : soac.pull) {
          plan_.bufferBytesPerItem = std::max(plan_.bufferBytesPerItem, sizeOf(e->type));
        }
        if (segmented) plan_.stagedBytesPerItem += 2;
        segmentResults_ |= segmented;
        break;
      case SoacKind::Reduce:
        if (segmented) {
          addOperator(level(binding.level).fields, b, true);
          plan_.borders = plan_.numbers = segmentResults_ = true;
          for (ExprRef e : soac.combine.result) plan_.stagedBytesPerItem += sizeOf(e->type);
        } else if (!laneOperations(soac.combine).empty()) {
          addOperator(plan_.reductions, b, false);
        } else {
          addOperator(level(binding.level).fields, b, false);
        }
        break;
      default:
        break;
    }
  }

  void addOperator(std::vector<Field>& fields, uint32_t b, bool segmented) {
    const lcu::Operator& combine = kernel_.bindings[b].combine;
    lcu::forEachNode(combine.result, [](ExprRef e) {
      if (e->kind == ExprKind::Host || e->kind == ExprKind::Load || e->kind == ExprKind::Size) {
        throw InternalError("an operator of a scan or reduction has free variables");
      }
    });
    for (uint32_t j = 0; j < combine.result.size(); ++j) {
      fields.push_back({b, j, false, segmented, combine.identity[j].type});
    }
  }

  /// Wide fields first: no padding between them. Counts, of 4 bytes in a tile and 8 between tiles, go between
  /// the two. Stable, so the text is deterministic.
  static void sortBySize(std::vector<Field>& fields) {
    auto rank = [](const Field& f) { return f.count ? 5 : sizeOf(f.type); };
    std::stable_sort(fields.begin(), fields.end(),
                     [&](const Field& a, const Field& b) { return rank(a) > rank(b); });
  }

  void finishLevel(LevelPlan& level) {
    sortBySize(level.fields);
    level.countsOnly = level.fields.size() == 1 && level.fields[0].count && !info_.space.segmented();
    for (const Field& f : level.fields) {
      level.segmented |= f.segmented;
      level.restarts &= f.segmented;
      level.counts |= f.count;
      level.commutes &= f.count || !laneOperations(kernel_.bindings[f.binding].combine).empty();
    }
  }

  /// Element %i of an array may be loaded for every element in range where some thunk reads it without
  /// condition, or where the array is known to be as long as the space.
  void choosePacks() {
    std::unordered_set<VarId> packed;
    for (StagePlan& stage : plan_.stages) {
      std::vector<ExprRef> unconditional, all;
      for (uint32_t b : stage.bindings) {
        const Soac& soac = kernel_.bindings[b];
        for (ExprRef e : thunksOf(soac)) {
          all.push_back(e);
          bool survivorsOnly = soac.kind == SoacKind::Filter && e != soac.where &&
                               std::find(soac.pull.begin(), soac.pull.end(), e) != soac.pull.end();
          if (!survivorsOnly) unconditional.push_back(e);
        }
      }
      std::unordered_set<ExprRef> always;
      const Schedule schedule = scheduleExpressions(unconditional);
      for (const ScheduleStep& step : schedule.blocks[0].steps) always.insert(step.node);
      lcu::forEachNode(all, [&](ExprRef e) {
        if (e->kind != ExprKind::Load || !isElement(e->operands[0])) return;
        if (!info_.parameter(ParameterKind::Array, e->index)) return;
        bool sameExtent = program_.vars.at(e->index).extent == info_.space.extent;
        if ((sameExtent || always.contains(e)) && packed.insert(e->index).second) {
          stage.packs.push_back(e->index);
        }
      });
    }
  }

  static bool isElement(ExprRef e) { return e->kind == ExprKind::Param && e->index == 0; }

  void chooseGrid() {
    if (plan_.stages.empty() && plan_.epilogues.empty()) {
      plan_.grid = Grid::Single;
    } else if (info_.space.segmented() &&
               (plan_.borders || plan_.numbers || segmentResults_ || !plan_.epilogues.empty())) {
      plan_.grid = foldsSegmentsOnly() ? Grid::Ranges : scansElementsOnly() ? Grid::Heads : Grid::Merged;
    } else if (!plan_.needsLower() && !plan_.reductions.empty()) {
      plan_.grid = Grid::Chunks;
    }
  }

  /// Whether segments are folded, nothing is scanned, and thunks need no segment numbers.
  bool foldsSegmentsOnly() const {
    if (plan_.levels.size() != 1 || plan_.levels[0].fields.empty() || plan_.numbersInThunks) return false;
    const auto& fields = plan_.levels[0].fields;
    return std::all_of(fields.begin(), fields.end(), [&](const Field& f) {
      return f.segmented && kernel_.bindings[f.binding].kind == SoacKind::Reduce;
    });
  }

  /// Whether segments have no results of their own, and thunks need no segment numbers.
  bool scansElementsOnly() const { return !plan_.numbers && !segmentResults_ && plan_.epilogues.empty(); }

  void chooseShape() {
    TileShape& shape = plan_.shape;
    shape.threads = plan_.grid == Grid::Single ? 32 : options_.threads;
    shape.backward = runsBackward(kernel_);
    int smallest = 8, words = 0;
    auto stored = [&](ScalarType t) {
      smallest = std::min(smallest, sizeOf(t));
      words += sizeOf(t) == 8 ? 2 : 1;
    };
    size_t nodes = 0;
    for (const StagePlan& stage : plan_.stages) {
      std::vector<ExprRef> thunks;
      for (VarId v : stage.packs) stored(program_.vars.at(v).type);
      for (uint32_t b : stage.bindings) {
        const Soac& soac = kernel_.bindings[b];
        auto own = thunksOf(soac);
        thunks.insert(thunks.end(), own.begin(), own.end());
        if (soac.kind == SoacKind::Map || soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition)
          for (ExprRef e : soac.pull) stored(e->type);
      }
      lcu::forEachNode(thunks, [&](ExprRef e) { nodes += e->kind == ExprKind::Loop ? 8 : 1; });
    }
    for (const LevelPlan& level : plan_.levels)
      for (const Field& f : level.fields) words += level.countsOnly ? 0 : f.count ? 2 : sizeOf(f.type) / 2;
    if (plan_.numbersInThunks) ++words;

    shape.width = smallest >= 8 ? 2 : 4;
    const bool waiting = plan_.scanned() && !plan_.merged();
    // Small blocks: the more of them, the less their barriers cost. On an H200 segmented sums of length 8
    // took 0.26 ms with 128 threads, 0.22 ms with 64 (2^27 float32).
    if (plan_.ranges()) shape.threads = std::max(32, shape.threads / 4);
    // A warp of the scanner for each level.
    while (plan_.scanned() && shape.threads < 32 * static_cast<int>(plan_.levels.size())) shape.threads *= 2;
    // Blocks that only count gain from going on to the next tile. On an H200 a filter of 2^27 float32 took
    // 0.25 ms, and 0.30 ms with a block for each tile; for scans it is the other way round.
    plan_.persistent = waiting && plan_.grid == Grid::Tiles &&
                       std::all_of(plan_.levels.begin(), plan_.levels.end(),
                                   [](const LevelPlan& l) { return l.fields.empty() || l.countsOnly; });
    int items = std::min(options_.maxItems * (waiting ? 2 : 1),
                         std::max(1, (waiting ? kWaitingItemWords : kItemWords) / std::max(1, words)));
    items = std::min<int>(items,
                          static_cast<int>(std::max<size_t>(1, kUnrolledNodes / std::max<size_t>(1, nodes))));
    int bytes = (plan_.merged() ? 2 : 0) + plan_.stagedBytesPerItem;
    if (plan_.merged()) bytes += plan_.bufferBytesPerItem;
    if (plan_.heads()) bytes = 1;
    if (plan_.ranges()) bytes = 1 + 2 * static_cast<int>(plan_.levels[0].bytes());
    if (bytes > 0) items = std::min(items, kSharedBytes / (bytes * shape.threads));
    if (plan_.merged())
      items = std::min(items, 65535 / shape.threads);  // segment numbers of a tile take 16 bits
    while (bytes * shape.threads > kSharedBytes && shape.threads > 32) shape.threads /= 2;
    shape.width = std::min(shape.width, std::max(1, items));
    if (shape.width == 3) shape.width = 2;
    shape.rows = std::clamp(items / shape.width, 1, options_.maxRows);
    while (shape.rows & (shape.rows - 1)) shape.rows &= shape.rows - 1;
    if (plan_.scanned() || plan_.merged() || plan_.ranges()) {
      const int filled = shape.rows * shape.width * words;
      int residentThreads = 256;
      if (waiting) {
        residentThreads = filled <= 128 ? 1024 : 512;
      } else if (filled <= 80) {
        residentThreads = filled <= 64 ? 1024 : 768;
      }
      plan_.blocksAtOnce = std::max(1, residentThreads / shape.threads);
    }
    if (plan_.bufferBytesPerItem > 0) {
      plan_.bufferItems = std::min(
          shape.items(), (kSharedBytes - shape.items() * bytes) / plan_.bufferBytesPerItem / 128 * 128);
    }
    // A tile of a merged list must have room beside the aligned start.
    if (plan_.merged() && shape.threads * shape.rows <= 1) shape.rows = 2;
  }

  const lcu::Kernel& kernel_;
  const KernelInfo& info_;
  const lcu::Program& program_;
  const CudaOptions& options_;
  PassPlan plan_;
  bool segmentResults_ = false;
};

}  // namespace

PassPlan planPass(const lcu::Kernel& kernel, const KernelInfo& info, const lcu::Program& program,
                  const CudaOptions& options) {
  return Planner(kernel, info, program, options).run();
}

}  // namespace kelpie::codegen::cuda
