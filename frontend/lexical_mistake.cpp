#include "frontend/lexical_mistake.h"

#include <NeslParser.h>
#include <fmt/format.h>

#include <cctype>
#include <utility>

#include "frontend/source_manager.h"

namespace kelpie {

using nesl_grammar::NeslParser;

namespace {

/// A token, its neighbours and the text around it.
struct Place {
  const std::vector<Token>& tokens;
  uint32_t at;
  std::string_view text;
  uint32_t file;

  const Token& token() const { return tokens[at]; }
  uint32_t begin() const { return token().begin; }
  uint32_t typeBehind() const { return at + 1 < tokens.size() ? tokens[at + 1].type : kEndOfFile; }
  Span span(uint32_t length) const { return {file, begin(), begin() + length}; }
  std::string_view spelling() const { return text.substr(begin(), token().end - begin()); }
  char before() const { return begin() > 0 ? text[begin() - 1] : '\n'; }
};

/// Of comments or strings, whichever `quote` encloses, the first that goes over the end of its line: where
/// what is text and what is not may have changed roles.
std::optional<Span> firstOverLines(const Place& place, char quote) {
  for (uint32_t i = 0; i <= place.at; ++i) {
    const Token& token = place.tokens[i];
    if (quote == '"') {
      if (token.type == NeslParser::STRING &&
          place.text.substr(token.begin, token.end - token.begin).find('\n') != std::string_view::npos)
        return Span{place.file, token.begin, token.begin + 1};
      continue;
    }
    // Comments are between tokens.
    const uint32_t begin = i == 0 ? 0 : place.tokens[i - 1].end;
    const std::string_view gap = place.text.substr(begin, token.begin - begin);
    for (size_t from = gap.find(quote); from != std::string_view::npos;) {
      const size_t end = gap.find(quote, from + 1);
      if (end == std::string_view::npos) break;
      if (gap.substr(from, end - from).find('\n') != std::string_view::npos) {
        const uint32_t first = begin + static_cast<uint32_t>(from);
        return Span{place.file, first, first + 1};
      }
      from = gap.find(quote, end + 1);
    }
  }
  return std::nullopt;
}

std::vector<Diagnostic::Note> notesOnLines(const Place& place, char quote) {
  const std::optional<Span> first = firstOverLines(place, quote);
  if (!first) return {};
  return {{*first, fmt::format("this is the first {} that goes over the end of its line: is a `{}` missing "
                               "before it, or one too many?",
                               quote == '"' ? "string" : "comment", quote)}};
}

Diagnostic openComment(const Place& place) {
  return {.id = "K0105",
          .span = place.span(1),
          .message = "this comment is not closed",
          .hint = "a comment goes from `%` to the next `%`; a remainder is rem(a, b) or mod(a, b)",
          .notes = notesOnLines(place, '%')};
}

Diagnostic openString(const Place& place) {
  return {.id = "K0106",
          .span = place.span(1),
          .message = "this string is not closed",
          .hint = "a string ends at the next `\"` that has no backslash before it",
          .notes = notesOnLines(place, '"')};
}

std::string adviceOnCharacter(const Place& place, size_t length) {
  if (length > 1) return "outside strings and comments NESL text is ASCII";
  if (place.begin() > 0 && place.text.substr(place.begin() - 1, 2) == "..")
    return "a range of integers is [start:end], without its end";
  switch (place.text[place.begin()]) {
    case '.':
      return "the parts of a tuple are taken by patterns: let (x, y) = a in x";
    case '\\':
      if (place.typeBehind() == NeslParser::NAME)
        return "a function without a name is X => RESULT, as x => x + 1";
      return "";
    default:
      return "";
  }
}

Diagnostic illegalCharacter(const Place& place) {
  const size_t length = characterLength(place.text, place.begin());
  const auto byte = static_cast<unsigned char>(place.text[place.begin()]);
  const bool shown = length > 1 || (byte > 0x20 && byte < 0x7f);
  std::vector<Diagnostic::Note> notes = notesOnLines(place, '"');
  if (notes.empty()) notes = notesOnLines(place, '%');
  return {.id = "K0107",
          .span = place.span(static_cast<uint32_t>(length)),
          .message = shown ? fmt::format("NESL does not use the character `{}`",
                                         place.text.substr(place.begin(), length))
                           : fmt::format("NESL does not use the byte {:#04x}", byte),
          .hint = adviceOnCharacter(place, length),
          .notes = std::move(notes)};
}

Diagnostic badNumber(const Place& place) {
  return {
      .id = "K0108",
      .span = {place.file, place.begin(), place.token().end},
      .message = fmt::format("`{}` is neither a number nor a name", place.spelling()),
      .hint = place.before() == '%'
                  ? "the `%` in front of it ends a comment, which has none inside"
                  : "a name begins with a letter; between a number and a name goes a blank or an operator",
      .notes = {}};
}

/// Of a `'`: as in x', in 'text' or in 'a'.
std::string adviceOnQuote(const Place& place) {
  if (std::isalnum(static_cast<unsigned char>(place.before())) || place.before() == '_')
    return "a name is made of letters, digits and `_`";
  const size_t end = place.text.find_first_of("'\n", place.begin() + 1);
  const bool closed = end != std::string_view::npos && place.text[end] == '\'';
  const size_t length = closed ? end - place.begin() - 1 : 1;
  if (length == 1) return "a character is written with a backquote: `a";
  return fmt::format("a string stands in double quotes: \"{}\"",
                     place.text.substr(place.begin() + 1, length));
}

Diagnostic lispEscape(const Place& place) {
  return {.id = "K0109",
          .span = place.span(1),
          .message = fmt::format("`{}` is an escape to Lisp, which Kelpie does not have", place.spelling()),
          .hint = place.token().type == NeslParser::QUOTE   ? adviceOnQuote(place)
                  : place.typeBehind() == NeslParser::EQUAL ? "inequality is written /="
                                                            : "negation is written not(x)",
          .notes = {}};
}

}  // namespace

std::optional<Diagnostic> lexicalMistake(const std::vector<Token>& tokens, uint32_t i, std::string_view text,
                                         uint32_t file) {
  const Place place{tokens, i, text, file};
  switch (place.token().type) {
    case NeslParser::OPEN_COMMENT:
      return openComment(place);
    case NeslParser::OPEN_STRING:
      return openString(place);
    case NeslParser::OPEN_CHAR:
      return Diagnostic{.id = "K0106",
                        .span = place.span(1),
                        .message = "a backquote at the end of the file",
                        .hint = {},
                        .notes = {}};
    case NeslParser::ILLEGAL:
      return illegalCharacter(place);
    case NeslParser::BAD_NUMBER:
      return badNumber(place);
    case NeslParser::EXCLAMATION:
    case NeslParser::QUOTE:
      return lispEscape(place);
    default:
      return std::nullopt;
  }
}

bool endsInside(uint32_t tokenType) {
  return tokenType == NeslParser::OPEN_COMMENT || tokenType == NeslParser::OPEN_STRING;
}

}  // namespace kelpie
