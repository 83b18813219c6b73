#include "codegen/cuda/pass_segments.h"

namespace kelpie::codegen::cuda {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

/// A field that segments get: of a reduction, or a count.
struct Result {
  const Field* field;
  size_t level;
};

void collectResults(const PassText& t, std::vector<Result>& reduced, std::vector<Result>& ranked) {
  for (size_t k = 0; k < t.plan.levels.size(); ++k) {
    for (const Field& f : t.plan.levels[k].fields) {
      const Soac& soac = t.kernel.bindings[f.binding];
      if (f.count && soac.space.segmented() && t.outputName(soac.results[0])) ranked.push_back({&f, k});
      if (soac.kind == SoacKind::Reduce && f.segmented) reduced.push_back({&f, k});
    }
  }
}

}  // namespace

void writeSegmentBody(PassText& t) {
  std::vector<Result> reduced, ranked;
  collectResults(t, reduced, ranked);
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
  for (const Result& r : reduced) {
    const Soac& soac = t.kernel.bindings[r.field->binding];
    const std::string name = t.fieldName(*r.field);
    if (t.plan.ranges() || t.plan.rows()) {
      t.line(4, "const {} {} = reduced.{};", typeName(r.field->type), name, name);
    } else {
      t.line(4, "const {} {} = below && k == 0 ? {}.lower.{} : shared.{}[k];", typeName(r.field->type), name,
             t.scanName(r.level), name, name);
    }
    defined(soac.results[r.field->component]);
  }
  for (const Result& r : ranked) {
    VarId v = t.kernel.bindings[r.field->binding].results[0];
    t.line(4, "{}[segment + 1] = {} + shared.ranks{}.before(int(end - tile.base));", *t.outputName(v),
           t.countedLower(r.level, *r.field), r.field->binding + 1);
  }
  for (uint32_t b : t.plan.epilogues) {
    t.values(b, emitter, 4, defined);
  }
}

void writeRankTables(PassText& t) {
  std::vector<Result> reduced, ranked;
  collectResults(t, reduced, ranked);
  for (const Result& r : ranked) {
    t.line(2, "RankTable<S::kWidth>({}, launch.tiles * (S::kItems / (32 * S::kWidth))).put<S>(",
           t.tableNames.at(t.kernel.bindings[r.field->binding].results[0]));
    t.line(2, "    tile, order == launch.tiles - 1, keep{}, {}, {}, {});", r.field->binding + 1,
           t.rankOf(r.level, *r.field), t.countedLower(r.level, *r.field), t.countOf(r.level, *r.field));
  }
}

void writeSegmentResults(PassText& t) {
  std::vector<Result> reduced, ranked;
  collectResults(t, reduced, ranked);
  if (reduced.empty() && ranked.empty() && t.plan.epilogues.empty()) return;
  for (const Result& r : ranked) {
    const uint32_t b = r.field->binding;
    t.line(2, "shared.ranks{0}.put(keep{0}, {1}, {2});", b + 1, t.rankOf(r.level, *r.field),
           t.countOf(r.level, *r.field));
    t.line(2, "if (order == 0 && threadIdx.x == 0) {}[0] = 0;",
           *t.outputName(t.kernel.bindings[b].results[0]));
  }
  t.line(2, "__syncthreads();");
  if (!reduced.empty()) t.line(2, "const bool below = Map::beganBelow(tile, shared.map);");
  t.line(2, "for (int k = threadIdx.x; k < tile.ends; k += S::kThreads) {{");
  t.line(4, "const int64_t segment = tile.firstSegment + k;");
  if (!ranked.empty()) t.line(4, "const int64_t end = segments.begin(segment + 1);");
  writeSegmentBody(t);
  t.line(2, "}}");
}

}  // namespace kelpie::codegen::cuda
