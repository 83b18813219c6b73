// The loop over the elements of a block: the thunks of one level, and where their values go.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>

#include "codegen/cpu/kernel_text.h"
#include "codegen/work_ahead.h"

namespace kelpie::codegen::cpu {

using fmt::format;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

bool isName(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

/// Whether the position is that of the element, or lies by the same number behind it for all of them.
bool followsElements(ExprRef position) {
  if (isElement(position)) return true;
  if (position->kind != ExprKind::Op || position->op != ScalarOp::Add) return false;
  const ExprRef a = position->operands[0], b = position->operands[1];
  return (isElement(a) && !b->usesParam) || (isElement(b) && !a->usesParam);
}

/// Whether it is the same for all elements of a segment: it is computed in front of the loop over these, with
/// what it becomes a part of, and need not have a name (segment_scope.cpp).
bool isSameInSegment(ExprRef e) {
  return !lcu::anyNode({e}, [](ExprRef node) { return node->kind == ExprKind::Param && node->index != 1; });
}

}  // namespace

void KernelText::segmentsOfElements() {
  line("int64_t segment_of[kMaxBlock];");
  openSegments();
  line("for (int64_t e = from - begin; e < to - begin; ++e) segment_of[e] = s;");
  close();
}

void KernelText::openSegments() {
  open("for (int64_t s = s_begin, next = s < s_end ? start(s) : 0; s < s_end; ++s) {");
  line("const int64_t first = next, last = next = start(s + 1);");
  line("const int64_t from = first < begin ? begin : first, to = k_least(last, end);");
  line("(void)from, (void)to;");
}

void KernelText::declareIndices(bool usesSegment, bool usesPosition) {
  if (const auto length = fixedLength()) {  // unsigned: a shift where it is a power of two
    line(format("const int64_t s = static_cast<uint64_t>(i) / {};", *length));
    if (usesPosition) line(format("const int64_t p = i - s * {};", *length));
    return;
  }
  if (usesSegment || usesPosition) line("const int64_t s = segment_of[e];");
  if (usesPosition) line("const int64_t p = i - start(s);");
}

void KernelText::defineLocalReads(ExpressionEmitter& emitter, uint32_t b) const {
  for (VarId v : info_.bindings[b].localReads) {
    auto it = loadsOf_.find(v);
    if (it == loadsOf_.end() || !needsTile(v)) continue;
    const uint32_t producer = producer_.at(v).first;
    const bool madeInThisLoop = soac(producer).kind == SoacKind::Map &&
                                info_.bindings[producer].level == info_.bindings[b].level &&
                                soac(b).kind != SoacKind::Filter;
    if (madeInThisLoop) continue;
    for (ExprRef load : it->second) emitter.define(load, format("{}[e]", tileOf(v)));
  }
}

/// Finds the pulls of filters that the loop over the elements computes anyway.
void KernelText::findTiledPulls(const Indices& bindings) {
  std::vector<ExprRef> roots;
  bool filters = false;
  for (uint32_t b : bindings) {
    const auto thunks = eagerThunks(soac(b));
    roots.insert(roots.end(), thunks.begin(), thunks.end());
    filters |= soac(b).kind == SoacKind::Filter;
  }
  if (!filters) return;
  std::unordered_set<ExprRef> computed;
  std::unordered_map<ExprRef, std::pair<uint32_t, size_t>> keepers;
  const Schedule schedule = scheduleExpressions(roots);
  for (const auto& step : schedule.blocks[0].steps) computed.insert(step.node);
  for (uint32_t b : bindings) {
    if (soac(b).kind != SoacKind::Filter) continue;
    for (size_t c = 0; c < width(b); ++c) {
      ExprRef e = soac(b).pull[c];
      // An element of an array that is there anyway is read again more cheaply than it is kept.
      const bool element =
          e->kind == ExprKind::Load && !producer_.contains(e->index) && followsElements(e->operands[0]);
      const bool there = computed.contains(e->kind == ExprKind::Project ? e->operands[0] : e);
      if (there && !element && !isSameInSegment(e))
        tiledPulls_[{b, c}] = keepers.try_emplace(e, b, c).first->second;
    }
  }
}

/// Whether the loop over the survivors of a filter asks for segments or positions in them.
bool KernelText::lateNeedsSegments(uint32_t b) const {
  if (soac(b).kind != SoacKind::Filter || !segmented()) return false;
  std::vector<ExprRef> roots;
  for (size_t c = 0; c < width(b); ++c)
    if (!tiledPulls_.contains({b, c})) roots.push_back(soac(b).pull[c]);
  bool needs = false;
  lcu::forEachNode(roots, [&](ExprRef e) { needs |= e->kind == ExprKind::Param && e->index != 0; });
  return needs;
}

/// Whether the loop over the elements keeps the pull, for this filter and all that have the same.
bool KernelText::keepsPull(uint32_t b, size_t c) const {
  const auto tiled = tiledPulls_.find({b, c});
  return tiled != tiledPulls_.end() && tiled->second == tiled->first;
}

bool KernelText::needsValues(uint32_t b, size_t c) const {
  const Soac& binding = soac(b);
  if (readsValuesDirectly(b, c)) return false;
  const bool collects = binding.kind == SoacKind::Reduce || binding.kind == SoacKind::Scan;
  return collects || binding.kind == SoacKind::Partition || keepsPull(b, c) ||
         (binding.kind == SoacKind::Map && needsTile(binding.results[c]));
}

void KernelText::declareDirectValues(uint32_t b) {
  for (size_t c = 0; c < width(b); ++c) {
    if (!readsValuesDirectly(b, c)) continue;
    const VarId v = soac(b).pull[c]->index;
    const std::string from = producer_.contains(v)
                                 ? tileOf(v)
                                 : format("{} + begin", info_.parameter(ParameterKind::Array, v)->name);
    line(format("const {}* {}_values = {};", typeName(b, c), stem(b, c), from));
  }
}

void KernelText::declareTiles(const Indices& bindings) {
  for (uint32_t b : bindings) {
    const bool keeps = soac(b).kind == SoacKind::Filter || soac(b).kind == SoacKind::Partition;
    if (keeps) line(format("bool {}_keep[{}];", stem(b, 0), blockSize()));
    for (size_t c = 0; c < width(b); ++c) {
      if (needsValues(b, c)) line(format("{} {}_values[{}];", typeName(b, c), stem(b, c), blockSize()));
    }
    declareDirectValues(b);
  }
}

/// What one element of the block costs: the thunks of the bindings, and where their values go.
KernelText::ElementStatements KernelText::elementStatements(const Indices& bindings, bool last,
                                                            ExpressionEmitter& emitter) {
  ElementStatements result;
  key_ = std::string("i");
  auto store = [&](const std::string& to, const std::string& text) {
    emitter.statement(format("{} = {};", to, text));
  };
  for (const WorkAhead& work : longWorkAhead(kernel_, bindings)) {
    errorBinding_ = work.binding;
    emitter.emit(work.values);
  }
  for (uint32_t b : bindings) {
    const Soac& binding = soac(b);
    errorBinding_ = b;
    for (VarId v : info_.bindings[b].localReads) {
      // What this loop makes is read by name; what an earlier one made, from its array.
      const uint32_t producer = producer_.at(v).first;
      const bool sameLoop =
          soac(producer).kind == SoacKind::Map && info_.bindings[producer].level == info_.bindings[b].level;
      if (sameLoop || !needsTile(v)) continue;
      for (ExprRef load : loadsOf_.at(v)) emitter.define(load, format("{}[e]", tileOf(v)));
    }
    const std::vector<std::string> texts = emitter.emit(eagerThunks(binding));
    size_t next = binding.effects.size();
    switch (binding.kind) {
      case SoacKind::Map:
        for (size_t c = 0; c < width(b); ++c) {
          const VarId v = binding.results[c];
          std::string text = texts[next + c];
          const KernelOutput* o = last ? output(b, c) : nullptr;
          if (readLocally(v) && !isName(text)) {
            const std::string name = emitter.freshName(identifier(program_.vars.at(v).name));
            emitter.statement(format("const {} {} = {};", typeName(b, c), name, text));
            text = name;
          }
          if (readLocally(v) && loadsOf_.contains(v)) {
            for (ExprRef load : loadsOf_.at(v)) emitter.define(load, text);
          }
          if (o) store(format("{}[i]", o->name), text);
          if (needsTile(v)) store(format("{}[e]", tileOf(v)), text);
        }
        break;
      case SoacKind::Filter:
        store(format("{}_keep[e]", stem(b, 0)), texts[next]);
        break;
      case SoacKind::Partition:
        store(format("{}_keep[e]", stem(b, 0)), texts[next++]);
        for (size_t c = 0; c < width(b); ++c) store(format("{}_values[e]", stem(b, c)), texts[next + c]);
        break;
      case SoacKind::Permute: {
        if (!last) break;
        const std::string when = binding.where ? format("if ({}) ", texts[next++]) : "";
        const std::string position = emitter.freshName("destination");
        emitter.statement(format("const int64_t {} = {};", position, texts[next++]));
        for (size_t c = 0; c < width(b); ++c) {
          const KernelOutput* o = output(b, c);
          if (!o) continue;
          if (binding.writesInAnyOrder()) {
            result.races |= !binding.unique;
            emitter.statement(format("{}{}[{}] = {};", when, o->name, position, texts[next + c]));
          } else {
            result.races = true;
            emitter.statement(
                format("{}k_atomic_max(&{}[{}], {});", when, o->name, position, texts[next + c]));
          }
        }
        break;
      }
      default:
        for (size_t c = 0; c < width(b); ++c) {
          if (!readsValuesDirectly(b, c)) store(format("{}_values[e]", stem(b, c)), texts[next + c]);
        }
    }
  }
  for (uint32_t b : bindings) {
    for (size_t c = 0; c < width(b) && last; ++c) {
      if (keepsPull(b, c)) store(format("{}_values[e]", stem(b, c)), emitter.atomic(soac(b).pull[c]));
    }
  }
  result.text = emitter.takeStatements();
  return result;
}

/// The length of every segment, where the text of the kernel can say it.
std::optional<int64_t> KernelText::fixedLength() const {
  const lcu::Space& space = info_.space;
  if (space.kind != lcu::SpaceKind::Regular || space.length->kind != ExprKind::Constant) return {};
  const int64_t length = space.length->constant.i;
  return length > 0 ? std::optional(length) : std::nullopt;
}

/// The thunks of one level, for all elements of the block. When they look at segments there is a loop over
/// the segments, with what depends on the segment alone in front of a loop over its elements. That loop is
/// vectorised where segments are long; where they are short it is not, for starting it would cost more than
/// it saves; and it is unrolled where the text knows that all segments have one short length.
void KernelText::elementLoop(const Indices& bindings, bool last) {
  bool usesSegment = false, usesPosition = false;
  for (uint32_t b : bindings) {
    usesSegment |= info_.bindings[b].usesSegment;
    usesPosition |= info_.bindings[b].usesPosition;
  }
  if (!unbounded_) declareTiles(bindings);
  ExpressionEmitter probe(dialect_, 0);
  if (elementStatements(bindings, last, probe).text.empty()) return;
  const auto statements = [&](ExpressionEmitter& emitter, bool vectorised, const auto& openLoop) {
    const ElementStatements here = elementStatements(bindings, last, emitter);
    if (vectorised && !here.races) line("#pragma GCC ivdep");
    openLoop();
    line("const int64_t e = i - begin;");
    line("(void)e;");
    out_ += here.text;
    close();
  };
  if (!segmented() || !(usesSegment || usesPosition)) {
    ExpressionEmitter emitter(dialect_, indent_ + 2);
    statements(emitter, true, [&] { open("for (int64_t i = begin; i < end; ++i) {"); });
    return;
  }
  constexpr int kLongSegments = 8;
  const std::optional<int64_t> fixed = fixedLength();
  if (fixed && *fixed < kLongSegments && !unbounded_) {  // no block cuts a segment
    open(format("for (int64_t s = begin / {0}; s < end / {0}; ++s) {{", *fixed));
    ExpressionEmitter inner(dialect_, indent_ + 2);
    out_ += segmentScope(bindings, indent_, inner);
    statements(inner, false, [&] {
      line(format("#pragma GCC unroll {}", *fixed));
      open(format("for (int64_t p = 0; p < {}; ++p) {{", *fixed));
      line(format("const int64_t i = s * {} + p;", *fixed));
    });
    close();
    return;
  }
  const auto bySegments = [&](bool vectorised) {
    openSegments();
    line("if (from >= to) continue;");
    ExpressionEmitter inner(dialect_, indent_ + 2);
    out_ += segmentScope(bindings, indent_, inner);
    statements(inner, vectorised, [&] {
      open("for (int64_t i = from; i < to; ++i) {");
      if (!vectorised) line("k_one_by_one(i);");
      if (usesPosition) line("const int64_t p = i - first;");
    });
    close();
  };
  if (unbounded_ || (fixed && *fixed >= kLongSegments)) return bySegments(true);
  open(format("if (count >= {} * (s_end - s_begin)) {{", kLongSegments));
  bySegments(true);
  indent_ -= 2;
  open("} else {");
  bySegments(false);
  close();
}

}  // namespace kelpie::codegen::cpu
