#include "ir/core_verify.h"

#include <fmt/core.h>

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ir/core_print.h"

namespace kelpie::core {
namespace {

/// The row that a primitive yields on operands of these types, or nothing if they are not what it takes.
/// Primitives whose result the operands do not determine are given it as `result`.
class PrimTyping {
 public:
  PrimTyping(const Prim& prim, const Row& result, const Program& program)
      : prim_(prim), result_(result), int_(program.intType) {
    for (const Atom& atom : prim.arguments) types_.push_back(atom.type);
  }

  std::optional<Row> row() const {
    switch (prim_.op) {
      case PrimOp::Scalar:
        return scalarOperation();
      case PrimOp::CheckedScalar:
        return prim_.scalarOp == ScalarOp::Div || prim_.scalarOp == ScalarOp::Rem ||
                       prim_.scalarOp == ScalarOp::Sqrt || prim_.scalarOp == ScalarOp::Ln ||
                       prim_.scalarOp == ScalarOp::ShiftLeft || prim_.scalarOp == ScalarOp::ShiftRight
                   ? scalarOperation()
                   : std::nullopt;
      case PrimOp::Convert:
        return when(count(1) && types_[0].isScalar() && result_.size() == 1 && result_[0].isScalar(),
                    result_);
      case PrimOp::Check:
        return when(are({ScalarType::Bool, int_, int_}), result_.empty() ? Row() : Row{int_});
      case PrimOp::Length:
        return when(count(1) && isSequence(0), {int_});
      case PrimOp::Index:
        return whenSequence(count(2) && isInt(1), 0);
      case PrimOp::Range:
        return when(are({int_, int_, int_}), {CoreType::sequence({int_})});
      case PrimOp::Distribute:
        if (types_.empty() || !isInt(0)) return std::nullopt;
        return Row{CoreType::sequence(Row(types_.begin() + 1, types_.end()))};
      case PrimOp::Literal:
        return literal();
      case PrimOp::Reduce:
        return when(isReducible(), isReducible() ? types_[0].elements() : Row());
      case PrimOp::Scan:
        return when(isReducible(), types_);
      case PrimOp::Pack:
        return when(count(2) && types_[0] == CoreType::sequence({ScalarType::Bool}) && isSequence(1), last());
      case PrimOp::Append:
        return when(count(2) && isSequence(0) && types_[0] == types_[1], last());
      case PrimOp::Flatten:
        if (!count(1) || !isSequence(0) || types_[0].elements().size() != 1) return std::nullopt;
        return when(types_[0].elements()[0].isSequence(), types_[0].elements());
      case PrimOp::Partition:
        if (!count(2) || !isSequence(0) || !isIntSequence(1)) return std::nullopt;
        return Row{CoreType::sequence({types_[0]})};
      case PrimOp::Zip:
        return zip();
      case PrimOp::Project:
        return project();
      case PrimOp::Slice:
        return when(count(4) && isSequence(0) && isInt(1) && isInt(2) && isInt(3),
                    types_.empty() ? Row() : Row{types_[0]});
      case PrimOp::LastWriter:
        return when(count(2) && isIntSequence(0) && isInt(1), {CoreType::sequence({int_})});
      case PrimOp::Grade:
        return when(isScalarSequence() && types_[0].elements()[0].scalar() != ScalarType::Bool,
                    {CoreType::sequence({int_})});
      case PrimOp::RandomInt:
        return when(are({int_}), {int_});
      case PrimOp::RandomFloat:
        return when(count(1) && types_[0].isScalar() && isFloat(types_[0].scalar()), types_);
      case PrimOp::RandomSeed:
        return when(are({int_}), {ScalarType::Bool});
      case PrimOp::Print:
      case PrimOp::Raise:
        return when(are({CoreType::sequence({ScalarType::Char})}), {ScalarType::Bool});
      case PrimOp::StartTimer:
        return when(are({int_}), {int_});
      case PrimOp::StopTimer:
        return when(
            are({int_}) && result_.size() == 1 && result_[0].isScalar() && isFloat(result_[0].scalar()),
            result_);
      case PrimOp::Extern:
      case PrimOp::Unsupported:
        return result_;
    }
    return std::nullopt;
  }

