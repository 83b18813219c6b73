// The evaluation of one launch: what evaluateKernel runs and sampleThunks looks into. Private to
// runtime/interp; the entry points are in kernel_evaluator.h.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>

#include "codegen/cpu/reduction_order.h"
#include "ir/diagnostic.h"
#include "runtime/interp/kernel_evaluator.h"

namespace kelpie::runtime {

using codegen::BindingRole;
using codegen::KernelInfo;
using codegen::ParameterKind;
using kelpie_order::kLanes;
using kelpie_order::kPiece;
using kelpie_order::kSerial;
using lcu::Soac;
using lcu::SoacKind;
using lcu::VarId;

/// Errors of one launch: keeps the one of the least site, then of the least key. Sites are numbered in the
/// order of the program, whose operations run over all elements. Keys: element index; epilogues and Once come
/// after.
class ErrorLog final : public Environment {
 public:
  ErrorLog(const std::atomic<bool>* interrupt, std::optional<Deadline> deadline, Postpone postpone)
      : interrupt_(interrupt), deadline_(deadline), postpone_(std::move(postpone)) {}
  static constexpr int64_t kEpilogue = int64_t{1} << 61;
  static constexpr int64_t kFinish = int64_t{1} << 62;

  int64_t key = 0;  ///< of the evaluation under way
  void fail(lcu::SiteId site, int64_t payload0, int64_t payload1) override {
    if (error && std::tie(error->site, recordedKey) <= std::tie(site, key)) return;
    error = DeviceError{site, payload0, payload1};
    recordedKey = key;
  }
  bool interrupted() const override {
    if (deadline_ && std::chrono::steady_clock::now() > *deadline_) {
      deadline_ = postpone_ ? postpone_() : std::nullopt;
      if (!deadline_) throw DeadlinePassed{};
    }
    return interrupt_ && interrupt_->load(std::memory_order_relaxed);
  }
  std::optional<DeviceError> error;
  void setDeadline(Deadline deadline) { deadline_ = deadline; }

 private:
  const std::atomic<bool>* interrupt_;
  mutable std::optional<Deadline> deadline_;
  Postpone postpone_;
  int64_t recordedKey = 0;
};

struct Range {
  int64_t begin, end;
  int64_t segment = 0, segmentStart = 0;
};

class LaunchEvaluation {
 public:
  LaunchEvaluation(const KernelCode& code, const LaunchRequest& request, LaunchWork& work,
                   std::optional<Deadline> deadline, Postpone postpone = nullptr)
      : code_(code),
        request_(request),
        entry_(request.program->kernels.at(request.kernel)),
        kernel_(*entry_.kernel),
        info_(entry_.info),
        work_(work),
        n_(request.extents.elements),
        m_(request.extents.segments),
        log_(request.interrupt, deadline, std::move(postpone)) {}

  std::optional<DeviceError> run() {
    bindParameters();
    bindResults();
    countStaticReads();
    makeCounters();
    uint32_t permutes = 0;
    for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
      binding(b, kernel_.bindings[b].kind == SoacKind::Permute ? permutes++ : 0);
    }
    return log_.error;
  }

  codegen::ThunkSample sample(std::span<const size_t> bytes, SampledMemory* memory, codegen::Streams streams,
                              std::chrono::milliseconds most);

 private:
  class SampledBinding;
  class Producers;
  /// Bindings whose results binding b reads and that can be computed for one element of it: maps of the same
  /// elements, and, where these are segments, reductions of the segment. Also scans: what they make of the
  /// element alone stands for what they make of it and all before.
  std::vector<uint32_t> producersOf(uint32_t b) const;
  /// Whether its thunks can be evaluated for one element: of other bindings they read nothing but producers,
  /// and results of scans do not decide what they do, but at most where they load.
  bool canBeSampled(uint32_t b) const;
  /// Whether an expression of binding b depends on what a scan of the kernel makes.
  std::function<bool(lcu::ExprRef)> dependsOnScans(uint32_t b) const;
  /// Whether what a scan of the kernel makes decides a branch, a loop, or where a permute writes.
  bool goesByScans(uint32_t b) const;
  /// Whether it decides where something is loaded.
  bool loadsByScans(uint32_t b) const;
  /// Whether it branches, loops, or loads or stores at computed positions.
  bool tells(uint32_t b) const;
  bool readsFrom(uint32_t b, const Soac& producer) const;
  struct Result {
    void* memory = nullptr;  ///< null: nobody reads it
    ScalarType type = ScalarType::Int64;
    bool leaves = false;
  };

