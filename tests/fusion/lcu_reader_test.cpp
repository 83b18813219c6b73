#include "fusion/lcu_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ir/norm2.h"

namespace kelpie::lcu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Program read(std::string_view text) {
  ReadResult result = readProgram(text);
  if (auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result)) {
    for (const Diagnostic& diagnostic : *diagnostics) ADD_FAILURE() << describe(diagnostic, text);
    return {};
  }
  return std::move(std::get<Program>(result));
}

std::string firstError(std::string_view text) {
  const ReadResult result = readProgram(text);
  const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result);
  return diagnostics && !diagnostics->empty() ? describe(diagnostics->front(), text) : "no error";
}

/// Texts in exactly the printer's form: reading and printing gives them back, and they are well-formed.
void expectRoundTrip(const std::string& text, bool fused = false) {
  const Program program = read(text);
  EXPECT_EQ(toString(program), text);
  EXPECT_THAT(verify(program, fused), ElementsAre());
}

TEST(LcuReader, ReadsWhatWasPrinted) {
  const std::string printed = toString(Norm2().program);
  EXPECT_EQ(toString(read(printed)), printed);
  EXPECT_THAT(verify(read(printed), false), ElementsAre());
}

TEST(LcuReader, ReadsThePapersFusedProgram) {
  const Program program = read(R"(
// Section 5 of the paper, after fusion: two kernels.
function norm2(xs: [float64]) {
  kernel KF1 {
    let sum1: &float64, sum2: &float64 = REDUCE flat #xs
      { i => let x = xs[i] in x, if x > 0.0 then x else 0.0 } (0.0, 0.0)
      { a1, a2, b1, b2 => a1 + b1, a2 + b2 }
    return sum1, sum2
  }
  kernel KF2 {
    let res1: [float64; #xs], res2: [float64; #xs] = MAP flat #xs { i => xs[i] / sum1, xs[i] / sum2 }
    return res1, res2
  }
  return res1, res2
})");
  EXPECT_THAT(verify(program, true), ElementsAre());
  ASSERT_EQ(program.functions.size(), 1u);
  const auto& stmts = program.functions[0].body.stmts;
  ASSERT_EQ(stmts.size(), 2u);
  const Soac& reduce = std::get<Launch>(stmts[0].node).kernel.bindings[0];
  EXPECT_EQ(reduce.kind, SoacKind::Reduce);
  EXPECT_EQ(reduce.space.extent, program.arena->size(1));
  EXPECT_EQ(reduce.pull[0], program.arena->load(1, ScalarType::Float64, program.arena->param(0)));
  EXPECT_EQ(reduce.combine.identity.size(), 2u);
  EXPECT_EQ(program.vars[4].name, "res1");
}

TEST(LcuReader, SparseMatrixVectorProduct) {
  expectRoundTrip(R"(site @1 = "index {0} is out of range 0..{1}" 1:20..30
function smvm(off: [int64], col: [int64; #val], val: [float64], v: [float64]) {
  let rows: int64 = #off - 1
  kernel row_sums {
    let r: [float64; rows] = REDUCE seg(off, rows, #val) { i, s, p => let t1 = col[i] in val[i] * v[check(t1 >= 0 and t1 < #v, t1, 0, @1, t1, #v)] } (0.0) { x, y => x + y } @line "smvm" 1:5..48
    return r
  }
  return r
}
entry main: () {
}
)");
}

TEST(LcuReader, EverySoac) {
  expectRoundTrip(R"(function all(n: int64, xs: [int32; n], ends: [int64], flags: [bool; n]) {
  kernel squares {
    let a: [int32; n] = MAP flat n { i => let t1 = xs[i] in t1 * t1 }
    return a
  }
  kernel only_checks {
    MAP flat n { i => } effects { i => xs[i] > 0i32 }
  }
  kernel reversed {
    let b: [int32; n] = PERMUTE flat n { i => xs[i] } to { i => n - 1 - i } target n fill (-1i32) unique
    return b
  }
  kernel last_writer {
    let w: [int64; 10] = PERMUTE flat n { i => i } to { i => i % 10 } target 10 fill (-1)
    return w
  }
  kernel written {
    let written: [int32; n] = PERMUTE flat n { i => xs[i] } to { i => i / 2 * 2 } where { i => flags[i] } target n onto xs agreeing
    return written
  }
  kernel marked {
    let marked: [int64; 10] = PERMUTE flat n { i => i } to { i => i % 10 } target 10
    return marked
  }
  kernel row_maxima {
    let m: [int32; n / 4] = REDUCE regular(n / 4, 4, n / 4 * 4) { i, s, p => xs[i] } (-2147483648i32) { x, y => max(x, y) }
    return m
  }
  kernel offsets {
    let o: [int64; n + 1] = SCAN total flat n { i => int64(xs[i]) } (0) { x, y => x + y }
    return o
  }
  kernel running {
    let c: [int32; n], d: [int64; n] = SCAN inclusive backward seg(ends, #ends - 1, n) { i, s, p => xs[i], p } (0i32, 0) { x1, x2, y1, y2 => x1 + y1, min(x2, y2) }
    return c, d
  }
  kernel kept {
    let e: &int64, f: [int32; e] = FILTER flat n { i => xs[i] } where { i => flags[i] }
    return e, f
  }
  kernel kept_by_row {
    let g: [int64; #ends], h: [int32] = FILTER seg(ends, #ends - 1, n) { i, s, p => xs[i] } where { i, s, p => flags[i] and s != p }
    return g, h
  }
  kernel parts {
    let j: &int64, yes: [int32; j], no: [int32; n - j] = PARTITION flat n { i => xs[i] } where { i => flags[i] }
    return j, yes, no
  }
  kernel last {
    let z: &float64 = ONCE { sqrt(float64(n)) } effects { n > 3 }
    return z
  }
}
entry main: () {
}
)");
}

TEST(LcuReader, HostStatements) {
  expectRoundTrip(R"(site @1 = "a {0}, \"b\" and {1}\n"
global 3: ([float64, [char]], int64) = len: int64, xs: [float64; len], inner: [int64; len + 1], text: [char], n: int64
function half(count: int64, data: [float64; count]) {
  return count, data
}
entry main: ([float64], int64) {
  let a: int64, b: float64, c: bool = n * 2, xs[0], n > 3
  let m: int64, ys: [float64; m] = call half(a, xs) @line 2:7..19
  let big: [float64], k: int64 = if c and m > 7 {
    let q: int64 = m + 1
    yield ys, q
  } else {
    yield xs, a
  } @line 1:0..9
  let steps: int64, zs: [float64] = loop (t: int64 = k, cur: [float64] = big) while {
    let go: bool = t > 0
    yield go
  } do {
    let less: int64 = t - 1
    yield less, cur
  }
  let words: [char; 6], ints: [int64; 3], none: [float32; 0] = constant "a\"\n\x00z\\", [1, -2, 9223372036854775807], []
  let order: [int64; 3] = grade ints over flat 3
  let again: [int64; 3], sorted: [int64; 3], places: [int64; 3] = grade sort ranks ints over flat 3
  let alone: [int64; 3] = ranks ints over flat 3
  let ok: bool = service print(len, words): ([char]) -> (bool) @1
  service "odd name"(): () -> () @0
  if ok {
  } else {
  }
  return len, zs, k
}
)");
}

TEST(LcuReader, LoopsAndConditionals) {
  expectRoundTrip(R"(function f(xs: [int64], n: int64) {
  kernel collatz {
    let steps: [int64; #xs], top: [int64; #xs] = MAP flat #xs { i => let (t1, t2, t3) = loop (k1 = xs[i], k2 = 0, k3 = 0) { while k1 > 1 next if k1 % 2 == 0 then k1 / 2 else k1 * 3 + 1, k2 + 1, max(k3, k1) } in t2, t3 }
    return steps, top
  }
  kernel nested {
    let r: [int64; n] = MAP flat n { i => let (t1, t2) = loop (k1 = i, k2 = 0) { let t3 = loop (k3 = k1) { while k3 < n next k3 * 2 + 1 } in while k1 < n next t3, k2 + 1 } in t2 }
    return r
  }
}
entry main: () {
}
)");
}

TEST(LcuReader, NumbersKeepTheirBits) {
  expectRoundTrip(R"(function f(a: float64, b: float32, c: char) {
  let d: float64, e: float64, g: float64, h: float32, j: bool = a * -0.0, a + nan, a - inf, b / 0.1f32, c == '\''
  let u: float64, v: int64, w: float32 = a * 1e+300, int64(a) + -9223372036854775808, max(b, -inff32)
}
entry main: () {
}
)");
}

TEST(LcuReader, FunctionsHaveTheirOwnNames) {
  const Program program = read("function f(xs: [int64]) { return xs } function g(xs: [int64]) { return xs }");
  EXPECT_EQ(toString(program),
            "function f(xs_1: [int64]) {\n  return xs_1\n}\n"
            "function g(xs_2: [int64]) {\n  return xs_2\n}\n"
            "entry \"\": () {\n}\n");
}

TEST(LcuReader, SyntaxErrorsHavePositions) {
  EXPECT_THAT(firstError("function f() {\n  let a: int64 = \n}"), HasSubstr("3:1: "));
  EXPECT_THAT(firstError("function f() {\n  let a: int64 = 1 $ 2\n}"), HasSubstr("2:20: "));
  EXPECT_THAT(firstError("function f() {\n  return\xc3\xa9\n}"), HasSubstr("2:9: "));
  EXPECT_THAT(firstError("entry"), HasSubstr("1:6: "));
}

TEST(LcuReader, NamesAndTypesAreChecked) {
  const auto inFunction = [](const std::string& line) {
    return firstError("function f(n: int64, xs: [float64], b: bool) {\n  " + line + "\n}");
  };
  EXPECT_EQ(inFunction("let a: int64 = n + m"), "2:22: unknown variable `m`");
  EXPECT_EQ(inFunction("let a: int64 = n + b"), "2:18: `add` on bool");
  EXPECT_EQ(inFunction("let a: float64 = xs[0] + 1"), "2:20: `add` on float64 and int64");
  EXPECT_EQ(inFunction("let a: float64 = xs"),
            "2:20: `xs` is an array: use an element xs[...] or its size #xs");
  EXPECT_EQ(inFunction("let a: float64 = n[0]"), "2:20: `n` is not an array");
  EXPECT_EQ(inFunction("let n: int64 = 1"), "2:7: `n` is bound twice");
  EXPECT_EQ(inFunction("let a: int = 1"), "2:10: `int` is not a scalar type");
  EXPECT_EQ(inFunction("let a: int64 = 9223372036854775808"), "2:18: `9223372036854775808` is out of range");
  EXPECT_EQ(inFunction("let a: float64 = sin(1)"), "2:20: `sin` on int64");
  EXPECT_EQ(inFunction("let a: float64 = sine(1.0)"), "2:20: unknown operation `sine`");
  EXPECT_EQ(inFunction("let a: int64 = if n then 1 else 2"), "2:21: a condition of type int64");
  EXPECT_EQ(inFunction("let a: int64 = if b then 1 else 2.0"),
            "2:18: branches of a conditional: int64 and float64");
  EXPECT_EQ(inFunction("let a: int64 = check(b, n, 0, @1, n, n)"), "2:18: unknown error site @1");
  EXPECT_EQ(inFunction("let a: int64 = check(b, n, 0.0, @0, n, n)"),
            "2:30: the fallback differs in type from the value");
  EXPECT_EQ(inFunction("let a: int64 = call g(n)"), "2:23: unknown function `g`");
  EXPECT_EQ(inFunction("kernel k { let a: [int64] = MAP flat n { i, s => i } }"),
            "2:42: the thunk names 2 parameters of 1");
  EXPECT_THAT(inFunction("kernel k { let a: [int64] = MAP flat n { i => i }"), HasSubstr("3:2: "));
  EXPECT_EQ(inFunction("let a: [int64; 2] = constant [1, 'a']"),
            "2:32: an element of char in an array of int64");
}

}  // namespace
}  // namespace kelpie::lcu
