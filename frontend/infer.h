// Type inference (language.md 3.3): syntax trees to typed expressions.
//
// In:   one expression, function definition or datatype, and the environment of names before it.
// Out:  typed trees in which every name is resolved and every type is known up to the quantified variables.
// Then: all constraints hold; no serial function is called inside an apply-to-each, as far as the called
//       functions are named (function values are checked by the specialiser); mistakes are diagnostics, and a
//       form that has one yields nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/ast.h"
#include "frontend/ast_names.h"
#include "frontend/environment.h"
#include "frontend/typed.h"
#include "ir/diagnostic.h"

namespace kelpie {

class Inference {
 public:
  Inference(Environment& environment, bool fromLibrary, std::vector<Diagnostic>& diagnostics)
      : environment_(environment),
        types_(environment.types()),
        fromLibrary_(fromLibrary),
        diagnostics_(diagnostics) {}

  /// A new cell with the function, not yet known by its name; null after an error.
  Cell* function(const ast::FunctionDefinition& definition);
  /// A new constructor cell with its datatype; null after an error.
  Cell* datatype(const ast::DatatypeDefinition& definition);
  /// Null after an error.
  typed::ExpPtr expression(const ast::ExpPtr& expression);
  struct BoundExpression {
    typed::PatternPtr pattern;
    typed::ExpPtr value;
    std::vector<typed::VariablePtr> variables;  ///< of the pattern, in order
  };
  /// `pattern = value` at top level.
  std::optional<BoundExpression> binding(const ast::Binding& binding);

 private:
  struct Entry {
    typed::VariablePtr variable;
    size_t lambdas;  ///< number of lambdas around the binding
  };
  /// Gives the names bound since its construction back.
  class Scope {
   public:
    explicit Scope(Inference& inference) : inference_(inference), size_(inference.bound_.size()) {}
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Inference& inference_;
    size_t size_;
  };
  struct LambdaFrame {
    typed::Lambda* lambda;
    std::unordered_set<const typed::Variable*> captured;
  };

  // expressions; never null: after an error the type is a fresh variable
  typed::ExpPtr infer(const ast::Exp& expression);
  /// An expression that a comma and others follow.
  typed::ExpPtr inferBeside(const ast::Exp& exp, const ast::Exp& rest);
  typed::ExpPtr inferName(const ast::Name& name, Span span);
  typed::ExpPtr inferUnary(const ast::Unary& unary, Span span);
  typed::ExpPtr inferBinary(const ast::Binary& binary, Span span);
  typed::ExpPtr inferApply(const ast::Apply& apply, Span span);
  typed::ExpPtr inferSequence(const ast::SequenceLiteral& sequence, Span span);
  typed::ExpPtr inferEach(const ast::ApplyToEach& each, Span span);
  typed::ExpPtr inferIf(const ast::If& branch, Span span);
  typed::ExpPtr inferLet(const ast::Let& let, Span span);
  typed::ExpPtr inferLambda(const ast::Lambda& lambda, Span span);
  typed::ExpPtr inferInt(const ast::IntLiteral& literal, Span span);
  /// `what` names the function in messages; by default it is called by its name.
  typed::ExpPtr call(typed::ExpPtr function, typed::ExpPtr argument, Span span, const std::string& what = {});
  typed::ExpPtr callNamed(const std::string& function, std::vector<typed::ExpPtr> arguments, Span span,
                          Span nameSpan, const std::string& reason = {});
  typed::ExpPtr argumentWithDefaults(const Cell& cell, const ast::Exp& argument, Span span);
  typed::ExpPtr global(const Cell& cell, Span span, const std::string& reason);
  typed::ExpPtr pair(typed::ExpPtr first, typed::ExpPtr second, Span span);
  typed::ExpPtr make(decltype(typed::Exp::node) node, Type* type, Span span, bool closed);
  typed::ExpPtr failed(Span span) { return make(typed::String{}, types_.variable(), span, true); }
  /// Whether its mistake has been told.
  static bool hasFailed(const typed::Exp& exp) {
    return std::holds_alternative<typed::String>(exp.node) && resolve(exp.type)->kind == TypeKind::Variable;
  }
  void checkEffects(const Cell& cell, Span span);

  // patterns
  typed::PatternPtr pattern(const ast::Pattern& pattern, std::vector<typed::VariablePtr>& variables);
  void bind(const std::vector<typed::VariablePtr>& variables);
  bool defaults(const ast::FunctionDefinition& definition, Cell& cell, const typed::Pattern& parameter);

  // slips (infer_slips.cpp); true where one was told, and nothing is left to say
  bool isKnown(const std::string& name);
  void reportNoRecord(const ast::RecordPattern& record, Span span);
  /// `g(x) = x + 1` without `function`.
  bool toldForgottenFunction(const ast::Pattern& pattern, const ast::Exp& value, bool local);
  /// `x -> x + 1` for `x => x + 1`.
  bool toldArrow(const ast::Binary& binary);
  /// A comment that begins with `#` or `--`.
  bool toldComment(const ast::Unary& unary, Span span);
  typed::ExpPtr inferSource(const ast::Exp& source, const std::vector<BoundName>& variables);
  static const char* adviceOnCondition(const ast::Exp& condition);
  /// What to write for a call of what is no function.
  std::string adviceOnCalled(const typed::Exp& function, const typed::Exp& argument, Span call);

  // messages
  std::string show(const Type* type) const;
  /// Where a message shows both types: one variable has one name in it.
  void nameTogether(std::string& message, const Type* left, const Type* right) const;
  void report(std::string id, Span span, std::string message, std::string hint = {},
              std::vector<Diagnostic::Note> notes = {});
  void reportConflict(std::string id, Span span, std::string message, const Conflict& conflict,
                      std::vector<Diagnostic::Note> notes = {}, std::string hint = {});
  void reportArgument(const typed::Exp& function, const typed::Exp& argument, Span span, std::string what,
                      const Conflict& conflict);
  void reportUnknown(const std::string& name, Span span);
  /// Notes where the variable is bound that an expression is; says whether it hides a function.
  bool noteBinding(const typed::Exp& exp, std::vector<Diagnostic::Note>& notes) const;
  void reportNoFunction(const typed::Exp& function, std::string message, std::string hint = {});
  void explainOperands(const typed::Exp& argument, const Type& expected,
                       std::vector<Diagnostic::Note>& notes) const;

  Environment& environment_;
  TypeStore& types_;
  bool fromLibrary_;
  bool timed_ = false;  ///< inside of `time(...)`
  std::vector<Diagnostic>& diagnostics_;
  std::unordered_map<std::string, std::vector<Entry>> scope_;
  std::vector<std::string> bound_;
  uint32_t formBegin_ = UINT32_MAX;  ///< of a form that is an expression
  bool inParameters_ = false;        ///< the pattern is that of a function that is defined
  bool callOverLineEnd_ = false;     ///< the form has a call that may be two forms, the first without its `;`
  std::unordered_set<std::string> unknown_;  ///< names that were reported: once for each form is enough
  std::vector<LambdaFrame> lambdas_;
  Cell* self_ = nullptr;  ///< the function being defined
  size_t parallelDepth_ = 0;
  bool serial_ = false;  ///< a serial function is called
};

}  // namespace kelpie
