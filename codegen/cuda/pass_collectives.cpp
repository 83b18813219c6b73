#include "codegen/cuda/pass_collectives.h"

#include <algorithm>
#include <optional>

#include "codegen/cuda/pass_segments.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

/// What is put side by side of component `j`.
std::string collected(const PassText& t, const Soac& soac, size_t j) {
  const VarId v = soac.results[j + 1];
  return t.plan.recomputed.contains(v) ? "Offsets<S>()" : t.items(v);
}
/// The buffer where.
std::string bufferOf(const PassText& t, const Soac& soac, size_t j) {
  const bool offsets = t.plan.recomputed.contains(soac.results[j + 1]);
  return fmt::format("reinterpret_cast<{}*>(shared.buffer)",
                     offsets ? "uint16_t" : typeName(soac.pull[j]->type));
}

/// Whether results of a level are stored by way of the shared buffer.
bool compacts(const PassText& t, const LevelPlan& level) {
  return std::any_of(level.fields.begin(), level.fields.end(), [&](const Field& f) {
    const Soac& soac = t.kernel.bindings[f.binding];
    for (size_t j = 0; f.count && j < soac.pull.size(); ++j)
      if (t.compactedOutput(soac, j, true) || t.compactedOutput(soac, j, false)) return true;
    return false;
  });
}

/// The first component of what survives by the first count of a level that only counts: it is collected while
/// the carry of the tile is on its way. Only of the level that is stored first: others would find the buffer
/// used.
std::optional<size_t> collectedEarly(const PassText& t, size_t number) {
  const LevelPlan& level = t.plan.levels[number];
  if (!level.countsOnly) return std::nullopt;
  for (size_t before = 0; before < number; ++before)
    if (compacts(t, t.plan.levels[before])) return std::nullopt;
  const Soac& soac = t.kernel.bindings[level.fields[0].binding];
  for (size_t j = 0; j < soac.pull.size(); ++j)
    if (t.compactedOutput(soac, j, true)) return j;
  return std::nullopt;
}

void countLevel(PassText& t, size_t number) {
  const std::vector<Field>& fields = t.plan.levels[number].fields;
  const std::string scan = t.scanName(number), type = t.blockCountType(number);
  std::string marks;
  for (const Field& f : fields) marks += fmt::format("{}keep{}", marks.empty() ? "" : ", ", f.binding + 1);
  t.line(2, "{} {};", type, scan);
  t.line(2, "const States<{}::Carry> states{} = {};", type, number + 1, t.states(number));
  t.line(2, "{0}.rankItems({{{1}}}, shared.{0}, states{2}, order);", scan, marks, number + 1);
  if (auto j = collectedEarly(t, number)) {
    const Soac& soac = t.kernel.bindings[fields[0].binding];
    t.line(2, "collect<S, {}>({}, keep{}, {}, 0, {});", t.plan.bufferItems, collected(t, soac, *j),
           fields[0].binding + 1, t.rankOf(number, fields[0]), bufferOf(t, soac, *j));
  }
  t.line(2, "{0}.findLower(shared.{0}, states{1}, order);", scan, number + 1);
}

}  // namespace

void writeLevel(PassText& t, size_t number) {
  const LevelPlan& level = t.plan.levels[number];
  const std::string scan = t.scanName(number);
  if (level.countsOnly) {
    countLevel(t, number);
    return;
  }
  const char* heads = level.segmented ? "heads" : "0";
  if (t.plan.scansRanges()) {
    t.line(2, "const uint32_t heads = ending ? Range::heads(shared.range[warpIndex()]) : 0;");
    t.line(2, "{}.run(own{}, heads);", scan, number + 1);
  } else {
    t.line(2, "BlockScan<S, {}> {};", t.levelName(number), scan);
    t.line(2, "{}.run(own{}, {}, shared.{}, {}, order);", scan, number + 1, heads, scan, t.states(number));
  }
  const std::vector<SegmentFold> folds =
      t.plan.ends && number == 0 ? t.plan.segmentFolds : std::vector<SegmentFold>();
  bool inclusive = !folds.empty(), exclusive = false, ranked = false;
  for (const Field& f : level.fields) {
    const Soac& soac = t.kernel.bindings[f.binding];
    ranked |= f.count;
    if (soac.kind == SoacKind::Scan && !soac.inclusive) exclusive = true;
    if (soac.kind == SoacKind::Scan && soac.inclusive) inclusive = true;
    if (soac.kind == SoacKind::Scan) {
      VarId v = soac.results[f.component];
      t.line(2, "{} {}[S::kRows][S::kWidth];", typeName(f.type), t.items(v));
      t.itemArrays.insert(v);
    } else if (f.count) {
      t.line(2, "uint32_t rank{}[S::kRows];  // of the first survivor of a row", f.binding + 1);
    }
  }
  if (!inclusive && !exclusive && !ranked) return;
  t.line(2, "KELPIE_UNROLL");
  t.line(2, "{}", kRowLoop);
  t.line(4, "{}::Carry before[S::kWidth];", t.levelName(number));
  t.line(4, "{}.scanRow(row, own{}[row], {}, before);", scan, number + 1, heads);
  for (const SegmentFold& fold : folds)
    t.line(4, "Pack<{}, S::kWidth> {}_upTo;", typeName(fold.field.type), t.stem(fold.result));
  t.line(4, "KELPIE_UNROLL");
  t.line(4, "{}", kItemLoop);
  if (inclusive) {
    t.line(6, "const {0}::Carry upTo = {0}::merge(before[v], {0}::widen(own{1}[row][v]), false);",
           t.levelName(number), number + 1);
  }
  for (const Field& f : level.fields) {
    const Soac& soac = t.kernel.bindings[f.binding];
    const std::string field = t.fieldName(f);
    if (f.count) {
      t.line(6, "const uint32_t at{0} = uint32_t(before[v].{2} - {1}.lower.{2});", f.binding + 1, scan,
             field);
      t.line(6, "if (v == 0) rank{0}[row] = at{0};", f.binding + 1);
    } else if (soac.kind == SoacKind::Scan) {
      t.line(6, "{}[row][v] = {}.{};", t.items(soac.results[f.component]),
             soac.inclusive ? "upTo" : "before[v]", field);
    }
  }
  for (const SegmentFold& fold : folds)
    t.line(6, "{}_upTo.item[S::slot(v)] = upTo.{};", t.stem(fold.result), t.fieldName(fold.field));
  t.line(4, "}}");
  for (const SegmentFold& fold : folds)
    t.line(4, "*reinterpret_cast<Pack<{0}, S::kWidth>*>(shared.folds.{1} + S::group(row)) = {1}_upTo;",
           typeName(fold.field.type), t.stem(fold.result));
  for (const Field& f : level.fields) {
    const Soac& soac = t.kernel.bindings[f.binding];
    if (f.count || soac.kind != SoacKind::Scan) continue;
    VarId v = soac.results[f.component];
    if (const std::string* out = t.outputName(v))
      t.line(4, "storeRow<S>({}, tile, row, {}[row]);", *out, t.items(v));
  }
  t.line(2, "}}");
  if (t.plan.ends && number == 0) writeEnds(t);
}

