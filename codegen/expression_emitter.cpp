#include "codegen/expression_emitter.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/loop_exits.h"
#include "ir/diagnostic.h"

namespace kelpie::codegen {

using lcu::Expr;
using lcu::ExprKind;
using lcu::ExprRef;

namespace {

/// Inline expressions longer than this get a name.
constexpr size_t kMaxInlineLength = 72;

/// Operations that get a name even if one other uses them: a later call of emit may use them, too, and
/// compilers do not find out that code with branches (a division of 64 bits, a sine) or calls computes one
/// value twice.
bool takesLong(ExprRef e) {
  if (e->kind != ExprKind::Op) return false;
  if (e->op == ScalarOp::Div || e->op == ScalarOp::Rem) return e->operands[1]->kind != ExprKind::Constant;
  return e->op >= ScalarOp::Sqrt && e->op != ScalarOp::Floor;
}

uint64_t loopVarKey(uint32_t loop, uint32_t number) { return (uint64_t{loop} << 32) | number; }

bool needsWrap(ScalarOp op) { return op == ScalarOp::Add || op == ScalarOp::Sub || op == ScalarOp::Mul; }

/// Whether two tests are x >= 0 and x < y, of ints.
bool isRangeTest(ExprRef a, ExprRef b) {
  return a->kind == ExprKind::Op && a->op == ScalarOp::GreaterEqual && b->kind == ExprKind::Op &&
         b->op == ScalarOp::Less && a->operands[0] == b->operands[0] &&
         a->operands[0]->type == ScalarType::Int64 && a->operands[1]->kind == ExprKind::Constant &&
         a->operands[1]->constant.i == 0;
}

/// Stem of the name of a node's value.
std::string stemOf(ExprRef e, const Dialect& dialect) {
  switch (e->kind) {
    case ExprKind::Load:
      return dialect.variableName(e->index) + "_at";
    case ExprKind::Check:
      return "checked";
    case ExprKind::Convert:
      return "converted";
    case ExprKind::If:
      return "chosen";
    case ExprKind::Loop:
      return "state";
    case ExprKind::Recursion:
      return "recursion";
    case ExprKind::Call:
      return "called";
    case ExprKind::Op:
      if (isComparison(e->op)) return "test";
      return std::string(toString(e->op)) + "_";
    default:
      return "t";
  }
}

}  // namespace

ExpressionEmitter::ExpressionEmitter(const Dialect& dialect, int indent, std::string prefix)
    : dialect_(dialect), indent_(indent), prefix_(std::move(prefix)) {}

std::string ExpressionEmitter::freshName(const std::string& stem) {
  int number = ++nameCounts_[stem];
  return fmt::format("{}{}{}{}", prefix_, stem, stem.ends_with('_') ? "" : "_", number);
}

void ExpressionEmitter::statement(const std::string& text) {
  out_ += std::string(static_cast<size_t>(indent_), ' ') + text + "\n";
}

std::string ExpressionEmitter::takeStatements() {
  std::string text;
  text.swap(out_);
  return text;
}

void ExpressionEmitter::define(ExprRef node, std::string text) {
  texts_[node] = {std::move(text), true};
  available_.insert(node);
}

std::string ExpressionEmitter::atomic(ExprRef e) const {
  Text t = textOf(e);
  return t.atomic ? t.text : "(" + t.text + ")";
}

/// The text of a node placed before, or of an atom.
ExpressionEmitter::Text ExpressionEmitter::textOf(ExprRef e) const {
  if (auto it = texts_.find(e); it != texts_.end()) return it->second;
  switch (e->kind) {
    case ExprKind::Constant: {
      // Small Int64 constants read better bare; C converts them where they meet an int64_t operand, and two
      // constants never meet (they fold).
      if (e->type == ScalarType::Int64 && e->constant.i >= INT32_MIN && e->constant.i <= INT32_MAX) {
        return {fmt::format("{}", e->constant.i), e->constant.i >= 0};
      }
      std::string text = literalText(e->constant);
      bool negative = text.starts_with('-');
      return {std::move(text), !negative};
    }
    case ExprKind::Param:
      return {dialect_.param(e->index), true};
    case ExprKind::Host:
      return {dialect_.host(e->index, e->type), true};
    case ExprKind::Size:
      return {dialect_.size(e->index), true};
    case ExprKind::LoopVar:
      return {loopVars_.at(loopVarKey(e->index, e->count)), true};
    case ExprKind::Project: {
      auto it = multiple_.find(e->operands[0]);
      if (it == multiple_.end()) throw InternalError("projection of an expression that was not placed");
      return {it->second.at(e->index), true};
    }
    default:
      throw InternalError("expression used before it was placed");
  }
}

/// The text of an Op, a Convert or a Load over placed operands.
ExpressionEmitter::Text ExpressionEmitter::operationText(ExprRef e) const {
  if (e->kind == ExprKind::Load) return {dialect_.load(e, textOf(e->operands[0]).text), true};
  if (e->kind == ExprKind::Convert) {
    return {fmt::format("k_convert<{}>({})", cTypeName(e->type), textOf(e->operands[0]).text), true};
  }
  ExprRef a = e->operands[0];
  ScalarType type = a->type;
  if (arity(e->op) == 1) {
    if (e->op == ScalarOp::Not) return {(type == ScalarType::Bool ? "!" : "~") + atomic(a), true};
    if (e->op == ScalarOp::Negate) {
      if (isInt(type) && dialect_.wrapCalls) {
        return {fmt::format("k_sub({}(0), {})", cTypeName(type), textOf(a).text), true};
      }
      std::string zero = type == ScalarType::Float32 ? "0.0f" : type == ScalarType::Float64 ? "0.0" : "0";
      return {zero + " - " + atomic(a), false};
    }
    return {fmt::format("{}({})", functionName(e->op), textOf(a).text), true};
  }
  ExprRef b = e->operands[1];
  if (dialect_.rangeCalls && e->op == ScalarOp::And && isRangeTest(a, b)) {
    // An index of 32 bits that has been widened is tested before it is.
    ExprRef x = a->operands[0];
    if (x->kind == ExprKind::Convert && x->operands[0]->type == ScalarType::Int32) x = x->operands[0];
    return {fmt::format("k_within({}, {})", textOf(x).text, textOf(b->operands[1]).text), true};
  }
  std::string_view symbol = infix(e->op, isFloat(type));
  if (dialect_.shortCircuit && type == ScalarType::Bool) {
    if (e->op == ScalarOp::And) symbol = "&&";
    if (e->op == ScalarOp::Or) symbol = "||";
  }
  // NESL's library has no other absolute value; of floats it is a part of the operation that takes it.
  if (e->op == ScalarOp::Max && isFloat(type) && b->kind == ExprKind::Op && b->op == ScalarOp::Negate &&
      b->operands[0] == a)
    return {fmt::format("k_abs({})", textOf(a).text), true};
  if (!dialect_.reciprocal.empty() && e->op == ScalarOp::Div && isFloat(type) &&
      a->kind == ExprKind::Constant && a->constant.f == 1 && !texts_.contains(a))
    return {dialect_.reciprocal + textOf(b).text + ")", true};
  bool call = symbol.empty() || (dialect_.wrapCalls && isInt(type) && needsWrap(e->op));
  if (call) {
    // Overloads are chosen by type, so constants are written with theirs.
    auto argument = [&](ExprRef x) {
      return x->kind == ExprKind::Constant && !texts_.contains(x) ? literalText(x->constant) : textOf(x).text;
    };
    return {fmt::format("{}({}, {})", functionName(e->op), argument(a), argument(b)), true};
  }
  return {fmt::format("{} {} {}", atomic(a), symbol, atomic(b)), false};
}

/// Turns of loops between two questions whether to stop.
constexpr int kTurns = 4096;

/// One call of emit: walks the blocks of a schedule with its own stack.
struct ExpressionEmitter::Run {
  ExpressionEmitter& emitter;
  Schedule schedule;
  std::unordered_map<ExprRef, uint32_t> uses;
  std::string failed;  ///< name of the flag "this evaluation recorded an error"; empty when nothing needs it
  std::string turns;   ///< name of the number of turns until loops ask; empty when they do not
  std::string stack;   ///< name of the k_recursion of this evaluation
  struct Function {
    ExprRef recursion;
    std::string values, self;  ///< names of its type of results and of itself inside
  };
  std::unordered_map<uint32_t, Function> functions;  ///< of recursions, by id
  std::unordered_set<ExprRef> inRecords;             ///< loads that have come with others

