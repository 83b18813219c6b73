// The target `cuda`, if this machine has what it needs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/target.h"

namespace kelpie::runtime {

/// A target on GPU number `ordinal`. Null, and `why` in words, when there is no driver, no GPU or no NVRTC.
/// `describe` gives "file.nesl:12: text" for comments in generated code; it may be empty.
std::unique_ptr<Target> makeCudaTarget(std::string& why, int ordinal = 0,
                                       std::function<std::string(Span)> describe = {});

}  // namespace kelpie::runtime
