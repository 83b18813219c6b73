// The plan: the host part of an lcu::Program as code for a small register machine (runtime/executor.h).
//
// In:  a well-formed program, fused or not.
// Out: for each function a list of instructions over numbered slots of its frame. HostIf, HostLoop and calls
// are
//      jumps; a call in tail position replaces its frame.
// Invariant: a slot is released right after the last use of its variable on every path (inside the branches
// of a
//      conditional, after a loop; a loop's parameter in the body), so buffers go back to the pool as early as
//      the program's structure allows, and slots are used again by later variables.
#pragma once

#include <memory>
#include <vector>

#include "ir/lcu.h"
#include "runtime/interp/expression_code.h"
#include "runtime/target.h"

namespace kelpie::runtime {

/// Number of a value in a frame; with kGlobalSlot added, number of a global.
using Slot = uint32_t;
constexpr Slot kGlobalSlot = Slot{1} << 31;
constexpr Slot kNoSlot = ~Slot{0};

/// Host expressions as code, with the types of their values.
struct HostCode {
  ExpressionCode code;
  std::vector<ScalarType> types;
};

enum class PlanOp : uint8_t {
  Let,          // results := code; or operands, if there are any: cells, one for each
  Launch,       // kernel number `target`: operands by its parameters, results by its outputs (kNoSlot: not
                // wanted); code gives n, m, length and the targets
  Call,         // function `target`: operands -> results
  TailCall,     // the same, replacing this frame
  Return,       // operands
  Jump,         // to instruction `target`
  JumpIfFalse,  // operands[0]
  Decide,       // the same, where operands[0] is a cell
  Move,         // results := operands, all at once
  Release,      // operands are not used any more
  Constant,     // results := statement's columns
  Join,         // results[0] := an array that contains the operands; the other results: where each begins
  Grade,        // results := what lcu::Grade makes of operands[0]; code gives n, m, length
  Service,      // operands -> results
};

struct PlanInstruction {
  PlanOp op;
  uint32_t target = 0;
  std::vector<Slot> results, operands;
  std::vector<Slot> dying;  ///< Call: slots of this frame to release before the callee runs
  /// Launch: an output that starts as the elements of an array. `dies`: nothing else reads these, in this
  /// launch or after it.
  struct Onto {
    uint32_t output;
    Slot base;
    bool dies;
  };
  std::vector<Onto> onto;
  /// Launch: the variable that holds n, which code does not give then; of kernels that are `counted`.
  Slot counted = kNoSlot;
  /// Launch: numbers of outputs that a later Join wants side by side in one buffer.
  std::vector<std::vector<uint32_t>> joint;
  std::unique_ptr<HostCode> code;
  const lcu::Stmt* stmt = nullptr;  ///< for its node and its span; null for jumps, moves and releases
};

struct PlanFunction {
  std::string name;
  std::vector<PlanInstruction> code;
  std::vector<Slot> params;
  uint32_t slots = 0;
};

struct Plan {
  std::vector<PlanFunction> functions;  ///< as Program::functions, then the entry
  ProgramKernels kernels;
  std::vector<Slot> slotOf;             ///< by VarId
  std::vector<lcu::VarId> shortArrays;  ///< codegen/short_arrays.h
  uint32_t globals = 0;
  uint32_t entry() const { return static_cast<uint32_t>(functions.size() - 1); }
};

/// The program must outlive the plan.
Plan makePlan(const lcu::Program& program);

}  // namespace kelpie::runtime
