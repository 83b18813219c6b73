// The structs that describe levels and reductions to the device library (scan.cuh, reduce.cuh), as text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/cuda/pass_plan.h"
#include "codegen/expression_emitter.h"

namespace kelpie::codegen::cuda {

using FieldNames = std::function<std::string(const Field&)>;

/// A field that has the least position of those elements that equal the least or greatest one.
struct FirstOfExtremes {
  const Field* place;
  const Field* extreme;
  bool greatest = false;
  bool seen = true;  ///< somebody reads the extreme itself
};

/// `ordered`: of these, `combine` takes values of which the right one is of later elements; `join` takes them
/// as they come. The place of a value that is no number may be anything.
std::string levelText(const LevelPlan& level, const std::string& name, const lcu::Kernel& kernel,
                      const FieldNames& names, const std::vector<FirstOfExtremes>& ordered);
std::string reductionText(const std::vector<Field>& fields, const std::string& name,
                          const lcu::Kernel& kernel, const FieldNames& names);
/// For what an operator gives, which has parameters and constants only.
Dialect operatorDialect(std::function<std::string(uint32_t number)> param);

}  // namespace kelpie::codegen::cuda
