#include "codegen/cuda/pass_text.h"

#include <algorithm>

namespace kelpie::codegen::cuda {

using lcu::ExprRef;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

PassText::PassText(CudaPass& ownPass, const lcu::Program& ownProgram, const CudaOptions& ownOptions,
                   PassForm form)
    : pass(ownPass),
      kernel(ownPass.kernel),
      info(ownPass.info),
      program(ownProgram),
      options(ownOptions),
      plan(planPass(kernel, info, program, options, form, pass.placesOfSpace)) {
  chooseNames();
  placeScratch();
  if (plan.grid == Grid::Chunks || plan.grid == Grid::Tiles || plan.ranges())
    gathered = gatheredColumns(kernel, info, program);
}

std::string PassText::unique(const std::string& wanted) {
  std::string name = wanted;
  for (int k = 2; !taken.insert(name).second; ++k) name = fmt::format("{}_{}", wanted, k);
  return name;
}

void PassText::chooseNames() {
  taken = {
      "i",        "s",        "p",        "n",        "m",      "S",       "Shared",  "Reduction", "row",
      "v",        "bit",      "offset",   "order",    "tile",   "shared",  "launch",  "segments",  "splits",
      "borders",  "number",   "segment",  "begin",    "end",    "k",       "inside",  "length",    "test",
      "total",    "out",      "kelpie",   "range",    "reduce", "result",  "reduced", "ending",    "ends",
      "sum",      "partials", "empty",    "lower",    "kept",   "dropped", "failed",  "rows",      "item",
      "good",     "acc",      "heads",    "packs",    "starts", "numbers", "kWarps",  "fetch",     "marked",
      "Range",    "groups",   "at",       "keys",     "base",   "first",   "round",   "alone",     "items",
      "part",     "folds",    "foldAt",   "none",     "W",      "Map",     "most",    "product",   "depth",
      "index",    "fold",     "keep",     "column",   "Tiles",  "tile0",   "tile1",   "tile2",     "tile3",
      "fetched0", "fetched1", "fetched2", "fetched3", "value0", "value1",  "value2",  "value3",    "columns",
      "kRows",    "kColumns", "before",   "after",    "next",   "whole",   "fine",    "frames",    "queue",
      "held",     "busy",     "takes",    "turn",     "votes",  "records"};
  for (size_t k = 1; k <= kernel.bindings.size() + plan.levels.size(); ++k)
    for (const char* stem : {"own", "scan", "keep", "keeps", "states", "rank", "at", "Level"})
      taken.insert(stem + std::to_string(k));
  for (const auto& p : info.parameters) names.push_back(unique(p.name));
  for (const auto& o : info.outputs) outputNames[o.var] = unique(o.name);
  for (const KernelOutput& o : info.outputs) {
    const Soac& soac = kernel.bindings[o.binding];
    if (soac.kind == SoacKind::Filter && soac.space.segmented() && o.result == 0)
      tableNames[o.var] = unique(o.name + "_ranks");
  }
  for (size_t p = 0; p < info.parameters.size(); ++p) {
    const KernelParameter& parameter = info.parameters[p];
    parameterNames[{parameter.kind, parameter.var}] = names[p];
    if (parameter.kind == ParameterKind::Cell) cellValues[parameter.var] = unique(names[p] + "Value");
  }
  for (const Soac& soac : kernel.bindings)
    for (VarId v : soac.results)
      stems[v] = unique(fmt::format("{}_v{}", identifier(program.vars.at(v).name), v));
}

std::string PassText::fieldName(const Field& f) const {
  const Soac& soac = kernel.bindings[f.binding];
  return f.count ? fmt::format("count{}", f.binding + 1) : stem(soac.results[f.component]);
}

const std::string* PassText::outputName(VarId v) const {
  auto it = outputNames.find(v);
  return it == outputNames.end() ? nullptr : &it->second;
}

Dialect PassText::dialect() const {
  Dialect d;
  d.param = [](uint32_t number) { return std::string(number == 0 ? "i" : number == 1 ? "s" : "p"); };
  d.host = [this](VarId v, ScalarType) {
    if (auto it = cellValues.find(v); it != cellValues.end()) return it->second;
    return parameterNames.at({ParameterKind::Scalar, v});
  };
  d.load = [this](ExprRef load, const std::string& position) {
    return widened(load->index,
                   parameterNames.at({ParameterKind::Array, load->index}) + "[" + position + "]");
  };
  d.size = [this](VarId v) { return parameterNames.at({ParameterKind::Size, v}); };
  d.fail = [this](lcu::SiteId site, const std::string& a, const std::string& b) {
    return fmt::format("recordError(launch.error, launch.number, {}, {}, {}, {}, {});", failElement,
                       failBinding, site, a, b);
  };
  d.variableName = [this](VarId v) { return identifier(program.vars.at(v).name); };
  d.stackSite = kStackSite;
  d.recursion = "frames";
  d.frames = true;
  d.wrapCalls = true;
  d.divisionCalls = true;
  d.shortCircuit = true;
  d.rangeCalls = true;
  d.wordVariables = true;
  d.reciprocal = "k_reciprocal(";
  d.quotient = "k_quotient";
  d.loadedCalls = true;
  d.record = [this](const std::vector<ExprRef>& loads, const std::string& position) {
    return recordText(loads, position);
  };
  if (fromRecords) d.gathered = gathered->position;
  d.sameLength = [this](ExprRef load, ExprRef other) {
    const ExprRef extent = program.vars.at(load->index).extent;
    return extent && extent == program.vars.at(other->index).extent;
  };
  return d;
}

std::string PassText::recordText(const std::vector<ExprRef>& loads, const std::string& position) const {
  std::vector<uint32_t> columns;
  std::string arrays;
  for (ExprRef load : loads) {
    const KernelParameter* array = info.parameter(ParameterKind::Array, load->index);
    if (!array || isShort(load->index)) return "";
    columns.push_back(static_cast<uint32_t>(array - info.parameters.data()));
    arrays += ", " + names[columns.back()];
  }
  SideBySide wanted{columns, std::nullopt};
  if (fromRecords) {
    const KernelParameter* places = info.parameter(ParameterKind::Array, gathered->places);
    wanted.places = static_cast<uint32_t>(places - info.parameters.data());
  }
  auto& records = pass.records;
  auto known = std::find(records.begin(), records.end(), wanted);
  if (known == records.end()) {
    if (columns.size() > kMostColumns || records.size() == (fromRecords ? 1 : kMostRecords)) return "";
    known = records.insert(records.end(), wanted);
  }
  if (fromRecords) return fmt::format("recordIn<{}>(records, {})", columns.size(), position);
  return fmt::format("recordAt(launch.records[{}], {}{})", known - records.begin(), position, arrays);
}

void PassText::placeScratch() {
  std::set<VarId> needed;
  for (uint32_t b : plan.finish) {
    auto reads = info.bindings[b].localReads;
    needed.insert(reads.begin(), reads.end());
  }
  for (const LevelPlan& level : plan.levels) {
    for (const Field& f : level.fields) {
      const Soac& soac = kernel.bindings[f.binding];
      if (f.segmented || soac.kind == SoacKind::Scan || (f.count && soac.space.segmented())) continue;
      VarId cell = f.count ? soac.results[0] : soac.results[f.component];
      if (needed.contains(cell)) {
        scratchCells[cell] = pass.fixedBytes;
        pass.fixedBytes += 16;
      }
    }
  }
  if (plan.shorts()) return;
  if (plan.folds()) {  // a partial result, of whole words, for each segment of a tile
    const int segments = plan.keys()       ? plan.shape.keys
                         : plan.products() ? plan.shape.outers() * plan.shape.places()
                                           : plan.shape.rows * (plan.columns() ? 32 : 1);
    pass.bytesPerTile = (plan.levels[0].bytes() + 3) / 4 * 4 * segments;
    return;
  }
  for (const LevelPlan& level : plan.levels) {
    statesBefore.push_back(pass.stateWords);
    constexpr int64_t kPayload = 12;  // bytes of a state word
    pass.stateWords += 2 * static_cast<int>((level.bytes() + kPayload - 1) / kPayload);
  }
  if (!plan.reductions.empty()) {
    LevelPlan all;
    all.fields = plan.reductions;
    pass.bytesPerTile += (all.bytes() + 15) / 16 * 16;
  }
}

FieldNames PassText::fieldNames() const {
  return [this](const Field& f) { return fieldName(f); };
}

bool PassText::reducesByTile() const {
  return !plan.reductions.empty() && !plan.ranges() && plan.grid != Grid::Chunks;
}

bool PassText::checksLate() const {
  return plan.grid == Grid::Tiles || plan.grid == Grid::Chunks || plan.heads() || plan.ranges();
}

std::string PassText::levelType(size_t k) const {
  return plan.levels[k].countsOnly ? blockCountType(k) + "::Level" : levelName(k);
}

std::string PassText::blockCountType(size_t k) const {
  return fmt::format("BlockCount<S, {}>", plan.levels[k].fields.size());
}

std::string PassText::states(size_t k) const {
  return fmt::format("States<{}::Carry>(launch, {})", levelType(k), statesBefore[k]);
}

std::string PassText::keyReduceType() const {
  return fmt::format("KeyReduce<S, Level1, {}>", plan.shape.keys);
}
std::string PassText::rowReduceType() const {
  if (plan.shorts()) return "ShortReduce<S, Level1>";
  if (!plan.columns()) return "RowReduce<S, Level1>";
  return fmt::format("ColumnReduce<S, Level1, {}>", plan.indices.has_value());
}
std::string PassText::productReduceType() const { return "ProductReduce<S, Level1>"; }
std::string PassText::segmentReduceType() const {
  return fmt::format("SegmentReduce<S, {}, Range, kWarps>", levelName(plan.foldLevel));
}
std::string PassText::rangeScanType() const { return "RangeScan<S, Level1, kWarps>"; }
std::string PassText::wholeSegmentsType() const {
  // Fewer on the way where each has a segment to know: sums of 2^22 float32, times a number of their segments
  // of 8, took 18.3 us on an H200 with 16, for which registers did not suffice, and 10.2 with 8; for segments
  // of 1024 8.0 and 7.9.
  const bool fewer = plan.numbersInThunks && !plan.warps && plan.shape.rows > 1;
  return fmt::format("{}<Level1, kWarps, S::kRows * S::kWidth{}>",
                     plan.warps ? "SegmentWarps" : "SegmentGroups", fewer ? " / 2" : "");
}

void PassText::storePartial(const char* number, const char* value) {
  line(2, "if (threadIdx.x == 0) BlockReduce<kWarps, Reduction>::storeShared({} + {}, {});", partials(),
       number, value);
}

std::string PassText::partials() const {
  return fmt::format("reinterpret_cast<Words<Reduction::Value>*>(launch.values + {})", pass.fixedBytes);
}

bool PassText::keepsItems(VarId v, size_t stage) const {
  if (outputNames.contains(v)) return true;
  for (size_t k = stage + 1; k < plan.stages.size(); ++k)
    for (uint32_t b : plan.stages[k].bindings) {
      const auto& reads = info.bindings[b].localReads;
      if (std::find(reads.begin(), reads.end(), v) != reads.end()) return true;
    }
  return false;
}

const std::string* PassText::compactedOutput(const Soac& soac, size_t j, bool kept) const {
  if (!kept && soac.kind != SoacKind::Partition) return nullptr;
  return outputName(soac.results[1 + j + (kept ? 0 : soac.pull.size())]);
}

bool PassText::hasSegmentOffsets() const {
  for (const LevelPlan& level : plan.levels)
    for (const Field& f : level.fields)
      if (f.count && kernel.bindings[f.binding].space.segmented()) return true;
  return false;
}

std::string PassText::ofCount(size_t level, const Field& f, const char* member) const {
  return fmt::format("{}.{}[{}]", scanName(level), member, &f - plan.levels[level].fields.data());
}

std::string PassText::countedLower(size_t level, const Field& f) const {
  if (plan.levels[level].countsOnly) return ofCount(level, f, "lower");
  return scanName(level) + ".lower." + fieldName(f);
}

std::string PassText::totalOf(size_t level, const Field& f) const {
  if (plan.levels[level].countsOnly) return ofCount(level, f, "total");
  return scanName(level) + ".total." + fieldName(f);
}

std::string PassText::countOf(size_t level, const Field& f) const {
  if (plan.levels[level].countsOnly) return ofCount(level, f, "count");
  return fmt::format("uint32_t({} - {})", totalOf(level, f), countedLower(level, f));
}

std::string PassText::rankOf(size_t level, const Field& f) const {
  return plan.levels[level].countsOnly ? ofCount(level, f, "rank") : fmt::format("rank{}", f.binding + 1);
}

void PassText::values(uint32_t b, ExpressionEmitter& emitter, int indent,
                      const std::function<void(lcu::VarId)>& defined) {
  const lcu::Soac& soac = kernel.bindings[b];
  failBinding = pass.bindings[b];
  emitter.emit(soac.effects);
  const auto texts = emitter.emit(soac.pull);
  flush(emitter);
  for (size_t j = 0; j < soac.results.size(); ++j) {
    const lcu::VarId v = soac.results[j];
    line(indent, "const {} {} = {};", typeName(typeOf(v)), stem(v), texts[j]);
    defined(v);
  }
}

}  // namespace kelpie::codegen::cuda
