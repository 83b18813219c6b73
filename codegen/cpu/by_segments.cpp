// Regular spaces in which neighbouring segments read what lies side by side (codegen/regular_reads.h): tiles
// of several segments, so that what one of them brings into a cache serves the others.
//
// Folds keep the order of reduction_order.h: the lanes of a piece are kept for each segment of a group, and
// what a position is folded into is that of all of them, side by side.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/cpu/kernel_text.h"
#include "codegen/regular_reads.h"
#include "codegen/values_of_segments.h"

namespace kelpie::codegen::cpu {

using fmt::format;
using lcu::ExprRef;

bool KernelText::goesBySegments() const {
  if (unbounded_) return false;
  if (mapsRegular(kernel_, info_)) return regularReads(kernel_, info_).across;
  return foldsRegular(kernel_, info_) && regularReads(kernel_, info_).bySegments() &&
         std::all_of(kernel_.bindings.begin(), kernel_.bindings.end(), [](const lcu::Soac& s) {
           return s.kind != lcu::SoacKind::Reduce || lanewiseOperations(s.combine);
         });
}

void KernelText::bySegments() {
  line("const int64_t length = launch->length;");
  line("");
  if (mapsRegular(kernel_, info_)) {
    transposedMaps();
  } else {
    takeResultsBySegment();
    epilogueFunction();
    foldedColumns();
  }
}

/// Tiles of as many positions as the nearest cache has room for in one of its sets, wherever they lie.
void KernelText::transposedMaps() {
  const Indices bindings = elementBindings(0);
  line("constexpr int64_t kHigh = 32, kWide = 8, kChunk = 1024;");
  line("const int64_t strips = (m + kHigh - 1) / kHigh, wide = (length + kChunk - 1) / kChunk;");
  open("k_parallel(launch, strips * wide, 1, [=](int64_t task) K_INLINE {");
  line("const int64_t s_begin = task / wide * kHigh, s_end = k_least(s_begin + kHigh, m);");
  line("const int64_t p_begin = task % wide * kChunk, p_end = k_least(p_begin + kChunk, length);");
  open("for (int64_t first = p_begin; first < p_end; first += kWide) {");
  line("const int64_t last = k_least(first + kWide, p_end);");
  open("for (int64_t s = s_begin; s < s_end; ++s) {");
  ExpressionEmitter emitter(dialect_, indent_ + 2);
  out_ += segmentScope(bindings, indent_, emitter);
  open("for (int64_t p = first; p < last; ++p) {");
  line("const int64_t i = s * length + p;");
  out_ += elementStatements(bindings, true, emitter).text;
  for (const char* end : {"}", "}", "}", "});"}) close(end);
}

/// The thunks of all bindings for segment s and position p, folded into lane `lane` of segment k of the
/// group.
void KernelText::foldIntoLanes(const Indices& bindings, ExpressionEmitter& emitter) {
  key_ = std::string("i");
  for (uint32_t b : bindings) {
    errorBinding_ = b;
    const auto texts = emitter.emit(eagerThunks(soac(b)));
    const auto operations = lanewiseOperations(soac(b).combine);
    for (size_t c = 0; c < width(b); ++c)
      emitter.statement(format("{0}_lanes[lane + k] = {1}::apply<{2}>({0}_lanes[lane + k], {3});", stem(b, c),
                               operationName(operations->at(c)), typeName(b, c),
                               texts[soac(b).effects.size() + c]));
  }
  out_ += emitter.takeStatements();
}

/// "T total = ...;" from the values at `from(l)`, l in 0..count, in order.
void KernelText::foldInOrder(uint32_t b, size_t c, const std::string& count, const std::string& from) {
  line(format("{} {}_total = {};", typeName(b, c), stem(b, c), identityText(b, c)));
  const auto operation = lanewiseOperations(soac(b).combine)->at(c);
  line(format("for (int64_t l = 0; l < {0}; ++l) {1}_total = {2}::apply<{3}>({1}_total, {4});", count,
              stem(b, c), operationName(operation), typeName(b, c), from));
}

void KernelText::foldedColumns() {
  const Indices bindings = elementBindings(0);
  line("constexpr int64_t kGroup = 64;");
  // Of two indices, a group has one outer index, and places side by side: what is loaded by place lies so,
  // too.
  const auto indices = twoIndices(kernel_, info_);
  if (indices) {
    ExpressionEmitter emitter(dialect_, indent_);
    const std::string inner = emitter.emit({indices->inner})[0];
    out_ += emitter.takeStatements();
    line(format("const int64_t inner = {}, across = (inner + kGroup - 1) / kGroup;", inner));
    line("const int64_t groups = inner > 0 ? m / inner * across : 0;");
  } else {
    line("const int64_t groups = (m + kGroup - 1) / kGroup;");
  }
  line("const int64_t pieces = length > kPiece ? (length + kPiece - 1) / kPiece : 1;");
  const auto forAll = [&](const auto& call) {
    for (uint32_t b : bindings)
      for (size_t c = 0; c < width(b); ++c) call(b, c);
  };
  forAll([&](uint32_t b, size_t c) { take(typeName(b, c), stem(b, c) + "_partial", "pieces * m"); });
  open("k_parallel(launch, groups * pieces, 1, [=](int64_t task) K_INLINE {");
  line("const int64_t piece = task / groups, p_begin = piece * kPiece, group = task % groups;");
  line("const int64_t count = k_least(kPiece, length - p_begin);");
  if (indices) {
    line("const int64_t outer = group / across, first_place = group % across * kGroup;");
    line("const int64_t s_begin = outer * inner + first_place, own = k_least(kGroup, inner - first_place);");
  } else {
    line("const int64_t s_begin = group * kGroup, own = k_least(kGroup, m - s_begin);");
  }
  line("const int64_t lanes = count < kSerial ? 1 : kLanes;");
  forAll([&](uint32_t b, size_t c) {
    line(format("{} {}_lanes[kLanes * kGroup];", typeName(b, c), stem(b, c)));
    line(format("for (int64_t l = 0; l < lanes * kGroup; ++l) {}_lanes[l] = {};", stem(b, c),
                identityText(b, c)));
  });
  ExpressionEmitter emitter(dialect_, indent_ + 4);
  if (indices) {
    emitter.define(indices->outer, "outer");
    emitter.define(indices->place, "(first_place + k)");
  } else {
    longValues(bindings, emitter);
  }
  open("for (int64_t e = 0; e < count; ++e) {");
  line("const int64_t p = p_begin + e, lane = e % lanes * kGroup;");
  line("#pragma GCC ivdep");
  open("for (int64_t k = 0; k < own; ++k) {");
  line("const int64_t s = s_begin + k, i = s * length + p;");
  line("(void)i;");
  foldIntoLanes(bindings, emitter);
  close();
  close();
  open("for (int64_t k = 0; k < own; ++k) {");
  forAll([&](uint32_t b, size_t c) {
    foldInOrder(b, c, "lanes", format("{}_lanes[l * kGroup + k]", stem(b, c)));
    line(format("{0}_partial[piece * m + s_begin + k] = {0}_total;", stem(b, c)));
  });
  close();
  close("});");
  forEach("s", "m");
  forAll([&](uint32_t b, size_t c) {
    foldInOrder(b, c, "pieces", format("{}_partial[l * m + s]", stem(b, c)));
    const std::string to = resultBySegment(soac(b).results[c]);
    if (!to.empty()) line(format("{}[s] = {}_total;", to, stem(b, c)));
  });
  if (info_.hasRole(BindingRole::Epilogue)) line("epilogue(s);");
  close("});");
}

/// What takes long for a segment of the group, once.
void KernelText::longValues(const Indices& bindings, ExpressionEmitter& inner) {
  std::vector<ExprRef> thunks;
  for (uint32_t b : bindings)
    for (ExprRef e : eagerThunks(soac(b))) thunks.push_back(e);
  const std::vector<ExprRef> values = longValuesOfSegments(thunks, info_, program_);
  if (values.empty()) return;
  for (size_t k = 0; k < values.size(); ++k)
    line(format("{} of_segment_{}[kGroup];", cTypeName(values[k]->type), k + 1));
  open("for (int64_t k = 0; k < own && count > 0; ++k) {");  // of segments that have elements
  line("const int64_t s = s_begin + k;");
  ExpressionEmitter emitter(dialect_, indent_);
  const auto texts = emitter.emit(values);
  out_ += emitter.takeStatements();
  for (size_t k = 0; k < values.size(); ++k) {
    line(format("of_segment_{}[k] = {};", k + 1, texts[k]));
    inner.define(values[k], format("of_segment_{}[k]", k + 1));
  }
  close();
}

}  // namespace kelpie::codegen::cpu
