// The tokens around a mistake of syntax.
#pragma once

#include <NeslParser.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/lexer.h"

namespace kelpie {

inline bool isOpening(uint32_t type) {
  return type == nesl_grammar::NeslParser::LPAREN || type == nesl_grammar::NeslParser::LBRACKET ||
         type == nesl_grammar::NeslParser::LBRACE;
}
inline bool isClosing(uint32_t type) {
  return type == nesl_grammar::NeslParser::RPAREN || type == nesl_grammar::NeslParser::RBRACKET ||
         type == nesl_grammar::NeslParser::RBRACE;
}

/// The tokens of the form up to the mistake, and what follows.
struct Surroundings {
  const std::vector<Token>& tokens;
  uint32_t formBegin, found;
  std::string_view text;
  std::vector<uint32_t> open;  ///< brackets open at `found`, the innermost last

  uint32_t type(uint32_t i) const;
  bool has(uint32_t wanted) const;
  bool hasBehindOpen(uint32_t wanted) const;
  /// Whether `found` comes after the first binding of a `let` whose `in` is still to come.
  bool inBindingsOfLet() const;
  /// Whether the definition of a function has its signature already: a `:` or `->` outside of brackets.
  bool hasSignature() const;
  /// Whether what is found stands behind the name of a function that is defined, in no brackets, with no `=`
  /// before.
  bool isHeadOfFunction() const;
  /// Whether a binding of the innermost braces and a comma stand before what is found.
  bool bindingsHaveComma() const;
  /// Where a pattern begins that ends in front of token `end`: a name, a pair in parentheses or a record's
  /// pattern; `end` if there is none.
  uint32_t beginOfPattern(uint32_t end) const;
  /// Whether what is found comes right after a pattern that is to be bound in an apply-to-each: `{x : x`,
  /// `{x : x, y` or `{x + y : x in v; y`.
  bool bindsElementBefore() const;
  /// Whether what is found comes right after a comma and a pattern.
  bool followsCommaAndPattern() const {
    return type(beginOfPattern(found) - 1) == nesl_grammar::NeslParser::COMMA;
  }
  /// For `function g x y`, found at the y: "g(x, y)"; otherwise empty.
  std::string headWithoutParentheses() const;
  bool isWord(uint32_t i, std::string_view word) const;
  /// Whether an operator stands where an argument should: in f(+, x).
  bool isOperatorAlone(uint32_t i) const;
  bool hasWord(std::string_view word) const;
  /// Whether what is found is the `=` of `x +=`.
  bool changesName() const;
  /// Whether what is found comes right after a `load` that begins the form.
  bool isFirstBehindLoad() const {
    return type(formBegin) == nesl_grammar::NeslParser::LOAD && found == formBegin + 1;
  }
  bool onNewLine() const { return beginsLine(found); }
  /// Whether what is found comes right after the first name of a line.
  bool followsNameOnNewLine() const;
  /// Whether what is found comes right after a name in front of which a value ends, as in `1 b =`.
  bool followsNameBehindValue() const;
  bool beginsLine(uint32_t i) const;
  /// The word that token i is, in lower case; empty if it is no name.
  std::string word(uint32_t i) const;
  /// What stands from token `first` up to `last`.
  std::string_view source(uint32_t first, uint32_t last) const;
  /// Whether no blank stands between token i and the next one.
  bool touchesNext(uint32_t i) const { return i + 1 < tokens.size() && tokens[i].end == tokens[i + 1].begin; }
  /// Whether the form begins like a definition of a function in another language: `def g`.
  bool beginsForeignDefinition() const;
  /// Whether the innermost brace that is open stands where a branch of an `if` should, or its `then`.
  bool inBracesOfIf() const;
  /// For `y =` where a body or an operand begins, found at the `=`: the binding that could stand there, as in
  /// `let y = x + 1`; otherwise empty.
  std::string bindingInBody() const;
  /// For `let g x y` or `let rec g x`, found at the last of these: "g(x, y)"; otherwise empty.
  std::string functionInLet() const;
};

}  // namespace kelpie
