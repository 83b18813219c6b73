#include "frontend/parser.h"

#include <NeslParser.h>

#include <algorithm>

#include "frontend/foreign_words.h"
#include "frontend/form_parser.h"
#include "frontend/form_scanner.h"
#include "frontend/lexer.h"
#include "frontend/misread_text.h"
#include "frontend/text.h"
#include "frontend/token_layout.h"
#include "ir/deep_stack.h"

namespace kelpie {

using nesl_grammar::NeslParser;

namespace {

/// Collects the names that forms with mistakes were to define.
class LostDefinitions {
 public:
  LostDefinitions(const std::vector<Token>& tokens, std::string_view text, uint32_t file,
                  std::vector<LostDefinition>& lost)
      : tokens_(tokens), text_(text), file_(file), lost_(lost) {}

  /// `told`: the form is a part of the one before it, whose mistake was told.
  void add(const ScannedForm& form, bool told) {
    const uint32_t begin = form.begin;
    const bool isDefinition = type(begin) == NeslParser::FUNCTION || type(begin) == NeslParser::DATATYPE ||
                              beginsForeignDefinition(begin);
    if (isDefinition) {
      if (type(begin + 1) == NeslParser::NAME) lose(begin + 1, told);
    } else if (type(begin) == NeslParser::LET && form.mistake && form.mistake->id == "K0116") {
      // Without its `in` it was meant to bind names of the program.
      for (uint32_t i = begin; i < form.next; ++i)
        if (type(i) == NeslParser::LET || type(i) == NeslParser::SEMICOLON) addPattern(i + 1, true);
    } else {
      addPattern(begin, told);
    }
    // Those of forms in front of which a terminator is missing.
    for (uint32_t i = begin + 1; i < form.next; ++i)
      if (type(i) == NeslParser::NAME && type(i + 1) == NeslParser::EQUAL && beginsLine(tokens_, text_, i) &&
          !continuesForm(tokens_, text_, begin, i))
        lose(i, true);
  }

 private:
  uint32_t type(uint32_t i) const { return i < tokens_.size() ? tokens_[i].type : kEndOfFile; }
  std::string spelling(uint32_t i) const {
    return lowerCase(text_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin));
  }
  void lose(uint32_t i, bool told, bool record = false) {
    lost_.push_back({spelling(i), {file_, tokens_[i].begin, tokens_[i].end}, told, record});
  }
  /// `def g(x)`, `funtion g(x)`
  bool beginsForeignDefinition(uint32_t i) const {
    return type(i) == NeslParser::NAME && type(i + 1) == NeslParser::NAME && definesFunctions(spelling(i));
  }
  /// The names in the pattern that begins at token i, if a `=` is behind it.
  void addPattern(uint32_t i, bool told) {
    const size_t before = lost_.size();
    for (;; ++i) {
      switch (type(i)) {
        case NeslParser::NAME:
          lose(i, told, type(i + 1) == NeslParser::LPAREN);
          break;
        case NeslParser::LPAREN:
        case NeslParser::RPAREN:
        case NeslParser::COMMA:
          break;
        case NeslParser::EQUAL:
        case NeslParser::BAR_EQUAL:
          return;
        default:
          lost_.resize(before);
          return;
      }
    }
  }

