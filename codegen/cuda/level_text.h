// The structs that describe levels and reductions to the device library (scan.cuh, reduce.cuh), as text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/cuda/pass_plan.h"

namespace kelpie::codegen::cuda {

using FieldNames = std::function<std::string(const Field&)>;

std::string levelText(const LevelPlan& level, const std::string& name, const lcu::Kernel& kernel,
                      const FieldNames& names);
std::string reductionText(const std::vector<Field>& fields, const std::string& name,
                          const lcu::Kernel& kernel, const FieldNames& names);
/// `a op b` for an operation of lanewise operators.
std::string operationText(ScalarOp op, ScalarType type, const std::string& a, const std::string& b);

}  // namespace kelpie::codegen::cuda
