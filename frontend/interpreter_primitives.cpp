#include "frontend/interpreter_primitives.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "ir/check_messages.h"
#include "ir/diagnostic.h"

namespace kelpie {

namespace {

[[noreturn]] void fail(const char* message, int64_t p = 0, int64_t q = 0) {
  throw PrimitiveFailure{formatCheck(message, p, q)};
}

Indices lengthsOf(const InstanceVector& v, int64_t instances) {
  Indices lengths(static_cast<size_t>(instances));
  for (int64_t k = 0; k < instances; ++k) lengths[static_cast<size_t>(k)] = v.length(k);
  return lengths;
}

/// Applies `f(k)`, a Scalar, to every instance; once when all arguments are uniform.
template <class F>
InstanceVector mapScalars(const InstanceRow& arguments, int64_t instances, ScalarType type, F f) {
  const bool uniform =
      std::all_of(arguments.begin(), arguments.end(), [](const InstanceVector& v) { return v.uniform; });
  Indices words(static_cast<size_t>(uniform ? 1 : instances));
  for (size_t k = 0; k < words.size(); ++k) words[k] = f(static_cast<int64_t>(k)).i;
  InstanceVector result = scalarVector(type, std::move(words));
  result.uniform = uniform;
  return result;
}

InstanceVector scalarOperation(const core::Prim& prim, const InstanceRow& arguments, int64_t instances,
                               ScalarType type) {
  const InstanceVector& a = arguments[0];
  if (arity(prim.scalarOp) == 1) {
    return mapScalars(arguments, instances, type,
                      [&](int64_t k) { return evaluate(prim.scalarOp, a.at(k)); });
  }
  const InstanceVector& b = arguments[1];
  return mapScalars(arguments, instances, type,
                    [&](int64_t k) { return evaluate(prim.scalarOp, a.at(k), b.at(k)); });
}

void checkOperands(ScalarOp op, const Scalar& a, const Scalar& b) {
  switch (op) {
    case ScalarOp::Div:
    case ScalarOp::Rem:
      if (isFloat(b.type) ? b.f == 0.0 : b.i == 0) fail(check_message::kDivision);
      return;
    case ScalarOp::Sqrt:
    case ScalarOp::Ln:
      if (a.f < 0.0) fail(op == ScalarOp::Sqrt ? check_message::kSquareRoot : check_message::kLogarithm);
      return;
    case ScalarOp::ShiftLeft:
    case ScalarOp::ShiftRight:
      if (b.i < 0 || b.i >= int64_t{8} * sizeOf(a.type)) fail(check_message::kShift, b.i);
      return;
    default:
      throw InternalError("unchecked scalar operation in CheckedScalar");
  }
}

InstanceVector checkedOperation(const core::Prim& prim, const InstanceRow& arguments, int64_t instances,
                                ScalarType type) {
  for (int64_t k = 0; k < instances; ++k) {
    checkOperands(prim.scalarOp, arguments[0].at(k), arguments.size() > 1 ? arguments[1].at(k) : Scalar());
  }
  return scalarOperation(prim, arguments, instances, type);
}

Scalar checkedConvert(const Scalar& a, ScalarType to) {
  if (isFloat(a.type) && isInt(to)) {
    const double limit = std::ldexp(1.0, 8 * sizeOf(to) - 1), whole = std::trunc(a.f);
    if (!(whole >= -limit && whole < limit)) fail(check_message::kFloatToInt);
  }
  if (to == ScalarType::Char && isInt(a.type) && (a.i < 0 || a.i > 255)) fail(check_message::kCharacter, a.i);
  return convert(a, to);
}

InstanceRow index(const InstanceVector& v, const InstanceVector& position, int64_t instances) {
  const bool uniform = v.uniform && position.uniform;
  Indices places(static_cast<size_t>(uniform ? 1 : instances));
  for (size_t j = 0; j < places.size(); ++j) {
    const auto k = static_cast<int64_t>(j);
    const int64_t i = position.word(k);
    if (i < 0 || i >= v.length(k)) fail(check_message::kIndex, i, v.length(k));
    places[j] = v.start(k) + i;
  }
  InstanceRow row = gather(*v.elements, places);
  for (InstanceVector& component : row) component.uniform = uniform;
  return row;
}

InstanceVector range(const InstanceRow& arguments, int64_t instances, const CoreType& type) {
  const ScalarType element = type.elements()[0].scalar();
  Indices lengths, words;
  for (int64_t k = 0; k < instances; ++k) {
    const int64_t s = arguments[0].word(k), e = arguments[1].word(k), d = arguments[2].word(k);
    if (d < 1) fail(check_message::kRangeStride, d);
    if (s > e) fail(check_message::kRangeOrder, s, e);
    // Unsigned, because e - s may exceed the largest int.
    const uint64_t distance = static_cast<uint64_t>(e) - static_cast<uint64_t>(s);
    const uint64_t length =
        distance / static_cast<uint64_t>(d) + (distance % static_cast<uint64_t>(d) != 0 ? 1 : 0);
    if (length > words.max_size() - words.size()) throw std::bad_alloc();
    lengths.push_back(static_cast<int64_t>(length));
    // At once for a long one, which may be too long; but not each time for many short ones.
    if (words.capacity() - words.size() < length)
      words.reserve(std::max(words.size() + length, 2 * words.capacity()));
    for (uint64_t j = 0; j < length; ++j) words.push_back(s + static_cast<int64_t>(j) * d);
  }
  return denseSequences(type.elements(), std::move(lengths), {scalarVector(element, std::move(words))});
}

InstanceVector distribute(const InstanceRow& arguments, int64_t instances, const CoreType& type) {
  Indices lengths, source;
  for (int64_t k = 0; k < instances; ++k) {
    const int64_t n = arguments[0].word(k);
    if (n < 0) fail(check_message::kCopies, n);
    lengths.push_back(n);
    source.insert(source.end(), static_cast<size_t>(n), k);
  }
  const auto total = static_cast<int64_t>(source.size());
  InstanceRow row(arguments.begin() + 1, arguments.end());
  return denseSequences(type.elements(), std::move(lengths), expanded(gather(row, source), total));
}

InstanceVector literal(const core::Prim& prim, const InstanceRow& arguments, int64_t instances,
                       const CoreType& type) {
  const size_t count = prim.count, width = arguments.size() / count;
  std::vector<InstanceRow> rows;
  for (size_t j = 0; j < count; ++j) {
    const auto first = arguments.begin() + static_cast<std::ptrdiff_t>(j * width);
    rows.push_back(expanded(InstanceRow(first, first + static_cast<std::ptrdiff_t>(width)), instances));
  }
  Indices order;  // from one operand after another to one instance after another
  for (int64_t k = 0; k < instances; ++k) {
    for (size_t j = 0; j < count; ++j) order.push_back(static_cast<int64_t>(j) * instances + k);
  }
  InstanceRow elements = width == 0 ? InstanceRow() : gather(concatenated(rows), order);
  return denseSequences(type.elements(), Indices(static_cast<size_t>(instances), static_cast<int64_t>(count)),
                        std::move(elements));
}

InstanceVector reduce(ReduceOp op, const InstanceVector& v, int64_t instances, ScalarType type) {
  const ScalarOp step = scalarOp(op);
  const InstanceVector& element = v.elements->front();
  return mapScalars({v}, instances, type, [&](int64_t k) {
    Scalar result = identity(op, type);
    for (int64_t i = v.start(k), end = i + v.length(k); i < end; ++i)
      result = evaluate(step, result, element.at(i));
    return result;
  });
}

InstanceVector scan(ReduceOp op, const InstanceVector& v, int64_t instances) {
  const ScalarOp step = scalarOp(op);
  const InstanceVector& element = v.elements->front();
  const ScalarType type = element.type.scalar();
  Indices words;
  for (int64_t k = 0; k < instances; ++k) {
    Scalar result = identity(op, type);
    for (int64_t i = v.start(k), end = i + v.length(k); i < end; ++i) {
      words.push_back(result.i);
      result = evaluate(step, result, element.at(i));
    }
  }
  return denseSequences(v.type.elements(), lengthsOf(v, instances), {scalarVector(type, std::move(words))});
}

void checkSameLength(const InstanceVector& a, const InstanceVector& b, int64_t instances) {
  for (int64_t k = 0; k < instances; ++k) {
    if (a.length(k) != b.length(k)) fail(check_message::kLengths, a.length(k), b.length(k));
  }
}

InstanceVector pack(const InstanceVector& flags, const InstanceVector& v, int64_t instances) {
  checkSameLength(flags, v, instances);
  const InstanceVector& flag = flags.elements->front();
  Indices lengths, places;
  for (int64_t k = 0; k < instances; ++k) {
    const size_t before = places.size();
    for (int64_t i = 0; i < v.length(k); ++i) {
      if (flag.word(flags.start(k) + i) != 0) places.push_back(v.start(k) + i);
    }
    lengths.push_back(static_cast<int64_t>(places.size() - before));
  }
  return denseSequences(v.type.elements(), std::move(lengths), gather(*v.elements, places));
}

InstanceVector append(const InstanceVector& v, const InstanceVector& w, int64_t instances) {
  Indices lengths, order;
  int64_t nextOfV = 0, nextOfW = 0;
  for (int64_t k = 0; k < instances; ++k) nextOfW += v.length(k);
  for (int64_t k = 0; k < instances; ++k) {
    lengths.push_back(v.length(k) + w.length(k));
    for (int64_t i = 0; i < v.length(k); ++i) order.push_back(nextOfV++);
    for (int64_t i = 0; i < w.length(k); ++i) order.push_back(nextOfW++);
  }
  return denseSequences(v.type.elements(), std::move(lengths),
                        gather(concatenated({allElements(v, instances), allElements(w, instances)}), order));
}

InstanceVector flatten(const InstanceVector& v, int64_t instances) {
  const InstanceVector& inner = v.elements->front();
  bool contiguous = true;
  Indices starts, lengths;
  for (int64_t k = 0; k < instances; ++k) {
    int64_t total = 0, begin = 0;
    for (int64_t i = v.start(k), end = i + v.length(k); i < end; ++i) {
      if (inner.length(i) == 0) continue;
      if (total == 0) begin = inner.start(i);
      contiguous = contiguous && inner.start(i) == begin + total;
      total += inner.length(i);
    }
    starts.push_back(begin);
    lengths.push_back(total);
  }
  const Row& row = inner.type.elements();
  if (contiguous) return sequences(row, std::move(starts), std::move(lengths), inner.elements);
  const InstanceVector all = allElements(v, instances).front();
  return denseSequences(row, std::move(lengths), allElements(all, all.size()));
}

InstanceVector partition(const InstanceVector& v, const InstanceVector& counts, int64_t instances,
                         const CoreType& type) {
  const InstanceVector& count = counts.elements->front();
  Indices starts, lengths;
  for (int64_t k = 0; k < instances; ++k) {
    int64_t begin = v.start(k);
    for (int64_t i = counts.start(k), end = i + counts.length(k); i < end; ++i) {
      const int64_t length = count.word(i);
      if (length < 0) fail(check_message::kPieceLength, length);
      starts.push_back(begin);
      lengths.push_back(length);
      begin += std::min(length, v.length(k) + check_message::kExcessOfPiece);
    }
    if (begin - v.start(k) != v.length(k)) {
      fail(check_message::kPieceSum, begin - v.start(k), v.length(k));
    }
  }
  return denseSequences(type.elements(), lengthsOf(counts, instances),
                        {sequences(v.type.elements(), std::move(starts), std::move(lengths), v.elements)});
}

int64_t storeSize(const InstanceVector& v) { return v.elements->empty() ? -1 : v.elements->front().size(); }

/// Operands over one store layout are put side by side as they are; others lose their gaps first.
InstanceVector zip(const InstanceRow& arguments, int64_t instances, const CoreType& type) {
  const InstanceVector& first = arguments[0];
  bool aligned = true;
  for (const InstanceVector& v : arguments) {
    checkSameLength(first, v, instances);
    aligned = aligned && storeSize(v) == storeSize(first);
    for (int64_t k = 0; aligned && k < instances; ++k) aligned = v.start(k) == first.start(k);
  }
  InstanceRow elements;
  for (const InstanceVector& v : arguments) {
    const InstanceRow part = aligned ? *v.elements : allElements(v, instances);
    elements.insert(elements.end(), part.begin(), part.end());
  }
  if (!aligned) return denseSequences(type.elements(), lengthsOf(first, instances), std::move(elements));
  InstanceVector result = first;
  result.type = type;
  result.elements = std::make_shared<const InstanceRow>(std::move(elements));
  return result;
}

InstanceVector project(const core::Prim& prim, const InstanceVector& v, const CoreType& type) {
  const auto first = v.elements->begin() + prim.first;
  InstanceVector result = v;
  result.type = type;
  result.elements = std::make_shared<const InstanceRow>(first, first + prim.count);
  return result;
}

InstanceVector slice(const InstanceRow& arguments, int64_t instances) {
  const InstanceVector& v = arguments[0];
  bool isView = true;
  Indices starts, lengths;
  for (int64_t k = 0; k < instances; ++k) {
    const int64_t start = arguments[1].word(k), count = arguments[2].word(k), stride = arguments[3].word(k);
    const auto inside = [&](int64_t position) { return 0 <= position && position < v.length(k); };
    int64_t last = 0;
    const bool overflow =
        __builtin_mul_overflow(count - 1, stride, &last) || __builtin_add_overflow(last, start, &last);
    if (count < 0 || (count > 0 && (overflow || !inside(start) || !inside(last)))) {
      fail(check_message::kSlice, count, start);
    }
    isView = isView && (stride == 1 || count < 2);
    starts.push_back(count > 0 ? v.start(k) + start : 0);
    lengths.push_back(count);
  }
  if (isView) return sequences(v.type.elements(), std::move(starts), std::move(lengths), v.elements);
  Indices places;
  for (int64_t k = 0; k < instances; ++k) {
    const int64_t start = starts[static_cast<size_t>(k)], stride = arguments[3].word(k);
    for (int64_t i = 0; i < lengths[static_cast<size_t>(k)]; ++i) places.push_back(start + i * stride);
  }
  return denseSequences(v.type.elements(), std::move(lengths), gather(*v.elements, places));
}

InstanceVector lastWriter(const InstanceVector& targets, const InstanceVector& sizes, int64_t instances) {
  const InstanceVector& target = targets.elements->front();
  Indices lengths, writers;
  for (int64_t k = 0; k < instances; ++k) {
    const int64_t n = sizes.word(k);
    if (n < 0) fail(check_message::kNegativeLength, n);
    lengths.push_back(n);
    const size_t base = writers.size();
    writers.insert(writers.end(), static_cast<size_t>(n), -1);
    for (int64_t i = 0; i < targets.length(k); ++i) {
      const int64_t j = target.word(targets.start(k) + i);
      if (j < 0 || j >= n) fail(check_message::kIndex, j, n);
      writers[base + static_cast<size_t>(j)] = i;
    }
  }
  return denseSequences(targets.type.elements(), std::move(lengths),
                        {scalarVector(target.type.scalar(), std::move(writers))});
}

InstanceVector grade(const InstanceVector& v, int64_t instances, const CoreType& type) {
  const InstanceVector& key = v.elements->front();
  const bool floats = isFloat(key.type.scalar());
  Indices order;
  for (int64_t k = 0; k < instances; ++k) {
    const auto begin = static_cast<std::ptrdiff_t>(order.size());
    const int64_t start = v.start(k);
    order.resize(order.size() + static_cast<size_t>(v.length(k)));
    std::iota(order.begin() + begin, order.end(), int64_t{0});
    std::stable_sort(order.begin() + begin, order.end(), [&](int64_t a, int64_t b) {
      const Scalar x = key.at(start + a), y = key.at(start + b);
      if (!floats) return x.i < y.i;
      return std::isnan(y.f) ? !std::isnan(x.f) : x.f < y.f;
    });
  }
  return denseSequences(type.elements(), lengthsOf(v, instances),
                        {scalarVector(type.elements()[0].scalar(), std::move(order))});
}

}  // namespace

std::string formatCheck(std::string text, int64_t p, int64_t q) {
  for (const auto& [mark, value] : {std::pair<std::string, int64_t>{"{0}", p}, {"{1}", q}}) {
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
      text.replace(at, mark.size(), std::to_string(value));
    }
  }
  return text;
}

