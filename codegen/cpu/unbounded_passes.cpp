// Kernels whose thunks loop or recurse: what an element costs is not known, differs, and may be much.
//
// Elements are evaluated once, in chunks far smaller than blocks, and what later passes need of them is kept
// in arrays over all elements. Blocks and pieces remain what floats are folded by (reduction_order.h); chunks
// only say who evaluates what, so they may have any size. For each level in turn:
//   elements    by chunks: the thunks; survivors of filters are counted
//   collectives by blocks: folds, scans
//   survivors   by chunks: what filters compute of them, and where it goes
// Epilogues follow, by segments.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/cpu/kernel_text.h"

namespace kelpie::codegen::cpu {

using fmt::format;
using lcu::SoacKind;

namespace {

bool keepsSome(SoacKind kind) { return kind == SoacKind::Filter || kind == SoacKind::Partition; }

}  // namespace

std::vector<std::pair<std::string, std::string>> KernelText::keptArrays() const {
  std::vector<std::pair<std::string, std::string>> arrays;
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    if (info_.bindings[b].role != BindingRole::Element) continue;
    const SoacKind kind = soac(b).kind;
    if (keepsSome(kind)) arrays.emplace_back("bool", stem(b, 0) + "_keep");
    for (size_t c = 0; c < width(b); ++c) {
      if (needsValues(b, c)) arrays.emplace_back(typeName(b, c), stem(b, c) + "_values");
      if (kind == SoacKind::Scan && needsTile(soac(b).results[c]))
        arrays.emplace_back(typeName(b, c), stem(b, c) + "_scanned");
    }
  }
  return arrays;
}

void KernelText::takeKeptArrays() {
  for (const auto& [type, name] : keptArrays()) {
    line(format("{0}* {1}_kept = k_take<{0}>(launch, n);", type, name));
    line(format("if (!{}_kept) return 1;", name));
  }
}

void KernelText::pointAtKeptArrays() {
  for (const auto& [type, name] : keptArrays()) line(format("{0}* {1} = {1}_kept + begin;", type, name));
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    if (info_.bindings[b].role == BindingRole::Element) declareDirectValues(b);
  }
}

void KernelText::openChunks() {
  open("k_parallel(launch, chunks, 1, [=](int64_t block) K_INLINE {");
  line("const int64_t begin = block * chunk, end = k_least(begin + chunk, n), count = end - begin;");
  line("(void)count;");
  if (segmented()) {
    line("const int64_t s_next = k_first_segment(m, start, begin);");
    line("const int64_t s_begin = s_next > 0 && start(s_next) > begin ? s_next - 1 : s_next;");
    line("const int64_t s_end = end < n ? k_first_segment(m, start, end) : m;");
    line("(void)s_begin, (void)s_end;");
  }
  pointAtKeptArrays();
}

void KernelText::openWholeBlocks() {
  openBlocks();
  declareBlock();
  pointAtKeptArrays();
}

void KernelText::unboundedLevel(uint32_t level) {
  const Indices here = elementBindings(level);
  Indices scans, reductions, filters;
  for (uint32_t b : here) {
    const SoacKind kind = soac(b).kind;
    if (kind == SoacKind::Scan) scans.push_back(b);
    if (kind == SoacKind::Reduce) reductions.push_back(b);
    if (keepsSome(kind)) filters.push_back(b);
  }
  if (here.empty()) return;
  line("");
  line(format("// Elements, level {}.", level + 1));
  openChunks();
  elementLoop(here, true);
  for (uint32_t b : filters) countSurvivors(b);
  close("});");
  for (uint32_t b : filters) carries(b);
  if (!scans.empty()) {
    openWholeBlocks();
    for (uint32_t b : scans) totals(b);
    close("});");
    for (uint32_t b : scans) carries(b);
  }
  if (!scans.empty() || !reductions.empty()) {
    openWholeBlocks();
    for (uint32_t b : scans) applyScan(b, true);
    for (uint32_t b : reductions) {
      if (soac(b).space.segmented()) {
        foldSegments(b);
      } else {
        foldBlock(b);
      }
    }
    close("});");
  }
  if (filters.empty()) return;
  openChunks();
  if (!fixedLength() &&
      std::any_of(filters.begin(), filters.end(), [&](uint32_t b) { return lateNeedsSegments(b); }))
    segmentsOfElements();
  for (uint32_t b : filters) {
    if (soac(b).kind == SoacKind::Filter) {
      compact(b);
    } else {
      compactPartition(b);
    }
  }
  close("});");
}

void KernelText::unboundedPasses() {
  for (uint32_t level = 0; level <= maxLevel_; ++level) unboundedLevel(level);
  Indices reductions;
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    const bool element = info_.bindings[b].role == BindingRole::Element;
    if (element && soac(b).kind == SoacKind::Reduce && soac(b).space.segmented()) reductions.push_back(b);
  }
  if (!reductions.empty()) foldCutSegments(reductions, false);
  if (!info_.hasRole(BindingRole::Epilogue)) return;
  line("const int64_t at_once = k_chunk(m);");
  open("k_parallel(launch, (m + at_once - 1) / at_once, 1, [=](int64_t part) K_INLINE {");
  line("const int64_t s_end = k_least((part + 1) * at_once, m);");
  line("for (int64_t s = part * at_once; s < s_end; ++s) epilogue(s);");
  close("});");
}

}  // namespace kelpie::codegen::cpu
