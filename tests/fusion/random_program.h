// Random λcu programs before fusion: flat and segmented spaces, filters of filters, scans, checks, gathers.
#pragma once

#include <random>

#include "tests/runtime/program_builder.h"

namespace kelpie::testing {

class RandomProgram {
 public:
  /// `failing`: some checks may really fail.
  RandomProgram(uint32_t seed, int statements, bool failing) : random_(seed), failing_(failing) {
    makeInputs();
    for (int k = 0; k < statements; ++k) addStatement();
    for (VarId v : made_) {
      if (chance(0.35)) addResult(v);
    }
  }

  Builder b;

 private:
  /// An array's length is spelled by its extent, as the flattener does.
  void addResult(VarId v) {
    if (b.program.vars[v].kind != VarKind::Array) return b.result(v);
    b.program.entry.body.results.push_back(b.let("length", b.program.vars[v].extent));
    b.program.entry.body.results.push_back(v);
    b.program.resultTypes.push_back(CoreType::sequence({CoreType(b.program.vars[v].type)}));
  }

  /// Arrays over the same elements, flat and perhaps in segments.
  struct Domain {
    Space flat;
    Space segmented;         ///< Flat when there are none
    int segmentDomain = -1;  ///< of its segments
    std::vector<VarId> arrays;
  };

  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  int number(int low, int high) { return std::uniform_int_distribution<>(low, high)(random_); }
  template <typename T>
  const T& any(const std::vector<T>& items) {
    return items[static_cast<size_t>(number(0, static_cast<int>(items.size()) - 1))];
  }

  Column randomInts(int64_t n) {
    std::vector<int64_t> v;
    for (int64_t k = 0; k < n; ++k) v.push_back(number(-9, 9));
    return ints(v);
  }

  void makeInputs() {
    Domain plain;
    const int n = number(0, 30);
    for (const char* name : {"xs", "ys"}) plain.arrays.push_back(b.globalArray(name, randomInts(n)));
    plain.flat = b.flat(plain.arrays[0]);
    b.program.vars[plain.arrays[1]].extent = plain.flat.extent;
    domains_.push_back(plain);

    const int segments = number(0, 8);
    std::vector<int64_t> offsets{0};
    for (int k = 0; k < segments; ++k) offsets.push_back(offsets.back() + number(0, 7));
    auto [off, elements] = b.globalNested("rows", offsets, randomInts(offsets.back()));
    const VarId perRow = b.globalArray("perRow", randomInts(segments));
    Domain rows, row;
    row.segmented = b.segmented(off, elements);
    row.flat = b.flat(elements);
    row.segmented.segments = b.arena().size(perRow);
    row.segmentDomain = 2;
    row.arrays = {elements};
    domains_.push_back(row);
    rows.flat = b.flat(perRow);
    rows.arrays = {perRow};
    domains_.push_back(rows);
  }

  /// An expression over the elements of a domain; `segmented`: with %s and %p.
  ExprRef value(const Domain& d, bool segmented, int depth) {
    if (depth == 0 || chance(0.15)) {
      const double which = std::uniform_real_distribution<>(0, 1)(random_);
      if (!d.arrays.empty() && which < 0.6) return b.at(any(d.arrays));
      if (segmented && which < 0.75)
        return b.at(any(domains_[static_cast<size_t>(d.segmentDomain)].arrays), b.s());
      if (segmented && which < 0.8 && chance(0.3)) return b.p();
      if (!cells_.empty() && which < 0.85) return b.host(any(cells_));
      if (which < 0.88) return b.i();
      return b.num(number(-3, 3));
    }
    const ExprRef x = value(d, segmented, depth - 1);
    switch (number(0, 10)) {
      case 10:
        if (d.arrays.empty()) return x;
        return chosenAlike(d, x);
      case 0:
        return b.arena().select(condition(d, segmented), x, value(d, segmented, depth - 1));
      case 1: {
        const VarId a = any(any(domains_).arrays);  // gather, wherever it leads
        const ExprRef size = b.program.vars[a].extent, last = b.arena().sub(size, b.num(1));
        const ExprRef position = b.op(ScalarOp::Min, b.op(ScalarOp::And, x, b.num(15)), last);
        return b.arena().select(b.op(ScalarOp::Greater, size, b.num(0)), b.at(a, position), b.num(5));
      }
      case 2: {
        const ExprRef y = value(d, segmented, depth - 1);
        const ExprRef good = failing_ && chance(0.1)
                                 ? b.op(ScalarOp::NotEqual, y, b.num(number(-20, 20)))
                                 : b.op(ScalarOp::Less, b.op(ScalarOp::And, y, b.num(7)), b.num(8));
        return b.arena().check(good, x, Scalar::ofInt(kI64, 1), 0, x, y);
      }
      case 3:
        return b.op(ScalarOp::Max, x, value(d, segmented, depth - 1));
      case 4:
        return b.op(ScalarOp::Xor, x, value(d, segmented, depth - 1));
      case 5:
        return b.op(ScalarOp::Rem, x, b.num(7));
      default:
        return b.arena().add(x, value(d, segmented, depth - 1));
    }
  }
  /// Something long of the elements that are chosen: other choices of the domain have the same condition and
  /// divide the same.
  ExprRef chosenAlike(const Domain& d, ExprRef otherwise) {
    const ExprRef y = b.at(d.arrays[0]);
    const ExprRef divisor =
        b.arena().add(b.op(ScalarOp::And, b.op(ScalarOp::Mul, y, y), b.num(255)), b.num(1));
    const ExprRef quotient = b.op(ScalarOp::Div, b.num(1000), divisor);
    return b.arena().select(b.op(ScalarOp::Greater, y, b.num(0)),
                            b.arena().add(quotient, b.num(number(-3, 3))), otherwise);
  }
  ExprRef condition(const Domain& d, bool segmented) {
    return b.op(chance(0.5) ? ScalarOp::Greater : ScalarOp::NotEqual, value(d, segmented, 1),
                b.num(number(-2, 2)));
  }