 private:
  static std::optional<Row> when(bool condition, Row row) {
    return condition ? std::optional(std::move(row)) : std::nullopt;
  }
  std::optional<Row> whenSequence(bool condition, size_t k) const {
    return condition && isSequence(k) ? std::optional(types_[k].elements()) : std::nullopt;
  }
  bool count(size_t n) const { return types_.size() == n; }
  bool are(const Row& expected) const { return types_ == expected; }
  bool isSequence(size_t k) const { return k < types_.size() && types_[k].isSequence(); }
  bool isInt(size_t k) const { return k < types_.size() && types_[k] == CoreType(int_); }
  bool isIntSequence(size_t k) const { return isSequence(k) && types_[k] == CoreType::sequence({int_}); }
  bool isScalarSequence() const {
    return count(1) && isSequence(0) && types_[0].elements().size() == 1 &&
           types_[0].elements()[0].isScalar();
  }
  bool isReducible() const {
    return isScalarSequence() && accepts(kelpie::scalarOp(prim_.reduceOp), types_[0].elements()[0].scalar());
  }
  Row last() const { return types_.empty() ? Row() : Row{types_.back()}; }

  std::optional<Row> scalarOperation() const {
    if (!count(static_cast<size_t>(arity(prim_.scalarOp)))) return std::nullopt;
    for (const CoreType& type : types_)
      if (!type.isScalar() || type.scalar() != types_[0].scalar()) return std::nullopt;
    if (!accepts(prim_.scalarOp, types_[0].scalar())) return std::nullopt;
    return Row{resultType(prim_.scalarOp, types_[0].scalar())};
  }
  std::optional<Row> literal() const {
    if (prim_.count == 0 || types_.size() % prim_.count != 0) return std::nullopt;
    const size_t width = types_.size() / prim_.count;
    for (size_t k = width; k < types_.size(); ++k)
      if (!(types_[k] == types_[k - width])) return std::nullopt;
    return Row{CoreType::sequence(Row(types_.begin(), types_.begin() + static_cast<ptrdiff_t>(width)))};
  }
  std::optional<Row> zip() const {
    Row elements;
    for (const CoreType& type : types_) {
      if (!type.isSequence()) return std::nullopt;
      elements.insert(elements.end(), type.elements().begin(), type.elements().end());
    }
    return when(!types_.empty(), {CoreType::sequence(std::move(elements))});
  }
  std::optional<Row> project() const {
    if (!count(1) || !isSequence(0) || prim_.first + prim_.count > types_[0].elements().size())
      return std::nullopt;
    const auto begin = types_[0].elements().begin() + prim_.first;
    return Row{CoreType::sequence(Row(begin, begin + prim_.count))};
  }

  const Prim& prim_;
  const Row& result_;
  CoreType int_;
  Row types_;
};

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  std::vector<std::string> run() {
    for (const Global& global : program_.globals) bind(global.vars);
    globals_ = scope_;
    for (const Function& function : program_.functions) {
      where_ = function.name;
      const size_t mark = trail_.size();
      bind(function.parameters);
      if (function.body) {
        exp(*function.body);
        expect(function.body->type, function.result, "body of the function");
      }
      leave(mark);
    }
    where_ = "entry";
    if (program_.entry)
      exp(*program_.entry);
    else
      report("there is no entry expression");
    return std::move(violations_);
  }

 private:
  void report(const std::string& message) { violations_.push_back(where_ + ": " + message); }

  void expect(const Row& actual, const Row& expected, const std::string& what) {
    if (!(actual == expected))
      report(fmt::format("{} has type ({}) where ({}) is due", what, toString(actual), toString(expected)));
  }

  void bind(const std::vector<Var>& vars) {
    for (const Var& var : vars) {
      if (var.id >= program_.nextVar)
        report(fmt::format("variable {}.{} is not below nextVar", var.name, var.id));
      if (!types_.emplace(var.id, var.type).second)
        report(fmt::format("variable {}.{} is bound twice", var.name, var.id));
      scope_.insert(var.id);
      trail_.push_back(var.id);
    }
  }

  void leave(size_t mark) {
    for (; trail_.size() > mark; trail_.pop_back()) scope_.erase(trail_.back());
  }

