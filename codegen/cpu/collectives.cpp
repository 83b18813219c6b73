// Folds, scans and compactions of a CPU kernel: what follows the loop over the elements of a block.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/cpu/kernel_text.h"

namespace kelpie::codegen::cpu {

using fmt::format;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

std::string operationName(ScalarOp op) { return format("k_op_{}", toString(op)); }

namespace {

std::vector<std::string> indexed(const std::vector<std::string>& names, const std::string& index) {
  std::vector<std::string> result;
  for (const auto& name : names) result.push_back(name + "[" + index + "]");
  return result;
}

}  // namespace

std::vector<std::string> KernelText::componentNames(uint32_t b, const std::string& suffix) const {
  std::vector<std::string> names;
  for (size_t c = 0; c < width(b); ++c) names.push_back(stem(b, c) + suffix);
  return names;
}

std::vector<std::string> KernelText::declareTotals(uint32_t b, const std::string& suffix) {
  auto names = componentNames(b, suffix);
  for (size_t c = 0; c < names.size(); ++c) {
    line(format("{} {} = {};", typeName(b, c), names[c], identityText(b, c)));
  }
  return names;
}

/// For each operator with components that are not lanewise, a function that combines these.
void KernelText::combineFunctions() {
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    const Soac& s = soac(b);
    if (s.kind != SoacKind::Reduce && s.kind != SoacKind::Scan) continue;
    const auto lanewise = componentOperations(s.combine);
    std::vector<ExprRef> roots;
    std::vector<std::string> parameters;
    std::vector<size_t> components;
    for (size_t c = 0; c < width(b); ++c) {
      if (lanewise[c]) continue;
      components.push_back(c);
      roots.push_back(s.combine.result[c]);
    }
    if (roots.empty()) continue;
    for (size_t c : components) parameters.push_back(format("{}& a{}", typeName(b, c), c));
    for (size_t c : components) parameters.push_back(format("const {} b{}", typeName(b, c), c));
    open(format("const auto combine_b{} = [=]({}) {{", b, fmt::join(parameters, ", ")));
    combineWidth_ = width(b);
    key_ = "0";
    errorBinding_ = b;
    ExpressionEmitter emitter(dialect_, indent_);
    const auto texts = emitter.emit(roots);
    for (size_t k = 0; k < texts.size(); ++k) {
      emitter.statement(format("const {} r{} = {};", typeName(b, components[k]), components[k], texts[k]));
    }
    for (size_t c : components) emitter.statement(format("a{0} = r{0};", c));
    out_ += emitter.takeStatements();
    combineWidth_ = 0;
    close("};");
  }
}

void KernelText::combine(uint32_t b, const std::vector<std::string>& left,
                         const std::vector<std::string>& right) {
  const auto lanewise = componentOperations(soac(b).combine);
  std::vector<std::string> arguments;
  for (size_t c = 0; c < left.size(); ++c) {
    if (lanewise[c]) {
      line(format("{0} = {1}::apply<{2}>({0}, {3});", left[c], operationName(*lanewise[c]), typeName(b, c),
                  right[c]));
    } else {
      arguments.push_back(left[c]);
    }
  }
  if (arguments.empty()) return;
  for (size_t c = 0; c < right.size(); ++c)
    if (!lanewise[c]) arguments.push_back(right[c]);
  line(format("combine_b{}({});", b, fmt::join(arguments, ", ")));
}

void KernelText::foldPiece(uint32_t b, const std::vector<std::string>& into, const std::string& from,
                           const std::string& pieceCount, bool backward) {
  const auto folds = laneFolds(soac(b).combine);
  const auto values = [&](size_t c) { return format("{}_values + {}", stem(b, c), from); };
  std::vector<std::string> left, right;
  for (size_t c = 0; c < width(b); ++c) {
    if (folds[c] && folds[c]->of == c) {
      line(format("{} = k_fold<{}>({}, {}, {});", into[c], operationName(folds[c]->operation), values(c),
                  pieceCount, identityText(b, c)));
    } else if (!folds[c]) {
      line(format("{} = {};", into[c], identityText(b, c)));
      left.push_back(into[c]);
      right.push_back(
          format("{}_values[{} + {}]", stem(b, c), from, backward ? pieceCount + " - 1 - k" : "k"));
    }
  }
  for (size_t c = 0; c < width(b); ++c) {
    if (!folds[c] || folds[c]->of == c) continue;
    const size_t of = folds[c]->of;
    line(format("{} = k_fold_equal<{}>({}, {}, {}, {}, {});", into[c], operationName(folds[c]->operation),
                values(c), values(of), into[of], pieceCount, identityText(b, c)));
  }
  if (left.empty()) return;
  left.insert(left.end(), right.begin(), right.end());
  line(format("for (int64_t k = 0; k < {}; ++k) combine_b{}({});", pieceCount, b, fmt::join(left, ", ")));
}

