#include "runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "runtime/buffer_pool.h"
#include "runtime/device_value.h"
#include "runtime/launch_account.h"
#include "runtime/plan.h"

namespace kelpie::runtime {

using codegen::ParameterKind;
using lcu::VarId;

namespace {

/// Unwinds a run; never leaves this file.
struct Stop {
  RuntimeError error;
};

std::string withPayloads(const std::string& text, int64_t payload0, int64_t payload1) {
  std::string result;
  for (size_t k = 0; k < text.size(); ++k) {
    const bool payload = text[k] == '{' && k + 2 < text.size() && text[k + 2] == '}' &&
                         (text[k + 1] == '0' || text[k + 1] == '1');
    if (!payload) {
      result += text[k];
      continue;
    }
    result += std::to_string(text[k + 1] == '0' ? payload0 : payload1);
    k += 2;
  }
  return result;
}

std::string readableBytes(size_t bytes) {
  if (bytes < 10000) return fmt::format("{} bytes", bytes);
  if (bytes < 10000000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

/// What outlives a run: the target, its pool, and the device copies of columns.
struct Executor::State {
  std::unique_ptr<Target> target;
  std::shared_ptr<BufferPool> pool;

  struct Resident {
    std::weak_ptr<const void> storage;
    DeviceRef value;
  };
  std::unordered_map<const void*, Resident> residents;

  void forgetDeadColumns() {
    for (auto it = residents.begin(); it != residents.end();) {
      it = it->second.storage.expired() ? residents.erase(it) : std::next(it);
    }
  }
};

Executor::Executor(std::unique_ptr<Target> target) : state_(std::make_unique<State>()) {
  state_->target = std::move(target);
  state_->pool = std::make_shared<BufferPool>(*state_->target);
}
Executor::~Executor() {
  state_->residents.clear();
  state_->pool.reset();
}
Target& Executor::target() { return *state_->target; }

namespace {

class LaunchScratch final : public Scratch {
 public:
  explicit LaunchScratch(BufferPool& pool) : pool_(pool) {}
  DevicePointer take(size_t bytes) override {
    BufferRef b = pool_.allocate(bytes);
    if (!b) return nullptr;
    buffers_.push_back(b);
    return b->pointer();
  }

 private:
  BufferPool& pool_;
  std::vector<BufferRef> buffers_;
};

}  // namespace

/// One run of one program.
class Run final : public Environment {
 public:
  Run(Executor& executor, auto& state, const lcu::Program& program, const GlobalValues& globals,
      Services& services, const RunOptions& options, RunStatistics& statistics)
      : target_(executor.target()),
        pool_(*state.pool),
        program_(program),
        globalValues_(globals),
        services_(services),
        options_(options),
        statistics_(statistics),
        findResident_([&state](const void* storage) -> DeviceRef {
          auto it = state.residents.find(storage);
          return it == state.residents.end() || it->second.storage.expired() ? nullptr : it->second.value;
        }),
        addResident_([&state](const std::shared_ptr<const void>& storage, const DeviceRef& value) {
          state.residents[storage.get()] = {storage, value};
        }),
        plan_(makePlan(program)) {}

  RunResult run() {
    const auto start = std::chrono::steady_clock::now();
    const uint64_t launchesBefore = target_.statistics().launches;
    statistics_ = {};
    pool_.resetPeak();
    for (const auto& k : plan_.kernels.kernels) {
      KernelStatistics& s = statistics_.kernels.emplace_back();
      s.name = k.kernel->name;
      if (!k.kernel->bindings.empty()) s.span = k.kernel->bindings[0].span;
      s.onlyOneFilter = std::count_if(k.kernel->bindings.begin(), k.kernel->bindings.end(),
                                      [](const auto& b) { return b.kind == lcu::SoacKind::Filter; }) == 1;
      if (options_.timeKernels) accounts_.emplace_back(k, program_);
    }
    if (options_.timeKernels) target_.timeLaunches(true);
    RunResult result = execute();
    if (options_.timeKernels) {
      addTimes();
      target_.timeLaunches(false);
    }
    stack_.clear();
    globals_.clear();
    target_.clearError();
    target_.release(plan_.kernels);
    statistics_.launches = std::max(statistics_.launches, target_.statistics().launches - launchesBefore);
    statistics_.peakBytes = pool_.peakBytes();
    statistics_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  }

 private:
  struct Frame {
    uint32_t function;
    uint32_t pc;
    size_t base;
  };

  RunResult execute() {
    try {
      check(target_.prepare(plan_.kernels), {});
      loadGlobals();
      push(plan_.entry(), {}, {});
      while (step()) {
      }
      return std::move(finalColumns_);
    } catch (const Interrupted&) {
      return RuntimeError{span_, "interrupted"};
    } catch (Stop& stop) {
      return std::move(stop.error);
    }
  }

  // ---- errors ----

  [[noreturn]] void stop(Span span, std::string message) const { throw Stop{{span, std::move(message)}}; }
  void check(const Failure& failure, Span span) const {
    if (failure) stop(span, *failure);
  }
  [[noreturn]] void stopAt(lcu::SiteId site, int64_t payload0, int64_t payload1) const {
    const auto& s = program_.sites.at(site < program_.sites.size() ? site : 0);
    stop(s.span, withPayloads(s.message, payload0, payload1));
  }
  /// Waits for the device; an error recorded there ends the run.
  void synchronise() {
    ++statistics_.synchronisations;
    std::optional<DeviceError> error;
    check(target_.synchronise(error), span_);
    if (error) stopAt(error->site, error->payload0, error->payload1);
  }
  bool interrupted() const override {
    return options_.interrupt && options_.interrupt->load(std::memory_order_relaxed);
  }
  void fail(lcu::SiteId site, int64_t payload0, int64_t payload1) override {
    synchronise();  // an error on the device came earlier
    stopAt(site, payload0, payload1);
  }

  // ---- values ----

  PlanValue& value(Slot s) {
    return (s & kGlobalSlot) != 0 ? globals_[s & ~kGlobalSlot] : stack_[frames_.back().base + s];
  }
  PlanValue& valueOf(VarId v) { return value(plan_.slotOf[v]); }

  Register fetch(DeviceValue& v, int64_t position) {
    if (auto it = v.fetched.find(position); it != v.fetched.end()) return it->second;
    ++statistics_.fetches;
    alignas(8) std::byte bytes[8] = {};
    const auto width = static_cast<size_t>(sizeOf(v.type));
    synchronise();
    download(bytes, static_cast<std::byte*>(v.buffer->pointer()) + static_cast<size_t>(position) * width,
             width);
    Register r = loadElement(v.type, bytes, 0);
    v.fetched[position] = r;
    return r;
  }
  void download(void* to, DevicePointer from, size_t bytes) {
    statistics_.downloadedBytes += bytes;
    check(target_.download(to, from, bytes), span_);
  }

  int64_t countOf(DeviceValue& v) {
    if (!v.count) {
      const int64_t counted = fetch(*v.counter, v.counterPosition).i;
      v.count = v.complement ? v.capacity - counted : counted;
      v.counter.reset();
      shrink(v);
    }
    return *v.count;
  }
  /// Survivors of a filter move to a buffer of their own size when most of the first one is empty.
  void shrink(DeviceValue& v) {
    constexpr size_t kWorthIt = size_t{1} << 16;
    if (v.buffer->whole()) return;  // the other parts keep the memory
    const auto used = static_cast<size_t>(*v.count) * static_cast<size_t>(sizeOf(v.type));
    if (v.buffer->bytes() < kWorthIt || used * 2 > v.buffer->bytes()) return;
    BufferRef smaller = pool_.allocate(used);
    if (!smaller) return;
    check(target_.copy(smaller->pointer(), v.buffer->pointer(), used), span_);
    v.buffer = smaller;
    v.capacity = *v.count;
  }

  /// Before a call: what a frame keeps during it need not hold more memory than it uses.
  void trim(const Frame& frame) {
    constexpr size_t kWorthAWait = size_t{1} << 18;
    for (size_t k = frame.base; k < stack_.size(); ++k) {
      DeviceValue* v = stack_[k].device.get();
      if (v && !v->count && v->buffer->bytes() >= kWorthAWait) countOf(*v);
    }
  }

  Register cell(VarId v) override { return fetch(*valueOf(v).device, 0); }
  int64_t size(VarId v) override { return countOf(*valueOf(v).device); }
  Register element(VarId v, int64_t position) override {
    DeviceValue& array = *valueOf(v).device;
    if (position != 0 && (position < 0 || position >= countOf(array))) {
      throw InternalError("host: an element out of range");
    }
    return fetch(array, position);
  }

  DeviceRef allocate(ScalarType type, int64_t count, const std::string& what) {
    if (count < 0) throw InternalError("a negative number of elements for " + what);
    const auto width = static_cast<uint64_t>(sizeOf(type));
    const bool overflow = static_cast<uint64_t>(count) > std::numeric_limits<size_t>::max() / 4 / width;
    const size_t bytes = overflow ? 0 : std::max<size_t>(static_cast<size_t>(count) * width, 16);
    BufferRef buffer = overflow ? nullptr : pool_.allocate(bytes);
    if (!buffer) {
      synchronise();  // an error on the device came earlier
      stop(span_,
           fmt::format("out of memory: {} needs {} elements of {} bytes; {} of {} are in use", what, count,
                       width, readableBytes(pool_.bytesInUse()), readableBytes(target_.memoryLimit())));
    }
    auto v = std::make_shared<DeviceValue>();
    v->buffer = std::move(buffer);
    v->type = type;
    v->capacity = count;
    v->count = count;
    return v;
  }

  template <typename T>
  DeviceRef upload(const std::shared_ptr<const std::vector<T>>& storage, ScalarType type,
                   const std::string& what) {
    static const auto kNothing = std::make_shared<const std::vector<T>>();
    const auto& data = storage ? storage : kNothing;
    if (DeviceRef resident = findResident_(data.get())) return resident;
    const size_t bytes = data->size() * sizeof(T);
    const auto count = static_cast<int64_t>(bytes / static_cast<size_t>(sizeOf(type)));
    DeviceRef v;
    if (target_.hostAddressable() && bytes >= 16) {
      v = std::make_shared<DeviceValue>();
      v->buffer = std::make_shared<const Buffer>(data, data->data(), bytes);
      v->type = type;
      v->capacity = count;
      v->count = count;
      return v;  // shares the memory: nothing to remember
    }
    v = allocate(type, count, what);
    check(target_.upload(v->buffer->pointer(), data->data(), bytes), span_);
    statistics_.uploadedBytes += bytes;
    if (data == storage) addResident_(storage, v);
    return v;
  }

  // ---- dense columns ----

  /// Appends the values of one instance of a column (ir/lcu.h, Service).
  void fromColumn(const Column& c, bool top, std::vector<PlanValue>& out) {
    if (c.type.isScalar()) {
      if (top) {
        out.push_back({toRegister(c.at(0)), nullptr});
      } else {
        out.push_back({{}, upload(c.bytes, c.type.scalar(), "a value")});
      }
      return;
    }
    if (top) {
      out.push_back({toRegister(Scalar::ofInt(ScalarType::Int64, c.offsets->back())), nullptr});
    } else {
      out.push_back({{}, upload(c.offsets, ScalarType::Int64, "a value")});
    }
    for (const Column& e : c.elements) fromColumn(e, false, out);
  }

  std::shared_ptr<const std::vector<int64_t>> offsetsOf(DeviceValue& v, int64_t count) {
    auto data = std::make_shared<std::vector<int64_t>>(static_cast<size_t>(count));
    download(data->data(), v.buffer->pointer(), static_cast<size_t>(count) * 8);
    return data;
  }

  /// The column that starts at `next`, `length` values long; `next` moves past it.
  Column toColumn(const CoreType& type, int64_t length, bool top, const std::vector<PlanValue>& values,
                  size_t& next) {
    const PlanValue& v = values.at(next++);
    if (type.isScalar()) {
      if (top && !v.device) return scalarColumn(type.scalar(), {toScalar(type.scalar(), v.scalar)});
      if (top) return scalarColumn(type.scalar(), {toScalar(type.scalar(), fetch(*v.device, 0))});
      std::vector<std::byte> bytes(static_cast<size_t>(length * sizeOf(type.scalar())));
      download(bytes.data(), v.device->buffer->pointer(), bytes.size());
      Column c = scalarColumn(type.scalar(), std::move(bytes));
      if (!target_.hostAddressable() && c.bytes) addResident_(c.bytes, v.device);
      return c;
    }
    std::shared_ptr<const std::vector<int64_t>> offsets;
    if (top) {
      const int64_t count = v.device ? fetch(*v.device, 0).i : v.scalar.i;
      offsets = std::make_shared<const std::vector<int64_t>>(std::vector<int64_t>{0, count});
    } else {
      offsets = offsetsOf(*v.device, length + 1);
      if (!target_.hostAddressable()) addResident_(offsets, v.device);
    }
    Column c;
    c.type = type;
    const int64_t inside = offsets->back();
    c.offsets = std::move(offsets);
    for (const CoreType& e : type.elements()) c.elements.push_back(toColumn(e, inside, false, values, next));
    return c;
  }
  Columns toColumns(const Row& types, const std::vector<PlanValue>& values) {
    Columns columns;
    size_t next = 0;
    synchronise();
    for (const CoreType& t : types) columns.push_back(toColumn(t, 1, true, values, next));
    return columns;
  }

  /// As fromColumn, but with one length for the offsets where the variable is a host scalar
  /// (lcu::GlobalInput).
  void fromGlobal(const Column& c, bool top, const std::vector<VarId>& vars, size_t& next,
                  std::vector<PlanValue>& out) {
    const VarId var = vars.at(next++);
    if (top || c.type.isScalar() || program_.vars[var].kind == lcu::VarKind::Array) {
      Column own = c;
      own.elements.clear();
      fromColumn(own, top, out);
    } else {
      const int64_t each = c.offsets->size() > 1 ? c.offsets->at(1) : 0;
      out.push_back({toRegister(Scalar::ofInt(ScalarType::Int64, each)), nullptr});
    }
    for (const Column& e : c.elements) fromGlobal(e, false, vars, next, out);
  }

  void loadGlobals() {
    globals_.resize(plan_.globals);
    for (const auto& global : program_.globals) {
      Columns columns = globalValues_(global.cell);
      std::vector<PlanValue> values;
      size_t next = 0;
      for (const Column& c : columns) fromGlobal(c, true, global.vars, next, values);
      if (values.size() != global.vars.size()) throw InternalError("a global has another number of columns");
      for (size_t k = 0; k < values.size(); ++k) {
        globals_[plan_.slotOf[global.vars[k]] & ~kGlobalSlot] = std::move(values[k]);
      }
    }
  }

  // ---- frames ----

  void push(uint32_t function, std::vector<PlanValue> arguments, Span span) {
    const PlanFunction& f = plan_.functions[function];
    const size_t base = stack_.size();
    const size_t bytes = (base + f.slots) * sizeof(PlanValue) + (frames_.size() + 1) * sizeof(Frame);
    if (bytes > options_.frameMemory) {
      stop(span, fmt::format("recursion too deep: {} calls are active", frames_.size()));
    }
    stack_.resize(base + f.slots);
    frames_.push_back({function, 0, base});
    statistics_.deepestCall = std::max<uint64_t>(statistics_.deepestCall, frames_.size());
    for (size_t k = 0; k < arguments.size(); ++k) value(f.params[k]) = std::move(arguments[k]);
  }
  void pop() {
    stack_.resize(frames_.back().base);
    frames_.pop_back();
  }
  std::vector<PlanValue> copies(const std::vector<Slot>& slots) {
    std::vector<PlanValue> values;
    values.reserve(slots.size());
    for (Slot s : slots) values.push_back(value(s));
    return values;
  }
  void assign(const std::vector<Slot>& slots, std::vector<PlanValue> values) {
    if (slots.size() != values.size()) throw InternalError("plan: numbers of results differ");
    for (size_t k = 0; k < slots.size(); ++k) value(slots[k]) = std::move(values[k]);
  }

  // ---- instructions ----

  /// One instruction; false at the end of the program.
  bool step() {
    Frame& frame = frames_.back();
    const PlanInstruction& i = plan_.functions[frame.function].code[frame.pc++];
    if (i.stmt) {
      span_ = i.stmt->span;
      if (interrupted()) stop(span_, "interrupted");
    }
    switch (i.op) {
      case PlanOp::Let: {
        const std::vector<Register>& values = evaluate(*i.code);
        for (size_t k = 0; k < i.results.size(); ++k) value(i.results[k]) = {values[k], nullptr};
        break;
      }
      case PlanOp::Launch:
        launch(i);
        break;
      case PlanOp::Call: {
        auto arguments = copies(i.operands);
        for (Slot s : i.dying) value(s) = {};
        trim(frame);
        push(i.target, std::move(arguments), span_);
        break;
      }
      case PlanOp::TailCall: {
        auto arguments = copies(i.operands);
        pop();
        push(i.target, std::move(arguments), span_);
        break;
      }
      case PlanOp::Return: {
        auto values = copies(i.operands);
        if (frames_.size() == 1) {
          pop();
          finalColumns_ = toColumns(program_.resultTypes, values);
          return false;
        }
        pop();
        const Frame& caller = frames_.back();
        assign(plan_.functions[caller.function].code[caller.pc - 1].results, std::move(values));
        break;
      }
      case PlanOp::Jump:
        frame.pc = i.target;
        break;
      case PlanOp::JumpIfFalse:
        if (value(i.operands[0]).scalar.i == 0) frame.pc = i.target;
        break;
      case PlanOp::Move:
        assign(i.results, copies(i.operands));
        break;
      case PlanOp::Release:
        for (Slot s : i.operands) value(s) = {};
        break;
      case PlanOp::Constant: {
        const auto& constant = std::get<lcu::ArrayConstant>(i.stmt->node);
        for (size_t k = 0; k < i.results.size(); ++k) {
          const Column& c = constant.columns.at(k);
          value(i.results[k]) = {{}, upload(c.bytes, c.type.scalar(), "a constant")};
        }
        break;
      }
      case PlanOp::Join:
        join(i);
        break;
      case PlanOp::Grade:
        grade(i);
        break;
      case PlanOp::Service:
        service(i);
        break;
    }
    return true;
  }

  /// The values of host expressions; valid until the next call.
  const std::vector<Register>& evaluate(const HostCode& host) {
    registers_ = host.code.initialRegisters();
    for (const auto& input : host.code.inputs()) registers_[input.reg] = valueOf(input.var).scalar;
    uint64_t ignored = 0;
    host.code.run(registers_.data(), nullptr, *this, ignored);
    values_.clear();
    for (uint32_t r : host.code.resultRegisters()) values_.push_back(registers_[r]);
    return values_;
  }

  codegen::LaunchExtents extentsOf(const HostCode& host) {
    const auto& values = evaluate(host);
    codegen::LaunchExtents e;
    e.elements = values[0].i;
    e.segments = values[1].i;
    e.length = values[2].i;
    for (size_t k = 3; k < values.size(); ++k) e.targets.push_back(values[k].i);
    if (e.elements < 0 || e.segments < 0) throw InternalError("a space of negative extent");
    return e;
  }

  /// Whether a launch over nothing still has something to write or to check.
  static bool hasWork(const codegen::KernelInfo& info, const codegen::LaunchExtents& e) {
    if (e.elements > 0 || info.hasRole(codegen::BindingRole::Finish)) return true;
    if (e.segments > 0 && info.hasRole(codegen::BindingRole::Epilogue)) return true;
    return std::any_of(info.outputs.begin(), info.outputs.end(),
                       [&](const codegen::KernelOutput& o) { return codegen::capacity(o, e) > 0; });
  }

  void launch(const PlanInstruction& i) {
    const KernelEntry& entry = plan_.kernels.kernels[i.target];
    const codegen::KernelInfo& info = entry.info;
    codegen::LaunchExtents extents = extentsOf(*i.code);

    std::vector<KernelArgument> arguments;
    for (size_t k = 0; k < info.parameters.size(); ++k) {
      const auto& p = info.parameters[k];
      PlanValue& v = value(i.operands[k]);
      KernelArgument a{};
      switch (p.kind) {
        case ParameterKind::Array:
        case ParameterKind::Cell:
          a.pointer = v.device->buffer->pointer();
          break;
        case ParameterKind::Size:
          a.integer = countOf(*v.device);
          break;
        case ParameterKind::Scalar:
          if (isFloat(p.type)) {
            a.real = v.scalar.f;
          } else {
            a.integer = v.scalar.i;
          }
      }
      arguments.push_back(a);
    }
    // Sizes may have moved survivors to smaller buffers: addresses are taken again.
    for (size_t k = 0; k < info.parameters.size(); ++k) {
      if (info.parameters[k].kind == ParameterKind::Array) {
        arguments[k].pointer = value(i.operands[k]).device->buffer->pointer();
      }
    }

    std::vector<DeviceRef> results(info.outputs.size());
    std::vector<DevicePointer> outputs;
    for (const auto& group : i.joint) allocateTogether(group, info, extents, results);
    for (size_t k = 0; k < results.size(); ++k) {
      const auto& o = info.outputs[k];
      if (!results[k]) results[k] = allocate(o.type, codegen::capacity(o, extents), o.name);
      outputs.push_back(results[k]->buffer->pointer());
    }
    for (size_t k = 0; k < results.size(); ++k) {
      const auto& o = info.outputs[k];
      if (!o.count) continue;
      for (size_t c = 0; c < results.size(); ++c)
        if (info.outputs[c].var == *o.count) {
          results[k]->counter = results[c];
          results[k]->counterPosition = codegen::capacity(info.outputs[c], extents) - 1;
        }
      results[k]->count.reset();
      results[k]->complement = o.countsFalse;
    }

    if (hasWork(info, extents)) {
      LaunchScratch scratch(pool_);
      check(target_.launch(
                {&plan_.kernels, i.target, extents, arguments, outputs, &scratch, options_.interrupt}),
            span_);
      recordLaunch(i.target, extents, results);
    }
    for (size_t k = 0; k < results.size(); ++k)
      if (i.results[k] != kNoSlot) value(i.results[k]) = {{}, std::move(results[k])};
  }

  void allocateTogether(const std::vector<uint32_t>& group, const codegen::KernelInfo& info,
                        const codegen::LaunchExtents& extents, std::vector<DeviceRef>& results) {
    const auto width = sizeOf(info.outputs[group[0]].type);
    const int64_t step = 256 / width;  // parts begin where buffers may
    std::vector<int64_t> starts;
    int64_t end = 0;
    for (uint32_t k : group) {
      starts.push_back(end);
      end += (std::max<int64_t>(codegen::capacity(info.outputs[k], extents), 1) + step - 1) / step * step;
    }
    const DeviceRef whole = allocate(info.outputs[group[0]].type, end, info.outputs[group[0]].name);
    for (size_t j = 0; j < group.size(); ++j) {
      auto part = std::make_shared<DeviceValue>(*whole);
      part->capacity = codegen::capacity(info.outputs[group[j]], extents);
      part->count = part->capacity;
      const int64_t next = j + 1 < group.size() ? starts[j + 1] : end;
      part->buffer = std::make_shared<const Buffer>(whole->buffer, static_cast<size_t>(starts[j] * width),
                                                    static_cast<size_t>((next - starts[j]) * width));
      results[group[j]] = std::move(part);
    }
  }

  void join(const PlanInstruction& i) {
    std::vector<DeviceRef> parts;
    for (Slot s : i.operands) parts.push_back(value(s).device);
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
        total += countOf(*part);
      }
      joined = allocate(parts[0]->type, total, "joined arrays");
      for (size_t k = 0; k < parts.size(); ++k)
        if (*parts[k]->count > 0)
          check(target_.copy(static_cast<std::byte*>(joined->buffer->pointer()) +
                                 static_cast<size_t>(starts[k]) * width,
                             parts[k]->buffer->pointer(), static_cast<size_t>(*parts[k]->count) * width),
                span_);
    }
    value(i.results[0]) = {{}, std::move(joined)};
    for (size_t k = 0; k < starts.size(); ++k)
      value(i.results[k + 1]) = {toRegister(Scalar::ofInt(ScalarType::Int64, starts[k])), nullptr};
  }

  void recordLaunch(uint32_t kernel, const codegen::LaunchExtents& extents,
                    const std::vector<DeviceRef>& results) {
    const LaunchWork* counted = target_.lastWork();
    if (counted) {
      ++statistics_.kernels[kernel].evaluated;
      record(kernel, extents, *counted);
    } else if (options_.timeKernels) {
      record(kernel, extents, accounts_[kernel].of(extents, [&](VarId counter) {
        return peek(plan_.kernels.kernels[kernel].info, extents, results, counter);
      }));
    } else {
      record(kernel, extents, LaunchWork());
    }
  }
  void record(size_t kernel, const codegen::LaunchExtents& extents, const LaunchWork& work) {
    KernelStatistics& s = statistics_.kernels[kernel];
    ++statistics_.launches;
    ++s.launches;
    s.elements += static_cast<uint64_t>(extents.elements);
    s.segments += static_cast<uint64_t>(extents.segments);
    s.work.elements += work.elements;
    s.work.bytesRead += work.bytesRead;
    s.work.bytesWritten += work.bytesWritten;
    s.work.survivors += work.survivors;
    if (options_.timeKernels) timed_.push_back(kernel);
  }
  /// What a filter kept; a wait that a run without timing does not have is not counted. Without the output
  /// nobody needs what it kept.
  int64_t peek(const codegen::KernelInfo& info, const codegen::LaunchExtents& extents,
               const std::vector<DeviceRef>& results, VarId counter) {
    const codegen::KernelOutput* o = info.output(counter);
    if (!o) return extents.elements;
    const auto last = static_cast<size_t>(codegen::capacity(*o, extents) - 1);
    const DeviceValue& v = *results[static_cast<size_t>(o - info.outputs.data())];
    alignas(8) std::byte bytes[8] = {};
    const auto width = static_cast<size_t>(sizeOf(v.type));
    check(target_.download(bytes, static_cast<std::byte*>(v.buffer->pointer()) + last * width, width), span_);
    return loadElement(v.type, bytes, 0).i;
  }
  void addTimes() {
    const std::vector<double> seconds = target_.launchSeconds();
    for (size_t k = 0; k < std::min(seconds.size(), timed_.size()); ++k)
      statistics_.kernels[timed_[k]].seconds += seconds[k];
    timed_.clear();
  }

  void grade(const PlanInstruction& i) {
    const auto& node = std::get<lcu::Grade>(i.stmt->node);
    codegen::LaunchExtents extents = extentsOf(*i.code);
    DeviceRef keys = value(i.operands[0]).device;
    DeviceRef order = allocate(ScalarType::Int64, extents.elements, "a sorting order");
    DeviceRef offsets = i.operands.size() > 1 ? value(i.operands[1]).device : nullptr;
    if (extents.elements > 0) {
      LaunchScratch scratch(pool_);
      check(target_.grade({keys->type, keys->buffer->pointer(), order->buffer->pointer(), node.space.kind,
                           extents, offsets ? offsets->buffer->pointer() : nullptr, &scratch}),
            span_);
      recordGrade(i, extents, keys->type);
    }
    value(i.results[0]) = {{}, std::move(order)};
  }

  void recordGrade(const PlanInstruction& i, const codegen::LaunchExtents& extents, ScalarType keys) {
    const auto [known, isNew] = grades_.try_emplace(i.stmt, statistics_.kernels.size());
    if (isNew) {
      KernelStatistics& s = statistics_.kernels.emplace_back();
      s.name = grades_.size() == 1 ? "grade" : fmt::format("grade_{}", grades_.size());
      s.span = i.stmt->span;
    }
    LaunchWork least;  // keys once, order once
    least.elements = static_cast<uint64_t>(extents.elements);
    least.bytesRead = least.elements * static_cast<uint64_t>(sizeOf(keys));
    least.bytesWritten = least.elements * sizeof(int64_t);
    record(known->second, extents, least);
  }

  void service(const PlanInstruction& i) {
    const auto& node = std::get<lcu::Service>(i.stmt->node);
    ++statistics_.services;
    Columns arguments = toColumns(node.argumentTypes, copies(i.operands));
    const Span span =
        node.site != 0 && node.site < program_.sites.size() ? program_.sites[node.site].span : span_;
    auto answer = services_.call(node.name, arguments, node.resultTypes, span);
    if (auto* error = std::get_if<RuntimeError>(&answer)) throw Stop{std::move(*error)};
    std::vector<PlanValue> values;
    for (const Column& c : std::get<Columns>(answer)) fromColumn(c, true, values);
    assign(i.results, std::move(values));
  }

  Target& target_;
  BufferPool& pool_;
  const lcu::Program& program_;
  const GlobalValues& globalValues_;
  Services& services_;
  const RunOptions& options_;
  RunStatistics& statistics_;
  std::function<DeviceRef(const void*)> findResident_;
  std::function<void(const std::shared_ptr<const void>&, const DeviceRef&)> addResident_;
  Plan plan_;
  std::vector<PlanValue> stack_, globals_;
  std::vector<Frame> frames_;
  std::vector<Register> registers_, values_;
  Columns finalColumns_;
  Span span_;                                            ///< of the statement under way
  std::vector<LaunchAccount> accounts_;                  ///< by kernel, when launches are timed
  std::vector<size_t> timed_;                            ///< whose times are to come, by statistics_.kernels
  std::unordered_map<const lcu::Stmt*, size_t> grades_;  ///< in statistics_.kernels
};

RunResult Executor::run(const lcu::Program& program, const GlobalValues& globals, Services& services,
                        const RunOptions& options, RunStatistics* statistics) {
  RunStatistics unused;
  state_->forgetDeadColumns();
  services.beginForm();
  RunResult result =
      Run(*this, *state_, program, globals, services, options, statistics ? *statistics : unused).run();
  services.endForm(std::holds_alternative<Columns>(result));
  return result;
}

}  // namespace kelpie::runtime
