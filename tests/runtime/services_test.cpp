#include "runtime/services.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "runtime/object_text.h"
#include "runtime/random_stream.h"
#include "tests/runtime/no_threads.h"

namespace kelpie {
namespace {

using testing::ElementsAre, testing::HasSubstr;

const CoreType kString = CoreType::sequence({ScalarType::Char});
const Row kStatus = {ScalarType::Bool, kString};

Column text(std::string_view s) {
  std::vector<std::byte> bytes(s.size());
  if (!s.empty()) std::memcpy(bytes.data(), s.data(), s.size());
  return sequenceColumn({ScalarType::Char}, {0, static_cast<int64_t>(s.size())},
                        {scalarColumn(ScalarType::Char, std::move(bytes))});
}
std::string textOf(const Column& c) {
  return {reinterpret_cast<const char*>(c.elements[0].bytes.data()), c.elements[0].bytes.size()};
}
Column integer(int64_t v) {
  return scalarColumn(ScalarType::Int64, std::vector{Scalar::ofInt(ScalarType::Int64, v)});
}

class ServicesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "kelpie-services-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string content(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  Columns call(std::string_view name, Columns arguments, Row types) {
    auto result = services_->call(name, arguments, types, Span{1, 2, 3});
    if (auto* error = std::get_if<RuntimeError>(&result)) {
      error_ = error->message;
      return {};
    }
    return std::get<Columns>(result);
  }

  std::filesystem::path folder_;
  std::string output_, messages_, error_;
  std::unique_ptr<Services> services_ = makeServices(
      {[this](std::string_view s) { output_ += s; }, [this](std::string_view s) { messages_ += s; }});
};

TEST_F(ServicesTest, ObjectFilesHaveTheReferenceLayout) {
  const Column inner =
      sequenceColumn({ScalarType::Int64}, {0, 2, 2, 3},
                     {scalarColumn(ScalarType::Int64, std::vector{Scalar::ofInt(ScalarType::Int64, 1),
                                                                  Scalar::ofInt(ScalarType::Int64, 2),
                                                                  Scalar::ofInt(ScalarType::Int64, -3)})});
  const Column lists = sequenceColumn({inner.type}, {0, 3}, {inner});
  const Column half =
      scalarColumn(ScalarType::Float64, std::vector{Scalar::ofFloat(ScalarType::Float64, 1.5)});
  const Columns row = {lists, half, text("a\nb")};
  EXPECT_EQ(objectText(row), "[ 3 ]\n[ 2 0 1 ]\n( 1 2 -3 )\n( 1.50000000000000e+00 )\n[ 3 ]\n( 3 )\na\nb");

  Columns arguments = row;
  arguments.push_back(text(path("object")));
  EXPECT_TRUE(call("write_object_to_file", arguments, {ScalarType::Bool})[0].at(0).isTrue());
  const Columns read = call("read_object_from_file", arguments, {lists.type, half.type, kString});
  ASSERT_EQ(read.size(), 3u);
  for (size_t c = 0; c < 3; ++c) EXPECT_TRUE(read[c] == row[c]) << c;
}

/// Targets make NaNs of either sign.
TEST_F(ServicesTest, NansAreWrittenWithoutASign) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64}) {
    std::vector<Scalar> values;
    for (const double x : {nan, std::copysign(nan, -1.0), -1.0}) values.push_back(Scalar::ofFloat(type, x));
    EXPECT_EQ(objectText({scalarColumn(type, values)}), "( nan nan -1.00000000000000e+00 )\n");
  }
}

TEST_F(ServicesTest, UnreadableObjectsGiveTheIdentityAndAMessage) {
  call("write_string_to_file", {text("[ 2 ]\n( 1 x )\n"), text(path("bad"))}, {ScalarType::Bool});
  const CoreType ints = CoreType::sequence({ScalarType::Int64});
  const Columns read = call("read_object_from_file", {zeroColumn(ints, 1), text(path("bad"))}, {ints});
  EXPECT_TRUE(read[0] == zeroColumn(ints, 1));
  EXPECT_THAT(messages_, HasSubstr("expected an integer, found 'x'"));

  // Lengths whose sum is 2 modulo 2^64.
  const std::string lengths = "[ 3 ]\n[ 9223372036854775807 9223372036854775807 4 ]\n( 1 2 )\n";
  call("write_string_to_file", {text(lengths), text(path("lengths"))}, {ScalarType::Bool});
  const CoreType rows = CoreType::sequence({ints});
  const Columns nested = call("read_object_from_file", {zeroColumn(rows, 1), text(path("lengths"))}, {rows});
  EXPECT_TRUE(nested[0] == zeroColumn(rows, 1));
  EXPECT_THAT(messages_, HasSubstr("expected a length, found '9223372036854775807'"));
}

