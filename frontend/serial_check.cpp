#include "frontend/serial_check.h"

#include <string>

#include "frontend/builtins.h"
#include "frontend/overloaded.h"

namespace kelpie {

namespace {

using core::PrimOp;

bool isSerial(const core::Prim& prim) {
  if (prim.op == PrimOp::RandomSeed) return true;
  if (prim.op != PrimOp::Extern) return false;
  for (const Builtin& builtin : builtins()) {
    if (builtin.op == PrimOp::Extern && builtin.service == prim.text) return builtin.serial;
  }
  return true;
}

class SerialCheck {
 public:
  explicit SerialCheck(const core::Program& program) : program_(program), states_(program.functions.size()) {}

  std::vector<Diagnostic> run() {
    // Which functions are serial, to a fixed point: calls may be recursive.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < program_.functions.size(); ++i) {
        if (states_[i] || !program_.functions[i].body) continue;
        if (scan(*program_.functions[i].body, false, false)) states_[i] = changed = true;
      }
    }
    scan(*program_.entry, false, true);
    for (const core::Function& function : program_.functions) {
      if (function.body) scan(*function.body, false, true);
    }
    return std::move(diagnostics_);
  }

 private:
  /// Whether a serial operation occurs; with `report`, those below an apply-to-each become diagnostics.
  bool scan(const core::Exp& start, bool parallel, bool report) {
    bool any = false;
    const core::Exp* exp = &start;
    while (auto* let = std::get_if<core::Let>(&exp->node)) {  // chains of lets are long: no recursion
      any |= scan(*let->rhs, parallel, report);
      exp = let->body.get();
    }
    bool last = std::visit(
        Overloaded{
            [&](const core::If& branch) {
              bool thenFound = scan(*branch.thenBranch, parallel, report);
              return scan(*branch.elseBranch, parallel, report) || thenFound;
            },
            [&](const core::Each& each) { return scan(*each.body, parallel || !each.serial, report); },
            [&](const core::Invariant& invariant) { return scan(*invariant.body, parallel, report); },
            [&](const core::Prim& prim) {
              return isSerial(prim) && found(exp->span, "this operation", parallel, report);
            },
            [&](const core::Call& call) {
              return states_[call.function] &&
                     found(exp->span, "`" + program_.functions[call.function].name + "`", parallel, report);
            },
            [](const auto&) { return false; },
        },
        exp->node);
    return any || last;
  }

  bool found(Span span, const std::string& what, bool parallel, bool report) {
    if (parallel && report) {
      diagnostics_.push_back(
          {.id = "K0401",
           .span = span,
           .message = what + " cannot be called inside an apply-to-each",
           .hint = "its effect needs one caller at a time; {* ... } evaluates its body for one element "
                   "after another",
           .notes = {}});
    }
    return true;
  }

  const core::Program& program_;
  std::vector<bool> states_;  ///< the function is serial
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace

std::vector<Diagnostic> checkSerial(const core::Program& program) { return SerialCheck(program).run(); }

}  // namespace kelpie
