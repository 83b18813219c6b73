// NESL programs end to end on the CUDA target, over an emulated device: what unit tests of kernels leave out
// is how kernels of one program hand their results on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "emulated_device.h"
#include "runtime/cuda/cuda_target.h"
#include "tests/flatten/program_runner.h"

namespace kelpie::testing {
namespace {

void expectAgreement(const std::string& nesl, bool int32 = false) {
  RunnerOptions options;
  options.int32 = int32;
  options.target = [] {
    return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<tests::EmulatedDevice>(7));
  };
  std::vector<FormOutcome> outcomes = runProgram(nesl, options);
  EXPECT_FALSE(outcomes.empty());
  for (const FormOutcome& outcome : outcomes)
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
}

TEST(CudaPrograms, WritesToNestedSequences) {
  expectAgreement("{d <- [(0,x)] : d in [[[1],[2]],[[3]]]; x in [[5,6],[] int]};", true);
}

/// A filter whose lengths decide whether its survivors are read.
TEST(CudaPrograms, FirstSurvivorsOfSegments) {
  expectAgreement(
      "function prefix(a, b) = let n = min(#a, #b); differ = {i in [0:n] | a[i] /= b[i]}"
      "  in if #differ == 0 then n else differ[0];"
      "let w = [\"flow\", \"flower\", \"flight\", \"\", \"flock\"] in {{prefix(a, b) : b in w} : a in w};",
      true);
}

TEST(CudaPrograms, SparseMatrixVector) {
  expectAgreement(
      "function smvm(m, v) = {sum({x * v[i] : (i,x) in row}) : row in m};"
      "smvm([[(0,2.0),(2,1.0)],[(1,3.0)],[(0,1.0),(1,1.0),(2,1.0)]], [1.0,10.0,100.0]);");
}

/// Sequences whose lengths were compared share their segments; nobody reads behind the shorter one.
TEST(CudaPrograms, SequencesOfOneLength) {
  const std::string data =
      "m = {{float(i + j) : j in [0:rem(i, 20)]} : i in [0:500]}; k = {{i - j : j in [0:rem(i, 7)]} : i in "
      "[0:500]}; w = {float(i) : i in [0:500]}; few = {float(i) : i in [0:5]};";
  expectAgreement(data +
                  "{sum({x * y : x in row}) : y in w; row in m};"
                  "{(sum(row), sum(column), {x * y : x in row}) : row in m; column in k; y in w};"
                  "{(x, y, row) : x in w; y in w; row in m};");
  expectAgreement(data + "{sum({x * y : x in row}) : y in few; row in m};");
  expectAgreement(data + "{sum({x * y : x in row}) : y in w; row in take(m, 3)};");
  expectAgreement(data + "{plus_scan({x * y : x in row}) : y in few; row in m};");
  expectAgreement(data + "{plus_scan({x * y : x in row}) : y in w; row in m};");
}

/// Fewer items a thread, and no copy of their code for tiles that lie in one segment.
TEST(CudaPrograms, MapsOfManyFunctions) {
  expectAgreement(
      "lengths = {if i == 40 then 5000 else rem(i * i, 9) : i in [0:300]};"
      "rows = {{float(i + j) / 7.0 : j in [0:n]} : i in [0:300]; n in lengths}; w = {float(i) : i in "
      "[0:300]};"
      "{{sin(x) * cos(x + y) + sin(y) / (x + 3.0) + float(j) : x in row; j in [0:#row]} : row in rows; y in "
      "w};"
      "{{if x > y then sqrt(x) / 3.0 + exp(0.0 - x) * ln(y + 1.0) * atan(x) else y : x in row} : row in "
      "rows; y in w};"
      "{{(sin(x + y), cos(x + y)) : x in row} : row in rows; y in w};"
      "{sin(x) * cos(x) + exp(0.0 - x) / (x + 1.0) + ln(x + 2.0) * atan(x) : x in flatten(rows)};");
}

/// Columns that a loop loads at one position are put side by side, or not where they are many beside the
/// elements; an even number of them and an odd one.
TEST(CudaPrograms, ColumnsSideBySide) {
  for (int64_t recordBytes : {int64_t{0}, int64_t{1} << 40}) {
    RunnerOptions options;
    options.target = [=] {
      codegen::cuda::CudaOptions cuda;
      cuda.recordBytes = recordBytes;
      return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<tests::EmulatedDevice>(7), cuda);
    };
    const std::vector<FormOutcome> outcomes = runProgram(
        "function walk(nodes, at, steps, a, b) = if steps == 0 then (a, b, at) else"
        "  let x, k, next = nodes[at] in if rem(k, 2) == 1 then walk(nodes, next, steps - 1, a + x, b)"
        "  else walk(nodes, next, steps - 1, a, b + k);"
        "function sums(pairs, at, steps, a) = if steps == 0 then a else"
        "  let x, next = pairs[at] in sums(pairs, next, steps - 1, a + x);"
        "nodes = {(float(i) / 3.0, rem(i * 7919, 1009), rem(i * 31 + 7, 600)) : i in [0:600]};"
        "pairs = {(i, rem(i * 17 + 5, 600)) : i in [0:600]};"
        "{walk(nodes, i, 20, 0.0, 0) : i in [0:600]}; {walk(nodes, i, 5, 0.0, 0) : i in [3, 5]};"
        "{sums(pairs, i, 9, 0) : i in [0:600]}; {sums(pairs, i * 2, 9, 0) : i in [0:400]};",
        options);
    EXPECT_FALSE(outcomes.empty());
    for (const FormOutcome& outcome : outcomes)
      EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
  }
}

TEST(CudaPrograms, Quicksort) {
  expectAgreement(
      "function qs(a) = if #a < 2 then a else let p = a[#a/2]; l = {e in a | e < p}; q = {e in a | e == p};"
      "  g = {e in a | e > p}; r = {qs(v) : v in [l, g]} in r[0] ++ q ++ r[1];"
      "qs([3,1,4,1,5,9,2,6,5,3,5]);");
}

