#include "codegen/kernel_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <unordered_set>

#include "ir/diagnostic.h"
#include "ir/places.h"

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

bool KernelInfo::hasRole(BindingRole role) const {
  return std::any_of(bindings.begin(), bindings.end(), [&](const BindingInfo& b) { return b.role == role; });
}
const KernelParameter* KernelInfo::parameter(ParameterKind kind, VarId var) const {
  for (const auto& p : parameters)
    if (p.kind == kind && p.var == var) return &p;
  return nullptr;
}
const KernelOutput* KernelInfo::output(VarId var) const {
  for (const auto& o : outputs)
    if (o.var == var) return &o;
  return nullptr;
}

int64_t capacity(const KernelOutput& output, const LaunchExtents& extents) {
  switch (output.extent) {
    case ExtentKind::One:
      return 1;
    case ExtentKind::Elements:
      return extents.elements;
    case ExtentKind::ElementsPlusOne:
      return extents.elements + 1;
    case ExtentKind::Segments:
      return extents.segments;
    case ExtentKind::SegmentsPlusOne:
      return extents.segments + 1;
    case ExtentKind::Target:
      return extents.targets.at(output.target);
  }
  throw InternalError("unknown extent of a kernel output");
}

int64_t written(const KernelOutput& output, const LaunchExtents& extents) {
  return output.scattered ? extents.elements : capacity(output, extents);
}

std::vector<ExprRef> thunksOf(const Soac& soac) {
  std::vector<ExprRef> thunks = soac.pull;
  if (soac.where) thunks.push_back(soac.where);
  if (soac.destination) thunks.push_back(soac.destination);
  thunks.insert(thunks.end(), soac.effects.begin(), soac.effects.end());
  return thunks;
}

bool isElement(ExprRef e) { return e->kind == ExprKind::Param && e->index == 0; }

bool usesParam(ExprRef e, uint32_t number) {
  return lcu::anyNode({e},
                      [&](ExprRef node) { return node->kind == ExprKind::Param && node->index == number; });
}

std::vector<ExprRef> eagerThunks(const Soac& soac) {
  std::vector<ExprRef> thunks = soac.effects;
  if (soac.where) thunks.push_back(soac.where);
  if (soac.destination) thunks.push_back(soac.destination);
  if (soac.kind != SoacKind::Filter) thunks.insert(thunks.end(), soac.pull.begin(), soac.pull.end());
  return thunks;
}

std::vector<ExprRef> lateThunks(const Soac& soac) {
  return soac.kind == SoacKind::Filter ? soac.pull : std::vector<ExprRef>();
}

