#include "frontend/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/value_printer.h"
#include "runtime/services.h"

namespace kelpie {
namespace {

using core::Atom, core::Exp, core::ExpPtr, core::Prim, core::PrimOp, core::Var;
using testing::HasSubstr;

const CoreType kInt = ScalarType::Int64, kBool = ScalarType::Bool;
const CoreType kInts = CoreType::sequence({ScalarType::Int64});

/// Builds Core by hand, in A-normal form: every operation is bound to a new variable of the open block.
class Builder {
 public:
  struct Binding {
    std::vector<Var> vars;
    ExpPtr rhs;
  };
  using Block = std::vector<Binding>;

  Var var(CoreType type) { return {program.nextVar++, "", std::move(type)}; }
  static Atom atom(const Var& v) { return {v.id, v.type}; }
  static Atom constant(int64_t v) { return {Scalar::ofInt(ScalarType::Int64, v), kInt}; }

  ExpPtr exp(decltype(Exp::node) node, Row type) {
    return std::make_shared<const Exp>(Exp{std::move(node), std::move(type), {1, next_, next_ + 1}});
  }
  Atom bind(ExpPtr rhs) {
    const Var v = var(rhs->type[0]);
    block_.push_back({{v}, std::move(rhs)});
    return atom(v);
  }
  Atom prim(PrimOp op, std::vector<Atom> arguments, CoreType type) {
    ++next_;
    return bind(exp(Prim{op, std::move(arguments)}, {std::move(type)}));
  }
  Atom scalar(ScalarOp op, Atom a, Atom b) {
    ++next_;
    Prim p{isComparison(op) || op != ScalarOp::Div ? PrimOp::Scalar : PrimOp::CheckedScalar, {a, b}};
    p.scalarOp = op;
    return bind(exp(p, {resultType(op, a.type.scalar())}));
  }
  Atom sum(Atom v) {
    Prim p{PrimOp::Reduce, {v}};
    p.reduceOp = ReduceOp::Add;
    return bind(exp(p, {v.type.elements()[0]}));
  }
  Atom range(Atom n) { return prim(PrimOp::Range, {constant(0), n, constant(1)}, kInts); }
  Atom call(core::FunctionId f, std::vector<Atom> arguments, CoreType type) {
    return bind(exp(core::Call{f, std::move(arguments)}, {std::move(type)}));
  }

  /// `make` binds what it needs and yields the result; the block becomes one expression.
  template <class F>
  ExpPtr block(F make) {
    Block outer = std::move(block_);
    block_.clear();
    const Atom result = make();
    ExpPtr body = exp(core::Values{{result}}, {result.type});
    // A call in tail position is the end of the block, not a variable of it.
    if (!block_.empty() && !result.isConstant() && block_.back().vars[0].id == result.var()) {
      body = block_.back().rhs;
      block_.pop_back();
    }
    for (auto binding = block_.rbegin(); binding != block_.rend(); ++binding) {
      body = exp(core::Let{binding->vars, binding->rhs, body}, body->type);
    }
    block_ = std::move(outer);
    return body;
  }
  template <class F>
  Atom each(Atom sequence, F body) {
    const Var element = var(sequence.type.elements()[0]);
    const ExpPtr inner = block([&] { return body(atom(element)); });
    return bind(exp(core::Each{{{{element}, sequence}}, inner, false}, {CoreType::sequence(inner->type)}));
  }
  template <class T, class E>
  Atom branch(Atom condition, T thenMake, E elseMake) {
    const ExpPtr thenBranch = block(thenMake), elseBranch = block(elseMake);
    return bind(exp(core::If{condition, thenBranch, elseBranch}, thenBranch->type));
  }
  Atom list(std::vector<int64_t> values) {
    std::vector<Scalar> scalars;
    for (const int64_t v : values) scalars.push_back(Scalar::ofInt(ScalarType::Int64, v));
    const auto n = static_cast<int64_t>(values.size());
    Column column = sequenceColumn({ScalarType::Int64}, {0, n}, {scalarColumn(ScalarType::Int64, scalars)});
    return bind(exp(core::Constant{{column}}, {kInts}));
  }
  core::FunctionId declare(std::string name, std::vector<Var> parameters, Row result,
                           bool fromLibrary = false) {
    program.functions.push_back({name, parameters, result, nullptr, {}, fromLibrary});
    return static_cast<core::FunctionId>(program.functions.size() - 1);
  }

