#include "codegen/cuda/pass_plan.h"

#include <algorithm>

#include "codegen/cuda/pass_shape.h"
#include "codegen/cuda/pass_split.h"
#include "codegen/cuda/range_scans.h"
#include "codegen/expression_schedule.h"
#include "codegen/regular_reads.h"
#include "ir/diagnostic.h"

namespace kelpie::codegen::cuda {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

int64_t bytesOf(const std::vector<Field>& fields, int ofPlace) {
  int64_t sum = 0, widest = 1;
  for (const Field& f : fields) {
    const int bytes = f.place == Field::Place::Usual ? ofPlace : sizeOf(f.type);
    sum += bytes;
    widest = std::max<int64_t>(widest, bytes);
  }
  return (sum + widest - 1) / widest * widest;
}

}  // namespace

int64_t LevelPlan::bytes() const { return bytesOf(fields, 8); }
int64_t LevelPlan::usualBytes() const { return bytesOf(fields, 4); }

bool PassPlan::needsLower() const {
  return std::any_of(levels.begin(), levels.end(), [](const LevelPlan& l) { return !l.fields.empty(); });
}

namespace {

class Planner {
 public:
  Planner(const lcu::Kernel& kernel, const KernelInfo& info, const lcu::Program& program,
          const CudaOptions& options, PassForm form, const std::unordered_set<VarId>& places)
      : kernel_(kernel), info_(info), program_(program), options_(options), form_(form), places_(places) {
    plan_.groups = form == PassForm::Groups;
    plan_.warps = form == PassForm::Warps;
    plan_.fewColumns = form == PassForm::FewColumns;
    plan_.longTiles = form == PassForm::LongTiles;
  }

  PassPlan run() {
    if (scansByRanges(kernel_, info_)) {
      plan_.foldLevel = 1;
      readByScans_ = readByScans(kernel_, info_);
    }
    for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) place(b);
    if (!plan_.levels.empty() && plan_.stages.size() < plan_.levels.size()) {
      plan_.stages.resize(plan_.levels.size());
    }
    plan_.levels.resize(plan_.stages.size());
    std::vector<SegmentFold> ofScans = foldsOfScans();
    for (LevelPlan& level : plan_.levels) {
      choosePlaces(level.fields);
      finishLevel(level);
    }
    chooseFolds(std::move(ofScans));
    sortBySize(plan_.reductions);
    choosePacks();
    chooseRecomputed();
    for (const Soac& soac : kernel_.bindings) needBuffer(soac);
    chooseGrid();
    chooseShape(plan_, kernel_, info_, program_, options_);
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
    const uint32_t stage = stageOf(b);
    if (plan_.stages.size() <= stage) plan_.stages.resize(stage + 1);
    plan_.stages[stage].bindings.push_back(b);
    bool segmented = soac.space.segmented();
    plan_.numbersInThunks |= binding.usesSegment || binding.usesPosition;
    switch (soac.kind) {
      case SoacKind::Scan:
        addOperator(level(stage).fields, b, segmented);
        plan_.borders |= segmented;
        break;
      case SoacKind::Filter:
      case SoacKind::Partition:
        level(stage).fields.push_back({b, 0, true, false, ScalarType::Int64});
        break;
      case SoacKind::Reduce:
        if (segmented) {
          addOperator(level(stage).fields, b, true);
          plan_.borders = true;
        } else if (commutes(soac.combine)) {
          addOperator(plan_.reductions, b, false);
        } else {
          addOperator(level(stage).fields, b, false);
        }
        break;
      default:
        break;
    }
  }

  /// What ranges fold ahead has a stage of its own.
  uint32_t stageOf(uint32_t b) const {
    return !plan_.scansRanges() ? info_.bindings[b].level : readByScans_[b] ? 0 : 1;
  }

  void addOperator(std::vector<Field>& fields, uint32_t b, bool segmented) {
    const lcu::Operator& combine = kernel_.bindings[b].combine;
    lcu::forEachNode(combine.result, [](ExprRef e) {
      if (e->kind == ExprKind::Host || e->kind == ExprKind::Load || e->kind == ExprKind::Size) {
        throw InternalError("an operator of a scan or reduction has free variables");
      }
    });
    for (uint32_t j = 0; j < combine.result.size(); ++j)
      fields.push_back({b, j, false, segmented, combine.identity[j].type});
  }

