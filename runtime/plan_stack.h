// The frames of the calls that are active, with the values of their variables, and the globals.
#pragma once

#include <algorithm>
#include <vector>

#include "ir/diagnostic.h"
#include "runtime/device_value.h"
#include "runtime/plan.h"

namespace kelpie::runtime {

class PlanStack {
 public:
  explicit PlanStack(const Plan& plan) : plan_(plan), globals_(plan.globals) {}

  struct Frame {
    uint32_t function;
    uint32_t pc;
    size_t base;
  };
  Frame& top() { return frames_.back(); }
  size_t depth() const { return frames_.size(); }
  /// Memory of the frames with one more for a call of `function`.
  size_t bytesWith(uint32_t function) const {
    return (values_.size() + plan_.functions[function].slots) * sizeof(PlanValue) +
           (frames_.size() + 1) * sizeof(Frame);
  }

  void push(uint32_t function, std::vector<PlanValue> arguments) {
    const PlanFunction& f = plan_.functions[function];
    frames_.push_back({function, 0, values_.size()});
    values_.resize(values_.size() + f.slots);
    for (size_t k = 0; k < arguments.size(); ++k) value(f.params[k]) = std::move(arguments[k]);
  }
  void pop() {
    values_.resize(frames_.back().base);
    frames_.pop_back();
  }
  void clear() {
    values_.clear();
    globals_.clear();
  }

  PlanValue& value(Slot s) {
    return (s & kGlobalSlot) != 0 ? globals_[s & ~kGlobalSlot] : values_[frames_.back().base + s];
  }
  PlanValue& valueOf(lcu::VarId v) { return value(plan_.slotOf[v]); }
  std::vector<PlanValue> copies(const std::vector<Slot>& slots) {
    std::vector<PlanValue> values;
    values.reserve(slots.size());
    for (Slot s : slots) values.push_back(value(s));
    return values;
  }
  void assign(const std::vector<Slot>& slots, std::vector<PlanValue> values) {
    if (slots.size() != values.size()) throw InternalError("plan: numbers of results differ");
    for (size_t k = 0; k < slots.size(); ++k) value(slots[k]) = std::move(values[k]);
  }
  /// All at once.
  void move(const std::vector<Slot>& from, const std::vector<Slot>& to) {
    if (to.size() != from.size()) throw InternalError("plan: numbers of results differ");
    moved_.clear();
    for (Slot s : from) moved_.push_back(value(s));
    for (size_t k = 0; k < to.size(); ++k) value(to[k]) = std::move(moved_[k]);
  }
  /// The values of the frame on top, to come back to.
  std::vector<PlanValue> copyOfTop() const {
    return {values_.begin() + static_cast<std::ptrdiff_t>(frames_.back().base), values_.end()};
  }
  void restoreTop(std::vector<PlanValue> values) {
    std::move(values.begin(), values.end(),
              values_.begin() + static_cast<std::ptrdiff_t>(frames_.back().base));
  }
  /// Calls `use` for the values of the frame on top.
  template <typename Use>
  void forEachOnTop(const Use& use) {
    if (frames_.empty()) return;
    for (size_t k = frames_.back().base; k < values_.size(); ++k) use(values_[k]);
  }

 private:
  const Plan& plan_;
  std::vector<PlanValue> values_, globals_;
  std::vector<PlanValue> moved_;  ///< of move(), empty values otherwise: most steps of loops move some
  std::vector<Frame> frames_;
};

}  // namespace kelpie::runtime