// One kernel with two filters, of which one needs the scan beside the other: survivors of both are collected
// in the same shared memory.
TEST(CudaPrograms, FiltersBesideAndBehindAScan) {
  expectAgreement(
      "let xs = {rem(i * 7919, 1009) : i in [0:5000]}; sums = plus_scan(xs)"
      "  in ({x > 500 : x in xs | rem(x, 3) == 1}, {s : s in sums | rem(s, 7) < 3});");
}

TEST(CudaPrograms, LaunchesAreTimed) {
  RunnerOptions options;
  options.target = [] {
    return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<tests::EmulatedDevice>(7));
  };
  const std::vector<FormOutcome> outcomes = runProgram(
      "xs = {float(i) : i in [0:3000]}; let ys = {x in xs | x > 99.5} in (plus_scan(ys), sum(xs));", options);
  ASSERT_EQ(outcomes.size(), 2u);
  for (const FormOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.difference, "");
    ASSERT_FALSE(outcome.targetStatistics.kernels.empty());
    for (const runtime::KernelStatistics& kernel : outcome.targetStatistics.kernels) {
      EXPECT_EQ(kernel.evaluated, 0u);
      EXPECT_GT(kernel.seconds, 0) << kernel.name;
    }
  }
  EXPECT_EQ(outcomes[0].targetStatistics.kernels[0].work.bytesWritten, 3000u * 8);
}

/// A loop of the host that goes through an array waits for many elements at once; also through a short one
/// (offsets).
TEST(CudaPrograms, TheHostReadsWhatIsAroundAnElement) {
  RunnerOptions options;
  options.target = [] {
    return std::make_unique<runtime::cuda::CudaTarget>(std::make_unique<tests::EmulatedDevice>(7));
  };
  const std::vector<FormOutcome> outcomes = runProgram(
      "function most(v, i, best) = if i == #v then best else most(v, i + 1, max(best, v[i]));"
      "most({rem(i * 7919, 20011) : i in [0:20000]}, 0, 0);"
      "function walk(next, i, steps) = if steps == 0 then i else walk(next, next[i], steps - 1);"
      "walk({rem(i * 7919 + 1, 20011) : i in [0:20011]}, 0, 30000);"
      "function lengths(v, i, k) = if i == #v then k else lengths(v, i + 1, rem(k * 31 + #v[i], 1009));"
      "lengths({[0:rem(i, 5)] : i in [0:5000]}, 0, 0);"
      "most([3], 0, 0) + most([] int, 0, 0);",
      options);
  ASSERT_FALSE(outcomes.empty());
  for (const FormOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.difference, "") << outcome.lcu;
    EXPECT_LE(outcome.targetStatistics.synchronisations, 60u) << outcome.lcu;
  }
}

TEST(CudaPrograms, ScalarRecursion) {
  expectAgreement(
      "function ways(n) = if n < 2 then 1 else ways(n-1) + ways(n-2); {ways(n) : n in [0,1,5,12]};"
      "function ack(m, n) = if m == 0 then n+1 else if n == 0 then ack(m-1, 1) else ack(m-1, ack(m, n-1));"
      "sum({ack(m, n) : m in [0,1,2,2]; n in [3,3,3,7]});"
      "function odd(n) : int -> bool; function even(n) = if n == 0 then t else odd(n-1); function odd(n) : "
      "int -> bool = if n == 0 then f else even(n-1);"
      "{x in [4,7,10,1] | even(x)};"
      "function bad(n) = if n == 0 then 0 else bad(n-1) + 6 / (n - 2); {bad(n) : n in [1,0,5]};");
}

/// Frames of several values of all types; calls that are the last need none, however many they are.
TEST(CudaPrograms, RecursionInFrames) {
  expectAgreement(
      "function area(a, b, fa, fb, d) = let m = (a + b) / 2.0; fm = 1.0 / (1.0 + m * m);"
      "  whole = (fa + fb) * (b - a) / 2.0; parts = (fa + 2.0 * fm + fb) * (b - a) / 4.0"
      "  in if d == 0 or max(whole - parts, parts - whole) < 1e-5 then parts"
      "  else area(a, m, fa, fm, d - 1) + area(m, b, fm, fb, d - 1);"
      "{area(0.0, x, 1.0, 1.0 / (1.0 + x * x), 8) : x in [1.0, 2.0, 10.0]};"
      "function hanoi(n, a, b, c) = if n == 0 then (0, `-, t) else let (k, m, even) = hanoi(n - 1, a, c, b);"
      "  (l, o, e) = hanoi(n - 1, c, b, a) in (k + l + 1, (if even then a else o), not(e));"
      "{hanoi(n, `a, `b, `c) : n in [0, 1, 2, 3, 7]};"
      "function divisors(n, k, best) = if k * k > n then best"
      "  else if rem(n, k) == 0 then divisors(n, k + 1, max(best, 1 + divisors(n / k, 2, 0)))"
      "  else divisors(n, k + 1, best);"
      "{divisors(n, 2, 0) : n in [100000007, 1, 2, 12, 64, 97, 360, 1024]};"
      "function tak(x, y, z) = if y < x then tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y)) else "
      "z;"
      "{tak(rem(i, 9), rem(i, 7), rem(i, 4)) : i in [0:600]};"
      "function bad(a, n) = if n < 2 then a[n] / a[n + 1] else bad(a, n - 1) + bad(a, n - 2);"
      "{bad(w, n) : n in [5, 1]; w in [[1, 2, 3], [6, 2, 1]]};"
      "{bad(w, n) : n in [5, 1]; w in [[1, 2, 3], [6, 2, 0]]};");
}

