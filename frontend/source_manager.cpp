#include "frontend/source_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>

namespace kelpie {

size_t characterLength(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t length = lead >= 0xf0 && lead <= 0xf4   ? 4
                        : lead >= 0xe0 && lead <= 0xef ? 3
                        : lead >= 0xc2 && lead <= 0xdf ? 2
                                                       : 1;
  if (at + length > text.size()) return 1;
  for (size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return 1;
  return length;
}

namespace {

constexpr size_t kMaximalSize = std::numeric_limits<uint32_t>::max() - 1;
constexpr size_t kExcerptWidth = 120;  ///< longer lines are shown in part

constexpr const char* kReset = "\033[0m";
constexpr const char* kBold = "\033[1m";
constexpr const char* kRed = "\033[1;31m";
constexpr const char* kMagenta = "\033[1;35m";
constexpr const char* kCyan = "\033[1;36m";

/// One terminal cell for each character: control characters and stray bytes are shown as a placeholder.
std::string printable(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t length = characterLength(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 1 && byte == '\t')
      out += ' ';
    else if (length == 1 && (byte < 0x20 || byte >= 0x7f))
      out += '?';
    else
      out += text.substr(i, length);
    i += length;
  }
  return out;
}

size_t countCharacters(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); i += characterLength(text, i)) ++count;
  return count;
}

const char* word(Severity severity) {
  switch (severity) {
    case Severity::Error:
      return "error";
    case Severity::Warning:
      return "warning";
    case Severity::Note:
      return "note";
  }
  return "error";
}

const char* colourOf(Severity severity) {
  switch (severity) {
    case Severity::Error:
      return kRed;
    case Severity::Warning:
      return kMagenta;
    case Severity::Note:
      return kCyan;
  }
  return kRed;
}

}  // namespace

uint32_t SourceManager::add(std::string name, std::string text, uint32_t firstLine) {
  if (text.size() > kMaximalSize) throw InternalError("source text of 4 GiB or more");
  File file{std::move(name), std::move(text), firstLine, {0}};
  for (size_t at = file.text.find('\n'); at != std::string::npos; at = file.text.find('\n', at + 1))
    file.lines.push_back(static_cast<uint32_t>(at + 1));
  files_.push_back(std::move(file));
  return static_cast<uint32_t>(files_.size());
}

std::optional<uint32_t> SourceManager::load(const std::string& path, std::string& problem) {
  const bool standardInput = path == "-";
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(nullptr, [](std::FILE*) { return 0; });
  if (standardInput)
    file = {stdin, [](std::FILE*) { return 0; }};
  else
    file = {std::fopen(path.c_str(), "rb"), [](std::FILE* f) { return std::fclose(f); }};
  if (!file) {
    problem = std::strerror(errno);
    return std::nullopt;
  }
  std::string text;
  char block[1 << 16];
  while (const size_t count = std::fread(block, 1, sizeof block, file.get())) {
    text.append(block, count);
    if (text.size() > kMaximalSize) {
      problem = "the file has 4 GiB or more";
      return std::nullopt;
    }
  }
  if (std::ferror(file.get())) {  // a directory can be opened but not read
    problem = std::strerror(errno);
    return std::nullopt;
  }
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of editors that begin UTF-8 with one
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return add(standardInput ? "<stdin>" : path, std::move(text));
}

const SourceManager::File& SourceManager::get(uint32_t file) const {
  if (file == 0 || file > files_.size()) throw InternalError("unknown source file");
  return files_[file - 1];
}

std::string_view SourceManager::text(Span span) const {
  const std::string_view all = text(span.file);
  const size_t begin = std::min<size_t>(span.begin, all.size());
  return all.substr(begin, std::max<size_t>(std::min<size_t>(span.end, all.size()), begin) - begin);
}

