#include "flatten/split_applies.h"

#include <unordered_map>

#include "flatten/cut_branches.h"

namespace kelpie::flatten {

using core::Atom;
using core::Call;
using core::Each;
using core::ExpPtr;
using core::Var;
using core::VarId;

namespace {

/// Elements of a sequence, under new names.
struct Elements {
  std::vector<Var> vars;
  std::unordered_map<VarId, Atom> names;  ///< by what they were called before
};
Elements elementsOf(core::Program& program, const std::vector<Var>& columns) {
  Elements elements;
  for (const Var& column : columns) {
    elements.vars.push_back({program.nextVar++, column.name, column.type});
    elements.names.emplace(column.id, atomOf(elements.vars.back()));
  }
  return elements;
}

Row typesOf(const std::vector<Var>& vars) {
  Row row;
  for (const Var& var : vars) row.push_back(var.type);
  return row;
}

}  // namespace

std::optional<std::vector<Chain::Binding>> splitAtCall(core::Program& program, core::FunctionId self,
                                                       const Chain::Binding& let) {
  const auto* each = std::get_if<Each>(&let.rhs->node);
  if (!each || each->serial || countCalls(each->body, self) != 1) return std::nullopt;
  Chain body = takeApart(each->body);
  const auto isCall = [&](const Chain::Binding& step) {
    const auto* call = std::get_if<Call>(&step.rhs->node);
    return call && call->function == self;
  };
  const auto at = std::find_if(body.lets.begin(), body.lets.end(), isCall);
  if (at == body.lets.end()) return std::nullopt;
  const Chain::Binding call = *at;

  Chain before, after;
  before.lets.assign(body.lets.begin(), at);
  after.lets.assign(at + 1, body.lets.end());
  after.tail = body.tail;
  const Span span = let.rhs->span;
  std::vector<Chain::Binding> made;
  const auto bind = [&](Each made_, Row row) {
    const CoreType type = CoreType::sequence(std::move(row));
    const Var var{program.nextVar++, "", type};
    made.push_back({{var}, makeExp(std::move(made_), {type}, span), span});
    return atomOf(var);
  };

  // What is known before the call and needed by it, or after it.
  std::vector<Var> columns;
  Atom rows;
  if (before.lets.empty() && each->bindings.size() == 1) {
    columns = each->bindings[0].vars;
    rows = each->bindings[0].sequence;
  } else {
    std::unordered_set<VarId> uses = usesOf(after.tail);
    collectUses(call.rhs, uses);
    for (const Chain::Binding& step : after.lets) collectUses(step.rhs, uses);
    const auto keep = [&](const std::vector<Var>& vars) {
      for (const Var& var : vars)
        if (uses.contains(var.id)) columns.push_back(var);
    };
    for (const Each::Binding& binding : each->bindings) keep(binding.vars);
    for (const Chain::Binding& step : before.lets) keep(step.vars);
    if (columns.empty()) columns.push_back(each->bindings[0].vars[0]);  // tells how many there are
    core::Values values;
    for (const Var& column : columns) values.atoms.push_back(atomOf(column));
    before.tail = makeExp(std::move(values), typesOf(columns), span);
    rows = bind({.bindings = each->bindings, .body = putTogether(std::move(before))}, typesOf(columns));
  }

  const Elements called = elementsOf(program, columns), ended = elementsOf(program, columns);
  const Atom results =
      bind({.bindings = {{called.vars, rows}}, .body = renamed(call.rhs, called.names)}, call.rhs->type);
  Each last{.bindings = {{ended.vars, rows}, {call.vars, results}},
            .body = renamed(putTogether(std::move(after)), ended.names)};
  made.push_back({let.vars, makeExp(std::move(last), let.rhs->type, span), let.span});
  return made;
}

}  // namespace kelpie::flatten
