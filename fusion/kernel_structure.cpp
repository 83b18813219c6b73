#include "fusion/kernel_structure.h"

#include "codegen/keyed_segments.h"
#include "codegen/thunk_sample.h"

namespace kelpie::fusion {

using codegen::ParameterKind;
using lcu::ExprKind;
using lcu::ExprRef;

namespace {

BySegments goesBySegments(const lcu::Kernel& kernel, const codegen::KernelInfo& info) {
  if (info.space.kind != lcu::SpaceKind::Regular) return BySegments::No;
  const codegen::RegularReads reads = codegen::regularReads(kernel, info);
  if (codegen::mapsRegular(kernel, info)) return reads.across ? BySegments::Maps : BySegments::No;
  return codegen::foldsRegular(kernel, info) && reads.bySegments() ? BySegments::Folds : BySegments::No;
}

}  // namespace

ThunkStructure::ThunkStructure(const std::vector<ExprRef>& roots, const ArrayBits& bits)
    : schedule(codegen::scheduleExpressions(roots)),
      facts(roots, bits),
      exits(exitsOfLoops(schedule)),
      behindBranches(blocksBehindBranches(schedule)),
      frames(framesOf(schedule)),
      homes(schedule, roots) {}

KernelStructure::KernelStructure(const lcu::Kernel& kernel, const lcu::Program& program, bool lockStep,
                                 const ArrayBits& bits)
    : kernel(kernel), program(program), info(codegen::analyseKernel(kernel, program)), bits_(bits) {
  keyed = lockStep && codegen::keyedSegments(kernel, info);
  twoIndices = codegen::twoIndices(kernel, info).has_value();
  rows = !keyed && codegen::foldsRegular(kernel, info) && codegen::regularReads(kernel, info).apart();
  for (const lcu::Soac& soac : kernel.bindings) {
    lcu::forEachNode(codegen::thunksOf(soac), [&](ExprRef e) {
      const bool isOne = e->kind == ExprKind::Load && codegen::loadsInOrder(e) && e->operands[0]->index == 0;
      if (isOne && info.parameter(ParameterKind::Array, e->index)) inOrder.insert(e->index);
    });
  }
  passesOf.assign(kernel.bindings.size(), {0});
  if (!lockStep) return;
  if (!rows && !keyed) bySegments = goesBySegments(kernel, info);
  for (codegen::cuda::KernelPart& part : codegen::cuda::splitIntoPasses(kernel, program)) {
    const codegen::KernelInfo partInfo = codegen::analyseKernel(part.kernel, program);
    codegen::cuda::PassPlan plan =
        planPass(part.kernel, partInfo, program, {}, codegen::cuda::PassForm::General);
    const BySegments goes = goesBySegments(part.kernel, partInfo);
    passes.push_back({std::move(part), std::move(plan), goes});
  }
  if (passes.size() < 2) {
    if (!keyed) product = codegen::productOf(kernel, info, program);
    if (!keyed && !rows && bySegments == BySegments::No) gathered = gatheredColumns(kernel, info, program);
    return;
  }
  passesOf.assign(kernel.bindings.size(), {});
  for (size_t p = 0; p < passes.size(); ++p)
    for (uint32_t b : passes[p].part.bindings) passesOf[b].push_back(p);
}

const ThunkStructure& KernelStructure::thunks(const std::vector<ExprRef>& roots) const {
  const auto known = thunks_.find(roots);
  return known != thunks_.end() ? known->second : thunks_.try_emplace(roots, roots, bits_).first->second;
}

}  // namespace kelpie::fusion
