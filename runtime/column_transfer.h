// Dense columns <-> values of a plan.
//
// Globals and results stay resident: columns that were uploaded, or are results, keep their device buffers
// for as long as somebody holds the columns' arrays, so a value passed from form to form through a session
// cell does not travel again. A result comes to the host only as far as somebody looks at it
// (ir/shared_array.h). Where the host can address device memory, columns and buffers share theirs.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/data.h"
#include "ir/shared_array.h"
#include "runtime/run_context.h"

namespace kelpie::runtime {

/// Device copies of the arrays of columns; of results the device may have the only one.
class ResidentColumns {
 public:
  ResidentColumns() = default;
  ResidentColumns(const ResidentColumns&) = delete;
  ResidentColumns& operator=(const ResidentColumns&) = delete;
  ~ResidentColumns() { settle(); }

  DeviceRef find(const ArrayBytes* array) const;
  void add(const std::shared_ptr<ArrayBytes>& array, const DeviceRef& value);
  void forgetDead();
  /// Those that no run uses at the moment: they are uploaded again where they are needed. What is nowhere
  /// else is brought to the host, as far as it fits into `room` bytes.
  void forgetUnused(size_t room);
  /// All of them. The target is about to end, arrays may stay; what cannot be brought is lost.
  void settle();

 private:
  struct Resident {
    std::weak_ptr<ArrayBytes> array;
    DeviceRef value;
  };
  std::unordered_map<const ArrayBytes*, Resident> residents_;
};

class ColumnTransfer {
 public:
  ColumnTransfer(RunContext& context, ResidentColumns& residents)
      : context_(context), residents_(residents) {}

  /// Appends the values of a column of length 1 (ir/lcu.h, Service).
  void fromColumn(const Column& c, std::vector<PlanValue>& out) { fromColumn(c, true, out); }
  /// The values of a global, one for each of its variables.
  std::vector<PlanValue> fromGlobal(const Columns& columns, const lcu::GlobalInput& global);
  /// Columns of length 1. Afterwards the host knows of every error.
  Columns toColumns(const Row& types, const std::vector<PlanValue>& values);
  /// To be called when columns that were made in the middle of a run are not needed any more.
  void forgetDead() { residents_.forgetDead(); }
  /// A constant of scalars; `isShort`: its elements are positions, which may be stored in 32 bits.
  DeviceRef constant(const Column& c, bool isShort);

 private:
  DeviceRef put(const void* elements, ScalarType type, int64_t count, const std::string& what);
  template <typename T>
  DeviceRef upload(const SharedArray<T>& array, ScalarType type, const std::string& what);
  /// The first `count` elements, of `type`, of a device array; they stay there until they are looked at.
  template <typename T>
  SharedArray<T> arrayOf(const DeviceRef& value, ScalarType type, size_t count);
  DeviceRef shortened(const DeviceRef& offsets, int64_t length, int64_t inside);
  void fromColumn(const Column& c, bool top, std::vector<PlanValue>& out);
  void fromGlobal(const Column& c, bool top, const std::vector<lcu::VarId>& vars, size_t& next,
                  std::vector<PlanValue>& out);
  Column toColumn(const CoreType& type, int64_t length, bool top, const std::vector<PlanValue>& values,
                  size_t& next);

  RunContext& context_;
  ResidentColumns& residents_;
};

}  // namespace kelpie::runtime