  core::Program program;

 private:
  Block block_;
  uint32_t next_ = 0;  ///< a different span for every operation
};

struct Outcome {
  std::string value, output;
  std::optional<RuntimeError> error;
};

std::string show(const CoreType& type, const Columns& row) {
  std::function<ValueTypePtr(const CoreType&)> convert = [&](const CoreType& t) {
    ValueType v;
    if (t.isScalar()) {
      v.scalar = t.scalar();
    } else {
      v.kind = ValueType::Kind::Sequence;
      v.parts = {convert(t.elements()[0])};
    }
    return std::make_shared<const ValueType>(v);
  };
  return printValue(*convert(type), row);
}

Outcome run(const core::Program& program, const InterpreterOptions& options = {}) {
  Outcome outcome;
  ServiceOptions serviceOptions;
  serviceOptions.output = [&](std::string_view s) { outcome.output += s; };
  const auto services = makeServices(serviceOptions);
  const auto result = interpret(
      program, [](uint32_t) { return Columns(); }, *services, options);
  if (const auto* error = std::get_if<RuntimeError>(&result)) {
    outcome.error = *error;
  } else {
    outcome.value = show(program.entry->type[0], std::get<Columns>(result));
  }
  return outcome;
}

template <class F>
Outcome runEntry(Builder& b, F make) {
  b.program.entry = b.block(make);
  return run(b.program);
}

TEST(Interpreter, NestedApplyToEachSeesOuterVariables) {
  Builder b;  // {{x + y : y in [0:x]} : x in [0:4]}
  const Outcome outcome = runEntry(b, [&] {
    return b.each(b.range(b.constant(4)), [&](Atom x) {
      return b.each(b.range(x), [&](Atom y) { return b.scalar(ScalarOp::Add, x, y); });
    });
  });
  EXPECT_EQ(outcome.value, "[[], [1], [2, 3], [3, 4, 5]]");
}

TEST(Interpreter, FreeSequencesAreIndexedWithoutCopies) {
  Builder b;  // let a = [0:3000] in sum({a[i] : i in [0:3000]}), far too large if a were copied for each i
  const Outcome outcome = runEntry(b, [&] {
    const Atom a = b.range(b.constant(300000));
    return b.sum(b.each(b.range(b.constant(300000)), [&](Atom i) {
      return b.prim(PrimOp::Index, {a, i}, kInt);
    }));
  });
  EXPECT_EQ(outcome.value, "44999850000");
}

TEST(Interpreter, BranchesRunForTheirInstancesOnly) {
  Builder b;  // {if x == 0 then 0 else 12 / x : x in [0, 3, 0, 4]}
  const Outcome outcome = runEntry(b, [&] {
    return b.each(b.list({0, 3, 0, 4}), [&](Atom x) {
      return b.branch(
          b.scalar(ScalarOp::Equal, x, b.constant(0)), [&] { return b.constant(0); },
          [&] { return b.scalar(ScalarOp::Div, b.constant(12), x); });
    });
  });
  EXPECT_EQ(outcome.value, "[0, 4, 0, 3]");
}

TEST(Interpreter, BranchesOfSequencesMerge) {
  Builder b;  // {if x < 2 then [0:x] else [7, 7] : x in [0:4]}
  const Outcome outcome = runEntry(b, [&] {
    return b.each(b.range(b.constant(4)), [&](Atom x) {
      return b.branch(
          b.scalar(ScalarOp::Less, x, b.constant(2)), [&] { return b.range(x); },
          [&] {
            return b.list({7, 7});
          });
    });
  });
  EXPECT_EQ(outcome.value, "[[], [0], [7, 7], [7, 7]]");
}

TEST(Interpreter, RecursionEndsWhereNoInstanceIsLeft) {
  Builder b;  // function ff(n) = 1 + sum({ff(i) : i in [0:n]}), without an if
  const Var n = b.var(kInt);
  const core::FunctionId ff = b.declare("ff", {n}, {kInt});
  b.program.functions[ff].body = b.block([&] {
    const Atom inner = b.each(b.range(b.atom(n)), [&](Atom i) { return b.call(ff, {i}, kInt); });
    return b.scalar(ScalarOp::Add, b.constant(1), b.sum(inner));
  });
  EXPECT_EQ(runEntry(b, [&] { return b.call(ff, {b.constant(10)}, kInt); }).value, "1024");
}

/// function count(i, n) = if i < n then count(i + 1, n) else i
core::FunctionId addCount(Builder& b) {
  const Var i = b.var(kInt), n = b.var(kInt);
  const core::FunctionId count = b.declare("count", {i, n}, {kInt});
  b.program.functions[count].body = b.block([&] {
    return b.branch(
        b.scalar(ScalarOp::Less, b.atom(i), b.atom(n)),
        [&] {
          return b.call(count, {b.scalar(ScalarOp::Add, b.atom(i), b.constant(1)), b.atom(n)}, kInt);
        },
        [&] { return b.atom(i); });
  });
  return count;
}

TEST(Interpreter, TailCallsLoop) {
  Builder b;
  const core::FunctionId count = addCount(b);
  EXPECT_EQ(runEntry(b,
                     [&] {
                       return b.call(count, {b.constant(0), b.constant(1000000)}, kInt);
                     })
                .value,
            "1000000");
}

TEST(Interpreter, TailCallsLoopForInstancesThatEndApart) {
  Builder b;
  const core::FunctionId count = addCount(b);
  const Outcome outcome = runEntry(b, [&] {
    return b.sum(b.each(b.range(b.constant(3000)), [&](Atom n) {
      return b.call(count, {b.constant(5), n}, kInt);
    }));
  });
  EXPECT_EQ(outcome.value, std::to_string(2999 * 1500 + 5 + 4 + 3 + 2 + 1));
}

TEST(Interpreter, EndlessRecursionIsAnError) {
  Builder b;  // function down(n) = 1 + down(n)
  const Var n = b.var(kInt);
  const core::FunctionId down = b.declare("down", {n}, {kInt});
  b.program.functions[down].body =
      b.block([&] { return b.scalar(ScalarOp::Add, b.constant(1), b.call(down, {b.atom(n)}, kInt)); });
  const Outcome outcome = runEntry(b, [&] { return b.call(down, {b.constant(1)}, kInt); });
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->message, HasSubstr("recursion is too deep"));
}

TEST(Interpreter, AnEndlessLoopCanBeInterrupted) {
  Builder b;
  const Var n = b.var(kInt);
  const core::FunctionId loop = b.declare("loop", {n}, {kInt});
  b.program.functions[loop].body = b.block([&] { return b.call(loop, {b.atom(n)}, kInt); });
  b.program.entry = b.block([&] { return b.call(loop, {b.constant(1)}, kInt); });
  const std::atomic<bool> interrupted = true;
  const Outcome outcome = run(b.program, {&interrupted});
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->message, "interrupted");
}