  // ---- names -> memory ----

  void bindParameters() {
    for (size_t k = 0; k < info_.parameters.size(); ++k) {
      const auto& p = info_.parameters[k];
      const KernelArgument& a = request_.arguments[k];
      switch (p.kind) {
        case ParameterKind::Array:
          arrays_[p.var] = a.pointer;
          break;
        case ParameterKind::Size:
          sizes_[p.var] = a.integer;
          break;
        case ParameterKind::Cell:
          scalars_[p.var] = loadElement(p.type, a.pointer, 0);
          break;
        case ParameterKind::Scalar: {
          Register r{};
          if (isFloat(p.type)) {
            r.f = a.real;
          } else {
            r.i = a.integer;
          }
          scalars_[p.var] = r;
        }
      }
    }
    if (info_.offsetsParameter) {
      offsets_ = static_cast<const int64_t*>(request_.arguments[*info_.offsetsParameter].pointer);
    }
  }

  void bindResults() {
    std::vector<VarId> local;
    for (const auto& b : info_.bindings) local.insert(local.end(), b.localReads.begin(), b.localReads.end());
    for (uint32_t b = 0; b < kernel_.bindings.size(); ++b) {
      for (VarId v : kernel_.bindings[b].results) {
        const auto& var = request_.program->program->vars.at(v);
        Result r{nullptr, var.type, false};
        bool read = std::find(local.begin(), local.end(), v) != local.end();
        for (size_t o = 0; o < info_.outputs.size(); ++o) {
          if (info_.outputs[o].var != v) continue;
          r.memory = request_.outputs[o];
          r.leaves = true;
        }
        if (!r.memory && read) {
          int64_t count = var.kind == lcu::VarKind::Cell ? 1 : std::max(n_, m_) + 1;
          temporaries_.emplace_back(static_cast<size_t>(count * sizeOf(var.type)));
          r.memory = temporaries_.back().data();
        }
        if (read && var.kind == lcu::VarKind::Array) arrays_[v] = r.memory;
        results_[v] = r;
      }
    }
  }

  int64_t segmentStart(int64_t s) const { return offsets_ ? offsets_[s] : s * request_.extents.length; }

  void countStaticReads() {
    auto inFull = [&](VarId v, ScalarType type, bool atElements, bool atSegments) {
      if (!info_.parameter(ParameterKind::Array, v)) return;
      if (atElements) work_.bytesRead += static_cast<uint64_t>(n_ * sizeOf(type));
      if (atSegments) work_.bytesRead += static_cast<uint64_t>(m_ * sizeOf(type));
    };
    struct Reads {
      ScalarType type;
      bool atElements = false, atSegments = false;
    };
    std::unordered_map<VarId, Reads> reads;
    for (size_t b = 0; b < kernel_.bindings.size(); ++b) {
      bool epilogue = info_.bindings[b].role == BindingRole::Epilogue;
      lcu::forEachNode(codegen::thunksOf(kernel_.bindings[b]), [&](lcu::ExprRef e) {
        if (e->kind != lcu::ExprKind::Load || e->operands[0]->kind != lcu::ExprKind::Param) return;
        uint32_t position = e->operands[0]->index;
        Reads& r = reads.try_emplace(e->index, Reads{e->type}).first->second;
        if (position == 1 || (position == 0 && epilogue)) {
          r.atSegments = true;
        } else if (position == 0) {
          r.atElements = true;
        }
      });
    }
    for (const auto& [v, r] : reads) inFull(v, r.type, r.atElements, r.atSegments);
    if (offsets_) work_.bytesRead += static_cast<uint64_t>(8 * (m_ + 1));
  }

