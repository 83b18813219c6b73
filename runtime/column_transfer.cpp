#include "runtime/column_transfer.h"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <type_traits>

#include "codegen/short_arrays.h"
#include "ir/diagnostic.h"

namespace kelpie::runtime {

DeviceRef ResidentColumns::find(const ArrayBytes* array) const {
  const auto it = residents_.find(array);
  return it == residents_.end() || it->second.array.expired() ? nullptr : it->second.value;
}

void ResidentColumns::add(const std::shared_ptr<ArrayBytes>& array, const DeviceRef& value) {
  residents_[array.get()] = {array, value};
}

void ResidentColumns::forgetDead() {
  std::erase_if(residents_, [](const auto& entry) { return entry.second.array.expired(); });
}

void ResidentColumns::forgetUnused(size_t room) {
  forgetDead();
  // Several arrays may have one value, which is unused if nobody else has it.
  const auto onlyThere = [](const ArrayBytes& array) { return !array.isSettled(); };
  std::unordered_map<DeviceRef::element_type*, long> holders;
  for (const auto& [key, resident] : residents_)
    holders[resident.value.get()] += onlyThere(*key) ? 2 : 1;  // its source has the value, too
  std::erase_if(residents_, [&](const auto& entry) {
    const auto& [key, resident] = entry;
    if (resident.value.use_count() > holders[resident.value.get()]) return false;
    const auto array = resident.array.lock();
    if (!array || array->isSettled()) return true;
    if (array->size() > room) return false;
    room -= array->size();
    array->settle();
    return true;
  });
}

void ResidentColumns::settle() {
  for (const auto& [key, resident] : residents_) {
    const auto array = resident.array.lock();
    if (!array) continue;
    try {
      array->settle();
    } catch (const std::exception&) {
      array->lose();
    }
  }
  residents_.clear();
}

namespace {

/// The elements of a device array; of a short one as Int64. Contents never change once written; their buffer
/// may (device_value.h).
class DeviceElements final : public ElementSource {
 public:
  DeviceElements(Target& target, DeviceRef value, bool isShort)
      : target_(target), value_(std::move(value)), isShort_(isShort) {
    if (target.hostAddressable()) inPlace_ = value_->buffer;
  }
  void read(std::byte* to, size_t begin, size_t size) override {
    if (!isShort_) return download(to, begin, size);
    const size_t first = begin / sizeof(int64_t);
    const size_t count = (begin + size + sizeof(int64_t) - 1) / sizeof(int64_t) - first;
    std::vector<int32_t> elements(count);
    download(reinterpret_cast<std::byte*>(elements.data()), first * sizeof(int32_t), count * sizeof(int32_t));
    const std::vector<int64_t> wide(elements.begin(), elements.end());
    std::memcpy(to, reinterpret_cast<const std::byte*>(wide.data()) + begin % sizeof(int64_t), size);
  }
  const std::byte* inPlace() const override {
    return inPlace_ ? static_cast<const std::byte*>(inPlace_->pointer()) : nullptr;
  }

 private:
  void download(std::byte* to, size_t begin, size_t size) {
    auto* from = static_cast<std::byte*>(value_->buffer->pointer()) + begin;
    if (const Failure failure = target_.download(to, from, size)) throw ElementsLost(*failure);
  }

