#include "runtime/host_memory.h"

#include <unistd.h>

#include <fstream>
#include <string>

namespace kelpie::runtime {

size_t machineMemory() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || size <= 0) return size_t{1} << 32;
  return static_cast<size_t>(pages) * static_cast<size_t>(size);
}

size_t availableMemory() {
  constexpr size_t kUnit = 1024;
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name; file.ignore(100, '\n')) {
    size_t number = 0;
    if (name == "MemAvailable:" && file >> number) return number * kUnit;
  }
  return machineMemory() / 2;
}

}  // namespace kelpie::runtime
