#include "fusion/lcu_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "LcuLexer.h"
#include "fusion/lcu_expr_reader.h"
#include "ir/literal.h"

namespace kelpie::lcu {
namespace {

using antlr4::tree::ParseTree;

/// Collects what the lexer and the parser complain about.
class SyntaxErrors : public antlr4::BaseErrorListener {
 public:
  void syntaxError(antlr4::Recognizer* recognizer, antlr4::Token* token, size_t line, size_t column,
                   const std::string& message, std::exception_ptr) override {
    Diagnostic diagnostic{.id = "K0901", .span = {}, .message = message, .hint = "", .notes = {}};
    if (token) {
      diagnostic.span.begin = static_cast<uint32_t>(token->getStartIndex());
      diagnostic.span.end = std::max(diagnostic.span.begin, static_cast<uint32_t>(token->getStopIndex() + 1));
    } else if (auto* lexer = dynamic_cast<antlr4::Lexer*>(recognizer)) {
      diagnostic.span.begin = static_cast<uint32_t>(lexer->tokenStartCharIndex);
      diagnostic.span.end = diagnostic.span.begin + 1;
    } else {
      diagnostic.message += fmt::format(" (line {}, column {})", line, column + 1);
    }
    diagnostics.push_back(std::move(diagnostic));
  }
  std::vector<Diagnostic> diagnostics;
};

/// The binders below `root`, in the order of the text.
std::vector<LcuParser::BinderContext*> bindersBelow(ParseTree* root) {
  std::vector<LcuParser::BinderContext*> found;
  std::vector<ParseTree*> work = {root};
  while (!work.empty()) {
    ParseTree* tree = work.back();
    work.pop_back();
    if (auto* binder = dynamic_cast<LcuParser::BinderContext*>(tree)) found.push_back(binder);
    work.insert(work.end(), tree->children.rbegin(), tree->children.rend());
  }
  return found;
}

Span span(LcuParser::SpanContext* s) {
  if (!s) return {};
  const auto number = [&](size_t k) { return static_cast<uint32_t>(integer(s->INTEGER(k), s)); };
  return {number(0), number(1), number(2)};
}

CoreType coreType(LcuParser::CoreTypeContext* type) {
  if (type->name()) return scalarType(type->name());
  Row elements;
  for (auto* element : type->coreType()) elements.push_back(coreType(element));
  return CoreType::sequence(std::move(elements));
}

std::vector<CoreType> coreTypes(LcuParser::CoreTypesContext* types) {
  std::vector<CoreType> result;
  for (auto* type : types->coreType()) result.push_back(coreType(type));
  return result;
}

class Reader {
 public:
  Program read(LcuParser::ProgramContext* text) {
    for (auto* site : text->site()) readSite(site);
    for (auto* global : text->global()) {
      for (auto* binder : global->binders()->binder()) exprs_.declare(binder, true);
    }
    for (auto* global : text->global()) {
      const auto number = static_cast<uint32_t>(integer(global->INTEGER(), global));
      program_.globals.push_back({number, coreTypes(global->coreTypes()), binders(global->binders())});
    }
    // Calls may name a function that comes later.
    for (auto* function : text->function()) {
      const std::string name = function->name()->getText();
      if (!functions_.emplace(name, static_cast<uint32_t>(functions_.size())).second)
        fail(function->name(), fmt::format("function `{}` is defined twice", name));
    }
    for (auto* function : text->function()) {
      enter(function);
      HostFunction result{function->name()->getText(), binders(function->binders()),
                          block(function->block())};
      program_.functions.push_back(std::move(result));
    }
    if (auto* entry = text->entry()) {
      enter(entry);
      program_.entry = {wordText(entry->word()), {}, block(entry->block())};
      program_.resultTypes = coreTypes(entry->coreTypes());
    }
    return std::move(program_);
  }

 private:
  void readSite(LcuParser::SiteContext* site) {
    const SiteId id = program_.newSite({span(site->span()), stringText(site->STRING(), site)});
    if (site->SITE()->getText() != fmt::format("@{}", id))
      fail(site, fmt::format("error site @{} is due here", id));
  }