// ---- flat
// -----------------------------------------------------------------------------------------------------

void KernelText::foldBlock(uint32_t b) {
  foldPiece(b, indexed(componentNames(b, "_partial"), "block"), "0", "count", false);
}

void KernelText::finishFlatReduction(uint32_t b) {
  auto cells = declareTotals(b, "_cell");
  open("for (int64_t block = 0; block < blocks; ++block) {");
  combine(b, cells, indexed(componentNames(b, "_partial"), "block"));
  close();
  for (size_t c = 0; c < width(b); ++c) {
    if (const KernelOutput* o = output(b, c)) line(format("*{} = {};", o->name, cells[c]));
  }
}

void KernelText::countSurvivors(uint32_t b) {
  line(format("int64_t {}_count = 0;", stem(b, 0)));
  line(format("for (int64_t e = 0; e < count; ++e) {0}_count += {0}_keep[e];", stem(b, 0)));
  line(format("{0}_kept[block] = {0}_count;", stem(b, 0)));
}

void KernelText::compact(uint32_t b) {
  const std::string name = stem(b, 0);
  if (soac(b).space.segmented()) {
    if (const KernelOutput* o = output(b, 0)) {
      open("{");
      line(format("int64_t position = {}_kept[block];", name));
      line("int64_t e = 0;");
      openSegments();
      line("if (first < begin) continue;");
      line(format("for (; e < first - begin; ++e) position += {}_keep[e];", name));
      line(format("{}[s] = position;", o->name));
      close();
      close();
    }
  }
  bool wanted = !soac(b).effects.empty();
  for (size_t c = 0; c < width(b); ++c) wanted |= output(b, c + 1) != nullptr || soac(b).pull[c]->canFail;
  if (!wanted) return;
  line(format("int32_t {}_index[{}];", name, blockSize()));
  line(format("int64_t {}_count = 0;", name));
  open("for (int64_t e = 0; e < count; ++e) {");
  line(format("{0}_index[{0}_count] = static_cast<int32_t>(e);", name));
  line(format("{0}_count += {0}_keep[e];", name));
  close();
  line(format("const int64_t {0}_position = {0}_kept[block];", name));

  key_ = "i";
  errorBinding_ = b;
  ExpressionEmitter emitter(dialect_, indent_ + 2);
  defineLocalReads(emitter, b);
  for (size_t c = 0; c < width(b); ++c) {
    if (const auto tiled = tiledPulls_.find({b, c}); tiled != tiledPulls_.end())
      emitter.define(soac(b).pull[c], stem(tiled->second.first, tiled->second.second) + "_values[e]");
  }
  const auto texts = emitter.emit(soac(b).pull);
  for (size_t c = 0; c < width(b); ++c) {
    if (const KernelOutput* o = output(b, c + 1)) {
      emitter.statement(format("{}[{}_position + k] = {};", o->name, name, texts[c]));
    }
  }
  open(format("for (int64_t k = 0; k < {}_count; ++k) {{", name));
  line(format("const int64_t e = {}_index[k], i = begin + e;", name));
  line("(void)i;");
  if (lateNeedsSegments(b)) declareIndices(true, true);
  out_ += emitter.takeStatements();
  close();
}

void KernelText::compactPartition(uint32_t b) {
  open("{");
  line(format("int64_t chosen = {}_kept[block], others = begin - chosen;", stem(b, 0)));
  open("for (int64_t e = 0; e < count; ++e) {");
  open(format("if ({}_keep[e]) {{", stem(b, 0)));
  for (size_t c = 0; c < width(b); ++c) {
    if (const KernelOutput* o = output(b, 1 + c))
      line(format("{}[chosen] = {}_values[e];", o->name, stem(b, c)));
  }
  line("++chosen;");
  indent_ -= 2;
  open("} else {");
  for (size_t c = 0; c < width(b); ++c) {
    if (const KernelOutput* o = output(b, 1 + width(b) + c)) {
      line(format("{}[others] = {}_values[e];", o->name, stem(b, c)));
    }
  }
  line("++others;");
  close();
  close();
  close();
}

