#include "runtime/run_recorder.h"

#include <fmt/format.h>

#include <algorithm>

namespace kelpie::runtime {

namespace {

int64_t blocksOf(const std::vector<codegen::CompiledPass>& passes) {
  int64_t blocks = 0;
  for (const codegen::CompiledPass& pass : passes) blocks += pass.blocks;
  return blocks;
}

template <typename Numbers>
void addTo(std::vector<uint64_t>& sums, const Numbers& numbers) {
  sums.resize(std::max(sums.size(), numbers.size()));
  for (size_t k = 0; k < numbers.size(); ++k) sums[k] += static_cast<uint64_t>(numbers[k]);
}

}  // namespace

RunRecorder::RunRecorder(RunContext& context, const Plan& plan)
    : context_(context), plan_(plan), timing_(context.options.timeKernels) {
  for (const auto& k : plan.kernels.kernels) {
    KernelStatistics& s = context_.statistics.kernels.emplace_back();
    s.name = k.kernel->name;
    if (!k.kernel->bindings.empty()) s.span = k.kernel->bindings[0].span;
    if (timing_) accounts_.emplace_back(k, context_.program);
  }
  if (timing_) context_.target.timeLaunches(true);
}

RunRecorder::~RunRecorder() {
  if (!timing_) return;
  const std::vector<double> seconds = context_.target.launchSeconds();
  for (size_t k = 0; k < std::min(seconds.size(), timed_.size()); ++k)
    context_.statistics.kernels[timed_[k]].seconds += seconds[k];
  context_.target.timeLaunches(false);
}

void RunRecorder::launched(uint32_t kernel, const codegen::LaunchExtents& extents,
                           std::span<const lcu::VarId> shortArrays, const std::vector<DeviceRef>& results) {
  if (const LaunchWork* counted = context_.target.lastWork()) {
    ++context_.statistics.kernels[kernel].evaluated;
    record(kernel, extents, *counted);
  } else if (timing_) {
    const auto kept = [&](lcu::VarId counter) {
      return peek(plan_.kernels.kernels[kernel].info, extents, results, counter);
    };
    record(kernel, extents, accounts_[kernel].of(extents, kept, shortArrays));
    std::vector<codegen::CompiledPass>& most = context_.statistics.kernels[kernel].passes;
    std::vector<codegen::CompiledPass> passes = context_.target.lastPasses();
    if (blocksOf(passes) > blocksOf(most)) most = std::move(passes);
  } else {
    record(kernel, extents, LaunchWork());
  }
}

void RunRecorder::graded(const lcu::Stmt* stmt, const codegen::LaunchExtents& extents, ScalarType keys) {
  const auto& grade = std::get<lcu::Grade>(stmt->node);
  LaunchWork least;  // keys once, results once
  least.elements = static_cast<uint64_t>(extents.elements);
  least.bytesRead = least.elements * static_cast<uint64_t>(sizeOf(keys));
  least.bytesWritten = ((grade.order ? 1 : 0) + (grade.ranks ? 1 : 0)) * least.elements * sizeof(int64_t) +
                       (grade.sorted ? least.elements * static_cast<uint64_t>(sizeOf(keys)) : 0);
  record(placeOf(stmt, "grade"), extents, least);
}

void RunRecorder::drew(const lcu::Stmt* stmt, int64_t draws, ScalarType type) {
  codegen::LaunchExtents extents;
  extents.elements = draws;
  LaunchWork work;
  work.elements = static_cast<uint64_t>(draws);
  work.bytesWritten = work.elements * static_cast<uint64_t>(sizeOf(type));
  record(placeOf(stmt, "random_draws"), extents, work);
}

size_t RunRecorder::placeOf(const lcu::Stmt* stmt, const std::string& name) {
  const auto [known, isNew] = others_.try_emplace(stmt, context_.statistics.kernels.size());
  if (isNew) {
    KernelStatistics& s = context_.statistics.kernels.emplace_back();
    const int number = ++named_[name];
    s.name = number == 1 ? name : fmt::format("{}_{}", name, number);
    s.span = stmt->span;
  }
  return known->second;
}

void RunRecorder::record(size_t kernel, const codegen::LaunchExtents& extents, const LaunchWork& work) {
  KernelStatistics& s = context_.statistics.kernels[kernel];
  ++context_.statistics.launches;
  ++s.launches;
  s.elements += static_cast<uint64_t>(extents.elements);
  s.segments += static_cast<uint64_t>(extents.segments);
  s.work.elements += work.elements;
  s.work.bytesRead += work.bytesRead;
  s.work.bytesWritten += work.bytesWritten;
  addTo(s.work.survivors, work.survivors);
  addTo(s.work.entered, work.entered);
  addTo(s.targets, extents.targets);
  if (timing_) timed_.push_back(kernel);
  if (keepsJournal_)
    journal_.push_back(
        {kernel, static_cast<uint64_t>(extents.elements), static_cast<uint64_t>(extents.segments)});
}

void RunRecorder::takeBack(size_t journal) {
  for (; journal_.size() > journal; journal_.pop_back()) {
    const Entry& entry = journal_.back();
    KernelStatistics& s = context_.statistics.kernels[entry.kernel];
    --context_.statistics.launches;
    --s.launches;
    s.elements -= entry.elements;
    s.segments -= entry.segments;
  }
}

/// What a filter kept; a wait that a run without timing does not have is not counted. Without the output
/// nobody needs what it kept.
int64_t RunRecorder::peek(const codegen::KernelInfo& info, const codegen::LaunchExtents& extents,
                          const std::vector<DeviceRef>& results, lcu::VarId counter) {
  const codegen::KernelOutput* o = info.output(counter);
  if (!o) return extents.elements;
  const auto last = static_cast<size_t>(codegen::capacity(*o, extents) - 1);
  const DeviceValue& v = *results[static_cast<size_t>(o - info.outputs.data())];
  alignas(8) std::byte bytes[8] = {};
  const auto width = static_cast<size_t>(sizeOf(v.type));
  context_.check(
      context_.target.download(bytes, static_cast<std::byte*>(v.buffer->pointer()) + last * width, width));
  return loadElement(v.type, bytes, 0).i;
}

}  // namespace kelpie::runtime
