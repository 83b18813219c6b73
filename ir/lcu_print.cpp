// λcu as text; grammar/Lcu.g4 is the same syntax from the reader's side.
//
//   site @1 = "index {0} is out of range" 1:20..25
//   function norm2(xs: [float64]) {
//     kernel sum_1 {
//       let s1: &float64 = REDUCE flat #xs { i => xs[i] } (0.0) { x, y => x + y }
//       return s1
//     }
//     ...
//     return res1, res2
//   }
//
// A variable is declared with its kind and type where it is bound: int64 on the host, &int64 in a device
// cell, [int64; n] an array with n elements ([int64] when nothing but its own size is known).
#include <fmt/format.h>

#include "ir/expr_print.h"
#include "ir/lcu.h"
#include "ir/lcu_names.h"
#include "ir/literal.h"

namespace kelpie::lcu {
namespace {

const std::vector<std::string> kNoParams;
const std::vector<std::string> kFlatParams = {"i"};
const std::vector<std::string> kSegmentParams = {"i", "s", "p"};

/// Of an operator on k-tuples: x, y or x1, x2, y1, y2.
std::vector<std::string> operatorParams(size_t k) {
  if (k == 1) return {"x", "y"};
  std::vector<std::string> params;
  for (const char* side : {"x", "y"})
    for (size_t j = 1; j <= k; ++j) params.push_back(fmt::format("{}{}", side, j));
  return params;
}

std::string spanText(const Span& span) { return fmt::format("{}:{}..{}", span.file, span.begin, span.end); }

/// " @line "norm2" 1:20..25", or nothing.
std::string lineText(const Span& span, const std::string& origin = "") {
  if (!span.known() && origin.empty()) return "";
  return " @line" + (origin.empty() ? "" : " " + quotedText(origin)) +
         (span.known() ? " " + spanText(span) : "");
}

std::string scalarsText(const std::vector<Scalar>& values) {
  std::string text;
  for (const Scalar& value : values) text += (text.empty() ? "" : ", ") + literalText(value);
  return "(" + text + ")";
}

class Printer {
 public:
  Printer(const Program& program, const Names& names) : program_(program), names_(names) {}

  std::string program() {
    for (size_t k = 1; k < program_.sites.size(); ++k) {
      const Site& site = program_.sites[k];
      line(fmt::format("site @{} = {}{}", k, quotedText(site.message),
                       site.span.known() ? " " + spanText(site.span) : ""));
    }
    for (const GlobalInput& global : program_.globals)
      line(fmt::format("global {}: {} = {}", global.cell, typesText(global.types), binders(global.vars)));
    for (uint32_t k = 0; k < program_.functions.size(); ++k) {
      const HostFunction& function = program_.functions[k];
      line(fmt::format("function {}({}) {{", names_.function(k), binders(function.params)));
      block(function.body, "return");
      line("}");
    }
    line(fmt::format("entry {}: {} {{", nameText(program_.entry.name), typesText(program_.resultTypes)));
    block(program_.entry.body, "return");
    line("}");
    return std::move(out_);
  }

  std::string kernelText(const Kernel& kernel) {
    this->kernel(kernel, "");
    return std::move(out_);
  }

 private:
  void line(const std::string& words) { out_ += std::string(indent_, ' ') + words + "\n"; }

  std::string typesText(const std::vector<CoreType>& types) const {
    return "(" + kelpie::toString(types) + ")";
  }

  std::string hostText(const std::vector<ExprRef>& es) const {
    return exprsText(es, kNoParams, names_, indent_ + 6);
  }
  /// A missing expression is a violation that the verifier reports; the text must still print.
  std::string hostText(ExprRef e) const { return e ? hostText(std::vector{e}) : "missing"; }

  std::string vars(const std::vector<VarId>& ids) const {
    std::string text;
    for (VarId id : ids) text += (text.empty() ? "" : ", ") + names_.var(id);
    return text;
  }

  std::string binders(const std::vector<VarId>& ids) const {
    std::string text;
    for (VarId id : ids) text += (text.empty() ? "" : ", ") + names_.var(id) + ": " + typeText(id);
    return text;
  }

