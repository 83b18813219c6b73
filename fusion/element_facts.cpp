#include "fusion/element_facts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <set>

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;

namespace {

constexpr double kHostBits = 28;  ///< of a number that the host knows
constexpr uint8_t kWord = 32;

/// From those of the operands; see ElementFacts::bits.
double bitsOf(ExprRef e, const std::vector<double>& operands) {
  constexpr double kArray = 28, kSegment = 10;  // a place in an array, in a segment
  const double most = operands.empty() ? kArray : *std::max_element(operands.begin(), operands.end());
  switch (e->kind) {
    case ExprKind::Constant:
      return isFloat(e->type) ? kArray : std::log2(1 + std::abs(static_cast<double>(e->constant.i)));
    case ExprKind::Param:
      return e->index == 2 ? kSegment : kArray;
    case ExprKind::Check:
      return operands[1];
    case ExprKind::Op:
      break;
    default:
      return kArray;
  }
  switch (e->op) {
    case ScalarOp::Add:
    case ScalarOp::Sub:
      return most + 1;
    case ScalarOp::Mul:
      return operands[0] + operands[1];
    case ScalarOp::Div:
      return e->operands[1]->kind == ExprKind::Constant ? std::max(1.0, operands[0] - operands[1] + 1)
                                                        : operands[0];
    case ScalarOp::Rem:
    case ScalarOp::And:
      return std::min(operands[0], operands[1]);
    default:
      return most;
  }
}

/// How many bits an integer takes for certain, as compilers find; 64: it is not known, or may be negative.
double sureBitsOf(ExprRef e, const std::vector<double>& operands) {
  constexpr double kUnknown = 64, kPlace = 32;  // codegen/cuda/cuda_module.h: Places
  const auto width = [](ScalarType type) {
    return type == ScalarType::Bool ? 1 : type == ScalarType::Char ? 8 : kUnknown;
  };
  switch (e->kind) {
    case ExprKind::Constant:
      if (isFloat(e->type) || e->constant.i < 0) return kUnknown;
      return static_cast<double>(std::bit_width(static_cast<uint64_t>(e->constant.i)));
    case ExprKind::Param:
      return kPlace;
    case ExprKind::Load:
      return width(e->type);
    case ExprKind::Convert:
      return std::min(operands[0], width(e->type));
    case ExprKind::Check:
      return operands[1];
    case ExprKind::Op:
      break;
    default:
      return kUnknown;
  }
  if (isFloat(e->operands[0]->type)) return kUnknown;
  const bool byConstant = e->operands.size() > 1 && e->operands[1]->kind == ExprKind::Constant;
  const double least = *std::min_element(operands.begin(), operands.end());
  const double most = *std::max_element(operands.begin(), operands.end());
  const auto known = [&](double bits) { return most < kUnknown && bits < kUnknown ? bits : kUnknown; };
  if (isComparison(e->op)) return 1;
  switch (e->op) {
    case ScalarOp::And:
      return least;
    case ScalarOp::Or:
    case ScalarOp::Xor:
    case ScalarOp::Max:
      return known(most);
    case ScalarOp::Min:
      return known(least);
    case ScalarOp::Add:
      return known(most + 1);
    case ScalarOp::Mul:
      return known(operands[0] + operands[1]);
    case ScalarOp::ShiftRight:
      return byConstant && operands[0] < kUnknown
                 ? std::max(0.0, operands[0] - static_cast<double>(e->operands[1]->constant.i & 63))
                 : known(operands[0]);
    case ScalarOp::Div:
      return byConstant && e->operands[1]->constant.i > 0 ? known(operands[0] - operands[1] + 1) : kUnknown;
    case ScalarOp::Rem:  // by a constant it is small, if perhaps negative, which takes no longer
      return byConstant ? least : known(least);
    default:
      return kUnknown;
  }
}

constexpr double kAllBits = 64;

/// How many lower bits of operand k an operation reads of which the lower `bits` are read.
double neededOfOperand(ExprRef e, size_t k, double bits) {
  if (e->kind == ExprKind::Check) return k == 1 ? bits : kAllBits;
  if (e->kind == ExprKind::Project) return bits;
  if (e->kind == ExprKind::Convert)
    return e->type == ScalarType::Char && !isFloat(e->operands[0]->type) ? 8 : kAllBits;
  if (e->kind != ExprKind::Op || isFloat(e->type)) return kAllBits;
  const bool byConstant = e->operands.size() == 2 && e->operands[1]->kind == ExprKind::Constant;
  switch (e->op) {
    case ScalarOp::And:
      if (byConstant && k == 0 && e->operands[1]->constant.i >= 0)
        return std::min(
            bits, static_cast<double>(std::bit_width(static_cast<uint64_t>(e->operands[1]->constant.i))));
      return bits;
    case ScalarOp::Add:
    case ScalarOp::Sub:
    case ScalarOp::Mul:
    case ScalarOp::Or:
    case ScalarOp::Xor:
    case ScalarOp::Not:
    case ScalarOp::Negate:
      return bits;
    case ScalarOp::ShiftLeft:
      return k == 0 ? bits : kAllBits;
    case ScalarOp::ShiftRight:
      return k == 0 && byConstant
                 ? std::min(kAllBits, bits + static_cast<double>(e->operands[1]->constant.i & 63))
                 : kAllBits;
    default:
      return kAllBits;
  }
}

/// What a value that an If chooses may be.
std::optional<std::pair<ExprRef, ExprRef>> valuesOfChoice(ExprRef e) {
  if (e->kind != ExprKind::Project || e->operands[0]->kind != ExprKind::If) return std::nullopt;
  const std::vector<ExprRef>& operands = e->operands[0]->operands;
  const size_t values = operands.size() / 2;
  return std::pair(operands[1 + e->index], operands[1 + values + e->index]);
}

/// How many operands of its chain of `and`, or of `or`, come before the last one of `e`.
int operandsBefore(ExprRef e) {
  int before = 1;
  for (ExprRef first = e->operands[0]; first->kind == ExprKind::Op && first->op == e->op;
       first = first->operands[0])
    ++before;
  return before;
}

}  // namespace

