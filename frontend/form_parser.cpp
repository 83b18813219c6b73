#include "frontend/form_parser.h"

#include <NeslParser.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "frontend/ast_builder.h"
#include "frontend/syntax_mistake.h"
#include "frontend/text.h"

namespace kelpie {

using nesl_grammar::NeslParser;

namespace {

/// A token stream over tokens that are all there already; the last one is EOF.
class ParserTokens final : public antlr4::TokenStream {
 public:
  void assign(std::deque<ParserToken> tokens) {
    tokens_ = std::move(tokens);
    at_ = 0;
  }
  const std::deque<ParserToken>& tokens() const { return tokens_; }

  antlr4::Token* LT(ssize_t distance) override {
    if (distance < 0) return at_ >= static_cast<size_t>(-distance) ? &tokens_[at_ + distance] : nullptr;
    return &tokens_[std::min(at_ + distance - 1, tokens_.size() - 1)];
  }
  size_t LA(ssize_t distance) override { return LT(distance)->getType(); }
  antlr4::Token* get(size_t index) const override { return const_cast<ParserToken*>(&tokens_[index]); }
  void consume() override {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  ssize_t mark() override { return -1; }
  void release(ssize_t) override {}
  size_t index() override { return at_; }
  void seek(size_t index) override { at_ = std::min(index, tokens_.size() - 1); }
  size_t size() override { return tokens_.size(); }
  std::string getSourceName() const override { return {}; }
  antlr4::TokenSource* getTokenSource() const override { return nullptr; }
  std::string getText(const antlr4::misc::Interval&) override { return {}; }
  std::string getText() override { return {}; }
  std::string getText(antlr4::RuleContext*) override { return {}; }
  std::string getText(antlr4::Token*, antlr4::Token*) override { return {}; }

 private:
  std::deque<ParserToken> tokens_;  // nodes point to them: they stay where they are
  size_t at_ = 0;
};

/// Stops at the first mistake. The scanner has found the end of the form, so there is nothing to recover.
class StopAtMistake final : public antlr4::DefaultErrorStrategy {
 public:
  void reportError(antlr4::Parser* parser, const antlr4::RecognitionException& mistake) override {
    stop(parser, mistake.getOffendingToken());
  }
  antlr4::Token* recoverInline(antlr4::Parser* parser) override { stop(parser, parser->getCurrentToken()); }
  void recover(antlr4::Parser*, std::exception_ptr mistake) override { std::rethrow_exception(mistake); }
  void sync(antlr4::Parser*) override {}

 private:
  [[noreturn]] static void stop(antlr4::Parser* parser, const antlr4::Token* found) {
    throw SyntaxMistake{found->getStartIndex(), parser->getExpectedTokens(),
                        parser->getContext()->getRuleIndex()};
  }
};

/// A comma behind an `e` of an `expr` goes on with it, without a look at what follows. ANTLR would look, as
/// the comma could also belong to an `expr` further out (around an `if` or a `let` in it), and where there is
/// a mistake behind the comma all the same, it would blame the comma: that is where one of both ways ends
/// first.
class CommasGoOn final : public antlr4::atn::ParserATNSimulator {
 public:
  /// With the tables of `usual`, which the parser had till now.
  CommasGoOn(NeslParser& parser, ParserATNSimulator& usual)
      : ParserATNSimulator(&parser, parser.getATN(), usual.decisionToDFA, usual.getSharedContextCache()) {
    const auto& decisions = parser.getATN().decisionToState;
    for (size_t k = 0; k < decisions.size(); ++k) {
      if (decisions[k]->ruleIndex == NeslParser::RuleExpr &&
          decisions[k]->getStateType() == antlr4::atn::ATNState::STAR_LOOP_ENTRY)
        commas_ = k;
    }
  }

  size_t adaptivePredict(antlr4::TokenStream* input, size_t decision,
                         antlr4::ParserRuleContext* context) override {
    const bool comma = input->LA(1) == NeslParser::COMMA;
    if (decision == commas_ && !(comma && inParameter(context))) return comma ? 1 : 2;
    return ParserATNSimulator::adaptivePredict(input, decision, context);
  }

 private:
  /// Behind the default of a parameter, a comma is more likely to bring another parameter.
  static bool inParameter(const antlr4::RuleContext* context) {
    for (; context; context = dynamic_cast<const antlr4::RuleContext*>(context->parent))
      if (context->getRuleIndex() == NeslParser::RuleParameter) return true;
    return false;
  }