  std::string typeText(VarId id) const {
    if (id == 0 || id >= program_.vars.size()) return "unknown";
    const VarInfo& info = program_.vars[id];
    std::string scalar(kelpie::toString(info.type));
    if (info.kind == VarKind::Host) return scalar;
    if (info.kind == VarKind::Cell) return "&" + scalar;
    if (info.extent == program_.arena->size(id)) return "[" + scalar + "]";
    return fmt::format("[{}; {}]", scalar, hostText(info.extent));
  }

  void block(const Block& block, const char* ending) {
    indent_ += 2;
    for (const Stmt& stmt : block.stmts) statement(stmt);
    if (!block.results.empty()) line(fmt::format("{} {}", ending, vars(block.results)));
    indent_ -= 2;
  }

  void statement(const Stmt& stmt) {
    const std::string head = stmt.results.empty() ? "" : fmt::format("let {} = ", binders(stmt.results));
    const std::string tail = lineText(stmt.span);
    if (const auto* let = std::get_if<HostLet>(&stmt.node)) {
      line(head + hostText(let->values) + tail);
    } else if (const auto* launch = std::get_if<Launch>(&stmt.node)) {
      kernel(launch->kernel, tail);
    } else if (const auto* call = std::get_if<CallFunction>(&stmt.node)) {
      line(
          fmt::format("{}call {}({}){}", head, names_.function(call->function), vars(call->arguments), tail));
    } else if (const auto* conditional = std::get_if<HostIf>(&stmt.node)) {
      line(fmt::format("{}if {} {{", head, hostText(conditional->condition)));
      block(*conditional->thenBlock, "yield");
      line("} else {");
      block(*conditional->elseBlock, "yield");
      line("}" + tail);
    } else if (const auto* loop = std::get_if<HostLoop>(&stmt.node)) {
      std::string params;
      for (size_t k = 0; k < loop->params.size(); ++k) {
        const std::string initial = k < loop->initial.size() ? names_.var(loop->initial[k]) : "";
        params += (params.empty() ? "" : ", ") + binders({loop->params[k]}) + " = " + initial;
      }
      line(fmt::format("{}loop ({}) while {{", head, params));
      block(*loop->condition, "yield");
      line("} do {");
      block(*loop->body, "yield");
      line("}" + tail);
    } else if (const auto* constant = std::get_if<ArrayConstant>(&stmt.node)) {
      std::string columns;
      for (const Column& column : constant->columns)
        columns += (columns.empty() ? "" : ", ") + columnText(column);
      line(head + "constant " + columns + tail);
    } else if (const auto* join = std::get_if<Join>(&stmt.node)) {
      line(fmt::format("{}join {}{}", head, vars(join->arrays), tail));
    } else if (const auto* grade = std::get_if<Grade>(&stmt.node)) {
      std::string what;
      if (grade->order) what += "grade ";
      if (grade->sorted) what += "sort ";
      if (grade->ranks) what += "ranks ";
      line(fmt::format("{}{}{} over {}{}", head, what, names_.var(grade->keys), spaceText(grade->space),
                       tail));
    } else if (const auto* service = std::get_if<Service>(&stmt.node)) {
      line(fmt::format("{}service {}({}): {} -> {} @{}{}", head, nameText(service->name),
                       vars(service->arguments), typesText(service->argumentTypes),
                       typesText(service->resultTypes), service->site, tail));
    }
  }

  std::string columnText(const Column& column) const {
    std::string text;
    if (column.type == CoreType(ScalarType::Char)) {
      for (int64_t k = 0; k < column.length(); ++k) text += static_cast<char>(column.at(k).i);
      return quotedText(text);
    }
    for (int64_t k = 0; k < column.length(); ++k) text += (k == 0 ? "" : ", ") + literalText(column.at(k));
    return "[" + text + "]";
  }

