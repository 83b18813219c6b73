#include <gtest/gtest.h>

#include "parsing.h"

namespace kelpie {
namespace {

/// Printed text parses to a tree that prints the same.
TEST(AstPrint, PrintedTextReadsBackTheSame) {
  for (const char* text : {
           "function g(a, (b,c), g := 3)  : (int,(a->b),[span(a)]) -> (x,y) :: (a in any) \"d\\\"oc\" = a;",
           "let a, b = 1, 2; polar p = q; in if a then b else {* (x,y) => x : x; y in z | t};",
           "datatype tree (int, [a]) :: (a in any);",
           "f1(1, (2, 3), b := [`a, ` ], [] [char])[#x - 1] -> [0:n:2];",
           "time(-@x ++ \"\\\\\" || 3) <- time 2;",
           "set print_length 5; load(a, print := t); x, y |= 3;",
       }) {
    const Parsed once = parseText(text);
    EXPECT_EQ(once.errors, "") << text;
    EXPECT_EQ(parseText(once.forms).forms, once.forms) << text;
    EXPECT_EQ(parseText(once.forms).errors, "") << text;
  }
}

}  // namespace
}  // namespace kelpie