/// Calls that go on from what there is so far, and some that must not: what they give is used otherwise, too,
/// or not used.
TEST(CudaPrograms, RecursionThatAccumulates) {
  expectAgreement(
      "function fill(c, l, r, free, all) = if free == 0 then 0 else let b = free and (0 - free);"
      "  d = c or b; m = 2 * (l or b) and all; s = rshift(r or b, 1)"
      "  in (if d == all then 1 else fill(d, m, s, all and not(d or m or s), all)) + fill(c, l, r, free - b, "
      "all);"
      "{fill(0, 0, 0, lshift(1, n) - 1, lshift(1, n) - 1) : n in [1, 4, 5, 6, 7]};"
      "function three(n) = if n < 3 then n + 1 else three(n - 1) + three(n - 2) + three(n - 3);"
      "{three(n) : n in [0:14]};"
      "function two(n) = if n < 2 then (n, n) else let (a, b) = two(n - 1); (c, d) = two(n - 2)"
      "  in a + c + 1, max(b, d + 1);"
      "{two(n) : n in [0:12]};"
      "function mixed(n) = if n < 2 then (n, 1) else let (a, b) = mixed(n - 1); (c, d) = mixed(n - 2)"
      "  in (if b > 5 then a else 3) + c, b + d;"
      "{mixed(n) : n in [0:12]};"
      "function crossed(n) = if n < 2 then (n, 1) else let (a, b) = crossed(n - 1); (c, d) = crossed(n - 2)"
      "  in b + c, a + d;"
      "{crossed(n) : n in [0:12]};"
      "function twice(n) = if n < 2 then 1 else let a = twice(n - 1) in a + (if rem(n, 3) == 0 then a else "
      "0) + "
      "twice(n - 2);"
      "{twice(n) : n in [0:12]};"
      "function parity_of(n) = if n < 2 then n == 1 else let a = parity_of(n - 1) in a xor not(parity_of(n - "
      "3));"
      "{parity_of(n) : n in [0:14]};"
      "function looped(n) = if n < 2 then 1 else"
      "  let a = (if rem(n, 4) == 1 then 2 * looped(n - 2) else if rem(n, 4) == 2 then looped(n - 1) else 7)"
      "  in a + looped(n / 2);"
      "{looped(n) : n in [0:40]};");
}

/// Functions of different types that call each other are recursions inside of each other: these call
/// functions.
TEST(CudaPrograms, RecursionsInsideOfEachOther) {
  expectAgreement(
      "function weight(n, k) : (int, int) -> float; function size(n) : int -> int;"
      "function weight(n, k) : (int, int) -> float = if n <= 0 then 0.5"
      "  else weight(n - 1, k) * 0.5 + float(size(n - 2)) + weight(n - 2, k + 1);"
      "function size(n) : int -> int = if n <= 0 then 1 else size(n - 1) + trunc(weight(n - 3, n)) + size(n "
      "- 2);"
      "{size(n) : n in [0:9]}; {weight(n, 1) : n in [0:7]};");
}

/// Loops instead of stacks (flatten/linear_recursion.h).
TEST(CudaPrograms, LinearRecursion) {
  expectAgreement(
      "function ones(x) = if x == 0 then 0 else 1 + ones(x and (x - 1)); sum({ones(i * 7919) : i in "
      "[0:3000]});"
      "function power(x, n) = if n == 0 then 1.0 else x * power(x, n - 1);"
      "{power(1.0 + float(i) / 9.0, rem(i, 7)) : i in [0:600]};"
      "function total(v, i) = if i == #v then 0 else v[i] + total(v, i + 1);"
      "{total([3, 1, 4, 1, 5], i) : i in [0:6]}; {total([3, 1, 4, 1, 5], i) : i in [5, 6]};");
}

/// Some leave nothing but marks behind, and take rows one after the other; others keep what they computed.
TEST(CudaPrograms, FiltersWithLongLoops) {
  const std::string matches =
      "function matches(v, i, j, k) ="
      "  if k == 0 then t else if rem(v[i] * 3 + v[j] + k, 5) > 3 then f else matches(v, i + 1, j - 1, k - "
      "1);"
      "function weight(v, i, k, w) = if k == 0 then w else weight(v, i + 1, k - 1, w * 3 + rem(v[i] xor k, "
      "7));"
      "function found(n, k) = let v = {rem(i * 7919, 4) : i in [0:n]} in"
      "  {i in [0:n - 20] | matches(v, i, i + 15, k)},"
      "  {weight(v, i, 5, x) : i in [0:n - 20]; x in drop(v, 20) | matches(v, i, i + x, k)};";
  expectAgreement(matches + "found(5000, 5); found(21, 3); found(20, 1); found(700, 20); found(700, 30);");
}

/// Rows and columns of every shape: threads with segments of their own, blocks that share some, several
/// blocks for one; empty ones.
TEST(CudaPrograms, RowsOfRegularSpaces) {
  const std::string shapes =
      "function sums(m, n) ="
      "  let xs = {rem(i * 7919, 1009) : i in [0:m]}; ys = {rem(i * 104729, 997) : i in [0:n]}"
      "  in {(sum({abs(x - y) : y in ys}), max_val({x xor y : y in ys}),"
      "       sum({if rem(y, 8) == k then float(y) else 0.5 : y in ys}) + float(x), any({x == y : y in ys}))"
      "      : x in xs; k in [0:m]};";
  for (const char* shape :
       {"0, 5", "5, 0", "1, 1", "3, 1000", "2, 40000", "2000, 3", "9, 257", "700, 300", "13, 3000"})
    expectAgreement(shapes + "sums(" + shape + ");");
  expectAgreement(
      "function rows(m, n) = {sum({100 / (x - y) : y in [0:n]}) : x in [7:7 + m]}; rows(2, 5); rows(3, "
      "9000); rows(9, 3000); rows(6, 7);");
}

