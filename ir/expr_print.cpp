#include "ir/expr_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "ir/literal.h"
#include "ir/node_map.h"

namespace kelpie::lcu {
namespace {

constexpr int kMaxNesting = 12;    ///< operators in place inside each other before a let is made
constexpr size_t kLetsInLine = 2;  ///< more of them are broken into lines

/// Binding strength of the forms, weakest first.
enum Level { kConditional, kOr, kAnd, kComparison, kSum, kProduct, kPrimary };

struct Infix {
  const char* text;
  Level level;
};

std::optional<Infix> infix(ScalarOp op) {
  switch (op) {
    case ScalarOp::Add:
      return Infix{"+", kSum};
    case ScalarOp::Sub:
      return Infix{"-", kSum};
    case ScalarOp::Mul:
      return Infix{"*", kProduct};
    case ScalarOp::Div:
      return Infix{"/", kProduct};
    case ScalarOp::Rem:
      return Infix{"%", kProduct};
    case ScalarOp::And:
      return Infix{"and", kAnd};
    case ScalarOp::Or:
      return Infix{"or", kOr};
    case ScalarOp::Equal:
      return Infix{"==", kComparison};
    case ScalarOp::NotEqual:
      return Infix{"!=", kComparison};
    case ScalarOp::Less:
      return Infix{"<", kComparison};
    case ScalarOp::LessEqual:
      return Infix{"<=", kComparison};
    case ScalarOp::Greater:
      return Infix{">", kComparison};
    case ScalarOp::GreaterEqual:
      return Infix{">=", kComparison};
    default:
      return std::nullopt;
  }
}

/// Written in place however often it is used.
bool isTrivial(ExprRef e) {
  switch (e->kind) {
    case ExprKind::Constant:
    case ExprKind::Param:
    case ExprKind::Host:
    case ExprKind::Size:
    case ExprKind::LoopVar:
      return true;
    default:
      return false;
  }
}

/// A conditional of one value is written where its Project stands; all other multi-valued nodes get names.
bool isInPlaceIf(ExprRef e) { return e->kind == ExprKind::If && valueCount(e) == 1; }

class Printer {
 public:
  Printer(const std::vector<ExprRef>& roots, const std::vector<std::string>& params, const Names& names,
          size_t indent)
      : roots_(roots), params_(params), names_(names), indent_(indent) {
    placeNodes();
    chooseLets();
  }

  std::string text() {
    lets(0, scopes_[0].lets.size() > kLetsInLine);
    list(roots_);
    return std::move(out_);
  }

 private:
  /// The whole text, a branch of a conditional, or what a loop repeats.
  struct Scope {
    uint32_t parent, depth;
    std::vector<ExprRef> lets;
  };
  struct Node {
    uint32_t uses = 0;
    std::optional<uint32_t> scope;
    std::optional<uint32_t> inner, innerElse;  ///< scopes that an If (then, else), a Loop, a Recursion opens
    bool named = false;
    int nesting = 0;
    std::vector<std::string> text;  ///< names of the value or values once printed
  };

  uint32_t newScope(uint32_t parent) {
    scopes_.push_back({parent, scopes_[parent].depth + 1, {}});
    return static_cast<uint32_t>(scopes_.size() - 1);
  }

  uint32_t commonScope(uint32_t a, uint32_t b) const {
    while (a != b) {
      if (scopes_[a].depth < scopes_[b].depth) std::swap(a, b);
      a = scopes_[a].parent;
    }
    return a;
  }

  void use(ExprRef e, uint32_t scope) {
    Node& node = nodes_[e];
    ++node.uses;
    node.scope = node.scope ? commonScope(*node.scope, scope) : scope;
  }

  /// Users come before their operands here, so the scope of a node is known when its operands are reached.
  void placeNodes() {
    scopes_.push_back({0, 0, {}});
    forEachNode(roots_, [&](ExprRef e) {
      order_.push_back(e);
      nodes_.insert(e, {});
    });
    for (ExprRef root : roots_) use(root, 0);
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
      ExprRef e = *at;
      const uint32_t scope = *nodes_[e].scope;
      const auto& operands = e->operands;
      if (e->kind == ExprKind::If) {
        const uint32_t k = valueCount(e), thenScope = newScope(scope), elseScope = newScope(scope);
        nodes_[e].inner = thenScope;
        nodes_[e].innerElse = elseScope;
        for (uint32_t j = 0; j < operands.size(); ++j)
          use(operands[j], j == 0 ? scope : j <= k ? thenScope : elseScope);
      } else if (e->kind == ExprKind::Loop || e->kind == ExprKind::Recursion) {
        const uint32_t body = newScope(scope);
        nodes_[e].inner = body;
        for (uint32_t j = 0; j < operands.size(); ++j) use(operands[j], j < outerOperands(e) ? scope : body);
      } else {
        for (ExprRef operand : operands) use(operand, scope);
      }
    }
  }

