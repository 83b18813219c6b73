// The flattener's working state; private to flatten/. The entry point is flatten.h.
//
// Files: flatten.cpp (program, functions, calls), expressions.cpp (let, apply-to-each), conditionals.cpp,
// scalar_loops.cpp, scalar_recursion.cpp, primitives.cpp and partition.cpp (sequence primitives), effects.cpp
// (services, random numbers), translate.cpp (values across contexts), stores.cpp (views -> stores, dense
// columns), boundaries.cpp (values at host-level boundaries), shapes.cpp (those of a root), host_loops.cpp
// (tail recursion at a root), even_calls.cpp (recursion over sequences of one length), emit.cpp (statements).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "flatten/analysis.h"
#include "flatten/context.h"
#include "flatten/flatten.h"
#include "flatten/shape.h"
#include "flatten/value.h"
#include "ir/core.h"
#include "ir/failures.h"
#include "ir/lcu.h"

namespace kelpie::flatten {

/// Non-recursive functions are inlined, so that their kernels meet in one scheduling region, until a program
/// has grown to this many Core nodes; from then on larger functions are called.
constexpr size_t kInlineBudget = 200'000;

struct Bound {
  Context* context = nullptr;
  Value value;
};

/// Variables of one activation of a Core function (or of the entry).
using Frame = std::unordered_map<core::VarId, Bound>;

class Flattener {
 public:
  Flattener(const core::Program& program, const RegularCells& globals)
      : core_(program), analysis_(program), regularCells_(globals) {}
  lcu::Program run();

 private:
  /// What views of a stored sequence may be.
  enum class Form {
    Stored,     ///< Direct with a constant stride into any store, and Append of such
    Appended,   ///< Canonical, and Append of such
    Canonical,  ///< Direct: plain arrays and slices of stride 1 all the way down
    Dense,  ///< Canonical, and the sequences of all instances one after the other: segments of a descriptor
  };

  // ---- expressions ----
  Values compile(core::ExpPtr e, Context& context, Frame& frame);
  core::ExpPtr compileLets(core::ExpPtr e, Context& context, Frame& frame);
  /// The value of `e` for the instances of a context that is no root, stored.
  std::vector<StorePtr> compileStored(core::ExpPtr e, Context& context, Frame& frame, Form form);

  // ---- conditionals ----
  Values compileIf(const core::Exp& e, const core::If& node, Context& context, Frame& frame);
  Values compileHostIf(const core::Exp& e, const core::If& node, ExprRef condition, Context& context,
                       Frame& frame);
  Values compileSelect(const core::If& node, ExprRef condition, Context& context, Frame& frame);
  bool positive(ExprRef instances) const;
  using CompileStored = std::function<std::vector<StorePtr>(Form)>;
  std::vector<StorePtr> compileUnlessEmpty(ExprRef instances, const CompileStored& compileInside);
  struct Side;
  struct Sides;
  bool delayable(const core::ExpPtr& branch) const;
  bool recurses(const core::If& node) const;
  Sides compileSides(const core::Exp& e, const core::If& node, ExprRef condition, Context& context,
                     Frame& frame);
  /// The branch for the instances with `condition`, stored; nothing runs when there are none. `positive`: as
  /// of the context. `owned`: sequences are copied, so that nothing of what the branch reads is needed any
  /// more.
  Side compileBranch(const core::ExpPtr& branch, ExprRef condition, ExprRef positive, bool owned,
                     Context& context, Frame& frame);
  /// The branch for all instances, inside thunks; only those where `condition` is `taken` use it.
  Side compileDelayed(const core::ExpPtr& branch, ExprRef condition, bool taken, bool atOnce,
                      Context& context, Frame& frame);
  Values merge(const Sides& sides, Context& context);
  std::vector<StorePtr> storeSides(const Sides& sides, const Row& types, Context& context);

  // ---- apply-to-each, calls, constants ----
  Values compileEach(const core::Exp& e, const core::Each& node, Context& context, Frame& frame);
  Values compileCall(const core::Exp& e, const core::Call& node, Context& context, Frame& frame);
  Values compileInvariant(const core::Exp& e, const core::Invariant& node, Context& context, Frame& frame);
  Values compileConstant(const core::Constant& node);
  Values compilePrim(const core::Exp& e, const core::Prim& node, Context& context, Frame& frame);
  void bind(const std::vector<core::Var>& vars, const Values& values, Context& context, Frame& frame);
  Value atom(const core::Atom& a, Context& context, Frame& frame);
  Values atoms(const std::vector<core::Atom>& as, Context& context, Frame& frame);

