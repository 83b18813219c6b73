// Names in λcu text: of variables and functions, readable, unique, and never a word that the text uses
// otherwise; of kinds of SOACs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/lcu.h"

namespace kelpie::lcu {

/// Each variable keeps its name when no other one has it, and is called name_ID otherwise. Names that thunks
/// use for their own variables (i, s, p, x, y, t1, ...) always get the suffix.
class Names {
 public:
  explicit Names(const Program& program);
  std::string var(VarId id) const;
  std::string function(uint32_t index) const;
  /// Whether these are the names of `program`, which is the one they were made for, but may have got further
  /// variables.
  bool completeFor(const Program& program) const { return vars_.size() == program.vars.size(); }

 private:
  std::vector<std::string> vars_, functions_;
};

/// What lcu.h has, where names are there: to make them takes time for all variables of a program.
std::string toString(const Kernel& kernel, const Program& program, const Names& names);
std::string toString(ExprRef e, const Names& names);

/// `name` as it is if it is an identifier of λcu text, else in quotes.
std::string nameText(std::string_view name);

std::string_view toString(SoacKind kind);  ///< "MAP" "PERMUTE" ... as λcu text spells them

}  // namespace kelpie::lcu
