#include "random_nesl.h"

#include <memory>
#include <random>
#include <vector>

namespace kelpie::testing {
namespace {

struct Type;
using TypePtr = std::shared_ptr<const Type>;
struct Type {
  enum Kind { Int, Float, Bool, Char, Sequence, Pair } kind;
  TypePtr first, second;
};

bool same(const TypePtr& a, const TypePtr& b) {
  return a->kind == b->kind && (!a->first || same(a->first, b->first)) &&
         (!a->second || same(a->second, b->second));
}

/// Functions every program may call: loops inside kernels, recursion inside apply-to-each, higher order.
const char* const kPrelude =
    "function collatz(n, steps) = if n < 2 then steps else if steps > 30 then steps else"
    " collatz((if evenp(n) then n / 2 else 3 * n + 1), steps + 1);\n"
    "function qs(a) = if #a < 2 then a else let p = a[#a / 2]; l = {e in a | e < p}; q = {e in a | e == p};"
    " g = {e in a | e > p}; r = {qs(v) : v in [l, g]} in r[0] ++ q ++ r[1];\n"
    "function paths(n, m) = if n < 1 or m < 1 then 1 else paths(n - 1, m) + paths(rem(n, 4), m - 1);\n"
    "function tree(n) = 1 + sum({tree(i) : i in [0:n]});\n"
    "function sinking(v) = if #v == 0 then 0 else max_val(v) + sum({x - v[0] : x in v})"
    " + sinking({x - 1 : x in v | x > v[0]});\n"
    "function ties(v) = let m = max_val(v) in sum({if x == m then i + 1 else 0 : x in v; i in [0:#v]});\n"
    "function halves(v) = if #v < 2 then v else flatten(reverse({halves(w) : w in bottop(v)}));\n"
    "function mixed(v) = if #v < 2 then v else let h = #v / 2; l = take(v, h); g = take(drop(v, h), h)"
    " in flatten({mixed(w) : w in [{a + b : a in l; b in g}, {a - b : a in l; b in g}]});\n"
    "function kept(v) = if #v < 2 then v else let h = #v / 2"
    " in flatten({{x in kept(w) | x > 1} : w in [take(v, h), take(drop(v, h), h)]});\n"
    "function fold(v, k) = if #v < 2 then k else fold({a + b : a in take(v, #v / 2); b in drop(v, #v - #v / "
    "2)}, k + 1);\n"
    "function twice(g, x) = g(g(x));\n"
    "function even(n) = if n < 1 then t else odd_one(n - 1) and t;\n";
const char* const kForward = "function odd_one(n) : int -> bool;\n";
const char* const kMutual = "function odd_one(n) : int -> bool = if n < 1 then f else even(n - 1);\n";

class Generator {
 public:
  Generator(uint32_t seed, int size) : random_(seed), size_(size), unguarded_(seed % 4 == 3) {
    int_ = scalar(Type::Int), float_ = scalar(Type::Float), bool_ = scalar(Type::Bool),
    char_ = scalar(Type::Char);
  }

  std::string program() {
    std::string text = std::string(kForward) + kPrelude + kMutual;
    for (int k = 0; k < 2; ++k) {
      TypePtr type = sequence(pick(2) ? int_ : sequence(int_));
      std::string name = "g" + std::to_string(k);
      text += name + " = " + expression(type, size_ - 1) + ";\n";
      scope_.push_back({name, type});
    }
    text += "function user(a, v) = let b = a + 1 in ";
    scope_.push_back({"a", int_});
    scope_.push_back({"b", int_});
    scope_.push_back({"v", sequence(int_)});
    text += expression(sequence(int_), size_ - 1) + ";\n";
    scope_.resize(scope_.size() - 3);
    user_ = true;
    text += recursiveFunction();
    for (int k = 0; k < 2; ++k) text += expression(anyType(2), size_) + ";\n";
    return text;
  }

 private:
  struct Variable {
    std::string name;
    TypePtr type;
  };

  /// function dive(w, k) = if k > 2 or ... then ... else (dive(..., k + 1) anywhere)
  std::string recursiveFunction() {
    const TypePtr types[] = {int_,
                             sequence(int_),
                             sequence(int_),
                             sequence(sequence(int_)),
                             pair(int_, sequence(int_)),
                             sequence(pair(int_, float_))};
    const TypePtr type = types[pick(6)];
    const std::vector<Variable> parameters = {{"w", sequence(int_)}, {"k", int_}};
    std::string text = "function dive(w, k) = if (k > 2) or " + in(parameters, bool_, size_ - 2);
    text += " then " + in(parameters, type, size_ - 2);
    dive_ = type;
    step_ = "k + 1";
    text += " else " + in(parameters, type, size_ - 1) + ";\n";
    step_ = "0";
    return text;
  }

