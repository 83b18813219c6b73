#include "codegen/cuda/pass_elements.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "ir/diagnostic.h"

namespace kelpie::codegen::cuda {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

ExpressionEmitter elementEmitter(const PassText& t, const Dialect& d, size_t stage) {
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
      emitter.define(e, t.packNames.at(e->index) + "[row].item[S::slot(v)]");
    } else if (t.itemArrays.contains(e->index)) {
      emitter.define(e, t.items(e->index) + "[row][v]");
    }
  });
  return emitter;
}

// Segments of the items of a row.
constexpr std::array kNumberLines = {"int number[S::kWidth];",
                                     "numbers.row(row, segments, tile, shared.heads, number);"};
constexpr const char* kNumberedSegment = "numbers.first + number[v]";

}  // namespace

namespace {

/// Whether anything that the pass computes has a loop.
bool hasLoops(const PassText& t) {
  return std::any_of(t.kernel.bindings.begin(), t.kernel.bindings.end(), [](const Soac& soac) {
    return lcu::anyNode(thunksOf(soac), lcu::isUnbounded) ||
           lcu::anyNode(soac.combine.result, lcu::isUnbounded);
  });
}

/// The line of `text` that holds position `at`: where it begins and where the next one does.
std::pair<size_t, size_t> lineAt(const std::string& text, size_t at) {
  const size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  return {before == std::string::npos ? 0 : before + 1, text.find('\n', at) + 1};
}

/// Where the text of a check that records at `at` is that of a float, "float NAME = VALUE;", "if (!(TEST))
/// {", the recording, "NAME = FALLBACK;", "}": makes it "float NAME = VALUE;", "good = good && (TEST);". A
/// float is harmless whatever it is where no loop ends by it, and results of a launch with errors do not
/// count, so the fallback is not needed.
bool noteFloat(std::string& text, size_t at) {
  constexpr std::string_view kTest = "if (!(", kThen = ")) {\n";
  const auto [record, fallback] = lineAt(text, at);
  if (record == 0 || fallback == 0) return false;
  const auto [test, recordAgain] = lineAt(text, record - 1);
  if (test == 0) return false;
  const size_t declaration = lineAt(text, test - 1).first;
  const size_t last = lineAt(text, fallback).second;  // the line of the brace
  const auto trimmed = [&](size_t begin) { return text.find_first_not_of(' ', begin); };
  const std::string_view all = text;
  std::string_view name = all.substr(trimmed(declaration), test - trimmed(declaration));
  const size_t space = name.find(' ');
  if (name.substr(0, space) != "float" && name.substr(0, space) != "double") return false;
  name = name.substr(space + 1, name.find(" = ") - space - 1);
  const size_t open = trimmed(test);
  if (all.substr(open, kTest.size()) != kTest || all.substr(record - kThen.size(), kThen.size()) != kThen ||
      all.substr(trimmed(fallback), name.size() + 3) != std::string(name) + " = " ||
      all.substr(trimmed(last), 2) != "}\n")
    return false;
  const std::string condition = text.substr(open + kTest.size(), record - kThen.size() - open - kTest.size());
  text.replace(open, trimmed(last) + 2 - open, "good = good && (" + condition + ");\n");
  return true;
}

}  // namespace

bool noteErrors(const PassText& t, std::string& text) {
  // A loop may end by a value that was checked: then it must have the one that the check gives instead.
  const bool floats = !hasLoops(t);
  constexpr std::string_view kRecord = "recordError(", kEnd = ");\n", kNote = "good = false;\n";
  bool any = false;
  for (size_t at = text.find(kRecord); at != std::string::npos; at = text.find(kRecord)) {
    if (!floats || !noteFloat(text, at)) text.replace(at, text.find(kEnd, at) + kEnd.size() - at, kNote);
    any = true;
  }
  return any;
}