  void chooseLets() {
    for (ExprRef e : order_) {
      Node& node = nodes_[e];
      for (ExprRef operand : e->operands) node.nesting = std::max(node.nesting, nodes_[operand].nesting + 1);
      if (isTrivial(e) || isInPlaceIf(e)) continue;
      const bool isValueOfNamed = e->kind == ExprKind::Project && !isInPlaceIf(e->operands[0]);
      if (isValueOfNamed) continue;
      node.named = isMultiValued(e) || node.uses > 1 || node.nesting > kMaxNesting;
      if (!node.named) continue;
      node.nesting = 0;
      scopes_[*node.scope].lets.push_back(e);
    }
  }

  std::string freshName() { return fmt::format("t{}", ++lastName_); }

  /// "let t1 = ...; (t2, t3) = ... in ", or nothing.
  void lets(uint32_t scope, bool onLines) {
    const std::vector<ExprRef>& bound = scopes_[scope].lets;
    const std::string lineBreak = "\n" + std::string(indent_, ' ');
    for (size_t k = 0; k < bound.size(); ++k) {
      out_ += k > 0 ? ";" : "";
      out_ += onLines ? lineBreak + (k == 0 ? "let " : "    ") : (k == 0 ? "let " : " ");
      binding(bound[k]);
    }
    if (!bound.empty()) out_ += onLines ? lineBreak + "in " : " in ";
  }

  void binding(ExprRef e) {
    std::vector<std::string> bound;
    const uint32_t count = isMultiValued(e) ? valueCount(e) : 1;
    for (uint32_t k = 0; k < count; ++k) bound.push_back(freshName());
    out_ += count == 1 ? bound[0] : fmt::format("({})", fmt::join(bound, ", "));
    out_ += " = ";
    if (e->kind == ExprKind::If)
      conditional(e);
    else if (e->kind == ExprKind::Loop)
      loop(e);
    else if (e->kind == ExprKind::Recursion)
      recursion(e);
    else if (e->kind == ExprKind::Call)
      call(e);
    else
      node(e, kConditional);
    nodes_[e].text = std::move(bound);
  }

  void conditional(ExprRef e) {
    const uint32_t k = valueCount(e);
    const auto branch = [&](uint32_t from, uint32_t scope) {
      if (k > 1) out_ += "(";
      lets(scope, false);
      list({e->operands.begin() + from, e->operands.begin() + from + k});
      if (k > 1) out_ += ")";
    };
    out_ += "if ";
    expr(e->operands[0], kOr);
    out_ += " then ";
    branch(1, *nodes_[e].inner);
    out_ += " else ";
    branch(1 + k, *nodes_[e].innerElse);
  }

  void loop(ExprRef e) {
    std::vector<std::string>& variables = loops_[e->index];
    for (uint32_t k = 0; k < e->count; ++k) variables.push_back(fmt::format("k{}", ++lastLoopName_));
    out_ += "loop (";
    for (uint32_t k = 0; k < e->count; ++k) {
      out_ += (k == 0 ? "" : ", ") + loops_[e->index][k] + " = ";
      expr(e->operands[k], kConditional);
    }
    out_ += ") { ";
    lets(*nodes_[e].inner, false);
    out_ += "while ";
    expr(e->operands[e->count], kConditional);
    out_ += " next ";
    list({e->operands.begin() + e->count + 1, e->operands.end()});
    out_ += " }";
  }

  /// recursion r1 (k1 = n) : int64 @2 { let t2 = call r1(k1 - 1) in ... }
  void recursion(ExprRef e) {
    const size_t count = outerOperands(e);
    std::vector<std::string>& variables = loops_[e->index];
    for (size_t k = 0; k < count; ++k) variables.push_back(fmt::format("k{}", ++lastLoopName_));
    out_ += fmt::format("recursion {} (", recursionName(e->index));
    for (size_t k = 0; k < count; ++k) {
      out_ += (k == 0 ? "" : ", ") + loops_[e->index][k] + " = ";
      expr(e->operands[k], kConditional);
    }
    out_ += ") : ";
    for (size_t k = count; k < e->operands.size(); ++k) {
      out_ += k == count ? "" : ", ";
      out_ += kelpie::toString(e->operands[k]->type);
    }
    out_ += fmt::format(" @{} {{ ", e->constant.i);
    lets(*nodes_[e].inner, false);
    list({e->operands.begin() + static_cast<ptrdiff_t>(count), e->operands.end()});
    out_ += " }";
  }

