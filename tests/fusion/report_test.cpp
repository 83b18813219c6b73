#include "fusion/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fusion/report_dot.h"
#include "fusion/report_html.h"
#include "fusion/source_excerpt.h"
#include "tests/fusion/read_program.h"
#include "tests/ir/norm2.h"

namespace kelpie::fusion {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

FusionReport reportOf(Strategy strategy) {
  lcu::Norm2 norm2;
  FusionOptions options;
  options.strategy = strategy;
  options.compare = options.explain = true;
  int line = 3;
  for (lcu::Stmt& stmt : norm2.program.functions[0].body.stmts) {
    stmt.span = {1, static_cast<uint32_t>(line), static_cast<uint32_t>(line + 1)};
    ++line;
  }
  return fuse(norm2.program, options);
}

SourceLine lookup(Span span) {
  return {"norm2.nesl:" + std::to_string(span.begin) + ":1", static_cast<int>(span.begin),
          "  line of the source", 0};
}

TEST(Report, TextShowsClustersStrategiesAndReasons) {
  const std::string text = reportText(reportOf(Strategy::Ilp), lookup);
  EXPECT_THAT(text, HasSubstr("region of norm2: 5 kernels before, 2 after fusion (ilp, proven optimal"));
  EXPECT_THAT(text, HasSubstr("FILTER-REDUCE, REDUCE+REDUCE"));
  EXPECT_THAT(text, HasSubstr("   4 | line of the source"));
  EXPECT_THAT(text, HasSubstr("needs the finished result of sum"));
  EXPECT_THAT(text, HasSubstr("the best schedule with both together takes"));
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin);
    size_t columns = 0;
    for (size_t k = begin; k < end; ++k) columns += (static_cast<unsigned char>(text[k]) & 0xC0) != 0x80;
    EXPECT_LE(columns, 100u) << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

/// Rows and columns of unknown numbers are not 2^40 elements, and what is that long keeps its column.
TEST(Report, ProductsOfUnknownSizesStayReasonable) {
  lcu::Program program = read(R"(
function table(xs: [int64], ys: [int64]) {
  kernel product {
    let product: [int64; #xs * #ys] = MAP regular(#xs, #ys, #xs * #ys) { i, s, p => xs[s] * ys[p] }
    return product
  }
  return product
})");
  FusionOptions options;
  options.compare = true;
  const FusionReport report = fuse(program, options);
  ASSERT_EQ(report.regions.size(), 1u);
  ASSERT_FALSE(report.regions[0].strategies.empty());
  for (const StrategyReport& s : report.regions[0].strategies)
    EXPECT_EQ(s.bytesWritten, 8.0 * 8 * (1 << 20)) << toString(s.strategy);
  EXPECT_EQ(timeText(1234.567), "1234.57");
  EXPECT_EQ(timeText(1.25e13), "1.25e+13");
}

TEST(Report, WhatIsNotProvenIsNotZero) {
  StrategyReport report;
  EXPECT_EQ(proofText(report), "");
  report.strategy = Strategy::Ilp;
  EXPECT_EQ(proofText(report), "proven optimal");
  report.gap = 1e-6;
  EXPECT_EQ(proofText(report), "less than 0.01% from optimal");
  report.gap = 0.0123;
  EXPECT_EQ(proofText(report), "at most 1.23% from optimal");
}

TEST(Report, ExcerptsHoldThePlaceAndCutNoCharacter) {
  EXPECT_EQ(excerpt("  sum(xs);  \n", 2, 20), "sum(xs);");
  EXPECT_EQ(excerpt("x\t+ y", 0, 20), "x + y");
  EXPECT_EQ(excerpt("abcdefghijklmnop", 0, 8), "abcde...");
  EXPECT_EQ(excerpt("abcdefghijklmnop", 14, 9), "...klmnop");
  EXPECT_EQ(excerpt("abcdefghijklmnopqrstuvwxyz", 13, 12), "...lmnopq...");
  EXPECT_EQ(excerpt("ab漢字漢字漢字", 0, 9), "ab漢字...") << "two columns each";
  EXPECT_EQ(excerpt("Größe Größe", 0, 8), "Größe...");
  EXPECT_EQ(excerpt("a\xff\xfe b", 0, 20), "a\xff\xfe b") << "no UTF-8 at all";
  EXPECT_EQ(excerpt(" \t ", 1, 20), "");
}

TEST(Report, PairsThatAStrategyMissesAreNoMatterOfCost) {
  EXPECT_THAT(
      reportText(reportOf(Strategy::None), lookup),
      ContainsRegex("nothing is fused: the best schedule with both together takes [0-9.]+ us instead"));
  EXPECT_THAT(reportText(reportOf(Strategy::Delayed), lookup), HasSubstr("missed by delayed: the best"));
}

TEST(Report, StrategiesAreOrderedAndCounted) {
  const FusionReport report = reportOf(Strategy::None);
  ASSERT_EQ(report.regions.size(), 1u);
  const RegionReport& region = report.regions[0];
  ASSERT_EQ(region.strategies.size(), 4u);
  std::map<Strategy, const StrategyReport*> by;
  for (const StrategyReport& s : region.strategies) by[s.strategy] = &s;
  EXPECT_EQ(by[Strategy::None]->launches, 5);
  EXPECT_EQ(by[Strategy::Ilp]->launches, 2);
  EXPECT_LE(by[Strategy::Ilp]->objective, by[Strategy::Greedy]->objective);
  EXPECT_LE(by[Strategy::Greedy]->objective, by[Strategy::None]->objective);
  // n = 2^20 elements of 8 bytes, half surviving: xs four times, the survivors once; the survivors and two
  // results.
  constexpr double kBytes = 8.0 * (1 << 20);
  EXPECT_EQ(by[Strategy::None]->bytesRead, 4.5 * kBytes);
  constexpr double kCells = 2 * 8.0, kCount = 8;  // both sums; how many survive
  EXPECT_EQ(by[Strategy::None]->bytesWritten, 2.5 * kBytes + kCells + kCount);
  EXPECT_EQ(by[Strategy::Ilp]->bytesRead, 2 * kBytes);
  EXPECT_EQ(by[Strategy::Ilp]->bytesWritten, 2 * kBytes + kCells);
  EXPECT_EQ(region.clusters.size(), 5u);
}

TEST(Report, DrawingsLeaveOutOrderThatFollows) {
  RegionReport region;
  region.nodes.resize(3);
  region.edges = {{0, 1, "order", false, "comes after a check"},
                  {0, 2, "order", false, "comes after a check"},
                  {1, 2, "pointwise", true, "reads it"}};
  StrategyReport strategy;
  strategy.cluster = {0, 1, 2};
  const std::string graph = regionDot(region, strategy);
  EXPECT_THAT(graph, HasSubstr("n0 -> n1"));
  EXPECT_THAT(graph, HasSubstr("n1 -> n2"));
  EXPECT_THAT(graph, Not(HasSubstr("n0 -> n2")));
  region.edges[1].edgeClass = "whole";
  EXPECT_THAT(regionDot(region, strategy), HasSubstr("n0 -> n2"));
}

/// In a page of a program of 250 lines a million characters are replaced; each moved all text behind it.
TEST(Report, PagesOfMuchTextTakeNoTime) {
  FormReport form{"norm2.nesl:1:1", "norm2", reportOf(Strategy::Ilp), {}, ""};
  constexpr size_t kMany = 1'000'000;
  for (size_t k = 0; k < kMany; ++k) form.report.regions[0].clusters[0].text += "a < b ";
  const auto draw = [](const std::string&) { return Drawing{"", "nobody draws"}; };
  const std::string page = reportHtml("norm2", {form}, lookup, draw);
  size_t replaced = 0;
  for (size_t at = page.find("\\u003c"); at != std::string::npos; at = page.find("\\u003c", at + 1))
    ++replaced;
  EXPECT_GE(replaced, kMany);
}

TEST(Report, JsonHasAllParts) {
  const auto json = nlohmann::json::parse(reportJson(reportOf(Strategy::Ilp), lookup));
  const auto& region = json.at("regions").at(0);
  EXPECT_EQ(region.at("function"), "norm2");
  EXPECT_EQ(region.at("nodes").size(), 5u);
  EXPECT_EQ(region.at("nodes").at(1).at("kind"), "FILTER");
  EXPECT_EQ(region.at("nodes").at(1).at("place"), "norm2.nesl:4:1");
  EXPECT_EQ(region.at("clusters").size(), 2u);
  EXPECT_EQ(region.at("strategies").size(), 4u);
  EXPECT_EQ(region.at("edges").size(), 3u);
  for (const auto& pair : region.at("pairs")) EXPECT_FALSE(pair.at("reason").get<std::string>().empty());
}

}  // namespace
}  // namespace kelpie::fusion