  struct Frame {
    uint32_t block;
    int indent;
    size_t step = 0;
    int phase = 0;  ///< of the current If or Loop step: blocks done
    std::string text, firstText;
    std::vector<std::string> firstValues;  ///< If: the then values; Loop: the names of the variables
    std::string condition;
    /// In a block that ends a step of a loop that is left at its leaves (loop_exits.h):
    ExprRef loop = nullptr;
    std::vector<ExprRef> ends;     ///< its variables' next values
    Facts facts;                   ///< the conditions around the block
    std::optional<size_t> branch;  ///< the If that is put last; it has the leaves
    bool atLast = false;           ///< it is its turn
  };
  std::vector<Frame> frames;

  static void line(Frame& f, const std::string& text, int deeper = 0) {
    f.text += std::string(static_cast<size_t>(f.indent + deeper), ' ') + text + "\n";
  }

  void countUses(const std::vector<ExprRef>& roots) {
    std::vector<ExprRef> work;
    auto use = [&](ExprRef e) {
      if (++uses[e] == 1) work.push_back(e);
    };
    for (ExprRef r : roots) use(r);
    while (!work.empty()) {
      ExprRef e = work.back();
      work.pop_back();
      if (emitter.available_.contains(e)) continue;
      for (ExprRef o : e->operands) use(o);
    }
  }