// ---- scans
// ----------------------------------------------------------------------------------------------------

void KernelText::totals(uint32_t b) {
  const bool backward = soac(b).backward;
  const auto partial = componentNames(b, "_partial");
  if (!soac(b).space.segmented()) {
    foldPiece(b, indexed(partial, "block"), "0", "count", backward);
    return;
  }
  openSegments();
  line("if (first >= begin && last <= end) continue;");
  open("for (int64_t piece = from; piece < to; piece += kPiece) {");
  line("const int64_t slot = pieceSlot(piece, piece == first), piece_count = k_least(kPiece, to - piece);");
  foldPiece(b, indexed(partial, "slot"), "(piece - begin)", "piece_count", backward);
  close();
  close();
}

void KernelText::carries(uint32_t b) {
  const Soac& s = soac(b);
  if (s.kind != SoacKind::Scan) {  // counts of survivors
    open("{");
    line("int64_t before = 0;");
    open(format("for (int64_t block = 0; block < {}; ++block) {{", survivorParts()));
    line(format("const int64_t here = {}_kept[block];", stem(b, 0)));
    line(format("{}_kept[block] = before;", stem(b, 0)));
    line("before += here;");
    close();
    line(format("{}_kept[{}] = before;", stem(b, 0), survivorParts()));
    close();
    return;
  }
  const auto partial = componentNames(b, "_partial");
  auto step = [&](const std::vector<std::string>& carry, const std::string& slot) {
    std::vector<std::string> here;
    for (size_t c = 0; c < width(b); ++c) {
      here.push_back(format("here{}", c));
      line(format("const {} {} = {}[{}];", typeName(b, c), here.back(), partial[c], slot));
      line(format("{}[{}] = {};", partial[c], slot, carry[c]));
    }
    combine(b, carry, here);
  };
  if (!s.space.segmented()) {
    open("{");
    auto carry = declareTotals(b, "_carry");
    open(s.backward ? "for (int64_t block = blocks - 1; block >= 0; --block) {"
                    : "for (int64_t block = 0; block < blocks; ++block) {");
    step(carry, "block");
    close();
    for (size_t c = 0; c < width(b) && s.withTotal; ++c) {
      if (const KernelOutput* o = output(b, c)) line(format("{}[n] = {};", o->name, carry[c]));
    }
    close();
    return;
  }
  forEach("block", "blocks");
  line("const int64_t s = k_cut_segment(cuts, block, m, start);");
  line("if (s < 0) return;");
  line("const int64_t first = start(s), last = start(s + 1);");
  auto carry = declareTotals(b, "_carry");
  open(s.backward ? "for (int64_t piece = first + (last - first - 1) / kPiece * kPiece; piece >= first; "
                    "piece -= kPiece) {"
                  : "for (int64_t piece = first; piece < last; piece += kPiece) {");
  line("const int64_t slot = pieceSlot(piece, piece == first);");
  step(carry, "slot");
  close();
  close("});");
}

