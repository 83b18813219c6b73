// Recursive scalar functions that are no loops become recursive functions inside a thunk (vectorisation
// avoidance, DESIGN.md section 5).
//
//   function ways(n) = if n < 2 then 1 else ways(n-1) + ways(n-2)
//
//   {ways(n) : n in ns}  =>  MAP { i => let t1 = recursion r1 (k1 = ns[i]) : int64 @1 {
//                              if k1 < 2 then 1 else let t2 = call r1(k1 - 1); t3 = call r1(k1 - 2) in t2 +
//                              t3 }
//                            in t1 }
//
// Where what is pending after a call needs no stack, loops do (flatten/linear_recursion.h).
//
// Nothing is lost by that: in NESL what runs in parallel is apply-to-each, and there is none in the function.
// Of functions that call each other and were not merged (flatten/merged_cycles.h), one that calls another
// contains it, as a recursion inside its own; a call of a function around is a call. Parameters that no call
// of the cycle changes are those of the surroundings, so they may be sequences: a tree that the recursion
// walks.
#include "flatten/flattener.h"
#include "flatten/linear_recursion.h"
#include "flatten/saved.h"
#include "ir/check_messages.h"

namespace kelpie::flatten {

Values Flattener::compileScalarRecursion(core::FunctionId f, Span span, const Values& arguments,
                                         Context& context) {
  const core::Function& function = core_.functions[f];
  std::vector<ExprRef> passed;
  for (size_t k = 0; k < arguments.size(); ++k)
    if (!analysis_.invariantParameters(f)[k]) passed.push_back(arguments[k].scalar());
  const auto asValues = [](const std::vector<ExprRef>& scalars) {
    Values values;
    for (ExprRef scalar : scalars) values.push_back({scalar});
    return values;
  };

  if (const auto around = recursions_.find(f); around != recursions_.end()) {
    if (!around->second.call.known()) around->second.call = span;
    std::vector<ScalarType> types;
    for (const CoreType& type : function.result) types.push_back(type.scalar());
    return asValues(arena().call(around->second.id, passed, types));
  }

  const uint32_t id = arena().newLoop();
  recursions_[f] = {id, {}};
  Frame frame;
  uint32_t number = 0;
  for (size_t k = 0; k < arguments.size(); ++k) {
    Value value = arguments[k];
    if (!analysis_.invariantParameters(f)[k])
      value = {arena().loopVar(id, number++, function.parameters[k].type.scalar())};
    frame[function.parameters[k].id] = {&context, value};
  }
  const size_t mark = context.pending.size();
  Saved outside(decided_);
  decided_.clear();  // a call may come from elsewhere
  ++delayed_;
  std::vector<ExprRef> results;
  for (const Value& v : compile(function.body, context, frame)) results.push_back(v.scalar());
  --delayed_;
  // Failing expressions that no result needs are tied to the first one.
  results[0] = evaluatedBefore(stillOwed(takeOwed(mark, context), results), results[0]);
  const Span call = recursions_[f].call;
  recursions_.erase(f);
  const lcu::SiteId tooDeep = site(userSpan(call.known() ? call : span), check_message::kTooDeep);
  if (const auto values = recursionAsLoops({id, tooDeep, passed, results}, arena())) return asValues(*values);
  return asValues(arena().recursion(id, tooDeep, passed, results));
}

}  // namespace kelpie::flatten