  std::string run() {
    enter(0, emitter.indent_);
    const bool asks = schedule.hasLoop && !emitter.dialect_.interrupted.empty();
    if ((schedule.hasLoop && schedule.hasCheck) || schedule.hasRecursion || asks) {
      failed = emitter.freshName("failed");
      line(frames.back(), "bool " + failed + " = false;");
    }
    if (asks) {
      turns = emitter.freshName("turns");
      line(frames.back(), fmt::format("uint32_t {} = {};", turns, kTurns));
    }
    if (schedule.hasRecursion) {
      stack = emitter.freshName("stack");
      line(frames.back(), fmt::format("k_recursion {}{{{}}};", stack, emitter.dialect_.recursion));
    }
    while (true) {
      Frame& f = frames.back();
      const ScheduleBlock& block = schedule.blocks[f.block];
      if (f.branch == f.step && !f.atLast) {
        ++f.step;  // its turn comes when all others are done
        continue;
      }
      if (f.step == block.steps.size() && f.branch && !f.atLast) {
        f.atLast = true;
        f.step = *f.branch;
        enterBranch(f, true);
        continue;
      }
      if (f.step == block.steps.size()) {
        if (f.loop && !f.branch) leaf(f);
        if (frames.size() == 1) return f.text;
        std::string text = std::move(f.text);
        uint32_t finished = f.block;
        frames.pop_back();
        if (frames.back().atLast) {
          finishBranch(frames.back(), finished, std::move(text));
        } else {
          finishBlock(frames.back(), finished, std::move(text));
        }
        continue;
      }
      const ScheduleStep& step = block.steps[f.step];
      switch (step.node->kind) {
        case ExprKind::If:
          enter(step.first, f.indent + 2);
          break;
        case ExprKind::Loop:
          startLoop(f, step);
          break;
        case ExprKind::Recursion:
          startRecursion(f, step);
          break;
        case ExprKind::Call:
          call(f, step.node);
          ++f.step;
          break;
        case ExprKind::Check:
          check(f, step.node);
          ++f.step;
          break;
        default:
          operation(f, step.node);
          ++f.step;
      }
    }
  }

  void enter(uint32_t block, int indent) {
    Frame frame;
    frame.block = block;
    frame.indent = indent;
    frames.push_back(std::move(frame));
  }
  /// A block at whose end the variables of `loop` are `ends`.
  void enterEnd(uint32_t block, int indent, ExprRef loop, std::vector<ExprRef> ends, Facts facts) {
    enter(block, indent);
    Frame& f = frames.back();
    f.branch = lastIf(schedule.blocks[block], ends);
    f.loop = loop;
    f.ends = std::move(ends);
    f.facts = std::move(facts);
  }