  // ---- scalar loops (tail recursion inside a thunk) ----
  Values compileScalarLoop(core::FunctionId f, const Values& arguments, Context& context);
  struct LoopShape;
  std::vector<ExprRef> loopStep(core::ExpPtr e, const LoopShape& shape, Context& context, Frame& frame,
                                std::vector<ExprRef> owed);

  // ---- scalar recursion (any other recursion inside a thunk) ----
  Values compileScalarRecursion(core::FunctionId f, Span span, const Values& arguments, Context& context);
  struct ScalarRecursion {
    uint32_t id;
    Span call;  ///< of the first recursive call
  };
  /// Those whose functions are being compiled.
  std::unordered_map<core::FunctionId, ScalarRecursion> recursions_;

  // ---- functions ----
  struct Instance {
    uint32_t function = 0;
  };
  Values callFunction(core::FunctionId f, const Values& arguments, Context& context);
  /// By the plain or the lifted instance.
  Values callInstance(core::FunctionId f, const Values& arguments, Context& context);
  Values runHostLoop(core::FunctionId f, const Values& arguments, Context& context);
  struct LoopStep;
  struct LoopVariables {
    VarId done = 0;
    std::vector<VarId> results, varying;
    std::vector<VarId> all() const;
  };
  std::unique_ptr<LoopStep> hostLoopStep(core::ExpPtr e, core::FunctionId f, Context& root, Frame& frame);
  std::vector<VarId> finishStep(const LoopStep& step, const LoopVariables& current, const Shapes& results,
                                const Shapes& varying);
  uint32_t instance(core::FunctionId f, bool lifted);

  // ---- recursion over sequences of one length (even_calls.cpp) ----
  struct Even {
    uint32_t function = 0;
    bool results = false;  ///< have one length for all instances, too
    /// Its host part (host_part.h), if somebody needed it.
    std::optional<uint32_t> hostPart;
    bool conditional = false;  ///< the host part tells whether all calls will be even
  };
  struct Attempt {
    core::FunctionId function;
    bool evenCalls = true;  ///< so far
    /// By the first argument of a call: when its sequences have one length.
    std::unordered_map<VarId, ExprRef> conditions;
  };
  bool hostKnown(ExprRef e) const;
  const Even* evenInstance(core::FunctionId f);
  bool isShared(core::FunctionId f, size_t parameter) const;
  bool compileEven(core::FunctionId f, bool evenResults);
  /// What has been compiled so far, to go back to.
  struct Mark {
    size_t functions, inlined;
    uint32_t kernels;
  };
  Mark mark() const { return {program_.functions.size(), inlined_, kernels_}; }
  /// Forgets the functions compiled since; not that `kept` is being compiled.
  void goBack(const Mark& mark, std::optional<core::FunctionId> kept = std::nullopt);
  bool makeHostPart(core::FunctionId f, const lcu::HostFunction& function,
                    const std::unordered_map<VarId, ExprRef>& conditions);
  std::optional<Values> callEvenly(core::FunctionId f, const Values& arguments, Context& context);
  Values callEven(core::FunctionId f, const Even& even, Values arguments, Context& context);
  std::vector<ExprRef> hostAlternatives(ExprRef e) const;
  ExprRef sameLengths(Values& arguments) const;
  ExprRef sideBySide(Sequence& v, const Context& context) const;
  Values callIfEven(core::FunctionId f, const Even& even, const Values& arguments, Context& context);
  bool decidedByHost(ExprRef condition, const Context& context) const;
  std::vector<StorePtr> storeDecided(const core::Exp& e, const core::If& node, ExprRef condition,
                                     Context& context, Frame& frame);
  std::shared_ptr<lcu::Block> inBlock(Context& context, const std::function<void(std::vector<VarId>&)>& fill);

