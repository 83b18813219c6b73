#include "codegen/cuda/pass_rows.h"

#include "codegen/cuda/pass_checks.h"
#include "codegen/cuda/pass_extremes.h"
#include "codegen/cuda/pass_items.h"
#include "codegen/cuda/pass_segments.h"
#include "codegen/cuda/pass_shape.h"
#include "codegen/values_of_segments.h"

namespace kelpie::codegen::cuda {

using lcu::ExprRef;
using lcu::Soac;

namespace {

/// Computes once for each row what is the same for all elements of its segment and takes long, or is loaded
/// behind conditions: compilers leave such a load where it stands, with a branch around it for each element.
void writeOfSegments(PassText& t, ExpressionEmitter& emitter) {
  std::vector<ExprRef> thunks;
  for (uint32_t b : t.plan.stages[0].bindings)
    for (ExprRef e : thunksOf(t.kernel.bindings[b])) thunks.push_back(e);
  constexpr size_t kMostLoads = 2;  // of 8 bytes, of up to eight rows: a quarter of the registers
  std::vector<ExprRef> roots = longValuesOfSegments(thunks, t.info, t.program);
  for (ExprRef load : guardedValuesOfSegments(thunks, {}, t.info, t.program, kMostLoads))
    roots.push_back(load);
  if (const auto& indices = t.plan.indices) {
    emitter.define(indices->outer, "rows.outer(row)");
    emitter.define(indices->place, "rows.place()");
    std::erase_if(roots, [&](ExprRef e) { return e == indices->outer || e == indices->place; });
  }
  if (roots.empty()) return;
  t.line(4, "if (rows.begin >= rows.end) return;");
  std::vector<std::string> names;
  for (ExprRef e : roots) {
    names.push_back(emitter.freshName("of_segment"));
    t.line(4, "{} {}[decltype(number)::kRows];", typeName(e->type), names.back());
  }
  t.line(4, "KELPIE_UNROLL");
  t.line(4, "for (int row = 0; row < decltype(number)::kRows; ++row) {{");
  t.line(6, "const int64_t s = rows.segment(row);");
  const Dialect d = itemDialect(t, {.checks = CheckForm::Note});
  ExpressionEmitter before(d, 6);
  const auto texts = before.emit(roots);
  t.flush(before);
  for (size_t k = 0; k < roots.size(); ++k) t.line(6, "{}[row] = {};", names[k], texts[k]);
  t.line(4, "}}");
  for (size_t k = 0; k < roots.size(); ++k) emitter.define(roots[k], names[k] + "[row]");
}

/// Whether thunks call functions of float64.
bool callsFunctions(const PassText& t) {
  bool calls = false;
  for (uint32_t b : t.plan.stages[0].bindings) {
    lcu::forEachNode(thunksOf(t.kernel.bindings[b]),
                     [&](ExprRef e) { calls |= e->type == ScalarType::Float64 && isLongFunction(e); });
  }
  return calls;
}

/// Folds the items of a thread, of as many rows as `number` says. Items do not stop for errors.
void writeFold(PassText& t, const std::vector<FirstOfExtremes>& firsts) {
  t.line(2, "const auto reduce = [&](auto number) {{");
  const Dialect d = itemDialect(t, {.checks = CheckForm::Note});
  ExpressionEmitter emitter(d, 8);
  writeOfSegments(t, emitter);
  const size_t body = t.text.size();
  t.line(4, "const auto fold = [&](int64_t p) {{");
  t.line(6, "KELPIE_UNROLL");
  t.line(6, "for (int row = 0; row < decltype(number)::kRows; ++row) {{");
  t.line(8, "const int64_t s = rows.segment(row);");
  t.line(8, "const int64_t i = s * length + p;");
  t.line(8, "Level1::Value item;");
  for (uint32_t b : t.plan.stages[0].bindings) {
    const Soac& soac = t.kernel.bindings[b];
    emitter.emit(soac.effects);
    auto texts = emitter.emit(soac.pull);
    t.flush(emitter);
    for (size_t j = 0; j < texts.size(); ++j) t.line(8, "item.{} = {};", t.stem(soac.results[j]), texts[j]);
  }
  // Loads of several positions are on the way together; long bodies have enough to do without, and functions
  // of float64 fill registers themselves. Counts of 8*10^7 float64 in four ranges took 0.52 ms on an H200 one
  // by one, 0.23 by four, 0.19 by eight; the columns of 8000 x 8000 int64 0.138 and 0.131
  // (h200-2026-11-30-few-rows.txt).
  constexpr size_t kShort = 5500;
  const bool isShort = (t.text.size() - body) * static_cast<size_t>(t.plan.shape.rows) < kShort &&
                       !t.plan.shorts() && !callsFunctions(t);
  t.line(8, "const Level1::Value before = rows.own[row];");
  t.line(8, "Level1::Value after = Level1::combine(before, item, false);");
  for (const FirstOfExtremes& first : firsts) writeLaterItem(t, first, 8);
  t.line(8, "rows.own[row] = after;");
  t.line(6, "}}");
  t.line(4, "}};");
  if (isShort) {
    t.line(4, "constexpr int kTogether = decltype(number)::kRows <= 4 ? 8 : 4;");
    t.line(4, "forPositions<kTogether>(rows.begin, rows.end, rows.step, fold);");
  } else {
    t.line(4, "for (int64_t p = rows.begin; p < rows.end; p += rows.step) fold(p);");
  }
  t.line(2, "}};");
}

void writeAllMet(PassText& t, const std::vector<FirstOfExtremes>& firsts) {
  if (firsts.empty()) return;
  t.line(2, "if (rows.begin < rows.end) {{");
  t.line(4, "KELPIE_UNROLL");
  t.line(4, "for (int row = 0; row < S::kRows; ++row) {{");
  t.line(6, "Level1::Value& own = rows.own[row];");
  for (const FirstOfExtremes& first : firsts) writeAllMet(t, first, "rows.begin", 6);
  t.line(4, "}}");
  t.line(2, "}}");
}

}  // namespace

void writeRows(PassText& t) {
  const Dialect d = t.dialect();
  ExpressionEmitter emitter(d, 2);
  const std::string inner = t.plan.indices     ? ", " + emitter.emit({t.plan.indices->inner})[0]
                            : t.plan.columns() ? ", 0"
                                               : "";
  t.line(2, "{} rows(launch, length, m{});", t.rowReduceType(), inner);
  t.line(2, "const auto result = [&](int64_t segment, const Level1::Value& reduced) {{");
  writeSegmentBody(t);
  t.line(2, "}};");
  const bool checks = canFail(t, t.plan.stages[0]);
  if (checks) t.line(2, "bool good = true;");
  const std::vector<FirstOfExtremes> firsts = firstOfExtremes(t);
  writeFold(t, firsts);
  t.line(2, "rows.forRows(reduce);");
  writeAllMet(t, firsts);
  if (checks)
    searchRowsForErrors(t, "int64_t at = rows.begin; at < rows.end; at += rows.step", "S::kRows",
                        "rows.segment(row)");
  t.line(2, "rows.finish(launch, shared.rows, result);");
}

}  // namespace kelpie::codegen::cuda
