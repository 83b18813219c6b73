#include "codegen/cuda/pass_items.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <unordered_set>

#include "codegen/cuda/pass_lanes.h"
#include "codegen/expression_schedule.h"
#include "codegen/integer_division.h"
#include "codegen/values_of_segments.h"
#include "codegen/work_ahead.h"
#include "ir/diagnostic.h"

namespace kelpie::codegen::cuda {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

bool usesSegments(const PassText& t, const StagePlan& stage) {
  return std::any_of(stage.bindings.begin(), stage.bindings.end(), [&](uint32_t b) {
    return t.info.bindings[b].usesSegment || t.info.bindings[b].usesPosition;
  });
}

bool usesPositions(const PassText& t, const StagePlan& stage) {
  return std::any_of(stage.bindings.begin(), stage.bindings.end(),
                     [&](uint32_t b) { return t.info.bindings[b].usesPosition; });
}

bool hasLoops(const PassText& t, const StagePlan& stage) {
  return std::any_of(stage.bindings.begin(), stage.bindings.end(), [&](uint32_t b) {
    return lcu::anyNode(thunksOf(t.kernel.bindings[b]), lcu::isUnbounded);
  });
}

bool canFail(const PassText& t, const StagePlan& stage) {
  return std::any_of(stage.bindings.begin(), stage.bindings.end(), [&](uint32_t b) {
    const auto thunks = thunksOf(t.kernel.bindings[b]);
    return std::any_of(thunks.begin(), thunks.end(), [](ExprRef e) { return e->canFail; });
  });
}

namespace {

/// Whether some operation of the thunks satisfies the predicate and has the number of the element (0) or of
/// the segment (1), or the position in it (2), in it, not only in what it loads.
bool computesWith(const PassText& t, const StagePlan& stage, uint32_t number,
                  const std::function<bool(ExprRef)>& isOne) {
  std::unordered_set<ExprRef> with;
  bool found = false;
  for (uint32_t b : stage.bindings) {
    lcu::forEachNode(thunksOf(t.kernel.bindings[b]), [&](ExprRef e) {  // operands before what uses them
      const auto isWith = [&](ExprRef operand) { return with.contains(operand); };
      const bool uses =
          e->kind != ExprKind::Load && std::any_of(e->operands.begin(), e->operands.end(), isWith);
      if (uses || (e->kind == ExprKind::Param && e->index == number)) with.insert(e);
      found = found || (uses && isOne(e));
    });
  }
  return found;
}

/// What a number of 32 bits makes shorter. (Sums are parts of addresses, and of those of what is stored: to
/// tell of a number that nothing else needs makes scans take 5 to 8 % longer.)
bool isShorter(ExprRef e) {
  return e->kind == ExprKind::Convert ||
         (e->kind == ExprKind::Op && e->op != ScalarOp::Add && e->op != ScalarOp::Sub);
}

/// Loads of what the segment of an item has that conditions stand before. Each one where it stands is a wait:
/// in a loop for each turn, behind other branches for one after the other (fusion/load_waits.h). Of text made
/// of several pieces in each row, 0.67 to 0.74 of the time is left on an H200.
std::vector<ExprRef> segmentLoadsInBranches(const PassText& t, const StagePlan& stage) {
  constexpr size_t kMost = 24;
  std::vector<ExprRef> eager, late;
  for (uint32_t b : stage.bindings) {
    for (ExprRef e : eagerThunks(t.kernel.bindings[b])) eager.push_back(e);
    for (ExprRef e : lateThunks(t.kernel.bindings[b])) late.push_back(e);
  }
  return guardedValuesOfSegments(eager, late, t.info, t.program, kMost);
}

/// Whether anything that the pass computes has a loop.
bool hasLoops(const PassText& t) {
  return std::any_of(t.kernel.bindings.begin(), t.kernel.bindings.end(), [](const Soac& soac) {
    return lcu::anyNode(thunksOf(soac), lcu::isUnbounded) ||
           lcu::anyNode(soac.combine.result, lcu::isUnbounded);
  });
}

}  // namespace

Dialect itemDialect(const PassText& t, const ItemForm& form) {
  Dialect d = t.dialect();
  d.checks = form.checks;
  d.noted = form.noted;
  d.dividesInPlace = t.plan.dividesInPlace;
  // A loop may end by a value that was checked: then it must have the one that the check gives instead.
  // Results of a launch with errors do not count, so that any other float is as good.
  d.anyFloat = !hasLoops(t);
  if (form.plainReciprocals) d.reciprocal = fmt::format("k_plain_reciprocal({}, ", form.noted);
  return d;
}

ExpressionEmitter itemEmitter(const PassText& t, const Dialect& d, size_t stage) {
  ExpressionEmitter emitter(d, 8 + t.depth);
  std::vector<ExprRef> thunks;
  for (uint32_t b : t.plan.stages[stage].bindings) {
    auto own = thunksOf(t.kernel.bindings[b]);
    thunks.insert(thunks.end(), own.begin(), own.end());
  }
  lcu::forEachNode(thunks, [&](ExprRef e) {
    if (e->kind != ExprKind::Load) return;
    ExprRef at = e->operands[0];
    if (at->kind != ExprKind::Param || at->index != 0) return;
    if (t.packNames.contains(e->index)) {
      emitter.define(e, t.widened(e->index, t.packNames.at(e->index) + "[row].item[S::slot(v)]"));
    } else if (t.itemArrays.contains(e->index)) {
      emitter.define(e, t.items(e->index) + "[row][v]");
    }
  });
  return emitter;
}

namespace {

/// Lets an emitter find what tiles keep of the segments of their items.
void findSegmentValues(const PassText& t, const StagePlan& stage, const ItemForm& form,
                       ExpressionEmitter& emitter) {
  if (form.alone) return;
  for (uint32_t b : stage.bindings)
    lcu::forEachNode(thunksOf(t.kernel.bindings[b]), [&](ExprRef e) {
      if (!loadsAtSegment(e, t.info)) return;
      const auto here = t.segmentValues.find(e->index);
      if (here != t.segmentValues.end())
        emitter.define(e, t.widened(e->index, here->second + "[uint32_t(number[v])]"));
    });
}

const char* segmentOfItem(const PassText& t, const ItemForm& form) {
  if (t.plan.ranges())
    return form.ahead   ? "range.firstSegment + range.segmentEnd"
           : form.alone ? "range.firstSegment + range.segment"
                        : "range.firstSegment + range.segment + number[row][v]";
  if (!t.plan.numbered()) return "tile.firstSegment + number[row][v]";
  return form.alone ? "numbers.first" : "numbers.first + uint32_t(number[v])";
}

}  // namespace

void writeFirst(PassText& t, const StagePlan& stage, const ItemForm& form) {
  if (form.alone && usesPositions(t, stage))
    t.line(2, "const Place first = Place(segments.begin({}));", segmentOfItem(t, form));
}

void writeIndices(PassText& t, const StagePlan& stage, const ItemForm& form) {
  const bool computes = computesWith(t, stage, 0, isShorter);
  t.line(8, "const int64_t i = {};", computes ? "k_place<Place>(tile.base + offset)" : "tile.base + offset");
  const auto write = [&](uint32_t number, const char* name, const char* value) {
    const bool divided = computesWith(t, stage, number, dividesIntegers);
    t.line(8, "const int64_t {} = {}{}{};", name, divided ? "k_divided_place<Place>(" : "", value,
           divided ? ")" : "");
  };
  if (usesSegments(t, stage)) write(1, "s", segmentOfItem(t, form));
  // Positions have as many bits as places, which spares instructions of 64.
  if (usesPositions(t, stage)) {
    const char* first = form.alone ? "first" : "Place(segments.begin(s))";
    write(2, "p", fmt::format("int64_t(Place(Place(i) - {}))", first).c_str());
  }
}

void defineLocal(PassText& t, VarId v, const std::string& text, ScalarType type, size_t stage,
                 ExpressionEmitter& emitter, int indent) {
  ExprRef load = nullptr;
  for (uint32_t b : t.plan.stages[stage].bindings) {
    lcu::forEachNode(thunksOf(t.kernel.bindings[b]), [&](ExprRef e) {
      if (e->kind == ExprKind::Load && e->index == v) load = e;
    });
  }
  if (!load) return;
  t.line(indent, "const {} {} = {};", typeName(type), t.stem(v), text);
  emitter.define(load, t.stem(v));
}

namespace {

void compacted(PassText& t, uint32_t b, size_t stage, ExpressionEmitter& emitter, const ItemForm& form) {
  const Soac& soac = t.kernel.bindings[b];
  auto texts = emitter.emit({soac.where});
  t.flush(emitter);
  std::string test = fmt::format("keeps{}", b + 1);
  t.line(8, "const bool {} = {};", test,
         form.nearest ? fmt::format("({}) && tile.contains(S::offset(row, v))", texts[0]) : texts[0]);
  if (!t.plan.levels[stage].countsOnly) t.line(8, "own{}[row][v].count{} = {};", stage + 1, b + 1, test);
  t.line(8, "markIf({}, row * S::kWidth + v, keep{});", test, b + 1);
  std::vector<size_t> kept;
  std::vector<ExprRef> pull;
  for (size_t j = 0; j < soac.pull.size(); ++j) {
    if (t.plan.recomputed.contains(soac.results[j + 1])) continue;
    kept.push_back(j);
    pull.push_back(soac.pull[j]);
  }
  if (pull.empty()) return;
  // The pull of a filter is evaluated for survivors only, in a scope of its own; elements are there
  // already.
  const bool scoped = soac.kind == SoacKind::Filter && !std::all_of(pull.begin(), pull.end(), [&](ExprRef e) {
                        return e->kind == ExprKind::Load && e->operands[0]->kind == ExprKind::Param &&
                               e->operands[0]->index == 0 &&
                               (t.packNames.contains(e->index) || t.itemArrays.contains(e->index));
                      });
  ExpressionEmitter inner = emitter;
  ExpressionEmitter& used = scoped ? inner : emitter;
  if (scoped) t.line(8, "if ({}) {{", test);
  texts = used.emit(pull);
  t.flush(used);
  for (size_t k = 0; k < kept.size(); ++k) {
    const size_t j = kept[k];
    if (!t.compactedOutput(soac, j, true) && !t.compactedOutput(soac, j, false)) continue;
    t.line(scoped ? 10 : 8, "{}[row][v] = {};", t.items(soac.results[j + 1]), texts[k]);
  }
  if (scoped) t.line(8, "}}");
}

}  // namespace

void permuted(PassText& t, const Soac& soac, ExpressionEmitter& emitter) {
  std::vector<ExprRef> roots = {soac.destination};
  roots.insert(roots.end(), soac.pull.begin(), soac.pull.end());
  if (soac.where) roots.push_back(soac.where);
  auto texts = emitter.emit(roots);
  t.flush(emitter);
  std::string to = emitter.freshName("destination");
  const std::string when = soac.where ? fmt::format("if ({}) ", texts.back()) : "";
  t.line(8, "const int64_t {} = {};", to, texts[0]);
  for (size_t j = 0; j < soac.results.size(); ++j) {
    const std::string* out = t.outputName(soac.results[j]);
    if (!out) continue;
    if (soac.writesInAnyOrder()) {
      t.line(8, "{}{}[{}] = {};", when, *out, to, texts[j + 1]);
    } else {
      const std::string place = soac.where ? fmt::format("({}) ? {} : -1", texts.back(), to) : to;
      const size_t number =
          numberAmongLastWriters(t.kernel, static_cast<uint32_t>(&soac - t.kernel.bindings.data()));
      const std::string places =
          number < kMostFoundTogether ? fmt::format("launch.places[{}]", number) : "nullptr";
      t.line(8, "writeLast({}, {}, {}, {});", places, *out, place, texts[j + 1]);
    }
  }
}

void accumulated(PassText& t, uint32_t b, const std::vector<std::string>& items) {
  const Soac& soac = t.kernel.bindings[b];
  const size_t k = items.size();
  const auto field = [&](size_t j) { return "acc." + t.stem(soac.results[j]); };
  const auto item = [&](size_t j) { return t.stem(soac.results[j]) + "_item"; };
  for (size_t j = 0; j < k; ++j)
    t.line(8, "const {} {} = {};", typeName(soac.pull[j]->type), item(j), items[j]);
  const Dialect d =
      operatorDialect([&](uint32_t number) { return number < k ? field(number) : item(number - k); });
  ExpressionEmitter emitter(d, 8 + t.depth, fmt::format("op{}_", b + 1));
  std::vector<std::string> texts = emitter.emit(soac.combine.result);
  t.flush(emitter);
  for (size_t j = 0; k > 1 && j < k; ++j) {  // all of them look at what there was
    const std::string name = t.stem(soac.results[j]) + "_folded";
    t.line(8, "const {} {} = {};", typeName(soac.pull[j]->type), name, texts[j]);
    texts[j] = name;
  }
  for (size_t j = 0; j < k; ++j) t.line(8, "{} = {};", field(j), texts[j]);
}

namespace {

void elementBinding(PassText& t, uint32_t b, size_t stage, ExpressionEmitter& emitter, const ItemForm& form) {
  const Soac& soac = t.kernel.bindings[b];
  t.failBinding = t.pass.bindings[b];
  auto emit = [&](const std::vector<ExprRef>& roots) {
    auto texts = emitter.emit(roots);
    t.flush(emitter);
    return texts;
  };
  emit(soac.effects);
  switch (soac.kind) {
    case SoacKind::Map: {
      auto texts = emit(soac.pull);
      for (size_t j = 0; j < soac.results.size(); ++j) {
        VarId v = soac.results[j];
        if (t.keepsItems(v, stage) && !form.ahead) t.line(8, "{}[v] = {};", t.itemsOfRow(v), texts[j]);
        defineLocal(t, v, texts[j], soac.pull[j]->type, stage, emitter);
      }
      break;
    }
    case SoacKind::Scan: {
      auto texts = emit(soac.pull);
      for (size_t j = 0; j < texts.size(); ++j) {
        t.line(8, "own{}[row][v].{} = {};", stage + 1, t.stem(soac.results[j]), texts[j]);
      }
      break;
    }
    case SoacKind::Reduce: {
      auto texts = emit(soac.pull);
      if (!soac.space.segmented() && commutes(soac.combine)) {
        accumulated(t, b, texts);
        break;
      }
      for (size_t j = 0; j < texts.size() && t.plan.carries(b); ++j)
        t.line(8, "own{}[row][v].{} = {};", stage + 1, t.stem(soac.results[j]), texts[j]);
      break;
    }
    case SoacKind::Filter:
    case SoacKind::Partition:
      compacted(t, b, stage, emitter, form);
      break;
    case SoacKind::Permute:
      permuted(t, soac, emitter);
      break;
    case SoacKind::Once:
      throw InternalError("a Once binding among element bindings");
  }
}

const char* unrolled(int rows) {
  return rows == 0   ? "KELPIE_UNROLL"
         : rows == 1 ? "KELPIE_NO_UNROLL"
         : rows == 2 ? "KELPIE_UNROLL_2"
         : rows == 4 ? "KELPIE_UNROLL_4"
                     : "KELPIE_UNROLL_8";
}

void writeIdentity(PassText& t, size_t number) {
  t.line(6, "own{}[row][v] = {}::identity();", number + 1, t.levelName(number));
}

/// Results of maps that leave the kernel.
std::vector<VarId> storedSideBySide(const PassText& t, const StagePlan& stage) {
  std::vector<VarId> stored;
  for (uint32_t b : stage.bindings) {
    const Soac& soac = t.kernel.bindings[b];
    if (soac.kind != SoacKind::Map) continue;
    std::copy_if(soac.results.begin(), soac.results.end(), std::back_inserter(stored),
                 [&](VarId v) { return t.outputNames.contains(v); });
  }
  return stored;
}

}  // namespace

void openItems(PassText& t) {
  t.line(2, "KELPIE_UNROLL");
  t.line(2, "{}", kRowLoop);
  t.line(4, "KELPIE_UNROLL");
  t.line(4, "{}", kItemLoop);
}

void writeIdentities(PassText& t, size_t number) {
  openItems(t);
  writeIdentity(t, number);
  for (int column : {4, 2}) t.line(column, "}}");
}

void writeItems(PassText& t, size_t number, const ItemForm& form) {
  const StagePlan& stage = t.plan.stages[number];
  const bool mayBeEmpty = form.nearest && t.plan.scanned();
  if (mayBeEmpty) t.line(2, "if (tile.count > 0) {{");
  writeFirst(t, stage, form);
  t.line(2, "{}", unrolled(t.plan.rowsAtOnce));
  t.line(2, "{}", kRowLoop);
  const std::vector<VarId> stored = form.ahead ? std::vector<VarId>() : storedSideBySide(t, stage);
  if (t.plan.rowsAtOnce > 0)
    for (VarId v : stored) t.line(4, "{} {}[S::kWidth];", typeName(t.typeOf(v)), t.items(v));
  if (usesSegments(t, stage) && t.plan.numbered() && !form.alone) {
    t.line(4, "int number[S::kWidth];");
    t.line(4, "numbers.row(row, {}number);", t.plan.reckons() ? "" : "segments, tile, shared.heads, ");
  }
  t.line(4, "KELPIE_UNROLL");
  t.line(4, "{}", kItemLoop);
  t.line(6, "const int offset = {};", form.nearest ? "tile.upTo(S::offset(row, v))" : "S::offset(row, v)");
  if (t.hasOwn(number) && !form.nearest) writeIdentity(t, number);
  t.line(6, "{}", form.whole || form.nearest ? "{" : kInside);
  writeIndices(t, stage, form);
  Dialect d = itemDialect(t, form);
  if (number == 0) d.knownLoop = [&t](ExprRef loop) { return knownInTile(t, loop); };
  t.failElement = "i";
  ExpressionEmitter emitter = itemEmitter(t, d, number);
  findSegmentValues(t, stage, form, emitter);
  for (ExprRef load : segmentLoadsInBranches(t, stage)) {
    const std::string name =
        t.unique(t.parameterNames.at({ParameterKind::Array, load->index}) + "_of_segment");
    t.line(8, "const {} {} = {};", typeName(load->type), name, emitter.emit({load})[0]);
    t.line(8, "k_loaded({});", name);
    emitter.define(load, name);
  }
  for (const WorkAhead& work : longWorkAhead(t.kernel, stage.bindings)) {
    t.failBinding = t.pass.bindings[work.binding];
    emitter.emit(work.values);
  }
  t.flush(emitter);
  for (uint32_t b : stage.bindings) elementBinding(t, b, number, emitter, form);
  t.line(6, "}}");
  if (t.hasOwn(number) && form.nearest) {
    t.line(6, "if (!tile.contains(S::offset(row, v)))");
    writeIdentity(t, number);
  }
  t.line(4, "}}");
  for (VarId v : stored) t.line(4, "storeRow<S>({}, tile, row, {});", t.outputNames.at(v), t.itemsOfRow(v));
  t.line(2, "}}");
  if (!mayBeEmpty) return;
  if (t.hasOwn(number)) {
    t.line(2, "}} else {{");
    writeIdentities(t, number);
  }
  t.line(2, "}}");
}

void writeItemsFromRecords(PassText& t, size_t number, const ItemForm& form) {
  if (t.gathered) {
    t.fromRecords = true;
    const std::string items = t.apart([&] { writeItems(t, number, form); });
    t.fromRecords = false;
    if (!t.pass.records.empty()) {
      t.line(2, "if (records) {{");
      t.text += items;
      t.line(2, "}} else {{");
      writeItems(t, number, form);
      t.line(2, "}}");
      return;
    }
  }
  writeItems(t, number, form);
}

}  // namespace kelpie::codegen::cuda
