#include "codegen/cuda/pass_finish.h"

namespace kelpie::codegen::cuda {

using lcu::VarId;

void writeFinishBindings(PassText& t, int indent) {
  Dialect d = t.dialect();
  t.failElement = "0";
  for (const Field& f : t.plan.reductions) {
    VarId v = t.kernel.bindings[f.binding].results[f.component];
    if (const std::string* out = t.outputName(v)) t.line(indent, "*{} = total.{};", *out, t.fieldName(f));
    t.cellValues[v] = "total." + t.fieldName(f);
  }
  for (const auto& [cell, at] : t.scratchCells) {
    t.line(indent, "const {0} {1} = *reinterpret_cast<volatile {0}*>(launch.values + {2});",
           typeName(t.typeOf(cell)), t.stem(cell), at);
    t.cellValues[cell] = t.stem(cell);
  }
  ExpressionEmitter emitter(d, indent);
  for (uint32_t b : t.plan.finish) {
    t.values(b, emitter, indent, [&](VarId v) {
      t.cellValues[v] = t.stem(v);
      if (const std::string* out = t.outputName(v)) t.line(indent, "*{} = {};", *out, t.stem(v));
    });
  }
}

void writeFinish(PassText& t) {
  if (!t.plan.finishes()) return;
  const bool chunks = t.plan.grid == Grid::Chunks;
  if (chunks) {
    t.line(2, "Reduction::Value total = BlockReduce<kWarps, Reduction>::run(acc, shared.reduction);");
    t.storePartial("blockIdx.x", "total");
  }
  t.line(2, "if (!isLastBlock(launch, shared.finished)) return;");
  if (!t.plan.reductions.empty()) {
    t.line(2, "{}total = BlockReduce<kWarps, Reduction>::fold({}, {}, shared.reduction);",
           chunks ? "if (gridDim.x > 1) " : "const Reduction::Value ", t.partials(),
           chunks ? "gridDim.x" : "launch.tiles");
  }
  t.line(2, "if (threadIdx.x != 0) return;");
  writeFinishBindings(t, 2);
}

}  // namespace kelpie::codegen::cuda
