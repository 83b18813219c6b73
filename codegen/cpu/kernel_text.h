// The text of one CPU kernel under construction (codegen/cpu/cpu_module.h describes its shape).
//
// Names in generated code. For component c of binding b, with r the name of the result:
//   r_b0c1_values    values of the pull thunk for the elements of the block
//   r_b0c1_scanned   results of a scan for the elements of the block, when other bindings read them
//   r_b0c1_partial   totals by block or by piece, then what is carried into each
//   r_b0c1_result    results by segment that stay in the kernel
//   r_b0c1_cell      a flat reduction's or a Once's result
//   r_b0c0_keep      of a filter: which elements of the block survive; r_b0c0_kept: how many by block, then
//   before it
// In kernels whose thunks loop or recurse (unbounded_passes.cpp) what is "of the block" is a part of an array
// over all elements, r_b0c1_values_kept and so on.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/cpu/cpu_module.h"
#include "codegen/expression_emitter.h"

namespace kelpie::codegen::cpu {

/// The structure in kelpie_cpu.h that applies it.
std::string operationName(ScalarOp op);

class KernelText {
 public:
  KernelText(const lcu::Kernel& kernel, const lcu::Program& program, std::string entry,
             const CpuOptions& options);
  std::string generate();

 private:
  using Indices = std::vector<uint32_t>;  ///< numbers of bindings

  // ---- kernel_text.cpp: the frame of the kernel ----
  void comment();
  void prologue();
  void partials();
  void takeResultsBySegment();
  void take(const std::string& type, const std::string& name, const std::string& elements);
  void fillTargets();
  void cutBlocks();
  void openBlocks();
  void firstPass(uint32_t level);
  void lastPass();
  void blockBody(const Indices& bindings, uint32_t upTo, bool last, bool part);
  void epilogueFunction();
  void finishing();
  void declareBlock();  ///< begin, end, count and the segments of a block

  // ---- element_loop.cpp ----
  void elementLoop(const Indices& bindings, bool last);
  std::optional<int64_t> fixedLength() const;
  void segmentsOfElements();
  void declareIndices(bool usesSegment, bool usesPosition);
  struct ElementStatements {
    std::string text;
    bool races = false;  ///< several elements may write the same place
  };
  ElementStatements elementStatements(const Indices& bindings, bool last, ExpressionEmitter& emitter);
  void declareTiles(const Indices& bindings);
  void findTiledPulls(const Indices& bindings);
  bool lateNeedsSegments(uint32_t b) const;

  void declareDirectValues(uint32_t b);
  bool keepsPull(uint32_t b, size_t c) const;
  bool needsValues(uint32_t b, size_t c) const;  ///< whether an element's value of the pull is kept

  // ---- unbounded_passes.cpp ----
  void unboundedPasses();
  void unboundedLevel(uint32_t level);
  std::vector<std::pair<std::string, std::string>> keptArrays() const;  ///< types and names
  void takeKeptArrays();
  void pointAtKeptArrays();
  void openChunks();       ///< closed by "});"
  void openWholeBlocks();  ///< closed by "});"

  // ---- by_segments.cpp ----
  bool goesBySegments() const;
  void bySegments();
  void transposedMaps();
  void foldedColumns();
  void foldIntoLanes(const Indices& bindings, ExpressionEmitter& emitter);
  void foldInOrder(uint32_t b, size_t c, const std::string& count, const std::string& from);
  void longValues(const Indices& bindings, ExpressionEmitter& inner);

  // ---- segment_scope.cpp ----
  /// Statements that compute, once a segment, what the thunks of the bindings need of it; defines it in
  /// `inner`.
  std::string segmentScope(const Indices& bindings, int indent, ExpressionEmitter& inner);

  // ---- collectives.cpp ----
  void combineFunctions();
  void totals(uint32_t b);   ///< of a scan, for the pass that finds carries
  void carries(uint32_t b);  ///< totals -> what is carried into each block or piece
  void applyScan(uint32_t b, bool last);
  void foldBlock(uint32_t b);     ///< flat reduction
  void foldSegments(uint32_t b);  ///< segmented reduction, within the block
  void foldCutSegments(const Indices& reductions, bool epilogues);
  void countSurvivors(uint32_t b);
  void compact(uint32_t b);
  void compactPartition(uint32_t b);
  void finishFlatReduction(uint32_t b);

