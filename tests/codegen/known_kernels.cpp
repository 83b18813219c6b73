#include "tests/codegen/known_kernels.h"

#include <algorithm>

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

Soac KnownKernels::filter(const Space& space, std::vector<ExprRef> pull, ExprRef where) {
  Soac s = soac(SoacKind::Filter, space, std::move(pull));
  s.where = where;
  const ScalarType type = ScalarType::Int64;
  s.results.insert(s.results.begin(), space.segmented() ? result("kept", VarKind::Array, type, nullptr)
                                                        : result("count", VarKind::Cell, type, nullptr));
  return s;
}

/// Sums, scans and filters of float64, of int64, and of four arrays at once.
void KnownKernels::ofOtherTypes(const Space& flat, const Space& segmented) {
  auto& a = *program.arena;
  array("xs_f64", ScalarType::Float64, flat.extent);
  array("ys_f64", ScalarType::Float64, flat.extent);
  array("xs_i64", ScalarType::Int64, flat.extent);
  array("ws", kFloat, flat.extent);
  const std::map<std::string, std::vector<std::string>> inputs = {
      {"_f64", {"xs_f64"}}, {"_i64", {"xs_i64"}}, {"_4", {"xs", "ys", "zs", "ws"}}};
  for (const auto& [suffix, names] : inputs) {
    std::vector<ExprRef> pull;
    for (const std::string& name : names) pull.push_back(at(name, a.param(0)));
    ExprRef positive = a.op(ScalarOp::Greater, pull[0], a.constant(Scalar::zero(pull[0]->type)));
    kernel("sum" + suffix, {soac(SoacKind::Reduce, flat, pull)});
    kernel("scan" + suffix, {soac(SoacKind::Scan, flat, pull)});
    kernel("filter" + suffix, {filter(flat, pull, positive)});
    kernel("segmented_sum" + suffix, {soac(SoacKind::Reduce, segmented, pull)});
    kernel("segmented_scan" + suffix, {soac(SoacKind::Scan, segmented, pull)});
  }
}