/// Columns of matrices of every shape, folded and mapped: few, many, long and short ones; products; sums of
/// windows; values of two orders at once; errors.
TEST(CudaPrograms, ColumnsOfMatrices) {
  const std::string shapes =
      "function matrix(m, n) = {{rem(i * 7919 + j * 104729, 1009) : j in [0:n]} : i in [0:m]};"
      "function columns(m, n) ="
      "  let a = matrix(m, n); v = {rem(i, 7) : i in [0:m]}"
      "  in ({(sum({a[i][j] : i in [0:m]}), max_val({a[i][j] xor x : i in [0:m]; x in v}),"
      "        sum({if rem(a[i][j], 8) == 3 then float(i) else 0.5 : i in [0:m]}),"
      "        any({a[i][j] == 1008 : i in [0:m]})) : j in [0:n]},"
      "      {{a[i][j] : i in [0:m]} : j in [0:n]}, transpose(a), {sum(c) : c in transpose(a)},"
      "      {{(a[i][j] + k, float(x) / 2.0, x > 500) : i in [0:m]; x in v} : j in [0:n]; k in [0:n]});"
      "function apart(m, n) = let a = matrix(m, n) in {{(x, a[i][j]) : i in [0:m]; x in c} : j in [0:n]; c "
      "in transpose(a)};"
      "function folded(m, n) = let a = matrix(m, n) in {(sum(c), max_val(c)) : c in transpose(a)};";
  for (const char* shape : {"0, 5", "5, 0", "1, 1", "1, 300", "300, 1", "1000, 3", "40, 33", "9, 257",
                            "130, 64", "2100, 40", "40, 2100", "5000, 2"})
    expectAgreement(shapes + "columns(" + shape + ");");
  for (const char* shape : {"0, 5", "70, 33", "9, 257", "2100, 40"})
    expectAgreement(shapes + "apart(" + shape + "); folded(" + shape + ");");
  expectAgreement(
      "a = {{float(rem(i * 7 + j * 13, 16)) : j in [0:40]} : i in [0:30]};"
      "b = {{float(rem(i * 5 + j * 3, 16)) : j in [0:50]} : i in [0:40]};"
      "{{sum({a[i][k] * b[k][j] : k in [0:40]}) : j in [0:50]} : i in [0:30]};"
      "{sum({b[i + k][7] : k in [0:9]}) : i in [0:30]}; v = {rem(i * i, 31) : i in [0:700]};"
      "{sum({v[i + k] : k in [0:90]}) : i in [0:600]};"
      "{sum({100 / (v[i + k] - 30) : k in [0:90]}) : i in [0:600]};"
      "{{b[i][j + 1] : i in [0:40]} : j in [0:50]}; {{100 / (v[i * 3 + j] - 31) : i in [0:40]} : j in "
      "[0:50]};"
      "{{100 / (v[i * 3 + j] - 28) : i in [0:40]} : j in [0:50]};");
}
/// Products: threads have several rows and one column.
TEST(CudaPrograms, ProductsOfMatrices) {
  const std::string product =
      "m = {{float(rem(i * 7 + j * 13, 16)) : j in [0:depth]} : i in [0:rows]};"
      "n = {{float(rem(i * 5 + j * 3, 16)) : j in [0:columns]} : i in [0:depth]};"
      "{{sum({m[i][k] * n[k][j] : k in [0:depth]}) : j in [0:columns]} : i in [0:rows]};"
      "{{(max_val({m[i][k] + n[k][j] : k in [0:depth]}), sum({60.0 / (n[k][j] - 15.0) : k in [0:depth]}))"
      "  : j in [0:columns]} : i in [0:rows]};"
      "{{sum({m[i][k] * n[k][j] : k in [0:depth]}) + float(j) : j in [0:columns + 1]} : i in [0:rows]};";
  for (const auto& [rows, depth, columns] : std::vector<std::array<int, 3>>{{1, 1, 1},
                                                                            {3, 100, 200},
                                                                            {100, 33, 7},
                                                                            {70, 5, 64},
                                                                            {0, 3, 4},
                                                                            {4, 0, 3},
                                                                            {9, 40, 0},
                                                                            {17, 700, 33}})
    expectAgreement("rows = " + std::to_string(rows) + "; depth = " + std::to_string(depth) +
                    "; columns = " + std::to_string(columns) + "; " + product);
}
/// By tiles (segment_products.cuh), if they are large: rows by columns and rows by rows, of floats, integers
/// and truth values, several folds at once, with what belongs to a segment, an index or a position, and
/// chunks of long sums; tiles of which half of the rows, of the columns, or of both suffice.
TEST(CudaPrograms, ProductsByTiles) {
  const std::string products =
      "m = {{float(rem(i * 7 + j * 13, 16)) : j in [0:depth]} : i in [0:rows]};"
      "w = {{float(rem(i * 5 + j * 3, 16)) : j in [0:depth]} : i in [0:columns]};"
      "{{sum({x * y : x in a; y in b}) : b in w} : a in m};"
      "tw = transpose(w); {{sum({m[i][k] * tw[k][j] : k in [0:depth]}) : j in [0:columns]} : i in [0:rows]};"
      "{{sum({x * y : x in a; y in b}) : b in transpose(tw)} : a in transpose(transpose(m))};"
      "{{(min_val({x + y : x in a; y in b}), sum({(x - y) * (x - y) : x in a; y in b})) : b in w} : a in m};"
      "{{any({x > y : x in a; y in b}) : b in w} : a in m};"
      "weights = {float(k) : k in [0:depth]};"
      "{{sum({round(x) * round(y) + k * i - j : x in a; y in b; k in index(depth)}) + j : b in w; j in"
      " index(columns)} : a in m; i in index(rows)};"
      "{{sum({weights[k] * x * y : x in a; y in b; k in index(depth)}) : b in w} : a in m};"
      "{{sum({if x > y then x - y else 0.5 : x in a; y in b}) : b in w} : a in m};";
  for (const auto& [rows, depth, columns] : std::vector<std::array<int, 3>>{
           {24, 16, 24}, {16, 100, 17}, {70, 33, 65}, {30, 1000, 129}, {128, 64, 64}, {15, 40, 40}})
    expectAgreement("rows = " + std::to_string(rows) + "; depth = " + std::to_string(depth) +
                    "; columns = " + std::to_string(columns) + "; " + products);
}
/// Of short rows: threads have several segments each, and the lanes of a warp that places leave over further
/// outer indices (segment_shorts.cuh).
TEST(CudaPrograms, ProductsOfShortRows) {
  const std::string products =
      "m = {{float(rem(i * 7 + j * 13, 16)) : j in [0:depth]} : i in [0:rows]};"
      "w = {{float(rem(i * 5 + j * 3, 16)) : j in [0:depth]} : i in [0:columns]};"
      "{{sum({x * y : x in a; y in b}) + float(j) : b in w; j in index(columns)} : a in m};"
      "{{(min_val({x + y : x in a; y in b}), sum({(x - y) * (x - y) : x in a; y in b})) : b in w} : a in m};"
      "tw = transpose(w); {{sum({m[i][k] * tw[k][j] : k in [0:depth]}) : j in [0:columns]} : i in [0:rows]};";
  for (const auto& [rows, depth, columns] : std::vector<std::array<int, 3>>{
           {300, 3, 12}, {100, 5, 2}, {1000, 2, 1}, {3, 7, 300}, {65, 1, 33}, {200, 32, 5}, {41, 4, 7}})
    expectAgreement("rows = " + std::to_string(rows) + "; depth = " + std::to_string(depth) +
                    "; columns = " + std::to_string(columns) + "; " + products);
}
/// Variables are named as the program names them, but not as generated code names its own.
TEST(CudaPrograms, VariablesWithNamesOfGeneratedCode) {
  std::string program, sum = "0.0";
  for (const std::string name :
       {"product", "depth",  "places", "fold",   "keep",  "column", "tile0", "value1", "fetched0", "item",
        "part",    "rows",   "row",    "length", "first", "at",     "own",   "number", "result",   "reduce",
        "segment", "before", "after",  "group",  "lane",  "inner",  "outer", "columns"}) {
    program += name + " = {float(" + std::to_string(name.size()) + " * i) : i in [0:40]}; ";
    sum += " + " + name + "[k]";
  }
  program +=
      "m = {{float(rem(i * 7 + j, 10)) : j in [0:40]} : i in [0:40]};"
      "{{sum({m[i][k] * m[k][j] + " +
      sum +
      " : k in [0:40]}) : j in [0:40]} : i in [0:40]};"
      "{{sum({x * y : x in a; y in b}) : b in transpose(m)} : a in m};"
      "{sum({m[k][j] * (" +
      sum +
      ") : k in [0:40]}) : j in [0:40]};"
      "{{m[k][j] + " +
      sum + " : k in [0:40]} : j in [0:40]};";
  expectAgreement(program);
}
TEST(CudaPrograms, VariablesWithNamesOfScansKeysAndRecursions) {
  const std::string names = "next whole fine frames own1 scan1 keep1 keeps1 states1 rank1 at1 before after";
  std::string program, sum = "0";
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = names.find(' ', begin);
    const std::string name = names.substr(begin, end - begin);
    program += fmt::format("{} = {{rem(i * {}, 23) : i in [0:300]}};\n", name, begin + 3);
    sum += " + " + name + "[i]";
  }
  program += fmt::format(R"(
function fib(n) = if n < 2 then n else fib(n - 1) + fib(n - 2);
rows = {{[0:rem(i * 7, 12)] : i in [0:300]}};
plus_scan({{{0} : i in [0:300]}});
{{{0} : i in [0:300] | rem({0}, 3) == 0}};
let s = plus_scan({{{0} : i in [0:300]}}) in {{x + {0} : x in s; i in [0:300] | rem(x, 2) == 0}};
{{sum({{x * ({0}) : x in row}}) : row in rows; i in [0:300]}};
{{plus_scan({{x + {0} : x in row}}) : row in rows; i in [0:300]}};
{{{{x + {0} : x in row | x > {0}}} : row in rows; i in [0:300]}};
{{sum({{if next[i] == s then {0} else 0 : i in [0:300]}}) : s in [0:8]}};
{{fib(rem({0}, 9)) + {0} : i in [0:300]}};
)",
                         sum);
  expectAgreement(program);
}
/// The place of the first of equal extremes of a column.
/// Of what tiles keep of their segments, too.
TEST(CudaPrograms, VariablesWithNamesOfSegmentValues) {
  for (const std::string name : {"load", "store", "place", "segment", "values", "value1", "kept"})
    expectAgreement(fmt::format("rows = {{{{rem(i * j, 7) : j in [0:rem(i, 9)]}} : i in [0:300]}};"
                                "({0}) = {{rem(i, 5) : i in [0:300]}}; others = {{i : i in [0:300]}};"
                                "{{plus_scan({{x * w : x in r}}) : r in rows; w in ({0})}};"
                                "{{max_scan({{x * w + v : x in r}}) : r in rows; w in ({0}); v in others}};",
                                name),
                    true);
}

