#include "codegen/cuda/pass_transposed.h"

#include "codegen/cuda/pass_checks.h"
#include "codegen/cuda/pass_items.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;
using lcu::VarId;

namespace {

/// Computes the items of all rows, before any is stored: their loads go together.
void writeRowItems(PassText& t, bool checks) {
  if (checks) t.line(2, "bool good = true;");
  for (const KernelOutput& out : t.info.outputs)
    t.line(2, "{} {}[S::kRows];", typeName(t.typeOf(out.var)), t.items(out.var));
  t.line(2, "const int64_t p = tile.place;");
  t.line(2, "KELPIE_UNROLL");
  t.line(2, "{}", kRowLoop);
  t.line(4, "if (row >= tile.rows) break;");
  t.line(4, "const int64_t s = tile.first + row;");
  t.line(4, "const int64_t i = s * length + p;");
  const Dialect d = itemDialect(t, {.checks = CheckForm::Note});
  t.failElement = "i";
  ExpressionEmitter emitter(d, 4);
  for (uint32_t b : t.plan.stages[0].bindings) {
    const Soac& soac = t.kernel.bindings[b];
    t.failBinding = t.pass.bindings[b];
    emitter.emit(soac.effects);
    const auto texts = emitter.emit(soac.pull);
    t.flush(emitter);
    for (size_t j = 0; j < soac.results.size(); ++j) {
      const VarId v = soac.results[j];
      if (t.outputName(v)) t.line(4, "{}[row] = {};", t.items(v), texts[j]);
      defineLocal(t, v, texts[j], soac.pull[j]->type, 0, emitter, 4);
    }
  }
  t.line(2, "}}");
}

}  // namespace

void writeTransposed(PassText& t) {
  const bool checks = canFail(t, t.plan.stages[0]);
  t.line(2, "const TransposedTile<S> tile(length, m);");
  writeRowItems(t, checks);
  t.line(2, "KELPIE_UNROLL");
  t.line(2, "{}", kRowLoop);
  t.line(4, "if (row >= tile.rows) break;");
  t.line(4, "const int64_t i = (tile.first + row) * length + p;");
  for (const KernelOutput& out : t.info.outputs)
    t.line(4, "{}[i] = {}({}[row]);", t.outputNames.at(out.var), t.storedType(out.var), t.items(out.var));
  t.line(2, "}}");
  if (checks) searchRowsForErrors(t, "int64_t at = p; at == p; ++at", "tile.rows", "(tile.first + row)");
}

}  // namespace kelpie::codegen::cuda
