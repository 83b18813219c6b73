// λcu: the flat program (Reppy and Wingerter, "λcu — An Intermediate Representation for Compiling Nested Data
// Parallelism"), extended by index spaces (DESIGN.md section 4).
//
// Three levels. *Host*: functions of statements over host scalars and device arrays. *Kernel*: a list of
// second-order array combinators (SOACs) launched together. *Thunk*: scalar expressions (ir/expr.h) over
// the indices of the SOAC's space, which name their free variables implicitly (host scalars, cells, arrays).
//
//   function norm2(xs: [float64]) {
//     kernel sum_1 {
//       let s1: &float64 = REDUCE flat #xs { i => xs[i] } (0.0) { x, y => x + y }
//       return s1
//     }
//     kernel filter_2 {
//       let n: &int64, gts: [float64; n] = FILTER flat #xs { i => xs[i] } where { i => xs[i] > 0.0 }
//       return n, gts
//     }
//     ...
//
// Before fusion every kernel has one SOAC. Fusion puts several SOACs of one cluster into a kernel; an array
// produced by one binding of a kernel may then be read by a later binding of the same kernel *pointwise*
// only: Load(array, %i) where both run over the same elements (see Kernel). Arrays not returned are never
// stored.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/data.h"
#include "ir/expr.h"
#include "ir/regularity.h"
#include "ir/source.h"

namespace kelpie::lcu {

// ---- variables --------------------------------------------------------------------------------------------

enum class VarKind : uint8_t {
  Host,   ///< scalar on the host
  Cell,   ///< scalar on the device; the host sees it only by a synchronising fetch
  Array,  ///< array of scalars on the device
};
struct VarInfo {
  std::string name;  ///< readable, not unique; text form adds the id where needed
  VarKind kind = VarKind::Host;
  ScalarType type = ScalarType::Int64;
  /// Arrays: the symbolic number of elements, an Int64 host expression (Host, Size, Load, Op ... no Param).
  /// Size(a) itself when nothing more is known.
  ExprRef extent = nullptr;
};

// ---- index spaces -----------------------------------------------------------------------------------------

enum class SpaceKind : uint8_t { Flat, Offsets, Regular };

/// What a SOAC runs over. Two spaces have the same elements iff their `extent`s are the same pointer; the
/// same segments iff kind, `extent`, `segments` and `offsets`/`length` agree.
struct Space {
  SpaceKind kind = SpaceKind::Flat;
  ExprRef extent = nullptr;    ///< number of elements (Int64 host expression)
  ExprRef segments = nullptr;  ///< segmented: number of segments
  VarId offsets = 0;  ///< Offsets: Int64 array of segments+1 ascending positions; first 0, last = extent
  ExprRef length = nullptr;  ///< Regular: elements of each segment; extent = segments * length
  bool segmented() const { return kind != SpaceKind::Flat; }
  friend bool operator==(const Space&, const Space&) = default;
};

// ---- SOACs ------------------------------------------------------------------------------------------------

enum class SoacKind : uint8_t { Map, Permute, Reduce, Scan, Filter, Partition, Once };

/// Associative operator on k-tuples: `result` over Params 0..k-1 (left) and k..2k-1 (right), with identity.
/// For k independent operators (after fusion) result[j] uses only params j and k+j.
struct Operator {
  std::vector<Scalar> identity;
  std::vector<ExprRef> result;
  friend bool operator==(const Operator&, const Operator&) = default;
};

/// A SOAC application. Thunks in `pull`, `where`, `destination` are over the indices of `space` (i, s, p).
/// Results by kind, with n elements, m segments, k = pull.size():
///   Map        k arrays [n]. k = 0 is allowed: the thunk `effects` is evaluated for its checks only.
///   Permute    k arrays [target]: result[destination(i)] = pull(i), for every i or those of which `where`
///              holds. Positions nobody writes hold fill[j], or the element of the array onto[j] (which has
///              at least as many, if anybody looks there), or, with neither, anything: nobody may look there.
///              unique: destinations are known to be distinct. agreeing: what comes to one place is equal.
///              Otherwise k = 1, Int64, pull = %i, and the greatest wins, of the i that come to the place and
///              of what it held (which makes "last write wins" of NESL: the result is the last writer). Where
///              nothing reads onto[j] any more the result has its memory, and costs what is written.
///   Reduce     flat: k cells. Segmented: k arrays [m].
///   Scan       k arrays [n]; withTotal (flat only): [n+1], the last entry is the total.
///              exclusive unless `inclusive`; `backward` runs from the end (of each segment).
///   Filter     flat: a cell (Int64, number of survivors), then k arrays of survivors in order.
///              Segmented: an Int64 array [m+1] (offsets of the survivors), then k arrays.
///   Partition  flat only: cell (number of true), k arrays of the true, k arrays of the false ones, in order.
///   Once       k cells; thunk without parameters, space unused. k = 0 as for Map.
/// `effects`: further thunks evaluated for every element only because they contain Checks (any kind).
struct Soac {
  SoacKind kind = SoacKind::Map;
  Space space;
  std::vector<ExprRef> pull;
  ExprRef where = nullptr;                                      ///< Filter, Partition, may be Permute: bool
  Operator combine;                                             ///< Reduce, Scan
  bool inclusive = false, backward = false, withTotal = false;  ///< Scan
  ExprRef destination = nullptr;                                ///< Permute: Int64 in 0..target-1
  ExprRef target = nullptr;                                     ///< Permute: host expression
  std::vector<Scalar> fill;                                     ///< Permute: one for each result, or none
  std::vector<VarId> onto;                                      ///< Permute: the same; not both
  bool unique = false, agreeing = false;                        ///< Permute
  std::vector<ExprRef> effects;
  std::vector<VarId> results;
  Span span;           ///< NESL source it came from
  std::string origin;  ///< NESL function it came from, for names in generated code