TEST(CudaPrograms, PlacesOfExtremesInColumns) {
  const std::string places =
      "function places(m, n) ="
      "  let a = {{rem((i + 1) * 7919 + j * 31, 13) : j in [0:n]} : i in [0:m]}"
      "  in {(min_index({a[i][j] : i in [0:m]}), max_index({float(a[i][j]) : i in [0:m]}),"
      "       let v = {a[i][j] : i in [0:m]} in (min_val(v), max_index(v))) : j in [0:n]};";
  for (const char* shape : {"5, 0", "1, 1", "3, 1000", "2, 4000", "2000, 3", "9, 257", "3000, 40"})
    expectAgreement(places + "places(" + shape + ");");
}

/// Elements whose keys tell their segments: few segments, of which a table has several places each; more than
/// a block has; few and many chunks of positions; crowds, keys that no segment has, none at all. Errors are
/// those of all elements.
TEST(CudaPrograms, SegmentsOfKeys) {
  const std::string tables =
      "function tables(n, k, spread) ="
      "  let keys = {rem(i * 7919 + i / 7, spread) - 1 : i in [0:n]}; xs = {float(i) / 8.0 : i in [0:n]};"
      "      rows = {{rem(i * c, 11) : i in [0:n]} : c in [0:k]}"
      "  in ({let count = max(1, sum({btoi(c == at) : c in keys}))"
      "       in sum({if c == at then x else 0.0 : c in keys; x in xs}) / float(count) : at in [0:k]},"
      "      {sum({x : x in xs; c in keys | c == at + 2 and x > 5.0}) : at in [0:k]},"
      "      {(max_val({if at == c then c * 3 + at else min_int : c in keys}),"
      "        any({c == at and x > 9.0 : c in keys; x in xs})) : at in [0:k]},"
      "      {sum({if c == at then a else 0 : c in keys; a in row}) : at in [0:k]; row in rows},"
      "      {sum({x : x in xs; i in [0:n] | rem(i, 40) / 3 == at}) : at in [0:k]});";
  for (const char* sizes : {"0, 5, 5", "5, 0, 5", "40, 3, 3", "9000, 7, 2", "5000, 40, 60", "700, 600, 500",
                            "3000, 70, 90", "3000, 150, 40", "30000, 30, 30"})
    expectAgreement(tables + "tables(" + sizes + ");");
  expectAgreement(
      "xs = {i * 5 : i in [0:900]}; ks = {rem(x, 7) : x in xs};"
      "{(#{k in ks | k == c + 1}, sum({float(x) : x in xs; k in ks | k == c + 1})) : c in [0:9]};");
  expectAgreement(
      "function shares(m, n) = {sum({if rem(i, 9) == c then 100 / (i - 4003) else 0 : i in [0:n]}) : c in "
      "[0:m]};"
      "shares(9, 4000); shares(7, 5000); shares(9, 5000); shares(2, 4003);"
      "function quotients(m, n) = {sum({if 60 / (i - 7) == c then 1 else 0 : i in [0:n]}) : c in [0:m]};"
      "quotients(4, 7); quotients(0, 9); quotients(4, 9); quotients(4, 3000);");
}