  // ---- primitives ----
  ExprRef checkedScalar(const core::Exp& e, const core::Prim& node, ExprRef a, ExprRef b);
  ExprRef checkedConvert(const core::Exp& e, ExprRef a, ScalarType to);
  Values indexSequence(const core::Exp& e, const Sequence& v, ExprRef position, Context& context);
  Value range(const core::Exp& e, ExprRef start, ExprRef end, ExprRef stride, Context& context);
  Value slice(const core::Exp& e, const Sequence& v, ExprRef start, ExprRef count, ExprRef stride,
              Context& context);
  Value reduce(const core::Exp& e, ReduceOp op, const Sequence& v, Context& context);
  Value scan(const core::Exp& e, ReduceOp op, const Sequence& v, Context& context);
  Value pack(const core::Exp& e, const core::Prim& node, Context& context, Frame& frame);
  Value append(const Sequence& a, const Sequence& b, Context& context);
  bool follows(const Run& a, const Run& b);
  Value flattenSequence(const Sequence& v, Context& context);
  void checkPieces(const core::Exp& e, ExprRef pieces, ExprRef length, ExprRef elements, Context& root);
  Value partition(const core::Exp& e, const Sequence& v, const Sequence& counts, Context& context);
  Value zip(const core::Exp& e, const std::vector<const Sequence*>& parts, Context& context);
  Value lastWriter(const core::Exp& e, const Sequence& index, ExprRef n, Context& context);
  Value grade(const Sequence& keys, Context& context);
  Values random(const core::Exp& e, const core::Prim& node, ExprRef bound, Context& context);
  Values effect(const core::Exp& e, const core::Prim& node, const Values& arguments, Context& context);
  Values writeInstances(const core::Exp& e, const std::string& name, const std::vector<CoreType>& types,
                        const Values& arguments, Context& context);
  /// All characters of all instances in order, as one root sequence.
  Sequence joinInstances(const Sequence& text, Context& context, Context& root);

  // ---- contexts and values across them ----
  Context& newContext(Context::Kind kind, Context* parent, Space space, lcu::Block* block);
  Context& rootOf(Context& context);
  /// Expression of `from` as an expression of `to`, a context inside it.
  ExprRef translate(ExprRef e, Context& from, Context& to);
  Value translate(const Value& v, Context& from, Context& to);
  ViewPtr translate(const ViewPtr& v, Context& from, Context& to);
  ExprRef step(ExprRef e, Context& parent, Context& child);
  Space covering(ExprRef length, ExprRef elements, Context& context);
  bool dividable(ExprRef e, const Context& context) const;
  ExprRef ofInstance(ExprRef e, const Space& space, ExprRef instance);
  ExprRef overInstances(ExprRef e, Context& context);
  /// Stores an expression of `context` (array, host scalar or cell) and returns how to read it.
  ExprRef stored(ExprRef e, Context& context);
  bool cheap(ExprRef e, const Context* user = nullptr) const;
  bool onlyInstance(ExprRef e) const;
  bool readsDevice(ExprRef e) const;
  /// A host expression fit for an extent: no check left inside.
  ExprRef extent(ExprRef e, Context& root);
  /// The segmented space (flat in a root) of sequences with these lengths.
  Space spaceFor(ExprRef length, Context& context);
  ExprRef totalBefore(ExprRef length, Context& context);
  struct Entered {
    Context* context;
    std::vector<Values> elements;  ///< of each sequence, in the new context
  };
  /// Enters the elements of sequences of equal length (checked at `e`'s span).
  Entered enter(const std::vector<const Sequence*>& sequences, Context& context,
                const core::Exp* e = nullptr);
  ExprRef sameLength(const std::vector<const Sequence*>& sequences, const Sequence& leader, Span span,
                     Context& context);
  ExprRef representative(ExprRef extent, const Context& context) const;
  Space commonSpace(const std::vector<const Sequence*>& sequences, Context& context, const core::Exp* e,
                    ExprRef* length);
  /// `making`: elements are made again where their views tell how, rather than loaded.
  Entered enterSpace(const Space& space, const std::vector<const Sequence*>& sequences, Context& context,
                     bool making = false);
  Values elementAt(const Sequence& v, ExprRef position, Context& context);
  Value viewAt(const View& view, const CoreType& type, ExprRef position, Context& context,
               bool making = false);
  bool makeable(ExprRef element) const;
  /// Remembers how the elements of a sequence just stored were made.
  void rememberMaking(Sequence& sequence, const Values& row, Context& context);
  ExprRef translateFreely(ExprRef e, Context& from, Context& to);
  Value storeAt(const Store& store, ExprRef address, Context& context);
  Value choose(ExprRef condition, const Value& a, const Value& b);
  Values choose(ExprRef condition, const Values& a, const Values& b);
  ViewPtr guard(const ViewPtr& v, ExprRef condition, bool wanted);
  bool partial(ExprRef e) const;
  bool evaluates(const View& v, const std::function<bool(ExprRef)>& is) const;
  bool partial(const View& v) const;
  bool loads(const View& v) const;
  ViewPtr chooseView(ExprRef condition, const ViewPtr& a, const ViewPtr& b);
  ViewPtr componentAt(const Store::Component& component, ExprRef address);
  ViewPtr appended(ExprRef split, ViewPtr first, ViewPtr second);
  Value listed(const std::vector<Value>& values, size_t low, size_t high, ExprRef position);
  Value zero(const CoreType& type);
  /// Sequence whose elements are the stores of `inner`, entered from `context` over `space`.
  Sequence sequenceOver(const Space& space, ExprRef length, Row types, const std::vector<StorePtr>& stores,
                        Context& context);
  ViewPtr direct(ExprRef start, ExprRef stride, StorePtr store, bool aligned = false);

