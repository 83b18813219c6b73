#include "codegen/cuda/pass_split.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "codegen/cuda/pass_plan.h"
#include "codegen/cuda/range_scans.h"
#include "codegen/regular_reads.h"

namespace kelpie::codegen::cuda {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

/// What a binding asks of its pass. Map: that it is none of maps that go by segments, or holds maps alone;
/// Either: the former; Loops: the same, and that nothing in it waits for other tiles or folds segments.
enum class Course : uint8_t { Map, Either, Loops, Forward, Backward, Segments, Transposed };

Course courseOf(const Soac& soac) {
  switch (soac.kind) {
    case SoacKind::Map:
      return readsTransposed(soac) ? Course::Transposed : Course::Map;
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

/// The course of a pass that holds both; nothing: none does.
std::optional<Course> together(Course a, Course b) {
  if (a > b) std::swap(a, b);
  const bool isFree = a == Course::Map || (a == Course::Either && b != Course::Transposed);
  return isFree || a == b ? std::optional(b) : std::nullopt;
}

/// Finds maps that loop and had better not do so in a pass that scans, filters or folds segments: if no less
/// of their results is stored in any case than then is beside it, and nothing there goes through the same
/// loops.
class LoopsApart {
 public:
  LoopsApart(const lcu::Kernel& kernel, const KernelInfo& info, const lcu::Program& program)
      : kernel_(kernel), info_(info), program_(program) {
    for (const Soac& soac : kernel.bindings)
      if (!together(courseOf(soac), Course::Loops))
        for (ExprRef e : loopsOf(soac)) ofOthers_.insert(e);
  }

  bool contains(uint32_t b) const {
    const Soac& soac = kernel_.bindings[b];
    if (soac.kind != SoacKind::Map || info_.bindings[b].role != BindingRole::Element) return false;
    const std::set<ExprRef> loops = loopsOf(soac);
    if (loops.empty()) return false;
    int stored = 0, more = 0;  // bytes of an element
    for (VarId v : soac.results) (info_.output(v) ? stored : more) += sizeOf(program_.vars.at(v).type);
    return more <= stored &&
           std::none_of(loops.begin(), loops.end(), [this](ExprRef e) { return ofOthers_.contains(e); });
  }

 private:
  static std::set<ExprRef> loopsOf(const Soac& soac) {
    std::set<ExprRef> loops;
    lcu::forEachNode(thunksOf(soac), [&](ExprRef e) {
      if (lcu::isUnbounded(e)) loops.insert(e);
    });
    return loops;
  }

  const lcu::Kernel& kernel_;
  const KernelInfo& info_;
  const lcu::Program& program_;
  std::set<ExprRef> ofOthers_;
};

/// Finds what a pass had better compute again than read: maps that are not stored in any case, in a few steps
/// from elements that they read side by side, no more bytes than writing and reading them would take.
class Repeated {
 public:
  explicit Repeated(const lcu::Kernel& kernel) {
    for (uint32_t b = 0; b < kernel.bindings.size(); ++b) {
      const Soac& soac = kernel.bindings[b];
      for (VarId v : soac.results) made_.insert(v);
      if (soac.kind == SoacKind::Map && isCheap(soac) && !isStored(kernel, soac))
        for (VarId v : soac.results) mapOf_[v] = b;
    }
  }
  /// The binding that makes `v`, where that may be repeated.
  const uint32_t* map(VarId v) const {
    auto it = mapOf_.find(v);
    return it == mapOf_.end() ? nullptr : &it->second;
  }

 private:
  static bool isStored(const lcu::Kernel& kernel, const Soac& soac) {
    return std::any_of(kernel.returns.begin(), kernel.returns.end(), [&](VarId v) {
      return std::find(soac.results.begin(), soac.results.end(), v) != soac.results.end();
    });
  }

  bool isCheap(const Soac& soac) const {
    constexpr size_t kManyNodes = 40;
    int made = 0, loaded = 0;  // bytes of an element
    for (ExprRef e : soac.pull) made += sizeOf(e->type);
    size_t nodes = 0;
    const bool costs = lcu::anyNode(thunksOf(soac), [&](ExprRef e) {
      if (e->kind != ExprKind::Load) return lcu::isUnbounded(e) || ++nodes > kManyNodes;
      if (made_.contains(e->index)) return !mapOf_.contains(e->index);
      const ExprRef at = e->operands[0];
      // What is read by segment serves many elements.
      if (at->kind == ExprKind::Param && at->index == 0) loaded += sizeOf(e->type);
      return at->kind != ExprKind::Param;
    });
    return !costs && loaded <= 2 * made;
  }

  std::set<VarId> made_;
  std::map<VarId, uint32_t> mapOf_;
};

/// Finds reductions of segments that are folded beside scans of these (segment_ends.cuh), in kernels that
/// have nothing else that goes forward, such as filters.
class BesideScans {
 public:
  BesideScans(const lcu::Kernel& kernel, const KernelInfo& info) : kernel_(kernel), info_(info) {
    for (uint32_t b = 0; b < kernel.bindings.size(); ++b) {
      const Soac& soac = kernel.bindings[b];
      others_ |=
          courseOf(soac) == Course::Forward && (soac.kind != SoacKind::Scan || !soac.space.segmented());
      numbers_ |= info_.bindings[b].usesSegment || info_.bindings[b].usesPosition;
      if (soac.kind == SoacKind::Scan) scanned_ += carriedBytes(soac);
    }
  }

  /// Whether binding `b` and those of a pass make one pass, where one side folds segments and the other
  /// scans: some elements are read by both, and scans have what is folded, or carry little more. With 12
  /// bytes to carry and numbers of segments one pass took up to 1.4 times as long as two on an H100, with 16
  /// up to 1.8 times.
  bool join(const std::vector<uint32_t>& pass, Course ofPass, uint32_t b, Course course) const {
    if (others_ || std::min(ofPass, course) != Course::Forward ||
        std::max(ofPass, course) != Course::Segments)
      return false;
    std::vector<uint32_t> all = pass;
    all.push_back(b);
    int more = 0;  // bytes to carry
    for (uint32_t k : all) {
      const Soac& soac = kernel_.bindings[k];
      if (courseOf(soac) != Course::Segments) continue;
      if (!isIndependent(k)) return false;
      const bool scanned = std::any_of(
          all.begin(), all.end(), [&](uint32_t scan) { return foldsTheSame(kernel_.bindings[scan], soac); });
      if (!scanned) more += carriedBytes(soac);
    }
    return (more == 0 || (!numbers_ && scanned_ + more <= kMostBesideScans)) &&
           std::any_of(pass.begin(), pass.end(),
                       [&](uint32_t k) { return readTheSame(kernel_.bindings[k], kernel_.bindings[b]); });
  }

 private:
  /// Whether a reduction reads nothing that scans make, and would be folded by ranges of elements.
  bool isIndependent(uint32_t b) const {
    const Soac& soac = kernel_.bindings[b];
    const bool regular = soac.space.kind == lcu::SpaceKind::Regular;
    return info_.bindings[b].level == 0 && !lcu::anyNode(thunksOf(soac), [&](ExprRef e) {
             return lcu::isUnbounded(e) ||
                    (regular && e->kind == ExprKind::Load && e->operands[0]->kind != ExprKind::Param);
           });
  }

  /// Whether both read elements of an array, or the other reads what the one makes.
  static bool readTheSame(const Soac& one, const Soac& other) {
    std::set<VarId> read(one.results.begin(), one.results.end());
    const auto isElementLoad = [](ExprRef e) {
      return e->kind == ExprKind::Load && isElement(e->operands[0]);
    };
    lcu::forEachNode(thunksOf(one), [&](ExprRef e) {
      if (isElementLoad(e)) read.insert(e->index);
    });
    return lcu::anyNode(thunksOf(other),
                        [&](ExprRef e) { return isElementLoad(e) && read.contains(e->index); });
  }

  const lcu::Kernel& kernel_;
  const KernelInfo& info_;
  bool others_ = false, numbers_ = false;
  int scanned_ = 0;  ///< bytes that scans carry
};

/// Takes out of a pass what only later ones read, since they repeat it.
void leaveOut(KernelPart& part, const std::set<uint32_t>& repeated) {
  std::set<VarId> read;
  for (size_t k = part.bindings.size(); k-- > 0;) {
    const Soac& soac = part.kernel.bindings[k];
    const auto isRead = [&](VarId v) { return read.contains(v); };
    if (repeated.contains(part.bindings[k]) &&
        std::none_of(soac.results.begin(), soac.results.end(), isRead)) {
      part.kernel.bindings.erase(part.kernel.bindings.begin() + static_cast<ptrdiff_t>(k));
      part.bindings.erase(part.bindings.begin() + static_cast<ptrdiff_t>(k));
      continue;
    }
    for (VarId v : lcu::freeVars(soac)) read.insert(v);
  }
}

}  // namespace

bool runsBackward(const lcu::Kernel& kernel) {
  return std::any_of(kernel.bindings.begin(), kernel.bindings.end(),
                     [](const Soac& s) { return courseOf(s) == Course::Backward; });
}

std::vector<KernelPart> splitIntoPasses(const lcu::Kernel& kernel, const lcu::Program& program) {
  const KernelInfo info = analyseKernel(kernel, program);
  if (scansByRanges(kernel, info)) {
    std::vector<uint32_t> all(kernel.bindings.size());
    std::iota(all.begin(), all.end(), 0);
    return {{kernel, std::move(all)}};
  }
  std::vector<KernelPart> passes;
  std::vector<Course> courses;
  std::map<VarId, size_t> passOf;
  std::set<VarId> returned(kernel.returns.begin(), kernel.returns.end());
  const Repeated repeated(kernel);
  const BesideScans besideScans(kernel, info);
  const LoopsApart loopsApart(kernel, info, program);
  std::set<uint32_t> repeatedLater;
  // Puts a binding into a pass, and before it what it has to repeat.
  const std::function<void(uint32_t, size_t)> put = [&](uint32_t b, size_t pass) {
    std::vector<uint32_t>& numbers = passes[pass].bindings;
    if (std::find(numbers.begin(), numbers.end(), b) != numbers.end()) return;
    for (VarId v : lcu::freeVars(kernel.bindings[b])) {
      const auto made = passOf.find(v);
      if (made == passOf.end() || made->second >= pass) continue;
      if (const uint32_t* map = repeated.map(v)) {
        repeatedLater.insert(*map);
        put(*map, pass);
      } else {
        returned.insert(v);
      }
    }
    passes[pass].kernel.bindings.push_back(kernel.bindings[b]);
    numbers.push_back(b);
  };
  for (uint32_t b = 0; b < kernel.bindings.size(); ++b) {
    const Soac& soac = kernel.bindings[b];
    size_t pass = 0;
    for (VarId v : lcu::freeVars(soac))
      if (auto it = passOf.find(v); it != passOf.end()) pass = std::max(pass, it->second);
    const Course course = loopsApart.contains(b) ? Course::Loops : courseOf(soac);
    const auto withThis = [&](size_t k) {
      if (besideScans.join(passes[k].bindings, courses[k], b, course)) return std::optional(Course::Forward);
      return together(courses[k], course);
    };
    while (pass < passes.size() && !withThis(pass)) ++pass;
    if (pass == passes.size()) {
      passes.push_back({{kernel.name, {}, {}}, {}});
      courses.push_back(Course::Map);
    }
    courses[pass] = *withThis(pass);
    put(b, pass);
    for (VarId v : soac.results) passOf[v] = pass;
  }
  for (KernelPart& part : passes) leaveOut(part, repeatedLater);
  for (KernelPart& part : passes)
    for (const Soac& soac : part.kernel.bindings)
      for (VarId v : soac.results)
        if (returned.contains(v)) part.kernel.returns.push_back(v);
  return passes;
}

}  // namespace kelpie::codegen::cuda