TEST(Interpreter, RandomDrawsAreConsecutiveOverInstances) {
  Builder b;
  const Outcome outcome = runEntry(b, [&] {
    const Atom hundreds = b.prim(PrimOp::Distribute, {b.constant(6), b.constant(100)}, kInts);
    return b.each(hundreds, [&](Atom x) { return b.prim(PrimOp::RandomInt, {x}, kInt); });
  });
  EXPECT_EQ(outcome.value, "[83, 86, 77, 15, 93, 35]");
}

TEST(Interpreter, RandomBoundsOfOuterVariablesStillDrawForEveryInstance) {
  Builder b;  // let n = 100 in {rand(n) : i in [0:3]}
  const Outcome outcome = runEntry(b, [&] {
    const Atom n = b.scalar(ScalarOp::Add, b.constant(50), b.constant(50));
    return b.each(b.range(b.constant(3)), [&](Atom) { return b.prim(PrimOp::RandomInt, {n}, kInt); });
  });
  EXPECT_EQ(outcome.value, "[83, 86, 77]");
}

TEST(Interpreter, InvariantsAreEvaluatedOnceAndNotForNothing) {
  for (const int64_t n : {3, 0}) {
    Builder b;  // {rand(10) : x in [0:n]}, then a draw that shows how many were taken
    const Outcome outcome = runEntry(b, [&] {
      const Atom draws = b.each(b.range(b.constant(n)), [&](Atom) {
        const ExpPtr body = b.block([&] { return b.prim(PrimOp::RandomInt, {b.constant(10)}, kInt); });
        return b.bind(b.exp(core::Invariant{body}, body->type));
      });
      const Atom next = b.prim(PrimOp::RandomInt, {b.constant(100)}, kInt);
      return b.prim(PrimOp::Append, {draws, b.prim(PrimOp::Distribute, {b.constant(1), next}, kInts)}, kInts);
    });
    EXPECT_EQ(outcome.value, n == 3 ? "[3, 3, 3, 86]" : "[83]");
  }
}

