#include "codegen/cuda/pass_elements.h"

#include "codegen/cuda/pass_checks.h"
#include "codegen/cuda/pass_items.h"
#include "codegen/cuda/pass_lanes.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

/// Functions of the offset in the tile, instead of arrays of items.
void writeRecomputed(PassText& t, size_t stage) {
  for (uint32_t b : t.plan.stages[stage].bindings) {
    const Soac& soac = t.kernel.bindings[b];
    if (soac.kind != SoacKind::Filter) continue;
    for (size_t j = 0; j < soac.pull.size(); ++j) {
      const VarId v = soac.results[j + 1];
      if (!t.plan.recomputed.contains(v) || !t.compactedOutput(soac, j, true)) continue;
      t.line(2, "const auto {} = [&](int offset) {{", t.valueOf(v));
      t.line(4, "const int64_t i = tile.base + offset;");
      const Dialect d = t.dialect();
      ExpressionEmitter emitter(d, 4 + t.depth);
      const auto texts = emitter.emit({soac.pull[j]});
      t.flush(emitter);
      t.line(4, "return {}({});", typeName(soac.pull[j]->type), texts[0]);
      t.line(2, "}};");
    }
  }
}

}  // namespace

void declarePacks(PassText& t, size_t number) {
  for (VarId v : t.plan.stages[number].packs) {
    t.packNames[v] = t.unique(identifier(t.program.vars.at(v).name) + "_pack");
    t.line(2, "Pack<{}, S::kWidth> {}[S::kRows];", t.storedType(v), t.packNames[v]);
  }
}

void loadPacks(PassText& t, size_t number, const char* function) {
  for (VarId v : t.plan.stages[number].packs) {
    t.line(2, "{}({}, tile, {});", function, t.parameterNames.at({ParameterKind::Array, v}),
           t.packNames.at(v));
  }
}

void writeLoads(PassText& t, size_t number) {
  declarePacks(t, number);
  // Maps compute items outside of the tile, too (harmlessOutside, mayRepeat).
  const bool nearest = (t.plan.grid == Grid::Tiles && !t.plan.scanned()) || t.plan.repeats();
  loadPacks(t, number, nearest ? "loadPacks<S, true>" : "loadPacks<S>");
}

void writeStage(PassText& t, size_t number) {
  const StagePlan& stage = t.plan.stages[number];
  if (number > 0) writeLoads(t, number);
  if (t.hasOwn(number)) t.line(2, "{}::Value own{}[S::kRows][S::kWidth];", t.levelName(number), number + 1);
  for (uint32_t b : stage.bindings) {
    const Soac& soac = t.kernel.bindings[b];
    bool compacts = soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition;
    if (compacts) t.line(2, "uint32_t keep{} = 0;", b + 1);
    if (soac.kind == SoacKind::Map) {
      for (VarId v : soac.results) {
        if (t.keepsItems(v, number) && t.plan.rowsAtOnce == 0)
          t.line(2, "{} {}[S::kRows][S::kWidth];", typeName(t.typeOf(v)), t.items(v));
      }
    } else if (compacts) {
      for (size_t j = 0; j < soac.pull.size(); ++j) {
        if (!t.compactedOutput(soac, j, true) && !t.compactedOutput(soac, j, false)) continue;
        if (t.plan.recomputed.contains(soac.results[j + 1])) continue;
        t.line(2, "{} {}[S::kRows][S::kWidth];", typeName(soac.pull[j]->type), t.items(soac.results[j + 1]));
      }
    }
  }
  if (number == 0 && t.plan.refilledInTiles) writeLoopsOfTile(t);
  writeCheckedItems(t, number);
  writeRecomputed(t, number);
  for (uint32_t b : stage.bindings)
    if (t.kernel.bindings[b].kind == SoacKind::Map)
      for (VarId v : t.kernel.bindings[b].results)
        if (t.keepsItems(v, number)) t.itemArrays.insert(v);
}

}  // namespace kelpie::codegen::cuda
