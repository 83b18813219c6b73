#include "driver/source_line.h"

#include <string_view>

namespace kelpie::driver {

fusion::SourceLine sourceLine(Span span, const SourceManager& sources) {
  fusion::SourceLine found;
  if (!span.known()) return found;
  found.place = sources.describe(span);
  found.line = static_cast<int>(sources.locate(span.file, span.begin).line);
  const std::string_view text = sources.text(span.file);
  const size_t begin = span.begin == 0 ? 0 : text.rfind('\n', span.begin - 1) + 1;  // npos + 1 is 0
  found.at = span.begin - begin;
  found.text = text.substr(begin, text.find('\n', span.begin) - begin);
  return found;
}

}  // namespace kelpie::driver
