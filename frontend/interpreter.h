// The reference interpreter: runs Core directly and is the meaning of the language.
//
// In: a verified core::Program, the contents of the session cells it reads, and the services. Out: the
// columns of the entry's row, each of length 1, or the run-time error that stopped the form. All instances
// of the enclosing apply-to-eaches advance together, operation by operation (ir/core.h), so effects and
// random draws come in the order of language.md 4.7 and 4.9. Calls in tail position run as loops.
#pragma once

#include <atomic>
#include <functional>
#include <variant>

#include "ir/core.h"
#include "ir/diagnostic.h"
#include "ir/services.h"

namespace kelpie {

struct InterpreterOptions {
  const std::atomic<bool>* interrupted = nullptr;  ///< when it becomes true the form stops with an error
};

/// Brackets the run with beginForm and endForm of `services`.
std::variant<Columns, RuntimeError> interpret(const core::Program& program,
                                              const std::function<Columns(uint32_t cell)>& cells,
                                              Services& services, const InterpreterOptions& options = {});

}  // namespace kelpie
