// Slips that are well formed are told as what they are, and once.
#include <gmock/gmock.h>

#include "tests/frontend/session_fixture.h"

namespace kelpie {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

class SlipsTest : public SessionTest {
 protected:
  /// The messages of the forms of a program, without those that follow from others.
  std::vector<std::string> messages(const std::string& text) {
    std::vector<std::string> all;
    for (const FormResult& result : process(text))
      for (const Diagnostic& d : result.diagnostics)
        if (!d.followsAnother) all.push_back(d.message);
    return all;
  }
};

TEST_F(SlipsTest, AFunctionWithoutTheWordIsToldOnceAtItsHead) {
  for (const char* definition : {"fact(n) = if n == 0 then 1 else n * fact(n - 1);",
                                 "fact n = if n == 0 then 1 else n * fact(n - 1);"}) {
    const Diagnostic diagnostic = mistake(definition);
    EXPECT_EQ(diagnostic.id, "K0203");
    EXPECT_EQ(diagnostic.span.begin, 0u);
    EXPECT_EQ(diagnostic.hint, "a function is defined by: function fact(n) = ...");
    const auto results = process(std::string(definition) + " fact(5);");
    EXPECT_THAT(results.at(1).diagnostics.at(0).message, HasSubstr("its definition has a mistake"));
  }
  EXPECT_EQ(mistake("d(x, y) = x * y;").hint, "a function is defined by: function d(x, y) = ...");
  EXPECT_THAT(mistake("let h(x) = x + 1 in h(2);").hint, HasSubstr("at top level, by: function h(x) = ..."));
  // These are patterns of records, or take the place of commas.
  EXPECT_EQ(last("datatype point(int, int); point(a, b) = point(1, 2); a + b;"), "it = 3 : int");
  EXPECT_THAT(mistake("w z = 3;").hint, HasSubstr("separated by commas"));
  EXPECT_THAT(mistake("int x3 = 3;").hint, HasSubstr("NAME = VALUE"));
}

TEST_F(SlipsTest, ParametersWithoutCommasOrWithTypesInFront) {
  EXPECT_THAT(mistake("function add(a b) = a + b;").hint, HasSubstr("a, b"));
  EXPECT_THAT(mistake("function add(int a, int b) = a + b;").hint, HasSubstr("(A, B) -> C"));
  EXPECT_THAT(mistake("{x + 1 : for x in [1, 2]};").hint, HasSubstr("NAME in SEQUENCE"));
}

TEST_F(SlipsTest, ArrowsOfFunctions) {
  for (const char* text : {"map(x -> x + 1, [1]);", "g = (x) -> x * 2;", "g = (a, b) -> a + b;",
                           "map(x -> 2 * x, [1]);", "map(fn x => x + 1, [1]);"})
    EXPECT_THAT(mistake(text).hint, HasSubstr("a function without a name is X => RESULT")) << text;
  EXPECT_THAT(mistake("values = [1]; valus -> [0];").hint, HasSubstr("`values`"));
  EXPECT_EQ(last("v = [1, 2]; v -> [1, 0];"), "it = [2, 1] : [int]");
}

TEST_F(SlipsTest, ConditionsBehindSequences) {
  EXPECT_EQ(mistake("{x + 1 : x in [1, 2] where x > 1};").message, "`where` is not defined");
  for (const char* text : {"{x + 1 : x in [1, 2] where x > 1};", "{x + 1 : x in [1, 2], x > 1};"})
    EXPECT_THAT(mistake(text).hint, HasSubstr("behind a bar")) << text;
  EXPECT_EQ(messages("{x + y : x in [1, 2], x > 1};").size(), 2u) << "the body is checked, too";
  EXPECT_THAT(mistake("x = 5; if x => 3 then 1 else 2;").hint, HasSubstr("written >="));
  EXPECT_THAT(mistake("{x in [1] | x => 3};").hint, HasSubstr("written >="));
}

TEST_F(SlipsTest, CommentsOfOtherLanguages) {
  for (const char* text : {"# comment\n1;", "-- comment\n1;", "# some comment;"})
    EXPECT_THAT(mistake(text).hint, HasSubstr("stands between two %")) << text;
  EXPECT_THAT(mistake("values = [1]; # valus;").hint, HasSubstr("`values`"));
  EXPECT_THAT(mistake("values = [1]; k = # valus\n(1);").hint, Not(HasSubstr("%")));
}

TEST_F(SlipsTest, CommentsThatGoOverTheirLine) {
  const auto results = process("x = 3; % comment\ny = 4; % another comment\nz = 5;\nx + y;");
  EXPECT_THAT(results.at(1).diagnostics.at(0).notes,
              Contains(Field(&Diagnostic::Note::message, HasSubstr("goes over the end of its line"))));
  EXPECT_FALSE(results.at(2).diagnostics.at(0).shown) << "y is in a comment";
  EXPECT_THAT(mistake("x = 3; % comment\ny = 4; % what\nx;").notes,
              Contains(Field(&Diagnostic::Note::message, HasSubstr("goes over the end of its line"))));
}

TEST_F(SlipsTest, CallsOfWhatIsNoFunction) {
  EXPECT_EQ(mistake("a = [1, 2]; a(1);").hint, "an element of the sequence is a[INDEX]");
  EXPECT_THAT(mistake("a = [1, 2]; [a 1];").hint, HasSubstr("between elements goes a comma"));
  EXPECT_EQ(mistake("xs = (1, 2, 3); sum(xs);").hint,
            "`sum` takes 1 argument, a tuple of 3 is given; a sequence is written [a, b, c]");
  const Diagnostic hidden = mistake("sum = 3; sum([1]);");
  EXPECT_THAT(hidden.hint, HasSubstr("has bound `sum`"));
  EXPECT_THAT(hidden.notes, Contains(Field(&Diagnostic::Note::message, "`sum` is bound here")));
  EXPECT_THAT(mistake("xs = [1, 2]\n{x + 1 : x in xs};").hint, HasSubstr("behind a form goes a `;`"));
}

TEST_F(SlipsTest, OperandsThatAreTuplesAreShownApart) {
  const Diagnostic diagnostic = mistake("(1, 2) == (1, 2);");
  EXPECT_THAT(diagnostic.message, HasSubstr("its operands have types `int, int` and `int, int`"));
  EXPECT_EQ(diagnostic.notes.size(), 2u);
}

}  // namespace
}  // namespace kelpie
