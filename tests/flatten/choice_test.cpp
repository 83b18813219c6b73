// Golden texts of the passes over Core that make what conditionals choose, or are chosen by, scalar or
// smaller: comparisons with literals, and what both branches append to.
#include <gtest/gtest.h>

#include "agreement.h"
#include "flatten/common_appends.h"
#include "flatten/flatten.h"
#include "flatten/literal_comparisons.h"
#include "ir/core_print.h"
#include "ir/core_verify.h"
#include "last_program.h"

namespace kelpie::testing {
namespace {

std::string compared(const std::string& nesl) {
  const core::Program result = flatten::compareWithLiterals(compiled(nesl));
  EXPECT_EQ(core::verify(result), std::vector<std::string>{});
  std::string text = core::toString(result.entry, result);
  for (const core::Function& f : result.functions)
    if (!f.fromLibrary) text += core::toString(f, result);
  return text;
}

TEST(LiteralComparisons, OfInstancesAreScalar) {
  EXPECT_EQ(compared("let vs = [[1, 2, 3], [4]] in {eql(v, [1, 2, 3]) : v in vs};"),
            "let vs.1: [[int64]] = constant [[1, 2, 3], [4]]\n"
            "each (v.2: [int64]) in vs.1\n"
            "  let .3: [int64] = constant [1, 2, 3]\n"
            "  let .17: int64 = length v.2\n"
            "  let .18: bool = eq .17 3\n"
            "  if .18\n"
            "    let .19: int64 = index v.2 0\n"
            "    let .20: bool = eq .19 1\n"
            "    if .20\n"
            "      let .21: int64 = index v.2 1\n"
            "      let .22: bool = eq .21 2\n"
            "      let .23: int64 = index v.2 2\n"
            "      let .24: bool = eq .23 3\n"
            "      let .25: bool = and .22 .24\n"
            "      (.25)\n"
            "    else\n"
            "      (false)\n"
            "  else\n"
            "    (false)\n");
}

/// Text of one length is put together once, where it is first compared: also for what comes in branches.
TEST(LiteralComparisons, OfTextAreNumbers) {
  EXPECT_EQ(compared("let ws = [\"let\"] in {if eql(w, \"let\") then 1 else if eql(w, \"fun\") then 2 else 3 "
                     ": w in ws};"),
            "let ws.1: [[char]] = constant [\"let\"]\n"
            "each (w.2: [char]) in ws.1\n"
            "  let .3: [char] = constant \"let\"\n"
            "  let .21: int64 = length w.2\n"
            "  let .22: bool = eq .21 3\n"
            "  let .33: int64 =\n"
            "    if .22\n"
            "      let .23: char = index w.2 0\n"
            "      let .24: int64 = convert to int64 .23\n"
            "      let .25: char = index w.2 1\n"
            "      let .26: int64 = convert to int64 .25\n"
            "      let .27: int64 = mul .24 256\n"
            "      let .28: int64 = add .27 .26\n"
            "      let .29: char = index w.2 2\n"
            "      let .30: int64 = convert to int64 .29\n"
            "      let .31: int64 = mul .28 256\n"
            "      let .32: int64 = add .31 .30\n"
            "      (.32)\n"
            "    else\n"
            "      (-1)\n"
            "  let .34: bool = eq .33 7103860\n"
            "  let .4: bool = (.34)\n"
            "  if .4\n"
            "    (1)\n"
            "  else\n"
            "    let .5: [char] = constant \"fun\"\n"
            "    let .35: int64 = length w.2\n"
            "    let .36: bool = eq .35 3\n"
            "    let .37: bool = eq .33 6714734\n"
            "    let .6: bool = (.37)\n"
            "    if .6\n"
            "      (2)\n"
            "    else\n"
            "      (3)\n");
  const std::string text = compared(
      "let ws = [\"\"] in {eql(w, \"of eight\") or eql(w, \"as eight\") or eql(w, \"or eight\") or eql(w, "
      "\"seven c\") : w in ws};");
  const auto count = [&](std::string_view word) {
    size_t n = 0;
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count(" = index "), 8u + 7u) << text;
}

TEST(LiteralComparisons, EmptyAndShortOnes) {
  EXPECT_EQ(compared("let ws = [[1], [2, 3]] in {eql([] int, w) or eql([7], w) : w in ws};"),
            "let ws.1: [[int64]] = constant [[1], [2, 3]]\n"
            "each (w.2: [int64]) in ws.1\n"
            "  let .3: [int64] = constant []\n"
            "  let .20: int64 = length w.2\n"
            "  let .21: bool = eq .20 0\n"
            "  let .4: bool = (.21)\n"
            "  let .5: [int64] = constant [7]\n"
            "  let .22: int64 = length w.2\n"
            "  let .23: bool = eq .22 1\n"
            "  let .6: bool =\n"
            "    if .23\n"
            "      let .24: int64 = index w.2 0\n"
            "      let .25: bool = eq .24 7\n"
            "      (.25)\n"
            "    else\n"
            "      (false)\n"
            "  or .4 .6\n");
}

/// On the host, with long literals, and of two values that are no literals, the library compares.
TEST(LiteralComparisons, OthersStay) {
  for (const char* nesl :
       {"function go(w) = eql(w, \"let\"); let w = \"let\" in go(w);",
        "let ws = [\"let\"] in {eql(w, \"0123456789012345678901234567890123456789012345678901234567890123"
        "4\") : w in ws};",
        "let vs = [[1]] in {eql(v, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6]) : v in vs};",
        "let ws = [\"let\"] in {eql(w, w) : w in ws};",
        "let ws = [[[1]]] in {eql(w, [[1], [2]]) : w in ws};"}) {
    const core::Program program = compiled(nesl);
    std::string text = core::toString(program.entry, program);
    for (const core::Function& f : program.functions)
      if (!f.fromLibrary) text += core::toString(f, program);
    EXPECT_EQ(compared(nesl), text);
  }
}

/// A function that is called for instances, by way of another one, compares so everywhere.
TEST(LiteralComparisons, OfFunctionsOfInstances) {
  const std::string text = compared(
      "function is_let(w) = eql(w, \"let\"); function known(w) = if is_let(w) then 1 else 0;"
      "let ws = [\"let\", \"in\"] in {known(w) : w in ws};");
  EXPECT_EQ(text.find("prim_eql"), std::string::npos) << text;
}

std::string appended(const std::string& nesl) {
  const core::Program result = flatten::shareAppends(compiled(nesl));
  EXPECT_EQ(core::verify(result), std::vector<std::string>{});
  return core::toString(result.entry, result);
}

TEST(CommonAppends, OfOneBranch) {
  EXPECT_EQ(
      appended(
          "let xs = [1, 2] in {let e = [[x]]; n = 1; (e, n) = if x > 1 then (e ++ [[x, x]], 2) else (e, n) "
          "in (e, n) : x in xs};"),
      "let xs.1: [int64] = constant [1, 2]\n"
      "each (x.2: int64) in xs.1\n"
      "  let .3: [int64] = literal 1 x.2\n"
      "  let e.4: [[int64]] = literal 1 .3\n"
      "  let .5: bool = gt x.2 1\n"
      "  let .13: [[int64]], .14: int64 =\n"
      "    if .5\n"
      "      let .6: [int64] = literal 2 x.2 x.2\n"
      "      let .7: [[int64]] = literal 1 .6\n"
      "      (.7, 2)\n"
      "    else\n"
      "      let .12: [[int64]] = constant []\n"
      "      (.12, 1)\n"
      "  let .15: [[int64]] = append e.4 .13\n"
      "  (.15, .14)\n");
}

TEST(CommonAppends, OfBothBranchesAndElseIfs) {
  EXPECT_EQ(
      appended(
          "let xs = [1, 2] in {let e = [[x]] in if x > 2 then e else if x > 1 then e ++ [[x, x]] else e ++ "
          "[[0]] : x in xs};"),
      "let xs.1: [int64] = constant [1, 2]\n"
      "each (x.2: int64) in xs.1\n"
      "  let .3: [int64] = literal 1 x.2\n"
      "  let e.4: [[int64]] = literal 1 .3\n"
      "  let .5: bool = gt x.2 2\n"
      "  let .20: [[int64]] =\n"
      "    if .5\n"
      "      let .19: [[int64]] = constant []\n"
      "      (.19)\n"
      "    else\n"
      "      let .6: bool = gt x.2 1\n"
      "      let .17: [[int64]] =\n"
      "        if .6\n"
      "          let .7: [int64] = literal 2 x.2 x.2\n"
      "          let .8: [[int64]] = literal 1 .7\n"
      "          (.8)\n"
      "        else\n"
      "          let .10: [[int64]] = constant [[0]]\n"
      "          (.10)\n"
      "      (.17)\n"
      "  let .21: [[int64]] = append e.4 .20\n"
      "  (.21)\n");
}

/// What both branches put something in front of, and several parts at once.
TEST(CommonAppends, FromBothSides) {
  EXPECT_EQ(
      appended("let xs = [1, 2] in {let e = [x]; e = if x > 1 then [2] ++ [3] ++ e else e; e = if x > 2 "
               "then e ++ [4] ++ [5] else e ++ [6] in e : x in xs};"),
      "let xs.1: [int64] = constant [1, 2]\n"
      "each (x.2: int64) in xs.1\n"
      "  let e.3: [int64] = literal 1 x.2\n"
      "  let .4: bool = gt x.2 1\n"
      "  let .22: [int64] =\n"
      "    if .4\n"
      "      let .8: [int64] =\n"
      "        invariant\n"
      "          let .5: [int64] = constant [2]\n"
      "          let .6: [int64] = constant [3]\n"
      "          append .5 .6\n"
      "      (.8)\n"
      "    else\n"
      "      let .21: [int64] = constant []\n"
      "      (.21)\n"
      "  let .23: [int64] = append .22 e.3\n"
      "  let e.10: [int64] = (.23)\n"
      "  let .11: bool = gt x.2 2\n"
      "  let .27: [int64] =\n"
      "    if .11\n"
      "      let .12: [int64] = constant [4]\n"
      "      let .14: [int64] = constant [5]\n"
      "      let .26: [int64] = append .12 .14\n"
      "      (.26)\n"
      "    else\n"
      "      let .16: [int64] = constant [6]\n"
      "      (.16)\n"
      "  let .28: [int64] = append e.10 .27\n"
      "  (.28)\n");
}

/// On the host, and where branches append to different ones.
TEST(CommonAppends, OthersStay) {
  for (const char* nesl :
       {"let xs = [1, 2] in {if x > 1 then [x] ++ [2] else [x] : x in xs};",
        "let xs = [1, 2] in {let e = [x]; d = e ++ [3] in if x > 1 then [2] ++ d else e : x in xs};",
        "let e = [[1]] in if #e > 1 then e ++ [[2]] else e;",
        "let xs = [1, 2] in {let e = [[x]]; d = [[3]] in if x > 1 then e ++ [[2]] else d : x in xs};"}) {
    const core::Program program = compiled(nesl);
    EXPECT_EQ(appended(nesl), core::toString(program.entry, program));
  }
}

/// A row more takes code for a row more. With choices between both sequences it was twice the code.
TEST(CommonAppends, CodeGrowsWithTheNumberOfConditionals) {
  const auto messages = [](int count) {
    std::string text = "function told(a, s) = let e = [] [char]";
    for (int k = 0; k < count; ++k)
      text += ";\n e = if a > " + std::to_string(k) + " then e ++ [\"rule \" ++ s] else e";
    text += "\n in e; {told(a, @a) : a in [3, 0, 9, 5]};";
    return lcu::toString(flatten::flatten(compiled(text)));
  };
  EXPECT_LT(messages(12).size(), 3 * messages(6).size());
}

/// What steps make of a sequence `v` of their `p`, as text of the flattened program.
std::string steps(int count, const std::string& step, const std::string& guard) {
  std::string text = "function changed(v, p) = " + guard + "let v = v ++ [p]";
  for (int k = 0; k < count; ++k) text += ";\n b = rem(p, " + std::to_string(k + 2) + "); v = " + step;
  text += "\n in v; {changed(v, p) : v in [[1, 2], [3], [4, 5, 6]]; p in [2, 6, 24]};";
  return lcu::toString(flatten::flatten(compiled(text)));
}

/// So does a step more, also where its row is one of the sequence, or where it chooses between the sequence
/// and its parts or its reverse. Each was twice the code.
TEST(CommonAppends, CodeGrowsWithTheNumberOfSteps) {
  for (const char* step : {"if b == 0 then v ++ [v[0]] else v", "if b == 0 then [v[0]] ++ v else v",
                           "if b == 0 then v ++ [1] else [1] ++ v", "if b == 0 then reverse(v) else v",
                           "bottop(v ++ v)[rem(b, 2)]", "if b == 0 then drop(v, 1) ++ [1] else reverse(v)"})
    for (const std::string guard : {"", "if p < 2 then v else "})
      EXPECT_LT(steps(16, step, guard).size(), 5 * steps(8, step, guard).size()) << guard << step;
}

TEST(CommonAppends, GiveWhatTheBranchesGive) {
  expectAgreement(
      "function rules(a, b) = let e = [] [int]; n = 0;"
      " (e, n) = if a > 0 then (e ++ [[0, b]], n + 1) else (e, n);"
      " e = if rem(a, 2) == 0 then e else e ++ [[1], [b, b]];"
      " e = if a > 3 then e ++ [[2]] else if a > 1 then e else e ++ [[] int, [7]];"
      " (n, e) = if b == 1 then (n, e) else (n + #e, e ++ e)"
      " in (e, n);"
      "{rules(a, b) : a in [0, 1, 2, 3, 4, 5]; b in [1, 2, 1, 2, 3, 1]}; rules(3, 1); {rules(a, a) : a in [] "
      "int};"
      "{{let w = [\"x\"] in if a > b then w ++ [@a] else w : a in [0:b]} : b in [0:4]};"
      "function grow(e, k) = if k == 0 then e else grow((if rem(k, 3) == 0 then e ++ [[k]] else e), k - 1);"
      "{grow([[a]], a) : a in [5, 0, 7]}; grow([[1]], 4);"
      "{let e = [[(a, t)]] in if a > 1 then e ++ [[(a / (a - 2), f)]] else e : a in [0, 1, 3]};"
      "{let e = [[a]] in if a > 1 then e ++ [[a / (a - 2)]] else e : a in [0, 1, 2]};");
  expectAgreement(
      "function told(n) = let s = if n < 0 then \"minus \" else \"\"; m = abs(n);"
      " s = if m >= 100 then s ++ @(m / 100) ++ \" hundred\" else s;"
      " s = if rem(m, 10) > 0 then \"<\" ++ s ++ \">\" ++ @(rem(m, 10)) else s in s;"
      "{told(n) : n in [0, 5, -17, 120, 345, -999, 20]};"
      "function parts(e, p) = let e = if p > 1 then [p] ++ e else e; e = if p > 2 then [e[0]] ++ [9] ++ e "
      "else e;"
      " e = if p > 3 then e ++ [1] ++ e else e ++ [2]; e = if p > 4 then e ++ e else e ++ [3];"
      " e = if p > 5 then e else [3] ++ e in e;"
      "{parts(e, p) : e in [[1, 2], [3], [4, 5, 6], [7], [] int, [9]]; p in [1, 2, 3, 4, 1, 6]};"
      "{let a = if p > 1 then e ++ [p] else e; b = if p > 2 then ([0] ++ a, a) else (a, a ++ [4]) in b"
      " : e in [[1, 2], [3], [] int, [7]]; p in [1, 2, 3, 4]};"
      "{let a = if p > 1 then e ++ [e[p]] else e in a : e in [[1, 2, 3], [3], [] int]; p in [2, 1, 0]};");
}

/// A choice among many is none of many steps: no branch takes a kernel of its own.
TEST(ChosenSequences, OfManyBranchesAreViews) {
  const auto kernels = [](int branches) {
    std::string text = "function word(c) = ";
    for (int k = 0; k < branches; ++k)
      text += "if c == " + std::to_string(k) + " then \"w" + std::to_string(k) + "\" else ";
    text += "\"many\"; {let w = word(c) in {x : x in w} : c in [3, 0, 9, 5]};";
    const std::string flat = lcu::toString(flatten::flatten(compiled(text)));
    size_t count = 0;
    for (size_t at = flat.find("kernel "); at != flat.npos; at = flat.find("kernel ", at + 1)) ++count;
    return count;
  };
  EXPECT_GT(kernels(2), 0u);
  EXPECT_EQ(kernels(9), kernels(2));
}

TEST(ChosenSequences, OfManyStepsAreStored) {
  expectAgreement(
      "function turned(v, p) = let v = if rem(p, 2) == 0 then reverse(v) else v;"
      " v = if rem(p, 3) == 0 then rotate(v, 1) else v; v = if rem(p, 4) == 0 then reverse(v) else v;"
      " v = if rem(p, 5) == 0 then drop(v, 1) else v; v = if rem(p, 6) == 0 then reverse(v) else v;"
      " v = if rem(p, 7) == 0 then take(v, 2) else v; v = if rem(p, 8) == 0 then reverse(v) else v ++ v in v;"
      "{turned(v, p) : v in [[1, 2], [3, 4, 5], [6, 7], [] int, [8]]; p in [2, 60, 24, 1, 8]};"
      "{turned(v, 14) : v in [[(1, \"a\"), (2, \"bc\")], [(3, \"\"), (4, \"d\"), (5, \"e\")]]};"
      "function halves(v, p) = let v = if p > 3 then v else v ++ v; v = bottop(v)[rem(p, 2)];"
      " v = bottop(v)[rem(p / 2, 2)]; v = bottop(v)[rem(p / 4, 2)]; v = bottop(v)[rem(p / 8, 2)];"
      " v = bottop(v)[rem(p / 16, 2)] in v;"
      "{halves(v, p) : v in [index(64), index(33), index(7)]; p in [2, 29, 13]};"
      "{if p > 3 then turned(v, p) else v : v in [[1, 2], [3, 4, 5], [] int]; p in [60, 2, 24]};"
      "{let v = if p == 0 then [1] else if p == 1 then [2, 3] else if p == 2 then [4] else if p == 3 then [5]"
      " else if p == 4 then [p] else if p == 5 then reverse(v) else if p == 6 then take(v, 1) else v ++ v in "
      "v"
      " : p in [0:9]; v in {[0:i + 2] : i in [0:9]}};"
      "{sum({#halves(v, p) : p in [0:8]}) + (if #v > 9 then sum(halves(v, 5)) else 1) : v in [[0:20], "
      "[0:9]]};");
}

}  // namespace
}  // namespace kelpie::testing