  void makeCounters() {
    size_t blocks = 0, combining = 0;
    for (const KernelCode::Binding& b : code_.bindings()) {
      blocks += b.thunks.blockCount() + b.late.blockCount();
      combining = std::max(combining, b.combine.blockCount());
    }
    work_.entered.assign(blocks, 0);
    ofCombine_.assign(combining, 0);
  }
  /// Where the counters of a binding begin.
  uint64_t* countersOf(uint32_t binding) {
    size_t before = 0;
    for (uint32_t b = 0; b < binding; ++b)
      before += code_.bindings()[b].thunks.blockCount() + code_.bindings()[b].late.blockCount();
    return work_.entered.data() + before;
  }

  // ---- running thunks ----

  /// An ExpressionCode with its inputs filled.
  struct Instance {
    const ExpressionCode* code;
    std::vector<Register> registers;
    std::vector<const void*> arrays;
    std::optional<uint32_t> param[3];
    const std::vector<uint32_t>* results;
    uint64_t* entered;
  };

  Instance instantiate(const ExpressionCode& code, uint64_t* entered) {
    Instance x{&code, code.initialRegisters(), {}, {}, &code.resultRegisters(), entered};
    for (const auto& input : code.inputs()) {
      if (input.kind == ExpressionCode::InputKind::Size) {
        x.registers[input.reg].i = sizes_.at(input.var);
      } else if (auto it = scalars_.find(input.var); it != scalars_.end()) {
        x.registers[input.reg] = it->second;
      } else {  // a cell made by an earlier binding
        x.registers[input.reg] = loadElement(input.type, results_.at(input.var).memory, 0);
      }
    }
    for (VarId v : code.arrays()) x.arrays.push_back(arrays_.at(v));
    for (uint32_t k = 0; k < 3; ++k) x.param[k] = code.paramRegister(k);
    return x;
  }

  void evaluate(Instance& x, int64_t i, int64_t s, int64_t p) {
    if (x.param[0]) x.registers[*x.param[0]].i = i;
    if (x.param[1]) x.registers[*x.param[1]].i = s;
    if (x.param[2]) x.registers[*x.param[2]].i = p;
    log_.key = keyBase_ + i;
    x.code->run(x.registers.data(), x.arrays.data(), log_, work_.bytesRead, x.entered, trace_, progress_);
  }
  Register result(const Instance& x, size_t k) const { return x.registers[(*x.results)[k]]; }

  // ---- folding ----

  struct Folder {
    const KernelCode::Binding* binding;
    const Soac* soac;
    Instance combine;
    std::vector<Register> identity;
    std::vector<ScalarType> types;
  };

  Folder folder(uint32_t b) {
    const Soac& soac = kernel_.bindings[b];
    Folder f{
        &code_.bindings()[b], &soac, instantiate(code_.bindings()[b].combine, ofCombine_.data()), {}, {}};
    for (const Scalar& s : soac.combine.identity) {
      f.identity.push_back(toRegister(s));
      f.types.push_back(s.type);
    }
    return f;
  }

  static Register apply(ScalarOp op, ScalarType type, Register a, Register b) {
    return toRegister(kelpie::evaluate(op, toScalar(type, a), toScalar(type, b)));
  }

  /// left := left op right, all components.
  void combine(Folder& f, std::vector<Register>& left, const Register* right) {
    const size_t k = left.size();
    if (f.binding->anyTogether) {
      for (uint32_t j = 0; j < k; ++j) {
        if (auto r = f.combine.code->paramRegister(j)) f.combine.registers[*r] = left[j];
        if (auto r = f.combine.code->paramRegister(static_cast<uint32_t>(k) + j))
          f.combine.registers[*r] = right[j];
      }
      f.combine.code->run(f.combine.registers.data(), f.combine.arrays.data(), log_, work_.bytesRead,
                          f.combine.entered);
    }
    for (size_t j = 0; j < k; ++j) {
      const auto& op = f.binding->lanewise[j];
      left[j] = op ? apply(*op, f.types[j], left[j], right[j]) : result(f.combine, j);
    }
  }

