#include "tests/codegen/random_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <set>

namespace kelpie::tests {

using lcu::ExprRef;
using lcu::Operator;
using lcu::Soac;
using lcu::SoacKind;
using lcu::Space;
using lcu::SpaceKind;
using lcu::VarId;
using lcu::VarKind;

std::string toString(Lengths lengths) {
  switch (lengths) {
    case Lengths::Mixed:
      return "mixed";
    case Lengths::Zero:
      return "zero";
    case Lengths::One:
      return "one";
    case Lengths::Eight:
      return "eight";
    case Lengths::Long:
      return "long";
    case Lengths::Giant:
      return "giant";
  }
  return "";
}

namespace {

/// Names by which data is found for the parameters of a random kernel.
constexpr const char* kPermutation = "permutation";
constexpr const char* kDestinations = "destinations";
constexpr const char* kOffsets = "offsets";
constexpr const char* kGathered = "gathered";
constexpr const char* kPerSegment = "weights";
constexpr const char* kByPosition = "by_position_";
constexpr const char* kColumn = "column_";
constexpr int64_t kGatheredSize = 64, kMostSpare = 9;

class Maker {
 public:
  Maker(Random& random, const RandomKernelOptions& options) : random_(random), options_(options) {}

  KernelCase run() {
    n_ = host("n");
    m_ = host("m");
    length_ = host("length");
    flat_ = {.kind = SpaceKind::Flat, .extent = arena().host(n_, lcu::kIndex)};
    segmented_ = {.kind = options_.space, .extent = flat_.extent, .segments = arena().host(m_, lcu::kIndex)};
    if (options_.space == SpaceKind::Offsets)
      segmented_.offsets = array(kOffsets, ScalarType::Int64, nullptr);
    if (options_.space == SpaceKind::Regular) {
      static constexpr int64_t kKnown[] = {1, 2, 3, 7, 8, 100};
      segmented_.length =
          random_() % 2 ? arena().index(kKnown[random_() % 6]) : arena().host(length_, lcu::kIndex);
    }
    for (ScalarType t : {ScalarType::Bool, ScalarType::Char, ScalarType::Int32, ScalarType::Int64,
                         ScalarType::Float32, ScalarType::Float64}) {
      if (options_.narrow && sizeOf(t) > 1) break;
      inputs_.push_back(array(std::string("in_") + std::string(toString(t)), t, flat_.extent));
    }
    gathered_ = array(kGathered, ScalarType::Int64, arena().index(kGatheredSize));
    perSegment_ = array(kPerSegment, ScalarType::Int64, segmented_.segments);
    permutation_ = array(kPermutation, ScalarType::Int64, flat_.extent);
    destinations_ = array(kDestinations, ScalarType::Int64, flat_.extent);
    scale_ = case_.program->newVar({"scale", VarKind::Host, ScalarType::Int64});
    shift_ = case_.program->newVar({"shift", VarKind::Cell, ScalarType::Int64});
    case_.program->newSite({{}, "a value of {0} at {1}"});
    if (options_.shape == Shape::Rows)
      for (ScalarType t : {ScalarType::Char, ScalarType::Int64, ScalarType::Float32})
        byPosition_.push_back(
            array(std::string(kByPosition) + std::string(toString(t)), t, segmented_.length));
    for (int k = 0; k < options_.bindings; ++k) binding();
    if (!segmentResults_.empty()) {
      epilogue();
      if (pick(2)) epilogue();
    }
    if (!cells_.empty() && pick(2)) once();
    case_.kernel.name = "random";
    for (const Soac& soac : case_.kernel.bindings) {
      for (VarId v : soac.results) {
        // What is not read later leaves the kernel; counts always do, to know how much of an array counts.
        bool count =
            v == soac.results[0] && (soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition);
        if (count || !read_.contains(v) || pick(3) == 0) case_.kernel.returns.push_back(v);
      }
    }
    return std::move(case_);
  }

