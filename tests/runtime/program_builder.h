// Builds small λcu programs for the tests of the runtime, and runs them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/lcu.h"
#include "runtime/executor.h"
#include "runtime/random_stream.h"

namespace kelpie::testing {

using namespace kelpie::lcu;

inline constexpr ScalarType kF64 = ScalarType::Float64;
inline constexpr ScalarType kI64 = ScalarType::Int64;

/// Services of a world in which nothing happens; keeps what was printed.
class NoServices : public Services {
 public:
  void beginForm() override {}
  void endForm(bool ok) override { succeeded = ok; }
  std::variant<Columns, RuntimeError> call(std::string_view name, const Columns& arguments, const Row&,
                                           Span span) override {
    if (name != "print") return RuntimeError{span, "no such service"};
    const Column& text = arguments.at(0).elements.at(0);
    for (int64_t k = 0; k < text.length(); ++k) printed += static_cast<char>(text.at(k).i);
    return Columns{scalarColumn(ScalarType::Bool, {Scalar::ofBool(true)})};
  }
  RandomStream passOver(uint64_t) override { return RandomStream(); }
  std::string printed;
  bool succeeded = false;
};

inline Column floats(const std::vector<double>& values) {
  std::vector<Scalar> s;
  for (double v : values) s.push_back(Scalar::ofFloat(kF64, v));
  return scalarColumn(kF64, s);
}
inline Column ints(const std::vector<int64_t>& values) {
  std::vector<Scalar> s;
  for (int64_t v : values) s.push_back(Scalar::ofInt(kI64, v));
  return scalarColumn(kI64, s);
}
inline Column sequence(Column elements) {
  const int64_t n = elements.length();
  Row row{elements.type};
  return sequenceColumn(row, {0, n}, {std::move(elements)});
}
/// One value [[a]].
inline Column nested(std::vector<int64_t> offsets, Column elements) {
  Row row{elements.type};
  Column inner = sequenceColumn(row, std::move(offsets), {std::move(elements)});
  return sequence(std::move(inner));
}

inline std::vector<int64_t> intsOf(const Column& c) {
  std::vector<int64_t> v;
  for (int64_t k = 0; k < c.length(); ++k) v.push_back(c.at(k).i);
  return v;
}
inline std::vector<double> floatsOf(const Column& c) {
  std::vector<double> v;
  for (int64_t k = 0; k < c.length(); ++k) v.push_back(c.at(k).f);
  return v;
}

class Builder {
 public:
  Program program;
  Columns globalColumns;  ///< one for each global, by cell number

  Builder() {
    program.newSite({{}, "unknown"});
    program.entry.name = "main";
    blocks_.push_back(&program.entry.body);
  }

  ExprArena& arena() { return *program.arena; }
  ExprRef i() { return arena().param(0); }
  ExprRef s() { return arena().param(1); }
  ExprRef p() { return arena().param(2); }
  ExprRef at(VarId array, ExprRef position) {
    return arena().load(array, program.vars[array].type, position);
  }
  ExprRef at(VarId array) { return at(array, i()); }
  ExprRef host(VarId v) { return arena().host(v, program.vars[v].type); }
  ExprRef num(int64_t v) { return arena().index(v); }
  ExprRef real(double v) { return arena().constant(Scalar::ofFloat(kF64, v)); }
  ExprRef op(ScalarOp o, ExprRef a, ExprRef b = nullptr) { return arena().op(o, a, b); }

  VarId var(const std::string& name, VarKind kind, ScalarType type, ExprRef extent = nullptr) {
    return program.newVar({name, kind, type, extent});
  }

  // ---- globals ----
  VarId global(const std::string& name, Column value) {  // a scalar column of length 1
    VarId v = var(name, VarKind::Host, value.type.scalar());
    program.globals.push_back({static_cast<uint32_t>(globalColumns.size()), {value.type}, {v}});
    globalColumns.push_back(std::move(value));
    return v;
  }
  VarId globalArray(const std::string& name, Column elements) {
    VarId lengths = var(name + "_length", VarKind::Host, kI64);
    VarId v = var(name, VarKind::Array, elements.type.scalar());
    Column value = sequence(std::move(elements));
    program.globals.push_back({static_cast<uint32_t>(globalColumns.size()), {value.type}, {lengths, v}});
    globalColumns.push_back(std::move(value));
    return v;
  }
  /// (offsets, elements)
  std::pair<VarId, VarId> globalNested(const std::string& name, std::vector<int64_t> offsets,
                                       Column elements) {
    VarId lengths = var(name + "_length", VarKind::Host, kI64);
    VarId off = var(name + "_offsets", VarKind::Array, kI64);
    VarId v = var(name, VarKind::Array, elements.type.scalar());
    Column value = nested(std::move(offsets), std::move(elements));
    program.globals.push_back({static_cast<uint32_t>(globalColumns.size()), {value.type}, {lengths, off, v}});
    globalColumns.push_back(std::move(value));
    return {off, v};
  }

  // ---- spaces and SOACs ----
  Space flat(ExprRef extent) {
    Space space;
    space.extent = extent;
    return space;
  }
  Space flat(VarId array) { return flat(arena().size(array)); }
  Space segmented(VarId offsets, VarId elements) {
    Space space;
    space.kind = SpaceKind::Offsets;
    space.extent = arena().size(elements);
    space.segments = arena().sub(arena().size(offsets), num(1));
    space.offsets = offsets;
    return space;
  }
  Space regular(ExprRef segments, ExprRef length) {
    Space space;
    space.kind = SpaceKind::Regular;
    space.segments = segments;
    space.length = length;
    space.extent = arena().mul(segments, length);
    return space;
  }

