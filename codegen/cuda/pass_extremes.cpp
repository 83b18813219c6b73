#include "codegen/cuda/pass_extremes.h"

#include <algorithm>

namespace kelpie::codegen::cuda {

using lcu::ExprRef;
using lcu::Soac;
using lcu::VarId;

namespace {

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
  const auto& fields = t.plan.levels[t.plan.foldLevel].fields;
  for (const Field& f : fields) {
    const Soac& soac = t.kernel.bindings[f.binding];
    const bool ofSpace =
        soac.kind == lcu::SoacKind::Reduce && t.pass.placesOfSpace.contains(soac.results[f.component]);
    const std::optional<size_t> of =
        ofSpace ? std::optional(laneFolds(soac.combine)[f.component]->of) : extremeOfFirst(soac, f.component);
    if (!of) continue;
    const auto extreme = std::find_if(fields.begin(), fields.end(), [&](const Field& other) {
      return other.binding == f.binding && other.component == *of;
    });
    const ExprRef operation = soac.combine.result[*of];
    const bool greatest = operation->op == ScalarOp::Max;
    // Of numbers that are not ordered, and of zeros, the operation takes its second operand.
    const bool itemSecond = operation->operands[0]->index == *of;
    found.push_back({&f, &*extreme, greatest, !itemSecond || isSeen(t, soac.results[*of])});
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