  void enter(antlr4::ParserRuleContext* function) {
    exprs_.leaveFunction();
    for (auto* binder : bindersBelow(function)) exprs_.declare(binder, false);
  }

  std::vector<VarId> binders(LcuParser::BindersContext* list) {
    std::vector<VarId> vars;
    if (!list) return vars;
    for (auto* binder : list->binder()) {
      exprs_.readExtent(binder);
      vars.push_back(exprs_.declared(binder));
    }
    return vars;
  }

  std::vector<VarId> variables(const std::vector<LcuParser::NameContext*>& names) {
    std::vector<VarId> vars;
    vars.reserve(names.size());
    for (auto* name : names) vars.push_back(exprs_.variable(name));
    return vars;
  }
  std::vector<VarId> variables(LcuParser::NamesContext* names) {
    return names ? variables(names->name()) : std::vector<VarId>();
  }
  std::vector<VarId> variables(LcuParser::ResultContext* result) {
    return result ? variables(result->name()) : std::vector<VarId>();
  }

  // ---- host level
  // -------------------------------------------------------------------------------------------

  Block block(LcuParser::BlockContext* text) {
    Block result;
    for (auto* stmt : text->statement()) result.stmts.push_back(statement(stmt));
    result.results = variables(text->result());
    return result;
  }
  std::shared_ptr<Block> sharedBlock(LcuParser::BlockContext* text) {
    return std::make_shared<Block>(block(text));
  }

  Stmt statement(LcuParser::StatementContext* stmt) {
    if (auto* kernel = dynamic_cast<LcuParser::KernelContext*>(stmt)) {
      Kernel made{wordText(kernel->word()), {}, {}};
      for (auto* binding : kernel->binding()) made.bindings.push_back(soacBinding(binding));
      made.returns = variables(kernel->result());
      const std::vector<VarId> results = made.returns;
      return {results, Launch{std::move(made)}, lineSpan(kernel->line())};
    }
    if (auto* let = dynamic_cast<LcuParser::HostLetContext*>(stmt)) {
      std::vector<VarId> results = binders(let->binders());
      return {std::move(results), HostLet{exprs_.values(let->values())}, lineSpan(let->line())};
    }
    auto& host = dynamic_cast<LcuParser::HostStatementContext&>(*stmt);
    std::vector<VarId> results = binders(host.binders());
    auto node = operation(host.operation(), results);
    return {std::move(results), std::move(node), lineSpan(host.line())};
  }

  static Span lineSpan(LcuParser::LineContext* line) { return line ? span(line->span()) : Span(); }

  decltype(Stmt::node) operation(LcuParser::OperationContext* text, const std::vector<VarId>& results) {
    if (auto* call = dynamic_cast<LcuParser::CallContext*>(text)) {
      const auto callee = functions_.find(call->name()->getText());
      if (callee == functions_.end())
        fail(call->name(), fmt::format("unknown function `{}`", call->name()->getText()));
      return CallFunction{callee->second, variables(call->names())};
    }
    if (auto* conditional = dynamic_cast<LcuParser::HostIfContext*>(text)) {
      ExprRef condition = exprs_.value(conditional->value());
      auto thenBlock = sharedBlock(conditional->block(0));
      return HostIf{condition, std::move(thenBlock), sharedBlock(conditional->block(1))};
    }
    if (auto* loop = dynamic_cast<LcuParser::HostLoopContext*>(text)) {
      HostLoop made;
      for (auto* param : loop->loopParam()) {
        exprs_.readExtent(param->binder());
        made.params.push_back(exprs_.declared(param->binder()));
        made.initial.push_back(exprs_.variable(param->name()));
      }
      made.condition = sharedBlock(loop->block(0));
      made.body = sharedBlock(loop->block(1));
      return made;
    }
    if (auto* constant = dynamic_cast<LcuParser::ConstantContext*>(text)) {
      const auto columns = constant->column();
      if (columns.size() != results.size())
        fail(constant, fmt::format("{} columns for {} variables", columns.size(), results.size()));
      ArrayConstant made;
      for (size_t k = 0; k < columns.size(); ++k)
        made.columns.push_back(column(columns[k], program_.vars[results[k]].type));
      return made;
    }
    if (auto* join = dynamic_cast<LcuParser::JoinContext*>(text)) return Join{variables(join->names())};
    if (auto* grade = dynamic_cast<LcuParser::GradeContext*>(text)) {
      const VarId keys = exprs_.variable(grade->name());
      return Grade{keys, space(grade->space()), grade->order != nullptr, grade->sorted != nullptr,
                   grade->ranks != nullptr};
    }
    auto& service = dynamic_cast<LcuParser::ServiceContext&>(*text);
    return Service{wordText(service.word()), coreTypes(service.coreTypes(0)), variables(service.names()),
                   coreTypes(service.coreTypes(1)), exprs_.site(service.SITE(), &service)};
  }