  /// The total of a piece whose values are values[element * k + component].
  std::vector<Register> foldPiece(Folder& f, const std::vector<Register>& values, bool backward) {
    const size_t k = f.identity.size();
    const auto count = static_cast<int64_t>(values.size() / std::max<size_t>(k, 1));
    std::vector<Register> total = f.identity;
    if (f.binding->anySerial) {
      for (int64_t e = 0; e < count; ++e) {
        combine(f, total, &values[static_cast<size_t>(backward ? count - 1 - e : e) * k]);
      }
    }
    const auto inLanes = [&](size_t j, ScalarOp op, const auto& value) {
      total[j] = f.identity[j];
      Register lane[kLanes];
      std::fill(lane, lane + kLanes, f.identity[j]);
      for (int64_t e = 0; e < count; ++e) {
        Register& l = count < kSerial ? total[j] : lane[e % kLanes];
        l = apply(op, f.types[j], l, value(&values[static_cast<size_t>(e) * k]));
      }
      for (int64_t l = 0; l < kLanes && count >= kSerial; ++l)
        total[j] = apply(op, f.types[j], total[j], lane[l]);
    };
    for (size_t j = 0; j < k; ++j) {
      const auto& fold = f.binding->lanes[j];
      if (fold && fold->of == j) inLanes(j, fold->operation, [&](const Register* e) { return e[j]; });
    }
    for (size_t j = 0; j < k; ++j) {
      const auto& fold = f.binding->lanes[j];
      if (!fold || fold->of == j) continue;
      const size_t of = fold->of;
      inLanes(j, fold->operation, [&](const Register* e) {
        return apply(ScalarOp::Equal, f.types[of], e[of], total[of]).i != 0 ? e[j] : f.identity[j];
      });
    }
    return total;
  }

  // ---- pieces ----

  /// The pieces of a flat collective: the blocks of the anchor space.
  std::vector<Range> blockRanges() const {
    std::vector<Range> ranges;
    if (!info_.space.segmented()) {
      for (int64_t b = 0; b < kelpie_order::flatBlocks(n_); ++b) {
        ranges.push_back({b * kelpie_order::kBlock, std::min(n_, (b + 1) * kelpie_order::kBlock)});
      }
      return ranges;
    }
    auto start = [&](int64_t s) { return segmentStart(s); };
    int64_t begin = 0;
    for (int64_t b = 1; b <= kelpie_order::segmentedBlocks(n_, m_); ++b) {
      int64_t end = kelpie_order::cutBlock(b, n_, m_, start).element;
      if (end > begin) ranges.push_back({begin, end});
      begin = end;
    }
    return ranges;
  }
  std::vector<Range> pieceRanges(int64_t segment) const {
    std::vector<Range> ranges;
    const int64_t first = segmentStart(segment), last = segmentStart(segment + 1);
    for (int64_t e = first; e < last; e += kPiece)
      ranges.push_back({e, std::min(e + kPiece, last), segment, first});
    return ranges;
  }

  template <typename Visit>
  void forEachElement(const Soac& soac, const Visit& visit) {
    if (!soac.space.segmented()) {
      for (int64_t i = 0; i < n_; ++i) visit(i, int64_t{0}, i);
      return;
    }
    for (int64_t s = 0; s < m_; ++s) {
      const int64_t first = segmentStart(s), last = segmentStart(s + 1);
      for (int64_t i = first; i < last; ++i) visit(i, s, i - first);
    }
  }

  /// Values of all components for the elements of a range; effects are evaluated along.
  void pull(const Soac& soac, Instance& thunks, const Range& range, std::vector<Register>& values) {
    const size_t k = soac.pull.size();
    const size_t first = thunks.results->size() - k;
    values.clear();
    for (int64_t i = range.begin; i < range.end; ++i) {
      evaluate(thunks, i, range.segment, i - range.segmentStart);
      for (size_t j = 0; j < k; ++j) values.push_back(result(thunks, first + j));
    }
  }

  /// `number` counts the results of the binding under way.
  void store(size_t number, int64_t position, Register value) {
    const Result& r = *out_[number];
    if (!r.memory) return;
    storeElement(r.type, r.memory, position, value);
    if (r.leaves) work_.bytesWritten += static_cast<uint64_t>(sizeOf(r.type));
  }

  // ---- bindings ----

