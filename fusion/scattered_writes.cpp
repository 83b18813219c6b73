#include "fusion/scattered_writes.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "fusion/effects.h"
#include "fusion/sizes.h"
#include "ir/node_map.h"

namespace kelpie::fusion {
namespace {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::Stmt;
using lcu::VarId;

/// One result of the map: what the writer %i (of the permute's space) puts there, and what was there.
struct Written {
  ExprRef value;
  ExprRef before;  ///< over the places
};

Soac* soacOf(Stmt& stmt) {
  auto* launch = std::get_if<lcu::Launch>(&stmt.node);
  return launch ? &launch->kernel.bindings[0] : nullptr;
}

class Scatterer {
 public:
  explicit Scatterer(lcu::Program& program) : program_(program), arena_(*program.arena) {}

  int run() {
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      for (Stmt& stmt : block.stmts) {
        const Soac* soac = soacOf(stmt);
        if (!soac || soac->kind != SoacKind::Map) continue;
        for (size_t k = 0; k < soac->pull.size(); ++k)
          maps_[soac->results[k]] = {soac->space.extent, soac->pull[k]};
      }
    });
    lcu::forEachBlock(program_, [&](lcu::Block& block) {
      for (const Stmt& stmt : block.stmts)
        if (const auto* loop = std::get_if<lcu::HostLoop>(&stmt.node))
          carried_.insert(loop->params.begin(), loop->params.end());
      for (size_t k = 0; k < block.stmts.size();)
        if (!scatter(block, k)) replaceOne(block, k++);
    });
    return replaced_;
  }

 private:
  struct MapResult {
    ExprRef extent, pull;
  };

  /// Whether the statement was a permute whose readers no longer need it: it is gone.
  bool scatter(lcu::Block& block, size_t at) {
    const Soac* found = soacOf(block.stmts[at]);
    if (!found || !findsWriters(*found)) return false;
    const Soac permute = *found;
    const VarId writers = permute.results[0];
    const std::vector<size_t> readers = readersOf(block, at, writers);
    if (readers.empty()) return false;
    std::vector<std::vector<Written>> written;
    for (size_t reader : readers) {
      const auto match = writesOf(*soacOf(block.stmts[reader]), permute);
      if (!match) return false;
      written.push_back(*match);
    }
    // One reader may want the writers themselves, which stay its result.
    size_t wantsWriters = readers.size();
    for (size_t k = 0; k < readers.size(); ++k) {
      if (wantsWriters == readers.size() && isWriter(written[k], permute)) {
        wantsWriters = k;
        continue;
      }
      for (const Written& w : written[k])
        if (!mayScatter(w, permute) && !mayGoInTurn(w, permute)) return false;
    }
    const std::string name = std::get<lcu::Launch>(block.stmts[at].node).kernel.name;
    for (size_t k = readers.size(); k-- > 0;) {
      if (k == wantsWriters) {
        replaceResult(block.stmts[at], block.stmts[readers[k]].results[0]);
        erase(block, readers[k]);
        continue;
      }
      Stmt& stmt = block.stmts[readers[k]];
      const bool inTurn = !std::all_of(written[k].begin(), written[k].end(),
                                       [&](const Written& w) { return mayScatter(w, permute); });
      std::vector<Stmt> before;
      if (std::optional<Stmt> base = writeOnto(stmt, permute, written[k])) before.push_back(std::move(*base));
      if (readers.size() == 1) std::get<lcu::Launch>(stmt.node).kernel.name = name;
      if (inTurn) writeInTurn(stmt, fewWrites(permute), before);
      std::vector<VarId> onto;  // arrays that a loop carries
      for (size_t j = 0; j < written[k].size(); ++j) {
        const ExprRef base = written[k][j].before;
        if (base->kind != ExprKind::Load || base->operands[0] != arena_.param(0) ||
            !carried_.contains(base->index))
          continue;
        carried_.insert(soacOf(stmt)->results[j]);
        onto.push_back(base->index);
      }
      // If that is not possible, the permute copies the arrays.
      if (size_t place = readers[k]; before.empty() && !onto.empty()) readBefore(block, place, onto);
      // One by one: to insert an empty range, a deque moves what is before it onto itself, which empties it.
      for (; !before.empty(); before.pop_back())
        block.stmts.insert(block.stmts.begin() + static_cast<ptrdiff_t>(readers[k]),
                           std::move(before.back()));
      ++replaced_;
    }
    if (wantsWriters == readers.size()) erase(block, at);
    return true;
  }

