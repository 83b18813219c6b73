#include "fusion/rules.h"

#include <algorithm>
#include <unordered_set>

#include "fusion/effects.h"
#include "fusion/sizes.h"
#include "ir/diagnostic.h"
#include "ir/lcu_names.h"

namespace kelpie::fusion {

using lcu::ExprArena;
using lcu::ExprKind;
using lcu::ExprRef;
using lcu::SoacKind;
using lcu::VarId;

namespace {

void require(bool condition, const char* rule) {
  if (!condition) throw InternalError(std::string("fusion rule does not apply: ") + rule);
}

/// The pull behind result `var` of the SOAC; null if it has none of that name or it is a count.
ExprRef pullOf(const Soac& soac, VarId var) {
  const size_t first = soac.kind == SoacKind::Filter ? 1 : 0;
  for (size_t k = first; k < soac.results.size(); ++k) {
    if (soac.results[k] == var) return soac.pull[k - first];
  }
  return nullptr;
}

bool isElement(ExprRef e) {
  return e->kind == ExprKind::Load && e->operands[0]->kind == ExprKind::Param && e->operands[0]->index == 0;
}

/// The consumer with the producer's pulls where it reads the producer's results.
Soac substituted(const Soac& producer, Soac consumer, lcu::Program& program) {
  changeExpressions(consumer, [&](ExprRef e) {
    return program.arena->rewrite(
        e, [&](ExprRef node) { return isElement(node) ? pullOf(producer, node->index) : nullptr; });
  });
  return consumer;
}

/// `e` where the condition holds, otherwise a value without meaning; nothing of `e` is evaluated then.
ExprRef guarded(ExprRef condition, ExprRef e, Scalar otherwise, lcu::Program& program) {
  return program.arena->select(condition, e, program.arena->constant(otherwise));
}

void addEffect(Soac& soac, ExprRef e) {
  if (e->canFail && !alwaysEvaluates(thunksOf(soac), e)) soac.effects.push_back(e);
}

Soac intoConsumer(const Soac& map, const Soac& consumer, lcu::Program& program) {
  Soac result = substituted(map, consumer, program);
  const bool anySpace = consumer.kind == SoacKind::Map || consumer.kind == SoacKind::Permute;
  if (anySpace && map.space.segmented() && !result.space.segmented()) result.space = map.space;
  // A filter's own thunk is evaluated for survivors only: what it alone has of the map may be too little.
  Soac evaluated = result;
  if (result.kind == SoacKind::Filter) evaluated.pull.clear();
  for (ExprRef e : thunksOf(map)) {
    if (!e->canFail || alwaysEvaluates(thunksOf(evaluated), e)) continue;
    result.effects.push_back(e);
    evaluated.effects.push_back(e);
  }
  return result;
}

/// The consumer of survivors, over the filter's elements: thunks substituted, effects guarded.
Soac lifted(const Soac& filter, const Soac& consumer, lcu::Program& program) {
  Soac result = substituted(filter, consumer, program);
  if (consumer.space.segmented()) {
    result.space = filter.space;
  } else {
    result.space = {lcu::SpaceKind::Flat, filter.space.extent, nullptr, 0, nullptr};
  }
  for (ExprRef& e : result.effects) e = guarded(filter.where, e, Scalar::zero(e->type), program);
  return result;
}

void append(std::vector<ExprRef>& to, const std::vector<ExprRef>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// What a and b have in common when they become one: names, thunks without operators.
Soac joined(const Soac& a, const Soac& b) {
  Soac result = a;
  append(result.pull, b.pull);
  append(result.effects, b.effects);
  result.results.insert(result.results.end(), b.results.begin(), b.results.end());
  if (!a.space.segmented() && b.space.segmented()) result.space = b.space;
  return result;
}

/// Operators side by side: the parameters of both are renumbered to the tuple of both.
lcu::Operator besides(const lcu::Operator& a, const lcu::Operator& b, ExprArena& arena) {
  const auto ka = static_cast<uint32_t>(a.result.size()), kb = static_cast<uint32_t>(b.result.size());
  const auto renumber = [&](ExprRef e, uint32_t k, uint32_t offset) {
    return arena.rewrite(e, [&](ExprRef node) -> ExprRef {
      if (node->kind != ExprKind::Param) return nullptr;
      const bool right = node->index >= k;
      return arena.param(right ? ka + kb + offset + (node->index - k) : offset + node->index, node->type);
    });
  };
  lcu::Operator result;
  for (ExprRef e : a.result) result.result.push_back(renumber(e, ka, 0));
  for (ExprRef e : b.result) result.result.push_back(renumber(e, kb, ka));
  result.identity = a.identity;
  result.identity.insert(result.identity.end(), b.identity.begin(), b.identity.end());
  return result;
}

}  // namespace

bool isHarmless(ExprRef e, const lcu::Space& space, const lcu::Program& program) {
  return !lcu::anyNode({e}, [&](ExprRef node) {
    if (node->kind == ExprKind::Check || lcu::isUnbounded(node)) return true;
    return node->kind == ExprKind::Load &&
           !(isElement(node) && program.vars[node->index].extent == space.extent);
  });
}

bool alwaysEvaluates(const std::vector<ExprRef>& roots, ExprRef e) {
  std::unordered_set<ExprRef> seen;
  std::vector<ExprRef> work = roots;
  while (!work.empty()) {
    const ExprRef node = work.back();
    work.pop_back();
    if (node == e) return true;
    if (e->canFail && !node->canFail) continue;  // whatever has `e` in it can fail, too
    if (!seen.insert(node).second) continue;
    for (size_t k = 0; k < lcu::strictOperands(node); ++k) work.push_back(node->operands[k]);
  }
  return false;
}

Soac mapMap(const Soac& map, const Soac& consumer, lcu::Program& program) {
  require(map.kind == SoacKind::Map && consumer.kind == SoacKind::Map, "MAP-MAP");
  return intoConsumer(map, consumer, program);
}
Soac mapReduce(const Soac& map, const Soac& consumer, lcu::Program& program) {
  require(map.kind == SoacKind::Map && consumer.kind == SoacKind::Reduce, "MAP-REDUCE");
  return intoConsumer(map, consumer, program);
}
Soac mapScan(const Soac& map, const Soac& consumer, lcu::Program& program) {
  require(map.kind == SoacKind::Map && consumer.kind == SoacKind::Scan, "MAP-SCAN");
  return intoConsumer(map, consumer, program);
}
Soac mapFilter(const Soac& map, const Soac& consumer, lcu::Program& program) {
  require(map.kind == SoacKind::Map && consumer.kind == SoacKind::Filter, "MAP-FILTER");
  return intoConsumer(map, consumer, program);
}
Soac mapPermute(const Soac& map, const Soac& consumer, lcu::Program& program) {
  require(map.kind == SoacKind::Map && consumer.kind == SoacKind::Permute, "MAP-PERMUTE");
  return intoConsumer(map, consumer, program);
}
Soac mapPartition(const Soac& map, const Soac& consumer, lcu::Program& program) {
  require(map.kind == SoacKind::Map && consumer.kind == SoacKind::Partition, "MAP-PARTITION");
  return intoConsumer(map, consumer, program);
}

Soac filterMap(const Soac& filter, const Soac& map, lcu::Program& program) {
  require(filter.kind == SoacKind::Filter && map.kind == SoacKind::Map, "FILTER-MAP");
  const Soac over = lifted(filter, map, program);
  Soac result = filter;
  append(result.pull, over.pull);
  append(result.effects, over.effects);
  result.results.insert(result.results.end(), map.results.begin(), map.results.end());
  return result;
}

Soac filterReduce(const Soac& filter, const Soac& reduce, lcu::Program& program) {
  require(filter.kind == SoacKind::Filter && reduce.kind == SoacKind::Reduce, "FILTER-REDUCE");
  Soac result = lifted(filter, reduce, program);
  for (size_t k = 0; k < result.pull.size(); ++k) {
    result.pull[k] = guarded(filter.where, result.pull[k], reduce.combine.identity[k], program);
  }
  return result;
}

Soac filterFilter(const Soac& filter, const Soac& second, lcu::Program& program) {
  require(filter.kind == SoacKind::Filter && second.kind == SoacKind::Filter, "FILTER-FILTER");
  Soac result = lifted(filter, second, program);
  result.where = isHarmless(result.where, result.space, program)
                     ? program.arena->conjunction(filter.where, result.where)
                     : guarded(filter.where, result.where, Scalar::ofBool(false), program);
  return result;
}

std::pair<Soac, Soac> filterScan(const Soac& filter, const Soac& scan, lcu::Program& program) {
  require(filter.kind == SoacKind::Filter && scan.kind == SoacKind::Scan && !scan.withTotal, "FILTER-SCAN");
  Soac whole = lifted(filter, scan, program);
  Soac survivors = filter;
  for (size_t k = 0; k < whole.pull.size(); ++k) {
    whole.pull[k] = guarded(filter.where, whole.pull[k], scan.combine.identity[k], program);
    lcu::VarInfo info = program.vars[scan.results[k]];
    info.extent = filter.space.extent;
    whole.results[k] = program.newVar(info);
    survivors.pull.push_back(program.arena->load(whole.results[k], info.type, program.arena->param(0)));
    survivors.results.push_back(scan.results[k]);
  }
  return {whole, survivors};
}

Soac filterCount(const Soac& filter, lcu::Program& program) {
  require(filter.kind == SoacKind::Filter, "FILTER-COUNT");
  ExprArena& arena = *program.arena;
  Soac result = filter;
  result.kind = SoacKind::Reduce;
  result.pull = {arena.select(filter.where, arena.index(1), arena.index(0))};
  for (ExprRef e : filter.pull) {
    if (e->canFail) addEffect(result, guarded(filter.where, e, Scalar::zero(e->type), program));
  }
  result.where = nullptr;
  result.combine = {{Scalar::ofInt(lcu::kIndex, 0)}, {arena.add(arena.param(0), arena.param(1))}};
  result.results = {filter.results[0]};
  return result;
}

Soac onceOnce(const Soac& producer, const Soac& consumer, lcu::Program& program) {
  require(producer.kind == SoacKind::Once && consumer.kind == SoacKind::Once, "ONCE-ONCE");
  Soac result = consumer;
  changeExpressions(result, [&](ExprRef e) {
    return program.arena->rewrite(e, [&](ExprRef node) {
      return node->kind == ExprKind::Host ? pullOf(producer, node->index) : nullptr;
    });
  });
  for (ExprRef e : thunksOf(producer)) addEffect(result, e);
  return result;
}

Soac mapWithMap(const Soac& a, const Soac& b, lcu::Program&) {
  require(a.kind == SoacKind::Map && b.kind == SoacKind::Map && a.space.extent == b.space.extent, "MAP+MAP");
  return joined(a, b);
}

Soac reduceWithReduce(const Soac& a, const Soac& b, lcu::Program& program) {
  require(a.kind == SoacKind::Reduce && b.kind == SoacKind::Reduce && a.space == b.space, "REDUCE+REDUCE");
  Soac result = joined(a, b);
  result.combine = besides(a.combine, b.combine, *program.arena);
  return result;
}

Soac scanWithScan(const Soac& a, const Soac& b, lcu::Program& program) {
  require(a.kind == SoacKind::Scan && b.kind == SoacKind::Scan && a.space == b.space &&
              a.inclusive == b.inclusive && a.backward == b.backward && a.withTotal == b.withTotal,
          "SCAN+SCAN");
  Soac result = joined(a, b);
  result.combine = besides(a.combine, b.combine, *program.arena);
  return result;
}

Soac onceWithOnce(const Soac& a, const Soac& b, lcu::Program&) {
  require(a.kind == SoacKind::Once && b.kind == SoacKind::Once, "ONCE+ONCE");
  return joined(a, b);
}

std::string ruleName(const Soac& producer, const Soac& consumer, bool vertical) {
  const bool segmented = producer.space.segmented() || consumer.space.segmented();
  return std::string(segmented ? "SEG-" : "") + std::string(toString(producer.kind)) +
         (vertical ? "-" : "+") + std::string(toString(consumer.kind));
}

}  // namespace kelpie::fusion
