#include "tests/codegen/division_cases.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "tests/codegen/kernel_runs.h"

namespace kelpie::tests {

namespace {

int64_t operand(std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  switch (random() % 6) {
    case 0:
      return static_cast<int64_t>(random());
    case 1:
      return static_cast<int64_t>(random()) >> below(64);
    case 2:
      return static_cast<int64_t>((uint64_t{1} << below(64)) + random() % 5 - 2);
    case 3:
      return INT64_MIN + below(3);
    case 4:
      return INT64_MAX - below(3);
    default:
      return below(9) - 4;
  }
}

int64_t expected(ScalarOp op, int64_t a, int64_t b) {
  return evaluate(op, Scalar::ofInt(ScalarType::Int64, a), Scalar::ofInt(ScalarType::Int64, b)).i;
}

template <class T>
std::vector<std::byte> bytesOf(const std::vector<T>& values) {
  const auto* first = reinterpret_cast<const std::byte*>(values.data());
  return {first, first + sizeof(T) * values.size()};
}

template <class T>
T floatOperand(std::mt19937_64& random) {
  using Limits = std::numeric_limits<T>;
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const T sign = random() % 2 == 0 ? T(1) : T(-1);
  switch (random() % 8) {
    case 0:
    case 1:
      return sign * T(0);
    case 2: {
      const T special[] = {Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min(),
                           Limits::min(),      Limits::max(),       Limits::denorm_min() * T(12345)};
      return sign * special[random() % std::size(special)];
    }
    case 3:
    case 4:
      return std::bit_cast<T>(static_cast<Bits>(random()));
    default:
      return sign * static_cast<T>(random() % 1000) / T(8);
  }
}

template <class T>
void compareFloatDivisions(runtime::Target& target, const KnownKernels& known,
                           const runtime::ProgramKernels& program, size_t n, std::mt19937_64& random,
                           const std::string& suffix) {
  std::vector<T> dividends(n), divisors(n);
  for (size_t k = 0; k < n; ++k) {
    const bool plain = k % 128 < 32;  // a warp without zeros
    dividends[k] = plain ? static_cast<T>(1 + random() % 1000) : floatOperand<T>(random);
    divisors[k] = plain ? static_cast<T>(1 + random() % 77) : floatOperand<T>(random);
  }
  KernelData data;
  data.extents.elements = static_cast<int64_t>(n);
  data.arrays[known.vars.at("xs" + suffix)] = bytesOf(dividends);
  data.arrays[known.vars.at("ys" + suffix)] = bytesOf(divisors);
  const auto result = runKernel(target, program, known.number("float_quotients" + suffix), data);
  ASSERT_EQ(result.failure, std::nullopt) << *result.failure;
  for (size_t k = 0; k < n; ++k) {
    const T expected = dividends[k] / divisors[k];
    T got = 0;
    std::memcpy(&got, result.outputs[0].data() + sizeof(T) * k, sizeof(T));
    const bool same = std::isnan(expected) ? std::isnan(got) : std::memcmp(&got, &expected, sizeof(T)) == 0;
    ASSERT_TRUE(same) << dividends[k] << " / " << divisors[k] << ": " << got;
  }
}

}  // namespace

void compareDivisions(runtime::Target& target, const KnownKernels& known,
                      const runtime::ProgramKernels& program, size_t n, std::mt19937_64& random) {
  std::vector<int64_t> dividends(n), divisors(n);
  for (size_t k = 0; k < n; ++k) {
    // Neighbours that are alike take one way together.
    const bool alike = k % 64 < 32;
    divisors[k] = alike ? static_cast<int64_t>(random() % 1000000007) : operand(random);
    dividends[k] = alike ? static_cast<int64_t>(random() >> 2) : operand(random);
    if (random() % 3 == 0) {
      const auto factor = static_cast<uint64_t>(operand(random));
      dividends[k] = static_cast<int64_t>(static_cast<uint64_t>(divisors[k]) * factor + random() % 3 - 1);
    }
  }
  KernelData data;
  data.extents.elements = static_cast<int64_t>(n);
  data.arrays[known.vars.at("dividends")] = bytesOf(dividends);
  data.arrays[known.vars.at("divisors")] = bytesOf(divisors);
  struct Column {
    ScalarOp op;
    std::optional<int64_t> constant;
    int64_t more = 0;  // is added to divisors
    bool product = false;
  };
  const auto check = [&](const std::string& name, const std::vector<Column>& columns) {
    const auto result = runKernel(target, program, known.number(name), data);
    ASSERT_EQ(result.failure, std::nullopt) << *result.failure;
    ASSERT_EQ(result.outputs.size(), columns.size()) << name;
    for (size_t c = 0; c < columns.size(); ++c) {
      const Column& column = columns[c];
      for (size_t k = 0; k < n; ++k) {
        const int64_t of =
            column.product ? expected(ScalarOp::Mul, dividends[k], dividends[k]) : dividends[k];
        const int64_t by = column.constant.value_or(expected(ScalarOp::Add, divisors[k], column.more));
        int64_t got = 0;
        std::memcpy(&got, result.outputs[c].data() + sizeof(got) * k, sizeof(got));
        ASSERT_EQ(got, expected(column.op, of, by))
            << name << ": " << of << (column.op == ScalarOp::Div ? " / " : " % ") << by;
      }
    }
  };
  constexpr ScalarOp kDiv = ScalarOp::Div, kRem = ScalarOp::Rem;
  check("quotients", {{kDiv, {}}});
  check("remainders", {{kRem, {}}});
  check("quotients_and_remainders", {{kDiv, {}}, {kRem, {}}});
  std::vector<Column> columns;
  for (int64_t more = 0; more < KnownKernels::kProductDivisions; ++more)
    columns.push_back({more % 2 == 0 ? kDiv : kRem, {}, more, true});
  check("product_quotients", {columns[0]});
  check("product_remainders", {columns[1]});
  check("many_of_products", columns);
  std::vector<Column> quotients, remainders;
  for (const int64_t by : KnownKernels::constantDivisors()) {
    quotients.push_back({kDiv, by});
    remainders.push_back({kRem, by});
  }
  check("constant_quotients", quotients);
  check("constant_remainders", remainders);
  quotients.insert(quotients.end(), remainders.begin(), remainders.end());
  check("constant_quotients_and_remainders", quotients);
}

void compareFloatDivisions(runtime::Target& target, const KnownKernels& known,
                           const runtime::ProgramKernels& program, size_t n, std::mt19937_64& random) {
  compareFloatDivisions<float>(target, known, program, n, random, "");
  compareFloatDivisions<double>(target, known, program, n, random, "_f64");
}

}  // namespace kelpie::tests
