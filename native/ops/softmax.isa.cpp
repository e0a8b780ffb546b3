// Softmax and log-softmax over the last axis.        Derivation: docs/derivations/softmax.md
#include "ops/softmax.hpp"

#include "simd/vecmath.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

constexpr float MASKED = -__builtin_inff();  // e^-∞ = 0: masked, or beyond the row

INLINE float row_maximum(const float* x, size_t C) {
    Vec top = fill(MASKED);
    for (size_t c = 0; c < C; c += LANES) top = max(load_next(x + c, C - c, MASKED), top);  // skips NaN
    const float peak = largest(top);
    return peak == MASKED ? 0 : peak;  // a row of -∞ stays a row of -∞
}

void forward(float* y_rc, const float* x_rc, size_t R, size_t C) {
    for (size_t r = 0; r < R; ++r) {
        const float* x = x_rc + r * C;
        float* y = y_rc + r * C;
        const Vec peak = fill(row_maximum(x, C));
        Vec total = fill(0);
        for (size_t c = 0; c < C; c += LANES) {
            const Vec e = exp_negative(load_next(x + c, C - c, MASKED) - peak);
            total = total + e;
            store_next(y + c, e, C - c);
        }
        const float all = sum(total);
        const Vec scale = fill(all == 0 ? 1 : 1 / all);  // [SM.2]
        for (size_t c = 0; c < C; c += LANES) store_next(y + c, load_next(y + c, C - c) * scale, C - c);
    }
}

void backward(float* dx_rc, const float* y_rc, const float* dy_rc, size_t R, size_t C) {
    for (size_t r = 0; r < R; ++r) {
        const float *y = y_rc + r * C, *dy = dy_rc + r * C;
        float* dx = dx_rc + r * C;
        Vec products = fill(0);
        for (size_t c = 0; c < C; c += LANES)
            products = fma(load_next(dy + c, C - c), load_next(y + c, C - c), products);
        const Vec dot = fill(sum(products));  // forward was: y = softmax(x)                                      [SM.4]
        for (size_t c = 0; c < C; c += LANES)
            store_next(dx + c, load_next(y + c, C - c) * (load_next(dy + c, C - c) - dot), C - c);
    }
}

void log_forward(float* y_rc, const float* x_rc, size_t R, size_t C) {
    for (size_t r = 0; r < R; ++r) {
        const float* x = x_rc + r * C;
        const Vec peak = fill(row_maximum(x, C));
        Vec total = fill(0);
        for (size_t c = 0; c < C; c += LANES) total = total + exp_negative(load_next(x + c, C - c, MASKED) - peak);
        const float all = sum(total);
        const Vec log_all = fill(all == 0 ? 0 : __builtin_logf(all));  // [SM.6]
        for (size_t c = 0; c < C; c += LANES)
            store_next(y_rc + r * C + c, load_next(x + c, C - c) - peak - log_all, C - c);
    }
}

void log_backward(float* dx_rc, const float* y_rc, const float* dy_rc, size_t R, size_t C) {
    for (size_t r = 0; r < R; ++r) {
        const float *y = y_rc + r * C, *dy = dy_rc + r * C;
        Vec total = fill(0);
        for (size_t c = 0; c < C; c += LANES) total = total + load_next(dy + c, C - c);
        const Vec minus_all = fill(-sum(total));  // forward was: y = x - logsumexp(x)                            [SM.7]
        for (size_t c = 0; c < C; c += LANES) {
            const Vec probability = exp(load_next(y + c, C - c));
            store_next(dx_rc + r * C + c, fma(probability, minus_all, load_next(dy + c, C - c)), C - c);
        }
    }
}

}  // namespace

const Softmax softmax = {forward, backward, log_forward, log_backward};

}  // namespace chainrule::CHAINRULE_ISA
