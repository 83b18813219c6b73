// One call of ExpressionEmitter::emit: walks the blocks of a schedule with its own stack. Private to the
// emitter (expression_emitter.cpp: operations; expression_run.cpp: blocks, branches, loops;
// recursion_text.cpp).
#pragma once

#include "codegen/expression_emitter.h"
#include "codegen/loop_exits.h"
#include "codegen/pending_calls.h"

namespace kelpie::codegen {

struct ExpressionEmitter::Run {
  using ExprRef = lcu::ExprRef;

  ExpressionEmitter& emitter;
  Schedule schedule;
  std::unordered_map<ExprRef, uint32_t> uses;
  std::string failed;  ///< name of the flag "this evaluation recorded an error"; empty when nothing needs it
  std::string turns;   ///< name of the number of turns until loops ask; empty when they do not
  std::string stack;   ///< name of the k_recursion of this evaluation
  struct Function {
    ExprRef recursion;
    std::string values, self;  ///< names of its type of results and of itself inside
    // Of one that keeps frames:
    std::optional<PendingCalls> pending;
    std::string state, result, again;  ///< names of where to go on, of what a call gave back, of a label
    uint32_t places = 0;               ///< where calls go on, so far; 0 is the beginning
    bool pushesState = false;          ///< frames tell where to go on; else there is one place
    std::vector<std::string> soFar;    ///< by result: what last calls will be combined with; empty: nothing
  };
  std::unordered_map<uint32_t, Function> functions;    ///< of recursions, by id
  Function* inFrames = nullptr;                        ///< the one at hand, if it keeps frames
  std::unordered_map<std::string, ScalarType> locals;  ///< of it, in scope
  std::unordered_set<ExprRef> inRecords;               ///< loads that have come with others, in scope
  struct Frame {
    uint32_t block;
    int indent;
    size_t step = 0;
    int phase = 0;  ///< of the current If or Loop step: blocks done
    std::string text, firstText;
    std::vector<std::string> firstValues;  ///< If: the then values; Loop: the names of the variables
    std::string condition;
    std::vector<std::string> declared;  ///< of `locals`
    std::vector<ExprRef> divided;       ///< of `divided`
    std::vector<ExprRef> inRecords;     ///< of `inRecords`
    /// In a block that ends a step of a loop that is left at its leaves (loop_exits.h):
    ExprRef loop = nullptr;
    std::vector<ExprRef> ends;     ///< its variables' next values
    Facts facts;                   ///< the conditions around the block
    std::optional<size_t> branch;  ///< the If that is put last; it has the leaves
    bool atLast = false;           ///< it is its turn
  };
  std::vector<Frame> frames;
  std::map<std::pair<ExprRef, ExprRef>, ExprRef> quotients;  ///< of what is divided by what is no constant
  std::unordered_set<ExprRef> divided;                       ///< those that have a name in scope
  static void line(Frame& f, const std::string& text, int deeper = 0);
  void countUses(const std::vector<ExprRef>& roots);
  std::string run();
  void enter(uint32_t block, int indent);
  /// A block at whose end the variables of `loop` are `ends`.
  void enterEnd(uint32_t block, int indent, ExprRef loop, std::vector<ExprRef> ends, Facts facts);
  /// A branch of the If that ends the block of `f`.
  void enterBranch(const Frame& f, bool then);
  void finishBranch(Frame& f, uint32_t finished, std::string text);
  /// The end of a step of a loop: on with the next one, or out.
  void leaf(Frame& f);
  /// The variables of a loop step together, but for one that keeps its value.
  void assign(Frame& f, ExprRef loop, const std::vector<ExprRef>& next, std::optional<uint32_t> kept);
  /// A name for a value. Where calls go on in the middle of a scope, nothing may be initialised there.
  void declare(Frame& f, ScalarType type, const std::string& name, const std::string& value,
               bool changes = false);
  /// A name whose value comes later.
  void declare(Frame& f, ScalarType type, const std::string& name);
  void declareWord(Frame& f, const std::string& name, const std::string& value);
  /// Whether names of the block at hand are declared ahead of its statements.
  bool declaresAhead() const { return emitter.ahead_ && frames.size() == 1 && !inFrames; }
  void remember(Frame& f, ScalarType type, const std::string& name);
  void operation(Frame& f, ExprRef e);
  /// Quotients that remainders can be made of.
  void findQuotients();
  /// The text of a remainder whose quotient is computed somewhere, too; the quotient has a name then.
  std::optional<Text> remainder(Frame& f, ExprRef e);
  void named(Frame& f, ExprRef quotient);
  /// Whether `e` is a number loaded in a step of a loop beside others from the same position.
  bool isColumn(const Frame& f, ExprRef e) const;
  /// Appends the loads of 8 bytes at a position in a block; `inside`: and in branches and loops
  /// inside of it.
  void addColumns(uint32_t block, ExprRef position, bool inside, std::vector<ExprRef>& loads) const;
  /// Loads all columns of an element with the first one.
  bool recorded(Frame& f, ExprRef e);
  void check(Frame& f, ExprRef e);
  /// The statement for an error of `site`.
  std::string record(lcu::SiteId site, const std::string& payload0, const std::string& payload1) const;
  std::vector<std::string> textsOf(const std::vector<ExprRef>& es, bool atomic) const;
  void startLoop(Frame& f, const ScheduleStep& step);
  void startRecursion(Frame& f, const ScheduleStep& step);
  /// The function is a lambda, so that it reads what is around it; it is given itself, if it does not keep
  /// frames.
  void finishRecursion(Frame& f, ExprRef e, const std::string& body);
  void giveBack(Frame& f, int deeper, const std::string& out, const Function& function) const;
  /// A turn for each call that begins and for each that goes on.
  void overFrames(Frame& f, const Function& function, const std::string& body);
  struct Kept {
    std::string name;
    ExprRef node;
  };
  /// What the code behind a call uses and the code before it has computed.
  std::vector<Kept> kept(const std::vector<ExprRef>& uses) const;
  /// Takes out what is quickly computed from the others.
  std::vector<Kept> takeComputable(std::vector<Kept>& values) const;
  /// What is pending goes onto the stack, and the function begins anew; it goes on here.
  void callInFrames(Frame& f, ExprRef e);
  /// The next arguments, and what the function has so far.
  void beginAnew(Frame& f, ExprRef call);
  std::string identityOf(const Function& function, size_t result) const;
  /// What the function has so far and another value.
  std::string combined(const Function& function, size_t result, const std::string& a,
                       const std::string& b) const;
  lcu::SiteId tooDeep(const Function& function) const;
  void call(Frame& f, ExprRef e);
  static std::vector<std::string> membersOf(const std::string& values, size_t count);
  /// A nested block of the current step of `f` is complete.
  void finishBlock(Frame& f, uint32_t finished, std::string text);
  void finishIf(Frame& f, ExprRef e, const std::string& elseText);
  void finishLoop(Frame& f, ExprRef e, const std::string& bodyText);

  static uint64_t loopVarKey(uint32_t loop, uint32_t number) { return (uint64_t{loop} << 32) | number; }
  /// What reads a variable.
  static std::string variableText(const ExpressionEmitter& emitter, uint32_t loop, uint32_t number);
  /// By number: whether the variable may have one word (Dialect::wordVariables).
  std::vector<bool> wordsOf(ExprRef loop) const;
};

}  // namespace kelpie::codegen