  /// A branch of the If that ends the block of `f`.
  void enterBranch(const Frame& f, bool then) {
    const ScheduleStep& step = schedule.blocks[f.block].steps[*f.branch];
    Facts facts = f.facts;
    facts.emplace_back(step.node->operands[0], then);
    enterEnd(then ? step.first : step.second, f.indent + 2, f.loop, endsOfBranch(step.node, then, f.ends),
             std::move(facts));
  }
  void finishBranch(Frame& f, uint32_t finished, std::string text) {
    const ScheduleStep& step = schedule.blocks[f.block].steps[*f.branch];
    if (finished == step.first) {
      f.firstText = std::move(text);
      enterBranch(f, false);
      return;
    }
    line(f, fmt::format("if ({}) {{", emitter.textOf(step.node->operands[0]).text));
    f.text += f.firstText;
    if (!text.empty()) line(f, "} else {");
    f.text += text;
    line(f, "}");
    f.step = schedule.blocks[f.block].steps.size();
  }
  /// The end of a step of a loop: on with the next one, or out.
  void leaf(Frame& f) {
    const uint32_t flag = *endFlag(f.loop);
    const auto known = knownValue(f.ends[flag], f.facts);
    assign(f, f.loop, f.ends, known == false ? std::optional(flag) : std::nullopt);
    if (known == true) {
      line(f, "break;");
    } else if (!known) {
      line(f, fmt::format("if ({}) break;", emitter.loopVars_.at(loopVarKey(f.loop->index, flag))));
    }
  }
  /// The variables of a loop step together, but for one that keeps its value.
  void assign(Frame& f, ExprRef loop, const std::vector<ExprRef>& next, std::optional<uint32_t> kept) {
    struct Change {
      std::string name, value;
      ScalarType type;
    };
    std::vector<Change> changed;
    for (uint32_t k = 0; k < loop->count; ++k) {
      const std::string& name = emitter.loopVars_.at(loopVarKey(loop->index, k));
      std::string value = emitter.textOf(next[k]).text;
      if (k != kept && value != name) changed.push_back({name, std::move(value), next[k]->type});
    }
    if (changed.size() > 1) {
      for (Change& change : changed) {
        const std::string name = emitter.freshName("next");
        line(f, fmt::format("const {} {} = {};", cTypeName(change.type), name, change.value));
        change.value = name;
      }
    }
    for (const Change& change : changed) line(f, change.name + " = " + change.value + ";");
  }

  void operation(Frame& f, ExprRef e) {
    if (recorded(f, e)) return;
    Text text = emitter.operationText(e);
    if (uses[e] == 1 && text.text.size() <= kMaxInlineLength && !takesLong(e)) {
      emitter.texts_[e] = std::move(text);
      return;
    }
    std::string name = emitter.freshName(stemOf(e, emitter.dialect_));
    line(f, fmt::format("const {} {} = {};", cTypeName(e->type), name, text.text));
    if (isColumn(f, e)) line(f, fmt::format("k_loaded({});", name));
    emitter.texts_[e] = {name, true};
  }
  /// Whether `e` is a number loaded in a step of a loop beside others from the same position.
  bool isColumn(const Frame& f, ExprRef e) const {
    if (!emitter.dialect_.loadedCalls || !f.loop || e->kind != ExprKind::Load) return false;
    if (e->type == ScalarType::Bool || e->type == ScalarType::Char) return false;
    const auto& steps = schedule.blocks[f.block].steps;
    return std::any_of(steps.begin(), steps.end(), [&](const ScheduleStep& step) {
      return step.node->kind == ExprKind::Load && step.node != e && step.node->operands[0] == e->operands[0];
    });
  }

  /// Loads all columns of an element with the first one.
  bool recorded(Frame& f, ExprRef e) {
    if (!emitter.dialect_.record || !isColumn(f, e) || e->operands[0]->kind == ExprKind::Param) return false;
    std::vector<ExprRef> loads;
    for (const ScheduleStep& step : schedule.blocks[f.block].steps) {
      const ExprRef load = step.node;
      if (load->kind == ExprKind::Load && load->operands[0] == e->operands[0] &&
          (load->type == ScalarType::Int64 || load->type == ScalarType::Float64))
        loads.push_back(load);
    }
    if (loads.size() < 2) return false;
    if (loads.front() != e) return inRecords.contains(e);
    const std::string text = emitter.dialect_.record(loads, emitter.textOf(e->operands[0]).text);
    if (text.empty()) return false;
    const std::string record = emitter.freshName("record");
    line(f, fmt::format("const auto {} = {};", record, text));
    for (size_t k = 0; k < loads.size(); ++k) {
      const std::string name = emitter.freshName(stemOf(loads[k], emitter.dialect_));
      const char* function = isFloat(loads[k]->type) ? "floatColumn" : "integerColumn";
      line(f, fmt::format("const {} {} = {}({}.column[{}]);", cTypeName(loads[k]->type), name, function,
                          record, k));
      emitter.texts_[loads[k]] = {name, true};
      inRecords.insert(loads[k]);
    }
    return true;
  }

