// Texts of any size and any bytes give a result or a clean error, soon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "ir/deep_stack.h"
#include "parsing.h"

namespace kelpie {
namespace {

using testing::HasSubstr;

std::string repeat(const std::string& text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

ParseResult parseOnly(const std::string& text) {
  SourceManager sources;
  return parse(sources, sources.add("test.nesl", text));
}

/// Trees of the deepest kind that is accepted may be destroyed only where there is stack for it.
void expectAccepted(const std::string& text) {
  runOnDeepStack([&] {
    const ParseResult result = parseOnly(text);
    EXPECT_EQ(result.forms.size(), 1u) << text.substr(0, 20);
    EXPECT_TRUE(result.ok()) << text.substr(0, 20);
  });
}
void expectTooDeep(const std::string& text) {
  const ParseResult result = parseOnly(text);
  ASSERT_EQ(result.diagnostics.size(), 1u) << text.substr(0, 20);
  EXPECT_EQ(result.diagnostics[0].id, "K0110");
}

TEST(ParserLimits, DeepNestingIsReadOrRefused) {
  const size_t deep = kMaximalDepth - 100, tooDeep = 200'000;
  expectAccepted(repeat("(", deep) + "1" + repeat(")", deep) + ";");
  expectTooDeep(repeat("(", tooDeep) + "1" + repeat(")", tooDeep) + ";");
  expectAccepted(repeat("[", deep) + "1" + repeat("]", deep) + ";");
  expectTooDeep(repeat("[", tooDeep) + "1" + repeat("]", tooDeep) + ";");
  expectAccepted(repeat("let a = ", deep / 3) + "1" + repeat(" in a", deep / 3) + ";");
  expectAccepted(repeat("let a = 1 in ", deep / 3) + "1;");
  expectTooDeep(repeat("let a = 1 in ", tooDeep) + "1;");
  expectAccepted(repeat("if t then 1 else ", deep) + "1;");
  expectTooDeep(repeat("if t then 1 else ", tooDeep) + "1;");
  expectAccepted("f" + repeat("(1)", deep / 3) + ";");
  expectTooDeep("f" + repeat("(1)", tooDeep) + ";");
  expectAccepted(repeat("x => ", deep) + "1;");
  expectTooDeep(repeat("x => ", tooDeep) + "1;");
}

TEST(ParserLimits, LongChainsAreReadOrRefused) {
  expectAccepted("1" + repeat(" + 1", kMaximalDepth - 10) + ";");
  expectTooDeep("1" + repeat(" + 1", 250'000) + ";");
  expectTooDeep(repeat("-", 1'000'000) + "1;");
  expectTooDeep("f" + repeat(" x", 500'000) + ";");
  expectAccepted("let " + repeat("a = 1; ", 20'000) + " in a;");
}

TEST(ParserLimits, LongLiteralsAreReadQuickly) {
  std::string text = "[0";
  for (int i = 1; i < 1'000'000; ++i) text += "," + std::to_string(i);
  text += "];";
  const auto begin = std::chrono::steady_clock::now();
  const ParseResult result = parseOnly(text);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(result.forms.size(), 1u);
  const auto& exp = *std::get<ast::ExpPtr>(result.forms[0].node);
  const auto& elements = std::get<ast::SequenceLiteral>(exp.node).elements;
  ASSERT_EQ(elements.size(), 1'000'000u);
  EXPECT_EQ(std::get<ast::IntLiteral>(elements[777'777]->node).digits, "777777");
  EXPECT_LT(elapsed.count(), 30.0);  // under 1 s; slack for a busy machine
}

TEST(ParserLimits, LongSequencesReadAsShortOnesDo) {
  // Constants, nested ones, pairs, signs, expressions: what is parsed apart reads as what is not.
  for (const char* element : {"1", "-2.5", "`,", "\"a,b\"", "t", "(1, -2, \"x\")", "[1, 2]", "g(x, 1) + 2",
                              "{x in [1, 2]}", "(let a = 1; b = 2 in a)", "[g(1), 2]", "(1, [] int)"}) {
    const std::string one = reading(element);
    std::string list = element, expected = "[" + one;
    for (int i = 1; i < 5'000; ++i) {
      list += std::string(", ") + element;
      expected += ", " + one;
    }
    EXPECT_EQ(reading("[" + list + "]"), expected + "]") << element;
  }
  const std::string inner = "[" + repeat("1, ", 99) + "1]";
  EXPECT_EQ(reading("[" + repeat(inner + ", ", 99) + inner + "]"),
            "[" + repeat(inner + ", ", 99) + inner + "]");
  // a subscript, not an argument
  EXPECT_THAT(parseText("sum " + inner + ";").errors, HasSubstr("1:5: a subscript takes one index [K0112]"));
}

TEST(ParserLimits, MistakesInLongSequencesHaveTheirPlace) {
  const std::string many = repeat("1,", 100);
  EXPECT_EQ(parseText("[" + many + "1 +, 2];").errors,
            "1:205: expected an expression but found `,` [K0101]\n");
  EXPECT_EQ(parseText("[" + many + "];").errors, "1:202: expected an expression but found `]` [K0101]\n");
  EXPECT_EQ(parseText("[" + many + ",2];").errors, "1:202: expected an expression but found `,` [K0101]\n");
  EXPECT_EQ(parseText("[" + many + "(1 2) 3];").errors, "") << "juxtaposition";
  EXPECT_EQ(parseText("[" + many + "(1,)];").errors, "1:205: expected an expression but found `)` [K0101]\n");
}

TEST(ParserLimits, AnyBytesGiveAResultOrErrors) {
  std::mt19937 random(1);
  const std::string alphabet = "()[]{};,:=+-#x1 \"%`\\\n";
  for (int round = 0; round < 300; ++round) {
    std::string bytes, signs;
    for (int i = 0; i < 400; ++i) {
      bytes += static_cast<char>(random());
      signs += alphabet[random() % alphabet.size()];
    }
    for (const std::string& text : {bytes, signs}) {
      const ParseResult result = parseOnly(text);
      for (const Diagnostic& diagnostic : result.diagnostics) {
        EXPECT_FALSE(diagnostic.message.empty());
        EXPECT_LE(diagnostic.span.end, text.size() + 1);
      }
    }
  }
  EXPECT_EQ(parseOnly(repeat("(;", 100'000)).diagnostics.size(), kMaximalDiagnostics);
}

}  // namespace
}  // namespace kelpie
