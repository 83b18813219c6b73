// λcu scalar expressions -> C-family statements, for the CPU and the CUDA code generators.
//
// In:  expressions, and a dialect that names parameters, host values, loads and the recording of errors.
// Out: statements (one name for each value that is shared or not a plain expression; everything else inline)
//      and, for each root, the text of its value. Placement follows codegen/expression_schedule.h.
//
// The text uses these functions, which the support header of a target provides as overloads for the scalar
// types (ir/scalar.h is their meaning): k_div k_rem (int; x/0 = 0), k_max k_min, k_shl k_shr, k_sqrt k_exp
// k_ln k_sin k_cos k_tan k_asin k_acos k_atan k_sinh k_cosh k_tanh k_floor, k_convert<T>(x),
// k_double_bits(u64) and k_float_bits(u32) for infinities and NaNs; for recursions a type k_recursion, and
// k_recurse(recursion, call), which calls `call` if there is stack for it and says whether there was (with
// Dialect::frames what codegen/cuda/recursion.cuh has); with Dialect::wrapCalls also k_add k_sub k_mul on
// ints (the plain operators are used otherwise: then signed overflow must wrap, -fwrapv). Types are bool,
// uint8_t (char), int32_t, int64_t, float, double.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/expression_schedule.h"
#include "codegen/scalar_text.h"
#include "ir/expr.h"

namespace kelpie::codegen {

/// What becomes of checks.
enum class CheckForm : uint8_t {
  Record,  ///< one that fails is recorded (Dialect::fail), and its value is the fallback
  Note,    ///< ... is noted (Dialect::noted) instead
  Assume,  ///< none fails: the value is what was checked
};

/// A loop that may have been gone through before.
struct KnownLoop {
  std::string known;                ///< an expression: whether it has
  std::vector<std::string> values;  ///< by number of the variable; empty: it is not wanted
};

/// What the surroundings of an expression decide. Every text given back must be an atomic C expression (a
/// name, a call, an index) unless it says otherwise.
struct Dialect {
  std::function<std::string(uint32_t number)> param;
  std::function<std::string(lcu::VarId, ScalarType)> host;  ///< a host scalar or a cell
  /// Element `position` (any expression text) of an array. `load` is the Load node.
  std::function<std::string(lcu::ExprRef load, const std::string& position)> load;
  std::function<std::string(lcu::VarId)> size;
  /// A statement (with its semicolon) that records an error; payloads are any expression texts.
  std::function<std::string(lcu::SiteId, const std::string& payload0, const std::string& payload1)> fail;
  std::function<std::string(lcu::VarId)> variableName;  ///< readable stem for the names of loaded values
  /// What a `k_recursion` is made with: it watches the stack of one evaluation (see below).
  std::string recursion;
  /// A recursion keeps frames of its calls in `k_recursion` and is a loop over these, where no other one is
  /// inside of it: the lanes of a warp meet at each turn, where calls of functions would leave each lane
  /// alone.
  bool frames = false;
  /// Recorded where the stack ends, if not the site of the Recursion.
  std::optional<lcu::SiteId> stackSite;
  /// An expression that tells whether to stop: loops ask now and then, and end. Empty: they do not ask.
  std::string interrupted;
  bool wrapCalls = false;
  /// Divisions of integers as the functions of codegen/cuda/integer_division.cuh; where the remainder is
  /// wanted, too, it is k_remainder(a, b, quotient).
  bool divisionCalls = false;
  /// ... each with its own code for long operands.
  bool dividesInPlace = false;
  /// `and`, `or` of bools as && and ||. The assembler of CUDA 13.0 (ptxas, all levels but -O0) gets
  /// `(x >= 0) & (x < 1)` on a widened int32 wrong, seen on an H200; the short-circuit form is right.
  bool shortCircuit = false;
  /// `x >= 0 and x < y` of Int64 as k_within(x, y), which is to be there for an int32_t x, too; but not where
  /// a loop changes x.
  bool rangeCalls = false;
  /// Variables of loops that are known to be from 0 to 2^32 - 1 (Expr::nonNegative) are uint32_t.
  bool wordVariables = false;
  /// k_loaded(x) after loads in loops that the program makes on every way, though one branch alone needs
  /// them, if others go to the same position: columns of one element.
  bool loadedCalls = false;
  /// Of such loads (at least two, of Int64 and Float64) at a position: an expression with a member `column`,
  /// the bits of each in order, of which integerColumn(bits) and floatColumn(bits) make values. Empty, or
  /// none: they are loaded one by one.
  std::function<std::string(const std::vector<lcu::ExprRef>& loads, const std::string& position)> record;
  /// A position outside of loops whose loads are such, too; null: there is none.
  lcu::ExprRef gathered = nullptr;
  /// Whether the array of a load is known to have as many elements as that of another one.
  std::function<bool(lcu::ExprRef load, lcu::ExprRef other)> sameLength;
  /// `1 / x` of floats as a call that begins so, "k_reciprocal(". Empty: as a division.
  std::string reciprocal;
  /// Divisions of floats whose numerator may well be zero as calls of this, "k_quotient". Empty: as others.
  std::string quotient;
  std::function<std::optional<KnownLoop>(lcu::ExprRef loop)> knownLoop;  ///< empty, or none: it has not
  CheckForm checks = CheckForm::Record;
  std::string noted;  ///< of CheckForm::Note: a bool that becomes false where something is to be recorded
  /// ... whatever a float is whose check failed does no harm: it needs no fallback, and so no branch.
  bool anyFloat = false;
};

/// Emits into one C scope, possibly in several calls: names given in earlier calls stay usable, so that
/// expressions shared between calls are computed once.
class ExpressionEmitter {
 public:
  /// `indent` spaces in front of every statement. `prefix` is put in front of all generated names.
  ExpressionEmitter(const Dialect& dialect, int indent, std::string prefix = "");

