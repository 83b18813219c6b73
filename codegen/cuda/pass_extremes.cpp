#include "codegen/cuda/pass_extremes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kelpie::codegen::cuda {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::VarId;

namespace {

constexpr uint32_t kPosition = 2;

/// Whether no element of the type comes before the identity.
bool isWorst(const Scalar& identity, bool greatest) {
  if (isFloat(identity.type)) return std::isinf(identity.f) && std::signbit(identity.f) == greatest;
  if (identity.type != ScalarType::Int64 && identity.type != ScalarType::Int32) return false;
  const bool wide = identity.type == ScalarType::Int64;
  if (greatest)
    return identity.i == (wide ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min());
  return identity.i == (wide ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max());
}

/// Whether a result of the level is read behind it.
bool isSeen(const PassText& t, VarId v) {
  return t.outputName(v) || std::any_of(t.plan.epilogues.begin(), t.plan.epilogues.end(), [&](uint32_t b) {
           const auto& reads = t.info.bindings[b].localReads;
           return std::find(reads.begin(), reads.end(), v) != reads.end();
         });
}

}  // namespace

std::vector<FirstOfExtremes> firstOfExtremes(const PassText& t) {
  std::vector<FirstOfExtremes> found;
  const auto& fields = t.plan.levels[0].fields;
  for (const Field& f : fields) {
    const Soac& soac = t.kernel.bindings[f.binding];
    const auto fold = laneFolds(soac.combine)[f.component];
    if (!fold || fold->of == f.component || fold->operation != ScalarOp::Min) continue;
    const ExprRef pull = soac.pull[f.component];
    if (pull->kind != ExprKind::Param || pull->index != kPosition) continue;
    if (!(soac.combine.identity[f.component] == Scalar::ofInt(f.type, std::numeric_limits<int64_t>::max())))
      continue;
    const auto extreme = std::find_if(fields.begin(), fields.end(), [&](const Field& other) {
      return other.binding == f.binding && other.component == fold->of;
    });
    const ExprRef operation = soac.combine.result[fold->of];
    const bool greatest = operation->op == ScalarOp::Max;
    if (!isWorst(soac.combine.identity[fold->of], greatest)) continue;
    // Of numbers that are not ordered, and of zeros, the operation takes its second operand.
    const bool itemSecond = operation->operands[0]->index == fold->of;
    found.push_back({&f, &*extreme, greatest, !itemSecond || isSeen(t, soac.results[fold->of])});
  }
  return found;
}

void writeLaterItem(PassText& t, const FirstOfExtremes& first, int indent) {
  const std::string place = t.fieldName(*first.place), extreme = t.fieldName(*first.extreme);
  t.line(indent, "const bool keeps_{0} = before.{1} {2} item.{1};", place, extreme,
         first.greatest ? ">=" : "<=");
  t.line(indent, "after.{0} = keeps_{0} ? before.{0} : item.{0};", place);
  if (!first.seen) t.line(indent, "after.{1} = keeps_{0} ? before.{1} : item.{1};", place, extreme);
}

void writeAllMet(PassText& t, const FirstOfExtremes& first, const std::string& begin, int indent) {
  const Soac& soac = t.kernel.bindings[first.place->binding];
  const std::string place = t.fieldName(*first.place), extreme = t.fieldName(*first.extreme);
  const std::string none = literalText(soac.combine.identity[first.place->component]);
  // None was better than the identity: all are as good.
  t.line(indent, "if (own.{0} == {1}) own.{0} = {2};", place, none, begin);
  if (isFloat(first.extreme->type))
    t.line(indent, "if (own.{1} != own.{1}) own.{0} = {2};", place, extreme, none);
}

}  // namespace kelpie::codegen::cuda