  static Column column(LcuParser::ColumnContext* text, ScalarType type) {
    std::vector<Scalar> values;
    if (text->STRING()) {
      for (const char c : stringText(text->STRING(), text))
        values.push_back(Scalar::ofChar(static_cast<unsigned char>(c)));
    }
    for (auto* element : text->literal()) values.push_back(literal(element));
    for (const Scalar& value : values)
      if (value.type != type)
        fail(text, fmt::format("an element of {} in an array of {}", toString(value.type), toString(type)));
    return scalarColumn(type, values);
  }

  // ---- kernels
  // ----------------------------------------------------------------------------------------------

  Space space(LcuParser::SpaceContext* text) {
    Space made;
    if (auto* flat = dynamic_cast<LcuParser::FlatContext*>(text)) {
      made.extent = exprs_.value(flat->value());
    } else if (auto* offsets = dynamic_cast<LcuParser::OffsetsContext*>(text)) {
      made.kind = SpaceKind::Offsets;
      made.offsets = exprs_.variable(offsets->name());
      made.segments = exprs_.value(offsets->value(0));
      made.extent = exprs_.value(offsets->value(1));
    } else {
      auto& regular = dynamic_cast<LcuParser::RegularContext&>(*text);
      made.kind = SpaceKind::Regular;
      made.segments = exprs_.value(regular.value(0));
      made.length = exprs_.value(regular.value(1));
      made.extent = exprs_.value(regular.value(2));
    }
    return made;
  }

  Soac soacBinding(LcuParser::BindingContext* text) {
    Soac made;
    made.results = binders(text->binders());
    if (auto* map = dynamic_cast<LcuParser::MapContext*>(text->soac()))
      start(made, SoacKind::Map, map->space(), map->thunk(), map->effects());
    else if (auto* permute = dynamic_cast<LcuParser::PermuteContext*>(text->soac()))
      readPermute(made, permute);
    else if (auto* reduce = dynamic_cast<LcuParser::ReduceContext*>(text->soac()))
      readReduce(made, SoacKind::Reduce, reduce);
    else if (auto* scan = dynamic_cast<LcuParser::ScanContext*>(text->soac())) {
      readReduce(made, SoacKind::Scan, scan);
      made.inclusive = scan->inclusive;
      made.backward = scan->backward;
      made.withTotal = scan->total;
    } else if (auto* filter = dynamic_cast<LcuParser::FilterContext*>(text->soac()))
      readFilter(made, SoacKind::Filter, filter);
    else if (auto* partition = dynamic_cast<LcuParser::PartitionContext*>(text->soac()))
      readFilter(made, SoacKind::Partition, partition);
    else {
      auto& once = dynamic_cast<LcuParser::OnceContext&>(*text->soac());
      start(made, SoacKind::Once, nullptr, once.thunk(), once.effects());
    }
    if (auto* line = text->line()) {
      made.span = span(line->span());
      if (line->STRING()) made.origin = stringText(line->STRING(), line);
    }
    return made;
  }