  Operator combine() {
    switch (number(0, 2)) {
      case 0:
        return b.operation(ScalarOp::Max, Scalar::ofInt(kI64, INT64_MIN));
      case 1:
        return b.operation(ScalarOp::Xor, Scalar::ofInt(kI64, 0));
      default:
        return b.sum(kI64);
    }
  }

  std::vector<VarId> launch(Soac soac, const char* name) {
    if (chance(0.1) && soac.kind != SoacKind::Once) {
      const Domain& d = domains_[current_];
      const ExprRef e = value(d, soac.space.segmented(), 2);
      if (e->canFail) soac.effects.push_back(e);
    }
    const std::vector<VarId> results = b.launch(std::move(soac), name);
    made_.insert(made_.end(), results.begin(), results.end());
    return results;
  }
  VarId extended(VarId v, ExprRef extent) {
    b.program.vars[v].extent = extent;
    return v;
  }

  void addStatement() {
    current_ = static_cast<size_t>(number(0, static_cast<int>(domains_.size()) - 1));
    const bool segmented = domains_[current_].segmentDomain >= 0 && chance(0.7);
    const Domain d = domains_[current_];
    const Space space = segmented ? d.segmented : d.flat;
    const ExprRef n = space.extent;
    const auto pull = [&](int depth) { return value(d, segmented, depth); };
    std::vector<VarId>& arrays = domains_[current_].arrays;
    switch (number(0, 11)) {
      case 0:
      case 1:
      case 2: {
        auto r = launch(b.map(space, {pull(2), pull(1)}), "map");
        for (VarId v : r) arrays.push_back(extended(v, n));
        break;
      }
      case 3:
      case 4: {
        const VarId r = launch(b.reduce(space, {pull(2)}, combine()), "reduce")[0];
        if (segmented) {
          domains_[static_cast<size_t>(d.segmentDomain)].arrays.push_back(extended(r, space.segments));
        } else {
          cells_.push_back(r);
        }
        break;
      }
      case 5:
      case 6: {
        Soac scan = b.scan(space, {pull(2)}, combine());
        scan.inclusive = chance(0.5);
        scan.backward = chance(0.3);
        scan.withTotal = !segmented && chance(0.4);
        const VarId r = launch(scan, "scan")[0];
        arrays.push_back(extended(r, scan.withTotal ? b.arena().add(n, b.num(1)) : n));
        break;
      }
      case 7:
      case 8:
      case 9: {
        if (domains_.size() > 12) break;
        auto r = launch(b.filter(space, {pull(1), pull(2)}, condition(d, segmented)), "filter");
        Domain survivors;
        const ExprRef count =
            segmented ? b.arena().load(r[0], kI64, space.segments) : b.arena().host(r[0], kI64);
        if (segmented) {
          extended(r[0], b.arena().add(space.segments, b.num(1)));
          survivors.segmented = {SpaceKind::Offsets, count, space.segments, r[0], nullptr};
          survivors.segmentDomain = d.segmentDomain;
        } else {
          cells_.push_back(r[0]);
        }
        survivors.flat = b.flat(count);
        survivors.arrays = {extended(r[1], count), extended(r[2], count)};
        domains_.push_back(survivors);
        break;
      }
      case 10: {
        const ExprRef mirrored = b.arena().sub(b.arena().sub(n, b.num(1)), b.i());
        Soac permute = b.permute(space, {pull(2)}, mirrored, n, {Scalar::ofInt(kI64, 0)});
        arrays.push_back(extended(launch(permute, "permute")[0], n));
        break;
      }
      default: {
        if (cells_.empty()) break;
        const ExprRef x = b.host(any(cells_));
        cells_.push_back(launch(b.once({b.arena().add(x, b.host(any(cells_)))}), "once")[0]);
        break;
      }
    }
  }

  std::mt19937 random_;
  const bool failing_;
  std::vector<Domain> domains_;
  std::vector<VarId> cells_, made_;
  size_t current_ = 0;
};

}  // namespace kelpie::testing