/// Segments fold what scans of the same kernel make, and maps that do not leave it; errors of these are those
/// of one evaluation.
TEST(CudaPrograms, FoldsOfScans) {
  const std::string walks =
      "function walk(v, d) ="
      "  let steps = {60 / (x - d) : x in v}; at = plus_scan(steps); far = {a * a : a in at}"
      "  in (max_val(at), min_val(far), sum({s * s : s in steps}), sum({a + s : a in at; s in steps}));"
      "function walks(m, n, d) = {walk({rem(i * 31 + j * 17, 13) : j in [0:1 + rem(i * n, 97)]}, d) : i in "
      "[0:m]};";
  for (const char* size : {"0, 5, -1", "1, 0, -1", "3, 1000, 20", "700, 7, -1", "700, 7, 5", "90, 1, 3"})
    expectAgreement(walks + "walks(" + size + ");");
}

/// Maps over the segments that what finishes these reads, stored and not; sums that were finished before.
TEST(CudaPrograms, WhatFinishesSegments) {
  const std::string study =
      "function study(groups) ="
      "  let n = {#g * 3 - 7 : g in groups}; s = {sum(g) : g in groups};"
      "      d = {sum({(x - m) * (x - m) : x in g}) : g in groups; m in s}"
      "  in (n, {s / n : s in s; n in n}, {d + s * 2 : d in d; s in s});"
      "function groups(m, k) = {{rem(i * 31 + j * 17, 13) : j in [0:rem(i * k, 9)]} : i in [0:m]};"
      "function rows(m, k) = {{rem(i * 31 + j * 17, 13) : j in [0:k]} : i in [0:m]};";
  for (const char* data :
       {"groups(0, 1)", "groups(1, 5)", "groups(300, 7)", "rows(40, 5)", "rows(3, 900)", "rows(9, 0)"})
    expectAgreement(study + "study(" + data + ");");
}

/// Where the least and the greatest element of each row is: the first of equal ones, also of those that no
/// other is worse than; nothing equals what is not a number.
TEST(CudaPrograms, PlacesOfExtremesInRows) {
  const std::string places =
      "function places(m, n) ="
      "  let xs = {rem(i * 7919, 13) : i in [0:m]}; ys = {rem(i * 104729, 11) : i in [0:n]};"
      "      none = 1.0e300 * 1.0e300"
      "  in {(min_index({x xor y : y in ys}), max_index({float(x - y) : y in ys}),"
      "       min_index({none - float(x * y) : y in ys}), max_index({float(y) - none * float(x) : y in ys}),"
      "       min_index({max_int : y in ys}), max_index({min_int : y in ys}),"
      "       let v = {abs(x - y) : y in ys} in (min_val(v), min_index(v))) : x in xs};";
  for (const char* shape : {"0, 5", "5, 0", "1, 1", "3, 1000", "2, 40000", "2000, 3", "9, 257", "700, 300"})
    expectAgreement(places + "places(" + shape + ");");
}