  uint32_t pick(uint32_t n) { return std::uniform_int_distribution<uint32_t>(0, n - 1)(random_); }
  TypePtr scalar(Type::Kind kind) { return std::make_shared<Type>(Type{kind, nullptr, nullptr}); }
  TypePtr sequence(TypePtr e) { return std::make_shared<Type>(Type{Type::Sequence, std::move(e), nullptr}); }
  TypePtr pair(TypePtr a, TypePtr b) {
    return std::make_shared<Type>(Type{Type::Pair, std::move(a), std::move(b)});
  }

  TypePtr anyType(int depth) {
    switch (pick(depth > 0 ? 8 : 4)) {
      case 0:
      case 1:
        return int_;
      case 2:
        return float_;
      case 3:
        return pick(2) ? bool_ : char_;
      case 4:
        return pair(anyType(depth - 1), anyType(depth - 1));
      default:
        return sequence(anyType(depth - 1));
    }
  }
  std::string fresh() { return "x" + std::to_string(++names_); }

  std::string in(const std::vector<Variable>& bound, const TypePtr& type, int depth) {
    const size_t mark = scope_.size();
    scope_.insert(scope_.end(), bound.begin(), bound.end());
    std::string text = expression(type, depth);
    scope_.resize(mark);
    return text;
  }

  std::string literal(const TypePtr& type) {
    switch (type->kind) {
      case Type::Int:
        return pick(4) ? std::to_string(pick(8)) : "(-" + std::to_string(pick(6)) + ")";
      case Type::Float:
        return std::to_string(pick(6)) + (pick(2) ? ".5" : ".25");
      case Type::Bool:
        return pick(2) ? "t" : "f";
      case Type::Char:
        return std::string("`") + static_cast<char>('a' + pick(5));
      case Type::Pair:
        return "(" + literal(type->first) + ", " + literal(type->second) + ")";
      case Type::Sequence:
        break;
    }
    const uint32_t n = pick(5);
    if (n == 0) return "take([" + literal(type->first) + "], 0)";
    std::string text = "[";
    for (uint32_t k = 0; k < n; ++k) text += (k ? ", " : "") + literal(type->first);
    return text + "]";
  }

  /// A small number, often a position that exists.
  std::string position() { return pick(3) ? std::to_string(pick(3)) : "rem(" + leaf(int_) + ", 4)"; }

  std::string leaf(const TypePtr& type) {
    std::vector<const Variable*> fitting;
    for (const Variable& v : scope_)
      if (same(v.type, type)) fitting.push_back(&v);
    if (!fitting.empty() && pick(5)) return fitting[pick(static_cast<uint32_t>(fitting.size()))]->name;
    return literal(type);
  }

