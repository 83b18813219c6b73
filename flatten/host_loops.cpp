// Tail recursion at a root: a loop of the host.
//
//   function smoothed(m, k) = if k == 0 then m else smoothed({{... : j in [0:n]} : i in [0:n]}, k - 1)
//
// The loop's variables are a flag (done), the function's results, and its parameters, but for those that
// never change. What is known of sequences that go around (flatten/shape.h) is what is known of the first
// arguments: the body is compiled for these, and again for less if it makes others of which less is known.
#include <algorithm>

#include "flatten/flattener.h"
#include "flatten/saved.h"

namespace kelpie::flatten {

using lcu::ExprKind;
using lcu::VarKind;

/// One way through the body, to its end: results, or the arguments of the next step. Or a choice of two.
struct Flattener::LoopStep {
  lcu::Block* block = nullptr;
  bool again = false;
  Outgoing outgoing;
  ExprRef condition = nullptr;  ///< null: no choice
  Span span;
  std::shared_ptr<lcu::Block> thenBlock, elseBlock;
  std::unique_ptr<LoopStep> first, second;

  /// What is known of the next arguments, or of the results, whichever way is taken.
  Shapes shapes(bool ofNext) const {
    if (condition) return meet(first->shapes(ofNext), second->shapes(ofNext));
    return again == ofNext ? outgoing.shapes : Shapes{};
  }
};

std::unique_ptr<Flattener::LoopStep> Flattener::hostLoopStep(core::ExpPtr e, core::FunctionId f,
                                                             Context& root, Frame& frame) {
  auto step = std::make_unique<LoopStep>();
  step->block = block_;
  const core::If* branch = nullptr;
  for (;;) {
    while (auto* let = std::get_if<core::Let>(&e->node)) {
      if (e->span.known()) span_ = e->span;
      Values values = compile(let->rhs, root, frame);
      bind(let->vars, values, root, frame);
      e = let->body;
    }
    branch = std::get_if<core::If>(&e->node);
    if (!branch) break;
    step->condition = atom(branch->condition, root, frame).scalar();
    if (step->condition->kind != ExprKind::Constant) break;
    e = step->condition->constant.isTrue() ? branch->thenBranch : branch->elseBranch;
    step->condition = nullptr;
  }
  step->span = span_;
  if (branch) {
    flushPending(root);
    auto side = [&](const core::ExpPtr& body, std::shared_ptr<lcu::Block>& block) {
      block = std::make_shared<lcu::Block>();
      Saved outer(block_);
      block_ = block.get();
      return hostLoopStep(body, f, newContext(Context::Kind::Root, &root, {}, block_), frame);
    };
    step->first = side(branch->thenBranch, step->thenBlock);
    step->second = side(branch->elseBranch, step->elseBlock);
    return step;
  }
  auto* call = std::get_if<core::Call>(&e->node);
  step->again = call && call->function == f;
  if (!step->again) {
    step->outgoing = leave(compile(e, root, frame), root);
    return step;
  }
  Values next;
  for (size_t k = 0; k < call->arguments.size(); ++k)
    if (!analysis_.invariantParameters(f)[k]) next.push_back(atom(call->arguments[k], root, frame));
  step->outgoing = leave(next, root);
  return step;
}

/// The variables behind a step, of `current` ones: done, results, varying parameters.
std::vector<VarId> Flattener::finishStep(const LoopStep& step, const LoopVariables& current,
                                         const Shapes& results, const Shapes& varying) {
  Saved block(block_);
  Saved span(span_);
  block_ = step.block;
  span_ = step.span;
  if (!step.condition) {
    const VarId done = hostLet(arena().boolean(!step.again), block_, "done");
    const std::vector<VarId> made = cross(step.outgoing, step.again ? varying : results);
    return LoopVariables{done, step.again ? current.results : made, step.again ? made : current.varying}
        .all();
  }
  lcu::HostIf hostIf;
  hostIf.condition = step.condition;
  hostIf.thenBlock = step.thenBlock;
  hostIf.elseBlock = step.elseBlock;
  hostIf.thenBlock->results = finishStep(*step.first, current, results, varying);
  hostIf.elseBlock->results = finishStep(*step.second, current, results, varying);
  lcu::Stmt stmt;
  for (VarId var : current.all()) {
    const lcu::VarInfo info = program_.vars[var];
    stmt.results.push_back(newVar(info.kind, info.type, info.name));
  }
  std::vector<VarId> out = stmt.results;
  stmt.node = std::move(hostIf);
  append(block_, std::move(stmt));
  return out;
}

std::vector<VarId> Flattener::LoopVariables::all() const {
  std::vector<VarId> vars = {done};
  vars.insert(vars.end(), results.begin(), results.end());
  vars.insert(vars.end(), varying.begin(), varying.end());
  return vars;
}

namespace {
/// Numbers that follow from their positions: no array holds them until somebody needs one.
bool isRange(const Value& value) {
  constexpr int64_t kFew = 4096;
  const auto* sequence = std::get_if<Sequence>(&value.node);
  if (!sequence || lcu::asIndex(sequence->length).value_or(kFew + 1) <= kFew) return false;
  const std::vector<ViewPtr>& views = sequence->views;
  return std::any_of(views.begin(), views.end(), [](const ViewPtr& view) {
    return view->kind == View::Kind::Direct && view->store->kind == Store::Kind::Iota;
  });
}
}  // namespace

Values Flattener::runHostLoop(core::FunctionId f, const Values& arguments, Context& context) {
  const core::Function& function = core_.functions[f];
  const std::vector<bool>& invariant = analysis_.invariantParameters(f);
  flushPending(context);
  Frame initial;
  Row types;
  Values varying;
  for (size_t k = 0; k < arguments.size(); ++k) {
    initial[function.parameters[k].id] = {&context, arguments[k]};
    if (invariant[k]) continue;
    types.push_back(function.parameters[k].type);
    varying.push_back(arguments[k]);
  }
  // A loop that begins with a range, often of candidates that become fewer, makes its first step before: so
  // the range is never stored.
  std::unique_ptr<LoopStep> before;
  Outgoing outgoing;
  const auto firstBefore = static_cast<VarId>(program_.vars.size());
  if (std::any_of(varying.begin(), varying.end(), isRange) && inlined_ + analysis_.size(f) <= kInlineBudget) {
    inlined_ += analysis_.size(f);
    Frame first = initial;
    before = hostLoopStep(function.body, f, context, first);
  } else {
    outgoing = leave(varying, context);
  }
  Shapes shapes = before ? beyond(before->shapes(true), firstBefore) : outgoing.shapes;
  // A length that is computed would be computed, and be another variable, wherever the body needs it.
  shapes = withLengths(std::move(shapes), [&](ExprRef length) {
    const bool simple = length->kind == ExprKind::Constant || length->kind == ExprKind::Host;
    return simple ? length : arena().nonNegative(arena().host(hostLet(length, block_, "each"), lcu::kIndex));
  });
  const auto firstInside = static_cast<VarId>(program_.vars.size());
  shapes = shapes.empty() ? slices(types) : settled(std::move(shapes), Shape::Kind::Offsets);

  lcu::HostLoop loop;
  LoopVariables parameters;
  std::unique_ptr<LoopStep> body;
  for (int attempt = 0;; ++attempt) {
    const Mark mark = this->mark();
    Saved block(block_);
    loop.body = std::make_shared<lcu::Block>();
    block_ = loop.body.get();
    Context& root = newContext(Context::Kind::Root, &context, {}, block_);
    Frame frame = initial;
    parameters.varying.clear();
    for (size_t k = 0, v = 0; k < arguments.size(); ++k) {
      if (invariant[k]) continue;
      const core::Var& parameter = function.parameters[k];
      const std::vector<VarId> vars = declare({parameter.type}, {shapes[v]}, parameter.name);
      frame[parameter.id] = {&root, arrive({parameter.type}, {shapes[v++]}, vars)[0]};
      parameters.varying.insert(parameters.varying.end(), vars.begin(), vars.end());
    }
    body = hostLoopStep(function.body, f, root, frame);
    const Shapes met = meet(shapes, body->shapes(true));
    if (met == shapes) break;
    constexpr int kAttempts = 3;
    shapes = attempt < kAttempts ? met : slices(types);
    goBack(mark);
  }
  Shapes results = beyond(body->shapes(false), firstInside);
  if (before) results = meet(results, beyond(before->shapes(false), firstBefore));
  results = results.empty() ? slices(function.result) : settled(std::move(results), Shape::Kind::Regular);

  parameters.done = newVar(VarKind::Host, ScalarType::Bool, "done");
  parameters.results = declare(function.result, results, "result");
  loop.params = parameters.all();
  LoopVariables begin;
  begin.done = hostLet(arena().boolean(false), block_, "done");
  begin.results = crossNothing(function.result, results);
  begin.varying = before ? crossNothing(types, shapes) : cross(outgoing, shapes);
  loop.initial = before ? finishStep(*before, begin, results, shapes) : begin.all();
  loop.body->results = finishStep(*body, parameters, results, shapes);
  loop.condition = std::make_shared<lcu::Block>();
  {
    Saved block(block_);
    block_ = loop.condition.get();
    ExprRef more = arena().op(ScalarOp::Not, arena().host(parameters.done, ScalarType::Bool));
    loop.condition->results = {hostLet(more, block_, "more")};
  }
  lcu::Stmt stmt;
  stmt.results = {newVar(VarKind::Host, ScalarType::Bool, "done")};
  const std::vector<VarId> made = declare(function.result, results, "r");
  stmt.results.insert(stmt.results.end(), made.begin(), made.end());
  for (VarId var : parameters.varying) {
    const lcu::VarInfo info = program_.vars[var];
    stmt.results.push_back(newVar(info.kind, info.type, info.name));
  }
  stmt.node = std::move(loop);
  append(block_, std::move(stmt));
  return arrive(function.result, results, made);
}

}  // namespace kelpie::flatten
