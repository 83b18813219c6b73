// What a generated CPU kernel is called with: the layout of k_launch in codegen/cpu/kelpie_cpu.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kelpie::codegen::cpu {

union Argument {
  void* pointer;
  int64_t integer;
  double real;
};

struct ErrorRecord {
  int64_t key = 0, binding = 0, site = 0, payload0 = 0, payload1 = 0;
  int32_t recorded = 0, lock = 0;
};

struct KernelLaunch {
  int64_t elements, segments, length;
  const int64_t* targets;
  const Argument* arguments;
  void* const* outputs;
  ErrorRecord* error;
  void* scratch;
  void* (*take)(void* scratch, size_t bytes);
  /// Calls work(what, part) for each part below `parts`, by several threads, in ascending order, up to
  /// `atOnce` in a row by one of them.
  void* team;
  void (*parallel)(void* team, int64_t parts, int64_t atOnce, void (*work)(void* what, int64_t part),
                   void* what);
  /// Bytes of its thread's stack that a recursion may take; then it goes on by deeper(stacks, ...), which
  /// calls work(what) on a stack of kDeepStack bytes and gives false if it cannot.
  int64_t ownStack;
  void* stacks;
  bool (*deeper)(void* stacks, void (*work)(void* what), void* what);
  /// Loops and recursions end, with any values, when it becomes true; may be null.
  const bool* interrupt;
};
constexpr size_t kDeepStack = size_t{1} << 28;

/// Gives 0; 1 when temporary memory ran out.
using KernelFunction = int32_t (*)(const KernelLaunch*);

}  // namespace kelpie::codegen::cpu
