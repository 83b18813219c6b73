// Calls: of functions that are known from their types, of primitives, and of what is derived from types.
#include <limits>

#include "frontend/specialiser.h"

namespace kelpie {

namespace {

Atoms concat(Atoms first, const Atoms& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

Atoms Specialiser::callValue(Type* functionType, Atoms captures, Atoms arguments, const typed::Exp* argument,
                             Block& block, Span span) {
  Type* identity = functionType->arguments[2];
  const Row& result = grounds_.row(functionType->arguments[1]);
  if (identity->kind == TypeKind::Definition && !identity->cell) {
    core::Prim unknown{core::PrimOp::Unsupported, {}};
    unknown.text = "call of a function that is nowhere defined";
    return emit(std::move(unknown), result, block, span);
  }
  if (identity->kind == TypeKind::Definition) {
    const Cell& cell = *identity->cell;
    if (cell.kind == CellKind::Builtin) {
      return callBuiltin(*cell.builtin, functionType, std::move(arguments), argument, block, span);
    }
    if (cell.kind == CellKind::Constructor) return arguments;
  }
  core::FunctionId function = instance(functionType);
  return emit(core::Call{function, concat(std::move(captures), arguments)}, result, block, span);
}

Atoms Specialiser::callBuiltin(const Builtin& builtin, Type* functionType, Atoms arguments,
                               const typed::Exp* argument, Block& block, Span span) {
  if (builtin.expansion != Expansion::None) {
    return expand(builtin, functionType, std::move(arguments), argument, block, span);
  }
  core::Prim prim{builtin.op, std::move(arguments)};
  prim.scalarOp = builtin.scalarOp;
  prim.reduceOp = builtin.reduceOp;
  prim.text = builtin.service;
  if (builtin.op == core::PrimOp::Unsupported) {
    bool graphics = builtin.name != "spawn";
    prim.text = (graphics ? "graphics not supported: " : "not supported: ") + std::string(builtin.name);
  }
  return emit(std::move(prim), grounds_.row(functionType->arguments[1]), block, span);
}

Atoms Specialiser::callLibrary(const std::string& name, Type* parameter, Atoms arguments, Block& block,
                               Span span) {
  const Cell& cell = environment_.libraryFunction(name);
  const Type* type = resolve(cell.scheme.type);
  Substitution substitution;
  grounds_.match(type->arguments[0], parameter, substitution);
  return callValue(grounds_.of(type, substitution), {}, std::move(arguments), nullptr, block, span);
}

core::Atom Specialiser::scalarOp(ScalarOp op, Atoms operands, Block& block, Span span) {
  CoreType type = resultType(op, operands[0].type.scalar());
  core::Prim prim{core::PrimOp::Scalar, std::move(operands)};
  prim.scalarOp = op;
  return emitOne(std::move(prim), type, block, span);
}

core::Atom Specialiser::convert(core::Atom value, ScalarType to, Block& block, Span span) {
  if (value.type == CoreType(to)) return value;
  return emitOne(core::Prim{core::PrimOp::Convert, {std::move(value)}}, to, block, span);
}

core::Atom Specialiser::constantString(std::string_view text, Block& block, Span span) {
  std::vector<std::byte> bytes(text.size());
  for (size_t i = 0; i < text.size(); ++i) bytes[i] = static_cast<std::byte>(text[i]);
  Row row = {ScalarType::Char};
  std::vector<Column> elements;
  elements.push_back(scalarColumn(ScalarType::Char, std::move(bytes)));
  Column column = sequenceColumn(row, {0, static_cast<int64_t>(text.size())}, std::move(elements));
  return emitOne(core::Constant{{std::move(column)}}, CoreType::sequence(row), block, span);
}

core::Atom Specialiser::constantOf(Expansion expansion) const {
  bool narrow = widths_.intType == ScalarType::Int32;
  switch (expansion) {
    case Expansion::MaxInt:
      return constant(Scalar::ofInt(widths_.intType, narrow ? int64_t{INT32_MAX} : INT64_MAX));
    case Expansion::MinInt:
      return constant(Scalar::ofInt(widths_.intType, narrow ? int64_t{INT32_MIN} : INT64_MIN));
    case Expansion::IntBits:
      return constant(Scalar::ofInt(widths_.intType, narrow ? 32 : 64));
    case Expansion::Infinity:
      return constant(Scalar::ofFloat(widths_.floatType, std::numeric_limits<double>::infinity()));
    case Expansion::NotANumber:
      return constant(Scalar::ofFloat(widths_.floatType, std::numeric_limits<double>::quiet_NaN()));
    default:
      throw InternalError("this primitive is no constant");
  }
}

Atoms Specialiser::expand(const Builtin& builtin, Type* functionType, Atoms arguments,
                          const typed::Exp* argument, Block& block, Span span) {
  Type* parameter = functionType->arguments[0];
  Type* result = functionType->arguments[1];
  const Row& resultRow = grounds_.row(result);
  switch (builtin.expansion) {
    case Expansion::Nand:
    case Expansion::Nor: {
      ScalarOp op = builtin.expansion == Expansion::Nand ? ScalarOp::And : ScalarOp::Or;
      core::Atom both = scalarOp(op, std::move(arguments), block, span);
      return {scalarOp(ScalarOp::Not, {both}, block, span)};
    }
    case Expansion::Power: {
      const typed::Pair* operands = argument ? std::get_if<typed::Pair>(&argument->node) : nullptr;
      const typed::Literal* exponent =
          operands ? std::get_if<typed::Literal>(&operands->second->node) : nullptr;
      if (exponent && (exponent->value.i == 2 || exponent->value.i == 3)) {
        core::Atom base = arguments[0];
        core::Atom square = scalarOp(ScalarOp::Mul, {base, base}, block, span);
        if (exponent->value.i == 2) return {square};
        return {scalarOp(ScalarOp::Mul, {square, base}, block, span)};
      }
      return callLibrary("prim_power", parameter, std::move(arguments), block, span);
    }
    case Expansion::ConvertLike:
      return {convert(arguments[0], resultRow[0].scalar(), block, span)};
    case Expansion::Rand: {
      auto op = isFloat(resultRow[0].scalar()) ? core::PrimOp::RandomFloat : core::PrimOp::RandomInt;
      return emit(core::Prim{op, std::move(arguments)}, resultRow, block, span);
    }
    case Expansion::Distribute: {
      core::Prim distribute{core::PrimOp::Distribute, {arguments.back()}};
      distribute.arguments.insert(distribute.arguments.end(), arguments.begin(), arguments.end() - 1);
      return emit(std::move(distribute), resultRow, block, span);
    }
    case Expansion::Unzip: {
      size_t first = resultRow[0].elements().size();
      return {project(arguments[0], 0, first, block, span),
              project(arguments[0], first, resultRow[1].elements().size(), block, span)};
    }
    case Expansion::Select: {
      size_t half = resultRow.size();
      auto middle = arguments.begin() + 1 + static_cast<std::ptrdiff_t>(half);
      core::ExpPtr yes = finish({}, Atoms(arguments.begin() + 1, middle), span);
      core::ExpPtr no = finish({}, Atoms(middle, arguments.end()), span);
      return emit(core::If{arguments[0], std::move(yes), std::move(no)}, resultRow, block, span);
    }
    case Expansion::Identity: {
      Atoms zero;
      for (const CoreType& type : resultRow) {
        zero.push_back(type.isScalar() ? constant(Scalar::zero(type.scalar()))
                                       : emitOne(core::Constant{{zeroColumn(type, 1)}}, type, block, span));
      }
      return zero;
    }
    case Expansion::Eql: {
      auto half = static_cast<std::ptrdiff_t>(arguments.size() / 2);
      return {equal(parameter->arguments[0], Atoms(arguments.begin(), arguments.begin() + half),
                    Atoms(arguments.begin() + half, arguments.end()), block, span)};
    }
    case Expansion::String:
      return {text(parameter, arguments, std::string(builtin.service), block, span)};
    case Expansion::Hash:
      return {hash(parameter, arguments, block, span)};
    case Expansion::Check:
    case Expansion::CheckedInt: {
      // condition, two ints, and the literal text (argument is written out in library code)
      const typed::Exp* rest = argument;
      core::Prim check{core::PrimOp::Check, {}};
      while (auto* pair = rest ? std::get_if<typed::Pair>(&rest->node) : nullptr) {
        check.arguments.push_back(eval(*pair->first, block)[0]);
        rest = pair->second.get();
      }
      const typed::String* message = rest ? std::get_if<typed::String>(&rest->node) : nullptr;
      if (!message || check.arguments.size() != 3)
        throw InternalError("prim_check needs (bool, int, int, a literal text)");
      check.text = message->bytes;
      if (builtin.expansion == Expansion::CheckedInt) {
        const CoreType type = check.arguments[1].type;
        return {emitOne(std::move(check), type, block, span)};
      }
      emit(std::move(check), {}, block, span);
      return {constant(Scalar::ofBool(true))};
    }
    default:
      return {constantOf(builtin.expansion)};
  }
}

// ---- derived from the structure of types ------------------------------------------------------------------

core::Atom Specialiser::equal(Type* type, const Atoms& left, const Atoms& right, Block& block, Span span) {
  switch (type->kind) {
    case TypeKind::Scalar:
      return scalarOp(ScalarOp::Equal, {left[0], right[0]}, block, span);
    case TypeKind::Record:
      return equal(grounds_.field(type), left, right, block, span);
    case TypeKind::Sequence:
      return callLibrary("prim_eql_sequence", grounds_.pair(type, type), {left[0], right[0]}, block, span)[0];
    case TypeKind::Pair: {
      auto size = static_cast<std::ptrdiff_t>(grounds_.row(type->arguments[0]).size());
      core::Atom first = equal(type->arguments[0], Atoms(left.begin(), left.begin() + size),
                               Atoms(right.begin(), right.begin() + size), block, span);
      core::Atom second = equal(type->arguments[1], Atoms(left.begin() + size, left.end()),
                                Atoms(right.begin() + size, right.end()), block, span);
      return scalarOp(ScalarOp::And, {first, second}, block, span);
    }
    default:
      return constant(Scalar::ofBool(true));  // functions of one type are the same function
  }
}

core::Atom Specialiser::text(Type* type, const Atoms& value, const std::string& ofSequences, Block& block,
                             Span span) {
  switch (type->kind) {
    case TypeKind::Scalar: {
      ScalarType scalar = type->scalar;
      core::Atom atom = value[0];
      std::string function = scalar == ScalarType::Bool ? "bool_string" : "char_string";
      if (isInt(scalar)) {
        function = "prim_int_text";
      } else if (isFloat(scalar)) {
        function = "prim_float64_string";
        atom = convert(atom, ScalarType::Float64, block, span);
      }
      return callLibrary(function, grounds_.scalar(atom.type.scalar()), {atom}, block, span)[0];
    }
    case TypeKind::Record:
      return text(grounds_.field(type), value, ofSequences, block, span);
    case TypeKind::Sequence:
      return callLibrary(ofSequences, type, value, block, span)[0];
    case TypeKind::Pair: {
      // (a, b, c): the pieces of text for a right-nested tuple, joined
      core::Prim pieces{core::PrimOp::Literal, {constantString("(", block, span)}};
      auto next = value.begin();
      for (Type* rest = type; rest;) {
        Type* component = rest->kind == TypeKind::Pair ? rest->arguments[0] : rest;
        rest = rest->kind == TypeKind::Pair ? rest->arguments[1] : nullptr;
        auto end = next + static_cast<std::ptrdiff_t>(grounds_.row(component).size());
        pieces.arguments.push_back(text(component, Atoms(next, end), ofSequences, block, span));
        pieces.arguments.push_back(constantString(rest ? ", " : ")", block, span));
        next = end;
      }
      pieces.count = static_cast<uint32_t>(pieces.arguments.size());
      CoreType string = CoreType::sequence({ScalarType::Char});
      core::Atom list = emitOne(std::move(pieces), CoreType::sequence({string}), block, span);
      return emitOne(core::Prim{core::PrimOp::Flatten, {list}}, string, block, span);
    }
    default:
      return constantString("function", block, span);
  }
}

core::Atom Specialiser::hash(Type* type, const Atoms& value, Block& block, Span span) {
  Type* intType = grounds_.scalar(widths_.intType);
  switch (type->kind) {
    case TypeKind::Scalar: {
      ScalarType scalar = type->scalar;
      core::Atom atom = value[0];
      std::string function = scalar == ScalarType::Bool ? "prim_hash_bool" : "prim_hash_char";
      if (isInt(scalar)) {
        function = "prim_hash_int";
        atom = convert(atom, widths_.intType, block, span);
      } else if (isFloat(scalar)) {
        function = "prim_hash_float";
        atom = convert(atom, widths_.floatType, block, span);
      }
      return callLibrary(function, grounds_.scalar(atom.type.scalar()), {atom}, block, span)[0];
    }
    case TypeKind::Record:
      return hash(grounds_.field(type), value, block, span);
    case TypeKind::Sequence:
      return callLibrary("prim_hash_sequence", type, value, block, span)[0];
    case TypeKind::Pair: {
      auto size = static_cast<std::ptrdiff_t>(grounds_.row(type->arguments[0]).size());
      core::Atom first = hash(type->arguments[0], Atoms(value.begin(), value.begin() + size), block, span);
      core::Atom second = hash(type->arguments[1], Atoms(value.begin() + size, value.end()), block, span);
      return callLibrary("prim_hash_pair", grounds_.pair(intType, intType), {first, second}, block, span)[0];
    }
    default:
      return constant(Scalar::ofInt(widths_.intType, 0));
  }
}

}  // namespace kelpie
