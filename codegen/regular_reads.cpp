#include "codegen/regular_reads.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;

namespace {

constexpr uint32_t kElement = 0, kSegment = 1, kPosition = 2;

class Steps {
 public:
  explicit Steps(uint32_t param) : param_(param) {}

  Step of(ExprRef e) {
    if (const auto known = known_.find(e); known != known_.end()) return known->second;
    const Step step = find(e);
    known_.emplace(e, step);
    return step;
  }

 private:
  Step find(ExprRef e) {
    switch (e->kind) {
      case ExprKind::Constant:
      case ExprKind::Host:
      case ExprKind::Size:
        return Step::None;
      case ExprKind::Param:
        if (e->index == param_) return Step::One;
        if (e->index == kElement) return param_ == kPosition ? Step::One : Step::Many;
        return Step::None;
      case ExprKind::LoopVar:
        return Step::Many;
      case ExprKind::Convert:
        return isFloat(e->type) ? some(e) : of(e->operands[0]);
      case ExprKind::Check:
        return of(e->operands[1]);
      case ExprKind::Project:
        return ofProject(e);
      case ExprKind::Op:
        return ofOperation(e);
      default:
        return some(e);
    }
  }
  /// Of what any difference makes arbitrary.
  Step some(ExprRef e) {
    const bool same =
        std::all_of(e->operands.begin(), e->operands.end(), [&](ExprRef x) { return of(x) == Step::None; });
    return same ? Step::None : Step::Many;
  }
  Step ofProject(ExprRef e) {
    const ExprRef choice = e->operands[0];
    if (choice->kind != ExprKind::If) return some(e);
    const size_t k = lcu::valueCount(choice);
    return std::max(of(choice->operands[1 + e->index]), of(choice->operands[1 + k + e->index]));
  }
  Step ofOperation(ExprRef e) {
    const Step a = of(e->operands[0]), b = e->operands.size() > 1 ? of(e->operands[1]) : Step::None;
    switch (e->op) {
      case ScalarOp::Add:
        return a == Step::None ? b : b == Step::None ? a : Step::Many;
      case ScalarOp::Sub:
        return b == Step::None ? a : Step::Many;
      case ScalarOp::Max:
      case ScalarOp::Min:
        return std::max(a, b);
      case ScalarOp::Div:  // the same for most
        return b == Step::None && a == Step::One ? Step::None : some(e);
      case ScalarOp::Rem:
        return b == Step::None && a == Step::One ? Step::One : some(e);
      default:
        return some(e);
    }
  }

  const uint32_t param_;
  std::unordered_map<ExprRef, Step> known_;
};

/// Whether all bindings over elements satisfy the test.
template <class Test>
bool allOfElements(const lcu::Kernel& kernel, const KernelInfo& info, const Test& test) {
  if (info.space.kind != lcu::SpaceKind::Regular) return false;
  for (size_t b = 0; b < kernel.bindings.size(); ++b)
    if (info.bindings[b].role == BindingRole::Element && !test(kernel.bindings[b], info.bindings[b]))
      return false;
  return true;
}

}  // namespace

Step stepOf(ExprRef e, uint32_t param) { return Steps(param).of(e); }

bool readsAcross(ExprRef load) {
  const ExprRef at = load->operands[0];
  return stepOf(at, kSegment) == Step::One && stepOf(at, kPosition) == Step::Many;
}

RegularReads regularReads(const std::vector<ExprRef>& thunks) {
  Steps bySegment(kSegment), byPosition(kPosition);
  RegularReads reads;
  lcu::forEachNode(thunks, [&](ExprRef e) {
    if (e->kind != ExprKind::Load) return;
    const ExprRef at = e->operands[0];
    const Step segment = bySegment.of(at), position = byPosition.of(at);
    if (segment == Step::None || position == Step::None) {
      reads.shared |= usesParam(at, kElement) || (usesParam(at, kSegment) && usesParam(at, kPosition));
    } else if (segment == Step::One) {
      (position == Step::One ? reads.sliding : reads.across) = true;
    } else {
      (position == Step::One ? reads.along : reads.other) = true;
    }
  });
  return reads;
}

