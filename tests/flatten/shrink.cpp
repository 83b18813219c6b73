#include "shrink.h"

#include <string_view>
#include <vector>

namespace kelpie::testing {
namespace {

struct Group {
  size_t open, close;        ///< the brackets
  std::vector<size_t> cuts;  ///< commas and semicolons at its own level, between the brackets
};

/// All bracketed groups, larger ones first.
std::vector<Group> groupsOf(std::string_view text) {
  std::vector<Group> groups, open;
  bool quoted = false;
  for (size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[' || c == '{') open.push_back({k, 0, {}});
    if ((c == ',' || c == ';') && !open.empty()) open.back().cuts.push_back(k);
    if ((c == ')' || c == ']' || c == '}') && !open.empty()) {
      open.back().close = k;
      groups.push_back(open.back());
      open.pop_back();
    }
  }
  return {groups.rbegin(), groups.rend()};
}

std::string replaced(const std::string& text, size_t begin, size_t end, const std::string& by) {
  return text.substr(0, begin) + by + text.substr(end);
}

/// Smaller programs, one step away.
std::vector<std::string> smaller(const std::string& text) {
  std::vector<std::string> result;
  // Whole top-level forms.
  int depth = 0;
  size_t begin = 0;
  for (size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '(' || text[k] == '[' || text[k] == '{') ++depth;
    if (text[k] == ')' || text[k] == ']' || text[k] == '}') --depth;
    if (text[k] != ';' || depth > 0) continue;
    result.push_back(replaced(text, begin, k + 1, ""));
    begin = k + 1;
  }
  for (const Group& g : groupsOf(text)) {
    std::vector<size_t> bounds = {g.open};
    bounds.insert(bounds.end(), g.cuts.begin(), g.cuts.end());
    bounds.push_back(g.close);
    for (size_t part = 0; part + 1 < bounds.size(); ++part) {
      const std::string inside = text.substr(bounds[part] + 1, bounds[part + 1] - bounds[part] - 1);
      if (inside.size() + 2 < g.close - g.open)
        result.push_back(replaced(text, g.open, g.close + 1, "(" + inside + ")"));
      if (bounds.size() > 2)  // without this part
        result.push_back(part == 0 ? replaced(text, g.open + 1, bounds[1] + 1, "")
                                   : replaced(text, bounds[part], bounds[part + 1], ""));
    }
    for (const char* constant : {"0", "1", "t", "[1]", "[] int"})
      if (std::string_view(constant).size() < g.close + 1 - g.open)
        result.push_back(replaced(text, g.open, g.close + 1, constant));
    // The same with the name in front: f(x) as a whole.
    size_t name = g.open;
    while (name > 0 && (std::isalnum(static_cast<unsigned char>(text[name - 1])) || text[name - 1] == '_'))
      --name;
    if (name < g.open) {
      result.push_back(replaced(text, name, g.open, ""));
      for (const char* constant : {"0", "[1]"}) result.push_back(replaced(text, name, g.close + 1, constant));
    }
  }
  return result;
}

}  // namespace

std::string shrink(std::string program, const std::function<bool(const std::string&)>& fails) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string& candidate : smaller(program)) {
      if (candidate.size() >= program.size() || !fails(candidate)) continue;
      program = candidate;
      again = true;
      break;
    }
  }
  return program;
}

}  // namespace kelpie::testing
