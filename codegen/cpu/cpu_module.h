// λcu kernels -> C++: one source for all kernels of a program.
//
// In:  a verified program and its kernels (fused or not).
// Out: a `CpuModule`: a source without includes except two freestanding C headers (reduction_order.h and
//      kelpie_cpu.h are put in front of it), with one entry point of type `KernelFunction` (launch.h) a
//      kernel.
//
// A kernel works on blocks of its anchor space (reduction_order.h), in parallel. Within a block each level
// is one loop over the elements, in which the thunks of all bindings of the level are evaluated together,
// followed by the collectives of the level (folds, scans, compactions) over the values it left in block-local
// arrays. Scans and filters need a pass of their own for each level, which finds what every block carries on
// to the next; the last pass stores the results. Segments that lie within a block are finished there,
// epilogues included; those that are cut have their pieces combined afterwards. Where thunks loop or recurse
// elements are evaluated once, in passes of their own (unbounded_passes.cpp).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/kernel_analysis.h"
#include "ir/lcu.h"

namespace kelpie::codegen::cpu {

struct CpuOptions {
  /// "file.nesl:12: text" for comments; may be empty.
  std::function<std::string(Span)> describe;
};

struct CpuModule {
  std::string source;
  std::vector<std::string> entries;  ///< by kernel
};

/// The function of one kernel, without the support headers.
std::string generateKernel(const lcu::Kernel& kernel, const lcu::Program& program, const std::string& entry,
                           const CpuOptions& options = {});
CpuModule generateModule(const std::vector<const lcu::Kernel*>& kernels, const lcu::Program& program,
                         const CpuOptions& options = {});

}  // namespace kelpie::codegen::cpu