  std::string expression(const TypePtr& type, int depth) {
    if (depth <= 0) return leaf(type);
    const int d = depth - 1;
    if (dive_ && same(dive_, type) && pick(3) == 0)
      return "dive(" + expression(sequence(int_), d) + ", " + step_ + ")";
    switch (pick(12)) {  // forms of every type
      case 0:
        return "(if " + expression(bool_, d) + " then " + expression(type, d) + " else " +
               expression(type, d) + ")";
      case 1: {
        std::string x = fresh();
        TypePtr t = anyType(2);
        return "(let " + x + " = " + expression(t, d) + " in " + in({{x, t}}, type, d) + ")";
      }
      case 2: {
        if (unguarded_ && pick(2)) return "elt(" + expression(sequence(type), d) + ", " + position() + ")";
        std::string v = fresh();
        return "(let " + v + " = " + expression(sequence(type), d) + " in if #" + v + " > 0 then " + v +
               "[rem(abs(" + expression(int_, d - 1) + "), #" + v + ")] else " + leaf(type) + ")";
      }
      case 3: {
        std::string a = fresh(), b = fresh();
        TypePtr other = anyType(1);
        bool first = pick(2);
        TypePtr p = first ? pair(type, other) : pair(other, type);
        return "(let (" + a + ", " + b + ") = " + expression(p, d) + " in " + (first ? a : b) + ")";
      }
      default:
        break;
    }
    switch (type->kind) {
      case Type::Int:
        return intExpression(d);
      case Type::Float:
        switch (pick(5)) {
          case 0:
            return "float(" + expression(int_, d) + ")";
          case 1:
            return "sum(" + expression(sequence(float_), d) + ")";
          case 2:
            return "sqrt(abs(" + expression(float_, d) + "))";
          case 3:
            return "max(" + expression(float_, d) + ", " + expression(float_, d) + ")";
          default:
            return "(" + expression(float_, d) + (pick(2) ? " + " : " - ") + expression(float_, d) + ")";
        }
      case Type::Bool:
        switch (pick(6)) {
          case 0:
            return "(" + expression(int_, d) + (pick(2) ? " < " : " == ") + expression(int_, d) + ")";
          case 1:
            return "any(" + expression(sequence(bool_), d) + ")";
          case 2:
            return "eql(" + expression(sequence(sequence(int_)), d - 1) + ", " +
                   expression(sequence(sequence(int_)), d - 1) + ")";
          case 3:
            return "not(" + expression(bool_, d) + ")";
          case 4:
            return "even(rem(abs(" + expression(int_, d) + "), 6))";
          default:
            return "(" + expression(bool_, d) + (pick(2) ? " and " : " or ") + expression(bool_, d) + ")";
        }
      case Type::Char:
        return "code_char(97 + rem(abs(" + expression(int_, d) + "), 26))";
      case Type::Pair:
        return "(" + expression(type->first, d) + ", " + expression(type->second, d) + ")";
      case Type::Sequence:
        return sequenceExpression(type, d);
    }
    return leaf(type);
  }

  std::string intExpression(int d) {
    switch (pick(18)) {
      case 0:
        return "sum(" + expression(sequence(int_), d) + ")";
      case 1:
        return "#" + expressionInParentheses(sequence(anyType(1)), d);
      case 2:
        return "rem(" + expression(int_, d) + ", 7)";
      case 3:
        return "(" + expression(int_, d) + " / (1 + abs(rem(" + expression(int_, d) + ", 5))))";
      case 4:
        return "collatz(rem(abs(" + expression(int_, d) + "), 20), 0)";
      case 5:
        return "tree(rem(abs(" + expression(int_, d) + "), 4))";
      case 6:
        return "fold(" + expression(sequence(int_), d) + ", 0)";
      case 7:
        return "count(" + expression(sequence(bool_), d) + ")";
      case 8:
        return "max_val([0] ++ " + expression(sequence(int_), d) + ")";
      case 9:
        return "twice(y => rem(y, 11) + " + leaf(int_) + ", " + expression(int_, d) + ")";
      case 10:
        return "trunc(" + expression(float_, d) + ")";
      case 11:
        return "paths(rem(abs(" + expression(int_, d) + "), 5), rem(abs(" + expression(int_, d) + "), 4))";
      case 12:
        return "rem(min_index(" + expression(sequence(float_), d) + "), 100)";
      case 13:
        return "rem(max_index(" + expression(sequence(int_), d) + "), 100)";
      case 14:
        return "ties(" + expression(sequence(int_), d) + ")";
      case 15:
        return "rem(sinking(" + expression(sequence(int_), d) + "), 101)";
      default:
        return "rem((" + expression(int_, d) + (pick(2) ? " + " : " * ") + expression(int_, d) + "), 101)";
    }
  }

  std::string expressionInParentheses(const TypePtr& type, int d) { return "(" + expression(type, d) + ")"; }

  /// {body : x in source; ... | condition}
  std::string each(const TypePtr& element, int d) {
    std::vector<Variable> bound;
    std::string x = fresh();
    TypePtr t = anyType(1);
    std::string v = fresh();
    std::string prefix, sources;
    if (pick(3) == 0) {  // two sources of equal length
      std::string y = fresh();
      TypePtr u = anyType(1);
      prefix = "let " + v + " = " + expression(sequence(t), d) + " in ";
      sources = x + " in " + v + "; " + y + " in dist(" + expression(u, d - 1) + ", #" + v + ")";
      bound = {{x, t}, {y, u}};
    } else {
      sources = x + " in " + expression(sequence(t), d);
      bound = {{x, t}};
    }
    std::string text = "{" + in(bound, element, d) + " : " + sources;
    if (pick(4) == 0) text += " | " + in(bound, bool_, d - 1);
    return "(" + prefix + text + "})";
  }

