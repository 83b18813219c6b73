// Recursion in flattened programs: over sequences of one length, over halves, of scalars, in serial loops.
#include <gtest/gtest.h>

#include "agreement.h"

namespace kelpie::testing {
namespace {

TEST(FlattenRecursion, Functions) {
  expectAgreement(
      "function qs(a) = if #a < 2 then a else let p = a[#a/2]; l = {e in a | e < p}; q = {e in a | e == p};"
      "  g = {e in a | e > p}; r = {qs(v) : v in [l, g]} in r[0] ++ q ++ r[1];"
      "qs([3,1,4,1,5,9,2,6,5,3,5]); {qs(v) : v in [[3,1,2],[] int,[9,8]]};"
      "function fact(n) = if n == 0 then 1 else n * fact(n-1); fact(10); {fact(i) : i in [0:6]};"
      "function count_down(n, acc) = if n == 0 then acc else count_down(n-1, acc + n); count_down(100, 0);"
      "{count_down(i, 0) : i in [0:5]};"
      "function ff(n) = 1 + sum({ff(i) : i in [0:n]}); ff(3);"
      "function double(a, k) = if k == 0 then a else double(a ++ a, k - 1); double([1,2], 3);");
}

/// Functions with instances for sequences of one length, called with such and with others.
const char* const kEvenFunctions =
    "function mixed(v) = if #v < 2 then v else let h = #v / 2; l = take(v, h); g = take(drop(v, h), h)"
    "  in flatten({mixed(w) : w in [{a + b : a in l; b in g}, {a - b : a in l; b in g}]});"
    "function total(v) = if #v < 2 then sum(v) else let h = #v / 2"
    "  in sum({total(w) : w in [take(v, h), take(drop(v, h), h)]}) + (if oddp(#v) then v[#v-1] else 0);"
    "function kept(v) = if #v < 2 then v else let h = #v / 2"
    "  in flatten({{x in kept(w) | x > 0} : w in [take(v, h), take(drop(v, h), h)]});"
    "function grids(m, k) = if #m < 2 then {sum(r) + k : r in m} else let h = #m / 2"
    "  in flatten({grids(w, k + 1) : w in [take(m, h), take(drop(m, h), h)]});"
    "function strict(v) = if #v < 2 then {10 / x : x in v} else let h = #v / 2 in"
    "  flatten({strict(w) : w in [{a + b : a in take(v, h); b in drop(v, h)}, take(v, h)]});";

TEST(FlattenRecursion, RecursionOverSequencesOfOneLength) {
  RunnerOptions options;
  options.strategies = true;
  for (const char* form : {
           "mixed([1,2,3,4,5,6,7,8]);",
           "mixed([1,2,3,4,5,6,7]);",
           "{mixed(v) : v in [[1,2,3,4],[5,6,7,8]]};",
           "{mixed(v) : v in [[1,2,3,4],[5,6,7]]};",
           "{mixed(v) : v in {w in [[1, 2], [3, 4]] | #w > 5}};",
           "{mixed({i + k : i in [0:n]}) : n in [0, 1, 2, 3, 8]; k in [1:6]};",
           "{mixed({i * k : i in [0:8]}) : k in [1:4]};",
           "total([1,2,3,4,5]);",
           "{total({i * k : i in [0:9]}) : k in [1:4]};",
           "{total([0:k]) : k in [1:4]};",
           "kept([1,-2,3,-4,5,6,-7,8]);",
           "{kept({i - k : i in [0:8]}) : k in [1:4]};",
           "{kept([0:k]) : k in [1:4]};",
           "grids([[1,2],[3],drop([1],1),[4,5,6]], 3);",
           "{grids({[0:i] : i in [0:k]}, k) : k in [4, 4, 4]};",
           "{grids({[0:i] : i in [0:k]}, k) : k in [4, 5, 4]};",
           // errors: of checks that the host makes for all instances, of elements; of no instance none
           "{strict({i + k : i in [0:4]}) : k in [1:4]};",
           "{strict({i + k : i in [0:6]}) : k in [1:4]};",
           "{strict({i - k : i in [0:4]}) : k in [1:4]};",
           "{strict(v) : v in {w in [[1, 2], [3]] | #w > 5}};",
           "{{mixed({i + k : i in [0:j]}) : j in [2, 4]} : k in [0:3]};",
           "{{mixed({i + k : i in [0:4]}) : j in [0:k]} : k in [0:3]};",
           "let n = 4 in {if n > 3 then mixed({i + k : i in [0:n]}) else [k] : k in [0:3]};",
           "{if k > 1 then mixed([0:4]) else [k] : k in [0:4]};",
       }) {
    const FormOutcome outcome = runProgram(std::string(kEvenFunctions) + form, options).at(0);
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
    EXPECT_NE(outcome.lcu.find("_even("), std::string::npos) << outcome.text;
  }
}

/// Lengths that only the branch knows cannot be summed up before it.
TEST(FlattenRecursion, LengthsOfBranchesThatInvariantsDecide) {
  expectAgreement(
      "g = [1, 4, 5, 7];"
      "function sinking(v) = if #v == 0 then 0 else max_val(v) + sum({x - v[0] : x in v})"
      "  + sinking({x - 1 : x in v | x > v[0]});"
      "function dive(w, k) = if k > 2 then k"
      "  else sinking(let (a, b) = (if eql(g, g) then (g, k) else (w, k)) in a);"
      "{dive(x, 0) : x in [[1], [2]]}; {if oddp(#x) then dive(x, 0) else 1 : x in [[1], [2]]};"
      "{dive(x, k) : x in [[1], [2]]; k in [0, 1]};");
}

/// Halves of an even length have one length, those of an odd one differ: the host looks before it begins.
TEST(FlattenRecursion, RecursionOverHalves) {
  const std::string functions =
      "function reversed(v) = if #v < 2 then v else let r = {reversed(w) : w in bottop(v)} in r[1] ++ r[0];"
      "function walsh(v) = if #v == 1 then v else let r = {walsh(w) : w in bottop(v)}"
      "  in {x + y : x in r[0]; y in r[1]} ++ {x - y : x in r[0]; y in r[1]};"
      "function fourier(v, w) = if #v == 1 then v else"
      "  let r = {fourier(u, even_elts(w)) : u in [even_elts(v), odd_elts(v)]}; o = {x * y : x in r[1]; y in "
      "w}"
      "  in {x + y : x in r[0]; y in o} ++ {x - y : x in r[0]; y in o};"
      "function least(v) = if #v == 1 then v[0] else let r = {least(w) : w in bottop(v)} in min(r[0], r[1]);"
      // the lengths of what another such function gives
      "function sorted(v) = if #v == 1 then v else let r = {sorted(w) : w in bottop(v)} in walsh(r[0] ++ "
      "r[1]);"
      // first elements alone: never of one length but for two
      "function tails(v) = if #v < 2 then v else flatten({tails(w) : w in [take(v, 1), drop(v, 1)]});";
  RunnerOptions options;
  options.strategies = true;
  for (const char* form : {
           "reversed([0:8]);",
           "reversed([0:7]);",
           "{reversed([k:k + 4]) : k in [3, 4]};",
           "{reversed([k:k + 6]) : k in [3, 4]};",
           "{reversed([0:k]) : k in [4, 4, 4]};",
           "{reversed([0:k]) : k in [4, 2, 4]};",
           "walsh([3, 1, 4, 1, 5, 9, 2, 6]);",
           "walsh([3, 1, 4, 1, 5, 9]);",
           "{walsh({i * k : i in [0:8]}) : k in [1:4]};",
           "{walsh({i * k : i in [0:k]}) : k in [4, 4, 4]};",
           "fourier([3, 1, 4, 1, 5, 9, 2, 6], [1, 2, 3, 4]);",
           "{fourier({i + k : i in [0:4]}, [k, 2]) : k in [0:3]};",
           "fourier([3, 1, 4], [1, 2]);",
           "least([3, 1, 4, 1, 5, 9, 2]);",
           "{least([k:9]) : k in [1, 5, 1]};",
           "sorted([3, 1, 4, 1]);",
           "{sorted({i + k : i in [0:8]}) : k in [0:3]};",
           "tails([1, 2, 3, 4]);",
           "{tails([0:k]) : k in [2, 2]};",
       }) {
    const FormOutcome outcome = runProgram(functions + form, options).at(0);
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
    EXPECT_NE(outcome.lcu.find("_even_lengths("), std::string::npos) << outcome.text;
  }
}

/// What filters keep is never known to have one length: nobody looks.
TEST(FlattenRecursion, RecursionOverOtherSequencesHasNoInstanceForOneLength) {
  const auto outcomes = runProgram(
      "function qs(a) = if #a < 2 then a else let p = a[#a / 2];"
      "  r = {qs(v) : v in [{e in a | e < p}, {e in a | e > p}]} in r[0] ++ {e in a | e == p} ++ r[1];"
      "qs([3, 1, 2]); {qs([0:k]) : k in [4, 4]};");
  for (const FormOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.difference, "") << outcome.text;
    EXPECT_EQ(outcome.lcu.find("_even"), std::string::npos) << outcome.lcu;
  }
}

const char* const kScalarRecursion =
    "function ways(n) = if n < 2 then 1 else ways(n-1) + ways(n-2);"
    "{ways(n) : n in [0,1,5,12]}; ways(9); {{ways(n) : n in v} : v in [[3,4],[] int,[5]]};"
    "function ack(m, n) = if m == 0 then n+1 else if n == 0 then ack(m-1, 1) else ack(m-1, ack(m, n-1));"
    "{ack(m, n) : m in [0,1,2,2]; n in [3,3,3,7]}; ack(2, 5);"
    // of two results; of floats and chars
    "function both(n) = if n == 0 then (1, 0.5) else let (a, b) = both(n-1); (c, d) = both(n/2) in (a+c, "
    "b*d+1.0);"
    "{both(n) : n in [0,1,6]};"
    "function letter(n, c) = if n == 0 then c else max(letter(n-1, code_char(char_code(c)+1)), "
    "letter(n-2+rem(n,2), c));"
    "{letter(n, c) : n in [0,2,4]; c in \"aQz\"};"
    // in a loop, with a loop inside, inside each other
    "function loop(n, s) = if n == 0 then s else loop(n-1, s + ways(n)); {loop(n, 0) : n in [0,3,8]};"
    "function nested(n) = if n == 0 then 0 else 1 + loop(n, 0) + nested(n-1); {nested(n) : n in [2,5]};"
    "function odd(n) : int -> bool; function even(n) = if n == 0 then t else odd(n-1); function odd(n) : int "
    "-> bool = if n == 0 then f else not(even(n) "
    "and f) and even(n-1);"
    "{(even(n), odd(n)) : n in [0,1,7,10]};"
    // sequences that stay as they are: a tree in arrays; elements of the surroundings
    "function deep(left, right, v) = if v < 0 then 0 else 1 + max(deep(left, right, left[v]), deep(left, "
    "right, right[v]));"
    "{deep([1,3,-1,-1], [2,-1,-1,-1], v) : v in [0,1,2,3]};"
    "{{deep(l, l, v) : v in [0:#l]} : l in [[-1,0,1],[-1]]};"
    // strict: what is not used, too
    "function unused(n) = if n == 0 then 0 else let x = 10 / (n - 3); y = unused(n-1) in n; {unused(n) : n "
    "in [1,2]};"
    "{unused(n) : n in [2,5]};"
    "function guarded(n) = if n < 0 then 1 / 0 else if n == 0 then 7 else guarded(n-1) + [4,5,6][rem(n,3)];"
    "{guarded(n) : n in [0,4]}; {guarded(n) : n in [0,-1]};";

TEST(FlattenRecursion, ScalarRecursion) { expectAgreementOfStrategies(kScalarRecursion); }

TEST(FlattenRecursion, ScalarRecursionCompiled) {
  RunnerOptions options;
  options.compiled = true;
  for (const FormOutcome& outcome : runProgram(kScalarRecursion, options))
    EXPECT_EQ(outcome.difference, "") << outcome.text << "\n" << outcome.lcu;
}

TEST(FlattenRecursion, ScalarRecursionIsOneKernel) {
  const std::string nesl =
      "function ways(n) = if n < 2 then 1 else ways(n-1) + ways(n-2); {ways(n) : n in [3,4]};";
  const auto outcomes = runProgram(nesl);
  EXPECT_NE(outcomes.back().lcu.find("MAP flat 2 { i => let t1 = recursion r1 (k1 = literal[i]) : int64 @1 "
                                     "{ if k1 < 2 then 1 else let t2 = call r1(k1 - 1); t3 = call r1(k1 - 2) "
                                     "in t2 + t3 } in t1 }"),
            std::string::npos)
      << outcomes.back().lcu;
}

TEST(FlattenRecursion, ScalarRecursionGoesDeep) {
  RunnerOptions options;
  options.reference = false;
  options.compiled = true;
  const std::string nesl =
      "function down(n) = if n == 0 then 0 else 1 + down(n-1); {down(n) : n in [10,300000,1,300000]};"
      "function forever(n) = 1 + forever(n+1); {forever(n) : n in [1,2]};";
  const auto outcomes = runProgram(nesl, options);
  ASSERT_EQ(outcomes.size(), 2u);
  for (const FormOutcome& outcome : outcomes) EXPECT_EQ(outcome.difference, "");
  EXPECT_EQ(outcomes[0].error, "");
  EXPECT_EQ(outcomes[1].error, "the recursion is too deep: the stack is exhausted");
}

/// Calls whose sequences never have one length, or do not lie side by side; and calls back from another
/// function.
TEST(FlattenRecursion, RecursionOverSequencesThatAreNotEven) {
  expectAgreement(
      "function turned(v) = if #v < 2 then v else flatten({turned(x) : x in [drop(v, 1), take(v, 1)]});"
      "{turned([0:n]) : n in [3, 3]};"
      "function pieces(v) = if #v < 10 then sum(v) else sum({pieces(x) : x in [v -> [0:2], v -> [1:4]]}) + "
      "#v;"
      "{pieces([0:n]) : n in [10, 10, 10]};"
      "function beside(v, w) = if #v < 2 then #v + sum(w) else sum({beside(x, [1]) : x in bottop(v)});"
      "{beside([0:n], [0:n]) : n in [3, 3, 3]};"
      "function there(v) : [int] -> int; function back(v) = if #v < 2 then 1 else there(v);"
      "function there(v) = if #v < 2 then 1 else sum({back(x) : x in bottop(v)}); {back([0:n]) : n in [3, "
      "3]};");
}

}  // namespace
}  // namespace kelpie::testing
