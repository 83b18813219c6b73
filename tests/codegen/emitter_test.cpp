// Placement and text of scalar expressions, and what the analysis of kernels finds out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/expression_emitter.h"
#include "codegen/kernel_analysis.h"
#include "tests/runtime/program_builder.h"

namespace kelpie::testing {
namespace {

using codegen::CheckForm;
using codegen::Dialect;
using codegen::ExpressionEmitter;
using codegen::Schedule;
using codegen::scheduleExpressions;
using ::testing::HasSubstr;
using ::testing::Not;

Dialect plain(const Program& program) {
  Dialect d;
  auto name = [&program](VarId v) { return program.vars[v].name; };
  d.param = [](uint32_t n) { return std::string(1, "isp"[n]); };
  d.host = [name](VarId v, ScalarType) { return name(v); };
  d.load = [name](ExprRef e, const std::string& position) { return name(e->index) + "[" + position + "]"; };
  d.size = [name](VarId v) { return name(v) + "_size"; };
  d.fail = [](SiteId site, const std::string& p0, const std::string& p1) {
    return "fail(" + std::to_string(site) + ", " + p0 + ", " + p1 + ");";
  };
  d.variableName = name;
  return d;
}

struct Emitted {
  std::string statements;
  std::vector<std::string> values;
};
Emitted emit(const Program& program, const std::vector<ExprRef>& roots) {
  Dialect dialect = plain(program);
  ExpressionEmitter emitter(dialect, 0);
  auto values = emitter.emit(roots);
  return {emitter.takeStatements(), values};
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Emitter, ComputesWhatTakesLongOnceForAllCalls) {
  Builder b;
  VarId xs = b.var("xs", VarKind::Array, kF64);
  ExprRef root = b.op(ScalarOp::Sqrt, b.at(xs));
  Dialect dialect = plain(b.program);
  ExpressionEmitter emitter(dialect, 0);
  emitter.emit({b.op(ScalarOp::Add, root, b.real(1))});
  emitter.emit({b.op(ScalarOp::Mul, root, b.real(2))});
  EXPECT_EQ(occurrences(emitter.takeStatements(), "k_sqrt"), 1);
}

TEST(Emitter, InlinesWhatIsUsedOnceAndNamesWhatIsShared) {
  Builder b;
  VarId xs = b.var("xs", VarKind::Array, kF64);
  ExprRef x = b.at(xs);
  auto once = emit(b.program, {b.op(ScalarOp::Mul, b.op(ScalarOp::Add, x, b.real(1)), b.real(2))});
  EXPECT_EQ(once.statements, "");
  EXPECT_EQ(once.values[0], "(xs[i] + 1.0) * 2.0");
  auto shared = emit(b.program, {b.op(ScalarOp::Mul, x, x)});
  EXPECT_EQ(shared.statements, "const double xs_at_1 = xs[i];\n");
  EXPECT_EQ(shared.values[0], "xs_at_1 * xs_at_1");
}

/// Variables get an underscore where they would have the name of a function.
TEST(Emitter, StemsWithAnUnderscoreAreOthers) {
  Builder b;
  Dialect dialect = plain(b.program);
  ExpressionEmitter emitter(dialect, 0);
  EXPECT_EQ(emitter.freshName("min"), "min_1");
  EXPECT_EQ(emitter.freshName("min_"), "min_2");
  EXPECT_EQ(emitter.freshName("max_"), "max_1");
}

TEST(Emitter, ChecksReportAndFallBack) {
  Builder b;
  VarId xs = b.var("xs", VarKind::Array, kF64), k = b.var("k", VarKind::Host, kI64);
  ExprRef fits = b.op(ScalarOp::Less, b.host(k), b.arena().size(xs));
  ExprRef position =
      b.arena().check(fits, b.host(k), Scalar::ofInt(kI64, 0), 3, b.host(k), b.arena().size(xs));
  auto e = emit(b.program, {b.at(xs, position)});
  EXPECT_EQ(e.statements,
            "int64_t checked_1 = k;\n"
            "if (!(k < xs_size)) {\n"
            "  fail(3, k, xs_size);\n"
            "  checked_1 = 0;\n"
            "}\n");
  EXPECT_EQ(e.values[0], "xs[checked_1]");
}

TEST(Emitter, ChecksAreNotedOrAssumed) {
  Builder b;
  VarId xs = b.var("xs", VarKind::Array, kF64), k = b.var("k", VarKind::Host, kI64);
  ExprRef fits = b.op(ScalarOp::Less, b.host(k), b.arena().size(xs));
  const auto statements = [&](ExprRef value, CheckForm form, bool anyFloat) {
    Dialect dialect = plain(b.program);
    dialect.checks = form;
    dialect.noted = "good";
    dialect.anyFloat = anyFloat;
    ExpressionEmitter emitter(dialect, 0);
    emitter.emit({b.arena().check(fits, value, Scalar::zero(value->type), 3, b.host(k), b.num(0))});
    return emitter.takeStatements();
  };
  EXPECT_EQ(statements(b.host(k), CheckForm::Note, true),
            "int64_t checked_1 = k;\nif (!(k < xs_size)) {\n  good = false;\n  checked_1 = 0;\n}\n");
  EXPECT_EQ(statements(b.at(xs), CheckForm::Note, true),
            "double checked_1 = xs[i];\ngood = good && (k < xs_size);\n");
  EXPECT_EQ(statements(b.at(xs), CheckForm::Note, false),
            "double checked_1 = xs[i];\nif (!(k < xs_size)) {\n  good = false;\n  checked_1 = 0.0;\n}\n");
  EXPECT_EQ(statements(b.host(k), CheckForm::Assume, false), "int64_t checked_1 = k;\n");
}

TEST(Emitter, IndicesAreTestedInOneCall) {
  Builder b;
  VarId xs = b.var("xs", VarKind::Array, kF64), narrow = b.var("narrow", VarKind::Array, ScalarType::Int32);
  Dialect dialect = plain(b.program);
  dialect.rangeCalls = true;
  auto within = [&](ExprRef x, ExprRef limit) {
    ExprRef test =
        b.op(ScalarOp::And, b.op(ScalarOp::GreaterEqual, x, b.num(0)), b.op(ScalarOp::Less, x, limit));
    return ExpressionEmitter(dialect, 0).emit({test}).at(0);
  };
  ExprRef size = b.arena().size(xs), i = b.i();
  EXPECT_EQ(within(i, size), "k_within(i, xs_size)");
  EXPECT_EQ(within(b.arena().convert(b.at(narrow), ScalarType::Int64), size), "k_within(narrow[i], xs_size)");
  ExprRef other =
      b.op(ScalarOp::And, b.op(ScalarOp::GreaterEqual, i, b.num(1)), b.op(ScalarOp::Less, i, size));
  EXPECT_THAT(ExpressionEmitter(dialect, 0).emit({other}).at(0), Not(HasSubstr("k_within")));
}

TEST(Emitter, IndicesThatALoopChangesAreTestedInTwoComparisons) {
  Builder b;
  ExprArena& a = b.arena();
  const VarId xs = b.var("xs", VarKind::Array, kF64);
  const uint32_t loop = a.newLoop();
  const ExprRef k = a.loopVar(loop, 0, kI64), size = a.size(xs);
  const ExprRef inside =
      b.op(ScalarOp::And, b.op(ScalarOp::GreaterEqual, k, b.num(0)), b.op(ScalarOp::Less, k, size));
  Dialect dialect = plain(b.program);
  dialect.rangeCalls = dialect.shortCircuit = true;
  ExpressionEmitter emitter(dialect, 0);
  emitter.emit({a.loop(loop, {b.i()}, inside, {a.add(k, b.num(1))})[0]});
  EXPECT_THAT(emitter.takeStatements(), HasSubstr("if (!((state_1 >= 0) && (state_1 < xs_size))) break;\n"));
}

TEST(Emitter, VariablesOfLoopsThatFitHaveOneWord) {
  Builder b;
  ExprArena& a = b.arena();
  const uint32_t loop = a.newLoop();
  const ExprRef k = a.nonNegative(a.loopVar(loop, 0, kI64), 4),
                sum = a.nonNegative(a.loopVar(loop, 1, kI64), 33);
  const std::vector<ExprRef> values = a.loop(loop, {b.num(0), b.i()}, b.op(ScalarOp::Less, k, b.num(10)),
                                             {a.add(k, b.num(1)), a.add(sum, k)});
  Dialect dialect = plain(b.program);
  const auto text = [&](bool words) {
    dialect.wordVariables = words;
    ExpressionEmitter emitter(dialect, 0);
    const std::vector<std::string> results = emitter.emit({a.add(values[0], values[1])});
    return emitter.takeStatements() + results.at(0) + "\n";
  };
  EXPECT_EQ(
      text(true),
      "uint32_t state_1 = 0;\nint64_t state_2 = i;\nwhile (true) {\n  if (!(int64_t(state_1) < 10)) break;\n"
      "  const uint32_t next_1 = int64_t(state_1) + 1;\n  const int64_t next_2 = state_2 + "
      "int64_t(state_1);\n"
      "  state_1 = next_1;\n  state_2 = next_2;\n}\nint64_t(state_1) + state_2\n");
  EXPECT_THAT(text(false), Not(HasSubstr("uint32_t")));
}

TEST(Emitter, LoopsStepTogetherAndStopAtErrors) {
  Builder b;
  ExprArena& a = b.arena();
  uint32_t loop = a.newLoop();
  ExprRef x = a.loopVar(loop, 0, kI64), y = a.loopVar(loop, 1, kI64);
  ExprRef checked = a.check(b.op(ScalarOp::Less, y, b.num(1000)), y, Scalar::ofInt(kI64, 0), 1, y, b.num(0));
  auto result = a.loop(loop, {b.num(0), b.i()}, b.op(ScalarOp::NotEqual, x, y), {y, a.add(checked, x)});
  auto e = emit(b.program, {result[0]});
  EXPECT_THAT(e.statements, HasSubstr("bool failed_1 = false;\n"));
  EXPECT_THAT(e.statements, HasSubstr("while (!failed_1) {\n  if (!(state_1 != state_2)) break;\n"));
  EXPECT_THAT(e.statements, HasSubstr("  const int64_t next_1 = state_2;\n  const int64_t next_2 ="));
  EXPECT_THAT(e.statements, HasSubstr("  state_1 = next_1;\n  state_2 = next_2;\n}\n"));
  EXPECT_EQ(e.values[0], "state_1");
}

/// loop (done = false, result = 0, x = i, n = 0): each leaf of the body ends it or goes on.
struct FlaggedLoop {
  Builder b;
  uint32_t id = b.arena().newLoop();
  ExprRef done = b.arena().loopVar(id, 0, ScalarType::Bool), result = b.arena().loopVar(id, 1, kI64);
  ExprRef x = b.arena().loopVar(id, 2, kI64), n = b.arena().loopVar(id, 3, kI64);
  using Leaf = std::vector<ExprRef>;

