#include "codegen/cpu/kernel_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ir/diagnostic.h"

namespace kelpie::codegen::cpu {

using fmt::format;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

/// Blocks that a thread takes at a time.
constexpr int kBlocksAtOnce = 8;

bool isPass(SoacKind kind) {
  return kind == SoacKind::Scan || kind == SoacKind::Filter || kind == SoacKind::Partition;
}

}  // namespace

KernelText::KernelText(const lcu::Kernel& kernel, const lcu::Program& program, std::string entry,
                       const CpuOptions& options)
    : kernel_(kernel),
      program_(program),
      info_(analyseKernel(kernel, program)),
      entry_(std::move(entry)),
      options_(options),
      dialect_(dialect()) {
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    for (uint32_t r = 0; r < soac(b).results.size(); ++r) producer_[soac(b).results[r]] = {b, r};
    if (info_.bindings[b].role == BindingRole::Element)
      maxLevel_ = std::max(maxLevel_, info_.bindings[b].level);
  }
  unbounded_ = std::any_of(kernel_.bindings.begin(), kernel_.bindings.end(),
                           [](const Soac& s) { return lcu::anyNode(thunksOf(s), lcu::isUnbounded); });
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    const BindingInfo& reader = info_.bindings[b];
    for (VarId v : reader.localReads) {
      localReads_.insert(v);
      const auto [producer, result] = producer_.at(v);
      if (reader.role != BindingRole::Element) continue;
      // Another loop than the one that makes the value reads it: a later level, or the survivors of a filter.
      const bool later = info_.bindings[producer].level < reader.level || soac(b).kind == SoacKind::Filter;
      if (soac(producer).kind == SoacKind::Scan || later) tiles_.insert(v);
    }
    lcu::forEachNode(thunksOf(soac(b)), [&](ExprRef e) {
      if (e->kind != ExprKind::Load || !producer_.contains(e->index)) return;
      auto& loads = loadsOf_[e->index];
      if (std::find(loads.begin(), loads.end(), e) == loads.end()) loads.push_back(e);
    });
  }
}

// ---- parts
// ----------------------------------------------------------------------------------------------------

void KernelText::line(const std::string& text) {
  out_ += std::string(text.empty() ? 0 : static_cast<size_t>(indent_), ' ') + text + "\n";
}
void KernelText::open(const std::string& text) {
  line(text);
  indent_ += 2;
}
void KernelText::close(const std::string& text) {
  indent_ -= 2;
  line(text);
}

std::string KernelText::typed(const Scalar& s) {
  std::string text = literalText(s);
  return s.type == ScalarType::Int32 ? "int32_t(" + text + ")" : text;
}

std::string KernelText::stem(uint32_t b, size_t c) const {
  const Soac& binding = soac(b);
  const bool counts = binding.kind == SoacKind::Filter || binding.kind == SoacKind::Partition;
  const size_t result = std::min(c + (counts ? 1 : 0), binding.results.size() - 1);
  const std::string name =
      binding.results.empty() ? "x" : identifier(program_.vars.at(binding.results[result]).name);
  return format("{}_b{}c{}", name, b, c);
}

std::string KernelText::tileOf(VarId v) const {
  const auto [b, c] = producer_.at(v);
  return stem(b, c) + (soac(b).kind == SoacKind::Scan ? "_scanned" : "_values");
}

std::string KernelText::resultBySegment(VarId v) const {
  if (const KernelOutput* o = info_.output(v)) return o->name;
  if (!readLocally(v)) return "";
  const auto [b, c] = producer_.at(v);
  return stem(b, c) + "_result";
}

