// Sums and products of arrays of one shape, forward and backward [EL.1] [EL.3].
// Derivation: docs/derivations/elementwise.md
#include "ops/elementwise.hpp"

#include "simd/map.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

INLINE Vec add(Vec a, Vec b) { return a + b; }

INLINE Vec mul(Vec a, Vec b) { return a * b; }

void clear_large(float* x_n, size_t n) {
    const size_t ahead = -(reinterpret_cast<uintptr_t>(x_n) / sizeof(float)) % LANES;  // elements before the first whole line
    const size_t begin = ahead < n ? ahead : n, end = n - (n - begin) % LANES;
    for (size_t i = 0; i < begin; ++i) x_n[i] = 0;
    for (size_t i = begin; i < end; i += LANES) stream(x_n + i, fill(0));
    for (size_t i = end; i < n; ++i) x_n[i] = 0;
    stream_fence();
}

}  // namespace

const Elementwise elementwise = {map<add>, map<mul>, clear_large};

}  // namespace chainrule::CHAINRULE_ISA