ElementFacts::ElementFacts(const std::vector<ExprRef>& thunks, const ArrayBits& arrays) {
  std::set<std::pair<ExprRef, ExprRef>> divisions;
  std::unordered_map<ExprRef, int> users;
  lcu::forEachNode(thunks, [&](ExprRef e) {
    Facts own;
    own.varies = e->kind == ExprKind::Param;
    own.inLoop = e->kind == ExprKind::LoopVar || e->kind == ExprKind::Call;
    std::vector<double> bits, sure;
    for (ExprRef operand : e->operands) {
      own.varies |= facts_[operand].varies;
      own.inLoop |= facts_[operand].inLoop && e->kind != ExprKind::Loop && e->kind != ExprKind::Recursion;
      bits.push_back(facts_[operand].bits);
      sure.push_back(facts_[operand].sureBits);
    }
    own.bits = bitsOf(e, bits);
    if (e->kind == ExprKind::Load)
      if (const auto array = arrays.find(e->index); array != arrays.end()) own.bits = array->second;
    own.sureBits = sureBitsOf(e, sure);
    // One word on a GPU (Dialect::wordVariables).
    const bool variable = e->kind == ExprKind::LoopVar ||
                          (e->kind == ExprKind::Project && e->operands[0]->kind == ExprKind::Loop);
    if (variable && e->nonNegative && e->bits <= kWord) own.sureBits = own.bits = e->bits;
    if (const auto values = valuesOfChoice(e)) {
      const Facts &first = facts_[values->first], &second = facts_[values->second];
      own.bits = std::max(first.bits, second.bits);
      own.sureBits = std::max(first.sureBits, second.sureBits);
    }
    // A number that the host knows: most are sizes, and products of these are sizes, too.
    if (!own.varies && e->kind != ExprKind::Constant) own.bits = std::min(own.bits, kHostBits);
    if (e->kind == ExprKind::Op && (e->op == ScalarOp::Div || e->op == ScalarOp::Rem) && !isFloat(e->type))
      own.divided = !divisions.insert({e->operands[0], e->operands[1]}).second;
    facts_[e] = own;
    for (ExprRef operand : e->operands) ++users[operand];
  });
  findNeededBits(thunks);
  for (const auto& [e, facts] : facts_) {
    if (e->kind != ExprKind::Op || (e->op != ScalarOp::And && e->op != ScalarOp::Or)) continue;
    const ExprRef last = e->operands[1];
    if (last->kind == ExprKind::Load && last->type == ScalarType::Bool && users[last] == 1)
      facts_[last].needed = std::exp2(-operandsBefore(e));
  }
}

void ElementFacts::findNeededBits(const std::vector<ExprRef>& thunks) {
  std::vector<ExprRef> order;  // operands before what uses them
  lcu::forEachNode(thunks, [&](ExprRef e) { order.push_back(e); });
  const auto need = [&](ExprRef e, double bits) {
    double& needed = facts_[e].neededBits;
    needed = std::max(needed, bits);
  };
  for (ExprRef e : thunks) need(e, kAllBits);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const ExprRef e = *it;
    const double bits = std::min(facts_[e].neededBits, facts_[e].sureBits);
    if (const auto values = valuesOfChoice(e)) {
      need(values->first, bits);
      need(values->second, bits);
    }
    const size_t operands = e->kind == ExprKind::If ? 1 : e->operands.size();  // values: through Project
    for (size_t k = 0; k < operands; ++k) need(e->operands[k], neededOfOperand(e, k, bits));
  }
}

}  // namespace kelpie::fusion
