#include "codegen/cuda/pass_frame.h"

#include <algorithm>
#include <utility>

#include "codegen/cuda/pass_checks.h"
#include "codegen/cuda/pass_elements.h"
#include "codegen/cuda/pass_extremes.h"
#include "codegen/cuda/pass_groups.h"
#include "codegen/cuda/pass_items.h"
#include "codegen/cuda/pass_lanes.h"
#include "codegen/cuda/pass_products.h"
#include "codegen/cuda/pass_segments.h"
#include "codegen/cuda/segment_values.h"

namespace kelpie::codegen::cuda {

using lcu::Soac;

namespace {

/// The block that takes no tile.
void scanner(PassText& t) {
  t.line(2, "if (order < 0) {{");
  if (t.checksLate()) t.line(4, "if (failed) return;");
  for (size_t k = 0; k < t.plan.levels.size(); ++k) {
    if (t.plan.levels[k].fields.empty()) continue;
    t.line(4, "if (warpIndex() == {}) scanTiles<{}, S::kItems{}>({});", k, t.levelType(k),
           t.plan.numbered() ? ", true" : "", t.states(k));
  }
  if (!t.plan.finishes()) t.line(4, "return;");
  if (t.plan.ends) {
    t.line(2, "}} else if (order >= launch.tiles) {{");
    if (t.checksLate()) t.line(4, "if (failed) return;");
    writeBlocksOfEmpty(t, 4);
    if (!t.plan.finishes()) t.line(4, "return;");
  }
  if (t.plan.finishes()) {
    t.line(2, "}} else {{");
    t.depth += 2;
  } else {
    t.line(2, "}}");
  }
}

/// What becomes of the result of a segment.
std::string resultOfSegments(PassText& t) {
  const std::string before = std::exchange(t.text, std::string());
  t.line(2, "const auto result = [&](int64_t segment, const {}& reduced) {{",
         t.plan.ends ? "Folds" : t.levelName(t.plan.foldLevel) + "::Value");
  writeSegmentBody(t);
  t.line(2, "}};");
  return std::exchange(t.text, before);
}

/// Whether elements take more than what they load in order: by branches, loops or long operations.
bool takesTime(const lcu::Kernel& kernel) {
  return std::any_of(kernel.bindings.begin(), kernel.bindings.end(), [](const Soac& soac) {
    return soac.kind != lcu::SoacKind::Once &&
           lcu::anyNode(thunksOf(soac), [](lcu::ExprRef e) { return isMultiValued(e) || takesLong(e); });
  });
}

/// Whether elements wait for more than what all of them load side by side, so that more threads help.
bool waits(const PassText& t) {
  const auto& parameters = t.info.parameters;
  return takesTime(t.kernel) || std::any_of(parameters.begin(), parameters.end(),
                                            [](const KernelParameter& p) { return p.gathered; });
}

bool recurses(const lcu::Kernel& kernel) {
  return std::any_of(kernel.bindings.begin(), kernel.bindings.end(), [](const Soac& soac) {
    return lcu::anyNode(thunksOf(soac), [](lcu::ExprRef e) { return e->kind == lcu::ExprKind::Recursion; });
  });
}

/// What a range folds ahead of its tiles, for the scans of the ranges above it (range_scan.cuh).
void writeFoldsAhead(PassText& t) {
  t.line(2, "{} {};", t.rangeScanType(), t.scanName(0));
  t.line(2, "for (int at = range.lastBegin; at < range.elementEnd;) {{");
  t.depth += 2;
  t.line(2, "const Tile tile = range.tileAt(at);");
  loadPacks(t, 0, "loadPacks<S>");
  if (canFail(t, t.plan.stages[0])) t.line(2, "bool good = true;  // errors are met again");
  t.line(2, "{}::Value own1[S::kRows][S::kWidth];", t.levelName(0));
  writeItems(t, 0, {.checks = CheckForm::Note, .ahead = true});
  t.line(2, "{}.foldAhead(own1);", t.scanName(0));
  t.line(2, "at += tile.count;");
  t.depth -= 2;
  t.line(2, "}}");
  t.line(2, "{}.begin(range.segmentEnd > 0, order, {}, shared.scanned);", t.scanName(0), t.states(0));
}

const std::string& nameOf(const PassText& t, lcu::VarId array) {
  return t.parameterNames.at({ParameterKind::Array, array});
}

/// As NoSegmentValues in segment_numbers.cuh. Its members have names of their own, as arrays have any.
void declareSegmentValues(PassText& t) {
  const std::vector<lcu::VarId>& arrays = t.plan.segmentValues;
  std::string loads, stores;
  for (size_t k = 1; k <= arrays.size(); ++k) {
    loads += fmt::format("{}value{}[segment]", k > 1 ? ", " : "", k);
    stores += fmt::format(" shared.value{0}[place] = item.value{0};", k);
  }
  const auto members = [&](int indent, const char* form) {
    for (size_t k = 0; k < arrays.size(); ++k)
      t.line(indent, "{};", fmt::format(fmt::runtime(form), t.storedType(arrays[k]), k + 1));
  };
  t.line(0, "struct SegmentValues {{");
  t.line(2, "static constexpr int kRoom = S::kItems / {};", itemsOfSegment(t.plan.ends));
  t.line(2, "struct Shared {{");
  members(4, "{} value{}[kRoom]");
  t.line(2, "}};");
  t.line(2, "struct Item {{");
  members(4, "{} value{}");
  t.line(2, "}};");
  members(2, "const {}* value{}");
  t.line(2, "Shared& shared;");
  t.line(2, "__device__ __forceinline__ Item load(int64_t segment) const {{ return {{{}}}; }}", loads);
  t.line(2, "__device__ __forceinline__ void store(int place, const Item& item) const {{{} }}", stores);
  t.line(0, "}};");
}

void writeNumbers(PassText& t) {
  std::string values;
  for (lcu::VarId v : t.plan.segmentValues) values += nameOf(t, v) + ", ";
  if (!values.empty()) values = ", SegmentValues{" + values + "shared.values}";
  t.line(2, "const SegmentNumbers<S> numbers(segments, tile, n, starts, shared.heads{});", values);
  for (size_t k = 0; k < t.plan.segmentValues.size(); ++k) {
    const lcu::VarId v = t.plan.segmentValues[k];
    const std::string& name = nameOf(t, v);
    const std::string here = t.unique(name + "_here");
    t.line(2, "const {}* const {} = numbers.kept ? shared.values.value{} : {} + numbers.first;",
           t.storedType(v), here, k + 1, name);
    t.segmentValues[v] = here;
  }
}

void clearMarks(PassText& t) {
  if (t.plan.heads() && !t.plan.reckons()) t.line(2, "{}::clear(shared.heads);", t.headsType());
}

}  // namespace

void writeComments(PassText& t) {
  t.line(0, "// ---- {} {}", t.pass.entry,
         std::string(std::max<size_t>(4, 100 - std::min<size_t>(96, t.pass.entry.size())), '-'));
  std::string previous;
  for (const Soac& soac : t.kernel.bindings) {
    std::string text = soac.origin.empty() ? "" : "in " + soac.origin;
    if (t.options.describe && soac.span.known()) {
      std::string where = t.options.describe(soac.span);
      if (!where.empty()) text += (text.empty() ? "" : ": ") + where;
    }
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (!text.empty() && text.back() == '\\') text += ' ';
    if (!text.empty() && text != previous) t.line(0, "// {}", text);
    previous = text;
  }
}

void writeStructures(PassText& t) {
  const TileShape& s = t.plan.shape;
  t.line(0, "constexpr int kWarps = {};", s.threads / 32);
  // Of ranges, the tile of a warp.
  t.line(0, "using S = Shape<{}, {}, {}, {}>;", t.plan.ranges() ? 32 : s.threads, s.rows, s.width,
         s.backward);
  if (t.plan.ranges()) {
    t.line(0, "using Range = SegmentRange<S, Weights<{}, {}>, {}, {}>;", t.plan.elementWeight,
           t.plan.endWeight, t.plan.numbersInThunks, t.plan.compact);
  }
  for (size_t k = 0; k < t.plan.levels.size(); ++k) {
    if (t.plan.levels[k].fields.empty() || t.plan.levels[k].countsOnly) continue;
    const bool places = k == t.plan.foldLevel && !t.pass.placesOfSpace.empty();
    t.text += levelText(t.plan.levels[k], t.levelName(k), t.kernel, t.fieldNames(),
                        places ? firstOfExtremes(t) : std::vector<FirstOfExtremes>());
  }
  if (!t.plan.reductions.empty())
    t.text += reductionText(t.plan.reductions, "Reduction", t.kernel, t.fieldNames());
  if (t.plan.ends) declareFolds(t);
  if (!t.plan.segmentValues.empty()) declareSegmentValues(t);
  t.line(0, "struct Shared {{");
  if (t.plan.finishes()) t.line(2, "uint32_t finished;");
  if (t.plan.heads() && !t.plan.reckons()) t.line(2, "{}::Shared heads;", t.headsType());
  if (!t.plan.segmentValues.empty()) t.line(2, "SegmentValues::Shared values;");
  if (t.plan.ranges()) {
    t.line(2, "Range::Shared range[kWarps];");
    t.line(2, "{}::Shared segments[kWarps];", t.segmentReduceType());
    t.line(2, "{}::Below::Shared block;", t.segmentReduceType());
    if (t.plan.scansRanges()) t.line(2, "{}::Below::Shared scanned;", t.rangeScanType());
    if (t.plan.whole()) t.line(2, "{}::Shared whole;", t.wholeSegmentsType());
  }
  if (t.plan.rows()) t.line(2, "{}::Shared rows;", t.rowReduceType());
  if (t.plan.keys()) t.line(2, "{}::Shared keys;", t.keyReduceType());
  if (t.plan.products()) declareProductValues(t);
  for (size_t k = 0; k < t.plan.levels.size() && !t.plan.ranges() && !t.plan.folds(); ++k) {
    if (t.plan.levels[k].fields.empty()) continue;
    if (t.plan.levels[k].countsOnly) {
      t.line(2, "{}::Shared {};", t.blockCountType(k), t.scanName(k));
    } else {
      t.line(2, "BlockScan<S, {}>::Shared {};", t.levelName(k), t.scanName(k));
    }
  }
  if (t.plan.ends) declareFoldsOfItems(t);
  if (t.plan.refilledInTiles) declareLoopsOfTile(t);
  if (!t.plan.reductions.empty()) t.line(2, "BlockReduce<kWarps, Reduction>::Shared reduction;");
  if (t.plan.bufferBytesPerItem > 0) {
    t.line(2, "alignas(16) unsigned char buffer[{} * {}];", t.plan.bufferItems, t.plan.bufferBytesPerItem);
  }
  t.line(0, "}};");
}

void writeSignature(PassText& t) {
  std::vector<std::string> parameters = {"const Launch launch",
                                         t.pass.info.counted ? "const int64_t most" : "const int64_t n"};
  if (t.pass.segmented()) {
    parameters.push_back("const int64_t m");
    parameters.push_back("const int64_t length");
  }
  if (t.plan.heads()) parameters.push_back("const int64_t* __restrict__ starts");
  for (const KernelOutput& o : t.info.outputs)
    if (t.tableNames.contains(o.var))
      parameters.push_back(fmt::format("void* __restrict__ {}", t.tableNames.at(o.var)));
  for (size_t p = 0; p < t.info.parameters.size(); ++p) {
    const KernelParameter& parameter = t.info.parameters[p];
    auto type = typeName(parameter.type);
    switch (parameter.kind) {
      case ParameterKind::Array:
        parameters.push_back(
            fmt::format("const {}* __restrict__ {}", t.storedType(parameter.var), t.names[p]));
        break;
      case ParameterKind::Cell:
        parameters.push_back(fmt::format("const {}* __restrict__ {}", type, t.names[p]));
        break;
      case ParameterKind::Size:
        parameters.push_back(fmt::format("const int64_t {}", t.names[p]));
        break;
      case ParameterKind::Scalar:
        parameters.push_back(fmt::format("const {} {}", type, t.names[p]));
    }
  }
  for (const KernelOutput& o : t.info.outputs) {
    parameters.push_back(fmt::format("{}* __restrict__ {}", t.storedType(o.var), t.outputNames.at(o.var)));
  }
  std::string bounds = std::to_string(t.plan.shape.threads);
  if (t.plan.blocksAtOnce > 1) bounds += ", " + std::to_string(t.plan.blocksAtOnce);
  // (runtime/cuda/kernel_resources.h)
  if (t.plan.blocksAtOnce > 1 && t.plan.segmented() && !t.plan.whole()) {
    bounds += " - KELPIE_BLOCKS_LESS";
    if (!t.plan.scanned() && !t.plan.ranges() && takesTime(t.kernel)) bounds += " + KELPIE_BLOCKS_MORE";
  }
  if (t.plan.blocksAtOnce > 1 && !t.pass.segmented() && t.plan.scanned())
    bounds += " - KELPIE_FLAT_BLOCKS_LESS";
  if (t.plan.blocksAtOnce == 1 && !t.pass.segmented() && !t.plan.scanned() && waits(t))
    bounds += " KELPIE_MIN_BLOCKS";
  std::string text =
      fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(", bounds, t.pass.entry);
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
  t.line(0, "{}", text);
  t.line(2, "using namespace {};", t.parts());
  t.line(2, "followEarlierLaunches();");
  if (t.plan.grid != Grid::Single) t.line(2, "KELPIE_SHARED(Shared, shared);");
  if (recurses(t.kernel)) t.line(2, "KELPIE_FRAMES(frames);");
  if (t.pass.info.counted) t.line(2, "const int64_t n = extentOf(launch, most);");
  // Who works long looks first; others load their tile meanwhile.
  if (t.checksLate()) {
    t.line(2, "const bool failed = failedBefore(launch);");
  } else {
    t.line(2, "if (failedBefore(launch)) return;");
  }
  if (t.gathered) t.line(2, "const void* const records = scatteredRecords(launch.records[0]);");
  for (const auto& [v, name] : t.cellValues) {
    t.line(2, "const {} {} = *{};", typeName(t.typeOf(v)), name,
           t.parameterNames.at({ParameterKind::Cell, v}));
  }
}

void writePrologue(PassText& t) {
  if (t.pass.segmented()) {
    if (t.info.offsetsParameter) {
      const size_t p = *t.info.offsetsParameter;
      t.line(2, "const OffsetSegments<{}> segments{{{}, m}};", t.storedType(t.info.parameters[p].var),
             t.names[p]);
    } else {
      t.line(2, "const RegularSegments segments{{length, m}};");
    }
  }
  if (t.plan.ranges()) {
    t.line(2, "const int64_t order = blockIdx.x;");
    const std::string result = resultOfSegments(t);
    if (t.plan.whole()) {
      t.text += result;
      writeWholeSegments(t);
      t.line(2, "const bool alone = whole.even;");
      t.line(2, "Range range(alone ? warpIndex() : order * kWarps + warpIndex(),");
      t.line(2, "    alone ? kWarps : launch.tiles * kWarps, alone ? whole.from : Cut{{0, 0, 0}},");
      t.line(2, "    alone ? whole.to : Cut{{m, n, n}}, segments, shared.range[warpIndex()]);");
    } else {
      t.line(
          2,
          "Range range(order * kWarps + warpIndex(), launch.tiles * kWarps, Cut{{0, 0, 0}}, Cut{{m, n, n}},");
      t.line(2, "    segments, shared.range[warpIndex()]);");
      t.line(2, "if (failed) return;");
      t.text += result;
    }
    t.line(2, "const auto ends = segments.from(range.firstSegment);");
    if (!t.plan.reductions.empty()) t.line(2, "Reduction::Value acc = Reduction::identity();");
    t.line(2, "{} reduce;", t.segmentReduceType());
    if (!t.plan.stages[0].packs.empty()) {
      declarePacks(t, 0);
      t.line(2, "const auto fetch = [&] {{");
      t.depth += 2;
      t.line(2, "if (!range.more()) return;");
      t.line(2, "const Tile tile = range.tile();");
      t.line(2, "if (tile.count < S::kItems) return;");
      loadPacks(t, 0, "loadWhole<S>");
      t.depth -= 2;
      t.line(2, "}};");
    } else {
      t.line(2, "const auto fetch = [] {{}};");
    }
    if (t.plan.scansRanges()) writeFoldsAhead(t);
    if (!t.plan.stages[0].packs.empty()) t.line(2, "fetch();");
    if (t.plan.refilledInTiles) writeVotes(t);
    t.rangeLoop = t.text.size();
    t.line(2, "while (range.more()) {{");
    t.depth += 2;
  } else if (t.plan.scanned()) {
    clearMarks(t);
    t.line(2, "const int64_t order = tileOfBlock({});", t.plan.ends ? "launch.tiles" : "");
    if (t.plan.ends) t.text += resultOfSegments(t);
    scanner(t);
    if (t.plan.refilledInTiles) writeVotes(t);
  } else if (t.plan.grid == Grid::Chunks) {
    t.line(2, "Reduction::Value acc = Reduction::identity();");
    t.line(2, "for (int64_t order = blockIdx.x; order < launch.tiles; order += gridDim.x) {{");
    t.depth += 2;
  } else {
    clearMarks(t);
    t.line(2, "const int64_t order = blockIdx.x;");
  }
  if (t.plan.ranges()) {
    t.line(2, "const Tile tile = range.tile();");
    if (!t.plan.stages[0].packs.empty()) {  // there are few: code to load them ahead would be long
      t.line(2, "if (tile.count < S::kItems) {{");
      t.depth += 2;
      loadPacks(t, 0, "loadPart<S>");
      t.depth -= 2;
      t.line(2, "}}");
    }
    t.line(2, "const bool ending = range.endsIn(tile);");
  } else {
    t.line(2, "const Tile tile = flatTile<S>(order, launch.tiles, n);");
  }
  if (!t.plan.stages.empty() && !t.plan.ranges()) writeLoads(t, 0);
  if (t.checksLate() && !t.plan.ranges()) t.line(2, "if (failed) return;");
  // There is an item that those outside of the tile repeat (pass_checks.cpp).
  if (t.plan.repeats() && !t.plan.scanned()) t.line(2, "if (tile.count == 0) return;");
  if (t.plan.ranges()) {
    t.line(2, "Range::Ends marked;");
    t.line(2, "if (ending) marked = range.mark(ends, tile, shared.range[warpIndex()]);");
  }
  if (t.plan.ranges() && t.plan.numbersInThunks) {
    t.line(2, "int number[S::kRows][S::kWidth];");
    t.line(2, "range.numbers(ending, marked, shared.range[warpIndex()], number);");
  }
  if (t.reducesByTile()) t.line(2, "Reduction::Value acc = Reduction::identity();");
  if (t.plan.reckons()) {
    t.line(2, "const RegularNumbers<S> numbers(segments, tile);");
    if (t.plan.borders) t.line(2, "const uint32_t heads = numbers.heads();");
  } else if (t.plan.heads()) {
    t.line(2, "__syncthreads();");
    if (t.plan.numbered()) {
      writeNumbers(t);
    } else {
      t.line(2, "SegmentHeads<S>::mark(segments, tile, n, starts, shared.heads);");
    }
    t.line(2, "__syncthreads();");
    if (t.plan.borders) t.line(2, "const uint32_t heads = {}::heads(shared.heads);", t.headsType());
  }
}

void writeEndOfTile(PassText& t) {
  if (t.reducesByTile()) {
    t.line(2, "const Reduction::Value sum = BlockReduce<kWarps, Reduction>::run(acc, shared.reduction);");
    t.storePartial("order", "sum");
  }
  if (t.plan.ranges()) {
    if (t.plan.scansRanges())
      t.line(2, "{}.advance(ending && marked.last == range.element + tile.count);", t.scanName(0));
    t.line(2, "reduce.tile(own{}, tile, ending, marked, range, ends, shared.segments[warpIndex()],",
           t.plan.foldLevel + 1);
    t.line(2, "    shared.range[warpIndex()], result, fetch);");
  }
  if (t.depth > 0) {
    t.depth -= 2;
    t.line(2, "}}");
  }
  if (!t.plan.ranges()) return;
  if (t.searchesRange) {
    searchRangeForErrors(t);
    t.text.insert(t.rangeLoop, "  const int begin = range.element;\n  bool good = true;\n");
  }
  t.line(2, "reduce.finish(range, {}, order, {}, shared.block, result);", t.plan.whole() ? "alone" : "false",
         t.states(t.plan.foldLevel));
  if (!t.plan.reductions.empty()) {
    t.line(2, "const Reduction::Value sum = BlockReduce<kWarps, Reduction>::run(acc, shared.reduction);");
    t.storePartial("order", "sum");
  }
}

}  // namespace kelpie::codegen::cuda
