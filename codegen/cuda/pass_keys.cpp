#include "codegen/cuda/pass_keys.h"

#include "codegen/cuda/pass_checks.h"
#include "codegen/cuda/pass_items.h"
#include "codegen/cuda/pass_segments.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;

namespace {

/// The segments of the keys that the last round left.
void writeRows(PassText& t) {
  const KeyedSegments& keyed = *t.plan.keyed;
  const Dialect d = itemDialect(t, {.checks = CheckForm::Note});
  ExpressionEmitter emitter(d, 6);
  std::string key = "next[k]";
  if (keyed.offset) {
    // A constant has no type that tells the overloads apart.
    key = fmt::format("k_sub({}, {}({}))", key, cTypeName(keyed.key->type), emitter.emit({keyed.offset})[0]);
  }
  t.flush(emitter);
  t.line(6, "rows[k] = keys.has(base, k) ? keys.rowOf({}) : -1;", key);
}

/// Computes the element of the segment that a key names.
void writeItem(PassText& t) {
  t.line(6, "if (rows[k] < 0) continue;");
  t.line(6, "const int64_t p = keys.position(base, k);");
  t.line(6, "const int64_t s = keys.first + rows[k];");
  t.line(6, "const int64_t i = s * length + p;");
  const Dialect d = itemDialect(t, {.checks = CheckForm::Note});
  ExpressionEmitter emitter(d, 6);
  emitter.define(t.plan.keyed->test, "true");
  emitter.define(t.plan.keyed->key, "next[k]");
  for (uint32_t b : t.plan.stages[0].bindings) {
    const Soac& soac = t.kernel.bindings[b];
    const auto texts = emitter.emit(soac.pull);
    t.flush(emitter);
    for (size_t j = 0; j < texts.size(); ++j)
      t.line(6, "items[k].{} = {};", t.stem(soac.results[j]), texts[j]);
  }
}

/// The keys of the next round. They are on their way while the elements of this one are folded.
void writeKey(PassText& t) {
  t.line(6, "const int64_t p = keys.position(base + S::kItems, k);");
  const Dialect d = itemDialect(t, {.checks = CheckForm::Note});
  ExpressionEmitter emitter(d, 6);
  const std::string key = emitter.emit({t.plan.keyed->key})[0];
  t.flush(emitter);
  t.line(6, "next[k] = {};", key);
}

void writeForItems(PassText& t, void (*write)(PassText&)) {
  t.line(4, "KELPIE_UNROLL");
  t.line(4, "for (int k = 0; k < S::kRows; ++k) {{");
  write(t);
  t.line(4, "}}");
}

}  // namespace

void writeKeys(PassText& t) {
  t.line(2, "{} keys(launch, length, m, shared.keys);", t.keyReduceType());
  t.line(2, "const auto result = [&](int64_t segment, const Level1::Value& reduced) {{");
  writeSegmentBody(t);
  t.line(2, "}};");
  const bool checks = canFail(t, t.plan.stages[0]);
  if (checks) t.line(2, "bool good = true;");
  t.line(2, "{} next[S::kRows] = {{}};", typeName(t.plan.keyed->key->type));
  t.line(2, "for (int64_t base = keys.start(); base < keys.end; base += S::kItems) {{");
  t.line(4, "int rows[S::kRows];");
  t.line(4, "Level1::Value items[S::kRows];");
  writeForItems(t, writeRows);
  writeForItems(t, writeItem);
  writeForItems(t, writeKey);
  t.line(4, "keys.add(rows, items);");
  t.line(2, "}}");
  if (checks)  // as if no key told the segment of an element
    searchRowsForErrors(t, "int64_t at = keys.begin + threadIdx.x; at < keys.end; at += S::kThreads",
                        "keys.rows", "(keys.first + row)");
  t.line(2, "keys.finish(launch, result);");
}

}  // namespace kelpie::codegen::cuda