Location SourceManager::locate(uint32_t file, uint32_t offset) const {
  const File& source = get(file);
  offset = std::min<uint32_t>(offset, static_cast<uint32_t>(source.text.size()));
  const auto next = std::upper_bound(source.lines.begin(), source.lines.end(), offset);
  const uint32_t begin = *(next - 1);
  const std::string_view before = std::string_view(source.text).substr(begin, offset - begin);
  return {static_cast<uint32_t>(next - source.lines.begin()) + source.firstLine - 1,
          static_cast<uint32_t>(countCharacters(before) + 1)};
}

std::string SourceManager::describe(Span span) const {
  if (!span.known()) return "";
  const Location location = locate(span.file, span.begin);
  return fmt::format("{}:{}:{}", name(span.file), location.line, location.column);
}

void SourceManager::renderExcerpt(std::string& out, Span span, const char* colour) const {
  const File& source = get(span.file);
  const Location location = locate(span.file, span.begin);
  const size_t lineBegin = source.lines[location.line - source.firstLine];
  const size_t lineEnd = std::min(source.text.find('\n', lineBegin), source.text.size());
  const size_t begin = std::min<size_t>(span.begin, lineEnd);
  const size_t end = std::clamp<size_t>(span.end, begin, lineEnd);

  // Of a long line, show the part around the beginning of the span.
  size_t from = lineBegin, to = lineEnd;
  if (to - from > kExcerptWidth) {
    from = begin - std::min(begin - lineBegin, kExcerptWidth / 3);
    to = std::min(lineEnd, from + kExcerptWidth);
  }
  const std::string_view text = source.text;
  std::string line = printable(text.substr(from, to - from));
  while (!line.empty() && line.back() == '?' && to > from && text[to - 1] == '\r') line.pop_back(), --to;
  const std::string ellipsis = from > lineBegin ? "..." : "";
  const size_t indent = ellipsis.size() + countCharacters(text.substr(from, begin - from));
  const size_t shownEnd = std::max(std::min(end, to), begin);
  const size_t width = std::max<size_t>(countCharacters(text.substr(begin, shownEnd - begin)), 1);

  const std::string number = std::to_string(location.line);
  out += fmt::format(" {} | {}{}{}\n", number, ellipsis, line,
                     to < lineEnd && lineEnd - lineBegin > kExcerptWidth ? "..." : "");
  out += fmt::format(" {} | {}{}{}{}{}\n", std::string(number.size(), ' '), std::string(indent, ' '), colour,
                     '^', std::string(width - 1, '~'), *colour ? kReset : "");
}

namespace {

/// Names and types in messages can be of any length; nobody reads all of a long one. What the program says
/// when it runs is not cut.
std::string readable(const std::string& text, const std::string& id) {
  constexpr size_t kLongest = 1'000;
  if (text.size() <= kLongest || id.starts_with("K05")) return text;
  return text.substr(0, kLongest / 2) + " ... " + text.substr(text.size() - kLongest / 2);
}

}  // namespace

std::string SourceManager::render(const Diagnostic& diagnostic, bool colour) const {
  const auto paint = [&](const char* code) { return colour ? code : ""; };
  std::string out;
  const auto message = [&](Span span, Severity severity, const std::string& text, const std::string& id) {
    if (span.known()) out += fmt::format("{}{}:{} ", paint(kBold), describe(span), paint(kReset));
    out += fmt::format("{}{}:{} {}{}\n", paint(colourOf(severity)), word(severity), paint(kReset),
                       readable(text, diagnostic.id), id.empty() ? "" : fmt::format(" [{}]", id));
    if (span.known()) renderExcerpt(out, span, paint(colourOf(severity)));
  };
  message(diagnostic.span, diagnostic.severity, diagnostic.message, diagnostic.id);
  for (const Diagnostic::Note& note : diagnostic.notes) message(note.span, Severity::Note, note.message, "");
  if (!diagnostic.hint.empty())
    out +=
        fmt::format("{}hint:{} {}\n", paint(kCyan), paint(kReset), readable(diagnostic.hint, diagnostic.id));
  return out;
}

}  // namespace kelpie