  // ---- stores ----
  /// Stores a row of values of a non-root context; element i of each store belongs to instance i.
  std::vector<StorePtr> storeRow(const Values& row, Context& context, Form form = Form::Stored);
  struct Columns;
  void addColumn(ExprRef e, Columns& columns, Context& context);
  /// Brings every view into a form, copying once where it must.
  Value normalise(const Value& v, Context& context, Form form);
  ViewPtr joined(const ViewPtr& view);
  /// Gives a sequence that is runs of segments, of equal count and in order, a descriptor of its own.
  void regroup(Sequence& v, Context& context);
  bool plain(const View& view, Form form) const;
  bool plain(const Store& store) const;
  /// The scalar expressions that must be stored for a normalised value, and the store over their arrays,
  /// which `next` hands out in the same order.
  bool lengthIsKnown(const Sequence& sequence) const;
  std::vector<ExprRef> columnsOf(const Value& v) const;
  static void addColumns(const View& view, std::vector<ExprRef>& out);
  StorePtr storeOf(const Value& v, const CoreType& type, const std::function<VarId()>& next) const;
  static Store::Component componentFrom(const View& view, const std::function<VarId()>& next);
  Sequence copy(const Sequence& v, Context& context);
  void denseColumns(const Value& v, const CoreType& type, Context& context, std::vector<VarId>& out);
  VarId offsetsArray(const Space& space);
  StorePtr denseStore(const CoreType& type, const std::vector<VarId>& vars, size_t& next, ExprRef& count);
  Sequence fromColumns(const CoreType& type, ExprRef length, const std::vector<VarId>& vars, size_t& next);
  Values fromDenseColumns(const Row& types, const std::vector<VarId>& vars);

