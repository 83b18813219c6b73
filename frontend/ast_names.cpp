#include "frontend/ast_names.h"

#include <algorithm>

#include "frontend/overloaded.h"

namespace kelpie {

namespace {

void collect(const ast::Pattern& pattern, std::vector<BoundName>& names) {
  std::visit(Overloaded{
                 [&](const ast::NamePattern& name) {
                   names.push_back({name.name, pattern.span});
                 },
                 [&](const ast::PairPattern& pair) {
                   collect(*pair.first, names);
                   collect(*pair.second, names);
                 },
                 [&](const ast::RecordPattern& record) { collect(*record.field, names); },
             },
             pattern.node);
}

}  // namespace

std::vector<BoundName> boundNames(const ast::Pattern& pattern) {
  std::vector<BoundName> names;
  collect(pattern, names);
  return names;
}

bool mentions(const ast::Exp& exp, std::string_view name) {
  const auto in = [&](const ast::ExpPtr& part) { return part && mentions(*part, name); };
  return std::visit(
      Overloaded{
          [&](const ast::Name& other) { return other.name == name; },
          [&](const ast::Pair& pair) { return in(pair.first) || in(pair.second); },
          [&](const ast::Unary& unary) { return in(unary.operand); },
          [&](const ast::Binary& binary) { return in(binary.left) || in(binary.right); },
          [&](const ast::Apply& apply) { return in(apply.function) || in(apply.argument); },
          [&](const ast::Subscript& subscript) { return in(subscript.sequence) || in(subscript.index); },
          [&](const ast::SequenceLiteral& sequence) {
            return std::any_of(sequence.elements.begin(), sequence.elements.end(), in);
          },
          [&](const ast::Range& range) { return in(range.start) || in(range.end) || in(range.stride); },
          [&](const ast::ApplyToEach& each) {
            return in(each.body) || in(each.filter) ||
                   std::any_of(each.bindings.begin(), each.bindings.end(),
                               [&](const ast::EachBinding& binding) { return in(binding.source); });
          },
          [&](const ast::If& branch) {
            return in(branch.condition) || in(branch.thenBranch) || in(branch.elseBranch);
          },
          [&](const ast::Let& let) {
            return in(let.body) ||
                   std::any_of(let.bindings.begin(), let.bindings.end(),
                               [&](const ast::LetBinding& binding) { return in(binding.value); });
          },
          [&](const ast::Lambda& lambda) { return in(lambda.body); },
          [&](const ast::NamedArgument& argument) { return in(argument.value); },
          [&](const ast::Time& time) { return in(time.body); },
          [](const auto&) { return false; },  // literals
      },
      exp.node);
}

bool usesParts(const ast::RecordPattern& pattern, const ast::Exp& value) {
  if (mentions(value, pattern.name)) return true;
  const std::vector<BoundName> parts = boundNames(*pattern.field);
  return std::any_of(parts.begin(), parts.end(),
                     [&](const BoundName& part) { return mentions(value, part.name); });
}

}  // namespace kelpie
