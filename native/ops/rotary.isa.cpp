// Rotary position embedding, forward [RO.2] and backward [RO.3].        Derivation: docs/derivations/rotary.md
#include "ops/rotary.hpp"

#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

void rotate_halves(float* y_td, const float* x_td, ptrdiff_t x_row, const float* cos_th, const float* sin_th, float sign,
                 size_t T, size_t H) {
    for (size_t t = 0; t < T; ++t, x_td += x_row, y_td += 2 * H, cos_th += H, sin_th += H) {
        for (size_t i = 0; i < H; i += LANES) {
            const size_t left = H - i;
            const Vec a = load_next(x_td + i, left), b = load_next(x_td + H + i, left);
            const Vec cos = load_next(cos_th + i, left), sin = load_next(sin_th + i, left) * fill(sign);
            store_next(y_td + i, a * cos - b * sin, left);
            store_next(y_td + H + i, b * cos + a * sin, left);
        }
    }
}

void rotate_neighbors(float* y_td, const float* x_td, ptrdiff_t x_row, const float* cos_th, const float* sin_th,
                     float sign, size_t T, size_t H) {
    for (size_t t = 0; t < T; ++t, x_td += x_row, y_td += 2 * H, cos_th += H, sin_th += H) {
        for (size_t i = 0; i < H; ++i) {
            const float a = x_td[2 * i], b = x_td[2 * i + 1], cos = cos_th[i], sin = sin_th[i] * sign;
            y_td[2 * i] = a * cos - b * sin;
            y_td[2 * i + 1] = b * cos + a * sin;
        }
    }
}

}  // namespace

const Rotary rotary = {rotate_halves, rotate_neighbors};

}  // namespace chainrule::CHAINRULE_ISA
