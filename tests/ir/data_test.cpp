#include "ir/data.h"

#include <gtest/gtest.h>

#include "ir/diagnostic.h"
#include "ir/regularity.h"

namespace kelpie {
namespace {

const CoreType kNested = CoreType::sequence({ScalarType::Int64, CoreType::sequence({ScalarType::Float64})});

TEST(CoreType, TextDepthAndEquality) {
  EXPECT_EQ(toString(kNested), "[int64, [float64]]");
  EXPECT_EQ(toString(CoreType::sequence({})), "[]");
  EXPECT_EQ(toString(Row{ScalarType::Bool, kNested}), "bool, [int64, [float64]]");
  EXPECT_EQ(kNested.depth(), 2);
  EXPECT_EQ(CoreType::sequence({}).depth(), 1);
  EXPECT_TRUE(kNested == CoreType::sequence({ScalarType::Int64, CoreType::sequence({ScalarType::Float64})}));
  EXPECT_FALSE(kNested == CoreType::sequence({ScalarType::Int64}));
  EXPECT_FALSE(kNested == CoreType(ScalarType::Int64));
}

TEST(Column, StoresEveryScalarType) {
  for (ScalarType t : {ScalarType::Bool, ScalarType::Char, ScalarType::Int32, ScalarType::Int64,
                       ScalarType::Float32, ScalarType::Float64}) {
    std::vector<Scalar> values;
    for (int64_t v : {0, 1, 100, -5}) values.push_back(convert(Scalar::ofInt(ScalarType::Int64, v), t));
    const Column column = scalarColumn(t, values);
    ASSERT_EQ(column.length(), 4);
    EXPECT_EQ(column.bytes.size(), 4u * static_cast<size_t>(sizeOf(t)));
    for (int64_t k = 0; k < 4; ++k) EXPECT_EQ(column.at(k), values[static_cast<size_t>(k)]);
    EXPECT_THROW(column.at(4), InternalError);
  }
}

TEST(Column, SequencesAndZeros) {
  const Column zeros = zeroColumn(kNested, 3);
  EXPECT_EQ(zeros.length(), 3);
  EXPECT_EQ(zeros.elements[1].length(), 0);
  const Column same =
      sequenceColumn(kNested.elements(), {0, 0, 0, 0},
                     {zeroColumn(ScalarType::Int64, 0), zeroColumn(kNested.elements()[1], 0)});
  EXPECT_TRUE(zeros == same);
  EXPECT_FALSE(zeros == zeroColumn(kNested, 2));
  EXPECT_THROW(sequenceColumn({ScalarType::Int64}, {0, 2}, {zeroColumn(ScalarType::Int64, 1)}),
               InternalError);
  EXPECT_THROW(scalarColumn(ScalarType::Int64, std::vector<std::byte>(9)), InternalError);
}

TEST(Regularity, OfEachDescriptorButTheOutermost) {
  const Column rows = sequenceColumn({ScalarType::Int64}, {0, 2, 4}, {zeroColumn(ScalarType::Int64, 4)});
  const Column ragged = sequenceColumn({ScalarType::Int64}, {0, 1, 4}, {zeroColumn(ScalarType::Int64, 4)});
  const auto pair = [](const Column& rows) { return sequenceColumn({rows.type}, {0, 2}, {rows}); };
  EXPECT_EQ(regularityOf({zeroColumn(ScalarType::Int64, 1), pair(rows)}),
            (Regularity{false, false, true, false}));
  EXPECT_EQ(regularityOf({pair(ragged)}), (Regularity{false, false, false}));
  EXPECT_EQ(regularityOf({zeroColumn(kNested, 1)}), (Regularity{false, false, true, false}));
  EXPECT_EQ(variablesOf(kNested), 4u);
  EXPECT_EQ(variablesOf(ScalarType::Int64), 1u);
}

}  // namespace
}  // namespace kelpie
