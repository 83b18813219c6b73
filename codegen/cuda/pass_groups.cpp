#include "codegen/cuda/pass_groups.h"

#include "codegen/cuda/pass_elements.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;

namespace {

/// The segment and the position of element `i`, as far as they are used.
void writeIndices(PassText& t, int indent) {
  bool segment = false, position = false;
  for (uint32_t b : t.plan.stages[0].bindings) {
    segment |= t.info.bindings[b].usesSegment;
    position |= t.info.bindings[b].usesPosition;
  }
  if (segment || position) t.line(indent, "const int64_t s = groups.segment();");
  if (position) t.line(indent, "const int64_t p = i - segments.begin(s);");
}

/// The items of the loop over k, each of an element `at`.
void writeItems(PassText& t, int indent) {
  t.line(indent, "const int64_t i = groups.from.element + at;");
  writeIndices(t, indent);
  Dialect d = t.dialect();
  t.failElement = std::string(1, 'i');
  ExpressionEmitter emitter(d, indent);
  for (uint32_t b : t.plan.stages[0].bindings) {
    const Soac& soac = t.kernel.bindings[b];
    t.failBinding = t.pass.bindings[b];
    emitter.emit(soac.effects);
    const auto texts = emitter.emit(soac.pull);
    t.flush(emitter);
    for (size_t j = 0; j < texts.size(); ++j)
      t.line(indent, "items[k].{} = {};", t.stem(soac.results[j]), texts[j]);
  }
}

/// Folds the elements of a thread, some at once: all of these are loaded before the first is folded. Of fewer
/// than that, parts are left out; behind the last element it is taken again, and what comes of it dropped: no
/// load waits for a branch of its own.
void writeFold(PassText& t) {
  t.line(6, "Level1::Value items[groups.kAtOnce];");
  t.line(6, "for (; groups.has(groups.kAtOnce); groups.first += groups.kAtOnce << groups.bits) {{");
  t.line(8, "KELPIE_UNROLL");
  t.line(8, "for (int k = 0; k < groups.kAtOnce; ++k) {{");
  t.line(10, "const int at = groups.first + (k << groups.bits);");
  writeItems(t, 10);
  t.line(8, "}}");
  t.line(8, "KELPIE_UNROLL");
  t.line(8, "for (int k = 0; k < groups.kAtOnce; ++k)");
  t.line(10, "groups.own = Level1::combine(groups.own, items[k], false);");
  t.line(6, "}}");
  const auto parts = [&] {
    t.line(6, "KELPIE_UNROLL");
    t.line(6, "for (int part = 0; part < groups.kAtOnce; part += groups.kPart) {{");
    t.line(8, "if (!groups.has(part + 1)) continue;");
    t.line(8, "KELPIE_UNROLL");
    t.line(8, "for (int k = part; k < part + groups.kPart; ++k) {{");
  };
  parts();
  t.line(10, "const int at = k_min(groups.first + (k << groups.bits), groups.end - 1);");
  writeItems(t, 10);
  t.line(8, "}}");
  t.line(6, "}}");
  parts();
  t.line(10, "const Level1::Value item = groups.has(k + 1) ? items[k] : Level1::identity();");
  t.line(10, "groups.own = Level1::combine(groups.own, item, false);");
  t.line(8, "}}");
  t.line(6, "}}");
}

/// Threads that have met errors look for them element by element.
void writeSearchForErrors(PassText& t) {
  t.line(6, "if (!good) {{");
  t.line(8, "KELPIE_NO_UNROLL");
  t.line(8, "for (int at = first; at < groups.end; at += 1 << groups.bits) {{");
  t.line(10, "const int64_t i = groups.from.element + at;");
  t.depth += 2;
  checkElement(t, 0);
  t.depth -= 2;
  t.line(8, "}}");
  t.line(6, "}}");
}

}  // namespace

void writeGroups(PassText& t) {
  t.line(2, "{} groups(order, launch.tiles, launch.together, segments, n, shared.groups);",
         t.segmentGroupsType());
  t.line(2, "if (failed) return;");
  t.line(2, "if (groups.even && groups.suited) {{");
  t.line(4, "for (int round = 0; round < groups.rounds(); ++round) {{");
  t.line(6, "groups.begin(round, segments, shared.groups);");
  const size_t begin = t.text.size();
  writeFold(t);
  std::string noted = t.text.substr(begin);
  if (noteErrors(noted)) {
    t.text.resize(begin);
    t.line(6, "const int first = groups.first;");
    t.line(6, "bool good = true;");
    t.text += noted;
    writeSearchForErrors(t);
  }
  t.line(6, "groups.finish(shared.groups, result);");
  t.line(4, "}}");
  t.line(4, "return;");
  t.line(2, "}}");
}

}  // namespace kelpie::codegen::cuda