  bool findsWriters(const Soac& soac) const {
    return soac.kind == SoacKind::Permute && soac.pull.size() == 1 && soac.pull[0] == arena_.param(0) &&
           soac.fill == std::vector{Scalar::ofInt(lcu::kIndex, -1)} && !soac.where && !soac.agreeing;
  }

  /// The maps of the block that read the writers, if nothing else does, and no more than launches and scalars
  /// of the host lie between: checks of the permute move to where they are.
  std::vector<size_t> readersOf(const lcu::Block& block, size_t at, VarId writers) const {
    const auto& results = block.results;
    if (std::find(results.begin(), results.end(), writers) != results.end()) return {};
    std::vector<size_t> readers;
    for (size_t k = at + 1; k < block.stmts.size(); ++k) {
      const std::vector<VarId> reads = lcu::freeVars(block.stmts[k]);
      if (std::binary_search(reads.begin(), reads.end(), writers)) {
        if (!std::holds_alternative<lcu::Launch>(block.stmts[k].node)) return {};
        readers.push_back(k);
      }
    }
    for (size_t k = at + 1; !readers.empty() && k < readers.back(); ++k)
      if (!isPlain(block.stmts[k])) return {};
    return readers;
  }
  static bool isPlain(const Stmt& stmt) {
    return std::holds_alternative<lcu::Launch>(stmt.node) ||
           std::holds_alternative<lcu::HostLet>(stmt.node) ||
           std::holds_alternative<lcu::ArrayConstant>(stmt.node) ||
           std::holds_alternative<lcu::Join>(stmt.node) || std::holds_alternative<lcu::Grade>(stmt.node);
  }

  /// What a map writes: `if writers[i] >= 0 then value of that writer else what was there`.
  std::optional<std::vector<Written>> writesOf(const Soac& map, const Soac& permute) {
    if (map.kind != SoacKind::Map || map.space.segmented() || map.space.extent != permute.target ||
        map.pull.empty())
      return std::nullopt;
    const ExprRef place = arena_.param(0);
    const ExprRef writer = arena_.load(permute.results[0], lcu::kIndex, place);
    const ExprRef isThere = arena_.op(ScalarOp::GreaterEqual, writer, arena_.index(0));
    const ExprRef inRange = arena_.op(ScalarOp::Less, writer, permute.space.extent);
    const auto where = [&](ExprRef e, bool there) {
      return arena_.rewrite(e, [&](ExprRef node) -> ExprRef {
        if (node == isThere) return arena_.boolean(there);
        return there && node == inRange ? arena_.boolean(true) : nullptr;
      });
    };
    for (ExprRef e : map.effects)
      if (where(e, true)->canFail || where(e, false)->canFail) return std::nullopt;
    std::vector<Written> result;
    for (ExprRef pull : map.pull) {
      if (pull->kind != ExprKind::Project || pull->operands[0]->kind != ExprKind::If) return std::nullopt;
      const ExprRef choice = pull->operands[0];
      if (choice->operands[0] != isThere) return std::nullopt;
      const ExprRef value = choice->operands[1 + pull->index];
      const ExprRef before = choice->operands[1 + lcu::valueCount(choice) + pull->index];
      if (before->canFail || reads(before, permute.results[0])) return std::nullopt;
      if (usesParamBeside(value, {writer})) return std::nullopt;
      const ExprRef ofWriter =
          arena_.rewrite(where(value, true), [&](ExprRef e) { return e == writer ? place : nullptr; });
      if (ofWriter->canFail || reads(ofWriter, permute.results[0])) return std::nullopt;
      result.push_back({ofWriter, before});
    }
    return result;
  }

  static bool reads(ExprRef e, VarId var) {
    return lcu::anyNode({e},
                        [&](ExprRef node) { return node->kind == ExprKind::Load && node->index == var; });
  }

