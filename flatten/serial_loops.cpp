#include "flatten/serial_loops.h"

#include <functional>
#include <map>
#include <unordered_set>

#include "flatten/core_walk.h"

namespace kelpie::flatten {
namespace {

using core::Atom;
using core::Each;
using core::Exp;
using core::ExpPtr;
using core::Prim;
using core::PrimOp;
using core::Var;
using core::VarId;

void forEachInside(const ExpPtr& e, const std::function<void(const Exp&)>& visit,
                   const std::function<void(const Var&)>& bound) {
  const Chain chain = takeApart(e);
  auto one = [&](const ExpPtr& x) {
    visit(*x);
    if (auto* each = std::get_if<Each>(&x->node)) {
      for (const Each::Binding& binding : each->bindings)
        for (const Var& var : binding.vars) bound(var);
    }
    forEachPart(*x, [&](const ExpPtr& part) { forEachInside(part, visit, bound); });
  };
  for (const Chain::Binding& let : chain.lets) {
    for (const Var& var : let.vars) bound(var);
    one(let.rhs);
  }
  one(chain.tail);
}

class Unroller {
 public:
  Unroller(core::Program& program, const Analysis& analysis) : program_(program), analysis_(analysis) {
    for (const core::Global& global : program.globals)
      for (const Var& var : global.vars) global_.insert(var.id);
  }

  void run() {
    changeBodies(program_, [this](const ExpPtr& body) { return chain(body); });
  }

 private:
  ExpPtr chain(const ExpPtr& e) {
    Chain result = takeApart(e);
    for (Chain::Binding& let : result.lets) let.rhs = inside(let.rhs);
    result.tail = inside(result.tail);
    return putTogether(std::move(result));
  }

  ExpPtr inside(const ExpPtr& e) {
    auto* each = std::get_if<Each>(&e->node);
    const bool ordered = each && each->serial && analysis_.effects(each->body);
    ExpPtr result = rebuilt(
        e, [](const Atom& a) { return a; }, [&](const ExpPtr& part) { return chain(part); });
    return ordered ? asRecursion(*result, std::get<Each>(result->node)) : result;
  }

  Var newVar(const char* name, CoreType type) { return {program_.nextVar++, name, std::move(type)}; }
  CoreType integer() const { return program_.intType; }
  Atom constant(int64_t value) const { return {Scalar::ofInt(program_.intType, value), integer()}; }

  /// Appends a let of one component to the chain.
  Atom bind(Chain& chain, const char* name, decltype(Exp::node) node, CoreType type, Span span) {
    const Var var = newVar(name, type);
    chain.lets.push_back({{var}, makeExp(std::move(node), {std::move(type)}, span), span});
    return atomOf(var);
  }
  Atom arithmetic(Chain& chain, const char* name, ScalarOp op, Atom a, Atom b, CoreType type, Span span) {
    Prim prim{op == ScalarOp::Div ? PrimOp::CheckedScalar : PrimOp::Scalar, {std::move(a), std::move(b)}};
    prim.scalarOp = op;
    return bind(chain, name, std::move(prim), std::move(type), span);
  }

  /// The call, as a chain of lets.
  ExpPtr asRecursion(const Exp& e, const Each& each) {
    Chain out;
    Atom source = each.bindings[0].sequence;
    std::vector<Var> elements = each.bindings[0].vars;
    if (each.bindings.size() > 1) {
      Prim zip{PrimOp::Zip, {}};
      elements.clear();
      Row row;
      for (const Each::Binding& binding : each.bindings) {
        zip.arguments.push_back(binding.sequence);
        elements.insert(elements.end(), binding.vars.begin(), binding.vars.end());
      }
      for (const Var& var : elements) row.push_back(var.type);
      source = bind(out, "zip", std::move(zip), CoreType::sequence(row), e.span);
    }
    std::vector<Atom> captured;
    const core::FunctionId function = define(e, each, source, elements, captured);

    const Atom count = bind(out, "n", Prim{PrimOp::Length, {source}}, integer(), e.span);
    const Atom some =
        arithmetic(out, "some", ScalarOp::Greater, count, constant(0), ScalarType::Bool, e.span);
    std::vector<Atom> arguments = {source, constant(0), count};
    arguments.insert(arguments.end(), captured.begin(), captured.end());
    ExpPtr call = makeExp(core::Call{function, std::move(arguments)}, e.type, e.span);
    ExpPtr empty = makeExp(core::Constant{{zeroColumn(e.type[0], 1)}}, e.type, e.span);
    out.tail = makeExp(core::If{some, std::move(call), std::move(empty)}, e.type, e.span);
    return putTogether(std::move(out));
  }