  size_t commas_ = SIZE_MAX;  ///< the decision
};

}  // namespace

class FormParser::Impl {
 public:
  Impl(const std::vector<Token>& tokens, std::string_view text, uint32_t file,
       std::vector<Diagnostic>& diagnostics)
      : tokens_(tokens),
        text_(text),
        file_(file),
        diagnostics_(diagnostics),
        builder_(text, file, diagnostics),
        parser_(&stream_) {
    parser_.removeErrorListeners();
    parser_.setErrorHandler(std::make_shared<StopAtMistake>());
    parser_.setInterpreter(new CommasGoOn(
        parser_, *parser_.getInterpreter<antlr4::atn::ParserATNSimulator>()));  // owned by the parser
    // Enough for this grammar: where one token does not decide, the first alternative (go on) is right.
    parser_.getInterpreter<antlr4::atn::ParserATNSimulator>()->setPredictionMode(
        antlr4::atn::PredictionMode::SLL);
  }

  std::optional<ast::Form> parse(const ScannedForm& form);

 private:
  ast::Form command(const ScannedForm& form) const;
  ast::ExpPtr longSequence(ScannedForm::LongSequence range);
  /// The comma between elements that ends the next few of them, or the closing bracket.
  uint32_t endOfElements(uint32_t begin, uint32_t close) const;
  /// The constant that begins at token `at`, which moves behind it; null if there is none.
  ast::ExpPtr constant(uint32_t& at, uint32_t end);
  void read(uint32_t begin, uint32_t end);
  template <typename Use>
  auto guarded(uint32_t begin, uint32_t end, Use use) -> std::optional<decltype(use())>;

  std::string spelling(uint32_t i) const {
    return std::string(text_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin));
  }
  Span span(uint32_t first, uint32_t last) const { return {file_, tokens_[first].begin, tokens_[last].end}; }

