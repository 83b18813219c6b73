#include "codegen/cuda/pass_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "codegen/cuda/level_text.h"
#include "codegen/cuda/pass_plan.h"
#include "codegen/expression_emitter.h"
#include "ir/diagnostic.h"

namespace kelpie::codegen::cuda {

using lcu::ExprKind;
using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

namespace {

constexpr const char* kRowLoop = "for (int row = 0; row < S::kRows; ++row) {";
constexpr const char* kItemLoop = "for (int v = 0; v < S::kWidth; ++v) {";
constexpr const char* kInside = "if (tile.contains(offset)) {";

class PassGenerator {
 public:
  PassGenerator(CudaPass& pass, const lcu::Program& program, const CudaOptions& options)
      : pass_(pass),
        kernel_(pass.kernel),
        info_(pass.info),
        program_(program),
        options_(options),
        plan_(planPass(kernel_, info_, program, options)) {}

  void run() {
    chooseNames();
    pass_.grid = plan_.grid;
    pass_.maxChunks = options_.maxChunks;
    pass_.shape = plan_.shape;
    pass_.scanned = plan_.scanned();
    placeScratch();
    bool onlyElements = !plan_.needsLower() && !plan_.finishes() && !hasSegmentOffsets();
    pass_.needsLaunch = !onlyElements;
    header();
    line(0, "namespace {} {{", parts());
    structures();
    line(0, "}}  // namespace {}", parts());
    line(0, "");
    signature();
    if (plan_.grid == Grid::Single) {
      line(2, "if (threadIdx.x != 0) return;");
      finishBindings(2);
    } else {
      prologue();
      for (uint32_t k = 0; k < plan_.stages.size(); ++k) {
        stage(k);
        if (!plan_.levels[k].fields.empty() && !plan_.ranges()) scanLevel(k);
      }
      compactions();
      totals();
      if (!plan_.ranges()) segmentResults();
      endOfTile();
      finish();
    }
    line(0, "}}");
    pass_.text = std::move(out_);
  }

 private:
  // ---- text and names -------------------------------------------------------------------------------------

  template <class... Args>
  void line(int indent, fmt::format_string<Args...> format, Args&&... args) {
    std::string text = fmt::format(format, std::forward<Args>(args)...);
    if (!text.empty()) out_ += std::string(static_cast<size_t>(indent + (indent > 0 ? indent_ : 0)), ' ');
    out_ += text + "\n";
  }
  std::string parts() const { return pass_.entry + "_parts"; }

  std::string unique(const std::string& stem) {
    std::string name = stem;
    for (int k = 2; !taken_.insert(name).second; ++k) name = fmt::format("{}_{}", stem, k);
    return name;
  }

  void chooseNames() {
    taken_ = {"i",        "s",       "p",       "n",      "m",       "S",        "Shared", "Reduction",
              "row",      "v",       "bit",     "offset", "order",   "tile",     "shared", "launch",
              "segments", "splits",  "borders", "number", "segment", "begin",    "end",    "k",
              "inside",   "length",  "test",    "total",  "out",     "kelpie",   "range",  "reduce",
              "result",   "reduced", "ending",  "ends",   "sum",     "partials", "empty",  "lower",
              "kept",     "dropped", "failed",  "acc",    "heads",   "packs",    "starts"};
    for (const auto& p : info_.parameters) names_.push_back(unique(p.name));
    for (const auto& o : info_.outputs) outputNames_[o.var] = unique(o.name);
    for (size_t p = 0; p < info_.parameters.size(); ++p) {
      const KernelParameter& parameter = info_.parameters[p];
      parameterNames_[{parameter.kind, parameter.var}] = names_[p];
      if (parameter.kind == ParameterKind::Cell) cellValues_[parameter.var] = unique(names_[p] + "Value");
    }
    for (const Soac& soac : kernel_.bindings)
      for (VarId v : soac.results)
        fields_[v] = unique(identifier(program_.vars.at(v).name) + "_" + std::to_string(v));
  }
  /// Stem of everything that concerns result `v` of this kernel.
  const std::string& stem(VarId v) const { return fields_.at(v); }
  std::string items(VarId v) const { return stem(v) + "_items"; }
  std::string fieldName(const Field& f) const {
    const Soac& soac = kernel_.bindings[f.binding];
    return f.count ? fmt::format("count{}", f.binding + 1) : stem(soac.results[f.component]);
  }
  std::string levelName(size_t k) const { return fmt::format("Level{}", k + 1); }
  std::string scanName(size_t k) const { return fmt::format("scan{}", k + 1); }
  const std::string* outputName(VarId v) const {
    auto it = outputNames_.find(v);
    return it == outputNames_.end() ? nullptr : &it->second;
  }
  static std::string_view typeName(ScalarType t) { return cTypeName(t); }
  ScalarType typeOf(VarId v) const { return program_.vars.at(v).type; }

  Dialect dialect() const {
    Dialect d;
    d.param = [](uint32_t number) { return std::string(number == 0 ? "i" : number == 1 ? "s" : "p"); };
    d.host = [this](VarId v, ScalarType) {
      if (auto it = cellValues_.find(v); it != cellValues_.end()) return it->second;
      return parameterNames_.at({ParameterKind::Scalar, v});
    };
    d.load = [this](ExprRef load, const std::string& position) {
      return parameterNames_.at({ParameterKind::Array, load->index}) + "[" + position + "]";
    };
    d.size = [this](VarId v) { return parameterNames_.at({ParameterKind::Size, v}); };
    d.fail = [this](lcu::SiteId site, const std::string& a, const std::string& b) {
      return fmt::format("recordError(launch.error, launch.number, {}, {}, {}, {}, {});", failElement_,
                         failBinding_, site, a, b);
    };
    d.variableName = [this](VarId v) { return identifier(program_.vars.at(v).name); };
    d.wrapCalls = true;
    d.shortCircuit = true;
    return d;
  }

  // ---- scratch --------------------------------------------------------------------------------------------

  static int64_t aligned(int64_t bytes) { return (bytes + 15) / 16 * 16; }

