// The text of a pass while it is written: what all its parts share.
//
// In:  a pass with its kernel, and the plan. The parts (pass_frame.h, pass_elements.h, pass_collectives.h,
//      pass_segments.h, pass_finish.h) append lines, and leave here what later ones have to know: how results
//      are called, where reads of arrays find their values, what has been declared.
// Out: `text`.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cuda/level_text.h"
#include "codegen/cuda/pass_plan.h"
#include "codegen/expression_emitter.h"
#include "codegen/gathered_columns.h"

namespace kelpie::codegen::cuda {

/// Loops over the items of a thread; the test of items in tiles that are not whole.
inline constexpr const char* kRowLoop = "for (int row = 0; row < S::kRows; ++row) {";
inline constexpr const char* kItemLoop = "for (int v = 0; v < S::kWidth; ++v) {";
inline constexpr const char* kInside = "if (tile.contains(offset)) {";

class PassText {
 public:
  /// Plans the pass, chooses names, and lays out its scratch memory (CudaPass::fixedBytes, bytesPerTile,
  /// stateWords).
  PassText(CudaPass& ownPass, const lcu::Program& ownProgram, const CudaOptions& ownOptions, PassForm form);

  /// Appends a line, indented by `indent` and `depth` spaces; by none where `indent` is 0.
  template <class... Args>
  void line(int indent, fmt::format_string<Args...> format, Args&&... args) {
    const std::string added = fmt::format(format, std::forward<Args>(args)...);
    if (!added.empty()) text += std::string(static_cast<size_t>(indent + (indent > 0 ? depth : 0)), ' ');
    text += added + "\n";
  }
  /// Moves what an emitter has to say before its expressions to the text.
  void flush(ExpressionEmitter& emitter) { text += emitter.takeStatements(); }
  /// What `write` appends, which is not appended.
  template <class Write>
  std::string apart(Write write) {
    const std::string before = std::exchange(text, std::string());
    write();
    return std::exchange(text, before);
  }
  /// The results of binding `b`, a Once or a map over segments, each in a variable of its name; `defined`
  /// says what becomes of it.
  void values(uint32_t b, ExpressionEmitter& emitter, int indent,
              const std::function<void(lcu::VarId)>& defined);

  // ---- names
  /// The namespace of the pass's own types.
  std::string parts() const { return pass.entry + "_parts"; }
  std::string unique(const std::string& wanted);
  /// Stem of everything that concerns result `v` of this kernel.
  const std::string& stem(lcu::VarId v) const { return stems.at(v); }
  /// Its items in registers.
  std::string items(lcu::VarId v) const { return stem(v) + "_items"; }
  /// Of a recomputed one (PassPlan): the function of the offset in the tile.
  std::string valueOf(lcu::VarId v) const { return stem(v) + "_value"; }
  /// Those of a row: rows that follow each other in a loop share the place.
  std::string itemsOfRow(lcu::VarId v) const { return items(v) + (plan.rowsAtOnce > 0 ? "" : "[row]"); }
  /// Of a field in its level's structures.
  std::string fieldName(const Field& f) const;
  FieldNames fieldNames() const;
  std::string levelName(size_t k) const { return fmt::format("Level{}", k + 1); }
  std::string scanName(size_t k) const { return fmt::format("scan{}", k + 1); }
  std::string levelType(size_t k) const;
  /// An expression: the state words of a level.
  std::string states(size_t k) const;
  std::string keyReduceType() const;
  std::string rowReduceType() const;
  std::string productReduceType() const;
  std::string segmentReduceType() const;
  std::string rangeScanType() const;
  std::string wholeSegmentsType() const;
  std::string blockCountType(size_t level) const;
  const char* headsType() const { return plan.numbered() ? "SegmentNumbers<S>" : "SegmentHeads<S>"; }
  /// Null: the result does not leave the kernel.
  const std::string* outputName(lcu::VarId v) const;
  ScalarType typeOf(lcu::VarId v) const { return program.vars.at(v).type; }
  /// Whether an array that enters or leaves the pass is stored in 32 bits.
  bool isShort(lcu::VarId v) const {
    return std::binary_search(options.shortArrays.begin(), options.shortArrays.end(), v);
  }
  /// The elements of an array in memory.
  std::string_view storedType(lcu::VarId v) const { return isShort(v) ? "uint32_t" : cTypeName(typeOf(v)); }
  /// An element that is `text` in memory.
  std::string widened(lcu::VarId v, const std::string& text) const {
    return isShort(v) ? "int64_t(" + text + ")" : text;
  }
  /// How expressions of this pass name things.
  Dialect dialect() const;
  // Of a count: survivors of lower tiles, of this one, and before the first of each row in the tile.
  std::string countedLower(size_t level, const Field& f) const;
  std::string countOf(size_t level, const Field& f) const;
  std::string rankOf(size_t level, const Field& f) const;
  /// What a level carries of a field at the end of the tile.
  std::string totalOf(size_t level, const Field& f) const;
  /// An expression: where blocks leave partial results of reductions.
  std::string partials() const;

