#include "flatten/literal_comparisons.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "flatten/core_walk.h"
#include "flatten/functions_of_instances.h"

namespace kelpie::flatten {
namespace {

using core::Atom;
using core::Call;
using core::ExpPtr;
using core::If;
using core::Prim;
using core::PrimOp;

/// Of the library, for each type of elements (frontend/library/generic.nesl).
constexpr std::string_view kComparison = "prim_eql_sequence";

class Comparisons {
 public:
  explicit Comparisons(core::Program& program) : program_(program) {}

  bool any() const { return std::any_of(program_.functions.begin(), program_.functions.end(), isComparison); }

  void run() {
    const std::vector<bool> ofInstances = functionsOfInstances(program_);
    for (const core::Function& function : program_.functions) learn(function.body);
    learn(program_.entry);
    for (const core::Function& function : program_.functions) count(function.body);
    count(program_.entry);
    for (size_t f = 0; f < program_.functions.size(); ++f) {
      core::Function& function = program_.functions[f];
      if (function.body && !isComparison(function)) function.body = chain(function.body, ofInstances[f]);
    }
    program_.entry = chain(program_.entry, false);
  }

 private:
  static bool isComparison(const core::Function& function) {
    return function.fromLibrary && function.name.starts_with(kComparison);
  }

  void learn(const ExpPtr& e) {
    if (!e) return;
    const Chain all = takeApart(e);
    for (const Chain::Binding& let : all.lets) {
      if (let.vars.size() == 1 && std::holds_alternative<core::Constant>(let.rhs->node))
        constants_[let.vars[0].id] = let.rhs;
      forEachPart(*let.rhs, [&](const ExpPtr& part) { learn(part); });
    }
    forEachPart(*all.tail, [&](const ExpPtr& part) { learn(part); });
  }

  /// With how many texts of each length each sequence is compared.
  void count(const ExpPtr& e) {
    if (!e) return;
    const Chain all = takeApart(e);
    for (const Chain::Binding& let : all.lets) countInside(let.rhs);
    countInside(all.tail);
  }
  void countInside(const ExpPtr& e) {
    if (const auto* call = std::get_if<Call>(&e->node);
        call && isComparison(program_.functions[call->function]))
      for (const size_t k : {1, 0})
        if (const auto elements = shortConstant(call->arguments[k]);
            elements && !call->arguments[1 - k].isConstant())
          ++compared_[{call->arguments[1 - k].var(), elements->size()}];
    forEachPart(*e, [&](const ExpPtr& part) { count(part); });
  }

  ExpPtr chain(const ExpPtr& e, bool instances) {
    const size_t before = inScope_.size();
    Chain in = takeApart(e), out;
    for (Chain::Binding& let : in.lets) {
      let.rhs = inside(let.rhs, instances, out);
      out.lets.push_back(std::move(let));
    }
    out.tail = inside(in.tail, instances, out);
    for (; inScope_.size() > before; inScope_.pop_back()) words_.erase(inScope_.back());
    return putTogether(std::move(out));
  }

  /// An expression that is no let; what it needs is appended to `out`.
  ExpPtr inside(const ExpPtr& e, bool instances, Chain& out) {
    if (const auto* call = std::get_if<Call>(&e->node); call && instances)
      if (isComparison(program_.functions[call->function]))
        for (const size_t k : {1, 0})
          if (const auto elements = shortConstant(call->arguments[k]))
            return comparison(call->arguments[1 - k], *elements, out, e->span);
    const bool of = instances || std::holds_alternative<core::Each>(e->node);
    return rebuilt(
        e, [](const Atom& a) { return a; }, [&](const ExpPtr& part) { return chain(part, of); });
  }

  std::optional<std::vector<Scalar>> shortConstant(const Atom& atom) const {
    const auto bound = atom.isConstant() ? constants_.end() : constants_.find(atom.var());
    if (bound == constants_.end()) return std::nullopt;
    const Column& column = std::get<core::Constant>(bound->second->node).columns[0];
    if (column.elements.size() != 1 || !column.elements[0].type.isScalar()) return std::nullopt;
    const Column& values = column.elements[0];
    const bool text = values.type.scalar() == ScalarType::Char;
    if (values.length() > (text ? kLongestComparedText : kLongestComparedLiteral)) return std::nullopt;
    std::vector<Scalar> elements;
    for (int64_t k = 0; k < values.length(); ++k) elements.push_back(values.at(k));
    return elements;
  }

