#include "runtime/launcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/short_arrays.h"

namespace kelpie::runtime {

using codegen::ParameterKind;

namespace {

/// Arrays that nothing in the program names are called so ("r", and "r_v16" where there are more).
std::string nameInMessages(const std::string& name) {
  return name == "r" || name.starts_with("r_v") ? "the result" : name;
}

class LaunchScratch final : public Scratch {
 public:
  explicit LaunchScratch(const RunContext& context) : context_(context) {}
  DevicePointer take(size_t bytes) override {
    BufferRef b = context_.allocateBytes(bytes);
    if (!b) {
      refused_ = bytes;
      return nullptr;
    }
    buffers_.push_back(b);
    return b->pointer();
  }
  /// Bytes that there was no memory for; 0: there was.
  size_t refused() const { return refused_; }

 private:
  const RunContext& context_;
  std::vector<BufferRef> buffers_;
  size_t refused_ = 0;
};

/// A launch that did not happen ends the run, unless the program had ended before: it may have been foretold
/// (run_ahead.h), or come behind an error that the host has not looked for.
void check(RunContext& context, const Failure& failure, const LaunchScratch& scratch,
           const std::string& what) {
  if (!failure) return;
  if (scratch.refused() > 0)
    context.outOfMemory(fmt::format("{} needs {} bytes of temporary memory", what, scratch.refused()));
  context.synchronise();
  context.check(failure);
}

bool isOutOfMemory(const Failure& failure) {
  return failure && failure->find("out of memory") != std::string::npos;
}

/// Whether a launch over nothing still has something to write or to check.
bool hasWork(const codegen::KernelInfo& info, const codegen::LaunchExtents& e) {
  if (e.elements > 0 || info.hasRole(codegen::BindingRole::Finish)) return true;
  if (e.segments > 0 && info.hasRole(codegen::BindingRole::Epilogue)) return true;
  return std::any_of(info.outputs.begin(), info.outputs.end(),
                     [&](const codegen::KernelOutput& o) { return codegen::capacity(o, e) > 0; });
}

}  // namespace

bool Launcher::mayCount(const DeviceValue& counter) const {
  // More elements take longer than a wait does, and what may turn out to be empty is memory.
  constexpr int64_t kMost = int64_t{1} << 20;
  return counter.most && *counter.most <= kMost && !counter.known(0) && context_.target.canCount() &&
         !context_.options.timeKernels && !context_.options.sampleThunks;
}

void Launcher::launch(const PlanInstruction& i, const codegen::LaunchExtents& extents,
                      const DeviceRef& counter) {
  const codegen::KernelInfo& info = plan_.kernels.kernels[i.target].info;
  findArguments(i, info);
  allocateResults(i, info, extents, counter);
  if (hasWork(info, extents)) {
    LaunchScratch scratch(context_);
    LaunchRequest request{
        &plan_.kernels, i.target, extents, arguments_, outputs_, &scratch, context_.options.interrupt};
    request.lengths = lengths_;
    findShortArrays(i, info);
    request.shortArrays = shortArrays_;
    if (counter) request.counted = counter->buffer->pointer();
    request.extents.gatheredBytes = gatheredBytes(i, info);
    if (context_.options.sampleThunks) sample(i, request);
    context_.pending = true;
    Failure failure = context_.target.launch(request);
    if (isOutOfMemory(failure) && scratch.refused() == 0) {
      // What a launch needs beside buffers the driver has, which others had before.
      context_.giveBackUnused();
      failure = context_.target.launch(request);
    }
    check(context_, failure, scratch, "the kernel " + plan_.kernels.kernels[i.target].kernel->name);
    recorder_.launched(i.target, extents, shortArrays_, results_);
  } else {
    recorder_.leftOut(i.target);
  }
  for (size_t k = 0; k < results_.size(); ++k)
    if (i.results[k] != kNoSlot) stack_.value(i.results[k]) = {{}, std::move(results_[k])};
  results_.clear();
}

int64_t Launcher::bytesOf(const PlanInstruction& i, size_t parameter) {
  const DeviceValue& array = *stack_.value(i.operands[parameter]).device;
  return array.count.value_or(array.capacity) * sizeOf(array.type);
}

int64_t Launcher::gatheredBytes(const PlanInstruction& i, const codegen::KernelInfo& info) {
  int64_t bytes = 0;
  for (size_t k = 0; k < info.parameters.size(); ++k)
    if (info.parameters[k].gathered) bytes += bytesOf(i, k);
  return bytes;
}

bool Launcher::isShort(const PlanInstruction& i, uint32_t output,
                       const codegen::LaunchExtents& extents) const {
  const KernelEntry& entry = plan_.kernels.kernels[i.target];
  const codegen::KernelOutput& o = entry.info.outputs[output];
  if (!context_.target.storesShort() ||
      !std::binary_search(entry.shortArrays.begin(), entry.shortArrays.end(), o.var))
    return false;
  // A filter keeps no more than all; what a scan adds up it looks at itself.
  return entry.kernel->bindings[o.binding].kind == lcu::SoacKind::Scan
             ? !context_.longPositions
             : extents.elements <= codegen::kLongestShort;
}

void Launcher::findShortArrays(const PlanInstruction& i, const codegen::KernelInfo& info) {
  shortArrays_.clear();
  if (!context_.target.storesShort()) return;
  for (size_t k = 0; k < info.parameters.size(); ++k) {
    const auto& p = info.parameters[k];
    if (p.kind == ParameterKind::Array && p.type == ScalarType::Int64 &&
        stack_.value(i.operands[k]).device->type == ScalarType::Int32)
      shortArrays_.push_back(p.var);
  }
  for (size_t k = 0; k < results_.size(); ++k)
    if (results_[k]->type != info.outputs[k].type) shortArrays_.push_back(info.outputs[k].var);
  std::sort(shortArrays_.begin(), shortArrays_.end());
}

void Launcher::sample(const PlanInstruction& i, LaunchRequest request) {
  const codegen::KernelInfo& info = plan_.kernels.kernels[i.target].info;
  std::vector<size_t> bytes;
  std::vector<DeviceRef> widened;  // samples know no short arrays
  std::vector<KernelArgument> arguments(request.arguments.begin(), request.arguments.end());
  for (size_t k = 0; k < info.parameters.size(); ++k) {
    const bool array = info.parameters[k].kind == ParameterKind::Array;
    bytes.push_back(array ? static_cast<size_t>(bytesOf(i, k)) : 0);
    if (!array) continue;
    const DeviceRef& own = stack_.value(i.operands[k]).device;
    if (own->type == info.parameters[k].type) continue;
    widened.push_back(context_.widened(own, info.parameters[k].type));
    arguments[k].pointer = widened.back()->buffer->pointer();
    bytes[k] *= 2;
  }
  request.arguments = arguments;
  sampler_.sample(request, bytes);
}

void Launcher::findArguments(const PlanInstruction& i, const codegen::KernelInfo& info) {
  // Sizes first: they may move survivors to smaller buffers.
  for (size_t k = 0; k < info.parameters.size(); ++k)
    if (info.parameters[k].kind == ParameterKind::Size) context_.countOf(*stack_.value(i.operands[k]).device);
  for (const auto& onto : i.onto) {  // to widen an array takes its size
    DeviceValue& base = *stack_.value(onto.base).device;
    if (base.type != info.outputs[onto.output].type) context_.countOf(base);
  }
  arguments_.clear();
  lengths_.clear();
  for (size_t k = 0; k < info.parameters.size(); ++k) {
    const auto& p = info.parameters[k];
    PlanValue& v = stack_.value(i.operands[k]);
    KernelArgument a{};
    switch (p.kind) {
      case ParameterKind::Array:
      case ParameterKind::Cell:
        a.pointer = v.device->buffer->pointer();
        break;
      case ParameterKind::Size:
        a.integer = *v.device->count;
        break;
      case ParameterKind::Scalar:
        context_.bring(v);
        if (isFloat(p.type)) {
          a.real = v.scalar.f;
        } else {
          a.integer = v.scalar.i;
        }
    }
    arguments_.push_back(a);
    lengths_.push_back(p.kind == ParameterKind::Array ? v.device->count.value_or(0) : 0);
  }
}

void Launcher::allocateResults(const PlanInstruction& i, const codegen::KernelInfo& info,
                               const codegen::LaunchExtents& extents, const DeviceRef& counter) {
  results_.assign(info.outputs.size(), nullptr);
  outputs_.clear();
  for (const auto& group : i.joint) allocateTogether(group, info, extents);
  for (const auto& onto : i.onto) placeOnto(onto, info.outputs[onto.output], extents);
  for (size_t k = 0; k < results_.size(); ++k) {
    const auto& o = info.outputs[k];
    if (!results_[k]) {
      const ScalarType type = isShort(i, static_cast<uint32_t>(k), extents) ? ScalarType::Int32 : o.type;
      results_[k] = context_.allocate(type, codegen::capacity(o, extents), nameInMessages(o.name));
    }
    outputs_.push_back(results_[k]->buffer->pointer());
  }
  for (size_t k = 0; k < results_.size(); ++k) {
    const auto& o = info.outputs[k];
    DeviceValue& result = *results_[k];
    result.withTotal = o.extent == codegen::ExtentKind::ElementsPlusOne;
    if (o.count) {
      for (size_t c = 0; c < results_.size(); ++c)
        if (info.outputs[c].var == *o.count) {
          result.counter = results_[c];
          result.counterPosition = codegen::capacity(info.outputs[c], extents) - 1;
          if (info.outputs[c].cell) results_[c]->most = extents.elements;
        }
      result.count.reset();
      result.complement = o.countsFalse;
    } else if (counter && (result.withTotal || o.extent == codegen::ExtentKind::Elements)) {
      result.counter = counter;
      result.count.reset();
    }
  }
}

/// An output that starts as the elements of an array: has its memory where nobody else looks at that, else a
/// copy.
void Launcher::placeOnto(const PlanInstruction::Onto& onto, const codegen::KernelOutput& output,
                         const codegen::LaunchExtents& extents) {
  DeviceRef wide;  // of a short array; the launch may read that, too
  DeviceRef& given = stack_.value(onto.base).device;
  if (given->type != output.type) wide = context_.widened(given, output.type);
  DeviceRef& base = wide ? wide : given;
  DeviceRef& result = results_[onto.output];
  const int64_t count = codegen::capacity(output, extents);
  size_t bytes = static_cast<size_t>(count) * static_cast<size_t>(sizeOf(output.type));
  const bool alone = base.use_count() == 1 && base->buffer.use_count() == 1 && base->buffer->isWhole();
  if ((wide || onto.dies) && alone && !result && base->buffer->bytes() >= bytes) {
    result = std::make_shared<DeviceValue>();
    result->buffer = std::move(base->buffer);
    result->type = output.type;
    result->capacity = count;
    result->count = count;
    base.reset();
    return;
  }
  if (!result) result = context_.allocate(output.type, count, nameInMessages(output.name));
  bytes = std::min(bytes, base->buffer->bytes());
  if (bytes == 0) return;
  context_.check(context_.target.copy(result->buffer->pointer(), base->buffer->pointer(), bytes));
  context_.statistics.copiedBytes += bytes;
}

void Launcher::allocateTogether(const std::vector<uint32_t>& group, const codegen::KernelInfo& info,
                                const codegen::LaunchExtents& extents) {
  const auto width = sizeOf(info.outputs[group[0]].type);
  const int64_t step = 256 / width;  // parts begin where buffers may
  std::vector<int64_t> starts;
  int64_t end = 0;
  for (uint32_t k : group) {
    starts.push_back(end);
    end += (std::max<int64_t>(codegen::capacity(info.outputs[k], extents), 1) + step - 1) / step * step;
  }
  const DeviceRef whole =
      context_.allocate(info.outputs[group[0]].type, end, nameInMessages(info.outputs[group[0]].name));
  for (size_t j = 0; j < group.size(); ++j) {
    auto part = std::make_shared<DeviceValue>();
    part->type = whole->type;
    part->capacity = codegen::capacity(info.outputs[group[j]], extents);
    part->count = part->capacity;
    const int64_t next = j + 1 < group.size() ? starts[j + 1] : end;
    part->buffer = std::make_shared<const Buffer>(whole->buffer, static_cast<size_t>(starts[j] * width),
                                                  static_cast<size_t>((next - starts[j]) * width));
    results_[group[j]] = std::move(part);
  }
}

void Launcher::grade(const PlanInstruction& i, const codegen::LaunchExtents& extents) {
  const auto& node = std::get<lcu::Grade>(i.stmt->node);
  const DeviceRef& given = stack_.value(i.operands[0]).device;
  const DeviceRef keys = context_.widened(given, context_.program.vars[node.keys].type);
  DeviceRef order, sorted, ranks;
  if (node.order) order = context_.allocate(ScalarType::Int64, extents.elements, "a sorting order");
  if (node.sorted) sorted = context_.allocate(keys->type, extents.elements, "sorted keys");
  if (node.ranks) ranks = context_.allocate(ScalarType::Int64, extents.elements, "ranks");
  DeviceRef offsets = i.operands.size() > 1 ? stack_.value(i.operands[1]).device : nullptr;
  if (offsets) offsets = context_.widened(offsets, ScalarType::Int64);
  if (extents.elements > 0) {
    LaunchScratch scratch(context_);
    bool waited = false;
    context_.pending = true;
    const Failure failure = context_.target.grade(
        {keys->type, keys->buffer->pointer(), order ? order->buffer->pointer() : nullptr,
         sorted ? sorted->buffer->pointer() : nullptr, ranks ? ranks->buffer->pointer() : nullptr,
         node.space.kind, extents, offsets ? offsets->buffer->pointer() : nullptr, &scratch, &waited});
    check(context_, failure, scratch, "a sort");
    if (waited) ++context_.statistics.synchronisations;
    recorder_.graded(i.stmt, extents, keys->type);
  }
  if (order) stack_.value(i.results[0]) = {{}, std::move(order)};
  if (sorted) stack_.value(i.results[node.sortedResult()]) = {{}, std::move(sorted)};
  if (ranks) stack_.value(i.results[node.ranksResult()]) = {{}, std::move(ranks)};
}

void Launcher::draw(const PlanInstruction& i, const RandomStream& stream, int64_t count) {
  Target& target = context_.target;
  const auto& isShort = plan_.shortArrays;
  const ScalarType type =
      target.storesShort() && std::binary_search(isShort.begin(), isShort.end(), i.stmt->results[1])
          ? ScalarType::Int32
          : ScalarType::Int64;
  DeviceRef draws = context_.allocate(type, count, "rand");
  if (count >= kManyDraws || target.hostAddressable()) {
    context_.pending = true;
    context_.check(target.draw(stream, type, draws->buffer->pointer(), count));
    recorder_.drew(i.stmt, count, type);
  } else {
    upload(stream, *draws);
  }
  stack_.value(i.results[0]) = {{.i = count}, nullptr};
  stack_.value(i.results[1]) = {{}, std::move(draws)};
}

/// Few draws, made by the host.
void Launcher::upload(RandomStream stream, DeviceValue& draws) {
  std::vector<int64_t> made(static_cast<size_t>(*draws.count));
  stream.draw(made);
  const std::vector<int32_t> narrow(made.begin(), made.end());
  const bool isShort = draws.type == ScalarType::Int32;
  const size_t bytes = made.size() * static_cast<size_t>(sizeOf(draws.type));
  const void* from = isShort ? static_cast<const void*>(narrow.data()) : made.data();
  context_.check(context_.target.upload(draws.buffer->pointer(), from, bytes));
  context_.statistics.uploadedBytes += bytes;
  if (made.size() == 1) draws.remember(0, {.i = made[0]});
}

void Launcher::join(const PlanInstruction& i) {
  std::vector<DeviceRef> parts;
  const auto& arrays = std::get<lcu::Join>(i.stmt->node).arrays;
  for (size_t k = 0; k < i.operands.size(); ++k)
    parts.push_back(
        context_.widened(stack_.value(i.operands[k]).device, context_.program.vars[arrays[k]].type));
  const auto width = static_cast<size_t>(sizeOf(parts[0]->type));
  BufferRef whole = parts[0]->buffer->whole();
  for (const DeviceRef& part : parts)
    if (part->buffer->whole() != whole) whole = nullptr;
  DeviceRef joined;
  std::vector<int64_t> starts;
  if (whole) {
    joined = std::make_shared<DeviceValue>();
    joined->type = parts[0]->type;
    joined->buffer = whole;
    joined->capacity = static_cast<int64_t>(whole->bytes() / width);
    joined->count = joined->capacity;
    const auto* begin = static_cast<const std::byte*>(whole->pointer());
    for (const DeviceRef& part : parts)
      starts.push_back((static_cast<const std::byte*>(part->buffer->pointer()) - begin) /
                       static_cast<int64_t>(width));
  } else {
    int64_t total = 0;
    for (const DeviceRef& part : parts) {
      starts.push_back(total);
      total += context_.countOf(*part);
    }
    joined = context_.allocate(parts[0]->type, total, "joined arrays");
    context_.pending = true;
    for (size_t k = 0; k < parts.size(); ++k)
      if (*parts[k]->count > 0)
        context_.check(context_.target.copy(
            static_cast<std::byte*>(joined->buffer->pointer()) + static_cast<size_t>(starts[k]) * width,
            parts[k]->buffer->pointer(), static_cast<size_t>(*parts[k]->count) * width));
  }
  stack_.value(i.results[0]) = {{}, std::move(joined)};
  for (size_t k = 0; k < starts.size(); ++k)
    stack_.value(i.results[k + 1]) = {toRegister(Scalar::ofInt(ScalarType::Int64, starts[k])), nullptr};
}

}  // namespace kelpie::runtime
