#include "frontend/pattern_advice.h"

#include <fmt/format.h>

#include <cctype>

#include "frontend/foreign_words.h"
#include "frontend/text.h"

namespace kelpie {

using namespace ast;  // NOLINT(google-build-using-namespace): this file is about nothing else

namespace {

/// Of `g x y`, names side by side: "g(x, y)"; else empty.
std::string headOfNames(const Exp& exp) {
  std::string parameters;
  const Exp* rest = &exp;
  while (const auto* apply = std::get_if<Apply>(&rest->node)) {
    const auto* parameter = std::get_if<Name>(&apply->argument->node);
    if (!parameter) return "";
    parameters = parameter->name + (parameters.empty() ? "" : ", ") + parameters;
    rest = apply->function.get();
  }
  const auto* name = std::get_if<Name>(&rest->node);
  return name && !parameters.empty() ? name->name + "(" + parameters + ")" : "";
}

}  // namespace

std::string adviceOnPattern(const Exp& exp, std::string_view text, char before, bool isLambda) {
  const auto begins = [&](std::string_view word) {
    return text.starts_with(word) && text.size() > word.size() && text[word.size()] == ' ';
  };
  if (begins("#") || begins("--")) return "a comment stands between two %";
  const std::string first = lowerCase(text.substr(0, text.find(' ')));
  const bool named =
      first.size() + 1 < text.size() && std::isalpha(static_cast<unsigned char>(text[first.size() + 1]));
  if (named && definesFunctions(first))
    return first.size() > 6 && first != "procedure" ? std::string("did you mean `function`?")
                                                    : "a function is defined by function NAME(X) = BODY";
  for (const char* constant : {"f", "t"})
    if (begins(constant) || text.starts_with(std::string(constant) + "("))
      return "`t` and `f` are the constants true and false; a function is defined by function NAME(X) = BODY";
  for (const char* word : {"case", "match", "switch", "return", "repeat"})
    if (begins(word)) return foreignNameAdvice(word);
  if (begins("while")) return "a loop is a function that calls itself, with what changes as its arguments";
  if (std::holds_alternative<SequenceLiteral>(exp.node))
    return "a sequence is not taken apart by a pattern: its elements are v[0], v[1], ...";
  if (text.ends_with("]"))
    return "nothing is assigned: v <- [(I, X)] is the sequence v with X at the place I; equality is written "
           "==";
  if (text.find('\n') != std::string_view::npos)
    return "if a new form begins on its last line, the one before it lacks its `;`";
  if (text.find(" for ") != std::string_view::npos)
    return "what is done for each element of a sequence comes first, then a colon: {BODY : X in SEQUENCE}";
  if (before == '{') return "a colon stands between what is done and the bindings: {BODY : X in SEQUENCE}";
  if (const std::string head = headOfNames(exp); !head.empty())
    return isLambda ? "the parameters of a function without a name stand in parentheses: ((x, y) => x + y)"
                    : fmt::format("a function is defined by: function {} = ...", head);
  return "a pattern is a name, a pair of patterns (a, b) or a record pattern name(a, b); equality is written "
         "==";
}

}  // namespace kelpie
