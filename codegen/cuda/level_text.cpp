#include "codegen/cuda/level_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostic.h"

namespace kelpie::codegen::cuda {

namespace {

std::string fieldType(const Field& f, bool wide) {
  if (f.count) return wide ? "int64_t" : "uint32_t";
  if (f.place != Field::Place::No) return f.place == Field::Place::Wide ? "uint64_t" : "Place";
  return std::string(cTypeName(f.type));
}

std::string members(const std::vector<Field>& fields, bool wide, const FieldNames& names) {
  std::string text;
  for (const Field& f : fields) text += fmt::format("    {} {};\n", fieldType(f, wide), names(f));
  return text;
}

std::string identityOf(const Field& f, const lcu::Kernel& kernel) {
  if (f.count) return "0";
  if (f.place != Field::Place::No) return fmt::format("kNoPlace<{}>", fieldType(f, false));
  return literalText(kernel.bindings[f.binding].combine.identity[f.component]);
}

std::string identityFunction(const std::vector<Field>& fields, const char* type, const char* function,
                             const lcu::Kernel& kernel, const FieldNames& names) {
  std::string text =
      fmt::format("  static __device__ __forceinline__ {0} {1}() {{\n    {0} r;\n", type, function);
  for (const Field& f : fields) text += fmt::format("    r.{} = {};\n", names(f), identityOf(f, kernel));
  return text + "    return r;\n  }\n";
}

/// How fields get their values that their operator alone does not tell: each by an expression.
using Special = std::vector<std::pair<const Field*, std::string>>;

/// Statements that set the fields of r to those of a and b combined. With `heads`, segmented fields start
/// over where `head` holds.
std::string combination(const std::vector<Field>& fields, bool heads, const lcu::Kernel& kernel,
                        const FieldNames& names, const Special& special = {}) {
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
    const auto specially = [&](size_t j) {
      return std::find_if(special.begin(), special.end(), [&](const auto& entry) {
        return entry.first->binding == first.binding && entry.first->component == j;
      });
    };
    std::vector<lcu::ExprRef> emitted;
    for (size_t j = 0; j < k; ++j)
      if (specially(j) == special.end()) emitted.push_back(combine.result[j]);
    const auto texts = emitter.emit(emitted);
    text += emitter.takeStatements();
    size_t next = 0;
    for (size_t j = 0; j < k; ++j) {
      std::string name = names(*own[j]);
      if (const auto by = specially(j); by != special.end()) {
        text += fmt::format("    r.{} = {};\n", name, by->second);
        continue;
      }
      const std::string& value = texts[next++];
      if (heads && own[j]->segmented) {
        text += fmt::format("    r.{0} = head ? b.{0} : {2}({1});\n", name, value, cTypeName(own[j]->type));
      } else {
        text += fmt::format("    r.{} = {};\n", name, value);
      }
    }
  }
  return text;
}

std::string combineFunction(const std::vector<Field>& fields, const char* type, const char* function,
                            const lcu::Kernel& kernel, const FieldNames& names,
                            const std::vector<FirstOfExtremes>& ordered = {}) {
  bool heads = std::any_of(fields.begin(), fields.end(), [](const Field& f) { return f.segmented; });
  std::string before;
  Special special;
  for (const FirstOfExtremes& first : ordered) {
    const std::string place = names(*first.place), extreme = names(*first.extreme);
    before += fmt::format("    const bool keeps_{0} = !head && a.{0} != {3} && a.{1} {2} b.{1};\n", place,
                          extreme, first.greatest ? ">=" : "<=", identityOf(*first.place, kernel));
    special.emplace_back(first.place, fmt::format("keeps_{0} ? a.{0} : b.{0}", place));
    if (!first.seen)
      special.emplace_back(first.extreme, fmt::format("keeps_{0} ? a.{1} : b.{1}", place, extreme));
  }
  return fmt::format(
      "  static __device__ __forceinline__ {0} {1}(const {0}& a, const {0}& b, bool{2}) {{\n    {0} "
      "r;\n{3}{4}"
      "    return r;\n  }}\n",
      type, function, heads ? " head" : "", before, combination(fields, heads, kernel, names, special));
}

/// Of values in any order.
std::string joinFunction(const std::vector<Field>& fields, const lcu::Kernel& kernel, const FieldNames& names,
                         const std::vector<FirstOfExtremes>& ordered) {
  std::string statements = "    return combine(a, b, false);\n";
  if (!ordered.empty()) {
    Special special;
    std::string places;
    for (const FirstOfExtremes& first : ordered) {
      const std::string place = names(*first.place), extreme = names(*first.extreme);
      special.emplace_back(first.place, identityOf(*first.place, kernel));
      places += fmt::format("    if (a.{1} == r.{1}) r.{0} = a.{0};\n", place, extreme);
      places += fmt::format("    if (b.{1} == r.{1} && b.{0} < r.{0}) r.{0} = b.{0};\n", place, extreme);
    }
    statements =
        "    Value r;\n" + combination(fields, false, kernel, names, special) + places + "    return r;\n";
  }
  return "  static __device__ __forceinline__ Value join(const Value& a, const Value& b) {\n" + statements +
         "  }\n";
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
  d.wordVariables = true;
  return d;
}

std::string levelText(const LevelPlan& level, const std::string& name, const lcu::Kernel& kernel,
                      const FieldNames& names, const std::vector<FirstOfExtremes>& ordered) {
  std::string text =
      fmt::format("struct {} {{\n  struct Value {{\n{}  }};\n", name, members(level.fields, false, names));
  text += fmt::format("  static constexpr bool kSegmented = {}, kRestarts = {}, kCommutes = {};\n",
                      level.segmented, level.restarts, level.commutes);
  text += identityFunction(level.fields, "Value", "identity", kernel, names);
  text += combineFunction(level.fields, "Value", "combine", kernel, names, ordered);
  if (!level.counts) text += joinFunction(level.fields, kernel, names, ordered);
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
