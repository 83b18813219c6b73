#include "fusion/kernel_bytes.h"

#include <map>

#include "codegen/expression_schedule.h"
#include "codegen/kernel_analysis.h"
#include "fusion/dependence_graph.h"

namespace kelpie::fusion {

using codegen::BindingRole;
using codegen::ExtentKind;
using codegen::ParameterKind;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::VarId;

namespace {

class Account {
 public:
  Account(const lcu::Kernel& kernel, const lcu::Program& program, const CostModel& model,
          const LaunchSizes& sizes)
      : kernel_(kernel),
        program_(program),
        model_(model),
        sizes_(sizes),
        info_(codegen::analyseKernel(kernel, program)) {
    if (info_.space.extent) n_ = sizes.elements ? *sizes.elements : model.elements(info_.space.extent);
    if (info_.space.segmented()) m_ = sizes.segments ? *sizes.segments : model.elements(info_.space.segments);
  }

  KernelBytes run() {
    for (size_t b = 0; b < kernel_.bindings.size(); ++b) binding(kernel_.bindings[b], info_.bindings[b].role);
    for (const auto& [var, reads] : inOrder_) {
      const double bytes = model_.storedBytes(var);
      if (reads.atElements) bytes_.read += n_ * bytes;
      if (reads.atSegments) bytes_.read += m_ * bytes;
    }
    if (const auto& p = info_.offsetsParameter)
      bytes_.read += model_.storedBytes(info_.parameters[*p].var) * (m_ + 1);
    for (const codegen::KernelOutput& output : info_.outputs)
      bytes_.written += count(output) * model_.storedBytes(output.var);
    return bytes_;
  }

 private:
  struct Reads {
    bool atElements = false, atSegments = false;
  };

  void binding(const Soac& soac, BindingRole role) {
    const double times = role == BindingRole::Finish ? 1 : role == BindingRole::Epilogue ? m_ : n_;
    lcu::forEachNode(codegen::thunksOf(soac), [&](ExprRef e) {
      if (!isLoad(e) || !atIndex(e)) return;
      const bool bySegment = role == BindingRole::Epilogue || e->operands[0]->index == 1;
      (bySegment ? inOrder_[e->index].atSegments : inOrder_[e->index].atElements) = true;
    });
    gathers(codegen::eagerThunks(soac), [&] { return times; });
    gathers(codegen::lateThunks(soac), [&] { return survivors(soac); });
  }

  /// Loads at computed positions: each is executed where its block is.
  template <typename Times>
  void gathers(const std::vector<ExprRef>& thunks, const Times& times) {
    const codegen::Schedule schedule = codegen::scheduleExpressions(thunks);
    for (size_t block = 0; block < schedule.blocks.size(); ++block) {
      for (const codegen::ScheduleStep& step : schedule.blocks[block].steps) {
        if (!isLoad(step.node) || atIndex(step.node)) continue;
        const bool counted = block > 0 && counted_ + block < sizes_.entered.size();
        bytes_.read +=
            (counted ? sizes_.entered[counted_ + block] : times()) * model_.storedBytes(step.node->index);
        bytes_.exact &= block == 0 || counted;
      }
    }
    counted_ += schedule.blocks.size();
  }

  bool isLoad(ExprRef e) const {
    return e->kind == ExprKind::Load && info_.parameter(ParameterKind::Array, e->index);
  }
  static bool atIndex(ExprRef load) {
    const ExprRef position = load->operands[0];
    return position->kind == ExprKind::Param && position->index < 2;
  }

  double survivors(const Soac& filter) const {
    const auto it = sizes_.survivors.find(filter.results[0]);
    return it != sizes_.survivors.end() ? it->second : model_.elements(survivorExtent(filter, program_));
  }

  double target(const Soac& permute) const {
    const auto it = sizes_.targets.find(permute.results.at(0));
    return it != sizes_.targets.end() ? it->second : model_.elements(permute.target);
  }

  double count(const codegen::KernelOutput& output) const {
    const Soac& soac = kernel_.bindings[output.binding];
    if (output.scattered) return n_;
    if (output.count) return output.countsFalse ? n_ - survivors(soac) : survivors(soac);
    switch (output.extent) {
      case ExtentKind::One:
        return 1;
      case ExtentKind::Elements:
        return n_;
      case ExtentKind::ElementsPlusOne:
        return n_ + 1;
      case ExtentKind::Segments:
        return m_;
      case ExtentKind::SegmentsPlusOne:
        return m_ + 1;
      case ExtentKind::Target:
        return target(soac);
    }
    return 0;
  }

  const lcu::Kernel& kernel_;
  const lcu::Program& program_;
  const CostModel& model_;
  const LaunchSizes& sizes_;
  const codegen::KernelInfo info_;
  double n_ = 0, m_ = 0;
  size_t counted_ = 0;  ///< blocks of the thunks so far
  std::map<VarId, Reads> inOrder_;
  KernelBytes bytes_;
};

}  // namespace

KernelBytes kernelBytes(const lcu::Kernel& kernel, const lcu::Program& program, const CostModel& model,
                        const LaunchSizes& sizes) {
  return Account(kernel, program, model, sizes).run();
}

}  // namespace kelpie::fusion
