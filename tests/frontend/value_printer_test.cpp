#include "frontend/value_printer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kelpie {
namespace {

using Kind = ValueType::Kind;

ValueTypePtr scalarType(ScalarType type) {
  return std::make_shared<const ValueType>(ValueType{Kind::Scalar, type, "", {}, 1});
}
ValueTypePtr pairType(ValueTypePtr first, ValueTypePtr second) {
  const size_t components = first->components + second->components;
  return std::make_shared<const ValueType>(ValueType{Kind::Pair, {}, "", {first, second}, components});
}
ValueTypePtr sequenceType(ValueTypePtr element) {
  return std::make_shared<const ValueType>(ValueType{Kind::Sequence, {}, "", {element}, 1});
}
ValueTypePtr recordType(std::string name, ValueTypePtr field) {
  return std::make_shared<const ValueType>(ValueType{Kind::Record, {}, name, {field}, field->components});
}

Column ints(std::vector<int64_t> values) {
  std::vector<Scalar> scalars;
  for (const int64_t v : values) scalars.push_back(Scalar::ofInt(ScalarType::Int64, v));
  return scalarColumn(ScalarType::Int64, scalars);
}
Column text(std::string_view characters) {
  std::vector<Scalar> scalars;
  for (const char c : characters) scalars.push_back(Scalar::ofChar(static_cast<unsigned char>(c)));
  return scalarColumn(ScalarType::Char, scalars);
}
Column sequence(std::vector<int64_t> offsets, Columns elements) {
  Row row;
  for (const Column& element : elements) row.push_back(element.type);
  return sequenceColumn(row, std::move(offsets), std::move(elements));
}
const ValueTypePtr kInt = scalarType(ScalarType::Int64), kChar = scalarType(ScalarType::Char);

std::string floatText(double x) { return printFloat(Scalar::ofFloat(ScalarType::Float64, x)); }

TEST(ValuePrinter, FloatsHaveFifteenDigits) {
  EXPECT_EQ(floatText(5), "5.0");
  EXPECT_EQ(floatText(-17.25), "-17.25");
  EXPECT_EQ(floatText(0.1 + 0.2), "0.3");
  EXPECT_EQ(floatText(1.0 / 3.0), "0.333333333333333");
  EXPECT_EQ(floatText(0.001), "0.001");
  EXPECT_EQ(floatText(0.00015), "1.5E-4");
  EXPECT_EQ(floatText(1234567), "1234567.0");
  EXPECT_EQ(floatText(1e7), "1.0E7");
  EXPECT_EQ(floatText(9999999.99999999999), "1.0E7");
  EXPECT_EQ(floatText(123456789), "1.23456789E8");
  EXPECT_EQ(floatText(1e-4), "1.0E-4");
  EXPECT_EQ(floatText(-0.0), "0.0");
  EXPECT_EQ(floatText(1e300), "1.0E300");
  EXPECT_EQ(floatText(-std::numeric_limits<double>::infinity()), "-INF");
  EXPECT_EQ(floatText(std::nan("")), "NAN");
}

TEST(ValuePrinter, NarrowFloatsShowWhatTheyHold) {
  EXPECT_EQ(printFloat(Scalar::ofFloat(ScalarType::Float32, 0.1)), "0.1");
  EXPECT_EQ(printFloat(Scalar::ofFloat(ScalarType::Float32, 16777216)), "1.6777216E7");
  EXPECT_EQ(printFloat(Scalar::ofFloat(ScalarType::Float32, 2)), "2.0");
}

TEST(ValuePrinter, PairsNestToTheRight) {
  const Columns row = {ints({1}), ints({2}), ints({3})};
  EXPECT_EQ(printValue(*pairType(kInt, pairType(kInt, kInt)), row), "(1, 2, 3)");
  EXPECT_EQ(printValue(*pairType(pairType(kInt, kInt), kInt), row), "((1, 2), 3)");
}

TEST(ValuePrinter, RecordsShowTheirNameOnce) {
  EXPECT_EQ(printValue(*recordType("polar", pairType(kInt, kInt)), {ints({1}), ints({2})}), "polar(1, 2)");
  EXPECT_EQ(printValue(*recordType("u", sequenceType(kInt)), {sequence({0, 2}, {ints({1, 2})})}),
            "u([1, 2])");
}

TEST(ValuePrinter, SequencesAreCutAtEveryLevel) {
  const ValueTypePtr type = sequenceType(sequenceType(kInt));
  const Column inner = sequence({0, 4, 4, 5}, {ints({1, 2, 3, 4, 5})});
  const Columns row = {sequence({0, 3}, {inner})};
  EXPECT_EQ(printValue(*type, row), "[[1, 2, 3, 4], [], [5]]");
  EXPECT_EQ(printValue(*type, row, 3), "[[1, 2, 3,...], [], [5]]");
  EXPECT_EQ(printValue(*type, row, 1), "[[1,...],...]");
  EXPECT_EQ(printValue(*type, row, 0), "[...]");
}

TEST(ValuePrinter, StringsAreWholeAndEscaped) {
  EXPECT_EQ(printValue(*sequenceType(kChar), {sequence({0, 5}, {text("a\"b\\c")})}, 1), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(printValue(*sequenceType(kChar), {sequence({0, 0}, {text("")})}), "\"\"");
  EXPECT_EQ(printValue(*kChar, {text("`")}), "``");
  const Column words = sequence({0, 2, 2}, {text("ab")});
  EXPECT_EQ(printValue(*sequenceType(sequenceType(kChar)), {sequence({0, 2}, {words})}), "[\"ab\", \"\"]");
}

TEST(ValuePrinter, SequencesOfPairsKeepTheirColumnsApart) {
  const ValueTypePtr type = sequenceType(pairType(kInt, sequenceType(kInt)));
  const Column lists = sequence({0, 1, 3}, {ints({7, 8, 9})});
  EXPECT_EQ(printValue(*type, {sequence({0, 2}, {ints({1, 2}), lists})}), "[(1, [7]), (2, [8, 9])]");
}

TEST(ValuePrinter, LongTextsArriveInPieces) {
  const std::string characters(300000, 'x');
  size_t pieces = 0, length = 0;
  printValue(*sequenceType(kChar), {sequence({0, 300000}, {text(characters)})}, 100,
             [&](std::string_view piece) {
               ++pieces;
               length += piece.size();
             });
  EXPECT_GT(pieces, 3u);
  EXPECT_EQ(length, characters.size() + 2);
}

}  // namespace
}  // namespace kelpie
