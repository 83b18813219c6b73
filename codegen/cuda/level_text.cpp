#include "codegen/cuda/level_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"

namespace kelpie::codegen::cuda {

namespace {

std::string fieldType(const Field& f, bool wide) {
  if (f.count) return wide ? "int64_t" : "uint32_t";
  return std::string(cTypeName(f.type));
}

std::string members(const std::vector<Field>& fields, bool wide, const FieldNames& names) {
  std::string text;
  for (const Field& f : fields) text += fmt::format("    {} {};\n", fieldType(f, wide), names(f));
  return text;
}

std::string identityOf(const Field& f, const lcu::Kernel& kernel) {
  if (f.count) return "0";
  return literalText(kernel.bindings[f.binding].combine.identity[f.component]);
}

std::string identityFunction(const std::vector<Field>& fields, const char* type, const char* function,
                             const lcu::Kernel& kernel, const FieldNames& names) {
  std::string text =
      fmt::format("  static __device__ __forceinline__ {0} {1}() {{\n    {0} r;\n", type, function);
  for (const Field& f : fields) text += fmt::format("    r.{} = {};\n", names(f), identityOf(f, kernel));
  return text + "    return r;\n  }\n";
}

/// Statements that set the fields of r to those of a and b combined. With `heads`, segmented fields start
/// over where `head` holds.
std::string combination(const std::vector<Field>& fields, bool heads, const lcu::Kernel& kernel,
                        const FieldNames& names) {
  std::string text;
  std::vector<uint32_t> done;
  for (const Field& first : fields) {
    if (first.count) {
      text += fmt::format("    r.{0} = a.{0} + b.{0};\n", names(first));
      continue;
    }
    if (std::find(done.begin(), done.end(), first.binding) != done.end()) continue;
    done.push_back(first.binding);
    const lcu::Operator& combine = kernel.bindings[first.binding].combine;
    std::vector<const Field*> own(combine.result.size());
    for (const Field& f : fields)
      if (!f.count && f.binding == first.binding) own[f.component] = &f;
    const size_t k = own.size();
    const Dialect d = operatorDialect([&](uint32_t number) {
      return (number < k ? "a." : "b.") + names(*own.at(number < k ? number : number - k));
    });
    ExpressionEmitter emitter(d, 4, fmt::format("op{}_", first.binding + 1));
    auto texts = emitter.emit(combine.result);
    text += emitter.takeStatements();
    for (size_t j = 0; j < k; ++j) {
      std::string name = names(*own[j]);
      if (heads && own[j]->segmented) {
        text +=
            fmt::format("    r.{0} = head ? b.{0} : {2}({1});\n", name, texts[j], cTypeName(own[j]->type));
      } else {
        text += fmt::format("    r.{} = {};\n", name, texts[j]);
      }
    }
  }
  return text;
}

std::string combineFunction(const std::vector<Field>& fields, const char* type, const char* function,
                            const lcu::Kernel& kernel, const FieldNames& names) {
  bool heads = std::any_of(fields.begin(), fields.end(), [](const Field& f) { return f.segmented; });
  return fmt::format(
      "  static __device__ __forceinline__ {0} {1}(const {0}& a, const {0}& b, bool{2}) {{\n    {0} r;\n{3}"
      "    return r;\n  }}\n",
      type, function, heads ? " head" : "", combination(fields, heads, kernel, names));
}

}  // namespace

Dialect operatorDialect(std::function<std::string(uint32_t number)> param) {
  Dialect d;
  d.param = std::move(param);
  d.load = [](lcu::ExprRef, const std::string&) -> std::string {
    throw InternalError("load in an operator");
  };
  d.host = [](lcu::VarId, ScalarType) -> std::string { throw InternalError("free variable in an operator"); };
  d.size = [](lcu::VarId) -> std::string { throw InternalError("size in an operator"); };
  d.fail = [](lcu::SiteId, const std::string&, const std::string&) -> std::string {
    throw InternalError("check in an operator");
  };
  d.variableName = [](lcu::VarId) { return std::string("x"); };
  d.wrapCalls = true;
  d.divisionCalls = true;
  d.shortCircuit = true;
  return d;
}

std::string levelText(const LevelPlan& level, const std::string& name, const lcu::Kernel& kernel,
                      const FieldNames& names) {
  std::string text =
      fmt::format("struct {} {{\n  struct Value {{\n{}  }};\n", name, members(level.fields, false, names));
  text += fmt::format("  static constexpr bool kSegmented = {}, kRestarts = {}, kCommutes = {};\n",
                      level.segmented, level.restarts, level.commutes);
  text += identityFunction(level.fields, "Value", "identity", kernel, names);
  text += combineFunction(level.fields, "Value", "combine", kernel, names);
  if (level.counts) {
    text += fmt::format("  struct Carry {{\n{}  }};\n", members(level.fields, true, names));
    text += identityFunction(level.fields, "Carry", "start", kernel, names);
    text += combineFunction(level.fields, "Carry", "merge", kernel, names);
    text += "  static __device__ __forceinline__ Carry widen(const Value& a) {\n    Carry r;\n";
    for (const Field& f : level.fields) text += fmt::format("    r.{0} = a.{0};\n", names(f));
    text += "    return r;\n  }\n";
  } else {
    text +=
        "  using Carry = Value;\n"
        "  static __device__ __forceinline__ Carry start() { return identity(); }\n"
        "  static __device__ __forceinline__ Carry widen(const Value& a) { return a; }\n"
        "  static __device__ __forceinline__ Carry merge(const Carry& a, const Carry& b, bool head) {\n"
        "    return combine(a, b, head);\n  }\n";
  }
  return text + "};\n";
}

std::string reductionText(const std::vector<Field>& fields, const std::string& name,
                          const lcu::Kernel& kernel, const FieldNames& names) {
  std::string text =
      fmt::format("struct {} {{\n  struct Value {{\n{}  }};\n", name, members(fields, false, names));
  text += identityFunction(fields, "Value", "identity", kernel, names);
  text += fmt::format(
      "  static __device__ __forceinline__ Value combine(const Value& a, const Value& b) {{\n    Value r;\n{}"
      "    return r;\n  }}\n",
      combination(fields, false, kernel, names));
  return text + "};\n";
}

}  // namespace kelpie::codegen::cuda
