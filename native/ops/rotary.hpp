#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

struct Rotary {
    // Pair i of row t turned by the angle with cos_th[t, i] and `sign` sin_th[t, i], H = D / 2. The pairs are (i, i + H),
    // in `turn_neighbours` (2i, 2i + 1). Rows of x are x_row apart.
    void (*turn_halves)(float* y_td, const float* x_td, ptrdiff_t x_row, const float* cos_th, const float* sin_th,
                        float sign, size_t T, size_t H);
    void (*turn_neighbours)(float* y_td, const float* x_td, ptrdiff_t x_row, const float* cos_th, const float* sin_th,
                            float sign, size_t T, size_t H);
};
CHAINRULE_KERNELS(Rotary, rotary)

}  // namespace chainrule