 private:
  lcu::ExprArena& arena() { return *case_.program->arena; }
  int pick(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  VarId host(const char* name) { return case_.program->newVar({name, VarKind::Host, lcu::kIndex}); }
  VarId array(const std::string& name, ScalarType type, ExprRef extent) {
    return case_.program->newVar({name, VarKind::Array, type, extent});
  }
  /// Arrays that loops walk through, made when they are first asked for; some are longer than others.
  VarId column(size_t number) {
    while (columns_.size() <= number) {
      const ScalarType type = columns_.size() % 3 == 1 ? ScalarType::Float64 : ScalarType::Int64;
      const int64_t length = kGatheredSize + pick(kMostSpare);
      columns_.push_back(array(kColumn + std::string(toString(type)), type, arena().index(length)));
    }
    return columns_[number];
  }
  VarId input(ScalarType type) {
    return *std::find_if(inputs_.begin(), inputs_.end(), [&](VarId v) { return typeOf(v) == type; });
  }
  ScalarType typeOf(VarId v) { return case_.program->vars[v].type; }

  /// A small Int64 value of element %i.
  ExprRef value(bool segmented, int depth = 2) {
    ExprRef i = arena().param(0);
    if (options_.loops && depth > 0 && pick(3) == 0) {
      const ExprRef x = value(segmented, depth - 1);
      return pick(2) ? repeated(x) : walked(x);
    }
    if (depth > 0 && pick(2)) {
      ExprRef a = value(segmented, depth - 1), b = value(segmented, depth - 1);
      switch (pick(5)) {
        case 0:
          return arena().add(a, b);
        case 1:
          return arena().sub(a, b);
        case 2:
          return arena().op(ScalarOp::Max, a, b);
        case 3:
          return arena().select(arena().op(ScalarOp::Less, a, b), a, small(b));
        default:
          return byRow() ? arena().op(ScalarOp::Xor, a, b)
                         : arena().load(gathered_, ScalarType::Int64, small(a));
      }
    }
    if (byRow()) return ofRow();
    if (options_.shape == Shape::FoldsOfScans && segmented && !locals_.empty() && pick(3) > 0) {
      const VarId v = locals_[static_cast<size_t>(pick(static_cast<int>(locals_.size())))];
      read_.insert(v);
      return small(arena().convert(arena().load(v, typeOf(v), i), ScalarType::Int64));
    }
    int choice = pick(segmented ? 12 : 8);
    if (choice < 3 || (choice < 6 && locals_.empty())) {
      VarId v = inputs_[static_cast<size_t>(pick(static_cast<int>(inputs_.size())))];
      ExprRef x = arena().convert(arena().load(v, typeOf(v), i), ScalarType::Int64);
      return options_.canFail && pick(4) == 0 ? checked(x, i) : x;
    }
    if (choice < 6) {
      VarId v = locals_[static_cast<size_t>(pick(static_cast<int>(locals_.size())))];
      if (segmentedLocals_.contains(v) && !segmented) return arena().index(3);
      read_.insert(v);
      return small(arena().convert(arena().load(v, typeOf(v), i), ScalarType::Int64));
    }
    switch (choice) {
      case 6:
        return arena().host(scale_, ScalarType::Int64);
      case 7:
        return arena().add(arena().host(shift_, ScalarType::Int64), small(i));
      case 8:
      case 9:
        return arena().load(perSegment_, ScalarType::Int64, arena().param(1));
      case 10:
        return small(arena().param(2));
      default:
        return small(arena().param(1));
    }
  }

  bool byRow() const { return options_.shape == Shape::Rows; }
  /// What an element has of its segment, or of its position, or of neither.
  ExprRef ofRow() {
    ExprRef x = nullptr;
    switch (pick(7)) {
      case 0:
      case 1:
        x = arena().load(perSegment_, ScalarType::Int64, arena().param(1));
        break;
      case 2:
      case 3: {
        const VarId v = byPosition_[static_cast<size_t>(pick(static_cast<int>(byPosition_.size())))];
        x = arena().convert(arena().load(v, typeOf(v), arena().param(2)), ScalarType::Int64);
        break;
      }
      case 4:
        return small(arena().param(static_cast<uint32_t>(pick(3))));
      case 5:
        return arena().host(scale_, ScalarType::Int64);
      default:
        return arena().add(arena().host(shift_, ScalarType::Int64), small(arena().param(2)));
    }
    return options_.canFail && pick(3) == 0 ? checked(x, arena().param(0)) : x;
  }

  /// x and what up to eleven columns have at up to seven places, each of which tells the next one: a tail
  /// recursion as flattening makes it.
  ExprRef walked(ExprRef x) {
    const uint32_t loop = arena().newLoop();
    const ExprRef done = arena().loopVar(loop, 0, ScalarType::Bool),
                  turn = arena().loopVar(loop, 1, lcu::kIndex), at = arena().loopVar(loop, 2, lcu::kIndex),
                  sum = arena().loopVar(loop, 3, lcu::kIndex);
    const size_t first = static_cast<size_t>(pick(3)), count = 1 + static_cast<size_t>(pick(11));
    ExprRef next = nullptr, more = sum;
    for (size_t k = first; k < first + count; ++k) {
      const VarId v = column(k);
      const ExprRef e = arena().convert(arena().load(v, typeOf(v), at), ScalarType::Int64);
      if (!next) next = small(e);
      more = arena().op(pick(2) ? ScalarOp::Xor : ScalarOp::Add, more, e);
    }
    const ExprRef ends = arena().op(ScalarOp::Equal, turn, arena().op(ScalarOp::And, x, arena().index(7)));
    const std::vector<ExprRef> step =
        arena().select(ends, {arena().boolean(true), turn, at, sum},
                       {arena().boolean(false), arena().add(turn, arena().index(1)), next, more});
    return small(arena().loop(loop, {arena().boolean(false), arena().index(0), small(x), x},
                              arena().op(ScalarOp::Not, done), step)[3]);
  }
  /// x, xor 0, 1, ... in up to seven turns.
  ExprRef repeated(ExprRef x) {
    const uint32_t loop = arena().newLoop();
    ExprRef turn = arena().loopVar(loop, 0, lcu::kIndex), sum = arena().loopVar(loop, 1, lcu::kIndex);
    ExprRef turns = arena().op(ScalarOp::And, x, arena().index(7));
    return arena().loop(loop, {arena().index(0), x}, arena().op(ScalarOp::Less, turn, turns),
                        {arena().add(turn, arena().index(1)), arena().op(ScalarOp::Xor, sum, turn)})[1];
  }
  /// x modulo 64, which is also a position in the gathered array.
  ExprRef small(ExprRef x) { return arena().op(ScalarOp::And, x, arena().index(kGatheredSize - 1)); }
  ExprRef checked(ExprRef x, ExprRef i) {
    return arena().check(arena().op(ScalarOp::NotEqual, x, arena().index(7)), x,
                         Scalar::ofInt(ScalarType::Int64, 0), 1, x, i);
  }
  ExprRef test(bool segmented) {
    return arena().op(ScalarOp::Greater, value(segmented), value(segmented, 1));
  }
  /// `x` as one of the types, small enough for sums of many.
  ExprRef typed(ExprRef x) {
    if (options_.narrow && pick(6) != 0) {
      const VarId v = inputs_[static_cast<size_t>(pick(2))];
      switch (pick(4)) {
        case 0:
          return arena().load(v, typeOf(v), arena().param(0));
        case 1:
          return arena().convert(small(x), ScalarType::Char);
        case 2:  // a sum of these counts
          return arena().convert(arena().op(ScalarOp::Less, small(x), arena().index(17)), ScalarType::Int64);
        default:
          return arena().op(ScalarOp::Less, small(x), arena().index(17));
      }
    }
    switch (pick(5)) {
      case 0:
        return arena().convert(small(x), ScalarType::Float32);
      case 1:
        return arena().convert(small(x), ScalarType::Float64);
      case 2:
        return arena().convert(x, ScalarType::Int32);
      case 3:
        return arena().op(ScalarOp::Less, small(x), arena().index(17));
      default:
        return x;
    }
  }

  ReduceOp operationFor(ScalarType t) {
    if (t == ScalarType::Bool) return pick(2) ? ReduceOp::And : ReduceOp::Xor;
    if (isFloat(t))
      return std::array{ReduceOp::Add, ReduceOp::Max, ReduceOp::Min}[static_cast<size_t>(pick(3))];
    return std::array{ReduceOp::Add, ReduceOp::Max, ReduceOp::Xor}[static_cast<size_t>(pick(3))];
  }
  /// Pull thunks and operator of a scan or reduction.
  /// Characters as numbers: no operator takes them.
  ExprRef foldable(ExprRef x) {
    return x->type == ScalarType::Char ? arena().convert(x, ScalarType::Int64) : x;
  }
  void operands(Soac& soac, bool segmented) {
    if (pick(4) == 0) {
      // A maximum, and how the elements that equal it fold (fusion/paired_reductions.h).
      const ExprRef x = foldable(typed(value(segmented))), y = foldable(typed(value(segmented)));
      const ReduceOp op = operationFor(y->type);
      const bool bools = x->type == ScalarType::Bool;
      soac.pull = {bools ? small(value(segmented)) : x, y};
      const ScalarType first = soac.pull[0]->type;
      auto p = [&](uint32_t k) { return arena().param(k, k % 2 == 0 ? first : y->type); };
      const ExprRef greatest = arena().op(ScalarOp::Max, p(0), p(2));
      soac.combine.identity = {identity(ReduceOp::Max, first), identity(op, y->type)};
      const auto side = [&](uint32_t k) {
        return arena().select(arena().op(ScalarOp::Equal, p(k), greatest), p(k + 1),
                              arena().constant(soac.combine.identity[1]));
      };
      soac.combine.result = {greatest, arena().op(scalarOp(op), side(0), side(2))};
      return;
    }
    if (!byRow() && pick(4) == 0) {
      // (value, position) of the first maximum: not commutative, so the order of combination shows.
      soac.pull = {small(value(segmented)), arena().param(0)};
      auto p = [&](uint32_t k) { return arena().param(k, ScalarType::Int64); };
      soac.combine.identity = {identity(ReduceOp::Max, ScalarType::Int64),
                               Scalar::ofInt(ScalarType::Int64, -1)};
      soac.combine.result =
          arena().select(arena().op(ScalarOp::GreaterEqual, p(0), p(2)), {p(0), p(1)}, {p(2), p(3)});
      return;
    }
    int count = 1 + pick(2);
    for (int k = 0; k < count; ++k) {
      const ExprRef e = foldable(typed(value(segmented)));
      ReduceOp op = operationFor(e->type);
      soac.pull.push_back(e);
      soac.combine.identity.push_back(identity(op, e->type));
      uint32_t j = static_cast<uint32_t>(k), all = static_cast<uint32_t>(count);
      soac.combine.result.push_back(
          arena().op(scalarOp(op), arena().param(j, e->type), arena().param(all + j, e->type)));
    }
  }

  void add(Soac soac) { case_.kernel.bindings.push_back(std::move(soac)); }
  VarId result(const char* name, VarKind kind, ScalarType type, ExprRef extent) {
    return case_.program->newVar({name, kind, type, extent});
  }

  void binding() {
    bool segmented = options_.space != SpaceKind::Flat && pick(3) != 0;
    Soac soac;
    int kind = pick(7);
    if (options_.shape != Shape::Mixed) {
      segmented = true;
      kind = byRow() ? 2 : pick(4);
    }
    soac.space = segmented ? segmented_ : flat_;
    switch (kind) {
      case 0:
      case 1: {
        soac.kind = SoacKind::Map;
        int count = 1 + pick(2);
        for (int k = 0; k < count; ++k) {
          soac.pull.push_back(typed(value(segmented)));
          soac.results.push_back(result("mapped", VarKind::Array, soac.pull.back()->type, flat_.extent));
        }
        for (VarId v : soac.results) local(v, segmented);
        break;
      }
      case 2:
        soac.kind = SoacKind::Reduce;
        operands(soac, segmented);
        for (ExprRef e : soac.pull) {
          VarId v = segmented ? result("reduced", VarKind::Array, e->type, segmented_.segments)
                              : result("total", VarKind::Cell, e->type, nullptr);
          soac.results.push_back(v);
          (segmented ? segmentResults_ : cells_).push_back(v);
        }
        break;
      case 3:
      case 4: {
        soac.kind = SoacKind::Scan;
        operands(soac, segmented);
        soac.inclusive = pick(2);
        soac.backward = pick(3) == 0;
        soac.withTotal = !segmented && !soac.inclusive && pick(3) == 0;
        for (ExprRef e : soac.pull)
          soac.results.push_back(result("scanned", VarKind::Array, e->type, flat_.extent));
        if (!soac.withTotal)
          for (VarId v : soac.results) local(v, segmented);
        break;
      }
      case 5:
        soac.kind = SoacKind::Filter;
        compacting(soac, segmented);
        soac.results.insert(soac.results.begin(),
                            segmented ? result("kept_offsets", VarKind::Array, ScalarType::Int64, nullptr)
                                      : result("kept_count", VarKind::Cell, ScalarType::Int64, nullptr));
        break;
      default:
        if (pick(2)) {
          soac.space = flat_;
          soac.kind = SoacKind::Partition;
          compacting(soac, false);
          size_t k = soac.pull.size();
          for (size_t j = 0; j < k; ++j)
            soac.results.push_back(result("dropped", VarKind::Array, soac.pull[j]->type, nullptr));
          soac.results.insert(soac.results.begin(),
                              result("true_count", VarKind::Cell, ScalarType::Int64, nullptr));
        } else {
          permute(soac);
        }
    }
    add(std::move(soac));
  }

  void compacting(Soac& soac, bool segmented) {
    soac.where = test(segmented);
    int count = pick(3);
    for (int k = 0; k < count; ++k) {
      soac.pull.push_back(typed(value(segmented)));
      soac.results.push_back(result("kept", VarKind::Array, soac.pull.back()->type, nullptr));
    }
  }

  void permute(Soac& soac) {
    soac.kind = SoacKind::Permute;
    soac.space = flat_;
    ExprRef i = arena().param(0);
    if (pick(2)) {
      soac.unique = true;
      soac.destination = arena().load(permutation_, ScalarType::Int64, i);
      soac.pull = {typed(value(false)), i};
      soac.target = pick(2) ? flat_.extent : arena().add(flat_.extent, arena().index(5));
    } else {
      soac.destination = arena().load(destinations_, ScalarType::Int64, i);
      soac.pull = {i};
      soac.target = arena().add(flat_.extent, arena().index(5));
    }
    if (!soac.unique && pick(3) == 0) {  // what comes to one place is equal
      soac.agreeing = true;
      soac.pull = {arena().add(soac.destination, arena().index(pick(9)))};
    }
    if (pick(3) == 0) soac.where = test(false);
    const int start =
        options_.narrow ? 1 + pick(3) : pick(4);  // 0: onto arrays, 1: onto whatever is there, else: fill
    for (ExprRef e : soac.pull) {
      soac.results.push_back(result("permuted", VarKind::Array, e->type, soac.target));
      if (start == 0) {
        soac.onto.push_back(input(e->type));
      } else if (start > 1) {
        soac.fill.push_back(soac.writesInAnyOrder() ? Scalar::zero(e->type)
                                                    : Scalar::ofInt(ScalarType::Int64, -1));
      }
    }
  }

  void local(VarId v, bool segmented) {
    locals_.push_back(v);
    if (segmented) segmentedLocals_.insert(v);
  }

  void epilogue() {
    Soac soac;
    soac.kind = SoacKind::Map;
    soac.space = {.kind = SpaceKind::Flat, .extent = segmented_.segments};
    VarId v = segmentResults_[static_cast<size_t>(pick(static_cast<int>(segmentResults_.size())))];
    read_.insert(v);
    ExprRef i = arena().param(0);
    ExprRef x = arena().convert(arena().load(v, typeOf(v), i), ScalarType::Int64);
    soac.pull = {arena().add(x, arena().load(perSegment_, ScalarType::Int64, i))};
    soac.results = {result("after", VarKind::Array, ScalarType::Int64, segmented_.segments)};
    segmentResults_.push_back(soac.results[0]);
    add(std::move(soac));
  }

  void once() {
    Soac soac;
    soac.kind = SoacKind::Once;
    VarId v = cells_[static_cast<size_t>(pick(static_cast<int>(cells_.size())))];
    read_.insert(v);
    ExprRef x = arena().convert(arena().host(v, typeOf(v)), ScalarType::Int64);
    soac.pull = {arena().add(x, arena().host(scale_, ScalarType::Int64)), arena().host(v, typeOf(v))};
    soac.results = {result("once", VarKind::Cell, ScalarType::Int64, nullptr),
                    result("same", VarKind::Cell, typeOf(v), nullptr)};
    add(std::move(soac));
  }

  Random& random_;
  const RandomKernelOptions& options_;
  KernelCase case_;
  VarId n_ = 0, m_ = 0, length_ = 0, gathered_ = 0, perSegment_ = 0, permutation_ = 0, destinations_ = 0,
        scale_ = 0, shift_ = 0;
  Space flat_, segmented_;
  std::vector<VarId> inputs_, byPosition_, columns_, locals_, segmentResults_, cells_;
  std::set<VarId> segmentedLocals_, read_;
};

template <class T>
std::vector<std::byte> bytesOf(const std::vector<T>& values) {
  std::vector<std::byte> bytes(std::max<size_t>(16, values.size() * sizeof(T)));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
  return bytes;
}

template <class T>
std::vector<std::byte> smallValues(Random& random, int64_t count, int bound) {
  std::vector<T> values(static_cast<size_t>(count));
  for (T& v : values) v = static_cast<T>(random() % static_cast<uint64_t>(bound));
  return bytesOf(values);
}

std::vector<int64_t> randomOffsets(Random& random, int64_t size, Lengths lengths) {
  std::vector<int64_t> offsets = {0};
  auto grow = [&](int64_t length) { offsets.push_back(offsets.back() + length); };
  if (lengths == Lengths::Zero) {
    for (int64_t k = 0; k < size; ++k) grow(0);
    return offsets;
  }
  bool giant = false;
  while (offsets.back() < size) {
    switch (lengths) {
      case Lengths::One:
        grow(1);
        break;
      case Lengths::Eight:
        grow(8);
        break;
      case Lengths::Long:
        grow(1 + static_cast<int64_t>(random() % 3000));
        break;
      case Lengths::Giant:
        if (!giant && offsets.back() > size / 4) {
          grow(size / 2);
          giant = true;
        } else {
          grow(static_cast<int64_t>(random() % 4));
        }
        break;
      default: {
        uint64_t kind = random() % 8;
        if (kind < 2) {
          for (uint64_t k = random() % 40; k > 0; --k) grow(0);
        } else {
          grow(static_cast<int64_t>(random() % (kind < 6 ? 12 : 900)));
        }
      }
    }
  }
  if (lengths == Lengths::Mixed && random() % 2) grow(0);
  return offsets;
}

}  // namespace

KernelCase randomKernel(Random& random, const RandomKernelOptions& options) {
  return Maker(random, options).run();
}

KernelData randomData(Random& random, const KernelCase& testCase, int64_t size, Lengths lengths) {
  KernelData data;
  auto& x = data.extents;
  std::vector<int64_t> offsets;
  Space space;
  for (const Soac& s : testCase.kernel.bindings)
    if (s.space.segmented()) space = s.space;
  if (space.kind == SpaceKind::Offsets) {
    offsets = randomOffsets(random, size, lengths);
    x.elements = offsets.back();
    x.segments = static_cast<int64_t>(offsets.size()) - 1;
  } else {
    static constexpr int64_t kRegular[] = {0, 1, 3, 8, 100, 1024, 5000};
    const bool known = space.length && space.length->kind == lcu::ExprKind::Constant;
    x.length = known ? space.length->constant.i : kRegular[random() % 7];
    x.segments = x.length == 0 ? size : size / x.length + 1;
    x.elements = space.kind == SpaceKind::Regular ? x.length * x.segments : size;
  }
  for (lcu::VarId v = 1; v < testCase.program->vars.size(); ++v) {
    const lcu::VarInfo& info = testCase.program->vars[v];
    if (info.name == kOffsets) {
      data.arrays[v] = bytesOf(offsets);
    } else if (info.name == kPermutation) {
      std::vector<int64_t> order(static_cast<size_t>(x.elements));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      data.arrays[v] = bytesOf(order);
    } else if (info.name == kDestinations) {
      data.arrays[v] = smallValues<int64_t>(random, x.elements, static_cast<int>(x.elements / 2 + 5));
    } else if (info.name == kGathered) {
      data.arrays[v] = smallValues<int64_t>(random, kGatheredSize, 50);
    } else if (info.name == kPerSegment) {
      data.arrays[v] = smallValues<int64_t>(random, x.segments, 30);
    } else if (info.name.starts_with(kByPosition)) {
      const auto count = info.type == ScalarType::Char ? smallValues<uint8_t>(random, x.length, 60)
                         : isFloat(info.type)          ? smallValues<float>(random, x.length, 60)
                                                       : smallValues<int64_t>(random, x.length, 60);
      data.arrays[v] = count;
    } else if (info.name.starts_with(kColumn)) {
      const int64_t length = info.extent->constant.i;
      data.arrays[v] = isFloat(info.type) ? smallValues<double>(random, length, 1000)
                                          : smallValues<int64_t>(random, length, 1000);
    } else if (info.name == "in_bool") {
      data.arrays[v] = smallValues<uint8_t>(random, x.elements, 2);
    } else if (info.name == "in_char") {
      data.arrays[v] = smallValues<uint8_t>(random, x.elements, 60);
    } else if (info.name == "in_int32") {
      data.arrays[v] = smallValues<int32_t>(random, x.elements, 60);
    } else if (info.name == "in_int64") {
      data.arrays[v] = smallValues<int64_t>(random, x.elements, 60);
    } else if (info.name == "in_float32") {
      data.arrays[v] = smallValues<float>(random, x.elements, 60);
    } else if (info.name == "in_float64") {
      data.arrays[v] = smallValues<double>(random, x.elements, 60);
    } else if (info.name == "shift") {
      data.arrays[v] = bytesOf(std::vector<int64_t>{11, 0});
    } else if (info.name == "scale") {
      data.scalars[v] = Scalar::ofInt(ScalarType::Int64, 5);
    }
  }
  for (const Soac& s : testCase.kernel.bindings) {
    if (s.kind != SoacKind::Permute) continue;
    x.targets.push_back(x.elements + (s.target == s.space.extent ? 0 : 5));
  }
  return data;
}

LaunchResult runKernel(runtime::Target& target, const runtime::ProgramKernels& kernels, size_t kernel,
                       const KernelData& data, int64_t spare) {
  LaunchResult result;
  const codegen::KernelInfo& info = kernels.kernels[kernel].info;
  HeldScratch memory(target);
  codegen::LaunchExtents extents = data.extents;
  extents.elements += spare;
  auto note = [&](const runtime::Failure& failure) {
    if (failure && !result.failure) result.failure = failure;
  };
  std::vector<runtime::KernelArgument> arguments;
  std::vector<int64_t> lengths;
  for (const auto& p : info.parameters) {
    runtime::KernelArgument argument;
    if (p.kind == codegen::ParameterKind::Scalar) {
      argument.integer = data.scalars.at(p.var).i;
    } else if (p.kind == codegen::ParameterKind::Size) {
      const auto bytes = static_cast<int64_t>(data.arrays.at(p.var).size());
      argument.integer = bytes / sizeOf(kernels.program->vars[p.var].type);
    } else {
      const auto& bytes = data.arrays.at(p.var);
      argument.pointer = memory.take(bytes.size());
      note(target.upload(argument.pointer, bytes.data(), bytes.size()));
    }
    arguments.push_back(argument);
    lengths.push_back(p.kind == codegen::ParameterKind::Array
                          ? static_cast<int64_t>(data.arrays.at(p.var).size()) /
                                sizeOf(kernels.program->vars[p.var].type)
                          : 0);
  }
  std::vector<runtime::DevicePointer> outputs;
  std::vector<size_t> sizes;
  for (const auto& o : info.outputs) {
    sizes.push_back(static_cast<size_t>(codegen::capacity(o, extents) * sizeOf(o.type)));
    outputs.push_back(memory.take(std::max<size_t>(16, sizes.back())));
    std::vector<std::byte> before(sizes.back(), std::byte{0x5a});
    if (o.onto != 0) {
      const auto& base = data.arrays.at(o.onto);
      std::copy_n(base.begin(), std::min(base.size(), before.size()), before.begin());
    }
    note(target.upload(outputs.back(), before.data(), before.size()));
  }
  runtime::LaunchRequest request{&kernels, kernel, extents, arguments, outputs, &memory};
  request.lengths = lengths;
  if (spare > 0) {
    const runtime::DevicePointer count = memory.take(sizeof(int64_t));
    note(target.upload(count, &data.extents.elements, sizeof(int64_t)));
    request.counted = count;
  }
  note(target.launch(request));
  if (result.failure) return result;
  note(target.synchronise(result.error));
  if (result.error) {
    target.clearError();
    return result;
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    result.outputs.emplace_back(sizes[k]);
    note(target.download(result.outputs.back().data(), outputs[k], sizes[k]));
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const auto& o = info.outputs[k];
    lcu::VarId countVar = 0;
    if (o.count) countVar = *o.count;
    const lcu::Soac& soac = kernels.kernels[kernel].kernel->bindings[o.binding];
    int64_t count = -1;
    for (size_t c = 0; c < outputs.size(); ++c) {
      const auto& other = info.outputs[c];
      bool segmentedFilter = soac.kind == SoacKind::Filter && soac.space.segmented() && o.result > 0 &&
                             other.binding == o.binding && other.result == 0;
      if (!segmentedFilter && (countVar == 0 || other.var != countVar)) continue;
      // The count is the last entry: of a cell the only one, of offsets the number of survivors.
      std::memcpy(&count, result.outputs[c].data() + sizes[c] - sizeof count, sizeof count);
    }
    if (count < 0)
      result.outputs[k].resize(static_cast<size_t>(codegen::capacity(o, data.extents) * sizeOf(o.type)));
    if (count < 0) continue;
    if (o.countsFalse) count = data.extents.elements - count;
    size_t bytes = static_cast<size_t>(count * sizeOf(o.type));
    if (bytes > result.outputs[k].size()) {
      note("a count of " + std::to_string(count) + " is out of range");
      return result;
    }
    result.outputs[k].resize(bytes);
  }
  return result;
}

std::string difference(const LaunchResult& expected, const LaunchResult& got,
                       const codegen::KernelInfo& info) {
  if (expected.failure) return "expected side failed: " + *expected.failure;
  if (got.failure) return *got.failure;
  if (expected.error.has_value() != got.error.has_value())
    return expected.error ? "no error was recorded" : "an error was recorded";
  if (expected.error) {
    const auto &a = *expected.error, &b = *got.error;
    if (a.site == b.site && a.payload0 == b.payload0 && a.payload1 == b.payload1) return "";
    return "errors differ: payloads " + std::to_string(a.payload0) + ", " + std::to_string(a.payload1) +
           " and " + std::to_string(b.payload0) + ", " + std::to_string(b.payload1);
  }
  for (size_t k = 0; k < expected.outputs.size(); ++k) {
    const auto &a = expected.outputs[k], &b = got.outputs[k];
    const auto& o = info.outputs[k];
    if (a.size() != b.size()) {
      return o.name + " has " + std::to_string(b.size()) + " bytes instead of " + std::to_string(a.size());
    }
    size_t size = static_cast<size_t>(sizeOf(o.type));
    for (size_t at = 0; at < a.size(); at += size) {
      if (std::memcmp(&a[at], &b[at], size) == 0) continue;
      auto text = [&](const std::vector<std::byte>& bytes) {
        int64_t i = 0;
        double f = 0;
        float single = 0;
        std::memcpy(&i, &bytes[at], size);
        if (o.type == ScalarType::Float64) std::memcpy(&f, &bytes[at], 8);
        if (o.type == ScalarType::Float32) {
          std::memcpy(&single, &bytes[at], 4);
          f = single;
        }
        return isFloat(o.type) ? std::to_string(f) : std::to_string(i);
      };
      return o.name + "[" + std::to_string(at / size) + "] is " + text(b) + " instead of " + text(a);
    }
  }
  return "";
}

}  // namespace kelpie::tests
