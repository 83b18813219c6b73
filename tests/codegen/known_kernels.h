// Well-known kernels in λcu, built node by node: for benchmarks of generated code and tests on a GPU.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ir/lcu.h"
#include "runtime/target.h"

namespace kelpie::tests {

/// One program with a kernel for each job, and the variables that data is bound to by name.
class KnownKernels {
 public:
  KnownKernels();
  lcu::Program program;
  std::map<std::string, lcu::Kernel> kernels;
  std::map<std::string, lcu::VarId> vars;
  /// Offsets are stored short.
  runtime::ProgramKernels programKernels() const;  ///< in the order of `kernels`
  size_t number(const std::string& name) const;    ///< of a kernel in programKernels()

  static const std::vector<int64_t>& constantDivisors();
  static constexpr int64_t kProductDivisions = 20;

 private:
  lcu::VarId array(const std::string& name, ScalarType type, lcu::ExprRef extent);
  lcu::VarId result(const std::string& name, lcu::VarKind kind, ScalarType type, lcu::ExprRef extent);
  lcu::ExprRef at(const std::string& array, lcu::ExprRef position);
  lcu::Soac soac(lcu::SoacKind kind, const lcu::Space& space, std::vector<lcu::ExprRef> pull);
  lcu::Soac filter(const lcu::Space& space, std::vector<lcu::ExprRef> pull, lcu::ExprRef where);
  void ofOtherTypes(const lcu::Space& flat, const lcu::Space& segmented);
  void withSegmentNumbers(const lcu::Space& segmented);
  void ofCharacters(const lcu::Space& flat, const lcu::Space& segmented);
  void ofDivisions(const lcu::Space& flat);
  void sweepOffsets();
  void withAndWithoutChecks(const lcu::Space& flat, const lcu::Space& segmented);
  void kernel(const std::string& name, std::vector<lcu::Soac> bindings);
  lcu::ExprRef blackScholes(lcu::ExprRef spot, lcu::ExprRef strike, lcu::ExprRef years);
  lcu::ExprRef cumulative(lcu::ExprRef d);
};

}  // namespace kelpie::tests