  void check(Frame& f, ExprRef e) {
    std::string name = emitter.freshName(stemOf(e, emitter.dialect_));
    const auto& o = e->operands;
    line(f, fmt::format("{} {} = {};", cTypeName(e->type), name, emitter.textOf(o[1]).text));
    emitter.texts_[e] = {name, true};
    const Dialect& d = emitter.dialect_;
    if (d.checks == CheckForm::Assume) return;
    const std::string condition = emitter.textOf(o[0]).text;
    if (d.checks == CheckForm::Note && d.anyFloat && isFloat(e->type) && failed.empty()) {
      line(f, fmt::format("{0} = {0} && ({1});", d.noted, condition));
      return;
    }
    line(f, fmt::format("if (!({})) {{", condition));
    line(f, record(e->index, emitter.textOf(o[3]).text, emitter.textOf(o[4]).text), 2);
    line(f, fmt::format("{} = {};", name, emitter.textOf(o[2]).text), 2);
    if (!failed.empty()) line(f, failed + " = true;", 2);
    line(f, "}");
  }
  /// The statement for an error of `site`.
  std::string record(lcu::SiteId site, const std::string& payload0, const std::string& payload1) const {
    const Dialect& d = emitter.dialect_;
    return d.checks == CheckForm::Note ? d.noted + " = false;" : d.fail(site, payload0, payload1);
  }

  std::vector<std::string> textsOf(const std::vector<ExprRef>& es, bool atomic) const {
    std::vector<std::string> texts;
    for (ExprRef e : es) texts.push_back(atomic ? emitter.atomic(e) : emitter.textOf(e).text);
    return texts;
  }

  void startLoop(Frame& f, const ScheduleStep& step) {
    ExprRef e = step.node;
    auto initial = textsOf(loopInitial(e), false);
    f.firstValues.clear();
    for (uint32_t k = 0; k < e->count; ++k) {
      std::string name = emitter.freshName(stemOf(e, emitter.dialect_));
      line(f, fmt::format("{} {} = {};", cTypeName(e->operands[k]->type), name, initial[k]));
      emitter.loopVars_[loopVarKey(e->index, k)] = name;
      f.firstValues.push_back(name);
    }
    f.condition.clear();
    enter(step.first, f.indent + 2);
  }

  void startRecursion(Frame& f, const ScheduleStep& step) {
    ExprRef e = step.node;
    const std::string name = emitter.freshName(stemOf(e, emitter.dialect_));
    functions[e->index] = {e, emitter.freshName("values"), name + "_self"};
    f.firstValues = {name};
    for (size_t k = 0; k < recursionArguments(e).size(); ++k)
      emitter.loopVars_[loopVarKey(e->index, static_cast<uint32_t>(k))] = emitter.freshName("argument");
    enter(step.first, f.indent + 2);
  }

  /// The function is a lambda, so that it reads what is around it; it is given itself.
  void finishRecursion(Frame& f, ExprRef e, const std::string& body) {
    const Function& function = functions.at(e->index);
    const std::string& name = f.firstValues[0];
    const auto arguments = recursionArguments(e), results = recursionResults(e);
    std::string members, parameters = "const auto& " + function.self, given = name;
    for (size_t k = 0; k < results.size(); ++k)
      members += fmt::format(" {} value_{};", cTypeName(results[k]->type), k);
    for (uint32_t k = 0; k < arguments.size(); ++k) {
      parameters += fmt::format(", {} {}", cTypeName(arguments[k]->type),
                                emitter.loopVars_.at(loopVarKey(e->index, k)));
      given += ", " + emitter.textOf(arguments[k]).text;
    }
    line(f, fmt::format("struct {} {{{} }};", function.values, members));
    line(f, fmt::format("const auto {} = [&]({}) -> {} {{", name, parameters, function.values));
    f.text += body;
    const std::string out = emitter.freshName("result");
    line(f, fmt::format("{} {};", function.values, out), 2);
    for (size_t k = 0; k < results.size(); ++k)
      line(f, fmt::format("{}.value_{} = {};", out, k, emitter.textOf(results[k]).text), 2);
    line(f, fmt::format("return {};", out), 2);
    line(f, "};");
    const std::string values = emitter.freshName("recursive");
    line(f, fmt::format("const {} {} = {}({});", function.values, values, name, given));
    emitter.multiple_[e] = membersOf(values, results.size());
  }

  void call(Frame& f, ExprRef e) {
    const Function& function = functions.at(e->index);
    const std::string name = emitter.freshName(stemOf(e, emitter.dialect_));
    std::string given = function.self;
    for (ExprRef argument : e->operands) given += ", " + emitter.textOf(argument).text;
    const auto site =
        emitter.dialect_.stackSite.value_or(static_cast<lcu::SiteId>(function.recursion->constant.i));
    line(f, fmt::format("{} {}{{}};", function.values, name));
    line(f, fmt::format("if (!{} && !k_recurse({}, [&] {{ {} = {}({}); }})) {{", failed, stack, name,
                        function.self, given));
    line(f, record(site, "0", "0"), 2);
    line(f, failed + " = true;", 2);
    line(f, "}");
    emitter.multiple_[e] = membersOf(name, e->count);
  }

