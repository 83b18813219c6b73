#include "frontend/nesl_type.h"

#include <gtest/gtest.h>

namespace kelpie {
namespace {

class NeslType : public testing::Test {
 protected:
  std::string show(const Type* type) { return printType(type, types.widths()); }
  TypeStore types;
};

TEST_F(NeslType, PrintsPairsFlatAndParenthesisedOnlyWhereNeeded) {
  Type* i = types.intType();
  Type* f = types.floatType();
  EXPECT_EQ(show(types.pair(i, types.pair(f, i))), "int, float, int");
  EXPECT_EQ(show(types.pair(types.pair(i, f), i)), "(int, float), int");
  EXPECT_EQ(show(types.sequence(types.pair(i, f))), "[(int, float)]");
  Type* function = types.function(types.pair(i, f), types.pair(f, i), types.variable());
  EXPECT_EQ(show(function), "(int, float) -> (float, int) :: (a in any)");
}

TEST_F(NeslType, NamesVariablesInTheOrderTheyAreRead) {
  Type* x = types.variable(kNumber);
  Type* y = types.variable();
  EXPECT_EQ(show(types.pair(y, types.pair(x, y))), "a, b, a :: (a in any; b in number)");
}

TEST_F(NeslType, SixthVariableIsNumbered) {
  Type* tuple = types.variable();
  for (int i = 0; i < 6; ++i) tuple = types.pair(types.variable(), tuple);
  EXPECT_EQ(show(tuple).substr(0, 24), "a, b, c, d, e, a0, a1 ::");
}

TEST_F(NeslType, UnifyKeepsTheSmallerClass) {
  Type* number = types.variable(kNumber);
  Type* ordinal = types.variable(kOrdinal);
  ASSERT_FALSE(types.unify(ordinal, number));
  EXPECT_EQ(resolve(ordinal)->typeClass, kNumber);
}

TEST_F(NeslType, NumberAndLogicalMeetInInt) {
  Type* number = types.variable(kNumber);
  Type* logical = types.variable(kLogical);
  ASSERT_FALSE(types.unify(number, logical));
  EXPECT_EQ(show(number), "int");
  EXPECT_EQ(show(logical), "int");
}

TEST_F(NeslType, StructuredTypesBelongToAnyOnly) {
  Type* scalar = types.variable(kScalar);
  auto conflict = types.unify(scalar, types.sequence(types.intType()));
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->kind, Conflict::Class);
}

TEST_F(NeslType, FailedUnificationChangesNothing) {
  Type* a = types.variable();
  Type* left = types.pair(a, types.intType());
  Type* right = types.pair(types.boolType(), types.floatType());
  auto conflict = types.unify(left, right);
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->kind, Conflict::Shape);
  EXPECT_EQ(show(left), "a, int :: (a in any)");
}

TEST_F(NeslType, InfiniteTypeIsRefused) {
  Type* a = types.variable();
  auto conflict = types.unify(a, types.sequence(a));
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->kind, Conflict::Infinite);
}

TEST_F(NeslType, InstancesAreIndependent) {
  Type* a = types.variable(kNumber);
  Scheme scheme = types.generalise(types.pair(a, a));
  Type* first = types.instantiate(scheme, "", {}, false);
  ASSERT_FALSE(types.unify(first, types.pair(types.intType(), types.variable())));
  EXPECT_EQ(show(first), "int, int");
  EXPECT_EQ(show(types.instantiate(scheme, "", {}, false)), "a, a :: (a in number)");
}

TEST_F(NeslType, SchemesAreComparedUpToNamesAndWithClasses) {
  auto scheme = [&](TypeClass typeClass) {
    Type* a = types.variable(typeClass);
    return types.generalise(types.pair(a, types.pair(a, types.variable())));
  };
  EXPECT_TRUE(sameScheme(scheme(kNumber), scheme(kNumber)));
  EXPECT_FALSE(sameScheme(scheme(kNumber), scheme(kAny)));
  Type* a = types.variable();
  EXPECT_FALSE(sameScheme(types.generalise(types.pair(a, a)),
                          types.generalise(types.pair(types.variable(), types.variable()))));
}

}  // namespace
}  // namespace kelpie
