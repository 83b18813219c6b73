// The example of section 5 of the λcu paper, built node by node: shared by the tests of printer and verifier.
#pragma once

#include "ir/lcu.h"

namespace kelpie::lcu {

struct Norm2 {
  Program program;
  VarId xs, sum1, count, gts, sum2, res1, res2;

  static constexpr ScalarType kFloat = ScalarType::Float64;

  ExprArena& arena() { return *program.arena; }
  ExprRef i() { return arena().param(0); }
  Space over(VarId array) { return {.extent = program.vars[array].extent}; }
  ExprRef element(VarId array) { return arena().load(array, kFloat, i()); }
  Operator sum() {
    return {{Scalar::ofFloat(kFloat, 0)},
            {arena().op(ScalarOp::Add, arena().param(0, kFloat), arena().param(1, kFloat))}};
  }
  VarId array(const char* name, ExprRef extent) {
    return program.newVar({name, VarKind::Array, kFloat, extent});
  }
  VarId cell(const char* name, ScalarType type) { return program.newVar({name, VarKind::Cell, type}); }

  static Soac soac(SoacKind kind, Space space, std::vector<ExprRef> pull, std::vector<VarId> results) {
    Soac soac;
    soac.kind = kind;
    soac.space = space;
    soac.pull = std::move(pull);
    soac.results = std::move(results);
    return soac;
  }
  static Stmt launch(const char* name, Soac soac) {
    const std::vector<VarId> results = soac.results;
    return {results, Launch{Kernel{name, {std::move(soac)}, results}}, {}};
  }

  Norm2() {
    xs = array("xs", nullptr);
    sum1 = cell("sum1", kFloat);
    count = cell("n", kIndex);
    gts = array("gts", arena().host(count, kIndex));
    sum2 = cell("sum2", kFloat);
    res1 = array("res", arena().size(xs));
    res2 = array("res", arena().size(xs));

    HostFunction function{"norm2", {xs}, {}};
    auto& stmts = function.body.stmts;
    Soac total = soac(SoacKind::Reduce, over(xs), {element(xs)}, {sum1});
    total.combine = sum();
    stmts.push_back(launch("sum", total));
    Soac filter = soac(SoacKind::Filter, over(xs), {element(xs)}, {count, gts});
    filter.where = arena().op(ScalarOp::Greater, element(xs), arena().constant(Scalar::zero(kFloat)));
    stmts.push_back(launch("filter", filter));
    Soac rest = soac(SoacKind::Reduce, over(gts), {element(gts)}, {sum2});
    rest.combine = sum();
    stmts.push_back(launch("sum", rest));
    for (auto [result, divisor] : {std::pair(res1, sum1), std::pair(res2, sum2)})
      stmts.push_back(launch(
          "scale", soac(SoacKind::Map, over(xs),
                        {arena().op(ScalarOp::Div, element(xs), arena().host(divisor, kFloat))}, {result})));
    function.body.results = {res1, res2};
    program.functions.push_back(std::move(function));
    program.entry.name = "main";
  }
};

}  // namespace kelpie::lcu
