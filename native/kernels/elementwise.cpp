// Sums and products of arrays of one shape.        Derivation: docs/derivations/elementwise.md
#include "elementwise.hpp"

#include "map.hpp"

namespace chainrule::CHAINRULE_LEVEL {
namespace {

INLINE Vec add(Vec a, Vec b) { return a + b; }

INLINE Vec mul(Vec a, Vec b) { return a * b; }

}  // namespace

const Elementwise elementwise = {map<add>, map<mul>};

}  // namespace chainrule::CHAINRULE_LEVEL