  /// Cells that Once bindings read but other blocks write: results of levels.
  void placeScratch() {
    std::set<VarId> needed;
    for (uint32_t b : plan_.finish) {
      auto reads = info_.bindings[b].localReads;
      needed.insert(reads.begin(), reads.end());
    }
    for (const LevelPlan& level : plan_.levels) {
      for (const Field& f : level.fields) {
        const Soac& soac = kernel_.bindings[f.binding];
        if (f.segmented || soac.kind == SoacKind::Scan || (f.count && soac.space.segmented())) continue;
        VarId cell = f.count ? soac.results[0] : soac.results[f.component];
        if (needed.contains(cell)) {
          scratchCells_[cell] = pass_.fixedBytes;
          pass_.fixedBytes += 16;
        }
      }
    }
    for (const LevelPlan& level : plan_.levels) {
      statesBefore_.push_back(pass_.stateWords);
      constexpr int64_t kPayload = 12;  // bytes of a state word
      pass_.stateWords += 2 * static_cast<int>((level.bytes() + kPayload - 1) / kPayload);
    }
    if (!plan_.reductions.empty()) {
      LevelPlan all;
      all.fields = plan_.reductions;
      pass_.bytesPerTile += aligned(all.bytes());
    }
  }

  // ---- declarations ---------------------------------------------------------------------------------------

  void header() {
    line(0, "// ---- {} {}", pass_.entry,
         std::string(std::max<size_t>(4, 100 - std::min<size_t>(96, pass_.entry.size())), '-'));
    std::string previous;
    for (const Soac& soac : kernel_.bindings) {
      std::string text = soac.origin.empty() ? "" : "in " + soac.origin;
      if (options_.describe && soac.span.known()) {
        std::string where = options_.describe(soac.span);
        if (!where.empty()) text += (text.empty() ? "" : ": ") + where;
      }
      std::replace(text.begin(), text.end(), '\n', ' ');
      if (!text.empty() && text.back() == '\\') text += ' ';
      if (!text.empty() && text != previous) line(0, "// {}", text);
      previous = text;
    }
  }

  FieldNames fieldNames() const {
    return [this](const Field& f) { return fieldName(f); };
  }

  void structures() {
    const TileShape& s = plan_.shape;
    line(0, "using S = Shape<{}, {}, {}, {}>;", s.threads, s.rows, s.width, s.backward);
    for (size_t k = 0; k < plan_.levels.size(); ++k) {
      if (!plan_.levels[k].fields.empty() && !plan_.levels[k].countsOnly)
        out_ += levelText(plan_.levels[k], levelName(k), kernel_, fieldNames());
    }
    if (!plan_.reductions.empty())
      out_ += reductionText(plan_.reductions, "Reduction", kernel_, fieldNames());
    line(0, "struct Shared {{");
    if (plan_.finishes()) line(2, "uint32_t finished;");
    if (plan_.merged()) line(2, "SegmentMap<S>::Shared map;");
    if (plan_.heads()) line(2, "SegmentHeads<S>::Shared heads;");
    if (plan_.ranges()) {
      line(2, "{}::Shared range;", rangeType());
      line(2, "{}::Shared segments;", segmentReduceType());
    }
    for (size_t k = 0; k < plan_.levels.size() && !plan_.ranges(); ++k) {
      if (plan_.levels[k].countsOnly) {
        line(2, "BlockCount<S>::Shared {};", scanName(k));
      } else if (!plan_.levels[k].fields.empty()) {
        line(2, "BlockScan<S, {}>::Shared {};", levelName(k), scanName(k));
      }
    }
    if (!plan_.reductions.empty()) line(2, "BlockReduce<S::kWarps, Reduction>::Shared reduction;");
    for (const LevelPlan& level : plan_.levels) {
      for (const Field& f : level.fields) {
        const Soac& soac = kernel_.bindings[f.binding];
        if (f.count && soac.space.segmented()) {
          line(2, "TileRanks<S> ranks{};", f.binding + 1);
        } else if (soac.kind == SoacKind::Reduce && f.segmented && !plan_.ranges()) {
          line(2, "{} {}[S::kItems];  // by segment", typeName(f.type), fieldName(f));
        }
      }
    }
    if (plan_.bufferBytesPerItem > 0) {
      line(2, "alignas(16) unsigned char buffer[{} * {}];", plan_.bufferItems, plan_.bufferBytesPerItem);
    }
    line(0, "}};");
  }

