#include "codegen/cuda/pass_groups.h"

#include "codegen/cuda/pass_checks.h"
#include "codegen/cuda/pass_items.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;

namespace {

/// How the elements of a thread are told.
struct Names {
  const char* segment;  ///< that an element is of
  const char* begin;    ///< where this segment begins
};

/// What becomes of element i.
void writeItem(PassText& t, int indent, const Names& names, const char* item) {
  const StagePlan& stage = t.plan.stages[0];
  if (usesSegments(t, stage)) t.line(indent, "const int64_t s = {};", names.segment);
  if (usesPositions(t, stage)) t.line(indent, "const int64_t p = i - {};", names.begin);
  const Dialect d = itemDialect(t, {.checks = CheckForm::Note});
  ExpressionEmitter emitter(d, indent);
  for (uint32_t b : stage.bindings) {
    const Soac& soac = t.kernel.bindings[b];
    emitter.emit(soac.effects);
    const auto texts = emitter.emit(soac.pull);
    t.flush(emitter);
    for (size_t j = 0; j < texts.size(); ++j)
      t.line(indent, "{}.{} = {};", item, t.stem(soac.results[j]), texts[j]);
  }
}

/// Folds the elements of a thread, some at once: all of these are loaded before the first is folded. Of fewer
/// than that, parts are left out; behind the last element it is taken again, and what comes of it dropped: no
/// load waits for a branch of its own.
void writeFold(PassText& t) {
  t.line(6, "Level1::Value items[whole.kParts][whole.kPart];");
  const auto parts = [&](int indent) {
    t.line(indent, "KELPIE_UNROLL");
    t.line(indent, "for (int part = 0; part < whole.kParts; ++part) {{");
  };
  const auto items = [&](int indent) {
    t.line(indent, "KELPIE_UNROLL");
    t.line(indent, "for (int k = 0; k < whole.kPart; ++k) {{");
  };
  const Names ofFirst{"whole.segment(0)", "segments.begin(whole.segment(0))"};
  const Names ofPart{"whole.segment(part)", "segments.begin(whole.segment(part))"};
  const auto close = [&](std::initializer_list<int> indents) {
    for (int indent : indents) t.line(indent, "}}");
  };
  t.line(6, "for (; whole.hasAll(); whole.advance()) {{");
  parts(8);
  items(10);
  t.line(12, "const int at = whole.first[0] + ((part * whole.kPart + k) << whole.bits);");
  t.line(12, "const int64_t i = whole.from.element + at;");
  writeItem(t, 12, ofFirst, "items[part][k]");
  close({10, 8});
  parts(8);
  items(10);
  t.line(12, "whole.own[0] = Level1::combine(whole.own[0], items[part][k], false);");
  close({10, 8, 6});
  t.line(6, "whole.deal();");
  t.line(6, "for (; whole.more(); whole.advanceParts()) {{");
  parts(8);
  t.line(10, "if (!whole.has(part, 0)) continue;");
  items(10);
  t.line(12, "const int at = whole.element(part, k);");
  t.line(12, "const int64_t i = whole.from.element + at;");
  writeItem(t, 12, ofPart, "items[part][k]");
  close({10, 8});
  parts(8);
  items(10);
  t.line(12, "const Level1::Value item = whole.has(part, k) ? items[part][k] : Level1::identity();");
  t.line(12, "whole.own[part] = Level1::combine(whole.own[part], item, false);");
  close({10, 8, 6});
}

/// Folds the elements of a thread, kAtOnce of them at once, then those that are left; the last one of the
/// segment stands for those behind it.
void writeChunks(PassText& t) {
  t.line(4, "Level1::Value items[whole.kAtOnce];");
  const auto items = [&](const char* i, const char* item) {
    t.line(6, "KELPIE_UNROLL");
    t.line(6, "for (int k = 0; k < whole.kAtOnce; ++k) {{");
    t.line(8, "const int64_t i = {};", i);
    writeItem(t, 8, {"whole.segment", "whole.begin"}, "items[k]");
    t.line(6, "}}");
    t.line(6, "KELPIE_UNROLL");
    t.line(6, "for (int k = 0; k < whole.kAtOnce; ++k)");
    t.line(8, "whole.own = Level1::combine(whole.own, {}, false);", item);
    t.line(4, "}}");
  };
  t.line(4, "for (; whole.hasAll(); whole.advance()) {{");
  items("whole.first + k * 32", "items[k]");
  t.line(4, "if (whole.more()) {{");
  items("whole.element(k)", "whole.has(k) ? items[k] : Level1::identity()");
}

/// Warps that have met an error look for all of the block, element by element, of `from` .. `to`-1.
void writeSearchForErrors(PassText& t, int indent, const char* from, const char* to) {
  t.line(indent, "if (__ballot_sync(kFullWarp, !good) != 0) {{");
  t.line(indent + 2, "KELPIE_NO_UNROLL");
  t.line(indent + 2, "for (int64_t i = {} + laneIndex(); i < {}; i += 32) {{", from, to);
  checkElement(t, 0);
  t.line(indent + 2, "}}");
  t.line(indent, "}}");
}

void writeWarps(PassText& t, bool checks) {
  t.line(2, "{} whole(order, launch.tiles, launch.together, segments, n);", t.wholeSegmentsType());
  t.line(2, "if (failed) return;");
  t.line(2, "{{");
  if (checks) t.line(4, "bool good = true;");
  writeChunks(t);
  t.line(4, "if (whole.finish(segments, shared.whole, result)) {{");
  if (checks) writeSearchForErrors(t, 6, "whole.begin", "whole.end");
  t.line(6, "return;");
  t.line(4, "}}");
  t.line(2, "}}");
}

void writeGroups(PassText& t, bool checks) {
  t.line(2, "{} whole(order, launch.tiles, launch.together, segments, n, shared.whole);",
         t.wholeSegmentsType());
  t.line(2, "if (failed) return;");
  t.line(2, "if (whole.even && whole.suited) {{");
  if (checks) t.line(4, "bool good = true;");
  t.line(4, "for (int round = 0; round < whole.rounds(); round += whole.roundsAtOnce()) {{");
  t.line(6, "whole.begin(round, segments, shared.whole);");
  writeFold(t);
  t.line(6, "whole.finish(shared.whole, result);");
  t.line(4, "}}");
  if (checks) writeSearchForErrors(t, 4, "whole.from.element", "whole.to.element");
  t.line(4, "return;");
  t.line(2, "}}");
}

}  // namespace

void writeWholeSegments(PassText& t) {
  const bool checks = canFail(t, t.plan.stages[0]);
  t.plan.warps ? writeWarps(t, checks) : writeGroups(t, checks);
}

}  // namespace kelpie::codegen::cuda