Dialect KernelText::dialect() {
  Dialect d;
  d.param = [this](uint32_t number) -> std::string {
    if (combineWidth_ != 0) {
      return number < combineWidth_ ? format("a{}", number) : format("b{}", number - combineWidth_);
    }
    return parameterNames_[number];
  };
  d.host = [this](VarId v, ScalarType) -> std::string {
    if (auto it = producer_.find(v); it != producer_.end())
      return stem(it->second.first, it->second.second) + "_cell";
    const KernelParameter* p = info_.parameter(ParameterKind::Scalar, v);
    return p ? p->name : info_.parameter(ParameterKind::Cell, v)->name;
  };
  d.load = [this](ExprRef e, const std::string& position) {
    const KernelParameter* p = info_.parameter(ParameterKind::Array, e->index);
    if (!p) throw InternalError("a kernel reads a result of its own that is not there yet");
    return format("{}[{}]", p->name, position);
  };
  d.size = [this](VarId v) { return info_.parameter(ParameterKind::Size, v)->name; };
  d.recursion = "launch";
  d.interrupted = "k_interrupted(launch)";
  d.fail = [this](lcu::SiteId site, const std::string& payload0, const std::string& payload1) {
    return format("k_fail(launch, {}, {}, {}, {}, {});", key_, errorBinding_, site, payload0, payload1);
  };
  d.variableName = [this](VarId v) { return identifier(program_.vars.at(v).name); };
  return d;
}

KernelText::Indices KernelText::elementBindings(uint32_t level) const {
  Indices here;
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b)
    if (info_.bindings[b].role == BindingRole::Element && info_.bindings[b].level == level) here.push_back(b);
  return here;
}

KernelText::Indices KernelText::neededBy(uint32_t level) const {
  std::set<uint32_t> needed;
  for (uint32_t b = static_cast<uint32_t>(kernel_.bindings.size()); b-- > 0;) {
    const BindingInfo& info = info_.bindings[b];
    if (info.role != BindingRole::Element) continue;
    if (isPass(soac(b).kind) && info.level == level) needed.insert(b);
    if (!needed.contains(b)) continue;
    for (VarId v : info.localReads) needed.insert(producer_.at(v).first);
  }
  return {needed.begin(), needed.end()};
}

bool KernelText::readsValuesDirectly(uint32_t b, size_t c) const {
  const Soac& binding = soac(b);
  if (binding.kind != SoacKind::Reduce && binding.kind != SoacKind::Scan) return false;
  ExprRef e = binding.pull[c];
  if (e->kind != ExprKind::Load || e->operands[0]->kind != ExprKind::Param || e->operands[0]->index != 0)
    return false;
  return !producer_.contains(e->index) || needsTile(e->index);
}

// ---- the frame of the kernel
// ----------------------------------------------------------------------------------

std::string KernelText::generate() {
  comment();
  open(format("extern \"C\" int32_t {}(const k_launch* launch) {{", entry_));
  prologue();
  combineFunctions();
  fillTargets();
  if (goesBySegments()) {
    bySegments();
  } else if (info_.hasRole(BindingRole::Element) || info_.hasRole(BindingRole::Epilogue)) {
    cutBlocks();
    for (uint32_t level = 0; level <= maxLevel_; ++level) findTiledPulls(elementBindings(level));
    partials();
    if (unbounded_) {
      epilogueFunction();
      unboundedPasses();
    } else {
      for (uint32_t level = 0; level < info_.levels; ++level) firstPass(level);
      epilogueFunction();
      lastPass();
    }
  }
  finishing();
  line("return 0;");
  close();
  return std::move(out_);
}

void KernelText::comment() {
  line("// " + kernel_.name);
  for (const Soac& s : kernel_.bindings) {
    std::string where = options_.describe && s.span.known() ? options_.describe(s.span) : "";
    if (!s.origin.empty()) where = s.origin + (where.empty() ? "" : ", " + where);
    std::string names;
    for (VarId v : s.results) names += (names.empty() ? "" : ", ") + program_.vars.at(v).name;
    std::replace(where.begin(), where.end(), '\n', ' ');
    while (where.ends_with('\\')) where.pop_back();  // it would continue the comment
    line(format("//   {}{}{}", names, where.empty() ? "" : ": ", where));
  }
}