TEST(Interpreter, GlobalsAreSeenInFunctions) {
  Builder b;  // function f(x) = x + g, with g = 5 in cell 3
  const Var x = b.var(kInt), g = b.var(kInt);
  b.program.globals.push_back({3, {g}});
  const core::FunctionId f = b.declare("f", {x}, {kInt});
  b.program.functions[f].body = b.block([&] { return b.scalar(ScalarOp::Add, b.atom(x), b.atom(g)); });
  b.program.entry =
      b.block([&] { return b.each(b.range(b.constant(3)), [&](Atom i) { return b.call(f, {i}, kInt); }); });
  const auto services = makeServices();
  const auto cells = [](uint32_t cell) {
    return Columns{scalarColumn(ScalarType::Int64, std::vector{Scalar::ofInt(ScalarType::Int64, cell + 2)})};
  };
  const auto result = interpret(b.program, cells, *services);
  EXPECT_EQ(show(kInts, std::get<Columns>(result)), "[5, 6, 7]");
}

TEST(Interpreter, PrintingIsLockStep) {
  Builder b;  // {let p = print(x's character); q = print("|") in 0 : x in [...]}
  const CoreType string = CoreType::sequence({ScalarType::Char});
  const Outcome outcome = runEntry(b, [&] {
    return b.each(b.list({97, 98, 99}), [&](Atom x) {
      const Atom c = b.prim(PrimOp::Convert, {x}, ScalarType::Char);
      b.prim(PrimOp::Print, {b.prim(PrimOp::Distribute, {b.constant(2), c}, string)}, kBool);
      b.prim(PrimOp::Print, {b.prim(PrimOp::Distribute, {b.constant(1), c}, string)}, kBool);
      return b.constant(0);
    });
  });
  EXPECT_EQ(outcome.output, "aabbccabc");
}

TEST(Interpreter, SerialApplyToEachFinishesOneInstanceFirst) {
  Builder b;
  const CoreType string = CoreType::sequence({ScalarType::Char});
  b.program.entry = b.block([&] {
    const Atom source = b.list({97, 98});
    const Var x = b.var(kInt);
    const ExpPtr body = b.block([&] {
      const Atom c = b.prim(PrimOp::Convert, {b.atom(x)}, ScalarType::Char);
      const Atom s = b.prim(PrimOp::Distribute, {b.constant(1), c}, string);
      b.prim(PrimOp::Print, {s}, kBool);
      b.prim(PrimOp::Print, {s}, kBool);
      return b.atom(x);
    });
    return b.bind(b.exp(core::Each{{{{x}, source}}, body, true}, {kInts}));
  });
  const Outcome outcome = run(b.program);
  EXPECT_EQ(outcome.output, "aabb");
  EXPECT_EQ(outcome.value, "[97, 98]");
}

