// Parse tree to syntax tree, for one form. Reports what the grammar lets through: left sides that are no
// patterns, reserved names, empty argument lists, subscripts with several indices, misplaced named arguments.
#pragma once

#include <NeslParser.h>

#include <string_view>
#include <vector>

#include "frontend/ast.h"
#include "frontend/lexer.h"
#include "ir/diagnostic.h"

namespace kelpie {

/// A token as the generated parser sees it.
class ParserToken final : public antlr4::Token {
 public:
  ParserToken(kelpie::Token token, uint32_t index, ast::ExpPtr sequence = nullptr)
      : sequence(std::move(sequence)), token_(token), index_(index) {}

  ast::ExpPtr sequence;  ///< LONG_SEQUENCE: its tree

  std::string getText() const override { return {}; }
  size_t getType() const override { return token_.type == kEndOfFile ? antlr4::Token::EOF : token_.type; }
  size_t getLine() const override { return 0; }
  size_t getCharPositionInLine() const override { return 0; }
  size_t getChannel() const override { return 0; }
  size_t getTokenIndex() const override { return index_; }
  size_t getStartIndex() const override { return token_.begin; }
  size_t getStopIndex() const override { return token_.end - 1; }
  antlr4::TokenSource* getTokenSource() const override { return nullptr; }
  antlr4::CharStream* getInputStream() const override { return nullptr; }
  std::string toString() const override { return {}; }

 private:
  kelpie::Token token_;
  uint32_t index_;
};

class AstBuilder {
 public:
  using Parser = nesl_grammar::NeslParser;

  AstBuilder(std::string_view text, uint32_t file, std::vector<Diagnostic>& diagnostics)
      : text_(text), file_(file), diagnostics_(diagnostics) {}

  ast::Form form(Parser::FormContext* tree);
  std::vector<ast::ExpPtr> elements(Parser::ElementsContext* tree);
  /// INT, FLOAT, CHAR, STRING or NAME.
  ast::ExpPtr leaf(uint32_t type, Span span);

 private:
  enum class Place { Anywhere, ArgumentList };

  // ---- forms
  ast::Form formOf(Parser::FormContext* tree);
  ast::FunctionDefinition function(Parser::FunctionDefinitionContext* tree);
  void parameters(Parser::ParametersContext* tree, ast::FunctionDefinition& function,
                  std::vector<ast::TypeExpPtr>& types);
  ast::Form bindingOrExpression(Parser::BindingOrExpressionContext* tree);

  // ---- patterns
  ast::PatternPtr pattern(Parser::PatternContext* tree);
  ast::PatternPtr pattern(Parser::PrimaryPatternContext* tree);
  ast::PatternPtr patternOf(const ast::ExpPtr& exp);
  ast::PatternPtr namePattern(const std::string& name, Span span);
  void checkBindable(const std::string& name, Span span);

  // ---- types
  ast::TypeExpPtr type(Parser::TypeContext* tree);
  ast::TypeExpPtr type(Parser::FunTypeContext* tree);
  ast::TypeExpPtr type(Parser::PrimaryTypeContext* tree);
  std::vector<ast::ClassBinding> context(Parser::ClassContextContext* tree);

  // ---- expressions
  ast::ExpPtr expression(Parser::ExprContext* tree, Place place = Place::Anywhere);
  ast::ExpPtr expression(Parser::EContext* tree, Place place = Place::Anywhere);
  ast::ExpPtr call(Parser::CallContext* tree);
  ast::ExpPtr subscript(Parser::SubscriptContext* tree);
  ast::ExpPtr juxtaposition(Parser::JuxtapositionContext* tree);
  ast::ExpPtr juxtaposed(Parser::JuxtaposedContext* tree);
  ast::ExpPtr lambda(Parser::LambdaContext* tree);
  ast::ExpPtr namedArgument(Parser::NamedArgumentContext* tree, Place place);
  ast::ExpPtr primary(Parser::PrimaryContext* tree);
  ast::ExpPtr atom(Parser::AtomContext* tree);
  ast::ExpPtr bracketed(Parser::BracketedContext* tree);
  ast::ExpPtr sequence(Parser::SequenceContext* tree);
  ast::ExpPtr applyToEach(Parser::ApplyToEachContext* tree);
  ast::ExpPtr conditional(Parser::ConditionalContext* tree);
  ast::ExpPtr localBindings(Parser::LocalBindingsContext* tree);
  ast::ExpPtr apply(ast::ExpPtr function, ast::ExpPtr argument, Span span);
  ast::ExpPtr pairs(const std::vector<ast::ExpPtr>& parts);

  // ---- helpers
  Span span(antlr4::ParserRuleContext* tree) const;
  Span span(antlr4::Token* token) const;
  std::string name(antlr4::Token* token) const;  ///< in lower case
  std::string stringValue(Span span) const;
  void fail(const char* id, Span span, std::string message, std::string hint = {});
  /// The same of a reserved name, which is told once for each form: where it is bound, if it is.
  void failReserved(const std::string& name, bool bound, Span span, std::string message, std::string hint);
  void tellReservedOnce(size_t formBegin);

  std::string_view text_;
  uint32_t file_;
  std::vector<Diagnostic>& diagnostics_;
  struct ReservedName {
    std::string name;
    bool bound;
    Span span;
  };
  std::vector<ReservedName> reserved_;  ///< of this form
};

}  // namespace kelpie