/// The same of segments that are stored, of all lengths: positions are those in the segment, whatever other
/// folds share the pass, and also if another thunk needs them.
TEST(CudaPrograms, PlacesOfExtremesInSegments) {
  const std::string folds =
      "none = 1.0e300 * 1.0e300;"
      "{max_index(v) : v in vs}; {(min_index(v), max_val(v)) : v in vs};"
      "{let at = max_index(v) in (v[at], at, sum(v)) : v in vs};"
      "{(max_index({float(x) : x in v}), min_index({float(x) : x in v}), #v) : v in vs};"
      "{min_index({max_int : x in v}) : v in vs}; {max_index({-none : x in v}) : v in vs};"
      "{max_index({if x > 6 then none - none else float(x) : x in v}) : v in vs};"
      "{(min_index(v), sum({x * i : x in v; i in [0:#v]})) : v in vs};";
  for (const char* rows :
       {"[j in [0:rem(i * 7, 97) + 1]] : i in [0:300]", "[j in [0:500]] : i in [0:20]",
        "[j in [0:1]] : i in [0:70]", "[j in [0:n]] : i in [0:5]; n in [1, 9000, 3, 4000, 300]"}) {
    std::string each = rows;
    each.replace(0, 1, "{rem(i * 7919 + j * 31, 7) : ").replace(each.find("]] :") + 1, 1, "}");
    expectAgreement("vs = {" + each + "};" + folds);
  }
}

/// Nothing equals what is not a number: a segment of those has no greatest element, however its elements are
/// shared out among threads.
TEST(CudaPrograms, SegmentsOfNoNumbersHaveNoExtremes) {
  expectAgreement(
      "nothing = 1.0e300 * 1.0e300 - 1.0e300 * 1.0e300;"
      "vs = {{nothing : j in [0:rem(i * i, 97) + 1]} : i in [0:400]};"
      "{max_index(v) : v in vs}; {min_index(v) : v in vs};");
}

/// What is read by position is bytes.
TEST(CudaPrograms, RowsOfBytes) {
  const std::string shapes =
      "function counts(m, n) ="
      "  let text = {code_char(97 + rem(i * 7919, 26)) : i in [0:n]}; flags = {rem(i, 3) == 1 : i in [0:n]}"
      "  in {(count({c == code_char(97 + k) : c in text}),"
      "       sum({if g then char_code(c) + k else 0 : c in text; g in flags}),"
      "       sum({if g and c < code_char(97 + k) then 3 else -2 : c in text; g in flags}),"
      "       max_val({char_code(c) xor k : c in text}),"
      "       any({g and char_code(c) == 97 + k : c in text; g in flags})) : k in [0:m]};";
  for (const char* shape :
       {"0, 5", "4, 15", "1, 16", "3, 1000", "2, 40001", "2000, 33", "9, 257", "700, 300"})
    expectAgreement(shapes + "counts(" + shape + ");");
  expectAgreement(
      "let text = {code_char(97 + rem(i, 26)) : i in [0:5003]}"
      "  in {count({c == code_char(250 + k) : c in text}) : k in [0:9]};");
}

/// Bytes in flat spaces: whole tiles and the ends of arrays, survivors that begin anywhere, scans that are
/// wider than what they read.
TEST(CudaPrograms, FlatKernelsOfBytes) {
  for (const char* n : {"0", "1", "15", "4097", "8192", "20011"})
    expectAgreement(
        std::string("n = ") + n +
        "; text = {code_char(97 + rem(i * 7919 + i / 100, 26)) : i in [0:n]};"
        "{if c == `e then `E else c : c in text}; {c < `k : c in text}; {char_code(c) : c in text};"
        "{i in [0:n]; c in text | c == `q}; {c in text | c < `k}; {c < `e : c in text | c /= `b};"
        "max_scan({if c == `a then i else 0 : c in text; i in [0:n]});"
        "plus_scan({if c < `c then 1 else 0 : c in text}); or_scan({c == `x : c in text});"
        "sum({if c == `a then 16777216 else -16777216 : c in text}); sum({char_code(c) : c in text});"
        "count({c == `e and rem(i, 2) == 0 : c in text; i in [0:n]});"
        "{i in [1:max(n, 1)] | text[i] /= text[i - 1]}; all({c >= `a : c in text});"
        "{(c, float(i)) : c in text; i in [0:n] | c > `t};");
}

/// The same where survivors are counted by segment.
TEST(CudaPrograms, SegmentedKernelsOfBytes) {
  for (const char* n : {"0", "1", "4097", "20011"})
    expectAgreement(std::string("n = ") + n +
                    "; words = {{code_char(97 + rem(i * j * 7919, 26)) : j in [0:rem(i, 9)]} : i in [0:n/4]};"
                    "{{c in w | c < `k} : w in words}; {count({c == `e : c in w}) : w in words};"
                    "{plus_scan({char_code(c) : c in w}) : w in words}; {{c < `k : c in w} : w in words};");
}

/// The number of an element's segment is reckoned where segments are equally long: shorter than tiles,
/// longer, and as long, with and without a part of one at the end. (codegen/cuda/regular_numbers.cuh)
TEST(CudaPrograms, NumbersOfEqualSegments) {
  for (int length : {1, 3, 750, 4096, 9000})
    expectAgreement(fmt::format(
        "xs = {{float(rem(i * 7, 23)) : i in [0:{1}]}}; ks = {{rem(i * 5, 9) - 3 : i in [0:{1}]}};"
        "{{{{x * float(j) : j in [0:{0}]}} : x in xs}};"
        "{{plus_scan({{k * j : j in [0:{0}]}}) : k in ks}}; {{max_scan({{rem(k * j, 11) : j in [0:{0}]}}) : "
        "k in ks}};"
        "let m = {{{{rem(j * 3 + k, 7) : j in [0:{0}]}} : k in ks}} in"
        "  ({{{{v in row | v > k}} : row in m; k in ks}}, plus_scan({{v + 1 : v in flatten(m)}}), {{rem(v, "
        "2) == 0 : v in "
        "flatten(m)}});"
        "let a = flatten({{{{k : j in [0:{0}]}} : k in ks}}) in plus_scan(a), #{{k in a | k > 0}};",
        length, 13000 / length + 2));
}