TEST(Interpreter, ErrorsOfLibraryCodeAreReportedAtTheUsersCall) {
  Builder b;  // library: inner(x) = 1 / x, outer(x) = inner(x) + 1; user: outer(0)
  const Var x = b.var(kInt), y = b.var(kInt);
  const core::FunctionId inner = b.declare("inner", {x}, {kInt}, true),
                         outer = b.declare("outer", {y}, {kInt}, true);
  b.program.functions[inner].body =
      b.block([&] { return b.scalar(ScalarOp::Div, b.constant(1), b.atom(x)); });
  b.program.functions[outer].body =
      b.block([&] { return b.scalar(ScalarOp::Add, b.call(inner, {b.atom(y)}, kInt), b.constant(1)); });
  const auto call = std::make_shared<const Exp>(Exp{core::Call{outer, {b.constant(0)}}, {kInt}, {7, 40, 50}});
  b.program.entry = call;
  const Outcome outcome = run(b.program);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->span, (Span{7, 40, 50}));
  EXPECT_EQ(outcome.error->message, "division by zero");
}

TEST(Interpreter, ChecksReportTheFailingValues) {
  struct Case {
    PrimOp op;
    std::function<std::vector<Atom>(Builder&)> arguments;
    CoreType type;
    std::string message;
  };
  const CoreType lists = CoreType::sequence({kInts});
  const std::vector<Case> cases = {
      {PrimOp::Index,
       [](Builder& b) {
         return std::vector{b.list({1, 2}), b.constant(2)};
       },
       kInt, "index 2 is out of range for a sequence of length 2"},
      {PrimOp::Range,
       [](Builder& b) {
         return std::vector{b.constant(5), b.constant(0), b.constant(1)};
       },
       kInts, "the range starts at 5, after its end 0"},
      {PrimOp::Distribute,
       [](Builder& b) {
         return std::vector{b.constant(-1), b.constant(0)};
       },
       kInts, "the number of copies is negative: -1"},
      {PrimOp::Partition,
       [](Builder& b) {
         return std::vector{b.list({1, 2, 3}), b.list({1, 1})};
       },
       lists, "have 2 elements together, the sequence has 3"},
      {PrimOp::Slice,
       [](Builder& b) {
         return std::vector{b.list({1, 2, 3}), b.constant(1), b.constant(3), b.constant(1)};
       },
       kInts, "3 elements from position 1 reach outside the sequence"},
      {PrimOp::LastWriter,
       [](Builder& b) {
         return std::vector{b.list({0, 4}), b.constant(4)};
       },
       kInts, "index 4 is out of range for a sequence of length 4"},
      {PrimOp::RandomInt, [](Builder& b) { return std::vector{b.constant(0)}; }, kInt, "must be positive"},
  };
  for (const Case& c : cases) {
    Builder b;
    const Outcome outcome = runEntry(b, [&] { return b.prim(c.op, c.arguments(b), c.type); });
    ASSERT_TRUE(outcome.error) << c.message;
    EXPECT_THAT(outcome.error->message, HasSubstr(c.message));
  }
}

TEST(Interpreter, SequencePrimitives) {
  const CoreType lists = CoreType::sequence({kInts});
  Builder b;
  const Outcome outcome = runEntry(b, [&] {
    const Atom v = b.list({5, 1, 4, 1, 3});
    const Atom grade = b.prim(PrimOp::Grade, {v}, kInts);
    const Atom rank = b.prim(PrimOp::LastWriter, {grade, b.constant(5)}, kInts);
    const Atom reversed = b.prim(PrimOp::Slice, {v, b.constant(4), b.constant(5), b.constant(-1)}, kInts);
    const Atom pieces = b.prim(PrimOp::Partition, {v, b.list({2, 0, 3})}, lists);
    Prim literal{PrimOp::Literal, {grade, rank, reversed}};
    literal.count = 3;
    return b.prim(PrimOp::Append, {b.bind(b.exp(literal, {lists})), pieces}, lists);
  });
  EXPECT_EQ(outcome.value, "[[1, 3, 4, 2, 0], [4, 0, 3, 1, 2], [3, 1, 4, 1, 5], [5, 1], [], [4, 1, 3]]");
}

}  // namespace
}  // namespace kelpie
