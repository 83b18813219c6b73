#include "codegen/cuda/pass_products.h"

#include "codegen/cuda/pass_items.h"
#include "codegen/cuda/pass_segments.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;

namespace {

/// How one of the product's values is named: tile0 in shared memory, fetched0 on its way there, value0 in
/// use.
struct Names {
  std::string shared, fetched, used;
  explicit Names(size_t number)
      : shared(fmt::format("tile{}", number)),
        fetched(fmt::format("fetched{}", number)),
        used(fmt::format("value{}", number)) {}
};

const char* indices(const ProductValue& v) { return v.ofOuter ? "Tiles::kOuters" : "Tiles::kPlaces"; }
const char* parts(const ProductValue& v) { return v.ofOuter ? "Tiles::kOfOuters" : "Tiles::kOfPlaces"; }

/// Opens a loop over the items of a value that a thread brings, and tells their place in the tile.
void openParts(PassText& t, const ProductValue& v, int indent) {
  t.line(indent, "KELPIE_UNROLL");
  t.line(indent, "for (int part = 0; part < {}; ++part) {{", parts(v));
  t.line(indent + 2, "const int item = int(threadIdx.x) + part * S::kThreads;");
  for (const char* what : {"depth", "index"})
    t.line(indent + 2, "const int {0} = product.template {0}Of<{1}, {2}>(item);", what, v.byPosition,
           indices(v));
}

void writeFetch(PassText& t) {
  const Product& product = *t.plan.product;
  for (size_t k = 0; k < product.values.size(); ++k)
    t.line(2, "{} {}[{}];", typeName(product.values[k].value->type), Names(k).fetched,
           parts(product.values[k]));
  t.line(2, "const auto fetch = [&](int64_t first) {{");
  for (size_t k = 0; k < product.values.size(); ++k) {
    const ProductValue& v = product.values[k];
    openParts(t, v, 4);
    t.line(6, "const int64_t p = product.position(first + depth);");
    const Dialect d = itemDialect(t, {.checks = CheckForm::Note});
    ExpressionEmitter emitter(d, 6);
    emitter.define(v.ofOuter ? product.indices.outer : product.indices.place,
                   v.ofOuter ? "product.outer(index)" : "product.place(index)");
    const auto texts = emitter.emit({v.value});
    t.flush(emitter);
    t.line(6, "{}[part] = {};", Names(k).fetched, texts[0]);
    t.line(4, "}}");
  }
  t.line(2, "}};");
  t.line(2, "const auto keep = [&] {{");
  for (size_t k = 0; k < product.values.size(); ++k) {
    openParts(t, product.values[k], 4);
    t.line(6, "shared.{}[depth][index] = {}[part];", Names(k).shared, Names(k).fetched);
    t.line(4, "}}");
  }
  t.line(2, "}};");
}

/// Folds what belongs to position k of the tile.
void writeFold(PassText& t) {
  const Product& product = *t.plan.product;
  t.line(4, "const auto fold = [&](auto rows, auto columns, int k) {{");
  t.line(6, "constexpr int kRows = decltype(rows)::value, kColumns = decltype(columns)::value;");
  t.line(6, "const int64_t p = first + k;");
  for (size_t k = 0; k < product.values.size(); ++k) {
    const ProductValue& v = product.values[k];
    const char* count = v.ofOuter ? "kRows" : "kColumns";
    t.line(6, "{} {}[{}];", typeName(v.value->type), Names(k).used, count);
    t.line(6, "KELPIE_UNROLL");
    t.line(6, "for (int at = 0; at < {}; ++at) {}[at] = shared.{}[k][product.{}(at)];", count, Names(k).used,
           Names(k).shared, v.ofOuter ? "rowOf" : "columnOf");
  }
  t.line(6, "KELPIE_UNROLL");
  t.line(6, "for (int row = 0; row < kRows; ++row) {{");
  t.line(8, "KELPIE_UNROLL");
  t.line(8, "for (int column = 0; column < kColumns; ++column) {{");
  const Dialect d = itemDialect(t, {.checks = CheckForm::Note});
  ExpressionEmitter emitter(d, 10);
  emitter.define(product.indices.outer, "product.outer(product.rowOf(row))");
  emitter.define(product.indices.place, "product.place(product.columnOf(column))");
  for (size_t k = 0; k < product.values.size(); ++k)
    emitter.define(product.values[k].value,
                   Names(k).used + (product.values[k].ofOuter ? "[row]" : "[column]"));
  t.line(10, "Level1::Value item;");
  for (uint32_t b : t.plan.stages[0].bindings) {
    const Soac& soac = t.kernel.bindings[b];
    const auto texts = emitter.emit(soac.pull);
    t.flush(emitter);
    for (size_t j = 0; j < texts.size(); ++j) t.line(10, "item.{} = {};", t.stem(soac.results[j]), texts[j]);
  }
  t.line(10, "product.own[row][column] = Level1::combine(product.own[row][column], item, false);");
  t.line(8, "}}");
  t.line(6, "}}");
  t.line(4, "}};");
}

}  // namespace

void declareProductValues(PassText& t) {
  t.line(2, "{}::Shared product;", t.productReduceType());
  const Product& product = *t.plan.product;
  for (size_t k = 0; k < product.values.size(); ++k)  // one more: lanes that store a column meet other banks
    t.line(2, "{} {}[ProductTiles<S>::kDepth][ProductTiles<S>::{} + 1];",
           typeName(product.values[k].value->type), Names(k).shared,
           product.values[k].ofOuter ? "kOuters" : "kPlaces");
}

void writeProducts(PassText& t) {
  const Dialect d = t.dialect();
  ExpressionEmitter emitter(d, 2);
  const std::string inner = emitter.emit({t.plan.product->indices.inner})[0];
  t.line(2, "using Tiles = ProductTiles<S>;");
  t.line(2, "{} product(launch, length, m, {});", t.productReduceType(), inner);
  t.line(2, "const auto result = [&](int64_t segment, const Level1::Value& reduced) {{");
  writeSegmentBody(t);
  t.line(2, "}};");
  writeFetch(t);
  t.line(2, "if (product.begin < product.end) fetch(product.begin);");
  t.line(2, "for (int64_t first = product.begin; first < product.end; first += Tiles::kDepth) {{");
  t.line(4, "__syncthreads();");
  t.line(4, "keep();");
  t.line(4, "__syncthreads();");
  t.line(4, "if (first + Tiles::kDepth < product.end) fetch(first + Tiles::kDepth);");
  writeFold(t);
  t.line(4, "product.forDepth(first, fold);");
  t.line(2, "}}");
  t.line(2, "product.finish(launch, shared.product, result);");
}

}  // namespace kelpie::codegen::cuda
