#include "flatten/functions_of_instances.h"

#include "flatten/core_walk.h"

namespace kelpie::flatten {
namespace {

class Finder {
 public:
  explicit Finder(const core::Program& program) : program_(program), found_(program.functions.size()) {}

  std::vector<bool> run() {
    for (const core::Function& function : program_.functions) visit(function.body, false);
    visit(program_.entry, false);
    while (!pending_.empty()) {  // what is called for several instances calls others for them
      const core::FunctionId f = pending_.back();
      pending_.pop_back();
      visit(program_.functions[f].body, true);
    }
    return std::move(found_);
  }

 private:
  void visit(const core::ExpPtr& e, bool instances) {
    if (!e) return;
    const Chain all = takeApart(e);
    for (const Chain::Binding& let : all.lets) visitInside(let.rhs, instances);
    visitInside(all.tail, instances);
  }
  void visitInside(const core::ExpPtr& e, bool instances) {
    if (const auto* call = std::get_if<core::Call>(&e->node); call && instances && !found_[call->function]) {
      found_[call->function] = true;
      pending_.push_back(call->function);
    }
    const bool inside = instances || std::holds_alternative<core::Each>(e->node);
    forEachPart(*e, [&](const core::ExpPtr& part) { visit(part, inside); });
  }

  const core::Program& program_;
  std::vector<bool> found_;
  std::vector<core::FunctionId> pending_;
};

}  // namespace

std::vector<bool> functionsOfInstances(const core::Program& program) { return Finder(program).run(); }

}  // namespace kelpie::flatten
