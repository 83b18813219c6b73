#include "tests/codegen/known_kernels.h"

#include "codegen/kernel_analysis.h"

namespace kelpie::tests {

using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::Space;
using lcu::SpaceKind;
using lcu::VarId;
using lcu::VarKind;

namespace {
constexpr ScalarType kFloat = ScalarType::Float32;
}

VarId KnownKernels::array(const std::string& name, ScalarType type, ExprRef extent) {
  return vars[name] = program.newVar({name, VarKind::Array, type, extent});
}
VarId KnownKernels::result(const std::string& name, VarKind kind, ScalarType type, ExprRef extent) {
  return program.newVar({name, kind, type, extent});
}
ExprRef KnownKernels::at(const std::string& name, ExprRef position) {
  VarId v = vars.at(name);
  return program.arena->load(v, program.vars[v].type, position);
}
Soac KnownKernels::soac(SoacKind kind, const Space& space, std::vector<ExprRef> pull) {
  auto& arena = *program.arena;
  Soac s;
  s.kind = kind;
  s.space = space;
  s.pull = std::move(pull);
  s.origin = "benchmark";
  if (kind == SoacKind::Reduce || kind == SoacKind::Scan) {
    auto k = static_cast<uint32_t>(s.pull.size());
    for (uint32_t j = 0; j < k; ++j) {
      ScalarType t = s.pull[j]->type;
      s.combine.identity.push_back(Scalar::zero(t));
      s.combine.result.push_back(arena.add(arena.param(j, t), arena.param(k + j, t)));
    }
  }
  for (ExprRef e : s.pull) {
    bool cell = kind == SoacKind::Reduce && !space.segmented();
    ExprRef extent = kind == SoacKind::Reduce ? space.segments : space.extent;
    s.results.push_back(
        result("result", cell ? VarKind::Cell : VarKind::Array, e->type, cell ? nullptr : extent));
  }
  return s;
}
void KnownKernels::kernel(const std::string& name, std::vector<Soac> bindings) {
  lcu::Kernel k{name, std::move(bindings), {}};
  for (const Soac& s : k.bindings) k.returns.insert(k.returns.end(), s.results.begin(), s.results.end());
  kernels[name] = std::move(k);
}

/// Cumulative normal distribution, the usual polynomial.
ExprRef KnownKernels::cumulative(ExprRef d) {
  auto& a = *program.arena;
  auto c = [&](double v) { return a.constant(Scalar::ofFloat(kFloat, v)); };
  ExprRef zero = c(0), magnitude = a.op(ScalarOp::Max, d, a.sub(zero, d));
  ExprRef k = a.op(ScalarOp::Div, c(1), a.add(c(1), a.mul(c(0.2316419), magnitude)));
  ExprRef poly = c(1.330274429);
  for (double v : {-1.821255978, 1.781477937, -0.356563782, 0.31938153}) poly = a.add(a.mul(poly, k), c(v));
  ExprRef density = a.mul(c(0.39894228040), a.op(ScalarOp::Exp, a.mul(c(-0.5), a.mul(d, d))));
  ExprRef tail = a.mul(density, a.mul(poly, k));
  return a.select(a.op(ScalarOp::Greater, d, zero), a.sub(c(1), tail), tail);
}
ExprRef KnownKernels::blackScholes(ExprRef spot, ExprRef strike, ExprRef years) {
  auto& a = *program.arena;
  auto c = [&](double v) { return a.constant(Scalar::ofFloat(kFloat, v)); };
  ExprRef root = a.op(ScalarOp::Sqrt, years);
  ExprRef d1 = a.op(
      ScalarOp::Div,
      a.add(a.op(ScalarOp::Ln, a.op(ScalarOp::Div, spot, strike)), a.mul(c(0.02 + 0.5 * 0.3 * 0.3), years)),
      a.mul(c(0.3), root));
  ExprRef d2 = a.sub(d1, a.mul(c(0.3), root));
  ExprRef discounted = a.mul(strike, a.op(ScalarOp::Exp, a.mul(c(-0.02), years)));
  return a.sub(a.mul(spot, cumulative(d1)), a.mul(discounted, cumulative(d2)));
}

KnownKernels::KnownKernels() {
  auto& a = *program.arena;
  ExprRef i = a.param(0);
  VarId n = program.newVar({"n", VarKind::Host, lcu::kIndex}),
        m = program.newVar({"m", VarKind::Host, lcu::kIndex});
  Space flat{.kind = SpaceKind::Flat, .extent = a.host(n, lcu::kIndex)};
  array("xs", kFloat, flat.extent);
  array("ys", kFloat, flat.extent);
  array("zs", kFloat, flat.extent);
  array("col", ScalarType::Int64, flat.extent);
  array("col32", ScalarType::Int32, flat.extent);
  array("v", kFloat, nullptr);
  VarId offsets = array("offsets", ScalarType::Int64, nullptr);
  Space segmented{.kind = SpaceKind::Offsets,
                  .extent = flat.extent,
                  .segments = a.host(m, lcu::kIndex),
                  .offsets = offsets};
  program.newSite({{}, "index {0} is outside of a sequence of length {1}"});

  ExprRef x = at("xs", i);
  ExprRef positive = a.op(ScalarOp::Greater, x, a.constant(Scalar::zero(kFloat)));
  kernel("sum", {soac(SoacKind::Reduce, flat, {x})});
  kernel("scan", {soac(SoacKind::Scan, flat, {x})});
  Soac filter = soac(SoacKind::Filter, flat, {x});
  filter.where = positive;
  filter.results.insert(filter.results.begin(), result("count", VarKind::Cell, ScalarType::Int64, nullptr));
  kernel("filter", {filter});
  kernel("segmented_sum", {soac(SoacKind::Reduce, segmented, {x})});
  kernel("segmented_scan", {soac(SoacKind::Scan, segmented, {x})});
  for (bool wide : {false, true}) {
    ExprRef column = at(wide ? "col" : "col32", i);
    if (!wide) column = a.convert(column, lcu::kIndex);
    ExprRef size = a.size(vars.at("v"));
    ExprRef inside = a.op(ScalarOp::And, a.op(ScalarOp::GreaterEqual, column, a.index(0)),
                          a.op(ScalarOp::Less, column, size));
    ExprRef checked = a.check(inside, column, Scalar::ofInt(lcu::kIndex, 0), 1, column, size);
    kernel(wide ? "spmv" : "spmv32", {soac(SoacKind::Reduce, segmented, {a.mul(x, at("v", checked))})});
  }
  // norm2 of the λcu paper: two sums in one pass, then two scaled copies in another.
  ExprRef kept = a.select(positive, x, a.constant(Scalar::zero(kFloat)));
  kernel("norm2_sums", {soac(SoacKind::Reduce, flat, {x}), soac(SoacKind::Reduce, flat, {kept})});
  vars["c1"] = program.newVar({"c1", VarKind::Cell, kFloat});
  vars["c2"] = program.newVar({"c2", VarKind::Cell, kFloat});
  kernel("norm2_scale", {soac(SoacKind::Map, flat, {a.op(ScalarOp::Div, x, a.host(vars["c1"], kFloat))}),
                         soac(SoacKind::Map, flat, {a.op(ScalarOp::Div, x, a.host(vars["c2"], kFloat))})});
  kernel("black_scholes", {soac(SoacKind::Map, flat, {blackScholes(x, at("ys", i), at("zs", i))})});
  kernel("copy", {soac(SoacKind::Map, flat, {a.add(x, a.constant(Scalar::ofFloat(kFloat, 1)))})});
}

runtime::ProgramKernels KnownKernels::programKernels() const {
  runtime::ProgramKernels result{&program, {}};
  for (const auto& [name, kernel] : kernels)
    result.kernels.push_back({&kernel, codegen::analyseKernel(kernel, program)});
  return result;
}
size_t KnownKernels::number(const std::string& name) const {
  return static_cast<size_t>(std::distance(kernels.begin(), kernels.find(name)));
}

}  // namespace kelpie::tests