TEST_F(ServicesTest, NumberSequences) {
  const CoreType floats = CoreType::sequence({ScalarType::Float64});
  call("write_string_to_file", {text(" ( 1 2.5\n3e2 -4 )"), text(path("numbers"))}, {ScalarType::Bool});
  const Columns read = call("read_float_seq_from_file", {text(path("numbers"))}, {floats});
  ASSERT_EQ(read[0].elements[0].length(), 4);
  EXPECT_EQ(read[0].elements[0].at(2).f, 300.0);
  EXPECT_TRUE(
      call("read_int_seq_from_file", {text(path("numbers"))}, {CoreType::sequence({ScalarType::Int64})})
          .empty());
  EXPECT_THAT(error_, HasSubstr("expected an integer, found '2.5'"));
  EXPECT_TRUE(call("read_int_seq_from_file", {text(path("none"))}, {CoreType::sequence({ScalarType::Int64})})
                  .empty());
  EXPECT_THAT(error_, HasSubstr("No such file"));
  EXPECT_TRUE(
      call("read_int_seq_from_file", {text(path("."))}, {CoreType::sequence({ScalarType::Int64})}).empty());
  EXPECT_THAT(error_, HasSubstr("Is a directory"));
}

TEST_F(ServicesTest, AnInt32OutOfRangeIsNotReadAsSomethingElse) {
  call("write_string_to_file", {text("( 3000000000 )"), text(path("big"))}, {ScalarType::Bool});
  EXPECT_TRUE(
      call("read_int_seq_from_file", {text(path("big"))}, {CoreType::sequence({ScalarType::Int32})}).empty());
  EXPECT_THAT(error_, HasSubstr("in range"));
}

/// Just beyond the middle between 1 and the next float32; as a double it is the middle.
TEST_F(ServicesTest, AFloat32IsRoundedOnce) {
  const std::string number = "1.000000059604644775390625000000000001";
  call("write_string_to_file", {text("( " + number + " )"), text(path("number"))}, {ScalarType::Bool});
  const Columns read =
      call("read_float_seq_from_file", {text(path("number"))}, {CoreType::sequence({ScalarType::Float32})});
  EXPECT_EQ(read[0].elements[0].at(0).f, 1 + 0x1p-23);
}

TEST_F(ServicesTest, MatricesWhoseSizesDoNotFitAnIntAreAnError) {
  const auto read = [&](const std::string& sizes, ScalarType intType) {
    const std::string entries = "1 1 1.5\n2 2 2.5\n";
    call("write_string_to_file",
         {text("%%MatrixMarket matrix coordinate real general\n" + sizes + " 2\n" + entries),
          text(path("matrix"))},
         {ScalarType::Bool});
    const CoreType row = CoreType::sequence({intType, ScalarType::Float64});
    return call("read_matrix_market", {text(path("matrix"))}, {CoreType::sequence({row}), intType});
  };
  EXPECT_EQ(read("2 2147483647", ScalarType::Int32)[1].at(0).i, 2147483647);
  EXPECT_EQ(read("2 3000000000", ScalarType::Int64)[1].at(0).i, 3000000000);
  EXPECT_TRUE(read("2 2147483648", ScalarType::Int32).empty());
  EXPECT_THAT(error_, HasSubstr("matrix: 2147483648 columns do not fit an int"));
  EXPECT_TRUE(read("3000000000 2", ScalarType::Int32).empty());
  EXPECT_THAT(error_, HasSubstr("3000000000 rows do not fit an int"));
}

TEST_F(ServicesTest, StreamsAreWrittenWholeOrNotAtAll) {
  for (const bool succeeded : {false, true}) {
    services_->beginForm();
    const Columns opened =
        call("open_out_file", {text(path("out"))}, {ScalarType::Int64, ScalarType::Bool, kString});
    call("write_string", {text("hello"), opened[0]}, kStatus);
    services_->endForm(succeeded);
    EXPECT_EQ(files(), succeeded ? 1u : 0u);
  }
  EXPECT_EQ(content("out"), "hello");
}