/// What needs to know the segment of each element, and segmented sums beside other work.
void KnownKernels::withSegmentNumbers(const Space& segmented) {
  auto& a = *program.arena;
  array("weights", kFloat, segmented.segments);
  ExprRef x = at("xs", a.param(0)), weighted = a.mul(x, at("weights", a.param(1)));
  ExprRef positive = a.op(ScalarOp::Greater, x, a.constant(Scalar::zero(kFloat)));
  kernel("segmented_map", {soac(SoacKind::Map, segmented, {weighted})});
  kernel("segmented_weighted_sum", {soac(SoacKind::Reduce, segmented, {weighted})});
  kernel("segmented_weighted_scan", {soac(SoacKind::Scan, segmented, {weighted})});
  kernel("segmented_sum_and_scan",
         {soac(SoacKind::Reduce, segmented, {x}), soac(SoacKind::Scan, segmented, {x})});
  kernel("segmented_weighted_sum_and_scan",
         {soac(SoacKind::Scan, segmented, {weighted}), soac(SoacKind::Reduce, segmented, {weighted})});
  for (const char* type : {"", "_wide"}) {  // where the first greatest element is
    const ExprRef value = *type ? a.convert(x, ScalarType::Float64) : x;
    Soac first = soac(SoacKind::Reduce, segmented, {value, a.param(2)});
    const Scalar none = identity(ReduceOp::Min, lcu::kIndex);
    const auto side = [&](uint32_t k) { return a.param(k, k % 2 == 0 ? value->type : lcu::kIndex); };
    const ExprRef greatest = a.op(ScalarOp::Max, side(0), side(2));
    const auto place = [&](uint32_t k) {
      return a.select(a.op(ScalarOp::Equal, side(k), greatest), side(k + 1), a.constant(none));
    };
    first.combine = {{identity(ReduceOp::Max, value->type), none},
                     {greatest, a.op(ScalarOp::Min, place(0), place(2))}};
    kernel(std::string("segmented_first_greatest") + type, {first});
    kernels.at(std::string("segmented_first_greatest") + type).returns = {first.results[1]};
  }
  // The same of running sums, which the ranges that find it scan (codegen/cuda/range_scan.cuh).
  Soac running = soac(SoacKind::Scan, segmented, {x});
  Soac firstOfSums = kernels.at("segmented_first_greatest").bindings[0];
  firstOfSums.pull[0] = a.load(running.results[0], kFloat, a.param(0));
  firstOfSums.results = {result("greatest_sums", VarKind::Array, kFloat, segmented.segments),
                         result("first_greatest_sums", VarKind::Array, lcu::kIndex, segmented.segments)};
  kernel("segmented_first_greatest_sum", {running, firstOfSums});
  kernels.at("segmented_first_greatest_sum").returns = {firstOfSums.results[1]};
  const ExprRef wide = a.convert(x, ScalarType::Float64);
  Soac wideGreatest = soac(SoacKind::Reduce, segmented, {wide});
  wideGreatest.combine = {{identity(ReduceOp::Max, wide->type)},
                          {a.op(ScalarOp::Max, a.param(0, wide->type), a.param(1, wide->type))}};
  kernel("segmented_wide_greatest_and_scan", {wideGreatest, soac(SoacKind::Scan, segmented, {wide})});
  kernel("segmented_wide_sum_and_scan",
         {soac(SoacKind::Reduce, segmented, {wide}), soac(SoacKind::Scan, segmented, {wide})});
  kernel("segmented_sum_and_squares",
         {soac(SoacKind::Reduce, segmented, {x}), soac(SoacKind::Scan, segmented, {a.mul(x, x)})});
  const Soac scan = soac(SoacKind::Scan, segmented, {wide});
  const ExprRef before = a.load(scan.results[0], wide->type, a.param(0));
  kernel("segmented_sums_of_scan",
         {scan,
          soac(SoacKind::Reduce, segmented, {before, a.add(before, wide), a.convert(weighted, wide->type)})});
  const Soac sums = soac(SoacKind::Scan, segmented, {x});
  kernel("segmented_sum_of_scan",
         {sums, soac(SoacKind::Reduce, segmented, {a.load(sums.results[0], x->type, a.param(0))})});
  // Stored, too, and folded beside elements.
  Soac greatest = soac(SoacKind::Reduce, segmented, {a.load(sums.results[0], x->type, a.param(0))});
  greatest.combine = {{identity(ReduceOp::Max, x->type)},
                      {a.op(ScalarOp::Max, a.param(0, x->type), a.param(1, x->type))}};
  kernel("segmented_scan_and_its_greatest", {sums, greatest, soac(SoacKind::Reduce, segmented, {weighted})});
  kernel("segmented_sum_and_filter",
         {soac(SoacKind::Reduce, segmented, {x}), filter(segmented, {x}, positive)});
  kernel("segmented_filter", {filter(segmented, {x}, positive)});
  // Two masks side by side, the second behind the branches that conversions have.
  const ExprRef number = at("xs_i64", a.param(0)),
                other = a.convert(at("col32", a.param(0)), ScalarType::Int64), mask = a.index(63);
  const ExprRef less = a.op(ScalarOp::Sub, other, a.op(ScalarOp::Max, number, a.index(5)));
  const ExprRef sum = a.add(a.op(ScalarOp::And, a.convert(at("xs_f64", a.param(0)), ScalarType::Int64), mask),
                            a.convert(x, ScalarType::Int64));
  const ExprRef most = a.op(ScalarOp::Max, sum, a.op(ScalarOp::And, a.param(1), mask));
  kernel("segmented_filters", {filter(segmented, {}, a.op(ScalarOp::Greater, less, number)),
                               filter(segmented, {}, a.op(ScalarOp::Greater, most, mask))});
}

const std::vector<int64_t>& KnownKernels::constantDivisors() {
  static const std::vector<int64_t> divisors = {
      1,          2,          3,          7,           1000,           1024,      1000003,
      0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x123456789abc, INT64_MAX, 0,
      -1,         -2,         -3,         -1000,       INT64_MIN};
  return divisors;
}

/// Quotients and remainders of int64, alone and together, by other numbers and by constants.
void KnownKernels::ofDivisions(const Space& flat) {
  auto& a = *program.arena;
  array("dividends", ScalarType::Int64, flat.extent);
  array("divisors", ScalarType::Int64, flat.extent);
  const ExprRef x = at("dividends", a.param(0)), y = at("divisors", a.param(0));
  const ExprRef quotient = a.op(ScalarOp::Div, x, y), remainder = a.op(ScalarOp::Rem, x, y);
  kernel("quotients", {soac(SoacKind::Map, flat, {quotient})});
  kernel("remainders", {soac(SoacKind::Map, flat, {remainder})});
  kernel("quotients_and_remainders", {soac(SoacKind::Map, flat, {quotient, remainder})});
  // Of products: of few in one place each, of many by calls.
  std::vector<ExprRef> quotients, remainders;
  for (int64_t more = 0; more < kProductDivisions; ++more) {
    const ExprRef by = a.add(y, a.index(more));
    if (more % 2 == 0) quotients.push_back(a.op(ScalarOp::Div, a.mul(x, x), by));
    if (more % 2 == 1) quotients.push_back(a.op(ScalarOp::Rem, a.mul(x, x), by));
  }
  kernel("product_quotients", {soac(SoacKind::Map, flat, {quotients[0]})});
  kernel("product_remainders", {soac(SoacKind::Map, flat, {quotients[1]})});
  kernel("many_of_products", {soac(SoacKind::Map, flat, quotients)});
  quotients.clear();
  for (const int64_t divisor : constantDivisors()) {
    const ExprRef by = a.constant(Scalar::ofInt(ScalarType::Int64, divisor));
    quotients.push_back(a.op(ScalarOp::Div, x, by));
    remainders.push_back(a.op(ScalarOp::Rem, x, by));
  }
  std::vector<ExprRef> both = quotients;
  both.insert(both.end(), remainders.begin(), remainders.end());
  kernel("constant_quotients", {soac(SoacKind::Map, flat, quotients)});
  kernel("constant_remainders", {soac(SoacKind::Map, flat, remainders)});
  kernel("constant_quotients_and_remainders", {soac(SoacKind::Map, flat, both)});
}