  void call(ExprRef e) {
    out_ += "call " + recursionName(e->index) + "(";
    list(e->operands);
    out_ += ")";
  }

  std::string recursionName(uint32_t id) {
    const auto known = recursions_.try_emplace(id, static_cast<int>(recursions_.size()) + 1).first;
    return fmt::format("r{}", known->second);
  }

  void list(const std::vector<ExprRef>& es) {
    for (size_t k = 0; k < es.size(); ++k) {
      if (k > 0) out_ += ", ";
      expr(es[k], kConditional);
    }
  }

  /// In a place that takes forms of at least the strength `level`; anything weaker goes into parentheses.
  void expr(ExprRef e, Level level) {
    const std::vector<std::string>& text = nodes_[e].text;
    if (text.empty())
      node(e, level);
    else
      out_ += text[0];
  }

  void parenthesised(bool needed, const auto& print) {
    if (needed) out_ += "(";
    print();
    if (needed) out_ += ")";
  }

  void node(ExprRef e, Level level) {
    switch (e->kind) {
      case ExprKind::Constant:
        out_ += literalText(e->constant);
        return;
      case ExprKind::Param:
        out_ += e->index < params_.size() ? params_[e->index] : fmt::format("param_{}", e->index);
        return;
      case ExprKind::Host:
        out_ += names_.var(e->index);
        return;
      case ExprKind::Size:
        out_ += "#" + names_.var(e->index);
        return;
      case ExprKind::LoopVar: {
        const auto loop = loops_.find(e->index);
        const bool known = loop != loops_.end() && e->count < loop->second.size();
        out_ += known ? loop->second[e->count] : fmt::format("loop_{}_{}", e->index, e->count);
        return;
      }
      case ExprKind::Load:
        out_ += names_.var(e->index) + "[";
        expr(e->operands[0], kConditional);
        out_ += "]";
        return;
      case ExprKind::Op:
        return operation(e, level);
      case ExprKind::Convert:
        out_ += kelpie::toString(e->type);
        out_ += "(";
        expr(e->operands[0], kConditional);
        out_ += ")";
        return;
      case ExprKind::Check:
        out_ += "check(";
        list({e->operands[0], e->operands[1], e->operands[2]});
        out_ += fmt::format(", @{}, ", e->index);
        list({e->operands[3], e->operands[4]});
        out_ += ")";
        return;
      case ExprKind::Project: {
        ExprRef values = e->operands[0];
        const auto& names = nodes_[values].text;
        if (isInPlaceIf(values))
          parenthesised(level > kConditional, [&] { conditional(values); });
        else
          out_ += e->index < names.size() ? names[e->index] : fmt::format("value_{}", e->index);
        return;
      }
      case ExprKind::If:
        return conditional(e);
      case ExprKind::Loop:
        return loop(e);
      case ExprKind::Recursion:
        return recursion(e);
      case ExprKind::Call:
        return call(e);
    }
  }

  void operation(ExprRef e, Level level) {
    const auto form = infix(e->op);
    if (!form) {
      out_ += kelpie::toString(e->op);
      out_ += "(";
      list(e->operands);
      out_ += ")";
      return;
    }
    // Operands of comparisons are never comparisons themselves; the other operators group to the left.
    const auto stronger = static_cast<Level>(form->level + 1);
    parenthesised(form->level < level, [&] {
      expr(e->operands[0], form->level == kComparison ? stronger : form->level);
      ExprRef right = e->operands[1];
      const bool isDifference = e->op == ScalarOp::Add && right->kind == ExprKind::Constant &&
                                isInt(right->type) && right->constant.i < 0 &&
                                right->constant.i > std::numeric_limits<int32_t>::min();
      if (isDifference) {
        out_ += " - " + literalText(Scalar::ofInt(right->type, -right->constant.i));
        return;
      }
      out_ += fmt::format(" {} ", form->text);
      expr(right, stronger);
    });
  }

  const std::vector<ExprRef>& roots_;
  const std::vector<std::string>& params_;
  const Names& names_;
  const size_t indent_;
  std::vector<ExprRef> order_;  ///< operands before users
  NodeMap<Node> nodes_;
  std::vector<Scope> scopes_;
  std::unordered_map<uint32_t, std::vector<std::string>> loops_;
  std::unordered_map<uint32_t, int> recursions_;  ///< numbers in their names, by id
  int lastName_ = 0, lastLoopName_ = 0;
  std::string out_;
};

}  // namespace

std::string exprsText(const std::vector<ExprRef>& roots, const std::vector<std::string>& params,
                      const Names& names, size_t indent) {
  return Printer(roots, params, names, indent).text();
}

}  // namespace kelpie::lcu
