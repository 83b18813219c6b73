#include "frontend/instance_vector.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace kelpie {

namespace {

SharedIndices share(Indices indices) { return std::make_shared<const Indices>(std::move(indices)); }

Indices exclusiveSums(const Indices& lengths) {
  Indices starts(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), starts.begin(), int64_t{0});
  return starts;
}

bool sameStore(const InstanceRow& a, const InstanceRow& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const InstanceVector& x, const InstanceVector& y) {
                      return x.words == y.words && x.lengths == y.lengths &&
                             (x.type.isScalar() || sameStore(*x.elements, *y.elements));
                    });
}

Indices gathered(const Indices& values, const Indices& indices) {
  Indices result(indices.size());
  for (size_t k = 0; k < indices.size(); ++k) result[k] = values[static_cast<size_t>(indices[k])];
  return result;
}

bool isIdentity(const Indices& indices, int64_t size) {
  if (static_cast<int64_t>(indices.size()) != size) return false;
  for (size_t k = 0; k < indices.size(); ++k) {
    if (indices[k] != static_cast<int64_t>(k)) return false;
  }
  return true;
}

/// The same sequences over a store without gaps, when that is smaller than the present one.
InstanceVector withoutWaste(const InstanceVector& v) {
  if (v.elements->empty()) return v;
  const int64_t live = std::accumulate(v.lengths->begin(), v.lengths->end(), int64_t{0});
  if (live >= v.elements->front().size()) return v;
  return denseSequences(v.type.elements(), *v.lengths, allElements(v, v.size()));
}

template <class T>
void unpack(const Column& column, Indices& words) {
  const T* data = reinterpret_cast<const T*>(column.bytes.data());
  for (size_t k = 0; k < words.size(); ++k) {
    if constexpr (std::is_floating_point_v<T>) {
      const double value = data[k];
      std::memcpy(&words[k], &value, sizeof value);
    } else {
      words[k] = data[k];
    }
  }
}

template <class T>
std::vector<std::byte> pack(const InstanceVector& v, int64_t instances) {
  std::vector<std::byte> bytes(static_cast<size_t>(instances) * sizeof(T));
  T* data = reinterpret_cast<T*>(bytes.data());
  for (int64_t k = 0; k < instances; ++k) {
    if constexpr (std::is_floating_point_v<T>) {
      data[k] = static_cast<T>(v.at(k).f);
    } else {
      data[k] = static_cast<T>(v.word(k));
    }
  }
  return bytes;
}

}  // namespace

InstanceVector scalarVector(ScalarType type, Indices words) {
  return {type, false, share(std::move(words)), {}, {}};
}

InstanceVector uniformScalar(const Scalar& value) { return {value.type, true, share({value.i}), {}, {}}; }

InstanceVector denseSequences(Row row, Indices lengths, InstanceRow elements) {
  Indices starts = exclusiveSums(lengths);
  return sequences(std::move(row), std::move(starts), std::move(lengths),
                   std::make_shared<const InstanceRow>(std::move(elements)));
}

InstanceVector sequences(Row row, Indices starts, Indices lengths,
                         std::shared_ptr<const InstanceRow> elements) {
  return {CoreType::sequence(std::move(row)), false, share(std::move(starts)), share(std::move(lengths)),
          std::move(elements)};
}

InstanceVector gather(const InstanceVector& v, const Indices& indices) {
  if (v.uniform || isIdentity(indices, v.size())) return v;
  InstanceVector result = v;
  result.words = share(gathered(*v.words, indices));
  if (v.lengths) result.lengths = share(gathered(*v.lengths, indices));
  return result;
}

InstanceRow gather(const InstanceRow& row, const Indices& indices) {
  InstanceRow result;
  for (const InstanceVector& v : row) result.push_back(gather(v, indices));
  return result;
}

InstanceVector expanded(const InstanceVector& v, int64_t instances) {
  if (!v.uniform) return v;
  InstanceVector result = v;
  result.uniform = false;
  const auto n = static_cast<size_t>(instances);
  if (n == 1) return result;
  result.words = share(Indices(n, v.words->front()));
  if (v.lengths) result.lengths = share(Indices(n, v.lengths->front()));
  return result;
}

InstanceRow expanded(const InstanceRow& row, int64_t instances) {
  InstanceRow result;
  for (const InstanceVector& v : row) result.push_back(expanded(v, instances));
  return result;
}