  void signature() {
    std::vector<std::string> parameters = {"const Launch launch", "const int64_t n"};
    if (pass_.segmented()) {
      parameters.push_back("const int64_t m");
      parameters.push_back("const int64_t length");
    }
    if (plan_.merged()) parameters.push_back("const int64_t* __restrict__ splits");
    if (plan_.heads()) parameters.push_back("const int64_t* __restrict__ starts");
    for (size_t p = 0; p < info_.parameters.size(); ++p) {
      const KernelParameter& parameter = info_.parameters[p];
      auto type = typeName(parameter.type);
      switch (parameter.kind) {
        case ParameterKind::Array:
        case ParameterKind::Cell:
          parameters.push_back(fmt::format("const {}* __restrict__ {}", type, names_[p]));
          break;
        case ParameterKind::Size:
          parameters.push_back(fmt::format("const int64_t {}", names_[p]));
          break;
        case ParameterKind::Scalar:
          parameters.push_back(fmt::format("const {} {}", type, names_[p]));
      }
    }
    for (const KernelOutput& o : info_.outputs) {
      parameters.push_back(fmt::format("{}* __restrict__ {}", typeName(o.type), outputNames_.at(o.var)));
    }
    std::string bounds = std::to_string(plan_.shape.threads);
    if (plan_.blocksAtOnce > 1) bounds += ", " + std::to_string(plan_.blocksAtOnce);
    std::string text =
        fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(", bounds, pass_.entry);
    size_t column = text.size();
    for (size_t k = 0; k < parameters.size(); ++k) {
      std::string piece = parameters[k] + (k + 1 < parameters.size() ? "," : ") {");
      if (column + piece.size() > 108) {
        text += "\n    ";
        column = 4;
      } else if (k > 0) {
        piece = " " + piece;
      }
      text += piece;
      column += piece.size();
    }
    line(0, "{}", text);
    line(2, "using namespace {};", parts());
    if (plan_.grid != Grid::Single) line(2, "KELPIE_SHARED(Shared, shared);");
    // Who works long looks first; others load their tile meanwhile.
    if (checksLate()) {
      line(2, "const bool failed = failedBefore(launch);");
    } else {
      line(2, "if (failedBefore(launch)) return;");
    }
    for (const auto& [v, name] : cellValues_) {
      line(2, "const {} {} = *{};", typeName(typeOf(v)), name, parameterNames_.at({ParameterKind::Cell, v}));
    }
  }

  /// Where a block's one tile follows from its number, and nothing that is loaded before is used as an index.
  bool checksLate() const { return plan_.grid == Grid::Tiles || plan_.heads(); }

  void prologue() {
    if (pass_.segmented()) {
      if (info_.offsetsParameter) {
        line(2, "const OffsetSegments segments{{{}, m}};", names_[*info_.offsetsParameter]);
      } else {
        line(2, "const RegularSegments segments{{length, m}};");
      }
    }
    if (plan_.ranges()) {
      line(2, "{} range(launch, segments, n, shared.range);", rangeType());
      line(2, "const int64_t order = shared.range.order;");
      line(2, "const auto ends = segments.from(range.firstSegment);");
      if (!plan_.reductions.empty()) line(2, "Reduction::Value acc = Reduction::identity();");
      line(2, "{} reduce;", segmentReduceType());
      line(2, "const auto result = [&](int64_t segment, const Level1::Value& reduced) {{");
      segmentBody();
      line(2, "}};");
      line(2, "while (range.more()) {{");
      indent_ += 2;
    } else if (plan_.scanned()) {
      if (plan_.merged()) line(2, "SegmentMap<S>::clear(shared.map);");
      if (plan_.heads()) line(2, "SegmentHeads<S>::clear(shared.heads);");
      line(2, "const int64_t order = tileOfBlock();");
      scanner();
    } else if (plan_.grid == Grid::Chunks) {
      line(2, "Reduction::Value acc = Reduction::identity();");
      line(2, "for (int64_t order = blockIdx.x; order < launch.tiles; order += gridDim.x) {{");
      indent_ += 2;
    } else {
      if (plan_.merged()) line(2, "SegmentMap<S>::clear(shared.map);");
      line(2, "const int64_t order = blockIdx.x;");
    }
    if (plan_.merged()) {
      line(2, "SegmentMap<S>::lookUp(order, segments, launch.tiles, n, splits, shared.map);");
      line(2, "__syncthreads();");
      line(2,
           "const SegmentTile tile = SegmentMap<S>::locate(order, launch.tiles, n + m, shared.map.split);");
    } else if (plan_.ranges()) {
      line(2, "const Tile tile = range.tile();");
      line(2, "const bool ending = range.endsIn(tile);");
    } else {
      line(2, "const Tile tile = flatTile<S>(order, launch.tiles, n);");
    }
    if (!plan_.stages.empty()) loadPacks(0);
    if (checksLate()) line(2, "if (failed) return;");
    if (plan_.ranges()) line(2, "if (ending) range.mark(ends, tile, shared.range);");
    if (plan_.ranges() && plan_.numbersInThunks) {
      line(2, "int number[S::kRows][S::kWidth];");
      line(2, "range.numbers(ending, shared.range, number);");
    }
    if (reducesByTile()) line(2, "Reduction::Value acc = Reduction::identity();");
    if (plan_.heads()) {
      line(2, "__syncthreads();");
      line(2, "SegmentHeads<S>::mark(segments, tile, n, starts, shared.heads);");
      line(2, "__syncthreads();");
      line(2, "const uint32_t heads = SegmentHeads<S>::heads(shared.heads);");
    }
    if (plan_.merged()) {
      line(2, "SegmentMap<S>::mark(segments, tile, shared.map);");
      std::vector<std::string> initial;
      for (const LevelPlan& level : plan_.levels) {
        for (const Field& f : level.fields) {
          const Soac& soac = kernel_.bindings[f.binding];
          if (soac.kind != SoacKind::Reduce || !f.segmented) continue;
          initial.push_back(fmt::format("shared.{}[k] = {};", fieldName(f),
                                        literalText(soac.combine.identity[f.component])));
        }
      }
      if (!initial.empty()) {
        line(2, "for (int k = threadIdx.x; k < tile.ends; k += S::kThreads) {{  // what empty segments keep");
        for (const std::string& text : initial) line(4, "{}", text);
        line(2, "}}");
      }
      line(2, "__syncthreads();");
      if (plan_.borders) line(2, "const SegmentMap<S> borders(tile, shared.map);");
      if (plan_.numbersInThunks) declareNumbers();
    }
  }

  /// Flat reductions beside scans or segments: each tile leaves a partial result.
  bool reducesByTile() const {
    return !plan_.reductions.empty() && !plan_.ranges() && plan_.grid != Grid::Chunks;
  }

  /// The block that takes no tile.
  void scanner() {
    line(2, "if (order < 0) {{");
    if (checksLate()) line(4, "if (failed) return;");
    for (size_t k = 0; k < plan_.levels.size(); ++k) {
      if (plan_.levels[k].fields.empty()) continue;
      line(4, "if (warpIndex() == {}) scanTiles<{}>({});", k, levelType(k), states(k));
    }
    if (plan_.finishes()) {
      line(2, "}} else {{");
      indent_ += 2;
    } else {
      line(4, "return;");
      line(2, "}}");
    }
  }
  std::string levelType(size_t k) const {
    return plan_.levels[k].countsOnly ? "BlockCount<S>::Level" : levelName(k);
  }
  std::string states(size_t k) const {
    return fmt::format("States<{}::Carry>(launch, {})", levelType(k), statesBefore_[k]);
  }

  std::string rangeType() const {
    return plan_.numbersInThunks ? "SegmentRange<S, true>" : "SegmentRange<S>";
  }
  std::string segmentReduceType() const {
    return plan_.numbersInThunks ? "SegmentReduce<S, Level1, true>" : "SegmentReduce<S, Level1>";
  }

  void declareNumbers() {
    line(2, "int number[S::kRows][S::kWidth];");
    line(2, "SegmentMap<S>::numbers(tile, shared.map, number);");
    numbersDeclared_ = true;
  }

  void endOfTile() {
    if (reducesByTile()) {
      line(2, "const Reduction::Value sum = BlockReduce<S::kWarps, Reduction>::run(acc, shared.reduction);");
      storePartial("order", "sum");
    }
    if (plan_.ranges()) {
      line(2, "reduce.tile(own1, tile, ending, range, ends, shared.segments, shared.range, result);");
    }
    if (indent_ > 0) {
      indent_ -= 2;
      line(2, "}}");
    }
    if (!plan_.ranges()) return;
    line(2, "reduce.finish(range, order, {}, shared.segments, result);", states(0));
    if (!plan_.reductions.empty()) {
      line(2, "const Reduction::Value sum = BlockReduce<S::kWarps, Reduction>::run(acc, shared.reduction);");
      storePartial("order", "sum");
    }
  }

  void storePartial(const char* number, const char* value) {
    line(2, "if (threadIdx.x == 0) BlockReduce<S::kWarps, Reduction>::storeShared({} + {}, {});", partials(),
         number, value);
  }
  std::string partials() const {
    return fmt::format("reinterpret_cast<Words<Reduction::Value>*>(launch.values + {})", pass_.fixedBytes);
  }

  // ---- element thunks -------------------------------------------------------------------------------------

  bool keepsItems(VarId v, size_t stage) const {
    if (outputNames_.contains(v)) return true;
    for (size_t k = stage + 1; k < plan_.stages.size(); ++k)
      for (uint32_t b : plan_.stages[k].bindings) {
        const auto& reads = info_.bindings[b].localReads;
        if (std::find(reads.begin(), reads.end(), v) != reads.end()) return true;
      }
    return false;
  }

  ExpressionEmitter elementEmitter(const Dialect& d, size_t stage) const {
    ExpressionEmitter emitter(d, 8 + indent_);
    std::vector<ExprRef> thunks;
    for (uint32_t b : plan_.stages[stage].bindings) {
      auto own = thunksOf(kernel_.bindings[b]);
      thunks.insert(thunks.end(), own.begin(), own.end());
    }
    lcu::forEachNode(thunks, [&](ExprRef e) {
      if (e->kind != ExprKind::Load) return;
      ExprRef at = e->operands[0];
      if (at->kind != ExprKind::Param || at->index != 0) return;
      if (packNames_.contains(e->index)) {
        emitter.define(e, packNames_.at(e->index) + "[row].item[S::slot(v)]");
      } else if (itemArrays_.contains(e->index)) {
        emitter.define(e, items(e->index) + "[row][v]");
      }
    });
    return emitter;
  }

  void loadPacks(size_t number) {
    const StagePlan& stage = plan_.stages[number];
    if (stage.packs.empty()) return;
    for (VarId v : stage.packs) {
      packNames_[v] = unique(identifier(program_.vars.at(v).name) + "_pack");
      line(2, "Pack<{}, S::kWidth> {}[S::kRows];", typeName(typeOf(v)), packNames_[v]);
    }
    for (VarId v : stage.packs) {
      line(2, "loadPacks<S>({}, tile, {});", parameterNames_.at({ParameterKind::Array, v}), packNames_.at(v));
    }
  }

  void stage(size_t number) {
    const StagePlan& stage = plan_.stages[number];
    const bool hasLevel = !plan_.levels[number].fields.empty() && !plan_.levels[number].countsOnly;
    if (number > 0) loadPacks(number);
    if (hasLevel) line(2, "{}::Value own{}[S::kRows][S::kWidth];", levelName(number), number + 1);
    std::vector<VarId> stored;
    for (uint32_t b : stage.bindings) {
      const Soac& soac = kernel_.bindings[b];
      bool compacts = soac.kind == SoacKind::Filter || soac.kind == SoacKind::Partition;
      if (compacts) line(2, "uint32_t keep{} = 0;", b + 1);
      if (soac.kind == SoacKind::Map) {
        for (VarId v : soac.results) {
          if (!keepsItems(v, number)) continue;
          line(2, "{} {}[S::kRows][S::kWidth];", typeName(typeOf(v)), items(v));
          if (outputNames_.contains(v)) stored.push_back(v);
        }
      } else if (compacts) {
        for (size_t j = 0; j < soac.pull.size(); ++j) {
          if (!compactedOutput(soac, j, true) && !compactedOutput(soac, j, false)) continue;
          line(2, "{} {}[S::kRows][S::kWidth];", typeName(soac.pull[j]->type), items(soac.results[j + 1]));
        }
      }
    }
    const size_t loops = out_.size();
    line(2, "KELPIE_UNROLL");
    line(2, "{}", kRowLoop);
    line(4, "KELPIE_UNROLL");
    line(4, "{}", kItemLoop);
    line(6, "const int offset = S::offset(row, v);");
    if (hasLevel) line(6, "own{}[row][v] = {}::identity();", number + 1, levelName(number));
    line(6, "{}", kInside);
    line(8, "const int64_t i = tile.base + offset;");
    bool segment = false, position = false;
    for (uint32_t b : stage.bindings) {
      segment |= info_.bindings[b].usesSegment || info_.bindings[b].usesPosition;
      position |= info_.bindings[b].usesPosition;
    }
    if (segment) {
      line(8, "const int64_t s = {} + number[row][v];",
           plan_.ranges() ? "range.firstSegment + range.segment" : "tile.firstSegment");
    }
    if (position) line(8, "const int64_t p = i - segments.begin(s);");
    Dialect d = dialect();
    failElement_ = "i";
    ExpressionEmitter emitter = elementEmitter(d, number);
    for (uint32_t b : stage.bindings) elementBinding(b, number, emitter);
    line(6, "}}");
    line(4, "}}");
    for (VarId v : stored) line(4, "storeRow<S>({}, tile, row, {}[row]);", outputNames_.at(v), items(v));
    line(2, "}}");
    if (plan_.ranges() || (plan_.scanned() && !plan_.merged())) specialiseWhole(loops);
    for (uint32_t b : stage.bindings)
      if (kernel_.bindings[b].kind == SoacKind::Map)
        for (VarId v : kernel_.bindings[b].results)
          if (keepsItems(v, number)) itemArrays_.insert(v);
  }

  /// Puts a copy of the text from `begin` on before it, for tiles all of whose items are in the tile. Only of
  /// short texts: it is compiled twice.
  void specialiseWhole(size_t begin) {
    constexpr size_t kShort = 4000;
    const std::string text = out_.substr(begin);
    if (text.size() > kShort) return;
    std::string whole = text;
    whole.replace(whole.find(kInside), std::string_view(kInside).size(), "{");
    out_.resize(begin);
    line(2, "if (tile.count == S::kItems) {{");
    out_ += whole;
    line(2, "}} else {{");
    out_ += text;
    line(2, "}}");
  }

  void flush(ExpressionEmitter& emitter) { out_ += emitter.takeStatements(); }

  void elementBinding(uint32_t b, size_t stage, ExpressionEmitter& emitter) {
    const Soac& soac = kernel_.bindings[b];
    failBinding_ = pass_.bindings[b];
    auto emit = [&](const std::vector<ExprRef>& roots) {
      auto texts = emitter.emit(roots);
      flush(emitter);
      return texts;
    };
    emit(soac.effects);
    switch (soac.kind) {
      case SoacKind::Map: {
        auto texts = emit(soac.pull);
        for (size_t j = 0; j < soac.results.size(); ++j) {
          VarId v = soac.results[j];
          if (keepsItems(v, stage)) line(8, "{}[row][v] = {};", items(v), texts[j]);
          defineLocal(v, texts[j], soac.pull[j]->type, stage, emitter);
        }
        break;
      }
      case SoacKind::Scan: {
        auto texts = emit(soac.pull);
        for (size_t j = 0; j < texts.size(); ++j) {
          line(8, "own{}[row][v].{} = {};", stage + 1, stem(soac.results[j]), texts[j]);
        }
        break;
      }
      case SoacKind::Reduce: {
        auto texts = emit(soac.pull);
        const auto operations = laneOperations(soac.combine);
        const bool lanes = !soac.space.segmented() && !operations.empty();
        for (size_t j = 0; j < texts.size(); ++j) {
          const std::string& field = stem(soac.results[j]);
          if (lanes) {
            std::string value = fmt::format("{}({})", typeName(soac.pull[j]->type), texts[j]);
            line(8, "acc.{} = {};", field,
                 operationText(operations[j], soac.pull[j]->type, "acc." + field, value));
          } else {
            line(8, "own{}[row][v].{} = {};", stage + 1, field, texts[j]);
          }
        }
        break;
      }
      case SoacKind::Filter:
      case SoacKind::Partition:
        compacted(b, stage, emitter);
        break;
      case SoacKind::Permute:
        permuted(soac, emitter);
        break;
      case SoacKind::Once:
        throw InternalError("a Once binding among element bindings");
    }
  }

  /// Later thunks of the same stage read the value of a Map by name.
  void defineLocal(VarId v, const std::string& text, ScalarType type, size_t stage,
                   ExpressionEmitter& emitter) {
    ExprRef load = nullptr;
    for (uint32_t b : plan_.stages[stage].bindings) {
      lcu::forEachNode(thunksOf(kernel_.bindings[b]), [&](ExprRef e) {
        if (e->kind == ExprKind::Load && e->index == v) load = e;
      });
    }
    if (!load) return;
    line(8, "const {} {} = {};", typeName(type), stem(v), text);
    emitter.define(load, stem(v));
  }

  const std::string* compactedOutput(const Soac& soac, size_t j, bool kept) const {
    if (!kept && soac.kind != SoacKind::Partition) return nullptr;
    return outputName(soac.results[1 + j + (kept ? 0 : soac.pull.size())]);
  }

  void compacted(uint32_t b, size_t stage, ExpressionEmitter& emitter) {
    const Soac& soac = kernel_.bindings[b];
    auto texts = emitter.emit({soac.where});
    flush(emitter);
    std::string test = fmt::format("keeps{}", b + 1);
    line(8, "const bool {} = {};", test, texts[0]);
    if (!plan_.levels[stage].countsOnly) line(8, "own{}[row][v].count{} = {};", stage + 1, b + 1, test);
    line(8, "keep{} |= uint32_t({}) << (row * S::kWidth + v);", b + 1, test);
    if (soac.pull.empty()) return;
    // The pull of a filter is evaluated for survivors only, in a scope of its own; elements are there
    // already.
    const bool scoped =
        soac.kind == SoacKind::Filter && !std::all_of(soac.pull.begin(), soac.pull.end(), [&](ExprRef e) {
          return e->kind == ExprKind::Load && e->operands[0]->kind == ExprKind::Param &&
                 e->operands[0]->index == 0 &&
                 (packNames_.contains(e->index) || itemArrays_.contains(e->index));
        });
    ExpressionEmitter inner = emitter;
    ExpressionEmitter& used = scoped ? inner : emitter;
    if (scoped) line(8, "if ({}) {{", test);
    texts = used.emit(soac.pull);
    flush(used);
    for (size_t j = 0; j < texts.size(); ++j) {
      if (!compactedOutput(soac, j, true) && !compactedOutput(soac, j, false)) continue;
      line(scoped ? 10 : 8, "{}[row][v] = {};", items(soac.results[j + 1]), texts[j]);
    }
    if (scoped) line(8, "}}");
  }

  void permuted(const Soac& soac, ExpressionEmitter& emitter) {
    std::vector<ExprRef> roots = {soac.destination};
    roots.insert(roots.end(), soac.pull.begin(), soac.pull.end());
    auto texts = emitter.emit(roots);
    flush(emitter);
    std::string to = emitter.freshName("destination");
    line(8, "const int64_t {} = {};", to, texts[0]);
    for (size_t j = 0; j < soac.results.size(); ++j) {
      const std::string* out = outputName(soac.results[j]);
      if (!out) continue;
      if (soac.unique) {
        line(8, "{}[{}] = {};", *out, to, texts[j + 1]);
      } else {
        line(8, "atomicMax(reinterpret_cast<long long*>({} + {}), static_cast<long long>({}));", *out, to,
             texts[j + 1]);
      }
    }
  }

  // ---- collectives ----------------------------------------------------------------------------------------

  /// The text of a buffer of values of one type.
  static std::string bufferOf(ScalarType type) {
    return fmt::format("reinterpret_cast<{}*>(shared.buffer)", typeName(type));
  }

  /// Whether results of a level are stored by way of the shared buffer.
  bool compacts(const LevelPlan& level) const {
    return std::any_of(level.fields.begin(), level.fields.end(), [this](const Field& f) {
      const Soac& soac = kernel_.bindings[f.binding];
      for (size_t j = 0; f.count && j < soac.pull.size(); ++j)
        if (compactedOutput(soac, j, true) || compactedOutput(soac, j, false)) return true;
      return false;
    });
  }

  /// The first component of what survives, of a level that only counts: it is collected while the carry of
  /// the tile is on its way. Only of the level that is stored first: others would find the buffer used.
  std::optional<size_t> collectedEarly(size_t number) const {
    const LevelPlan& level = plan_.levels[number];
    if (!level.countsOnly) return std::nullopt;
    for (size_t before = 0; before < number; ++before)
      if (compacts(plan_.levels[before])) return std::nullopt;
    const Soac& soac = kernel_.bindings[level.fields[0].binding];
    for (size_t j = 0; j < soac.pull.size(); ++j)
      if (compactedOutput(soac, j, true)) return j;
    return std::nullopt;
  }

  void countLevel(size_t number) {
    const uint32_t binding = plan_.levels[number].fields[0].binding;
    const Soac& soac = kernel_.bindings[binding];
    const std::string scan = scanName(number);
    line(2, "BlockCount<S> {};", scan);
    line(2, "const States<BlockCount<S>::Carry> states{} = {};", number + 1, states(number));
    line(2, "{0}.rankItems(keep{1}, shared.{0}, states{2}, order);", scan, binding + 1, number + 1);
    if (auto j = collectedEarly(number)) {
      line(2, "collect<S, {}>({}, keep{}, {}.rank, 0, {});", plan_.bufferItems, items(soac.results[*j + 1]),
           binding + 1, scan, bufferOf(soac.pull[*j]->type));
    }
    line(2, "{0}.findLower(shared.{0}, states{1}, order);", scan, number + 1);
  }

  void scanLevel(size_t number) {
    const LevelPlan& level = plan_.levels[number];
    const std::string scan = scanName(number);
    if (level.countsOnly) {
      countLevel(number);
      return;
    }
    const char* heads = !level.segmented ? "0" : plan_.heads() ? "heads" : "borders.heads";
    line(2, "BlockScan<S, {}> {};", levelName(number), scan);
    line(2, "{}.run(own{}, {}, {}, shared.{}, {}, order);", scan, number + 1, heads,
         level.segmented && plan_.merged() ? "borders.ends" : "false", scan, states(number));
    bool inclusive = false, exclusive = false, ranked = false;
    for (const Field& f : level.fields) {
      const Soac& soac = kernel_.bindings[f.binding];
      ranked |= f.count;
      if (soac.kind == SoacKind::Scan && !soac.inclusive) exclusive = true;
      if (soac.kind == SoacKind::Reduce ? soac.space.segmented()
                                        : soac.kind == SoacKind::Scan && soac.inclusive) {
        inclusive = true;
      }
      if (soac.kind == SoacKind::Scan) {
        VarId v = soac.results[f.component];
        line(2, "{} {}[S::kRows][S::kWidth];", typeName(f.type), items(v));
        itemArrays_.insert(v);
      } else if (f.count) {
        line(2, "uint32_t rank{}[S::kRows];  // of the first survivor of a row", f.binding + 1);
      }
    }
    if (!inclusive && !exclusive && !ranked) return;
    bool staged = std::any_of(level.fields.begin(), level.fields.end(), [&](const Field& f) {
      return f.segmented && kernel_.bindings[f.binding].kind == SoacKind::Reduce;
    });
    if (staged && !numbersDeclared_) declareNumbers();
    line(2, "KELPIE_UNROLL");
    line(2, "{}", kRowLoop);
    line(4, "{}::Carry before[S::kWidth];", levelName(number));
    line(4, "{}.scanRow(row, own{}[row], {}, before);", scan, number + 1, heads);
    line(4, "KELPIE_UNROLL");
    line(4, "{}", kItemLoop);
    if (inclusive) {
      line(6, "const {0}::Carry upTo = {0}::merge(before[v], {0}::widen(own{1}[row][v]), false);",
           levelName(number), number + 1);
    }
    for (const Field& f : level.fields) {
      const Soac& soac = kernel_.bindings[f.binding];
      const std::string field = fieldName(f);
      if (f.count) {
        line(6, "const uint32_t at{0} = uint32_t(before[v].{2} - {1}.lower.{2});", f.binding + 1, scan,
             field);
        line(6, "if (v == 0) rank{0}[row] = at{0};", f.binding + 1);
      } else if (soac.kind == SoacKind::Scan) {
        line(6, "{}[row][v] = {}.{};", items(soac.results[f.component]),
             soac.inclusive ? "upTo" : "before[v]", field);
      } else if (soac.space.segmented()) {
        line(6, "if (borders.tails >> (row * S::kWidth + v) & 1) shared.{}[number[row][v]] = upTo.{};", field,
             field);
      }
    }
    line(4, "}}");
    for (const Field& f : level.fields) {
      const Soac& soac = kernel_.bindings[f.binding];
      if (f.count || soac.kind != SoacKind::Scan) continue;
      VarId v = soac.results[f.component];
      if (const std::string* out = outputName(v))
        line(4, "storeRow<S>({}, tile, row, {}[row]);", *out, items(v));
    }
    line(2, "}}");
  }

  // Of a count: survivors of lower tiles, of this one, and before the first of each row in the tile.
  std::string countedLower(size_t level, const Field& f) const {
    const std::string lower = scanName(level) + ".lower";
    return plan_.levels[level].countsOnly ? lower : lower + "." + fieldName(f);
  }
  std::string countOf(size_t level, const Field& f) const {
    if (plan_.levels[level].countsOnly) return scanName(level) + ".count";
    return fmt::format("uint32_t({}.total.{} - {})", scanName(level), fieldName(f), countedLower(level, f));
  }
  std::string rankOf(size_t level, const Field& f) const {
    return plan_.levels[level].countsOnly ? scanName(level) + ".rank" : fmt::format("rank{}", f.binding + 1);
  }

  void compactions() {
    for (size_t k = 0; k < plan_.levels.size(); ++k) {
      for (const Field& f : plan_.levels[k].fields) {
        if (!f.count) continue;
        const Soac& soac = kernel_.bindings[f.binding];
        const uint32_t b = f.binding + 1;
        const std::string lower = countedLower(k, f), count = countOf(k, f), rank = rankOf(k, f);
        for (size_t j = 0; j < soac.pull.size(); ++j) {
          if (const std::string* out = compactedOutput(soac, j, true)) {
            line(2, "storeCompacted<S, {}>({} + {}, {}, keep{},", plan_.bufferItems, *out, lower,
                 items(soac.results[j + 1]), b);
            line(2, "    {}, {}, {}, {});", rank, count, bufferOf(soac.pull[j]->type),
                 collectedEarly(k) == j);
          }
        }
        bool dropped = false;
        for (size_t j = 0; j < soac.pull.size(); ++j) dropped |= compactedOutput(soac, j, false) != nullptr;
        if (!dropped) continue;
        line(2, "{{  // the others, of rank: elements before less survivors before");
        line(4, "uint32_t dropped = 0, lower[S::kRows];");
        line(4, "KELPIE_UNROLL");
        line(4, "{}", kRowLoop);
        line(6, "KELPIE_UNROLL");
        line(6, "{}", kItemLoop);
        line(8, "const int bit = row * S::kWidth + v, offset = S::offset(row, v);");
        line(8, "if (tile.contains(offset)) dropped |= (~keep{} >> bit & 1) << bit;", b);
        line(6, "}}");
        line(6, "lower[row] = uint32_t(k_max(S::position(row) - tile.first, 0)) - {}[row];", rank);
        line(4, "}}");
        for (size_t j = 0; j < soac.pull.size(); ++j) {
          if (const std::string* out = compactedOutput(soac, j, false)) {
            line(4, "storeCompacted<S, {}>({} + (tile.base + tile.first - {}), {},", plan_.bufferItems, *out,
                 lower, items(soac.results[j + 1]));
            line(4, "    dropped, lower, uint32_t(tile.count) - {}, {}, false);", count,
                 bufferOf(soac.pull[j]->type));
          }
        }
        line(2, "}}");
      }
    }
  }

  /// What the last tile knows: totals of scans, counts of filters, ordered reductions.
  void totals() {
    std::vector<std::string> lines;
    for (size_t k = 0; k < plan_.levels.size(); ++k) {
      for (const Field& f : plan_.levels[k].fields) {
        const Soac& soac = kernel_.bindings[f.binding];
        std::string total = scanName(k) + ".total";
        if (!plan_.levels[k].countsOnly) total += "." + fieldName(f);
        if (soac.kind == SoacKind::Scan && soac.withTotal) {
          if (const std::string* out = outputName(soac.results[f.component])) {
            lines.push_back(fmt::format("{}[n] = {};", *out, total));
          }
        } else if (soac.kind != SoacKind::Scan && !f.segmented && !soac.space.segmented()) {
          VarId cell = f.count ? soac.results[0] : soac.results[f.component];
          if (const std::string* out = outputName(cell))
            lines.push_back(fmt::format("*{} = {};", *out, total));
          if (auto it = scratchCells_.find(cell); it != scratchCells_.end()) {
            lines.push_back(fmt::format("*reinterpret_cast<{}*>(launch.values + {}) = {};",
                                        typeName(typeOf(cell)), it->second, total));
          }
        }
      }
    }
    if (lines.empty()) return;
    line(2, "if (order == launch.tiles - 1 && threadIdx.x == 0) {{");
    for (const auto& text : lines) line(4, "{}", text);
    line(2, "}}");
  }

  // ---- results of segments --------------------------------------------------------------------------------

  bool hasSegmentOffsets() const {
    for (const LevelPlan& level : plan_.levels)
      for (const Field& f : level.fields)
        if (f.count && kernel_.bindings[f.binding].space.segmented()) return true;
    return false;
  }

  void segmentResults() {
    std::vector<Result> reduced, ranked;
    collectResults(reduced, ranked);
    if (reduced.empty() && ranked.empty() && plan_.epilogues.empty()) return;
    for (const Result& r : ranked) {
      const uint32_t b = r.field->binding;
      line(2, "shared.ranks{0}.put(keep{0}, {1}, {2});", b + 1, rankOf(r.level, *r.field),
           countOf(r.level, *r.field));
      line(2, "if (order == 0 && threadIdx.x == 0) {}[0] = 0;", *outputName(kernel_.bindings[b].results[0]));
    }
    line(2, "__syncthreads();");
    if (!reduced.empty()) line(2, "const bool below = SegmentMap<S>::beganBelow(tile, shared.map);");
    line(2, "for (int k = threadIdx.x; k < tile.ends; k += S::kThreads) {{");
    line(4, "const int64_t segment = tile.firstSegment + k;");
    if (!ranked.empty()) line(4, "const int64_t end = segments.begin(segment + 1);");
    segmentBody();
    line(2, "}}");
  }

  /// A field that segments get: of a reduction, or a count.
  struct Result {
    const Field* field;
    size_t level;
  };
  void collectResults(std::vector<Result>& reduced, std::vector<Result>& ranked) const {
    for (size_t k = 0; k < plan_.levels.size(); ++k) {
      for (const Field& f : plan_.levels[k].fields) {
        const Soac& soac = kernel_.bindings[f.binding];
        if (f.count && soac.space.segmented() && outputName(soac.results[0])) ranked.push_back({&f, k});
        if (soac.kind == SoacKind::Reduce && f.segmented) reduced.push_back({&f, k});
      }
    }
  }

  /// What is done for each segment: its results are stored, epilogues computed.
  void segmentBody() {
    std::vector<Result> reduced, ranked;
    collectResults(reduced, ranked);
    Dialect d = dialect();
    d.param = [](uint32_t) { return std::string("segment"); };
    failElement_ = "segment";
    ExpressionEmitter emitter(d, 4 + indent_);
    std::map<VarId, std::vector<ExprRef>> loads;  // reads of results of this kernel
    for (uint32_t b : plan_.epilogues) {
      lcu::forEachNode(thunksOf(kernel_.bindings[b]), [&](ExprRef e) {
        if (e->kind == ExprKind::Load && fields_.contains(e->index)) loads[e->index].push_back(e);
      });
    }
    auto defined = [&](VarId v) {
      for (ExprRef e : loads[v]) emitter.define(e, stem(v));
      if (const std::string* out = outputName(v)) line(4, "{}[segment] = {};", *out, stem(v));
    };
    for (const Result& r : reduced) {
      const Soac& soac = kernel_.bindings[r.field->binding];
      const std::string name = fieldName(*r.field);
      if (plan_.ranges()) {
        line(4, "const {} {} = reduced.{};", typeName(r.field->type), name, name);
      } else {
        line(4, "const {} {} = below && k == 0 ? {}.lower.{} : shared.{}[k];", typeName(r.field->type), name,
             scanName(r.level), name, name);
      }
      defined(soac.results[r.field->component]);
    }
    for (const Result& r : ranked) {
      VarId v = kernel_.bindings[r.field->binding].results[0];
      line(4, "{}[segment + 1] = {} + shared.ranks{}.before(int(end - tile.base));", *outputName(v),
           countedLower(r.level, *r.field), r.field->binding + 1);
    }
    for (uint32_t b : plan_.epilogues) {
      const Soac& soac = kernel_.bindings[b];
      failBinding_ = pass_.bindings[b];
      emitter.emit(soac.effects);
      auto texts = emitter.emit(soac.pull);
      flush(emitter);
      for (size_t j = 0; j < soac.results.size(); ++j) {
        VarId v = soac.results[j];
        line(4, "const {} {} = {};", typeName(typeOf(v)), stem(v), texts[j]);
        defined(v);
      }
    }
  }

  // ---- the block that finishes ----------------------------------------------------------------------------

  void finish() {
    if (!plan_.finishes()) return;
    const bool chunks = plan_.grid == Grid::Chunks;
    if (chunks) {
      line(2, "Reduction::Value total = BlockReduce<S::kWarps, Reduction>::run(acc, shared.reduction);");
      storePartial("blockIdx.x", "total");
    }
    line(2, "if (!isLastBlock(launch, shared.finished)) return;");
    if (!plan_.reductions.empty()) {
      line(2, "{}total = BlockReduce<S::kWarps, Reduction>::fold({}, {}, shared.reduction);",
           chunks ? "if (gridDim.x > 1) " : "const Reduction::Value ", partials(),
           chunks ? "gridDim.x" : "launch.tiles");
    }
    line(2, "if (threadIdx.x != 0) return;");
    finishBindings(2);
  }

  void finishBindings(int indent) {
    Dialect d = dialect();
    failElement_ = "0";
    for (const Field& f : plan_.reductions) {
      VarId v = kernel_.bindings[f.binding].results[f.component];
      if (const std::string* out = outputName(v)) line(indent, "*{} = total.{};", *out, fieldName(f));
      cellValues_[v] = "total." + fieldName(f);
    }
    for (const auto& [cell, at] : scratchCells_) {
      line(indent, "const {0} {1} = *reinterpret_cast<volatile {0}*>(launch.values + {2});",
           typeName(typeOf(cell)), stem(cell), at);
      cellValues_[cell] = stem(cell);
    }
    ExpressionEmitter emitter(d, indent);
    for (uint32_t b : plan_.finish) {
      const Soac& soac = kernel_.bindings[b];
      failBinding_ = pass_.bindings[b];
      emitter.emit(soac.effects);
      auto texts = emitter.emit(soac.pull);
      flush(emitter);
      for (size_t j = 0; j < soac.results.size(); ++j) {
        VarId v = soac.results[j];
        line(indent, "const {} {} = {};", typeName(typeOf(v)), stem(v), texts[j]);
        cellValues_[v] = stem(v);
        if (const std::string* out = outputName(v)) line(indent, "*{} = {};", *out, stem(v));
      }
    }
  }

  CudaPass& pass_;
  const lcu::Kernel& kernel_;
  const KernelInfo& info_;
  const lcu::Program& program_;
  const CudaOptions& options_;
  PassPlan plan_;

  std::string out_;
  int indent_ = 0;
  std::set<std::string> taken_;
  std::vector<std::string> names_;  ///< of the parameters
  std::map<std::pair<ParameterKind, VarId>, std::string> parameterNames_;
  std::map<VarId, std::string> outputNames_;
  std::map<VarId, std::string> fields_;
  std::map<VarId, std::string> cellValues_;
  std::map<VarId, std::string> packNames_;
  std::set<VarId> itemArrays_;
  bool numbersDeclared_ = false;
  std::map<VarId, int64_t> scratchCells_;
  std::vector<int> statesBefore_;  ///< by level: state words of a tile that belong to lower levels
  std::string failElement_ = "0";
  uint32_t failBinding_ = 0;
};

}  // namespace

CudaPass generatePass(KernelPart part, const lcu::Program& program, const std::string& entry,
                      const CudaOptions& options) {
  CudaPass pass;
  pass.kernel = std::move(part.kernel);
  pass.bindings = std::move(part.bindings);
  pass.info = analyseKernel(pass.kernel, program);
  pass.entry = entry;
  PassGenerator(pass, program, options).run();
  return pass;
}

}  // namespace kelpie::codegen::cuda
