#include "frontend/constant_literal.h"

#include <cstring>

#include "frontend/overloaded.h"
#include "ir/diagnostic.h"

namespace kelpie {

namespace {

/// The operand of a record constructor, or null.
const typed::Exp* constructorField(const typed::Exp& exp) {
  auto* call = std::get_if<typed::Call>(&exp.node);
  if (!call) return nullptr;
  auto* function = std::get_if<typed::Global>(&call->function->node);
  return function && function->cell->kind == CellKind::Constructor ? call->argument.get() : nullptr;
}

/// A column that grows; one for each component of a row.
struct Builder {
  explicit Builder(const CoreType& type) : type(type) {
    if (type.isScalar()) return;
    offsets.push_back(0);
    for (const CoreType& element : type.elements()) elements.emplace_back(element);
  }

  void push(const Scalar& value) {
    size_t size = static_cast<size_t>(sizeOf(value.type));
    size_t end = bytes.size();
    bytes.resize(end + size);
    if (value.type == ScalarType::Float32) {
      float narrow = static_cast<float>(value.f);
      std::memcpy(&bytes[end], &narrow, size);
    } else {
      std::memcpy(&bytes[end], &value.i, size);  // the low bytes; a float64 is stored as it is
    }
  }

  Column finish() {
    if (type.isScalar()) return scalarColumn(type.scalar(), std::move(bytes));
    std::vector<Column> columns;
    for (Builder& element : elements) columns.push_back(element.finish());
    return sequenceColumn(type.elements(), std::move(offsets), std::move(columns));
  }

  CoreType type;
  std::vector<std::byte> bytes;
  std::vector<int64_t> offsets;
  std::vector<Builder> elements;
};

/// Appends one value to the builders from `next` on and moves past them.
void append(const typed::Exp& exp, Builder*& next) {
  if (const typed::Exp* field = constructorField(exp)) return append(*field, next);
  std::visit(
      Overloaded{
          [&](const typed::Literal& literal) { (next++)->push(literal.value); },
          [&](const typed::String& string) {
            Builder& sequence = *next++;
            for (char c : string.bytes) {
              sequence.elements[0].push(Scalar::ofChar(static_cast<unsigned char>(c)));
            }
            sequence.offsets.push_back(sequence.offsets.back() + static_cast<int64_t>(string.bytes.size()));
          },
          [&](const typed::Pair& pair) {
            append(*pair.first, next);
            append(*pair.second, next);
          },
          [&](const typed::Sequence& sequence) {
            Builder& made = *next++;
            for (const typed::ExpPtr& element : sequence.elements) {
              Builder* inner = made.elements.data();
              append(*element, inner);
            }
            made.offsets.push_back(made.offsets.back() + static_cast<int64_t>(sequence.elements.size()));
          },
          [](const auto&) { throw InternalError("not a constant"); },
      },
      exp.node);
}

}  // namespace

bool isConstantExpression(const typed::Exp& exp) {
  if (!exp.closed) return false;
  if (const typed::Exp* field = constructorField(exp)) return isConstantExpression(*field);
  return std::visit(Overloaded{
                        [](const typed::Literal&) { return true; },
                        [](const typed::String&) { return true; },
                        [](const typed::Pair& pair) {
                          return isConstantExpression(*pair.first) && isConstantExpression(*pair.second);
                        },
                        [](const typed::Sequence& sequence) {
                          for (const typed::ExpPtr& element : sequence.elements) {
                            if (!isConstantExpression(*element)) return false;
                          }
                          return true;
                        },
                        [](const auto&) { return false; },
                    },
                    exp.node);
}

Columns constantColumns(const typed::Exp& exp, Type* type, GroundTypes& grounds) {
  std::vector<Builder> builders;
  for (const CoreType& component : grounds.row(type)) builders.emplace_back(component);
  Builder* next = builders.data();
  append(exp, next);
  Columns columns;
  for (Builder& builder : builders) columns.push_back(builder.finish());
  return columns;
}

void collectUses(const typed::Exp& exp, std::unordered_set<const typed::Variable*>& uses) {
  auto visit = [&](const typed::ExpPtr& part) {
    if (part) collectUses(*part, uses);
  };
  if (exp.closed) return;
  std::visit(Overloaded{
                 [&](const typed::Local& local) { uses.insert(local.variable.get()); },
                 [&](const typed::Pair& pair) {
                   visit(pair.first);
                   visit(pair.second);
                 },
                 [&](const typed::Call& call) {
                   visit(call.function);
                   visit(call.argument);
                 },
                 [&](const typed::Sequence& sequence) {
                   for (const typed::ExpPtr& element : sequence.elements) visit(element);
                 },
                 [&](const typed::ApplyToEach& each) {
                   for (const typed::Binding& binding : each.bindings) visit(binding.source);
                   visit(each.body);
                   visit(each.filter);
                 },
                 [&](const typed::If& branch) {
                   visit(branch.condition);
                   visit(branch.thenBranch);
                   visit(branch.elseBranch);
                 },
                 [&](const typed::Let& let) {
                   for (const typed::Binding& binding : let.bindings) visit(binding.source);
                   visit(let.body);
                 },
                 [&](const typed::Lambda& lambda) {
                   for (const typed::VariablePtr& capture : lambda.captures) uses.insert(capture.get());
                 },
                 [&](const typed::Time& time) { visit(time.body); },
                 [](const auto&) {},
             },
             exp.node);
}

}  // namespace kelpie
