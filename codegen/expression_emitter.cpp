#include "codegen/expression_emitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/expression_run.h"
#include "codegen/float_division.h"
#include "codegen/integer_division.h"
#include "ir/diagnostic.h"

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;

namespace {

bool needsWrap(ScalarOp op) { return op == ScalarOp::Add || op == ScalarOp::Sub || op == ScalarOp::Mul; }

/// Whether two tests are x >= 0 and x < y, of ints.
bool isRangeTest(ExprRef a, ExprRef b) {
  return a->kind == ExprKind::Op && a->op == ScalarOp::GreaterEqual && b->kind == ExprKind::Op &&
         b->op == ScalarOp::Less && a->operands[0] == b->operands[0] &&
         a->operands[0]->type == ScalarType::Int64 && a->operands[1]->kind == ExprKind::Constant &&
         a->operands[1]->constant.i == 0;
}

}  // namespace

ExpressionEmitter::ExpressionEmitter(const Dialect& dialect, int indent, std::string prefix)
    : dialect_(dialect), indent_(indent), prefix_(std::move(prefix)) {}

std::string ExpressionEmitter::freshName(const std::string& stem) {
  // Counted with its underscore: that of a variable may have one (`min_`), that of an operation has none
  // (`min`).
  const std::string name = stem.ends_with('_') ? stem : stem + "_";
  return fmt::format("{}{}{}", prefix_, name, ++nameCounts_[name]);
}

void ExpressionEmitter::statement(const std::string& text) {
  out_ += std::string(static_cast<size_t>(indent_), ' ') + text + "\n";
}

void ExpressionEmitter::name(const std::vector<ExprRef>& nodes) {
  named_.insert(nodes.begin(), nodes.end());
  emit(nodes);
  named_.clear();
}

std::string ExpressionEmitter::takeDeclarations() {
  std::string text;
  text.swap(declarations_);
  return text;
}

ExpressionEmitter::LoopText ExpressionEmitter::emitLoop(ExprRef value, const std::string& head) {
  const std::string earlier = takeStatements();
  wantedLoop_ = value->operands[0];
  loopHead_ = head;
  beforeLoop_.clear();
  emit({value});
  wantedLoop_ = nullptr;
  return {earlier + beforeLoop_, takeStatements()};
}

std::string ExpressionEmitter::takeStatements() {
  std::string text;
  text.swap(out_);
  return text;
}

void ExpressionEmitter::define(ExprRef node, std::string text) {
  texts_[node] = {std::move(text), true};
  available_.insert(node);
}

std::string ExpressionEmitter::atomic(ExprRef e) const {
  Text t = textOf(e);
  return t.atomic ? t.text : "(" + t.text + ")";
}

/// The text of a node placed before, or of an atom.
ExpressionEmitter::Text ExpressionEmitter::textOf(ExprRef e) const {
  if (auto it = texts_.find(e); it != texts_.end()) return it->second;
  switch (e->kind) {
    case ExprKind::Constant: {
      // Small Int64 constants read better bare; C converts them where they meet an int64_t operand, and two
      // constants never meet (they fold).
      if (e->type == ScalarType::Int64 && e->constant.i >= INT32_MIN && e->constant.i <= INT32_MAX) {
        return {fmt::format("{}", e->constant.i), e->constant.i >= 0};
      }
      std::string text = literalText(e->constant);
      bool negative = text.starts_with('-');
      return {std::move(text), !negative};
    }
    case ExprKind::Param:
      return {dialect_.param(e->index), true};
    case ExprKind::Host:
      return {dialect_.host(e->index, e->type), true};
    case ExprKind::Size:
      return {dialect_.size(e->index), true};
    case ExprKind::LoopVar:
      return {Run::variableText(*this, e->index, e->count), true};
    case ExprKind::Project: {
      auto it = multiple_.find(e->operands[0]);
      if (it == multiple_.end()) throw InternalError("projection of an expression that was not placed");
      return {it->second.at(e->index), true};
    }
    default:
      throw InternalError("expression used before it was placed");
  }
}

