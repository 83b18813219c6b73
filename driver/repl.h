// The prompt: `kelpie` without arguments, or `kelpie repl`.
//
// Forms are evaluated as soon as they are complete, which may take several lines, and printed as `kelpie run`
// prints them. Mistakes leave out their form only. Lines that begin with a colon are commands; `:help` lists
// them. Ctrl-C ends an evaluation, or drops what was typed. When standard input is no terminal there are no
// prompts, and forms and commands are read and answered all the same.
#pragma once

#include "driver/options.h"

namespace kelpie::driver {

/// Until the end of the input, `exit;` or `:quit`. The exit status: 1 when the input is no terminal and
/// something in it failed, 2 when the target cannot be used, else 0.
int repl(const Options& options);

}  // namespace kelpie::driver
