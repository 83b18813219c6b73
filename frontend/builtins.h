// The typed primitives: builtins.def as data. The type checker reads the types, the specialiser the meanings.
#pragma once

#include <string_view>
#include <vector>

#include "ir/core.h"

namespace kelpie {

/// Expansions that are more than one Core operation or depend on the type (specialise_builtins.cpp).
enum class Expansion : uint8_t {
  None,
  Nand,
  Nor,
  Power,
  ConvertLike,
  MaxInt,
  MinInt,
  IntBits,
  Infinity,
  NotANumber,
  Rand,
  Distribute,
  Unzip,
  Select,
  Identity,
  Eql,
  String,
  Hash,
  Check,
  CheckedInt,
};

struct Builtin {
  std::string_view name{};
  std::string_view type{};  ///< NESL signature
  core::PrimOp op = core::PrimOp::Scalar;
  ScalarOp scalarOp{};
  ReduceOp reduceOp{};
  std::string_view service{};  ///< Extern: name of the service; Unsupported: the message; String: the
                               ///< function of the library for sequences
  Expansion expansion = Expansion::None;
  bool serial = false;
  std::string_view documentation{};
};

/// All of them, in the order of the table.
const std::vector<Builtin>& builtins();

/// Names beginning with `prim_` are for library code only.
constexpr bool isInternalName(std::string_view name) { return name.substr(0, 5) == "prim_"; }

}  // namespace kelpie
