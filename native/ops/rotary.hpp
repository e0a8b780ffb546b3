#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

struct Rotary {
    // Rotates pair i of row t by the angle with cosine cos_th[t, i] and sine `sign` sin_th[t, i]; H = D / 2. Pairs are
    // (i, i + H), or (2i, 2i + 1) in `rotate_neighbors`. Rows of x are x_row apart. Backward has sign -1.
    void (*rotate_halves)(float* y_td, const float* x_td, ptrdiff_t x_row, const float* cos_th, const float* sin_th,
                        float sign, size_t T, size_t H);
    void (*rotate_neighbors)(float* y_td, const float* x_td, ptrdiff_t x_row, const float* cos_th, const float* sin_th,
                            float sign, size_t T, size_t H);
};
CHAINRULE_KERNELS(Rotary, rotary)

}  // namespace chainrule
