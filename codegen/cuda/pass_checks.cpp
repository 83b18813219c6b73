#include "codegen/cuda/pass_checks.h"

#include <algorithm>
#include <utility>

#include "codegen/cuda/pass_items.h"
#include "codegen/cuda/pass_shape.h"

namespace kelpie::codegen::cuda {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

/// Whether all that the thunks of a stage read can be found again for an item in a loop: what items of
/// earlier stages left is in registers.
bool findsAgain(const PassText& t, size_t number) {
  const StagePlan& stage = t.plan.stages[number];
  return std::all_of(stage.bindings.begin(), stage.bindings.end(), [&](uint32_t b) {
    const auto& reads = t.info.bindings[b].localReads;
    return std::none_of(reads.begin(), reads.end(), [&](VarId v) { return t.itemArrays.contains(v); });
  });
}

/// The thunks of a binding again, for their checks; with `stores`, what a map makes of element i is stored.
void checkBinding(PassText& t, uint32_t b, size_t stage, ExpressionEmitter& emitter, bool stores = false) {
  const Soac& soac = t.kernel.bindings[b];
  t.failBinding = t.pass.bindings[b];
  const auto emit = [&](ExpressionEmitter& own, const std::vector<ExprRef>& roots) {
    auto texts = own.emit(roots);
    t.flush(own);
    return texts;
  };
  emit(emitter, soac.effects);
  if (soac.destination) emit(emitter, {soac.destination});
  if (soac.kind == SoacKind::Filter) {
    t.line(8, "if ({}) {{", emit(emitter, {soac.where})[0]);
    ExpressionEmitter inner = emitter;
    emit(inner, soac.pull);
    t.line(8, "}}");
    return;
  }
  if (soac.where) emit(emitter, {soac.where});
  const auto texts = emit(emitter, soac.pull);
  if (soac.kind != SoacKind::Map) return;
  for (size_t j = 0; j < soac.results.size(); ++j) {
    defineLocal(t, soac.results[j], texts[j], soac.pull[j]->type, stage, emitter);
    const std::string* out = t.outputName(soac.results[j]);
    if (stores && out) t.line(8, "{}[i] = {};", *out, texts[j]);
  }
}

}  // namespace

void checkElement(PassText& t, size_t number, bool stores) {
  const StagePlan& stage = t.plan.stages[number];
  if (usesSegments(t, stage)) t.line(8, "const int64_t s = segments.of(i);");
  if (usesPositions(t, stage)) t.line(8, "const int64_t p = i - segments.begin(s);");
  const auto packs = std::exchange(t.packNames, {});  // elements are loaded one by one
  const Dialect d = t.dialect();
  t.failElement = "i";
  ExpressionEmitter emitter = itemEmitter(t, d, number);
  for (uint32_t b : stage.bindings) checkBinding(t, b, number, emitter, stores);
  t.packNames = packs;
}