namespace {

/// The same for tiles all of whose items are in the tile: without the test of each.
std::string forWholeTiles(std::string text) {
  text.replace(text.find(kInside), std::string_view(kInside).size(), "{");
  return text;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

/// The same for tiles that lie in one segment: what belongs to it is there for all items together.
std::string forLoneSegments(std::string text) {
  for (const char* line : kNumberLines) text = replaced(std::move(text), fmt::format("    {}\n", line), "");
  return replaced(std::move(text), kNumberedSegment, "numbers.first");
}

/// Later thunks of the same stage read the value of a Map by name.
void defineLocal(PassText& t, VarId v, const std::string& text, ScalarType type, size_t stage,
                 ExpressionEmitter& emitter) {
  ExprRef load = nullptr;
  for (uint32_t b : t.plan.stages[stage].bindings) {
    lcu::forEachNode(thunksOf(t.kernel.bindings[b]), [&](ExprRef e) {
      if (e->kind == ExprKind::Load && e->index == v) load = e;
    });
  }
  if (!load) return;
  t.line(8, "const {} {} = {};", typeName(type), t.stem(v), text);
  emitter.define(load, t.stem(v));
}

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

void compacted(PassText& t, uint32_t b, size_t stage, ExpressionEmitter& emitter) {
  const Soac& soac = t.kernel.bindings[b];
  auto texts = emitter.emit({soac.where});
  t.flush(emitter);
  std::string test = fmt::format("keeps{}", b + 1);
  t.line(8, "const bool {} = {};", test, texts[0]);
  if (!t.plan.levels[stage].countsOnly) t.line(8, "own{}[row][v].count{} = {};", stage + 1, b + 1, test);
  t.line(8, "keep{} |= uint32_t({}) << (row * S::kWidth + v);", b + 1, test);
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
      t.line(8, "{}writeLast({} + {}, {});", when, *out, to, texts[j + 1]);
    }
  }
}

/// The item goes into what the thread has folded so far.
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

void elementBinding(PassText& t, uint32_t b, size_t stage, ExpressionEmitter& emitter) {
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
        if (t.keepsItems(v, stage)) t.line(8, "{}[v] = {};", t.itemsOfRow(v), texts[j]);
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
      for (size_t j = 0; j < texts.size(); ++j)
        t.line(8, "own{}[row][v].{} = {};", stage + 1, t.stem(soac.results[j]), texts[j]);
      break;
    }
    case SoacKind::Filter:
    case SoacKind::Partition:
      compacted(t, b, stage, emitter);
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

/// Whether thunks of the stage need to know segments.
bool usesSegments(const PassText& t, const StagePlan& stage) {
  return std::any_of(stage.bindings.begin(), stage.bindings.end(), [&](uint32_t b) {
    return t.info.bindings[b].usesSegment || t.info.bindings[b].usesPosition;
  });
}

/// Whether they need to know positions in segments.
bool usesPositions(const PassText& t, const StagePlan& stage) {
  return std::any_of(stage.bindings.begin(), stage.bindings.end(),
                     [&](uint32_t b) { return t.info.bindings[b].usesPosition; });
}

/// Whether they have loops, which take longer than anything around them.
bool hasLoops(const PassText& t, const StagePlan& stage) {
  return std::any_of(stage.bindings.begin(), stage.bindings.end(), [&](uint32_t b) {
    return lcu::anyNode(thunksOf(t.kernel.bindings[b]), lcu::isUnbounded);
  });
}

/// i, s and p of an item, as far as they are used.
void writeIndices(PassText& t, const StagePlan& stage) {
  t.line(8, "const int64_t i = tile.base + offset;");
  if (usesSegments(t, stage)) {
    t.line(8, "const int64_t s = {};",
           t.plan.ranges()     ? "range.firstSegment + range.segment + number[row][v]"
           : t.plan.numbered() ? kNumberedSegment
                               : "tile.firstSegment + number[row][v]");
  }
  if (usesPositions(t, stage)) t.line(8, "const int64_t p = i - segments.begin(s);");
}

/// Whether all that the thunks of a stage read can be found again for an item in a loop: what items of
/// earlier stages left is in registers.
bool findsAgain(const PassText& t, size_t number) {
  const StagePlan& stage = t.plan.stages[number];
  return std::all_of(stage.bindings.begin(), stage.bindings.end(), [&](uint32_t b) {
    const auto& reads = t.info.bindings[b].localReads;
    return std::none_of(reads.begin(), reads.end(), [&](VarId v) { return t.itemArrays.contains(v); });
  });
}

