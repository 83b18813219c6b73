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
// Values of two branches meet in what is known of both. Without that, each loop over matrices would search
// for the rows of its elements, add up their lengths anew in every step, and wait for the sum.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/type.h"

namespace kelpie::flatten {

/// Of a store; scalars have none of it.
struct Shape {
  enum class Kind : uint8_t {
    Nothing,
    Regular,
    Offsets,
    Windows,
    Slices
  };  ///< Nothing: there are no sequences
  Kind kind = Kind::Nothing;
  bool whole = true;              ///< of a component of a root's sequence, unless that has scalars
  std::vector<Shape> components;  ///< of what the sequences are made of
  bool operator==(const Shape&) const = default;
};

/// Of a row of a root's values: for each sequence its components, for scalars none.
using Shapes = std::vector<std::vector<Shape>>;

Shape meet(const Shape& a, const Shape& b);
Shapes meet(const Shapes& a, const Shapes& b);

/// Of what nothing is known.
Shapes slices(const Row& types);

/// With a kind in place of Nothing.
Shapes settled(Shapes shapes, Shape::Kind kind);

}  // namespace kelpie::flatten