InstanceVector concatenated(const std::vector<InstanceVector>& parts) {
  if (parts.size() == 1) return parts[0];
  const CoreType& type = parts[0].type;
  Indices words;
  for (const InstanceVector& part : parts) words.insert(words.end(), part.words->begin(), part.words->end());
  if (type.isScalar()) return scalarVector(type.scalar(), std::move(words));

  Indices lengths;
  for (const InstanceVector& part : parts)
    lengths.insert(lengths.end(), part.lengths->begin(), part.lengths->end());
  const bool shared = std::all_of(parts.begin() + 1, parts.end(), [&](const InstanceVector& part) {
    return sameStore(*part.elements, *parts[0].elements);
  });
  if (shared) return sequences(type.elements(), std::move(words), std::move(lengths), parts[0].elements);

  std::vector<InstanceRow> stores;
  words.clear();
  int64_t offset = 0;
  for (const InstanceVector& part : parts) {
    const InstanceVector tight = withoutWaste(part);
    for (const int64_t start : *tight.words) words.push_back(start + offset);
    offset += tight.elements->front().size();
    stores.push_back(*tight.elements);
  }
  return sequences(type.elements(), std::move(words), std::move(lengths),
                   std::make_shared<const InstanceRow>(concatenated(stores)));
}

InstanceRow concatenated(const std::vector<InstanceRow>& parts) {
  InstanceRow result;
  for (size_t c = 0; c < parts[0].size(); ++c) {
    std::vector<InstanceVector> components;
    for (const InstanceRow& part : parts) components.push_back(part[c]);
    result.push_back(concatenated(components));
  }
  return result;
}

ElementPlaces elementPlaces(const InstanceVector& sequence, int64_t instances) {
  ElementPlaces result;
  int64_t total = 0;
  for (int64_t k = 0; k < instances; ++k) total += sequence.length(k);
  result.places.reserve(static_cast<size_t>(total));
  result.instance.reserve(static_cast<size_t>(total));
  for (int64_t k = 0; k < instances; ++k) {
    const int64_t start = sequence.start(k), length = sequence.length(k);
    for (int64_t p = 0; p < length; ++p) result.places.push_back(start + p);
    result.instance.insert(result.instance.end(), static_cast<size_t>(length), k);
  }
  return result;
}

InstanceRow allElements(const InstanceVector& sequence, int64_t instances) {
  return gather(*sequence.elements, elementPlaces(sequence, instances).places);
}

InstanceVector fromColumn(const Column& column) {
  if (column.type.isSequence()) {
    const SharedArray<int64_t>& offsets = column.offsets;
    Indices lengths(offsets.size() - 1);
    for (size_t k = 0; k < lengths.size(); ++k) lengths[k] = offsets[k + 1] - offsets[k];
    InstanceRow elements;
    for (const Column& element : column.elements) elements.push_back(fromColumn(element));
    return denseSequences(column.type.elements(), std::move(lengths), std::move(elements));
  }
  Indices words(static_cast<size_t>(column.length()));
  switch (column.type.scalar()) {
    case ScalarType::Bool:
    case ScalarType::Char:
      unpack<uint8_t>(column, words);
      break;
    case ScalarType::Int32:
      unpack<int32_t>(column, words);
      break;
    case ScalarType::Int64:
      unpack<int64_t>(column, words);
      break;
    case ScalarType::Float32:
      unpack<float>(column, words);
      break;
    case ScalarType::Float64:
      unpack<double>(column, words);
      break;
  }
  return scalarVector(column.type.scalar(), std::move(words));
}

Column toColumn(const InstanceVector& v, int64_t instances) {
  if (v.type.isSequence()) {
    std::vector<int64_t> offsets = {0};
    for (int64_t k = 0; k < instances; ++k) offsets.push_back(offsets.back() + v.length(k));
    Columns elements;
    const int64_t total = offsets.back();
    for (const InstanceVector& element : allElements(v, instances))
      elements.push_back(toColumn(element, total));
    return sequenceColumn(v.type.elements(), std::move(offsets), std::move(elements));
  }
  switch (v.type.scalar()) {
    case ScalarType::Bool:
    case ScalarType::Char:
      return scalarColumn(v.type.scalar(), pack<uint8_t>(v, instances));
    case ScalarType::Int32:
      return scalarColumn(ScalarType::Int32, pack<int32_t>(v, instances));
    case ScalarType::Int64:
      return scalarColumn(ScalarType::Int64, pack<int64_t>(v, instances));
    case ScalarType::Float32:
      return scalarColumn(ScalarType::Float32, pack<float>(v, instances));
    default:
      return scalarColumn(ScalarType::Float64, pack<double>(v, instances));
  }
}

Columns instanceColumns(const InstanceRow& row, int64_t instance) {
  Columns columns;
  for (const InstanceVector& v : row) columns.push_back(toColumn(gather(v, {instance}), 1));
  return columns;
}

}  // namespace kelpie
