#include "ir/literal.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace kelpie {
namespace {

using enum ScalarType;

TEST(Literal, Spelling) {
  EXPECT_EQ(literalText(Scalar::ofInt(Int64, -5)), "-5");
  EXPECT_EQ(literalText(Scalar::ofInt(Int32, 5)), "5i32");
  EXPECT_EQ(literalText(Scalar::ofFloat(Float64, 2)), "2.0");
  EXPECT_EQ(literalText(Scalar::ofFloat(Float64, 1e300)), "1e+300");
  EXPECT_EQ(literalText(Scalar::ofFloat(Float32, 0.1)), "0.1f32");
  EXPECT_EQ(literalText(Scalar::ofFloat(Float64, -0.0)), "-0.0");
  EXPECT_EQ(literalText(Scalar::ofChar('\'')), "'\\''");
  EXPECT_EQ(literalText(Scalar::ofChar(200)), "'\\xc8'");
  EXPECT_EQ(literalText(Scalar::ofFloat(Float64, std::nan(""))), "nan");
  EXPECT_EQ(literalText(Scalar::ofFloat(Float32, -std::numeric_limits<double>::infinity())), "-inff32");
}

TEST(Literal, RoundTripsToTheBit) {
  std::vector<Scalar> values = {identity(ReduceOp::Min, Int64), identity(ReduceOp::Max, Int64),
                                identity(ReduceOp::Max, Int32), identity(ReduceOp::Max, Float32),
                                Scalar::ofBool(true),           Scalar::ofBool(false)};
  for (int c = 0; c < 256; ++c) values.push_back(Scalar::ofChar(static_cast<unsigned char>(c)));
  std::mt19937_64 random(7);
  for (int k = 0; k < 2000; ++k) {
    values.push_back(Scalar::ofFloat(Float64, std::bit_cast<double>(random())));
    values.push_back(Scalar::ofFloat(Float32, std::bit_cast<float>(static_cast<uint32_t>(random()))));
    values.push_back(Scalar::ofInt(Int64, static_cast<int64_t>(random())));
    values.push_back(Scalar::ofInt(Int32, static_cast<int64_t>(random())));
  }
  for (const Scalar& value : values)
    EXPECT_EQ(literalFromText(literalText(value)), value) << literalText(value);
}

TEST(Literal, RejectsEverythingElse) {
  for (const char* text : {"", "-", "5i64", "9223372036854775808", "1.5.2", "'ab'", "'", "nan(0)", "infinity",
                           "True", "2147483648i32", "f32", "1e", "'\\q'", "nan(0x1)"})
    EXPECT_EQ(literalFromText(text), std::nullopt) << text;
}

TEST(Literal, QuotedText) {
  EXPECT_EQ(quotedText("a\"b\\\n\x01z"), "\"a\\\"b\\\\\\n\\x01z\"");
  for (std::string bytes : {std::string("plain"), std::string("\0\xff\t'\"\\", 6), std::string()})
    EXPECT_EQ(unquotedText(quotedText(bytes)), bytes);
  EXPECT_EQ(unquotedText("\"a\"b\""), std::nullopt);
}

}  // namespace
}  // namespace kelpie
