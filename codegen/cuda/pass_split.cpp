#include "codegen/cuda/pass_split.h"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/cuda/pass_plan.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

/// What a binding asks of its pass. Either: nothing.
enum class Course : uint8_t { Either, Forward, Backward, Segments };

Course courseOf(const Soac& soac) {
  switch (soac.kind) {
    case SoacKind::Scan:
      return soac.backward ? Course::Backward : Course::Forward;
    case SoacKind::Filter:
    case SoacKind::Partition:
      return Course::Forward;
    case SoacKind::Reduce:
      if (soac.space.segmented()) return Course::Segments;
      return commutes(soac.combine) ? Course::Either : Course::Forward;
    default:
      return Course::Either;
  }
}

/// Whether a binding reads what others of the kernel make, other than maps that are stored in any case.
bool readsLocally(const lcu::Kernel& kernel, const Soac& soac) {
  const auto reads = lcu::freeVars(soac);
  for (const Soac& other : kernel.bindings) {
    for (VarId v : other.results) {
      if (std::find(reads.begin(), reads.end(), v) == reads.end()) continue;
      const bool stored = std::find(kernel.returns.begin(), kernel.returns.end(), v) != kernel.returns.end();
      if (other.kind != SoacKind::Map || !stored) return true;
    }
  }
  return false;
}

}  // namespace

bool runsBackward(const lcu::Kernel& kernel) {
  return std::any_of(kernel.bindings.begin(), kernel.bindings.end(),
                     [](const Soac& s) { return courseOf(s) == Course::Backward; });
}

std::vector<KernelPart> splitIntoPasses(const lcu::Kernel& kernel) {
  std::vector<KernelPart> passes;
  std::vector<Course> courses;
  std::map<VarId, size_t> passOf;
  std::set<VarId> returned(kernel.returns.begin(), kernel.returns.end());
  for (uint32_t b = 0; b < kernel.bindings.size(); ++b) {
    const Soac& soac = kernel.bindings[b];
    size_t pass = 0;
    auto reads = lcu::freeVars(soac);
    for (VarId v : reads)
      if (auto it = passOf.find(v); it != passOf.end()) pass = std::max(pass, it->second);
    Course course = courseOf(soac);
    if (course == Course::Segments && readsLocally(kernel, soac)) course = Course::Forward;
    while (pass < passes.size() && course != Course::Either && courses[pass] != Course::Either &&
           courses[pass] != course)
      ++pass;
    if (pass == passes.size()) {
      passes.push_back({{kernel.name, {}, {}}, {}});
      courses.push_back(Course::Either);
    }
    if (course != Course::Either) courses[pass] = course;
    passes[pass].kernel.bindings.push_back(soac);
    passes[pass].bindings.push_back(b);
    for (VarId v : soac.results) passOf[v] = pass;
    for (VarId v : reads)
      if (auto it = passOf.find(v); it != passOf.end() && it->second < pass) returned.insert(v);
  }
  for (KernelPart& part : passes)
    for (const Soac& soac : part.kernel.bindings)
      for (VarId v : soac.results)
        if (returned.contains(v)) part.kernel.returns.push_back(v);
  return passes;
}

}  // namespace kelpie::codegen::cuda