  // ---- names and parts ----
  const lcu::Soac& soac(uint32_t b) const { return kernel_.bindings[b]; }
  bool segmented() const { return info_.space.segmented(); }
  size_t width(uint32_t b) const { return soac(b).pull.size(); }
  std::string typeName(uint32_t b, size_t c) const { return std::string(cTypeName(soac(b).pull[c]->type)); }
  std::string stem(uint32_t b, size_t c) const;  ///< r_b0c1
  const KernelOutput* output(uint32_t b, size_t result) const {
    return info_.output(soac(b).results[result]);
  }
  bool readLocally(lcu::VarId v) const { return localReads_.contains(v); }
  bool needsTile(lcu::VarId v) const { return tiles_.contains(v); }
  Indices elementBindings(uint32_t level) const;
  Indices neededBy(uint32_t level) const;
  bool readsValuesDirectly(uint32_t b, size_t c) const;
  /// "T name = identity;" for all components; gives the names, stem + suffix.
  std::vector<std::string> declareTotals(uint32_t b, const std::string& suffix);
  std::vector<std::string> componentNames(uint32_t b, const std::string& suffix) const;
  /// left[c] = left[c] op right[c].
  void combine(uint32_t b, const std::vector<std::string>& left, const std::vector<std::string>& right);
  /// into[c] = total of `count` values from index `from` of the block's arrays.
  void foldPiece(uint32_t b, const std::vector<std::string>& into, const std::string& from,
                 const std::string& count, bool backward);
  std::string identityText(uint32_t b, size_t c) const { return typed(soac(b).combine.identity[c]); }
  static std::string typed(const Scalar& s);
  std::string resultBySegment(lcu::VarId v) const;  ///< where a result by segment is kept; empty: nowhere
  std::string tileOf(lcu::VarId v) const;
  std::string blockSize() const { return segmented() ? "kMaxBlock" : "kBlock"; }
  /// How many parts of the elements survivors are counted by.
  std::string survivorParts() const { return unbounded_ ? "chunks" : "blocks"; }
  /// Runs over the segments of the block: s, first, last, and from, to: the part within the block.
  void openSegments();
  void forEach(const std::string& variable, const std::string& count);  ///< closed by "});"
  void defineLocalReads(ExpressionEmitter& emitter, uint32_t b) const;

  void line(const std::string& text);
  void open(const std::string& text);  ///< a line, and deeper from here on
  void close(const std::string& text = "}");

  Dialect dialect();

  const lcu::Kernel& kernel_;
  const lcu::Program& program_;
  KernelInfo info_;
  std::string entry_;
  const CpuOptions& options_;
  Dialect dialect_;
  std::string out_;
  int indent_ = 0;

  std::unordered_map<lcu::VarId, std::pair<uint32_t, uint32_t>> producer_;  ///< result -> binding, number
  std::set<lcu::VarId> localReads_;  ///< results of bindings that other bindings read
  std::set<lcu::VarId> tiles_;       ///< of these, the ones kept in block-local arrays
  std::unordered_map<lcu::VarId, std::vector<lcu::ExprRef>> loadsOf_;  ///< pointwise reads of local results
  /// (binding, component) of filters whose pull the loop over the elements computes anyway, for its where;
  /// and the first of those with the same pull, which keeps it for all of them.
  std::map<std::pair<uint32_t, size_t>, std::pair<uint32_t, size_t>> tiledPulls_;
  std::string key_;  ///< of errors in the thunks being emitted
  uint32_t errorBinding_ = 0;
  const char* parameterNames_[3] = {"i", "s", "p"};
  size_t combineWidth_ = 0;  ///< not 0: the operator of a binding is being emitted, of so many components
  uint32_t maxLevel_ = 0;
  bool unbounded_ = false;  ///< thunks of elements loop or recurse
};

}  // namespace kelpie::codegen::cpu
