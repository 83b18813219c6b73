// A session: top-level forms in order, each checked and specialised in the environment its predecessors made.
//
// In:   source files, or one form at a time (a prompt).
// Out:  for every form its printed name and type, its diagnostics, and for expressions and bindings the Core
//       program with the cells that take its components.
// Then: everything that depends on the program text alone is decided; what runs later is only the programs,
// in
//       the order of the results. A program sees the functions as they were defined when its form was read.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/environment.h"
#include "frontend/ground_type.h"
#include "frontend/infer.h"
#include "frontend/library.h"
#include "frontend/parser.h"
#include "frontend/source_manager.h"
#include "ir/core.h"
#include "ir/value_type.h"

namespace kelpie {

enum class FormKind : uint8_t {
  Definition,   // function, forward declaration or datatype: "NAME = fn : TYPE"
  Expression,   // "it = VALUE : TYPE"
  Binding,      // "PATTERN = VALUE : TYPE"
  FileBinding,  // "PATTERN : TYPE"
  Setting,      // set command; `words` are its arguments
  Exit,         // the end of the program
  Silent,       // other commands, and forms with errors
};

/// Components first .. first+count-1 of a program's row become the contents of the cell.
struct CellAssignment {
  uint32_t cell;
  size_t first, count;
};

struct FormResult {
  FormKind kind = FormKind::Silent;
  Span span;
  std::string name;    ///< as printed: "it", "f", "(a, b)"
  std::string type;    ///< as printed, with the context
  std::string notice;  ///< "Redefining ..." (language.md 5.3), or empty; a line before the result
  bool shown = true;   ///< false in a file that is loaded without `print := t`
  std::vector<Diagnostic> diagnostics;
  std::optional<core::Program> program;
  ValueTypePtr valueType;
  std::vector<CellAssignment> assignments;
  std::vector<std::string> words;

  bool failed() const;  ///< has an error, not only warnings
};

struct SessionOptions {
  Widths widths;
  std::string neslPath;  ///< value of the constant nesl_path
};

class Session {
 public:
  explicit Session(SourceManager& sources, SessionOptions options = {});

  /// Parses a file and processes its forms; syntax errors are results of their own, in order of position.
  std::vector<FormResult> processFile(uint32_t file);
  /// One form; several results when it loads a file.
  std::vector<FormResult> process(const ast::Form& form);

  /// The type and program of an expression, which is not evaluated and defines nothing. With `called`, the
  /// name of a function stands for a call with an argument that is not known yet, type parameters being int.
  FormResult inspect(const ast::ExpPtr& expression, bool called);

  Environment& environment() { return environment_; }

 private:
  FormResult define(Cell* cell);
  /// Remembers the names that the form should have defined.
  void markFailed(const ast::Form& form, bool told);
  FormResult function(const ast::FunctionDefinition& definition);
  FormResult datatype(const ast::DatatypeDefinition& definition);
  FormResult expression(const ast::ExpPtr& expression);
  FormResult binding(const ast::Binding& binding);
  FormResult command(const ast::Command& command, Span span);
  void load(const ast::Command& command, Span span, std::vector<FormResult>& results);
  void defineLibrary(const ast::Form& form);
  void specialiseInto(FormResult& result, const typed::Exp& value);
  void explainMistakes(uint32_t file, std::vector<FormResult>& results);
  Cell& variableCell(const std::string& name, Type* type, Span span, FormResult& result);
  ast::ExpPtr callOf(const ast::ExpPtr& function);
  std::optional<std::string> constantString(const ast::Exp& expression);
  std::string show(const Type* type) const { return printType(type, types_.widths()); }

  SourceManager& sources_;
  SessionOptions options_;
  TypeStore types_;
  Library library_;
  Environment environment_;
  GroundTypes grounds_;
  std::vector<typed::ExpPtr> kept_;  ///< types refer to their lambdas
  std::unordered_map<const Cell*, std::string>
      knownStrings_;            ///< variables with a value known here, for `load`
  std::vector<uint32_t> open_;  ///< files that are gone through, one loading the next
  bool shown_ = true;
};

}  // namespace kelpie