  /// Whether an index has a part in the value other than through one of these.
  static bool usesParamBeside(ExprRef e, const std::vector<ExprRef>& except) {
    lcu::NodeSet seen;
    std::vector<ExprRef> open{e};
    while (!open.empty()) {
      const ExprRef node = open.back();
      open.pop_back();
      if (!node->usesParam || !seen.insert(node, {})) continue;
      if (std::find(except.begin(), except.end(), node) != except.end()) continue;
      if (node->kind == ExprKind::Param) return true;
      open.insert(open.end(), node->operands.begin(), node->operands.end());
    }
    return false;
  }

  /// With the elements of maps over the same space as what the maps compute.
  ExprRef resolved(ExprRef e, ExprRef extent) {
    std::unordered_map<VarId, ExprRef> known;
    return resolved(e, extent, known);
  }
  ExprRef resolved(ExprRef e, ExprRef extent, std::unordered_map<VarId, ExprRef>& known) {
    return arena_.rewrite(e, [&](ExprRef node) -> ExprRef {
      if (node->kind != ExprKind::Load || node->operands[0] != arena_.param(0)) return nullptr;
      if (const auto it = known.find(node->index); it != known.end()) return it->second;
      const auto map = maps_.find(node->index);
      if (map == maps_.end() || map->second.extent != extent) return nullptr;
      const bool flat = !lcu::anyNode({map->second.pull},
                                      [](ExprRef n) { return n->kind == ExprKind::Param && n->index > 0; });
      return known[node->index] = flat ? resolved(map->second.pull, extent, known) : nullptr;
    });
  }

  /// The value is the writer's number, and was -1.
  bool isWriter(const std::vector<Written>& written, const Soac& permute) {
    return written.size() == 1 && resolved(written[0].value, permute.space.extent) == arena_.param(0) &&
           written[0].before == arena_.index(-1);
  }

  bool mayScatter(const Written& w, const Soac& permute) {
    return isUnique(permute) || followsDestination(w.value, permute);
  }

  /// Whether no two writers have one destination.
  bool isUnique(const Soac& permute) {
    return permute.unique || permute.space.extent == arena_.index(1) ||
           (!permute.space.segmented() &&
            differsEverywhere(resolved(permute.destination, permute.space.extent)));
  }

  /// Whether an integer is another one for each element of a flat space: a sum of its number and of what is
  /// the same for all. (Sums that wrap differ, too; those of 32 bits do of fewer than 2^32 elements.)
  static bool differsEverywhere(ExprRef e) {
    switch (e->kind) {
      case ExprKind::Param:
        return true;
      case ExprKind::Check:  // elsewhere there is an error
        return differsEverywhere(e->operands[1]);
      case ExprKind::Convert:
        return isInt(e->type) && isInt(e->operands[0]->type) && differsEverywhere(e->operands[0]);
      case ExprKind::Op:
        if (e->op != ScalarOp::Add && e->op != ScalarOp::Sub) return false;
        for (size_t k : {0, 1})
          if (!e->operands[1 - k]->usesParam) return differsEverywhere(e->operands[k]);
        return false;
      default:
        return false;
    }
  }

  /// So many writes are made one after the other, of which the last stays; 0: they are more, or unknown.
  static int64_t fewWrites(const Soac& permute) {
    constexpr int64_t kMost = 4;
    const ExprRef extent = permute.space.extent;
    if (permute.space.segmented() || extent->kind != ExprKind::Constant) return 0;
    return extent->constant.i > 1 && extent->constant.i <= kMost ? extent->constant.i : 0;
  }

  /// Those that lose compute their value, too, which is to end.
  static bool mayGoInTurn(const Written& w, const Soac& permute) {
    return fewWrites(permute) > 0 && !lcu::anyNode({w.value}, lcu::isUnbounded);
  }

  /// Whether writers to one place write the same: their value is a function of the place.
  bool followsDestination(ExprRef value, const Soac& permute) {
    std::vector<ExprRef> places;
    for (ExprRef place : {permute.destination, resolved(permute.destination, permute.space.extent)}) {
      places.push_back(place);
      if (place->kind == ExprKind::Check) places.push_back(place->operands[1]);
    }
    return !usesParamBeside(resolved(value, permute.space.extent), places);
  }

  // ---- rewriting ----

  /// The permute of the statement gives `result` in place of what it gave.
  static void replaceResult(Stmt& stmt, VarId result) {
    lcu::Kernel& kernel = std::get<lcu::Launch>(stmt.node).kernel;
    kernel.bindings[0].results = {result};
    kernel.returns = {result};
    stmt.results = {result};
  }

