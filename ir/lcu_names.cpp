#include "ir/lcu_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/literal.h"

namespace kelpie::lcu {
namespace {

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Words of the grammar (grammar/Lcu.g4).
bool isKeyword(std::string_view word) {
  static const std::set<std::string_view> kKeywords = {
      "agreeing",  "MAP",       "PERMUTE", "REDUCE", "SCAN",     "FILTER", "PARTITION", "ONCE",
      "and",       "backward",  "call",    "check",  "constant", "do",     "effects",   "else",
      "entry",     "false",     "fill",    "flat",   "function", "global", "grade",     "if",
      "in",        "inclusive", "inf",     "inff32", "join",     "kernel", "let",       "loop",
      "recursion", "nan",       "nanf32",  "next",   "or",       "over",   "ranks",     "regular",
      "return",    "seg",       "service", "site",   "sort",     "target", "then",      "onto",
      "to",        "total",     "true",    "unique", "where",    "while",  "yield"};
  return kKeywords.contains(word);
}

/// Variables that thunks bind: i, s, p, x, y and t1, k1, x1, y1, ...
bool isThunkVariable(std::string_view word) {
  if (word.size() == 1) return std::string_view("ispxy").find(word) != std::string_view::npos;
  return std::string_view("tkxy").find(word[0]) != std::string_view::npos &&
         std::all_of(word.begin() + 1, word.end(), isDigit);
}

bool isIdentifier(std::string_view word) {
  return !word.empty() && isLetter(word[0]) &&
         std::all_of(word.begin(), word.end(), [](char c) { return isLetter(c) || isDigit(c); });
}

std::string identifierFrom(std::string_view name) {
  std::string word(name);
  std::replace_if(
      word.begin(), word.end(), [](char c) { return !isLetter(c) && !isDigit(c); }, '_');
  return word.empty() || isDigit(word[0]) ? "v" + word : word;
}

/// Names for things numbered from `first`. A name that several share is given to none of them as it is.
std::vector<std::string> uniqueNames(std::vector<std::string> words, size_t first) {
  std::unordered_map<std::string, int> owners;
  for (size_t k = first; k < words.size(); ++k) {
    words[k] = identifierFrom(words[k]);
    ++owners[words[k]];
  }
  const auto keepsName = [&](const std::string& word) {
    return owners.at(word) == 1 && !isKeyword(word) && !isThunkVariable(word);
  };
  std::unordered_set<std::string> used;
  std::vector<bool> keeps(words.size());
  for (size_t k = first; k < words.size(); ++k)
    if ((keeps[k] = keepsName(words[k]))) used.insert(words[k]);
  for (size_t k = first; k < words.size(); ++k) {
    if (keeps[k]) continue;
    do words[k] += fmt::format("_{}", k);
    while (!used.insert(words[k]).second);
  }
  return words;
}

}  // namespace

Names::Names(const Program& program) {
  for (const VarInfo& info : program.vars) vars_.push_back(info.name);
  vars_ = uniqueNames(std::move(vars_), 1);
  for (const HostFunction& function : program.functions) functions_.push_back(function.name);
  functions_ = uniqueNames(std::move(functions_), 0);
}

std::string Names::var(VarId id) const {
  return id > 0 && id < vars_.size() ? vars_[id] : fmt::format("unknown_{}", id);
}

std::string Names::function(uint32_t index) const {
  return index < functions_.size() ? functions_[index] : fmt::format("unknown_{}", index);
}

std::string nameText(std::string_view name) {
  return isIdentifier(name) && !isKeyword(name) ? std::string(name) : quotedText(name);
}

std::string_view toString(SoacKind kind) {
  switch (kind) {
    case SoacKind::Map:
      return "MAP";
    case SoacKind::Permute:
      return "PERMUTE";
    case SoacKind::Reduce:
      return "REDUCE";
    case SoacKind::Scan:
      return "SCAN";
    case SoacKind::Filter:
      return "FILTER";
    case SoacKind::Partition:
      return "PARTITION";
    case SoacKind::Once:
      return "ONCE";
  }
  return "";
}

}  // namespace kelpie::lcu
