// Sums and products of arrays of one shape, forward and backward [EL.1] [EL.3].
// Derivation: docs/derivations/elementwise.md
#include "ops/elementwise.hpp"

#include "simd/map.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

INLINE Vec add(Vec a, Vec b) { return a + b; }

INLINE Vec mul(Vec a, Vec b) { return a * b; }

}  // namespace

const Elementwise elementwise = {map<add>, map<mul>};

}  // namespace chainrule::CHAINRULE_ISA
