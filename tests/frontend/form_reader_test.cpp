#include "frontend/form_reader.h"

#include <gtest/gtest.h>

namespace kelpie {
namespace {

/// How many lines of the text it takes to be complete; -1: all are not enough.
int linesNeeded(std::string_view text) {
  FormReader reader;
  for (int lines = 1; !text.empty(); ++lines) {
    const size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    if (reader.add(text.substr(0, length))) return lines;
    text.remove_prefix(length);
  }
  return -1;
}

TEST(FormReader, WaitsForTheEndOfTheForm) {
  EXPECT_EQ(linesNeeded("1;\n2;\n"), 1);
  EXPECT_EQ(linesNeeded("1\n+ 2\n$\n"), 3);
  EXPECT_EQ(linesNeeded("let x = 1;\n y = 2;\n in x;\n"), 3);
  EXPECT_EQ(linesNeeded("{a : a in\n [1]; b in [2];\n b in [3]};\n"), 3);
  EXPECT_EQ(linesNeeded("set print_length\n5;"), 2);
  EXPECT_EQ(linesNeeded("1; 2\n;"), 2);
  EXPECT_EQ(linesNeeded("1 +\n"), -1);
  EXPECT_EQ(linesNeeded("\n"), 1);
}

TEST(FormReader, KnowsStringsAndComments) {
  EXPECT_EQ(linesNeeded("\"a;\nb\\\";\nc\";\n"), 3);
  EXPECT_EQ(linesNeeded("1; % ;\n ; \n %\n"), 3);
  EXPECT_EQ(linesNeeded("% a % 1; % b\n\n % \"x\n\" ;"), 4);
  EXPECT_EQ(linesNeeded("`\n;\n"), 2);
}

TEST(FormReader, DoesNotWaitForWhatCannotBeMended) {
  EXPECT_EQ(linesNeeded("(1; 2\n"), 1);
  EXPECT_EQ(linesNeeded("1 ]\n"), 1);
}

TEST(FormReader, BeginsAnewAfterTake) {
  FormReader reader;
  EXPECT_TRUE(reader.empty());
  EXPECT_FALSE(reader.add("(\n"));
  EXPECT_EQ(reader.take(), "(\n");
  EXPECT_TRUE(reader.empty());
  EXPECT_TRUE(reader.add("1;"));
}

}  // namespace
}  // namespace kelpie
