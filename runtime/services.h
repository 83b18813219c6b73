// The services of ir/services.h on a POSIX host.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string_view>

#include "ir/services.h"
#include "runtime/random_stream.h"

namespace kelpie {

struct ServiceOptions {
  std::function<void(std::string_view)> output;    ///< what the program prints; default: standard output
  std::function<void(std::string_view)> messages;  ///< failures of file functions; default: standard error
  std::FILE* input = stdin;                        ///< stream 1
  RandomGenerator generator = RandomGenerator::Additive;
  int64_t seed = 1;  ///< of the random stream at the beginning of a form
};

std::unique_ptr<Services> makeServices(ServiceOptions options = {});

}  // namespace kelpie
