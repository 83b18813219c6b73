// The program, its functions, and calls.
#include "flatten/flatten.h"

#include <fmt/format.h>

#include "flatten/branch_calls.h"
#include "flatten/common_appends.h"
#include "flatten/device_conditions.h"
#include "flatten/device_scalars.h"
#include "flatten/flattener.h"
#include "flatten/hoist.h"
#include "flatten/literal_comparisons.h"
#include "flatten/loop_invariants.h"
#include "flatten/merged_cycles.h"
#include "flatten/rematerialise.h"
#include "flatten/saved.h"
#include "flatten/serial_loops.h"
#include "flatten/short_segments.h"
#include "flatten/sibling_calls.h"
#include "flatten/split_functions.h"
#include "ir/diagnostic.h"

namespace kelpie::flatten {

using lcu::VarKind;

namespace {

constexpr size_t kAlwaysInline = 12;

lcu::Program flattenParallel(const core::Program& program, const RegularCells& globals) {
  const core::Program compared = shareAppends(compareWithLiterals(program));
  const core::Program merged = mergeCycles(compared, Analysis(compared));
  const core::Program oneCall = joinBranchCalls(merged, Analysis(merged));
  const core::Program joined = joinSiblingCalls(oneCall, Analysis(oneCall));
  core::Program hoisted = hoist(joined, Analysis(joined));
  constexpr int kRounds = 8;  // one for each apply-to-each, and each call, that what is fixed leaves
  for (int round = 0; round < kRounds; ++round) {
    const std::optional<core::Program> split = splitFunctions(hoisted, Analysis(hoisted));
    if (!split) break;
    hoisted = hoist(*split, Analysis(*split));
  }
  lcu::Program flat = Flattener(hoisted, globals).run();
  removeLoopInvariants(flat);
  rematerialise(flat);
  unrollShortSegments(flat);
  scalarsOnDevice(flat);
  conditionsOnDevice(flat);
  return flat;
}

}  // namespace

lcu::Program flatten(const core::Program& program, const RegularCells& globals) {
  if (!hasSerialLoops(program)) return flattenParallel(program, globals);
  return flattenParallel(unrollSerialLoops(program, Analysis(program)), globals);
}

lcu::Program Flattener::run() {
  if (program_.vars.empty()) program_.vars.emplace_back();
  if (program_.sites.empty()) program_.sites.push_back({{}, "unknown"});
  block_ = &program_.entry.body;
  program_.entry.name = "main";
  Context& root = newContext(Context::Kind::Root, nullptr, {}, block_);
  for (const core::Global& global : core_.globals) {
    lcu::GlobalInput input;
    input.cell = global.cell;
    const auto known = regularCells_.find(global.cell);
    const auto regular = [&] {
      const size_t next = input.vars.size();
      return known != regularCells_.end() && next < known->second.size() && known->second[next];
    };
    Row types;
    std::function<void(const CoreType&, const std::string&)> column = [&](const CoreType& type,
                                                                          const std::string& name) {
      if (type.isScalar()) {
        input.vars.push_back(newVar(VarKind::Array, type.scalar(), name));
        return;
      }
      if (regular())
        input.vars.push_back(newVar(VarKind::Host, lcu::kIndex, name + "_each"));
      else
        input.vars.push_back(newVar(VarKind::Array, lcu::kIndex, name + "_offsets"));
      for (const CoreType& element : type.elements()) column(element, name);
    };
    for (const core::Var& var : global.vars) {
      types.push_back(var.type);
      if (var.type.isScalar()) {
        input.vars.push_back(newVar(VarKind::Host, var.type.scalar(), var.name));
        continue;
      }
      input.vars.push_back(newVar(VarKind::Host, lcu::kIndex, var.name + "_length"));
      for (const CoreType& element : var.type.elements()) column(element, var.name);
    }
    Values values = fromDenseColumns(types, input.vars);
    for (size_t k = 0; k < global.vars.size(); ++k) globals_[global.vars[k].id] = {&root, values[k]};
    input.types = types;
    program_.globals.push_back(std::move(input));
  }
  Frame frame;
  Values results = compile(core_.entry, root, frame);
  program_.resultTypes.assign(core_.entry->type.begin(), core_.entry->type.end());
  for (size_t k = 0; k < results.size(); ++k)
    denseColumns(results[k], program_.resultTypes[k], root, program_.entry.body.results);
  for (const VarId result : program_.entry.body.results)
    program_.regularResults.push_back(regularDescriptors_.contains(result));
  flushPending(root);
  return std::move(program_);
}

Values Flattener::compileCall(const core::Exp& e, const core::Call& node, Context& context, Frame& frame) {
  const core::Function& function = core_.functions[node.function];
  Values arguments = atoms(node.arguments, context, frame);
  Saved inLibrary(inLibrary_);
  Saved userSpan(userSpan_);
  Saved origin(origin_);
  Saved span(span_);
  if (e.span.known() && inLibrary_ == 0) userSpan_ = e.span;
  inLibrary_ = function.fromLibrary ? 1 : 0;
  if (!function.fromLibrary) origin_ = function.name;

  if (!function.body) {
    ExprRef zeroIndex = arena().index(0);
    ExprRef failed =
        arena().check(arena().boolean(false), arena().boolean(true), Scalar::ofBool(false),
                      site(e.span, fmt::format("{} is declared but was never defined", function.name)),
                      zeroIndex, zeroIndex);
    notePending(failed, context);
    Values zeros;
    for (const CoreType& type : function.result) zeros.push_back(zero(type));
    return zeros;
  }
  const core::FunctionId f = node.function;
  if (analysis_.scalarLoop(f)) return compileScalarLoop(f, arguments, context);
  if (analysis_.scalarRecursion(f)) return compileScalarRecursion(f, e.span, arguments, context);
  if (!analysis_.recursive(f)) {
    const bool affordable =
        inlined_ + analysis_.size(f) <= kInlineBudget || analysis_.size(f) <= kAlwaysInline;
    if (delayed_ > 0 || affordable) {
      inlined_ += analysis_.size(f);
      Frame inner;
      for (size_t k = 0; k < arguments.size(); ++k)
        inner[function.parameters[k].id] = {&context, arguments[k]};
      return compile(function.body, context, inner);
    }
  }
  if (context.isRoot() && analysis_.tailRecursive(f)) return runHostLoop(f, arguments, context);
  return callFunction(f, arguments, context);
}

Values Flattener::callFunction(core::FunctionId f, const Values& arguments, Context& context) {
  if (!context.isRoot())
    if (std::optional<Values> values = callEvenly(f, arguments, context)) return std::move(*values);
  return callInstance(f, arguments, context);
}

Values Flattener::callInstance(core::FunctionId f, const Values& arguments, Context& context) {
  const bool lifted = !context.isRoot();
  flushAll(context);
  lcu::CallFunction call;
  if (lifted) call.arguments.push_back(hostLet(context.space.extent, block_, "n"));
  for (VarId var : canonical(arguments, context)) call.arguments.push_back(var);
  call.function = instance(f, lifted);
  lcu::Stmt stmt;
  const Row& types = core_.functions[f].result;
  const std::string& name = core_.functions[f].name;
  Values values;
  if (lifted) {
    for (const CoreType& type : types) {
      size_t next = stmt.results.size();
      declareDense(type, name, context.space.extent, stmt.results);
      StorePtr store = denseFrom(type, stmt.results, next, context.space.extent);
      values.push_back(storeAt(*store, arena().param(0), context));
    }
  } else {
    stmt.results = declare(types, context, name);
    values = fromCanonical(types, stmt.results, context);
  }
  stmt.node = std::move(call);
  append(block_, std::move(stmt));
  return values;
}

/// The host function for one instance (plain) or for all active instances at once (lifted). A lifted function
/// takes their number first.
uint32_t Flattener::instance(core::FunctionId f, bool lifted) {
  auto found = instances_.find({f, lifted});
  if (found != instances_.end()) return found->second;
  const core::Function& function = core_.functions[f];
  const auto index = static_cast<uint32_t>(program_.functions.size());
  instances_[{f, lifted}] = index;
  program_.functions.emplace_back();

  Saved block(block_);
  Saved delayed(delayed_);
  Saved decided(decided_);
  Saved liftedFunctions(lifted_);
  if (lifted) lifted_.push_back(f);
  lcu::HostFunction result;
  result.name = lifted ? function.name + "_lifted" : function.name;
  lcu::Block body;
  block_ = &body;
  delayed_ = 0;
  decided_.clear();
  Context* context = &newContext(Context::Kind::Root, nullptr, {}, block_);
  if (lifted) {
    VarId n = newVar(VarKind::Host, lcu::kIndex, "n");
    result.params.push_back(n);
    context = &newContext(Context::Kind::Lifted, context, flat(arena().host(n, lcu::kIndex)), block_);
  }
  Frame frame;
  for (const core::Var& parameter : function.parameters) {
    std::vector<VarId> vars = declare({parameter.type}, *context, parameter.name);
    frame[parameter.id] = {context, fromCanonical({parameter.type}, vars, *context)[0]};
    result.params.insert(result.params.end(), vars.begin(), vars.end());
  }
  if (lifted) {
    for (const StorePtr& store : compileStored(function.body, *context, frame, Form::Dense))
      crossing(store, body.results);
  } else {
    body.results = canonical(compile(function.body, *context, frame), *context);
    flushPending(*context);
  }
  result.body = std::move(body);
  program_.functions[index] = std::move(result);
  return index;
}

}  // namespace kelpie::flatten