/// Maps, filters, scans and folds of characters: to characters, to bools, and to integers.
void KnownKernels::ofCharacters(const Space& flat, const Space& segmented) {
  auto& a = *program.arena;
  array("text", ScalarType::Char, flat.extent);
  const auto letter = [&](char c) { return a.constant(Scalar::ofInt(ScalarType::Char, c)); };
  const ExprRef i = a.param(0), c = at("text", i), code = a.convert(c, ScalarType::Int64);
  const ExprRef isE = a.op(ScalarOp::Equal, c, letter('e')), low = a.op(ScalarOp::Less, c, letter('k'));
  const ExprRef next = a.add(i, a.index(1)), size = a.size(vars.at("text"));
  const ExprRef inside =
      a.op(ScalarOp::And, a.op(ScalarOp::GreaterEqual, next, a.index(0)), a.op(ScalarOp::Less, next, size));
  const ExprRef follows = at("text", a.check(inside, next, Scalar::ofInt(lcu::kIndex, 0), 1, next, size));
  kernel("chars_map", {soac(SoacKind::Map, flat, {a.select(isE, letter('E'), c)})});
  kernel("chars_test", {soac(SoacKind::Map, flat, {low})});
  kernel("chars_codes", {soac(SoacKind::Map, flat, {code})});
  kernel("chars_count", {soac(SoacKind::Reduce, flat, {a.convert(isE, ScalarType::Int64)})});
  kernel("chars_filter", {filter(flat, {c}, low)});
  kernel("chars_upper", {filter(flat, {a.select(isE, letter('E'), c)}, low)});
  kernel("chars_positions", {filter(flat, {i}, isE)});
  kernel("chars_changes", {filter(flat, {i}, a.op(ScalarOp::NotEqual, c, follows))});
  kernel("chars_scan", {soac(SoacKind::Scan, flat, {code})});
  kernel("chars_segmented_count", {soac(SoacKind::Reduce, segmented, {a.convert(isE, ScalarType::Int64)})});
  kernel("chars_segmented_filter", {filter(segmented, {c}, low)});
  kernel("chars_segmented_scan", {soac(SoacKind::Scan, segmented, {code})});
}

/// What checks cost: gathers, permutes and divisions, of which "unchecked_..." leave the checks out.
void KnownKernels::withAndWithoutChecks(const Space& flat, const Space& segmented) {
  auto& a = *program.arena;
  array("places", ScalarType::Int64, flat.extent);
  const auto number = [&](const char* name) { return a.convert(at(name, a.param(0)), lcu::kIndex); };
  const ExprRef weight = at("weights", a.param(1)), integer = at("xs_i64", a.param(0));
  for (const bool checks : {true, false}) {
    const auto inside = [&](ExprRef index, const char* name) {
      const ExprRef size = a.size(vars.at(name));
      const ExprRef good = a.op(ScalarOp::And, a.op(ScalarOp::GreaterEqual, index, a.index(0)),
                                a.op(ScalarOp::Less, index, size));
      return checks ? a.check(good, index, Scalar::ofInt(lcu::kIndex, 0), 1, index, size) : index;
    };
    const auto job = [&](const char* name, const Soac& binding) {
      kernel(std::string(checks ? "checked_" : "unchecked_") + name, {binding});
    };
    const ExprRef near = at("xs", inside(number("places"), "xs"));
    const ExprRef random = at("v", inside(number("col32"), "v"));
    job("gather_near", soac(SoacKind::Map, flat, {near}));
    job("gather_random", soac(SoacKind::Map, flat, {random}));
    job("sum_of_gathered", soac(SoacKind::Reduce, flat, {near}));
    job("scan_of_gathered", soac(SoacKind::Scan, flat, {near}));
    job("segmented_gather", soac(SoacKind::Map, segmented, {a.mul(near, weight)}));
    job("segmented_sum_of_gathered", soac(SoacKind::Reduce, segmented, {near}));
    job("segmented_scan_of_gathered", soac(SoacKind::Scan, segmented, {near}));
    Soac permute = soac(SoacKind::Permute, flat, {at("xs", a.param(0))});
    permute.unique = true;
    permute.target = flat.extent;
    permute.destination = inside(number("places"), "xs");
    permute.fill = {Scalar::zero(kFloat)};
    job("permute", permute);
    const ExprRef divisor = number("col32"), zero = a.index(0);
    const ExprRef good = a.op(ScalarOp::NotEqual, divisor, zero);
    const ExprRef safe =
        checks ? a.check(good, divisor, Scalar::ofInt(lcu::kIndex, 1), 1, integer, zero) : divisor;
    job("division", soac(SoacKind::Map, flat, {a.op(ScalarOp::Div, integer, safe)}));
  }
}