TEST_F(ServicesTest, FilesKeepTheirRights) {
  const auto write = [&] {
    call("write_string_to_file", {text("x"), text(path("file"))}, {ScalarType::Bool});
  };
  struct stat info {};
  const mode_t mask = ::umask(022);
  write();
  ASSERT_EQ(::stat(path("file").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, mode_t{0644});
  for (const mode_t mode : {0600, 0640, 0666, 0755}) {
    ASSERT_EQ(::chmod(path("file").c_str(), mode), 0);
    write();
    ASSERT_EQ(::stat(path("file").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, mode);
  }
  ::umask(mask);
  if (::geteuid() != 0) return;  // nobody else can give files away
  ASSERT_EQ(::chown(path("file").c_str(), 12345, 23456), 0);
  write();
  ASSERT_EQ(::stat(path("file").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, uid_t{12345});
  EXPECT_EQ(info.st_gid, gid_t{23456});
}

TEST_F(ServicesTest, OfTwoStreamsForOneFileTheLastToBeClosedStays) {
  const Row types = {ScalarType::Int64, ScalarType::Bool, kString};
  const Column first = call("open_out_file", {text(path("out"))}, types)[0];
  const Column second = call("open_out_file", {text(path("out"))}, types)[0];
  call("write_string", {text("the first"), first}, kStatus);
  call("write_string", {text("2nd"), second}, kStatus);
  EXPECT_TRUE(call("close_file", {second}, kStatus)[0].at(0).isTrue());
  EXPECT_EQ(content("out"), "2nd");
  call("write_string", {text(" is longer"), first}, kStatus);
  EXPECT_TRUE(call("close_file", {first}, kStatus)[0].at(0).isTrue());
  EXPECT_EQ(content("out"), "the first is longer");
  EXPECT_EQ(files(), 1u);
}

TEST_F(ServicesTest, AppendingIsUndoneWhenTheFormFails) {
  call("write_string_to_file", {text("one"), text(path("log"))}, {ScalarType::Bool});
  services_->beginForm();
  const Columns opened =
      call("open_append_file", {text(path("log"))}, {ScalarType::Int64, ScalarType::Bool, kString});
  call("write_string", {text(" two"), opened[0]}, kStatus);
  services_->endForm(false);
  EXPECT_EQ(content("log"), "one");
  call("append_string_to_file", {text(" three"), text(path("log"))}, {ScalarType::Bool});
  EXPECT_EQ(content("log"), "one three");
}

TEST_F(ServicesTest, ReadStringEndsAtDelimiterLimitAndEndOfFile) {
  call("write_string_to_file", {text("ab,cdef"), text(path("in"))}, {ScalarType::Bool});
  const Column stream =
      call("open_in_file", {text(path("in"))}, {ScalarType::Int64, ScalarType::Bool, kString})[0];
  const Row types = {kString, ScalarType::Int64, ScalarType::Bool, kString};
  std::vector<std::string> texts;
  std::vector<int64_t> endings;
  for (const int64_t limit : {-1, 2, -1}) {
    const Columns part = call("read_string", {text(",;"), integer(limit), stream}, types);
    texts.push_back(textOf(part[0]));
    endings.push_back(part[1].at(0).i);
  }
  EXPECT_THAT(texts, ElementsAre("ab", "cd", "ef"));
  EXPECT_THAT(endings, ElementsAre(',', -2, -1));
  const Columns atEnd = call("read_char", {stream}, {ScalarType::Char, ScalarType::Bool, kString});
  EXPECT_FALSE(atEnd[1].at(0).isTrue());
  EXPECT_TRUE(call("close_file", {stream}, kStatus)[0].at(0).isTrue());
  EXPECT_FALSE(call("close_file", {stream}, kStatus)[0].at(0).isTrue());
}

TEST_F(ServicesTest, FailedOperationsReportWhy) {
  const Columns opened =
      call("open_in_file", {text(path("none"))}, {ScalarType::Int64, ScalarType::Bool, kString});
  EXPECT_EQ(opened[0].at(0).i, 0);
  EXPECT_EQ(textOf(opened[2]), "No such file or directory");
  const Columns folder =
      call("open_in_file", {text(path(""))}, {ScalarType::Int64, ScalarType::Bool, kString});
  EXPECT_EQ(folder[0].at(0).i, 0);
  EXPECT_EQ(textOf(folder[2]), "Is a directory");
  EXPECT_FALSE(call("write_string_to_file", {text("x"), text(path("no/such/place"))}, {ScalarType::Bool})[0]
                   .at(0)
                   .isTrue());
  EXPECT_THAT(messages_, HasSubstr("No such file"));
}

TEST_F(ServicesTest, OutputAndErrors) {
  call("print", {text("hi")}, {ScalarType::Bool});
  call("write_string", {text(" there"), integer(2)}, kStatus);
  EXPECT_EQ(output_, "hi there");
  call("raise", {text("too bad")}, {ScalarType::Bool});
  EXPECT_EQ(error_, "too bad");
}

TEST_F(ServicesTest, ProcessesAreFedAndRead) {
  const std::string large(300000, 'z');  // more than a pipe holds
  EXPECT_EQ(textOf(call("shell_command", {text("cat"), text(large)}, {kString})[0]), large);
  EXPECT_EQ(textOf(call("shell_command", {text("echo  one two"), text("")}, {kString})[0]), "one two\n");
  EXPECT_EQ(textOf(call("shell_command", {text("true"), text(large)}, {kString})[0]), "");
  EXPECT_TRUE(call("shell_command", {text("kelpie-has-no-such-program"), text("")}, {kString}).empty());
  EXPECT_THAT(error_, HasSubstr("No such file"));
}

TEST_F(ServicesTest, SpawnedProcessesTalkThroughPipes) {
  const Row types = {ScalarType::Int64, ScalarType::Int64, ScalarType::Int64, ScalarType::Bool, kString};
  const Column null = integer(0);
  const Columns started = call("spawn", {text("tr a-z A-Z"), null, null, null}, types);
  ASSERT_TRUE(started[3].at(0).isTrue());
  call("write_string", {text("shout, please\n"), started[0]}, kStatus);
  EXPECT_TRUE(call("close_file", {started[0]}, kStatus)[0].at(0).isTrue());
  const Row lineTypes = {kString, ScalarType::Int64, ScalarType::Bool, kString};
  EXPECT_EQ(textOf(call("read_string", {text("\n"), integer(-1), started[1]}, lineTypes)[0]),
            "SHOUT, PLEASE");
  const Columns failed = call("spawn", {text("kelpie-has-no-such-program"), null, null, null}, types);
  EXPECT_FALSE(failed[3].at(0).isTrue());
  EXPECT_EQ(failed[0].at(0).i, 0);
}

TEST_F(ServicesTest, TimersRunForwards) {
  const int64_t first = call("start_timer", {integer(0)}, {ScalarType::Int64})[0].at(0).i;
  const int64_t second = call("start_timer", {integer(0)}, {ScalarType::Int64})[0].at(0).i;
  EXPECT_NE(first, second);
  const double inner = call("stop_timer", {integer(second)}, {ScalarType::Float64})[0].at(0).f;
  const double outer = call("stop_timer", {integer(first)}, {ScalarType::Float64})[0].at(0).f;
  EXPECT_GE(inner, 0.0);
  EXPECT_GE(outer, inner);
  EXPECT_TRUE(call("stop_timer", {integer(9)}, {ScalarType::Float64}).empty());
}

TEST(RandomStream, IsTheLibrarysOwn) {
  for (const unsigned seed : {1u, 2u, 12345u, 4000000000u}) {
    RandomStream stream;
    stream.seed(static_cast<int32_t>(seed));
    std::vector<int64_t> draws(1000);
    stream.draw(draws);
    ::srandom(seed);
    for (const int64_t draw : draws) ASSERT_EQ(draw, ::random()) << seed;
  }
}

TEST(RandomStream, BlocksContinueEachOther) {
  for (const RandomGenerator generator : {RandomGenerator::Additive, RandomGenerator::Philox}) {
    RandomStream whole(generator), parts(generator), skipped(generator);
    std::vector<int64_t> all(1500000), some(all.size());
    whole.draw(all);  // in parallel where there are several processors
    for (size_t at = 0, n = 1; at < some.size(); at += n, n = std::min(2 * n + 1, some.size() - at)) {
      parts.draw(std::span(some).subspan(at, n));
    }
    EXPECT_EQ(all, some);
    skipped.skip(1234567);
    int64_t draw = 0;
    skipped.draw({&draw, 1});
    EXPECT_EQ(draw, all[1234567]);
  }
}

TEST(RandomStream, WithoutThreadsDrawsAreTheSame) {
  RandomStream helped, alone;
  std::vector<int64_t> expected(1500000), draws(expected.size());
  helped.draw(expected);
  {
    const tests::NoThreads none;
    alone.draw(draws);
  }
  EXPECT_EQ(draws, expected);
  helped.draw({expected.data(), 100});
  alone.draw({draws.data(), 100});
  EXPECT_EQ(draws, expected);
}

TEST(RandomStream, PhiloxMatchesItsPublishedVector) {
  RandomStream stream(RandomGenerator::Philox);  // key and counter zero
  stream.seed(0);
  std::vector<int64_t> draws(4);
  stream.draw(draws);
  EXPECT_THAT(draws, ElementsAre(0x6627e8d5 >> 1, 0xe169c58d >> 1, 0xbc57ac4c >> 1, 0x9b00dbd8 >> 1));
}

}  // namespace
}  // namespace kelpie