void KernelText::prologue() {
  line("const int64_t n = launch->elements, m = launch->segments;");
  line("(void)n, (void)m;");
  for (size_t k = 0; k < info_.parameters.size(); ++k) {
    const KernelParameter& p = info_.parameters[k];
    const std::string_view type = cTypeName(p.type);
    switch (p.kind) {
      case ParameterKind::Array:
        line(format("const {0}* __restrict {1} = static_cast<const {0}*>(launch->arguments[{2}].pointer);",
                    type, p.name, k));
        break;
      case ParameterKind::Size:
        line(format("const int64_t {} = launch->arguments[{}].integer;", p.name, k));
        break;
      case ParameterKind::Cell:
        line(format("const {0} {1} = *static_cast<const {0}*>(launch->arguments[{2}].pointer);", type, p.name,
                    k));
        break;
      case ParameterKind::Scalar:
        line(format("const {0} {1} = static_cast<{0}>(launch->arguments[{2}].{3});", type, p.name, k,
                    isFloat(p.type) ? "real" : "integer"));
    }
  }
  for (size_t k = 0; k < info_.outputs.size(); ++k) {
    const KernelOutput& o = info_.outputs[k];
    line(format("{0}* __restrict {1} = static_cast<{0}*>(launch->outputs[{2}]);", cTypeName(o.type), o.name,
                k));
  }
}

/// Values of permuted results that nobody writes.
void KernelText::fillTargets() {
  uint32_t target = 0;
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    if (soac(b).kind != SoacKind::Permute) continue;
    for (size_t c = 0; c < width(b); ++c) {
      const KernelOutput* o = output(b, c);
      if (!o || soac(b).fill.empty()) continue;
      // Where the greatest index wins, -1 stands for "nobody" until all have written.
      const std::string fill = soac(b).writesInAnyOrder() ? typed(soac(b).fill.at(c)) : "int64_t(-1)";
      forEach("e", format("launch->targets[{}]", target));
      line(format("{}[e] = {};", o->name, fill));
      close("});");
    }
    ++target;
  }
}

void KernelText::forEach(const std::string& variable, const std::string& count) {
  open(format("k_for_each(launch, {}, [=](int64_t {}) K_INLINE {{", count, variable));
}

void KernelText::cutBlocks() {
  if (!segmented()) {
    line("const int64_t blocks = flatBlocks(n);");
    return;
  }
  if (info_.space.kind == lcu::SpaceKind::Regular) {
    line("const int64_t length = launch->length;");
    line("const auto start = [=](int64_t s) { return s * length; };");
  } else {
    line(format("const auto start = [=](int64_t s) {{ return {}[s]; }};",
                info_.parameters[*info_.offsetsParameter].name));
  }
  line("const int64_t blocks = segmentedBlocks(n, m);");
  line("Cut* cuts = k_take<Cut>(launch, blocks + 1);");
  line("if (!cuts) return 1;");
  forEach("block", "blocks + 1");
  line("cuts[block] = cutBlock(block, n, m, start);");
  close("});");
}

void KernelText::take(const std::string& type, const std::string& name, const std::string& elements) {
  line(format("{0}* {1} = k_take<{0}>(launch, {2});", type, name, elements));
  line(format("if (!{}) return 1;", name));
}

/// Memory for what blocks and pieces tell each other, and for results by segment that stay in the kernel.
void KernelText::partials() {
  if (unbounded_) {
    line("const int64_t chunk = k_chunk(n), chunks = n > chunk ? (n + chunk - 1) / chunk : 1;");
    takeKeptArrays();
  }
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    const Soac& s = soac(b);
    const bool bySegment = s.space.segmented();
    if (s.kind == SoacKind::Reduce || s.kind == SoacKind::Scan) {
      for (size_t c = 0; c < width(b); ++c) {
        take(typeName(b, c), stem(b, c) + "_partial", bySegment ? "pieceSlots(n)" : "blocks");
      }
    } else if (s.kind == SoacKind::Filter || s.kind == SoacKind::Partition) {
      take("int64_t", stem(b, 0) + "_kept", survivorParts() + " + 1");
    }
  }
  takeResultsBySegment();
}