  void binding(uint32_t b, uint32_t permute) {
    const Soac& soac = kernel_.bindings[b];
    BindingRole role = info_.bindings[b].role;
    keyBase_ = role == BindingRole::Finish     ? ErrorLog::kFinish
               : role == BindingRole::Epilogue ? ErrorLog::kEpilogue
                                               : 0;
    Instance thunks = instantiate(code_.bindings()[b].thunks, countersOf(b));
    out_.clear();
    for (VarId v : soac.results) out_.push_back(&results_.at(v));
    work_.elements += static_cast<uint64_t>(role == BindingRole::Finish     ? 1
                                            : role == BindingRole::Epilogue ? m_
                                                                            : n_);
    switch (soac.kind) {
      case SoacKind::Once:
        once(soac, thunks);
        break;
      case SoacKind::Map:
        map(soac, thunks, role);
        break;
      case SoacKind::Permute:
        this->permute(soac, thunks, request_.extents.targets.at(permute));
        break;
      case SoacKind::Reduce:
        reduce(b, soac, thunks);
        break;
      case SoacKind::Scan:
        scan(b, soac, thunks);
        break;
      case SoacKind::Filter:
        filter(b, soac, thunks);
        break;
      case SoacKind::Partition:
        partition(soac, thunks);
        break;
    }
  }

  void once(const Soac& soac, Instance& thunks) {
    evaluate(thunks, 0, 0, 0);
    for (size_t j = 0; j < soac.pull.size(); ++j) {
      store(j, 0, result(thunks, soac.effects.size() + j));
    }
  }

  void map(const Soac& soac, Instance& thunks, BindingRole role) {
    auto element = [&](int64_t i, int64_t s, int64_t p) {
      evaluate(thunks, i, s, p);
      for (size_t j = 0; j < soac.pull.size(); ++j) {
        store(j, i, result(thunks, soac.effects.size() + j));
      }
    };
    if (role == BindingRole::Epilogue) {
      for (int64_t s = 0; s < m_; ++s) element(s, 0, s);
    } else {
      forEachElement(soac, element);
    }
  }

  void permute(const Soac& soac, Instance& thunks, int64_t target) {
    const size_t destination = soac.effects.size() + (soac.where ? 1 : 0);
    for (size_t j = 0; j < soac.pull.size(); ++j) {
      const Result& r = results_.at(soac.results[j]);
      if (!r.memory) continue;
      if (!soac.fill.empty())
        for (int64_t e = 0; e < target; ++e) storeElement(r.type, r.memory, e, toRegister(soac.fill[j]));
      work_.bytesWritten += static_cast<uint64_t>((soac.fill.empty() ? n_ : target) * sizeOf(r.type));
    }
    forEachElement(soac, [&](int64_t i, int64_t s, int64_t p) {
      evaluate(thunks, i, s, p);
      if (soac.where && result(thunks, destination - 1).i == 0) return;
      const int64_t to = result(thunks, destination).i;
      if (to < 0 || to >= target) {
        // After a failed check the fallback need not be in range of an empty target.
        if (!log_.error) throw InternalError("permute: a destination is out of range");
        return;
      }
      for (size_t j = 0; j < soac.pull.size(); ++j) {
        const Result& r = results_.at(soac.results[j]);
        if (!r.memory) continue;
        const Register value = result(thunks, destination + 1 + j);
        if (!soac.writesInAnyOrder() && loadElement(r.type, r.memory, to).i > value.i) continue;
        storeElement(r.type, r.memory, to, value);
      }
    });
  }

  void reduce(uint32_t b, const Soac& soac, Instance& thunks) {
    Folder f = folder(b);
    std::vector<Register> values;
    auto fold = [&](const std::vector<Range>& pieces, int64_t position) {
      std::vector<Register> total = f.identity;
      for (const Range& piece : pieces) {
        pull(soac, thunks, piece, values);
        std::vector<Register> part = foldPiece(f, values, false);
        combine(f, total, part.data());
      }
      for (size_t j = 0; j < total.size(); ++j) store(j, position, total[j]);
    };
    if (soac.space.segmented()) {
      for (int64_t s = 0; s < m_; ++s) fold(pieceRanges(s), s);
    } else {
      fold(blockRanges(), 0);
    }
  }

