#include "frontend/form_scanner.h"

#include <NeslParser.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "frontend/parser.h"
#include "frontend/text.h"

namespace kelpie {

using nesl_grammar::NeslParser;

namespace {

/// Commands other than `load`, which has an expression.
constexpr std::array kCommandWords = {"help", "exit", "lisp", "describe", "apropos", "get",      "set",
                                      "show", "edit", "dump", "shell",    "?",       "defconfig"};

/// A bracket, `let` or context that is open.
struct Level {
  enum Kind { Form, Parenthesis, Bracket, Brace, LetBindings, Context } kind;
  uint32_t token;  ///< where it was opened
  uint32_t base;   ///< nesting at its beginning
  uint32_t depth;  ///< nesting here: grows with every operator and drops to `base` at a separator
  uint32_t commas = 0;
  bool openTail = false;  ///< an `if`, `let` or `=>` here: commas that follow belong to its tail
  bool range = false;     ///< has a colon
};

class Scanner {
 public:
  Scanner(std::vector<Token>& tokens, std::string_view text, uint32_t file,
          std::vector<Diagnostic>& diagnostics)
      : tokens_(tokens), text_(text), file_(file), diagnostics_(diagnostics) {}

  std::vector<ScannedForm> run();
  /// After run(): the text ended inside a form.
  bool unfinished() const { return unfinished_; }

 private:
  uint32_t type(uint32_t i) const { return tokens_[std::min<size_t>(i, tokens_.size() - 1)].type; }
  Span span(uint32_t i) const { return {file_, tokens_[i].begin, tokens_[i].end}; }
  std::string spelling(uint32_t i) const {
    return std::string(text_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin));
  }
  /// Just after the last token before token i: where something is missing.
  Span after(uint32_t i) const;

  bool beginCommand();
  /// Scans from at_ to the end of one form and leaves at_ behind it; false when the form is wrong.
  bool scanForm(ScannedForm& form);
  bool beginsError();
  bool takeToken(ScannedForm& form);
  bool close(Level::Kind kind, ScannedForm& form);
  bool continuesContext() const;
  bool deeper(uint32_t levels);

  void fail(Diagnostic diagnostic) {
    diagnostic.severity = Severity::Error;
    diagnostics_.push_back(std::move(diagnostic));
  }
  /// Reports that the innermost open thing is not closed.
  void failUnclosed();
  /// Moves behind the terminator at which scanning can start again.
  void recover();
  bool closesOutside() const;
  bool continuesForm(uint32_t begin) const;
  std::optional<Span> firstOverLines(char quote) const;
  std::vector<Diagnostic::Note> notesOnLines(char quote) const;

