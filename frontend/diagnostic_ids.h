// Every diagnostic id with its title. docs/errors.md explains each; a test compares the two.
//
//   K01xx syntax    K02xx names and patterns    K03xx types    K04xx effects and top level    K05xx run time
#pragma once

namespace kelpie {

struct DiagnosticTitle {
  const char* id;
  const char* title;
};

inline constexpr DiagnosticTitle kDiagnosticTitles[] = {
    // ---- syntax (frontend/form_scanner.cpp, form_parser.cpp, ast_builder.cpp)
    {"K0101", "Unexpected word or sign"},
    {"K0102", "A bracket is not closed"},
    {"K0103", "A closing bracket does not match"},
    {"K0104", "A form is not ended"},
    {"K0105", "A comment is not closed"},
    {"K0106", "A string or character is not complete"},
    {"K0107", "A character that NESL does not use"},
    {"K0108", "A name follows a number directly"},
    {"K0109", "Lisp escape"},
    {"K0110", "Nested too deeply"},
    {"K0111", "An argument or expression is missing in parentheses"},
    {"K0112", "A subscript takes one index"},
    {"K0113", "Not a pattern"},
    {"K0114", "A reserved name"},
    {"K0115", "A signature is not a function type"},
    {"K0116", "`let` without `in`"},
    {"K0117", "A named argument in the wrong place"},
    {"K0118", "Incomplete types of parameters"},
    {"K0119", "A binding of an apply-to-each without `in`"},
};

}  // namespace kelpie