  std::string sequenceExpression(const TypePtr& type, int d) {
    const TypePtr& element = type->first;
    if (unguarded_ && pick(8) == 0) return unguarded(type, d);
    const uint32_t special = pick(14);
    std::string v = fresh();
    auto bound = [&](const std::string& body) {
      return "(let " + v + " = " + expression(type, d) + " in " + body + ")";
    };
    auto position = [&] { return "rem(abs(" + expression(int_, d - 1) + "), #" + v + " + 1)"; };
    switch (special) {
      case 0:
        return "(" + expression(type, d) + " ++ " + expression(type, d) + ")";
      case 1:
        return "reverse(" + expression(type, d) + ")";
      case 2:
        return bound("take(" + v + ", " + position() + ")");
      case 3:
        return bound("drop(" + v + ", -" + position() + ")");
      case 4:
        return "rotate(" + expression(type, d) + ", " + expression(int_, d) + ")";
      case 5:
        return "flatten(" + expression(sequence(type), d) + ")";
      case 6:
        return "dist(" + expression(element, d) + ", rem(abs(" + expression(int_, d) + "), 4))";
      case 7:
        return bound("if #" + v + " > 0 then " + v + " -> {rem(abs(i), #" + v + ") : i in " +
                     expression(sequence(int_), d) + "} else " + v);
      case 8:
        return bound("(" + v + " <- {(rem(abs(i), #" + v + "), " + leaf(element) + ") : i in " +
                     expression(sequence(int_), d) + " | #" + v + " > 0})");
      default:
        break;
    }
    if (element->kind == Type::Int) {
      switch (pick(8)) {
        case 0:
          return "[0:rem(abs(" + expression(int_, d) + "), 6)]";
        case 1:
          return "plus_scan(" + expression(type, d) + ")";
        case 2:
          return "qs(" + expression(type, d) + ")";
        case 3:
          return "sort(" + expression(type, d) + ")";
        case 4:
          return (pick(2) ? "halves(" : pick(2) ? "mixed(" : "kept(") + expression(type, d) + ")";
        case 5:
          if (user_) return "user(" + expression(int_, d) + ", " + expression(type, d) + ")";
          break;
        default:
          break;
      }
    }
    if (element->kind == Type::Sequence && pick(3) == 0) {
      switch (pick(3)) {
        case 0:
          return "bottop(" + expression(element, d) + ")";
        case 1:
          return "split(" + expressionWithFlags(element, d) + ")";
        default:
          return "(let " + v + " = " + expression(element, d) + " in partition(" + v + ", [#" + v +
                 " / 2, #" + v + " - #" + v + " / 2]))";
      }
    }
    return each(element, d);
  }

  /// Functions that fail for some of their arguments.
  std::string unguarded(const TypePtr& type, int d) {
    const TypePtr& element = type->first;
    switch (pick(8)) {
      case 0:
        return "take(" + expression(type, d) + ", " + position() + ")";
      case 1:
        return "subseq(" + expression(type, d) + ", 0, " + position() + ")";
      case 2:
        return "rep(" + expression(type, d) + ", " + leaf(element) + ", " + position() + ")";
      case 3:
        return "first(rest_tail(" + expression(type, d) + "))";
      case 4:
        return "(" + expression(type, d) + " -> {rem(i, 4) : i in " + expression(sequence(int_), d) + "})";
      case 5:
        return "put(" + expression(type, d) + ", [0:" + position() + "], " + expression(type, d) + ")";
      case 6:
        return "flag_merge(" + expression(sequence(bool_), d) + ", " + expression(type, d) + ", " +
               expression(type, d) + ")";
      default:
        return "flatten(transpose(" + expression(sequence(type), d) + "))";
    }
  }

  std::string expressionWithFlags(const TypePtr& type, int d) {
    std::string v = fresh();
    return "let " + v + " = " + expression(type, d) + " in (" + v + ", {evenp(i) : i in [0:#" + v + "]})";
  }

  std::mt19937 random_;
  int size_;
  bool unguarded_;  ///< programs that fail in some way more often than not
  TypePtr int_, float_, bool_, char_;
  std::vector<Variable> scope_;
  int names_ = 0;
  bool user_ = false;
  TypePtr dive_;      ///< what the recursive function yields, once it may be called
  std::string step_;  ///< its argument k there
};

}  // namespace

std::string randomNesl(uint32_t seed, int size) { return Generator(seed, size).program(); }

}  // namespace kelpie::testing