  std::vector<Token>& tokens_;
  std::string_view text_;
  uint32_t file_;
  std::vector<Diagnostic>& diagnostics_;
  uint32_t at_ = 0;
  std::vector<Level> levels_;
  bool inContext_ = false;     ///< behind a `::` without parentheses
  bool afterOperand_ = false;  ///< the token before ends an operand
  bool unfinished_ = false;
};

bool isTerminator(uint32_t type) { return type == NeslParser::SEMICOLON || type == NeslParser::DOLLAR; }
bool beginsDefinition(uint32_t type) { return type == NeslParser::FUNCTION || type == NeslParser::DATATYPE; }

const char* opening(Level::Kind kind) {
  switch (kind) {
    case Level::Bracket:
      return "[";
    case Level::Brace:
      return "{";
    default:
      return "(";
  }
}
const char* closing(Level::Kind kind) {
  switch (kind) {
    case Level::Bracket:
      return "]";
    case Level::Brace:
      return "}";
    default:
      return ")";
  }
}

Span Scanner::after(uint32_t i) const {
  const uint32_t offset = i == 0 ? 0 : tokens_[i - 1].end;
  return {file_, offset, offset};
}

std::vector<ScannedForm> Scanner::run() {
  std::vector<ScannedForm> forms;
  while (type(at_) != kEndOfFile && diagnostics_.size() < kMaximalDiagnostics) {
    if (isTerminator(type(at_))) {  // an empty form
      ++at_;
      continue;
    }
    ScannedForm form{at_, at_, false, {}, {}};
    if (beginCommand()) {
      form.command = lowerCase(spelling(at_));
      if (type(at_ + 1) == NeslParser::AMPERSAND_EQUAL) form.command = "&=";
      while (!isTerminator(type(at_)) && type(at_) != kEndOfFile) ++at_;
      form.end = at_;
      if (type(at_) == kEndOfFile) {
        unfinished_ = true;
        fail({.id = "K0104",
              .span = after(at_),
              .message = "the last form is not ended",
              .hint = "end it with `;`",
              .notes = {}});
        break;
      }
      ++at_;
      forms.push_back(form);
      if (form.command == "exit") break;
      continue;
    }
    form.wrong = !scanForm(form);
    forms.push_back(std::move(form));
  }
  return forms;
}

bool Scanner::beginCommand() {
  if (type(at_) == NeslParser::QUESTION) return true;
  if (type(at_) != NeslParser::NAME) return false;
  if (type(at_ + 1) == NeslParser::AMPERSAND_EQUAL) return true;
  const std::string word = lowerCase(spelling(at_));
  if (word == "load") {
    tokens_[at_].type = NeslParser::LOAD;
    return false;
  }
  if (word == "get" && type(at_ + 1) == NeslParser::LPAREN) return false;
  return std::find(kCommandWords.begin(), kCommandWords.end(), word) != kCommandWords.end();
}

bool Scanner::scanForm(ScannedForm& form) {
  levels_.assign(1, Level{Level::Form, at_, 0, 0});
  inContext_ = afterOperand_ = false;
  for (;; ++at_) {
    const Level::Kind inside = levels_.back().kind;
    const uint32_t token = type(at_);
    if (token == kEndOfFile || token == NeslParser::DOLLAR ||
        (beginsDefinition(token) && at_ != form.begin)) {
      unfinished_ = token == kEndOfFile;
      if (levels_.size() > 1) {
        failUnclosed();
      } else if (token == NeslParser::DOLLAR) {
        form.end = at_++;
        return true;
      } else if (token == kEndOfFile) {
        fail({.id = "K0104",
              .span = after(at_),
              .message = "the last form is not ended",
              .hint = "end it with `;`",
              .notes = {}});
      } else {
        fail({.id = "K0104",
              .span = after(at_),
              .message = fmt::format("expected `;` before {}", describeTokenType(token)),
              .hint = "functions and datatypes are defined at top level; every form ends with `;` or `$`",
              .notes = {{span(at_), "a new form begins here"}}});
      }
      if (token == NeslParser::DOLLAR) ++at_;
      return false;
    }
    if (token == NeslParser::SEMICOLON && inside == Level::Form && !continuesContext()) {
      form.end = at_++;
      return true;
    }
    if (!takeToken(form)) {
      recover();
      return false;
    }
  }
}

/// In `:: a in any; b in number` without parentheses, `;` goes on when `NAME in` follows.
bool Scanner::continuesContext() const {
  return inContext_ && type(at_ + 1) == NeslParser::NAME && type(at_ + 2) == NeslParser::IN;
}

bool Scanner::deeper(uint32_t count) {
  Level& level = levels_.back();
  level.depth += count;
  if (level.depth <= kMaximalDepth) return true;
  fail({.id = "K0110",
        .span = span(at_),
        .message = fmt::format("this form nests more than {} levels deep here", kMaximalDepth),
        .hint = "brackets, operators in a row, `if`, `let` and `=>` each add a level; divide the expression "
                "by `let` bindings",
        .notes = {{span(levels_.front().token), "the form begins here"}}});
  return false;
}

bool Scanner::takeToken(ScannedForm& form) {
  if (beginsError()) return false;
  const bool operandBefore = afterOperand_;
  afterOperand_ = false;
  Level& level = levels_.back();
  const auto open = [&](Level::Kind kind) {
    if (!deeper(1)) return false;
    levels_.push_back({kind, at_, levels_.back().depth, levels_.back().depth});
    return true;
  };
  switch (type(at_)) {
    case NeslParser::LPAREN:
      return open(at_ > 0 && type(at_ - 1) == NeslParser::COLON_COLON ? Level::Context : Level::Parenthesis);
    case NeslParser::LBRACKET:
      return open(Level::Bracket);
    case NeslParser::LBRACE:
      return open(Level::Brace);
    case NeslParser::RPAREN:
      return close(Level::Parenthesis, form);
    case NeslParser::RBRACKET:
      return close(Level::Bracket, form);
    case NeslParser::RBRACE:
      return close(Level::Brace, form);

    case NeslParser::LET:
      level.openTail = true;
      return open(Level::LetBindings);
    case NeslParser::IN:
      if (level.kind != Level::LetBindings) return true;
      levels_.pop_back();
      return deeper(1);

    case NeslParser::SEMICOLON:
      if (level.kind == Level::Parenthesis || level.kind == Level::Bracket) {
        failUnclosed();
        return false;
      }
      if (level.kind == Level::LetBindings && type(at_ - 1) == NeslParser::SEMICOLON) {
        fail({.id = "K0101",
              .span = span(at_),
              .message = "expected a binding or `in` but found `;`",
              .hint = {},
              .notes = {}});
        return false;
      }
      level.depth = level.base;
      return true;
    case NeslParser::COMMA:
      ++level.commas;
      if (level.kind == Level::Bracket && !level.openTail) {
        level.depth = level.base;
        return true;
      }
      return deeper(1);

    case NeslParser::COLON_COLON:
      inContext_ = true;
      return true;
    case NeslParser::COLON:
      level.range = true;
      return true;
    case NeslParser::IF:
    case NeslParser::FAT_ARROW:
    case NeslParser::COLON_EQUAL:
      level.openTail = true;
      return deeper(1);

    case NeslParser::NAME:
    case NeslParser::INT:
    case NeslParser::FLOAT:
    case NeslParser::CHAR:
    case NeslParser::STRING:
      afterOperand_ = true;
      return operandBefore ? deeper(1) : true;  // juxtaposition is an operator
    case NeslParser::THEN:
    case NeslParser::ELSE:
    case NeslParser::EQUAL:
    case NeslParser::BAR:
      return true;
    default:
      return deeper(1);  // an operator
  }
}

bool Scanner::close(Level::Kind kind, ScannedForm& form) {
  const Level level = levels_.back();
  const bool matches = level.kind == kind || (kind == Level::Parenthesis && level.kind == Level::Context);
  if (!matches) {
    if (level.kind == Level::LetBindings) {
      failUnclosed();
    } else if (level.kind == Level::Form) {
      fail({.id = "K0103",
            .span = span(at_),
            .message =
                fmt::format("`{}` closes nothing: there is no `{}` before it", closing(kind), opening(kind)),
            .hint = {},
            .notes = {}});
    } else {
      fail({.id = "K0103",
            .span = span(at_),
            .message = fmt::format("expected `{}` but found `{}`", closing(level.kind), closing(kind)),
            .hint = {},
            .notes = {{span(level.token), fmt::format("this `{}` is open", opening(level.kind))}}});
    }
    return false;
  }
  levels_.pop_back();
  afterOperand_ = true;
  if (kind == Level::Bracket && level.commas + 1 >= kLongSequence && !level.openTail && !level.range)
    form.longSequences.push_back({level.token, at_});
  return deeper(1);
}

bool Scanner::beginsError() {
  const Span here = span(at_);
  switch (type(at_)) {
    case NeslParser::OPEN_COMMENT:
      unfinished_ = true;
      fail({.id = "K0105",
            .span = {file_, here.begin, here.begin + 1},
            .message = "this comment is not closed",
            .hint = "a comment goes from `%` to the next `%`; a remainder is rem(a, b) or mod(a, b)",
            .notes = notesOnLines('%')});
      return true;
    case NeslParser::OPEN_STRING:
      unfinished_ = true;
      fail({.id = "K0106",
            .span = {file_, here.begin, here.begin + 1},
            .message = "this string is not closed",
            .hint = "a string ends at the next `\"` that has no backslash before it",
            .notes = notesOnLines('"')});
      return true;
    case NeslParser::OPEN_CHAR:
      fail({.id = "K0106",
            .span = here,
            .message = "a backquote at the end of the file",
            .hint = {},
            .notes = {}});
      return true;
    case NeslParser::ILLEGAL: {
      const size_t length = characterLength(text_, here.begin);
      const auto byte = static_cast<unsigned char>(text_[here.begin]);
      const bool shown = length > 1 || (byte > 0x20 && byte < 0x7f);
      std::vector<Diagnostic::Note> notes = notesOnLines('"');
      if (notes.empty()) notes = notesOnLines('%');
      fail({.id = "K0107",
            .span = {file_, here.begin, here.begin + static_cast<uint32_t>(length)},
            .message =
                shown ? fmt::format("NESL does not use the character `{}`", text_.substr(here.begin, length))
                      : fmt::format("NESL does not use the byte {:#04x}", byte),
            .hint = length > 1 ? "outside strings and comments NESL text is ASCII"
                    : here.begin > 0 && text_.substr(here.begin - 1, 2) == ".."
                        ? "a range of integers is [start:end], without its end"
                    : text_[here.begin] == '.'
                        ? "the parts of a tuple are taken by patterns: let (x, y) = a in x"
                        : "",
            .notes = std::move(notes)});
      return true;
    }
    case NeslParser::BAD_NUMBER:
      fail({.id = "K0108",
            .span = here,
            .message = fmt::format("`{}` is neither a number nor a name", spelling(at_)),
            .hint =
                here.begin > 0 && text_[here.begin - 1] == '%'
                    ? "the `%` in front of it ends a comment, which has none inside"
                    : "a name begins with a letter; between a number and a name goes a blank or an operator",
            .notes = {}});
      return true;
    case NeslParser::EXCLAMATION:
    case NeslParser::QUOTE:
      fail({.id = "K0109",
            .span = here,
            .message = fmt::format("`{}` is an escape to Lisp, which Kelpie does not have", spelling(at_)),
            .hint = type(at_) == NeslParser::QUOTE       ? "a character is written with a backquote: `a"
                    : type(at_ + 1) == NeslParser::EQUAL ? "inequality is written /="
                                                         : "negation is written not(x)",
            .notes = {}});
      return true;
    default:
      return false;
  }
}

void Scanner::failUnclosed() {
  const Level& level = levels_.back();
  const std::string found = type(at_) == kEndOfFile ? std::string(describeTokenType(kEndOfFile))
                                                    : fmt::format("`{}`", lowerCase(spelling(at_)));
  const Span here = type(at_) == kEndOfFile ? after(at_) : span(at_);
  if (level.kind == Level::LetBindings)
    fail({.id = "K0116",
          .span = here,
          .message = fmt::format("expected `in` before {}", found),
          .hint = type(at_) == NeslParser::FUNCTION && type(at_ - 1) != NeslParser::SEMICOLON
                      ? "functions are defined at top level; as a value, one is X => RESULT"
                      : "let NAME = VALUE; ... in RESULT",
          .notes = {{span(level.token), "this `let` has no `in`"}}});
  else
    fail({.id = "K0102",
          .span = here,
          .message = fmt::format("expected `{}` before {}", closing(level.kind), found),
          .hint = {},
          .notes = {{span(level.token), fmt::format("this `{}` is not closed", opening(level.kind))}}});
}

/// Whether a bracket or `let` closes before the next terminator that is not opened behind at_.
bool Scanner::closesOutside() const {
  int open = 0, lets = 0;
  for (uint32_t i = at_; !isTerminator(type(i)) && type(i) != kEndOfFile && !beginsDefinition(type(i)); ++i) {
    const uint32_t token = type(i);
    if (token == NeslParser::LPAREN || token == NeslParser::LBRACKET || token == NeslParser::LBRACE) ++open;
    if (token == NeslParser::RPAREN || token == NeslParser::RBRACKET || token == NeslParser::RBRACE) --open;
    if (token == NeslParser::LET && open == 0) ++lets;
    if (token == NeslParser::IN && open == 0) --lets;
    if (open < 0 || lets < 0) return true;
  }
  return false;
}

void Scanner::recover() {
  const uint32_t begin = levels_.front().token;
  do {
    while (!isTerminator(type(at_)) && type(at_) != kEndOfFile && !beginsDefinition(type(at_))) ++at_;
    if (!isTerminator(type(at_))) return;
    // The `;` of [1; 2] ends no form, nor does one in front of a line that goes on with a `let`.
  } while (type(at_++) == NeslParser::SEMICOLON && (closesOutside() || continuesForm(begin)));
}

/// Whether the token at at_ begins a line, further to the right than the form does that `begin` begins.
bool Scanner::continuesForm(uint32_t begin) const {
  if (type(at_) == kEndOfFile) return false;
  const auto column = [&](uint32_t i) {
    const size_t line = text_.substr(0, tokens_[i].begin).rfind('\n');
    return line == std::string_view::npos ? tokens_[i].begin : tokens_[i].begin - line - 1;
  };
  const std::string_view between =
      text_.substr(tokens_[at_ - 1].end, tokens_[at_].begin - tokens_[at_ - 1].end);
  return between.find('\n') != std::string_view::npos && column(at_) > column(begin);
}

/// Of comments or strings, whichever `quote` encloses, the first that goes over the end of its line: where
/// what is text and what is not may have changed roles.
std::optional<Span> Scanner::firstOverLines(char quote) const {
  for (uint32_t i = 0; i <= at_ && i < tokens_.size(); ++i) {
    if (quote == '"') {
      if (tokens_[i].type == NeslParser::STRING &&
          text_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin).find('\n') !=
              std::string_view::npos)
        return Span{file_, tokens_[i].begin, tokens_[i].begin + 1};
      continue;
    }
    // Comments are between tokens.
    const uint32_t begin = i == 0 ? 0 : tokens_[i - 1].end;
    const std::string_view gap = text_.substr(begin, tokens_[i].begin - begin);
    for (size_t from = gap.find(quote); from != std::string_view::npos;) {
      const size_t end = gap.find(quote, from + 1);
      if (end == std::string_view::npos) break;
      if (gap.substr(from, end - from).find('\n') != std::string_view::npos) {
        const uint32_t place = begin + static_cast<uint32_t>(from);
        return Span{file_, place, place + 1};
      }
      from = gap.find(quote, end + 1);
    }
  }
  return std::nullopt;
}
std::vector<Diagnostic::Note> Scanner::notesOnLines(char quote) const {
  const std::optional<Span> place = firstOverLines(quote);
  if (!place) return {};
  return {{*place, fmt::format("this is the first {} that goes over the end of its line: is a `{}` missing "
                               "before it, or one too many?",
                               quote == '"' ? "string" : "comment", quote)}};
}

}  // namespace

std::vector<ScannedForm> scanForms(std::vector<Token>& tokens, std::string_view text, uint32_t file,
                                   std::vector<Diagnostic>& diagnostics, bool* unfinished) {
  Scanner scanner(tokens, text, file, diagnostics);
  std::vector<ScannedForm> forms = scanner.run();
  if (unfinished) *unfinished = scanner.unfinished();
  return forms;
}

}  // namespace kelpie
