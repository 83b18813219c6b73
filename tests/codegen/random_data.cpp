#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/codegen/random_kernel.h"
#include "tests/codegen/random_kernel_names.h"

namespace kelpie::tests {

using lcu::Soac;
using lcu::SoacKind;
using lcu::Space;
using lcu::SpaceKind;

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
    } else if (info.name == "m") {
      data.scalars[v] = Scalar::ofInt(ScalarType::Int64, x.segments);
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

}  // namespace kelpie::tests