  void erase(lcu::Block& block, size_t at) {
    block.stmts.erase(block.stmts.begin() + static_cast<ptrdiff_t>(at));
  }

  /// A permute of a few elements becomes one for each: this statement is the last, the others go to `before`.
  void writeInTurn(Stmt& stmt, int64_t count, std::vector<Stmt>& before) {
    const Soac all = *soacOf(stmt);
    const auto ofWriter = [&](ExprRef e, int64_t k) {
      return e ? arena_.rewrite(e,
                                [&](ExprRef n) { return n == arena_.param(0) ? arena_.index(k) : nullptr; })
               : nullptr;
    };
    std::vector<VarId> held;
    for (int64_t k = 0; k < count; ++k) {
      Soac one = all;
      one.space.extent = arena_.index(1);
      one.unique = true;
      one.agreeing = false;
      one.destination = ofWriter(all.destination, k);
      for (ExprRef& e : one.pull) e = ofWriter(e, k);
      for (ExprRef& e : one.effects) e = ofWriter(e, k);
      if (k > 0) {
        one.fill.clear();
        one.onto = held;
      }
      if (k + 1 == count) {
        *soacOf(stmt) = std::move(one);
        return;
      }
      held.clear();
      for (ExprRef e : one.pull)
        held.push_back(program_.newVar({"written", lcu::VarKind::Array, e->type, one.target}));
      one.results = held;
      Stmt earlier;
      earlier.results = held;
      earlier.span = stmt.span;
      const std::string& name = std::get<lcu::Launch>(stmt.node).kernel.name;
      earlier.node = lcu::Launch{{name + "_in_turn", {std::move(one)}, held}};
      before.push_back(std::move(earlier));
    }
  }

  /// Makes a write of a map that replaces one element of arrays that a loop carries, if no later statement of
  /// the block reads these, but for single values, which can be read before.
  void replaceOne(lcu::Block& block, size_t at) {
    Soac* map = soacOf(block.stmts[at]);
    if (!map || map->kind != SoacKind::Map || map->space.segmented() || map->pull.empty() ||
        !map->effects.empty())
      return;
    ExprRef place = nullptr;
    std::vector<ExprRef> values;
    std::vector<VarId> onto;
    for (ExprRef pull : map->pull) {
      const auto one = replacement(pull);
      if (!one || (place && one->place != place)) return;
      place = one->place;
      const auto& array = program_.vars[one->array];
      if (!carried_.contains(one->array) || array.extent != map->space.extent) return;
      values.push_back(one->value);
      onto.push_back(one->array);
    }
    for (VarId array : onto)
      if (std::find(block.results.begin(), block.results.end(), array) != block.results.end()) return;
    if (!readBefore(block, at, onto)) return;
    map = soacOf(block.stmts[at]);
    map->kind = SoacKind::Permute;
    map->pull = std::move(values);
    map->destination = place;
    map->target = map->space.extent;
    map->where = arena_.op(ScalarOp::And, arena_.op(ScalarOp::GreaterEqual, place, arena_.index(0)),
                           arena_.op(ScalarOp::Less, place, map->target));
    map->space.extent = arena_.index(1);
    map->onto = std::move(onto);
    map->unique = true;
    carried_.insert(map->results.begin(), map->results.end());
    ++replaced_;
  }