  const std::vector<Token>& tokens_;
  std::string_view text_;
  uint32_t file_;
  std::vector<Diagnostic>& diagnostics_;
  AstBuilder builder_;
  ParserTokens stream_;
  NeslParser parser_;
  uint32_t formBegin_ = 0;
  struct Finished {
    ast::ExpPtr tree;
    uint32_t close;
  };
  std::unordered_map<uint32_t, Finished> longSequences_;  ///< by opening bracket
};

/// Makes tokens begin .. end-1 the input of the generated parser, with EOF at the place of token `end`.
void FormParser::Impl::read(uint32_t begin, uint32_t end) {
  std::deque<ParserToken> tokens;
  for (uint32_t i = begin; i < end; ++i) {
    const auto index = static_cast<uint32_t>(tokens.size());
    if (const auto found = longSequences_.find(i); found != longSequences_.end()) {
      const uint32_t close = found->second.close;
      tokens.emplace_back(Token{NeslParser::LONG_SEQUENCE, tokens_[i].begin, tokens_[close].end}, index,
                          found->second.tree);
      i = close;
    } else {
      tokens.emplace_back(tokens_[i], index);
    }
  }
  tokens.emplace_back(Token{kEndOfFile, tokens_[end].begin, tokens_[end].end},
                      static_cast<uint32_t>(tokens.size()));
  stream_.assign(std::move(tokens));
  parser_.reset();
}

/// The result of `use` on the tokens, unless it or anything in it was reported.
template <typename Use>
auto FormParser::Impl::guarded(uint32_t begin, uint32_t end, Use use) -> std::optional<decltype(use())> {
  const size_t before = diagnostics_.size();
  read(begin, end);
  std::optional<decltype(use())> result;
  try {
    result = use();
  } catch (const SyntaxMistake& mistake) {
    diagnostics_.push_back(explain(mistake, tokens_, formBegin_, text_, file_));
  }
  if (diagnostics_.size() > before) return std::nullopt;
  return result;
}

std::optional<ast::Form> FormParser::Impl::parse(const ScannedForm& form) {
  if (!form.command.empty()) return command(form);
  formBegin_ = form.begin;
  longSequences_.clear();
  for (const ScannedForm::LongSequence& range : form.longSequences) {
    ast::ExpPtr tree = longSequence(range);
    if (!tree) return std::nullopt;
    longSequences_[range.open] = {std::move(tree), range.close};
  }
  return guarded(form.begin, form.end, [&] { return builder_.form(parser_.form()); });
}

ast::Form FormParser::Impl::command(const ScannedForm& form) const {
  ast::Command command{form.command, {}, nullptr};
  for (uint32_t i = form.begin + 1; i < form.end; ++i)
    command.arguments.push_back(tokens_[i].type == NeslParser::STRING ? spelling(i) : lowerCase(spelling(i)));
  return {std::move(command), span(form.begin, form.end - 1)};
}

ast::ExpPtr FormParser::Impl::longSequence(ScannedForm::LongSequence range) {
  ast::SequenceLiteral literal;
  for (uint32_t begin = range.open + 1;;) {
    uint32_t end = begin;
    ast::ExpPtr element = constant(end, range.close);
    if (element && (end == range.close || tokens_[end].type == NeslParser::COMMA)) {
      literal.elements.push_back(std::move(element));
    } else {
      end = endOfElements(begin, range.close);
      const auto elements = guarded(begin, end, [&] { return builder_.elements(parser_.elements()); });
      if (!elements) return nullptr;
      literal.elements.insert(literal.elements.end(), elements->begin(), elements->end());
    }
    if (end == range.close) break;
    begin = end + 1;
  }
  return std::make_shared<const ast::Exp>(ast::Exp{std::move(literal), span(range.open, range.close)});
}

uint32_t FormParser::Impl::endOfElements(uint32_t begin, uint32_t close) const {
  constexpr uint32_t kTokensAtOnce = 4096;
  int open = 0;
  for (uint32_t i = begin; i < close; ++i) {
    if (const auto found = longSequences_.find(i); found != longSequences_.end()) {
      i = found->second.close;
      continue;
    }
    const uint32_t type = tokens_[i].type;
    if (type == NeslParser::LPAREN || type == NeslParser::LBRACKET || type == NeslParser::LBRACE) ++open;
    if (type == NeslParser::RPAREN || type == NeslParser::RBRACKET || type == NeslParser::RBRACE) --open;
    if (type == NeslParser::COMMA && open == 0 && i - begin >= kTokensAtOnce) return i;
  }
  return close;
}

ast::ExpPtr FormParser::Impl::constant(uint32_t& at, uint32_t end) {
  if (at >= end) return nullptr;
  if (const auto found = longSequences_.find(at); found != longSequences_.end()) {
    at = found->second.close + 1;
    return found->second.tree;
  }
  const uint32_t begin = at;
  const uint32_t type = tokens_[at].type;
  switch (type) {
    case NeslParser::INT:
    case NeslParser::FLOAT:
    case NeslParser::CHAR:
    case NeslParser::STRING:
      ++at;
      return builder_.leaf(type, span(begin, begin));
    case NeslParser::MINUS: {
      if (at + 1 >= end ||
          (tokens_[at + 1].type != NeslParser::INT && tokens_[at + 1].type != NeslParser::FLOAT))
        return nullptr;
      at += 2;
      ast::ExpPtr number = builder_.leaf(tokens_[begin + 1].type, span(begin + 1, begin + 1));
      return std::make_shared<const ast::Exp>(
          ast::Exp{ast::Unary{"-", std::move(number), span(begin, begin)}, span(begin, begin + 1)});
    }
    case NeslParser::LPAREN:
    case NeslParser::LBRACKET:
      break;
    default:
      return nullptr;
  }
  const bool tuple = type == NeslParser::LPAREN;
  const uint32_t closing = tuple ? NeslParser::RPAREN : NeslParser::RBRACKET;
  std::vector<ast::ExpPtr> parts;
  do {
    ++at;
    ast::ExpPtr part = constant(at, end);
    if (!part || at >= end) return nullptr;
    parts.push_back(std::move(part));
  } while (tokens_[at].type == NeslParser::COMMA);
  if (tokens_[at].type != closing) return nullptr;
  const uint32_t last = at++;
  if (!tuple)
    return std::make_shared<const ast::Exp>(
        ast::Exp{ast::SequenceLiteral{std::move(parts)}, span(begin, last)});
  ast::ExpPtr pair = parts.back();
  for (size_t i = parts.size() - 1; i-- > 0;) {
    const Span where{file_, parts[i]->span.begin, pair->span.end};
    pair = std::make_shared<const ast::Exp>(ast::Exp{ast::Pair{parts[i], pair}, where});
  }
  return pair;
}

FormParser::FormParser(const std::vector<Token>& tokens, std::string_view text, uint32_t file,
                       std::vector<Diagnostic>& diagnostics)
    : impl_(std::make_unique<Impl>(tokens, text, file, diagnostics)) {}
FormParser::~FormParser() = default;

std::optional<ast::Form> FormParser::parse(const ScannedForm& form) { return impl_->parse(form); }

}  // namespace kelpie
