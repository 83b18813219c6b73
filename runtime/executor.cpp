#include "runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>

#include "runtime/column_transfer.h"
#include "runtime/host_memory.h"
#include "runtime/launcher.h"
#include "runtime/plan.h"
#include "runtime/plan_stack.h"
#include "runtime/run_ahead.h"
#include "runtime/run_context.h"

namespace kelpie::runtime {

using lcu::VarId;

/// What outlives a run: the target, its pool, and the device copies of columns.
struct Executor::State {
  std::unique_ptr<Target> target;
  std::shared_ptr<BufferPool> pool;
  ResidentColumns residents;
  bool longPositions = false;  ///< RunContext::longPositions; once needed it stays
};

struct PreparedProgram::Parts {
  Parts(Target& target, const lcu::Program& program, bool later)
      : target(target),
        program(program),
        plan(makePlan(program)),
        failure(later ? target.prepareForLater(plan.kernels) : target.prepare(plan.kernels)) {}
  ~Parts() { target.release(plan.kernels); }

  Target& target;
  const lcu::Program& program;
  Plan plan;
  Failure failure;
};

PreparedProgram::PreparedProgram(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
PreparedProgram::~PreparedProgram() = default;
bool PreparedProgram::canRun() const {
  return parts_->failure || parts_->target.canLaunch(parts_->plan.kernels);
}

Executor::Executor(std::unique_ptr<Target> target) : state_(std::make_unique<State>()) {
  state_->target = std::move(target);
  state_->pool = std::make_shared<BufferPool>(*state_->target);
}
Executor::~Executor() {
  state_->residents.settle();
  state_->pool.reset();
}
Target& Executor::target() { return *state_->target; }

namespace {

/// One run of one program.
class Run final : public Environment {
 public:
  Run(RunContext& context, const Plan& plan, ResidentColumns& residents, const GlobalValues& globals,
      Services& services)
      : context_(context),
        plan_(plan),
        globalValues_(globals),
        services_(services),
        stack_(plan),
        columns_(context, residents),
        launcher_(context, plan, stack_),
        ahead_(context, stack_, launcher_.recorder()) {
    context_.settle = [this] { ahead_.settle(); };
    context_.forget = [this, &residents] {
      // As much stays for others.
      residents.forgetUnused(context_.options.hostMemory.value_or(availableMemory()) / 2);
    };
    context_.alsoWanted = [this](std::vector<Wanted>& wanted) { addLikely(wanted); };
  }

  RunResult run(const Failure& notPrepared) {
    try {
      context_.check(notPrepared);
      for (const auto& global : context_.program.globals) {
        std::vector<PlanValue> values = columns_.fromGlobal(globalValues_(global.cell), global);
        for (size_t k = 0; k < values.size(); ++k) stack_.valueOf(global.vars[k]) = std::move(values[k]);
      }
      push(plan_.entry(), {});
      while (step()) {
      }
      return std::move(finalColumns_);
    } catch (const std::bad_alloc&) {
      return RuntimeError{context_.span, "out of memory"};
    } catch (const ElementsLost& lost) {
      return RuntimeError{context_.span, lost.what()};
    } catch (const Interrupted&) {
      return RuntimeError{context_.span, "interrupted"};
    } catch (Stop& stop) {
      return std::move(stop.error);
    }
  }

 private:
  // ---- what host expressions ask for ----

  bool interrupted() const override {
    return context_.options.interrupt && context_.options.interrupt->load(std::memory_order_relaxed);
  }
  /// A loop of the host may have no end because an error came before it, or in a step that is not taken: it
  /// was only foretold.
  void look() override {
    Environment::look();
    if (++looks_ < nextLoopLook_) return;
    nextLoopLook_ *= 2;
    ahead_.settle();
    context_.synchronise();
  }
  void fail(lcu::SiteId site, int64_t payload0, int64_t payload1) override {
    context_.synchronise();  // an error on the device came earlier
    context_.stopAt(site, payload0, payload1);
  }
  Register cell(VarId v) override { return context_.fetch(*stack_.valueOf(v).device, 0); }
  int64_t size(VarId v) override { return context_.countOf(*stack_.valueOf(v).device); }
  Register element(VarId v, int64_t position) override {
    DeviceValue& array = *stack_.valueOf(v).device;
    if (position != 0 && (position < 0 || position >= context_.countOf(array))) {
      context_.synchronise();  // a check of the device may have failed, and this be its fallback
      throw InternalError("host: an element out of range");
    }
    return context_.fetch(array, position);
  }

  /// Whoever waits for one value has the others that are in sight for nothing: what the same expressions
  /// read, the sizes of the survivors that live in this frame, and its counts and totals.
  void addLikely(std::vector<Wanted>& wanted) {
    if (context_.target.hostAddressable()) return;
    const auto add = [&](DeviceValue& v, int64_t position) {
      for (const Wanted& w : wanted)
        if (w.value == &v && w.position == position) return;
      if (position == Wanted::kTotal || !v.known(position)) wanted.push_back({&v, position});
    };
    if (running_)
      for (VarId v : running_->cells())
        if (DeviceValue* cell = stack_.valueOf(v).device.get()) add(*cell, 0);
    stack_.forEachOnTop([&](const PlanValue& v) {
      if (v.device && !v.device->count) add(*v.device->counter, v.device->counterPosition);
    });
    stack_.forEachOnTop([&](const PlanValue& v) {
      if (v.device && v.device->count == 1 && v.device->type == ScalarType::Int64) add(*v.device, 0);
    });
    stack_.forEachOnTop([&](const PlanValue& v) {
      if (v.device && v.device->withTotal && !v.device->count) add(*v.device, Wanted::kTotal);
    });
  }

  /// The values of host expressions; valid until the next call.
  const std::vector<Register>& evaluate(const HostCode& host) {
    registers_ = host.code.initialRegisters();
    for (const auto& input : host.code.inputs()) {
      PlanValue& value = stack_.valueOf(input.var);
      context_.bring(value);
      registers_[input.reg] = value.scalar;
    }
    uint64_t ignored = 0;
    looks_ = 0;
    nextLoopLook_ = 1;
    running_ = &host.code;
    host.code.run(registers_.data(), nullptr, *this, ignored);
    running_ = nullptr;
    values_.clear();
    for (uint32_t r : host.code.resultRegisters()) values_.push_back(registers_[r]);
    return values_;
  }

  const codegen::LaunchExtents& extentsOf(const HostCode& host) {
    const auto& values = evaluate(host);
    extents_.elements = values[0].i;
    extents_.segments = values[1].i;
    extents_.length = values[2].i;
    extents_.targets.clear();
    for (size_t k = 3; k < values.size(); ++k) extents_.targets.push_back(values[k].i);
    expectExtents();
    return extents_;
  }

  void expectExtents() {
    constexpr int64_t kMost = int64_t{1} << 62;  // targets round up, and count elements and segments together
    const auto countable = [](int64_t n) { return n >= 0 && n < kMost; };
    if (countable(extents_.elements) && countable(extents_.segments)) return;
    // Instances that double with every call: where they have no elements, numbers end before memory does.
    constexpr size_t kDoublings = 32;
    if (stack_.depth() > kDoublings) tooDeep();
    ahead_.settle();
    context_.outOfMemory("an apply-to-each has more elements than can be counted");
  }

  [[noreturn]] void tooDeep() {
    ahead_.settle();         // this step may not be taken
    context_.synchronise();  // an error on the device came earlier
    context_.stop(context_.span, fmt::format("recursion too deep: {} calls are active", stack_.depth()));
  }

  void launch(const PlanInstruction& i) {
    extentsOf(*i.code);
    DeviceRef counter;
    if (i.counted != kNoSlot) {
      const PlanValue& count = stack_.value(i.counted);
      if (count.device && launcher_.mayCount(*count.device)) {
        counter = count.device;
        extents_.elements = *counter->most;
      } else {
        extents_.elements = count.device ? context_.fetch(*count.device, 0).i : count.scalar.i;
        expectExtents();
      }
    }
    launcher_.launch(i, extents_, counter);
  }

  // ---- calls ----

  void push(uint32_t function, std::vector<PlanValue> arguments) {
    if (stack_.bytesWith(function) > context_.options.frameMemory) tooDeep();
    stack_.push(function, std::move(arguments));
    uint64_t& deepest = context_.statistics.deepestCall;
    deepest = std::max<uint64_t>(deepest, stack_.depth());
  }

  /// Before a call: what a frame keeps during it need not hold more memory than it uses.
  void trim() {
    constexpr size_t kWorthAWait = size_t{1} << 18;
    stack_.forEachOnTop([&](const PlanValue& v) {
      if (v.device && !v.device->count && v.device->buffer->bytes() >= kWorthAWait)
        context_.countOf(*v.device);
    });
  }

  // ---- instructions ----

  /// One instruction; false at the end of the program.
  bool step() {
    try {
      return execute();
    } catch (const RunAhead::Returned&) {
      running_ = nullptr;
      return true;
    }
  }

  bool execute() {
    if (++executed_ == nextLook_) lookForErrors();
    PlanStack::Frame& frame = stack_.top();
    const PlanInstruction& i = plan_.functions[frame.function].code[frame.pc++];
    if (i.stmt) {
      context_.span = i.stmt->span;
      if (interrupted()) context_.stop(context_.span, "interrupted");
    }
    switch (i.op) {
      case PlanOp::Let: {
        if (!i.operands.empty() && context_.target.canCount()) {
          stack_.move(i.operands, i.results);
          break;
        }
        const std::vector<Register>& values = evaluate(*i.code);
        for (size_t k = 0; k < i.results.size(); ++k) stack_.value(i.results[k]) = {values[k], nullptr};
        break;
      }
      case PlanOp::Launch:
        launch(i);
        break;
      case PlanOp::Decide:
        if (!ahead_.decide(i)) frame.pc = i.target;
        break;
      case PlanOp::Call: {
        ahead_.settle();
        auto arguments = stack_.copies(i.operands);
        for (Slot s : i.dying) stack_.value(s) = {};
        trim();
        push(i.target, std::move(arguments));
        break;
      }
      case PlanOp::TailCall: {
        ahead_.settle();
        auto arguments = stack_.copies(i.operands);
        stack_.pop();
        push(i.target, std::move(arguments));
        break;
      }
      case PlanOp::Return: {
        ahead_.settle();
        auto values = stack_.copies(i.operands);
        const bool last = stack_.depth() == 1;
        stack_.pop();
        if (last) {
          finish(values);
          return false;
        }
        const PlanStack::Frame& caller = stack_.top();
        stack_.assign(plan_.functions[caller.function].code[caller.pc - 1].results, std::move(values));
        break;
      }
      case PlanOp::Jump:
        frame.pc = i.target;
        break;
      case PlanOp::JumpIfFalse:
        if (stack_.value(i.operands[0]).scalar.i == 0) frame.pc = i.target;
        break;
      case PlanOp::Move:
        stack_.move(i.operands, i.results);
        break;
      case PlanOp::Release:
        for (Slot s : i.operands) stack_.value(s) = {};
        break;
      case PlanOp::Constant: {
        const auto& constant = std::get<lcu::ArrayConstant>(i.stmt->node);
        for (size_t k = 0; k < i.results.size(); ++k)
          stack_.value(i.results[k]) = {
              {}, columns_.constant(constant.columns.at(k), isShort(i.stmt->results[k]))};
        break;
      }
      case PlanOp::Join:
        launcher_.join(i);
        break;
      case PlanOp::Grade:
        ahead_.settle();  // sorts of all elements are not held back by errors
        launcher_.grade(i, extentsOf(*i.code));
        break;
      case PlanOp::Service:
        ahead_.settle();
        service(i);
        break;
    }
    return true;
  }

  /// A loop or recursion that computes nothing from what the device computes goes on after a check has
  /// failed. So, now and then, the host waits; the longer it has not had to, the less often.
  void lookForErrors() {
    nextLook_ *= 2;
    ahead_.settle();
    context_.synchronise();
  }

  bool isShort(VarId array) const {
    return std::binary_search(plan_.shortArrays.begin(), plan_.shortArrays.end(), array);
  }

  void finish(const std::vector<PlanValue>& values) {
    if (context_.options.discardResults) {
      context_.synchronise();
    } else {
      finalColumns_ = columns_.toColumns(context_.program.resultTypes, values);
    }
  }

  void service(const PlanInstruction& i) {
    const auto& node = std::get<lcu::Service>(i.stmt->node);
    ++context_.statistics.services;
    if (node.name == "random_draws") {
      PlanValue& count = stack_.value(i.operands[0]);
      context_.bring(count);
      const int64_t draws = count.scalar.i;
      return launcher_.draw(i, services_.passOver(static_cast<uint64_t>(draws)), draws);
    }
    const auto& sites = context_.program.sites;
    std::optional<Columns> arguments = columns_.toColumns(node.argumentTypes, stack_.copies(i.operands));
    const Span span = node.site != 0 && node.site < sites.size() ? sites[node.site].span : context_.span;
    auto answer = services_.call(node.name, *arguments, node.resultTypes, span);
    arguments.reset();
    columns_.forgetDead();
    if (auto* error = std::get_if<RuntimeError>(&answer)) throw Stop{std::move(*error)};
    std::vector<PlanValue> values;
    for (const Column& c : std::get<Columns>(answer)) columns_.fromColumn(c, values);
    stack_.assign(i.results, std::move(values));
  }

  RunContext& context_;
  const Plan& plan_;
  const GlobalValues& globalValues_;
  Services& services_;
  PlanStack stack_;
  ColumnTransfer columns_;
  Launcher launcher_;
  RunAhead ahead_;
  const ExpressionCode* running_ = nullptr;  ///< the host expressions under way
  std::vector<Register> registers_, values_;
  codegen::LaunchExtents extents_;
  uint64_t executed_ = 0, nextLook_ = 4096;  ///< instructions
  uint64_t looks_ = 0, nextLoopLook_ = 1;    ///< of loops of the host expressions under way
  Columns finalColumns_;
};

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::unique_ptr<PreparedProgram> Executor::prepare(const lcu::Program& program, bool later) {
  return std::unique_ptr<PreparedProgram>(
      new PreparedProgram(std::make_unique<PreparedProgram::Parts>(*state_->target, program, later)));
}

RunResult Executor::run(const PreparedProgram& prepared, const GlobalValues& globals, Services& services,
                        const RunOptions& options, RunStatistics* statistics) {
  const auto start = std::chrono::steady_clock::now();
  RunStatistics unused;
  RunStatistics& counted = statistics ? *statistics : unused;
  counted = {};
  const PreparedProgram::Parts& parts = *prepared.parts_;
  Target& target = *state_->target;
  BufferPool& pool = *state_->pool;
  const TargetStatistics before = target.statistics();
  const uint64_t allocationsBefore = pool.allocations();
  state_->residents.forgetDead();
  pool.resetPeak();
  counted.heldBytes = pool.bytesInUse();
  services.beginForm();
  const auto attempt = [&]() -> RunResult {
    RunContext context(target, pool, parts.program, options, counted);
    context.longPositions = state_->longPositions;
    return Run(context, parts.plan, state_->residents, globals, services).run(parts.failure);
  };
  const auto attemptTwice = [&]() -> RunResult {
    try {
      return attempt();
    } catch (const PositionsTooLong&) {
      target.clearError();
      state_->longPositions = true;
      if (counted.services > 0)
        return RuntimeError{parts.program.span,
                            "sequences of sequences have more than 2147483647 elements in all, which came up "
                            "after something that cannot be done twice; run it with --long-offsets"};
      const size_t held = counted.heldBytes;
      counted = {};
      counted.heldBytes = held;
      return attempt();
    }
  };
  // Whatever becomes of it, the next form finds nothing of this one.
  const auto finish = [&](bool succeeded) {
    target.clearError();
    if (!succeeded) {  // maybe for want of memory, which others want, too: code, the driver, other programs
      pool.trim();
      target.giveBackUnused();
    }
    services.endForm(succeeded);
  };
  RunResult result;
  try {
    result = attemptTwice();
  } catch (...) {
    finish(false);
    throw;
  }
  finish(std::holds_alternative<Columns>(result));
  const TargetStatistics after = target.statistics();
  counted.launches = std::max(counted.launches, after.launches - before.launches);
  counted.compiler = after.compiler - before.compiler;
  counted.unexpected = after.unexpected - before.unexpected;
  counted.allocations = pool.allocations() - allocationsBefore;
  counted.peakBytes = pool.peakBytes();
  counted.seconds = secondsSince(start);
  return result;
}

RunResult Executor::run(const lcu::Program& program, const GlobalValues& globals, Services& services,
                        const RunOptions& options, RunStatistics* statistics) {
  const auto start = std::chrono::steady_clock::now();
  RunResult result = run(*prepare(program), globals, services, options, statistics);
  if (statistics) statistics->seconds = secondsSince(start);
  return result;
}

}  // namespace kelpie::runtime
