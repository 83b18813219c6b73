// Dense columns <-> values of a plan.
//
// Globals and results stay resident: columns that were uploaded, or downloaded as results, keep their device
// buffers for as long as somebody holds the columns' storage, so a value passed from form to form through a
// session cell does not travel again. Where the host can address device memory, columns share theirs.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/data.h"
#include "runtime/run_context.h"

namespace kelpie::runtime {

/// Device copies of columns, by their storage.
class ResidentColumns {
 public:
  DeviceRef find(const void* storage) const;
  void add(const std::shared_ptr<const void>& storage, const DeviceRef& value);
  void forgetDead();
  /// Those that no run uses at the moment: they are uploaded again where they are needed.
  void forgetUnused();
  void clear() { residents_.clear(); }

 private:
  struct Resident {
    std::weak_ptr<const void> storage;
    DeviceRef value;
  };
  std::unordered_map<const void*, Resident> residents_;
};

class ColumnTransfer {
 public:
  ColumnTransfer(RunContext& context, ResidentColumns& residents)
      : context_(context), residents_(residents) {}

  /// Appends the values of a column of length 1 (ir/lcu.h, Service).
  void fromColumn(const Column& c, std::vector<PlanValue>& out) { fromColumn(c, true, out); }
  /// The values of a global, one for each of its variables.
  std::vector<PlanValue> fromGlobal(const Columns& columns, const lcu::GlobalInput& global);
  /// Columns of length 1.
  Columns toColumns(const Row& types, const std::vector<PlanValue>& values);
  DeviceRef constant(const Column& c) { return upload(c.bytes, c.type.scalar(), "a constant"); }

 private:
  template <typename T>
  DeviceRef upload(const std::shared_ptr<const std::vector<T>>& storage, ScalarType type,
                   const std::string& what);
  void fromColumn(const Column& c, bool top, std::vector<PlanValue>& out);
  void fromGlobal(const Column& c, bool top, const std::vector<lcu::VarId>& vars, size_t& next,
                  std::vector<PlanValue>& out);
  Column toColumn(const CoreType& type, int64_t length, bool top, const std::vector<PlanValue>& values,
                  size_t& next);

  RunContext& context_;
  ResidentColumns& residents_;
};

}  // namespace kelpie::runtime