/// The text of an Op, a Convert or a Load over placed operands.
ExpressionEmitter::Text ExpressionEmitter::operationText(ExprRef e) const {
  if (e->kind == ExprKind::Load) return {dialect_.load(e, textOf(e->operands[0]).text), true};
  if (e->kind == ExprKind::Convert) {
    return {fmt::format("k_convert<{}>({})", cTypeName(e->type), textOf(e->operands[0]).text), true};
  }
  ExprRef a = e->operands[0];
  ScalarType type = a->type;
  if (arity(e->op) == 1) {
    if (e->op == ScalarOp::Not) return {(type == ScalarType::Bool ? "!" : "~") + atomic(a), true};
    if (e->op == ScalarOp::Negate) {
      if (isInt(type) && dialect_.wrapCalls) {
        return {fmt::format("k_sub({}(0), {})", cTypeName(type), textOf(a).text), true};
      }
      std::string zero = type == ScalarType::Float32 ? "0.0f" : type == ScalarType::Float64 ? "0.0" : "0";
      return {zero + " - " + atomic(a), false};
    }
    return {fmt::format("{}({})", functionName(e->op), textOf(a).text), true};
  }
  ExprRef b = e->operands[1];
  if (neverHolds(e)) return {literalText(b->constant), true};
  if (dialect_.rangeCalls && e->op == ScalarOp::And && isRangeTest(a, b)) {
    // An index of 32 bits that has been widened is tested before it is.
    ExprRef x = a->operands[0];
    const bool widened = x->kind == ExprKind::Convert && x->operands[0]->type == ScalarType::Int32 &&
                         (!texts_.contains(x) || texts_.contains(x->operands[0]));
    if (widened) x = x->operands[0];
    // In a loop two comparisons are better: one of them may be known from a branch, and the limit is compared
    // anew in each turn where registers are few.
    const bool turns = lcu::anyNode({x}, [](ExprRef n) { return n->kind == ExprKind::LoopVar; });
    if (widened || !turns)
      return {fmt::format("k_within({}, {})", textOf(x).text, textOf(b->operands[1]).text), true};
  }
  std::string_view symbol = infix(e->op, isFloat(type));
  if (dialect_.shortCircuit && type == ScalarType::Bool) {
    if (e->op == ScalarOp::And) symbol = "&&";
    if (e->op == ScalarOp::Or) symbol = "||";
  }
  // NESL's library has no other absolute value; of floats it is a part of the operation that takes it.
  if (e->op == ScalarOp::Max && isFloat(type) && b->kind == ExprKind::Op && b->op == ScalarOp::Negate &&
      b->operands[0] == a)
    return {fmt::format("k_abs({})", textOf(a).text), true};
  if (!dialect_.reciprocal.empty() && e->op == ScalarOp::Div && isFloat(type) &&
      a->kind == ExprKind::Constant && a->constant.f == 1 && !texts_.contains(a))
    return {dialect_.reciprocal + textOf(b).text + ")", true};
  const bool quotient = !dialect_.quotient.empty() && e->op == ScalarOp::Div && isFloat(type) &&
                        !seldomZero(a) && !isPowerOfTwo(b);
  bool call = symbol.empty() || quotient || (dialect_.wrapCalls && isInt(type) && needsWrap(e->op));
  if (call) {
    // Overloads are chosen by type, so constants are written with theirs.
    auto argument = [&](ExprRef x) {
      return x->kind == ExprKind::Constant && !texts_.contains(x) ? literalText(x->constant) : textOf(x).text;
    };
    const std::string name =
        quotient ? dialect_.quotient : fmt::format("{}{}", functionName(e->op), kindOfDivision(e));
    return {fmt::format("{}({}, {})", name, argument(a), argument(b)), true};
  }
  return {fmt::format("{} {} {}", atomic(a), symbol, atomic(b)), false};
}

std::string_view ExpressionEmitter::kindOfDivision(ExprRef e) const {
  if (!dialect_.divisionCalls || !dividesIntegers(e) || e->type != ScalarType::Int64) return "";
  if (!dividesLongIntegers(e)) return dividesByWords(e) ? "_by_word" : "<int64_t>";
  return dividesByWords(e) ? "" : dialect_.dividesInPlace ? "_long" : "_long_called";
}

std::vector<std::string> ExpressionEmitter::emit(const std::vector<ExprRef>& roots) {
  Run run{*this, scheduleExpressions(roots, available_), {}, "", "", "", {}, nullptr, {}, {}, {}, {}, {}};
  run.countUses(roots);
  out_ += run.run();
  for (const ScheduleStep& step : run.schedule.blocks[0].steps) available_.insert(step.node);
  std::vector<std::string> texts;
  for (ExprRef r : roots) texts.push_back(textOf(r).text);
  return texts;
}

}  // namespace kelpie::codegen
