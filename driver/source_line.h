// The line of the program's text that a span begins on.
#pragma once

#include "frontend/source_manager.h"
#include "fusion/report.h"

namespace kelpie::driver {

/// Without place and text when the span is not known.
fusion::SourceLine sourceLine(Span span, const SourceManager& sources);

}  // namespace kelpie::driver
