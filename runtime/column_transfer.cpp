#include "runtime/column_transfer.h"

#include <fmt/format.h>

#include <new>

#include "ir/diagnostic.h"

namespace kelpie::runtime {

DeviceRef ResidentColumns::find(const void* storage) const {
  const auto it = residents_.find(storage);
  return it == residents_.end() || it->second.storage.expired() ? nullptr : it->second.value;
}

void ResidentColumns::add(const std::shared_ptr<const void>& storage, const DeviceRef& value) {
  residents_[storage.get()] = {storage, value};
}

void ResidentColumns::forgetDead() {
  std::erase_if(residents_, [](const auto& entry) { return entry.second.storage.expired(); });
}

void ResidentColumns::forgetUnused() {
  std::erase_if(residents_, [](const auto& entry) { return entry.second.value.use_count() == 1; });
}

namespace {
/// Memory of the host for a value.
template <typename T>
std::vector<T> hostMemory(RunContext& context, size_t count) {
  try {
    return std::vector<T>(count);
  } catch (const std::exception&) {  // bad_alloc, or length_error
    context.stop(context.span,
                 fmt::format("out of memory: {} bytes of the host for a value", count * sizeof(T)));
  }
}

/// How many values of a plan a column of this type is.
size_t componentsOf(const CoreType& type) {
  if (type.isScalar()) return 1;
  size_t count = 1;
  for (const CoreType& e : type.elements()) count += componentsOf(e);
  return count;
}
}  // namespace

template <typename T>
DeviceRef ColumnTransfer::upload(const std::shared_ptr<const std::vector<T>>& storage, ScalarType type,
                                 const std::string& what) {
  static const auto kNothing = std::make_shared<const std::vector<T>>();
  const auto& data = storage ? storage : kNothing;
  if (DeviceRef resident = residents_.find(data.get())) return resident;
  const size_t bytes = data->size() * sizeof(T);
  const auto count = static_cast<int64_t>(bytes / static_cast<size_t>(sizeOf(type)));
  DeviceRef v;
  if (context_.target.hostAddressable() && bytes >= 16) {
    v = std::make_shared<DeviceValue>();
    v->buffer = std::make_shared<const Buffer>(data, data->data(), bytes);
    v->type = type;
    v->capacity = count;
    v->count = count;
    return v;  // shares the memory: nothing to remember
  }
  v = context_.allocate(type, count, what);
  context_.check(context_.target.upload(v->buffer->pointer(), data->data(), bytes));
  context_.statistics.uploadedBytes += bytes;
  if (data == storage) residents_.add(storage, v);
  return v;
}

/// Appends the values of one instance of a column (ir/lcu.h, Service).
void ColumnTransfer::fromColumn(const Column& c, bool top, std::vector<PlanValue>& out) {
  if (c.type.isScalar()) {
    if (top) {
      out.push_back({toRegister(c.at(0)), nullptr});
    } else {
      out.push_back({{}, upload(c.bytes, c.type.scalar(), "a value")});
    }
    return;
  }
  if (top) {
    out.push_back({toRegister(Scalar::ofInt(ScalarType::Int64, c.offsets->back())), nullptr});
  } else {
    out.push_back({{}, upload(c.offsets, ScalarType::Int64, "a value")});
  }
  for (const Column& e : c.elements) fromColumn(e, false, out);
}

/// The column that starts at `next`, `length` values long; `next` moves past it.
Column ColumnTransfer::toColumn(const CoreType& type, int64_t length, bool top,
                                const std::vector<PlanValue>& values, size_t& next) {
  const PlanValue& v = values.at(next++);
  if (type.isScalar()) {
    if (top && !v.device) return scalarColumn(type.scalar(), {toScalar(type.scalar(), v.scalar)});
    if (top) return scalarColumn(type.scalar(), {toScalar(type.scalar(), context_.fetch(*v.device, 0))});
    auto bytes = hostMemory<std::byte>(context_, static_cast<size_t>(length * sizeOf(type.scalar())));
    context_.download(bytes.data(), v.device->buffer->pointer(), bytes.size());
    Column c = scalarColumn(type.scalar(), std::move(bytes));
    if (!context_.target.hostAddressable() && c.bytes) residents_.add(c.bytes, v.device);
    return c;
  }
  std::shared_ptr<const std::vector<int64_t>> offsets;
  if (top) {
    const int64_t count = v.device ? context_.fetch(*v.device, 0).i : v.scalar.i;
    offsets = std::make_shared<const std::vector<int64_t>>(std::vector<int64_t>{0, count});
  } else {
    auto data = std::make_shared<std::vector<int64_t>>(
        hostMemory<int64_t>(context_, static_cast<size_t>(length + 1)));
    context_.download(data->data(), v.device->buffer->pointer(), data->size() * sizeof(int64_t));
    offsets = std::move(data);
    if (!context_.target.hostAddressable()) residents_.add(offsets, v.device);
  }
  Column c;
  c.type = type;
  const int64_t inside = offsets->back();
  c.offsets = std::move(offsets);
  for (const CoreType& e : type.elements()) c.elements.push_back(toColumn(e, inside, false, values, next));
  return c;
}
Columns ColumnTransfer::toColumns(const Row& types, const std::vector<PlanValue>& values) {
  Columns columns;
  size_t next = 0;
  // One wait for all scalars on the device, which is one for what the arrays contain, too.
  for (size_t k = 0, place = 0; k < types.size(); place += componentsOf(types[k++]))
    if (values.at(place).device) context_.fetch(*values[place].device, 0);
  context_.synchronise();
  for (const CoreType& t : types) columns.push_back(toColumn(t, 1, true, values, next));
  return columns;
}

/// As fromColumn, but with one length for the offsets where the variable is a host scalar
/// (lcu::GlobalInput).
void ColumnTransfer::fromGlobal(const Column& c, bool top, const std::vector<lcu::VarId>& vars, size_t& next,
                                std::vector<PlanValue>& out) {
  const lcu::VarId var = vars.at(next++);
  if (top || c.type.isScalar() || context_.program.vars[var].kind == lcu::VarKind::Array) {
    Column own = c;
    own.elements.clear();
    fromColumn(own, top, out);
  } else {
    const int64_t each = c.offsets->size() > 1 ? c.offsets->at(1) : 0;
    out.push_back({toRegister(Scalar::ofInt(ScalarType::Int64, each)), nullptr});
  }
  for (const Column& e : c.elements) fromGlobal(e, false, vars, next, out);
}

std::vector<PlanValue> ColumnTransfer::fromGlobal(const Columns& columns, const lcu::GlobalInput& global) {
  std::vector<PlanValue> values;
  size_t next = 0;
  for (const Column& c : columns) fromGlobal(c, true, global.vars, next, values);
  if (values.size() != global.vars.size()) throw InternalError("a global has another number of columns");
  return values;
}

}  // namespace kelpie::runtime