/// Values; and offsets of `segments` segments of `mean` elements on average, from 1 to 2 mean - 1 of them, of
/// which those that follow each other `share` at a time are empty but for the last. The space has one element
/// more than there are segments.
void KnownKernels::sweepOffsets() {
  auto& a = *program.arena;
  auto host = [&](const char* name) {
    vars[name] = program.newVar({name, VarKind::Host, lcu::kIndex});
    return a.host(vars[name], lcu::kIndex);
  };
  ExprRef mean = host("mean"), share = host("share"), segments = host("segments");
  Space all{.kind = SpaceKind::Flat, .extent = host("all")};
  ExprRef k = a.op(ScalarOp::Div, a.add(a.param(0), a.sub(share, a.index(1))), share);
  auto hash = [&](ExprRef number) {
    ExprRef mixed = a.mul(number, a.index(-7046029254386353131));
    return a.op(ScalarOp::And, a.op(ScalarOp::ShiftRight, mixed, a.index(33)), a.index(0x3fffffff));
  };
  Space values{.kind = SpaceKind::Flat, .extent = host("count")};
  ExprRef value = a.op(ScalarOp::Sub, a.convert(a.op(ScalarOp::And, hash(a.param(0)), a.index(255)), kFloat),
                       a.constant(Scalar::ofFloat(kFloat, 127.5)));
  kernel("sweep_values", {soac(SoacKind::Map, values, {value})});
  ExprRef inner = a.add(a.mul(k, mean), a.op(ScalarOp::Rem, hash(k), mean));
  ExprRef border =
      a.op(ScalarOp::Or, a.op(ScalarOp::Equal, k, a.index(0)), a.op(ScalarOp::Equal, k, segments));
  kernel("sweep_offsets", {soac(SoacKind::Map, all, {a.select(border, a.mul(k, mean), inner)})});
}

/// Cumulative normal distribution, the usual polynomial.
ExprRef KnownKernels::cumulative(ExprRef d) {
  auto& a = *program.arena;
  auto c = [&](double v) { return a.constant(Scalar::ofFloat(kFloat, v)); };
  ExprRef zero = c(0), magnitude = a.op(ScalarOp::Max, d, a.op(ScalarOp::Negate, d));
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
  kernel("filter", {filter(flat, {x}, positive)});
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
  kernel("reciprocals",
         {soac(SoacKind::Map, flat, {a.op(ScalarOp::Div, a.constant(Scalar::ofFloat(kFloat, 1)), x)})});
  kernel("float_quotients", {soac(SoacKind::Map, flat, {a.op(ScalarOp::Div, x, at("ys", i))})});
  ofOtherTypes(flat, segmented);
  kernel("float_quotients_f64",
         {soac(SoacKind::Map, flat, {a.op(ScalarOp::Div, at("xs_f64", i), at("ys_f64", i))})});
  withSegmentNumbers(segmented);
  withAndWithoutChecks(flat, segmented);
  ofCharacters(flat, segmented);
  ofDivisions(flat);
  sweepOffsets();
  kernel("copy", {soac(SoacKind::Map, flat, {a.add(x, a.constant(Scalar::ofFloat(kFloat, 1)))})});
}

runtime::ProgramKernels KnownKernels::programKernels() const {
  runtime::ProgramKernels result{&program, {}};
  for (const auto& [name, kernel] : kernels) {
    const auto& entry = result.kernels.emplace_back(
        runtime::KernelEntry{&kernel, codegen::analyseKernel(kernel, program), {}});
    std::vector<VarId> positions;
    for (const auto& p : entry.info.parameters)
      if (program.vars[p.var].name == "offsets") positions.push_back(p.var);
    for (const auto& o : entry.info.outputs)
      if (name == "sweep_offsets" || o.extent == codegen::ExtentKind::SegmentsPlusOne)
        positions.push_back(o.var);
    std::sort(positions.begin(), positions.end());
    result.kernels.back().shortArrays = std::move(positions);
  }
  return result;
}
size_t KnownKernels::number(const std::string& name) const {
  return static_cast<size_t>(std::distance(kernels.begin(), kernels.find(name)));
}

}  // namespace kelpie::tests