  // ---- what the plan implies
  /// Flat reductions beside scans or segments: each tile leaves a partial result.
  bool reducesByTile() const;
  /// Whether blocks look for errors of earlier launches while their first loads are on the way: where nothing
  /// that is loaded before is used as an index.
  bool checksLate() const;
  /// Whether items of a result are kept behind its stage: they are stored, or read by later stages.
  bool keepsItems(lcu::VarId v, size_t stage) const;
  /// Whether items leave something of their own for the level of a stage to scan or fold.
  bool hasOwn(size_t stage) const {
    return !plan.levels[stage].fields.empty() && !plan.levels[stage].countsOnly;
  }
  /// Null: these survivors, or dropped ones, do not leave the kernel.
  const std::string* compactedOutput(const lcu::Soac& soac, size_t j, bool kept) const;
  /// A segmented filter has offsets to write even if there are no segments.
  bool hasSegmentOffsets() const;

  /// Dialect::record, of columns that are parameters: notes them in the pass.
  std::string recordText(const std::vector<lcu::ExprRef>& loads, const std::string& position) const;

  // ---- text that several parts need
  /// Leaves the block's partial result.
  void storePartial(const char* number, const char* value);

  CudaPass& pass;
  const lcu::Kernel& kernel;
  const KernelInfo& info;
  const lcu::Program& program;
  const CudaOptions& options;
  const PassPlan plan;

  std::string text;
  int depth = 0;                   ///< spaces before the lines of the tile's loop or branch
  std::vector<std::string> names;  ///< of the parameters
  std::map<std::pair<ParameterKind, lcu::VarId>, std::string> parameterNames;
  std::map<lcu::VarId, std::string> outputNames;
  std::map<lcu::VarId, std::string> tableNames;  ///< of ranks, by the offsets that are found by them
  std::map<lcu::VarId, std::string> stems;       ///< of everything that concerns a result of the kernel
  std::map<lcu::VarId, std::string> cellValues;  ///< cells whose values have names
  std::map<lcu::VarId, std::string>
      segmentValues;                            ///< where those of the tile's `first` and later segments are
  std::map<lcu::VarId, std::string> packNames;  ///< arrays whose elements have been loaded
  std::set<lcu::VarId> itemArrays;              ///< results whose items are in registers
  size_t rangeLoop = 0;                         ///< where the loop over the tiles of a range begins
  std::optional<GatheredColumns> gathered;      ///< may come from records that the launch has put there
  bool fromRecords = false;                     ///< ... and do, in the text at hand
  bool searchesRange = false;  ///< `good` tells of all tiles of a range whether there were no errors
  std::map<lcu::VarId, int64_t> scratchCells;  ///< where Once bindings find what other blocks wrote
  std::vector<int> statesBefore;  ///< by level: state words of a tile that belong to lower levels
  const char* failElement = "0";  ///< what a failing check reports
  uint32_t failBinding = 0;       ///< ... and of which binding

 private:
  void chooseNames();
  /// A member of the BlockCount of a level that only counts.
  std::string ofCount(size_t level, const Field& f, const char* member) const;
  /// Cells that Once bindings read but other blocks write: results of levels.
  void placeScratch();

  std::set<std::string> taken;
};

inline std::string_view typeName(ScalarType t) { return cTypeName(t); }

}  // namespace kelpie::codegen::cuda