  /// What lies beside a place is known when all fields are.
  void choosePlaces(std::vector<Field>& fields) const {
    const auto isPlace = [this](const Field& f) {
      const Soac& soac = kernel_.bindings[f.binding];
      return !f.count && soac.kind == SoacKind::Reduce && places_.contains(soac.results[f.component]);
    };
    const bool wide = std::any_of(fields.begin(), fields.end(), [&](const Field& f) {
      return !f.count && !isPlace(f) && sizeOf(f.type) == 8;
    });
    for (Field& f : fields)
      if (isPlace(f)) f.place = wide ? Field::Place::Wide : Field::Place::Usual;
  }

  /// Folds of segments that scans have, whose own fields are taken away.
  std::vector<SegmentFold> foldsOfScans() {
    std::vector<SegmentFold> folds;
    if (plan_.scansRanges()) return folds;
    for (LevelPlan& level : plan_.levels) {
      std::vector<Field>& fields = level.fields;
      const std::vector<Field> before = fields;
      for (const Field& fold : before) {
        const auto hasIt = [&](const Field& f) {
          return f.component == fold.component &&
                 foldsTheSame(kernel_.bindings[f.binding], kernel_.bindings[fold.binding]);
        };
        const auto scan = std::find_if(before.begin(), before.end(), hasIt);
        if (scan == before.end()) continue;
        folds.push_back({kernel_.bindings[fold.binding].results[fold.component], *scan});
        fields.erase(std::find_if(fields.begin(), fields.end(), [&](const Field& f) {
          return f.binding == fold.binding && f.component == fold.component;
        }));
      }
    }
    return folds;
  }

