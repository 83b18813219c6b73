// The fusion rules on SOACs, one function a rule, named as in the paper (its figure 5 and section 4.2).
//
// Vertical rules take a producer and a consumer that reads it element for element and give the SOAC that does
// both. They substitute: where the consumer's thunks have Load(a, %i) of a result of the producer, the pull
// of that result is put. Horizontal rules take two SOACs over the same space. All hold unchanged for
// segmented spaces: the thunks then have %s and %p as well, and both sides the same segments.
//
// What the rules keep: the values, and every Check. A check that the producer made for each element is made
// for the same elements by the result; where substitution alone would lose it, it becomes an effect.
#pragma once

#include <string>
#include <utility>

#include "ir/lcu.h"

namespace kelpie::fusion {

using lcu::Soac;

// ---- vertical: a map's consumer computes the elements itself. The map goes if nobody else reads it.
Soac mapMap(const Soac& map, const Soac& consumer, lcu::Program& program);
Soac mapReduce(const Soac& map, const Soac& consumer, lcu::Program& program);
Soac mapScan(const Soac& map, const Soac& consumer, lcu::Program& program);
Soac mapFilter(const Soac& map, const Soac& consumer, lcu::Program& program);
Soac mapPermute(const Soac& map, const Soac& consumer, lcu::Program& program);
Soac mapPartition(const Soac& map, const Soac& consumer, lcu::Program& program);

// ---- vertical: a consumer of survivors runs over all elements, as far as the filter lets them through.

/// The map's values become further results of the filter, which takes the map's place.
Soac filterMap(const Soac& filter, const Soac& map, lcu::Program& program);
/// Elements that the filter drops contribute the identity.
Soac filterReduce(const Soac& filter, const Soac& reduce, lcu::Program& program);
/// Both conditions at once.
Soac filterFilter(const Soac& filter, const Soac& second, lcu::Program& program);
/// A scan over all elements, to which dropped ones contribute the identity, and the filter with the scan's
/// survivors among its results: {scan, filter}, in this order.
std::pair<Soac, Soac> filterScan(const Soac& filter, const Soac& scan, lcu::Program& program);
/// A filter of which only the count is wanted is a reduction; a segmented one gives the number of survivors
/// of each segment, in place of their offsets.
Soac filterCount(const Soac& filter, lcu::Program& program);

// ---- once
Soac onceOnce(const Soac& producer, const Soac& consumer, lcu::Program& program);

// ---- horizontal: one SOAC for two over the same space that do not read each other.
Soac mapWithMap(const Soac& a, const Soac& b, lcu::Program& program);
Soac reduceWithReduce(const Soac& a, const Soac& b, lcu::Program& program);
Soac scanWithScan(const Soac& a, const Soac& b, lcu::Program& program);
Soac onceWithOnce(const Soac& a, const Soac& b, lcu::Program& program);

/// The name of the rule that fuses a producer into a consumer ("MAP-REDUCE", "SEG-FILTER-REDUCE"), or that
/// lets them share a kernel ("REDUCE-ONCE", "SCAN-MAP"); for pairs that do not read each other, "MAP+REDUCE".
std::string ruleName(const Soac& producer, const Soac& consumer, bool vertical);

/// Whether evaluating `e` for elements of the space that would not need it is safe and cheap.
bool isHarmless(lcu::ExprRef e, const lcu::Space& space, const lcu::Program& program);

/// Whether `e` is evaluated whenever one of the roots is (it is not merely inside a branch or a loop).
bool alwaysEvaluates(const std::vector<lcu::ExprRef>& roots, lcu::ExprRef e);

}  // namespace kelpie::fusion
