// Tail-recursive scalar functions become loops inside a thunk (vectorisation avoidance, DESIGN.md section 5).
//
//   function iterate(z, c, n) = if n == 0 or abs2(z) > 4.0 then n else iterate(z*z + c, c, n-1)
//
// Loop variables: a `done` flag, the results, the parameters that change. Each step evaluates the body once:
// a returning leaf sets done and the results, a recursive leaf the parameters.
#include "flatten/flattener.h"
#include "flatten/saved.h"
#include "ir/diagnostic.h"

namespace kelpie::flatten {

struct Flattener::LoopShape {
  core::FunctionId function;
  std::vector<ExprRef> results;     ///< loop variables
  std::vector<ExprRef> parameters;  ///< loop variables of the varying parameters
  std::vector<size_t> varying;      ///< their positions in the parameter list
};

/// done, results..., varying parameters... after one evaluation of `e`, in tail position of the function.
/// `owed`: expressions around `e` that may fail, which each leaf evaluates.
std::vector<ExprRef> Flattener::loopStep(core::ExpPtr e, const LoopShape& shape, Context& context,
                                         Frame& frame, std::vector<ExprRef> owed) {
  const size_t mark = context.pending.size();
  while (auto* let = std::get_if<core::Let>(&e->node)) {
    Values values = compile(let->rhs, context, frame);
    bind(let->vars, values, context, frame);
    e = let->body;
  }
  const auto takePending = [&] {
    const std::vector<ExprRef> more = takeOwed(mark, context);
    owed.insert(owed.end(), more.begin(), more.end());
  };
  if (auto* branch = std::get_if<core::If>(&e->node)) {
    ExprRef condition = atom(branch->condition, context, frame).scalar();
    takePending();
    owed = stillOwed(owed, {condition});
    Saved outside(decided_);
    decided_.push_back(condition);
    std::vector<ExprRef> left = loopStep(branch->thenBranch, shape, context, frame, owed);
    std::vector<ExprRef> right = loopStep(branch->elseBranch, shape, context, frame, owed);
    return arena().select(condition, left, right);
  }
  std::vector<ExprRef> out;
  if (auto* call = std::get_if<core::Call>(&e->node); call && call->function == shape.function) {
    out.push_back(arena().boolean(false));
    out.insert(out.end(), shape.results.begin(), shape.results.end());
    for (size_t k : shape.varying) out.push_back(atom(call->arguments[k], context, frame).scalar());
  } else {
    out.push_back(arena().boolean(true));
    for (const Value& v : compile(e, context, frame)) out.push_back(v.scalar());
    out.insert(out.end(), shape.parameters.begin(), shape.parameters.end());
  }
  // Failing expressions that no result needs are tied to the flag.
  takePending();
  for (ExprRef x : stillOwed(owed, out))
    out[0] = arena().op(ScalarOp::Or, out[0], arena().op(ScalarOp::And, asBool(x), arena().boolean(false)));
  return out;
}

Values Flattener::compileScalarLoop(core::FunctionId f, const Values& arguments, Context& context) {
  const core::Function& function = core_.functions[f];
  const uint32_t loop = arena().newLoop();
  LoopShape shape;
  shape.function = f;
  uint32_t number = 0;
  std::vector<ExprRef> initial;
  auto variable = [&](ExprRef start) {
    initial.push_back(start);
    return arena().loopVar(loop, number++, start->type);
  };
  ExprRef done = variable(arena().boolean(false));
  for (const CoreType& type : function.result)
    shape.results.push_back(variable(arena().constant(Scalar::zero(type.scalar()))));
  Frame frame;
  for (size_t k = 0; k < arguments.size(); ++k) {
    Value value = arguments[k];
    if (!analysis_.invariantParameters(f)[k]) {
      shape.varying.push_back(k);
      shape.parameters.push_back(variable(value.scalar()));
      value = {shape.parameters.back()};
    }
    frame[function.parameters[k].id] = {&context, value};
  }
  ++delayed_;
  std::vector<ExprRef> next = loopStep(function.body, shape, context, frame, {});
  --delayed_;
  std::vector<ExprRef> last = arena().loop(loop, initial, arena().op(ScalarOp::Not, done), next);
  Values results;
  for (size_t k = 0; k < function.result.size(); ++k) results.push_back({last[1 + k]});
  return results;
}

}  // namespace kelpie::flatten
