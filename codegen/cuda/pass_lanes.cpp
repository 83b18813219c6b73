#include "codegen/cuda/pass_lanes.h"

#include <algorithm>

#include "codegen/cuda/pass_checks.h"
#include "codegen/cuda/pass_elements.h"
#include "codegen/cuda/pass_items.h"
#include "codegen/work_ahead.h"

namespace kelpie::codegen::cuda {

using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;

namespace {

/// Turns of the loop until lanes look around. Short ones are unrolled, so that nobody counts.
int turnsAtOnce(const RefilledLoop& refilled) {
  constexpr int kWork = 160, kMost = 16;
  return std::clamp(kWork / refilled.ofTurn, 1, kMost);
}
bool unrolls(const RefilledLoop& refilled) {
  constexpr int kMost = 260;
  return turnsAtOnce(refilled) * refilled.ofTurn <= kMost &&
         !lcu::anyNode(loopNext(refilled.loop), lcu::isUnbounded);
}
/// How often lanes have waited, all together, when that has taken as long for a warp as `work` operations.
int waits(const RefilledLoop& refilled, int work) {
  constexpr int kLanes = 32;
  return kLanes * work / (refilled.ofTurn * turnsAtOnce(refilled));
}
/// ... as taking elements.
int patience(const RefilledLoop& refilled) {
  constexpr int kLeast = 8;
  return std::max(kLeast, waits(refilled, refilled.besides));
}
/// ... so that it pays.
int worth(const RefilledLoop& refilled) {
  constexpr int kLeast = 32;
  return std::max(kLeast, waits(refilled, refilled.worth()));
}
/// The same in a tile, where little is left to take. Who has come to the end looks around only with the
/// others, and the slowest hardly ever does so just then: for one and a half of these times nobody would have
/// taken another element. (A queue of all tiles that asked for so much would miss where it pays: implied
/// volatilities took 1.35 times as long so, though Jacobi's symbols 0.85.)
int worthInTile(const RefilledLoop& refilled) {
  constexpr int kNobody = 48;
  return kNobody + waits(refilled, refilled.worth());
}

/// The code in front of the loop, which makes lanes busy, and the loop.
struct Beginning {
  std::string declarations, before, turns;
};

/// Conditions around the loop are met first; who does not meet them has no loop.
Beginning beginning(const PassText& t, const RefilledLoop& refilled, ExpressionEmitter& emitter) {
  const auto spaces = [](size_t count) { return std::string(count, ' '); };
  Beginning text;
  const auto begins = [&](ExpressionEmitter& own, size_t column) {
    own.name(refilled.unchanged);
    const auto [before, turns] = own.emitLoop(
        refilled.values[0], fmt::format("for (turn = 0; turn < {}; ++turn) {{", turnsAtOnce(refilled)));
    // A check that fails before the loop ends nothing in it: with what it lets through, turns may never end.
    const bool fails = canFail(t, t.plan.stages[0]);
    text.before += before + spaces(column) + (fails ? "busy = good;\n" : "busy = true;\n");
    text.turns = turns;
  };
  emitter.declareAhead(true);
  emitter.name(refilled.always);
  text.before = emitter.takeStatements();
  const size_t outermost = 6 + static_cast<size_t>(t.depth);
  size_t column = outermost;
  if (refilled.around.empty()) {
    begins(emitter, column);
    text.declarations = emitter.takeDeclarations();
  } else {
    const auto enters = [&](ExpressionEmitter& own, const std::pair<ExprRef, bool>& around) {
      const std::string condition = own.emit({around.first->operands[0]})[0];
      text.before += own.takeStatements() + spaces(column) +
                     (around.second ? "if (" + condition + ") {\n" : "if (!(" + condition + ")) {\n");
      column += 2;
    };
    enters(emitter, refilled.around[0]);
    // What is computed under a condition is not there behind the loop.
    text.declarations = emitter.takeDeclarations();
    ExpressionEmitter inner(emitter);
    inner.indent(2);
    for (size_t k = 1; k < refilled.around.size(); ++k) {
      enters(inner, refilled.around[k]);
      inner.indent(2);
    }
    begins(inner, column);
    for (; column > outermost; column -= 2) text.before += spaces(column - 2) + "}\n";
    text.declarations += inner.takeDeclarations();
    emitter.continueNames(inner);
    for (ExprRef value : refilled.values) emitter.define(value, inner.atomic(value));
  }
  emitter.declareAhead(false);
  return text;
}

/// The code behind the loop.
void writeResults(PassText& t, ExpressionEmitter& emitter) {
  const std::vector<uint32_t>& bindings = t.plan.stages[0].bindings;
  for (const WorkAhead& work : longWorkAhead(t.kernel, bindings)) emitter.emit(work.values);
  t.flush(emitter);
  for (uint32_t b : bindings) {
    const Soac& soac = t.kernel.bindings[b];
    emitter.emit(soac.effects);
    if (soac.kind == SoacKind::Permute) {
      permuted(t, soac, emitter);
      continue;
    }
    const std::vector<std::string> texts = emitter.emit(soac.pull);
    t.flush(emitter);
    if (soac.kind == SoacKind::Reduce) {
      accumulated(t, b, texts);
      continue;
    }
    for (size_t j = 0; j < texts.size(); ++j) {
      defineLocal(t, soac.results[j], texts[j], soac.pull[j]->type, 0, emitter);
      if (const std::string* out = t.outputName(soac.results[j])) t.line(8, "{}[i] = {};", *out, texts[j]);
    }
  }
}

/// The queue of a warp, of a type and made of something, and the loop over its elements.
struct QueueText {
  const char* type;
  const char* madeOf;
  const char* element;  ///< a statement: where element `number` is
  const char* takes;    ///< a condition: a lane has taken one
};
template <class WriteResults>
void writeQueue(PassText& t, const RefilledLoop& refilled, const QueueText& queue, const Beginning& text,
                const WriteResults& writeResults) {
  t.line(2, "int number = 0;");
  t.line(2, "bool held = false, busy = false, good = true;");
  t.text += indented(text.declarations, t.depth);
  t.line(2, "while (true) {{");
  t.line(4, "if (held && !busy) {{");
  writeResults();
  t.line(4, "}}");
  t.line(4, "const bool takes = queue.take(!busy, number);");
  t.line(4, "held = busy || takes;");
  t.line(4, "if ({}) {{", queue.takes);
  t.line(6, "{}", queue.element);
  t.text += text.before;
  t.line(4, "}}");
  t.line(4, "if (__ballot_sync(kFullWarp, held) == 0) break;");
  t.line(4, "do {{");
  t.line(6, "if (!busy) continue;");
  t.line(6, "{}", queue.element);
  t.line(6, "int turn;");
  t.line(6, "{}", unrolls(refilled) ? "KELPIE_UNROLL" : "KELPIE_NO_UNROLL");
  t.text += text.turns;
  t.line(6, "busy = turn == {};", turnsAtOnce(refilled));
  t.line(4, "}} while (queue.goesOn(busy));");
  t.line(4, "queue.weigh();");
  t.line(2, "}}");
}

void declareQueue(PassText& t, const RefilledLoop& refilled, const QueueText& queue, int worth) {
  const int pays = t.options.queuesPay ? 0 : worth;
  t.line(2, "{}<S, {}, {}, {}> queue({});", queue.type, patience(refilled), pays,
         RefilledLoop::kVeryLong * pays, queue.madeOf);
}

/// What the loop of an item has given, in shared memory.
std::string turned(const PassText& t, size_t value) {
  return fmt::format("shared.turned{}{}", value + 1, t.plan.ranges() ? "[warpIndex()]" : "");
}

}  // namespace

void writeRefilledLanes(PassText& t) {
  constexpr QueueText kQueue{"LaneQueue", "n", "const int64_t i = k_place<Place>(queue.element(number));",
                             "takes"};
  const RefilledLoop& refilled = *t.plan.refilled;
  const Dialect d = itemDialect(t, {.checks = CheckForm::Note});
  ExpressionEmitter emitter(d, 6);
  const Beginning text = beginning(t, refilled, emitter);

  if (t.checksLate()) t.line(2, "if (failed) return;");
  if (!t.plan.reductions.empty()) t.line(2, "Reduction::Value acc = Reduction::identity();");
  declareQueue(t, refilled, kQueue, worth(refilled));
  writeQueue(t, refilled, kQueue, text, [&] {
    t.line(6, "{}", kQueue.element);
    t.depth -= 2;
    writeResults(t, emitter);
    t.depth += 2;
  });
  if (canFail(t, t.plan.stages[0])) {
    t.line(2, "if (__ballot_sync(kFullWarp, !good) != 0) {{");
    t.line(4, "queue.giveUp();");
    if (!t.plan.reductions.empty()) t.line(4, "acc = Reduction::identity();");
    t.line(2, "}}");
  }
  t.line(2, "for (int64_t order = queue.rest(); order < launch.tiles; order += gridDim.x) {{");
  t.depth += 2;
  t.line(2, "const Tile tile = flatTile<S>(order, launch.tiles, n);");
  writeLoads(t, 0);
  writeStage(t, 0);
  t.depth -= 2;
  t.line(2, "}}");
}

void declareLoopsOfTile(PassText& t) {
  const RefilledLoop& refilled = *t.plan.refilledInTiles;
  for (size_t k = 0; k < refilled.values.size(); ++k)
    t.line(2, "{} turned{}{}[S::kItems];", typeName(refilled.values[k]->type), k + 1,
           t.plan.ranges() ? "[kWarps]" : "");
}

void writeVotes(PassText& t) {
  if (t.plan.ranges()) {
    t.line(2, "RangeVotes votes;");
  } else {
    t.line(2, "TileVotes votes(launch, {}, order);", t.pass.stateWords);
  }
}

void writeLoopsOfTile(PassText& t) {
  const QueueText queue{"TileQueue", "tile, votes.next()",
                        "const int64_t i = k_place<Place>(tile.base + queue.offset(number));",
                        "takes && tile.contains(queue.offset(number))"};
  const RefilledLoop& refilled = *t.plan.refilledInTiles;
  const auto packs = std::exchange(t.packNames, {});  // a lane takes what others have loaded
  const Dialect d = itemDialect(t, {.checks = CheckForm::Note});
  declareQueue(t, refilled, queue, worthInTile(refilled));
  t.line(2, "{{");
  t.depth += 2;
  ExpressionEmitter emitter(d, 6 + t.depth);
  const Beginning text = beginning(t, refilled, emitter);
  t.line(2, "__syncwarp();");  // others may still read what the tile before has left
  writeQueue(t, refilled, queue, text, [&] {
    t.line(6, "const int offset = queue.offset(number);");
    for (size_t k = 0; k < refilled.values.size(); ++k)
      t.line(6, "{}[offset] = {};", turned(t, k), emitter.atomic(refilled.values[k]));
  });
  t.line(2, "if (queue.weighs) votes.add(queue.pays());");
  if (canFail(t, t.plan.stages[0])) t.line(2, "if (__ballot_sync(kFullWarp, !good) != 0) queue.giveUp();");
  t.line(2, "__syncwarp();");
  t.depth -= 2;
  t.line(2, "}}");
  t.packNames = packs;
}

std::optional<KnownLoop> knownInTile(const PassText& t, ExprRef loop) {
  const auto& refilled = t.plan.refilledInTiles;
  if (!refilled || loop != refilled->loop) return std::nullopt;
  KnownLoop known{"queue.knows(row, v)", std::vector<std::string>(loop->count)};
  for (size_t k = 0; k < refilled->values.size(); ++k)
    known.values[refilled->values[k]->index] = turned(t, k) + "[offset]";
  return known;
}

}  // namespace kelpie::codegen::cuda
