// Recursions as text: functions that call themselves, or loops over frames that they keep themselves.
//
//     fib(n) = if n < 2 then n else fib(n - 1) + fib(n - 2), with frames:
//
//     const auto recursion = [&](int64_t n) {
//       values result;  uint32_t state = 0;
//       while (true) {
//         switch (state) {
//           case 0: {
//             if (n < 2) { chosen = n; }
//             else {
//               push(n); push(1);  n = n - 1;  state = 0;  goto again;
//               case 1: pop(n);  called_1 = result;
//               push(called_1); push(2);  n = n - 2;  state = 0;  goto again;
//               case 2: pop(called_1);  called_2 = result;
//               chosen = called_1 + called_2;
//             }
//             result = chosen;
//             if (nothing is on the stack) state = done; else pop(state);
//           }
//         }
//         again: if (state == done) return result;
//       }
//     };
//
// No variable is initialised where it is declared: the places where calls go on are jumped to.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/expression_run.h"

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;

void ExpressionEmitter::Run::remember(Frame& f, ScalarType type, const std::string& name) {
  if (inFrames && locals.emplace(name, type).second) f.declared.push_back(name);
}

void ExpressionEmitter::Run::startRecursion(Frame& f, const ScheduleStep& step) {
  ExprRef e = step.node;
  const std::string name = emitter.freshName("recursion");
  Function& function = functions[e->index] = {
      e, emitter.freshName("values"), name + "_self", std::nullopt, "", "", name + "_again", 0, false, {}};
  f.firstValues = {name};
  for (size_t k = 0; k < recursionArguments(e).size(); ++k)
    emitter.loopVars_[loopVarKey(e->index, static_cast<uint32_t>(k))] = emitter.freshName("argument");
  if (emitter.dialect_.frames) function.pending = pendingCalls(schedule, step);
  if (!function.pending) return enter(step.first, f.indent + 2);
  inFrames = &function;
  function.state = emitter.freshName("state");
  function.result = emitter.freshName("result");
  for (const auto& operation : function.pending->operations)
    function.soFar.push_back(operation ? emitter.freshName("so_far") : "");
  enter(step.first, f.indent + 8);
  for (size_t k = 0; k < recursionArguments(e).size(); ++k)
    remember(frames.back(), recursionArguments(e)[k]->type,
             emitter.loopVars_.at(loopVarKey(e->index, static_cast<uint32_t>(k))));
}

void ExpressionEmitter::Run::finishRecursion(Frame& f, ExprRef e, const std::string& body) {
  const Function& function = functions.at(e->index);
  const std::string& name = f.firstValues[0];
  const auto arguments = recursionArguments(e), results = recursionResults(e);
  std::vector<std::string> parameters, given;
  if (!function.pending) {
    parameters.push_back("const auto& " + function.self);
    given.push_back(name);
  }
  std::string members;
  for (size_t k = 0; k < results.size(); ++k)
    members += fmt::format(" {} value_{};", cTypeName(results[k]->type), k);
  for (uint32_t k = 0; k < arguments.size(); ++k) {
    parameters.push_back(
        fmt::format("{} {}", cTypeName(arguments[k]->type), emitter.loopVars_.at(loopVarKey(e->index, k))));
    given.push_back(emitter.textOf(arguments[k]).text);
  }
  line(f, fmt::format("struct {} {{{} }};", function.values, members));
  line(f,
       fmt::format("const auto {} = [&]({}) -> {} {{", name, fmt::join(parameters, ", "), function.values));
  if (function.pending) {
    overFrames(f, function, body);
  } else {
    f.text += body;
    const std::string out = emitter.freshName("result");
    line(f, fmt::format("{} {};", function.values, out), 2);
    giveBack(f, 2, out, function);
    line(f, fmt::format("return {};", out), 2);
  }
  line(f, "};");
  const std::string values = emitter.freshName("recursive");
  line(f, fmt::format("const {} {} = {}({});", function.values, values, name, fmt::join(given, ", ")));
  emitter.multiple_[e] = membersOf(values, results.size());
}

void ExpressionEmitter::Run::giveBack(Frame& f, int deeper, const std::string& out,
                                      const Function& function) const {
  const auto results = recursionResults(function.recursion);
  for (size_t k = 0; k < results.size(); ++k) {
    std::string value = emitter.textOf(results[k]).text;
    if (!function.soFar.empty() && !function.soFar[k].empty())
      value = combined(function, k, function.soFar[k], value);
    line(f, fmt::format("{}.value_{} = {};", out, k, value), deeper);
  }
}

std::string ExpressionEmitter::Run::identityOf(const Function& function, size_t result) const {
  const ScalarType type = recursionResults(function.recursion)[result]->type;
  return literalText(identity(*function.pending->operations[result], type));
}

