#include "fusion/known_bounds.h"

#include <algorithm>
#include <bit>
#include <initializer_list>

#include "ir/comparisons.h"

namespace kelpie::fusion {

using lcu::ExprKind;
using lcu::ExprRef;

namespace {

/// Numbers beyond are not reckoned with, so that sums of a few do not wrap.
constexpr int64_t kModest = int64_t{1} << 60;
constexpr int kMostDepth = 7, kShallow = 3;  ///< facts in a row
constexpr int kLevels = 5;                   ///< of an expression that intervals go down

bool isOp(ExprRef e, ScalarOp op) { return e->kind == ExprKind::Op && e->op == op; }
bool isChoice(ExprRef e) { return e->kind == ExprKind::Project && e->operands[0]->kind == ExprKind::If; }
ExprRef conditionOf(ExprRef choice) { return choice->operands[0]->operands[0]; }
ExprRef valueOf(ExprRef choice, bool holds) {
  const ExprRef conditional = choice->operands[0];
  return conditional->operands[1 + choice->index + (holds ? 0 : valueCount(conditional))];
}
bool isBoolean(ExprRef e, bool value) {
  return e->kind == ExprKind::Constant && e->type == ScalarType::Bool && e->constant.isTrue() == value;
}

/// The numbers from `least` to `most`.
using Interval = KnownBounds::Interval;
constexpr Interval kAny{INT64_MIN, INT64_MAX};

/// Of what a sum or a product may come to, unless it may wrap.
Interval unwrapped(std::initializer_list<__int128> ends) {
  const auto [least, most] = std::minmax(ends);
  if (least < INT64_MIN || most > INT64_MAX) return kAny;
  return {static_cast<int64_t>(least), static_cast<int64_t>(most)};
}
Interval ofEither(const Interval& a, const Interval& b) {
  return {std::min(a.least, b.least), std::max(a.most, b.most)};
}
Interval ofType(ScalarType type) {
  switch (type) {
    case ScalarType::Bool:
      return {0, 1};
    case ScalarType::Char:
      return {0, UINT8_MAX};
    case ScalarType::Int32:
      return {INT32_MIN, INT32_MAX};
    default:
      return kAny;
  }
}

Interval ofOperation(ScalarOp op, const Interval& a, const Interval& b) {
  const __int128 al = a.least, am = a.most, bl = b.least, bm = b.most;
  const auto magnitude = [](const Interval& x) {  // that of INT64_MIN is 2^63
    return std::max(static_cast<__int128>(x.most), -static_cast<__int128>(x.least));
  };
  switch (op) {
    case ScalarOp::Add:
      return unwrapped({al + bl, am + bm});
    case ScalarOp::Sub:
      return unwrapped({al - bm, am - bl});
    case ScalarOp::Mul:
      return unwrapped({al * bl, al * bm, am * bl, am * bm});
    case ScalarOp::Max:
      return {std::max(a.least, b.least), std::max(a.most, b.most)};
    case ScalarOp::Min:
      return {std::min(a.least, b.least), std::min(a.most, b.most)};
    case ScalarOp::Div:  // towards 0
      if (b.least < 0) return kAny;
      if (b.least == b.most && b.least > 0) return {a.least / b.least, a.most / b.least};
      return {std::min<int64_t>(a.least, 0), std::max<int64_t>(a.most, 0)};
    case ScalarOp::Rem: {  // the sign of a, less than b; 0 for 0
      const auto most = static_cast<int64_t>(
          std::min<__int128>({magnitude(a), std::max<__int128>(magnitude(b) - 1, 0), INT64_MAX}));
      return {a.least >= 0 ? 0 : -most, a.most <= 0 ? 0 : most};
    }
    case ScalarOp::And:
      if (a.least >= 0 && b.least >= 0) return {0, std::min(a.most, b.most)};
      return a.least >= 0 ? Interval{0, a.most} : b.least >= 0 ? Interval{0, b.most} : kAny;
    case ScalarOp::Or:
    case ScalarOp::Xor:
      if (a.least < 0 || b.least < 0) return kAny;
      return {0, static_cast<int64_t>(~uint64_t{0} >>
                                      std::countl_zero(static_cast<uint64_t>(a.most | b.most) | 1))};
    case ScalarOp::ShiftRight:
      if (b.least != b.most || b.least < 0 || b.least > 63) return a.least >= 0 ? Interval{0, a.most} : kAny;
      return {a.least >> b.least, a.most >> b.least};
    default:
      return kAny;
  }
}

}  // namespace

void KnownBounds::forget(Mark mark) {
  facts_.resize(mark.facts);
  decided_.resize(mark.decided);
}

/// Counts an expression, and facts that are looked through for it.
bool KnownBounds::mayGoOn() {
  constexpr size_t kFacts = 16;
  work_ += 1 + static_cast<int>(facts_.size() / kFacts);
  return work_ <= mostWork_;
}

void KnownBounds::begin() {
  spent_ += work_;
  work_ = 0;
}

// ---- learning ----

void KnownBounds::learn(const Difference& difference) {
  begin();
  learnDifference(difference.a, difference.b, difference.most, kMostDepth);
}
void KnownBounds::learn(ExprRef condition, bool holds) {
  begin();
  learn(condition, holds, kMostDepth);
}

void KnownBounds::learn(ExprRef condition, bool holds, int depth) {
  const std::pair decision(condition, holds);
  if (++work_ > mostWork_ || std::find(decided_.begin(), decided_.end(), decision) != decided_.end()) return;
  decided_.push_back(decision);
  if (isOp(condition, ScalarOp::Not)) return learn(condition->operands[0], !holds, depth);
  if (isOp(condition, holds ? ScalarOp::And : ScalarOp::Or)) {
    learn(condition->operands[0], holds, depth);
    learn(condition->operands[1], holds, depth);
    return;
  }
  if (isChoice(condition)) {  // one side could not have given this
    for (const bool side : {true, false}) {
      if (!isBoolean(valueOf(condition, side), !holds)) continue;
      learn(conditionOf(condition), !side, depth);
      learn(valueOf(condition, !side), holds, depth);
      return;
    }
    return;
  }
  if (condition->kind != ExprKind::Op || !isComparison(condition->op)) return;
  if (condition->operands[0]->type != lcu::kIndex) return;
  learnComparison(holds ? condition->op : *inverted(condition->op, lcu::kIndex), condition->operands[0],
                  condition->operands[1], depth);
}

void KnownBounds::learnComparison(ScalarOp op, ExprRef a, ExprRef b, int depth) {
  switch (op) {
    case ScalarOp::Less:
      return learnDifference(a, b, -1, depth);
    case ScalarOp::LessEqual:
      return learnDifference(a, b, 0, depth);
    case ScalarOp::Greater:
      return learnDifference(b, a, -1, depth);
    case ScalarOp::GreaterEqual:
      return learnDifference(b, a, 0, depth);
    case ScalarOp::Equal:
      learnDifference(a, b, 0, depth);
      return learnDifference(b, a, 0, depth);
    default:
      // Where it would take long to find out, it is not worth it.
      depth = std::min(depth, kShallow);
      if (proves(a, b, 0, depth)) {
        learnDifference(a, b, -1, depth);
      } else if (proves(b, a, 0, depth)) {
        learnDifference(b, a, -1, depth);
      }
  }
}

void KnownBounds::learnDifference(ExprRef a, ExprRef b, int64_t most, int depth) {
  const Sum x = taken(a, depth), y = taken(b, depth);
  const int64_t of = most - x.plus + y.plus;
  if (of > -kModest && of < kModest) facts_.push_back({x.of, y.of, of});
}

/// The sum of another expression and a constant that it is, if it does not wrap.
KnownBounds::Sum KnownBounds::taken(ExprRef e, int depth) {
  Sum sum{e, 0};
  while (sum.of) {
    if (sum.of->kind == ExprKind::Constant) {
      const int64_t value = sum.of->constant.i;
      if (value < -kModest / 2 || value > kModest / 2) break;
      sum = {nullptr, sum.plus + value};
      break;
    }
    if (!isOp(sum.of, ScalarOp::Add) || sum.of->operands[1]->kind != ExprKind::Constant) break;
    const ExprRef rest = sum.of->operands[0];
    const int64_t plus = sum.of->operands[1]->constant.i;
    if (std::max(plus, sum.plus) > kModest / 2 || std::min(plus, sum.plus) < -kModest / 2) break;
    if (!(plus < 0 ? proves(nullptr, rest, kModest, depth - 1) : proves(rest, nullptr, kModest, depth - 1)))
      break;
    sum = {rest, sum.plus + plus};
  }
  return sum;
}

// ---- proving ----

/// Where an expression lies whatever others are.
Interval KnownBounds::interval(ExprRef e, int depth) {
  if (!e) return {0, 0};
  if (!mayGoOn()) return kAny;
  Interval of = kAny;
  if (e->nonNegative) of = {0, e->bits == 0 ? 0 : static_cast<int64_t>(~uint64_t{0} >> (64 - e->bits))};
  for (const Fact& fact : facts_) {
    if (fact.b == e && !fact.a) of.least = std::max(of.least, -fact.most);
    if (fact.a == e && !fact.b) of.most = std::min(of.most, fact.most);
    if (depth <= 0 || !fact.a || !fact.b) continue;
    // Sums of what is far from 0 do not count, nor do those that go beyond what an integer holds.
    if (fact.a == e) {
      const int64_t most = interval(fact.b, depth - kLevels / 2).most;
      if (most > -kModest && (most < kModest || fact.most <= 0))
        of.most = std::min(of.most, most + fact.most);
    } else if (fact.b == e) {
      const int64_t least = interval(fact.a, depth - kLevels / 2).least;
      if (least < kModest && (least > -kModest || fact.most <= 0))
        of.least = std::max(of.least, least - fact.most);
    }
  }
  if (depth <= 0) return of;
  const auto operand = [&](size_t k) { return interval(e->operands[k], depth - 1); };
  Interval own = kAny;
  if (e->kind == ExprKind::Constant) {
    own = {e->constant.i, e->constant.i};
  } else if (e->kind == ExprKind::Convert) {
    own = ofType(e->operands[0]->type);
  } else if (e->kind == ExprKind::Check) {
    own = ofEither(operand(1), operand(2));
  } else if (isChoice(e)) {
    const auto known = decision(conditionOf(e));
    own = ofEither(interval(valueOf(e, known.value_or(true)), depth - 1),
                   interval(valueOf(e, known.value_or(false)), depth - 1));
  } else if (e->kind == ExprKind::Op && e->operands.size() == 2 && !isComparison(e->op)) {
    own = ofOperation(e->op, operand(0), operand(1));
  }
  return {std::max(of.least, own.least), std::min(of.most, own.most)};
}

std::optional<bool> KnownBounds::decision(ExprRef condition) const {
  for (const auto& [known, value] : decided_)
    if (known == condition) return value;
  return std::nullopt;
}

KnownBounds::Interval KnownBounds::range(ExprRef e) {
  begin();
  return rangeOf(e, kMostDepth);
}

KnownBounds::Interval KnownBounds::rangeOf(ExprRef e, int depth) {
  if (depth <= 0 || !mayGoOn()) return interval(e, kLevels);
  std::optional<Interval> found;
  const auto add = [&](ExprRef value) {
    const Interval own = rangeOf(value, depth - 1);
    found = found ? ofEither(*found, own) : own;
    return true;
  };
  if (e->kind == ExprKind::Check) {
    add(e->operands[2]);
    where(e->operands[0], true, depth, [&] { return add(e->operands[1]); });
  } else if (isChoice(e)) {
    onBothSides(e, depth, add);
  } else {
    return interval(e, kLevels);
  }
  const Interval otherwise = interval(e, kLevels);
  return {std::max(found->least, otherwise.least), std::min(found->most, otherwise.most)};
}

bool KnownBounds::implies(const Difference& difference) {
  begin();
  return proves(difference.a, difference.b, difference.most, kMostDepth);
}
bool KnownBounds::implies(ExprRef condition, bool holds) {
  begin();
  return follows(condition, holds);
}

bool KnownBounds::follows(ExprRef condition, bool holds) {
  if (++work_ > mostWork_) return false;
  if (condition->kind == ExprKind::Constant) return condition->constant.isTrue() == holds;
  if (const auto known = decision(condition)) return *known == holds;
  if (isOp(condition, ScalarOp::Not)) return follows(condition->operands[0], !holds);
  if (isOp(condition, holds ? ScalarOp::And : ScalarOp::Or))
    return follows(condition->operands[0], holds) && follows(condition->operands[1], holds);
  if (isOp(condition, holds ? ScalarOp::Or : ScalarOp::And)) {
    if (follows(condition->operands[0], holds)) return true;
    const Mark before = mark();
    learn(condition->operands[0], !holds, kMostDepth);
    const bool proven = follows(condition->operands[1], holds);
    forget(before);
    return proven;
  }
  if (condition->kind != ExprKind::Op || !isComparison(condition->op)) return false;
  if (condition->operands[0]->type != lcu::kIndex) return false;
  return provesComparison(holds ? condition->op : *inverted(condition->op, lcu::kIndex),
                          condition->operands[0], condition->operands[1]);
}

bool KnownBounds::provesComparison(ScalarOp op, ExprRef a, ExprRef b) {
  switch (op) {
    case ScalarOp::Less:
      return proves(a, b, -1, kMostDepth);
    case ScalarOp::LessEqual:
      return proves(a, b, 0, kMostDepth);
    case ScalarOp::Greater:
      return proves(b, a, -1, kMostDepth);
    case ScalarOp::GreaterEqual:
      return proves(b, a, 0, kMostDepth);
    case ScalarOp::Equal:
      return proves(a, b, 0, kMostDepth) && proves(b, a, 0, kMostDepth);
    default:
      return proves(a, b, -1, kMostDepth) || proves(b, a, -1, kMostDepth);
  }
}

/// Whether a - b <= most.
bool KnownBounds::proves(ExprRef a, ExprRef b, int64_t most, int depth) {
  if (depth <= 0 || !mayGoOn() || most < -kModest || most > 2 * kModest) return false;
  const Sum x = taken(a, depth), y = taken(b, depth);
  const int64_t of = most - x.plus + y.plus;
  if ((a == b && most >= 0) || (x.of == y.of && of >= 0)) return true;
  if (static_cast<__int128>(interval(x.of, kLevels).most) - interval(y.of, kLevels).least <= of) return true;
  for (size_t k = facts_.size(); k > 0; --k) {  // the latest first: they are of the place at hand
    const Fact fact = facts_[k - 1];
    if (fact.a == x.of &&
        (fact.b == y.of ? fact.most <= of : proves(fact.b, y.of, of - fact.most, depth - 1)))
      return true;
    if (fact.a == a && a != x.of && proves(fact.b, b, most - fact.most, depth - 1)) return true;
  }
  return (x.of && provesOfOperation(x.of, y.of, of, depth - 1)) ||
         (y.of && provesBelowOperation(x.of, y.of, of, depth - 1));
}

/// Whether that is proven of a check's value; its condition counts in loops alone, as in long chains of
/// checks conditions have conditions in them.
bool KnownBounds::whereChecked(ExprRef check, int depth, const std::function<bool()>& isProven) {
  return checksCount_ ? where(check->operands[0], true, depth, isProven) : isProven();
}

/// Whether nothing that is known lets it be far from 0.
bool KnownBounds::isModest(ExprRef e, int depth) {
  return proves(nullptr, e, kModest, depth) && proves(e, nullptr, kModest, depth);
}

/// Whether it is half of a sum of two numbers that are not negative, and does not wrap: where a search
/// halves.
bool KnownBounds::isMiddle(ExprRef e, int depth) {
  if (!isOp(e, ScalarOp::Div) || e->operands[1]->kind != ExprKind::Constant) return false;
  const ExprRef sum = e->operands[0];
  if (e->operands[1]->constant.i != 2 || !isOp(sum, ScalarOp::Add)) return false;
  return std::all_of(sum->operands.begin(), sum->operands.end(),
                     [&](ExprRef x) { return notNegative(x, depth) && proves(x, nullptr, kModest, depth); });
}

/// Whether that is proven of a choice's value on either side, where its condition came out so.
bool KnownBounds::onBothSides(ExprRef choice, int depth, const std::function<bool(ExprRef)>& isProven) {
  if (const auto known = decision(conditionOf(choice))) return isProven(valueOf(choice, *known));
  const auto side = [&](bool holds) {
    return where(conditionOf(choice), holds, depth, [&] { return isProven(valueOf(choice, holds)); });
  };
  return side(true) && side(false);
}

bool KnownBounds::where(ExprRef condition, bool holds, int depth, const std::function<bool()>& isProven) {
  const Mark before = mark();
  learn(condition, holds, depth);
  const bool proven = isProven();
  forget(before);
  return proven;
}

/// The same by what `a` is.
bool KnownBounds::provesOfOperation(ExprRef a, ExprRef b, int64_t most, int depth) {
  if (a->kind == ExprKind::Check)
    return proves(a->operands[2], b, most, depth) &&
           whereChecked(a, depth, [&] { return proves(a->operands[1], b, most, depth); });
  if (isChoice(a)) {
    return onBothSides(a, depth, [&](ExprRef value) { return proves(value, b, most, depth); });
  }
  if (a->kind != ExprKind::Op || a->operands.size() != 2) return false;
  const ExprRef x = a->operands[0], y = a->operands[1];
  switch (a->op) {
    case ScalarOp::Max:
      return proves(x, b, most, depth) && proves(y, b, most, depth);
    case ScalarOp::Min:
      return proves(x, b, most, depth) || proves(y, b, most, depth);
    case ScalarOp::Rem:
      return (proves(nullptr, y, -1, depth) && proves(y, b, most + 1, depth)) ||
             (notNegative(x, depth) && proves(x, b, most, depth));
    case ScalarOp::Div: {
      const auto half = [&](ExprRef smaller, ExprRef larger) {
        return proves(smaller, b, most, depth) && proves(larger, b, most + 1, depth);
      };
      if (isMiddle(a, depth) &&
          (half(x->operands[0], x->operands[1]) || half(x->operands[1], x->operands[0])))
        return true;
      return notNegative(x, depth) && notNegative(y, depth) && proves(x, b, most, depth);
    }
    case ScalarOp::ShiftRight:
      return notNegative(x, depth) && proves(x, b, most, depth);
    case ScalarOp::And:
      return (notNegative(y, depth) && proves(y, b, most, depth)) ||
             (notNegative(x, depth) && proves(x, b, most, depth));
    case ScalarOp::Sub:
      if (!isModest(x, depth) || !isModest(y, depth)) return false;
      return proves(nullptr, y, -1, depth) ? proves(x, b, most + 1, depth)
                                           : notNegative(y, depth) && proves(x, b, most, depth);
    default:
      return false;
  }
}

/// The same by what `b` is.
bool KnownBounds::provesBelowOperation(ExprRef a, ExprRef b, int64_t most, int depth) {
  if (b->kind == ExprKind::Check)
    return proves(a, b->operands[2], most, depth) &&
           whereChecked(b, depth, [&] { return proves(a, b->operands[1], most, depth); });
  if (isChoice(b)) {
    return onBothSides(b, depth, [&](ExprRef value) { return proves(a, value, most, depth); });
  }
  if (b->kind != ExprKind::Op || b->operands.size() != 2) return false;
  const ExprRef x = b->operands[0], y = b->operands[1];
  switch (b->op) {
    case ScalarOp::Max:
      return proves(a, x, most, depth) || proves(a, y, most, depth);
    case ScalarOp::Min:
      return proves(a, x, most, depth) && proves(a, y, most, depth);
    case ScalarOp::Add:
      return isModest(x, depth) && isModest(y, depth) &&
             ((notNegative(y, depth) && proves(a, x, most, depth)) ||
              (notNegative(x, depth) && proves(a, y, most, depth)));
    default:
      break;
  }
  if (isMiddle(b, depth) && proves(a, x->operands[0], most, depth) && proves(a, x->operands[1], most, depth))
    return true;
  if (a) return false;
  switch (b->op) {
    case ScalarOp::Rem:
    case ScalarOp::ShiftRight:
      return most >= 0 && notNegative(x, depth);
    case ScalarOp::Div:
      return most >= 0 && notNegative(x, depth) && notNegative(y, depth);
    case ScalarOp::And:
      return most >= 0 && (notNegative(x, depth) || notNegative(y, depth));
    case ScalarOp::Sub:
      return isModest(x, depth) && isModest(y, depth) && proves(y, x, most, depth);
    default:
      return false;
  }
}

}  // namespace kelpie::fusion
