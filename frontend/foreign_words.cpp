#include "frontend/foreign_words.h"

#include <span>
#include <utility>

#include "frontend/text.h"

namespace kelpie {
namespace {

using Word = std::pair<std::string_view, const char*>;  ///< and what is written instead

constexpr const char* kLength = "the length of a sequence v is #v";
constexpr const char* kText = "the text of a value x is @x";
constexpr const char* kFold =
    "scan(g, identity, v) has the total of v under an associative g as its second result";
constexpr const char* kEmpty = "an empty sequence names the type of its elements: [] int";
constexpr const char* kNotFinite =
    "there is no literal for NaN or infinity, and a division by zero is an error";
constexpr const char* kCases = "one of several cases is chosen by if A then X else if B then Y else Z";
constexpr const char* kLoop =
    "a loop is a function that calls itself: function NAME(X) = if DONE then X else NAME(NEXT)";
constexpr const char* kFunction =
    "a function without a name is X => RESULT, one with a name is defined by function NAME(X) = BODY";
constexpr const char* kPair = "the parts of a pair have names in a pattern: (a, b) = PAIR";
constexpr const char* kSequence = "a sequence of elements of type A is [A]";
constexpr const char* kString = "a string is a sequence of characters: [char]";
constexpr const char* kInt = "this type is `int`";
constexpr const char* kFloat = "this type is `float`";

constexpr Word kNames[] = {
    {"len", kLength},
    {"size", kLength},
    {"str", kText},
    {"show", kText},
    {"to_string", kText},
    {"filter", "{x in v | CONDITION} has the elements x of v with the condition"},
    {"foldl", kFold},
    {"foldr", kFold},
    {"fold", kFold},
    {"reduce", kFold},
    {"range", "[start:end] is a range of integers"},
    {"push", "v ++ [x] puts x behind v"},
    {"append", "v ++ w joins two sequences"},
    {"concat", "v ++ w joins two sequences, flatten(v) those in a sequence"},
    {"nan", kNotFinite},
    {"inf", kNotFinite},
    {"infinity", kNotFinite},
    {"nil", kEmpty},
    {"null", kEmpty},
    {"none", kEmpty},
    {"int", "round(x), trunc(x), ceil(x) and floor(x) make an int of a float, parse_int(s) of a string"},
    {"return", "the value of a function is that of its body: function NAME(X) = BODY"},
    {"case", kCases},
    {"match", kCases},
    {"switch", kCases},
    {"while", kLoop},
    {"for", kLoop},
    {"repeat", kLoop},
    {"sorted", "sort(v) sorts a sequence"},
    {"fst", kPair},
    {"snd", kPair},
    {"head", "the first element of a sequence v is v[0]"},
    {"tail", "drop(v, 1) is a sequence v without its first element"},
    {"last", "the last element of a sequence v is v[#v - 1]"},
    {"fn", kFunction},
    {"fun", kFunction},
    {"lambda", kFunction},
    {"quit", "`exit;` ends a program, and so does :quit at the prompt"},
};

constexpr Word kTypes[] = {
    {"string", kString},
    {"str", kString},
    {"integer", kInt},
    {"long", kInt},
    {"boolean", "this type is `bool`"},
    {"character", "this type is `char`"},
    {"double", kFloat},
    {"real", kFloat},
    {"list", kSequence},
    {"array", kSequence},
    {"vector", kSequence},
    {"seq", kSequence},
};

std::string adviceOn(std::string_view word, std::span<const Word> words) {
  for (const auto& [known, advice] : words)
    if (known == word) return advice;
  return "";
}

}  // namespace

std::string foreignNameAdvice(std::string_view name) { return adviceOn(name, kNames); }
std::string foreignTypeAdvice(std::string_view name) { return adviceOn(name, kTypes); }

bool definesFunctions(std::string_view word) {
  constexpr size_t kSlips = 2;  // of who types a word of eight letters
  for (const char* known : {"def", "defun", "define", "fn", "fun", "func", "proc", "procedure"})
    if (word == known) return true;
  return word != "function" && editDistance(word, "function", kSlips) <= kSlips;
}

}  // namespace kelpie
