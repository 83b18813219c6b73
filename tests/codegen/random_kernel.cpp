#include "tests/codegen/random_kernel.h"

#include <algorithm>
#include <array>
#include <set>

#include "fusion/loop_bounds.h"
#include "tests/codegen/random_kernel_names.h"

namespace kelpie::tests {

using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::Space;
using lcu::SpaceKind;
using lcu::VarId;
using lcu::VarKind;

namespace {

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
    if (byRow() || byKey())
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
      return pick(5) == 0 ? recursed(x) : pick(2) ? repeated(x) : walked(x);
    }
    if (depth > 0 && pick(2)) {
      ExprRef a = value(segmented, depth - 1), b = value(segmented, depth - 1);
      switch (pick(6)) {
        case 5:
          return divided(a, b);
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
    if (bySegments() && segmented && pick(2)) return across();
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

  /// Made of a quotient and a remainder of the same two numbers, in one of several places.
  ExprRef divided(ExprRef a, ExprRef b) {
    const ExprRef quotient = arena().op(ScalarOp::Div, a, b), remainder = arena().op(ScalarOp::Rem, a, b);
    const ExprRef less = arena().op(ScalarOp::Less, a, b);
    switch (pick(4)) {
      case 0:
        return arena().sub(remainder, small(quotient));
      case 1:
        return arena().select(less, remainder, small(quotient));
      case 2:
        return arena().add(arena().select(less, arena().add(remainder, a), b), small(quotient));
      default:
        return arena().select(less, arena().op(ScalarOp::Max, small(quotient), remainder), remainder);
    }
  }

  bool byRow() const { return options_.shape == Shape::Rows || options_.shape == Shape::Columns; }
  bool bySegments() const { return options_.shape == Shape::Columns || options_.shape == Shape::Transposed; }
  bool byKey() const { return options_.shape == Shape::Keys; }
  VarId someByPosition() {
    return byPosition_[static_cast<size_t>(pick(static_cast<int>(byPosition_.size())))];
  }
  /// What neighbouring segments read side by side; checks of where it is hold.
  ExprRef across() {
    const VarId v = inputs_[static_cast<size_t>(pick(static_cast<int>(inputs_.size())))];
    ExprRef s = arena().param(1);
    const ExprRef p = arena().param(2), segments = arena().host(m_, lcu::kIndex);
    if (pick(3) == 0)
      s = arena().check(arena().op(ScalarOp::Less, s, segments), s, Scalar::ofInt(ScalarType::Int64, 0), 1, s,
                        p);
    const ExprRef at = arena().add(arena().mul(p, segments), s);
    const ExprRef x = arena().convert(arena().load(v, typeOf(v), at), ScalarType::Int64);
    return options_.canFail && pick(4) == 0 ? checked(x, arena().param(0)) : x;
  }
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
        const VarId v = someByPosition();
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
  /// What a function makes of x that calls itself on some of its ways: in branches, in a loop, and for its
  /// own results.
  ExprRef recursed(ExprRef x) {
    const std::vector<ScalarType> types = {lcu::kIndex, ScalarType::Bool,
                                           pick(3) == 0 ? ScalarType::Float32 : ScalarType::Int32};
    const uint32_t f = arena().newLoop();
    const ExprRef depth = arena().loopVar(f, 0, lcu::kIndex), y = arena().loopVar(f, 1, lcu::kIndex),
                  odd = arena().loopVar(f, 2, ScalarType::Bool);
    const auto called = [&](ExprRef value, ExprRef flag) {
      return arena().call(f, {arena().sub(depth, arena().index(1)), small(value), flag}, types);
    };
    const auto bit = [&](ExprRef e) { return arena().convert(e, lcu::kIndex); };
    const auto first = called(arena().add(y, arena().index(pick(64))), arena().op(ScalarOp::Not, odd));
    // Two calls, the second of which may depend on the first, and what was there before both. Where results
    // are combined by what is done in any order, nothing is pending behind the second.
    const bool apart = pick(2);  // then the first is only combined, if it is not chosen
    const ExprRef known = arena().op(ScalarOp::Max, first[2], arena().convert(small(y), types[2])),
                  chosen = pick(4) == 0 ? arena().select(odd, first[0], y) : first[0],
                  sum = arena().add(chosen, bit(odd));
    const auto second = called(arena().op(ScalarOp::Xor, apart ? arena().index(pick(64)) : first[0], y),
                               apart ? odd : first[1]);
    std::vector<ExprRef> both = {
        pick(2) ? arena().add(sum, second[0]) : arena().sub(sum, arena().mul(arena().index(3), second[0])),
        arena().op(ScalarOp::Xor, first[1], second[1]), arena().op(ScalarOp::Max, known, second[2])};
    if (options_.canFail && pick(2)) both[0] = checked(both[0], arena().param(0));
    // A loop with a call in each turn, whose variables others read.
    const uint32_t loop = arena().newLoop();
    const ExprRef turn = arena().loopVar(loop, 0, lcu::kIndex), total = arena().loopVar(loop, 1, lcu::kIndex),
                  any = arena().loopVar(loop, 2, ScalarType::Bool);
    const auto inside = called(arena().add(total, turn), any);
    const auto looped = arena().loop(
        loop, {arena().index(0), y, odd},
        arena().op(ScalarOp::Less, turn, arena().op(ScalarOp::And, y, arena().index(3))),
        {arena().add(turn, arena().index(1)),
         arena().add(arena().op(ScalarOp::Xor, total, inside[0]), arena().mul(turn, bit(inside[1]))),
         inside[1]});
    const std::vector<ExprRef> around = {arena().add(looped[1], y), arena().op(ScalarOp::Xor, looped[2], odd),
                                         arena().convert(small(looped[0]), types[2])};
    const auto same =
        called(arena().mul(y, arena().index(2 * pick(9) + 1)), odd);  // its results are those of the function
    const std::vector<std::vector<ExprRef>> ways = {both, around, same};
    const size_t way = static_cast<size_t>(pick(3));
    const auto some =
        arena().select(arena().op(ScalarOp::Less, small(arena().add(y, depth)), arena().index(pick(64))),
                       ways[way], ways[(way + 1 + static_cast<size_t>(pick(2))) % 3]);
    const auto results = arena().select(arena().op(ScalarOp::Less, depth, arena().index(1)),
                                        {y, odd, arena().convert(y, types[2])}, some);
    const auto end = arena().recursion(f, 1,
                                       {arena().op(ScalarOp::And, x, arena().index(3)), small(x),
                                        arena().op(ScalarOp::Less, small(x), arena().index(30))},
                                       results);
    return small(arena().add(arena().add(end[0], bit(end[1])), arena().convert(end[2], lcu::kIndex)));
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
  /// Characters as numbers: no operator takes them.
  ExprRef foldable(ExprRef x) {
    return x->type == ScalarType::Char ? arena().convert(x, ScalarType::Int64) : x;
  }
  /// Whether a key, which depends on the position alone, is the number of the segment.
  ExprRef keyTest() {
    const VarId v = someByPosition();
    const ExprRef position = arena().param(2);
    ExprRef key = small(position), segment = arena().param(1);
    if (pick(4) != 0) key = arena().convert(arena().load(v, typeOf(v), position), ScalarType::Int64);
    if (pick(2)) key = arena().op(ScalarOp::Rem, key, arena().index(1 + pick(12)));
    if (pick(3) == 0) {
      key = arena().convert(key, ScalarType::Int32);
      segment = arena().convert(segment, ScalarType::Int32);
    } else if (pick(2)) {
      segment = arena().add(segment,
                            pick(2) ? arena().index(pick(7) - 3) : arena().host(scale_, ScalarType::Int64));
    }
    return pick(2) ? arena().op(ScalarOp::Equal, key, segment) : arena().op(ScalarOp::Equal, segment, key);
  }
  void operandsByKey(Soac& soac) {
    if (!keyTest_) keyTest_ = keyTest();
    const int count = 1 + pick(2);
    for (int k = 0; k < count; ++k) {
      const ExprRef x = foldable(typed(value(true)));
      const ReduceOp op = isFloat(x->type) ? ReduceOp::Add : operationFor(x->type);
      const Scalar none = identity(op, x->type);
      const ExprRef counts = pick(3) ? keyTest_ : arena().conjunction(keyTest_, test(true));
      soac.pull.push_back(arena().select(counts, x, arena().constant(none)));
      soac.combine.identity.push_back(none);
      const auto j = static_cast<uint32_t>(k), all = static_cast<uint32_t>(count);
      soac.combine.result.push_back(
          arena().op(scalarOp(op), arena().param(j, x->type), arena().param(all + j, x->type)));
    }
  }
  /// Pull thunks and operator of a scan or reduction.
  void operands(Soac& soac, bool segmented) {
    if (byKey()) return operandsByKey(soac);
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
      kind = byRow() || byKey() ? 2 : options_.shape == Shape::Transposed && pick(2) ? 0 : pick(4);
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
  ExprRef keyTest_ = nullptr;  ///< of all reductions of a kernel
};

}  // namespace

KernelCase randomKernel(Random& random, const RandomKernelOptions& options) {
  KernelCase result = Maker(random, options).run();
  fusion::markLoopVariables(result.kernel, *result.program->arena);  // as after fusion
  return result;
}

}  // namespace kelpie::tests
