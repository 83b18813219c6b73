// What a kernel's text tells of how it runs, whatever it costs and however large it is: how it is split into
// passes, how these go over segments, in which order its thunks compute what. Most of what a prediction takes
// goes into finding this, so that predictions for other costs (named_costs.h) begin with it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <unordered_set>
#include <vector>

#include "codegen/cuda/pass_plan.h"
#include "codegen/cuda/pass_split.h"
#include "codegen/expression_schedule.h"
#include "codegen/gathered_columns.h"
#include "codegen/kernel_analysis.h"
#include "codegen/regular_reads.h"
#include "fusion/compiled_blocks.h"
#include "fusion/element_facts.h"

namespace kelpie::fusion {

/// Whether neighbouring segments go side by side (codegen/regular_reads.h).
enum class BySegments : uint8_t { No, Maps, Folds, Products, ShortProducts };

/// Some thunks that are computed together.
struct ThunkStructure {
  ThunkStructure(const std::vector<lcu::ExprRef>& roots, const ArrayBits& bits);
  const codegen::Schedule schedule;
  const ElementFacts facts;
  const std::unordered_set<lcu::ExprRef> exits;  ///< of loops (compiled_blocks.h)
  const std::vector<bool> behindBranches;        ///< by block, where items have no test around them
  const Frames frames;
  const Homes homes;
};

class KernelStructure {
 public:
  /// All must outlive this. `lockStep`: of the target (TargetCosts); `bits`: of the integers of arrays.
  KernelStructure(const lcu::Kernel& kernel, const lcu::Program& program, bool lockStep,
                  const ArrayBits& bits);

  /// Over the elements: GPUs may need several (codegen/cuda/pass_split.h). Elsewhere there is none.
  struct Pass {
    codegen::cuda::KernelPart part;
    codegen::cuda::PassPlan plan;
    BySegments bySegments = BySegments::No;
  };

  const lcu::Kernel& kernel;
  const lcu::Program& program;
  const codegen::KernelInfo info;
  bool keyed = false;       ///< codegen/keyed_segments.h
  bool rows = false;        ///< folds of a regular space, of which threads take several at a time
  bool twoIndices = false;  ///< codegen/regular_reads.h
  std::optional<codegen::Product> product;           ///< likewise; of one pass
  BySegments bySegments = BySegments::No;            ///< of the whole
  std::optional<codegen::GatheredColumns> gathered;  ///< of one pass
  std::set<lcu::VarId> inOrder;                      ///< arrays of which each element loads its own
  std::vector<Pass> passes;
  std::vector<std::vector<size_t>> passesOf;  ///< by binding

  const ThunkStructure& thunks(const std::vector<lcu::ExprRef>& roots) const;

 private:
  const ArrayBits& bits_;
  mutable std::map<std::vector<lcu::ExprRef>, ThunkStructure> thunks_;
};

}  // namespace kelpie::fusion
