// Files of caches: whether all of a file is there, as it was written.
//
// A file that was cut off or has holes (by a machine that stopped, a disk that was full) ends the process
// that loads code from it, in every run. So the last line of such a file is the seal of what stands before
// it: what the POSIX command `cksum` prints, because some are written by a shell. Loaders of shared objects
// do not mind. It tells accidents, not malice.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kelpie::runtime {

/// "3015617425 6\n" of "hello\n": a check sum and the number of bytes.
std::string sealOf(std::string_view content);

/// What a file has before its seal. Nothing if there is no such file, it cannot be read, or the seal does not
/// hold.
std::optional<std::string> readSealed(const std::string& path);

}  // namespace kelpie::runtime
