#include "frontend/form_scanner.h"

#include <NeslParser.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "frontend/lexical_mistake.h"
#include "frontend/parser.h"
#include "frontend/text.h"
#include "frontend/token_layout.h"

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
  bool filter = false;    ///< has a bar
  /// The first token that can be no part of these bindings, if they are not ended after all; 0: none.
  uint32_t misfit = 0;
};

class Scanner {
 public:
  Scanner(std::vector<Token>& tokens, std::string_view text, uint32_t file)
      : tokens_(tokens), text_(text), file_(file) {}

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
  void scanCommand(ScannedForm& form);
  /// Scans from at_ to the end of one form and leaves at_ behind it.
  void scanForm(ScannedForm& form);
  bool takeToken(ScannedForm& form);
  bool close(Level::Kind kind, ScannedForm& form);
  bool continuesContext() const;
  bool deeper(uint32_t levels);

  void fail(Diagnostic diagnostic) {
    diagnostic.severity = Severity::Error;
    mistake_ = std::move(diagnostic);
    mistakeAt_ = at_;
  }
  void failUnended();
  /// Reports that the innermost open thing is not closed.
  void failUnclosed();
  void failAtMisfit(size_t k);
  std::string adviceOnLet(uint32_t let) const;
  std::string formFrom(uint32_t i) const;
  bool mayBeBinding() const;
  uint32_t endOfPattern(uint32_t i) const;
  /// Moves behind the terminator at which scanning can start again.
  void recover();
  bool beginsFormAtMisfit() const;
  bool closesOutside() const;
  bool closesInLine(Level::Kind kind) const;

  std::vector<Token>& tokens_;
  std::string_view text_;
  uint32_t file_;
  std::optional<Diagnostic> mistake_;  ///< of the form that is scanned
  uint32_t mistakeAt_ = 0;             ///< the token at which it shows
  bool atMisfit_ = false;              ///< it is a word that an open `let` or `{` cannot go on with
  uint32_t at_ = 0;
  std::vector<Level> levels_;
  bool inContext_ = false;     ///< behind a `::` without parentheses
  bool afterOperand_ = false;  ///< the token before ends an operand
  bool unfinished_ = false;
};