  // ---- the canonical form of values at host-level boundaries (function calls, host conditionals) ----
  //   in a root:        scalar: host scalar         sequence: length, then start and store of each component
  //   in other contexts: a store over the instances
  //   store of scalars: its array    store of sequences: lengths, then starts and inner store of each
  //   component
  // A root's conditionals and loops hand over more where more is known (flatten/shape.h).
  // Results of lifted functions and of conditionals are dense: offsets, then the inner store of each
  // component. Arguments are not, so that slices can be passed on. SpaceKind::Regular, for instances over
  // sequences of one length: that length in place of the offsets, also of arguments.
  std::vector<VarId> canonical(const Values& row, Context& context);
  void canonicalStore(const StorePtr& store, std::vector<VarId>& out);
  void canonicalComponent(const Store::Component& component, std::vector<VarId>& out);
  /// Lengths and starts of the segments of a descriptor.
  std::pair<VarId, VarId> slicesOf(const Space& space);
  VarId startsOf(const Space& space);
  /// Of a store that is not dense.
  VarId lengthsOf(const Store& store);
  /// What a store hands over at a boundary: as canonicalStore, but of a dense store its offsets.
  void crossing(const StorePtr& store, std::vector<VarId>& out,
                lcu::SpaceKind kind = lcu::SpaceKind::Offsets);
  bool dense(const Store& store) const;
  /// Dense results over `instances` instances, and the store over such variables.
  void declareDense(const CoreType& type, const std::string& name, ExprRef instances, std::vector<VarId>& out,
                    lcu::SpaceKind kind = lcu::SpaceKind::Offsets);
  StorePtr denseFrom(const CoreType& type, const std::vector<VarId>& vars, size_t& next, ExprRef instances,
                     lcu::SpaceKind kind = lcu::SpaceKind::Offsets);
  /// The space of such sequences whose offsets, or length, is `var`.
  Space denseSpace(VarId var, ExprRef instances, lcu::SpaceKind kind);
  /// What a store of no instances hands over in place of `shape`.
  void emptyLike(const Store& shape, std::vector<VarId>& out);
  void emptyLike(const Store::Component& shape, std::vector<VarId>& out);
  void constantArray(Column column, std::vector<VarId>& out);
  /// A store over new variables that takes what `shape` hands over.
  StorePtr declareLike(const Store& shape, const std::string& name, ExprRef extent, std::vector<VarId>& out);
  Store::Component declareLike(const Store::Component& shape, const CoreType& type, const std::string& name,
                               ExprRef extent, std::vector<VarId>& out);
  void emptyArray(ScalarType type, std::vector<VarId>& out);
  void declareStore(const CoreType& type, const std::string& name, ExprRef extent, std::vector<VarId>& out);
  std::vector<VarId> declare(const Row& types, Context& context, const std::string& name);
  StorePtr storeFrom(const CoreType& type, const std::vector<VarId>& vars, size_t& next);
  Values fromCanonical(const Row& types, const std::vector<VarId>& vars, Context& context);
  void emptyStore(const CoreType& type, std::vector<VarId>& out);

  // ---- values of a root between blocks (shapes.cpp) ----
  /// On their way out of a block: scalars are host scalars there, sequences canonical.
  struct Outgoing {
    lcu::Block* block = nullptr;
    Span span;
    Row types;
    std::vector<std::variant<VarId, Sequence>> row;
    Shapes shapes;  ///< what is known of them
  };
  Shape shapeOf(const Store& store) const;
  SequenceShape shapeOf(const Sequence& v, Context& root) const;
  Outgoing leave(const Values& row, Context& root);
  /// What stands for them beyond their block, in these shapes, which are theirs or less.
  std::vector<VarId> cross(const Outgoing& outgoing, const Shapes& shapes);
  void crossShaped(const Store& store, const Shape& shape, bool counted, std::vector<VarId>& out);
  /// Zeros and empty sequences.
  std::vector<VarId> crossNothing(const Row& types, const Shapes& shapes);
  void crossNothing(const CoreType& type, const Shape& shape, bool counted, std::vector<VarId>& out);
  std::vector<VarId> declare(const Row& types, const Shapes& shapes, const std::string& name);
  void declareShaped(const CoreType& type, const Shape& shape, bool counted, const std::string& name,
                     std::vector<VarId>& out);
  /// The values that such variables stand for.
  Values arrive(const Row& types, const Shapes& shapes, const std::vector<VarId>& vars);
  StorePtr shapedStore(const CoreType& type, const Shape& shape, const std::vector<VarId>& vars, size_t& next,
                       ExprRef count);

