// Scalar expressions as register code, and the machine that runs it.
//
// In:  expressions of one thunk (placed by codegen/expression_schedule.h).
// Out: `ExpressionCode`: straight-line instructions and jumps over a file of 64-bit registers. Ints, chars
// and bools
//      live in a register as their Int64 value, floats as a double (Float32 rounded after every operation),
//      exactly as in Scalar; the operations are those of ir/scalar.h.
//
// Two uses. In a kernel the constants, parameters, host scalars, sizes and cells are registers filled before
// the evaluation, and loads go through plain addresses. On the host (`ExpressionCode::Mode::Host`) reading a
// cell, an array element or a size may wait for the device, so each is an instruction that asks the
// environment when it is reached.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/expr.h"

namespace kelpie::runtime {

union Register {
  int64_t i;
  double f;
};
Register toRegister(const Scalar& s);
Scalar toScalar(ScalarType type, Register r);
Register loadElement(ScalarType type, const void* array, int64_t position);
void storeElement(ScalarType type, void* array, int64_t position, Register value);

/// Thrown out of a loop or recursion that was interrupted.
struct Interrupted {};

/// What the machine asks of its surroundings while it runs.
class Environment {
 public:
  virtual ~Environment() = default;
  /// Whether somebody wants the evaluation to end.
  virtual bool interrupted() const { return false; }
  /// Called now and then in loops, which may be endless: throws if there is no point in going on.
  virtual void look() {
    if (interrupted()) throw Interrupted{};
  }
  /// Called at each step of a loop or recursion. Steps of all evaluations are counted together: short loops
  /// of many elements take as long as long ones of few.
  void step() {
    if (++steps_ % kSteps == 0) look();
  }
  /// A Check failed. Afterwards the evaluation goes on with the fallback.
  virtual void fail(lcu::SiteId site, int64_t payload0, int64_t payload1) = 0;
  // Host mode only.
  virtual Register cell(lcu::VarId) { return {}; }
  virtual Register element(lcu::VarId, int64_t /*position*/) { return {}; }
  virtual int64_t size(lcu::VarId) { return 0; }

 private:
  static constexpr uint32_t kSteps = 4096;  ///< between two looks whether to go on
  uint32_t steps_ = 0;
};

class ExpressionCode {
 public:
  enum class Mode : uint8_t { Kernel, Host };
  enum class InputKind : uint8_t { Scalar, Size };
  struct Input {  ///< a register to fill before running
    InputKind kind;
    lcu::VarId var;
    ScalarType type;
    uint32_t reg;
  };

  /// `isCell` tells cells from host scalars (Host mode).
  ExpressionCode(const std::vector<lcu::ExprRef>& roots, Mode mode,
                 const std::function<bool(lcu::VarId)>& isCell = nullptr);

  /// Registers with the constants in place; the caller fills inputs and parameters.
  const std::vector<Register>& initialRegisters() const { return initial_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<lcu::VarId>& cells() const { return cells_; }    ///< that may be read (Host mode)
  const std::vector<lcu::VarId>& arrays() const { return arrays_; }  ///< by array slot (Kernel mode)
  /// Register of parameter `number`; none when the code does not use it.
  std::optional<uint32_t> paramRegister(uint32_t number) const;
  const std::vector<uint32_t>& resultRegisters() const { return results_; }
  bool empty() const { return code_.empty(); }

  /// Blocks of the schedule.
  size_t blockCount() const { return blockCount_; }

  /// Loads that are not at parameter 0 or 1, by block of the schedule and step.
  const std::vector<lcu::ExprRef>& gathers() const { return gathers_; }
  /// Those of which codegen::dividesByWords, by block of the schedule and step.
  const std::vector<lcu::ExprRef>& divisions() const { return divisions_; }
  /// How far an evaluation has come. One that Trace::loads has ended goes on from there, with the registers
  /// that it had, at the load that was to be made.
  struct Progress {
    size_t next = 0;
    bool failed = false;
    std::vector<Register> stack;  ///< of recursions
  };

  /// Tells of loads while they are made, and of what else may take long.
  class Trace {
   public:
    virtual ~Trace() = default;
    /// Whether one of gathers(), by number, is made; one that is not gives 0.
    virtual bool makes(uint32_t gather) const = 0;
    /// Before any load that is made; what is at the address must be there afterwards. `gathers`: it is one of
    /// gathers(). What it throws ends the evaluation.
    virtual void loads(const std::byte* address, bool gathers) = 0;
    /// One of gathers(), by number.
    virtual void gathers(uint32_t number, int64_t position) = 0;
    /// A block of the schedule, but for block 0 (Kernel mode).
    virtual void enters(uint32_t block) = 0;
    /// One of divisions(), by number, takes long (codegen::isLong).
    virtual void dividesLong(uint32_t number) = 0;
  };

  /// Runs over `registers`. `arrays` by array slot. Adds to `gathered` the bytes read by loads that are not
  /// at parameter 0 or 1, and in Kernel mode to `entered`, by block of the schedule, how often those were
  /// entered; block 0 is not counted. `trace` may be null.
  /// `progress`, which may be null, is where to begin; it is as at the beginning when all is done.
  void run(Register* registers, const void* const* arrays, Environment& environment, uint64_t& gathered,
           uint64_t* entered = nullptr, Trace* trace = nullptr, Progress* progress = nullptr) const;

 private:
  enum class Code : uint8_t {
    AddI,
    SubI,
    MulI,
    AddF,
    SubF,
    MulF,
    DivF,
    EqualI,
    NotEqualI,
    LessI,
    LessEqualI,
    GreaterI,
    GreaterEqualI,
    AndB,
    OrB,
    LessF,
    GreaterF,
    Divide,  ///< one of divisions()
    Generic,
    Convert,
    Move,
    Load,
    Element,
    Cell,
    Size,
    Check,
    Jump,
    Repeat,  ///< the jump back of a loop
    JumpIfFalse,
    JumpIfFailed,
    Block,  ///< a nested block of the schedule begins
    Enter,  ///< the first call of a recursion: its function follows
    Call,  ///< saves the registers of the function, passes arguments `a` to `b` of passed_, goes to its begin
    Return,  ///< restores them and goes to where the call was
  };
  struct Instruction {
    Code code;
    ScalarType type = ScalarType::Int64;  ///< of the operand (Generic, Convert) or the element
    ScalarType to = ScalarType::Int64;    ///< Convert
    ScalarOp op{};
    bool gathers = false;
    uint32_t result = 0, a = 0, b = 0, c = 0;        ///< registers; Jump*, Call: target in `result`
    uint32_t payload0 = 0, payload1 = 0, index = 0;  ///< of a gathering Load, a Divide, payload0: its number
  };
  /// A recursive function: the registers from `low` to `high` belong to the call at hand.
  struct Function {
    uint32_t low = 0, high = 0;
    lcu::SiteId site = 0;           ///< where the stack ends
    std::vector<uint32_t> results;  ///< registers outside
  };
  class Compiler;

  std::vector<Instruction> code_;
  std::vector<Register> initial_;
  std::vector<Input> inputs_;
  std::vector<lcu::VarId> arrays_, cells_;
  std::vector<std::pair<uint32_t, uint32_t>> params_;  ///< (number, register)
  std::vector<uint32_t> results_;
  size_t blockCount_ = 0;
  std::vector<lcu::ExprRef> gathers_, divisions_;
  std::vector<Function> functions_;                    ///< Enter, Call and Return name one by `index`
  std::vector<std::pair<uint32_t, uint32_t>> passed_;  ///< arguments of calls: from one register to another
};

}  // namespace kelpie::runtime