  static std::vector<std::string> membersOf(const std::string& values, size_t count) {
    std::vector<std::string> members;
    for (size_t k = 0; k < count; ++k) members.push_back(fmt::format("{}.value_{}", values, k));
    return members;
  }

  /// A nested block of the current step of `f` is complete.
  void finishBlock(Frame& f, uint32_t finished, std::string text) {
    const ScheduleStep& step = schedule.blocks[f.block].steps[f.step];
    bool first = finished == step.first;
    if (step.node->kind == ExprKind::If) {
      if (first) {
        f.firstText = std::move(text);
        f.firstValues = textsOf(thenValues(step.node), true);
        enter(step.second, f.indent + 2);
        return;
      }
      finishIf(f, step.node, text);
    } else if (step.node->kind == ExprKind::Recursion) {
      finishRecursion(f, step.node, text);
    } else {
      if (first) {
        f.firstText = std::move(text);
        f.condition = emitter.textOf(loopCondition(step.node)).text;
        if (endFlag(step.node)) {
          enterEnd(step.second, f.indent + 2, step.node, loopNext(step.node), {});
        } else {
          enter(step.second, f.indent + 2);
        }
        return;
      }
      finishLoop(f, step.node, text);
    }
    ++f.step;
  }

  void finishIf(Frame& f, ExprRef e, const std::string& elseText) {
    auto elseTexts = textsOf(elseValues(e), true);
    std::vector<std::string> names;
    auto types = thenValues(e);
    bool plain = f.firstText.empty() && elseText.empty();
    for (ExprRef v : types) {
      names.push_back(emitter.freshName(stemOf(e, emitter.dialect_)));
      if (!plain) line(f, fmt::format("{} {};", cTypeName(v->type), names.back()));
    }
    if (plain) {
      for (size_t k = 0; k < names.size(); ++k) {
        // Both sides are made of the value's type: C would otherwise widen small constants.
        line(f, fmt::format("const {} {} = {} ? {} : {};", cTypeName(types[k]->type), names[k],
                            emitter.atomic(e->operands[0]), f.firstValues[k], elseTexts[k]));
      }
    } else {
      line(f, fmt::format("if ({}) {{", emitter.textOf(e->operands[0]).text));
      f.text += f.firstText;
      for (size_t k = 0; k < names.size(); ++k) line(f, names[k] + " = " + f.firstValues[k] + ";", 2);
      line(f, "} else {");
      f.text += elseText;
      for (size_t k = 0; k < names.size(); ++k) line(f, names[k] + " = " + elseTexts[k] + ";", 2);
      line(f, "}");
    }
    emitter.multiple_[e] = std::move(names);
  }

  void finishLoop(Frame& f, ExprRef e, const std::string& bodyText) {
    line(f, failed.empty() ? "while (true) {" : "while (!" + failed + ") {");
    f.text += f.firstText;
    if (!endFlag(e)) line(f, "if (!(" + f.condition + ")) break;", 2);
    f.text += bodyText;
    if (!endFlag(e)) {
      Frame inside;
      inside.indent = f.indent + 2;
      assign(inside, e, loopNext(e), std::nullopt);
      f.text += inside.text;
    }
    if (!turns.empty()) {
      line(f, fmt::format("if (--{} == 0) {{", turns), 2);
      line(f, fmt::format("{} = {};", turns, kTurns), 4);
      line(f, fmt::format("if (({} = {})) break;", failed, emitter.dialect_.interrupted), 4);
      line(f, "}", 2);
    }
    line(f, "}");
    emitter.multiple_[e] = f.firstValues;
  }
};

std::vector<std::string> ExpressionEmitter::emit(const std::vector<ExprRef>& roots) {
  Run run{*this, scheduleExpressions(roots, available_), {}, "", "", "", {}, {}, {}};
  run.countUses(roots);
  out_ += run.run();
  for (const ScheduleStep& step : run.schedule.blocks[0].steps) available_.insert(step.node);
  std::vector<std::string> texts;
  for (ExprRef r : roots) texts.push_back(textOf(r).text);
  return texts;
}

}  // namespace kelpie::codegen