  void chooseFolds(std::vector<SegmentFold> ofScans) {
    for (size_t k = 0; k < plan_.levels.size(); ++k) {
      for (const Field& f : plan_.levels[k].fields) {
        const Soac& soac = kernel_.bindings[f.binding];
        if (!f.segmented || soac.kind != SoacKind::Reduce) continue;
        if (k != plan_.foldLevel) throw InternalError("segments are folded with what their pass scans");
        plan_.segmentFolds.push_back({soac.results[f.component], f});
      }
    }
    plan_.segmentFolds.insert(plan_.segmentFolds.end(), ofScans.begin(), ofScans.end());
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
    level.countsOnly = !level.fields.empty() && std::all_of(level.fields.begin(), level.fields.end(),
                                                            [](const Field& f) { return f.count; });
    for (const Field& f : level.fields) {
      level.segmented |= f.segmented;
      level.restarts &= f.segmented;
      level.counts |= f.count;
      level.commutes &= f.count || commutes(kernel_.bindings[f.binding].combine);
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

  /// What takes little and reads nothing but elements that are there anyway, and are smaller.
  void chooseRecomputed() {
    constexpr int kMostNodes = 6;
    std::unordered_set<VarId> packed;
    for (const StagePlan& stage : plan_.stages) {
      packed.insert(stage.packs.begin(), stage.packs.end());
      for (uint32_t b : stage.bindings) {
        const Soac& soac = kernel_.bindings[b];
        if (soac.kind != SoacKind::Filter) continue;
        for (size_t j = 0; j < soac.pull.size(); ++j) {
          const ExprRef pull = soac.pull[j];
          int nodes = 0, elements = 0;  // bytes of these
          const bool costs = lcu::anyNode({pull}, [&](ExprRef e) {
            if (e->kind == ExprKind::Load) {
              elements += sizeOf(e->type);
              return !isElement(e->operands[0]) || !packed.contains(e->index);
            }
            return ++nodes > kMostNodes || e->kind == ExprKind::Check || lcu::isUnbounded(e) ||
                   (e->kind == ExprKind::Param && e->index != 0);
          });
          if (!costs && elements < sizeOf(pull->type)) plan_.recomputed.insert(soac.results[j + 1]);
        }
      }
    }
  }

  void needBuffer(const Soac& soac) {
    constexpr int kOffsetBytes = 2;
    if (soac.kind != SoacKind::Filter && soac.kind != SoacKind::Partition) return;
    for (size_t j = 0; j < soac.pull.size(); ++j)
      plan_.bufferBytesPerItem = std::max(
          plan_.bufferBytesPerItem,
          plan_.recomputed.contains(soac.results[j + 1]) ? kOffsetBytes : sizeOf(soac.pull[j]->type));
  }

  void chooseGrid() {
    plan_.regular = !info_.offsetsParameter;
    if (plan_.stages.empty() && plan_.epilogues.empty()) {
      plan_.grid = Grid::Single;
    } else if (info_.space.segmented() &&
               (plan_.borders || plan_.numbersInThunks || !plan_.epilogues.empty())) {
      plan_.keyed = keyedSegments(kernel_, info_);
      plan_.grid = plan_.keyed ? Grid::Keys
                   : plan_.scansRanges()
                       ? Grid::Ranges
                       : regularGrid().value_or(foldsSegmentsOnly() ? Grid::Ranges : Grid::Heads);
      plan_.ends = plan_.heads() && !plan_.segmentFolds.empty();
      if (plan_.heads() && !plan_.epilogues.empty() && !plan_.ends)
        throw InternalError("epilogues without what they follow");
      if (plan_.columns()) plan_.indices = twoIndices(kernel_, info_);
      plan_.across = plan_.columns() && !plan_.indices && regularReads(kernel_, info_).across;
      if (!plan_.keyed && foldsSegmentsOnly()) plan_.product = productOf(kernel_, info_, program_);
      if (form_ == PassForm::Product || form_ == PassForm::Shorts) {
        plan_.grid = form_ == PassForm::Product ? Grid::Products : Grid::Shorts;
        plan_.indices = plan_.product->indices;
      }
    } else if (!plan_.needsLower() && !plan_.reductions.empty()) {
      plan_.grid = Grid::Chunks;
    }
    if ((plan_.grid == Grid::Tiles || plan_.grid == Grid::Chunks) && !plan_.needsLower() &&
        plan_.stages.size() == 1 && plan_.finish.empty() && !runsBackward(kernel_)) {
      plan_.refilled = refilledLoop(kernel_, plan_.stages[0].bindings, QueueOf::Block);
      if (plan_.refilled) plan_.grid = Grid::Chunks;
    }
    if ((plan_.scanned() || plan_.ranges()) && !plan_.whole() && !plan_.stages.empty())
      plan_.refilledInTiles = refilledLoop(kernel_, plan_.stages[0].bindings, QueueOf::Tile);
  }

  /// Whether segments are folded and nothing is scanned.
  bool foldsSegmentsOnly() const {
    if (plan_.levels.size() != 1 || plan_.levels[0].fields.empty()) return false;
    const auto& fields = plan_.levels[0].fields;
    return std::all_of(fields.begin(), fields.end(), [&](const Field& f) {
      return f.segmented && kernel_.bindings[f.binding].kind == SoacKind::Reduce;
    });
  }

  /// Of a regular space that is folded in another way than by ranges, or mapped by segments and positions.
  std::optional<Grid> regularGrid() const {
    if (foldsSegmentsOnly() && foldsRegular(kernel_, info_)) {
      const RegularReads reads = regularReads(kernel_, info_);
      if (reads.apart()) return Grid::Rows;
      if (reads.bySegments()) return Grid::Columns;
    } else if (mapsRegular(kernel_, info_) && regularReads(kernel_, info_).across) {
      return Grid::Transposed;
    }
    return std::nullopt;
  }

  const lcu::Kernel& kernel_;
  const KernelInfo& info_;
  const lcu::Program& program_;
  const CudaOptions& options_;
  const PassForm form_;
  const std::unordered_set<VarId>& places_;
  std::vector<bool> readByScans_;  ///< where ranges scan
  PassPlan plan_;
};

}  // namespace

bool PassPlan::carries(uint32_t binding) const {
  return std::any_of(levels.begin(), levels.end(), [&](const LevelPlan& level) {
    return std::any_of(level.fields.begin(), level.fields.end(),
                       [&](const Field& f) { return f.binding == binding; });
  });
}

PassPlan planPass(const lcu::Kernel& kernel, const KernelInfo& info, const lcu::Program& program,
                  const CudaOptions& options, PassForm form, const std::unordered_set<VarId>& places) {
  return Planner(kernel, info, program, options, form, places).run();
}

}  // namespace kelpie::codegen::cuda