  /// Has single values that later statements compute from elements of arrays computed before the statement
  /// `at`, whose place follows, as far as they load these. False, and nothing is changed, if that is not
  /// possible, or others read the arrays.
  bool readBefore(lcu::Block& block, size_t& at, const std::vector<VarId>& arrays) {
    const Stmt& writer = block.stmts[at];
    std::unordered_set<VarId> later(writer.results.begin(), writer.results.end());
    std::vector<Stmt> before;
    std::vector<size_t> moved;
    std::vector<std::pair<std::vector<ExprRef>*, std::vector<ExprRef>>> changed;
    // Whether what stays, up to here, may end with an error or be seen from outside: then loads stay, too, as
    // what fails may be the check of where they load.
    bool tells = false;
    for (size_t k = at + 1; k < block.stmts.size(); ++k) {
      Stmt& stmt = block.stmts[k];
      const bool reader =
          std::any_of(arrays.begin(), arrays.end(), [&](VarId array) { return reads(stmt, array); });
      std::vector<ExprRef>* values = singleValues(stmt);
      if (reader && !values) return false;
      const bool moves =
          values && !tells && (reader || isOfHost(stmt)) &&
          std::all_of(values->begin(), values->end(), [&](ExprRef e) { return canComeBefore(e, later); });
      if (moves) {
        moved.push_back(k);
        before.push_back(stmt);
        continue;
      }
      tells |= mayTell(stmt);
      if (reader && tells) return false;
      later.insert(stmt.results.begin(), stmt.results.end());
      if (!reader) continue;
      std::vector<ExprRef> rest;
      for (ExprRef value : *values) rest.push_back(computedBefore(value, arrays, later, stmt, before));
      for (VarId var : lcu::freeVars(rest))
        if (std::find(arrays.begin(), arrays.end(), var) != arrays.end()) return false;
      changed.push_back({values, std::move(rest)});
    }
    if (std::none_of(before.begin(), before.end(), [&](const Stmt& stmt) {
          return std::any_of(arrays.begin(), arrays.end(), [&](VarId array) { return reads(stmt, array); });
        }))
      return true;  // nothing reads them
    for (auto& [values, rest] : changed) *values = std::move(rest);
    for (; !moved.empty(); moved.pop_back()) erase(block, moved.back());
    for (Stmt& stmt : before)
      block.stmts.insert(block.stmts.begin() + static_cast<ptrdiff_t>(at++), std::move(stmt));
    return true;
  }

  /// What a statement computes, if that is single values and no more.
  static std::vector<ExprRef>* singleValues(Stmt& stmt) {
    if (auto* let = std::get_if<lcu::HostLet>(&stmt.node)) return &let->values;
    Soac* once = soacOf(stmt);
    return once && once->kind == SoacKind::Once && once->effects.empty() ? &once->pull : nullptr;
  }

  /// Whether a statement computes scalars of the host from others.
  bool isOfHost(const Stmt& stmt) const {
    const auto* let = std::get_if<lcu::HostLet>(&stmt.node);
    return let && std::none_of(let->values.begin(), let->values.end(), [&](ExprRef value) {
             return lcu::anyNode({value}, [&](ExprRef e) {
               return e->kind == ExprKind::Load ||
                      (e->kind == ExprKind::Host && program_.vars[e->index].kind == lcu::VarKind::Cell);
             });
           });
  }

  /// Whether a statement may end with an error, or may do what is seen from outside.
  static bool mayTell(const Stmt& stmt) {
    const auto canFail = [](const std::vector<ExprRef>& es) {
      return std::any_of(es.begin(), es.end(), [](ExprRef e) { return e->canFail; });
    };
    if (const auto* let = std::get_if<lcu::HostLet>(&stmt.node)) return canFail(let->values);
    const auto* launch = std::get_if<lcu::Launch>(&stmt.node);
    return launch ? canFail(thunksOf(launch->kernel.bindings[0])) : !isPlain(stmt);
  }

  /// Whether a value does not depend on `later` variables, nor on where it stands.
  static bool canComeBefore(ExprRef e, const std::unordered_set<VarId>& later) {
    if (lcu::isMultiValued(e)) return false;
    const std::vector<VarId> vars = lcu::freeVars(std::vector{e});
    return std::none_of(vars.begin(), vars.end(), [&](VarId var) { return later.contains(var); }) &&
           !lcu::anyNode({e}, [](ExprRef n) {
             return n->kind == ExprKind::Param || n->kind == ExprKind::LoopVar || n->kind == ExprKind::Call;
           });
  }

