#include "frontend/misread_text.h"

#include <NeslParser.h>
#include <fmt/format.h>

#include <algorithm>

namespace kelpie {

using nesl_grammar::NeslParser;

namespace {

constexpr std::string_view kBlanks = " \t\r\f";

/// Whether only blanks stand in front of text[at] in its line.
bool beginsItsLine(std::string_view text, size_t at) {
  while (at > 0 && kBlanks.find(text[at - 1]) != std::string_view::npos) --at;
  return at == 0 || text[at - 1] == '\n';
}

/// Whether text[at] or something behind it in its line is no blank.
bool hasTextBehind(std::string_view text, size_t at) {
  at = text.find_first_not_of(kBlanks, at);
  return at != std::string_view::npos && text[at] != '\n';
}

/// Of the comment in text[begin ... end - 1], both with their `%`.
bool looksMisread(std::string_view text, size_t begin, size_t end) {
  return text.substr(begin, end - begin).find('\n') != std::string_view::npos && hasTextBehind(text, end) &&
         (!beginsItsLine(text, begin) || beginsItsLine(text, end - 1));
}

}  // namespace

std::optional<MisreadComment> misreadComment(const std::vector<Token>& tokens, std::string_view text,
                                             uint32_t file, const std::vector<Span>& mistakes) {
  if (mistakes.empty()) return std::nullopt;
  for (size_t i = 0; i < tokens.size(); ++i) {
    // Comments are between tokens.
    const uint32_t before = i == 0 ? 0 : tokens[i - 1].end;
    const std::string_view gap = text.substr(before, tokens[i].begin - before);
    for (size_t from = gap.find('%'); from != std::string_view::npos;) {
      const size_t last = gap.find('%', from + 1);
      if (last == std::string_view::npos) break;
      const uint32_t begin = before + static_cast<uint32_t>(from),
                     end = before + static_cast<uint32_t>(last) + 1;
      from = gap.find('%', last + 1);
      if (!looksMisread(text, begin, end)) continue;
      // In this line or the next one
      size_t limit = text.find('\n', end);
      if (limit != std::string_view::npos) limit = text.find('\n', limit + 1);
      const auto limitOr = static_cast<uint32_t>(std::min(limit, text.size()));
      const bool mistaken = std::any_of(mistakes.begin(), mistakes.end(), [&](Span mistake) {
        return mistake.file == file && mistake.begin >= end && mistake.begin <= limitOr;
      });
      if (mistaken) return MisreadComment{{file, begin, begin + 1}, begin, end, limitOr};
    }
  }
  return std::nullopt;
}

void explain(const MisreadComment& comment, Diagnostic& diagnostic) {
  const auto isAt = [&](const Diagnostic::Note& note) { return note.span.begin == comment.place.begin; };
  if (std::any_of(diagnostic.notes.begin(), diagnostic.notes.end(), isAt)) return;
  diagnostic.notes.push_back(
      {comment.place,
       "this comment goes over the end of its line, up to the next `%`: each is closed by a `%`"});
}

void explainClosingQuotes(const std::vector<Token>& tokens, std::string_view text,
                          std::vector<Diagnostic>& diagnostics) {
  constexpr std::string_view kAfterValues = ",;)]} ";
  for (size_t k = 0; k + 1 < tokens.size(); ++k) {
    const Token& first = tokens[k];
    if (first.type != NeslParser::CHAR) continue;
    // The words of `some words`, of which the first letter is the character.
    size_t other = k + 1;
    while (other + 1 < tokens.size() &&
           (tokens[other].type == NeslParser::NAME || tokens[other].type == NeslParser::INT) &&
           text.substr(first.begin, tokens[other].end - first.begin).find('\n') == std::string_view::npos)
      ++other;
    const Token& second = tokens[other];
    const bool ofWord = other > k + 1 && tokens[k + 1].begin == first.end;
    const bool isQuote = second.type == NeslParser::CHAR && tokens[other - 1].end == second.begin &&
                         kAfterValues.find(text[second.begin + 1]) != std::string_view::npos;
    if (!isQuote || (other > k + 1 && !ofWord)) continue;
    const auto mistake = std::find_if(diagnostics.begin(), diagnostics.end(),
                                      [&](const Diagnostic& d) { return d.span.begin >= second.begin; });
    if (mistake != diagnostics.end())
      mistake->hint = ofWord ? fmt::format("a string stands in double quotes: \"{}\"",
                                           text.substr(first.begin + 1, second.begin - first.begin - 1))
                             : "a character has one quote, in front of it: `a";
    return;
  }
}

}  // namespace kelpie