InstanceRow evaluatePrimitive(const core::Prim& prim, const InstanceRow& arguments, int64_t instances,
                              const Row& result) {
  using core::PrimOp;
  switch (prim.op) {
    case PrimOp::Scalar:
      return {scalarOperation(prim, arguments, instances, result[0].scalar())};
    case PrimOp::CheckedScalar:
      return {checkedOperation(prim, arguments, instances, result[0].scalar())};
    case PrimOp::Convert:
      return {mapScalars(arguments, instances, result[0].scalar(),
                         [&](int64_t k) { return checkedConvert(arguments[0].at(k), result[0].scalar()); })};
    case PrimOp::Check:
      for (int64_t k = 0; k < instances; ++k) {
        if (arguments[0].word(k) == 0) {
          throw PrimitiveFailure{formatCheck(prim.text, arguments[1].word(k), arguments[2].word(k))};
        }
      }
      return result.empty() ? InstanceRow() : InstanceRow{arguments[1]};
    case PrimOp::Length:
      return {mapScalars(arguments, instances, result[0].scalar(), [&](int64_t k) {
        return Scalar::ofInt(result[0].scalar(), arguments[0].length(k));
      })};
    case PrimOp::Index:
      return index(arguments[0], arguments[1], instances);
    case PrimOp::Range:
      return {range(arguments, instances, result[0])};
    case PrimOp::Distribute:
      return {distribute(arguments, instances, result[0])};
    case PrimOp::Literal:
      return {literal(prim, arguments, instances, result[0])};
    case PrimOp::Reduce:
      return {reduce(prim.reduceOp, arguments[0], instances, result[0].scalar())};
    case PrimOp::Scan:
      return {scan(prim.reduceOp, arguments[0], instances)};
    case PrimOp::Pack:
      return {pack(arguments[0], arguments[1], instances)};
    case PrimOp::Append:
      return {append(arguments[0], arguments[1], instances)};
    case PrimOp::Flatten:
      return {flatten(arguments[0], instances)};
    case PrimOp::Partition:
      return {partition(arguments[0], arguments[1], instances, result[0])};
    case PrimOp::Zip:
      return {zip(arguments, instances, result[0])};
    case PrimOp::Project:
      return {project(prim, arguments[0], result[0])};
    case PrimOp::Slice:
      return {slice(arguments, instances)};
    case PrimOp::LastWriter:
      return {lastWriter(arguments[0], arguments[1], instances)};
    case PrimOp::Grade:
      return {grade(arguments[0], instances, result[0])};
    default:
      throw InternalError("not a computing primitive");
  }
}

}  // namespace kelpie