std::string ExpressionEmitter::Run::combined(const Function& function, size_t result, const std::string& a,
                                             const std::string& b) const {
  const ScalarOp op = scalarOp(*function.pending->operations[result]);
  const std::string_view symbol = infix(op, false);
  const bool wraps = emitter.dialect_.wrapCalls &&
                     isInt(recursionResults(function.recursion)[result]->type) &&
                     (op == ScalarOp::Add || op == ScalarOp::Mul);
  if (symbol.empty() || wraps) return fmt::format("{}({}, {})", functionName(op), a, b);
  return fmt::format("{} {} ({})", a, symbol, b);
}

void ExpressionEmitter::Run::overFrames(Frame& f, const Function& function, const std::string& body) {
  inFrames = nullptr;
  const std::string begin = emitter.freshName("begin");
  line(f, fmt::format("{} {};", function.values, function.result), 2);
  line(f, fmt::format("const uint32_t {} = {}.depth;", begin, stack), 2);
  line(f, fmt::format("uint32_t {} = 0;", function.state), 2);
  for (size_t k = 0; k < function.soFar.size(); ++k) {
    const ScalarType type = recursionResults(function.recursion)[k]->type;
    if (!function.soFar[k].empty())
      line(f, fmt::format("{} {} = {};", cTypeName(type), function.soFar[k], identityOf(function, k)), 2);
  }
  line(f, "while (true) {", 2);
  line(f, fmt::format("switch ({}) {{", function.state), 4);
  line(f, "case 0: {", 6);
  f.text += body;
  giveBack(f, 8, function.result, function);
  line(f, fmt::format("if ({}.depth == {}) {} = k_done;", stack, begin, function.state), 8);
  line(f,
       function.pushesState ? fmt::format("else {}.pop({});", stack, function.state)
                            : fmt::format("else {} = 1;", function.state),
       8);
  line(f, "}", 6);
  line(f, "}", 4);
  // All ways lead here, also the one out: so the lanes of a warp meet here.
  line(f, function.again + ":;", 4);
  line(f, fmt::format("k_meet({});", function.state), 4);
  line(f, fmt::format("if ({} == k_done) return {};", function.state, function.result), 4);
  line(f, "}", 2);
}

std::vector<ExpressionEmitter::Run::Kept> ExpressionEmitter::Run::kept(
    const std::vector<ExprRef>& uses) const {
  std::vector<Kept> values;
  std::unordered_set<ExprRef> seen;
  std::vector<ExprRef> work(uses.rbegin(), uses.rend());
  while (!work.empty()) {
    const ExprRef e = work.back();
    work.pop_back();
    if (!seen.insert(e).second) continue;
    std::string name;
    if (e->kind == ExprKind::LoopVar) {
      if (e->index == inFrames->recursion->index && inFrames->pending->invariant[e->count]) continue;
      const auto it = emitter.loopVars_.find(loopVarKey(e->index, e->count));
      if (it != emitter.loopVars_.end()) name = it->second;
    } else if (e->kind == ExprKind::Project) {
      const auto it = emitter.multiple_.find(e->operands[0]);
      if (it != emitter.multiple_.end()) name = it->second[e->index];
    } else if (const auto it = emitter.texts_.find(e); it != emitter.texts_.end()) {
      name = it->second.text;
      if (!locals.contains(name)) work.insert(work.end(), e->operands.rbegin(), e->operands.rend());
    }
    const auto isIt = [&](const Kept& other) { return other.name == name; };
    if (locals.contains(name) && std::none_of(values.begin(), values.end(), isIt))
      values.push_back({name, e});
  }
  return values;
}

std::vector<ExpressionEmitter::Run::Kept> ExpressionEmitter::Run::takeComputable(
    std::vector<Kept>& values) const {
  std::vector<Kept> computable;
  for (size_t k = 0; k < values.size();) {
    const ExprRef e = values[k].node;
    const bool divides = e->op == ScalarOp::Div || e->op == ScalarOp::Rem;
    const bool quick = e->kind == ExprKind::Convert || (e->kind == ExprKind::Op && !takesLong(e) && !divides);
    const auto isThere = [&](const Kept& operand) {
      const auto isIt = [&](const Kept& value) { return value.name == operand.name; };
      return std::any_of(values.begin(), values.end(), isIt) ||
             std::any_of(computable.begin(), computable.end(), isIt);
    };
    const std::vector<Kept> operands = quick ? kept(e->operands) : std::vector<Kept>();
    if (quick && std::all_of(operands.begin(), operands.end(), isThere)) {
      computable.push_back(values[k]);
      values.erase(values.begin() + static_cast<ptrdiff_t>(k));
    } else {
      ++k;
    }
  }
  std::sort(computable.begin(), computable.end(),
            [](const Kept& a, const Kept& b) { return a.node->id < b.node->id; });  // operands first
  return computable;
}