  void atom(const Atom& a) {
    if (a.isConstant()) {
      if (!(a.type == CoreType(a.constant().type))) report("a constant is not of its atom's type");
      return;
    }
    if (!scope_.contains(a.var())) {
      report(fmt::format("variable .{} is used outside its scope", a.var()));
      return;
    }
    if (!(types_.at(a.var()) == a.type))
      report(fmt::format("variable .{} of type {} is used as {}", a.var(), toString(types_.at(a.var())),
                         toString(a.type)));
  }

  Row rowOf(const std::vector<Atom>& atoms) {
    Row row;
    for (const Atom& a : atoms) {
      atom(a);
      row.push_back(a.type);
    }
    return row;
  }

  static Row rowOf(const std::vector<Var>& vars) {
    Row row;
    for (const Var& var : vars) row.push_back(var.type);
    return row;
  }

  /// Chains of lets are walked in a loop; only branches and bodies nest.
  void exp(const Exp& whole) {
    const size_t mark = trail_.size();
    const Exp* e = &whole;
    while (const auto* let = std::get_if<Let>(&e->node)) {
      exp(*let->rhs);
      expect(let->rhs->type, rowOf(let->vars), "right side of a let");
      bind(let->vars);
      expect(let->body->type, e->type, "body of a let");
      e = let->body.get();
    }
    node(*e);
    leave(mark);
  }

  void node(const Exp& e) {
    if (const auto* values = std::get_if<Values>(&e.node)) {
      expect(rowOf(values->atoms), e.type, "row of values");
    } else if (const auto* conditional = std::get_if<If>(&e.node)) {
      expect(rowOf(std::vector{conditional->condition}), {ScalarType::Bool}, "condition");
      for (const ExpPtr& branch : {conditional->thenBranch, conditional->elseBranch}) {
        exp(*branch);
        expect(branch->type, e.type, "branch");
      }
    } else if (const auto* call = std::get_if<Call>(&e.node)) {
      const Row arguments = rowOf(call->arguments);
      if (call->function >= program_.functions.size()) return report("call of an unknown function");
      const Function& callee = program_.functions[call->function];
      expect(arguments, rowOf(callee.parameters), "argument row of " + callee.name);
      expect(callee.result, e.type, "call of " + callee.name);
    } else if (const auto* prim = std::get_if<Prim>(&e.node)) {
      const Row arguments = rowOf(prim->arguments);
      const auto row = PrimTyping(*prim, e.type, program_).row();
      const std::string name(toString(prim->op));
      if (!row)
        report(fmt::format("primitive {} does not take ({})", name, toString(arguments)));
      else
        expect(e.type, *row, "primitive " + name);
    } else if (const auto* constant = std::get_if<Constant>(&e.node)) {
      Row row;
      for (const Column& column : constant->columns) {
        row.push_back(column.type);
        if (column.length() != 1) report("a constant is not a column of length 1");
      }
      expect(row, e.type, "constant");
    } else if (const auto* each = std::get_if<Each>(&e.node)) {
      eachOf(*each, e.type);
    } else {
      const auto& invariant = std::get<Invariant>(e.node);
      std::unordered_set<VarId> outside = globals_;
      scope_.swap(outside);
      exp(*invariant.body);
      scope_.swap(outside);
      expect(invariant.body->type, e.type, "invariant");
    }
  }

  void eachOf(const Each& each, const Row& type) {
    const size_t mark = trail_.size();
    if (each.bindings.empty()) report("an apply-to-each without bindings");
    for (const Each::Binding& binding : each.bindings) {
      atom(binding.sequence);
      if (binding.sequence.type.isSequence())
        expect(rowOf(binding.vars), binding.sequence.type.elements(), "binding of an apply-to-each");
      else
        report("an apply-to-each over a scalar");
    }
    for (const Each::Binding& binding : each.bindings) bind(binding.vars);
    exp(*each.body);
    expect(type, {CoreType::sequence(each.body->type)}, "apply-to-each");
    leave(mark);
  }

  const Program& program_;
  std::string where_ = "globals";
  std::unordered_map<VarId, CoreType> types_;
  std::unordered_set<VarId> scope_, globals_;
  std::vector<VarId> trail_;  ///< variables in scope, innermost last
  std::vector<std::string> violations_;
};

}  // namespace

std::vector<std::string> verify(const Program& program) { return Verifier(program).run(); }

}  // namespace kelpie::core