  Operator operation(ScalarOp o, Scalar identity) {
    return {{identity}, {op(o, arena().param(0, identity.type), arena().param(1, identity.type))}};
  }
  Operator sum(ScalarType t) { return operation(ScalarOp::Add, Scalar::zero(t)); }

  Soac map(Space space, std::vector<ExprRef> pull) { return soac(SoacKind::Map, space, std::move(pull)); }
  Soac reduce(Space space, std::vector<ExprRef> pull, Operator combine) {
    Soac r = soac(SoacKind::Reduce, space, std::move(pull));
    r.combine = std::move(combine);
    return r;
  }
  Soac scan(Space space, std::vector<ExprRef> pull, Operator combine) {
    Soac r = soac(SoacKind::Scan, space, std::move(pull));
    r.combine = std::move(combine);
    return r;
  }
  Soac filter(Space space, std::vector<ExprRef> pull, ExprRef where) {
    Soac r = soac(SoacKind::Filter, space, std::move(pull));
    r.where = where;
    return r;
  }
  Soac partition(Space space, std::vector<ExprRef> pull, ExprRef where) {
    Soac r = soac(SoacKind::Partition, space, std::move(pull));
    r.where = where;
    return r;
  }
  Soac permute(Space space, std::vector<ExprRef> pull, ExprRef destination, ExprRef target,
               std::vector<Scalar> fill, bool unique = true) {
    Soac r = soac(SoacKind::Permute, space, std::move(pull));
    r.destination = destination;
    r.target = target;
    r.fill = std::move(fill);
    r.unique = unique;
    return r;
  }
  /// Writes where the order of the writes is of no consequence.
  Soac writeOnto(Space space, ExprRef value, ExprRef destination, ExprRef target, VarId base) {
    Soac r = permute(space, {value}, destination, target, {});
    r.onto = {base};
    return r;
  }
  Soac once(std::vector<ExprRef> pull) { return soac(SoacKind::Once, {}, std::move(pull)); }

  /// Makes the result variables of a SOAC.
  Soac& named(Soac& soac, const std::string& name) {
    auto add = [&](VarKind kind, ScalarType type) { soac.results.push_back(var(name, kind, type)); };
    const bool segmented = soac.space.segmented();
    const bool counts = soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition;
    if (counts) add(segmented ? VarKind::Array : VarKind::Cell, kI64);
    const bool cells = soac.kind == SoacKind::Once || (soac.kind == SoacKind::Reduce && !segmented);
    for (int copy = 0; copy < (soac.kind == SoacKind::Partition ? 2 : 1); ++copy)
      for (ExprRef e : soac.pull) add(cells ? VarKind::Cell : VarKind::Array, e->type);
    return soac;
  }
  /// Launches one SOAC; gives its results.
  std::vector<VarId> launch(Soac soac, const std::string& name) {
    named(soac, name);
    auto results = soac.results;
    kernel({std::move(soac)}, results, name);
    return results;
  }
  void kernel(std::vector<Soac> bindings, std::vector<VarId> returns, const std::string& name = "k") {
    add(returns, Launch{Kernel{name, std::move(bindings), returns}});
  }

  // ---- statements ----
  template <typename Node>
  void add(std::vector<VarId> results, Node node) {
    blocks_.back()->stmts.push_back(Stmt{std::move(results), std::move(node), {}});
  }
  VarId let(const std::string& name, ExprRef value) {
    VarId v = var(name, VarKind::Host, value->type);
    add({v}, HostLet{{value}});
    return v;
  }
  void enter(Block& block) { blocks_.push_back(&block); }
  void leave() { blocks_.pop_back(); }

  /// An array as a result of the program: its bounds and itself.
  void result(VarId v) {
    const VarInfo& info = program.vars[v];
    if (info.kind != VarKind::Array) {
      program.entry.body.results.push_back(v);
      program.resultTypes.emplace_back(info.type);
      return;
    }
    VarId length = var("length", VarKind::Host, kI64);
    add({length}, HostLet{{arena().size(v)}});
    program.entry.body.results.push_back(length);
    program.entry.body.results.push_back(v);
    program.resultTypes.push_back(CoreType::sequence({CoreType(info.type)}));
  }
  /// [[a]]: what a segmented filter gives.
  void resultNested(VarId offsets, VarId elements) {
    program.entry.body.results.push_back(let("result_length", arena().sub(arena().size(offsets), num(1))));
    program.entry.body.results.insert(program.entry.body.results.end(), {offsets, elements});
    program.resultTypes.push_back(
        CoreType::sequence({CoreType::sequence({CoreType(program.vars[elements].type)})}));
  }

  runtime::RunResult run(runtime::Executor& executor, const runtime::RunOptions& options = {},
                         runtime::RunStatistics* statistics = nullptr, NoServices* services = nullptr) {
    NoServices none;
    return executor.run(
        program, [this](uint32_t cell) { return Columns{globalColumns.at(cell)}; },
        services ? *services : none, options, statistics);
  }

 private:
  static Soac soac(SoacKind kind, Space space, std::vector<ExprRef> pull) {
    Soac soac;
    soac.kind = kind;
    soac.space = space;
    soac.pull = std::move(pull);
    return soac;
  }
  std::vector<Block*> blocks_;
};

/// The columns of a run that must succeed.
inline Columns succeed(const runtime::RunResult& r) {
  if (const auto* error = std::get_if<RuntimeError>(&r)) {
    ADD_FAILURE() << "run-time error: " << error->message;
    return {};
  }
  return std::get<Columns>(r);
}
inline std::string messageOf(const runtime::RunResult& r) {
  const auto* error = std::get_if<RuntimeError>(&r);
  return error ? error->message : "(no error)";
}

}  // namespace kelpie::testing
