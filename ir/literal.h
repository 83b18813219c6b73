// Scalar constants as text, the same in the printed form of every IR: 5, 5i32, 1.5, 1.5f32, 'a', true.
// The text determines the scalar to the bit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/scalar.h"

namespace kelpie {

/// int64 "-5"; int32 "5i32"; float64 "1.5", "1e300", "inf", "-inf", "nan"; float32 with suffix "f32"; char
/// "'a'",
/// "'\x0a'"; "true", "false". A NaN with other bits than the usual one is "nan(0x7ff8000000000001)".
std::string literalText(const Scalar& value);
/// The inverse; nothing when the text is no literal or out of range.
std::optional<Scalar> literalFromText(std::string_view text);

/// The number that a text begins with, in the precision of a float type: by way of double a float32 would be
/// rounded twice. Beyond the type's range it is infinite or zero.
Scalar readFloat(ScalarType type, const char* text, char** end = nullptr);

/// Text between quotes: printable ASCII as it is; quotes, backslashes and other bytes escaped (\n, \x0a,
/// ...).
std::string quotedText(std::string_view bytes, char quote = '"');
/// The inverse; `text` includes the quotes.
std::optional<std::string> unquotedText(std::string_view text);

}  // namespace kelpie
