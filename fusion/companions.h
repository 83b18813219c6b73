// Which launches of a block a map may share with: where one stays anyway, storing the map costs none of its
// own (recomputation.h).
//
//   at = {below(q, n) : q in qs};                      over qs, stays
//   wide = {if even(q) then 1 else 0 : q in qs};       over qs: a companion of `at`
//   r = {{i < a + w : i in is} : a in at; w in wide}
//
// Companions run over the same elements, and neither needs what the other makes but at its own element; nor
// is a companion anything that the map itself needs, as that may be there for the map alone.
//
// In: λcu before fusion, one SOAC a kernel, by pointers that must stay valid.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "ir/lcu.h"

namespace kelpie::fusion {

class Companions {
 public:
  /// Adds the launches of a block, without those of blocks in it.
  void add(const lcu::Program& program, const lcu::Block& block);
  /// Whether a map over no segments has a companion that `stays`.
  bool any(const lcu::Soac& map, const std::function<bool(const lcu::Soac&)>& stays) const;

 private:
  /// A set of statements of a block, a bit for each.
  using Statements = std::vector<uint64_t>;
  struct BlockOrder {
    std::vector<const lcu::Soac*> soacs;  ///< by statement; null if it is no launch
    std::vector<Statements> needed;       ///< all that a statement needs
    std::vector<Statements> finished;     ///< ... and that no kernel with it can make
    std::map<lcu::ExprRef, std::vector<size_t>> byExtent;
  };
  struct Place {
    const BlockOrder* block;
    size_t statement;
  };
  std::deque<BlockOrder> blocks_;
  std::map<const lcu::Soac*, Place> places_;
};

/// Whether a load of a SOAC is element %i of an array over the same elements.
bool isPointwise(const lcu::Program& program, lcu::ExprRef load, const lcu::Soac& soac);

}  // namespace kelpie::fusion
