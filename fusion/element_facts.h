// What the cost model asks about the operations of thunks, without regard to a target: whether they depend on
// the element, how many bits their integers take, how many of these anybody reads, how often they happen.
//
// In:  the thunks of a kernel's SOAC, and the bits of arrays that other kernels made.
// Out: facts by node.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/lcu.h"

namespace kelpie::fusion {

/// About how many bits the integers of some arrays take.
using ArrayBits = std::unordered_map<lcu::VarId, double>;

/// What the operations of some thunks depend on.
class ElementFacts {
 public:
  explicit ElementFacts(const std::vector<lcu::ExprRef>& thunks, const ArrayBits& arrays = {});
  /// With the element, or from one iteration to the next.
  bool varies(lcu::ExprRef e) const { return of(e).varies || of(e).inLoop; }
  bool inLoop(lcu::ExprRef e) const { return of(e).inLoop; }
  /// About how many bits an integer takes: what is loaded, and places, are taken to be as large as arrays.
  double bits(lcu::ExprRef e) const { return of(e).bits; }
  /// How many bits an integer takes for certain, if it cannot be negative; 64: it is not known.
  double sureBits(lcu::ExprRef e) const { return of(e).sureBits; }
  /// How many lower bits of it anything reads.
  double neededBits(lcu::ExprRef e) const { return of(e).neededBits; }
  /// A quotient or remainder, where the other of the same integers is computed, too.
  bool divided(lcu::ExprRef e) const { return of(e).divided; }
  /// How often a load is made, about: what follows `and` or `or`, and nothing else needs, half of the time.
  double needed(lcu::ExprRef load) const { return of(load).needed; }

 private:
  struct Facts {
    bool varies = false, inLoop = false, divided = false;
    double bits = 0, sureBits = 64, neededBits = 0, needed = 1;
  };
  void findNeededBits(const std::vector<lcu::ExprRef>& thunks);
  const Facts& of(lcu::ExprRef e) const { return facts_.at(e); }
  std::unordered_map<lcu::ExprRef, Facts> facts_;
};

}  // namespace kelpie::fusion
