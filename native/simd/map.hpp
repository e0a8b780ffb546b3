// Loops over arrays, a vector at a time, and elementwise kernels from a function of vectors: map<silu> is y_i = silu(x_i).
// The function must be INLINE: to pass a vector through memory costs more than most functions.
#pragma once

#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

struct Whole {  // the count LANES, known at compile time
    constexpr operator size_t() const { return LANES; }
};

// body(i, count) for the elements i .. i + count of n, for load_next and store_next; count is Whole except at the end.
template <class Body>
INLINE void each_vector(size_t n, Body body) {
    const size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES) body(i, Whole());
    if (whole < n) body(whole, n - whole);
}

template <Vec function(Vec)>
void map(float* y_n, const float* x_n, size_t n) {
    each_vector(n, [=](size_t i, auto count) { store_next(y_n + i, function(load_next(x_n + i, count)), count); });
}

template <Vec function(Vec, Vec)>
void map(float* y_n, const float* a_n, const float* b_n, size_t n) {
    each_vector(n, [=](size_t i, auto count) {
        store_next(y_n + i, function(load_next(a_n + i, count), load_next(b_n + i, count)), count);
    });
}

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
