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
    // ---- names and patterns (frontend/infer.cpp, type_expression.cpp)
    {"K0201", "An unknown name"},
    {"K0202", "A name twice in one pattern"},
    {"K0203", "A pattern of a record that is not defined"},
    {"K0204", "An unknown type"},
    {"K0205", "An unknown type class"},
    {"K0206", "A type variable declared twice"},
    {"K0207", "A record type with the wrong number of parameters"},
    {"K0208", "An unknown named argument"},
    {"K0209", "An argument too many"},
    {"K0210", "An argument is missing"},
    // ---- types (frontend/infer.cpp)
    {"K0301", "An argument of the wrong type"},
    {"K0302", "A type parameter outside its class"},
    {"K0303", "Branches of different types"},
    {"K0304", "A condition that is not a bool"},
    {"K0305", "Not a function"},
    {"K0306", "An apply-to-each over something that is no sequence"},
    {"K0307", "A pattern that does not match its value"},
    {"K0308", "Elements of different types"},
    {"K0309", "A result of the wrong type"},
    {"K0310", "A signature that does not fit its function"},
    {"K0311", "A number too large"},
    {"K0313", "A filter that is not a bool"},
    {"K0314", "A type that is too large"},
    // ---- effects and top level (frontend/serial_check.cpp, session.cpp, specialise.cpp)
    {"K0401", "A serial function inside an apply-to-each"},
    {"K0402", "A file cannot be loaded"},
    {"K0403", "A setting without effect"},
    {"K0404", "An interactive command"},
    {"K0405", "A function needed for ever more types"},
    {"K0406", "No function of this name to report on"},
    {"K0407", "`time` inside of `time`"},
    // ---- run time (driver)
    {"K0501", "A run-time error"},
};

}  // namespace kelpie