/// Elements beside a map's last one are computed, too, as if they were that one: their errors do not count.
TEST(CudaPrograms, ErrorsOfFloatsAtTheEnds) {
  for (const char* bad : {"0", "1", "4097", "5001", "5002", "5003", "5004", "-1"})
    expectAgreement(
        std::string("n = 5003; bad = ") + bad +
        "; xs = {float(i - bad) : i in [0:n]}; {1.0 / x : x in xs}; {sqrt(float(bad) - x) : x in xs};"
        "{sqrt(x * x) / (abs(x) + 1.0) : x in xs}; {if x == 0.0 then 7.0 else 2.0 / x : x in xs};");
}

/// Loops that end by a value which was checked end where the check fails, too.
TEST(CudaPrograms, LoopsEndWhereACheckedFloatIsWrong) {
  expectAgreement(
      "function halve(y, k) = if y < 0.01 then k else halve(y / 2.0, k + 1);"
      "function grow(y, k) = if y > 100.0 then k else grow(y * 2.0, k + 1);"
      "function down(n, k) = if n <= 0 then k else down(n - 1, k + 1);"
      "let a = {1.0 / x : x in [1.0, 2.0, 0.0, 3.0]} in a, {halve(y, 0) : y in a};"
      "let a = {sqrt(x) : x in [1.0, 2.0, -4.0, 3.0]} in a, {grow(y + 1.0, 0) : y in a};"
      "let a = {sqrt(x) : x in [1.0, 2.0, -4.0, 3.0]} in a, {y in a | grow(y + 1.0, 0) > 3};"
      "let a = {trunc(x) : x in [3.0, 2.0, 1e30, 3.0]} in a, {down(y, 0) : y in a};");
}

/// Floats of twice the digits, whose small parts no compiler may take for zero.
TEST(CudaPrograms, NumbersFromText) {
  expectAgreement(
      "words = [\"0.1\", \"-2.5e1\", \"1.7976931348623157e308\", \"6.02214076e23\", \"1e-400\", \"0e400\", "
      "\"x\"];"
      "{parse_float(w) : w in words}; {isqrt(x * x - 1) : x in [3037000499, 94906267, 1]};");
}

/// One call in several branches, of which each needs other values behind it, or none: frames hold what any of
/// them needs.
TEST(CudaPrograms, CallsThatBranchesShare) {
  expectAgreement(
      "function g(k, n, v) = if n <= 0 then v else if k == 0 then v - 1"
      " else if k == 1 then let w = g(2, n - 1, v + 1) in w * v"
      " else if k == 2 then let w = g(2, n - 1, v + 1) in w + 1"
      " else let w = g(1, n - 1, v + 2) in w - n;"
      "{g(rem(i, 4), 5, i) : i in [0:20]};"
      "function h(k, n, v) = if n <= 0 then v else if k == 1 then h(2, n - 1, v + 1)"
      " else if k == 2 then let w = h(2, n - 1, v + 1) in w * v + 1 else let w = h(1, n - 1, v + 2) in w - n;"
      "{h(rem(i, 4), 5, i) : i in [0:20]};"
      "function expr(s, i) : ([char], int) -> (int, int);"
      "function number(s, i, v) = if i >= #s then (v, i)"
      " else if digitp(s[i]) then number(s, i + 1, v * 10 + char_code(s[i]) - 48) else (v, i);"
      "function factor(s, i) = if s[i] == `( then let (v, j) = expr(s, i + 1) in (v, j + 1)"
      " else if s[i] == `- then let (v, j) = factor(s, i + 1) in (-v, j) else number(s, i, 0);"
      "function terms(s, i, v) : ([char], int, int) -> (int, int) = if i >= #s then (v, i)"
      " else if s[i] == `* then let (w, j) = factor(s, i + 1) in terms(s, j, v * w)"
      " else if s[i] == `/ then let (w, j) = factor(s, i + 1) in terms(s, j, v / w) else (v, i);"
      "function term(s, i) = let (v, j) = factor(s, i) in terms(s, j, v);"
      "function sums(s, i, v) : ([char], int, int) -> (int, int) = if i >= #s then (v, i)"
      " else if s[i] == `+ then let (w, j) = term(s, i + 1) in sums(s, j, v + w)"
      " else if s[i] == `- then let (w, j) = term(s, i + 1) in sums(s, j, v - w) else (v, i);"
      "function expr(s, i) = let (v, j) = term(s, i) in sums(s, j, v);"
      "{let (v, i) = expr(s, 0) in v : s in [\"1\", \"2*(3+4)\", \"((((5))))\", \"100/7/2\", "
      "\"2-3-4*(1-8)*2\", "
      "\"-(2-5)*-7\"]};");
}

/// Deeper than a thread's stack on the device: the host evaluates the launch.
TEST(CudaPrograms, DeepScalarRecursion) {
  expectAgreement(
      "function down(n) = if n == 0 then 0 else 1 + down(n-1);"
      "v = {down(n) : n in [10,20000,1,15000]}; v; plus_scan({down(n * 1000) : n in [0:20] | rem(n, 2) == "
      "0});"
      "function worse(a, n) = if n == 0 then a[0] / (a[1] - 7) else 1 + worse(a, n-1);"
      "{worse(w, n) : n in [10,9000,3]; w in [[1,2],[3,4],[5,6]]};"
      "{worse(w, n) : n in [10,9000,3]; w in [[1,2],[3,7],[5,6]]};");
}

TEST(CudaPrograms, IndexOutOfRange) { expectAgreement("{let v = [1,2,3] in v[i] : i in [0,1,3]};"); }

}  // namespace
}  // namespace kelpie::testing
