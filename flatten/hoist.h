// Hoisting: what is the same for all elements of an apply-to-each is computed before it. Core -> Core.
//
//   In:  a verified program and its analysis.
//   Out: an equivalent program in which no apply-to-each evaluates, at the level of its own lets, an
//   expression that
//        needs kernels and uses none of its element variables.
//
//   {let s = sum(r); t = s * x in t : x in r}      becomes      let s = sum(r) in {let t = s * x in t : x in
//   r}
//
// The first takes |r|^2 additions by NESL's own cost model (and did in every earlier implementation), the
// second |r|. Scalar operations and views stay inside, where they cost nothing and need no array; those that
// a hoisted expression uses go with it. Effects never move. Nothing is evaluated for no elements
// (language.md 4.6.5): an expression that can fail or recurse is moved under a test that there are some (and
// that all sequences of the apply-to-each are equally long, as it fails first otherwise):
//
//   let n = #r; c = n > 0; s = if c then g(r) else 0 in {... : x in r}
//
// and stays where it is if something before it, which would fail first, stays.
#pragma once

#include "flatten/analysis.h"
#include "ir/core.h"

namespace kelpie::flatten {

core::Program hoist(core::Program program, const Analysis& analysis);

}  // namespace kelpie::flatten