void KernelText::applyScan(uint32_t b, bool last) {
  const Soac& s = soac(b);
  for (size_t c = 0; c < width(b); ++c) {
    if (needsTile(s.results[c]) && !unbounded_)
      line(format("{} {}_scanned[{}];", typeName(b, c), stem(b, c), blockSize()));
  }
  auto store = [&](const std::vector<std::string>& running) {
    for (size_t c = 0; c < width(b); ++c) {
      if (needsTile(s.results[c])) line(format("{}_scanned[e] = {};", stem(b, c), running[c]));
      const KernelOutput* o = last ? output(b, c) : nullptr;
      if (o) line(format("{}[begin + e] = {};", o->name, running[c]));
    }
  };
  const auto carry = componentNames(b, "_carry"), running = componentNames(b, "_running");
  auto elements = [&](const std::string& from, const std::string& to) {
    for (size_t c = 0; c < width(b); ++c) line(format("{} {} = {};", typeName(b, c), running[c], carry[c]));
    open(s.backward ? format("for (int64_t e = {} - 1; e >= {}; --e) {{", to, from)
                    : format("for (int64_t e = {}; e < {}; ++e) {{", from, to));
    // The value is read first: values and results may be the same memory.
    std::vector<std::string> here;
    for (size_t c = 0; c < width(b); ++c) {
      here.push_back(format("here{}", c));
      line(format("const {} {} = {}_values[e];", typeName(b, c), here.back(), stem(b, c)));
    }
    if (!s.inclusive) store(running);
    combine(b, running, here);
    if (s.inclusive) store(running);
    close();
  };
  auto load = [&](const std::string& slot) {
    for (size_t c = 0; c < width(b); ++c) line(format("{} = {}_partial[{}];", carry[c], stem(b, c), slot));
  };
  if (!s.space.segmented()) {
    open("{");
    declareTotals(b, "_carry");
    load("block");
    elements("0", "count");
    close();
    return;
  }
  openSegments();
  line("const bool whole = first >= begin && last <= end;");
  declareTotals(b, "_carry");
  open(s.backward ? "for (int64_t piece = from + (to - from - 1) / kPiece * kPiece; from < to && piece >= "
                    "from; piece "
                    "-= kPiece) {"
                  : "for (int64_t piece = from; piece < to; piece += kPiece) {");
  line("const int64_t piece_count = k_least(kPiece, to - piece);");
  open("if (!whole) {");
  line("const int64_t slot = pieceSlot(piece, piece == first);");
  load("slot");
  close();
  elements("(piece - begin)", "(piece - begin + piece_count)");
  // A whole segment of several pieces finds its carries here.
  open(s.backward ? "if (whole && piece > from) {" : "if (whole && piece + kPiece < to) {");
  for (size_t c = 0; c < width(b); ++c) line(format("{} total{};", typeName(b, c), c));
  std::vector<std::string> total;
  for (size_t c = 0; c < width(b); ++c) total.push_back(format("total{}", c));
  foldPiece(b, total, "(piece - begin)", "piece_count", s.backward);
  combine(b, carry, total);
  close();
  close();
  close();
}

// ---- segmented reductions
// -------------------------------------------------------------------------------------

void KernelText::foldSegments(uint32_t b) {
  const auto partial = componentNames(b, "_partial");
  openSegments();
  open("if (first < begin || last > end) {");
  open("for (int64_t piece = from; piece < to; piece += kPiece) {");
  line("const int64_t slot = pieceSlot(piece, piece == first), piece_count = k_least(kPiece, to - piece);");
  foldPiece(b, indexed(partial, "slot"), "(piece - begin)", "piece_count", false);
  close();
  line("continue;");
  close();
  auto total = declareTotals(b, "_total");
  const auto folds = laneFolds(soac(b).combine);
  const bool inLanes = std::all_of(folds.begin(), folds.end(), [](const auto& f) { return f.has_value(); });
  if (inLanes) {  // one piece is the total: these operations have exact identities
    open("if (to - from <= kPiece) {");
    foldPiece(b, total, "(from - begin)", "(to - from)", false);
    indent_ -= 2;
    open("} else {");
  }
  open("for (int64_t piece = from; piece < to; piece += kPiece) {");
  line("const int64_t piece_count = k_least(kPiece, to - piece);");
  std::vector<std::string> here;
  for (size_t c = 0; c < width(b); ++c) {
    here.push_back(format("here{}", c));
    line(format("{} {};", typeName(b, c), here.back()));
  }
  foldPiece(b, here, "(piece - begin)", "piece_count", false);
  combine(b, total, here);
  close();
  if (inLanes) close();
  for (size_t c = 0; c < width(b); ++c) {
    const std::string to = resultBySegment(soac(b).results[c]);
    if (!to.empty()) line(format("{}[s] = {};", to, total[c]));
  }
  close();
}

/// Segments that go over several blocks: their pieces, in order; then their epilogue, if asked for.
void KernelText::foldCutSegments(const Indices& reductions, bool epilogues) {
  forEach("block", "blocks");
  line("const int64_t s = k_cut_segment(cuts, block, m, start);");
  line("if (s < 0) return;");
  if (!reductions.empty()) line("const int64_t first = start(s), last = start(s + 1);");
  for (uint32_t b : reductions) {
    auto total = declareTotals(b, "_total");
    open("for (int64_t piece = first; piece < last; piece += kPiece) {");
    combine(b, total, indexed(componentNames(b, "_partial"), "pieceSlot(piece, piece == first)"));
    close();
    for (size_t c = 0; c < width(b); ++c) {
      const std::string to = resultBySegment(soac(b).results[c]);
      if (!to.empty()) line(format("{}[s] = {};", to, total[c]));
    }
  }
  if (epilogues) line("epilogue(s);");
  close("});");
}

}  // namespace kelpie::codegen::cpu
