// Files and streams of the library, on a folder of their own.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "session_fixture.h"

namespace kelpie {
namespace {

class StreamsTest : public SessionTest {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "kelpie-streams-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// The results of the forms, in which FILE stands for a file name in the folder.
  std::vector<std::string> runWithFile(std::string text) {
    const std::string mark = "FILE", name = '"' + (folder_ / "file").string() + '"';
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
      text.replace(at, mark.size(), name);
    }
    return run(text);
  }

  std::filesystem::path folder_;
};

using Lines = std::vector<std::string>;

TEST_F(StreamsTest, ObjectsComeBack) {
  EXPECT_EQ(runWithFile("write_object_to_file([(1,\"ab\",[1.5]),(2,\"\",[] float)], FILE);"
                        "read_object_from_file([(0,\"\",[] float)], FILE);"),
            (Lines{"it = T : bool", "it = [(1, \"ab\", [1.5]), (2, \"\", [])] : [(int, [char], [float])]"}));
}

TEST_F(StreamsTest, LinesWordsAndCharactersAreReadInTurn) {
  EXPECT_EQ(runWithFile("ok = write_string_to_file(\"one\" ++ [newline] ++ \"two words\", FILE);"
                        "let s = open_check(open_in_file(FILE)); ((line,end),a) = read_line(s);"
                        "    ((word,(c,ended)),b) = read_word(s); (x,d) = read_char(s);"
                        "    ((rest,n),e) = read_string(\"\",3,s); closed = close_check(close_file(s))"
                        " in (line,end,word,c,ended,x,rest,n,closed);")
                .back(),
            "it = (\"one\", F, \"two\", ` , F, `w, \"ord\", -2, T) : [char], bool, [char], char, bool, char, "
            "[char], int, bool");
}

TEST_F(StreamsTest, ParallelWritesAppearInElementOrder) {
  EXPECT_EQ(
      runWithFile(
          "let s = open_check(open_out_file(FILE)); a = {write_string(@x ++ \" \", s) : x in [1,2,3]};"
          "    b = write_char(`!, s) in close_file(s);"
          "read_string_from_file(FILE); grep(\"2 3\", FILE);"),
      (Lines{"it = (T, \"\") : bool, [char]", "it = \"1 2 3 !\" : [char]", "it = [\"1 2 3 !\"] : [[char]]"}));
}

TEST_F(StreamsTest, AFormThatFailsLeavesNoFile) {
  const Lines lines =
      runWithFile("let s = open_check(open_out_file(FILE)); a = write_string(\"half\", s) in 1/0;");
  EXPECT_EQ(lines, Lines{"division by zero"});
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(StreamsTest, FailuresAreValues) {
  EXPECT_EQ(
      runWithFile("let (s, status) = open_in_file(FILE) in (eql(s, nullstr), status);"
                  "let (c, status) = read_char(nullstr) in status;"
                  "close_check(close_file(nullstr));"),
      (Lines{"it = (T, F, \"No such file or directory\") : bool, bool, [char]",
             "it = (F, \"the stream is not open in this direction\") : bool, [char]", "it = F : bool"}));
}

}  // namespace
}  // namespace kelpie