  ExpPtr comparison(const Atom& sequence, const std::vector<Scalar>& elements, Chain& out, Span span) {
    const CoreType integer(program_.intType), boolean(ScalarType::Bool);
    const auto bind = [&](Prim prim, const CoreType& type, Chain& where) {
      const core::Var var{program_.nextVar++, "", type};
      where.lets.push_back({{var}, makeExp(std::move(prim), {type}, span), span});
      return atomOf(var);
    };
    const auto number = [&](size_t n) {
      return Atom{Scalar::ofInt(program_.intType, static_cast<int64_t>(n)), integer};
    };
    const auto scalar = [&](ScalarOp op, const Atom& a, const Atom& b, Chain& where) {
      return bind(Prim{.op = PrimOp::Scalar, .arguments = {a, b}, .scalarOp = op}, boolean, where);
    };
    const auto same = [&](size_t k, Chain& where) {
      const CoreType type(elements[k].type);
      const Atom element = bind(Prim{.op = PrimOp::Index, .arguments = {sequence, number(k)}}, type, where);
      return scalar(ScalarOp::Equal, element, {elements[k], type}, where);
    };
    const auto values = [&](const Atom& atom) { return makeExp(core::Values{{atom}}, {boolean}, span); };
    const auto both = [&](const Atom& first, Chain second) {
      const ExpPtr no = values({Scalar::ofBool(false), boolean});
      return makeExp(If{first, putTogether(std::move(second)), no}, {boolean}, span);
    };
    const Atom length = bind(Prim{.op = PrimOp::Length, .arguments = {sequence}}, integer, out);
    const Atom asLong = scalar(ScalarOp::Equal, length, number(elements.size()), out);
    if (elements.empty()) return values(asLong);
    if (elements[0].type == ScalarType::Char) return textComparison(sequence, asLong, elements, out, span);
    Chain first;
    const Atom begins = same(0, first);
    if (elements.size() == 1) {
      first.tail = values(begins);
    } else {
      Chain rest;
      Atom all = same(1, rest);
      for (size_t k = 2; k < elements.size(); ++k) all = scalar(ScalarOp::And, all, same(k, rest), rest);
      rest.tail = values(all);
      first.tail = both(begins, std::move(rest));
    }
    return both(asLong, std::move(first));
  }

  /// Of text, the characters of several comparisons with literals of one length are put together alike.
  ExpPtr textComparison(const Atom& sequence, const Atom& asLong, const std::vector<Scalar>& text, Chain& out,
                        Span span) {
    const CoreType wide(ScalarType::Int64), boolean(ScalarType::Bool);
    const auto bind = [&](auto node, const CoreType& type, Chain& where) {
      const core::Var var{program_.nextVar++, "", type};
      where.lets.push_back({{var}, makeExp(std::move(node), {type}, span), span});
      return atomOf(var);
    };
    const auto scalar = [&](ScalarOp op, const Atom& a, const Atom& b, const CoreType& type, Chain& where) {
      return bind(Prim{.op = PrimOp::Scalar, .arguments = {a, b}, .scalarOp = op}, type, where);
    };
    const auto number = [&](int64_t n) { return Atom{Scalar::ofInt(ScalarType::Int64, n), wide}; };
    const auto values = [&](const Atom& atom, const CoreType& type) {
      return makeExp(core::Values{{atom}}, {type}, span);
    };
    const auto put = [&](size_t begin, size_t end, Chain& where) {
      Chain loads;
      std::optional<Atom> word;
      for (size_t k = begin; k < end; ++k) {
        const CoreType place(program_.intType);
        const Atom at{Scalar::ofInt(program_.intType, static_cast<int64_t>(k)), place};
        const Atom character =
            bind(Prim{.op = PrimOp::Index, .arguments = {sequence, at}}, CoreType(ScalarType::Char), loads);
        const Atom code = bind(Prim{.op = PrimOp::Convert, .arguments = {character}}, wide, loads);
        if (word) word = scalar(ScalarOp::Mul, *word, number(kCodes), wide, loads);
        word = word ? scalar(ScalarOp::Add, *word, code, wide, loads) : code;
      }
      loads.tail = values(*word, wide);
      return bind(If{asLong, putTogether(std::move(loads)), values(number(-1), wide)}, wide, where);
    };
    const bool shared = compared_[{sequence.var(), text.size()}] >= kMany;
    const auto sameFrom = [&](const auto& self, size_t begin, Chain& where) -> Atom {
      const size_t end = std::min(text.size(), begin + kCharactersOfWord);
      const Word key{sequence.var(), text.size(), begin};
      auto known = words_.find(key);
      std::optional<Atom> word;
      if (known != words_.end()) {
        word = known->second;
      } else {
        word = put(begin, end, where);
        if (begin == 0 || shared) {
          words_.emplace(key, *word);
          inScope_.push_back(key);
        }
      }
      int64_t wanted = 0;
      for (size_t k = begin; k < end; ++k) wanted = wanted * kCodes + text[k].i;
      const Atom same = scalar(ScalarOp::Equal, *word, number(wanted), boolean, where);
      if (end == text.size()) return same;
      if (shared) return scalar(ScalarOp::And, same, self(self, end, where), boolean, where);
      Chain rest;
      rest.tail = values(self(self, end, rest), boolean);
      const ExpPtr no = values({Scalar::ofBool(false), boolean}, boolean);
      return bind(If{same, putTogether(std::move(rest)), no}, boolean, where);
    };
    return values(sameFrom(sameFrom, 0, out), boolean);
  }

  static constexpr int64_t kCodes = 256;          ///< of a character
  static constexpr size_t kCharactersOfWord = 7;  ///< whose codes are a positive int64 together

  static constexpr int kMany = 3;  ///< comparisons for which all characters are loaded at once

  /// Characters that are put together: of which text if it has which length, from which one on.
  using Word = std::tuple<core::VarId, size_t, size_t>;

  core::Program& program_;
  std::map<std::pair<core::VarId, size_t>, int> compared_;
  std::map<Word, Atom> words_;  ///< that are bound where the walk is
  std::vector<Word> inScope_;   ///< of them, in the order in which they were bound
  std::unordered_map<core::VarId, ExpPtr> constants_;
};

}  // namespace

core::Program compareWithLiterals(core::Program program) {
  Comparisons comparisons(program);
  if (comparisons.any()) comparisons.run();
  return program;
}

}  // namespace kelpie::flatten