bool isTerminator(uint32_t type) { return type == NeslParser::SEMICOLON || type == NeslParser::DOLLAR; }
bool isOpening(uint32_t type) {
  return type == NeslParser::LPAREN || type == NeslParser::LBRACKET || type == NeslParser::LBRACE;
}
bool isClosing(uint32_t type) {
  return type == NeslParser::RPAREN || type == NeslParser::RBRACKET || type == NeslParser::RBRACE;
}
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
  size_t mistakes = 0;
  while (type(at_) != kEndOfFile && mistakes < kMaximalDiagnostics) {
    if (isTerminator(type(at_))) {  // an empty form
      ++at_;
      continue;
    }
    ScannedForm& form = forms.emplace_back();
    form.begin = at_;
    mistake_.reset();
    if (beginCommand()) {
      scanCommand(form);
    } else {
      scanForm(form);
    }
    form.next = at_;
    form.mistake = std::move(mistake_);
    if (form.mistake) ++mistakes;
    if (form.command == "exit") break;
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

/// Takes everything up to the terminator as words.
void Scanner::scanCommand(ScannedForm& form) {
  form.command = lowerCase(spelling(at_));
  if (type(at_ + 1) == NeslParser::AMPERSAND_EQUAL) form.command = "&=";
  while (!isTerminator(type(at_)) && type(at_) != kEndOfFile) ++at_;
  form.end = at_;
  if (type(at_) == kEndOfFile) {
    failUnended();
  } else {
    ++at_;
  }
}

/// A form reaches the end of the text or the beginning of a definition.
void Scanner::failUnended() {
  const uint32_t token = type(at_);
  unfinished_ = token == kEndOfFile;
  if (unfinished_) {
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
}

void Scanner::scanForm(ScannedForm& form) {
  levels_.assign(1, Level{Level::Form, at_, 0, 0});
  inContext_ = afterOperand_ = atMisfit_ = false;
  for (;; ++at_) {
    const uint32_t token = type(at_);
    const bool ends = token == kEndOfFile || token == NeslParser::DOLLAR ||
                      (beginsDefinition(token) && at_ != form.begin) ||
                      (token == NeslParser::SEMICOLON && levels_.size() == 1 && !continuesContext());
    if (ends && levels_.size() == 1) {
      form.end = at_;
      if (isTerminator(token))
        ++at_;
      else
        failUnended();
      return;
    }
    if (ends) {
      unfinished_ = token == kEndOfFile;
      failUnclosed();
    }
    if (ends || !takeToken(form)) {
      form.end = mistakeAt_;
      if (!atMisfit_ || !beginsFormAtMisfit()) recover();
      return;
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
        .hint = "brackets, operators in a row, `if`, `let` (two each) and `=>` add levels; divide the expression "
                "by `let` bindings",
        .notes = {{span(levels_.front().token), "the form begins here"}}});
  return false;
}

bool Scanner::takeToken(ScannedForm& form) {
  if (std::optional<Diagnostic> mistake = lexicalMistake(tokens_, at_, text_, file_)) {
    unfinished_ |= endsInside(type(at_));
    fail(std::move(*mistake));
    return false;
  }
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
      if (level.kind == Level::LetBindings && level.misfit == 0 && operandBefore &&
          beginsLine(tokens_, text_, at_))
        level.misfit = at_;
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
      if (level.misfit == 0 && !mayBeBinding()) level.misfit = level.kind == Level::Brace ? at_ : at_ + 1;
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
      return true;
    case NeslParser::BAR:
      level.filter = true;
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

/// Whether what stands behind the `;` at at_ may belong to the bindings that are open; their end may still
/// come.
bool Scanner::mayBeBinding() const {
  const Level& level = levels_.back();
  const uint32_t first = at_ + 1, next = type(first);
  if (next == kEndOfFile || isTerminator(next) || beginsDefinition(next) || isClosing(next)) return true;
  const bool inBraces = level.kind == Level::Brace;
  if (next == NeslParser::IN) return !inBraces;
  if (inBraces && level.filter) return false;
  const uint32_t end = endOfPattern(first), behind = type(end);
  if (behind == kEndOfFile) return true;
  if (end == first) return false;
  if (!inBraces) return behind == NeslParser::EQUAL;
  return behind == NeslParser::IN || isTerminator(behind) || behind == NeslParser::BAR || isClosing(behind);
}

/// Where the pattern ends that begins at token i; i if there is none. The text may end in it.
uint32_t Scanner::endOfPattern(uint32_t i) const {
  const auto endOfParentheses = [&](uint32_t k) {
    for (int open = 0;; ++k) {
      if (type(k) == kEndOfFile) return k;
      if (type(k) == NeslParser::LPAREN)
        ++open;
      else if (type(k) == NeslParser::RPAREN)
        --open;
      else if (type(k) != NeslParser::NAME && type(k) != NeslParser::COMMA)
        return i;
      if (open == 0) return k + 1;
    }
  };
  for (uint32_t k = i;; ++k) {
    const bool named = type(k) == NeslParser::NAME;
    if (named) ++k;
    if (named && type(k) == NeslParser::NAME) {
      ++k;
    } else if (type(k) == NeslParser::LPAREN) {
      k = endOfParentheses(k);
      if (k == i) return i;
    } else if (!named) {
      return type(k) == kEndOfFile ? k : i;
    }
    if (type(k) != NeslParser::COMMA) return k;
  }
}

void Scanner::failUnclosed() {
  // Where a form ends that has something open, an earlier word may have fitted nothing that is.
  if (type(at_) != NeslParser::SEMICOLON) {
    for (size_t k = 0; k < levels_.size(); ++k)
      if (levels_[k].misfit != 0) return failAtMisfit(k);
  }
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
                      : adviceOnLet(level.token),
          .notes = {{span(level.token), "this `let` has no `in`"}}});
  else
    fail({.id = "K0102",
          .span = here,
          .message = fmt::format("expected `{}` before {}", closing(level.kind), found),
          .hint = type(at_) == NeslParser::SEMICOLON && closesInLine(level.kind)
                      ? level.kind == Level::Bracket
                            ? "the elements of a sequence are separated by commas"
                            : "the parts of a tuple and arguments are separated by commas"
                      : "",
          .notes = {{span(level.token), fmt::format("this `{}` is not closed", opening(level.kind))}}});
}

/// Reports the word that does not belong to levels_[k], and moves there, or behind the `let`s that follow.
void Scanner::failAtMisfit(size_t k) {
  const Level& level = levels_[k];
  const uint32_t misfit = level.misfit;
  unfinished_ = false;
  atMisfit_ = true;
  at_ = misfit;
  if (level.kind == Level::Brace) {
    fail({.id = "K0102",
          .span = span(misfit),
          .message = fmt::format("expected `}}` before `{}`", spelling(misfit)),
          .hint = {},
          .notes = {{span(level.token), "this `{` is not closed"}}});
  } else if (type(misfit) == NeslParser::LET) {
    fail(
        {.id = "K0116",
         .span = span(misfit),
         .message = "expected a binding or `in` before `let`",
         .hint = fmt::format(
             "a `let` has all its bindings: let a = 1; b = 2 in RESULT{}",
             level.token == levels_.front().token ? "; names of a program are bound without it: a = 1;" : ""),
         .notes = {{span(level.token), "this `let` has no `in`"}}});
  } else {
    fail({.id = "K0116",
          .span = span(misfit),
          .message = fmt::format("expected `in` before `{}`", formFrom(misfit)),
          .hint = adviceOnLet(level.token),
          .notes = {{span(level.token), "this `let` has no `in`"}}});
  }
  // Of `let a = 1; let b = 2; let c = 3;` the second `let` was told; the others have the same mistake.
  while (k + 1 < levels_.size() && levels_[k].misfit == levels_[k + 1].token && levels_[k + 1].misfit != 0)
    ++k;
  at_ = levels_[k].misfit;
}

/// The source of what begins at token i, up to the next terminator or the end of brackets around it, if it is
/// short; else of the token.
std::string Scanner::formFrom(uint32_t i) const {
  constexpr size_t kShort = 40;
  uint32_t end = i;
  for (int open = 0; !isTerminator(type(end + 1)) && type(end + 1) != kEndOfFile; ++end) {
    open += isOpening(type(end)) ? 1 : 0;
    if (isClosing(type(end + 1)) && open-- == 0) break;
  }
  const std::string_view whole = text_.substr(tokens_[i].begin, tokens_[end].end - tokens_[i].begin);
  const bool shown = whole.size() <= kShort && whole.find_first_of("\n%") == std::string_view::npos;
  return shown ? std::string(whole) : spelling(i);
}

/// What is said of a `let` without its `in`.
std::string Scanner::adviceOnLet(uint32_t let) const {
  if (let != levels_.front().token) return "let NAME = VALUE; ... in RESULT";
  const uint32_t name =
      type(let + 1) == NeslParser::NAME && lowerCase(spelling(let + 1)) == "rec" ? let + 2 : let + 1;
  const uint32_t end = endOfPattern(name);
  if (type(name) == NeslParser::NAME && end != name && end != name + 1 && type(name + 1) != NeslParser::COMMA)
    return fmt::format("let PATTERN = VALUE in RESULT; a function is defined by function {0}(X) = BODY",
                       spelling(name));
  const std::string binding = formFrom(let + 1);
  const bool whole = type(end) == NeslParser::EQUAL && binding != spelling(let + 1);
  return fmt::format("let {0} in RESULT; names of a program are bound without `let`: {0};",
                     whole ? binding : "NAME = VALUE");
}

/// Whether a bracket of this kind closes before the next line, which is not opened behind at_.
bool Scanner::closesInLine(Level::Kind kind) const {
  int open = 0;
  for (uint32_t i = at_ + 1; type(i) != kEndOfFile && !beginsLine(tokens_, text_, i); ++i) {
    if (isOpening(type(i))) ++open;
    if (isClosing(type(i)) && open-- == 0) return lowerCase(spelling(i)) == closing(kind);
  }
  return false;
}

/// Whether a bracket or `let` closes that is not opened behind at_, before a line that goes on with no form.
bool Scanner::closesOutside() const {
  constexpr uint32_t kNear = 1000;  // tokens: what closes further away need not be looked for again and again
  int open = 0, lets = 0;
  for (uint32_t i = at_; i < at_ + kNear; ++i) {
    const uint32_t token = type(i);
    if (token == NeslParser::DOLLAR || token == kEndOfFile || beginsDefinition(token)) break;
    if (token == NeslParser::SEMICOLON && type(i + 1) != kEndOfFile && beginsLine(tokens_, text_, i + 1) &&
        !continuesForm(tokens_, text_, levels_.front().token, i + 1))
      break;
    if (isOpening(token)) ++open;
    if (isClosing(token)) --open;
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
  } while (type(at_++) == NeslParser::SEMICOLON &&
           (closesOutside() || continuesForm(tokens_, text_, begin, at_)));
}

/// After failAtMisfit: whether a form begins at at_. That is so behind `let a = 1;` in the first column.
bool Scanner::beginsFormAtMisfit() const {
  const uint32_t begin = levels_.front().token;
  return type(begin) == NeslParser::LET && type(at_) != NeslParser::LET && beginsLine(tokens_, text_, at_) &&
         !continuesForm(tokens_, text_, begin, at_);
}

}  // namespace

std::vector<ScannedForm> scanForms(std::vector<Token>& tokens, std::string_view text, uint32_t file,
                                   bool* unfinished) {
  Scanner scanner(tokens, text, file);
  std::vector<ScannedForm> forms = scanner.run();
  if (unfinished) *unfinished = scanner.unfinished();
  return forms;
}

}  // namespace kelpie