void KernelText::takeResultsBySegment() {
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    const Soac& s = soac(b);
    const bool ofSegments = s.kind == SoacKind::Reduce && s.space.segmented();
    if (!ofSegments && info_.bindings[b].role != BindingRole::Epilogue) continue;
    for (size_t c = 0; c < width(b); ++c)
      if (readLocally(s.results[c]) && !output(b, c)) take(typeName(b, c), stem(b, c) + "_result", "m");
  }
}

void KernelText::openBlocks() {
  open(format("k_parallel(launch, blocks, {}, [=](int64_t block) K_INLINE {{", kBlocksAtOnce));
}

/// What each block or piece carries on to the later ones, for the scans and filters of one level.
void KernelText::firstPass(uint32_t level) {
  const Indices bindings = neededBy(level);
  bool parts = segmented();  // only segments that are cut matter
  Indices passes;
  for (uint32_t b : bindings) {
    // What a scan of all elements carries on is that of the whole block.
    if (soac(b).kind == SoacKind::Scan && !soac(b).space.segmented()) parts = false;
    if (!isPass(soac(b).kind) || info_.bindings[b].level != level) continue;
    passes.push_back(b);
    if (soac(b).kind != SoacKind::Scan) parts = false;
  }
  line("");
  line(format("// What is carried from block to block{}.", level > 0 ? format(", level {}", level + 1) : ""));
  openBlocks();
  if (parts) {
    open("for (int part = 0; part < 2; ++part) {");
    line("int64_t begin, end, s_begin;");
    line("if (!k_part(cuts, block, part, m, start, begin, end, s_begin)) continue;");
    line("const int64_t s_end = s_begin + 1;");
  }
  blockBody(bindings, level, false, parts);
  if (parts) close();
  close("});");
  for (uint32_t b : passes) carries(b);
}

void KernelText::lastPass() {
  line("");
  line("// Results.");
  openBlocks();
  Indices all, reductions;
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    if (info_.bindings[b].role != BindingRole::Element) continue;
    all.push_back(b);
    if (soac(b).kind == SoacKind::Reduce && soac(b).space.segmented()) reductions.push_back(b);
  }
  blockBody(all, maxLevel_, true, false);
  const bool epilogue = info_.hasRole(BindingRole::Epilogue);
  if (epilogue) {
    openSegments();
    line("if (first >= begin && last <= end) epilogue(s);");
    close();
  }
  close("});");
  if (!reductions.empty() || epilogue) foldCutSegments(reductions, epilogue);
}

void KernelText::declareBlock() {
  if (!segmented()) {
    line("const int64_t begin = block * kBlock, end = k_least(begin + kBlock, n), count = end - begin;");
    line("(void)count;");
    return;
  }
  line("const int64_t begin = cuts[block].element, end = cuts[block + 1].element, count = end - begin;");
  line("const int64_t s_begin = cuts[block].segment, s_end = k_end_segment(cuts, block, m, start);");
  line("(void)count, (void)s_begin, (void)s_end;");
}

