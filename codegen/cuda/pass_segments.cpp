#include "codegen/cuda/pass_segments.h"

namespace kelpie::codegen::cuda {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::VarId;

void writeSegmentBody(PassText& t) {
  Dialect d = t.dialect();
  d.param = [](uint32_t) { return std::string("segment"); };
  t.failElement = "segment";
  ExpressionEmitter emitter(d, 4 + t.depth);
  std::map<VarId, std::vector<ExprRef>> loads;  // reads of results of this kernel
  for (uint32_t b : t.plan.epilogues) {
    lcu::forEachNode(thunksOf(t.kernel.bindings[b]), [&](ExprRef e) {
      if (e->kind == ExprKind::Load && t.stems.contains(e->index)) loads[e->index].push_back(e);
    });
  }
  auto defined = [&](VarId v) {
    for (ExprRef e : loads[v]) emitter.define(e, t.stem(v));
    if (const std::string* out = t.outputName(v)) t.line(4, "{}[segment] = {};", *out, t.stem(v));
  };
  for (const Field& f : t.plan.levels[0].fields) {
    const std::string name = t.fieldName(f);
    t.line(4, "const {} {} = reduced.{};", typeName(f.type), name, name);
    defined(t.kernel.bindings[f.binding].results[f.component]);
  }
  for (uint32_t b : t.plan.epilogues) t.values(b, emitter, 4, defined);
}

void writeRankTables(PassText& t) {
  for (size_t k = 0; k < t.plan.levels.size(); ++k) {
    for (const Field& f : t.plan.levels[k].fields) {
      const Soac& soac = t.kernel.bindings[f.binding];
      if (!f.count || !soac.space.segmented() || !t.outputName(soac.results[0])) continue;
      t.line(2, "RankTable<S::kWidth>({}, launch.tiles * (S::kItems / (32 * S::kWidth))).put<S>(",
             t.tableNames.at(soac.results[0]));
      t.line(2, "    tile, order == launch.tiles - 1, keep{}, {}, {}, {});", f.binding + 1, t.rankOf(k, f),
             t.countedLower(k, f), t.countOf(k, f));
    }
  }
}

}  // namespace kelpie::codegen::cuda