  /// The parts that all kinds have.
  void start(Soac& made, SoacKind kind, LcuParser::SpaceContext* over, LcuParser::ThunkContext* pull,
             LcuParser::EffectsContext* effects) {
    made.kind = kind;
    if (over) made.space = space(over);
    made.pull = exprs_.thunk(pull, params(made));
    if (effects) made.effects = exprs_.thunk(effects->thunk(), params(made));
  }

  static std::vector<ScalarType> params(const Soac& soac) {
    if (soac.kind == SoacKind::Once) return {};
    return std::vector<ScalarType>(soac.space.segmented() ? 3 : 1, kIndex);
  }

  ExprRef single(const Soac& made, LcuParser::ThunkContext* thunk) {
    const auto values = exprs_.thunk(thunk, params(made));
    if (values.size() != 1) fail(thunk, "one value is due here");
    return values[0];
  }

  void readPermute(Soac& made, LcuParser::PermuteContext* text) {
    start(made, SoacKind::Permute, text->space(), text->thunk(0), text->effects());
    made.destination = single(made, text->thunk(1));
    if (text->thunk(2)) made.where = single(made, text->thunk(2));
    made.target = exprs_.value(text->value());
    if (text->literals()) made.fill = literals(text->literals());
    made.onto = variables(text->names());
    made.unique = text->unique;
    made.agreeing = text->agreeing;
  }

  template <typename Text>  // a reduction or a scan
  void readReduce(Soac& made, SoacKind kind, Text* text) {
    start(made, kind, text->space(), text->thunk(0), text->effects());
    made.combine.identity = literals(text->literals());
    std::vector<ScalarType> types;
    for (int side = 0; side < 2; ++side)
      for (const Scalar& identity : made.combine.identity) types.push_back(identity.type);
    made.combine.result = exprs_.thunk(text->thunk(1), types);
  }

  template <typename Text>  // a filter or a partition
  void readFilter(Soac& made, SoacKind kind, Text* text) {
    start(made, kind, text->space(), text->thunk(0), text->effects());
    made.where = single(made, text->thunk(1));
  }

  Program program_;
  ExprReader exprs_{program_};
  std::unordered_map<std::string, uint32_t> functions_;
};

ReadResult failed(std::vector<Diagnostic> diagnostics, uint32_t file) {
  for (Diagnostic& diagnostic : diagnostics) diagnostic.span.file = file;
  return diagnostics;
}

}  // namespace

ReadResult readProgram(std::string_view text, uint32_t file) {
  // The printer writes ASCII only (other bytes of strings are escaped), so positions in the text are bytes.
  const auto foreign =
      std::find_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) > 127; });
  if (foreign != text.end()) {
    const auto at = static_cast<uint32_t>(foreign - text.begin());
    return failed({{.id = "K0901",
                    .span = {file, at, at + 1},
                    .message = "a character that is not ASCII",
                    .hint = "",
                    .notes = {}}},
                  file);
  }
  SyntaxErrors errors;
  antlr4::ANTLRInputStream input{std::string(text)};
  lcu_grammar::LcuLexer lexer(&input);
  antlr4::CommonTokenStream tokens(&lexer);
  LcuParser parser(&tokens);
  lexer.removeErrorListeners();
  parser.removeErrorListeners();
  lexer.addErrorListener(&errors);
  parser.addErrorListener(&errors);
  auto* tree = parser.program();
  if (!errors.diagnostics.empty()) return failed(std::move(errors.diagnostics), file);
  try {
    return Reader().read(tree);
  } catch (const ReadFailure& failure) {
    return failed({failure.diagnostic}, file);
  }
}

std::string describe(const Diagnostic& diagnostic, std::string_view text) {
  const std::string_view before = text.substr(0, diagnostic.span.begin);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t lineStart = before.rfind('\n') + 1;  // npos + 1 = 0
  return fmt::format("{}:{}: {}", line, before.size() - lineStart + 1, diagnostic.message);
}

}  // namespace kelpie::lcu
