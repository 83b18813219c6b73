// The specialiser's state; shared by specialise.cpp (expressions) and specialise_builtins.cpp (primitives).
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/constant_literal.h"
#include "frontend/specialise.h"

namespace kelpie {

using Atoms = std::vector<core::Atom>;

/// Lets under construction, in order of evaluation.
struct Block {
  std::vector<std::pair<std::vector<core::Var>, core::ExpPtr>> lets;
};

class Specialiser {
 public:
  Specialiser(Environment& environment, GroundTypes& grounds)
      : environment_(environment), grounds_(grounds), widths_(environment.types().widths()) {}

  Specialised run(const typed::Exp& expression);

 private:
  struct Instance {
    Type* type;  ///< closed function type
    core::FunctionId id;
  };

  // ---- instances
  core::FunctionId instance(Type* functionType);
  void buildInstance(Type* functionType, core::FunctionId id);
  std::vector<core::Var> newVars(const Row& row, const std::string& name);

  // ---- expressions (specialise.cpp)
  Type* ground(const Type* type) { return grounds_.of(type, substitution_); }
  Atoms eval(const typed::Exp& exp, Block& block);
  Atoms evalNode(const typed::Exp& exp, Block& block);
  Atoms evalGlobal(const typed::Exp& exp, const Cell& cell, Block& block);
  Atoms evalCall(const typed::Exp& exp, const typed::Call& call, Block& block);
  Atoms evalSequence(const typed::Exp& exp, const typed::Sequence& sequence, Block& block);
  Atoms evalEach(const typed::Exp& exp, const typed::ApplyToEach& each, Block& block);
  Atoms evalIf(const typed::Exp& exp, const typed::If& branch, Block& block);
  Atoms evalLet(const typed::Let& let, Block& block);
  Atoms evalTime(const typed::Exp& exp, const typed::Time& time, Block& block);
  std::pair<size_t, size_t> usedComponents(const typed::Pattern& pattern,
                                           const std::unordered_set<const typed::Variable*>& uses);
  core::Atom project(const core::Atom& sequence, size_t first, size_t count, Block& block, Span span);
  std::optional<core::Atom> asView(const core::Each& each, const Atoms& result, Block& block, Span span);
  bool isTrivial(const typed::Exp& exp) const;
  core::ExpPtr finish(Block block, Atoms result, Span span);
  void bind(const typed::Pattern& pattern, const Atoms& atoms);
  void bind(const typed::Pattern& pattern, const core::Atom*& next);
  void nameLast(Block& block, size_t first, const typed::Pattern& pattern);
  void nameVars(const typed::Pattern& pattern, std::vector<core::Var>& vars, size_t& next);

  // ---- calls (specialise_builtins.cpp); `argument` is the typed argument where there is one
  Atoms callValue(Type* functionType, Atoms captures, Atoms arguments, const typed::Exp* argument,
                  Block& block, Span span);
  Atoms callBuiltin(const Builtin& builtin, Type* functionType, Atoms arguments, const typed::Exp* argument,
                    Block& block, Span span);
  Atoms expand(const Builtin& builtin, Type* functionType, Atoms arguments, const typed::Exp* argument,
               Block& block, Span span);
  core::Atom constantOf(Expansion expansion) const;
  Atoms callLibrary(const std::string& name, Type* parameter, Atoms arguments, Block& block, Span span);
  core::Atom equal(Type* type, const Atoms& left, const Atoms& right, Block& block, Span span);
  /// `ofSequences`: the function of the library for the text of a sequence.
  core::Atom text(Type* type, const Atoms& value, const std::string& ofSequences, Block& block, Span span);
  core::Atom hash(Type* type, const Atoms& value, Block& block, Span span);

  // ---- building Core
  Atoms emit(decltype(core::Exp::node) node, Row type, Block& block, Span span);
  core::Atom emitOne(decltype(core::Exp::node) node, CoreType type, Block& block, Span span);
  core::Atom scalarOp(ScalarOp op, Atoms operands, Block& block, Span span);
  core::Atom convert(core::Atom value, ScalarType to, Block& block, Span span);
  core::Atom constantString(std::string_view text, Block& block, Span span);
  static core::Atom constant(Scalar value) { return {value, CoreType(value.type)}; }
  static core::Atom use(const core::Var& var) { return {var.id, var.type}; }

  Environment& environment_;
  GroundTypes& grounds_;
  Widths widths_;
  core::Program program_;
  std::unordered_map<const Type*, core::FunctionId> instances_;
  std::deque<Instance> pending_;
  std::unordered_map<std::string, int> names_;
  std::unordered_map<const void*, int> instancesOf_;  ///< a cell or a lambda
  std::unordered_map<uint32_t, size_t> globals_;      ///< cell to index in program_.globals
  std::vector<Diagnostic> diagnostics_;

  // of the instance being built
  Substitution substitution_;
  std::unordered_map<const typed::Variable*, Atoms> variables_;
  bool invariants_ = false;  ///< closed expressions are evaluated once (language.md 4.8)
};

}  // namespace kelpie
