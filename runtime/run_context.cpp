#include "runtime/run_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "codegen/short_arrays.h"

namespace kelpie::runtime {

namespace {

/// Values that one wait brings at most.
constexpr size_t kMostWanted = 16;

std::string withPayloads(const std::string& text, int64_t payload0, int64_t payload1) {
  std::string result;
  for (size_t k = 0; k < text.size(); ++k) {
    const bool payload = text[k] == '{' && k + 2 < text.size() && text[k + 2] == '}' &&
                         (text[k + 1] == '0' || text[k + 1] == '1');
    if (!payload) {
      result += text[k];
      continue;
    }
    result += std::to_string(text[k + 1] == '0' ? payload0 : payload1);
    k += 2;
  }
  return result;
}

std::string readableBytes(size_t bytes) {
  if (bytes < 10000) return fmt::format("{} bytes", bytes);
  if (bytes < 10000000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

void RunContext::stopAt(lcu::SiteId site, int64_t payload0, int64_t payload1) const {
  if (site == codegen::kTooLongSite) throw PositionsTooLong{};
  const auto& s = program.sites.at(site < program.sites.size() ? site : 0);
  stop(s.span, withPayloads(s.message, payload0, payload1));
}

void RunContext::synchronise() { read({}); }

void RunContext::download(void* to, DevicePointer from, size_t bytes) {
  statistics.downloadedBytes += bytes;
  check(target.download(to, from, bytes));
}

namespace {

/// The last element of an array that has one more than its counter says.
HostRead totalOf(const DeviceValue& v, void* to) {
  const DeviceValue& counter = *v.counter;
  return {to, v.buffer->pointer(), static_cast<size_t>(sizeOf(v.type)),
          static_cast<std::byte*>(counter.buffer->pointer()) +
              static_cast<size_t>(v.counterPosition) * sizeof(int64_t),
          v.capacity - 1};
}

}  // namespace

void RunContext::read(const std::vector<Wanted>& wanted) {
  if (settle) settle();
  if (wanted.empty() && !pending) return;
  ++statistics.synchronisations;
  std::array<std::array<std::byte, 8>, kMostWanted> bytes{};
  std::array<HostRead, kMostWanted> reads;
  for (size_t k = 0; k < wanted.size(); ++k) {
    const DeviceValue& v = *wanted[k].value;
    const auto width = static_cast<size_t>(sizeOf(v.type));
    auto* from =
        static_cast<std::byte*>(v.buffer->pointer()) + static_cast<size_t>(wanted[k].position) * width;
    reads[k] = {bytes[k].data(), from, width};
    if (wanted[k].position == Wanted::kTotal) reads[k] = totalOf(v, bytes[k].data());
    statistics.downloadedBytes += width;
  }
  std::optional<DeviceError> error;
  const auto begin = std::chrono::steady_clock::now();
  const Failure failure = target.read(std::span(reads).first(wanted.size()), error);
  statistics.waitedSeconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  check(failure);
  if (error) stopAt(error->site, error->payload0, error->payload1);
  pending = false;
  const auto remember = [&](size_t k, int64_t position) {
    wanted[k].value->remember(position, loadElement(wanted[k].value->type, bytes[k].data(), 0));
  };
  for (size_t k = 0; k < wanted.size(); ++k)
    if (wanted[k].position != Wanted::kTotal) remember(k, wanted[k].position);
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (wanted[k].position != Wanted::kTotal) continue;
    const DeviceValue& v = *wanted[k].value;
    if (const Register* others = v.counter->known(v.counterPosition)) remember(k, others->i);
  }
}

Register RunContext::fetch(DeviceValue& v, int64_t position) {
  if (v.isGoneThrough())
    if (const auto element = fetchAround(v, position)) return *element;
  if (const Register* known = v.known(position)) return *known;
  ++statistics.fetches;
  wanted_ = {{&v, position}};
  if (alsoWanted) alsoWanted(wanted_);
  wanted_.resize(std::min(wanted_.size(), kMostWanted));
  read(wanted_);
  return *v.known(position);
}

std::optional<Register> RunContext::fetchAround(DeviceValue& v, int64_t position) {
  if (target.hostAddressable()) {
    synchronise();
    return loadElement(v.type, v.buffer->pointer(), position);
  }
  HostCopy& copy = v.copy();
  if (!copy.find(position)) {
    if (const Register* known = v.known(position)) return *known;
    const HostCopy::Piece piece = copy.next(position);
    if (!piece.to) return std::nullopt;
    ++statistics.fetches;
    if (!pending) ++statistics.synchronisations;
    synchronise();
    download(piece.to, static_cast<std::byte*>(v.buffer->pointer()) + piece.offset, piece.bytes);
    copy.arrived(piece);
  }
  return loadElement(v.type, copy.find(position), 0);
}

int64_t RunContext::countOf(DeviceValue& v) {
  if (!v.count) {
    const int64_t counted = fetch(*v.counter, v.counterPosition).i;
    v.count = v.complement ? v.capacity - counted : counted + (v.withTotal ? 1 : 0);
    v.counter.reset();
    shrink(v);
  }
  return *v.count;
}

void RunContext::shrink(DeviceValue& v) {
  constexpr size_t kWorthIt = size_t{1} << 16;
  if (v.buffer->whole()) return;  // the other parts keep the memory
  if (*v.count == 0) {
    if (BufferRef empty = pool.empty()) {
      v.buffer = std::move(empty);
      v.capacity = 0;
    }
    return;
  }
  const auto used = static_cast<size_t>(*v.count) * static_cast<size_t>(sizeOf(v.type));
  if (v.buffer->bytes() < kWorthIt || used * 2 > v.buffer->bytes()) return;
  BufferRef smaller = pool.allocate(used);
  if (!smaller) return;
  pending = true;
  check(target.copy(smaller->pointer(), v.buffer->pointer(), used));
  v.buffer = smaller;
  v.capacity = *v.count;
}

void RunContext::outOfMemory(const std::string& what) {
  synchronise();  // an error on the device came earlier
  stop(span, fmt::format("out of memory: {}; {} of {} are in use", what, readableBytes(pool.bytesInUse()),
                         readableBytes(target.memoryLimit())));
}

void RunContext::giveBackUnused() {
  if (settle) settle();
  if (forget) forget();
  pool.trim();
  target.giveBackUnused();
}

BufferRef RunContext::allocateBytes(size_t bytes) const {
  BufferRef buffer = pool.allocate(bytes);
  if (!buffer && settle) {
    settle();  // what was kept to come back to is free now
    buffer = pool.allocate(bytes);
  }
  if (!buffer && forget) {
    forget();
    buffer = pool.allocate(bytes);
  }
  return buffer;
}

DeviceRef RunContext::widened(const DeviceRef& array, ScalarType type) {
  if (array->type == type) return array;
  const int64_t count = countOf(*array);
  DeviceRef wide = allocate(type, count, "an array in 64 bits");
  pending = true;
  if (count > 0) check(target.widen(wide->buffer->pointer(), array->buffer->pointer(), count));
  return wide;
}

DeviceRef RunContext::allocate(ScalarType type, int64_t count, const std::string& what) {
  if (count < 0) {
    synchronise();  // a check of the device may have failed, and this be its fallback
    throw InternalError("a negative number of elements for " + what);
  }
  const auto width = static_cast<uint64_t>(sizeOf(type));
  const bool overflow = static_cast<uint64_t>(count) > std::numeric_limits<size_t>::max() / 4 / width;
  const size_t bytes = overflow ? 0 : static_cast<size_t>(count) * width;
  BufferRef buffer = overflow ? nullptr : count == 0 ? pool.empty() : allocateBytes(bytes);
  if (!buffer) outOfMemory(fmt::format("{} needs {} elements of {} bytes", what, count, width));
  auto v = std::make_shared<DeviceValue>();
  v->buffer = std::move(buffer);
  v->type = type;
  v->capacity = count;
  v->count = count;
  return v;
}

}  // namespace kelpie::runtime
