// The tokens of one form to its syntax tree, by the generated parser.
//
// In:   a form as the scanner found it.
// Out:  its tree, or nothing and at least one diagnostic.
//
// The generated parser keeps a node for every rule it enters, some hundred bytes each. That is nothing for
// code but much for data, so the elements of long listed sequences are parsed first, a few at a time (plain
// constants without the generated parser at all), and stand in their form as one token, LONG_SEQUENCE.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "frontend/ast.h"
#include "frontend/form_scanner.h"
#include "ir/diagnostic.h"

namespace kelpie {

class FormParser {
 public:
  FormParser(const std::vector<Token>& tokens, std::string_view text, uint32_t file,
             std::vector<Diagnostic>& diagnostics);
  ~FormParser();
  std::optional<ast::Form> parse(const ScannedForm& form);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kelpie