bool readsTransposed(const Soac& map) {
  return map.space.kind == lcu::SpaceKind::Regular && !lcu::anyNode(thunksOf(map), lcu::isUnbounded) &&
         regularReads(thunksOf(map)).across;
}

bool foldsRegular(const lcu::Kernel& kernel, const KernelInfo& info) {
  return !info.hasRole(BindingRole::Finish) &&
         allOfElements(kernel, info, [&](const Soac& soac, const BindingInfo& binding) {
           return soac.kind == SoacKind::Reduce && soac.space == info.space && binding.localReads.empty() &&
                  commutes(soac.combine) &&
                  !lcu::anyNode(thunksOf(soac), [](ExprRef e) { return e->kind == ExprKind::Recursion; });
         });
}

bool mapsRegular(const lcu::Kernel& kernel, const KernelInfo& info) {
  return !info.hasRole(BindingRole::Epilogue) && !info.hasRole(BindingRole::Finish) &&
         allOfElements(kernel, info, [](const Soac& soac, const BindingInfo&) {
           return soac.kind == SoacKind::Map && !lcu::anyNode(thunksOf(soac), lcu::isUnbounded);
         });
}

RegularReads regularReads(const lcu::Kernel& kernel, const KernelInfo& info) {
  std::vector<ExprRef> thunks;
  for (size_t b = 0; b < kernel.bindings.size(); ++b) {
    if (info.bindings[b].role != BindingRole::Element) continue;
    // What this kernel makes is read at %i alone, and in a register.
    lcu::forEachNode(thunksOf(kernel.bindings[b]), [&](ExprRef e) {
      if (e->kind == ExprKind::Load && info.parameter(ParameterKind::Array, e->index)) thunks.push_back(e);
    });
  }
  return regularReads(thunks);
}

namespace {

/// The thunks of elements.
std::vector<ExprRef> elementThunks(const lcu::Kernel& kernel, const KernelInfo& info) {
  std::vector<ExprRef> thunks;
  for (size_t b = 0; b < kernel.bindings.size(); ++b)
    if (info.bindings[b].role == BindingRole::Element)
      for (ExprRef e : thunksOf(kernel.bindings[b])) thunks.push_back(e);
  return thunks;
}

std::optional<TwoIndices> indicesOf(const std::vector<ExprRef>& thunks, const KernelInfo& info) {
  TwoIndices found{};
  bool others = false;  // who looks at the segment in another way
  const auto isSegment = [](ExprRef e) { return e->kind == ExprKind::Param && e->index == kSegment; };
  lcu::forEachNode(thunks, [&](ExprRef e) {
    others |= isElement(e);
    if (std::none_of(e->operands.begin(), e->operands.end(), isSegment)) return;
    const bool divides = e->kind == ExprKind::Op && isSegment(e->operands[0]) &&
                         (e->op == ScalarOp::Div || e->op == ScalarOp::Rem);
    if (!divides || (found.inner && found.inner != e->operands[1])) {
      others = true;
      return;
    }
    found.inner = e->operands[1];
    (e->op == ScalarOp::Div ? found.outer : found.place) = e;
  });
  others |= std::any_of(thunks.begin(), thunks.end(), isSegment);
  if (others || !found.outer || !found.place) return std::nullopt;
  const ExprRef inner = found.inner;
  const bool known = inner->kind == ExprKind::Constant ||
                     (inner->kind == ExprKind::Host && info.parameter(ParameterKind::Scalar, inner->index)) ||
                     (inner->kind == ExprKind::Size && info.parameter(ParameterKind::Size, inner->index));
  if (!known) return std::nullopt;
  // Whole rows of segments: their number is a product with n.
  const ExprRef segments = info.space.segments;
  const auto isProduct = [&](ExprRef e) {
    return e->kind == ExprKind::Op && e->op == ScalarOp::Mul &&
           (e->operands[0] == found.inner || e->operands[1] == found.inner);
  };
  const auto all = lcu::asIndex(segments), places = lcu::asIndex(inner);
  const bool whole = isProduct(segments) || (all && places && *places > 0 && *all % *places == 0);
  return whole ? std::optional(found) : std::nullopt;
}

}  // namespace