  void scan(uint32_t b, const Soac& soac, Instance& thunks) {
    Folder f = folder(b);
    std::vector<Register> values;
    const size_t k = f.identity.size();
    auto scanPieces = [&](std::vector<Range> pieces) {
      if (soac.backward) std::reverse(pieces.begin(), pieces.end());
      std::vector<Register> carry = f.identity;
      for (const Range& piece : pieces) {
        pull(soac, thunks, piece, values);
        std::vector<Register> running = carry;
        for (int64_t e = 0; e < piece.end - piece.begin; ++e) {
          const int64_t i = soac.backward ? piece.end - 1 - e : piece.begin + e;
          const Register* value = &values[static_cast<size_t>(i - piece.begin) * k];
          if (!soac.inclusive)
            for (size_t j = 0; j < k; ++j) store(j, i, running[j]);
          combine(f, running, value);
          if (soac.inclusive)
            for (size_t j = 0; j < k; ++j) store(j, i, running[j]);
        }
        std::vector<Register> part = foldPiece(f, values, soac.backward);
        combine(f, carry, part.data());
      }
      return carry;
    };
    if (soac.space.segmented()) {
      for (int64_t s = 0; s < m_; ++s) scanPieces(pieceRanges(s));
      return;
    }
    std::vector<Register> total = scanPieces(blockRanges());
    for (size_t j = 0; j < k && soac.withTotal; ++j) store(j, n_, total[j]);
  }

  void filter(uint32_t b, const Soac& soac, Instance& thunks) {
    const KernelCode::Binding& binding = code_.bindings()[b];
    Instance late = instantiate(binding.late, countersOf(b) + binding.thunks.blockCount());
    const size_t where = soac.effects.size();
    int64_t count = 0;
    auto storeCount = [&](int64_t position) {
      Register r{};
      r.i = count;
      store(0, position, r);
    };
    auto element = [&](int64_t i, int64_t s, int64_t p) {
      evaluate(thunks, i, s, p);
      if (result(thunks, where).i == 0) return;
      evaluate(late, i, s, p);
      for (size_t j = 0; j < soac.pull.size(); ++j) store(1 + j, count, result(late, j));
      ++count;
    };
    if (!soac.space.segmented()) {
      forEachElement(soac, element);
      storeCount(0);
    }
    for (int64_t s = 0; s < m_ && soac.space.segmented(); ++s) {
      storeCount(s);
      const int64_t first = segmentStart(s), last = segmentStart(s + 1);
      for (int64_t i = first; i < last; ++i) element(i, s, i - first);
    }
    if (soac.space.segmented()) storeCount(m_);
    work_.survivors.push_back(static_cast<uint64_t>(count));
  }

  void partition(const Soac& soac, Instance& thunks) {
    const size_t where = soac.effects.size(), k = soac.pull.size();
    int64_t trues = 0, falses = 0;
    forEachElement(soac, [&](int64_t i, int64_t s, int64_t p) {
      evaluate(thunks, i, s, p);
      const bool chosen = result(thunks, where).i != 0;
      const int64_t position = chosen ? trues++ : falses++;
      for (size_t j = 0; j < k; ++j) {
        store(1 + j + (chosen ? 0 : k), position, result(thunks, where + 1 + j));
      }
    });
    Register r{};
    r.i = trues;
    store(0, 0, r);
  }

  const KernelCode& code_;
  const LaunchRequest& request_;
  const KernelEntry& entry_;
  const lcu::Kernel& kernel_;
  const KernelInfo& info_;
  LaunchWork& work_;
  const int64_t n_, m_;
  const int64_t* offsets_ = nullptr;
  int64_t keyBase_ = 0;
  ErrorLog log_;
  ExpressionCode::Trace* trace_ = nullptr;
  ExpressionCode::Progress* progress_ = nullptr;
  std::vector<uint64_t> ofCombine_;  ///< what operators enter: nobody asks
  std::unordered_map<VarId, const void*> arrays_;
  std::unordered_map<VarId, int64_t> sizes_;
  std::unordered_map<VarId, Register> scalars_;
  std::unordered_map<VarId, Result> results_;
  std::vector<const Result*> out_;  ///< of the binding under way
  std::vector<std::vector<std::byte>> temporaries_;
};

}  // namespace kelpie::runtime