namespace {

/// Of floats too: Max and Min of numbers that are not ordered are those of whoever comes second.
bool commutes(ScalarOp op) {
  switch (op) {
    case ScalarOp::Add:
    case ScalarOp::Mul:
    case ScalarOp::Max:
    case ScalarOp::Min:
    case ScalarOp::And:
    case ScalarOp::Or:
    case ScalarOp::Xor:
      return true;
    default:
      return false;
  }
}

/// Whether `b` is `a` with the k left and the k right parameters in each other's place.
bool mirrored(ExprRef a, ExprRef b, uint32_t k) {
  if (a->kind != b->kind || a->type != b->type || a->operands.size() != b->operands.size()) return false;
  if (a->kind == ExprKind::Param) return b->index == (a->index + k) % (2 * k);
  if (a->op != b->op || a->index != b->index || a->count != b->count || !(a->constant == b->constant))
    return false;
  const bool either =
      a->kind == ExprKind::Op && (commutes(a->op) || a->op == ScalarOp::Equal || a->op == ScalarOp::NotEqual);
  if (either && mirrored(a->operands[0], b->operands[1], k) && mirrored(a->operands[1], b->operands[0], k))
    return true;
  for (size_t j = 0; j < a->operands.size(); ++j)
    if (!mirrored(a->operands[j], b->operands[j], k)) return false;
  return true;
}

/// The components whose parameters occur in `e`.
std::set<size_t> componentsOf(ExprRef e, size_t k) {
  std::set<size_t> components;
  lcu::forEachNode({e}, [&](ExprRef node) {
    if (node->kind == ExprKind::Param) components.insert(node->index % k);
  });
  return components;
}

/// The commutative operation of the component on its own two parameters, if that is what its result is.
std::optional<ScalarOp> ownOperation(const lcu::Operator& combine, size_t j) {
  const ExprRef e = combine.result[j];
  if (e->kind != ExprKind::Op || !commutes(e->op)) return std::nullopt;
  const ExprRef a = e->operands[0], b = e->operands[1];
  if (a->kind != ExprKind::Param || b->kind != ExprKind::Param) return std::nullopt;
  // Arenas may order the operands of a commutative operation as they like.
  const bool own =
      std::min(a->index, b->index) == j && std::max(a->index, b->index) == combine.result.size() + j;
  return own ? std::optional(e->op) : std::nullopt;
}

/// Whether the component is folded from what either side has of it, if that side has the least (or greatest)
/// element of both in component `of`.
std::optional<LaneFold> foldOfEqual(const lcu::Operator& combine, size_t j) {
  const size_t k = combine.result.size();
  const ExprRef e = combine.result[j];
  if (e->kind != ExprKind::Op || !commutes(e->op)) return std::nullopt;
  std::optional<size_t> of;
  std::set<uint32_t> sides;
  for (ExprRef operand : e->operands) {
    if (operand->kind != ExprKind::Project || operand->operands[0]->kind != ExprKind::If) return std::nullopt;
    const ExprRef choice = operand->operands[0];
    if (lcu::valueCount(choice) != 1) return std::nullopt;
    const ExprRef test = choice->operands[0], value = choice->operands[1], otherwise = choice->operands[2];
    if (value->kind != ExprKind::Param || value->index % k != j || !sides.insert(value->index).second ||
        otherwise->kind != ExprKind::Constant || !(otherwise->constant == combine.identity[j]) ||
        test->kind != ExprKind::Op || test->op != ScalarOp::Equal)
      return std::nullopt;
    const size_t found = test->operands[0]->kind == ExprKind::Param ? 1 : 0;
    const ExprRef side = test->operands[1 - found];
    if (side->kind != ExprKind::Param || (side->index < k) != (value->index < k)) return std::nullopt;
    const size_t component = side->index % k;
    if (component == j || test->operands[found] != combine.result[component]) return std::nullopt;
    if (of && *of != component) return std::nullopt;
    of = component;
  }
  const auto extreme = ownOperation(combine, *of);
  if (extreme != ScalarOp::Min && extreme != ScalarOp::Max) return std::nullopt;
  return LaneFold{e->op, *of};
}

}  // namespace

namespace {

constexpr uint32_t kPosition = 2;

/// Whether no element of the type comes before the identity.
bool isWorst(const Scalar& identity, bool greatest) {
  if (isFloat(identity.type)) return std::isinf(identity.f) && std::signbit(identity.f) == greatest;
  if (identity.type != ScalarType::Int64 && identity.type != ScalarType::Int32) return false;
  const bool wide = identity.type == ScalarType::Int64;
  if (greatest)
    return identity.i == (wide ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int32_t>::min());
  return identity.i == (wide ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max());
}

}  // namespace

std::optional<size_t> extremeOfFirst(const Soac& reduction, size_t k) {
  const auto fold = laneFolds(reduction.combine)[k];
  if (!fold || fold->of == k || fold->operation != ScalarOp::Min) return std::nullopt;
  const ExprRef pull = reduction.pull[k];
  if (pull->kind != ExprKind::Param || pull->index != kPosition) return std::nullopt;
  const Scalar& none = reduction.combine.identity[k];
  if (!(none == Scalar::ofInt(none.type, std::numeric_limits<int64_t>::max()))) return std::nullopt;
  const bool greatest = reduction.combine.result[fold->of]->op == ScalarOp::Max;
  if (!isWorst(reduction.combine.identity[fold->of], greatest)) return std::nullopt;
  return fold->of;
}

bool commutes(const lcu::Operator& combine) {
  return std::all_of(combine.result.begin(), combine.result.end(),
                     [&](ExprRef e) { return mirrored(e, e, static_cast<uint32_t>(combine.result.size())); });
}

