// How much memory the machine has. Memory that is asked for and not there is no error on Linux: whoever touches
// it is killed. So before much is brought to the host, somebody asks.
#pragma once

#include <cstddef>

namespace kelpie::runtime {

/// Bytes in all, and those that programs could get now without any being written to a disk.
size_t machineMemory();
size_t availableMemory();

}  // namespace kelpie::runtime
