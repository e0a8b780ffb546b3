// Elementwise kernels from a function of vectors: map<silu> is y_i = silu(x_i). The function must be INLINE: to pass a
// vector through memory costs more than most functions.
#pragma once

#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

template <Vec function(Vec)>
void map(float* y_n, const float* x_n, size_t n) {
    const size_t whole = n - n % LANES, rest = n - whole;
    for (size_t i = 0; i < whole; i += LANES) store(y_n + i, function(load(x_n + i)));
    if (rest) store_some(y_n + whole, function(load_some(x_n + whole, rest)), rest);
}

template <Vec function(Vec, Vec)>
void map(float* y_n, const float* a_n, const float* b_n, size_t n) {
    const size_t whole = n - n % LANES, rest = n - whole;
    for (size_t i = 0; i < whole; i += LANES) store(y_n + i, function(load(a_n + i), load(b_n + i)));
    if (rest) store_some(y_n + whole, function(load_some(a_n + whole, rest), load_some(b_n + whole, rest)), rest);
}

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
