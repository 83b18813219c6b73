// A hash table keyed by expression nodes, for passes over expression DAGs: open addressing, no allocation for
// each entry. Iteration is not offered on purpose: the order of addresses is not deterministic.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace kelpie::lcu {

template <typename Value>
class NodeMap {
 public:
  NodeMap() : slots_(32) {}

  /// The value of `key`, or null. The pointer is valid until the next insertion.
  Value* find(ExprRef key) {
    Slot& slot = locate(key);
    return slot.key ? &slot.value : nullptr;
  }
  const Value* find(ExprRef key) const { return const_cast<NodeMap*>(this)->find(key); }
  bool contains(ExprRef key) const { return find(key) != nullptr; }

  /// Inserts unless present; whether it was new.
  bool insert(ExprRef key, Value value) {
    if (contains(key)) return false;
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = locate(key);
    slot.key = key;
    slot.value = std::move(value);
    ++size_;
    return true;
  }
  /// The value of `key`, default-constructed first if absent. The reference is valid until the next
  /// insertion.
  Value& operator[](ExprRef key) {
    insert(key, Value());
    return *find(key);
  }
  size_t size() const { return size_; }

 private:
  struct Slot {
    ExprRef key = nullptr;
    Value value{};
  };
  /// Ids are dense in an arena, which makes them good hashes once spread by a multiplication.
  Slot& locate(ExprRef key) {
    const size_t mask = slots_.size() - 1;
    size_t at = (key->id * size_t{0x9E3779B97F4A7C15} >> 20) & mask;
    while (slots_[at].key && slots_[at].key != key) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (Slot& slot : old)
      if (slot.key) locate(slot.key) = std::move(slot);
  }
  std::vector<Slot> slots_;
  size_t size_ = 0;
};

struct NoValue {};
using NodeSet = NodeMap<NoValue>;

}  // namespace kelpie::lcu
