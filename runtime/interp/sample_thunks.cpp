// Thunks evaluated for some of a launch's elements (codegen/thunk_sample.h), binding by binding in turns.
#include <cmath>

#include "runtime/interp/sampled_binding.h"

namespace kelpie::runtime {

namespace {

/// Steps that are calls of recursions.
size_t callsOf(const Soac& soac) {
  size_t calls = 0;
  for (const auto& thunks : {codegen::eagerThunks(soac), codegen::lateThunks(soac)})
    for (const codegen::ScheduleBlock& block : codegen::scheduleExpressions(thunks).blocks)
      for (const codegen::ScheduleStep& step : block.steps) calls += step.node->kind == lcu::ExprKind::Call;
  return calls;
}

}  // namespace

std::vector<uint32_t> LaunchEvaluation::producersOf(uint32_t b) const {
  const auto isEpilogue = [&](uint32_t k) { return info_.bindings[k].role == BindingRole::Epilogue; };
  std::vector<uint32_t> producers;
  for (uint32_t other = 0; other < b; ++other) {
    const Soac& soac = kernel_.bindings[other];
    const bool ofElement =
        (soac.kind == SoacKind::Map || soac.kind == SoacKind::Scan) && isEpilogue(other) == isEpilogue(b);
    const bool ofSegment = soac.kind == SoacKind::Reduce && soac.space.segmented() && isEpilogue(b);
    if ((ofElement || ofSegment) && readsFrom(b, soac)) producers.push_back(other);
  }
  return producers;
}

bool LaunchEvaluation::tells(uint32_t b) const {
  const KernelCode::Binding& code = code_.bindings()[b];
  const auto any = [](const ExpressionCode& thunks) {
    return thunks.blockCount() > 1 || !thunks.gathers().empty() || !thunks.divisions().empty();
  };
  return any(code.thunks) || any(code.late) || kernel_.bindings[b].kind == SoacKind::Permute;
}

bool LaunchEvaluation::canBeSampled(uint32_t b) const {
  if (info_.bindings[b].role == BindingRole::Finish || goesByScans(b)) return false;
  const std::vector<uint32_t> producers = producersOf(b);
  for (uint32_t other = 0; other < b; ++other)
    if (readsFrom(b, kernel_.bindings[other]) &&
        std::find(producers.begin(), producers.end(), other) == producers.end())
      return false;
  return std::all_of(producers.begin(), producers.end(),
                     [this](uint32_t producer) { return canBeSampled(producer) && !loadsByScans(producer); });
}

std::function<bool(lcu::ExprRef)> LaunchEvaluation::dependsOnScans(uint32_t b) const {
  std::vector<VarId> scanned;  // and what others make of that
  const auto isScanned = [&](VarId v) {
    return std::find(scanned.begin(), scanned.end(), v) != scanned.end();
  };
  for (uint32_t other = 0; other < b; ++other) {
    const Soac& soac = kernel_.bindings[other];
    const std::vector<VarId>& reads = info_.bindings[other].localReads;
    if (soac.kind == SoacKind::Scan || std::any_of(reads.begin(), reads.end(), isScanned))
      scanned.insert(scanned.end(), soac.results.begin(), soac.results.end());
  }
  return [scanned = std::move(scanned)](lcu::ExprRef thunk) {
    return thunk && !scanned.empty() && lcu::anyNode({thunk}, [&](lcu::ExprRef e) {
             return e->kind == lcu::ExprKind::Load &&
                    std::find(scanned.begin(), scanned.end(), e->index) != scanned.end();
           });
  };
}

bool LaunchEvaluation::goesByScans(uint32_t b) const {
  const auto ofScans = dependsOnScans(b);
  const Soac& soac = kernel_.bindings[b];
  if (ofScans(soac.where) || ofScans(soac.destination)) return true;
  const std::vector<lcu::ExprRef> thunks = codegen::thunksOf(soac);
  const bool loops = lcu::anyNode(thunks, lcu::isUnbounded);
  return lcu::anyNode(thunks, [&](lcu::ExprRef e) {
    switch (e->kind) {
      case lcu::ExprKind::If:
        return ofScans(e->operands[0]);
      case lcu::ExprKind::Check:  // loops end behind one that fails
        return loops && ofScans(e->operands[0]);
      case lcu::ExprKind::Loop:
      case lcu::ExprKind::Recursion:
        return ofScans(e);
      default:
        return false;
    }
  });
}

bool LaunchEvaluation::loadsByScans(uint32_t b) const {
  const auto ofScans = dependsOnScans(b);
  return lcu::anyNode(codegen::thunksOf(kernel_.bindings[b]), [&](lcu::ExprRef e) {
    return e->kind == lcu::ExprKind::Load && ofScans(e->operands[0]);
  });
}

bool LaunchEvaluation::readsFrom(uint32_t b, const Soac& producer) const {
  const std::vector<VarId>& reads = info_.bindings[b].localReads;
  return std::any_of(producer.results.begin(), producer.results.end(),
                     [&](VarId v) { return std::find(reads.begin(), reads.end(), v) != reads.end(); });
}

codegen::ThunkSample LaunchEvaluation::sample(std::span<const size_t> bytes, SampledMemory* memory,
                                              codegen::Streams streams, std::chrono::milliseconds most) {
  bindParameters();
  makeCounters();
  for (const Soac& soac : kernel_.bindings)
    for (VarId v : soac.results) arrays_.try_emplace(v, nullptr);
  std::vector<std::unique_ptr<SampledBinding>> bindings(kernel_.bindings.size());
  std::vector<SampledBinding*> open;
  for (uint32_t b = 0; b < bindings.size(); ++b) {
    if (!tells(b) || !canBeSampled(b)) continue;
    bindings[b] = std::make_unique<SampledBinding>(*this, b, bytes, memory, streams);
    open.push_back(bindings[b].get());
  }
  // In turns, so that what one of them does not need is there for the others.
  for (const Deadline end = std::chrono::steady_clock::now() + most; !open.empty();) {
    const auto least = std::min_element(
        open.begin(), open.end(), [](const auto* a, const auto* b) { return a->seconds() < b->seconds(); });
    const auto left = std::max(end - std::chrono::steady_clock::now(), Deadline::duration(0));
    if (!(*least)->advance(std::chrono::steady_clock::now() + left / static_cast<int64_t>(open.size())))
      open.erase(least);
  }
  codegen::ThunkSample sample;
  for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
    const KernelCode::Binding& code = code_.bindings()[b];
    const size_t blocks = sample.entered.size() + code.thunks.blockCount() + code.late.blockCount();
    const size_t positions = sample.positions.size() + code.thunks.gathers().size() +
                             code.late.gathers().size() + (kernel_.bindings[b].kind == SoacKind::Permute);
    const size_t divisions =
        sample.divisions.size() + code.thunks.divisions().size() + code.late.divisions().size();
    const size_t calls = sample.calls.size() + callsOf(kernel_.bindings[b]);
    if (bindings[b]) bindings[b]->appendTo(sample);
    sample.entered.resize(blocks);
    sample.inStep.resize(blocks);
    sample.slowest.resize(blocks);
    sample.ofFour.resize(blocks);
    sample.positions.resize(positions);
    sample.divisions.resize(divisions);
    sample.calls.resize(calls);
  }
  return sample;
}

codegen::ThunkSample sampleThunks(const KernelCode& code, const LaunchRequest& request,
                                  std::span<const size_t> bytes, SampledMemory* memory,
                                  codegen::Streams streams, std::chrono::milliseconds most) {
  LaunchWork work;
  return LaunchEvaluation(code, request, work, std::nullopt).sample(bytes, memory, streams, most);
}

}  // namespace kelpie::runtime
