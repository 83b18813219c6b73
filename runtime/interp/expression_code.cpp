#include "runtime/interp/expression_code.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "codegen/expression_schedule.h"
#include "codegen/integer_division.h"
#include "codegen/thunk_sample.h"
#include "ir/diagnostic.h"

namespace kelpie::runtime {

using codegen::Schedule;
using codegen::ScheduleBlock;
using codegen::ScheduleStep;
using lcu::ExprKind;
using lcu::ExprRef;

Register toRegister(const Scalar& s) {
  Register r{};
  r.i = s.i;  // the union of Scalar has the same two members
  return r;
}

Scalar toScalar(ScalarType type, Register r) {
  return isFloat(type) ? Scalar::ofFloat(type, r.f) : Scalar::ofInt(type, r.i);
}

namespace {
template <typename T>
T readAt(const void* array, int64_t position) {
  T value;
  std::memcpy(&value, static_cast<const char*>(array) + position * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}
template <typename T>
void writeAt(void* array, int64_t position, T value) {
  std::memcpy(static_cast<char*>(array) + position * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

/// Anywhere, if the position is.
const std::byte* addressOf(const void* array, int64_t position, ScalarType type) {
  const auto offset = static_cast<uintptr_t>(position) * static_cast<uintptr_t>(sizeOf(type));
  return reinterpret_cast<const std::byte*>(reinterpret_cast<uintptr_t>(array) + offset);
}
}  // namespace

Register loadElement(ScalarType type, const void* array, int64_t position) {
  Register r{};
  switch (type) {
    case ScalarType::Bool:
    case ScalarType::Char:
      r.i = readAt<uint8_t>(array, position);
      break;
    case ScalarType::Int32:
      r.i = readAt<int32_t>(array, position);
      break;
    case ScalarType::Int64:
      r.i = readAt<int64_t>(array, position);
      break;
    case ScalarType::Float32:
      r.f = static_cast<double>(readAt<float>(array, position));
      break;
    case ScalarType::Float64:
      r.f = readAt<double>(array, position);
      break;
  }
  return r;
}

void storeElement(ScalarType type, void* array, int64_t position, Register value) {
  switch (type) {
    case ScalarType::Bool:
    case ScalarType::Char:
      writeAt<uint8_t>(array, position, static_cast<uint8_t>(value.i));
      break;
    case ScalarType::Int32:
      writeAt<int32_t>(array, position, static_cast<int32_t>(value.i));
      break;
    case ScalarType::Int64:
      writeAt<int64_t>(array, position, value.i);
      break;
    case ScalarType::Float32:
      writeAt<float>(array, position, static_cast<float>(value.f));
      break;
    case ScalarType::Float64:
      writeAt<double>(array, position, value.f);
      break;
  }
}

/// Translates a schedule block by block, with its own stack.
class ExpressionCode::Compiler {
 public:
  Compiler(ExpressionCode& out, Mode mode, const std::function<bool(lcu::VarId)>& isCell)
      : out_(out), mode_(mode), isCell_(isCell) {}

  void compile(const std::vector<ExprRef>& roots) {
    schedule_ = codegen::scheduleExpressions(roots);
    out_.blockCount_ = schedule_.blocks.size();
    for (uint32_t b = 0; b < schedule_.blocks.size(); ++b) {
      const auto& steps = schedule_.blocks[b].steps;
      for (size_t k = 0; k < steps.size(); ++k) {
        const ExprRef node = steps[k].node;
        if (node->kind == ExprKind::Load && !codegen::loadsInOrder(node)) {
          numbers_[{b, k}] = static_cast<uint32_t>(out_.gathers_.size());
          out_.gathers_.push_back(node);
        } else if (codegen::dividesByWords(node)) {
          numbers_[{b, k}] = static_cast<uint32_t>(out_.divisions_.size());
          out_.divisions_.push_back(node);
        }
      }
    }
    blocks();
    for (ExprRef r : roots) out_.results_.push_back(registerOf(r));
  }

 private:
  struct Frame {
    uint32_t block;
    size_t step = 0;
    uint32_t jump = 0;   ///< instruction to patch: over the then branch, or out of the loop
    uint32_t start = 0;  ///< first instruction of a loop; Enter of a recursion
  };

  uint32_t fresh() {
    out_.initial_.push_back({});
    return static_cast<uint32_t>(out_.initial_.size() - 1);
  }
  uint32_t here() const { return static_cast<uint32_t>(out_.code_.size()); }
  Instruction& emit(Code code) {
    Instruction& i = out_.code_.emplace_back();
    i.code = code;
    return i;
  }

  /// The register of an atom, made on first use, or of a placed node.
  uint32_t registerOf(ExprRef e) {
    if (e->kind == ExprKind::Project) return multiple_.at(e->operands[0]).at(e->index);
    if (auto it = registers_.find(e); it != registers_.end()) return it->second;
    uint32_t r;
    switch (e->kind) {
      case ExprKind::Constant:
        r = fresh();
        out_.initial_[r] = toRegister(e->constant);
        break;
      case ExprKind::Param:
        r = fresh();
        out_.params_.emplace_back(e->index, r);
        break;
      case ExprKind::Host:
        r = fresh();
        if (mode_ == Mode::Host && isCell_(e->index)) return ask(Code::Cell, e, r);
        out_.inputs_.push_back({InputKind::Scalar, e->index, e->type, r});
        break;
      case ExprKind::Size:
        r = fresh();
        if (mode_ == Mode::Host) return ask(Code::Size, e, r);
        out_.inputs_.push_back({InputKind::Size, e->index, e->type, r});
        break;
      case ExprKind::LoopVar:
        return loopVars_.at((uint64_t{e->index} << 32) | e->count);
      default:
        throw InternalError("expression used before it was placed");
    }
    registers_[e] = r;
    return r;
  }
  /// Cells and sizes are read where they are used: not remembered, since the use may be conditional.
  uint32_t ask(Code code, ExprRef e, uint32_t r) {
    Instruction& i = emit(code);
    i.index = e->index;
    i.type = e->type;
    i.result = r;
    return r;
  }

  uint32_t arraySlot(lcu::VarId var) {
    for (uint32_t k = 0; k < out_.arrays_.size(); ++k)
      if (out_.arrays_[k] == var) return k;
    out_.arrays_.push_back(var);
    return static_cast<uint32_t>(out_.arrays_.size() - 1);
  }

  void blocks() {
    std::vector<Frame> stack{{0}};
    while (!stack.empty()) {
      Frame& f = stack.back();
      const ScheduleBlock& block = schedule_.blocks[f.block];
      if (f.step == block.steps.size()) {
        uint32_t finished = f.block;
        stack.pop_back();
        if (stack.empty()) return;
        Frame& outer = stack.back();
        const ScheduleStep& step = schedule_.blocks[outer.block].steps[outer.step];
        if (finished == step.first && step.second != 0) {
          middle(outer, step);
          enter(stack, step.second);
        } else {
          finish(outer, step);
          ++outer.step;
        }
        continue;
      }
      const ScheduleStep& step = block.steps[f.step];
      if (step.first != 0) {
        begin(f, step);
        enter(stack, step.first);
      } else if (step.node->kind == ExprKind::Call) {
        call(step.node);
        ++f.step;
      } else {
        simple(step.node);
        if (const auto number = numbers_.find({f.block, f.step}); number != numbers_.end())
          out_.code_.back().payload0 = number->second;
        ++f.step;
      }
    }
  }

  void enter(std::vector<Frame>& stack, uint32_t block) {
    if (mode_ == Mode::Kernel) emit(Code::Block).index = block;
    stack.push_back({block});
  }

  void moveAll(const std::vector<ExprRef>& from, const std::vector<uint32_t>& to) {
    for (size_t k = 0; k < from.size(); ++k) {
      uint32_t source = registerOf(from[k]);
      Instruction& i = emit(Code::Move);
      i.a = source;
      i.result = to[k];
    }
  }

  /// What a call of a recursion under way has to know.
  struct Recursion {
    uint32_t function, start;  ///< its first instruction
    std::vector<uint32_t> arguments, results;
  };
  uint32_t registerCount() const { return static_cast<uint32_t>(out_.initial_.size()); }

  std::vector<uint32_t> registersOf(const std::vector<ExprRef>& es) {
    std::vector<uint32_t> registers;
    for (ExprRef e : es) registers.push_back(registerOf(e));
    return registers;
  }
  void move(uint32_t from, uint32_t to) {
    Instruction& i = emit(Code::Move);
    i.a = from;
    i.result = to;
  }

  /// Everything numbered between `low` and `high` is of the function; its arguments come first. The results
  /// are outside, so that they stay when the caller's registers come back. What is a constant or an input is
  /// saved and restored with the rest, and never changes.
  void beginRecursion(Frame& f, ExprRef e) {
    const std::vector<uint32_t> initial = registersOf(codegen::recursionArguments(e));
    Recursion& recursion = recursions_[e->index];
    recursion = {static_cast<uint32_t>(out_.functions_.size()), 0, {}, multiple_.at(e)};
    out_.functions_.push_back({registerCount(), 0, static_cast<lcu::SiteId>(e->constant.i), multiple_.at(e)});
    for (uint32_t k = 0; k < initial.size(); ++k) {
      recursion.arguments.push_back(fresh());
      loopVars_[(uint64_t{e->index} << 32) | k] = recursion.arguments[k];
      move(initial[k], recursion.arguments[k]);
    }
    f.start = here();
    emit(Code::Enter).index = recursion.function;
    recursion.start = here();
  }

  void finishRecursion(Frame& f, ExprRef e) {
    moveAll(codegen::recursionResults(e), multiple_[e]);
    const uint32_t function = recursions_.at(e->index).function;
    out_.functions_[function].high = registerCount();
    emit(Code::Return).index = function;
    out_.code_[f.start].result = here();
  }

  void call(ExprRef e) {
    const std::vector<uint32_t> given = registersOf(e->operands);
    const Recursion& recursion = recursions_.at(e->index);
    std::vector<uint32_t> values;
    for (size_t k = 0; k < e->count; ++k) values.push_back(fresh());
    multiple_[e] = values;
    const uint32_t first = static_cast<uint32_t>(out_.passed_.size());
    for (size_t k = 0; k < given.size(); ++k) out_.passed_.emplace_back(given[k], recursion.arguments[k]);
    Instruction& i = emit(Code::Call);
    i.index = recursion.function;
    i.result = recursion.start;
    i.a = first;
    i.b = static_cast<uint32_t>(out_.passed_.size());
    for (size_t k = 0; k < e->count; ++k) move(recursion.results[k], values[k]);
  }

  void begin(Frame& f, const ScheduleStep& step) {
    ExprRef e = step.node;
    std::vector<uint32_t> values;
    for (uint32_t k = 0; k < lcu::valueCount(e); ++k) values.push_back(fresh());
    multiple_[e] = values;
    if (e->kind == ExprKind::Recursion) return beginRecursion(f, e);
    if (e->kind == ExprKind::If) {
      uint32_t condition = registerOf(e->operands[0]);
      f.jump = here();
      emit(Code::JumpIfFalse).a = condition;
      return;
    }
    moveAll(codegen::loopInitial(e), values);
    for (uint32_t k = 0; k < e->count; ++k) loopVars_[(uint64_t{e->index} << 32) | k] = values[k];
    f.start = here();
    emit(Code::JumpIfFailed);
  }

  void middle(Frame& f, const ScheduleStep& step) {
    ExprRef e = step.node;
    if (e->kind == ExprKind::If) {
      moveAll(codegen::thenValues(e), multiple_[e]);
      uint32_t over = here();
      emit(Code::Jump);
      out_.code_[f.jump].result = here();
      f.jump = over;
    } else {
      uint32_t condition = registerOf(codegen::loopCondition(e));
      f.jump = here();
      emit(Code::JumpIfFalse).a = condition;
    }
  }

  void finish(Frame& f, const ScheduleStep& step) {
    ExprRef e = step.node;
    if (e->kind == ExprKind::Recursion) return finishRecursion(f, e);
    if (e->kind == ExprKind::If) {
      moveAll(codegen::elseValues(e), multiple_[e]);
    } else {
      // All variables step together: first into registers of their own.
      std::vector<uint32_t> next;
      for (uint32_t k = 0; k < e->count; ++k) next.push_back(fresh());
      moveAll(codegen::loopNext(e), next);
      for (uint32_t k = 0; k < e->count; ++k) {
        Instruction& i = emit(Code::Move);
        i.a = next[k];
        i.result = multiple_[e][k];
      }
      emit(Code::Repeat).result = f.start;
      out_.code_[f.start].result = here();
    }
    out_.code_[f.jump].result = here();
  }

  void simple(ExprRef e) {
    std::vector<uint32_t> operands;
    for (ExprRef o : e->operands) operands.push_back(registerOf(o));
    uint32_t result = fresh();
    registers_[e] = result;
    Instruction i;
    i.result = result;
    i.a = operands[0];
    i.b = operands.size() > 1 ? operands[1] : 0;
    i.type = e->operands[0]->type;
    switch (e->kind) {
      case ExprKind::Load:
        i.code = mode_ == Mode::Kernel ? Code::Load : Code::Element;
        i.index = mode_ == Mode::Kernel ? arraySlot(e->index) : e->index;
        i.type = e->type;
        i.gathers = !codegen::loadsInOrder(e);
        break;
      case ExprKind::Convert:
        i.code = Code::Convert;
        i.to = e->type;
        break;
      case ExprKind::Check:
        i.code = Code::Check;
        i.c = operands[2];
        i.payload0 = operands[3];
        i.payload1 = operands[4];
        i.index = e->index;
        break;
      case ExprKind::Op:
        i.op = e->op;
        i.code = codegen::dividesByWords(e) ? Code::Divide : codeOf(e->op, i.type);
        break;
      default:
        throw InternalError("unexpected kind of expression");
    }
    out_.code_.push_back(i);
  }

  /// Common operations have codes of their own; the rest goes through `evaluate`.
  static Code codeOf(ScalarOp op, ScalarType type) {
    if (type == ScalarType::Float64) {
      switch (op) {
        case ScalarOp::Add:
          return Code::AddF;
        case ScalarOp::Sub:
          return Code::SubF;
        case ScalarOp::Mul:
          return Code::MulF;
        case ScalarOp::Div:
          return Code::DivF;
        case ScalarOp::Less:
          return Code::LessF;
        case ScalarOp::Greater:
          return Code::GreaterF;
        default:
          return Code::Generic;
      }
    }
    if (isFloat(type)) return Code::Generic;
    switch (op) {
      case ScalarOp::Equal:
        return Code::EqualI;
      case ScalarOp::NotEqual:
        return Code::NotEqualI;
      case ScalarOp::Less:
        return Code::LessI;
      case ScalarOp::LessEqual:
        return Code::LessEqualI;
      case ScalarOp::Greater:
        return Code::GreaterI;
      case ScalarOp::GreaterEqual:
        return Code::GreaterEqualI;
      case ScalarOp::And:
        return Code::AndB;
      case ScalarOp::Or:
        return Code::OrB;
      default:
        break;
    }
    if (type != ScalarType::Int64) return Code::Generic;
    switch (op) {
      case ScalarOp::Add:
        return Code::AddI;
      case ScalarOp::Sub:
        return Code::SubI;
      case ScalarOp::Mul:
        return Code::MulI;
      default:
        return Code::Generic;
    }
  }

  ExpressionCode& out_;
  Mode mode_;
  const std::function<bool(lcu::VarId)>& isCell_;
  Schedule schedule_;
  std::map<std::pair<uint32_t, size_t>, uint32_t> numbers_;  ///< of gathers, divisions; by block and step
  std::unordered_map<ExprRef, uint32_t> registers_;
  std::unordered_map<ExprRef, std::vector<uint32_t>> multiple_;
  std::unordered_map<uint64_t, uint32_t> loopVars_;
  std::unordered_map<uint32_t, Recursion> recursions_;  ///< by id
};

ExpressionCode::ExpressionCode(const std::vector<ExprRef>& roots, Mode mode,
                               const std::function<bool(lcu::VarId)>& isCell) {
  Compiler(*this, mode, isCell).compile(roots);
  for (const Instruction& i : code_)
    if (i.code == Code::Cell) cells_.push_back(i.index);
}

std::optional<uint32_t> ExpressionCode::paramRegister(uint32_t number) const {
  for (const auto& [n, r] : params_)
    if (n == number) return r;
  return std::nullopt;
}

namespace {
/// Of one evaluation; reached by endless recursion only.
constexpr size_t kMostStack = (size_t{1} << 29) / sizeof(Register);
}  // namespace

void ExpressionCode::run(Register* r, const void* const* arrays, Environment& environment, uint64_t& gathered,
                         uint64_t* entered, Trace* trace, Progress* progress) const {
  Progress own;
  Progress& at = progress ? *progress : own;
  bool& failed = at.failed;
  std::vector<Register>& stack = at.stack;  // saved registers and, last, where to go on
  std::vector<Register> passed;             // arguments on their way
  const auto save = [&](const Function& function, size_t next) {
    stack.insert(stack.end(), r + function.low, r + function.high);
    stack.push_back({.i = static_cast<int64_t>(next)});
  };
  const size_t end = code_.size();
  for (size_t pc = at.next; pc < end; ++pc) {
    const Instruction& i = code_[pc];
    switch (i.code) {
      case Code::AddI:
        r[i.result].i =
            static_cast<int64_t>(static_cast<uint64_t>(r[i.a].i) + static_cast<uint64_t>(r[i.b].i));
        break;
      case Code::SubI:
        r[i.result].i =
            static_cast<int64_t>(static_cast<uint64_t>(r[i.a].i) - static_cast<uint64_t>(r[i.b].i));
        break;
      case Code::MulI:
        r[i.result].i =
            static_cast<int64_t>(static_cast<uint64_t>(r[i.a].i) * static_cast<uint64_t>(r[i.b].i));
        break;
      case Code::AddF:
        r[i.result].f = r[i.a].f + r[i.b].f;
        break;
      case Code::SubF:
        r[i.result].f = r[i.a].f - r[i.b].f;
        break;
      case Code::MulF:
        r[i.result].f = r[i.a].f * r[i.b].f;
        break;
      case Code::DivF:
        r[i.result].f = r[i.a].f / r[i.b].f;
        break;
      case Code::EqualI:
        r[i.result].i = r[i.a].i == r[i.b].i;
        break;
      case Code::NotEqualI:
        r[i.result].i = r[i.a].i != r[i.b].i;
        break;
      case Code::LessI:
        r[i.result].i = r[i.a].i < r[i.b].i;
        break;
      case Code::LessEqualI:
        r[i.result].i = r[i.a].i <= r[i.b].i;
        break;
      case Code::GreaterI:
        r[i.result].i = r[i.a].i > r[i.b].i;
        break;
      case Code::GreaterEqualI:
        r[i.result].i = r[i.a].i >= r[i.b].i;
        break;
      case Code::AndB:
        r[i.result].i = r[i.a].i & r[i.b].i;
        break;
      case Code::OrB:
        r[i.result].i = r[i.a].i | r[i.b].i;
        break;
      case Code::LessF:
        r[i.result].i = r[i.a].f < r[i.b].f;
        break;
      case Code::GreaterF:
        r[i.result].i = r[i.a].f > r[i.b].f;
        break;
      case Code::Divide:
        if (trace && codegen::isLong(r[i.a].i, r[i.b].i)) trace->dividesLong(i.payload0);
        r[i.result].i = kelpie::evaluate(i.op, toScalar(i.type, r[i.a]), toScalar(i.type, r[i.b])).i;
        break;
      case Code::Generic:
        r[i.result] = toRegister(
            arity(i.op) == 2 ? kelpie::evaluate(i.op, toScalar(i.type, r[i.a]), toScalar(i.type, r[i.b]))
                             : kelpie::evaluate(i.op, toScalar(i.type, r[i.a])));
        break;
      case Code::Convert:
        r[i.result] = toRegister(kelpie::convert(toScalar(i.type, r[i.a]), i.to));
        break;
      case Code::Move:
        r[i.result] = r[i.a];
        break;
      case Code::Load:
        if (trace) {
          if (i.gathers && !trace->makes(i.payload0)) {
            r[i.result] = {};
            break;
          }
          at.next = pc;
          trace->loads(addressOf(arrays[i.index], r[i.a].i, i.type), i.gathers);
          if (i.gathers) trace->gathers(i.payload0, r[i.a].i);
        }
        r[i.result] = loadElement(i.type, arrays[i.index], r[i.a].i);
        if (i.gathers) gathered += static_cast<uint64_t>(sizeOf(i.type));
        break;
      case Code::Element:
        r[i.result] = environment.element(i.index, r[i.a].i);
        break;
      case Code::Cell:
        r[i.result] = environment.cell(i.index);
        break;
      case Code::Size:
        r[i.result].i = environment.size(i.index);
        break;
      case Code::Check:
        if (r[i.a].i != 0) {
          r[i.result] = r[i.b];
        } else {
          environment.fail(i.index, r[i.payload0].i, r[i.payload1].i);
          failed = true;
          r[i.result] = r[i.c];
        }
        break;
      case Code::Enter:
        save(functions_[i.index], i.result - size_t{1});
        break;
      case Code::Call: {
        environment.step();
        const Function& function = functions_[i.index];
        if (!failed && stack.size() + (function.high - function.low) >= kMostStack) {
          environment.fail(function.site, 0, 0);
          failed = true;
        }
        if (failed) {
          for (uint32_t result : function.results) r[result] = {};
          break;
        }
        passed.clear();
        for (uint32_t k = i.a; k < i.b; ++k) passed.push_back(r[passed_[k].first]);
        save(function, pc);
        for (uint32_t k = i.a; k < i.b; ++k) r[passed_[k].second] = passed[k - i.a];
        pc = i.result - size_t{1};
        break;
      }
      case Code::Return: {
        const Function& function = functions_[i.index];
        pc = static_cast<size_t>(stack.back().i);
        stack.pop_back();
        const size_t kept = stack.size() - (function.high - function.low);
        std::copy(stack.begin() + static_cast<ptrdiff_t>(kept), stack.end(), r + function.low);
        stack.resize(kept);
        break;
      }
      case Code::Repeat:
        environment.step();
        pc = i.result - size_t{1};
        break;
      case Code::Jump:
        pc = i.result - size_t{1};
        break;
      case Code::JumpIfFalse:
        if (r[i.a].i == 0) pc = i.result - size_t{1};
        break;
      case Code::Block:
        ++entered[i.index];
        if (trace) trace->enters(i.index);
        break;
      case Code::JumpIfFailed:
        if (failed) pc = i.result - size_t{1};
        break;
    }
  }
  at = {};
}

}  // namespace kelpie::runtime