namespace {

/// Whether a pass does nothing but store at computed places, which takes no loops, for all its rows at once.
bool onlyPermutes(const PassText& t) {
  const auto& bindings = t.plan.stages[0].bindings;
  return t.plan.grid == Grid::Tiles && t.plan.stages.size() == 1 && !t.plan.scanned() &&
         t.plan.rowsAtOnce == 0 && std::all_of(bindings.begin(), bindings.end(), [&](uint32_t b) {
           const Soac& soac = t.kernel.bindings[b];
           return soac.kind == SoacKind::Permute && !lcu::anyNode(thunksOf(soac), lcu::isUnbounded);
         });
}

/// Whether a pass does nothing but store side by side, or fold, what it finds at places that are checked,
/// without loops, all its rows at once, and reads nothing narrower than 8 bytes on the way. On an H200, sums
/// of 2^26 numbers at places that were read took 0.193 ms with each check beside its load, 0.180 so and 0.188
/// without checks; maps 0.254, 0.244 and 0.246; sums of segments 0.260, 0.258 and 0.254. Maps of 32-bit
/// places took 0.474, 0.501 and 0.474: the assembler gives them 32 registers, enough for one item after the
/// other.
bool onlyGathers(const PassText& t) {
  const bool flat = t.plan.grid == Grid::Chunks || t.plan.grid == Grid::Tiles;
  if ((!flat && !t.plan.ranges()) || t.plan.scanned() || t.plan.stages.size() != 1 || t.plan.rowsAtOnce != 0)
    return false;
  const StagePlan& stage = t.plan.stages[0];
  const auto isWide = [&](VarId v) { return sizeOf(t.typeOf(v)) == 8 && !t.isShort(v); };
  if (!std::all_of(stage.packs.begin(), stage.packs.end(), isWide)) return false;
  return std::all_of(stage.bindings.begin(), stage.bindings.end(), [&](uint32_t b) {
    const Soac& soac = t.kernel.bindings[b];
    return (soac.kind == SoacKind::Map || soac.kind == SoacKind::Reduce) &&
           !lcu::anyNode(thunksOf(soac), lcu::isUnbounded) && lcu::anyNode(thunksOf(soac), [](ExprRef e) {
             return e->kind == ExprKind::Load && e->operands[0]->canFail;
           });
  });
}

/// The items of a pass of permutes, or of gathers: all checks of a thread come before its stores or loads,
/// which then follow each other at once, or do not happen.
void writeCheckedBefore(PassText& t, bool whole, bool alone = false) {
  // Of a range, `good` tells of all tiles.
  const ItemForm noted{
      .checks = CheckForm::Note, .noted = t.plan.ranges() ? "fine" : "good", .whole = whole, .alone = alone};
  if (t.plan.ranges()) t.line(2, "bool fine = true;");
  writeFirst(t, t.plan.stages[0], noted);
  openItems(t);
  t.line(6, "const int offset = S::offset(row, v);");
  t.line(6, "{}", whole ? "{" : kInside);
  writeIndices(t, t.plan.stages[0], noted);
  const Dialect d = itemDialect(t, noted);
  ExpressionEmitter emitter = itemEmitter(t, d, 0);
  for (uint32_t b : t.plan.stages[0].bindings) checkBinding(t, b, 0, emitter);
  for (int column : {6, 4, 2}) t.line(column, "}}");
  t.line(2, "if ({}) {{", noted.noted);
  writeItemsFromRecords(t, 0, {.checks = CheckForm::Assume, .whole = whole, .alone = alone});
  if (t.hasOwn(0)) {
    t.line(2, "}} else {{");
    writeIdentities(t, 0);
  }
  t.line(2, "}}");
  if (t.plan.ranges()) t.line(2, "good = good & fine;");
}

/// Warps that have met errors look for them item by item, in a loop: it is short code that hardly ever runs.
/// With `stores` it computes results again.
void writeSearchForErrors(PassText& t, size_t number, bool stores) {
  t.line(2, "if (__ballot_sync(kFullWarp, !good) != 0) {{");
  t.depth += 2;
  t.line(2, "KELPIE_NO_UNROLL");
  t.line(2, "{}", kRowLoop);
  t.line(4, "KELPIE_NO_UNROLL");
  t.line(4, "{}", kItemLoop);
  t.line(6, "const int offset = S::offset(row, v);");
  t.line(6, "{}", kInside);
  t.line(8, "const int64_t i = tile.base + offset;");
  checkElement(t, number, stores);
  for (int column : {6, 4, 2}) t.line(column, "}}");
  t.depth -= 2;
  t.line(2, "}}");
}

/// Opens what tiles that are not whole do, and those with errors: all warps that have met any do their items
/// again.
void writeBeginAgain(PassText& t, const StagePlan& stage) {
  t.line(2, "if (__ballot_sync(kFullWarp, !good) != 0) {{");
  for (uint32_t b : stage.bindings) {
    const SoacKind kind = t.kernel.bindings[b].kind;
    if (kind == SoacKind::Filter || kind == SoacKind::Partition) t.line(4, "keep{} = 0;", b + 1);
  }
}

/// Whether items that are not in the tile may be computed, too: nothing but elements that are there already
/// is read (of items outside, those of a neighbour in the tile), nothing takes long, and only rows are
/// stored.
bool harmlessOutside(const PassText& t, size_t number) {
  const StagePlan& stage = t.plan.stages[number];
  if (!t.plan.levels[number].fields.empty() || usesSegments(t, stage)) return false;
  const bool searches = findsAgain(t, number);  // no error of an item outside is recorded
  return std::all_of(stage.bindings.begin(), stage.bindings.end(), [&](uint32_t b) {
    const Soac& soac = t.kernel.bindings[b];
    if (soac.kind != SoacKind::Map) return false;
    return !lcu::anyNode(thunksOf(soac), [&](ExprRef e) {
      if (lcu::isUnbounded(e) || (e->kind == ExprKind::Check && !searches)) return true;
      if (e->kind != ExprKind::Load) return false;
      const ExprRef at = e->operands[0];
      const bool element = at->kind == ExprKind::Param && at->index == 0;
      return !element || !(t.packNames.contains(e->index) || t.stems.contains(e->index));
    });
  });
}

/// Whether items that are not in the tile may do what the nearest one that is does: nothing takes a time of
/// its own or is written at once, and nothing is known of items outside but what their thunks say. Then all
/// items load at once, instead of each behind the test of whether it is there.
bool mayRepeat(const PassText& t, size_t number) {
  const StagePlan& stage = t.plan.stages[number];
  return t.plan.repeats() && findsAgain(t, number) && !hasLoops(t, stage) &&
         std::all_of(stage.bindings.begin(), stage.bindings.end(),
                     [&](uint32_t b) { return t.kernel.bindings[b].kind != SoacKind::Permute; });
}

/// Whether a stage takes reciprocals of float32.
bool takesReciprocals(const PassText& t, const StagePlan& stage) {
  return std::any_of(stage.bindings.begin(), stage.bindings.end(), [&](uint32_t b) {
    return lcu::anyNode(thunksOf(t.kernel.bindings[b]), [](ExprRef e) {
      if (e->kind != ExprKind::Op || e->op != ScalarOp::Div || e->type != ScalarType::Float32) return false;
      const ExprRef a = e->operands[0];
      return a->kind == ExprKind::Constant && a->constant.f == 1;
    });
  });
}

/// Functions of float64 whose code is long and fills registers.
size_t longFunctions(const PassText& t, const StagePlan& stage) {
  std::vector<ExprRef> thunks;
  for (uint32_t b : stage.bindings) {
    const std::vector<ExprRef> own = thunksOf(t.kernel.bindings[b]);
    thunks.insert(thunks.end(), own.begin(), own.end());
  }
  size_t count = 0;
  lcu::forEachNode(thunks, [&](ExprRef e) { count += e->type == ScalarType::Float64 && isLongFunction(e); });
  return count;
}

}  // namespace