  Target& target_;
  DeviceRef value_;
  bool isShort_;
  BufferRef inPlace_;
};

/// How many values of a plan a column of this type is.
size_t componentsOf(const CoreType& type) {
  if (type.isScalar()) return 1;
  size_t count = 1;
  for (const CoreType& e : type.elements()) count += componentsOf(e);
  return count;
}
}  // namespace

DeviceRef ColumnTransfer::put(const void* elements, ScalarType type, int64_t count, const std::string& what) {
  const size_t bytes = static_cast<size_t>(count) * static_cast<size_t>(sizeOf(type));
  DeviceRef v = context_.allocate(type, count, what);
  context_.check(context_.target.upload(v->buffer->pointer(), elements, bytes));
  context_.statistics.uploadedBytes += bytes;
  return v;
}

template <typename T>
DeviceRef ColumnTransfer::upload(const SharedArray<T>& array, ScalarType type, const std::string& what) {
  if (DeviceRef resident = residents_.find(array.bytes().get())) return resident;
  const size_t bytes = array.size() * sizeof(T);
  const auto count = static_cast<int64_t>(bytes / static_cast<size_t>(sizeOf(type)));
  if (context_.target.hostAddressable() && bytes >= 16) {
    array.bytes()->settle();  // its memory may be another target's, which ends before this one
    auto v = std::make_shared<DeviceValue>();
    v->buffer = std::make_shared<const Buffer>(array.bytes(), array.data(), bytes);
    v->type = type;
    v->capacity = count;
    v->count = count;
    return v;  // shares the memory: nothing to remember
  }
  DeviceRef v;
  if constexpr (std::is_same_v<T, int64_t>) {  // offsets
    if (count > 0 && context_.target.storesShort() && array.back() <= codegen::kLongestShort)
      v = put(std::vector<int32_t>(array.begin(), array.end()).data(), ScalarType::Int32, count, what);
  }
  if (!v) v = put(array.data(), type, count, what);
  if (array.bytes()) residents_.add(array.bytes(), v);
  return v;
}

DeviceRef ColumnTransfer::constant(const Column& c, bool isShort) {
  if (!isShort || !context_.target.storesShort()) return upload(c.bytes, c.type.scalar(), "a constant");
  if (DeviceRef resident = residents_.find(c.bytes.bytes().get())) return resident;
  std::vector<int32_t> elements;
  for (int64_t k = 0; k < c.length(); ++k) elements.push_back(static_cast<int32_t>(c.at(k).i));
  DeviceRef v = put(elements.data(), ScalarType::Int32, c.length(), "a constant");
  if (c.bytes.bytes()) residents_.add(c.bytes.bytes(), v);
  return v;
}

template <typename T>
SharedArray<T> ColumnTransfer::arrayOf(const DeviceRef& value, ScalarType type, size_t count) {
  if (count == 0) return std::vector<T>{};
  context_.countOf(
      *value);  // known by now: what is kept for long should not be kept in a buffer that is too large
  SharedArray<T> array(std::make_unique<DeviceElements>(context_.target, value, value->type != type), count);
  residents_.add(array.bytes(), value);
  return array;
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
    out.push_back({toRegister(Scalar::ofInt(ScalarType::Int64, c.offsets.back())), nullptr});
  } else {
    out.push_back({{}, upload(c.offsets, ScalarType::Int64, "a value")});
  }
  for (const Column& e : c.elements) fromColumn(e, false, out);
}

/// Offsets of `length` sequences, `inside` elements in all, as other programs expect them.
DeviceRef ColumnTransfer::shortened(const DeviceRef& offsets, int64_t length, int64_t inside) {
  if (!context_.target.storesShort() || offsets->type == ScalarType::Int32 || length == 0 ||
      inside > codegen::kLongestShort)
    return offsets;
  DeviceRef result = context_.allocate(ScalarType::Int32, length + 1, "offsets of a result");
  context_.pending = true;
  context_.check(context_.target.shorten(result->buffer->pointer(), offsets->buffer->pointer(), length + 1));
  return result;
}

/// The column that starts at `next`, `length` values long; `next` moves past it.
Column ColumnTransfer::toColumn(const CoreType& type, int64_t length, bool top,
                                const std::vector<PlanValue>& values, size_t& next) {
  const PlanValue& v = values.at(next++);
  if (type.isScalar()) {
    if (top && !v.device) return scalarColumn(type.scalar(), {toScalar(type.scalar(), v.scalar)});
    if (top) return scalarColumn(type.scalar(), {toScalar(type.scalar(), context_.fetch(*v.device, 0))});
    Column c;
    c.type = type;
    c.bytes =
        arrayOf<std::byte>(v.device, type.scalar(), static_cast<size_t>(length * sizeOf(type.scalar())));
    return c;
  }
  // Of the positions of inner sequences the host needs the last one.
  int64_t inside = 0;
  SharedArray<int64_t> offsets;
  if (top) {
    inside = v.device ? context_.fetch(*v.device, 0).i : v.scalar.i;
    offsets = std::vector<int64_t>{0, inside};
  } else {
    if (length > 0) inside = context_.fetch(*v.device, length).i;
    offsets = arrayOf<int64_t>(shortened(v.device, length, inside), ScalarType::Int64,
                               static_cast<size_t>(length + 1));
  }
  Column c;
  c.type = type;
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
    const int64_t each = c.offsets.size() > 1 ? c.offsets[1] : 0;
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
