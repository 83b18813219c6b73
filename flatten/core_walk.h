// Taking Core expressions apart and putting them together: what passes over Core share.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/core.h"

namespace kelpie::flatten {

/// A chain of lets taken apart. Chains are long, so no pass recurses along them.
struct Chain {
  struct Binding {
    std::vector<core::Var> vars;
    core::ExpPtr rhs;
    Span span;
  };
  std::vector<Binding> lets;
  core::ExpPtr tail;  ///< no let
};
Chain takeApart(core::ExpPtr e);
core::ExpPtr putTogether(Chain chain);

/// An expression; a variable as an operand.
core::ExpPtr makeExp(decltype(core::Exp::node) node, Row type, Span span);
inline core::Atom atomOf(const core::Var& var) { return {var.id, var.type}; }
/// The same variable, or equal constants of one type.
bool same(const core::Atom& a, const core::Atom& b);

/// A value that nobody looks at, bound in the chain if it is no scalar.
core::Atom unusedValue(core::Program& program, const CoreType& type, Chain& chain, Span span);

/// Whether a primitive can end in an error.
bool isChecked(core::PrimOp op);

/// Replaces the bodies of all functions and the entry. `change` may add functions, which are left alone.
void changeBodies(core::Program& program, const std::function<core::ExpPtr(const core::ExpPtr&)>& change);

/// The atoms of an expression itself, without those of expressions in it. Nothing for a let.
void forEachAtom(const core::Exp& e, const std::function<void(const core::Atom&)>& visit);
/// The expressions directly in an expression that is no let: branches, bodies.
void forEachPart(const core::Exp& e, const std::function<void(const core::ExpPtr&)>& visit);
/// An expression that is no let with its atoms and its parts replaced.
core::ExpPtr rebuilt(const core::ExpPtr& e, const std::function<core::Atom(const core::Atom&)>& atom,
                     const std::function<core::ExpPtr(const core::ExpPtr&)>& part);

/// An expression with other names for variables that are bound outside of it.
core::ExpPtr renamed(const core::ExpPtr& e, const std::unordered_map<core::VarId, core::Atom>& names);

/// An expression with these names, and new ones for all variables that it binds itself, which are added.
core::ExpPtr copied(core::Program& program, const core::ExpPtr& e,
                    std::unordered_map<core::VarId, core::Atom>& names);

/// Adds all variables an expression mentions; those it binds itself are among them, which does no harm since
/// ids are unique.
void collectUses(const core::ExpPtr& e, std::unordered_set<core::VarId>& uses);
std::unordered_set<core::VarId> usesOf(const core::ExpPtr& e);

}  // namespace kelpie::flatten