std::vector<std::optional<ScalarOp>> componentOperations(const lcu::Operator& combine) {
  const size_t k = combine.result.size();
  std::vector<std::optional<ScalarOp>> operations(k);
  for (size_t j = 0; j < k; ++j) operations[j] = ownOperation(combine, j);
  for (size_t j = 0; j < k; ++j)
    for (size_t read : componentsOf(combine.result[j], k))
      if (read != j) operations[read].reset();
  return operations;
}

std::vector<std::optional<LaneFold>> laneFolds(const lcu::Operator& combine) {
  const auto lanewise = componentOperations(combine);
  std::vector<std::optional<LaneFold>> alone, all;
  for (size_t j = 0; j < combine.result.size(); ++j) {
    alone.push_back(lanewise[j] ? std::optional(LaneFold{*lanewise[j], j}) : std::nullopt);
    const auto own = ownOperation(combine, j);
    all.push_back(own ? LaneFold{*own, j} : foldOfEqual(combine, j));
  }
  return std::all_of(all.begin(), all.end(), [](const auto& fold) { return fold.has_value(); }) ? all : alone;
}

std::optional<std::vector<ScalarOp>> lanewiseOperations(const lcu::Operator& combine) {
  std::vector<ScalarOp> operations;
  for (const auto& op : componentOperations(combine)) {
    if (!op) return std::nullopt;
    operations.push_back(*op);
  }
  return operations;
}

std::string identifier(const std::string& text) {
  static const std::set<std::string> kReserved = {
      "alignas",   "alignof", "and",     "asm",      "auto",     "bool",      "break",     "case",
      "catch",     "char",    "class",   "const",    "continue", "default",   "delete",    "do",
      "double",    "else",    "enum",    "explicit", "export",   "extern",    "false",     "float",
      "for",       "friend",  "goto",    "if",       "inline",   "int",       "long",      "mutable",
      "namespace", "new",     "not",     "operator", "or",       "private",   "protected", "public",
      "register",  "return",  "short",   "signed",   "sizeof",   "static",    "struct",    "switch",
      "template",  "this",    "throw",   "true",     "try",      "typedef",   "typename",  "union",
      "unsigned",  "using",   "virtual", "void",     "volatile", "while",     "xor",       "main",
      "requires",  "concept", "bitand",  "bitor",    "compl",    "constexpr", "decltype",  "noexcept",
      "nullptr",   "wchar_t", "near",    "far",      "half"};
  std::string name;
  for (char c : text) {
    bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (plain) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty()) return "x";
  if (std::isdigit(static_cast<unsigned char>(name[0])) || name[0] == '_') name = "x" + name;
  if (kReserved.contains(name)) name += "_of_nesl";
  return name;
}

namespace {

class Analysis {
 public:
  Analysis(const lcu::Kernel& kernel, const lcu::Program& program) : kernel_(kernel), program_(program) {}