void writeCompactions(PassText& t) {
  for (size_t k = 0; k < t.plan.levels.size(); ++k) {
    for (const Field& f : t.plan.levels[k].fields) {
      if (!f.count) continue;
      const Soac& soac = t.kernel.bindings[f.binding];
      const uint32_t b = f.binding + 1;
      const std::string lower = t.countedLower(k, f), count = t.countOf(k, f), rank = t.rankOf(k, f);
      for (size_t j = 0; j < soac.pull.size(); ++j) {
        if (const std::string* out = t.compactedOutput(soac, j, true)) {
          const VarId v = soac.results[j + 1];
          t.line(2, "storeCompacted<S, {}>({} + {}, {}, keep{},", t.plan.bufferItems, *out, lower,
                 collected(t, soac, j), b);
          t.line(2, "    {}, {}, {}, {}{});", rank, count, bufferOf(t, soac, j),
                 &f == &t.plan.levels[k].fields[0] && collectedEarly(t, k) == j,
                 t.plan.recomputed.contains(v) ? ", " + t.valueOf(v) : "");
        }
      }
      bool dropped = false;
      for (size_t j = 0; j < soac.pull.size(); ++j) dropped |= t.compactedOutput(soac, j, false) != nullptr;
      if (!dropped) continue;
      t.line(2, "{{  // the others, of rank: elements before less survivors before");
      t.line(4, "uint32_t dropped = 0, lower[S::kRows];");
      t.line(4, "KELPIE_UNROLL");
      t.line(4, "{}", kRowLoop);
      t.line(6, "KELPIE_UNROLL");
      t.line(6, "{}", kItemLoop);
      t.line(8, "const int bit = row * S::kWidth + v, offset = S::offset(row, v);");
      t.line(8, "if (tile.contains(offset)) dropped |= (~keep{} >> bit & 1) << bit;", b);
      t.line(6, "}}");
      t.line(6, "lower[row] = uint32_t(k_max(S::position(row) - tile.first, 0)) - {}[row];", rank);
      t.line(4, "}}");
      for (size_t j = 0; j < soac.pull.size(); ++j) {
        if (const std::string* out = t.compactedOutput(soac, j, false)) {
          t.line(4, "storeCompacted<S, {}>({} + (tile.base + tile.first - {}), {},", t.plan.bufferItems, *out,
                 lower, t.items(soac.results[j + 1]));
          t.line(4, "    dropped, lower, uint32_t(tile.count) - {}, {}, false);", count,
                 bufferOf(t, soac, j));
        }
      }
      t.line(2, "}}");
    }
  }
}

void writeTotals(PassText& t) {
  std::vector<std::string> lines;
  for (size_t k = 0; k < t.plan.levels.size(); ++k) {
    for (const Field& f : t.plan.levels[k].fields) {
      const Soac& soac = t.kernel.bindings[f.binding];
      const std::string total = t.totalOf(k, f);
      if (soac.kind == SoacKind::Scan && soac.withTotal) {
        if (const std::string* out = t.outputName(soac.results[f.component])) {
          lines.push_back(fmt::format("{}[n] = {};", *out, total));
          if (t.isShort(soac.results[f.component]))
            lines.push_back(
                fmt::format("if ({} > {}) recordError(launch.error, launch.number, n, {}, {}, 0, 0);", total,
                            t.options.longestShort, t.pass.bindings[f.binding], kTooLongSite));
        }
      } else if (soac.kind != SoacKind::Scan && !f.segmented && !soac.space.segmented()) {
        VarId cell = f.count ? soac.results[0] : soac.results[f.component];
        if (const std::string* out = t.outputName(cell))
          lines.push_back(fmt::format("*{} = {};", *out, total));
        if (auto it = t.scratchCells.find(cell); it != t.scratchCells.end()) {
          lines.push_back(fmt::format("*reinterpret_cast<{}*>(launch.values + {}) = {};",
                                      typeName(t.typeOf(cell)), it->second, total));
        }
      }
    }
  }
  if (lines.empty()) return;
  t.line(2, "if (order == launch.tiles - 1 && threadIdx.x == 0) {{");
  for (const auto& text : lines) t.line(4, "{}", text);
  t.line(2, "}}");
}

}  // namespace kelpie::codegen::cuda