std::optional<TwoIndices> twoIndices(const lcu::Kernel& kernel, const KernelInfo& info) {
  if (!foldsRegular(kernel, info) || !regularReads(kernel, info).bySegments()) return std::nullopt;
  return indicesOf(elementThunks(kernel, info), info);
}

namespace {

/// Finds the values of a product in the thunks of a fold.
class ProductFinder {
 public:
  ProductFinder(const TwoIndices& indices, const lcu::Program& program)
      : indices_(indices), arena_(*program.arena) {}

  /// False: something is loaded in another way.
  bool visit(ExprRef e) {
    if (!seen_.insert(e).second) return true;
    const Uses uses = usesOf(e);
    if (!uses.loads) return true;
    const bool oneIndex = !(uses.outer && uses.place);
    if (oneIndex && !uses.unbounded && !e->canFail && !lcu::isMultiValued(e)) {
      values_.push_back({e, !uses.place, isByPosition(e, !uses.place)});
      return true;
    }
    if (e->kind == ExprKind::Load || uses.unbounded) return false;
    // What a branch loads may not be there for other elements.
    const size_t strict = lcu::strictOperands(e);
    for (size_t k = 0; k < e->operands.size(); ++k)
      if (k < strict ? !visit(e->operands[k]) : usesOf(e->operands[k]).loads) return false;
    return true;
  }
  std::vector<ProductValue> take() { return std::move(values_); }

 private:
  struct Uses {
    bool outer = false, place = false, loads = false, unbounded = false;
  };

  Uses usesOf(ExprRef e) {
    if (const auto known = uses_.find(e); known != uses_.end()) return known->second;
    Uses uses;
    if (e == indices_.outer || e == indices_.place) {
      (e == indices_.outer ? uses.outer : uses.place) = true;
      return uses_[e] = uses;
    }
    uses.loads = e->kind == ExprKind::Load;
    uses.unbounded = lcu::isUnbounded(e);
    for (ExprRef operand : e->operands) {
      const Uses of = usesOf(operand);
      uses.outer |= of.outer;
      uses.place |= of.place;
      uses.loads |= of.loads;
      uses.unbounded |= of.unbounded;
    }
    return uses_[e] = uses;
  }

  bool isByPosition(ExprRef value, bool ofOuter) {
    bool byIndex = false, byPosition = false;
    lcu::forEachNode({value}, [&](ExprRef e) {
      if (e->kind != ExprKind::Load) return;
      const ExprRef at = arena_.rewrite(e->operands[0], [&](ExprRef n) -> ExprRef {
        return n == (ofOuter ? indices_.outer : indices_.place) ? arena_.param(kSegment) : nullptr;
      });
      byIndex |= stepOf(at, kSegment) == Step::One && stepOf(at, kPosition) == Step::Many;
      byPosition |= stepOf(at, kPosition) == Step::One;
    });
    return byPosition || !byIndex;
  }

  const TwoIndices& indices_;
  lcu::ExprArena& arena_;
  std::unordered_set<ExprRef> seen_;
  std::unordered_map<ExprRef, Uses> uses_;
  std::vector<ProductValue> values_;
};

}  // namespace

std::optional<Product> productOf(const lcu::Kernel& kernel, const KernelInfo& info,
                                 const lcu::Program& program) {
  constexpr size_t kMost = 4;  // values
  if (!foldsRegular(kernel, info)) return std::nullopt;
  const std::vector<ExprRef> thunks = elementThunks(kernel, info);
  const bool fails = std::any_of(thunks.begin(), thunks.end(), [](ExprRef e) { return e->canFail; });
  const auto indices = indicesOf(thunks, info);
  if (!indices || fails) return std::nullopt;
  ProductFinder finder(*indices, program);
  for (ExprRef e : thunks)
    if (!finder.visit(e)) return std::nullopt;
  Product product{*indices, finder.take()};
  const auto loads = [&](bool ofOuter) {
    return std::any_of(product.values.begin(), product.values.end(), [&](const ProductValue& v) {
      return v.ofOuter == ofOuter && usesParam(v.value, kPosition);
    });
  };
  if (product.values.size() > kMost || !loads(true) || !loads(false)) return std::nullopt;
  return product;
}

}  // namespace kelpie::codegen
