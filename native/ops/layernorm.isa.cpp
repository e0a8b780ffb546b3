// Layer normalization over the last axis.        Derivation: docs/derivations/layernorm.md
#include "ops/layernorm.hpp"

#include "ops/rstd.hpp"
#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

// The mean of x - shift; lanes beyond the row read as the shift.
[[gnu::always_inline]] inline float mean_of(const float* x, float shift, size_t C) {
    Vec total = fill(0);
    for (size_t c = 0; c < C; c += LANES) total = total + (load_next(x + c, C - c, shift) - fill(shift));
    return sum(total) / C;
}

// Two passes: E[x²] - E[x]² would cancel for a large mean.
[[gnu::always_inline]] inline float variance_of(const float* x, float mean, size_t C) {
    Vec squares = fill(0);
    for (size_t c = 0; c < C; c += LANES) {
        const Vec d = load_next(x + c, C - c, mean) - fill(mean);
        squares = fma(d, d, squares);
    }
    return sum(squares) / C;
}

void forward(float* y_rc, float* mean_r, float* rstd_r, const float* x_rc, const float* gamma_c, const float* beta_c,
             float eps, size_t R, size_t C) {
    for (size_t r = 0; r < R; ++r) {
        const float* x = x_rc + r * C;
        float* y = y_rc + r * C;

        float mean = mean_of(x, 0, C);  // [LN.1]
        float var = variance_of(x, mean, C);
        if (mean_is_far(mean, var)) {
            mean += mean_of(x, mean, C);  // [LN.8]
            var = variance_of(x, mean, C);
        }
        const float rstd = rstd_of(var, eps);  // [LN.2]

        for (size_t c = 0; c < C; c += LANES) {
            const Vec xhat = (load_next(x + c, C - c) - fill(mean)) * fill(rstd);
            store_next(y + c, fma(xhat, load_next(gamma_c + c, C - c), load_next(beta_c + c, C - c)), C - c);
        }
        mean_r[r] = mean;
        rstd_r[r] = rstd;
    }
}

void backward(float* dx_rc, float* dgamma_c, float* dbeta_c, const float* x_rc, const float* gamma_c,
              const float* mean_r, const float* rstd_r, const float* dy_rc, size_t R, size_t C) {
    for (size_t r = 0; r < R; ++r) {
        const float *x = x_rc + r * C, *dy = dy_rc + r * C;
        const float mean = mean_r[r];
        const Vec rstd = fill(rstd_r[r]);

        Vec sum_dxhat = fill(0), sum_product = fill(0);  // lanes beyond the row have dy = 0
        for (size_t c = 0; c < C; c += LANES) {
            const size_t left = C - c;
            const Vec g = load_next(dy + c, left);
            const Vec dxhat = g * load_next(gamma_c + c, left);  // forward was: y = xhat gamma + beta          [LN.3]
            const Vec xhat = (load_next(x + c, left, mean) - fill(mean)) * rstd;
            sum_dxhat = sum_dxhat + dxhat;
            sum_product = fma(dxhat, xhat, sum_product);
            if (dgamma_c) {
                store_next(dgamma_c + c, fma(g, xhat, load_next(dgamma_c + c, left)), left);  // [LN.4]
                store_next(dbeta_c + c, g + load_next(dbeta_c + c, left), left);              // [LN.5]
            }
        }
        if (!dx_rc) continue;

        // forward was: xhat = (x - mean) rstd                                                                   [LN.6]
        const Vec mean_dxhat = fill(sum(sum_dxhat) / C), minus_mean_product = fill(-sum(sum_product) / C);
        for (size_t c = 0; c < C; c += LANES) {
            const size_t left = C - c;
            const Vec dxhat = load_next(dy + c, left) * load_next(gamma_c + c, left);
            const Vec xhat = (load_next(x + c, left) - fill(mean)) * rstd;
            store_next(dx_rc + r * C + c, rstd * fma(xhat, minus_mean_product, dxhat - mean_dxhat), left);
        }
    }
}

}  // namespace

const Layernorm layernorm = {forward, backward};

}  // namespace chainrule::CHAINRULE_ISA
