#include "codegen/cuda/pass_rows.h"

#include "codegen/cuda/pass_segments.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;

void writeRows(PassText& t) {
  t.line(2, "RowReduce<S, Level1> rows(launch, length, m);");
  t.line(2, "const auto result = [&](int64_t segment, const Level1::Value& reduced) {{");
  writeSegmentBody(t);
  t.line(2, "}};");
  const size_t loop = t.text.size();
  t.line(2, "for (int64_t p = rows.begin; p < rows.end; p += rows.step) {{");
  t.line(4, "KELPIE_UNROLL");
  t.line(4, "for (int row = 0; row < S::kRows; ++row) {{");
  t.line(6, "const int64_t s = rows.segment(row);");
  t.line(6, "const int64_t i = s * length + p;");
  t.line(6, "Level1::Value item;");
  Dialect d = t.dialect();
  t.failElement = "i";
  ExpressionEmitter emitter(d, 6);
  for (uint32_t b : t.plan.stages[0].bindings) {
    const Soac& soac = t.kernel.bindings[b];
    t.failBinding = t.pass.bindings[b];
    emitter.emit(soac.effects);
    auto texts = emitter.emit(soac.pull);
    t.flush(emitter);
    for (size_t j = 0; j < texts.size(); ++j) t.line(6, "item.{} = {};", t.stem(soac.results[j]), texts[j]);
  }
  t.line(6, "rows.own[row] = Level1::combine(rows.own[row], item, false);");
  t.line(4, "}}");
  t.line(2, "}}");
  // Loads of several positions go together; long bodies have enough to do without.
  constexpr size_t kShort = 6000;
  if ((t.text.size() - loop) * static_cast<size_t>(t.plan.shape.rows) < kShort)
    t.text.insert(loop, "  KELPIE_UNROLL_4\n");
  t.line(2, "rows.finish(launch, shared.rows, result);");
}

}  // namespace kelpie::codegen::cuda