  /// The same, with variables for what loads from `arrays` and can be computed before; `before` grows by
  /// that.
  ExprRef computedBefore(ExprRef e, const std::vector<VarId>& arrays, const std::unordered_set<VarId>& later,
                         const Stmt& stmt, std::vector<Stmt>& before) {
    const auto loads = [&](ExprRef n) {
      return n->kind == ExprKind::Load && std::find(arrays.begin(), arrays.end(), n->index) != arrays.end();
    };
    return arena_.rewrite(e, [&](ExprRef node) -> ExprRef {
      if (node->canFail || !canComeBefore(node, later) || !lcu::anyNode({node}, loads))
        return node->kind == ExprKind::If || lcu::isUnbounded(node) ? node : nullptr;  // guards what is in it
      Stmt made = stmt;
      auto* launch = std::get_if<lcu::Launch>(&made.node);
      const VarId value =
          program_.newVar({"before", launch ? lcu::VarKind::Cell : lcu::VarKind::Host, node->type, nullptr});
      made.results = {value};
      *singleValues(made) = {node};
      if (launch) {
        launch->kernel.name += "_before";
        launch->kernel.bindings[0].results = launch->kernel.returns = {value};
      }
      before.push_back(std::move(made));
      return arena_.host(value, node->type);
    });
  }

  /// `if %i == place then value else array[%i]`.
  struct Replacement {
    ExprRef place, value;
    VarId array;
  };
  std::optional<Replacement> replacement(ExprRef pull) const {
    if (pull->kind != ExprKind::Project || pull->operands[0]->kind != ExprKind::If) return std::nullopt;
    const ExprRef choice = pull->operands[0], condition = choice->operands[0];
    if (condition->kind != ExprKind::Op || condition->op != ScalarOp::Equal) return std::nullopt;
    const ExprRef i = arena_.param(0);
    const ExprRef place = condition->operands[0] == i ? condition->operands[1] : condition->operands[0];
    if (condition->operands[0] != i && condition->operands[1] != i) return std::nullopt;
    const ExprRef value = choice->operands[1 + pull->index];
    const ExprRef before = choice->operands[1 + lcu::valueCount(choice) + pull->index];
    if (place->usesParam || place->canFail || place->type != lcu::kIndex || value->usesParam ||
        value->canFail || lcu::anyNode({place, value}, lcu::isUnbounded))  // no element may need it
      return std::nullopt;
    if (before->kind != ExprKind::Load || before->operands[0] != i) return std::nullopt;
    return Replacement{place, value, before->index};
  }

  /// Whether a statement, or one in it, reads a variable.
  static bool reads(const Stmt& stmt, VarId var) {
    const std::vector<VarId> read = lcu::freeVars(stmt);
    return std::binary_search(read.begin(), read.end(), var);
  }

  /// The map of the statement becomes a permute. What must come before it, if what was there is no array yet.
  std::optional<Stmt> writeOnto(Stmt& stmt, const Soac& permute, const std::vector<Written>& written) {
    Soac& soac = *soacOf(stmt);
    const Soac map = soac;
    soac = permute;
    soac.results = map.results;
    soac.span = map.span;
    soac.origin = map.origin;
    soac.unique = isUnique(permute);
    soac.agreeing = !soac.unique;
    soac.pull.clear();
    soac.fill.clear();
    for (const Written& w : written) soac.pull.push_back(w.value);
    const bool constant = std::all_of(written.begin(), written.end(),
                                      [](const Written& w) { return w.before->kind == ExprKind::Constant; });
    if (constant) {
      for (const Written& w : written) soac.fill.push_back(w.before->constant);
      return std::nullopt;
    }
    Soac base = map;
    base.effects.clear();
    base.results.clear();
    base.pull.clear();
    for (const Written& w : written) {
      if (w.before->kind == ExprKind::Load && w.before->operands[0] == arena_.param(0)) {
        soac.onto.push_back(w.before->index);
        continue;
      }
      const VarId made = program_.newVar({"base", lcu::VarKind::Array, w.before->type, map.space.extent});
      base.results.push_back(made);
      base.pull.push_back(w.before);
      soac.onto.push_back(made);
    }
    if (base.results.empty()) return std::nullopt;
    const lcu::Kernel& kernel = std::get<lcu::Launch>(stmt.node).kernel;
    Stmt before;
    before.results = base.results;
    before.span = stmt.span;
    before.node = lcu::Launch{{kernel.name + "_base", {base}, base.results}};
    return before;
  }

  lcu::Program& program_;
  lcu::ExprArena& arena_;
  std::unordered_map<VarId, MapResult> maps_;
  std::unordered_set<VarId> carried_;  ///< parameters of loops of the host, and what is written onto them
  int replaced_ = 0;
};

}  // namespace

int scatterWrites(lcu::Program& program) { return Scatterer(program).run(); }

}  // namespace kelpie::fusion