  KernelInfo run() {
    info_.name = identifier(kernel_.name);
    chooseSpace();
    for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
      for (VarId v : kernel_.bindings[b].results) producer_[v] = b;
    }
    for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) binding(b);
    collectParameters();
    collectOutputs();
    info_.counted = mayBeCounted();
    nameEverything();
    return std::move(info_);
  }

 private:
  void chooseSpace() {
    const Soac* flat = nullptr;
    for (const Soac& s : kernel_.bindings) {
      if (s.kind == SoacKind::Once) continue;
      if (s.space.segmented()) {
        info_.space = s.space;
        return;
      }
      if (!flat) flat = &s;
    }
    if (flat) info_.space = flat->space;
  }

  /// Of a kernel with a recursion the host may have to evaluate the launch; where the false elements of a
  /// partition begin, the number of all must be known.
  bool mayBeCounted() const {
    const ExprRef extent = info_.space.extent;
    if (info_.space.segmented() || !extent || extent->kind != ExprKind::Host ||
        extent->type != ScalarType::Int64)
      return false;
    for (const lcu::GlobalInput& global : program_.globals)
      if (std::find(global.vars.begin(), global.vars.end(), extent->index) != global.vars.end()) return false;
    return std::none_of(kernel_.bindings.begin(), kernel_.bindings.end(), [](const Soac& soac) {
      return soac.kind == SoacKind::Partition ||
             lcu::anyNode(thunksOf(soac), [](ExprRef e) { return e->kind == ExprKind::Recursion; });
    });
  }

  bool readsSegmentResult(const BindingInfo& b) const {
    return std::any_of(b.localReads.begin(), b.localReads.end(), [&](VarId v) {
      uint32_t p = producer_.at(v);
      const Soac& s = kernel_.bindings[p];
      return (s.kind == SoacKind::Reduce && s.space.segmented()) ||
             info_.bindings[p].role == BindingRole::Epilogue;
    });
  }

  void binding(uint32_t number) {
    const Soac& soac = kernel_.bindings[number];
    BindingInfo b;
    std::set<VarId> reads;
    lcu::forEachNode(thunksOf(soac), [&](ExprRef e) {
      switch (e->kind) {
        case ExprKind::Param:
          b.usesSegment |= e->index == 1;
          b.usesPosition |= e->index == 2;
          break;
        case ExprKind::Load:
        case ExprKind::Host:
          if (auto it = producer_.find(e->index); it != producer_.end() && it->second < number) {
            reads.insert(e->index);
          }
          break;
        default:
          break;
      }
    });
    b.localReads.assign(reads.begin(), reads.end());
    if (soac.kind == SoacKind::Once) {
      b.role = BindingRole::Finish;
    } else if (info_.space.segmented() && !soac.space.segmented() && soac.kind == SoacKind::Map &&
               soac.space.extent == info_.space.segments &&
               (soac.space.extent != info_.space.extent || readsSegmentResult(b))) {
      b.role = BindingRole::Epilogue;
    } else {
      for (VarId v : b.localReads) {
        uint32_t p = producer_[v];
        uint32_t after = kernel_.bindings[p].kind == SoacKind::Scan ? 1 : 0;
        b.level = std::max(b.level, info_.bindings[p].level + after);
      }
      bool pass =
          soac.kind == SoacKind::Scan || soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition;
      if (pass) info_.levels = std::max(info_.levels, b.level + 1);
    }
    info_.bindings.push_back(std::move(b));
    if (soac.kind == SoacKind::Permute) info_.targets.push_back(soac.target);
  }

  void collectParameters() {
    std::set<VarId> arrays, sizes, cells, scalars, gathered;
    std::vector<ExprRef> roots;
    for (size_t b = 0; b < kernel_.bindings.size(); ++b) {
      const Soac& s = kernel_.bindings[b];
      auto thunks = thunksOf(s);
      if (info_.bindings[b].role == BindingRole::Element)
        lcu::forEachNode(thunks, [&](ExprRef e) {
          if (e->kind == ExprKind::Load && !lcu::goesAlong(e->operands[0])) gathered.insert(e->index);
        });
      roots.insert(roots.end(), thunks.begin(), thunks.end());
      roots.insert(roots.end(), s.combine.result.begin(), s.combine.result.end());
    }
    lcu::forEachNode(roots, [&](ExprRef e) {
      switch (e->kind) {
        case ExprKind::Load:
          if (!producer_.contains(e->index)) arrays.insert(e->index);
          break;
        case ExprKind::Size:
          sizes.insert(e->index);
          break;
        case ExprKind::Host:
          if (producer_.contains(e->index)) break;
          (program_.vars.at(e->index).kind == lcu::VarKind::Cell ? cells : scalars).insert(e->index);
          break;
        default:
          break;
      }
    });
    if (info_.space.kind == lcu::SpaceKind::Offsets) arrays.insert(info_.space.offsets);
    auto add = [&](ParameterKind kind, const std::set<VarId>& vars) {
      for (VarId v : vars) {
        ScalarType type = kind == ParameterKind::Size ? lcu::kIndex : program_.vars.at(v).type;
        if (kind == ParameterKind::Array && info_.space.kind == lcu::SpaceKind::Offsets &&
            v == info_.space.offsets) {
          info_.offsetsParameter = static_cast<uint32_t>(info_.parameters.size());
        }
        info_.parameters.push_back({kind, v, type, "", kind == ParameterKind::Array && gathered.contains(v)});
      }
    };
    add(ParameterKind::Array, arrays);
    add(ParameterKind::Size, sizes);
    add(ParameterKind::Cell, cells);
    add(ParameterKind::Scalar, scalars);
  }

  void collectOutputs() {
    std::set<VarId> returned(kernel_.returns.begin(), kernel_.returns.end());
    uint32_t permutes = 0;
    for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
      const Soac& s = kernel_.bindings[b];
      uint32_t target = s.kind == SoacKind::Permute ? permutes++ : 0;
      // The number of survivors is the length of their arrays: it leaves with them.
      const bool counted = s.kind == SoacKind::Filter || s.kind == SoacKind::Partition;
      bool leaves =
          std::any_of(s.results.begin(), s.results.end(), [&](VarId v) { return returned.contains(v); });
      for (uint32_t r = 0; r < s.results.size(); ++r) {
        VarId v = s.results[r];
        if (!returned.contains(v) && !(counted && leaves && r == 0)) continue;
        const lcu::VarInfo& var = program_.vars.at(v);
        KernelOutput o{
            v, var.type, var.kind == lcu::VarKind::Cell, extentOf(b, r), target, {}, false, b, r, "",
            0, false};
        if (r > 0 && counted) {
          o.count = s.results[0];
          o.countsFalse = s.kind == SoacKind::Partition && r > s.pull.size();
        }
        if (s.kind == SoacKind::Permute) {
          o.scattered = s.fill.empty();
          if (!s.onto.empty()) o.onto = s.onto[r];
        }
        info_.outputs.push_back(std::move(o));
      }
    }
  }

  ExtentKind extentOf(uint32_t b, uint32_t result) const {
    const Soac& s = kernel_.bindings[b];
    switch (s.kind) {
      case SoacKind::Once:
        return ExtentKind::One;
      case SoacKind::Map:
        return info_.bindings[b].role == BindingRole::Epilogue ? ExtentKind::Segments : ExtentKind::Elements;
      case SoacKind::Permute:
        return ExtentKind::Target;
      case SoacKind::Reduce:
        return s.space.segmented() ? ExtentKind::Segments : ExtentKind::One;
      case SoacKind::Scan:
        return s.withTotal ? ExtentKind::ElementsPlusOne : ExtentKind::Elements;
      case SoacKind::Filter:
        if (result > 0) return ExtentKind::Elements;
        return s.space.segmented() ? ExtentKind::SegmentsPlusOne : ExtentKind::One;
      case SoacKind::Partition:
        return result == 0 ? ExtentKind::One : ExtentKind::Elements;
    }
    throw InternalError("unknown kind of SOAC");
  }

  void nameEverything() {
    // Names that generated code uses itself. Names of temporaries end in _ and a number; those given here do
    // not.
    std::set<std::string> taken = {
        "i",       "s",           "p",           "n",      "m",       "e",        "k",      "begin",
        "end",     "block",       "blocks",      "cuts",   "first",   "last",     "from",   "to",
        "start",   "count",       "launch",      "part",   "piece",   "length",   "carry",  "segment_of",
        "threads", "next",        "length",      "slot",   "whole",   "position", "chosen", "others",
        "before",  "epilogue",    "chunk",       "chunks", "s_begin", "s_end",    "s_next", "at_once",
        "p",       "task",        "own",         "groups", "group",   "lanes",    "lane",   "strips",
        "wide",    "pieces",      "p_begin",     "p_end",  "inner",   "outer",    "across", "here",
        "total",   "first_place", "piece_count", "l",      "result"};
    auto unique = [&](VarId v, const std::string& suffix) {
      std::string name = identifier(program_.vars.at(v).name) + suffix;
      const size_t stem = name.find_last_not_of("0123456789");
      const bool numbered = stem != std::string::npos && stem + 1 < name.size() && name[stem] == '_';
      if (numbered || !taken.insert(name).second) {
        name += fmt::format("_v{}", v);
        while (!taken.insert(name).second) name += "_";
      }
      return name;
    };
    for (auto& p : info_.parameters) p.name = unique(p.var, p.kind == ParameterKind::Size ? "_size" : "");
    for (auto& o : info_.outputs) o.name = unique(o.var, "");
  }

  const lcu::Kernel& kernel_;
  const lcu::Program& program_;
  KernelInfo info_;
  std::map<VarId, uint32_t> producer_;
};

}  // namespace

KernelInfo analyseKernel(const lcu::Kernel& kernel, const lcu::Program& program) {
  return Analysis(kernel, program).run();
}

}  // namespace kelpie::codegen
