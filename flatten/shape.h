// What is known of a root's sequences where they leave the block they were made in: a branch of a host
// conditional, the body of a loop of the host.
//
// Beyond its block a sequence is variables: its length, and for each component where it begins and its store.
// Of a store of sequences (flatten/value.h) these are
//
//   Regular   the one length that all of its sequences have
//   Offsets   where they begin, one after the other
//   Windows   the one length that all of them have, and where each of them begins
//   Slices    their lengths, and where each of them begins
//
// for which the first two also need to know how many sequences there are, unless those around them tell: a
// component is *whole* if it begins at 0 and has as many sequences as the one that it is a component of.
//
//   if c then {{x + y : y in ys} : x in xs} else {{x * y : y in ys} : x in xs}
//   both branches: length #xs, whole, Regular of #ys: the matrix that results is known to be one
//
// Values of two branches meet in what is known of both. Lengths that are the same expression in both, of
// variables around the conditional, are that expression beyond it: of a matrix that a loop makes anew in each
// step the host knows that it stays square. Without all that, a loop over matrices would search for the rows
// of its elements, add up their lengths in every step, wait for the sum, and compare all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/expr.h"
#include "ir/lcu.h"
#include "ir/type.h"

namespace kelpie::flatten {

using lcu::ExprRef;
using lcu::VarId;

/// Of a store.
struct Shape {
  enum class Kind : uint8_t { Nothing, Regular, Offsets, Windows, Slices };  ///< Nothing: no sequences
  Kind kind = Kind::Nothing;                                                 ///< scalars have none
  bool whole = true;              ///< of a component of a root's sequence; of scalars: there are no others
  ExprRef each = nullptr;         ///< what the one length of all is, if that is known
  std::vector<Shape> components;  ///< of what the sequences are made of
  bool operator==(const Shape&) const = default;
};

/// Of a root's sequence; scalars have no components.
struct SequenceShape {
  ExprRef length = nullptr;  ///< what it is, if that is known
  std::vector<Shape> components;
  bool operator==(const SequenceShape&) const = default;
};

/// Of a row of a root's values.
using Shapes = std::vector<SequenceShape>;

Shape meet(const Shape& a, const Shape& b);
Shapes meet(const Shapes& a, const Shapes& b);

/// Of what nothing is known.
Shapes slices(const Row& types);

/// With a kind in place of Nothing.
Shapes settled(Shapes shapes, Shape::Kind kind);

/// Changes all lengths that are known; null: it is not known any more.
Shapes withLengths(Shapes shapes, const std::function<ExprRef(ExprRef)>& change);

/// Without lengths that are made of variables from `first` on, which belong to a block.
Shapes beyond(Shapes shapes, VarId first);

}  // namespace kelpie::flatten