  bool writesInAnyOrder() const { return unique || agreeing; }  ///< Permute
};

/// A kernel: SOACs in dependence order.
/// Well-formed *before* fusion: exactly one binding. *After* fusion and rewriting: every binding runs over
/// the same elements (equal extents; Flat and one segmented space may mix), except
///   - maps over the segments of that segmented space (Flat of extent = segments): epilogues, which read, at
///     their %i, results of its segmented reductions, or are read by those that do, or only have effects; and
///   - Once bindings that read cells produced by the kernel's reductions.
/// A binding may read an array of an earlier binding of the kernel only as Load(array, %i) in the same space,
/// with array a Map or Scan result (of a Scan withTotal, not the total); and cells/segment results as just
/// said.
struct Kernel {
  std::string name;
  std::vector<Soac> bindings;
  std::vector<VarId> returns;  ///< results that outlive the kernel; the others are never stored
};

// ---- host level -------------------------------------------------------------------------------------------

struct Stmt;
struct Block {
  std::deque<Stmt> stmts;
  std::vector<VarId> results;
};

/// Host scalars := expressions without Param. Reading a Cell or a Load makes the host wait for the device.
struct HostLet {
  std::vector<ExprRef> values;
};
struct Launch {
  Kernel kernel;
};
struct CallFunction {
  uint32_t function;
  std::vector<VarId> arguments;
};
struct HostIf {
  ExprRef condition;
  std::shared_ptr<Block> thenBlock, elseBlock;
};
/// Variables `params` start as `initial`; while `condition.results[0]` (a host bool, computed by the block
/// from params) is true, `body.results` become the next params. Results: the params at the end.
struct HostLoop {
  std::vector<VarId> params, initial;
  std::shared_ptr<Block> condition, body;
};
/// Constant arrays (elements of scalar columns), one for each result.
struct ArrayConstant {
  Columns columns;
};
/// One array that contains several arrays of one type. Results: the array, then for each of `arrays` the
/// position (Host, Int64) where its elements begin; what lies between them is unspecified. Where one launch
/// produced them all they are placed side by side from the start and nothing moves (runtime/plan.h).
struct Join {
  std::vector<VarId> arrays;
};
/// Stable ascending order within each segment of `space`: result[e] is the position *in its segment* (Int64)
/// of the element that comes e-th. `keys` has the extent of the space. NaN sorts after all numbers.
/// Results: the order; the keys in this order; the ranks, which say of each element as which of its segment
/// it comes. At least one of them is wanted. No keys that are floats (equal ones may differ in their bits).
struct Grade {
  VarId keys;
  Space space;
  bool order = true, sorted = false, ranks = false;
  size_t sortedResult() const { return order ? 1 : 0; }
  size_t ranksResult() const { return sortedResult() + (sorted ? 1 : 0); }
};
/// A service of the runtime with effects or outside knowledge. Arguments and results are values of Core types
/// in dense column form (ir/data.h) for one instance: a scalar is a Host variable; a sequence is its length
/// (Host, Int64) followed by its columns, scalar columns as arrays, nested ones as offsets and, again,
/// columns. Statements with Service run in program order relative to each other.
struct Service {
  std::string name;  ///< "print", "raise", "random_draws", "start_timer", ...: runtime/services.h
  std::vector<CoreType> argumentTypes;
  std::vector<VarId> arguments;
  std::vector<CoreType> resultTypes;
  SiteId site = 0;
};

struct Stmt {
  std::vector<VarId> results;
  std::variant<HostLet, Launch, CallFunction, HostIf, HostLoop, ArrayConstant, Join, Grade, Service> node;
  Span span;
};

struct HostFunction {
  std::string name;
  std::vector<VarId> params;  ///< Host scalars and Arrays
  Block body;
};

/// Where and why a run-time error arises. `message` may contain {0} and {1}, the payloads in decimal.
struct Site {
  Span span;
  std::string message;
};

/// A global variable: the dense columns of session cell `cell` (see Service for the layout). Where all
/// sequences of a nested column are known to have one length, that length (Host, Int64) may stand in place of
/// the offsets.
struct GlobalInput {
  uint32_t cell;
  std::vector<CoreType> types;
  std::vector<VarId> vars;
};

struct Program {
  std::shared_ptr<ExprArena> arena = std::make_shared<ExprArena>();
  std::deque<VarInfo> vars;  ///< indexed by VarId; entry 0 is unused
  std::vector<Site> sites;   ///< indexed by SiteId; entry 0 is "unknown"
  std::vector<GlobalInput> globals;
  std::vector<HostFunction> functions;
  HostFunction entry;  ///< no parameters; results: dense columns of `resultTypes`
  std::vector<CoreType> resultTypes;
  Regularity regularResults;  ///< of the entry's results, as far as it is known before the program runs
  Span span;                  ///< of the form it comes from

  VarId newVar(VarInfo info);
  SiteId newSite(Site site);
};

// ---- text and checks --------------------------------------------------------------------------------------

std::string toString(const Program& program);
std::string toString(const Kernel& kernel, const Program& program);
std::string toString(ExprRef e, const Program& program);

/// Every violated typing or scoping rule (the paper's section 3.3 and the rules above), one message each;
/// empty when well-formed. `fused`: check the rules for kernels after fusion instead of "one binding".
std::vector<std::string> verify(const Program& program, bool fused);

/// Calls `visit` for every block of the program: entry, functions, and nested ones, outermost first.
void forEachBlock(Program& program, const std::function<void(Block&)>& visit);
void forEachBlock(const Program& program, const std::function<void(const Block&)>& visit);

/// Free host-level variables read by an expression / a SOAC / a statement (without nested definitions),
/// ascending.
std::vector<VarId> freeVars(const std::vector<ExprRef>& es);
std::vector<VarId> freeVars(const Soac& soac);
std::vector<VarId> freeVars(const Stmt& stmt);

}  // namespace kelpie::lcu
