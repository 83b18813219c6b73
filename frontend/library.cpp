#include "frontend/library.h"

#include <cctype>

#include "frontend/parser.h"

namespace kelpie {

namespace {

bool isNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string_view wordAt(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && isNameCharacter(text[end])) ++end;
  return text.substr(begin, end - begin);
}

}  // namespace

Library::Library(SourceManager& sources, const std::vector<LibraryFile>& files) : sources_(sources) {
  for (const LibraryFile& file : files) scan(file);
}

// Library files keep a rule that makes this easy: a form begins with a letter in the first column, and its
// other lines begin with white space or a comment.
void Library::scan(const LibraryFile& file) {
  std::string_view text = file.text;
  size_t line = 0;
  Place* open = nullptr;
  for (size_t i = 0; i < text.size(); ++i) {
    bool lineStart = i == 0 || text[i - 1] == '\n';
    if (lineStart && isNameCharacter(text[i])) {
      if (open) open->end = i;
      std::string_view word = wordAt(text, i);
      if (word == "function" || word == "datatype") {
        size_t next = i + word.size();
        while (next < text.size() && std::isspace(static_cast<unsigned char>(text[next]))) ++next;
        word = wordAt(text, next);
      }
      auto [place, isNew] = forms_.emplace(std::string(word), Place{&file, i, text.size(), line});
      if (!isNew) throw InternalError("the library defines " + std::string(word) + " twice");
      open = &place->second;
      names_.emplace_back(word);
    }
    switch (text[i]) {
      case '\n':
        ++line;
        break;
      case '`':
        ++i;
        break;
      case '%':
      case '"':
        for (char close = text[i++]; i < text.size() && text[i] != close; ++i) {
          if (text[i] == '\n') ++line;
          if (close == '"' && text[i] == '\\') ++i;
        }
        break;
      default:
        break;
    }
  }
}

ast::Form Library::form(const std::string& name) {
  const Place& place = forms_.at(name);
  // The lines before the form are kept, empty, so that positions in it are those of the library file.
  std::string text(place.line, '\n');
  text += place.file->text.substr(place.begin, place.end - place.begin);
  ParseResult result =
      parse(sources_, sources_.add("library/" + std::string(place.file->name), std::move(text)));
  if (!result.ok()) throw InternalError(sources_.render(result.diagnostics.front()));
  if (result.forms.size() != 1) throw InternalError("the library form of " + name + " is not a single form");
  return std::move(result.forms.front());
}

}  // namespace kelpie
