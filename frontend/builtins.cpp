#include "frontend/builtins.h"

namespace kelpie {

namespace {

using core::PrimOp;

Builtin scalarOperation(ScalarOp op) { return {.op = PrimOp::Scalar, .scalarOp = op}; }
Builtin checkedOperation(ScalarOp op) { return {.op = PrimOp::CheckedScalar, .scalarOp = op}; }
Builtin reduction(ReduceOp op) { return {.op = PrimOp::Reduce, .reduceOp = op}; }
Builtin prefixScan(ReduceOp op) { return {.op = PrimOp::Scan, .reduceOp = op}; }
Builtin primitive(PrimOp op) { return {.op = op}; }
Builtin service(std::string_view name) { return {.op = PrimOp::Extern, .service = name}; }
Builtin refused() { return {.op = PrimOp::Unsupported}; }
Builtin expansion(Expansion expansion) { return {.expansion = expansion}; }
Builtin textualForm(std::string_view ofSequences) {
  return {.service = ofSequences, .expansion = Expansion::String};
}

Builtin entry(std::string_view name, std::string_view type, Builtin meaning, bool serial,
              std::string_view documentation) {
  meaning.name = name;
  meaning.type = type;
  meaning.serial = serial;
  meaning.documentation = documentation;
  return meaning;
}

}  // namespace

const std::vector<Builtin>& builtins() {
  static const std::vector<Builtin> table = {
#define scalar(name) scalarOperation(ScalarOp::name)
#define checked(name) checkedOperation(ScalarOp::name)
#define reduce(name) reduction(ReduceOp::name)
#define scan(name) prefixScan(ReduceOp::name)
#define prim(name) primitive(PrimOp::name)
#define external(name) service(name)
#define unsupported() refused()
#define expand(name) expansion(Expansion::name)
#define textual(ofSequences) textualForm(ofSequences)
#define KELPIE_BUILTIN(name, type, meaning, documentation) entry(name, type, meaning, false, documentation),
#define KELPIE_SERIAL(name, type, meaning, documentation) entry(name, type, meaning, true, documentation),
#include "frontend/builtins.def"
#include "frontend/graphics.def"
#undef scalar
#undef checked
#undef reduce
#undef scan
#undef prim
#undef external
#undef unsupported
#undef expand
#undef textual
#undef KELPIE_BUILTIN
#undef KELPIE_SERIAL
  };
  return table;
}

}  // namespace kelpie
