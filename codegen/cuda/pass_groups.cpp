#include "codegen/cuda/pass_groups.h"

#include "codegen/cuda/pass_checks.h"
#include "codegen/cuda/pass_items.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;

namespace {

/// The segment and the position of element `i` of a part, as far as they are used.
void writeIndices(PassText& t, int indent, const char* part) {
  const StagePlan& stage = t.plan.stages[0];
  if (usesSegments(t, stage)) t.line(indent, "const int64_t s = groups.segment({});", part);
  if (usesPositions(t, stage)) t.line(indent, "const int64_t p = i - segments.begin(s);");
}

/// Item k of a part, of an element `at`.
void writeItem(PassText& t, int indent, const char* part, const char* item) {
  t.line(indent, "const int64_t i = groups.from.element + at;");
  writeIndices(t, indent, part);
  const Dialect d = itemDialect(t, {.checks = CheckForm::Note});
  ExpressionEmitter emitter(d, indent);
  for (uint32_t b : t.plan.stages[0].bindings) {
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
  t.line(6, "Level1::Value items[groups.kParts][groups.kPart];");
  const auto parts = [&](int indent) {
    t.line(indent, "KELPIE_UNROLL");
    t.line(indent, "for (int part = 0; part < groups.kParts; ++part) {{");
  };
  const auto items = [&](int indent) {
    t.line(indent, "KELPIE_UNROLL");
    t.line(indent, "for (int k = 0; k < groups.kPart; ++k) {{");
  };
  const auto close = [&](std::initializer_list<int> indents) {
    for (int indent : indents) t.line(indent, "}}");
  };
  t.line(6, "for (; groups.hasAll(); groups.advance()) {{");
  parts(8);
  items(10);
  t.line(12, "const int at = groups.first[0] + ((part * groups.kPart + k) << groups.bits);");
  writeItem(t, 12, "0", "items[part][k]");
  close({10, 8});
  parts(8);
  items(10);
  t.line(12, "groups.own[0] = Level1::combine(groups.own[0], items[part][k], false);");
  close({10, 8, 6});
  t.line(6, "groups.deal();");
  t.line(6, "for (; groups.more(); groups.advanceParts()) {{");
  parts(8);
  t.line(10, "if (!groups.has(part, 0)) continue;");
  items(10);
  t.line(12, "const int at = groups.element(part, k);");
  writeItem(t, 12, "part", "items[part][k]");
  close({10, 8});
  parts(8);
  items(10);
  t.line(12, "const Level1::Value item = groups.has(part, k) ? items[part][k] : Level1::identity();");
  t.line(12, "groups.own[part] = Level1::combine(groups.own[part], item, false);");
  close({10, 8, 6});
}

/// Warps that have met an error look for all of the block, element by element.
void writeSearchForErrors(PassText& t) {
  t.line(4, "if (__ballot_sync(kFullWarp, !good) != 0) {{");
  t.line(6, "KELPIE_NO_UNROLL");
  t.line(6, "for (int64_t i = groups.from.element + laneIndex(); i < groups.to.element; i += 32) {{");
  checkElement(t, 0);
  t.line(6, "}}");
  t.line(4, "}}");
}

}  // namespace

void writeGroups(PassText& t) {
  t.line(2, "{} groups(order, launch.tiles, launch.together, segments, n, shared.groups);",
         t.segmentGroupsType());
  t.line(2, "if (failed) return;");
  t.line(2, "if (groups.even && groups.suited) {{");
  const bool checks = canFail(t, t.plan.stages[0]);
  if (checks) t.line(4, "bool good = true;");
  t.line(4, "for (int round = 0; round < groups.rounds(); round += groups.roundsAtOnce()) {{");
  t.line(6, "groups.begin(round, segments, shared.groups);");
  writeFold(t);
  t.line(6, "groups.finish(shared.groups, result);");
  t.line(4, "}}");
  if (checks) writeSearchForErrors(t);
  t.line(4, "return;");
  t.line(2, "}}");
}

}  // namespace kelpie::codegen::cuda