  const std::vector<Token>& tokens_;
  std::string_view text_;
  uint32_t file_;
  std::vector<LostDefinition>& lost_;
};

/// Whether the form goes on with one before it that has a mistake: it begins a line further to the right, or
/// has an `else`, `then` or `in` that belongs to nothing in it.
bool goesOn(const std::vector<Token>& tokens, std::string_view text, const ScannedForm& failed,
            const ScannedForm& form) {
  const uint32_t first = tokens[form.begin].type;
  if (first == NeslParser::FUNCTION || first == NeslParser::DATATYPE) return false;
  if (continuesForm(tokens, text, failed.begin, form.begin)) return true;
  int open = 0, lets = 0, ifs = 0, thens = 0;
  for (uint32_t i = form.begin; i < form.end; ++i) {
    switch (tokens[i].type) {
      case NeslParser::LPAREN:
      case NeslParser::LBRACKET:
      case NeslParser::LBRACE:
        ++open;
        break;
      case NeslParser::RPAREN:
      case NeslParser::RBRACKET:
      case NeslParser::RBRACE:
        --open;
        break;
      case NeslParser::LET:
        if (open == 0) ++lets;
        break;
      case NeslParser::IN:
        if (open == 0 && lets-- == 0) return true;
        break;
      case NeslParser::IF:
        if (open == 0) ++ifs;
        break;
      case NeslParser::THEN:
        if (open == 0 && ++thens > ifs) return true;
        break;
      case NeslParser::ELSE:
        if (open == 0 && ifs-- == 0) return true;
        if (open == 0) --thens;
        break;
      default:
        break;
    }
  }
  return false;
}

/// What a comment that goes on too far has hidden: the names that are bound in it.
void loseCommented(const MisreadComment& comment, std::string_view text, std::vector<LostDefinition>& lost) {
  const std::vector<Token> tokens = lex(text.substr(0, comment.end - 1).substr(comment.begin + 1));
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].type != NeslParser::NAME || tokens[i + 1].type != NeslParser::EQUAL) continue;
    const uint32_t begin = comment.begin + 1 + tokens[i].begin, end = comment.begin + 1 + tokens[i].end;
    lost.push_back(
        {lowerCase(text.substr(begin, end - begin)), {comment.place.file, begin, end}, true, false});
  }
  std::stable_sort(lost.begin(), lost.end(), [](const LostDefinition& a, const LostDefinition& b) {
    return a.span.begin < b.span.begin;
  });
}

/// The tree of the form, or nothing where it has a mistake: the first one is told.
std::optional<ast::Form> parseScanned(const ScannedForm& scanned, const std::vector<Token>& tokens,
                                      FormParser& parser, std::vector<Diagnostic>& diagnostics) {
  const size_t before = diagnostics.size();
  const bool isCommand = !scanned.command.empty();
  std::optional<ast::Form> form;
  if (scanned.end > scanned.begin && !(isCommand && scanned.mistake)) form = parser.parse(scanned);
  if (!scanned.mistake) return form;
  // What ends too early has been parsed as far as it goes.
  const bool earlier =
      diagnostics.size() > before && diagnostics[before].span.begin < tokens[scanned.end].begin;
  if (!earlier) {
    diagnostics.resize(before);
    diagnostics.push_back(*scanned.mistake);
  }
  return std::nullopt;
}

}  // namespace

ParseResult parse(const SourceManager& sources, uint32_t file) {
  ParseResult result;
  const std::string_view text = sources.text(file);
  std::vector<Token> tokens;
  runOnDeepStack([&] {
    tokens = lex(text);
    const std::vector<ScannedForm> forms = scanForms(tokens, text, file);
    FormParser parser(tokens, text, file, result.diagnostics);
    LostDefinitions lost(tokens, text, file, result.lost);
    const ScannedForm* failed = nullptr;  // the form before, if it has a mistake
    for (const ScannedForm& scanned : forms) {
      if (result.diagnostics.size() >= kMaximalDiagnostics) break;
      if (failed && goesOn(tokens, text, *failed, scanned)) {
        lost.add(scanned, true);
        continue;
      }
      std::optional<ast::Form> form = parseScanned(scanned, tokens, parser, result.diagnostics);
      failed = form ? nullptr : &scanned;
      if (form) {
        result.forms.push_back(std::move(*form));
      } else {
        lost.add(scanned, false);
      }
    }
  });
  std::stable_sort(result.diagnostics.begin(), result.diagnostics.end(),
                   [](const Diagnostic& a, const Diagnostic& b) { return a.span.begin < b.span.begin; });
  explainClosingQuotes(tokens, text, result.diagnostics);
  std::vector<Span> mistakes;
  for (const Diagnostic& diagnostic : result.diagnostics) mistakes.push_back(diagnostic.span);
  if (const auto comment = misreadComment(tokens, text, file, mistakes)) {
    explain(*comment, *std::find_if(result.diagnostics.begin(), result.diagnostics.end(),
                                    [&](const Diagnostic& d) { return d.span.begin >= comment->end; }));
    loseCommented(*comment, text, result.lost);
  }
  if (result.diagnostics.size() >= kMaximalDiagnostics) {
    result.diagnostics.resize(kMaximalDiagnostics);
    result.diagnostics.back().notes.push_back(
        {{}, "too many errors: the rest of the file was not looked at"});
  }
  return result;
}

}  // namespace kelpie
