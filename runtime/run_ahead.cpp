#include "runtime/run_ahead.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace kelpie::runtime {

namespace {

/// A condition is foretold when it came out the same way that often in a row,
constexpr int kAgreed = 2;
/// unless foretelling was futile that often.
constexpr int kFutile = 2;
/// So many times as often it must have agreed as conditions are open: the steps that are in vain when it
/// comes out otherwise are few beside those before.
constexpr int kAgreedForEach = 4;
/// Memory that may be kept to come back to: by several steps, and by one. A step that keeps more takes so
/// long that waiting is nothing.
constexpr size_t kKept = size_t{24} << 20, kKeptByOne = size_t{256} << 20;

}  // namespace

void RunAhead::note(History& history, bool value) {
  history.agreed = history.latest == value ? history.agreed + 1 : 1;
  history.latest = value;
}

bool RunAhead::mayForetell(const History& history) const {
  return history.agreed >= kAgreed && history.futile < kFutile && !context_.options.timeKernels &&
         context_.target.canForetell();
}

bool RunAhead::decide(const PlanInstruction& i) {
  DeviceValue& condition = *stack_.value(i.operands[0]).device;
  History& history = history_[&i];
  if (!condition.known(0) && mayForetell(history)) {
    const bool expected = history.latest;
    foretell(i, history);
    return expected;
  }
  const bool value = context_.fetch(condition, 0).i != 0;
  note(history, value);
  return value;
}

void RunAhead::foretell(const PlanInstruction& i, History& history) {
  while (!open_.empty() && close(false)) {
  }
  const size_t inUse = context_.pool.bytesInUse();
  const size_t kept = open_.empty() || inUse < open_.front().bytes ? 0 : inUse - open_.front().bytes;
  if (kept > kKeptByOne) history.futile = kFutile;
  makeRoom(kept > kKept ? open_.size() - 1
                        : std::min<size_t>(Target::kMostForetold - 1, history.agreed / kAgreedForEach));
  recorder_.keepJournal(true);
  Open open{0, &i, history.latest, stack_.copyOfTop(), stack_.top().pc, recorder_.journal(), inUse};
  context_.pending = true;
  context_.check(context_.target.foretell(stack_.value(i.operands[0]).device->buffer->pointer(),
                                          open.expected, open.number));
  open_.push_back(std::move(open));
  ++history.foretold;
  ++context_.statistics.foretold;
}

/// Half of them at once, so that the launches that follow make a long row.
void RunAhead::makeRoom(size_t most) {
  if (open_.size() <= most) return;
  while (open_.size() > most / 2) close(true);
}

bool RunAhead::close(bool wait) {
  Open& first = open_.front();
  Outcome outcome = Outcome::Open;
  context_.check(context_.target.outcomeOf(first.number, false, outcome));
  if (outcome == Outcome::Open) {
    if (!wait) return false;
    ++context_.statistics.synchronisations;
    const auto begin = std::chrono::steady_clock::now();
    const Failure failure = context_.target.outcomeOf(first.number, true, outcome);
    context_.statistics.waitedSeconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    context_.check(failure);
  }
  if (outcome != Outcome::AsForetold) takeBack(outcome);
  note(history_[first.instruction], first.expected);
  open_.pop_front();
  if (open_.empty()) recorder_.keepJournal(false);
  return true;
}

void RunAhead::takeBack(Outcome outcome) {
  Open first = std::move(open_.front());
  open_.clear();
  recorder_.takeBack(first.journal);
  recorder_.keepJournal(false);
  context_.target.takeBack(first.number);
  if (outcome == Outcome::Unreached) {
    context_.synchronise();  // tells of the error
    throw InternalError("a condition was not reached, and there is no error");
  }
  stack_.restoreTop(std::move(first.values));
  stack_.top().pc = first.expected ? first.instruction->target : first.next;
  note(history_[first.instruction], !first.expected);
  throw Returned();
}

void RunAhead::settle() {
  if (open_.empty()) return;
  for (auto& [instruction, history] : history_)
    if (std::exchange(history.foretold, 0) == 1) ++history.futile;
  makeRoom(0);
}

}  // namespace kelpie::runtime
