// Types as written, in signatures, datatypes, after `[]` and in the table of primitives, to types.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/ast.h"
#include "frontend/environment.h"
#include "ir/diagnostic.h"

namespace kelpie {

/// Parses a signature of the table of primitives ("([a],int) -> a :: (a in any)"); InternalError on a
/// mistake.
ast::Signature parseSignature(std::string_view text);

/// Turns written types into types. Unknown names are reported once each.
class TypeReader {
 public:
  TypeReader(Environment& environment, bool fromLibrary, std::vector<Diagnostic>& diagnostics)
      : environment_(environment), fromLibrary_(fromLibrary), diagnostics_(diagnostics) {}

  /// The type is that of the field of a record type of this name, which is no type yet.
  void defines(std::string name) { defined_ = std::move(name); }
  /// The type stands in an expression, where the variables of a signature are not known.
  void inExpression() { inExpression_ = true; }
  /// Makes the type variables of a context; names of classes are checked.
  void declare(const std::vector<ast::ClassBinding>& context);
  /// Null after an error. Function types get a fresh identity each.
  Type* read(const ast::TypeExp& expression);
  /// The variables of the context, in its order.
  const std::vector<Type*>& variables() const { return order_; }

 private:
  Type* readName(const ast::NameType& name, Span span);

  Environment& environment_;
  bool fromLibrary_;
  std::vector<Diagnostic>& diagnostics_;
  std::unordered_map<std::string, Type*> variables_;
  std::vector<Type*> order_;
  std::unordered_set<std::string> reported_;
  std::string defined_;
  bool inExpression_ = false;
};

}  // namespace kelpie