/// One block (or the part of it given by begin, end, s_begin, s_end): levels 0..upTo of the bindings.
void KernelText::blockBody(const Indices& bindings, uint32_t upTo, bool last, bool part) {
  if (part) {
    line("const int64_t count = end - begin;");
    line("(void)count, (void)s_begin, (void)s_end;");
  } else {
    declareBlock();
  }
  if (!fixedLength() && std::any_of(bindings.begin(), bindings.end(),
                                    [&](uint32_t b) { return last && lateNeedsSegments(b); })) {
    segmentsOfElements();
  }
  for (uint32_t level = 0; level <= upTo; ++level) {
    Indices here;
    for (uint32_t b : bindings)
      if (info_.bindings[b].level == level) here.push_back(b);
    if (here.empty()) continue;
    elementLoop(here, last);
    for (uint32_t b : here) {
      const bool bySegment = soac(b).space.segmented();
      switch (soac(b).kind) {
        case SoacKind::Reduce:
          if (last && bySegment) foldSegments(b);
          if (last && !bySegment) foldBlock(b);
          break;
        case SoacKind::Scan:
          if (last || level < upTo) {
            applyScan(b, last);
          } else {
            totals(b);
          }
          break;
        case SoacKind::Filter:
          if (last) {
            compact(b);
          } else if (level == upTo) {
            countSurvivors(b);
          }
          break;
        case SoacKind::Partition:
          if (last) {
            compactPartition(b);
          } else if (level == upTo) {
            countSurvivors(b);
          }
          break;
        default:
          break;
      }
    }
  }
}

/// Maps over segments, once the reductions of a segment are known.
void KernelText::epilogueFunction() {
  if (!info_.hasRole(BindingRole::Epilogue)) return;
  line("");
  open("const auto epilogue = [=](int64_t s) {");
  key_ = "k_epilogue + s";
  parameterNames_[0] = "s";
  ExpressionEmitter emitter(dialect_, indent_);
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    if (info_.bindings[b].role != BindingRole::Epilogue) continue;
    errorBinding_ = b;
    for (VarId v : info_.bindings[b].localReads) {
      if (!loadsOf_.contains(v)) continue;
      for (ExprRef load : loadsOf_.at(v)) emitter.define(load, resultBySegment(v) + "[s]");
    }
    const std::vector<std::string> texts = emitter.emit(eagerThunks(soac(b)));
    for (size_t c = 0; c < width(b); ++c) {
      const std::string to = resultBySegment(soac(b).results[c]);
      if (!to.empty()) emitter.statement(format("{}[s] = {};", to, texts[soac(b).effects.size() + c]));
    }
  }
  out_ += emitter.takeStatements();
  parameterNames_[0] = "i";
  close("};");
}

/// Flat reductions, counts, and Once.
void KernelText::finishing() {
  uint32_t target = 0;
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    const Soac& s = soac(b);
    if (s.kind == SoacKind::Reduce && !s.space.segmented()) finishFlatReduction(b);
    if (s.kind == SoacKind::Filter || s.kind == SoacKind::Partition) {
      if (const KernelOutput* o = output(b, 0)) {
        line(format("{}[{}] = {}_kept[{}];", o->name, s.space.segmented() ? "m" : "0", stem(b, 0),
                    survivorParts()));
      }
    }
    if (s.kind == SoacKind::Permute) {
      const KernelOutput* o = output(b, 0);
      if (!s.writesInAnyOrder() && o && !s.fill.empty() && s.fill[0].i != -1) {
        forEach("e", format("launch->targets[{}]", target));
        line(format("if ({0}[e] < 0) {0}[e] = {1};", o->name, typed(s.fill[0])));
        close("});");
      }
      ++target;
    }
  }
  if (!info_.hasRole(BindingRole::Finish)) return;
  line("");
  key_ = "k_finish";
  ExpressionEmitter emitter(dialect_, indent_);
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    if (info_.bindings[b].role != BindingRole::Finish) continue;
    errorBinding_ = b;
    const std::vector<std::string> texts = emitter.emit(eagerThunks(soac(b)));
    for (size_t c = 0; c < width(b); ++c) {
      const VarId v = soac(b).results[c];
      const std::string& text = texts[soac(b).effects.size() + c];
      emitter.statement(format("const {} {}_cell = {};", typeName(b, c), stem(b, c), text));
      if (const KernelOutput* o = info_.output(v)) {
        emitter.statement(format("*{} = {}_cell;", o->name, stem(b, c)));
      } else {
        emitter.statement(format("(void){}_cell;", stem(b, c)));
      }
    }
  }
  out_ += emitter.takeStatements();
}

}  // namespace kelpie::codegen::cpu
