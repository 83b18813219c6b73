// Values during flattening: delayed scalars, and sequences as descriptors over shared stores.
//
// A value lives in a context C (flatten/context.h) of n instances and describes one value for each of them.
// All expressions in it are over the thunk parameters of C (none in a root context):
//
//   scalar     an expression; nothing is stored until something needs it stored
//   sequence   a length, and one *view* for each component of its element row, which says where element p is
//
// Views never copy. Slicing, taking, reversing and partitioning change start and stride; `dist` is Repeat; a
// conditional between sequences is Choice; a listed sequence is Listed; `++` is Append. Only where a consumer
// needs one store for all instances (function boundaries, elements of a stored sequence) a view is made
// Direct by one segmented map.
//
// Example: `take(row, k)` for the rows of a matrix in context `flat m`, k free:
//   Sequence{ length: k, views: [Direct{ start: off[%i], stride: 1, store: values }] }
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "ir/expr.h"
#include "ir/lcu.h"
#include "ir/type.h"

namespace kelpie::flatten {

using lcu::ExprRef;
using lcu::Space;
using lcu::VarId;

struct Store;
using StorePtr = std::shared_ptr<const Store>;

/// Where the elements of one component are kept, addressed by position; independent of any context.
struct Store {
  enum class Kind : uint8_t {
    Array,     ///< scalars: element k is array[k]
    Iota,      ///< scalars: element k is k (converted to the type); `[s:e:d]` is start s, stride d over it
    Sequence,  ///< sequences: element k has a length and, for each component, a start in an inner store
  };
  Kind kind = Kind::Array;
  CoreType type;    ///< of one element
  VarId array = 0;  ///< Array

  /// Sequence, dense: element k is the k-th segment of this descriptor, in every component's store.
  std::optional<Space> dense;
  /// Sequence, not dense (slices): arrays indexed by k.
  VarId lengths = 0;
  ExprRef length = nullptr;  ///< that all have, if the host knows it: then there are no lengths
  struct Component {
    VarId starts = 0;    ///< not dense only
    int64_t stride = 1;  ///< of the elements within a segment
    StorePtr store;
    /// Not dense: the elements of two components one after the other, `splits` of the first; no starts,
    /// stride, store.
    VarId splits = 0;
    std::vector<Component> parts;
  };
  std::vector<Component> components;
  /// Not dense: the `count` sequences lie side by side, in order, and have all `elements` of each component's
  /// store between them. Who goes through all of them finds these in place.
  struct Covering {
    ExprRef count, elements;
  };
  std::optional<Covering> covers;

  /// Sequences that are known to have one length.
  bool regular() const { return dense && dense->kind == lcu::SpaceKind::Regular; }
};

struct Value;
struct View;
using ViewPtr = std::shared_ptr<const View>;

/// Element p of one component of a sequence.
struct View {
  enum class Kind : uint8_t {
    Direct,  ///< store[start + p*stride]
    Choice,  ///< condition ? element p of first : element p of second
    Repeat,  ///< the same value for every p (`dist`)
    Listed,  ///< value number start + p*stride of `values` ([a, b, c])
    Append,  ///< with q = start + p*stride: element q of first if q < split, else q - split of second (++)
  };
  Kind kind = Kind::Direct;
  ExprRef start = nullptr, stride = nullptr;  ///< Direct, Listed, Append
  StorePtr store;                             ///< Direct
  /// Direct: the sequence's descriptor covers the store exactly: the element is store[%i] of that space.
  bool aligned = false;
  /// Direct, not of a root: how the elements were made, if that is known and takes few operations: an
  /// expression over %i, %s, %p of the space that `store` was filled over, for element place + p*stride of
  /// instance number `instance`. Whoever copies the elements makes them instead.
  ExprRef made = nullptr, instance = nullptr, place = nullptr;
  ExprRef condition = nullptr;  ///< Choice
  ExprRef split = nullptr;      ///< Append
  ViewPtr first, second;        ///< Choice, Append
  std::vector<Value> values;    ///< Repeat (one), Listed
};

/// Segments first, first + 1, ... first + count - 1 of a descriptor, one after the other.
struct Run {
  Space space;
  ExprRef first = nullptr;
  int64_t count = 1;
};

struct Sequence {
  Row elements;              ///< types of the element row
  ExprRef length = nullptr;  ///< Int64
  /// The segmented space whose segment k is this sequence of instance k, when one is already known.
  std::optional<Space> descriptor;
  /// The segments of a dense store that the sequence is, in all of its views' stores.
  std::optional<Run> run;
  std::vector<ViewPtr> views;
};

/// A sequence that is exactly the dense stores of its descriptor needs no columns of its own.
bool isWhole(const Sequence& v);

struct Value {
  std::variant<ExprRef, Sequence> node;
  bool isScalar() const { return std::holds_alternative<ExprRef>(node); }
  ExprRef scalar() const { return std::get<ExprRef>(node); }
  const Sequence& sequence() const { return std::get<Sequence>(node); }
};
using Values = std::vector<Value>;

}  // namespace kelpie::flatten
