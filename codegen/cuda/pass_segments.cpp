#include "codegen/cuda/pass_segments.h"

#include "codegen/cuda/pass_extremes.h"

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
  std::map<VarId, std::string> extremes;  // by the place of the first
  if (!t.pass.placesOfSpace.empty())
    for (const FirstOfExtremes& first : firstOfExtremes(t))
      extremes[t.kernel.bindings[first.place->binding].results[first.place->component]] =
          t.fieldName(*first.extreme);
  for (const SegmentFold& fold : t.plan.segmentFolds) {
    const std::string& name = t.stem(fold.result);
    const auto extreme = extremes.find(fold.result);
    t.line(4, "const {} {} = {};", typeName(fold.field.type), name,
           extreme == extremes.end()
               ? "reduced." + name
               : fmt::format("k_place_in_segment(segments, segment, reduced.{}, reduced.{})", name,
                             extreme->second));
    defined(fold.result);
  }
  for (uint32_t b : t.plan.epilogues) t.values(b, emitter, 4, defined);
}

void declareFolds(PassText& t) {
  t.line(0, "struct Folds {{  // of a segment");
  for (const SegmentFold& fold : t.plan.segmentFolds)
    t.line(2, "{} {};", typeName(fold.field.type), t.stem(fold.result));
  t.line(0, "}};");
}

void declareFoldsOfItems(PassText& t) {
  t.line(2, "struct {{  // up to each item, in memory order");
  for (const SegmentFold& fold : t.plan.segmentFolds)
    t.line(4, "alignas(16) {} {}[S::kItems];", typeName(fold.field.type), t.stem(fold.result));
  t.line(2, "}} folds;");
}

void writeBlocksOfEmpty(PassText& t, int indent) {
  t.line(indent, "Folds none;");
  for (const SegmentFold& fold : t.plan.segmentFolds)
    t.line(indent, "none.{} = Level1::start().{};", t.stem(fold.result), t.fieldName(fold.field));
  t.line(indent, "storeEmpty<S>(segments, n, starts, launch.tiles, order - launch.tiles,");
  t.line(indent, "    gridDim.x - launch.tiles - (launch.tiles > 1 ? 1 : 0),");
  t.line(indent, "    [&](int64_t segment) {{ result(segment, none); }});");
}

void writeEnds(PassText& t) {
  t.line(2, "__syncthreads();");
  t.line(2, "{{");
  t.line(4, "const auto foldAt = [&](int offset) {{");
  t.line(6, "Folds fold;");
  for (const SegmentFold& fold : t.plan.segmentFolds)
    t.line(6, "fold.{0} = shared.folds.{0}[offset];", t.stem(fold.result));
  t.line(6, "return fold;");
  t.line(4, "}};");
  t.line(4, "const Level1::Carry empty = Level1::start(), below = Level1::merge(empty, {}.lower, false);",
         t.scanName(0));
  t.line(4, "Folds none, lower;");
  for (const SegmentFold& fold : t.plan.segmentFolds) {
    t.line(4, "none.{} = empty.{};", t.stem(fold.result), t.fieldName(fold.field));
    t.line(4, "lower.{} = below.{};", t.stem(fold.result), t.fieldName(fold.field));
  }
  t.line(4, "storeEnds<S>(segments, tile, order, launch.tiles, n, starts, none, lower, foldAt, result);");
  t.line(2, "}}");
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