  Leaf ends(ExprRef value) { return {b.arena().boolean(true), value, x, n}; }
  Leaf goesOn(ExprRef nextX, ExprRef nextN) { return {b.arena().boolean(false), result, nextX, nextN}; }
  std::string text(const Leaf& next, bool columns = false) {
    ExprArena& a = b.arena();
    auto last = a.loop(id, {a.boolean(false), b.num(0), b.i(), b.num(0)}, b.op(ScalarOp::Not, done), next);
    Dialect dialect = plain(b.program);
    dialect.loadedCalls = columns;
    ExpressionEmitter emitter(dialect, 0);
    emitter.emit({last[1]});
    return emitter.takeStatements();
  }
};

TEST(Emitter, LoopsWithAFlagAreLeftAtTheirLeaves) {
  FlaggedLoop l;
  ExprArena& a = l.b.arena();
  ExprRef far = l.b.op(ScalarOp::Greater, l.x, l.b.num(100));
  auto inner = a.select(far, l.ends(a.add(l.x, l.n)),
                        l.goesOn(l.b.op(ScalarOp::Mul, l.x, l.x), a.add(l.n, l.b.num(1))));
  const std::string text = l.text(a.select(l.b.op(ScalarOp::Equal, l.n, l.b.num(9)), l.ends(l.n), inner));
  EXPECT_EQ(occurrences(text, "break;"), 2u) << text;
  EXPECT_EQ(occurrences(text, "chosen"), 0u) << text;
  EXPECT_THAT(text, HasSubstr("  } else {\n    const bool test_1 = state_3 > 100;\n    if (test_1) {\n"));
  EXPECT_THAT(text, HasSubstr("      const int64_t next_5 = state_3 * state_3;\n"
                              "      const int64_t next_6 = state_4 + 1;\n"
                              "      state_3 = next_5;\n      state_4 = next_6;\n    }\n  }\n}\n"))
      << text;
}

/// The flag of a leaf that no condition around it tells is looked at there.
TEST(Emitter, LeavesMayNotKnowWhetherTheyEndTheLoop) {
  FlaggedLoop l;
  ExprArena& a = l.b.arena();
  auto leaf = l.goesOn(a.add(l.x, l.b.num(2)), l.n);
  leaf[0] = l.b.op(ScalarOp::Greater, l.x, l.b.num(50));
  const std::string text = l.text(a.select(l.b.op(ScalarOp::Equal, l.n, l.b.num(9)), l.ends(l.n), leaf));
  EXPECT_THAT(text, HasSubstr("if (state_1) break;")) << text;
}

/// A remainder is made of the quotient of the same integers, if that is computed anywhere; each in its scope.
TEST(Emitter, RemaindersAreMadeOfQuotients) {
  Builder b;
  VarId xs = b.var("xs", VarKind::Array, lcu::kIndex), ys = b.var("ys", VarKind::Array, lcu::kIndex);
  const ExprRef x = b.at(xs), y = b.at(ys);
  const ExprRef quotient = b.op(ScalarOp::Div, x, y), remainder = b.op(ScalarOp::Rem, x, y);
  Dialect dialect = plain(b.program);
  dialect.divisionCalls = true;
  const auto text = [&](const std::vector<std::vector<ExprRef>>& calls) {
    ExpressionEmitter emitter(dialect, 0);
    std::string all;
    for (const auto& roots : calls)
      for (const std::string& value : emitter.emit(roots)) all += value + ";";
    return emitter.takeStatements() + all;
  };
  for (const std::string& t :
       {text({{remainder, quotient}}), text({{quotient, remainder}}), text({{quotient}, {remainder}})}) {
    EXPECT_EQ(occurrences(t, "k_div("), 1) << t;
    EXPECT_THAT(t, HasSubstr(", div_1)")) << t;
  }
  EXPECT_THAT(text({{remainder}}), Not(HasSubstr("k_remainder")));
  // Only a branch wants the quotient, which is there in time; of two branches each divides for itself.
  const ExprRef zero = b.num(0), less = b.op(ScalarOp::Less, x, y), more = b.op(ScalarOp::Less, y, b.num(9));
  const std::string inside = text({{remainder, b.arena().select(less, quotient, zero)}});
  EXPECT_EQ(occurrences(inside, "k_div("), 1) << inside;
  const std::string apart = text({{b.arena().select(less, b.op(ScalarOp::Add, quotient, x), zero),
                                   b.arena().select(more, b.op(ScalarOp::Add, remainder, y), zero)}});
  EXPECT_EQ(occurrences(apart, "k_div("), 2) << apart;
}

/// f(n, k) = n < 2 ? k : k < 9 ? f(n - 1, k + n) : k + f(n - 1, k) * f(n - 2, n)
std::vector<ExprRef> twoCalls(Builder& b) {
  const uint32_t f = b.arena().newLoop();
  const ExprRef n = b.arena().loopVar(f, 0, lcu::kIndex), k = b.arena().loopVar(f, 1, lcu::kIndex);
  const auto call = [&](ExprRef x, ExprRef y) { return b.arena().call(f, {x, y}, {lcu::kIndex})[0]; };
  const ExprRef less = b.op(ScalarOp::Sub, n, b.num(1)), last = call(less, b.op(ScalarOp::Add, k, n)),
                first = call(less, k), second = call(b.op(ScalarOp::Sub, n, b.num(2)), n),
                both = b.op(ScalarOp::Add, k, b.op(ScalarOp::Mul, first, second));
  const ExprRef some = b.arena().select(b.op(ScalarOp::Less, k, b.num(9)), last, both);
  return b.arena().recursion(f, 3, {b.arena().param(0), b.num(1)},
                             {b.arena().select(b.op(ScalarOp::Less, n, b.num(2)), k, some)});
}

/// A frame has what is needed behind its call; a call whose result is that of the function has none.
TEST(Emitter, RecursionsKeepFramesOfWhatIsPending) {
  Builder b;
  Dialect dialect = plain(b.program);
  dialect.frames = true;
  dialect.recursion = "frames";
  ExpressionEmitter emitter(dialect, 0);
  emitter.emit(twoCalls(b));
  const std::string text = emitter.takeStatements();
  EXPECT_EQ(occurrences(text, ".fits("), 2) << text;
  EXPECT_EQ(occurrences(text, "goto "), 3) << text;
  EXPECT_THAT(text, HasSubstr("push(argument_1);")) << text;
  EXPECT_EQ(occurrences(text, "push(argument_1)"), 1) << text;
  EXPECT_EQ(occurrences(text, "push(argument_2)"), 2) << text;
  EXPECT_EQ(occurrences(text, "push(called_"), 1) << text;
  EXPECT_THAT(text, Not(HasSubstr("_self")));
}

/// What a last call is added to is added before it.
TEST(Emitter, NothingIsPendingWhereOrderIsOfNoConsequence) {
  const auto frames = [](ScalarType type) {
    Builder b;
    const uint32_t f = b.arena().newLoop();
    const ExprRef n = b.arena().loopVar(f, 0, lcu::kIndex);
    const auto call = [&](int64_t less) {
      return b.arena().call(f, {b.op(ScalarOp::Sub, n, b.num(less))}, {type})[0];
    };
    const ExprRef first = call(1), second = call(2);
    const ExprRef sum = b.op(ScalarOp::Add, first, second);
    const auto result = b.arena().recursion(
        f, 3, {b.arena().param(0)},
        {b.arena().select(b.op(ScalarOp::Less, n, b.num(2)), b.arena().convert(n, type), sum)});
    Dialect dialect = plain(b.program);
    dialect.frames = true;
    ExpressionEmitter emitter(dialect, 0);
    emitter.emit(result);
    return emitter.takeStatements();
  };
  const std::string ints = frames(ScalarType::Int64), floats = frames(ScalarType::Float64);
  EXPECT_EQ(occurrences(ints, ".fits("), 1) << ints;
  EXPECT_THAT(ints, HasSubstr("so_far_1 + (called_1)")) << ints;
  EXPECT_EQ(occurrences(ints, "push("), 1) << "n alone: " << ints;
  EXPECT_THAT(ints, HasSubstr("state_1 = 1;")) << "there is one place to go on at";
  EXPECT_EQ(occurrences(floats, ".fits("), 2) << floats;
  EXPECT_THAT(floats, Not(HasSubstr("so_far"))) << floats;
}

/// f(n) = if n < 2 then n else something of f(n - 1), and f(n - 2): whether the former call goes on from what
/// there is so far.
bool goesOn(const std::function<ExprRef(Builder&, ExprRef n, ExprRef first)>& beforeLast) {
  Builder b;
  const uint32_t f = b.arena().newLoop();
  const ExprRef n = b.arena().loopVar(f, 0, lcu::kIndex);
  const auto call = [&](int64_t less) {
    return b.arena().call(f, {b.op(ScalarOp::Sub, n, b.num(less))}, {lcu::kIndex})[0];
  };
  const ExprRef first = call(1), before = beforeLast(b, n, first), small = b.op(ScalarOp::Less, n, b.num(2));
  const auto result = b.arena().recursion(f, 3, {b.arena().param(0)},
                                          {b.arena().select(small, n, b.op(ScalarOp::Add, before, call(2)))});
  Dialect dialect = plain(b.program);
  dialect.frames = true;
  ExpressionEmitter emitter(dialect, 0);
  emitter.emit(result);
  const std::string text = emitter.takeStatements();
  EXPECT_THAT(text, HasSubstr("so_far")) << text;
  return text.find("push(so_far_1)") == std::string::npos;
}

/// Only what is combined once, and in any case, may be combined before the caller looks at it.
TEST(Emitter, CallsGoOnFromWhatThereIsSoFar) {
  const auto add = [](Builder& b, ExprRef x, ExprRef y) { return b.op(ScalarOp::Add, x, y); };
  EXPECT_TRUE(goesOn([&](Builder&, ExprRef, ExprRef first) { return first; }));
  EXPECT_TRUE(
      goesOn([&](Builder& b, ExprRef n, ExprRef first) { return add(b, b.num(5), add(b, first, n)); }));
  EXPECT_TRUE(goesOn([&](Builder& b, ExprRef n, ExprRef first) {
    const ExprRef few = b.op(ScalarOp::Less, n, b.num(4));
    return b.arena().select(few, n, add(b, first, b.num(1)));
  }));
  EXPECT_FALSE(goesOn([&](Builder& b, ExprRef, ExprRef first) { return add(b, first, first); }));
  EXPECT_FALSE(
      goesOn([&](Builder& b, ExprRef, ExprRef first) { return b.op(ScalarOp::Mul, first, b.num(3)); }));
  EXPECT_FALSE(goesOn([&](Builder& b, ExprRef, ExprRef first) {
    const ExprRef few = b.op(ScalarOp::Less, first, b.num(4));
    return b.arena().select(few, b.num(0), first);
  }));
}

/// What does not need the last call is done before it.
TEST(Emitter, LastCallsComeLate) {
  Builder b;
  const uint32_t f = b.arena().newLoop();
  const ExprRef n = b.arena().loopVar(f, 0, lcu::kIndex);
  const auto call = [&](int64_t less) {
    return b.arena().call(f, {b.op(ScalarOp::Sub, n, b.num(less))}, {lcu::kIndex})[0];
  };
  const ExprRef first = call(1), second = call(2);
  const ExprRef sum = b.op(ScalarOp::Add, b.op(ScalarOp::Mul, first, b.num(3)), second);
  Dialect dialect = plain(b.program);
  dialect.frames = true;
  ExpressionEmitter emitter(dialect, 0);
  emitter.emit(b.arena().recursion(f, 3, {b.arena().param(0)},
                                   {b.arena().select(b.op(ScalarOp::Less, n, b.num(2)), n, sum)}));
  const std::string text = emitter.takeStatements();
  EXPECT_EQ(occurrences(text, ".fits("), 1) << text;
}

/// What is quickly computed again from the rest of a frame is no part of it, nor are arguments that all calls
/// hand on.
TEST(Emitter, FramesHoldWhatTheyMust) {
  Builder b;
  const uint32_t f = b.arena().newLoop();
  const ExprRef n = b.arena().loopVar(f, 0, lcu::kIndex), k = b.arena().loopVar(f, 1, lcu::kIndex);
  const ExprRef square = b.op(ScalarOp::Mul, n, n), less = b.op(ScalarOp::Sub, square, k);
  const auto call = [&](int64_t fewer) {
    return b.arena().call(f, {b.op(ScalarOp::Sub, n, b.num(fewer)), k}, {lcu::kIndex})[0];
  };
  const ExprRef first = call(1), second = call(2),
                sum = b.op(ScalarOp::Sub, b.op(ScalarOp::Sub, first, second),
                           b.op(ScalarOp::Xor, b.op(ScalarOp::Mul, less, less), square));
  const ExprRef small = b.op(ScalarOp::Less, b.op(ScalarOp::Mul, less, square), b.num(2));
  Dialect dialect = plain(b.program);
  dialect.frames = true;
  ExpressionEmitter emitter(dialect, 0);
  emitter.emit(b.arena().recursion(f, 3, {b.arena().param(0), b.num(7)}, {b.arena().select(small, k, sum)}));
  const std::string text = emitter.takeStatements();
  EXPECT_EQ(occurrences(text, "push(argument_1)"), 1) << text;
  EXPECT_EQ(occurrences(text, "push("), 2 + 3) << text;
  EXPECT_EQ(occurrences(text, "mul_1 = "), 2) << text;
}

TEST(Emitter, RecursionsInsideOfEachOtherAreFunctions) {
  Builder b;
  const uint32_t outer = b.arena().newLoop();
  const ExprRef n = b.arena().loopVar(outer, 0, lcu::kIndex);
  const uint32_t inner = b.arena().newLoop();
  const ExprRef m = b.arena().loopVar(inner, 0, lcu::kIndex);
  const ExprRef less = b.op(ScalarOp::Sub, m, b.num(1));
  // inner(m) = m < 1 ? 0 : inner(m - 1) + outer(m - 1)
  const ExprRef calls = b.op(ScalarOp::Add, b.arena().call(inner, {less}, {lcu::kIndex})[0],
                             b.arena().call(outer, {less}, {lcu::kIndex})[0]);
  const ExprRef result = b.arena().recursion(
      inner, 1, {n}, {b.arena().select(b.op(ScalarOp::Less, m, b.num(1)), b.num(0), calls)})[0];
  Dialect dialect = plain(b.program);
  dialect.frames = true;
  ExpressionEmitter emitter(dialect, 0);
  emitter.emit(b.arena().recursion(outer, 1, {b.arena().param(0)}, {b.op(ScalarOp::Mul, result, n)}));
  const std::string text = emitter.takeStatements();
  EXPECT_EQ(occurrences(text, "_self, "), 4) << text;
  EXPECT_THAT(text, Not(HasSubstr("goto"))) << text;
}

TEST(Emitter, ColumnsOfAnElementAreLoadedTogetherInLoops) {
  FlaggedLoop l;
  ExprArena& a = l.b.arena();
  VarId far = l.b.var("far", VarKind::Array, kI64), next = l.b.var("next", VarKind::Array, kI64);
  ExprRef at =
      a.check(l.b.op(ScalarOp::Less, l.x, l.b.num(9)), l.x, Scalar::ofInt(kI64, 0), 1, l.x, l.b.num(9));
  ExprRef follow = a.load(next, kI64, at);
  // The program loads both columns on every way, though one leaf alone goes on with the second.
  ExprRef owed = l.b.op(ScalarOp::And, l.b.op(ScalarOp::NotEqual, follow, l.b.num(0)), a.boolean(false));
  auto on = l.goesOn(follow, l.n);
  auto end = l.ends(l.n);
  for (auto* leaf : {&on, &end}) (*leaf)[0] = l.b.op(ScalarOp::Or, (*leaf)[0], owed);
  auto body = a.select(l.b.op(ScalarOp::Greater, a.load(far, kI64, at), l.b.num(3)), on, end);
  const std::string text = l.text(body, true);
  EXPECT_THAT(text, HasSubstr("  k_loaded(next_at_1);\n")) << text;
  EXPECT_THAT(l.text(body, false), Not(HasSubstr("k_loaded")));
}

TEST(Emitter, ExtremeConstants) {
  EXPECT_EQ(codegen::literalText(Scalar::ofInt(kI64, INT64_MIN)), "int64_t(-9223372036854775807ll - 1)");
  EXPECT_EQ(codegen::literalText(Scalar::ofFloat(kF64, -INFINITY)), "k_double_bits(0xfff0000000000000ull)");
  EXPECT_EQ(codegen::literalText(Scalar::ofFloat(ScalarType::Float32, 0.5)), "0.5f");
  EXPECT_EQ(codegen::literalText(Scalar::ofFloat(kF64, 1e300)), "1e+300");
  EXPECT_EQ(codegen::literalText(Scalar::ofFloat(kF64, -0.0)), "-0.0");
}

TEST(Schedule, ValuesNeededByOneBranchStayInIt) {
  Builder b;
  VarId xs = b.var("xs", VarKind::Array, kI64);
  ExprRef positive = b.op(ScalarOp::Greater, b.i(), b.num(0));
  ExprRef before = b.at(xs, b.arena().sub(b.i(), b.num(1)));
  Schedule s = scheduleExpressions({b.arena().select(positive, b.arena().mul(before, before), b.num(0))});
  for (const auto& step : s.blocks[0].steps) EXPECT_NE(step.node, before);
}

TEST(Schedule, ValuesNeededByBothBranchesComeFirst) {
  Builder b;
  VarId xs = b.var("xs", VarKind::Array, kI64);
  ExprRef x = b.at(xs), positive = b.op(ScalarOp::Greater, b.i(), b.num(0));
  ExprRef chosen = b.arena().select(positive, b.arena().add(x, b.num(1)), b.arena().mul(x, b.num(3)));
  auto e = emit(b.program, {chosen});
  EXPECT_EQ(occurrences(e.statements, "xs["), 1u) << e.statements;
  // Sixty conditionals in a chain, each using the last value in both branches: the text stays linear.
  ExprRef value = x;
  for (int k = 0; k < 60; ++k) {
    value = b.arena().select(b.op(ScalarOp::Greater, value, b.num(k)), b.arena().add(value, b.num(k + 1)),
                             b.arena().mul(value, b.num(k + 2)));
  }
  EXPECT_LT(emit(b.program, {value}).statements.size(), 20000u);
}

TEST(Schedule, LoopInvariantConditionsComeBeforeTheLoop) {
  Builder b;
  ExprArena& a = b.arena();
  VarId xs = b.var("xs", VarKind::Array, kI64);
  uint32_t loop = a.newLoop();
  ExprRef x = a.loopVar(loop, 0, kI64), bound = b.at(xs);
  auto result = a.loop(loop, {b.num(0)}, b.op(ScalarOp::Less, x, bound), {a.add(x, b.num(1))});
  Schedule s = scheduleExpressions({result[0]});
  ASSERT_EQ(s.blocks[0].steps.size(), 2u);
  EXPECT_EQ(s.blocks[0].steps[0].node, bound);
}

/// loop (done = false, x = i, k = 0): a step has a quotient, in a branch or not; `outer` values and what the
/// loop changes, or what it loads.
TEST(Schedule, LongOperationsThatALoopDoesNotChangeComeBeforeIt) {
  Builder b;
  ExprArena& a = b.arena();
  const VarId xs = b.var("xs", VarKind::Array, kI64);
  const uint32_t id = a.newLoop();
  const ExprRef done = a.loopVar(id, 0, ScalarType::Bool), x = a.loopVar(id, 1, kI64);
  const auto quotient = [&](ExprRef y) { return b.op(ScalarOp::Div, y, a.param(2)); };
  const auto kindsOfFirstBlock = [&](ExprRef value, bool inBranch) {
    const ExprRef end = b.op(ScalarOp::Greater, x, b.num(100)), next = a.add(x, value);
    const ExprRef chosen = inBranch ? a.select(end, x, next) : next;
    const auto loop = a.loop(id, {a.boolean(false), b.i()}, b.op(ScalarOp::Not, done), {end, chosen});
    std::vector<ExprKind> kinds;
    const Schedule schedule = scheduleExpressions({loop[1]});
    for (const auto& step : schedule.blocks[0].steps) kinds.push_back(step.node->kind);
    return kinds;
  };
  using Kinds = std::vector<ExprKind>;
  const Kinds loopAlone = {ExprKind::Loop}, before = {ExprKind::Op, ExprKind::Loop};
  for (const bool inBranch : {false, true}) {
    EXPECT_EQ(kindsOfFirstBlock(quotient(b.i()), inBranch), before);
    EXPECT_EQ(kindsOfFirstBlock(quotient(x), inBranch), loopAlone);
    EXPECT_EQ(kindsOfFirstBlock(a.add(b.i(), a.param(2)), inBranch), loopAlone);  // takes no time
  }
  // There is a first step, but not of every branch: the position may be one that only its branch may read.
  EXPECT_EQ(kindsOfFirstBlock(quotient(b.at(xs)), false),
            (Kinds{ExprKind::Load, ExprKind::Op, ExprKind::Loop}));
  EXPECT_EQ(kindsOfFirstBlock(quotient(b.at(xs)), true), loopAlone);

  // An inner loop's quotient depends on the outer loop: it stays between the two.
  const uint32_t inner = a.newLoop();
  const ExprRef y = a.loopVar(inner, 0, kI64);
  const ExprRef sum = a.loop(inner, {b.num(0)}, b.op(ScalarOp::Less, y, b.num(9)),
                             {a.add(y, a.add(quotient(x), quotient(y)))})[0];
  EXPECT_EQ(kindsOfFirstBlock(sum, false), loopAlone);
}

TEST(Schedule, DeepExpressionsNeedNoStack) {
  Builder b;
  ExprRef value = b.i();
  for (int k = 0; k < 3000; ++k)
    value = b.arena().add(b.arena().mul(value, b.num(3)), b.op(ScalarOp::Xor, value, b.num(k + 1)));
  EXPECT_EQ(scheduleExpressions({value}).blocks[0].steps.size(), 9000u);
  EXPECT_GT(emit(b.program, {value}).statements.size(), 3000u);
}

TEST(KernelAnalysis, LevelsRolesAndParameters) {
  Builder b;
  auto [offsets, xs] = b.globalNested("xs", {0, 1}, floats({1}));
  VarId scale = b.global("scale", floats({2}));
  Space seg = b.segmented(offsets, xs);
  Soac first = b.scan(seg, {b.op(ScalarOp::Mul, b.at(xs), b.host(scale))}, b.sum(kF64));
  b.named(first, "first");
  Soac map = b.map(b.flat(xs), {b.op(ScalarOp::Add, b.at(first.results[0]), b.at(xs))});
  b.named(map, "map");
  Soac second = b.scan(seg, {b.at(map.results[0])}, b.sum(kF64));
  b.named(second, "second");
  Soac total = b.reduce(seg, {b.at(second.results[0])}, b.sum(kF64));
  b.named(total, "total");
  Soac root = b.map(b.flat(seg.segments), {b.op(ScalarOp::Sqrt, b.at(total.results[0]))});
  b.named(root, "root");
  Kernel kernel{"k", {first, map, second, total, root}, {second.results[0], root.results[0]}};
  auto info = codegen::analyseKernel(kernel, b.program);
  EXPECT_EQ(info.space, seg);
  EXPECT_EQ(info.levels, 2u);
  std::vector<uint32_t> levels;
  for (const auto& binding : info.bindings) levels.push_back(binding.level);
  EXPECT_EQ(levels, (std::vector<uint32_t>{0, 1, 1, 2, 0}));
  EXPECT_EQ(info.bindings[4].role, codegen::BindingRole::Epilogue);
  ASSERT_EQ(info.parameters.size(), 3u);  // two arrays, one scalar
  EXPECT_EQ(info.parameters[*info.offsetsParameter].var, offsets);
  EXPECT_EQ(info.parameters[2].kind, codegen::ParameterKind::Scalar);
  ASSERT_EQ(info.outputs.size(), 2u);
  codegen::LaunchExtents extents{100, 7, 0, {}};
  EXPECT_EQ(codegen::capacity(info.outputs[0], extents), 100);
  EXPECT_EQ(codegen::capacity(info.outputs[1], extents), 7);
}

/// Rows that begin anywhere are read along; what an element says where to look is gathered.
TEST(KernelAnalysis, TellsGathersFromReadingAlong) {
  Builder b;
  ExprArena& a = b.arena();
  auto [offsets, columns] = b.globalNested("columns", {0, 1}, ints({0}));
  const VarId starts = b.globalArray("starts", ints({0})), row = b.globalArray("row", ints({0}));
  const VarId vector = b.globalArray("vector", ints({0})), matrix = b.globalArray("matrix", ints({0}));
  const Space seg = b.segmented(offsets, columns);
  const ExprRef start = a.load(starts, kI64, a.param(1)), p = a.param(2);
  const ExprRef along = a.select(a.op(ScalarOp::Less, p, start), a.add(start, p), a.sub(p, start));
  Soac sum = b.reduce(seg,
                      {a.add(a.add(a.load(row, kI64, along), a.load(vector, kI64, b.at(columns))),
                             a.load(matrix, kI64, a.add(start, a.mul(p, b.num(7)))))},
                      b.sum(kI64));
  b.named(sum, "sum");
  const Kernel kernel{"k", {sum}, sum.results};
  const codegen::KernelInfo info = codegen::analyseKernel(kernel, b.program);
  const auto gathered = [&](VarId v) { return info.parameter(codegen::ParameterKind::Array, v)->gathered; };
  EXPECT_FALSE(gathered(starts));
  EXPECT_FALSE(gathered(columns));
  EXPECT_FALSE(gathered(row));
  EXPECT_TRUE(gathered(vector));
  EXPECT_TRUE(gathered(matrix));
}

TEST(KernelAnalysis, OnlyIndependentCommutativeComponentsAreLanewise) {
  Builder b;
  ExprArena& a = b.arena();
  ExprRef a0 = a.param(0), a1 = a.param(1), b0 = a.param(2), b1 = a.param(3);
  lcu::Operator sums{{Scalar::ofInt(kI64, 0), Scalar::ofInt(kI64, 1)}, {a.add(a0, b0), a.mul(a1, b1)}};
  EXPECT_TRUE(codegen::lanewiseOperations(sums).has_value());
  lcu::Operator affine{{Scalar::ofInt(kI64, 1), Scalar::ofInt(kI64, 0)},
                       {a.mul(a0, b0), a.add(a.mul(a1, b0), b1)}};
  auto components = codegen::componentOperations(affine);
  EXPECT_FALSE(components[0].has_value());  // the other component reads it
  EXPECT_FALSE(components[1].has_value());
}

TEST(KernelAnalysis, FoldsOfWhatEqualsTheLeastGoInLanes) {
  Builder b;
  ExprArena& a = b.arena();
  const auto p = [&](uint32_t k) { return a.param(k, k % 2 == 0 ? ScalarType::Float64 : kI64); };
  const Scalar none = identity(ReduceOp::Min, kI64);
  const auto operatorOf = [&](ScalarOp extreme, ScalarOp test) {
    const ExprRef found = a.op(extreme, p(0), p(2));
    const auto side = [&](uint32_t k) {
      return a.select(a.op(test, p(k), found), p(k + 1), a.constant(none));
    };
    return lcu::Operator{{identity(ReduceOp::Min, ScalarType::Float64), none},
                         {found, a.op(ScalarOp::Min, side(0), side(2))}};
  };
  const lcu::Operator first = operatorOf(ScalarOp::Min, ScalarOp::Equal);
  EXPECT_TRUE(codegen::commutes(first));
  EXPECT_FALSE(codegen::componentOperations(first)[0].has_value());  // the other component reads it
  const auto folds = codegen::laneFolds(first);
  ASSERT_TRUE(folds[0] && folds[1]);
  EXPECT_EQ(folds[0]->of, 0u);
  EXPECT_EQ(folds[1]->of, 0u);
  // Elements of one side may equal the sum of both by chance: only least and greatest elements will do.
  for (const lcu::Operator& other :
       {operatorOf(ScalarOp::Add, ScalarOp::Equal), operatorOf(ScalarOp::Min, ScalarOp::LessEqual)}) {
    EXPECT_TRUE(codegen::commutes(other));
    EXPECT_FALSE(codegen::laneFolds(other)[0].has_value());
    EXPECT_FALSE(codegen::laneFolds(other)[1].has_value());
  }
  const lcu::Operator last{{none, none}, {a.add(a.param(0), a.param(2)), a.param(3)}};
  EXPECT_FALSE(codegen::commutes(last));
}

TEST(KernelAnalysis, IdentifiersAreC) {
  EXPECT_EQ(codegen::identifier("a'b"), "a_b");
  EXPECT_EQ(codegen::identifier("double"), "double_of_nesl");
  EXPECT_EQ(codegen::identifier("1st"), "x1st");
  EXPECT_EQ(codegen::identifier(""), "x");
}

}  // namespace
}  // namespace kelpie::testing