  /// The function over a range of the source; what else the body needs are further parameters.
  core::FunctionId define(const Exp& e, const Each& each, const Atom& source,
                          const std::vector<Var>& elements, std::vector<Atom>& captured) {
    std::unordered_set<VarId> bound;
    for (const Var& var : elements) bound.insert(var.id);
    std::map<VarId, Atom> used;
    forEachInside(
        each.body,
        [&](const Exp& x) {
          forEachAtom(x, [&](const Atom& a) {
            if (!a.isConstant()) used.emplace(a.var(), a);
          });
        },
        [&](const Var& var) { bound.insert(var.id); });

    const Var whole = newVar("v", source.type), start = newVar("start", integer()),
              count = newVar("n", integer());
    core::Function function;
    function.name = "serial";
    function.parameters = {whole, start, count};
    function.result = e.type;
    function.span = e.span;
    std::unordered_map<VarId, Atom> renaming;
    for (const auto& [id, original] : used) {
      if (bound.contains(id) || global_.contains(id)) continue;
      captured.push_back(original);
      function.parameters.push_back(newVar("", original.type));
      renaming.emplace(id, atomOf(function.parameters.back()));
    }
    const auto id = static_cast<core::FunctionId>(program_.functions.size());
    program_.functions.push_back(function);  // the body calls it

    Chain single = takeApart(renamed(each.body, renaming));
    Row row;
    for (const Var& var : elements) row.push_back(var.type);
    single.lets.insert(
        single.lets.begin(),
        {elements, makeExp(Prim{PrimOp::Index, {atomOf(whole), atomOf(start)}}, row, e.span), e.span});
    std::vector<Var> results;
    Prim literal{PrimOp::Literal, {}};
    literal.count = 1;
    for (const CoreType& type : single.tail->type) {
      results.push_back(newVar("", type));
      literal.arguments.push_back(atomOf(results.back()));
    }
    single.lets.push_back({results, single.tail, e.span});
    single.tail = makeExp(std::move(literal), e.type, e.span);

    Chain halves;
    const Atom half =
        arithmetic(halves, "half", ScalarOp::Div, atomOf(count), constant(2), integer(), e.span);
    const Atom middle = arithmetic(halves, "middle", ScalarOp::Add, atomOf(start), half, integer(), e.span);
    const Atom others = arithmetic(halves, "others", ScalarOp::Sub, atomOf(count), half, integer(), e.span);
    auto call = [&](const char* name, const Atom& from, const Atom& length) {
      std::vector<Atom> arguments = {atomOf(whole), from, length};
      for (size_t k = 3; k < function.parameters.size(); ++k)
        arguments.push_back(atomOf(function.parameters[k]));
      return bind(halves, name, core::Call{id, std::move(arguments)}, e.type[0], e.span);
    };
    const Atom first = call("first", atomOf(start), half);
    const Atom second = call("second", middle, others);
    halves.tail = makeExp(Prim{PrimOp::Append, {first, second}}, e.type, e.span);

    Chain body;
    const Atom one =
        arithmetic(body, "one", ScalarOp::Equal, atomOf(count), constant(1), ScalarType::Bool, e.span);
    body.tail = makeExp(core::If{one, putTogether(std::move(single)), putTogether(std::move(halves))}, e.type,
                        e.span);
    program_.functions[id].body = putTogether(std::move(body));
    return id;
  }

  core::Program& program_;
  const Analysis& analysis_;
  std::unordered_set<VarId> global_;
};

}  // namespace

bool hasSerialLoops(const core::Program& program) {
  bool found = false;
  const auto look = [&](const ExpPtr& e) {
    forEachInside(
        e,
        [&](const Exp& x) {
          auto* each = std::get_if<Each>(&x.node);
          found |= each && each->serial;
        },
        [](const Var&) {});
  };
  for (const core::Function& function : program.functions)
    if (function.body) look(function.body);
  look(program.entry);
  return found;
}

core::Program unrollSerialLoops(core::Program program, const Analysis& analysis) {
  Unroller(program, analysis).run();
  return program;
}

}  // namespace kelpie::flatten