/// Where segments are numbered, whole tiles that lie in one segment have a copy: there its values are loaded
/// once for all items of a thread. A level of quickhull took 0.4 ms for 2 * 10^7 points, of two lines,
/// without; sums of segments take 0.57 to 1 of the time, few of them up to 1.15. Not those of ranges where
/// functions of float64 fill the registers: sums of exp(x - c) took 1.45 times as long with it
/// (bench/results/h200-2026-11-26-copies.txt). Nor others where three functions or more fill the cache of
/// instructions: maps of three sines and a hash took 1.6 times as long (h200-2026-11-29-functions.txt).
void writeCheckedItems(PassText& t, size_t number) {
  // Of longer texts, the copy would cost compile time, and the test of each item does not show.
  constexpr size_t kShort = 900, kShortWithChecks = 4000;
  const StagePlan& stage = t.plan.stages[number];
  const bool everywhere = harmlessOutside(t, number);
  const bool nearest = !everywhere && mayRepeat(t, number);
  const ItemForm recorded{.whole = everywhere, .nearest = nearest};
  const std::string text = t.apart([&] { writeItems(t, number, recorded); });
  // Reciprocals that are not plain are taken again in the search for errors.
  const bool plain = everywhere && t.plan.stages.size() == 1 && takesReciprocals(t, stage);
  const bool checks = canFail(t, stage) || plain;
  // (The search behind a range knows one stage.)
  const bool searches = checks && findsAgain(t, number) && !(t.plan.ranges() && t.plan.stages.size() > 1);
  const bool numbered = usesSegments(t, stage) && t.plan.numbered(), permutes = onlyPermutes(t);
  // It pays most where items have much to do that does not depend on each other's checks.
  const bool pays = (checks && (!searches || usesSegments(t, stage))) || numbered;
  const bool gathers = searches && text.size() <= kShort && onlyGathers(t);
  const bool mayPay = pays || gathers || t.plan.ranges() || t.plan.scanned() || t.plan.narrow || permutes;
  constexpr size_t kFewFunctions = 2;
  const size_t functions = longFunctions(t, stage);
  const bool copies = !everywhere && mayPay && !(numbered && functions > kFewFunctions) &&
                      text.size() <= (pays ? kShortWithChecks : kShort) && !(searches && hasLoops(t, stage));
  if (!searches && !copies) {
    writeItemsFromRecords(t, number, recorded);
    return;
  }
  // Those of ranges have it beside the other copy, as most segments may be short; but not where warps, or
  // blocks, take long segments for themselves before.
  const bool alsoAlone = t.plan.ranges() && !t.plan.whole() && usesSegments(t, stage) && functions == 0;
  const char* whole = numbered ? "tile.count == S::kItems && numbers.alone" : "tile.count == S::kItems";
  // The tiles of a range are searched together, when all are done.
  t.searchesRange = searches && t.plan.ranges();
  if (checks && !t.searchesRange) {
    t.line(2, "{{");
    t.line(2, "bool good = {};", searches ? "true" : whole);
  }
  if (copies) {
    const auto copy = [&](bool alone) {
      if (gathers || (searches && permutes)) {
        writeCheckedBefore(t, true, alone);
      } else {
        writeItemsFromRecords(t, number, {.checks = CheckForm::Note, .whole = true, .alone = alone});
      }
    };
    if (alsoAlone) {
      t.line(2, "if ({} && !ending) {{", whole);
      copy(true);
      t.line(2, "}} else if ({}) {{", whole);
    } else {
      t.line(2, "if ({}) {{", whole);
    }
    copy(numbered);
    if (searches || !checks) t.line(2, "}} else {{");
  }
  if (searches) {
    if (gathers && !copies) {
      writeCheckedBefore(t, false);
    } else {
      const ItemForm form{
          .checks = CheckForm::Note, .whole = everywhere, .nearest = nearest, .plainReciprocals = plain};
      if (copies) {  // what is no whole tile is little
        writeItems(t, number, form);
      } else {
        writeItemsFromRecords(t, number, form);
      }
    }
    if (copies) t.line(2, "}}");
    if (!t.searchesRange) writeSearchForErrors(t, number, plain);
  } else {
    if (checks) {
      t.line(2, "}}");
      writeBeginAgain(t, stage);
    }
    t.text += text;
    t.line(2, "}}");
  }
  if (checks && !t.searchesRange) t.line(2, "}}");
}

void searchRangeForErrors(PassText& t) {
  t.line(2, "if (__ballot_sync(kFullWarp, !good) != 0) {{");
  t.line(4, "KELPIE_NO_UNROLL");
  t.line(4, "for (int offset = begin + laneIndex(); offset < range.elementEnd; offset += 32) {{");
  t.line(6, "const int64_t i = range.origin + offset;");
  checkElement(t, 0);
  t.line(4, "}}");
  t.line(2, "}}");
}

void searchRowsForErrors(PassText& t, std::string_view positions, std::string_view rows,
                         std::string_view segment) {
  t.line(2, "if (!good) {{");
  t.line(4, "const RegularSegments segments{{length, m}};");
  t.line(4, "KELPIE_NO_UNROLL");
  t.line(4, "for ({}) {{", positions);
  t.line(6, "KELPIE_NO_UNROLL");
  t.line(6, "for (int row = 0; row < {}; ++row) {{", rows);
  t.line(8, "const int64_t i = {} * length + at;", segment);
  checkElement(t, 0);
  t.line(6, "}}");
  t.line(4, "}}");
  t.line(2, "}}");
}

}  // namespace kelpie::codegen::cuda