  /// Appends the statements that compute the roots; returns their texts (any C expression, without
  /// side effects; valid to the end of the scope).
  std::vector<std::string> emit(const std::vector<lcu::ExprRef>& roots);
  /// Computes expressions, which have names from now on, unless they are atoms.
  void name(const std::vector<lcu::ExprRef>& nodes);
  /// From now on `node` is `text` (an atomic C expression); its operands are not emitted for it.
  void define(lcu::ExprRef node, std::string text);
  /// The text of an expression emitted or defined before, parenthesised when it is not atomic.
  std::string atomic(lcu::ExprRef e) const;

  /// From now on names are declared ahead of the statements that compute their values, which are assignments:
  /// these may then stand in a scope of their own.
  void declareAhead(bool ahead) { ahead_ = ahead; }
  /// What was to be declared since the last call, with values that count for nothing.
  std::string takeDeclarations();
  struct LoopText {
    std::string before;  ///< what the loop needs, and the first values of its variables
    std::string turns;   ///< the loop itself
  };
  /// Computes one value of a Loop, and so all. `head` is the head of a statement that repeats a block, which
  /// `break` leaves. When it has ended before the loop has, it goes on with the loop if it is executed again.
  /// Checks that were emitted before do not end the loop.
  LoopText emitLoop(lcu::ExprRef value, const std::string& head);
  /// Names that `other`, a copy that has gone on, has chosen are not chosen again.
  void continueNames(const ExpressionEmitter& other) { nameCounts_ = other.nameCounts_; }

  void indent(int more) { indent_ += more; }  ///< all statements from now on

  std::string takeStatements();  ///< all statements so far; clears them, keeps the names
  /// Appends a statement of the caller's own (indented here, newline added).
  void statement(const std::string& text);
  /// A name not used before by this emitter: `stem`_1, ...
  std::string freshName(const std::string& stem);

 private:
  struct Text {
    std::string text;
    bool atomic = true;
  };
  struct Run;
  Text textOf(lcu::ExprRef e) const;
  Text operationText(lcu::ExprRef e) const;
  /// What follows the name of the function that divides.
  std::string_view kindOfDivision(lcu::ExprRef e) const;

  const Dialect& dialect_;
  int indent_;
  std::string prefix_;
  std::string out_;
  std::unordered_set<lcu::ExprRef> named_;  ///< what gets a name, however short it is
  bool ahead_ = false;
  std::string declarations_;
  std::string loopHead_, beforeLoop_;  ///< of emitLoop
  lcu::ExprRef wantedLoop_ = nullptr;
  std::unordered_map<std::string, int> nameCounts_;
  std::unordered_map<lcu::ExprRef, Text> texts_;                         ///< single-valued nodes
  std::unordered_map<lcu::ExprRef, std::vector<std::string>> multiple_;  ///< values of multi-valued ones
  std::unordered_map<uint64_t, std::string> loopVars_;                   ///< (loop, number) -> name
  std::unordered_set<uint64_t> words_;                                   ///< of these: have one word
  std::unordered_set<lcu::ExprRef> available_;
  std::map<std::pair<lcu::ExprRef, lcu::ExprRef>, lcu::ExprRef>
      quotients_;  ///< of the scope, by their operands
};

}  // namespace kelpie::codegen
