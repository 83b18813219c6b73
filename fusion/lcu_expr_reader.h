// Part of the reader of λcu text: names, types and expressions. Not for use elsewhere.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "LcuParser.h"
#include "ir/diagnostic.h"
#include "ir/lcu.h"

namespace kelpie::lcu {

using lcu_grammar::LcuParser;

/// Thrown inside the reader only; readProgram returns it as a value.
struct ReadFailure {
  Diagnostic diagnostic;
};
[[noreturn]] void fail(const antlr4::ParserRuleContext* at, const std::string& message);

ScalarType scalarType(LcuParser::NameContext* name);
std::string wordText(LcuParser::WordContext* word);
std::string stringText(antlr4::tree::TerminalNode* token, const antlr4::ParserRuleContext* at);
int64_t integer(antlr4::tree::TerminalNode* token, const antlr4::ParserRuleContext* at);
Scalar literal(LcuParser::LiteralContext* literal);
std::vector<Scalar> literals(LcuParser::LiteralsContext* literals);

class ExprReader {
 public:
  explicit ExprReader(Program& program) : program_(program), arena_(*program.arena) {}

  /// Makes the variable of a binder; its extent is read by `extentOf` when all names of the function are
  /// known.
  void declare(LcuParser::BinderContext* binder, bool global);
  void readExtent(LcuParser::BinderContext* binder);
  void leaveFunction() { locals_.clear(); }

  VarId declared(LcuParser::BinderContext* binder) const { return binders_.at(binder); }
  VarId variable(LcuParser::NameContext* name) const;
  SiteId site(antlr4::tree::TerminalNode* token, const antlr4::ParserRuleContext* at) const;

  ExprRef value(LcuParser::ValueContext* value);
  std::vector<ExprRef> values(LcuParser::ValuesContext* values);
  /// `params` are the types of as many Params as the thunk may name.
  std::vector<ExprRef> thunk(LcuParser::ThunkContext* thunk, const std::vector<ScalarType>& params);

 private:
  /// Names of a thunk; those of the innermost let hide the others.
  class Frame;
  void bindName(LcuParser::NameContext* name, ExprRef value);
  void lets(LcuParser::LetsContext* lets);
  std::vector<ExprRef> loop(LcuParser::LoopContext* loop);
  std::vector<ExprRef> recursion(LcuParser::RecursionContext* recursion);
  std::vector<ExprRef> call(LcuParser::LetCallContext* call);
  ExprRef expression(LcuParser::ExpressionContext* expression);
  std::vector<ExprRef> expressions(const std::vector<LcuParser::ExpressionContext*>& es);
  ExprRef condition(LcuParser::ExpressionContext* expression);
  ExprRef index(LcuParser::ValueContext* value);
  ExprRef operation(const antlr4::ParserRuleContext* at, ScalarOp op, const std::vector<ExprRef>& operands);
  ExprRef application(LcuParser::ApplicationContext* application);
  ExprRef check(LcuParser::CheckContext* check);
  ExprRef variableValue(LcuParser::VariableContext* variable);
  VarId array(LcuParser::NameContext* name) const;

  Program& program_;
  ExprArena& arena_;
  std::unordered_map<std::string, VarId> globals_, locals_;
  std::unordered_map<const LcuParser::BinderContext*, VarId> binders_;
  /// Of the recursions around: what a call needs to know.
  struct Recursion {
    uint32_t id;
    std::vector<ScalarType> arguments, results;
  };
  std::unordered_map<std::string, Recursion> recursions_;
  std::unordered_map<std::string, ExprRef> names_;
  std::vector<std::pair<std::string, ExprRef>> hidden_;  ///< what the names were before, for leaving a let
};

}  // namespace kelpie::lcu
