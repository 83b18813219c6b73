#include "codegen/expression_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/integer_division.h"

namespace kelpie::codegen {

using lcu::ExprKind;
using lcu::ExprRef;

namespace {

/// Inline expressions longer than this get a name.
constexpr size_t kMaxInlineLength = 72;
constexpr std::string_view kWord = "uint32_t";

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
    case ExprKind::Op:
      if (isComparison(e->op)) return "test";
      return std::string(toString(e->op)) + "_";
    default:
      return "t";
  }
}

/// Turns of loops between two questions whether to stop.
constexpr int kTurns = 4096;

}  // namespace

void ExpressionEmitter::Run::line(Frame& f, const std::string& text, int deeper) {
  f.text += std::string(static_cast<size_t>(f.indent + deeper), ' ') + text + "\n";
}

void ExpressionEmitter::Run::countUses(const std::vector<ExprRef>& roots) {
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

std::string ExpressionEmitter::Run::run() {
  enter(0, emitter.indent_);
  if (emitter.dialect_.divisionCalls) findQuotients();
  const bool asks = schedule.hasLoop && !emitter.dialect_.interrupted.empty();
  if ((schedule.hasLoop && schedule.hasCheck) || schedule.hasRecursion || asks) {
    failed = emitter.freshName("failed");
    declare(frames.back(), ScalarType::Bool, failed, "false", true);
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
      for (const std::string& name : f.declared) locals.erase(name);
      for (const ExprRef quotient : f.divided) divided.erase(quotient);
      for (const ExprRef load : f.inRecords) inRecords.erase(load);
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

void ExpressionEmitter::Run::enter(uint32_t block, int indent) {
  Frame frame;
  frame.block = block;
  frame.indent = indent;
  frames.push_back(std::move(frame));
}

void ExpressionEmitter::Run::enterEnd(uint32_t block, int indent, ExprRef loop, std::vector<ExprRef> ends,
                                      Facts facts) {
  enter(block, indent);
  Frame& f = frames.back();
  f.branch = lastIf(schedule.blocks[block], ends);
  f.loop = loop;
  f.ends = std::move(ends);
  f.facts = std::move(facts);
}

void ExpressionEmitter::Run::enterBranch(const Frame& f, bool then) {
  const ScheduleStep& step = schedule.blocks[f.block].steps[*f.branch];
  Facts facts = f.facts;
  facts.emplace_back(step.node->operands[0], then);
  enterEnd(then ? step.first : step.second, f.indent + 2, f.loop, endsOfBranch(step.node, then, f.ends),
           std::move(facts));
}

void ExpressionEmitter::Run::finishBranch(Frame& f, uint32_t finished, std::string text) {
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

void ExpressionEmitter::Run::leaf(Frame& f) {
  const uint32_t flag = *endFlag(f.loop);
  const auto known = knownValue(f.ends[flag], f.facts);
  assign(f, f.loop, f.ends, known == false ? std::optional(flag) : std::nullopt);
  if (known == true) {
    line(f, "break;");
  } else if (!known) {
    line(f, fmt::format("if ({}) break;", emitter.loopVars_.at(loopVarKey(f.loop->index, flag))));
  }
}

void ExpressionEmitter::Run::assign(Frame& f, ExprRef loop, const std::vector<ExprRef>& next,
                                    std::optional<uint32_t> kept) {
  struct Change {
    std::string name, value;
    std::string_view type;
  };
  std::vector<Change> changed;
  for (uint32_t k = 0; k < loop->count; ++k) {
    const std::string& name = emitter.loopVars_.at(loopVarKey(loop->index, k));
    std::string value = emitter.textOf(next[k]).text;
    const bool word = emitter.words_.contains(loopVarKey(loop->index, k));
    if (k != kept && value != variableText(emitter, loop->index, k))
      changed.push_back({name, std::move(value), word ? kWord : cTypeName(next[k]->type)});
  }
  if (changed.size() > 1) {
    for (Change& change : changed) {
      const std::string name = emitter.freshName("next");
      line(f, fmt::format("const {} {} = {};", change.type, name, change.value));
      change.value = name;
    }
  }
  for (const Change& change : changed) line(f, change.name + " = " + change.value + ";");
}

std::string ExpressionEmitter::Run::variableText(const ExpressionEmitter& emitter, uint32_t loop,
                                                 uint32_t number) {
  const uint64_t key = loopVarKey(loop, number);
  const std::string& name = emitter.loopVars_.at(key);
  return emitter.words_.contains(key) ? fmt::format("{}({})", cTypeName(ScalarType::Int64), name) : name;
}

std::vector<bool> ExpressionEmitter::Run::wordsOf(ExprRef loop) const {
  constexpr int kBits = 32;
  std::vector<bool> words(loop->count, false);
  if (!emitter.dialect_.wordVariables || inFrames) return words;
  const std::vector<ExprRef> turn(loop->operands.begin() + loop->count, loop->operands.end());
  lcu::forEachNode(turn, [&](ExprRef e) {
    if (e->kind == ExprKind::LoopVar && e->index == loop->index)
      words[e->count] = e->nonNegative && e->bits <= kBits;
  });
  return words;
}

void ExpressionEmitter::Run::declareWord(Frame& f, const std::string& name, const std::string& value) {
  if (declaresAhead()) {
    emitter.declarations_ += fmt::format("  {} {}{{}};\n", kWord, name);
    return line(f, fmt::format("{} = {};", name, value));
  }
  line(f, fmt::format("{} {} = {};", kWord, name, value));
}

void ExpressionEmitter::Run::declare(Frame& f, ScalarType type, const std::string& name,
                                     const std::string& value, bool changes) {
  if (declaresAhead()) {
    declare(f, type, name);
    return line(f, fmt::format("{} = {};", name, value));
  }
  if (!inFrames)
    return line(f, fmt::format("{}{} {} = {};", changes ? "" : "const ", cTypeName(type), name, value));
  line(f, fmt::format("{} {};", cTypeName(type), name));
  line(f, fmt::format("{} = {};", name, value));
  remember(f, type, name);
}

void ExpressionEmitter::Run::declare(Frame& f, ScalarType type, const std::string& name) {
  if (declaresAhead()) {
    emitter.declarations_ += fmt::format("  {} {}{{}};\n", cTypeName(type), name);
  } else {
    remember(f, type, name);
    line(f, fmt::format("{} {};", cTypeName(type), name));
  }
}

void ExpressionEmitter::Run::operation(Frame& f, ExprRef e) {
  if (recorded(f, e) || divided.contains(e)) return;
  const std::optional<Text> ofQuotient = remainder(f, e);
  Text text = ofQuotient ? *ofQuotient : emitter.operationText(e);
  // What takes long gets a name even if one other uses it: a later call of emit may use it, too, and
  // compilers do not find out that code with branches or calls computes one value twice.
  if (uses[e] == 1 && text.text.size() <= kMaxInlineLength && !takesLong(e) && !dividesByWords(e) &&
      !emitter.named_.contains(e)) {
    emitter.texts_[e] = std::move(text);
    return;
  }
  std::string name = emitter.freshName(stemOf(e, emitter.dialect_));
  declare(f, e->type, name, text.text);
  if (isColumn(f, e)) line(f, fmt::format("k_loaded({});", name));
  emitter.texts_[e] = {name, true};
  if (e->kind == ExprKind::Op && e->op == ScalarOp::Div) named(f, e);
}

void ExpressionEmitter::Run::findQuotients() {
  for (const ScheduleBlock& block : schedule.blocks) {
    for (const ScheduleStep& step : block.steps) {
      const ExprRef e = step.node;
      if (dividesIntegers(e) && e->op == ScalarOp::Div && (takesLong(e) || dividesByWords(e)))
        quotients[{e->operands[0], e->operands[1]}] = e;
    }
  }
}

std::optional<ExpressionEmitter::Text> ExpressionEmitter::Run::remainder(Frame& f, ExprRef e) {
  // Frames of calls do not know that the quotient is wanted.
  if (e->kind != ExprKind::Op || e->op != ScalarOp::Rem || inFrames) return std::nullopt;
  const std::pair<ExprRef, ExprRef> operands(e->operands[0], e->operands[1]);
  const auto before = emitter.quotients_.find(operands), known = quotients.find(operands);
  if (before == emitter.quotients_.end() && known == quotients.end()) return std::nullopt;
  const ExprRef quotient = before != emitter.quotients_.end() ? before->second : known->second;
  if (before == emitter.quotients_.end() && !divided.contains(quotient)) {
    const std::string name = emitter.freshName(stemOf(quotient, emitter.dialect_));
    declare(f, quotient->type, name, emitter.operationText(quotient).text);
    emitter.texts_[quotient] = {name, true};
    named(f, quotient);
  }
  const auto argument = [&](ExprRef x) {
    return x->kind == ExprKind::Constant && !emitter.texts_.contains(x) ? literalText(x->constant)
                                                                        : emitter.textOf(x).text;
  };
  return Text{fmt::format("k_remainder({}, {}, {})", argument(e->operands[0]), argument(e->operands[1]),
                          emitter.textOf(quotient).text),
              true};
}

void ExpressionEmitter::Run::named(Frame& f, ExprRef quotient) {
  const auto known = quotients.find({quotient->operands[0], quotient->operands[1]});
  if (known == quotients.end() || !divided.insert(quotient).second) return;
  f.divided.push_back(quotient);
  if (frames.size() == 1) emitter.quotients_[known->first] = quotient;
}

bool ExpressionEmitter::Run::isColumn(const Frame& f, ExprRef e) const {
  if (!emitter.dialect_.loadedCalls || !f.loop || e->kind != ExprKind::Load) return false;
  if (e->type == ScalarType::Bool || e->type == ScalarType::Char) return false;
  const auto& steps = schedule.blocks[f.block].steps;
  return std::any_of(steps.begin(), steps.end(), [&](const ScheduleStep& step) {
    return step.node->kind == ExprKind::Load && step.node != e && step.node->operands[0] == e->operands[0];
  });
}

void ExpressionEmitter::Run::addColumns(uint32_t block, ExprRef position, bool inside,
                                        std::vector<ExprRef>& loads) const {
  for (const ScheduleStep& step : schedule.blocks[block].steps) {
    const ExprRef e = step.node;
    if (e->kind == ExprKind::Load && e->operands[0] == position &&
        std::find(loads.begin(), loads.end(), e) == loads.end() &&
        (e->type == ScalarType::Int64 || e->type == ScalarType::Float64))
      loads.push_back(e);
    if (!inside || e->kind == ExprKind::Recursion) continue;  // whose frames have names of their own
    for (const uint32_t other : {step.first, step.second})
      if (other != 0) addColumns(other, position, inside, loads);
  }
}

/// Columns that a branch alone needs come with the others: its steps would wait for them anew (Barnes-Hut
/// took 1.2 times as long). But only those as long as one that every way needs: there is a record for each
/// place that all columns have, and the branch may be there as another column ends before.
bool ExpressionEmitter::Run::recorded(Frame& f, ExprRef e) {
  if (inRecords.contains(e)) return true;
  if (inFrames || !emitter.dialect_.record || e->kind != ExprKind::Load) return false;
  const ExprRef position = e->operands[0];
  const bool outside = !f.loop && position == emitter.dialect_.gathered;
  if (position->kind == ExprKind::Param || !(outside || isColumn(f, e))) return false;
  std::vector<ExprRef> own, loads;
  addColumns(f.block, position, false, own);
  if (own.size() < 2 || own.front() != e) return false;
  loads = own;
  addColumns(f.block, position, true, loads);
  std::erase_if(loads, [&](ExprRef load) {
    return std::none_of(own.begin(), own.end(), [&](ExprRef other) {
      return load == other || emitter.dialect_.sameLength(load, other);
    });
  });
  std::string text = emitter.dialect_.record(loads, emitter.textOf(position).text);
  if (text.empty()) {
    loads = std::move(own);
    text = emitter.dialect_.record(loads, emitter.textOf(position).text);
  }
  if (text.empty()) return false;
  const std::string record = emitter.freshName("record");
  line(f, fmt::format("const auto {} = {};", record, text));
  for (size_t k = 0; k < loads.size(); ++k) {
    const std::string name = emitter.freshName(stemOf(loads[k], emitter.dialect_));
    const char* function = isFloat(loads[k]->type) ? "floatColumn" : "integerColumn";
    line(f, fmt::format("const {} {} = {}({}.column[{}]);", cTypeName(loads[k]->type), name, function, record,
                        k));
    emitter.texts_[loads[k]] = {name, true};
    inRecords.insert(loads[k]);
    f.inRecords.push_back(loads[k]);
  }
  return true;
}

void ExpressionEmitter::Run::check(Frame& f, ExprRef e) {
  std::string name = emitter.freshName(stemOf(e, emitter.dialect_));
  const auto& o = e->operands;
  declare(f, e->type, name, emitter.textOf(o[1]).text, true);
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

std::string ExpressionEmitter::Run::record(lcu::SiteId site, const std::string& payload0,
                                           const std::string& payload1) const {
  const Dialect& d = emitter.dialect_;
  return d.checks == CheckForm::Note ? d.noted + " = false;" : d.fail(site, payload0, payload1);
}

std::vector<std::string> ExpressionEmitter::Run::textsOf(const std::vector<ExprRef>& es, bool atomic) const {
  std::vector<std::string> texts;
  for (ExprRef e : es) texts.push_back(atomic ? emitter.atomic(e) : emitter.textOf(e).text);
  return texts;
}

void ExpressionEmitter::Run::startLoop(Frame& f, const ScheduleStep& step) {
  ExprRef e = step.node;
  auto initial = textsOf(loopInitial(e), false);
  f.firstValues.clear();
  const std::vector<bool> words = wordsOf(e);
  for (uint32_t k = 0; k < e->count; ++k) {
    std::string name = emitter.freshName(stemOf(e, emitter.dialect_));
    if (words[k]) {
      declareWord(f, name, initial[k]);
      emitter.words_.insert(loopVarKey(e->index, k));
    } else {
      declare(f, e->operands[k]->type, name, initial[k], true);
      emitter.words_.erase(loopVarKey(e->index, k));
    }
    emitter.loopVars_[loopVarKey(e->index, k)] = name;
    f.firstValues.push_back(name);
  }
  f.condition.clear();
  enter(step.first, f.indent + 2);
}

void ExpressionEmitter::Run::finishBlock(Frame& f, uint32_t finished, std::string text) {
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

void ExpressionEmitter::Run::finishIf(Frame& f, ExprRef e, const std::string& elseText) {
  auto elseTexts = textsOf(elseValues(e), true);
  std::vector<std::string> names;
  auto types = thenValues(e);
  bool plain = f.firstText.empty() && elseText.empty();
  for (ExprRef v : types) {
    names.push_back(emitter.freshName(stemOf(e, emitter.dialect_)));
    if (!plain) declare(f, v->type, names.back());
  }
  if (plain) {
    for (size_t k = 0; k < names.size(); ++k) {
      // Both sides are made of the value's type: C would otherwise widen small constants.
      declare(f, types[k]->type, names[k],
              fmt::format("{} ? {} : {}", emitter.atomic(e->operands[0]), f.firstValues[k], elseTexts[k]));
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

void ExpressionEmitter::Run::finishLoop(Frame& f, ExprRef e, const std::string& bodyText) {
  const bool wanted = e == emitter.wantedLoop_ && frames.size() == 1;
  if (wanted) emitter.beforeLoop_ = std::exchange(f.text, std::string());
  std::optional<KnownLoop> known;
  if (emitter.dialect_.knownLoop && !wanted && !inFrames) known = emitter.dialect_.knownLoop(e);
  const std::string before = known ? std::exchange(f.text, std::string()) : std::string();
  line(f, wanted ? emitter.loopHead_ : failed.empty() ? "while (true) {" : "while (!" + failed + ") {");
  if (wanted && !failed.empty()) line(f, "if (" + failed + ") break;", 2);
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
  if (known) {
    const std::string loop = std::exchange(f.text, before);
    line(f, fmt::format("if ({}) {{", known->known));
    for (uint32_t k = 0; k < e->count; ++k)
      if (!known->values[k].empty()) line(f, fmt::format("{} = {};", f.firstValues[k], known->values[k]), 2);
    line(f, "} else {");
    f.text += indented(loop, 2);
    line(f, "}");
  }
  std::vector<std::string> values;
  for (uint32_t k = 0; k < e->count; ++k) values.push_back(variableText(emitter, e->index, k));
  emitter.multiple_[e] = std::move(values);
}

}  // namespace kelpie::codegen