void writeNumbers(PassText& t) {
  for (const char* line : kNumberLines) t.line(4, "{}", line);
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
  Dialect d = t.dialect();
  t.failElement = "i";
  ExpressionEmitter emitter = elementEmitter(t, d, number);
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

/// Text that notes errors, without its checks.
std::string withoutChecks(std::string text) {
  constexpr std::string_view kNote = "good = false;\n", kTest = "if (!(", kEnd = "}\n";
  constexpr std::string_view kFloatNote = "good = good && (";
  for (size_t at = text.find(kFloatNote); at != std::string::npos; at = text.find(kFloatNote)) {
    const auto [begin, end] = lineAt(text, at);
    text.erase(begin, end - begin);
  }
  for (size_t at = text.find(kNote); at != std::string::npos; at = text.find(kNote)) {
    const size_t begin = text.rfind('\n', text.rfind(kTest, at)) + 1;
    text.erase(begin, text.find(kEnd, at) + kEnd.size() - begin);
  }
  return text;
}

/// The text `noted` of a pass of permutes for whole tiles: all checks of a thread come before its stores,
/// which then follow each other at once, or do not happen.
std::string checkedBefore(PassText& t, const std::string& noted) {
  const std::string before = std::exchange(t.text, std::string());
  t.line(2, "KELPIE_UNROLL");
  t.line(2, "{}", kRowLoop);
  t.line(4, "KELPIE_UNROLL");
  t.line(4, "{}", kItemLoop);
  t.line(6, "const int offset = S::offset(row, v);");
  writeIndices(t, t.plan.stages[0]);
  Dialect d = t.dialect();
  ExpressionEmitter emitter = elementEmitter(t, d, 0);
  for (uint32_t b : t.plan.stages[0].bindings) checkBinding(t, b, 0, emitter);
  t.line(4, "}}");
  t.line(2, "}}");
  std::string checks = std::exchange(t.text, before);
  noteErrors(t, checks);
  return checks + "  if (good) {\n" + withoutChecks(forWholeTiles(noted)) + "  }\n";
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

/// Puts what the text from `begin` on computes into its final form. Items do not stop for errors, so that no
/// load waits for the check before it; which errors there were is found out afterwards. Whole tiles may have
/// a copy of their own; where segments are numbered, those that lie in one segment: there its values are
/// loaded once for all items of a thread. A level of quickhull took 0.4 ms for 2 * 10^7 points, of two lines,
/// without.
void finishStage(PassText& t, size_t number, size_t begin) {
  // Of longer texts, the copy would cost compile time, and the test of each item does not show.
  constexpr size_t kShort = 900, kShortWithChecks = 4000;
  const StagePlan& stage = t.plan.stages[number];
  const bool everywhere = harmlessOutside(t, number);
  if (everywhere) t.text.replace(begin, std::string::npos, forWholeTiles(t.text.substr(begin)));
  const std::string text = t.text.substr(begin);
  std::string noted = text;
  const bool failing = noteErrors(t, noted);
  // Reciprocals that are not plain are taken again in the search for errors.
  const bool plain = everywhere && t.plan.stages.size() == 1 && takesReciprocals(t, stage);
  if (plain) noted = replaced(noted, "k_reciprocal(", "k_plain_reciprocal(good, ");
  const bool checks = failing || plain;
  const bool searches = checks && findsAgain(t, number);
  const bool numbered = usesSegments(t, stage) && t.plan.numbered(), permutes = onlyPermutes(t);
  // It pays most where items have much to do that does not depend on each other's checks.
  const bool pays = (checks && (!searches || usesSegments(t, stage))) || numbered;
  const bool mayPay = pays || t.plan.ranges() || t.plan.scanned() || t.plan.narrow || permutes;
  const bool copies = !everywhere && !t.plan.merged() && mayPay &&
                      text.size() <= (pays ? kShortWithChecks : kShort) && !(searches && hasLoops(t, stage));
  const std::string whole = numbered ? "tile.count == S::kItems && numbers.alone" : "tile.count == S::kItems";
  if (!searches && !copies) return;
  t.text.resize(begin);
  // The tiles of a range are searched together, when all are done.
  t.searchesRange = searches && t.plan.ranges();
  if (checks && !t.searchesRange) {
    t.line(2, "{{");
    t.line(2, "bool good = {};", searches ? "true" : whole);
  }
  if (copies) t.line(2, "if ({}) {{", whole);
  if (copies) {
    t.text += numbered               ? forLoneSegments(forWholeTiles(noted))
              : searches && permutes ? checkedBefore(t, noted)
                                     : forWholeTiles(noted);
  }
  if (copies && (searches || !checks)) t.line(2, "}} else {{");
  if (searches) {
    t.text += noted;
    if (copies) t.line(2, "}}");
    if (!t.searchesRange) writeSearchForErrors(t, number, plain);
  } else {
    // Tiles that are not whole, and those with errors: all warps that have met any do their items again.
    if (checks) {
      t.line(2, "}}");
      t.line(2, "if (__ballot_sync(kFullWarp, !good) != 0) {{");
      for (uint32_t b : stage.bindings) {
        const SoacKind kind = t.kernel.bindings[b].kind;
        if (kind == SoacKind::Filter || kind == SoacKind::Partition) t.line(4, "keep{} = 0;", b + 1);
      }
    }
    t.text += text;
    t.line(2, "}}");
  }
  if (checks && !t.searchesRange) t.line(2, "}}");
}

}  // namespace

void searchRangeForErrors(PassText& t) {
  t.line(2, "if (__ballot_sync(kFullWarp, !good) != 0) {{");
  t.line(4, "KELPIE_NO_UNROLL");
  t.line(4, "for (int offset = begin + laneIndex(); offset < range.elementEnd; offset += 32) {{");
  t.line(6, "const int64_t i = range.origin + offset;");
  checkElement(t, 0);
  t.line(4, "}}");
  t.line(2, "}}");
}

void declarePacks(PassText& t, size_t number) {
  for (VarId v : t.plan.stages[number].packs) {
    t.packNames[v] = t.unique(identifier(t.program.vars.at(v).name) + "_pack");
    t.line(2, "Pack<{}, S::kWidth> {}[S::kRows];", typeName(t.typeOf(v)), t.packNames[v]);
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
  // Maps compute items outside of the tile, too (harmlessOutside).
  const bool nearest = t.plan.grid == Grid::Tiles && !t.plan.scanned();
  loadPacks(t, number, nearest ? "loadPacks<S, true>" : "loadPacks<S>");
}

void writeStage(PassText& t, size_t number) {
  const StagePlan& stage = t.plan.stages[number];
  const bool hasLevel = !t.plan.levels[number].fields.empty() && !t.plan.levels[number].countsOnly;
  if (number > 0) writeLoads(t, number);
  if (hasLevel) t.line(2, "{}::Value own{}[S::kRows][S::kWidth];", t.levelName(number), number + 1);
  std::vector<VarId> stored;
  for (uint32_t b : stage.bindings) {
    const Soac& soac = t.kernel.bindings[b];
    bool compacts = soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition;
    if (compacts) t.line(2, "uint32_t keep{} = 0;", b + 1);
    if (soac.kind == SoacKind::Map) {
      for (VarId v : soac.results) {
        if (!t.keepsItems(v, number)) continue;
        if (t.plan.rowsAtOnce == 0)
          t.line(2, "{} {}[S::kRows][S::kWidth];", typeName(t.typeOf(v)), t.items(v));
        if (t.outputNames.contains(v)) stored.push_back(v);
      }
    } else if (compacts) {
      for (size_t j = 0; j < soac.pull.size(); ++j) {
        if (!t.compactedOutput(soac, j, true) && !t.compactedOutput(soac, j, false)) continue;
        if (t.plan.recomputed.contains(soac.results[j + 1])) continue;
        t.line(2, "{} {}[S::kRows][S::kWidth];", typeName(soac.pull[j]->type), t.items(soac.results[j + 1]));
      }
    }
  }
  const size_t loops = t.text.size();
  t.line(2, "{}", unrolled(t.plan.rowsAtOnce));
  t.line(2, "{}", kRowLoop);
  if (t.plan.rowsAtOnce > 0)
    for (VarId v : stored) t.line(4, "{} {}[S::kWidth];", typeName(t.typeOf(v)), t.items(v));
  if (usesSegments(t, stage) && t.plan.numbered()) writeNumbers(t);
  t.line(4, "KELPIE_UNROLL");
  t.line(4, "{}", kItemLoop);
  t.line(6, "const int offset = S::offset(row, v);");
  if (hasLevel) t.line(6, "own{}[row][v] = {}::identity();", number + 1, t.levelName(number));
  t.line(6, "{}", kInside);
  writeIndices(t, stage);
  Dialect d = t.dialect();
  t.failElement = "i";
  ExpressionEmitter emitter = elementEmitter(t, d, number);
  for (uint32_t b : stage.bindings) elementBinding(t, b, number, emitter);
  t.line(6, "}}");
  t.line(4, "}}");
  for (VarId v : stored) t.line(4, "storeRow<S>({}, tile, row, {});", t.outputNames.at(v), t.itemsOfRow(v));
  t.line(2, "}}");
  finishStage(t, number, loops);
  writeRecomputed(t, number);
  for (uint32_t b : stage.bindings)
    if (t.kernel.bindings[b].kind == SoacKind::Map)
      for (VarId v : t.kernel.bindings[b].results)
        if (t.keepsItems(v, number)) t.itemArrays.insert(v);
}

}  // namespace kelpie::codegen::cuda