void ExpressionEmitter::Run::callInFrames(Frame& f, ExprRef e) {
  Function& function = *inFrames;
  const auto results = recursionResults(function.recursion);
  std::vector<std::string> called;
  for (const ExprRef result : results) {
    called.push_back(emitter.freshName("called"));
    line(f, fmt::format("{} {};", cTypeName(result->type), called.back()));
  }
  const auto useless = [&] {
    for (const std::string& name : called) line(f, name + " = 0;", 2);
    line(f, "} else {");
  };
  if (function.pending->last.contains(e)) {
    line(f, fmt::format("if ({}) {{", failed));
    useless();
    beginAnew(f, e);
  } else {
    std::vector<Kept> values = kept(function.pending->uses.at(e));
    const std::vector<Kept> computable = takeComputable(values);
    std::vector<std::string> names;
    for (const Kept& value : values) names.push_back(value.name);
    const std::vector<bool>& goesOn = function.pending->goesOn.at(e);
    for (size_t k = 0; k < function.soFar.size(); ++k)
      if (!function.soFar[k].empty() && !goesOn[k]) names.push_back(function.soFar[k]);
    const uint32_t place = ++function.places;
    const bool pushesState = function.pending->places > 1 || names.empty();
    function.pushesState |= pushesState;
    line(f, fmt::format("if ({} || !{}.fits({})) {{", failed, stack, names.size() + (pushesState ? 1 : 0)));
    line(f, fmt::format("if (!{}) {{", failed), 2);
    line(f, record(tooDeep(function), "0", "0"), 4);
    line(f, failed + " = true;", 4);
    line(f, "}", 2);
    useless();
    for (const std::string& name : names) line(f, fmt::format("{}.push({});", stack, name), 2);
    if (pushesState) line(f, fmt::format("{}.push(uint32_t({}));", stack, place), 2);
    beginAnew(f, e);
    line(f, fmt::format("case {}:", place), 2);
    for (auto name = names.rbegin(); name != names.rend(); ++name)
      line(f, fmt::format("{}.pop({});", stack, *name), 2);
    for (const Kept& value : computable)
      line(f, fmt::format("{} = {};", value.name, emitter.operationText(value.node).text), 2);
    for (size_t k = 0; k < called.size(); ++k) {
      line(f, fmt::format("{} = {}.value_{};", goesOn[k] ? function.soFar[k] : called[k], function.result, k),
           2);
      if (goesOn[k]) line(f, fmt::format("{} = {};", called[k], identityOf(function, k)), 2);
    }
  }
  line(f, "}");
  for (size_t k = 0; k < called.size(); ++k) remember(f, results[k]->type, called[k]);
  emitter.multiple_[e] = std::move(called);
}

void ExpressionEmitter::Run::beginAnew(Frame& f, ExprRef call) {
  const Function& function = *inFrames;
  std::vector<std::pair<std::string, std::string>> next;  // names, values
  line(f, "{", 2);
  const auto becomes = [&](const std::string& name, ScalarType type, const std::string& text) {
    if (text == name) return;
    next.emplace_back(name, emitter.freshName("next"));
    line(f, fmt::format("const {} {} = {};", cTypeName(type), next.back().second, text), 4);
  };
  for (uint32_t k = 0; k < call->operands.size(); ++k)
    becomes(emitter.loopVars_.at(loopVarKey(call->index, k)), call->operands[k]->type,
            emitter.textOf(call->operands[k]).text);
  const auto last = function.pending->last.find(call);
  for (size_t k = 0; k < function.soFar.size(); ++k) {
    if (function.soFar[k].empty()) continue;
    if (last == function.pending->last.end() && function.pending->goesOn.at(call)[k]) continue;
    std::string value = identityOf(function, k);
    if (last != function.pending->last.end()) {
      value = function.soFar[k];
      for (const ExprRef other : last->second[k])
        value = combined(
            function, k, value,
            other->kind == ExprKind::Constant ? literalText(other->constant) : emitter.textOf(other).text);
    }
    becomes(function.soFar[k], recursionResults(function.recursion)[k]->type, value);
  }
  for (const auto& [name, value] : next) line(f, fmt::format("{} = {};", name, value), 4);
  line(f, "}", 2);
  line(f, function.state + " = 0;", 2);
  line(f, fmt::format("goto {};", function.again), 2);
}

lcu::SiteId ExpressionEmitter::Run::tooDeep(const Function& function) const {
  return emitter.dialect_.stackSite.value_or(static_cast<lcu::SiteId>(function.recursion->constant.i));
}

void ExpressionEmitter::Run::call(Frame& f, ExprRef e) {
  if (inFrames) return callInFrames(f, e);
  const Function& function = functions.at(e->index);
  const std::string name = emitter.freshName("called");
  std::string given = function.self;
  for (ExprRef argument : e->operands) given += ", " + emitter.textOf(argument).text;
  line(f, fmt::format("{} {}{{}};", function.values, name));
  line(f, fmt::format("if (!{} && !k_recurse({}, [&] {{ {} = {}({}); }})) {{", failed, stack, name,
                      function.self, given));
  line(f, record(tooDeep(function), "0", "0"), 2);
  line(f, failed + " = true;", 2);
  line(f, "}");
  emitter.multiple_[e] = membersOf(name, e->count);
}

std::vector<std::string> ExpressionEmitter::Run::membersOf(const std::string& values, size_t count) {
  std::vector<std::string> members;
  for (size_t k = 0; k < count; ++k) members.push_back(fmt::format("{}.value_{}", values, k));
  return members;
}

}  // namespace kelpie::codegen