  void kernel(const Kernel& kernel, const std::string& tail) {
    line(fmt::format("kernel {} {{", nameText(kernel.name)));
    indent_ += 2;
    for (const Soac& soac : kernel.bindings) {
      const std::string head = soac.results.empty() ? "" : fmt::format("let {} = ", binders(soac.results));
      line(head + soacText(soac) + lineText(soac.span, soac.origin));
    }
    if (!kernel.returns.empty()) line("return " + vars(kernel.returns));
    indent_ -= 2;
    line("}" + tail);
  }

  std::string spaceText(const Space& space) const {
    switch (space.kind) {
      case SpaceKind::Flat:
        return "flat " + hostText(space.extent);
      case SpaceKind::Offsets:
        return fmt::format("seg({}, {}, {})", names_.var(space.offsets), hostText(space.segments),
                           hostText(space.extent));
      case SpaceKind::Regular:
        return fmt::format("regular({}, {}, {})", hostText(space.segments), hostText(space.length),
                           hostText(space.extent));
    }
    return "";
  }

  std::string thunkText(const std::vector<ExprRef>& es, const std::vector<std::string>& params) const {
    const std::string body = exprsText(es, params, names_, indent_ + 6);
    const std::string head = params.empty() ? "" : fmt::format(" {} =>", fmt::join(params, ", "));
    return "{" + head + (body.empty() || body.front() == '\n' ? "" : " ") + body + " }";
  }

  std::string soacText(const Soac& soac) const {
    const bool isOnce = soac.kind == SoacKind::Once;
    const auto& params = isOnce ? kNoParams : soac.space.segmented() ? kSegmentParams : kFlatParams;
    const std::string over = (isOnce ? "" : spaceText(soac.space) + " ") + thunkText(soac.pull, params);
    const auto thunk = [&](ExprRef e) { return e ? thunkText({e}, params) : "{ }"; };
    const auto combine = [&] {
      return " " + scalarsText(soac.combine.identity) + " " +
             thunkText(soac.combine.result, operatorParams(soac.combine.identity.size()));
    };
    std::string text;
    switch (soac.kind) {
      case SoacKind::Map:
        text = "MAP " + over;
        break;
      case SoacKind::Permute:
        text = fmt::format("PERMUTE {} to {}{} target {}", over, thunk(soac.destination),
                           soac.where ? " where " + thunk(soac.where) : "", hostText(soac.target));
        if (!soac.fill.empty()) text += " fill " + scalarsText(soac.fill);
        for (size_t j = 0; j < soac.onto.size(); ++j)
          text += (j == 0 ? " onto " : ", ") + names_.var(soac.onto[j]);
        if (soac.unique) text += " unique";
        if (soac.agreeing) text += " agreeing";
        break;
      case SoacKind::Reduce:
        text = "REDUCE " + over + combine();
        break;
      case SoacKind::Scan:
        text = fmt::format("SCAN {}{}{}{}{}", soac.inclusive ? "inclusive " : "",
                           soac.backward ? "backward " : "", soac.withTotal ? "total " : "", over, combine());
        break;
      case SoacKind::Filter:
        text = "FILTER " + over + " where " + thunk(soac.where);
        break;
      case SoacKind::Partition:
        text = "PARTITION " + over + " where " + thunk(soac.where);
        break;
      case SoacKind::Once:
        text = "ONCE " + over;
        break;
    }
    return soac.effects.empty() ? text : text + " effects " + thunkText(soac.effects, params);
  }

  const Program& program_;
  const Names& names_;
  std::string out_;
  size_t indent_ = 0;
};

}  // namespace

std::string toString(const Program& program) {
  const Names names(program);
  return Printer(program, names).program();
}

std::string toString(const Kernel& kernel, const Program& program, const Names& names) {
  return Printer(program, names).kernelText(kernel);
}
std::string toString(const Kernel& kernel, const Program& program) {
  return toString(kernel, program, Names(program));
}

std::string toString(ExprRef e, const Names& names) { return exprsText({e}, kSegmentParams, names, 4); }
std::string toString(ExprRef e, const Program& program) { return toString(e, Names(program)); }

}  // namespace kelpie::lcu
