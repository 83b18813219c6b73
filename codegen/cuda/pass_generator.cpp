#include "codegen/cuda/pass_generator.h"

#include <algorithm>

#include "codegen/cuda/pass_collectives.h"
#include "codegen/cuda/pass_elements.h"
#include "codegen/cuda/pass_finish.h"
#include "codegen/cuda/pass_frame.h"
#include "codegen/cuda/pass_keys.h"
#include "codegen/cuda/pass_lanes.h"
#include "codegen/cuda/pass_products.h"
#include "codegen/cuda/pass_rows.h"
#include "codegen/cuda/pass_segments.h"
#include "codegen/cuda/pass_transposed.h"
#include "codegen/cuda/segment_places.h"

namespace kelpie::codegen::cuda {

namespace {

void write(PassText& t) {
  const PassPlan& plan = t.plan;
  writeComments(t);
  t.line(0, "namespace {} {{", t.parts());
  writeStructures(t);
  t.line(0, "}}  // namespace {}", t.parts());
  t.line(0, "");
  writeSignature(t);
  if (plan.grid == Grid::Single) {
    t.line(2, "if (threadIdx.x != 0) return;");
    writeFinishBindings(t, 2);
  } else if (plan.rows()) {
    writeRows(t);
  } else if (plan.products()) {
    writeProducts(t);
  } else if (plan.keys()) {
    writeKeys(t);
  } else if (plan.transposed()) {
    writeTransposed(t);
  } else if (plan.refilled) {
    writeRefilledLanes(t);
    writeFinish(t);
  } else {
    writePrologue(t);
    for (uint32_t k = 0; k < plan.stages.size(); ++k) {
      writeStage(t, k);
      if (!plan.levels[k].fields.empty() && (!plan.ranges() || k < plan.foldLevel)) writeLevel(t, k);
    }
    writeRankTables(t);
    writeCompactions(t);
    writeTotals(t);
    writeEndOfTile(t);
    writeFinish(t);
  }
  t.line(0, "}}");
}

/// Where launches find how many places segments of two indices have.
void noteInner(CudaPass& pass, lcu::ExprRef inner) {
  if (inner->kind == lcu::ExprKind::Constant) {
    pass.innerConstant = inner->constant.i;
    return;
  }
  const ParameterKind kind = inner->kind == lcu::ExprKind::Size ? ParameterKind::Size : ParameterKind::Scalar;
  if (const KernelParameter* parameter = pass.info.parameter(kind, inner->index))
    pass.innerParameter = static_cast<uint32_t>(parameter - pass.info.parameters.data());
}

CudaPass generate(KernelPart part, const lcu::Program& program, const std::string& entry,
                  const CudaOptions& options, PassForm form) {
  CudaPass pass;
  pass.kernel = std::move(part.kernel);
  pass.bindings = std::move(part.bindings);
  pass.placesOfSpace = std::move(part.placesOfSpace);
  pass.info = analyseKernel(pass.kernel, program);
  pass.entry = entry;
  PassText text(pass, program, options, form);
  const PassPlan& plan = text.plan;
  pass.grid = plan.grid;
  pass.maxChunks = options.maxChunks;
  // All ranges are worked on at once.
  if (plan.ranges()) pass.maxChunks = std::min<int64_t>(pass.maxChunks, kMultiprocessors * plan.blocksAtOnce);
  pass.refills = plan.refilled.has_value();
  pass.votes = plan.refilledInTiles && plan.scanned();
  pass.nearBytes = options.nearBytes;
  pass.evenChunks = plan.grid == Grid::Chunks && plan.streams;
  pass.shape = plan.shape;
  pass.blocksAtOnce = plan.blocksAtOnce;
  if (plan.indices) noteInner(pass, plan.indices->inner);
  pass.scanned = plan.scanned();
  pass.endsSegments = plan.ends;
  for (uint32_t k = 0; k < pass.info.outputs.size(); ++k)
    if (text.tableNames.contains(pass.info.outputs[k].var)) pass.ranked.push_back(k);
  pass.needsLaunch = plan.needsLower() || plan.finishes() || text.hasSegmentOffsets();
  if (plan.whole()) pass.mostOfGroups = options.mostOfGroups;
  pass.byWarps = plan.warps;
  const auto add = [&](PassForm other, const char* suffix) {
    CudaPass alternative =
        generate({pass.kernel, pass.bindings, pass.placesOfSpace}, program, entry + suffix, options, other);
    alternative.insteadOfColumns = plan.columns();
    pass.alternatives.push_back(std::make_shared<const CudaPass>(std::move(alternative)));
  };
  pass.fewColumns = plan.fewColumns;
  if (plan.longTiles) pass.leastOfLongTiles = options.leastOfLongTiles;
  if (form == PassForm::General && plan.product) {
    add(PassForm::Product, "_product");
    add(PassForm::Shorts, "_short");
  }
  if (form == PassForm::General && plan.across && plan.shape.rows > 1) add(PassForm::FewColumns, "_few");
  if (form == PassForm::General && plan.lengthens) {
    add(PassForm::LongTiles, "_long");
    if (pass.alternatives.back()->shape.items() == pass.shape.items()) pass.alternatives.pop_back();
  }
  if (form == PassForm::General && plan.canGroup && options.mostOfGroups > 0) {
    add(PassForm::Warps, "_warps");
    add(PassForm::Groups, "_groups");
  }
  write(text);
  pass.text = std::move(text.text);
  return pass;
}

}  // namespace

CudaPass generatePass(KernelPart part, const lcu::Program& program, const std::string& entry,
                      const CudaOptions& options) {
  if (std::optional<KernelPart> other = withPlacesOfSpace(part, program)) {
    const KernelInfo info = analyseKernel(part.kernel, program);
    if (planPass(part.kernel, info, program, options, PassForm::General).ranges()) part = std::move(*other);
  }
  return generate(std::move(part), program, entry, options, PassForm::General);
}

}  // namespace kelpie::codegen::cuda
