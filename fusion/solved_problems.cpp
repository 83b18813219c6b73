#include "fusion/solved_problems.h"

#include <type_traits>

namespace kelpie::fusion {

namespace {

/// Of problems; then all are forgotten. One of 100 nodes takes some kilobytes.
constexpr size_t kMostBytes = size_t{64} << 20;

/// Numbers as bytes, lists behind their lengths.
class Text {
 public:
  template <class Number>
  void add(Number number) {
    static_assert(std::is_arithmetic_v<Number>);
    text_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  template <class Value>
  void add(const std::vector<Value>& values) {
    add(values.size());
    for (const Value& value : values) add(value);
  }
  void add(const std::pair<int, int>& pair) {
    add(pair.first);
    add(pair.second);
  }
  void add(const PartitionEdge& edge) {
    add(edge.from);
    add(edge.to);
    add(edge.fusible);
  }
  void add(const Requirement& requirement) {
    add(requirement.a);
    add(requirement.b);
    add(requirement.third);
  }
  void add(const Access& access) {
    add(access.producer);
    add(access.readers);
    add(access.cost);
  }
  void add(const Store& store) {
    add(store.producer);
    add(store.readers);
    add(store.outlives);
    add(store.cost);
  }
  void add(const Partition& partition) {
    add(partition.cluster);
    add(partition.cost);
    add(partition.bound);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// All that the numbers say, one after the other: equal texts are of equal problems.
std::string textOf(const PartitionProblem& problem) {
  Text text;
  text.add(problem.nodes);
  text.add(problem.launch);
  text.add(problem.weight);
  text.add(problem.budget);
  text.add(problem.edges);
  text.add(problem.forbidden);
  text.add(problem.requirements);
  text.add(problem.accesses);
  text.add(problem.stores);
  return text.take();
}

}  // namespace

const Partition* SolvedProblem::partition(const std::string& way, double seconds) const {
  const auto solution = solutions_.find(way);
  if (solution == solutions_.end()) return nullptr;
  const auto& [partition, allowed] = solution->second;
  return partition.proven() || seconds <= allowed ? &partition : nullptr;
}

void SolvedProblem::add(const std::string& way, double seconds, const Partition& partition) {
  solutions_[way] = {partition, seconds};
}

FoundCosts& SolvedProblem::costs(const Assignment& chosen, const std::vector<Partition>& known) {
  Text text;
  text.add(chosen);
  text.add(known);
  return costs_[text.take()];
}

SolvedProblem& SolvedProblems::of(const PartitionProblem& problem) {
  std::string text = textOf(problem);
  if (const auto known = problems_.find(text); known != problems_.end()) return known->second;
  bytes_ += text.size();
  if (bytes_ > kMostBytes) {
    problems_.clear();
    bytes_ = text.size();
  }
  return problems_[std::move(text)];
}

}  // namespace kelpie::fusion