  // ---- emission ----
  lcu::ExprArena& arena() { return *program_.arena; }
  VarId newVar(lcu::VarKind kind, ScalarType type, const std::string& name, ExprRef extent = nullptr);
  void append(lcu::Block* block, lcu::Stmt stmt);
  std::vector<VarId> launch(lcu::Soac soac, const char* kind, lcu::Block* block,
                            const std::string& name = "");
  VarId map(const Space& space, ExprRef pull, lcu::Block* block, const std::string& name);
  VarId hostLet(ExprRef e, lcu::Block* block, const std::string& name);
  std::vector<VarId> service(const std::string& name, std::vector<CoreType> argumentTypes,
                             std::vector<VarId> arguments, std::vector<CoreType> resultTypes,
                             lcu::Block* block);
  lcu::SiteId site(Span span, const std::string& message);
  Span userSpan(Span span) const { return inLibrary_ > 0 || !span.known() ? userSpan_ : span; }
  /// Raises at once when the condition is host-known and code is not inside a delayed branch; otherwise the
  /// value carries the check. Returns the checked value.
  ExprRef check(ExprRef condition, ExprRef value, Scalar fallback, Span span, const std::string& message,
                ExprRef p, ExprRef q, Context& context);
  bool holds(ExprRef condition, const Context& context) const;
  static bool holdsOfPlaces(ExprRef condition, const Context& context);
  ExprRef hasNoInstances(const Context& context);
  struct PlaceSum;
  std::optional<PlaceSum> placeSumOf(ExprRef e, const Context& context);
  bool checkedOfPlaces(ExprRef condition, Span span, const std::string& message, ExprRef q, Context& context);
  /// Call once `context`, which is no root, has all that tells its instances.
  void notePlaces(const std::vector<const Sequence*>& sequences, Context& context);
  /// From here on it does.
  void learn(ExprRef condition, Context& context);
  void flushPending(Context& context);
  /// ... and what is pending around it: what fails before a recursion may be what ends it.
  void flushAll(Context& context);
  /// `value`, but these are evaluated first, in their order.
  ExprRef evaluatedBefore(const std::vector<ExprRef>& owed, ExprRef value);
  void dropEvaluated(std::vector<ExprRef>& pending, const std::vector<ExprRef>& roots) const;
  /// What has become pending since there were `mark`; it is no longer.
  static std::vector<ExprRef> takeOwed(size_t mark, Context& context);
  /// What has to be evaluated for its checks beside `roots` and the conditions that have led here.
  std::vector<ExprRef> stillOwed(const std::vector<ExprRef>& owed, std::vector<ExprRef> roots) const;
  void notePending(ExprRef e, Context& context);
  std::string nameOf(ExprRef e, const std::string& otherwise) const;
  ExprRef toIndex(ExprRef e) { return arena().convert(e, lcu::kIndex); }
  ExprRef fromIndex(ExprRef e) { return arena().convert(e, core_.intType); }
  ExprRef asBool(ExprRef e);
  Space flat(ExprRef extent) const;

  const core::Program& core_;
  Analysis analysis_;
  const RegularCells& regularCells_;
  std::unordered_set<VarId> regularDescriptors_;  ///< arrays of segments of one length
  lcu::Program program_;
  std::deque<Context> contexts_;
  Frame globals_;
  lcu::Block* block_ = nullptr;  ///< innermost block being filled
  std::map<std::pair<core::FunctionId, bool>, uint32_t> instances_;
  std::vector<core::FunctionId> lifted_;                  ///< those whose lifted instances are being compiled
  std::map<core::FunctionId, std::optional<Even>> even_;  ///< none: there is no even instance
  std::vector<Attempt> evens_;                            ///< even instances that are being compiled
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, std::string>, lcu::SiteId> sites_;
  std::unordered_map<ExprRef, std::string> names_;
  std::unordered_map<core::VarId, core::ExpPtr> predicates_;  ///< see Analysis::predicate
  /// Arrays that survivors of a filter were written to, with the block of the filter: may be joined once.
  std::unordered_map<VarId, const lcu::Block*> joinable_;
  struct Inverse {
    VarId inverse;
    Space space;
  };
  std::unordered_map<VarId, Inverse> inverses_;  ///< of the orders and ranks of sorts
  std::vector<ExprRef> positive_;                ///< numbers of instances that enclosing host tests guard
  int delayed_ = 0;                              ///< inside a branch or loop that becomes part of a thunk
  std::vector<ExprRef> decided_;                 ///< conditions of the branches around, inside of a thunk
  int inLibrary_ = 0;  ///< inside code of the library: errors belong to the user's call
  Span userSpan_;
  Span span_;  ///< of the expression being compiled
  std::string origin_ = "main";
  size_t inlined_ = 0;
  uint32_t kernels_ = 0;
};

}  // namespace kelpie::flatten
