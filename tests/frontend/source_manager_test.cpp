#include "frontend/source_manager.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace kelpie {
namespace {

TEST(SourceManager, LocatesLinesAndColumnsFromOne) {
  SourceManager sources;
  const uint32_t file = sources.add("a.nesl", "one\ntwo\n\nfour");
  EXPECT_EQ(sources.locate(file, 0).line, 1u);
  EXPECT_EQ(sources.locate(file, 0).column, 1u);
  EXPECT_EQ(sources.locate(file, 3).column, 4u) << "the line feed belongs to its line";
  EXPECT_EQ(sources.locate(file, 4).line, 2u);
  EXPECT_EQ(sources.locate(file, 8).line, 3u);
  EXPECT_EQ(sources.locate(file, 13).line, 4u) << "the end of the text";
  EXPECT_EQ(sources.locate(file, 13).column, 5u);
  EXPECT_EQ(sources.describe({file, 5, 6}), "a.nesl:2:2");
  EXPECT_EQ(sources.describe({}), "");
}

TEST(SourceManager, ColumnsCountCharacters) {
  SourceManager sources;
  const uint32_t file = sources.add("a.nesl", "\"h\xc3\xa9\" + \xff x");
  EXPECT_EQ(sources.locate(file, 5).column, 5u) << "a UTF-8 sequence is one character";
  EXPECT_EQ(sources.locate(file, 9).column, 9u) << "a stray byte is one character";
}

TEST(SourceManager, RendersSourceLineAndUnderline) {
  SourceManager sources;
  const uint32_t file = sources.add("a.nesl", "x = 1;\ny = foo + 2;\n");
  Diagnostic diagnostic{Severity::Error, "K0201", {file, 11, 14}, "`foo` is not defined", "define it", {}};
  diagnostic.notes.push_back({{file, 0, 1}, "see here"});
  EXPECT_EQ(sources.render(diagnostic),
            "a.nesl:2:5: error: `foo` is not defined [K0201]\n"
            " 2 | y = foo + 2;\n"
            "   |     ^~~\n"
            "a.nesl:1:1: note: see here\n"
            " 1 | x = 1;\n"
            "   | ^\n"
            "hint: define it\n");
}

TEST(SourceManager, ColourOnlyWhenAsked) {
  SourceManager sources;
  const uint32_t file = sources.add("a.nesl", "x\n");
  const Diagnostic diagnostic{Severity::Warning, "", {file, 0, 1}, "m", "", {}};
  EXPECT_EQ(sources.render(diagnostic, false).find('\033'), std::string::npos);
  EXPECT_NE(sources.render(diagnostic, true).find("\033["), std::string::npos);
}

TEST(SourceManager, LongLinesAreShownInPart) {
  SourceManager sources;
  const uint32_t file = sources.add("a.nesl", std::string(100'000, 'a') + "!" + std::string(100'000, 'b'));
  const std::string text = sources.render({Severity::Error, "", {file, 100'000, 100'001}, "m", "", {}});
  EXPECT_LT(text.size(), 500u);
  EXPECT_NE(text.find("a!b"), std::string::npos);
  // the caret stands under the sign
  const size_t lineBegin = text.find(" 1 | "), caretBegin = text.find("   | ");
  EXPECT_EQ(text.find('!') - lineBegin, text.find('^') - caretBegin);
}

TEST(SourceManager, ASpanOverSeveralLinesIsUnderlinedToTheEndOfItsFirst) {
  SourceManager sources;
  const uint32_t file = sources.add("a.nesl", "ab(\ncd)\n");
  const std::string text = sources.render({Severity::Error, "", {file, 1, 7}, "m", "", {}});
  EXPECT_NE(text.find("   |  ^~\n"), std::string::npos) << text;
}

TEST(SourceManager, SkipsAByteOrderMark) {
  const std::string path = ::testing::TempDir() + "mark.nesl";
  std::ofstream(path) << "\xef\xbb\xbf"
                      << "1;";
  SourceManager sources;
  std::string problem;
  const auto file = sources.load(path, problem);
  ASSERT_TRUE(file) << problem;
  EXPECT_EQ(sources.text({*file, 0, 2}), "1;");
  EXPECT_EQ(sources.locate(*file, 1).column, 2u);
}

TEST(SourceManager, SaysWhyAFileCannotBeRead) {
  SourceManager sources;
  std::string problem;
  EXPECT_FALSE(sources.load("/nonexistent/file.nesl", problem));
  EXPECT_EQ(problem, "No such file or directory");
  EXPECT_FALSE(sources.load("/", problem));
  EXPECT_EQ(problem, "Is a directory");
}

}  // namespace
}  // namespace kelpie
